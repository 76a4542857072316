"""What makes rows histories: three ways to see it, against the definition."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import missmdp as mm
from missmdp.data.tables import parts
from missmdp.data.tables.structure import Orderly, broken_episodes, sort_rows

ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.booleans()), min_size=1, max_size=9)


def numbered(rows):
    """Return rows with episodes numbered in order of first appearance."""
    order = list(dict.fromkeys(episode for episode, _, _ in rows))
    return [(order.index(episode), step, idle) for episode, step, idle in rows]


def is_history(rows, first):
    """Return whether rows (step, idle) are one episode, in any order."""
    rows = sorted(rows)
    steps = [step for step, _ in rows]
    return steps == list(range(first, first + len(rows))) and not any(idle for _, idle in rows[:-1])


def episodes_of(rows):
    found = {}
    for episode, step, idle in rows:
        found.setdefault(episode, []).append((step, idle))
    return found


def first_of(rows):
    return int(all(min(own)[0] == 1 for own in episodes_of(rows).values()))


@st.composite
def mostly_histories(draw):
    """Draw rows that are histories, in order or not, with a few changes."""
    first = draw(st.integers(0, 1))
    rows = []
    for episode in range(draw(st.integers(1, 3))):
        length = draw(st.integers(1, 4))
        rows += [
            (episode, first + step, step == length - 1 and draw(st.booleans())) for step in range(length)
        ]
    if draw(st.booleans()):
        rows = draw(st.permutations(rows))
    for _ in range(draw(st.integers(0, 2))):
        row = draw(st.integers(0, len(rows) - 1))
        rows[row] = draw(st.tuples(st.integers(0, 2), st.integers(0, 3), st.booleans()))
    return rows


@given(rows=st.one_of(ROWS, mostly_histories()), cut=st.integers(0, 9))
@settings(max_examples=100)
def test_orderly_rows_are_told_batch_by_batch(rows, cut):
    rows = numbered(rows)
    first = first_of(rows)
    good = all(is_history(own, first) for own in episodes_of(rows).values())
    in_order = [row[:2] for row in rows] == sorted(row[:2] for row in rows)
    orderly = Orderly()
    for part in (rows[:cut], rows[cut:]):
        if part:
            episode, step, idle = (np.array(column) for column in zip(*part, strict=True))
            orderly.add(episode, step, idle)
    assert orderly.so_far == (good and in_order)


@given(rows=st.one_of(ROWS, mostly_histories()))
@settings(max_examples=100)
def test_broken_episodes_are_found(rows):
    rows = numbered(rows)
    first = first_of(rows)
    episode, step, idle = (np.array(column) for column in zip(*rows, strict=True))
    sorting = sort_rows(episode, step, episode.max() + 1)
    # Among rows of one step the order is the one they had, so ties make no difference: such episodes are broken.
    broken = broken_episodes(sorting.apply(step), np.where(sorting.apply(idle), -1, 0), sorting.offsets)
    expected = [e for e, own in sorted(episodes_of(rows).items()) if not is_history(own, first)]
    assert broken.tolist() == expected


@pytest.mark.parametrize("first", [0, 1, 30])
def test_queries_find_the_same_broken_episodes(first, tmp_path):
    """Many episodes around the borders of windows of steps, each with at most one thing wrong."""
    from missmdp.data.tables.count import engine, episode_summary, health

    rng = np.random.default_rng(first)
    rows = []
    for episode in range(400):
        length = int(rng.integers(1, 70))
        steps = np.arange(first, first + length)
        idle = np.zeros(length, dtype=bool)
        idle[-1] = rng.random() < 0.5
        match episode % 5:
            case 0:
                steps[rng.integers(length)] = first + rng.integers(length)
            case 1:
                idle[rng.integers(length)] = True
            case 2:
                steps[rng.integers(length)] += rng.choice([0, 1, 32, 64])
        rows += [(episode, int(s), bool(i)) for s, i in zip(steps, idle, strict=True)]
    expected = {e for e, own in episodes_of(rows).items() if not is_history(own, min(own)[0])}
    assert 40 < len(expected) < 300
    order = rng.permutation(len(rows))
    columns = [np.array(column)[order] for column in zip(*rows, strict=True)]
    parquet.write_table(pa.table(columns, names=["e", "s", "idle"]), tmp_path / "rows.parquet")
    with engine() as (connection, _):
        summary = episode_summary(connection.read_parquet(tmp_path / "rows.parquet"))
        found = summary.to_pyarrow().to_pydict()
        state = health(summary)
    assert {e for e, broken in zip(found["e"], found["broken"], strict=True) if broken} == expected
    assert dict(zip(found["e"], found["low"], strict=True)) == {
        e: min(own)[0] for e, own in episodes_of(rows).items()
    }
    assert (state.rows, state.broken, state.good) == (len(rows), len(expected), False)


@pytest.mark.parametrize(("episode", "step"), [(None, 0), (2, None)])
def test_queries_see_rows_without_episode_or_step(episode, step, tmp_path):
    from missmdp.data.tables.count import engine, episode_summary, health

    columns = {"e": [1, 1, episode], "s": [0, 1, step], "idle": [False, True, True]}
    with engine() as (connection, _):
        for rows, good in [(2, True), (3, False)]:
            path = tmp_path / f"{rows}.parquet"
            parquet.write_table(pa.table(columns).slice(0, rows), path)
            summary = episode_summary(connection.read_parquet(path))
            assert health(summary).good == good


def test_rows_are_named_right_in_later_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "_BLOCK_BYTES", 100)
    mdp = mm.FactoredMDP({"x": [1, 2]}, ["go"], [np.eye(2)], 0.0, [0.5, 0.5])
    lines = [f"e{row},0,{1 + row % 2}," for row in range(100)]
    lines[77] = "e77,0,5,"
    (tmp_path / "log.csv").write_text("\n".join(["episode,step,x,action", *lines]))
    for read in (mm.Dataset.from_table, mm.ObservationCounts.from_table):
        with pytest.raises(mm.DataError, match=r"log\.csv, row 78, episode 'e77': 'x' cannot be '5'"):
            read(tmp_path / "log.csv", mdp)
    lines[77] = "e76,0,1,"
    (tmp_path / "log.csv").write_text("\n".join(["episode,step,x,action", *lines]))
    for read in (mm.Dataset.from_table, mm.ObservationCounts.from_table):
        with pytest.raises(mm.DataError, match=r"log\.csv, rows 77 and 78, episode 'e76'"):
            read(tmp_path / "log.csv", mdp)


def test_steps_from_one_are_explained_as_such_in_any_order(tmp_path):
    mdp = mm.FactoredMDP({"x": [1, 2]}, ["go"], [np.eye(2)], 0.0, [0.5, 0.5])
    (tmp_path / "log.csv").write_text("episode,step,x,action\na,4,1,\na,2,1,go\nb,1,1,\na,1,1,go\n")
    for read in (mm.Dataset.from_table, mm.ObservationCounts.from_table):
        with pytest.raises(
            mm.DataError, match=r"log\.csv, row 1, episode 'a': 'step' is 4, but 2 comes before"
        ):
            read(tmp_path / "log.csv", mdp)


def test_quoted_line_ends_may_fall_anywhere(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "_BLOCK_BYTES", 100)
    mdp = mm.FactoredMDP({"x": ["a\nb", "c"]}, ["go"], [np.eye(2)], 0.0, [0.5, 0.5])
    lines = [f"e{row},0,{'c' if row % 3 else chr(34) + 'a' + chr(10) + 'b' + chr(34)}," for row in range(100)]
    (tmp_path / "log.csv").write_text("\n".join(["episode,step,x,action", *lines]))
    data = mm.Dataset.from_table(tmp_path / "log.csv", mdp)
    assert data.observations[:, 0].tolist() == [int(row % 3 > 0) for row in range(100)]
