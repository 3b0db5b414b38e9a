# SPDX-License-Identifier: Apache-2.0
"""The notebooks run, and say what they are shown to say. Pictures are drawn and not compared."""

import pytest
from conftest import ROOT

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")

NOTEBOOKS = sorted((ROOT / "examples/notebooks").glob("*.ipynb"))


def said(notebook):
    """Text of each cell of code, without what describes a picture."""
    cells = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            texts = [out.get("text") or out.get("data", {}).get("text/plain", "") for out in cell.outputs]
            cells.append("".join(text for text in texts if not text.startswith("<Figure")))
    return cells


def test_there_are_notebooks():
    assert {path.stem for path in NOTEBOOKS} == {"first_hour", "own_policy", "services", "your_cluster"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_says_what_it_shows(path):
    shown = nbformat.read(path, as_version=4)
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, resources={"metadata": {"path": str(path.parent)}}).execute()
    assert said(notebook) == said(shown)
    assert sum("image/png" in out.get("data", {}) for cell in notebook.cells for out in cell.get("outputs", ())) >= 1
