"""Variable elimination of a spin model along a tree of cliques.

Nodes are named by their place in the elimination order. Node p is summed out given its separator R_p, the later nodes
it still touches, ascending in ``separators[pointers[p]:pointers[p + 1]]``. A table over R_p has ``R_p[t]`` at bit t;
the table over the clique {p} + R_p has p at bit 0 and ``R_p[t]`` at bit t + 1; a bit is 1 where the spin is +1. The
message of p is a table over R_p and goes to the first node of R_p. The order is a post-order of that tree, so
messages live on a stack: those to p lie on top when p is reached, and its own message takes their place (`slots`
holds the offsets).

Everything going up is a logarithm, because a message may span more than the range of float64 and a later factor may
lift its smallest entry. Going down, the tables are probabilities, and what underflows there is zero to working
precision.
"""

import numpy as np

from gibbsian.backends.numba import njit
from gibbsian.backends.numba.enumeration import fold_moments, largest
from gibbsian.backends.numba.math import fast_exp

MAX_BITS = 62


@njit(cache=True, inline="always")
def _log1p_unit(y):
    """log(1 + y) for 0 <= y <= 1, as 2 atanh(y / (2 + y)); the first term left out is below 1e-17."""
    z = y / (2.0 + y)
    w = z * z
    p = 1.0 / 33.0
    p = p * w + 1.0 / 31.0
    p = p * w + 1.0 / 29.0
    p = p * w + 1.0 / 27.0
    p = p * w + 1.0 / 25.0
    p = p * w + 1.0 / 23.0
    p = p * w + 1.0 / 21.0
    p = p * w + 1.0 / 19.0
    p = p * w + 1.0 / 17.0
    p = p * w + 1.0 / 15.0
    p = p * w + 1.0 / 13.0
    p = p * w + 1.0 / 11.0
    p = p * w + 1.0 / 9.0
    p = p * w + 1.0 / 7.0
    p = p * w + 1.0 / 5.0
    p = p * w + 1.0 / 3.0
    return 2.0 * z * (p * w + 1.0)


@njit(cache=True)
def _kept_bits(child_separator, separator):
    """Which bits of the clique table stay in the child's table; bit 0, the parent itself, always does."""
    mask = 1
    t = 0
    for s in range(1, child_separator.size):
        while separator[t] != child_separator[s]:
            t += 1
        mask |= 1 << (t + 1)
    return mask


@njit(cache=True)
def _block_steps(mask, steps):
    """Return the run of kept low bits, and fill how the child's block number moves when the clique's is raised by 1.

    Raising a number flips its lowest zero bit z and clears the bits below it; ``steps[z]`` is what that does to the
    number made of the kept bits.
    """
    run = 0
    while (mask >> run) & 1:
        run += 1
    kept, below = 0, 0
    for z in range(MAX_BITS - run):
        bit = (mask >> (run + z)) & 1
        steps[z] = (bit << kept) - below
        below += bit << kept
        kept += bit
    return run


@njit(cache=True)
def _next_block(block, outer, steps):
    z = 0
    while (outer >> z) & 1:
        z += 1
    return block + steps[z]


@njit(cache=True)
def _add_message(table, message, mask, steps):
    """Add a child's message to the clique table, repeated over the bits it does not have."""
    run = _block_steps(mask, steps)
    width = 1 << run
    block = 0
    for outer in range(table.size >> run):
        at, source = outer << run, block << run
        for b in range(width):
            table[at + b] += message[source + b]
        block = _next_block(block, outer, steps)


@njit(cache=True)
def _sum_out(table, marginal, mask, steps):
    """Sum the clique table over the bits that a child does not have."""
    run = _block_steps(mask, steps)
    width = 1 << run
    marginal[:] = 0.0
    block = 0
    for outer in range(table.size >> run):
        at, target = outer << run, block << run
        for b in range(width):
            marginal[target + b] += table[at + b]
        block = _next_block(block, outer, steps)


@njit(cache=True)
def _fill_fields(fields, bias, couplings):
    """Field of the eliminated node for every state of its separator, by doubling."""
    fields[0] = bias - couplings.sum()
    size = 1
    for t in range(couplings.size):
        for r in range(size):
            fields[size + r] = fields[r] + 2.0 * couplings[t]
        size *= 2


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def _sum_spin(table, odds, message):
    """Sum out bit 0 of a table of logarithms; keep the log-odds of that bit."""
    for r in range(odds.size):
        low, high = table[2 * r], table[2 * r + 1]
        odds[r] = high - low
        message[r] = max(low, high) + _log1p_unit(fast_exp(-abs(high - low)))


@njit(cache=True)
def _maximise_spin(table, odds, message):
    """Maximise over bit 0 of a table of logarithms; keep the difference it makes."""
    for r in range(odds.size):
        low, high = table[2 * r], table[2 * r + 1]
        odds[r] = high - low
        message[r] = max(low, high)


