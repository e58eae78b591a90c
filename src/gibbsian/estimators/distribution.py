"""The distribution itself: its moments, rows drawn from it, and its most probable rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsian.answers import answers_about
from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError
from gibbsian.estimators.frames import like_frame, shorten
from gibbsian.estimators.reading import on_own_device
from gibbsian.estimators.scores import Scores
from gibbsian.resources import require_memory
from gibbsian.rng import RandomState
from gibbsian.settings import Setting, check_method, check_value
from gibbsian.startup import pandas

if TYPE_CHECKING:
    from gibbsian.answers.modes import Modes

_N_SAMPLES = Setting("How many rows.", "whole", low=1)
_TEMPERATURE = Setting("T.", "number", low=0, open_low=True)


class Distribution(Scores):
    """What every fitted estimator says of its distribution as a whole."""

    @on_own_device
    def expect(self, method: Any = "auto", n_samples: int | None = None) -> Any:
        """Return the expected statistics of the model, in the layout of ``model_.theta``, with standard errors.

        Parameters
        ----------
        method : str or Expectation, default="auto"
            A registered expectation, such as ``"exact"``, ``"monte-carlo"`` or ``"1-smci"``; ``"auto"`` is exact where
            that is in reach and samples else.
        n_samples : int, default=None
            Samples of an expectation that draws some.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.BoltzmannMachine().fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]).expect().value.round(2).tolist()
        [0.2, 0.2, 0.2]
        """
        check_method(method)
        if n_samples is not None:
            n_samples = check_value("n_samples", n_samples, _N_SAMPLES)
        return self._ask("expect")(self._rng(), method, n_samples)

    @on_own_device
    def sample(
        self,
        n_samples: int = 1,
        method: str = "auto",
        random_state: RandomState = None,
        return_hidden: bool = False,
        temperature: float | None = None,
        **options: Any,
    ) -> Any:
        """Draw rows from the model, in the labels of the data it was fitted on.

        After a fit to a pandas or polars frame they are such a frame, with its columns and their types, and else an
        array. Files do not keep the kind of table: a loaded model draws arrays.

        Parameters
        ----------
        n_samples : int, default=1
            How many rows.
        method : str, default="auto"
            ``"exact"``, or a sampler's name; ``"auto"`` draws exactly where possible and otherwise by Gibbs sampling.
        random_state : None, int or Generator, default=None
            Overrides the estimator's own.
        return_hidden : bool, default=False
            Also return the values of the hidden units, or the classes, of each row.
        temperature : float, default=None
            Divide energies by this instead of the model's own temperature, those of hidden units with the others: near
            zero rows are close to `most_probable`, far above they are uniform (YK15). Mixtures and belief networks have
            none.
        **options
            What the sampler of this model takes besides.

        Examples
        --------
        >>> import gibbsian as gb
        >>> bm = gb.BoltzmannMachine(random_state=0).fit([["yes", "no"], ["no", "no"], ["yes", "yes"], ["no", "yes"]])
        >>> bm.sample(3).shape
        (3, 2)
        """
        answers = self._answers
        n_samples = check_value("n_samples", n_samples, _N_SAMPLES)
        check_method(method)
        if temperature is not None:
            temperature = check_value("temperature", temperature, _TEMPERATURE)
            answers = answers_about(self._at_temperature(temperature))
        if options.get("start") is not None:
            start = self._read(options["start"])
            start.require_complete("start", "fill them with impute, or ")
            options["start"] = start.rows()[0]
        states, hidden = answers.sample(n_samples, self._rng(random_state), method, **options)
        narrow = self.coding_.decode(states[:1]).dtype.itemsize == 1  # else codes and labels take eight bytes each
        require_memory(states.size * (3.0 if narrow else 18.0), f"{n_samples:,} rows of labels", "draw fewer at a time")
        rows = like_frame(self.coding_.decode(states), self._frame_of_fit, self.names_)
        return (rows, hidden) if return_hidden else rows

    def _at_temperature(self, temperature: float) -> Any:
        """Return the model at another temperature."""
        return self.model_.at(self.temperature / temperature)

    @on_own_device
    def most_probable(
        self,
        X: Any = None,
        evidence: Mapping[str, Any] | None = None,
        *,
        n_states: int = 1,
        joint: bool = False,
        method: str = "auto",
        restarts: int | None = None,
        random_state: RandomState = None,
    ) -> Modes:
        """Return the most probable row, given some of its cells or none: the limit of temperature zero (YK15).

        It is exact where an engine is quick or all rows can be listed, and else found by simulated annealing from many
        starts, with an upper bound on what a better one could have. Densities of real numbers are climbed.

        Parameters
        ----------
        X : array, frame or path, default=None
            Rows to complete: their missing cells get the values that are the most probable ones *together*, where
            `impute` takes the best of each cell by itself. Without it one row is asked for.
        evidence : mapping from column to label, default=None
            What is known of that one row.
        n_states : int, default=1
            So many rows from the most probable one on; more than one where all rows can be listed.
        joint : bool, default=False
            Whether hidden units (or the class) are part of the state. By default they are summed out: the most probable
            row need not be a part of the most probable joint state.
        method : {"auto", "exact", "annealing"}, default="auto"
            Whether to insist on one way.
        restarts : int, default=None
            Chains of a round of annealing; by default 32.
        random_state : None, int or Generator, default=None
            Overrides the estimator's own.

        Returns
        -------
        Modes
            ``rows`` in the labels of the data, ``log_weights``, ``bounds``, ``gaps``, ``exact``, ``methods``,
            ``hidden`` and, where log Z is in reach, ``probabilities``.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rows = [["yes", "yes"], ["yes", "yes"], ["no", "no"], ["no", "no"], ["yes", "no"], ["no", "yes"]]
        >>> gb.BoltzmannMachine().fit(rows).most_probable(evidence={"x0": "no"}).rows.tolist()
        [['no', 'no']]
        """
        from gibbsian.answers.modes import Search  # which loads engines and kernels

        for name, value in (("n_states", n_states), ("restarts", 1 if restarts is None else restarts)):
            check_value(name, value, _N_SAMPLES)
        answers, search = self._answers, Search(self._rng(random_state), int(n_states), method, restarts)
        if X is not None and (evidence is not None or n_states > 1):
            raise ArgumentError("evidence and `n_states` are about one row", "leave them out where rows are given")
        if joint and n_states > 1:
            raise ArgumentError("several joint states are not listed", "leave `joint` or `n_states` out")
        data = self._given({} if evidence is None else evidence) if X is None else self._read(X)
        found = answers.most_probable(data, search, joint)
        if np.isnan(found.log_partition) and self.has_density and found.exact.all() and self.sums_exactly():
            found = replace(found, log_partition=self._log_partition_estimate())
        return replace(found, rows=like_frame(self.coding_.decode(found.rows), X, self.names_))

    def _given(self, evidence: Mapping[str, Any]) -> Dataset:
        """Return one row that holds the evidence, all other cells missing."""
        if unknown := [name for name in evidence if name not in self.names_]:
            raise ArgumentError(
                f"column {unknown[0]!r} is not one of {shorten(self.names_)}", "name a column of the fit"
            )
        cells = [[evidence.get(name) for name in self.names_]]
        row = self.read(pandas.DataFrame(cells, columns=list(self.names_), dtype=object))
        return self._read(row) if evidence else row
