"""TA22's Algorithm 2 as it is printed, to set the library's own scan beside it."""

import math

from gibbsian.backends.numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def change_of_divergence(data, before, after):
    """Return how the divergence changes as the dual of one function goes from `before` to `after` (TA22 eq. 2.17)."""
    up = 0.5 * (1.0 + data) * math.log((1.0 + before) / (1.0 + after))
    return up + 0.5 * (1.0 - data) * math.log((1.0 - before) / (1.0 - after))


@njit(cache=True, nogil=True, error_model="numpy")
def evaluate_candidates(theta, dual, data, penalties, bounded):
    """Return the lowest change of the cost, its function, the new parameter, and how many appends took logarithms.

    `bounded` is line 5: an append whose lower bound (eq. 2.19, multiplied out) does not beat the champion is not
    looked at.
    """
    best, best_y, value, n_exact = 0.0, -1, 0.0, 0
    for y in range(1, theta.size):
        now, mean = dual[y], data[y]
        if theta[y] == 0.0:
            if bounded and (now - mean) * (now - mean) <= (penalties[y] - best) * (1.0 - now * now):
                continue
            n_exact += 1
            delta = change_of_divergence(mean, now, mean) + penalties[y]
            if delta < best:
                best, best_y, value = delta, y, math.atanh(mean) - math.atanh(now)
        else:
            delta = change_of_divergence(mean, now, mean)
            if delta < best:
                best, best_y, value = delta, y, theta[y] + math.atanh(mean) - math.atanh(now)
            without = math.tanh(math.atanh(now) - theta[y])
            delta = change_of_divergence(mean, now, without) - penalties[y]
            if delta < best:
                best, best_y, value = delta, y, 0.0
    return best, best_y, value, n_exact
