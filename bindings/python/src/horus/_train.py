# SPDX-License-Identifier: Apache-2.0
"""Where the library of PyPI's xgboost lies, for fits."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

_FILE = "libxgboost.so"


def training_library(library: str | os.PathLike[str] = "") -> str:
    """`library` when it is given, else that of the xgboost that `import xgboost` would find (not imported: it would bring
    scipy), else none."""
    given = os.fspath(library)
    if given:
        return given
    try:
        found = importlib.util.find_spec("xgboost")
    except ValueError:  # half-made: xgboost in sys.modules without a spec
        found = None
    if found is None:
        return ""
    folders = [Path(folder) / "lib" for folder in found.submodule_search_locations or ()]
    folders.append(Path(sys.prefix) / "lib")  # conda
    return next((str(folder / _FILE) for folder in folders if (folder / _FILE).is_file()), "")
