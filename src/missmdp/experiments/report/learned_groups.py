"""Which learned probabilities deserve a place in a figure, and all of them as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from missmdp.experiments.record.record import GroupRecord, LearnerRecord, PatternRecord
from missmdp.pages.markup import Html
from missmdp.pages.page import details, paragraph, table
from missmdp.words import UNKNOWN, count, percent, percent_range

_MOST_ROWS = 18
"""Dots that a figure has room for."""
_MOST_PATTERNS = 4
_MOST_TABLE_ROWS = 80
"""Rows of a table on the page; the file has them all."""
_SLACK = 1e-9
_NBSP = "\u00a0"
"""A space at which no line is broken."""


@dataclass(frozen=True)
class ShownRow:
    """One probability."""

    label: str
    estimate: float | None
    lower: float | None
    upper: float | None
    truth: float | None
    truth_range: tuple[float, float] | None
    """Where the truth lies in the group, if it is not the same everywhere in it."""

    @property
    def text(self) -> str:
        """The estimate and its interval in words."""
        return f"{percent(self.estimate)} ({percent_range(self.lower, self.upper)})"


@dataclass(frozen=True)
class Shown:
    """Rows of a figure under a heading."""

    heading: str
    rows: tuple[ShownRow, ...]


def chosen_groups(groups: Sequence[GroupRecord]) -> list[Shown]:
    """Return the groups for a figure: those with most data, and the least certain ones among those with data."""
    seen = [group for group in groups if group.samples and group.patterns]
    if not seen:
        return []
    if all(len(group.patterns) == 2 for group in seen):
        return _by_feature(seen)
    each = max(min(len(group.patterns), _MOST_PATTERNS) for group in seen)
    picked = _picked(seen, max(2, _MOST_ROWS // each))
    return [Shown(_heading(group), _rows(group)) for group in picked]


def some_left_out(groups: Sequence[GroupRecord], chosen: Sequence[Shown]) -> bool:
    """Return whether a figure has less than all: of two patterns, one says it all."""
    whole = sum(max(1, len(group.patterns) - (len(group.patterns) == 2)) for group in groups)
    return sum(len(shown.rows) for shown in chosen) < whole


def _by_feature(groups: Sequence[GroupRecord]) -> list[Shown]:
    """Return one row for each group, under the feature that goes missing."""
    parts = [list(part) for _, part in groupby(groups, key=lambda group: tuple(group.features))]
    shown: list[Shown] = []
    for part in parts:
        picked = _picked(part, max(3, _MOST_ROWS // len(parts)))
        missing = " + ".join(part[0].features)
        some = f" ({len(picked)} of {len(part):,} groups)" if len(picked) < len(part) else ""
        rows = tuple(_row(_gap(group), f"{_given(group)}{_NBSP}· {group.samples:,}") for group in picked)
        shown.append(Shown(f"Chance that {missing} is missing{some}", rows))
    return shown


def _picked(groups: Sequence[GroupRecord], most: int) -> Sequence[GroupRecord]:
    """Return at most that many groups, in their order: two thirds for their data, the others for their doubt."""
    if len(groups) <= most:
        return groups
    order = sorted(range(len(groups)), key=lambda i: -groups[i].samples)
    kept = set(order[: most - most // 3])
    doubtful = sorted((i for i in order if i not in kept), key=lambda i: -_width(groups[i]))
    kept.update(doubtful[: most - len(kept)])
    return [group for i, group in enumerate(groups) if i in kept]


def _width(group: GroupRecord) -> float:
    return max((p.upper or 0.0) - (p.lower or 0.0) for p in group.patterns)


def _rows(group: GroupRecord) -> tuple[ShownRow, ...]:
    likely = sorted(group.patterns, key=lambda pattern: -(pattern.estimate or 0.0))[:_MOST_PATTERNS]
    return tuple(
        _row(pattern, _lacks(pattern))
        for pattern in group.patterns
        if any(pattern is chosen for chosen in likely)
    )


def _row(pattern: PatternRecord, label: str) -> ShownRow:
    low, high = _truth(pattern)
    differs = (low, high) if low is not None and high is not None and high - low > _SLACK else None
    return ShownRow(label, pattern.estimate, pattern.lower, pattern.upper, pattern.truth, differs)


def _truth(pattern: PatternRecord) -> tuple[float | None, float | None]:
    """Return the least and the greatest true probability in a group."""
    return pattern.truth_low, pattern.truth_high


def _gap(group: GroupRecord) -> PatternRecord:
    """Return the pattern in which something is missing."""
    return next(pattern for pattern in group.patterns if pattern.missing)


def _lacks(pattern: PatternRecord) -> str:
    return " + ".join(pattern.missing) or "nothing missing"


def _given(group: GroupRecord) -> str:
    return ", ".join(f"{name}{_NBSP}={_NBSP}{value}" for name, value in group.given.items()) or "everywhere"


def _heading(group: GroupRecord) -> str:
    where = f"Where {_given(group)}" if group.given else "Everywhere"
    return f"{where} · {count(group.samples, 'step')}"


def can_lack(group: GroupRecord) -> bool:
    """Return whether there is anything to learn in a group: something in it may be missing."""
    return not group.never_missing and (
        not group.patterns or any(pattern.missing for pattern in group.patterns)
    )


def covered(groups: Sequence[GroupRecord]) -> tuple[int, int]:
    """Return how many probabilities have a known truth, and how many intervals hold it, all over their group."""
    verdicts = [_holds(pattern) for group in groups for pattern in group.patterns]
    known = [verdict for verdict in verdicts if verdict is not None]
    return len(known), sum(known)


def outside(groups: Sequence[GroupRecord]) -> list[str]:
    """Return the probabilities whose truth lies outside their interval, in words."""
    return [
        _told(group, pattern) for group in groups for pattern in group.patterns if _holds(pattern) is False
    ]


def _holds(pattern: PatternRecord) -> bool | None:
    """Return whether the interval holds the truth all over the group, or None where one of them is unknown."""
    low, high = _truth(pattern)
    if low is None or high is None or pattern.lower is None or pattern.upper is None:
        return None
    return bool(pattern.lower - _SLACK <= low and high <= pattern.upper + _SLACK)


def _told(group: GroupRecord, pattern: PatternRecord) -> str:
    learned, between, truth = _numbers(pattern, truth=True)
    lacks = f"{_lacks(pattern)} missing" if pattern.missing else "nothing missing"
    where = f"where {_given(group)}" if group.given else "everywhere"
    return f"{lacks} {where} (learned {learned}, interval {between}, truth {truth})"


def learned_table(learner: LearnerRecord, groups: Sequence[GroupRecord], *, truth: bool) -> Html:
    """Return all probabilities as a folded table; very long ones are cut."""
    ordered = sorted(groups, key=lambda group: -group.samples)
    cells = [(group, pattern) for group in ordered for pattern in group.patterns]
    more = "more than " if learner.groups_left_out else ""
    shown = [
        [_given(group), f"{group.samples:,}", _lacks(pattern), *_numbers(pattern, truth=truth)]
        for group, pattern in cells[:_MOST_TABLE_ROWS]
    ]
    columns = ["where", "steps", "missing", "learned", "interval", *(["truth"] if truth else [])]
    whole = table(f"What {learner.name} learned", columns, shown, numbers=[1, 3, 4, 5])
    if len(shown) == len(cells) and not more:
        title = f"All {len(shown):,} probabilities" if len(shown) > 1 else "As a table"
        return details(title, whole)
    cut = paragraph("Those with most steps; tables/learned.csv has them all.")
    return details(f"{len(shown)} of {more}{len(cells):,} probabilities", cut, whole)


def _numbers(pattern: PatternRecord, *, truth: bool) -> list[str]:
    cells = [
        percent(pattern.estimate, 1),
        f"{percent(pattern.lower, 1)} to {percent(pattern.upper, 1)}",
    ]
    if not truth:
        return cells
    row = _row(pattern, "")
    if row.truth_range is not None:
        return [*cells, f"{percent(row.truth_range[0], 1)} to {percent(row.truth_range[1], 1)}"]
    return [*cells, UNKNOWN if row.truth is None else percent(row.truth, 1)]
