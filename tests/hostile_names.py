"""Names that try to be more than names: markup, escape sequences, text that runs backwards, formulas."""

import re

import missmdp as mm

__all__ = ["ACTIONS", "CLIPBOARD", "FEATURES", "VALUES", "hostile_mdp", "hostile_model", "no_text"]

CLIPBOARD = "\x1b]52;c;ZWNobyBnb25l\x07"
"""Makes some terminals put a command into the clipboard."""
FEATURES = (
    f"</script><img src=x onerror=document.title='gone'>{CLIPBOARD}",
    "[/bold][red]{x} {0} %s \\ \"q\" 'a' \u202eabc\u2066 \x9b2J :cat: $\\frac$ <!-- --> ]]>",
)
VALUES = (
    "=cmd|'/c calc'!A1",
    "+2\n3\r\n4\x1b[2J",
    "-@SUM(1)\x00\x08\x7f",
    f"\u200b\ufeff👩‍🔬 \u2028{'long ' * 300}",
)
ACTIONS = ("@wait\x1b[8m", "treat]]>\ttab\\")

_NO_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2060-\u206f\ufeff]")


def no_text(printed):
    """Return what of something that was printed steers a terminal."""
    return set(_NO_TEXT.findall(printed))


def hostile_mdp():
    def transition(state, action):
        number, word = state
        if action == ACTIONS[1]:
            return [((0, word), 0.9), (state, 0.1)]
        following = VALUES[(VALUES.index(word) + 1) % len(VALUES)]
        return [((1, word), 0.3), ((number, following), 0.2), (state, 0.5)]

    return mm.FactoredMDP(
        features=dict(zip(FEATURES, (range(2), VALUES), strict=True)),
        actions=ACTIONS,
        transition=transition,
        reward=lambda state, action: -5 * state[0] - 4 * (action == ACTIONS[1]),
        initial={(0, VALUES[0]): 0.6, (1, VALUES[0]): 0.4},
        discount=0.8,
        progress=False,
    )


def hostile_model():
    mdp = hostile_mdp()
    rates = {
        FEATURES[0]: lambda state: 0.2 if state[1] == VALUES[1] else 0.7,
        FEATURES[1]: lambda state: 0.1 + 0.2 * state[0],
    }
    missingness = mm.MissingnessFunction.independent(mdp, rates)
    return mm.MissMDP(mdp, missingness, name="ward\x1b]0;title\x07<b>")
