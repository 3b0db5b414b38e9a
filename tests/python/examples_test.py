# SPDX-License-Identifier: Apache-2.0
"""Every example runs and prints what it promises."""

import importlib.util
import subprocess
import sys

import pytest

from conftest import GRAPHS, ROOT

EXAMPLES = {
    "../loop/loop.py": ([], ((ROOT / "examples/loop/output.txt").read_text("utf-8"),)),  # as of C and C++: tests/install
    "inspect_model.py": ([GRAPHS / "resnet50.onnx", 32], ("parameters", "25.6 M", "largest batch", "a100-40gb")),
    "inspect_torch.py": ([2, 1024], ("parameters", "0.09 x 10^9", "a prompt", "columns", "torch included")),
    "place_queue.py": ([], ("resnet50         place", "another:", "instead:", "12 jobs")),
    "learn.py": ([GRAPHS], ("covered", "before:", "after:")),
    "own_policy.py": ([], ("tightest", "first-fit", "exclusive", "horus")),
    "inputs.py": (["--seconds", 0.5], ("measured", "GPU: 50 ms a step", "cores keep it busy", "cores instead of", "steps/s")),
    "loaders.py": (["--seconds", 0.5], ("torch_files", "webdataset_loader", "tensorflow_data")),  # more: loaders_test.py
    "compare_policies.py": (["--jobs", 40, "--seeds", 3], ("jct_mean_s", "change", "±", "horus", "exclusive", "40 jobs")),
}
NEEDS = {"inspect_torch.py": ("torch", "onnxscript")}


def ended(name, *arguments):
    return subprocess.run([sys.executable, ROOT / "examples/python" / name, *map(str, arguments)], capture_output=True,
                          text=True, check=False, timeout=600)


def run(name, *arguments):
    done = ended(name, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_example_is_forgotten():
    elsewhere = {"public_traces.py"}  # public_traces_test.py
    assert {path.name for path in (ROOT / "examples/python").glob("*.py")} == {n for n in EXAMPLES if "/" not in n} | elsewhere


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_runs(horus, name):
    for needed in NEEDS.get(name, ()):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed")
    arguments, promised = EXAMPLES[name]
    told = run(name, *arguments)
    for words in promised:
        assert words in told, told


def test_with_horus_jobs_end_soonest(horus):
    told = {line.split()[0]: float(line.split()[3]) for line in run("own_policy.py").splitlines()}
    assert told["horus"] < told["first-fit"] < told["exclusive"]


@pytest.mark.parametrize(("name", "arguments"), [("inspect_model.py", []), ("inspect_model.py", ["x.onnx", "many"]), ("learn.py", []),
                                                 ("place_queue.py", ["a", "b", "c"])])
def test_wrong_arguments_are_answered_with_the_usage(horus, name, arguments):
    done = ended(name, *arguments)
    assert done.returncode == 2 and done.stderr.startswith(f"usage: {name}"), done.stderr


def test_policies_are_compared_on_a_published_trace(horus, tmp_path):
    trace = tmp_path / "pods.csv"  # openb's columns
    trace.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,"
                     "scheduled_time\n" + "".join(
                         f"pod-{i},1000,1024,1,1000,,LS,Succeeded,{i * 10},{i * 10 + 600},{i * 10}\n" for i in range(30)))
    assert "30 jobs" in run("compare_policies.py", trace, "--seeds", 2)


def test_a_comparison_is_drawn(horus, tmp_path):
    pytest.importorskip("matplotlib")
    run("compare_policies.py", "--jobs", 20, "--seeds", 2, "--plot", tmp_path / "policies.png")
    assert (tmp_path / "policies.png").stat().st_size > 1000
