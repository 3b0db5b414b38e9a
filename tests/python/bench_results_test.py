# SPDX-License-Identifier: Apache-2.0
"""bench/results holds what its schema says, and scripts/bench writes that."""

import json
import os
import subprocess
import sys

import pytest
from conftest import ROOT

jsonschema = pytest.importorskip("jsonschema")
FOLDER = ROOT / "bench/results"
SCHEMA = json.loads((FOLDER / "schema.json").read_text("utf-8"))


def own(out, *options):
    subprocess.run([sys.executable, ROOT / "bench/run.py", "own", "--smoke", "--by", "a test", "--out", out, *options], check=True,
                   stdout=subprocess.DEVNULL, env=dict(os.environ, PATH=f"{sys.prefix}/bin:{os.environ['PATH']}"))
    return json.loads((out / "own.json").read_text("utf-8"))


def test_results_are_as_the_schema_says():
    found = sorted(set(FOLDER.glob("*.json")) - {FOLDER / "schema.json"})
    assert found
    for path in found:
        jsonschema.validate(json.loads(path.read_text("utf-8")), SCHEMA)


def test_a_policy_of_ones_own_is_a_row_beside_the_built_in_ones(tmp_path, horus):
    (tmp_path / "my.py").write_text("def mine(candidate):\n    return None if len(candidate.demands) > 1 else 0.0\n", "utf-8")
    trace = tmp_path / "jobs.csv"
    trace.write_text("submit_s,duration_s\n" + "".join(f"{60 * i},{600 + 7 * i}\n" for i in range(50)), "utf-8")
    made = own(tmp_path, "--policy", str(tmp_path / "my.py:mine"), "--trace", str(trace))
    values = {row["metric"]: row["value"] for row in made["rows"]}
    assert values["mine slowdown_mean"] == values["exclusive slowdown_mean"] == 1  # it declines to share
    assert values["first-fit slowdown_mean"] > 1
    with pytest.raises(jsonschema.ValidationError):  # a smoke test is no result
        jsonschema.validate(made, SCHEMA)
    jsonschema.validate(made | {"smoke": False}, SCHEMA)
