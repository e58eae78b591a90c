"""What the commands print of machines: facts, parameters and expectations by name."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from gibbsian.cli.families import Family, Rows, Section
from gibbsian.cli.fit_machine import fit_machine
from gibbsian.cli.guard import in_flags
from gibbsian.errors import ArgumentError


# -- data for a fitted machine ----------------------------------------------------------------------------------------
def read_rows(machine: Any, path: Path, weights: str | None = None, convert: bool = False) -> tuple[Any, Rows]:
    """Read data in the machine's columns and coding; other columns, such as ids, are left aside."""
    from gibbsian.data import Dataset, OneHot

    rule = machine.coding_.rule
    if convert and not machine.coding_.domain.two_valued:
        raise ArgumentError("--convert rewrites two-valued columns, and the model's have more values", "leave it out")
    data = Dataset.read(
        path,
        columns=_columns(machine, path, rule.groups if isinstance(rule, OneHot) else None),
        coding="auto" if convert and rule is None else machine.coding_,
        weight_column=weights,
        declared_by="the model",
    )
    data = data.convert(machine.coding_) if convert else data
    missing = 0 if data.missing is None else int(data.missing[data.row_of].sum())
    return machine, Rows(data, data.n_rows, data.row_weights, missing)


def _columns(machine: Any, path: Path, one_hot: Any) -> tuple[str, ...] | list[str]:
    """The columns of a table that the machine knows, by their own names or by those of their dummies."""
    if one_hot is None:
        return machine.names_
    from gibbsian.data.readers import read_table

    known, table = set(machine.names_), read_table(path)
    if isinstance(one_hot, str):
        dummies = {name for name in table.names if name.rpartition(one_hot)[0] in known}
    else:
        dummies = {column for columns in one_hot.values() for column in columns}
    return [name for name in table.names if name in known or name in dummies]


def sample_rows(machine: Any, n: int, method: str) -> tuple[tuple[str, ...], Any]:
    """Draw rows, in the labels of the data."""
    return machine.names_, machine.sample(n, method=method)


# -- facts ------------------------------------------------------------------------------------------------------------
def _size(machine: Any) -> str:
    model = machine.model_
    hidden = getattr(machine, "hidden_names_", ())
    words = (
        f"{len(machine.names_)} columns and {len(hidden)} hidden units" if hidden else f"{model.n_variables} variables"
    )
    if hasattr(machine, "weights_"):
        return f"{words}, {len(model.cliques)} cliques of up to {max(map(len, model.cliques))} variables"
    if hasattr(machine, "coupling_norms"):
        return f"{words}, {model.graph.n_edges} tables of couplings, {model.theta.size} parameters"
    return f"{words}, {model.graph.n_edges} couplings"


def machine_facts(machine: Any) -> dict[str, str]:
    """Say what a machine is, where it came from, and how its fit ended."""
    return {
        "size": _size(machine),
        "gauge": "zero-sum: biases, and couplings along each axis, sum to zero"
        if hasattr(machine.model_, "zero_sum")
        else "",
        "temperature": f"{machine.model_.temperature:g}",
        **facts_of_fit(machine),
    }


def facts_of_fit(machine: Any) -> dict[str, str]:
    """Say what any fitted machine was learned from, and how that ended."""
    result, told, scored = machine.result_, machine.result_.provenance, machine.result_.held_out
    return {
        "coding": machine.coding_.describe(),
        "columns": ", ".join(machine.names_),
        "threshold": "" if machine.binarize is None else f"numbers above {machine.binarize:g} are upper",
        "learner": told.get("learner", ""),
        "data": f"{told['rows']} rows, {told['missing_cells']} missing cells" if "rows" in told else "",
        "fit": in_flags(result.reason),
        "trained": "" if result.moments is None else result.training.describe(),
        "held out": ""
        if scored is None
        else f"{scored.kind} of {scored.n_rows} held-out rows: {scored.score:.4f} nats a row",
        "made": f"{told['created']} by gibbsian {told['gibbsian']}" if "created" in told else "",
    }


def machine_record(machine: Any) -> dict[str, Any]:
    """The same for JSON, with the last step of the fit."""
    result, model, coding = machine.result_, machine.model_, machine.coding_
    last = dict(zip(result.trace.columns, result.trace.rows[-1], strict=True)) if result.trace.rows else {}
    training = None if result.moments is None else result.training
    labels = {"low": coding.low, "high": coding.high} if hasattr(coding, "low") else {"labels": coding.labels}
    return {
        "converged": result.converged,
        "reason": result.reason,
        "value": last.get("value"),
        "gradient": last.get("gradient_norm"),
        "coding": {"name": coding.name, "domain": coding.domain.name, **labels},
        "names": machine.names_,
        **({"hidden": machine.hidden_names_} if hasattr(machine, "hidden_names_") else {}),
        "variables": model.n_variables,
        "edges": model.graph.n_edges,
        "parameters": model.theta.size,
        "temperature": model.temperature,
        "binarize": machine.binarize,
        "trained": None if training is None else training.is_trained,
        "largest_z": None if training is None else training.largest_z,
        "held_out": None if result.held_out is None else result.held_out._asdict(),
        "provenance": result.provenance,
    }


