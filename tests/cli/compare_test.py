# SPDX-License-Identifier: Apache-2.0
"""horus compare. Usage: see command.py."""

import csv
import io
import json
import os
import resource
import signal
import subprocess
import time
import unittest

from command import HORUS, ROOT, Files, check_record, main, run

EXAMPLE = ROOT / "examples/compare"
RESULTS = ("results.csv", "results.json")


class Compare(Files):
    def grid(self, text=None, **changes):
        """The example's grid in the test's folder, or `text`, with texts replaced."""
        for name in ("speeds.json", "jobs.yaml"):
            self.write(name, (EXAMPLE / name).read_text())
        text = text or (EXAMPLE / "grid.yaml").read_text()
        for old, new in changes.values():
            self.assertIn(old, text)
            text = text.replace(old, new)
        return self.write("grid.yaml", text)

    def small(self):
        return self.grid(jobs=("jobs: 300", "jobs: 60"), sample=("sample: 120", "sample: 20"))

    def compare(self, *args):
        code, out, err = run("compare", *args)
        self.assertEqual((code, err), (0, ""), args)
        return out

    def test_the_bundle_of_the_beliefs_may_be_a_word(self):
        for word in ("builtin", "none"):
            self.small()
            grid = self.grid((self.folder / "grid.yaml").read_text(), bundle=("beliefs:\n", f"beliefs:\n  bundle: {word}\n"))
            self.compare(grid, "--out", self.folder / word)

    def results(self, folder):
        return [(folder / name).read_bytes() for name in RESULTS]

    def test_the_example_runs_and_compares(self):
        out = self.folder / "results"
        text = self.compare(EXAMPLE / "grid.yaml", "--out", out, "--threads", 2)
        self.assertIn("45 runs, 0 of them finished before", text)
        self.assertIn("open at load 1.2, mean of 3 seeds", text)
        rows = list(csv.DictReader(io.StringIO((out / "results.csv").read_text())))
        self.assertEqual(len(rows), 45)
        self.assertEqual([row["workload"] for row in rows[::15]], ["backlog", "open at load 0.8", "open at load 1.2"])
        document = json.loads((out / "results.json").read_text())
        self.check_golden("compare_keys.txt", document)
        self.assertEqual(len(document["summary"]), 15)
        self.assertEqual(document["cluster"], {"gpus": {"v100-sxm2-16gb": 16}})
        check_record(self, json.loads((out / "machine.json").read_text()), "compare", EXAMPLE / "grid.yaml", "--out", out)
        for row in rows:
            self.assertEqual(int(row["finished"]), 120, row)
            if row["policy"] == "exclusive":
                self.assertEqual(float(row["slowdown_mean"]), 1)
        # Nobody may gain more than the pairs give.
        rates = {row["policy"]: float(row["work_rate"]) for row in rows if row["workload"] == "backlog"}
        self.assertLess(rates["oracle"], 1.9)

    def test_threads_shards_and_order_change_no_byte(self):
        grid = self.small()
        one, two, parts = (self.folder / name for name in ("one", "two", "parts"))
        self.compare(grid, "--out", one, "--threads", 1)
        self.compare(grid, "--out", two, "--threads", 2)
        for shard in (2, 0, 1):
            self.compare(grid, "--out", parts, "--shard", f"{shard}/3")
        self.assertFalse((parts / "results.csv").exists())
        self.assertEqual(len(list((parts / "runs").iterdir())), 45)
        self.compare(grid, "--out", parts, "--merge")
        self.assertEqual(self.results(one), self.results(two))
        self.assertEqual(self.results(one), self.results(parts))

    def test_the_slurm_example_does_every_part_and_merges(self):
        out, whole = self.folder / "parts", self.folder / "whole"
        env = {"PATH": f"{HORUS.parent}:{os.environ['PATH']}", "GRID": str(self.small()), "OUT": str(out),
               "SLURM_ARRAY_TASK_COUNT": "2", "SLURM_ARRAY_TASK_MIN": "5", "SLURM_CPUS_PER_TASK": "1"}
        for task in ({"SLURM_ARRAY_TASK_ID": "5"}, {"SLURM_ARRAY_TASK_ID": "6"}, {"MERGE": "1"}):
            subprocess.run([EXAMPLE / "slurm.sh"], env=env | task, check=True, stdout=subprocess.DEVNULL)
        self.compare(self.small(), "--out", whole)
        self.assertEqual(self.results(out), self.results(whole))

    def test_shards_share_no_run(self):
        grid = self.small()
        names = []
        for shard in range(4):
            out = self.folder / str(shard)
            self.compare(grid, "--out", out, "--shard", f"{shard}/4")
            names.append({path.name for path in (out / "runs").iterdir()})
        self.assertEqual(sum(map(len, names)), len(set.union(*names)))

    def test_only_what_is_missing_runs_again(self):
        grid = self.small()
        out = self.folder / "out"
        self.compare(grid, "--out", out)
        before = self.results(out)
        for path in sorted((out / "runs").iterdir())[:7]:
            path.unlink()
        self.assertIn("45 runs, 38 of them finished before", self.compare(grid, "--out", out))
        self.assertEqual(self.results(out), before)
        self.assertIn("45 runs, 0 of them finished before", self.compare(grid, "--out", out, "--fresh"))
        self.assertEqual(self.results(out), before)

    def test_a_name_changes_no_run_and_a_setting_does(self):
        out = self.folder / "out"
        self.compare(self.small(), "--out", out)
        text = self.small().read_text()
        renamed = self.grid(text, name=("name: first fit", "name: something else"))
        self.assertIn("45 runs, 45 of them", self.compare(renamed, "--out", out))
        self.assertIn("something else,1,", (out / "results.csv").read_text())
        changed = self.grid(text, bound=("policy: horus}", "policy: horus, slowdown_bound: 3}"))
        self.assertIn("45 runs, 36 of them", self.compare(changed, "--out", out))

    def test_what_an_interruption_leaves_is_gone_on_from(self):
        grid = self.grid(jobs=("jobs: 300", "jobs: 3000"), sample=("sample: 120", "sample: 1000"))
        out = self.folder / "out"
        with subprocess.Popen([HORUS, "compare", grid, "--out", out, "--threads", "1"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE) as process:
            while process.poll() is None and not list((out / "runs").glob("*.json")):
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            error = process.stderr.read().decode()
        if process.returncode == 0:
            self.skipTest("finished before the signal came")
        self.assertEqual(process.returncode, -signal.SIGINT)
        self.assertIn("interrupted", error)
        finished = {path: path.read_bytes() for path in (out / "runs").glob("*.json")}
        self.assertGreater(len(finished), 0)
        self.assertIn(f"45 runs, {len(finished)} of them finished before", self.compare(grid, "--out", out))
        for path, text in finished.items():
            self.assertEqual(path.read_bytes(), text)
        whole = self.folder / "whole"
        self.compare(grid, "--out", whole)
        self.assertEqual(self.results(out), self.results(whole))

    def test_merging_tells_what_is_missing(self):
        grid = self.small()
        out = self.folder / "out"
        self.compare(grid, "--out", out, "--shard", "0/2")
        code, _, err = run("compare", grid, "--out", out, "--merge")
        self.assertEqual(code, 2)
        self.assertIn("expected all 45 runs of the grid, 22 are missing", err)

    def test_nothing_is_told_as_a_share_of_a_baseline_of_zero(self):
        grid = self.small()
        out = self.folder / "out"
        self.compare(grid, "--out", out)
        for wait in (0, 1e-13):  # what rounding may leave of it
            for row in csv.DictReader(io.StringIO((out / "results.csv").read_text())):
                path = out / "runs" / f"{row['run']}.json"
                run = json.loads(path.read_text())
                run["metrics"]["wait_mean_s"] = wait if row["policy"] == "exclusive" else 1000.3
                path.write_text(json.dumps(run))
            text = self.compare(grid, "--out", out, "--merge", "--metrics", "wait_mean_s,finished")
            self.assertEqual(text.count("1000.3       –        20  +0.0 ± 0.0 %"), 12, text)

    def test_policies_that_finish_other_jobs_have_no_change_of_times(self):
        grid = self.small()
        out = self.folder / "out"
        self.compare(grid, "--out", out)
        for row in csv.DictReader(io.StringIO((out / "results.csv").read_text())):
            if row["policy"] == "horus" and row["workload"] == "backlog":
                path = out / "runs" / f"{row['run']}.json"
                run = json.loads(path.read_text())
                run["metrics"] |= {"finished": 0, "jct_mean_s": None, "wait_mean_s": 1.0}
                path.write_text(json.dumps(run))
        text = self.compare(grid, "--out", out, "--merge", "--metrics", "jct_mean_s,wait_mean_s,work_rate")
        backlog, *others = text.strip().split("\n\n")
        self.assertRegex(backlog, r"horus +0 of 20 +– +– +1 +– +0\.\d+ +[+-]")
        self.assertRegex(backlog, r"first fit +20 of 20 +[\d.e+]+ +[+-]")
        self.assertIn("those of policies that finish different jobs cannot be compared.", " ".join(backlog.split()))
        self.assertNotIn("finished", "".join(others))
        document = json.loads((out / "results.json").read_text())
        times = next(row for row in document["summary"] if row["policy"] == "horus")["metrics"]["wait_mean_s"]
        self.assertEqual((times["mean"], times["difference"]), (1, None))
        self.assertEqual(document["policies"][3], {"name": "horus", "look_ahead": 5})

    def test_damaged_runs_are_refused(self):
        grid = self.small()
        out = self.folder / "out"
        self.compare(grid, "--out", out)
        first = next((out / "runs").iterdir())
        whole = json.loads(first.read_text())
        for text, found in (("{}", "a finished run"), ("[1]", "a finished run"), ("{", "a finished run"),
                            (json.dumps(whole | {"schema": 5}), "a finished run"),
                            (json.dumps(whole | {"metrics": 5}), "a finished run"),
                            (json.dumps(whole | {"run": 5}), "the run that its name says"),
                            (json.dumps(whole | {"run": "another"}), "the run that its name says")):
            first.write_text(text)
            code, _, err = run("compare", grid, "--out", out)
            self.assertEqual(code, 2, text)
            self.assertIn("expected " + found, err)
            self.assertIn(str(first), err)

    def test_damaged_timings_count_as_none(self):
        grid = self.small()
        out = self.folder / "out"
        self.compare(grid, "--out", out)
        before = self.results(out)
        for path, text in zip(sorted((out / "timings").iterdir()), ("[", "{}", '{"decisions": -1, "seconds": "x"}',
                                                                    '{"decisions": 1e300}')):
            path.write_text(text)
        self.compare(grid, "--out", out)
        self.assertEqual(self.results(out), before)
        rows = list(csv.DictReader(io.StringIO((out / "timings.csv").read_text())))
        self.assertEqual(sum(row["decisions"] == "0" for row in rows), 4)

    def test_as_many_threads_as_can_begin(self):
        stack, room = 256 << 20, 3 << 29  # bytes of a thread and of all: some fit, 45 do not

        def limit():
            for what, most in ((resource.RLIMIT_STACK, stack), (resource.RLIMIT_AS, room)):
                resource.setrlimit(what, (most, resource.getrlimit(what)[1]))

        def limited(*args):
            return subprocess.run([HORUS, *args], preexec_fn=limit, check=False, capture_output=True, text=True)

        if limited("gpus").returncode != 0:
            self.skipTest("a sanitiser wants more room")
        grid = self.small()
        out, whole = self.folder / "out", self.folder / "whole"
        self.compare(grid, "--out", whole)
        done = limited("compare", grid, "--out", out, "--threads", "45")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.results(out), self.results(whole))

    def test_results_may_lie_in_a_folder_whose_name_is_not_utf8(self):
        out = self.folder / os.fsdecode(b"results\xff")
        self.compare(self.small(), "--out", out)
        self.assertIn("results\ufffd", json.loads((out / "machine.json").read_text())["command"])
        self.assertEqual(len(json.loads((out / "results.json").read_text())["runs"]), 45)

    def test_bad_options(self):
        grid = self.small()
        for args, message in (
            (["--shard", "3/3"], "--shard: expected I/N with I from 0 to N - 1, found '3/3'"),
            (["--shard", "x"], "--shard"),
            (["--metrics", "jct"], "--metrics: expected some of jobs, "),
        ):
            code, _, err = run("compare", grid, "--out", self.folder / "out", *args)
            self.assertEqual(code, 2, args)
            self.assertIn(message, err)

    def test_bad_grids_say_where(self):
        for change, message in (
            (("baseline: exclusive", "baseline: nobody"), "baseline: expected one of exclusive, first fit, horus-paper, horus, oracle, found 'nobody'"),
            (("policy: horus-paper", "policy: horus-papr"), "policies[2].policy: "),
            (("queue: fifo", "queue: fifa"), "defaults.queue: "),
            (("preset: philly, jobs: 300,", "preset: phily, jobs: 300,"), "workloads[1].synthetic.preset: "),
            (("{policy: oracle}", "{policy: oracle, interference: truht}"), "truht"),
            (("v100: v100-sxm2-16gb}}", "v101: v100-sxm2-16gb}}"), "truth.speeds: gpus: expected one of v100, found 'v101'; did you mean 'v100'?"),
            (("load: [0.8, 1.2]", "load: [0]"), "workloads[1].load[0]: expected"),
            (("seeds: {first: 1, count: 3}", "seeds: [1, 1]"), "seeds: expected names that differ, found '1' twice"),
            (("seeds: {first: 1, count: 3}", "seeds: 3"), "seeds: expected a list, or {first: 1, count: 10}, found '3'"),
            (("interference: utilisation\n", "interference: utilisation\n  colour: red\n"), "found 'colour'"),
        ):
            grid = self.grid(change=change)
            code, _, err = run("compare", grid, "--out", self.folder / "out")
            self.assertEqual(code, 2, change)
            self.assertIn(message, err)


if __name__ == "__main__":
    main()
