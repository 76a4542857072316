"""The pages that are looked at: runs by hand, real ones, and odd names."""

import warnings

import missmdp as mm
from experiments.report.sample_run import emptied, renamed, sample, write
from experiments.run.wards import quick, ward, ward_mdp
from hostile_names import FEATURES, hostile_model
from missmdp.errors import AssumptionWarning
from missmdp.experiments.report.write import write_report

__all__ = ["ODD", "PAGES"]

ODD = {
    "infection": "<script>document.title='gone'</script>",
    "heart_rate": "a&b <img src=x onerror=alert(1)> \"quoted\" 'twice'",
    "test": "温度センサーの測定値 Ünïcödé עברית 🌡️",
}
"""Names that a page must show as they are."""
LONG = {
    "infection": "InfectionSeverityAccordingToTheMostRecentLaboratoryResultOfTheCentralLaboratory_v2_final_FINAL",
    "heart_rate": "heart rate in beats per minute, measured at the bedside by whoever was there and not by the monitor",
    "test": "t",
    "AsMAR": "AsMARWithAnExtraordinarilyLongNameThatNobodyWouldEverType",
}


def by_hand(run):
    def make(folder):
        write_report(write(run, folder))
        return folder

    return make


def odd_ward():
    """Return the small ward with names that are markup."""
    mdp = mm.FactoredMDP(
        features={"<b>infection</b>": range(3), "ward & bed": ["<i>normal</i>", "icu"]},
        actions=["<wait>", "treat & cure"],
        transition=lambda state, action: (
            [((max(state[0] - 1, 0), state[1]), 0.9), (state, 0.1)]
            if action == "treat & cure"
            else [((min(state[0] + 1, 2), state[1]), 0.3), ((state[0], "icu"), 0.2), (state, 0.5)]
        ),
        reward=lambda state, action: -5 * state[0] - 4 * (action == "treat & cure"),
        initial={(0, "<i>normal</i>"): 0.6, (1, "<i>normal</i>"): 0.4},
        discount=0.8,
        progress=False,
    )
    rates = {"<b>infection</b>": lambda state: 0.2 if state[1] == "icu" else 0.7}
    return mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, rates))


def real(model, **options):
    """Return what makes the page of a real run."""

    def make(folder):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AssumptionWarning)
            mm.run(model(), folder=folder, settings=quick(**options), progress=False)
        return folder

    return make


def own_table(folder):
    """Make the page of a run on a table, where only the MDP is known."""
    folder.mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        mm.collect(ward(), 2000, seed=5).to_csv(folder / "own.csv")
        mm.run(ward_mdp(), folder / "own.csv", folder / "run", quick(), progress=False)
    return folder / "run"


def hostile(folder):
    """Make the page of a run whose names, also those of files, try to be more than names."""
    folder.mkdir()
    model, log = hostile_model(), folder / f"{FEATURES[0].replace('/', '|')}\n.csv"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        mm.collect(model, 2000, seed=5).to_csv(log)
        mm.run(model, log, folder / "run", quick(), progress=False)
    return folder / "run"


PAGES = {
    "known": by_hand(sample()),
    "unknown": by_hand(sample(known=False)),
    "emptied": by_hand(emptied(sample())),
    "odd": by_hand(renamed(sample(), ODD)),
    "long": by_hand(renamed(sample(known=False), LONG)),
    "real": real(odd_ward),
    "table": own_table,
    "hostile": hostile,
    "predator": real(lambda: mm.load_benchmark("predator-smar"), max_trials=2, precision=0.5),
}
