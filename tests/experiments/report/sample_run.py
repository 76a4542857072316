"""Runs by hand: records small enough to check every figure on the page."""

import json
import re

import msgspec

from experiments.report.sample_reasons import certificates, diagnosis
from missmdp.experiments.record.coding import plain
from missmdp.experiments.record.record import (
    FORMAT,
    KIND,
    AssociationRecord,
    BaselineRecord,
    BoundRecord,
    DataRecord,
    DifferenceRecord,
    DistanceRecord,
    FeatureRecord,
    FilesRecord,
    GapsRecord,
    GraphRecord,
    GroupRecord,
    HeldOutRecord,
    LearnerRecord,
    ModelRecord,
    PatternRecord,
    RareGapsRecord,
    RateRecord,
    RecommendedRecord,
    RunRecord,
    SearchRecord,
    SensitivityRecord,
    SettingsRecord,
    TraceRecord,
    TruthRecord,
    ValueRecord,
    VariantRecord,
    WorldRecord,
)
from missmdp.learn.registry import find_learner

WHY = "AsMAR predicts best"
FEATURES = {"infection": ("0", "1", "2"), "test": ("0", "1"), "heart_rate": ("low", "high")}
HIDDEN = ("infection", "heart_rate")


def pattern(missing, estimate, half, truth):
    return PatternRecord(
        missing=tuple(missing),
        estimate=estimate,
        lower=max(0.0, estimate - half),
        upper=min(1.0, estimate + half),
        truth=truth,
        truth_low=truth,
        truth_high=truth,
    )


def group(features, given, samples, patterns, *, never_missing=False):
    return GroupRecord(
        features=tuple(features),
        given=given,
        samples=samples,
        never_missing=never_missing,
        patterns=tuple(patterns),
    )


def pattern_groups(known):
    """Return two groups of AsMAR, by the test, with four patterns each; one truth lies outside its interval."""
    chances = {"0": (0.1, 0.5, 0.15, 0.25), "1": (0.6, 0.2, 0.12, 0.08)}
    return [
        group(
            HIDDEN,
            {"test": value},
            600 if value == "0" else 400,
            [
                pattern(
                    missing,
                    chance,
                    0.05,
                    (chance + (0.08 if value == "0" and not missing else 0.01)) if known else None,
                )
                for missing, chance in zip(((), HIDDEN[:1], HIDDEN[1:], HIDDEN), chances[value], strict=True)
            ],
        )
        for value in ("0", "1")
    ]


def single_groups(known):
    """Return 12 groups of AIMI for one indicator, of 10, 20, … steps, one without data, and one never missing."""
    groups = [
        group(
            ["infection"],
            {"test": str(i % 2), "heart_rate": str(i)},
            10 * i,
            [
                pattern((), 1 - 0.05 * i, 0.2, 1 - 0.05 * i if known else None),
                pattern(("infection",), 0.05 * i, 0.2, 0.05 * i if known else None),
            ],
        )
        for i in range(13)
    ]
    return [*groups, group(["test"], groups[0].given, 999, groups[0].patterns, never_missing=True)]


def found_groups(known):
    """Return groups of DynamicsEM: values that act alike, and another indicator, decide about one feature."""
    given = [{"infection": "0 or 1"}, {"infection": "2"}, {"infection": "2", "R_heart_rate": "missing"}]
    return [
        group(
            ["infection"],
            where,
            300 + i,
            [
                pattern((), 0.8 - 0.3 * i, 0.04, 0.79 - 0.3 * i if known else None),
                pattern(("infection",), 0.2 + 0.3 * i, 0.04, 0.21 + 0.3 * i if known else None),
            ],
        )
        for i, where in enumerate(given)
    ]


def graph(*edges, dependent=()):
    return GraphRecord(
        features=tuple(FEATURES), can_go_missing=HIDDEN, edges=edges, dependent=tuple(dependent)
    )


def bounds(lower, upper):
    """Return bounds that close in over a second."""
    return tuple(
        TraceRecord(seconds=0.01 + 0.1 * k, lower=lower - 300 * 0.2**k, upper=upper + 60 * 0.5**k)
        for k in range(10)
    )


def search(status="precision"):
    return SearchRecord(
        sources="",
        lower=-10.0,
        upper=-9.9,
        relative_gap=0.01,
        status=status,
        trials=5,
        backups=50,
        vectors=12,
        trace=bounds(-10.0, -9.9),
    )


def heldout(difference=0.0, stderr=0.0, margin=0.0):
    return HeldOutRecord(
        per_step=-1.5 + difference,
        stderr=0.01,
        steps=1000,
        folds=5,
        difference=difference,
        difference_stderr=stderr,
        margin=margin,
        impossible=0,
        by="episodes",
        outside=0,
        settles=True,
        units=40,
    )


def bound(assumes, **changes):
    values = {
        "worst": 0.05,
        "tv": 0.061,
        "method": "auto",
        "behaviour": "blind",
        "confidence": 0.95,
        "assumes": assumes,
        "guaranteed": True,
        "text": "Assuming it.\nKnown worst.",
    }
    return BoundRecord(**{**values, **changes})


