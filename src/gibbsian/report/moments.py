"""Moments of the data against those of the model: what the fit was to bring together."""

from __future__ import annotations

import numpy as np

from gibbsian.learning.trained import FAR
from gibbsian.report.html import Markup, join, number, paragraph, sentence, table
from gibbsian.report.subject import SECTIONS, Subject
from gibbsian.report.svg import Chart, figure

WORST = 10
MOST_POINTS = 2000


@SECTIONS.register("moments", place=20, title="Moments of the data and of the model")
def moments(subject: Subject) -> Markup | None:
    """Return a table of the moments furthest apart and a picture of all."""
    result = subject.machine.result_
    if result.moments is None:
        return None
    report, data = result.training, result.moments.mean
    assert report.mean is not None
    assert report.error is not None
    names = [_joined(row) for named in subject.machine.statistics().values() for row in named.itertuples(index=False)]
    size = np.nan_to_num(np.abs(report.z_scores), posinf=np.inf)
    worst = np.argsort(-size, kind="stable")
    worst = worst[np.isfinite(data[worst])]
    # of many the furthest half is drawn, and as many of the others
    others = worst[MOST_POINTS // 2 :]
    drawn = np.concatenate([worst[: MOST_POINTS // 2], others[:: max(1, 2 * others.size // MOST_POINTS)]])
    chart = Chart(data[drawn], report.mean[drawn], ("mean in the data", "mean under the model"), square=True)
    for name, colour, part in ((f"within {FAR:g} errors", 0, size <= FAR), ("further", 1, size > FAR)):
        chosen = drawn[part[drawn]]
        said = [f"{names[k]}: data {number(float(data[k]))}, model {number(float(report.mean[k]))}" for k in chosen]
        if said:
            chart.points(data[chosen], report.mean[chosen], said, name, colour)
    rows = [(names[k], data[k], report.mean[k], report.error[k], report.z_scores[k]) for k in worst[:WORST]]
    how = "exact" if report.exact else f"sampled (R-hat {report.r_hat:.3f}), which the errors include"
    some = "" if drawn.size == worst.size else f" {drawn.size:,} of {worst.size:,} are drawn, among them the furthest."
    about = (
        f"{sentence(report.describe())} The model's moments are {how}; z is a difference in standard errors, and "
        f"{report.n_far:,} of {size.size:,} are beyond {FAR:g}."
    )
    picture = figure(chart.svg("Moments of the data against those of the model"), f"On the line both agree.{some}")
    furthest = table("The moments furthest apart", ["of", "data", "model", "standard error", "z"], rows)
    return join([paragraph(about), picture, furthest])


def _joined(parts: tuple[object, ...]) -> str:
    """Return the name of a statistic in one text."""
    return ", ".join(map(str, parts[0] if isinstance(parts[0], tuple) else parts))
