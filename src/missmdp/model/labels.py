"""Labels of a POMDP's states, actions and observations → their indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from missmdp.errors import ModelError

__all__ = ["Labels"]


class Labels:
    """Where each label is in a list.

    Parameters
    ----------
    labels
        The labels, in order; where one occurs twice, the first counts.
    what
        What they are called in errors, such as "observation".
    """

    def __init__(self, labels: Sequence[Any], what: str) -> None:
        self._labels = labels
        self._what = what
        self._index: dict[Any, int] = {}
        for index, label in enumerate(labels):
            self._index.setdefault(label, index)

    def index(self, label: Any) -> int:
        """Return the index of a label; raise `ModelError` if there is none of that name."""
        try:
            return self._index[label]
        except (KeyError, TypeError):
            shown = ", ".join(repr(known) for known in list(self._index)[:8])
            more = f", … ({len(self._index)} in all)" if len(self._index) > 8 else ""
            raise ModelError(
                f"there is no {self._what} {label!r}; the {self._what}s are {shown}{more}"
            ) from None
