"""What run.json must hold, written down once more: the report and other programs rely on it."""

NUMBER, TEXT, FLAG = (int, float), str, bool


class Maybe:
    """Something, or null."""

    def __init__(self, shape):
        self.shape = shape


class Each:
    """A mapping from any name to one shape."""

    def __init__(self, shape):
        self.shape = shape


BOUNDS = [{"seconds": NUMBER, "lower": NUMBER, "upper": NUMBER}]
VALUE = {
    "policy": TEXT,
    "kind": TEXT,
    **dict.fromkeys(("value", "stderr", "low", "high"), NUMBER),
    **dict.fromkeys(("difference", "difference_stderr", "difference_low", "difference_high"), NUMBER),
    **dict.fromkeys(("normalised", "normalised_stderr", "normalised_low", "normalised_high"), Maybe(NUMBER)),
    "impossible": int,
}
GROUP = {
    "feature_names": [TEXT],
    "given": Each(TEXT),
    "samples": int,
    "never_missing": FLAG,
    "patterns": [
        {"missing": [TEXT], "estimate": NUMBER, "lower": NUMBER, "upper": NUMBER, "truth": Maybe(NUMBER)}
    ],
}
LEARNER = {
    "label": TEXT,
    "name": TEXT,
    "assumes": TEXT,
    "warnings": [TEXT],
    "always_observed": [TEXT],
    "unseen_groups": int,
    "bound": {
        "worst": NUMBER,
        "tv": NUMBER,
        "method": TEXT,
        "behaviour": TEXT,
        "guaranteed": FLAG,
        "text": TEXT,
    },
    "groups": [GROUP],
    "distance": Maybe({"average": NUMBER, "worst": NUMBER}),
    "graph": Maybe({"edges": [[TEXT]], "between": [[TEXT]], "threshold": Maybe(NUMBER)}),
    "heldout": Maybe(
        {
            "per_step": NUMBER,
            "stderr": Maybe(NUMBER),
            "steps": int,
            "folds": int,
            "difference": NUMBER,
            "difference_stderr": Maybe(NUMBER),
            "units": int,
        }
    ),
    "solve": {
        "lower": NUMBER,
        "upper": NUMBER,
        "relative_gap": NUMBER,
        "status": TEXT,
        "text": TEXT,
        "vectors": int,
        "trace": BOUNDS,
    },
    "files": {"model": TEXT, "policy": TEXT},
}
DIAGNOSIS = {
    "type": TEXT,
    "summary": TEXT,
    "self_censoring": [TEXT],
    "blocks": [[TEXT]],
    "graph": {"features": [TEXT], "can_go_missing": [TEXT], "edges": [[TEXT]], "dependent": [[TEXT]]},
    "classes": [
        {"name": TEXT, "log_likelihood": NUMBER, "n_parameters": int, "score": NUMBER, "behind": NUMBER}
    ],
    "tests": [
        TEST := {
            "null": TEXT,
            "alternative": TEXT,
            "features": [TEXT],
            "statistic": NUMBER,
            "freedom": int,
            "p_value": Maybe(NUMBER),
            "level": NUMBER,
            "rejected": FLAG,
        }
    ],
    "own_tests": [TEST],
    "drivers": [
        {
            "features": [TEXT],
            "driver": TEXT,
            "indicator": FLAG,
            "own": FLAG,
            "lowest": (int, float, str, bool),
            "highest": (int, float, str, bool),
            "lowest_rate": NUMBER,
            "highest_rate": NUMBER,
            "difference": NUMBER,
            "interval": Maybe([NUMBER]),
        }
    ],
    "recommended": TEXT,
    "learner": TEXT,
    "reason": TEXT,
    "snapshots_only": FLAG,
    "notes": [TEXT],
}
CERTIFICATE = {
    "epsilon": NUMBER,
    "confidence": NUMBER,
    "method": TEXT,
    "deploys": TEXT,
    "vacuous": FLAG,
    "trivial": NUMBER,
    "value": [NUMBER],
    "terms": Each(NUMBER),
    "dominating": TEXT,
    "alternatives": Each({"epsilon": Maybe(NUMBER), "deploys": TEXT, "why": TEXT}),
    "conditions": [TEXT],
}
CONTRACT = {
    "kind": TEXT,
    "version": TEXT,
    "seed": int,
    "confidence": NUMBER,
    "settings": {},
    "timings": Each(NUMBER),
    "model": {
        "name": TEXT,
        "source": TEXT,
        "states": int,
        "reachable": int,
        "actions": [TEXT],
        "observations": Maybe(int),
        "discount": NUMBER,
        "horizon": int,
        "features": [{"name": TEXT, "values": [TEXT]}],
        "sha256": TEXT,
        "truth_known": FLAG,
        "types": Maybe(
            {
                "summary": TEXT,
                "mcar": FLAG,
                "simple_mar": FLAG,
                "mar": FLAG,
                "self_censoring": [TEXT],
                "independent": FLAG,
            }
        ),
        "graph": Maybe({"nodes": [TEXT], "edges": [[TEXT]], "between": [[TEXT]]}),
    },
    "data": {
        "source": TEXT,
        "files": [TEXT],
        "steps": int,
        "episodes": int,
        "mean_length": NUMBER,
        "terminated": int,
        "behaviour": TEXT,
        "missing_rates": Each(NUMBER),
        "always_observed": [TEXT],
        "patterns": [{"count": int, "share": NUMBER, "missing": (list, str)}],
        "associations": [{"feature": TEXT, "by": TEXT, "sentence": TEXT, "effect": NUMBER}],
        "notes": [TEXT],
        "fits": Maybe(FLAG),
        "problems": [TEXT],
    },
    "diagnosis": {"why_not": Maybe(TEXT), "found": Maybe(DIAGNOSIS)},
    "learners": [LEARNER],
    "recommended": {"label": TEXT, "why": TEXT},
    "baselines": [
        {
            "name": TEXT,
            "how": TEXT,
            "lower": Maybe(NUMBER),
            "upper": Maybe(NUMBER),
            "status": Maybe(TEXT),
            "trace": Maybe(BOUNDS),
        }
    ],
    "values": [
        {
            "world": TEXT,
            "episodes": int,
            "seed": int,
            "reference": TEXT,
            "horizon": int,
            "control_variate": FLAG,
            "rows": [VALUE],
        }
    ],
    "sensitivity": Maybe(
        {
            "label": TEXT,
            "rows": [
                {
                    "what": TEXT,
                    "how": TEXT,
                    "size": NUMBER,
                    "value": NUMBER,
                    "stderr": NUMBER,
                    "difference": NUMBER,
                    "difference_stderr": NUMBER,
                }
            ],
        }
    ),
    "certificates": [
        {
            "label": TEXT,
            "name": TEXT,
            "why_not": Maybe(TEXT),
            "found": Maybe(CERTIFICATE),
            "contradicted": Maybe(TEXT),
            "halving": Maybe(TEXT),
            "loss": Maybe({"mean": Maybe(NUMBER), "stderr": Maybe(NUMBER)}),
            "interval": Maybe(
                {"low": NUMBER, "high": NUMBER, "spread": NUMBER, "draws": int, "confidence": NUMBER}
            ),
            "file": Maybe(TEXT),
        }
    ],
    "cannot_know": [TEXT],
}


def breaches(found, shape=CONTRACT, where="run.json"):
    """Yield where something is absent or of another type; more than the contract asks for is fine."""
    match shape:
        case Maybe():
            if found is not None:
                yield from breaches(found, shape.shape, where)
        case Each():
            if not isinstance(found, dict):
                yield f"{where}: {type(found).__name__}"
                return
            for key, item in found.items():
                yield from breaches(item, shape.shape, f"{where}.{key}")
        case dict():
            if not isinstance(found, dict):
                yield f"{where}: {type(found).__name__}"
                return
            for key, inner in shape.items():
                if key not in found:
                    yield f"{where}: no {key}"
                else:
                    yield from breaches(found[key], inner, f"{where}.{key}")
        case [inner]:
            if not isinstance(found, list):
                yield f"{where}: {type(found).__name__}"
                return
            for i, item in enumerate(found):
                yield from breaches(item, inner, f"{where}[{i}]")
        case _:
            wrong_flag = isinstance(found, bool) and shape is not FLAG
            if wrong_flag or not isinstance(found, shape):
                yield f"{where}: {type(found).__name__}"