def learner(label, name, assumes, groups, known, **changes):
    words = find_learner(label)
    values = {
        "label": label,
        "name": name,
        "assumes": assumes,
        "short": words.short,
        "meaning": words.meaning,
        "clause": words.clause,
        "warnings": (),
        "always_observed": ("test",),
        "unseen_groups": 0,
        "unseen_get": None,
        "free_parameters": 6,
        "bound": bound(assumes),
        "groups": tuple(groups),
        "groups_left_out": 0,
        "distance": DistanceRecord(average=0.0123, worst=0.0456, weighted=0.0111) if known else None,
        "graph": graph(("test", "infection"), ("test", "heart_rate")),
        "threshold": 0.05,
        "heldout": heldout(),
        "search": search(),
        "files": FilesRecord(
            model=f"learners/{label}/learned.mmdp",
            policy=f"learners/{label}/policy.mmpolicy",
            trace=f"learners/{label}/trace.csv",
        ),
    }
    return LearnerRecord(**{**values, **changes})


def learners(known):
    """Return what four learners found: DynamicsEM with intervals of a bootstrap."""
    pooled = pattern_groups(known)[0]
    return (
        learner(
            "amcar",
            "AMCAR",
            "MCAR",
            [group(pooled.features, {}, pooled.samples, pooled.patterns)],
            known,
            heldout=heldout(-0.3, 0.02, 0.0405),
            warnings=("infection: what is missing depends on test (p = 1e-9), which MCAR rules out",),
            graph=graph(),
        ),
        learner("asmar", "AsMAR", "simple MAR", pattern_groups(known), known),
        learner(
            "aimi",
            "AIMI",
            "independent indicators",
            single_groups(known),
            known,
            unseen_groups=3,
            unseen_get="uniform",
        ),
        learner(
            "em",
            "DynamicsEM",
            "known dynamics, and what was found",
            found_groups(known),
            known,
            bound=bound("it", method="bootstrap", behaviour="adaptive", guaranteed=False),
            graph=graph(("infection", "infection"), dependent=[("infection", "heart_rate")]),
            threshold=None,
            heldout=heldout(-0.2, 0.02, 0.0405),
        ),
    )


def value_row(policy, value, reference, share):
    gap = value - reference
    return ValueRecord(
        policy=policy,
        kind=policy if policy in ("optimal", "prior", "random") else "learned",
        value=value,
        stderr=0.1,
        low=value - 0.2,
        high=value + 0.2,
        episodes=2000,
        difference=gap,
        difference_stderr=0.05 if gap else 0.0,
        difference_low=gap - 0.1 if gap else 0.0,
        difference_high=gap + 0.1 if gap else 0.0,
        normalised=share,
        normalised_stderr=None if share is None else 0.01,
        normalised_low=None if share is None else share - 0.02,
        normalised_high=None if share is None else share + 0.02,
        impossible=0,
    )


def difference(than, mean):
    """Return how much more the recommended policy is worth, with an interval of 0.2."""
    return DifferenceRecord(than=than, mean=mean, stderr=0.05, low=mean - 0.1, high=mean + 0.1)


def world(name, reference, values, *, scaled):
    span = values.get("optimal", 0.0) - values["prior"]
    return WorldRecord(
        world=name,
        episodes=2000,
        seed=7,
        reference=reference,
        horizon=100,
        truncation=0.001,
        status="episodes",
        control_variate=True,
        rows=tuple(
            value_row(policy, value, values[reference], (value - values["prior"]) / span if scaled else None)
            for policy, value in values.items()
        ),
        recommended=tuple(
            difference(other, values["asmar"] - value) for other, value in values.items() if other != "asmar"
        ),
    )


def worlds(known):
    names = ("amcar", "asmar", "aimi", "em", *(["optimal"] if known else []), "prior", "random")
    if known:
        values = (-16.0, -10.02, -10.4, -10.5, -10.0, -17.0, -90.0)
        return (world("truth", "optimal", dict(zip(names, values, strict=True)), scaled=True),)
    in_each = {
        "amcar": (-12.0, -13.0, -13.5, -13.6, -12.5, -90.0),
        "asmar": (-16.0, -10.0, -10.4, -10.5, -17.0, -90.0),
    }
    return tuple(
        world(name, name, dict(zip(names, values, strict=True)), scaled=False)
        for name, values in in_each.items()
    )


def settings(**changes):
    values = {
        "learners": ("amcar", "asmar", "aimi", "em"),
        "steps": 1000,
        "unknown_truth": False,
        "confidence": 0.95,
        "behaviour": None,
        "smoothing": 0.001,
        "unseen": "uniform",
        "patterns": "all",
        "always_observed": (),
        "blocks": (),
        "diagnosis": True,
        "folds": 5,
        "precision": 0.01,
        "timeout": None,
        "max_trials": None,
        "episodes": 2000,
        "sensitivity_episodes": 300,
        "sensitivity_draws": 3,
        "certificate": True,
        "seed": 0,
        "table": {"missing": [], "bins": {}},
        "data": None,
    }
    return SettingsRecord(**{**values, **changes})


