"""What the data look like."""

from __future__ import annotations

from missmdp.experiments.record.record import AssociationRecord, DataRecord, RunRecord
from missmdp.pages.markup import Html, element, joined, name
from missmdp.pages.page import Section, bullets, details, figure, note, paragraph, table
from missmdp.pages.row_charts import Bar, bar_chart
from missmdp.pages.svg import Chart
from missmdp.words import count, listed, percent, sentence

_MOST_BARS = 16
_MOST_SENTENCES = 5


def data_section(run: RunRecord) -> Section:
    """Return the section on the data."""
    data = run.data
    content: list[Html] = [paragraph(*_size(data))]
    content += [note(sentence(problem), kind="warning") for problem in data.problems]
    if data.fits and not data.problems:
        content.append(
            paragraph("The data fit the MDP: every step in them is possible in it, whatever goes missing.")
        )
    content += _rates(data)
    if data.gaps:
        content += [*_patterns(data), *_associations(data)]
    if data.notes:
        content.append(details("What else was noticed", bullets(map(sentence, data.notes))))
    return Section("data", "What the data look like", tuple(content))


def _size(data: DataRecord) -> list[str]:
    if data.source == "simulated":
        origin = "The data are simulated from the model"
    else:
        origin = f"The data were read from {listed(data.files, most=4) if data.files else 'a table'}"
    size = f"{origin}: {count(data.steps, 'step')} in {count(data.episodes, 'episode')}"
    if data.episodes:
        size += f", {data.steps / data.episodes:,.1f} steps each on average"
    sentences = [f"{size}.", *_ends(data.terminated, data.episodes)]
    if data.behaviour == "blind":
        sentences.append("Actions did not depend on what was seen.")
    else:
        sentences.append(
            "Actions may have depended on what was seen, so the intervals below are wider to allow for that."
        )
    return sentences


def _ends(terminated: int, episodes: int) -> list[str]:
    """Return how episodes ended."""
    if not episodes:
        return []
    if terminated == 0:
        return ["All were cut off; none ended by itself."]
    if terminated == episodes:
        return ["All ended by themselves."]
    return [f"Of these {terminated:,} ended by themselves; the others were cut off."]


def _rates(data: DataRecord) -> list[Html]:
    gone = sorted(((rate, feature) for feature, rate in data.gaps.items()), key=lambda pair: -pair[0])
    if not gone:
        return [paragraph("No value is missing in these data.")]
    always = data.always_observed
    never = (
        [paragraph(element("span", "Never missing: ", joined(map(name, always), ", "), "."))]
        if always
        else []
    )
    shown = gone[:_MOST_BARS]
    most = shown[0]
    chart = Chart(
        "missing-rates",
        "How often each value is missing",
        "; ".join(f"{feature}: {percent(rate, 1)}" for rate, feature in shown),
        bar_chart(
            [Bar(feature, rate, percent(rate, 1)) for rate, feature in shown],
            "share of steps without a value",
        ),
    )
    caption = (
        element(
            "span", "Decisions must do without ", name(most[1]), f" in {percent(most[0], 1)} of all steps."
        ),
        "The longer the bar, the more a policy has to infer from other values.",
    )
    rest = [
        details(
            f"The other {count(len(gone) - _MOST_BARS, 'feature')}",
            table(
                "Missing rates",
                ["feature", "missing"],
                [[feature, percent(rate, 1)] for rate, feature in gone[_MOST_BARS:]],
                numbers=[1],
            ),
        )
    ]
    return [figure(chart, *caption), *(rest if len(gone) > _MOST_BARS else []), *never]


def _patterns(data: DataRecord) -> list[Html]:
    if len(data.patterns) + (data.rarer is not None) < 2:
        return []
    bars = [
        Bar(
            " + ".join(pattern.missing) or "nothing missing",
            pattern.share,
            percent(pattern.share, 1),
            "missing" if pattern.missing else "complete",
        )
        for pattern in data.patterns
    ]
    if data.rarer is not None:
        bars.append(Bar("all rarer combinations", data.rarer.share, percent(data.rarer.share, 1)))
    chart = Chart(
        "patterns",
        "What is missing together",
        "; ".join(f"{bar.label}: {bar.text}" for bar in bars),
        bar_chart(bars, "share of steps"),
    )
    complete = next((pattern.share for pattern in data.patterns if not pattern.missing), 0.0)
    caption = f"{percent(complete, 1)} of the steps are complete." if complete else "No step is complete."
    return [
        figure(
            chart,
            caption,
            "Leaving out incomplete steps would throw the others away; a policy has to decide in them all the same.",
        )
    ]


def _associations(data: DataRecord) -> list[Html]:
    found = data.associations
    heading = element("h3", "What goes with what")
    if not found:
        return [
            heading,
            paragraph(
                "No value goes missing clearly more often for some readings of another. Pure chance would look "
                "like this, but so may a value that hides itself."
            ),
        ]
    content: list[Html] = [
        heading,
        paragraph(
            "Where a value goes missing more often for some readings of another, gaps are not pure chance: where "
            "that other value is not seen, a gap may itself be a sign of it."
        ),
        bullets(map(_association, found[:_MOST_SENTENCES])),
    ]
    if len(found) > _MOST_SENTENCES:
        rest = found[_MOST_SENTENCES:]
        content.append(details(f"{len(rest)} weaker ones", bullets(map(_association, rest))))
    return content


def _association(found: AssociationRecord) -> Html:
    highest, lowest = found.highest, found.lowest
    apart = f"({100 * (highest.rate - lowest.rate):.0f} points apart)"
    return element(
        "span",
        f"{found.feature} is missing in {percent(highest.rate, 1)} of the rows where {found.given} is "
        f"{highest.value}, and in {percent(lowest.rate, 1)} where it is {lowest.value}. ",
        element("span", apart, class_="soft"),
    )
