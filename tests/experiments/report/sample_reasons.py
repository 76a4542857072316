"""A diagnosis and certificates by hand, for runs by hand."""


def diagnosis(known):
    """Return why infection and heart_rate go missing: by the test, by itself, and by each other."""
    test = {
        "null": "MCAR",
        "alternative": "simple MAR",
        "features": ["infection", "heart_rate"],
        "statistic": 123.4,
        "freedom": 3,
        "p_value": 1e-20,
        "level": 0.01,
        "rejected": True,
    }
    driver = {
        "features": ["infection"],
        "driver": "infection",
        "indicator": False,
        "own": True,
        "lowest": 0,
        "highest": 2,
        "lowest_rate": 0.125,
        "highest_rate": 0.75,
        "difference": 0.625,
        "interval": [0.55, 0.7],
    }
    other = {
        **driver,
        "features": ["heart_rate"],
        "driver": "infection",
        "indicator": True,
        "own": False,
        "lowest": "seen",
        "highest": "missing",
        "lowest_rate": 0.2,
        "highest_rate": 0.4,
        "difference": 0.2,
        "interval": None,
    }
    found = {
        "type": "MNAR",
        "summary": "MNAR: what is missing depends on values that are not seen.",
        "self_censoring": ["infection"],
        "blocks": [["infection"], ["heart_rate"]],
        "graph": {
            "features": ["infection", "test", "heart_rate"],
            "can_go_missing": ["infection", "heart_rate"],
            "edges": [["infection", "infection"], ["test", "infection"]],
            "dependent": [["infection", "heart_rate"]],
        },
        "classes": [
            {
                "name": name,
                "log_likelihood": -1234.5 - behind,
                "n_parameters": 1234,
                "score": -1300.0 - behind,
                "behind": behind,
            }
            for name, behind in (("MCAR", 45.6), ("no self-censoring", 7.8), ("all parents", 0.0))
        ],
        "tests": [test],
        "own_tests": [
            {**test, "null": "no self-censoring", "alternative": "self-censoring", "p_value": 0.0},
            {**test, "null": "no self-censoring", "p_value": 0.25, "rejected": False},
        ],
        "drivers": [
            driver,
            {**driver, "driver": "test", "own": False, "difference": 0.125, "interval": [0.1, 0.15]},
            other,
        ],
        "recommended": "em",
        "learner": "DynamicsEM",
        "reason": "Values of infection go missing because of what they are.",
        "snapshots_only": False,
        "notes": ["a remark on reasons"],
    }
    return {"why_not": None, "found": found}


def certificate(**changes):
    """Return what is certain of a policy: at most 12.34 of 500 worse than optimal."""
    return {
        "epsilon": 12.34,
        "confidence": 0.95,
        "method": "revealing",
        "deploys": "controller",
        "vacuous": False,
        "trivial": 500.0,
        "value": [-20.0, -8.0],
        "terms": {"solver": 1.34, "before planning": 4.0, "after planning": 7.0},
        "dominating": "learning, after planning",
        "alternatives": {
            "closed form": {"epsilon": 1640.0, "deploys": "policy", "why": ""},
            "occupancy": {"epsilon": None, "deploys": "controller", "why": "there are too many nodes"},
            "revealing": {"epsilon": 12.34, "deploys": "controller", "why": ""},
        },
        "conditions": ["The data come from a policy that does not react to observations"],
        **changes,
    }


def certificates(known):
    """Return a certificate for AsMAR, the recommended learner, and none for DynamicsEM."""
    nothing = dict.fromkeys(
        ("why_not", "found", "text", "halving", "loss", "contradicted", "interval", "file")
    )
    return [
        {
            **nothing,
            "label": "asmar",
            "name": "AsMAR",
            "found": certificate(),
            "halving": "About 5,678 more samples would halve it.",
            "loss": {"mean": 0.5, "stderr": 0.01} if known else None,
            "file": "certified.mmpolicy",
        },
        {
            **nothing,
            "label": "em",
            "name": "DynamicsEM",
            "why_not": "DynamicsEM has no bound",
            "interval": {"low": -11.25, "high": -9.75, "spread": 0.2, "draws": 40, "confidence": 0.95},
        },
    ]
