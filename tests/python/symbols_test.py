# SPDX-License-Identifier: Apache-2.0
"""Every function of the C ABI is reachable from Python, or docs/python.md says why it is not."""

import re

from conftest import ROOT

SECTION = "## Left out"


def exported():
    lines = (ROOT / "tests/abi/lab_symbols.txt").read_text().splitlines()
    return {line.split()[0] for line in lines if line.startswith("horus_")}


def left_out():
    text = (ROOT / "docs/python.md").read_text()
    rows = re.findall(r"^\| `(horus_\w+)` \| (.+) \|$", text[text.index(SECTION):], re.MULTILINE)
    return dict(rows)


def code(folder, pattern):
    return "\n".join(re.sub(r"//.*", "", path.read_text()) for path in sorted((ROOT / folder).glob(pattern)))


def called():
    """By the module itself, or by the readers of the C++ face that it calls, and those that they call."""
    text = code("bindings/python/src/core", "*.*")
    readers = dict(re.findall(r"^template <typename AnyCaller[^\n]*\n[^\n]*?(Read\w+)\((.*?)^}",
                              code("include/horus", "**/*.hpp"), re.MULTILINE | re.DOTALL))
    for name in sorted(readers, key=lambda name: name != "ReadDecision"):  # which calls others
        text += readers[name] if re.search(rf"\b{name}\(", text) else ""
    return set(re.findall(r"\bhorus_\w+\b", text)) & exported()


def test_every_function_is_called_or_left_out_with_a_reason():
    assert exported() - called() - set(left_out()) == set()
    assert all(len(reason) > 10 for reason in left_out().values())


def test_nothing_is_told_left_out_that_is_there():
    assert set(left_out()) <= exported() - called()
