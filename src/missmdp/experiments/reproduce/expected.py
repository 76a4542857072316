"""What the theory says of each benchmark: how values go missing there, and whose assumptions hold."""

from __future__ import annotations

__all__ = ["KINDS", "LEARNABLE_BY", "MDPS", "RIGHT"]

KINDS = {
    "icu-smar": "simple MAR",
    "icu-mnar-id": "MNAR, identifiable",
    "icu-mnar-unid": "MNAR, self-censoring",
    "predator-smar": "simple MAR",
    "predator-mnar-unid": "MNAR, self-censoring",
    "predator-mcar": "MCAR",
}
LEARNABLE_BY: dict[str, tuple[str, ...]] = {
    "icu-smar": ("AsMAR", "AIMI"),
    "icu-mnar-id": ("AIMI",),
    "icu-mnar-unid": (),
    "predator-smar": ("AsMAR",),
    "predator-mnar-unid": (),
    "predator-mcar": ("AMCAR", "AsMAR"),
}
"""Learners whose assumptions hold."""
RIGHT = {"icu-smar": "AsMAR", "icu-mnar-id": "AIMI", "predator-smar": "AsMAR", "predator-mcar": "AMCAR"}
"""The learner that assumes no less than holds; where values censor themselves there is none."""
MDPS = {
    "icu-smar": "ICU",
    "icu-mnar-id": "ICU",
    "icu-mnar-unid": "ICU",
    "predator-smar": "Predator, small map",
    "predator-mnar-unid": "Predator, small map",
    "predator-mcar": "Predator, large map",
}
"""What is left of a benchmark where nothing goes missing."""
