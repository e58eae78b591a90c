"""From a model file to a fitted estimator."""

from __future__ import annotations

import os
from typing import Any

from gibbsian.errors import FileFormatError
from gibbsian.estimators.boltzmann_machine import BoltzmannMachine
from gibbsian.estimators.deep import DeepBeliefNetwork, DeepBoltzmannMachine
from gibbsian.estimators.full_span import FullSpan
from gibbsian.estimators.hidden import HIDDEN_UNITS, HiddenBoltzmannMachine
from gibbsian.estimators.higher_order import HigherOrderBoltzmannMachine
from gibbsian.estimators.layered_base import LayeredMachine
from gibbsian.estimators.machine import Machine
from gibbsian.estimators.mixture_base import MIXTURE_FILE
from gibbsian.estimators.mixture_files import load_mixture
from gibbsian.estimators.potts import PottsMachine
from gibbsian.estimators.restricted import RestrictedBoltzmannMachine
from gibbsian.models import FullSpanModel, HigherOrderModel, PairwiseModel, PottsModel
from gibbsian.models.belief_network import BeliefNetwork
from gibbsian.models.deep import DeepModel
from gibbsian.models.restricted import RestrictedModel
from gibbsian.storage import kind_of, read_model

MACHINES: dict[type, type[Machine] | type[LayeredMachine]] = {
    PairwiseModel: BoltzmannMachine,
    HigherOrderModel: HigherOrderBoltzmannMachine,
    PottsModel: PottsMachine,
    FullSpanModel: FullSpan,
    RestrictedModel: RestrictedBoltzmannMachine,
    DeepModel: DeepBoltzmannMachine,
    BeliefNetwork: DeepBeliefNetwork,
}


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model file and return the fitted machine or mixture: the one that wrote it.

    Examples
    --------
    >>> import tempfile, pathlib, gibbsian as gb
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.gibbs"
    >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]])
    >>> bm.save(path)
    >>> bool((gb.load(path).model_.theta == bm.model_.theta).all())
    True
    """
    if kind_of(path) == MIXTURE_FILE:
        return load_mixture(path)
    stored = read_model(path)
    machine = MACHINES.get(type(stored.model))
    if machine is None:
        raise FileFormatError(
            f"{path} holds a {type(stored.model).__name__}, which no machine learns",
            "read it with gibbsian.storage.read_model",
        )
    if HIDDEN_UNITS in stored.provenance:
        return HiddenBoltzmannMachine.from_stored(stored)
    return machine.from_stored(stored)
