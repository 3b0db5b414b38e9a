# SPDX-License-Identifier: Apache-2.0
"""The module beside other large ones, in either order; what a wheel must not carry."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

from conftest import GRAPHS

WORK = (f"import horus; g = horus.Graph.from_onnx({str(GRAPHS / 'resnet18.onnx')!r}); "
        "assert horus.Predictor().predict(g, 't4').mem_mib > 0; ")
USE = {"onnx": "import onnx; onnx.helper.make_opsetid('', 17); ", "torch": "import torch; torch.zeros(3).sum(); ",
       "xgboost": "import xgboost; ", "lightgbm": "import lightgbm; ", "pandas": "import pandas; "}


@pytest.mark.parametrize("other", USE)
def test_imports_in_either_order(horus, other):
    if importlib.util.find_spec(other) is None:
        pytest.skip(f"{other} is not installed")
    for program in (USE[other] + WORK, WORK + USE[other] + WORK):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_the_face_needs_the_module_only_when_it_is_used(horus):
    program = "import sys, horus; assert 'horus._core' not in sys.modules; horus.Job(); assert 'horus._core' in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_module_is_small_and_needs_no_openmp(horus):
    from horus import _core

    path = pathlib.Path(_core.__file__)
    needed = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
    assert "gomp" not in needed and "xgboost" not in needed and "libhorus" not in needed
    if "debug_info" not in subprocess.run(["readelf", "-S", path], capture_output=True, text=True, check=True).stdout:
        assert path.stat().st_size < 15 * 2**20


def test_every_name_is_there_and_documented(horus):
    for name in horus.__all__:
        value = getattr(horus, name)
        assert not isinstance(value, type) or value.__doc__, name
    assert set(horus.__all__) <= set(dir(horus)) and horus.__version__.count(".") == 2
    with pytest.raises(AttributeError, match="nonsense"):
        horus.nonsense
