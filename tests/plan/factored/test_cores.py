"""Products of cores against the same product, multiplied out."""

from __future__ import annotations

import numpy as np
import pytest

from missmdp.plan.factored.cores import Core, Label, Operator, one_row


@pytest.mark.parametrize("seed", range(40))
def test_pull_and_push(seed):
    rng = np.random.default_rng(seed)
    n_sites, n_bonds = int(rng.integers(1, 5)), int(rng.integers(0, 4))
    rows, columns = rng.integers(1, 4, size=(2, n_sites))
    lengths = rng.integers(1, 4, size=n_bonds)
    letters = "abcdefghijklmnop"
    row_names, column_names, bond_names = letters[:4], letters[4:8], letters[8:]
    cores, scopes, tables = [], [], []
    for site in range(n_sites):
        bonds = tuple(int(b) for b in np.flatnonzero(rng.random(n_bonds) < 0.5))
        table = rng.random([*lengths[list(bonds)], rows[site], columns[site]])
        if rng.random() < 0.3:
            table[:] = table[..., :1, :]
        cores.append(Core(site, bonds, one_row(table)))
        tables.append(table)
        scopes.append("".join(bond_names[b] for b in bonds) + row_names[site] + column_names[site])
    for _ in range(int(rng.integers(0, 3))):
        bonds = tuple(int(b) for b in np.flatnonzero(rng.random(n_bonds) < 0.5))
        cores.append(Core(-1, bonds, rng.random(lengths[list(bonds)])))
        tables.append(cores[-1].table)
        scopes.append("".join(bond_names[b] for b in bonds))
    operator = Operator(cores, tuple(map(int, rows)))
    now, after = row_names[:n_sites], column_names[:n_sites]
    values, weights = rng.random(columns), rng.random(rows)
    pulled = np.einsum(",".join([*scopes, after]) + "->" + now, *tables, values)
    np.testing.assert_allclose(np.broadcast_to(operator.pull(values), tuple(rows)), pulled, rtol=1e-10)
    pushed = np.einsum(",".join([*scopes, now]) + "->" + after, *tables, weights)
    np.testing.assert_allclose(operator.push(weights), pushed, rtol=1e-10)
    assert operator.work() > 0.0
    assert operator.peak() >= values.size


@pytest.mark.parametrize("seed", range(150))
def test_labels_of_rows_and_columns(seed):
    """A bond that is a label does what the same bond does that every core of its site has as an axis."""
    rng = np.random.default_rng(seed)
    n_sites = int(rng.integers(1, 5))
    rows, columns = rng.integers(1, 5, size=(2, n_sites))
    counts = rng.integers(1, 4, size=2 * n_sites)
    asked = [
        [b for b in range(2 * n_sites) if b % n_sites != site and rng.random() < 0.4]
        for site in range(n_sites)
    ]
    cores, marked = [], []
    groups = [rng.integers(0, counts[b], size=n) for b, n in enumerate([*rows, *columns])]
    for site in range(n_sites):
        bonds = tuple(asked[site])
        table = rng.random([*counts[list(bonds)], rows[site], columns[site]])
        if rng.random() < 0.5:
            table[:] = table[..., :1, :]
        cores.append(Core(site, bonds, one_row(table)))
        one_hot = [groups[b] == np.arange(counts[b])[:, None] for b in (site, n_sites + site)]
        table = table[..., None, None, :, :] * one_hot[0][:, None, :, None] * one_hot[1][:, None, :]
        marked.append(Core(site, (*bonds, site, n_sites + site), table))
    if rng.random() < 0.5:
        bonds = tuple(int(b) for b in np.flatnonzero(rng.random(2 * n_sites) < 0.5))
        cores.append(Core(-1, bonds, rng.random(counts[list(bonds)])))
        marked.append(cores[-1])
    labels = [Label(b, of, int(count)) for b, (of, count) in enumerate(zip(groups, counts, strict=True))]
    shape = tuple(map(int, rows))
    operator = Operator(cores, shape, labels[:n_sites], labels[n_sites:])
    expected = Operator(marked, shape)
    values, weights = rng.random(columns), rng.random(rows)
    np.testing.assert_allclose(
        np.broadcast_to(operator.pull(values), shape), expected.pull(values), rtol=1e-10
    )
    np.testing.assert_allclose(operator.push(weights), expected.push(weights), rtol=1e-10)
    assert len({operator.key, expected.key, Operator(cores, shape, labels[:n_sites]).key}) >= 2