def model(known):
    truth = TruthRecord(
        name="MNAR",
        mcar=False,
        simple_mar=False,
        mar=False,
        self_censoring=("infection",),
        independent=True,
        positive=True,
        always_observed=("test",),
        can_go_missing=HIDDEN,
        fitting_learners=(),
        observations=36,
        graph=graph(
            ("infection", "infection"), ("test", "infection"), dependent=[("infection", "heart_rate")]
        ),
    )
    return ModelRecord(
        name="ward",
        source="ward.mmdp",
        states=12,
        reachable=11,
        terminal=0,
        actions=("wait", "treat"),
        discount=0.95,
        horizon=100,
        features=tuple(FeatureRecord(name=name, values=values) for name, values in FEATURES.items()),
        sha256="ab" * 32,
        truth=truth if known else None,
    )


def data(known):
    return DataRecord(
        source="simulated" if known else "table",
        files=() if known else ("a.csv", "b.csv"),
        sha256="cd" * 32,
        steps=1000,
        episodes=40,
        terminated=30,
        behaviour="blind" if known else "adaptive",
        behaviour_known=known,
        missing_rates={"infection": 0.625, "test": 0.0, "heart_rate": 0.25},
        always_observed=("test",),
        patterns=(
            GapsRecord(missing=("infection",), count=500, share=0.5),
            GapsRecord(missing=(), count=250, share=0.25),
            GapsRecord(missing=HIDDEN, count=125, share=0.125),
        ),
        rarer=RareGapsRecord(patterns=1, count=125, share=0.125),
        associations=(
            AssociationRecord(
                feature="infection",
                given="test",
                highest=RateRecord(value="0", rate=0.8),
                lowest=RateRecord(value="1", rate=0.4),
            ),
        ),
        notes=("a remark",),
        fits=True,
        problems=() if known else ("one row is impossible",),
        ruled_out=0,
        never_visited=0,
    )


def sample_record(*, known=True):
    """Return a run of four learners of which AsMAR is recommended; the truth is known or not."""
    solved = [BaselineRecord(name="optimal", search=search("timeout"))] if known else []
    return RunRecord(
        kind=KIND,
        format=FORMAT,
        version="1.2.3",
        settings=settings(),
        timings={"data": 0.5, "learn": 1.0, "solve": 61.0},
        model=model(known),
        data=data(known),
        diagnosis=diagnosis(),
        learners=learners(known),
        skipped=(),
        left_out=(),
        recommended=RecommendedRecord(label="asmar", why=WHY),
        baselines=(
            *solved,
            BaselineRecord(name="prior", search=search("timeout")),
            BaselineRecord(name="random", search=None),
        ),
        values=worlds(known),
        sensitivity=SensitivityRecord(
            label="asmar",
            rows=tuple(
                VariantRecord(
                    what=what,
                    how=f"share {size:.0%}",
                    size=size,
                    value=-10.0 - 8 * size,
                    stderr=0.1,
                    difference=-8 * size,
                    difference_stderr=0.05,
                )
                for what in ("transition", "missingness")
                for size in (0.05, 0.1)
            ),
        ),
        certificates=certificates(known),
    )


def sample(*, known=True):
    """Return the same as run.json has it: lists and mappings, which tests may change."""
    return plain(msgspec.to_builtins(sample_record(known=known)))


def emptied(run):
    """Return the same with null for all that may be unknown, and empty lists."""
    run = json.loads(json.dumps(run))
    run["model"]["truth"] = None
    run["data"] |= {
        "associations": [],
        "notes": [],
        "problems": [],
        "missing_rates": {"infection": 0.0},
        "patterns": [],
        "rarer": None,
    }
    for one in run["learners"]:
        one |= {"distance": None, "heldout": None, "groups": [], "warnings": []}
        one["graph"] |= {"edges": [], "dependent": []}
        one["search"] |= {"relative_gap": None, "trace": []}
    for baseline in run["baselines"]:
        baseline["search"] = None
    for row in (row for world in run["values"] for row in world["rows"]):
        known = ("policy", "kind", "value", "episodes", "impossible")
        row |= dict.fromkeys(key for key in row if key not in known)
    run["diagnosis"] = {"why_not": None, "found": None}
    return run | {"sensitivity": None, "certificates": [], "timings": {}}


def renamed(run, names):
    """Return the same with other names, wherever they are."""
    text = json.dumps(run, ensure_ascii=False)
    for old, new in names.items():
        shown = json.dumps(new, ensure_ascii=False)[1:-1]
        # Whole words in values: "tests" is no name, and neither is the key "tests".
        text = re.sub(rf"\b{old}\b", lambda _, shown=shown: shown, text)
    return json.loads(text)


def write(run, folder):
    """Write run.json into a folder and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")
    return folder
