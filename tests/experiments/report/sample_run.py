"""Runs by hand: what run.json holds, small enough to check every figure on the page."""

import copy
import json
import re

from experiments.report.sample_reasons import certificates, diagnosis

WHY = "AsMAR predicts best"
FEATURES = {"infection": ["0", "1", "2"], "test": ["0", "1"], "heart_rate": ["low", "high"]}
HIDDEN = ("infection", "heart_rate")


def pattern(missing, estimate, half, truth):
    return {
        "missing": list(missing),
        "estimate": estimate,
        "lower": max(0.0, estimate - half),
        "upper": min(1.0, estimate + half),
        "truth": truth,
    }


def pattern_groups(known):
    """Return two groups of AsMAR, by the test, with four patterns each; one truth lies outside its interval."""
    chances = {"0": (0.1, 0.5, 0.15, 0.25), "1": (0.6, 0.2, 0.12, 0.08)}
    return [
        {
            "feature_names": list(HIDDEN),
            "given": {"test": value},
            "samples": 600 if value == "0" else 400,
            "never_missing": False,
            "patterns": [
                pattern(
                    missing,
                    chance,
                    0.05,
                    (chance + (0.08 if value == "0" and not missing else 0.01)) if known else None,
                )
                for missing, chance in zip(((), HIDDEN[:1], HIDDEN[1:], HIDDEN), chances[value], strict=True)
            ],
        }
        for value in ("0", "1")
    ]


def single_groups(known):
    """Return 12 groups of AIMI for one indicator, of 10, 20, … steps, one without data, and one never missing."""
    groups = [
        {
            "feature_names": ["infection"],
            "given": {"test": str(i % 2), "heart_rate": str(i)},
            "samples": 10 * i,
            "never_missing": False,
            "patterns": [
                pattern((), 1 - 0.05 * i, 0.2, 1 - 0.05 * i if known else None),
                pattern(("infection",), 0.05 * i, 0.2, 0.05 * i if known else None),
            ],
        }
        for i in range(13)
    ]
    sentinel = {**copy.deepcopy(groups[0]), "feature_names": ["test"], "never_missing": True, "samples": 999}
    return [*groups, sentinel]


def found_groups(known):
    """Return groups of DynamicsEM: values that act alike, and another indicator, decide about one feature."""
    given = [{"infection": "0 or 1"}, {"infection": "2"}, {"infection": "2", "R_heart_rate": "missing"}]
    return [
        {
            "feature_names": ["infection"],
            "given": where,
            "samples": 300 + i,
            "never_missing": False,
            "patterns": [
                pattern((), 0.8 - 0.3 * i, 0.04, 0.79 - 0.3 * i if known else None),
                pattern(("infection",), 0.2 + 0.3 * i, 0.04, 0.21 + 0.3 * i if known else None),
            ],
        }
        for i, where in enumerate(given)
    ]


def em_learner(known):
    """Return what DynamicsEM found, with intervals of a bootstrap."""
    one = learner("em", "DynamicsEM", "known dynamics, and what was found", found_groups(known), known)
    one["bound"] |= {"method": "bootstrap", "behaviour": "adaptive", "guaranteed": False}
    one["graph"] = {
        "edges": [["infection", "infection"]],
        "between": [["infection", "heart_rate"]],
        "threshold": None,
    }
    one["heldout"] = one["heldout"] | {"difference": -0.2, "difference_stderr": 0.02}
    return one


def bounds(lower, upper):
    """Return bounds that close in over a second."""
    return [
        {"seconds": 0.01 + 0.1 * k, "lower": lower - 300 * 0.2**k, "upper": upper + 60 * 0.5**k}
        for k in range(10)
    ]


