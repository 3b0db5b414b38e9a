# SPDX-License-Identifier: Apache-2.0
"""Every example runs and prints what it promises."""

import subprocess
import sys

import pytest

from conftest import GRAPHS, ROOT

EXAMPLES = {
    "inspect_model.py": ([GRAPHS / "resnet50.onnx", 32], ("parameters", "25.6 M", "largest batch", "a100-40gb")),
    "place_queue.py": ([GRAPHS], ("vision     place", "too-large  reject", "without vision: <horus.Plan: 1 placed")),
    "learn.py": ([GRAPHS], ("covered", "before:", "after:")),
    "own_policy.py": ([], ("tightest", "exclusive", "horus")),
}


def test_no_example_is_forgotten():
    assert {path.name for path in (ROOT / "examples/python").glob("*.py")} == set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_runs(horus, name):
    arguments, promised = EXAMPLES[name]
    done = subprocess.run([sys.executable, ROOT / "examples/python" / name, *map(str, arguments)], capture_output=True,
                          text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    for words in promised:
        assert words in done.stdout, done.stdout
