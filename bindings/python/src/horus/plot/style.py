# SPDX-License-Identifier: Apache-2.0
"""What all pictures share: colours that are told apart without colour vision and in print, hatches, lines, reading of
objects. matplotlib is loaded with the first picture, not with this file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Lightness (CIE L*) falls from one to the next, so that the order survives greyscale; hues by Okabe and Ito (2008), for
# protanopes, deuteranopes and tritanopes, darkened or lightened to that end. tests/python/plot/palette_test.py.
PALETTE = ("#0b2f52", "#a33b0a", "#1f8a62", "#cf7fb0", "#6cbcf0", "#f5dc6a")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P")
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "++")
SEQUENTIAL = "cividis"  # its lightness rises all the way, also for colour-blind people
INK, FAINT = "#222222", "#8a8a8a"
MISSING = object()


def axes(ax: Axes | None, size: tuple[float, float] = (7.0, 4.0)) -> Axes:
    """The axes given, or those of a new figure."""
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.subplots(figsize=size, layout="constrained")[1]
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax


def look(index: int) -> dict[str, Any]:
    """Colour, line and marker of the index-th of several; each repeats with another period."""
    return {"color": PALETTE[index % len(PALETTE)], "linestyle": LINES[(index + index // len(PALETTE)) % len(LINES)],
            "marker": MARKERS[index % len(MARKERS)]}


def fill(index: int) -> dict[str, Any]:
    """Colour and hatch of the index-th area."""
    return {"facecolor": PALETTE[index % len(PALETTE)],
            "hatch": HATCHES[(index + index // len(PALETTE)) % len(HATCHES)], "edgecolor": "white", "linewidth": 0.6}


def has(thing: Any, name: str) -> bool:
    return name in thing if isinstance(thing, Mapping) else hasattr(thing, name)


def get(thing: Any, name: str, what: str, default: Any = MISSING) -> Any:
    """A member of an object or key of a mapping. ValueError names `what` and what was there."""
    if isinstance(thing, Mapping):
        if name in thing:
            return thing[name]
    elif hasattr(thing, name):
        value = getattr(thing, name)
        return value() if callable(value) else value
    if default is not MISSING:
        return default
    there = list(thing) if isinstance(thing, Mapping) else [n for n in dir(thing) if not n.startswith("_")]
    raise ValueError(f"{what}: expected {name!r}, found {type(thing).__name__} with "
                     f"{', '.join(map(str, there))[:200] or 'nothing'}")


def column(values: Any, what: str, length: int | None = None) -> np.ndarray:
    """Numbers as a one-dimensional array; text, other shapes and lengths are refused by name."""
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{what}: expected numbers, found {type(values).__name__}") from None
    if array.ndim != 1:
        raise ValueError(f"{what}: expected one dimension, found shape {array.shape}")
    if length is not None and array.size != length:
        raise ValueError(f"{what}: expected {length} values, found {array.size}")
    return array


def some(items: Sequence[Any] | Iterable[Any], what: str) -> list[Any]:
    """The items as a list that is not empty."""
    found = list(items)
    if not found:
        raise ValueError(f"{what}: expected at least one, found none")
    return found


def span_of_time(seconds: float) -> tuple[float, str]:
    """A unit in which that much time is a readable number: seconds in it, and its name."""
    for size, name in ((86_400.0, "days"), (3_600.0, "h"), (60.0, "min")):
        if seconds >= 3 * size:
            return size, name
    return 1.0, "s"


def legend(ax: Axes, **options: Any) -> None:
    ax.legend(frameon=False, fontsize="small", **options)
