# SPDX-License-Identifier: Apache-2.0
"""horus shadow. Usage: see command.py."""

import csv
import io
import json
import re

from command import Files, main, run

CLUSTER = """version: 1
nodes:
  - {name: a, cpu_cores: 32, memory_gib: 128, gpus: [{type: v100-sxm2-16gb, count: 2}]}
  - {name: b, cpu_cores: 32, memory_gib: 128, gpus: [{type: v100-sxm2-16gb, count: 2}]}
"""
JOBS = """version: 1
jobs:
  - {name: big, id: 11, demand: {any: {gpu_util_pct: 90, gpu_memory_gib: 4, step_time_ms: 100}}}
  - {name: bigger, id: 12, demand: {any: {gpu_util_pct: 95, gpu_memory_gib: 4, step_time_ms: 200}}}
  - {name: gang, id: 13, gpus: 2, demand: {any: {gpu_util_pct: 50, gpu_memory_gib: 2, step_time_ms: 100}}}
  - {name: untimed, id: 14, demand: {any: {gpu_util_pct: 30, gpu_memory_gib: 2}}}
  - {name: either, id: 15, alternatives: [{gpus: 1, rate: 1, demand: {any: {gpu_util_pct: 30, gpu_memory_gib: 2}}},
                                          {gpus: 2, rate: 2, demand: {any: {gpu_util_pct: 30, gpu_memory_gib: 2}}}]}
"""
HEADER = "time_s,event,job,node,devices,observed_slowdown,observed_step_ms\n"


