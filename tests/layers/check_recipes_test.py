# SPDX-License-Identifier: Apache-2.0
"""Recipes that do not match their tree are named."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).with_name("check_recipes.py")


class Recipes(unittest.TestCase):
    def told(self, row, **files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "src").mkdir()
            (root / "CONTRIBUTING.md").write_text(f"## How to\n\n{row}\n", encoding="utf-8")
            for name, text in files.items():
                (root / "src" / f"{name}.cc").write_text(text, encoding="utf-8")
            done = subprocess.run([sys.executable, CHECK, root], capture_output=True, text=True)
            return done.returncode, done.stderr

    def test_a_row_that_lists_its_files_is_fine(self):
        self.assertEqual(self.told("| a policy | `lucid` | `src/a.cc` |", a="MakeLucid", b="others"), (0, ""))

    def test_a_file_that_is_not_listed_is_named(self):
        self.assertIn("src/b.cc holds it", self.told("| a policy | `lucid` | `src/a.cc` |", a="lucid", b="lucid")[1])

    def test_a_file_that_does_not_hold_it_or_is_gone_is_named(self):
        code, text = self.told("| a policy | `lucid` | `src/a.cc`, `docs/gone.md` |", a="others")
        self.assertEqual(code, 1)
        self.assertIn("src/a.cc is listed", text)
        self.assertIn("docs/gone.md is listed", text)

    def test_a_page_without_recipes_is_refused(self):
        self.assertIn("no recipes", self.told("nothing")[1])


if __name__ == "__main__":
    unittest.main()
