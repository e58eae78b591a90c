"""Questions to a full-span model: probabilities, marginals, conditionals, samples, most probable states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.special import logsumexp

from gibbsian.blocks import row_blocks
from gibbsian.errors import ArgumentError
from gibbsian.full_span.information import entropy, mutual_information
from gibbsian.models.full_span import MOST_KEPT_BYTES, FullSpanModel
from gibbsian.models.parameters import check_whole_number
from gibbsian.models.span_completions import completion_log_weights, patterns_of

# States of a table looked at together.
STATES_AT_ONCE = 2**18


class SpanAnswers:
    """Answers about one model; questions that need all states share one table.

    Rows are arrays of codes, as in `SpanBasis`.

    Parameters
    ----------
    model : FullSpanModel
        The model.

    Examples
    --------
    >>> from gibbsian.full_span import SpanAnswers
    >>> from gibbsian.models import FullSpanModel
    >>> answers = SpanAnswers(FullSpanModel.build((2, 2), indices=[3], theta=[0.5]))
    >>> answers.marginal([0]).round(3), answers.marginal([0, 1]).round(3).tolist()
    (array([0.5, 0.5]), [[0.366, 0.134], [0.134, 0.366]])
    """

    def __init__(self, model: FullSpanModel):
        self.model = model
        self._kept: np.ndarray | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"model": self.model, "_kept": None}

    def probabilities(self) -> np.ndarray:
        """Return the probability of every state, in the order of their indices; not to be written to."""
        if self._kept is not None:
            return self._kept
        table = self.model.probabilities()
        table.flags.writeable = False
        if table.nbytes <= MOST_KEPT_BYTES:
            self._kept = table
        return table

    # -- rows, with missing cells -------------------------------------------------------------------------------------
    def log_evidence(self, codes: np.ndarray, missing: np.ndarray | None = None) -> np.ndarray:
        """Return the log-probability of the present cells of each row.

        A row with missing cells costs its completions; a table of all states is made where that is cheaper.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.full_span import SpanAnswers
        >>> from gibbsian.models import FullSpanModel
        >>> answers = SpanAnswers(FullSpanModel.build((2, 2), indices=[3], theta=[0.5]))
        >>> np.exp(answers.log_evidence(np.array([[0, 0], [0, 0]]), np.array([[0, 0], [0, 1]], bool))).round(3)
        array([0.366, 0.5  ])
        """
        evidence, table = np.empty(len(codes)), self._table_for(len(codes))
        for rows, pattern in patterns_of(codes, missing):
            if not pattern.any():
                evidence[rows] = self._log_weights(codes[rows], table)
                continue
            for part, logs in completion_log_weights(self.model, codes[rows], pattern, table):
                evidence[rows[part]] = logsumexp(logs, axis=1)
        return evidence - self.model.log_partition

    def cell_probabilities(self, codes: np.ndarray, missing: np.ndarray | None = None) -> np.ndarray:
        """Return the probability of each value of each cell given the present cells of its row: (rows, n, values).

        Present cells have a one at their value; a variable with fewer values than another ends in zeros.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.full_span import SpanAnswers
        >>> from gibbsian.models import FullSpanModel
        >>> answers = SpanAnswers(FullSpanModel.build((2, 2), indices=[3], theta=[0.5]))
        >>> answers.cell_probabilities(np.array([[0, 0]]), np.array([[False, True]])).round(3).tolist()
        [[[1.0, 0.0], [0.731, 0.269]]]
        """
        cardinalities, table = self.model.cardinalities, self._table_for(len(codes))
        every = np.zeros((len(codes), len(cardinalities), max(cardinalities)))
        np.put_along_axis(every, codes.astype(np.intp)[:, :, None], 1.0, axis=2)
        for rows, pattern in patterns_of(codes, missing):
            cells = np.flatnonzero(pattern)
            if cells.size == 0:
                continue
            sizes = [cardinalities[i] for i in cells]
            for part, logs in completion_log_weights(self.model, codes[rows], pattern, table):
                shares = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
                block = rows[part]
                for place, i in enumerate(cells):
                    before, after = int(np.prod(sizes[:place])), int(np.prod(sizes[place + 1 :]))
                    split = shares.reshape(len(block), before, sizes[place], after)
                    every[block, i] = 0.0
                    every[block, i, : sizes[place]] = split.sum(axis=(1, 3))
        return every

    def log_pseudolikelihood(self, codes: np.ndarray) -> np.ndarray:
        """Return ``sum_i ln P(x_i | the others)`` of each complete row; needs no partition function.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.full_span import SpanAnswers
        >>> from gibbsian.models import FullSpanModel
        >>> answers = SpanAnswers(FullSpanModel.build((2, 2), indices=[3], theta=[0.5]))
        >>> answers.log_pseudolikelihood(np.array([[0, 0]])).round(3)
        array([-0.627])
        """
        total, table = np.zeros(len(codes)), self._table_for(len(codes))
        for i in range(self.model.n_variables):
            alone = np.zeros(self.model.n_variables, bool)
            alone[i] = True
            for rows, logs in completion_log_weights(self.model, codes, alone, table):
                own = np.take_along_axis(logs, codes[rows, i].astype(np.intp)[:, None], axis=1)[:, 0]
                total[rows] += own - logsumexp(logs, axis=1)
        return total

    def _table_for(self, n_rows: int) -> np.ndarray | None:
        """Return the log-weights of all states where that is cheaper than looking at each row by itself."""
        return self.model.log_weight_table() if self.model.table_pays(n_rows) else None

    def _log_weights(self, codes: np.ndarray, table: np.ndarray | None) -> np.ndarray:
        return self.model.log_weights_of_codes(codes) if table is None else table[self.model.basis.indices(codes)]

    # -- the whole distribution ---------------------------------------------------------------------------------------
    def marginal(self, nodes: Sequence[int]) -> np.ndarray:
        """Return the joint probabilities of some variables, one axis for each, in the order they are named.

        Examples
        --------
        >>> from gibbsian.full_span import SpanAnswers
        >>> from gibbsian.models import FullSpanModel
        >>> SpanAnswers(FullSpanModel.build((2, 3), [3], [0.5])).marginal([1, 0]).shape
        (3, 2)
        """
        nodes = list(nodes)
        if len(set(nodes)) < len(nodes):
            raise ArgumentError(f"the variables {tuple(nodes)} name one twice", "give each once")
        kept = sorted(nodes)
        shape, summed = _grouped(self.model.cardinalities, set(kept))
        table = self.probabilities().reshape(shape).sum(axis=summed)
        return np.transpose(table, [kept.index(node) for node in nodes])

    def sample(self, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Draw independent rows of codes, exactly.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.full_span import SpanAnswers
        >>> from gibbsian.models import FullSpanModel
        >>> SpanAnswers(FullSpanModel.build((2, 2), [3], [9.0])).sample(2, np.random.default_rng(0)).shape
        (2, 2)
        """
        check_whole_number("n_samples", n_samples)
        table = self.probabilities()
        blocks = list(_blocks(table.size))
        ends = np.cumsum([table[block].sum() for block in blocks])
        places = rng.random(n_samples) * ends[-1]
        block_of = np.minimum(np.searchsorted(ends, places, side="right"), len(blocks) - 1)
        drawn = np.empty(n_samples, np.int64)
        for number in np.unique(block_of):
            block, mine = blocks[number], np.flatnonzero(block_of == number)
            within = np.cumsum(table[block])
            start = ends[number] - within[-1]
            found = np.searchsorted(within, places[mine] - start, side="right")
            # rounding may point past the end: the last state that has any probability is meant
            drawn[mine] = block.start + np.minimum(found, np.flatnonzero(table[block]).max(initial=0))
        return self.model.basis.digits(drawn).astype(np.int8)

    def most_probable(self, n_states: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Return the most probable states as rows of codes, and their probabilities; of equal ones the first.

        Examples
        --------
        >>> from gibbsian.full_span import SpanAnswers
        >>> from gibbsian.models import FullSpanModel
        >>> codes, probabilities = SpanAnswers(FullSpanModel.build((2, 2), [3], [0.5])).most_probable(2)
        >>> codes.tolist(), probabilities.round(3)
        ([[0, 0], [1, 1]], array([0.366, 0.366]))
        """
        check_whole_number("n_states", n_states)
        table = self.probabilities()
        best = np.empty(0, np.int64)
        for block in _blocks(table.size):
            candidates = np.arange(block.start, block.stop)
            if best.size >= n_states:
                candidates = candidates[table[block] > table[best].min()]
            merged = np.concatenate([best, candidates])
            best = merged[np.argsort(-table[merged], kind="stable")[:n_states]]
        return self.model.basis.digits(best).astype(np.int8), table[best]

    def entropy(self, nodes: Sequence[int] | None = None) -> float:
        """Return the entropy of all variables, or of some, in nats.

        Examples
        --------
        >>> from gibbsian.full_span import SpanAnswers
        >>> from gibbsian.models import FullSpanModel
        >>> round(SpanAnswers(FullSpanModel.build((2, 2), [3], [0.5])).entropy([0]), 4)
        0.6931
        """
        return entropy(self.probabilities() if nodes is None else self.marginal(nodes))

    def mutual_information(self, one: Sequence[int], other: Sequence[int]) -> float:
        """Return what two groups of variables tell about each other, in nats.

        Examples
        --------
        >>> from gibbsian.full_span import SpanAnswers
        >>> from gibbsian.models import FullSpanModel
        >>> round(SpanAnswers(FullSpanModel.build((2, 2), [3], [0.5])).mutual_information([0], [1]), 4)
        0.1109
        """
        joint = self.marginal([*one, *other])
        return mutual_information(joint.reshape(int(np.prod(joint.shape[: len(one)])), -1))

    def means(self) -> np.ndarray:
        """Return ``<Phi_y>`` of the model's own functions, in the order of its theta.

        Examples
        --------
        >>> from gibbsian.full_span import SpanAnswers
        >>> from gibbsian.models import FullSpanModel
        >>> SpanAnswers(FullSpanModel.build((2, 2), [3], [0.5])).means().round(4)      # tanh(0.5)
        array([0.4621])
        """
        return self.model.dual()[self.model.indices]


def _blocks(size: int) -> Iterator[slice]:
    return row_blocks(size, 1, max_cells=STATES_AT_ONCE)


def _grouped(cardinalities: Sequence[int], kept: set[int]) -> tuple[list[int], tuple[int, ...]]:
    """Return a shape in which neighbours that are summed out are one axis, and which axes those are.

    An array has at most 64 axes, and few long ones are summed faster.
    """
    shape: list[int] = []
    summed: list[int] = []
    for i, q in enumerate(cardinalities):
        if i not in kept and summed and summed[-1] == len(shape) - 1:
            shape[-1] *= q
            continue
        if i not in kept:
            summed.append(len(shape))
        shape.append(q)
    return shape, tuple(summed)
