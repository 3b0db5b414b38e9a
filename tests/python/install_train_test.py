# SPDX-License-Identifier: Apache-2.0
"""Training with the library of PyPI's xgboost, and without it."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

from conftest import built
from fit_test import DEVICE, measured, pairs

HERE = pathlib.Path(__file__).parent
NO_XGBOOST = "import sys; sys.modules['xgboost'] = None; "
FIT = ("import fit_test, horus; known = horus.Predictor(); data = fit_test.measured(horus, known); "
       "learn = lambda rounds: horus.Predictor.fit(*data[:4], rounds=rounds, mem_mib=data[4]['mem_mib'] * 2.0); ")


def run(program):
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": path})


@pytest.fixture
def xgboost():
    if importlib.util.find_spec("xgboost") is None:
        pytest.skip("xgboost is not installed: training with PyPI's library is untested")


def test_without_xgboost_a_fit_says_what_to_install_and_the_rest_works(horus):
    done = run(NO_XGBOOST + FIT + """
learn(-1)                       # the roofline alone is fitted without trees
try:
    learn(5)
except horus.FileError as error:
    print(error)
""")
    assert done.returncode == 0, done.stderr
    assert "pip install './bindings/python[train]' in the sources of libhorus" in done.stdout


def test_a_prediction_loads_no_xgboost(horus):
    done = run(FIT + "assert data[4]['mem_mib'][0] > 0; print(open('/proc/self/maps').read())")
    assert done.returncode == 0, done.stderr
    assert "_core." in done.stdout and "libxgboost" not in done.stdout and "gomp" not in done.stdout


def test_a_fit_finds_the_library_of_pypi_and_does_not_import_its_package(horus, xgboost):
    done = run(FIT + """
import sys
learned = learn(100)
print("xgboost" in sys.modules, learned.predict(data[0][0], data[1][0], data[3][0]).mem_mib / data[4]["mem_mib"][0])
""")
    assert done.returncode == 0, done.stderr
    imported, ratio = done.stdout.split()
    assert imported == "False" and float(ratio) == pytest.approx(2, rel=0.2)


def test_it_learns_what_a_build_of_ours_learns_bit_for_bit(horus, xgboost, predictor):
    ours = built("HORUS_TRAIN_LIBRARY", "lib/libhorus_train.so")
    if ours is None:
        pytest.skip("no build of libhorus_train.so (HORUS_TRAIN_LIBRARY names one)")
    graphs, types, families, runs, told = measured(horus, predictor)
    columns = {"mem_mib": told["mem_mib"] * 2.0, "step_time_us": told["step_time_us"] * 1.5}
    found, linked = (horus.Predictor.fit(graphs, types, families, runs, library=library, **columns) for library in ("", ours))
    assert found.to_bytes() == linked.to_bytes()
    found, linked = (horus.InterferenceModel.fit(model="boosted", library=library, **pairs(horus)) for library in ("", ours))
    assert found.to_bytes() == linked.to_bytes()
    assert found.slowdown(DEVICE, pairs(horus)["demands"][:2].reshape(1, 2)).estimate.min() > 1


def test_a_file_that_is_not_xgboost_is_named(horus, predictor):
    graphs, types, families, runs, told = measured(horus, predictor)
    for file, words in (("/no/libxgboost.so", "cannot be loaded"), ("libm.so.6", "has no XGBoostVersion")):
        with pytest.raises(horus.FileError, match=f"{file}.*{words}"):
            horus.Predictor.fit(graphs, types, families, runs, library=file, mem_mib=told["mem_mib"] * 2.0)


def test_the_library_is_looked_for_where_import_would(horus, tmp_path, monkeypatch):
    from horus._train import training_library

    monkeypatch.delitem(sys.modules, "xgboost", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "xgboost/lib").mkdir(parents=True)
    (tmp_path / "xgboost/__init__.py").write_text("raise AssertionError('imported')")
    importlib.invalidate_caches()
    assert training_library() == ""
    (tmp_path / "xgboost/lib/libxgboost.so").write_bytes(b"")
    assert training_library() == str(tmp_path / "xgboost/lib/libxgboost.so")
    assert training_library(pathlib.Path("/given")) == "/given"
