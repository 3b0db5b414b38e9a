# SPDX-License-Identifier: Apache-2.0
"""Tests of check_workflows.py: it finds rights, actions and steps that should not be there, and nothing else."""

import pathlib
import unittest

import check_workflows

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GOOD = """# SPDX-License-Identifier: Apache-2.0
name: x
permissions:
  contents: read
jobs:
  a:
    steps:
      - uses: actions/checkout@0123456789012345678901234567890123456789 # v4.2.2
        with:
          persist-credentials: false
      - run: ./scripts/test --preset asan # not scripts/nowhere
"""


def found(old="", new=""):
    assert old in GOOD
    return list(check_workflows.problems("x.yml", GOOD.replace(old, new) if old else GOOD, ROOT))


class Workflows(unittest.TestCase):
    def test_takes_what_is_right(self):
        self.assertEqual(found(), [])

    def test_finds_what_is_wrong(self):
        for old, new in (("contents: read", "contents: write"), ("permissions:\n  contents: read\n", ""), (" # v4.2.2", ""),
                         ("0123456789012345678901234567890123456789", "v4"), ("persist-credentials: false", "fetch-depth: 0"),
                         ("./scripts/test", "./scripts/nowhere"), ("# SPDX", "# "), ("name: x", "name: x\non: pull_request_target")):
            self.assertEqual(len(found(old, new)), 1, (old, new))


if __name__ == "__main__":
    unittest.main()
