"""What one family of models has and others have not: the course of its fit, hidden units and classes, labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from gibbsian.report.html import Markup, details, frame, join, number, paragraph, table
from gibbsian.report.subject import MOST_ROWS, SECTIONS, Subject
from gibbsian.report.svg import Chart, figure
from gibbsian.startup import clone

if TYPE_CHECKING:
    from gibbsian.estimators.classifier import GibbsClassifier
    from gibbsian.estimators.layered import LayeredMachine
    from gibbsian.estimators.mixtures import ClassEstimator

N_STRONGEST = 20
N_PARAMETERS = 10
N_FOLDS = 5
MOST_CURVES = 4
# Of tables of parameters: how many rows are listed, and up to how many are seen without opening it.
MOST_LISTED, N_SHOWN = 200, 40


@SECTIONS.register("curves", place=45, title="The course of the fit")
def curves(subject: Subject) -> Markup | None:
    """Return the figures that the learner followed, each with that of the rows held out, or the value it lowered."""
    result = subject.machine.result_
    known = result.history or {"value_of_the_objective": result.trace.kept("value")}
    followed = {name: values for name, values in known.items() if len(values) > 1 and np.isfinite(values).any()}
    pictures = []
    for name in [name for name in followed if not name.startswith("held_out_")][:MOST_CURVES]:
        lines = {one: followed[one] for one in (name, f"held_out_{name}") if one in followed}
        words, steps = name.replace("_", " "), [np.arange(len(values)) for values in lines.values()]
        chart = Chart(np.concatenate(steps), np.concatenate(list(lines.values())), ("step", words))
        for colour, (one, values) in enumerate(lines.items()):
            chart.line(steps[colour], values, one.replace("_", " "), colour)
        ends = " to ".join(number(float(followed[name][k])) for k in (0, -1))
        pictures.append(figure(chart.svg(words), f"From the first step to the last: {ends}."))
    return join(pictures) if pictures else None


@SECTIONS.register(
    "features", place=75, title="Hidden units and classes in the rows", rows=True, claims=True, needs="transform"
)
def features(subject: Subject) -> Markup | None:
    """Return how often each hidden unit is on, or how many rows each class has."""
    if subject.data is None:
        return None
    machine = cast("LayeredMachine | ClassEstimator", subject.machine)
    found: np.ndarray = np.asarray(machine.transform(subject.rows), np.float64)
    names, sure = machine.get_feature_names_out(), (np.abs(found - 0.5) > 0.45).mean(axis=0)
    order = np.argsort(-found.var(axis=0), kind="stable")[:N_STRONGEST]
    rows = [(str(names[k]), found[:, k].mean(), found[:, k].std(), sure[k]) for k in order]
    titles = ["unit or class", "mean probability", "standard deviation", "share of rows where it is 95% sure"]
    about = f"Given each of {subject.which_rows}; those that vary most come first."
    return join([paragraph(about), table("Hidden units and classes", titles, rows)])


@SECTIONS.register("labels", place=90, title="Predicted labels", rows=True)
def labels(subject: Subject) -> Markup | None:
    """Return how often a classifier is right, against guessing the most frequent label."""
    if subject.labels is None:
        return None
    from sklearn.model_selection import KFold, cross_val_predict

    X, y = (part[:MOST_ROWS] for part in subject.labels)
    folds = KFold(N_FOLDS, shuffle=True, random_state=subject.seed)
    said = cross_val_predict(clone(subject.asked), X, y, cv=folds)
    known, predicted = (np.asarray(part).reshape(len(X), -1) for part in (y, said))
    rows = []
    for k, (true, said) in enumerate(zip(known.T, predicted.T, strict=True)):
        rows.append((f"label {k}", (true == said).mean(), np.unique(true, return_counts=True)[1].max() / len(true)))
    about = (
        f"Each of {len(known):,} rows was predicted by a fit that did not see it, nor {1 / N_FOLDS:.0%} of the others."
    )
    parts = [paragraph(about), table("Accuracy", ["of", "predicted rightly", "most frequent label"], rows)]
    if known.shape[1] == 1:
        classes = np.asarray(cast("GibbsClassifier", subject.asked).classes_).tolist()
        counts = [(one, *(int(((known == one) & (predicted == other)).sum()) for other in classes)) for one in classes]
        parts.append(table("Rows by true label (down) and predicted label", ["true", *map(str, classes)], counts))
    return join(parts)


@SECTIONS.register("parameters", place=800, title="Parameters", claims=True, needs="tables")
def parameters(subject: Subject) -> Markup | None:
    """Return the tables by which the machine shows its parameters."""
    found = {title: rows for title, rows in subject.machine.tables(N_PARAMETERS).items() if len(rows)}
    return join(
        details(title.capitalize(), frame(title, rows.head(MOST_LISTED)), few=len(rows) <= N_SHOWN)
        for title, rows in found.items()
    )
