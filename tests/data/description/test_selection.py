"""Columns that `describe` leaves out, and words that are dates."""

import pandas as pd
import pytest

import missmdp as mm


def visits(n_episodes=60, length=4, **columns):
    """Return a log with a few columns, each from a function of the episode and the step."""
    rows = [(e, s) for e in range(n_episodes) for s in range(length)]
    table = {"episode": [e for e, _ in rows], "step": [s for _, s in rows], "action": ["go"] * len(rows)}
    columns = {"level": lambda e, s: None if (e + s) % 3 == 0 else s, **columns}
    return table | {name: [value(e, s) for e, s in rows] for name, value in columns.items()}


def test_ignored_columns_are_left_out():
    table = visits(a=lambda e, s: 1, b=lambda e, s: 2)
    assert mm.describe(table).features == ("level", "a", "b")
    assert mm.describe(table, ignore=["a", "b"]).features == ("level",)
    assert mm.describe(table, ignore="b").features == ("level", "a")
    # These are no features, so nothing is lost if somebody makes sure.
    assert mm.describe(table, ignore=["reward", "action"]).features == ("level", "a", "b")


def test_features_of_a_dataset_can_be_ignored():
    data = mm.collect(mm.load_benchmark("icu-smar"), 500, seed=0)
    found = mm.describe(data, ignore=["temperature"])
    assert found.features == ("infection", "test", "heart_rate")
    rates = data.missing_rates()
    assert found.rates.tolist() == pytest.approx([rates[name] for name in found.features])


@pytest.mark.parametrize(
    ("ignore", "message"),
    [
        (["levle"], "did you mean 'level'"),
        (["step"], "there is no feature 'step'"),
        (["level"], "all features"),
        (5, "ignore must be a list of features, got 5"),
    ],
)
def test_what_cannot_be_ignored_is_explained(ignore, message):
    with pytest.raises(mm.DataError, match=message):
        mm.describe(visits(), ignore=ignore)


@pytest.mark.parametrize(
    ("words", "note"),
    [
        (lambda e, s: f"note {e} {s}", "'words' is left out, since it has 240 different words in 240 rows"),
        (
            lambda e, s: None if s else f"id {e}",
            "'words' is left out, since it has 60 different words in 60 rows",
        ),
        (lambda e, s: f"id {e}", "'words' is left out, since it has 60 different words in 60 episodes"),
        (lambda e, s: f"id {e // 2}", None),
        (lambda e, s: f"drug {(4 * e + s) % 55}", None),
        (lambda e, s: 1000 * e + s, None),
    ],
    ids=["notes", "first notes", "ids", "few ids", "drugs", "numbers"],
)
def test_words_that_hardly_recur_are_left_out_with_a_note(words, note):
    found = mm.describe(visits(words=words))
    assert found.features == (("level",) if note else ("level", "words"))
    assert found.notes == ((note,) if note else ())
    assert (note or "") in str(found)


def test_words_of_a_single_long_episode_are_kept():
    assert mm.describe(visits(1, 500, drug=lambda e, s: f"drug {s % 60}")).features == ("level", "drug")


def test_a_log_of_nothing_but_notes_is_described():
    table = visits(note=lambda e, s: None if s == 2 else f"note {e} {s}")
    del table["level"]
    assert mm.describe(table).features == ("note",)


@pytest.mark.parametrize("frequency", ["7h", "D", "7min"])
def test_dates_in_csv_files_are_dates(tmp_path, frequency):
    frame = pd.DataFrame(visits())
    frame["when"] = pd.date_range("2024-01-01", periods=len(frame), freq=frequency)
    frame.to_csv(tmp_path / "log.csv", index=False)
    from_frame, from_csv = mm.describe(frame), mm.describe(tmp_path / "log.csv")
    assert str(from_csv) == str(from_frame)
    assert from_csv.by_value[1].ordered
    assert from_csv.by_value[1].labels == from_frame.by_value[1].labels
    assert len(from_csv.by_value[1]) == 12


def test_words_that_are_only_partly_dates_are_words():
    found = mm.describe(visits(when=lambda e, s: "unknown" if e == 0 else f"2024-01-0{s + 1}"))
    assert found.by_value[1].labels == ("2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04", "unknown")
    assert not found.by_value[1].ordered


def test_words_for_missing_values_are_passed_on():
    found = mm.describe(visits(drug=lambda e, s: "?" if s == 1 else "a"), missing=["?"])
    assert found.missing[1] == 60
