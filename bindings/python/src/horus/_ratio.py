# SPDX-License-Identifier: Apache-2.0
"""Changes from a baseline."""

from __future__ import annotations

_LEAST = 1e-9  # of a difference from it: below is what rounding leaves of 0, as in lab/grid.cc


def is_base(base: float | None, difference: float) -> bool:
    """Whether the difference is a ratio of the baseline: not where that is 0, but for rounding, or nothing."""
    return base is not None and abs(base) > _LEAST * abs(difference)
