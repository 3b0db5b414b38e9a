# SPDX-License-Identifier: Apache-2.0
"""horus simulate. Usage: see command.py."""

import csv
import json
import os
import unittest

from command import ROOT, Files, check_record, main, run

GRID = ROOT / "examples/compare/grid.yaml"
CLUSTER = """version: 1
nodes:
  - name: one
    cpu_cores: 16
    memory_gib: 64
    gpus: [{type: v100-sxm2-16gb, count: 1, max_tenants: 2}]
"""
# Jobs of 100 s and 40 s on one GPU: language beside recommendation keeps 0.9, the other 0.85.
TRACE = "id,submit_s,duration_s,profile\n7,0,100,language\n8,10,40,recommendation\n"


class Simulate(Files):
    def ask(self, *args):
        code, out, err = run("simulate", *args, "--json")
        self.assertEqual((code, err), (0, ""), args)
        return json.loads(out)

    def own(self, policy, *args, cluster=CLUSTER, truth=None):
        """Simulates TRACE under one policy."""
        speeds = {"speeds": [{"file": str(GRID.parent / "speeds.json"), "gpus": {"v100": "v100-sxm2-16gb"}}]}
        grid = {"version": 1, "cluster": {"file": str(self.write("c.yaml", cluster))}, "truth": truth or speeds,
                "beliefs": {"jobs": str(GRID.parent / "jobs.yaml"), "interference": "utilisation"},
                "workloads": [{"name": "trace", "files": str(self.write("t.csv", TRACE))}], "policies": [policy]}
        return self.ask(self.write("own.yaml", json.dumps(grid)), *args)

    def test_a_run_of_a_grid_is_what_compare_says(self):
        document = self.ask(GRID, "--workload", "open at load 1.2", "--policy", "horus", "--seed", 2)
        self.check_golden("simulate_keys.txt", document)
        code, _, err = run("compare", GRID, "--out", self.folder / "out")
        self.assertEqual((code, err), (0, ""))
        rows = csv.DictReader((self.folder / "out/results.csv").read_text().splitlines())
        row = next(r for r in rows if (r["workload"], r["policy"], r["seed"]) == ("open at load 1.2", "horus", "2"))
        for name, value in document["metrics"].items():
            self.assertEqual(float(row[name]) if row[name] else None, value, name)

    def test_a_schedule_computed_by_hand(self):
        # Both run from 10 s on; 40 s of work at 0.85 take 47.058824 s; the other did 10 + 42.352942 then, and has
        # 47.647058 left alone.
        shared = self.own({"policy": "first-fit", "slowdown_bound": "none"})
        self.assertAlmostEqual(shared["metrics"]["makespan_s"], 10 + 47.058824 + 47.647058, places=5)
        alone = self.own({"policy": "exclusive"})
        self.assertEqual(alone["metrics"]["makespan_s"], 140)
        self.assertEqual(alone["metrics"]["wait_mean_s"], 45)

    def test_the_timeline_tells_what_happened_when(self):
        path = self.folder / "events.csv"
        self.own({"policy": "exclusive"}, "--timeline", path)
        self.assertEqual(path.read_text().splitlines(), [
            "time_us,event,job,node,gpus,gpu_type,profile",
            "0,arrive,7,,,,language", "0,start,7,one,0,v100-sxm2-16gb,language",
            "10000000,arrive,8,,,,recommendation",
            "100000000,finish,7,one,0,v100-sxm2-16gb,language",
            "100000000,start,8,one,0,v100-sxm2-16gb,recommendation",
            "140000000,finish,8,one,0,v100-sxm2-16gb,recommendation"])

    def test_the_timeline_tells_the_type_of_each_gpu_of_a_mixed_node(self):
        mixed = CLUSTER.replace("gpus: [", "gpus: [{type: k80, count: 1, max_tenants: 2}, ")
        path = self.folder / "events.csv"
        document = self.own({"policy": "exclusive"}, "--timeline", path, cluster=mixed, truth={"interference": "utilisation"})
        starts = [row for row in csv.DictReader(path.read_text().splitlines()) if row["event"] == "start"]
        self.assertEqual(sorted((row["gpus"], row["gpu_type"]) for row in starts), [("0", "k80"), ("1", "v100-sxm2-16gb")])
        self.assertEqual(document["cluster"], {"gpus": {"k80": 1, "v100-sxm2-16gb": 1}, "nodes": [
            {"name": "one", "gpus": {"k80": 1, "v100-sxm2-16gb": 1}}]})

    def test_it_tells_what_made_it(self):
        check_record(self, self.ask(GRID, "--policy", "first fit"), "simulate", GRID, "--policy", "first fit", "--json")

    def test_text_tells_every_metric(self):
        code, out, err = run("simulate", GRID)
        self.assertEqual((code, err), (0, ""))
        self.assertIn("workload backlog, policy exclusive, seed 1", out)
        for name in ("makespan_s", "jct_mean_s", "work_rate"):
            self.assertIn(name, out)

    def test_a_path_need_not_be_utf8(self):
        folder = self.folder / os.fsdecode(b"bad\xff")
        folder.mkdir()
        for path in (*GRID.parent.glob("*.yaml"), GRID.parent / "speeds.json"):
            (folder / path.name).write_bytes(path.read_bytes())
        document = self.ask(folder / "grid.yaml")
        self.assertIn("bad\ufffd/grid.yaml", document["command"])

    def test_bad_options(self):
        for args, message in (
            ((), "expected GRID, found none"),
            ((GRID, "--policy", "nobody"), "--policy: expected one of exclusive, first fit, "),
            ((GRID, "--workload", "nothing"), "--workload: expected one of backlog, "),
            ((GRID, "--timeline", self.folder / "no/such/file"), "cannot write"),
        ):
            code, _, err = run("simulate", *args)
            self.assertEqual(code, 2, args)
            self.assertIn(message, err)


if __name__ == "__main__":
    main()
