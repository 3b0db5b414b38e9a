# SPDX-License-Identifier: Apache-2.0
"""One page, one cluster: its figures stand side by side as if they compared. Files that tell another cluster are refused."""

from __future__ import annotations

import re
from collections.abc import Callable

from . import ReportError, figures
from .inputs import ALL_TYPES, Inputs, gpus_stated

Told = tuple[str, dict[str, float]]  # path, GPUs by type
# The word of a card's name that tells it from others, "v100" of "NVIDIA V100-SXM2-16GB": files of speeds have names of their own.
_MODEL = re.compile(r"[a-z]*\d+[a-z]*")


def check(inputs: Inputs) -> None:
    """Sizes of one cluster may differ between comparisons, which is what they are for; everything else must be the same."""
    comparisons: list[Told] = [(one.path, {name: float(count) for name, count in one.gpus.items()})
                               for one in inputs.comparisons if one.gpus and ALL_TYPES not in one.gpus]
    runs = _told([(path, gpus_stated(told, path)) for path, told in inputs.timelines])
    answers = _told([(path, gpus_stated(told, path)) for path, told in inputs.potentials])
    _same(runs, lambda one, other: one == other, "runs on one cluster")
    _same(answers, lambda one, other: one == other, "answers for one cluster")
    _same(comparisons + runs, lambda one, other: set(one) == set(other), "GPUs of the same types")
    _same(answers[:1] + (comparisons + runs)[:1], _kin, "GPUs of the same types")


def _told(found: list[Told]) -> list[Told]:
    """Without those from before files told their cluster."""
    return [one for one in found if one[1]]


def _same(found: list[Told], alike: Callable[[dict[str, float], dict[str, float]], bool], expected: str) -> None:
    for path, gpus in found[1:]:
        first, known = found[0]
        if not alike(known, gpus):
            raise ReportError(f"{path}: expected {expected} as {first} ({_words(known)}), found {_words(gpus)}: "
                              "make a report of each cluster")


def _kin(one: dict[str, float], other: dict[str, float]) -> bool:
    """Whether some type of one may be one of the other's, whatever the files call it."""
    return any(a.startswith(b) or b.startswith(a) for a in map(_model, one) for b in map(_model, other))


def _model(name: str) -> str:
    found = _MODEL.search(name.lower())
    return found.group() if found else name.lower()


def _words(gpus: dict[str, float]) -> str:
    return ", ".join(f"{figures.number(count, 6)} {name}" for name, count in gpus.items())