class Shadow(Files):
    def setUp(self):
        super().setUp()
        self.cluster = self.write("cluster.yaml", CLUSTER)
        self.jobs = self.write("jobs.yaml", JOBS)

    def shadow(self, log, *args, header=HEADER):
        path = self.write("decisions.csv", header + log)
        return run("shadow", "--cluster", self.cluster, "--jobs", self.jobs, "--log", path, *args)

    def totals(self, log, *args):
        code, out, err = self.shadow(log, "--json", *args)
        self.assertEqual((code, err), (0, ""))
        return json.loads(out)

    def test_sharing_a_busy_gpu_beside_an_idle_one_is_regretted(self):
        found = self.totals("0,place,big,a,0,,\n1,place,bigger,a,0,,\n", "--interference", "utilisation",
                            "--slowdown-bound", 1.5)
        self.assertEqual((found["decisions"], found["same"], found["refused"]), (2, 1, 0))
        self.assertGreater(found["regret"], 0.3)
        self.assertEqual(found["theirs"]["beyond_bound"], 2)  # both are slowed beyond 1.5 x
        self.assertEqual(found["ours"]["beyond_bound"], 0)
        self.assertEqual(found["broken_rules"], {"slowdown_own": 1})
        self.assertAlmostEqual(found["ours"]["work"] - found["theirs"]["work"], found["regret"])  # one choice differs
        self.check_golden("shadow_keys.txt", found)

    def test_it_says_where_theirs_gains_more(self):
        gpus = "cpu_cores: 8, memory_gib: 64, gpus: [{type: %s, count: 1, sharing: exclusive}]"
        self.cluster = self.write("two.yaml", "version: 1\nnodes:\n" + "".join(
            f"  - {{name: {name}, {gpus % gpu}}}\n" for name, gpu in (("fast", "v100-sxm2-16gb"), ("slow", "k80"))))
        job = "demand: {v100-sxm2-16gb: {gpu_util_pct: 90, gpu_memory_gib: 1, step_time_ms: 100}, k80: {gpu_util_pct: 90, gpu_memory_gib: 1, step_time_ms: %d}}"
        self.jobs = self.write("jobs.yaml", f"version: 1\njobs:\n  - {{name: easy, {job % 125}}}\n  - {{name: hard, {job % 500}}}\n")
        sentence = "Here OURS is not the best: it places each job as it comes"
        for easy, hard, said in (("slow", "fast", True), ("fast", "slow", False)):
            log = f"0,place,easy,{easy},0,,\n1,place,hard,{hard},0,,\n60,finish,easy,,,,\n"
            code, text, err = self.shadow(log)
            self.assertEqual((code, err), (0, ""))
            (self.assertIn if said else self.assertNotIn)(sentence, text)

    def test_ours_adds_up_choices_that_can_be_had_together(self):
        self.cluster = self.write("two.yaml", CLUSTER.split("  - {name: b")[0])
        slow = "demand: {any: {gpu_util_pct: 95, gpu_memory_gib: 1, step_time_ms: 100}}"
        self.jobs = self.write("jobs.yaml", "version: 1\njobs:\n" + "".join(f"  - {{name: j{i}, {slow}}}\n" for i in range(4)))
        log = "".join(f"{i},place,j{i},a,0,,\n" for i in range(3)) + "3,finish,j0,,,,\n4,place,j3,a,0,,\n"
        found = self.totals(log, "--slowdown-bound", 1.5)
        self.assertEqual((found["refused"], found["worse"]), (0, 3))  # by itself each would go to the other, idle GPU
        # In turn that is taken: j2 waits, and j3 comes where j0 was.
        self.assertEqual([found[side]["placed"] for side in ("theirs", "ours", "exclusive")], [4, 3, 3])
        self.assertAlmostEqual(found["ours"]["work"], 3)
        self.assertGreater(found["regret"], found["ours"]["work"] - found["theirs"]["work"])

    def test_regret_counts_for_as_long_as_the_job_is_there(self):
        both = "0,place,big,a,0,,\n0,place,bigger,a,0,,\n"
        found = self.totals(both + "3600,finish,bigger,,,,\n7200,finish,big,,,,\n")
        self.assertGreater(found["regret"], 0.1)  # big has the place that ours would choose
        self.assertAlmostEqual(found["regret_gpu_hours"], found["regret"] * 1)
        self.assertAlmostEqual(found["ours"]["gpu_hours"], 2 + 1)  # each alone, for as long as it was there
        self.assertEqual((found["hours"], [(one["job"], one["hours"]) for one in found["most_costly"]]), (2, [("bigger", 1)]))
        self.assertEqual(self.totals(both)["hours"], 0)

    def test_the_state_at_the_end_has_every_gpu_and_who_is_on_it(self):
        found = self.totals("0,place,big,a,0,,\n1,place,bigger,a,0,,\n2,finish,big,,,,\n")
        self.assertEqual([(one["node"], one["gpu"]) for one in found["gpus"]], [("a", 0), ("a", 1), ("b", 0), ("b", 1)])
        self.assertEqual([(one["job"], one["node"], one["gpu"], one["memory_mib"]) for one in found["tenants"]], [("bigger", "a", 0, 4096)])

    def test_jobs_of_which_only_requests_are_known_are_counted(self):
        self.jobs = self.write("jobs.yaml", "version: 1\njobs:\n"
                               "  - {name: asked, gpu_milli: 500, demand: {any: {gpu_util_pct: 50, gpu_memory_gib: 4}}}\n"
                               "  - {name: known, gpu_milli: 500, demand: {any: {gpu_util_pct: 30, gpu_memory_gib: 4}}}\n")
        log = "0,place,asked,a,0,,\n1,place,known,a,1,,\n"
        self.assertEqual(self.totals(log)["decisions_of_requests_alone"], 1)
        self.assertIn("known by requests alone    1 of 2 jobs", self.shadow(log)[1])

    def test_another_gpu_of_the_same_kind_is_equally_good(self):
        found = self.totals("0,place,big,b,1,,\n")
        self.assertEqual([found[kind] for kind in ("same", "equally_good", "worse", "better")], [0, 1, 0, 0])
        self.assertEqual(found["most_costly"], [])

    def test_the_ten_decisions_that_cost_most_come_first(self):
        slow = "demand: {any: {gpu_util_pct: 90, gpu_memory_gib: 1, step_time_ms: 100}}"
        self.jobs = self.write("jobs.yaml", "version: 1\njobs:\n" + "".join(f"  - {{name: j{i}, {slow}}}\n" for i in range(13)))
        self.cluster = self.write("cluster.yaml", CLUSTER.replace("count: 2", "count: 16, max_tenants: 16"))
        found = self.totals("".join(f"{i},place,j{i},a,0,,\n" for i in range(13)), "--max-tenants", 16)
        self.assertEqual((found["same"], found["worse"]), (1, 12))
        costs = [one["regret"] for one in found["most_costly"]]
        self.assertEqual((len(costs), costs), (10, sorted(costs, reverse=True)))

    def test_exclusive_lets_jobs_wait_where_no_gpu_is_free(self):
        small = "demand: {any: {gpu_util_pct: 20, gpu_memory_gib: 1, step_time_ms: 100}}"
        self.jobs = self.write("jobs.yaml", "version: 1\njobs:\n" + "".join(f"  - {{name: j{i}, {small}}}\n" for i in range(5)))
        found = self.totals("".join(f"{i},place,j{i},{'abab'[i % 4]},{i // 2 % 2},,\n" for i in range(5)))
        self.assertEqual([found[side]["placed"] for side in ("theirs", "ours", "exclusive")], [5, 5, 4])
        self.assertAlmostEqual(found["exclusive"]["work"], 4)  # the job that waits gains nothing

    def test_theirs_may_lend_as_much_memory_as_ours(self):
        one = "gpu_memory_request_gib: 5, gpu_memory_limit_gib: 12, demand: {any: {gpu_util_pct: 5, gpu_memory_gib: 4}}"
        jobs = self.write("lent.yaml", f"version: 1\njobs:\n  - {{name: a, {one}}}\n  - {{name: b, {one}}}\n")
        cluster = self.write("lending.yaml", CLUSTER.replace("count: 2", "count: 2, sharing: time-slice"))
        log = self.write("lent.csv", HEADER + "0,place,a,a,0,,\n1,place,b,a,0,,\n")
        common = ("shadow", "--cluster", cluster, "--jobs", jobs, "--log", log, "--policy", "first-fit", "--json")
        for overcommit, broken in ((1, {"gpu_memory": 1}), (3, {})):
            code, out, err = run(*common, "--mem-overcommit", overcommit)
            self.assertEqual((code, err), (0, ""))
            self.assertEqual(json.loads(out)["broken_rules"], broken)

    def test_their_choices_are_the_state_in_which_ours_plans(self):
        found = self.totals("0,place,big,a,0,,\n1,place,gang,b,0-1,,\n2,release,big,,,,\n3,place,bigger,a,0,,\n")
        self.assertEqual((found["decisions"], found["releases"], found["same"]), (3, 1, 3))
        self.assertEqual((found["regret"], found["ours"]["work"]), (0, found["theirs"]["work"]))

    def test_observations_stand_beside_predictions(self):
        found = self.totals("0,place,big,a,0,,\n10,finish,big,,,1.25,\n20,place,bigger,a,0,,\n30,finish,bigger,,,,250\n")
        observed = found["observed"]
        self.assertEqual(observed["jobs"], 2)
        self.assertAlmostEqual(observed["slowdown"]["mean"], 1.25)
        self.assertAlmostEqual(observed["mean_error_pct"], 20)  # 1 predicted, 1.25 observed
        self.assertAlmostEqual(observed["bias_pct"], -20)
        unobserved = self.totals("0,place,big,a,0,,\n")["observed"]
        self.assertEqual((unobserved["mean_error_pct"], unobserved["bias_pct"]), (None, None))

    def test_the_predicted_slowdown_is_the_mean_over_a_jobs_life(self):
        log = "0,place,big,a,0,2,\n50,place,bigger,a,0,,\n100,finish,bigger,,,,\n200,finish,big,,,,\n"
        out = self.folder / "records.jsonl"
        self.totals(log, "--out", out, "--interference", "utilisation")
        records = [json.loads(line) for line in out.read_text().splitlines()]
        self.assertEqual([record["kind"] for record in records], ["decision", "decision", "observation"])
        beside = records[1]["their_slowdown"]
        self.assertGreater(beside, 1.5)
        # A quarter of its life beside the other one. The two slow each other alike within a tenth.
        self.assertAlmostEqual(records[2]["predicted_slowdown"], 1 + (beside - 1) / 4, delta=0.05)
        self.assertEqual(records[2]["observed_slowdown"], 2)

    def test_records_are_csv_unless_the_name_says_json(self):
        out = self.folder / "records.csv"
        self.totals("0,place,11,a,0,,\n1,place,gang,b,0;1,,\n", "--out", out)
        rows = list(csv.DictReader(io.StringIO(out.read_text())))
        self.assertEqual([row["job"] for row in rows], ["big", "gang"])
        self.assertEqual(rows[1]["theirs"], "b:0;1")
        self.assertEqual(rows[1]["our_verdict"], "place")

    def test_a_gang_may_span_nodes(self):
        jobs = JOBS.replace("gpus: 2", "tasks: 2")
        self.jobs = self.write("jobs.yaml", jobs)
        self.assertEqual(self.totals("0,place,gang,a|b,1|0,,\n")["decisions"], 1)

    def test_prometheus_text_is_well_formed(self):
        path = self.folder / "shadow.prom"
        self.totals("0,place,big,a,0,,\n10,finish,big,,,1.25,\n", "--prometheus", path)
        text = path.read_text()
        self.assertTrue(text.endswith("\n"))
        typed = {}
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split()
                self.assertNotIn(name, typed)
                typed[name] = kind
            elif not line.startswith("# HELP "):
                sample = re.fullmatch(r'([a-z_]+)(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? (\S+)', line)
                self.assertIsNotNone(sample, line)
                float(sample.group(4))
                name = re.sub("_(bucket|sum|count)$", "", sample.group(1))
                self.assertIn(name, typed, line)
                self.assertTrue(name.startswith("horus_shadow_"))
        self.assertEqual(typed["horus_shadow_observed_slowdown"], "histogram")
        self.assertIn('horus_shadow_observed_slowdown_bucket{le="1.25"} 1', text)
        self.assertIn('horus_shadow_observed_slowdown_bucket{le="1.1"} 0', text)
        self.assertIn("horus_shadow_decisions_total 1\n", text)

    def test_text_says_what_was_compared(self):
        code, out, err = self.shadow("0,place,big,a,0,,\n1,place,bigger,a,0,,\n", "--slowdown-bound", 1.5)
        self.assertEqual((code, err), (0, ""))
        for word in ("THEIRS", "OURS", "NO SHARING", "regret", "1 the same, 0 equally good, 1 worse, 0 better",
                     "beside big: breaks slowdown_own; slowed"):
            self.assertIn(word, out)

    def test_bad_lines_name_file_line_and_field(self):
        place = "0,place,big,a,0,,\n"
        cases = (
            ("x,place,big,a,0,,\n", "2: time_s: expected seconds"),
            ("0,move,big,a,0,,\n", "2: event: expected place, release, finish, found 'move'"),
            ("0,place,nobody,a,0,,\n", "2: job: expected a name or id of the jobs file, found 'nobody'"),
            ("0,place,either,a,0,,\n", "2: job: expected a job that runs in one way, found alternatives for 'either'"),
            ("0,place,big,z,0,,\n", "2: node: expected a name or id of a node of the cluster, found 'z'"),
            ("0,place,biger,a,0,,\n", "2: job: expected a name or id of the jobs file, found 'biger'; did you mean 'bigger'?"),
            ("0,place,big,a,7,,\n", "2: devices: node 1 ('a'): has 2 devices, found index 7"),
            ("0,place,big,a,0-1,,\n", "2: devices: expected 1 GPUs, as the job has, found 2"),
            ("0,place,big,a,1-0,,\n", "2: devices: expected positions of GPUs"),
            ("0,place,gang,a|b,0,,\n", "2: devices: expected one list for each of 2 nodes"),
            ("0,place,gang,a,0;0,,\n", "2: devices: "),
            ("0,place,big,a\n", "2: expected 7 fields as in the header, found 4"),
            ("0,finish,big,,,,\n", "2: job: expected a job that runs, found 'big'"),
            (place + place, "3: job: expected a job that does not run yet"),
            ("5" + place[1:] + "4,finish,big,,,,\n", "3: time_s: expected no less than the line before's"),
            ("0,place,untimed,a,0,,5\n", "2: observed_step_ms: expected nothing, because"),
            ("0,place,big,a,0,-1,\n", "2: observed_slowdown: expected nothing, or"),
            ('0,place,"big,a,0,,\n', "2: expected a closing double quote"),
            ("0,place," + "b" * 70000 + ",a,0,,\n", "2: expected at most 65536 bytes a line"),
        )
        for log, message in cases:
            with self.subTest(message):
                code, out, err = self.shadow(log)
                self.assertEqual((code, out), (2, ""))
                self.assertIn("decisions.csv:" + message, err)
                self.assertEqual(len(err.splitlines()), 1)

    def test_headers_name_the_columns(self):
        for header, message in (("time_s,event,job,node\n", "expected a column devices, found none"),
                                ("time_s,event,job,node,devices,colour\n", "found 'colour'"),
                                ("time_s,event,job,node,devices,job\n", "the column job occurs twice"), ("", "empty file")):
            code, _, err = self.shadow("", header=header)
            self.assertEqual(code, 2)
            self.assertIn(message, err)

    def test_skipped_lines_are_counted_and_change_nothing(self):
        good = "0,place,big,a,0,,\n1,place,bigger,b,0,,\n"
        bad = "0,place,big,a,0,,\nx,place,big,a,0,,\n0,place,untimed,a,0,,5\n1,place,bigger,b,0,,\n"
        code, out, err = self.shadow(bad, "--skip-bad", "--json")
        self.assertEqual(code, 0)
        self.assertEqual(err.count("left out"), 2)
        found = json.loads(out)
        self.assertEqual(found.pop("bad_lines"), 2)
        expected = self.totals(good)
        self.assertEqual(expected.pop("bad_lines"), 0)
        self.assertEqual(found, expected)

    def test_a_failed_run_leaves_no_file(self):
        out = self.write("records.csv", "as it was\n")
        code, _, _ = self.shadow("0,place,big,a,0,,\nx\n", "--out", out)
        self.assertEqual(code, 2)
        self.assertEqual(out.read_text(), "as it was\n")
        self.assertFalse((self.folder / "records.csv.part").exists())

    def test_missing_files_are_bad_input(self):
        code, _, err = run("shadow", "--cluster", self.cluster, "--jobs", self.jobs, "--log", self.folder / "none.csv")
        self.assertEqual(code, 2)
        self.assertIn("none.csv: cannot be read", err)


if __name__ == "__main__":
    main()
