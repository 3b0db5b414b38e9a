# SPDX-License-Identifier: Apache-2.0
"""horus itself: help, version, wrong command lines. Usage: see command.py."""

import subprocess
import unittest

from command import HORUS, RESNET, main, run


class TopLevel(unittest.TestCase):
    def test_version_and_help_answer_zero(self):
        code, out, _ = run("--version")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"^horus \d+\.\d+\.\d+\n$")
        for args in (["--help"], ["inspect", "--help"], ["place", "--help"], ["shadow", "--help"],
                     ["gpus", "--help"]):
            code, out, _ = run(*args)
            self.assertEqual(code, 0, args)
            self.assertIn("Examples:", out)

    def test_wrong_command_lines_answer_two(self):
        for args in ([], ["frobnicate"], ["inspect"], ["place", "--cluster", "x"], ["gpus", "--nonsense"],
                     ["inspect", RESNET, "--batch", "0"], ["inspect", RESNET, "--batch", "many"]):
            code, out, err = run(*args)
            self.assertEqual(code, 2, args)
            self.assertNotEqual(err, "", args)
            self.assertEqual(out, "", args)

    def test_a_wrong_command_line_commands_no_terminal(self):
        code, out, err = run("gpus", "--nonsense\x1b[31m")
        self.assertEqual((code, out), (2, ""))
        self.assertIn(r"--nonsense\x1B[31m", err)
        self.assertNotIn("\x1b", err)
        self.assertIn("\nRun with --help", err)

    def test_lost_output_is_no_success(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([HORUS, "gpus"], stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"cannot write", done.stderr)


if __name__ == "__main__":
    main()
