# SPDX-License-Identifier: Apache-2.0
"""The library at work: counters as rows, as a frame or as the text that Prometheus scrapes, and a log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from . import _core, _table
from ._args import instance
from .errors import InvalidArgument

__all__ = ["Metric", "Metrics"]

_LEVELS = {"error": 1, "warning": 2, "info": 3, "debug": 4}
_NAMES = {number: name for name, number in _LEVELS.items()}
_KINDS = ("counter", "gauge", "histogram")


class Metric(NamedTuple):
    """One row."""

    name: str
    labels: str  # call="apply",status="OK"
    kind: str  # "counter", "gauge" or "histogram"
    value: float  # counts, bytes, seconds

    def _repr_html_(self) -> str:
        return _table.pairs_to_html("Metric", self._asdict())


class Metrics:
    """Counts what the clusters, placers and predictors do that it is set on, together: docs/embed.md lists the metrics.

    `log`: a logging.Logger, or a callable that gets a level's name and one line, on the thread of the call that it tells
    about, at its end. What it raises is printed and otherwise ignored, but for KeyboardInterrupt and SystemExit. It may
    neither use a cluster of whose change it hears nor change the metrics of what it hears of (Busy).
    `level`: the most talkative that is told: "error", "warning", "info" or "debug". `times`: histograms of how long calls
    took."""

    __slots__ = ("_handle",)

    def __init__(self, log: logging.Logger | Callable[[str, str], object] | None = None, *, level: str = "warning",
                 times: bool = True) -> None:
        if level not in _LEVELS:
            raise InvalidArgument(f"level: expected one of {', '.join(_LEVELS)}, found {level!r:.80}")
        tell: Callable[[int, str], object] | None = None
        if isinstance(log, logging.Logger):
            logger = log

            def tell(number: int, line: str) -> None:
                logger.log(getattr(logging, _NAMES[number].upper()), "%s", line)
        elif callable(log):
            call = log

            def tell(number: int, line: str) -> object:
                return call(_NAMES[number], line)
        elif log is not None:
            raise TypeError(f"log: expected a Logger or a callable, found {log!r:.80} ({type(log).__name__})")
        self._handle = _core.MetricsHandle(tell, _LEVELS[level], bool(times))

    def rows(self) -> list[Metric]:
        """Everything counted since they were made. Rows with labels appear with their first count."""
        return [Metric(name, labels, _KINDS[kind], value) for name, labels, kind, value in self._handle.rows()]

    def to_frame(self) -> Any:
        """The same as a pandas frame."""
        return _table.frame(_columns(self.rows()))

    def text(self) -> str:
        """The same as Prometheus scrapes it."""
        return self._handle.text()

    def __repr__(self) -> str:
        return f"<horus.Metrics: {len(self.rows())} metrics>"

    def _repr_html_(self) -> str:
        return _table.to_html(repr(self), _columns(self.rows()))


def _columns(metrics: list[Metric]) -> dict[str, list[Any]]:
    return {field: [metric[i] for metric in metrics] for i, field in enumerate(Metric._fields)}


def handle_of(metrics: Metrics | None) -> _core.MetricsHandle | None:
    """Checked; None = no metrics."""
    return None if metrics is None else instance(metrics, Metrics, "metrics")._handle
