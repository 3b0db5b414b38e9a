# SPDX-License-Identifier: Apache-2.0
"""Reports need no compiled module: where the package is not installed its source folder serves."""

import importlib
import json
import pathlib
import sys
import types

import pytest

sys.path.append(str(pathlib.Path(__file__).parent))  # the import mode of pytest adds nothing; behind ours, for its conftest
from made_up_results import HOSTILE, comparison, potential, write_comparison, write_timeline  # noqa: E402

SOURCE = pathlib.Path(__file__).resolve().parents[3] / "bindings/python/src/horus"

try:
    importlib.import_module("horus.report")
except ImportError:
    for name in [name for name in sys.modules if name == "horus" or name.startswith("horus.")]:
        del sys.modules[name]
    package = types.ModuleType("horus")
    package.__path__ = [str(SOURCE)]
    sys.modules["horus"] = package

pytest.importorskip("jinja2")
pytest.importorskip("plotly")


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """Paths of everything a report can take."""
    folder = tmp_path_factory.mktemp("results")
    (folder / "potential.json").write_text(json.dumps(potential()))
    write_comparison(folder / "small", *comparison({"exclusive": [400.0, 420.0], "horus": [100.0, 100.0]}))
    write_comparison(folder / "large", *comparison({"exclusive": [90.0, 80.0], "horus": [50.0, 50.0]}))
    write_timeline(folder)
    write_timeline(folder, "base", "exclusive", 4)
    (folder / "nodes.csv").write_text("node,gpu_type,gpus\nn0,v100,2\nn1,k80,2\n")
    (folder / "trace.csv").write_text("id,profile\n" + "".join(f'{i},"{["lm", HOSTILE][i % 2]}"\n' for i in range(6)))
    (folder / "pairs.csv").write_text(f'gpu,victim,other,slowdown\nv100,lm,lm,1.4\nv100,lm,"{HOSTILE}",1.2\nv100,"{HOSTILE}",lm,1.25\n')
    names = ("potential.json", "small", "large", "run.csv", "base.csv", "nodes.csv", "trace.csv", "pairs.csv")
    return {"folder": folder, "paths": [str(folder / name) for name in names],
            "gpus": {str(folder / "small"): 8, str(folder / "large"): 16}}