def learner(label, name, assumes, groups, known, **changes):
    return {
        "label": label,
        "name": name,
        "assumes": assumes,
        "warnings": [],
        "always_observed": ["test"],
        "unseen_groups": 0,
        "bound": {
            "worst": 0.05,
            "tv": 0.061,
            "method": "auto",
            "behaviour": "blind",
            "guaranteed": True,
            "text": "Assuming it.\nKnown worst.",
        },
        "groups": groups,
        "distance": {"average": 0.0123, "worst": 0.0456} if known else None,
        "graph": {
            "edges": [["test", "infection"], ["test", "heart_rate"]],
            "between": [],
            "threshold": 0.05,
        },
        "heldout": {
            "per_step": -1.5,
            "stderr": 0.01,
            "steps": 1000,
            "folds": 5,
            "difference": 0.0,
            "difference_stderr": 0.0,
            "units": 40,
        },
        "solve": {
            "lower": -10.0,
            "upper": -9.9,
            "relative_gap": 0.01,
            "status": "precision",
            "text": "value in [−10.00, −9.90]",
            "vectors": 12,
            "trace": bounds(-10.0, -9.9),
        },
        "files": {"model": f"learners/{label}/learned.mmdp", "policy": f"learners/{label}/policy.mmpolicy"},
        **changes,
    }


def value_row(policy, kind, value, reference, share):
    gap = value - reference
    return {
        "policy": policy,
        "kind": kind,
        "value": value,
        "stderr": 0.1,
        "low": value - 0.2,
        "high": value + 0.2,
        "difference": gap,
        "difference_stderr": 0.05 if gap else 0.0,
        "difference_low": gap - 0.1 if gap else 0.0,
        "difference_high": gap + 0.1 if gap else 0.0,
        "normalised": share,
        "normalised_stderr": None if share is None else 0.01,
        "normalised_low": None if share is None else share - 0.02,
        "normalised_high": None if share is None else share + 0.02,
        "impossible": 0,
    }


def world(name, reference, values, *, scaled):
    kinds = {"optimal": "optimal", "prior": "prior", "random": "random"}
    span = values.get("optimal", 0.0) - values["prior"]
    return {
        "world": name,
        "episodes": 2000,
        "seed": 7,
        "reference": reference,
        "horizon": 100,
        "control_variate": True,
        "rows": [
            value_row(
                policy,
                kinds.get(policy, "learned"),
                value,
                values[reference],
                (value - values["prior"]) / span if scaled else None,
            )
            for policy, value in values.items()
        ],
    }


