"""Deep machines on the command line: what is said of them; all else is as for a restricted machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gibbsian.cli.layered import LAYERED, facts_of, record_of, units_of


def deep_facts(machine: Any) -> dict[str, str]:
    """Say what a machine is, what it was learned from and how that ended."""
    visible, *hidden = machine.model_.layers
    sizes = ", ".join(str(layer.n_units) for layer in hidden)
    units = f"{visible.n_units} {visible.kind} visible units, layers of {sizes} {hidden[0].kind} hidden units"
    return facts_of(machine, units, "learner")


def deep_record(machine: Any) -> dict[str, Any]:
    """The same for JSON."""
    return record_of(machine, layers=[units_of(layer) for layer in machine.model_.layers])


DEEP = replace(LAYERED, facts=deep_facts, record=deep_record)
# Its weights upwards need complete rows.
BELIEF_NETWORK = replace(DEEP, questions=LAYERED.questions - {"impute"})
