# SPDX-License-Identifier: Apache-2.0
"""A face that lacks an option of the placer is named."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import check_options

CHECK = pathlib.Path(__file__).with_name("check_options.py")


class Options(unittest.TestCase):
    def told(self, records, faces):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {check_options.RECORDS: records, **dict.fromkeys(check_options.FACES, faces)}.items():
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            done = subprocess.run([sys.executable, CHECK, folder], capture_output=True, text=True)
            return done.returncode, done.stderr

    def test_options_that_every_face_has_are_fine(self):
        self.assertEqual(self.told("HORUS_OPTION(bool, terse, false)\n", "o.terse = flag"), (0, ""))

    def test_each_face_without_an_option_is_named(self):
        code, text = self.told("HORUS_OPTION(bool, terse, false)\nHORUS_OPTION(std::x, seed, 0, .least = 0)\n", "terse seeds")
        self.assertEqual(code, 1)
        for face in check_options.FACES:
            self.assertIn(f"{face}: lacks seed", text)
        self.assertNotIn("terse", text)

    def test_records_that_are_not_found_are_refused(self):
        self.assertIn("no options", self.told("OPTION(bool, terse)\n", "")[1])


if __name__ == "__main__":
    unittest.main()
