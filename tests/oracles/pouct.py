"""PO-UCT written slowly: recursion over a dictionary of histories, in plain Python.

It shares with the kernels only the random words, which it makes itself by SplitMix64, and what each of them is drawn
with: the tables of outcomes, which have tests of their own.
"""

from __future__ import annotations

import math
from collections import defaultdict

MASK = 2**64 - 1
WEYL = 0x9E3779B97F4A7C15


def mixed(x):
    """Return SplitMix64's finaliser of an integer."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


class Words:
    """The sequence of random words of one simulation."""

    def __init__(self, key, number):
        self.x = mixed((key + number * WEYL) & MASK)

    def skip(self):
        self.x = (self.x + WEYL) & MASK

    def next(self):
        self.skip()
        return mixed(self.x)


def outcome(rows, row, word):
    """Return what a word draws from a row: columns are chosen by its first bits, outcomes by the others."""
    first, bits = divmod(int(rows.row[row]), 64)
    width = 8 * rows.column.itemsize
    column = first + (word >> (64 - bits))
    fraction = ((word << bits) & MASK) >> (64 - width)
    threshold, both = (int(entry) for entry in rows.column[column])
    second, first = divmod(both, 2 ** (width // 2))
    return first if fraction < threshold else second


class Search:
    """A tree search; `mean` and `visits` are by (history, action)."""

    def __init__(self, model, *, max_depth, exploration):
        self.model = model
        self.max_depth = max_depth
        self.exploration = exploration
        self.mean = defaultdict(float)
        self.visits = defaultdict(int)
        self.known = {()}

    def run(self, roots, key):
        for number, state in enumerate(roots):
            if not self.model.terminal[state]:
                self.simulate(int(state), (), self.max_depth, Words(key, number))

    def simulate(self, state, history, steps, words):
        """Return the discounted rewards of one simulation from a history that is in the tree."""
        model = self.model
        if steps == 0 or model.terminal[state]:
            return 0.0
        action = self.choose(history, words)
        earned = float(model.reward[state, action])
        later = 0.0
        if steps > 1:
            state = outcome(model.step, state * model.n_actions + action, words.next())
            if not model.terminal[state]:
                row = state * model.n_watched + (action if model.n_watched > 1 else 0)
                longer = (*history, action, outcome(model.seen, row, words.next()))
                if longer in self.known:
                    later = self.simulate(state, longer, steps - 1, words)
                else:
                    self.known.add(longer)
                    later = self.wander(state, steps - 1, words)
        total = earned + model.discount * later
        self.visits[history, action] += 1
        self.mean[history, action] += (total - self.mean[history, action]) / self.visits[history, action]
        return total

    def choose(self, history, words):
        """Return the action of highest upper confidence bound; ties, and untried actions, by the next word."""
        actions = range(self.model.n_actions)
        tried = [self.visits[history, a] for a in actions]
        scores = [
            math.inf
            if not tried[a]
            else self.mean[history, a]
            + self.exploration * math.sqrt(math.log(sum(tried))) * (1.0 / math.sqrt(tried[a]))
            for a in actions
        ]
        best = [a for a in actions if scores[a] == max(scores)]
        word = words.next()
        return best[((word >> 32) * len(best)) >> 32]

    def wander(self, state, steps, words):
        """Return the discounted rewards of random actions."""
        total, worth = 0.0, 1.0
        for _ in range(steps):
            if self.model.terminal[state]:
                break
            code = outcome(self.model.wander, state, words.next())
            total += worth * float(self.model.reward[state, code % 2**self.model.action_bits])
            state = code >> self.model.action_bits
            worth *= self.model.discount
        return total

    def best(self):
        """Return the first action of highest mean at the root among those tried; 0 if there are none."""
        tried = [a for a in range(self.model.n_actions) if self.visits[(), a]]
        return max(tried, key=lambda a: (self.mean[(), a], -a), default=0)
