# SPDX-License-Identifier: Apache-2.0
"""horus itself: help, version, wrong command lines. Usage: see command.py."""

import pathlib
import subprocess
import tempfile
import unittest

from command import HORUS, RESNET, ROOT, main, run


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

    def test_a_slip_is_answered_with_the_nearest_name(self):
        place = ["place", "--cluster", ROOT / "examples/cluster.yaml"]
        jobs = ["--jobs", ROOT / "examples/jobs.yaml"]
        for args, message in (
                (["plcae", *place[1:]], "horus: expected a command, found 'plcae'; did you mean 'place'?"),
                (["reprot", "x", "-o", "y"], "horus: expected a command, found 'reprot'; did you mean 'report'?"),
                (["traces", "shwo", "x"], "horus traces: expected a command, found 'shwo'; did you mean 'show'?"),
                (["frobnicate"], "horus: expected a command, found 'frobnicate'"),
                (["place", "cluster.yaml", "jobs.yaml"], "horus place: expected options, --cluster FILE --jobs FILE, found 'cluster.yaml'"),
                ([*place, "--jbos=x"], "horus place: expected an option of this command, found '--jbos'; did you mean '--jobs'?"),
                (["inspect", RESNET, "--bacth", "64"], "found '--bacth'; did you mean '--batch'?"),
                (["gpus", "a100", "t4"], "horus gpus: expected no more arguments, found 't4'"),
                ([*place, *jobs, "--policy", "horsu"], "found 'horsu'; did you mean 'horus'?"),
                ([*place, *jobs, "--interference", "utilization"], "found 'utilization'; did you mean 'utilisation'?"),
                (["inspect", str(RESNET).replace("50.", "5.")], "No such file or directory; did you mean 'resnet50.onnx'?"),
                (["inspect", RESNET, "--optimizer", "adma"], "found 'adma'; did you mean 'adam'?"),
                (["traces", "show", "--format", "gavle", RESNET], "found 'gavle'; did you mean 'gavel'?")):
            code, out, err = run(*args)
            self.assertEqual((code, out), (2, ""), args)
            self.assertIn(message, err.splitlines()[0])

    def test_a_wrong_value_is_said_with_what_was_expected(self):
        place = ["place", "--cluster", ROOT / "examples/cluster.yaml"]
        jobs = ["--jobs", ROOT / "examples/jobs.yaml"]
        for args, message in (
                ([], "horus: expected a command, found none"),
                (place, "horus place: expected --jobs, found none"),
                (["place", *jobs, "--cluster"], "horus place: --cluster: expected FILE, found none"),
                ([*place, *place[1:], *jobs], "horus place: --cluster: expected once, found 2 times"),
                ([*place, *jobs, "--max-tenants", "x"], "horus place: --max-tenants: expected a number from 1 to 256, found 'x'"),
                ([*place, *jobs, "--sharing-quota", "2"], "horus place: --sharing-quota: expected a number from 0 to 1, found '2'"),
                ([*place, *jobs, "--seed", "-1"], "horus place: --seed: expected a number of at least 0, found '-1'"),
                ([*place, *jobs, "--host-grants", "state"],
                 "horus place: --host-grants: expected one of resize,placement,stated, found 'state'; did you mean 'stated'?"),
                ([*place, "--jobs", ROOT / "examples/jobs.yml"], "jobs.yml: cannot open: No such file or directory; did you mean 'jobs.yaml'?")):
            code, out, err = run(*args)
            self.assertEqual((code, out), (2, ""), args)
            self.assertIn(message, err.splitlines()[0])

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

    def test_no_file_that_was_given_is_written_over(self):
        with tempfile.TemporaryDirectory() as folder:
            cluster = pathlib.Path(folder, "cluster.yaml")
            cluster.write_bytes((ROOT / "examples/cluster.yaml").read_bytes())
            jobs, new = ROOT / "examples/jobs.yaml", pathlib.Path(folder, "new.json")
            place = ["place", "--cluster", cluster, "--jobs", jobs]
            for outputs in (["--out", cluster], ["--out", f"{folder}/./cluster.yaml"],
                            ["--out", new, "--prometheus", f"{folder}/../{cluster.parent.name}/new.json"]):
                code, out, err = run(*place, *outputs)
                self.assertEqual((code, out), (2, ""), outputs)
                self.assertIn("--out: expected a file that no other option names", err)
            self.assertEqual(cluster.read_bytes(), (ROOT / "examples/cluster.yaml").read_bytes())
            self.assertFalse(new.exists())
            place[2] = ROOT / "examples/cluster.yaml"
            code, _, err = run(*place, "--out", "/dev/null", "--prometheus", "/dev/null")
            self.assertEqual((code, err), (0, ""))


if __name__ == "__main__":
    main()
