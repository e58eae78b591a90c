"""The strongest interactions in words: odds, combinations of values, partial correlations."""

from __future__ import annotations

import numpy as np

from gibbsian.models.families.tables import coupling_norms, is_potts
from gibbsian.models.variables import Variables
from gibbsian.registry import Registry
from gibbsian.report.html import Markup, join, label, listed, number, paragraph, phrase, sentence, tag
from gibbsian.report.subject import LEVEL, SECTIONS, Subject

N_STRONGEST = 15
# Who finds the words, by the name of a family.
WORDINGS = Registry("wording", "gibbsian.report", "WORDINGS")
Worded = tuple[str, list[Markup]]
"""What is said of all, and a sentence for each interaction."""


@SECTIONS.register("words", place=60, title="The strongest interactions in words", claims=True)
def in_words(subject: Subject) -> Markup | None:
    """Return a sentence for each of the strongest interactions, in the words of the model's kind."""
    family = subject.machine.model_.family
    if not WORDINGS.name_for(family) or (found := WORDINGS.of(family)(subject)) is None:
        return None
    about, sentences = found
    return join([paragraph(f"{about} {sentence(subject.without_intervals)}"), listed(sentences, ordered=True)])


def _name(name: object) -> Markup:
    return tag("strong", label(name))


def _factor(log_factor: float, ends: np.ndarray | None) -> dict[str, str]:
    """Return a factor above one, and its interval in words."""
    factor = number(float(np.exp(abs(log_factor))))
    if ends is None or np.isnan(ends).any():
        return {"factor": factor, "sure": ""}
    low, high = sorted(np.exp(np.sign(log_factor) * ends).tolist())
    unsure = "; it includes 1, which is no interaction" if low <= 1 <= high else ""
    return {"factor": factor, "sure": f"; {LEVEL:.0%} interval {number(low)} to {number(high)}{unsure}"}


# -- weights of products of two-valued variables ----------------------------------------------------------------------
@WORDINGS.register("pairwise")
@WORDINGS.register("products")
def odds(subject: Subject) -> Worded | None:
    """Return odds ratios: the weight of a product of k variables counts in them times the k-th power of the gap."""
    machine, model = subject.machine, subject.machine.model_
    if model.variables not in (Variables.spins(model.n_variables), Variables.binary(model.n_variables)):
        return None
    names, hidden = machine.interactions().names, tuple(map(int, model.variables.levels[0]))
    labels = [machine.coding_.labels_of(i) if i < len(subject.names) else hidden for i in range(len(names))]
    scopes = model.family.scopes
    unit = float(hidden[1] - hidden[0]) ** scopes.sizes
    sizes = (scopes.sizes > 1) * np.abs(model.theta * unit)
    about = _about_odds(hidden[0], scopes.sizes.max())
    rest, sentences = "" if about else ", all else equal", []
    for k in np.argsort(-sizes, kind="stable")[: min(N_STRONGEST, np.count_nonzero(sizes))]:
        ends = subject.interval_of(scopes[k])
        said = _factor(model.theta[k] * unit[k], None if ends is None else ends * unit[k] / machine.temperature)
        of = [(_name(names[i]), label(labels[i][0]), label(labels[i][1])) for i in scopes[k]]
        sentences.append(_ratio(of, bool(model.theta[k] > 0), {**said, "rest": rest}))
    return about, sentences


def _ratio(of: list[tuple[Markup, Markup, Markup]], positive: bool, said: dict[str, str]) -> Markup:
    """Say what a weight does: to the odds of the last variable, or to the odds ratio of the others."""
    *others, (last, low, high) = of
    this, that = (high, low) if positive else (low, high)
    if len(others) == 1:
        one, off, on = others[0]
        words = "When $one is $on, the odds that $last is $this are $factor times those when $one is $off"
        return phrase(f"{words}$rest$sure.", one=one, on=on, off=off, last=last, this=this, **said)
    what = "odds ratio" if len(others) == 2 else "interaction (a ratio of odds ratios)"
    words = f"The {what} of $others is $factor times as large when $last is $this as when it is $that$sure."
    return phrase(words, others=join([name for name, *_ in others], " and "), last=last, this=this, that=that, **said)


def _about_odds(low: int, largest: int) -> str:
    if largest <= 2:
        return ""
    if low == 0:
        return "Interactions are those where all other columns have their lower value."
    return "Interactions are averages, on the scale of logarithms, over the values of all other columns."


# -- tables of pairs of categories ------------------------------------------------------------------------------------
@WORDINGS.register("tables")
def combinations(subject: Subject) -> Worded | None:
    """Return the strongest entry of each of the strongest tables of a Potts model, in the zero-sum gauge."""
    machine, model = subject.machine, subject.machine.model_
    if not is_potts(model.family):
        return None
    tables, pairs = model.canonical().parts.tables, np.flatnonzero(model.family.scopes.sizes == 2)
    sentences = []
    for k in pairs[np.argsort(-coupling_norms(model), kind="stable")[:N_STRONGEST]]:
        table, (i, j) = tables[k], model.family.scopes[k]
        a, b = np.unravel_index(np.argmax(np.abs(table)), table.shape)
        ends = subject.interval_at(model.family.layout.offsets[k] + a * table.shape[1] + b)
        said = _factor(table[a, b], None if ends is None else ends / machine.temperature)
        one, other = (label(machine.coding_.labels_of(column)[code]) for column, code in ((i, a), (j, b)))
        more = "more" if table[a, b] > 0 else "less"
        words = f"$i = $one with $j = $other is $factor times {more} likely, all else equal$sure."
        names = {"i": _name(subject.names[i]), "j": _name(subject.names[j])}
        sentences.append(phrase(words, **names, one=one, other=other, **said))
    about = (
        "Of each of the strongest pairs of columns the values that stand out most together: how much more or less "
        "likely it is than on average (a geometric mean) over the values of both, what each does by itself taken out."
    )
    return about, sentences


# -- numbers ----------------------------------------------------------------------------------------------------------
@WORDINGS.register("gaussian")
def correlations(subject: Subject) -> Worded:
    """Return partial correlations of columns of numbers."""
    found = subject.machine.interactions().strongest(N_STRONGEST)
    sentences = []
    for (i, j), strength in zip(found.scopes, found.strengths.tolist(), strict=True):
        how = "rises" if strength > 0 else "falls"
        said = f"When $one rises, $other {how}, given all other columns: partial correlation {number(strength)}."
        sentences.append(phrase(said, one=_name(found.names[i]), other=_name(found.names[j])))
    return "", sentences
