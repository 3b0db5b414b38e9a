# SPDX-License-Identifier: Apache-2.0
"""A report of what sharing would give a cluster: one HTML file of the results of horus potential, compare, simulate.

`write(results, path)`, or `python -m horus.report RESULTS... -o report.html`. Needs jinja2 and plotly
(the extra `report`), not the compiled module. docs/python.md says what it takes and what it shows.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Union

__all__ = ["ReportError", "write"]

Path = Union[str, "os.PathLike[str]"]


class ReportError(ValueError):
    """A file of the results is missing, or is not what it should be: which one, what was expected, what was found."""


def write(results: Path | Sequence[Path], path: Path, *, policy: str | None = None,
          gpus: Mapping[str, int] | None = None, plotly_js: Path | None = None, command: str | None = None) -> int:
    """Writes the report of the files and folders `results` to `path`, whole or not at all; returns its bytes.

    policy: whose figures come first (default: `horus`, else the first that is not the baseline).
    gpus: GPUs of the cluster by results folder, where its files do not say.
    plotly_js: a smaller bundle of plotly.js than that of the package plotly (`plotly-basic.min.js` suffices).
    command: what the report says that made it (default: the call).
    ReportError: as its name says. OSError, before anything is read: `path` cannot be written.
    """
    from .page import render  # jinja2, plotly and numpy are needed from here on

    paths = [results] if isinstance(results, (str, os.PathLike)) else list(results)
    names = [os.fspath(one) for one in paths]
    beside = f"{os.fspath(path)}.{os.getpid()}.part"
    with _named(path):
        file = open(beside, "wb")
    try:
        with file:
            text = render(names, policy=policy, gpus=dict(gpus or {}), plotly_js=plotly_js,
                          command=command or f"horus.report.write({names!r}, {os.fspath(path)!r})")
            data = text.encode("utf-8", "backslashreplace")
            with _named(path):
                file.write(data)
                file.flush()
        with _named(path):
            os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
    return len(data)


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Errors of the file beside are those of the file that was asked for."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, f"cannot write: {error.strerror}", os.fspath(path)) from None
