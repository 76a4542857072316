"""A diagnosis and certificates by hand, for runs by hand."""

from missmdp.experiments.record.record import (
    AlternativeRecord,
    CertificateRecord,
    CertifiedRecord,
    ClassRecord,
    DiagnosisRecord,
    DriverRecord,
    GraphRecord,
    HalvingRecord,
    LikelyRecord,
    LossRecord,
    ReasonsRecord,
    TestRecord,
)


def likelihood_ratio(**changes):
    """Return a test of MCAR against simple MAR."""
    values = {
        "null": "MCAR",
        "alternative": "simple MAR",
        "features": ("infection", "heart_rate"),
        "statistic": 123.4,
        "freedom": 3,
        "p_value": 1e-20,
        "level": 0.01,
        "rejected": True,
    }
    return TestRecord(**{**values, **changes})


def driver(**changes):
    """Return how infection goes missing by its own value."""
    values = {
        "features": ("infection",),
        "driver": "infection",
        "indicator": False,
        "own": True,
        "lowest": "0",
        "highest": "2",
        "lowest_rate": 0.125,
        "highest_rate": 0.75,
        "difference": 0.625,
        "interval": (0.55, 0.7),
    }
    return DriverRecord(**{**values, **changes})


def diagnosis():
    """Return why infection and heart_rate go missing: by the test, by itself, and by each other."""
    graph = GraphRecord(
        features=("infection", "test", "heart_rate"),
        can_go_missing=("infection", "heart_rate"),
        edges=(("infection", "infection"), ("test", "infection")),
        dependent=(("infection", "heart_rate"),),
    )
    found = DiagnosisRecord(
        type="MNAR",
        summary="MNAR: what is missing depends on values that are not seen.",
        self_censoring=("infection",),
        blocks=(("infection",), ("heart_rate",)),
        rates=(0.625, 0.25),
        graph=graph,
        classes=tuple(
            ClassRecord(
                name=name,
                log_likelihood=-1234.5 - behind,
                n_parameters=1234,
                score=-1300.0 - behind,
                behind=behind,
                graph=graph,
            )
            for name, behind in (("MCAR", 45.6), ("no self-censoring", 7.8), ("all parents", 0.0))
        ),
        tests=(likelihood_ratio(),),
        own_tests=(
            likelihood_ratio(null="no self-censoring", alternative="self-censoring", p_value=0.0),
            likelihood_ratio(null="no self-censoring", p_value=0.25, rejected=False),
        ),
        drivers=(
            driver(),
            driver(driver="test", own=False, difference=0.125, interval=(0.1, 0.15)),
            driver(
                features=("heart_rate",),
                indicator=True,
                own=False,
                lowest="seen",
                highest="missing",
                lowest_rate=0.2,
                highest_rate=0.4,
                difference=0.2,
                interval=None,
            ),
        ),
        recommended="em",
        learner="DynamicsEM",
        reason="Values of infection go missing because of what they are.",
        snapshots_only=False,
        n_steps=1000,
        notes=("a remark on reasons",),
    )
    return ReasonsRecord(found=found, why_not=None)


def certificate(**changes):
    """Return what is certain of a policy: at most 12.34 of 500 worse than optimal."""
    values = {
        "epsilon": 12.34,
        "confidence": 0.95,
        "method": "revealing",
        "assumes": "simple MAR",
        "deploys": "controller",
        "vacuous": False,
        "trivial": 500.0,
        "value": (-20.0, -8.0),
        "best_upper": -7.0,
        "terms": {"solver": 1.34, "before planning": 4.0, "after planning": 7.0},
        "dominating": "learning, after planning",
        "alternatives": {
            "closed form": AlternativeRecord(epsilon=1640.0, deploys="policy", why="", reference=False),
            "occupancy": AlternativeRecord(
                epsilon=None, deploys="controller", why="there are too many nodes", reference=False
            ),
            "revealing": AlternativeRecord(epsilon=12.34, deploys="controller", why="", reference=False),
        },
        "samples": 1000,
        "samples_to_halve": HalvingRecord(factor=6.678, samples=6678, more=5678, why=""),
        "support": None,
        "conditions": ("The data come from a policy that does not react to observations",),
    }
    return CertificateRecord(**{**values, **changes})


def certificates(known):
    """Return a certificate for AsMAR, the recommended learner, and none for DynamicsEM."""
    return (
        CertifiedRecord(
            label="asmar",
            name="AsMAR",
            why_not=None,
            found=certificate(),
            loss=LossRecord(mean=0.5, stderr=0.01, episodes=2000) if known else None,
            contradicted=None,
            likely=None,
            file="certified.mmpolicy",
        ),
        CertifiedRecord(
            label="em",
            name="DynamicsEM",
            why_not="DynamicsEM has no bound",
            found=None,
            loss=None,
            contradicted=None,
            likely=LikelyRecord(
                low=-11.25,
                high=-9.75,
                median=-10.5,
                spread=0.2,
                draws=40,
                confidence=0.95,
                source="bootstrap",
            ),
            file=None,
        ),
    )
