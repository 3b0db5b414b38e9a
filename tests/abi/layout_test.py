# SPDX-License-Identifier: Apache-2.0
"""What counts as a field that moved, on a header made up for it and compiled."""

import pathlib
import tempfile
import unittest

import check_since
import declarations
import layout

TEXT = """/* SPDX-License-Identifier: Apache-2.0 */
/* Since 0.1 where nothing else is said. */
#include <stdint.h>
typedef struct horus_row {
  uint32_t struct_size;
  int32_t kind;
  double x[4];
} horus_row;
"""
KEPT = {"horus_row": "#40", "horus_row.struct_size": "@0", "horus_row.kind": "@4", "horus_row.x": "@8"}


def read(text):
    """The declarations of a header, as measured."""
    with tempfile.TemporaryDirectory() as root:
        folder = pathlib.Path(root) / "horus"
        folder.mkdir()
        (folder / "topic.h").write_text(text, encoding="utf-8")
        found = declarations.read_headers(folder)
        told = layout.measured(folder, found)
    for one in found:
        one.value = told.get(one.name)
    return found


def differences(old, new, text=TEXT):
    if old not in text:
        raise ValueError(f"not in the header: {old}")
    found = read(text.replace(old, new, 1))
    broken = check_since.breaks(found, {name: ("0.1", kept) for name, kept in KEPT.items()})
    return list(layout.differences({one.name: one.value for one in found}, KEPT)), broken


class Layout(unittest.TestCase):
    def test_a_compiler_tells_each_field_and_struct(self):
        self.assertEqual({one.name: one.value for one in read(TEXT)}, KEPT)
        self.assertEqual(differences("kind", "kind"), ([], []))

    def test_a_field_that_moves_is_named_with_expected_and_found(self):
        moved = ["horus_row.x is @16, expected @8"]
        for new in ("int32_t kind; int32_t more", "int64_t kind"):
            told, broken = differences("int32_t kind", new)
            self.assertIn(moved[0], told)
            self.assertIn(moved[0], broken)

    def test_a_struct_that_grows_at_its_end_is_accepted_and_breaks_nothing(self):
        told, broken = differences("x[4];", "x[4]; float y;")
        self.assertEqual(broken, [])
        self.assertEqual([line.split(":")[0] for line in told], [
            "horus_row is #48, and the ledger has #40", "horus_row.y is @40, and the ledger has nothing"])

    def test_a_struct_that_shrinks_breaks(self):
        shrunk = ["horus_row is #32, expected #40"]
        self.assertEqual(differences("x[4]", "x[3]"), (shrunk, shrunk))

    def test_the_ledger_keeps_what_was_measured(self):
        with tempfile.TemporaryDirectory() as root:
            ledger = pathlib.Path(root) / "since.txt"
            ledger.write_text("# words\n0.1 horus_row #40\n", encoding="utf-8")
            check_since.accept(read(TEXT.replace("x[4];", "x[4]; float y; /* Since 0.2. */")), ledger)
            kept = check_since.read_ledger(ledger)
        self.assertEqual(kept["horus_row"], ("0.1", "#48"))
        self.assertEqual(kept["horus_row.y"], ("0.2", "@40"))


if __name__ == "__main__":
    unittest.main()
