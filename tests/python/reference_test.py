# SPDX-License-Identifier: Apache-2.0
"""The check that every public name is in the reference: it can fail. (scripts/docs builds the reference itself.)"""

import importlib.util
import pathlib
import zlib

import pytest

pytest.importorskip("sphinx")
PAGES = pathlib.Path(__file__).resolve().parents[2] / "docs/reference/pages.py"


@pytest.fixture(scope="module")
def pages(horus):
    spec = importlib.util.spec_from_file_location("reference_pages", PAGES)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def inventory(folder, names):
    """objects.inv with those names, as Sphinx writes it."""
    rows = "".join(f"{name} py:class 1 page.html#$ -\n" for name in names)
    head = "# Sphinx inventory version 2\n# Project: x\n# Version: 1\n# The remainder of this file is compressed using zlib.\n"
    (folder / "objects.inv").write_bytes(head.encode() + zlib.compress(rows.encode()))


def test_a_public_name_without_an_entry_is_told(pages, tmp_path):
    names = pages.public()
    assert {"horus.Graph", "horus.simulate", "horus.DemandFlag", "horus.plot.policies", "horus.report.write"} <= set(names)
    inventory(tmp_path, names)
    assert pages.check(tmp_path) == []
    inventory(tmp_path, [name for name in names if name != "horus.Placer"])
    assert pages.check(tmp_path) == ["horus.Placer"]


def test_each_public_name_has_a_place_on_one_page(pages, horus):
    placed = [name for names in pages.rooms().values() for name in names]
    assert sorted(placed) == sorted(horus.__all__)


def test_a_page_has_an_entry_for_each_of_its_names(pages, tmp_path):
    pages.write(tmp_path)
    text = "".join(path.read_text() for path in tmp_path.glob("*.rst"))
    for name in pages.public():
        module, _, short = name.rpartition(".")
        assert f":: {name}\n" in text or f".. data:: {short}\n" in text, name
