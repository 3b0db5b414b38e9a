# SPDX-License-Identifier: Apache-2.0
"""Tests of check_install.py: it finds advice to install a name that nobody owns, and nothing else."""

import unittest

import check_install


def found(line, name="docs/x.md"):
    return len(list(check_install.problems(name, line)))


class Install(unittest.TestCase):
    def test_finds_the_bare_name(self):
        for line in ("pip install libhorus", "python3 -m pip install 'libhorus[report]'", "pip install -q --user libhorus==0.1",
                     "conda install libhorus", "(`libhorus[plot]`)", "pip install `libhorus`"):
            self.assertEqual(found(line), 1, line)

    def test_takes_paths_files_and_other_names(self):
        for line in ("pip install './bindings/python[report]'", "pip install build/wheel/libhorus-*-cp311-*.whl",
                     "apt install libhorus-dev", "pip install xgboost", "build and install libhorus.a too", "libhorus is installed", "libhorus.so[1]"):
            self.assertEqual(found(line), 0, line)

    def test_programs_say_it_in_one_place(self):
        line = "pip install './bindings/python[report]'"
        self.assertEqual(found(line, "src/cli/hand_over.cc"), 1)
        self.assertEqual(found(line, "src/base/python_package.h"), 0)


if __name__ == "__main__":
    unittest.main()