def sample(*, known=True):
    """Return a run of four learners of which AsMAR is recommended; the truth is known or not."""
    heldout = {
        "per_step": -1.8,
        "stderr": 0.01,
        "steps": 1000,
        "folds": 5,
        "difference": -0.3,
        "difference_stderr": 0.02,
        "units": 40,
    }
    learners = [
        learner("amcar", "AMCAR", "MCAR", [{**pattern_groups(known)[0], "given": {}}], known, heldout=heldout)
        | {
            "warnings": ["infection: what is missing depends on test (p = 1e-9), which MCAR rules out"],
            "graph": {"edges": [], "between": [], "threshold": 0.05},
        },
        learner("asmar", "AsMAR", "simple MAR", pattern_groups(known), known),
        learner("aimi", "AIMI", "independent indicators", single_groups(known), known, unseen_groups=3),
        em_learner(known),
    ]
    if known:
        values = {
            "amcar": -16.0,
            "asmar": -10.02,
            "aimi": -10.4,
            "em": -10.5,
            "optimal": -10.0,
            "prior": -17.0,
            "random": -90.0,
        }
        worlds = [world("truth", "optimal", values, scaled=True)]
    else:
        worlds = [
            world(
                "amcar",
                "amcar",
                {"amcar": -12.0, "asmar": -13.0, "aimi": -13.5, "em": -13.6, "prior": -12.5, "random": -90.0},
                scaled=False,
            ),
            world(
                "asmar",
                "asmar",
                {"amcar": -16.0, "asmar": -10.0, "aimi": -10.4, "em": -10.5, "prior": -17.0, "random": -90.0},
                scaled=False,
            ),
        ]
    solved = [
        {
            "name": name,
            "how": "solved",
            "lower": -10.0,
            "upper": -9.9,
            "status": "timeout",
            "trace": bounds(-10.0, -9.9),
        }
        for name in (["optimal"] if known else []) + ["prior"]
    ]
    return {
        "kind": "missmdp run",
        "version": "1.2.3",
        "seed": 0,
        "confidence": 0.95,
        "settings": {"steps": 1000, "learners": ["amcar", "asmar", "aimi", "em"], "timeout": None},
        "timings": {"data": 0.5, "learn": 1.0, "solve": 61.0},
        "model": {
            "name": "ward",
            "source": "ward.mmdp",
            "states": 12,
            "reachable": 11,
            "actions": ["wait", "treat"],
            "observations": 36 if known else None,
            "discount": 0.95,
            "horizon": 100,
            "features": [{"name": name, "values": values} for name, values in FEATURES.items()],
            "sha256": "ab" * 32,
            "truth_known": known,
            "types": {
                "summary": "MNAR: it depends on what is not seen",
                "mcar": False,
                "simple_mar": False,
                "mar": False,
                "self_censoring": ["infection"],
                "independent": True,
            }
            if known
            else None,
            "graph": {
                "nodes": list(FEATURES),
                "edges": [["infection", "infection"], ["test", "infection"]],
                "between": [["infection", "heart_rate"]],
            }
            if known
            else None,
        },
        "data": {
            "source": "simulated" if known else "table",
            "files": ["log.parquet"] if known else ["a.csv", "b.csv"],
            "steps": 1000,
            "episodes": 40,
            "mean_length": 25.0,
            "terminated": 30,
            "behaviour": "blind" if known else "adaptive",
            "missing_rates": {"infection": 0.625, "test": 0.0, "heart_rate": 0.25},
            "always_observed": ["test"],
            "patterns": [
                {"missing": ["infection"], "count": 500, "share": 0.5},
                {"missing": [], "count": 250, "share": 0.25},
                {"missing": list(HIDDEN), "count": 125, "share": 0.125},
                {"missing": "other", "count": 125, "share": 0.125},
            ],
            "associations": [
                {
                    "feature": "infection",
                    "by": "test",
                    "sentence": "infection is missing more where test is 0.",
                    "effect": 0.4,
                }
            ],
            "notes": ["a remark"],
            "fits": True,
            "problems": [] if known else ["one row is impossible"],
        },
        "diagnosis": diagnosis(known),
        "learners": learners,
        "recommended": {"label": "asmar", "why": WHY},
        "baselines": [
            *solved,
            {"name": "random", "how": "", "lower": None, "upper": None, "status": None, "trace": None},
        ],
        "values": worlds,
        "sensitivity": {
            "label": "asmar",
            "rows": [
                {
                    "what": what,
                    "how": f"share {size:.0%}",
                    "size": size,
                    "value": -10.0 - 8 * size,
                    "stderr": 0.1,
                    "difference": -8 * size,
                    "difference_stderr": 0.05,
                }
                for what in ("transition", "missingness")
                for size in (0.05, 0.1)
            ],
        },
        "certificates": certificates(known),
        "cannot_know": ["Whether infection hides itself."],
    }


def emptied(run):
    """Return the same with null for all that the contract lets be unknown, and empty lists."""
    run = copy.deepcopy(run)
    run["model"] |= {"observations": None, "types": None, "graph": None, "truth_known": False}
    run["data"] |= {
        "fits": None,
        "associations": [],
        "notes": [],
        "problems": [],
        "missing_rates": {"infection": 0.0},
        "patterns": [],
    }
    for one in run["learners"]:
        one |= {"distance": None, "graph": None, "heldout": None, "groups": [], "warnings": []}
        one["solve"] |= {"relative_gap": None, "trace": []}
    for baseline in run["baselines"]:
        baseline |= dict.fromkeys(("lower", "upper", "status", "trace"))
    for row in (row for world in run["values"] for row in world["rows"]):
        row |= dict.fromkeys(key for key in row if key not in ("policy", "kind", "value", "impossible"))
    run["diagnosis"] = {"why_not": None, "found": None}
    return run | {"sensitivity": None, "certificates": [], "cannot_know": [], "settings": {}, "timings": {}}


def renamed(run, names):
    """Return the same with other names, wherever they are."""
    text = json.dumps(run, ensure_ascii=False)
    for old, new in names.items():
        shown = json.dumps(new, ensure_ascii=False)[1:-1]
        # Whole words: "tests" is no name.
        text = re.sub(rf"\b{old}\b", lambda _, shown=shown: shown, text)
    return json.loads(text)


def write(run, folder):
    """Write run.json into a folder and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")
    return folder
