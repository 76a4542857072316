"""All studies by name."""

from __future__ import annotations

from missmdp.experiments.studies.beyond import BEYOND
from missmdp.experiments.studies.bounds import BOUNDS
from missmdp.experiments.studies.certificates import CERTIFICATES
from missmdp.experiments.studies.check_dynamics import CHECK_DYNAMICS
from missmdp.experiments.studies.diagnosis import DIAGNOSIS
from missmdp.experiments.studies.learned_dynamics import DYNAMICS
from missmdp.experiments.studies.learning import LEARNING

STUDIES = {
    study.name: study
    for study in (BEYOND, DYNAMICS, DIAGNOSIS, CERTIFICATES, BOUNDS, LEARNING, CHECK_DYNAMICS)
}
