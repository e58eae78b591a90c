"""Gibbs sampling of variables with any number of values: tables, what can be written out as tables, and products."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from gibbsian.arrays import Floats, Integers, Mask, States
from gibbsian.backends.device import here, twin
from gibbsian.backends.numba import clique_gibbs, table_gibbs
from gibbsian.backends.table_entries import Entries
from gibbsian.graphs import Graph
from gibbsian.models.base import DiscreteFamily, Model
from gibbsian.models.families.potentials import PotentialsFamily
from gibbsian.models.families.products import ProductsFamily
from gibbsian.models.families.tables import TablesFamily, is_potts
from gibbsian.rng import Words
from gibbsian.sampling.base import SWEEPS
from gibbsian.sampling.gibbs import Gibbs, GibbsKernel, OnceATheta, Visits, over_chains

# What a device sweeps with: ``(states, streams, held, n_sweeps)``, in place.
DeviceSweep = Callable[[States, Words, Mask | None, int], int]


class CodeModel(Protocol):
    """A model at one theta, in the arrays of its kernels."""

    def sweep(self, states: States, streams: Words, held: Mask | None, visits: Visits) -> int:
        """Sweep chains in place; return the number of changes."""

    def on_device(self, sites: Integers, cuts: Integers) -> DeviceSweep | None:
        """Return the sweeps over groups of sites on the present device; None on the CPU."""


class CodeSweep:
    """Sweeps of codes: compiled, or on a device colour by colour."""

    def __init__(self, graph: Graph, bind: Callable[[Floats], CodeModel], grain: int):
        self.graph, self.grain = graph, grain
        self.model = OnceATheta(partial(_with_room, bind))

    def __call__(self, theta: Floats, states: States, streams: Words, visits: Visits) -> int:
        """Sweep chains in place."""
        model, kept = self.model(theta)
        if here() is not None and not visits.n_picks:
            key = here(), visits.reverse, visits.sites.tobytes()
            if key not in kept:
                sites = np.sort(visits.sites)
                colours = self.graph.colouring[sites]
                order, cuts = by_rank(-colours if visits.reverse else colours)
                kept[key] = model.on_device(sites[order], cuts)
            if (there := kept[key]) is not None:
                return int(there(states, streams, visits.held, visits.n_sweeps))

        def sweep(states: States, streams: Words, held: Mask | None) -> int:
            return model.sweep(states, streams, held, visits)

        work = max(1.0, theta.size / self.graph.n_nodes)  # a table entry, a clique's product
        return over_chains(sweep, states, streams, visits, self.grain, work)


def _with_room(
    bind: Callable[[Floats], CodeModel], theta: Floats
) -> tuple[CodeModel, dict[object, DeviceSweep | None]]:
    """Return a model at theta, and room for what devices make of it."""
    return bind(theta), {}


def by_rank(rank: Integers) -> tuple[Integers, Integers]:
    """Return the order of ranks, equal ones as they stand, and where each group of equal ones begins and ends."""
    order = np.argsort(rank, kind="stable")
    return order, np.concatenate([[0], np.flatnonzero(np.diff(rank[order])) + 1, [order.size]])


# -- tables -----------------------------------------------------------------------------------------------------------
class TableModel(NamedTuple):
    """The tables that hold each variable."""

    tables: Floats
    entries: Entries
    sizes: Integers

    def sweep(self, states: States, streams: Words, held: Mask | None, visits: Visits) -> int:
        """Sweep chains in place; return the number of changes."""
        how = visits.sites, held, visits.n_picks, visits.n_sweeps
        return int(table_gibbs.sweeps(states, streams, self.tables, *self.entries, self.sizes, *how))

    def on_device(self, sites: Integers, cuts: Integers) -> DeviceSweep | None:
        """Return the sweeps over groups of sites on the present device."""
        twins = twin("table_gibbs")
        return None if twins is None else twins.sweeps(*self, sites, cuts)


def table_sweep(family: TablesFamily, tables_at: Callable[[Floats], Floats] = np.asarray) -> CodeSweep:
    """Return the sweeps of tables, which are a function of theta."""
    layout = _potts_layout(family) if is_potts(family) else family.layout.entries
    return CodeSweep(family.graph, partial(_table_model, family, layout, tables_at), table_gibbs.GROUP)


def _table_model(
    family: TablesFamily, layout: Entries, tables_at: Callable[[Floats], Floats], theta: Floats
) -> TableModel:
    tables = tables_at(theta)
    if is_potts(family):
        n_biases = family.layout.offsets[family.scopes.n_singles]
        tables = np.concatenate([tables[:n_biases], family.layout.orientation.of(tables[n_biases:])])
    return TableModel(tables, layout, np.array(family.variables.sizes))


def _potts_layout(family: TablesFamily) -> Entries:
    """Return the tables of each variable of a Potts family, those of pairs turned to the variable that is drawn.

    There each variable has its biases and a block of rows for each neighbour; its own values stand side by side.
    """
    indptr, heads, _ = family.graph.csr
    biases, orientation = family.layout.offsets[: family.scopes.n_singles + 1], family.layout.orientation
    pointers = indptr + np.arange(indptr.size)
    is_bias = np.zeros(pointers[-1], bool)
    is_bias[pointers[:-1]] = True
    bases = np.empty(pointers[-1], np.int64)
    bases[is_bias], bases[~is_bias] = biases[:-1], biases[-1] + orientation.starts[:-1]
    other_pointers = np.concatenate([[0], np.cumsum(~is_bias)])
    others = other_pointers, heads, np.repeat(orientation.widths, np.diff(indptr))
    return Entries(pointers, bases, np.ones_like(bases), *others)


@SWEEPS.register("tables")
def table_kernel(family: TablesFamily, scan: Gibbs, mask: Mask | None) -> GibbsKernel:
    """Return the Gibbs kernel of tables."""
    return GibbsKernel(family, scan, mask, table_sweep(family))


@SWEEPS.register("potentials")
def potential_kernel(family: PotentialsFamily, scan: Gibbs, mask: Mask | None) -> GibbsKernel:
    """Return the Gibbs kernel of potentials, by their tables."""
    return GibbsKernel(family, scan, mask, table_sweep(family.tables, lambda theta: np.asarray(family.design @ theta)))


@SWEEPS.register("full-span")
def factor_kernel(family: DiscreteFamily, scan: Gibbs, mask: Mask | None) -> GibbsKernel:
    """Return the Gibbs kernel of a family whose distributions are products of tables, by these."""
    tables = as_tables(family, np.zeros(family.n_parameters)).family
    return GibbsKernel(family, scan, mask, table_sweep(tables, partial(_tables_of, family)))


def as_tables(family: DiscreteFamily, theta: Floats) -> Model[TablesFamily]:
    """Return a distribution as a product of tables."""
    factors = family.factors(theta).factors
    return TablesFamily.model({factor.nodes: factor.table for factor in factors}, family.variables)


def _tables_of(family: DiscreteFamily, theta: Floats) -> Floats:
    return as_tables(family, theta).theta


# -- products ---------------------------------------------------------------------------------------------------------
class ProductModel(NamedTuple):
    """The cliques that hold each variable, and the scores of its values."""

    entries: Integers
    weights: Floats
    pointers: Integers
    others: Integers
    scores: Floats
    sizes: Integers
    two_valued: bool

    def sweep(self, states: States, streams: Words, held: Mask | None, visits: Visits) -> int:
        """Sweep chains in place; return the number of changes."""
        if visits.n_picks:
            how = visits.sites, held, visits.n_picks, visits.n_sweeps
            return int(clique_gibbs.random_sweeps(states, streams, *self, *how))
        return int(clique_gibbs.ordered_sweeps(states, streams, *self, visits.sites, held, visits.n_sweeps))

    def on_device(self, sites: Integers, cuts: Integers) -> DeviceSweep | None:
        """Return the sweeps over groups of sites on the present device."""
        twins = twin("clique_gibbs")
        return None if twins is None else twins.ordered_sweeps(*self[:-1], sites, cuts)


@SWEEPS.register("products")
def product_kernel(family: ProductsFamily, scan: Gibbs, mask: Mask | None) -> GibbsKernel:
    """Return the Gibbs kernel of products of scores."""
    return GibbsKernel(family, scan, mask, CodeSweep(family.graph, partial(_product_model, family), clique_gibbs.GROUP))


def _product_model(family: ProductsFamily, theta: Floats) -> ProductModel:
    entries, cliques = family.scopes.membership
    pointers, places = family.scopes.companions
    values = family.variables.padded_levels, np.array(family.variables.sizes), family.variables.two_valued
    return ProductModel(entries, theta[cliques], pointers, family.scopes.csr[1][places], *values)
