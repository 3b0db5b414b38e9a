# SPDX-License-Identifier: Apache-2.0
"""The module beside other large ones, in either order; what a wheel must not carry."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

from conftest import GRAPHS

# Each program does a small piece of real work and leaves a number in `answer`, which must not depend on its neighbour.
HORUS = f"""
import horus
graph = horus.Graph.from_onnx({str(GRAPHS / 'resnet18.onnx')!r})
demand = horus.Predictor().predict(graph, "t4", horus.RunSpec(batch=16))
cluster = horus.Cluster([horus.Node(id=1, cpu_milli=8_000, mem_mib=65_536, devices=[horus.Device("t4")] * 2)])
plan = horus.Placer("horus").place(cluster, [horus.Job(id=i, demands={{"t4": demand}}) for i in (1, 2, 3)])
cluster.apply(plan)
answer = (demand.mem_mib, demand.step_time_us, plan[2].text)
"""
ONNX = f"""
import onnx
model = onnx.load({str(GRAPHS / 'resnet18.onnx')!r})
model.graph.name = "other"
model = onnx.load_from_string(model.SerializeToString())
onnx.checker.check_model(onnx.helper.make_model(onnx.helper.make_graph(
    [onnx.helper.make_node("Relu", ["x"], ["y"])], "g",
    [onnx.helper.make_tensor_value_info("x", 1, [2])], [onnx.helper.make_tensor_value_info("y", 1, [2])])))
answer = (len(model.graph.node), model.graph.name)
"""
TORCH = """
import torch
torch.manual_seed(0)
x = torch.linspace(-1, 1, 64).reshape(64, 1)
net = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
step = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(50):
    loss = ((net(x) - x**2) ** 2).mean()
    step.zero_grad(); loss.backward(); step.step()
assert loss < 0.1
answer = round(float(loss), 4)
"""
ROWS = """
import numpy
rows = numpy.random.default_rng(0).normal(size=(200, 3))
target = rows[:, 0] * 2 + rows[:, 1]
"""
XGBOOST = ROWS + """
import xgboost
model = xgboost.train({"max_depth": 3, "nthread": 2}, xgboost.DMatrix(rows, label=target), num_boost_round=20)
told = model.predict(xgboost.DMatrix(rows))
assert abs(told - target).mean() < 0.5
answer = float(told[0])
"""
LIGHTGBM = ROWS + """
import lightgbm
model = lightgbm.train({"num_threads": 2, "verbosity": -1, "objective": "l2"}, lightgbm.Dataset(rows, target), 20)
told = model.predict(rows)
assert abs(told - target).mean() < 0.7
answer = float(told[0])
"""
PANDAS = ROWS + """
import pandas
answer = float(pandas.DataFrame(rows).assign(target=target).groupby(0).target.sum().sum())
"""
OTHERS = {"onnx": ONNX, "torch": TORCH, "xgboost": XGBOOST, "lightgbm": LIGHTGBM, "pandas": PANDAS}


def answers(*programs):
    """Of the programs one after the other, in one fresh process."""
    text = "".join(program + "\nprint(repr(answer))\n" for program in programs)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def alone(horus):
    return answers(HORUS)[0]


@pytest.mark.parametrize("other", OTHERS)
def test_both_work_in_either_order(alone, other):
    if importlib.util.find_spec(other) is None:
        pytest.skip(f"{other} is not installed: working beside it is untested")
    program = OTHERS[other]
    expected = answers(program)[0]
    assert answers(program, HORUS, program) == [expected, alone, expected]
    assert answers(HORUS, program, HORUS) == [alone, expected, alone]


def test_all_work_together(alone):
    found = [name for name in OTHERS if importlib.util.find_spec(name) is not None]
    if len(found) < 2:
        pytest.skip(f"of {', '.join(OTHERS)} only {found} installed: working beside several is untested")
    assert answers(*[OTHERS[name] for name in found], HORUS)[-1] == alone
    assert answers(HORUS, *[OTHERS[name] for name in found], HORUS)[-1] == alone


def test_the_face_needs_the_module_only_when_it_is_used(horus):
    program = "import sys, horus; assert 'horus._core' not in sys.modules; horus.Job(); assert 'horus._core' in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_module_is_small_and_needs_no_openmp(horus):
    from horus import _core

    path = pathlib.Path(_core.__file__)
    needed = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
    assert "gomp" not in needed and "xgboost" not in needed and "libhorus.so" not in needed
    if "debug_info" not in subprocess.run(["readelf", "-S", path], capture_output=True, text=True, check=True).stdout:
        assert path.stat().st_size < 15 * 2**20


def test_every_name_is_there_and_documented(horus):
    for name in horus.__all__:
        value = getattr(horus, name)
        assert not isinstance(value, type) or value.__doc__, name
    assert set(horus.__all__) <= set(dir(horus)) and horus.__version__.count(".") == 2
    with pytest.raises(AttributeError, match="nonsense"):
        horus.nonsense