@njit(cache=True)
def upward(pointers, separators, child_pointers, children, tables, slots, sizes, biases, couplings, maximise):
    """Eliminate every node in turn.

    Returns
    -------
    total : float, log Z (or the largest log-weight if `maximise`)
    odds : the log-odds of each node given its separator, table after table
    """
    stack_size, work_size = sizes
    odds = np.empty(tables[-1])
    stack, work = np.empty(stack_size), np.empty(work_size)
    steps = np.empty(MAX_BITS, np.int64)
    total = 0.0
    for p in range(biases.size):
        separator = separators[pointers[p] : pointers[p + 1]]
        node_odds = odds[tables[p] : tables[p + 1]]
        _fill_fields(node_odds, biases[p], couplings[pointers[p] : pointers[p + 1]])
        table = work[: 2 * node_odds.size]
        for r in range(node_odds.size):
            table[2 * r] = -node_odds[r]
            table[2 * r + 1] = node_odds[r]
        for c in children[child_pointers[p] : child_pointers[p + 1]]:
            child_separator = separators[pointers[c] : pointers[c + 1]]
            message = stack[slots[c] : slots[c] + (1 << child_separator.size)]
            _add_message(table, message, _kept_bits(child_separator, separator), steps)
        message = stack[slots[p] : slots[p] + node_odds.size]
        if maximise:
            _maximise_spin(table, node_odds, message)
        else:
            _sum_spin(table, node_odds, message)
        level = largest(message)  # kept apart, so that messages do not grow along a long chain
        message -= level
        total += level
    return total, odds


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def _split_by_spin(marginal, odds, table, signed):
    """Extend the probabilities of a separator to its clique; `signed` gets the difference the spin makes."""
    for r in range(odds.size):
        small = fast_exp(-abs(odds[r]))
        likely = marginal[r] / (1.0 + small)
        unlikely = small * likely
        low, high = (unlikely, likely) if odds[r] > 0 else (likely, unlikely)
        table[2 * r] = low
        table[2 * r + 1] = high
        signed[r] = high - low


@njit(cache=True)
def downward(pointers, separators, child_pointers, children, tables, slots, sizes, odds):
    """Return the mean of each spin and its product with each spin of its separator."""
    stack_size, work_size = sizes
    n = slots.size
    means, products = np.empty(n), np.empty(separators.size)
    stack, work, signed = np.empty(stack_size), np.empty(work_size), np.empty(work_size // 2)
    steps, moments = np.empty(MAX_BITS, np.int64), np.empty(MAX_BITS)
    for p in range(n - 1, -1, -1):
        separator = separators[pointers[p] : pointers[p + 1]]
        node_odds = odds[tables[p] : tables[p + 1]]
        marginal = stack[slots[p] : slots[p] + node_odds.size]
        if separator.size == 0:
            marginal[0] = 1.0
        table = work[: 2 * node_odds.size]
        _split_by_spin(marginal, node_odds, table, signed)
        means[p] = fold_moments(signed[: node_odds.size], moments[: separator.size])
        for t in range(separator.size):
            products[pointers[p] + t] = moments[separator.size - 1 - t]
        for c in children[child_pointers[p] : child_pointers[p + 1]]:
            child_separator = separators[pointers[c] : pointers[c + 1]]
            child_marginal = stack[slots[c] : slots[c] + (1 << child_separator.size)]
            _sum_out(table, child_marginal, _kept_bits(child_separator, separator), steps)
    return means, products


@njit(cache=True)
def _separator_state(state, separator):
    """Number of the separator's state."""
    r = np.int64(0)
    for t in range(separator.size):
        r |= np.int64(state[separator[t]]) << t
    return r


@njit(cache=True)
def decode(pointers, separators, tables, odds):
    """Bits of the state that maximises: from the last node back, the better value given the separator's (ties: 0)."""
    state = np.zeros(tables.size - 1, np.uint8)
    for p in range(state.size - 1, -1, -1):
        r = _separator_state(state, separators[pointers[p] : pointers[p + 1]])
        state[p] = odds[tables[p] + r] > 0
    return state


@njit(cache=True, nogil=True)
def sample(pointers, separators, tables, odds, uniforms):
    """Bits of one state for each row of uniform numbers: from the last node back, each given its separator."""
    states = np.empty(uniforms.shape, np.uint8)
    for m in range(uniforms.shape[0]):
        state = states[m]
        for p in range(state.size - 1, -1, -1):
            r = _separator_state(state, separators[pointers[p] : pointers[p + 1]])
            log_odds = odds[tables[p] + r]
            unlikely = fast_exp(-abs(log_odds))  # relative to the likelier value
            share = (1.0 if log_odds > 0 else unlikely) / (1.0 + unlikely)
            state[p] = uniforms[m, p] < share
    return states
