# SPDX-License-Identifier: Apache-2.0
"""How the rate of an input pipeline grows with cores: what a few measured counts say of the others, and which to measure next.

Between two measured counts the time of a batch is a part that cores do not change and a part that they divide (Amdahl): 1 / rate is
linear in 1 / cores. Below the first count the rate is proportional to cores.

How wrong can that be? More cores never slow a pipeline down, and each further core gives no more than the one before it. So between two
measured counts the rate lies at or above the straight line between them, and at or below three others: the line before, extended;
the line behind, extended; the rate at the upper count. A computed rate is kept within these bounds. Its stated error is the way to the
farther one, and two standard errors of the measured counts beside it.

Where measured counts contradict the rule (a core gave more than the one before it), an extended line runs below the straight line. Then it
is a lower bound, and no upper one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

__all__ = ["InputRate", "Law", "Measured", "explore"]

LEAST_RUNS = 3  # one between the ends, which checks the law
STANDARD_ERRORS = 2


@dataclass(frozen=True)
class Measured:
    """A measured rate in batches per second, with its relative standard error."""

    cores: float
    rate: float
    error: float = 0.0


@dataclass(frozen=True)
class InputRate:
    """Batches per second at a number of cores, and the bounds on it."""

    cores: float
    rate: float
    low: float
    high: float
    measured: bool

    @property
    def error(self) -> float:
        """The way to the farther bound, as a share of the rate."""
        return max(self.high - self.rate, self.rate - self.low) / self.rate

    def at_most(self, limit: float) -> InputRate:
        """The same behind something that lets `limit` batches per second pass."""
        return InputRate(self.cores, min(self.rate, limit), min(self.low, limit), min(self.high, limit), self.measured)


class Law:
    """The law through measured counts: at least one, in any order. A count that was slower than a smaller one counts as fast."""

    def __init__(self, measured: Iterable[Measured]) -> None:
        last = Measured(0, 0)
        self._points = [last]
        for point in sorted(measured, key=lambda one: one.cores):
            last = point if point.rate >= last.rate else Measured(point.cores, last.rate, last.error)
            self._points.append(last)
        self._cores = [point.cores for point in self._points]

    def at(self, cores: float) -> InputRate:
        """The rate at `cores`, above 0 and up to the largest measured count. Raises ValueError elsewhere: nothing bounds the error."""
        if not 0 < cores <= self._cores[-1]:
            raise ValueError(f"cores: expected above 0 to {self._cores[-1]:g}, found {cores:g}")
        right = bisect_left(self._cores, cores)
        b = self._points[right]
        if b.cores == cores:
            noise = STANDARD_ERRORS * b.error * b.rate
            return InputRate(cores, b.rate, max(0.0, b.rate - noise), b.rate + noise, True)
        a = self._points[right - 1]
        straight = _line(a, b, cores)
        low, high = self._bounds(right, cores, straight)
        rate = min(_amdahl(a, b, cores) if right > 1 else straight, high)
        noise = STANDARD_ERRORS * max(a.error, b.error) * rate
        return InputRate(cores, rate, max(0.0, min(low, rate) - noise), high + noise, False)

    def _bounds(self, right: int, cores: float, straight: float) -> tuple[float, float]:
        points = self._points
        extended = [points[right].rate]
        if right >= 2:
            extended.append(_line(points[right - 2], points[right - 1], cores))
        if right + 1 < len(points):
            extended.append(_line(points[right], points[right + 1], cores))
        below = [max(points[right - 1].rate, one) for one in extended if one < straight]
        return min([straight, *below]), min(one for one in extended if one >= straight)

    def least_sure(self, counts: Sequence[int]) -> InputRate | None:
        """Of the counts that were not measured the one with the largest stated error."""
        rest = [rate for rate in map(self.at, counts) if not rate.measured]
        return max(rest, key=lambda rate: (rate.error, -rate.cores), default=None)


def _line(a: Measured, b: Measured, cores: float) -> float:
    return a.rate + (b.rate - a.rate) / (b.cores - a.cores) * (cores - a.cores)


def _amdahl(a: Measured, b: Measured, cores: float) -> float:
    way = (1 / cores - 1 / a.cores) / (1 / b.cores - 1 / a.cores)
    return 1 / (1 / a.rate + way * (1 / b.rate - 1 / a.rate))


def explore(measure: Callable[[int, int], Measured], counts: Sequence[int], max_runs: int, tolerance: float,
            law: Callable[[Iterable[Measured]], Law] = Law) -> list[Measured]:
    """Measures at most `max_runs` of `counts` (ascending): the last, the first, then where the law is least sure, until it states no
    error above `tolerance`, and one between the ends at least. `measure` takes a count and how many runs may still come with it.

    The last is measured first, so that whatever many cores bring down shows at once."""
    most = min(max_runs, len(counts))
    found = [measure(counts[-1], most)]
    while len(found) < most:
        if len(found) == 1:
            found.append(measure(counts[0], most - 1))
            continue
        least = law(found).least_sure(counts)
        if least is None or (least.error <= tolerance and len(found) >= LEAST_RUNS):
            break
        found.append(measure(int(least.cores), most - len(found)))
    return sorted(found, key=lambda one: one.cores)