# -- parameters -------------------------------------------------------------------------------------------------------
def pairwise_sections(machine: Any, top: int) -> list[Section]:
    """The biases and the strongest couplings, of columns and hidden units alike."""
    biases = machine.biases_.to_dict() if machine.model_.bias else {}
    strongest = list(machine.strongest_couplings(top).itertuples(index=False, name=None))
    return [
        Section("biases", "biases", ("column", "bias"), list(biases.items()), record=biases),
        Section("strongest_couplings", "strongest couplings", ("first", "second", "coupling"), strongest),
    ]


def higher_order_sections(machine: Any, top: int) -> list[Section]:
    """The biases and the strongest weights, each clique by the names of its columns."""
    biases = {clique[0]: weight for clique, _, weight in machine.strongest_weights(order=1).itertuples(index=False)}
    biases = {name: float(biases[name]) for name in machine.names_ if name in biases}
    rows = list(machine.strongest_weights(top).itertuples(index=False, name=None))
    printed = [(", ".join(clique), order, weight) for clique, order, weight in rows]
    keys = ("clique", "order", "weight")
    return [
        Section("biases", "biases", ("column", "bias"), list(biases.items()), record=biases),
        Section(
            "strongest_weights",
            "strongest weights",
            keys,
            printed,
            record=[dict(zip(keys, row, strict=True)) for row in rows],
        ),
    ]


def potts_sections(machine: Any, top: int) -> list[Section]:
    """The biases, the strongest tables of couplings and their strongest entries, all in the zero-sum gauge."""
    model, names = machine.model_.zero_sum(), machine.names_
    biases = [(*key, float(bias)) for key, bias in machine.biases_.items()]
    norms = list(machine.strongest_couplings(top).itertuples(index=False, name=None))
    entries = [
        (names[i], a, names[j], b, float(table[k, m]))
        for (i, j), table in zip(model.graph.edges.tolist(), model.couplings, strict=True)
        for k, a in enumerate(machine.coding_.labels_of(i))
        for m, b in enumerate(machine.coding_.labels_of(j))
    ]
    entries.sort(key=lambda entry: -abs(entry[-1]))
    columns = ("first", "first value", "second", "second value", "coupling")
    return [
        Section("biases", "biases (zero-sum gauge)", ("column", "value", "bias"), biases),
        Section(
            "strongest_couplings", "strongest tables of couplings (zero-sum gauge)", ("first", "second", "norm"), norms
        ),
        Section("strongest_entries", "strongest couplings of values (zero-sum gauge)", columns, entries[:top]),
    ]


# -- expectations -----------------------------------------------------------------------------------------------------
def _numbers(estimate: Any) -> list[tuple[float, float]]:
    return list(zip(estimate.mean.tolist(), estimate.stderr.tolist(), strict=True))


def pairwise_expected(machine: Any, estimate: Any) -> list[Section]:
    """Means of columns (unless there are no biases) and of products of pairs, in the layout of the parameters."""
    model, names = machine.model_, machine.variable_names_
    columns = [(name,) for name in names[: model.n_biases]]
    pairs = [(names[i], names[j]) for i, j in model.graph.edges.tolist()]
    rows = [(*label, *pair) for label, pair in zip([*columns, *pairs], _numbers(estimate), strict=True)]
    return [
        Section("means", "columns", ("column", "mean", "standard error"), rows[: len(columns)]),
        Section("pairs", "means of products", ("first", "second", "mean", "standard error"), rows[len(columns) :]),
    ]


def higher_order_expected(machine: Any, estimate: Any) -> list[Section]:
    """Means of the products over cliques."""
    cliques = [[machine.names_[i] for i in clique] for clique in machine.model_.cliques]
    labelled = list(zip(cliques, _numbers(estimate), strict=True))
    keys = ("clique", "mean", "standard_error")
    rows = [(", ".join(clique), *pair) for clique, pair in labelled]
    records = [dict(zip(keys, (clique, *pair), strict=True)) for clique, pair in labelled]
    title = "means of the products over cliques"
    return [Section("cliques", title, ("clique", "mean", "standard error"), rows, record=records)]


def potts_expected(machine: Any, estimate: Any) -> list[Section]:
    """Probabilities of the values of columns and of pairs of values."""
    names, labels, numbers = machine.names_, machine.coding_.labels_of, iter(_numbers(estimate))
    columns = [(names[i], a, *next(numbers)) for i in range(len(names)) for a in labels(i)]
    pairs = [
        (names[i], a, names[j], b, *next(numbers))
        for i, j in machine.model_.graph.edges.tolist()
        for a, b in itertools.product(labels(i), labels(j))
    ]
    last = ("probability", "standard error")
    titles = ("first", "first value", "second", "second value", *last)
    return [
        Section("values", "values of columns", ("column", "value", *last), columns),
        Section("pairs", "values of pairs", titles, pairs),
    ]


_QUESTIONS = frozenset({"score", "sample", "expect", "impute"})
MACHINES = Family(fit_machine, read_rows, sample_rows, machine_facts, machine_record, _QUESTIONS)
PAIRWISE = Family(fit_machine, read_rows, sample_rows, machine_facts, machine_record, _QUESTIONS | {"intervals"})
