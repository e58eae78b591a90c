"""How the rate of the steps falls with time."""

from __future__ import annotations

from gibbsian.settings import check, declared, number, positional


@declared(frozen=True)
class Decay:
    """Multiply the rate by ``1 / (1 + t / delay)^power`` after `t` steps (Robbins and Monro 1951).

    Noisy steps converge when the rates sum to infinity and their squares do not: ``1/2 < power <= 1``.

    Examples
    --------
    >>> from gibbsian.learning.optimizers import Decay
    >>> decay = Decay(power=1.0, delay=100)
    >>> decay(0), decay(100), decay(900)
    (1.0, 0.5, 0.1)
    """

    power: float = positional(
        kw_only=False,
        default=number(
            0.75,
            "How fast the rate falls in the end; zero keeps it, and above one the steps end too soon.",
            least=0,
            most=1,
        ),
    )
    delay: float = positional(kw_only=False, default=number(100.0, "Steps before the fall sets in.", above=0))

    def __post_init__(self) -> None:
        check(self)

    def __call__(self, t: int) -> float:
        """Return the factor of the rate after `t` steps."""
        return float((1.0 + t / self.delay) ** -self.power)


def rate_after(t: int, rate: float, decay: Decay | None) -> float:
    """Return the rate after `t` steps; without a decay it stays."""
    return rate if decay is None else rate * decay(t)
