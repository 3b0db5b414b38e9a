# SPDX-License-Identifier: Apache-2.0
"""Pictures need no compiled module: where the package is not installed its source folder serves."""

import importlib
import pathlib
import sys
import types

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[3] / "bindings/python/src/horus"

try:
    importlib.import_module("horus.plot")
except ImportError:
    for name in [name for name in sys.modules if name == "horus" or name.startswith("horus.")]:
        del sys.modules[name]
    package = types.ModuleType("horus")
    package.__path__ = [str(SOURCE)]
    sys.modules["horus"] = package

pytest.importorskip("matplotlib").use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")
