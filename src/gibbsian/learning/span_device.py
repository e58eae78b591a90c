"""The problem of a full-span fit whose tables stay on a device."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gibbsian.arrays import Tensor
from gibbsian.backends.device import twin
from gibbsian.backends.numba import span
from gibbsian.learning.span_problem import SpanProblem


@dataclass(frozen=True, eq=False)
class DeviceSpanProblem(SpanProblem):
    """As `SpanProblem`, for the Walsh basis: `data_dual` and the duals of points are tables on the device."""

    @classmethod
    def of(cls, problem: SpanProblem) -> SpanProblem:
        """Return the problem with its table on the device; itself on the CPU, or in another basis."""
        kernels = twin("span")
        if kernels is None or not problem._by_xor:
            return problem
        table = kernels.Table(problem.basis.size, problem.data_dual.dtype)
        table[...] = problem.data_dual
        return cls(**{**vars(replace(problem)), "data_dual": table})

    @cached_property
    def _on_device(self) -> tuple[Tensor, Tensor]:
        """The penalties of the two halves of an index."""
        values: Any = self.data_dual.values  # type: ignore[attr-defined]
        low, high = (values.new_tensor(np.asarray(half)) for half in self._halves)
        return low, high

    def uniform_dual(self) -> Tensor:
        """Return the dual of the uniform distribution, in a new table."""
        table = twin("span").Table(self.basis.size, self.data_dual.dtype)
        table[0] = 1.0
        return table

    def refresh(self, dual: Tensor, indices: np.ndarray, theta: np.ndarray) -> float:
        """Overwrite the dual by fresh transforms of the parameters and return log Z."""
        return twin("span").fill_dual(dual, indices, theta)

    def candidates(self, dual: Any, indices: np.ndarray, floor: float) -> np.ndarray:
        """Return the functions whose append gains at least `floor`, the best first."""
        kernels, values = twin("span"), self.data_dual.values  # type: ignore[attr-defined]
        found = kernels.bounds(dual.values, values, self.penalty.base) > floor
        passing = np.setdiff1d(found.nonzero()[:, 0].cpu().numpy(), [*indices, 0])
        gains = self._gains(
            passing, dual[passing].astype(float), self.data_dual[passing].astype(float), self.penalties(passing)
        )
        order = np.argsort(-gains, kind="stable")
        return passing[order[: np.count_nonzero(gains >= floor)]]

    def pair_expectations(self, dual: Tensor, indices: np.ndarray) -> np.ndarray:
        """Return ``<Phi_y Phi_z>`` for all pairs of functions, read from the dual."""
        return dual[indices[:, None] ^ indices].astype(np.float64)

    def _gains(self, functions: np.ndarray, duals: np.ndarray, data: np.ndarray, penalties: np.ndarray) -> np.ndarray:
        return span.append_gains(functions, duals, data, penalties, self.limit, self._shrinkage, self._axes)

    def _pass(self, dual: Tensor, indices: np.ndarray, z: int, keep: float, mix: float) -> tuple[float, int]:
        kernels, taken = twin("span"), np.append(indices, 0)
        tops = kernels.update(dual, self.data_dual, self._on_device, (z or 1, keep, mix))
        return kernels.best_append(dual, self.data_dual, self._on_device, z or 1, tops, taken, self._gains)
