# SPDX-License-Identifier: Apache-2.0
"""The time that is left, what runs have cost so far, and the line that says so."""
import contextlib
import sys
import time

FIRST_GUESS_S = {"isolated": 4.5, "shared": 6.0}
WEIGHT = 0.2  # of the newest run in the mean cost
RESERVE_S = 4.0  # for ending workers and writing the last tables
BAR = 24  # characters


class Budget:
    def __init__(self, minutes, clock=time.monotonic):
        self.clock, self.began = clock, clock()
        self.end = self.began + 60 * minutes - RESERVE_S
        self.cost = dict(FIRST_GUESS_S)

    def left(self, until=None):
        """Seconds to the end, or to an earlier moment."""
        return (min(until, self.end) if until is not None else self.end) - self.clock()

    def moment(self, share):
        """The moment when this share of what is left now is over."""
        return self.clock() + share * max(0.0, self.left())

    def spent(self, kind, seconds):
        self.cost[kind] += WEIGHT * (seconds - self.cost[kind])

    def fits(self, kind, until=None):
        """How many runs of a kind the time allows."""
        return max(0, int(self.left(until) / self.cost[kind]))


class Progress:
    """A bar on a terminal, a line a run elsewhere."""

    def __init__(self, budget, stream=sys.stderr):
        self.budget, self.stream, self.terminal = budget, stream, stream.isatty()
        self.counts = {}

    def show(self, kind, what):
        self.counts[kind] = self.counts.get(kind, 0) + 1
        whole = self.budget.end - self.budget.began
        gone = min(1.0, max(0.0, 1 - self.budget.left() / whole)) if whole > 0 else 1.0
        left = max(0, int(self.budget.left()))
        counts = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        bar = "#" * int(gone * BAR) + "." * (BAR - int(gone * BAR))
        line = f"[{bar}] {left // 60}:{left % 60:02d} left, {counts}: {what}"
        self.write(f"\r\x1b[K{line[:150]}" if self.terminal else line + "\n")

    def say(self, text):
        self.write(("\n" if self.terminal else "") + text + "\n")

    def write(self, text):
        with contextlib.suppress(OSError):  # nobody reads any more; the runs go on
            self.stream.write(text)
            self.stream.flush()
