# SPDX-License-Identifier: Apache-2.0
"""horus itself: help, version, wrong command lines. Usage: see command.py."""

import pathlib
import subprocess
import tempfile
import unittest

from command import HORUS, RESNET, ROOT, Files, main, run

# Natural mistakes in the files of examples: the file; what stood there; what stands there instead; what is said of it.
SLIPS = (
    ("jobs.yaml", "batch: 64", "bath: 64", ":8: jobs[0]: expected a known key (did you mean 'batch'?), found 'bath'"),
    ("jobs.yaml", "batch: 64", "batch: sixty", ":8: jobs[0].batch: expected an integer from 1 to 2147483647, found 'sixty'"),
    ("jobs.yaml", "    batch: 64", "\tbatch: 64", ":8: expected YAML, found an error at column 1: 'illegal tab"),
    ("jobs.yaml", "momentum", "momentun", ":9: jobs[0].optimizer: expected one of sgd, momentum, "),
    ("jobs.yaml", "momentum", "momentun", "found 'momentun'; did you mean 'momentum'?"),
    ("jobs.yaml", "resnet50.onnx", "resnet5.onnx", "cannot open: No such file or directory; did you mean 'resnet50.onnx'?"),
    ("jobs.yaml", "{seq: 128}", "{sequence: 128}", "the graph has no dimension 'sequence'; its inputs name 'batch', 'seq'"),
    ("jobs.yaml", "memory_gib: 32", "memory_gib: 32GiB", ":12: jobs[0].memory_gib: expected a number from 0 to 1000000, found '32GiB'"),
    ("jobs.yaml", "memory_gib: 32", "memory_gb: 32", ":12: jobs[0]: expected a known key (did you mean 'memory_gib'?), found 'memory_gb'"),
    ("jobs.yaml", "slowdown_bound: 1.3", "slowdown_bound: 0.3", "slowdown_bound: expected a number from 1 to 1000000, found '0.3'"),
    ("jobs.yaml", "name: mobilenet-b", "name: mobilenet-a", ":56: jobs[6].name: expected a name of its own, found 'mobilenet-a' as in"),
    ("cluster.yaml", "type: a100-40gb, count", "type: a100-40, count", "nodes[0].gpus[0].type: GPU type: expected one of the"),
    ("cluster.yaml", "sharing: mps", "sharing: MPS", ":13: nodes[0].gpus[0].sharing: expected one of exclusive, time-slice, mps, mig, time-slice-or-mps, found 'MPS'; did you mean 'mps'?"),
    ("cluster.yaml", "3g.20gb, 3g.20gb", "3g.20gb, 4g.40gb", ":22: nodes[1].gpus[0].mig[1]: expected a MIG profile of a100-40gb ("),
    ("cluster.yaml", "state: drained", "state: draind", ":42: nodes[4].state: expected one of up, drained, down, found 'draind'; did you mean 'drained'?"),
    ("cluster.yaml", "node: v100, gpu: 0", "node: v10, gpu: 0", "on[0].node: expected the name of a node of this file, found 'v10'; did you mean 'v100'?"),
    ("cluster.yaml", "node: v100, gpu: 0", "node: v100, gpu: 9", "on[0].gpu: expected an integer from 0 to 1, found '9'"),
    ("decisions.csv", "devices", "device", ":1: header: expected one of time_s, event, job, node, devices, "),
    ("decisions.csv", "devices", "device", "found 'device'; did you mean 'devices'?"),
    ("decisions.csv", "gpt2", "gpt3", ":5: job: expected a name or id of the jobs file, found 'gpt3'; did you mean 'gpt2'?"),
    ("decisions.csv", "240,place", "240,start", ":5: event: expected place, release, finish, found 'start'"),
    ("compare/grid.yaml", "policy: first-fit", "policy: firstfit", ":37: policies[1].policy: policy: expected one of horus, "),
    ("compare/grid.yaml", "queue: fifo", "queue: fif", "defaults.queue: queue: expected one of fifo, "),
    ("compare/grid.yaml", "arrivals: poisson", "arrivals: poison", "arrivals: expected one of backlog, poisson, bursty, found 'poison'; did you mean 'poisson'?"),
    ("compare/grid.yaml", "baseline: exclusive", "baseline: exclusiv", ":41: baseline: expected one of exclusive, first fit, "),
    ("compare/grid.yaml", "seeds: {first: 1, count: 3}", "seeds: 3", ":42: seeds: expected a list, or {first: 1, count: 10}, found '3'"),
    ("compare/grid.yaml", "speeds.json", "speed.json", "speed.json: cannot open: No such file or directory; did you mean 'speeds.json'?"),
    ("compare/grid.yaml", "look_ahead: 5", "lookahead: 5", "defaults: expected a known key (did you mean 'look_ahead'?), found 'lookahead'"),
)


class TopLevel(Files):
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

    def test_a_slip_in_a_file_is_answered_with_its_place_and_the_nearest_name(self):
        for name, there, instead, message in SLIPS:
            with self.subTest(message):
                text = (ROOT / "examples" / name).read_text()
                self.assertIn(there, text)
                text = text.replace(there, instead, 1).replace("models/graphs", f"{ROOT}/examples/models/graphs")
                if name.startswith("compare"):  # its paths are seen from there
                    for path in ("speeds.json", "jobs.yaml"):
                        self.write(path, (ROOT / "examples/compare" / path).read_text())
                path = self.write(pathlib.Path(name).name, text)
                files = {kind: path if kind == name else ROOT / "examples" / kind for kind in ("cluster.yaml", "jobs.yaml", "decisions.csv")}
                code, out, err = run("compare", path, "--out", self.folder / "out") if name.startswith("compare") else run(
                    "shadow", "--cluster", files["cluster.yaml"], "--jobs", files["jobs.yaml"], "--log", files["decisions.csv"])
                self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
                self.assertTrue(err.startswith("horus: "))
                self.assertIn(message, err)

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
