"""All studies by name."""

from __future__ import annotations

from missmdp.experiments.studies.beyond import BEYOND
from missmdp.experiments.studies.certificates import CERTIFICATES
from missmdp.experiments.studies.diagnosis import DIAGNOSIS

__all__ = ["STUDIES"]

STUDIES = {study.name: study for study in (BEYOND, DIAGNOSIS, CERTIFICATES)}
