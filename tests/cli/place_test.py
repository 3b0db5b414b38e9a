# SPDX-License-Identifier: Apache-2.0
"""horus place. Usage: see command.py."""

import json
import os

from command import ROOT, Files, main, run, unknown_model

CLUSTER = ROOT / "examples/cluster.yaml"
JOBS = ROOT / "examples/jobs.yaml"

NODE = "  - {name: n, cpu_cores: 8, memory_gib: 32, gpus: [{type: t4, count: 2}]}\n"
SMALL_JOB = "  - {name: j, demand: {any: {gpu_util_pct: 30, gpu_memory_gib: 2}}}\n"
LARGE_JOB = "  - {name: huge, demand: {any: {gpu_util_pct: 30, gpu_memory_gib: 200}}}\n"


class Place(Files):
    def setUp(self):
        super().setUp()
        self.cluster = self.write("cluster.yaml", "version: 1\nnodes:\n" + NODE)

    def jobs(self, text):
        return self.write("jobs.yaml", "version: 1\njobs:\n" + text)

    def place(self, jobs, *args):
        return run("place", "--cluster", self.cluster, "--jobs", jobs, *args)

    def test_examples_are_decided(self):
        code, out, err = run("place", "--cluster", CLUSTER, "--jobs", JOBS, "--json")
        self.assertEqual((code, err), (0, ""))
        document = json.loads(out)
        decisions = {decision["job"]: decision for decision in document["decisions"]}
        self.assertEqual(len(decisions), 12)
        self.assertEqual(len(decisions["bert-base-2gpu"]["slots"]), 2)
        refused = decisions["vgg16-huge-batch"]
        self.assertEqual((refused["verdict"], refused["reason"]), ("defer", "gpu_memory"))
        self.assertTrue(refused["predicted_never"])
        self.assertGreater(refused["nearest_miss"]["needed"], refused["nearest_miss"]["available"])
        self.assertEqual(document["totals"]["tenants_above_bound"], 0)
        totals = document["totals"]
        self.assertLess(totals["sharing_gpus"], totals["sharing_work"])  # or sharing would not pay
        self.assertLess(totals["sharing_work"], totals["sharing_gpus_alone"])
        for tenant in document["tenants"]:
            self.assertEqual(tenant["slowdown_at_confidence"], tenant["slowdown_upper"])  # nobody asks for another than 0.9
        self.check_golden("place_keys.txt", document)

    def test_a_model_that_is_not_understood_runs_alone(self):
        model = self.write("unknown.onnx", unknown_model())

        def decide(more=""):
            return json.loads(self.place(self.jobs(f"  - {{name: j, model: unknown.onnx{more}}}\n"), "--json")[1])["decisions"][0]

        jobs = self.jobs("".join(f"  - {{name: j{i}, model: {model}}}\n" for i in range(3)))
        *alone, waits = json.loads(self.place(jobs, "--json")[1])["decisions"]
        self.assertEqual({one["verdict"] for one in alone}, {"place"})
        self.assertEqual((waits["verdict"], waits["reason"]), ("defer", "exclusive"))
        placed = decide(", gpu_memory_request_gib: 2")
        self.assertEqual((placed["verdict"], placed["demand"]["memory_upper_mib"]), ("place", None))
        code, out, err = run("inspect", model, "--gpu", "t4")
        self.assertEqual((code, err), (0, ""))
        for words in ("0 of 2 operators understood", "too little for a bound", "no bound: state or measure its memory"):
            self.assertIn(words, " ".join(out.split()))
        code, _, err = run("inspect", model, "--gpu", "t4", "--solve", "batch")
        self.assertEqual(code, 2)
        self.assertIn("its memory has no bound", err)

    def test_text_explains(self):
        code, out, err = run("place", "--cluster", CLUSTER, "--jobs", JOBS, "--explain")
        self.assertEqual((code, err), (0, ""))
        for word in ("EXPECTED SLOWDOWN", "Nearest:", "Shared GPUs", "runner-up", "chosen", "GPUs in use",
                     "predicted utilisation", "above slowdown bound"):
            self.assertIn(word, out)

    def test_work_is_that_of_a_job_on_its_fastest_gpu_type(self):
        decisions = [one for one in json.loads(run("place", "--cluster", CLUSTER, "--jobs", JOBS, "--json")[1])["decisions"]
                     if one["verdict"] == "place"]
        for one in decisions:
            self.assertLessEqual(one["work_added"], len(one["slots"]) * one["speed_alone"] / one["slowdown"] + 1e-3, one["job"])
        self.assertLess(min(one["speed_alone"] for one in decisions), 0.5)  # some are on slow GPUs

    def test_a_better_place_that_others_get_is_said(self):
        _, text, _ = run("place", "--cluster", CLUSTER, "--jobs", JOBS)
        found = json.loads(run("place", "--cluster", CLUSTER, "--jobs", JOBS, "--json")[1])["decisions"]
        better = [one for one in found if one["runner_up"] and one["runner_up"]["cost"] < one["winner"]["cost"]]
        self.assertGreater(len(better), 0)
        self.assertEqual(" ".join(text.split()).count("leaves"), len(better))

    def test_table_fits_100_columns(self):
        _, out, _ = run("place", "--cluster", CLUSTER, "--jobs", JOBS)
        self.assertLessEqual(max(map(len, out.splitlines())), 100)

    def test_same_input_gives_same_bytes(self):
        args = ("place", "--cluster", CLUSTER, "--jobs", JOBS, "--policy", "random", "--seed", 7, "--json")
        self.assertEqual(run(*args), run(*args))

    def test_prometheus_tells_what_was_done(self):
        path = self.folder / "place.prom"
        code, _, err = self.place(self.jobs(SMALL_JOB + LARGE_JOB), "--prometheus", path)
        self.assertEqual((code, err), (0, ""))
        lines = path.read_text().splitlines()
        for line in ('horus_calls_total{call="plan_batch",status="OK"} 1', 'horus_decisions_total{verdict="place"} 1',
                     'horus_refusals_total{reason="gpu_memory"} 1', "# TYPE horus_call_duration_seconds histogram"):
            self.assertIn(line, lines)

    def test_every_policy_of_the_help_runs(self):
        for policy in ("horus", "first-fit", "best-fit", "random", "exclusive", "synergy-fair", "synergy-tune"):
            code, out, err = run("place", "--cluster", CLUSTER, "--jobs", JOBS, "--policy", policy, "--json")
            self.assertEqual(code, 0, err)
            self.assertEqual(json.loads(out)["policy"], policy)

    def test_jobs_without_gpus_have_none(self):
        jobs = self.jobs("  - {name: host, gpus: 0, tasks: 2, cpu_cores: 2}\n")
        code, out, err = self.place(jobs, "--explain")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("no GPU, 2 tasks", out)
        self.assertNotIn("gpu -1", out)
        decision = json.loads(self.place(jobs, "--json")[1])["decisions"][0]
        self.assertEqual([slot["gpu"] for slot in decision["slots"]], [None, None])

    def test_the_way_worth_most_is_told(self):
        demand = "demand: {any: {gpu_util_pct: 90, gpu_memory_gib: 4}}"
        ways = f"[{{gpus: 1, rate: 1, {demand}}}, {{gpus: 2, rate: 1.8, {demand}}}]"
        jobs = self.jobs(f"  - {{name: j, alternatives: {ways}}}\n")
        for price, chosen in (("0.5", 1), ("1", 0)):
            decision = json.loads(self.place(jobs, "--json", "--gpu-price", price)[1])["decisions"][0]
            self.assertEqual((decision["alternative"], len(decision["slots"])), (chosen, chosen + 1))

    def test_a_cap_is_told_to_whoever_starts_the_job(self):
        cluster = self.write("mps.yaml", "version: 1\nnodes:\n  - {name: n, cpu_cores: 8, memory_gib: 64, "
                             "gpus: [{type: v100-sxm2-16gb, count: 1, sharing: mps}]}\n")
        demand = "demand: {any: {gpu_util_pct: %d, mem_bw_util_pct: %d, gpu_memory_gib: 2, step_time_ms: 10}}"
        service = "kind: inference, slowdown_bound: 1.2, slowdown_confidence: 0.5, priority: 1, "
        jobs = self.jobs("  - {name: service, %s%s}\n  - {name: trainer, %s}\n" % (service, demand % (30, 15), demand % (60, 30)))
        asked = ("place", "--cluster", cluster, "--jobs", jobs, "--json")
        refused = json.loads(run(*asked)[1])["decisions"][1]
        self.assertEqual((refused["reason"], refused["sm_cap_pct"]), ("slowdown_neighbour", None))
        placed = json.loads(run(*asked, "--sm-caps")[1])["decisions"][1]
        self.assertIn(placed["sm_cap_pct"], (70, 50, 30, 20, 10))
        text = " ".join(run(*asked[:-1], "--sm-caps")[1].split())
        self.assertIn(f"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE={placed['sm_cap_pct']}", text)
        log = self.write("log.csv", "time_s,event,job,node,devices\n0,place,service,n,0\n1,place,trainer,n,0\n")
        shadow = json.loads(run("shadow", *asked[1:], "--log", log, "--sm-caps")[1])  # ours is capped there too
        self.assertEqual((shadow["theirs"]["beyond_bound"], shadow["ours"]["beyond_bound"]), (1, 0))

    def test_a_mode_and_who_is_told_are_said(self):
        cluster = self.write("either.yaml", "version: 1\nnodes:\n  - {name: n, cpu_cores: 8, memory_gib: 64, "
                             "gpus: [{type: v100-sxm2-16gb, count: 1, sharing: time-slice-or-mps}]}\n")
        jobs = self.jobs("  - {name: j, sm_cap_pct: 30, demand: {any: {gpu_util_pct: 30, gpu_memory_gib: 2}}}\n")
        asked = ("place", "--cluster", cluster, "--jobs", jobs)
        decision = json.loads(run(*asked, "--json")[1])["decisions"][0]
        self.assertEqual(decision["sharing_mode"], "mps")
        self.assertIn("cap", decision["sharing_mode_why"])
        told = run(*asked, "--enforcer", "all")[1]
        self.assertIn("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=30 CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=2048M", told)
        self.assertIn("no word for its cap", run(*asked, "--enforcer", "kai")[1])
        self.assertNotIn("no word for its cap", run(*asked, "--enforcer", "dra")[1])
        self.assertEqual(run(*asked, "--enforcer", "kai", "--json")[0], 2)

    def test_cores_follow_what_jobs_say_of_them(self):
        job = "  - {name: %s, demand: {any: {gpu_util_pct: 30, gpu_memory_gib: 2}}, sensitivity: %s}\n"
        cells = "[{cpu_cores: 4, memory_gib: 1, speed: 1}, {cpu_cores: 6, memory_gib: 1, speed: 1.5}]"
        self.write("s.csv", "profile,cpu_cores,memory_gib,speed\nmodest,2,1,1\n")
        jobs = self.jobs(job % ("hungry", cells) + job % ("modest", "{file: s.csv}"))
        for policy, cores in (("synergy-tune", {"hungry": 6, "modest": 2}), ("synergy-fair", {"hungry": 4, "modest": 4})):
            code, out, err = self.place(jobs, "--policy", policy, "--json")
            self.assertEqual((code, err), (0, ""))
            self.assertEqual({d["job"]: d["cpu_cores"] for d in json.loads(out)["decisions"]}, cores)
        for grants, cores in (("resize", 6), ("stated", 0)):  # by horus
            decisions = json.loads(self.place(jobs, "--json", "--host-grants", grants)[1])["decisions"]
            self.assertEqual({d["job"]: d["cpu_cores"] for d in decisions}["hungry"], cores)
        for value, words in (("{host_us: 5, file: s.csv}", "expected {host_us, cells} or {file, profile}, found keys of both"),
                             ("{file: none.csv}", "jobs.yaml:3: jobs[0].sensitivity: "),
                             ("{file: s.csv, profile: lost}", "s.csv, found 'lost'")):
            code, out, err = self.place(self.jobs(job % ("j", value)))
            self.assertEqual((code, out), (2, ""))
            self.assertIn(words, err)

    def test_requests_that_nobody_could_serve_are_told(self):
        service = ("  - {name: svc, kind: inference, request_rate_hz: %d, "
                   "demand: {any: {gpu_util_pct: 30, gpu_memory_gib: 2, step_time_ms: 10}}}\n")
        words = "1 of 1 jobs get requests faster than steps serve them"
        self.assertIn(words, self.place(self.jobs(service % 200))[1])
        self.assertNotIn(words, self.place(self.jobs(service % 50))[1])

    def test_strict_turns_a_refusal_into_three(self):
        self.assertEqual(self.place(self.jobs(SMALL_JOB), "--strict")[0], 0)
        jobs = self.jobs(SMALL_JOB + LARGE_JOB)
        self.assertEqual(self.place(jobs)[0], 0)
        self.assertEqual(self.place(jobs, "--strict")[0], 3)
        self.assertEqual(self.place(jobs, "--strict", "--json")[0], 3)

    def test_no_jobs_is_an_answer(self):
        code, out, _ = self.place(self.write("jobs.yaml", "version: 1\njobs: []\n"), "--strict")
        self.assertEqual(code, 0)
        self.assertIn("No jobs to place", out)

    def test_out_is_what_json_prints_and_replaces_whole(self):
        jobs, target = self.jobs(SMALL_JOB), self.folder / "placement.json"
        target.write_text("old")
        code, out, _ = self.place(jobs, "--json", "--out", target)
        self.assertEqual(code, 0)
        self.assertEqual(target.read_text(), out)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["cluster.yaml", "jobs.yaml", "placement.json"])

    def test_failure_leaves_the_old_placement(self):
        target = self.folder / "placement.json"
        target.write_text("old")
        self.assertEqual(self.place(self.jobs("  - {name: j}\n"), "--out", target)[0], 2)
        self.assertEqual(target.read_text(), "old")
        code, out, err = self.place(self.jobs(SMALL_JOB), "--out", self.folder / "none/placement.json")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("none/placement.json: cannot write", err)

    def test_slowdown_bound_is_kept(self):
        half = "  - {name: %s, demand: {any: {gpu_util_pct: 80, gpu_memory_gib: 2}}}\n"
        self.cluster.write_text("version: 1\nnodes:\n" + NODE.replace("count: 2", "count: 1"))
        jobs = self.jobs(half % "a" + half % "b")

        def placed(bound):
            code, out, err = self.place(jobs, "--policy", "first-fit", "--interference", "utilisation",
                                        "--slowdown-bound", bound, "--json")
            self.assertEqual(code, 0, err)
            return json.loads(out)["totals"]["placed"]

        self.assertEqual((placed("1.5"), placed("1.7"), placed("none")), (1, 2, 2))

    def test_a_refusal_says_why_nothing_is_shared(self):
        self.cluster.write_text("version: 1\nnodes:\n" + NODE.replace("count: 2", "count: 1"))
        jobs = self.jobs(SMALL_JOB + SMALL_JOB.replace("name: j", "name: k"))
        for args, column, sentence in (
                (("--sharing-quota", 0), "the sharing quota is used up", "the placer's sharing quota is used up, or 0."),
                (("--policy", "exclusive"), "policy exclusive never shares", "Policy exclusive never shares a GPU.")):
            table, _, refusals = self.place(jobs, *args)[1].partition("Not placed")
            self.assertIn(column, table)
            self.assertIn(sentence, " ".join(refusals.split()))

    def test_a_refusal_by_a_promise_says_its_confidence(self):
        self.cluster.write_text("version: 1\nnodes:\n" + NODE.replace("count: 2", "count: 1"))
        promised = SMALL_JOB.replace("30", "80").replace("name: j", "name: %s, slowdown_bound: 1.01%s")
        for asked, words in (("", "with 90 % confidence"), (", slowdown_confidence: 0.99", "with 99 % confidence")):
            refusal = self.place(self.jobs(SMALL_JOB + promised % ("k", asked)))[1].partition("Not placed")[2]
            self.assertRegex(" ".join(refusal.split()), f"slowed at most [0-9.]+x {words} .*, bound 1.01x")

    def test_refusals_use_the_units_of_the_table(self):
        out = self.place(self.jobs(SMALL_JOB.replace("name: j", "name: j, cpu_cores: 12.5")), "--explain")[1]
        self.assertIn("too few CPU cores", out)
        self.assertIn("needs 12.5 cores, has 8 cores (4.5 cores short).", out.partition("miss ")[2])

    def test_jobs_unlike_the_training_data_are_named(self):
        model = self.write("unknown.onnx", unknown_model())
        jobs = self.jobs(SMALL_JOB + f"  - {{name: strange, model: {model}}}\n")
        out = self.place(jobs)[1]
        self.assertIn("1 of 2 jobs lie outside what the prediction was made for: strange", " ".join(out.split()))
        decisions = json.loads(self.place(jobs, "--json")[1])["decisions"]
        self.assertEqual({d["job"]: d["outside"] for d in decisions}, {"j": False, "strange": True})
        self.assertNotIn("outside", self.place(self.jobs(SMALL_JOB))[1])

    def test_a_refusal_tells_amounts_apart_that_rounding_would_make_equal(self):
        self.cluster.write_text("version: 1\nnodes:\n" + NODE.replace("count: 2", "count: 1"))
        half = "  - {name: %s, demand: {any: {gpu_util_pct: 80, gpu_memory_gib: 2}}}\n"
        host = "  - {name: j, memory_gib: 32.005, demand: {any: {gpu_util_pct: 30, gpu_memory_gib: 2}}}\n"
        for jobs, bound, words in ((half % "a" + half % "b", "1.599", "it would be slowed 1.600x, bound 1.599x."),
                                   (half % "a" + half % "b", "1.5", "it would be slowed 1.60x, bound 1.50x."),
                                   (host, "1.5", "host memory: needs 32.01 GiB, has 32.00 GiB (6.00 MiB short).")):
            code, out, err = self.place(self.jobs(jobs), "--policy", "first-fit", "--interference", "utilisation",
                                        "--slowdown-bound", bound, "--explain")
            self.assertEqual((code, err), (0, ""))
            self.assertIn(words, " ".join(out.partition("miss ")[2].split()))

    def test_bad_files_name_line_key_expected_and_found(self):
        good = self.jobs(SMALL_JOB)
        for text, words in (
            ("version: 1\nnodes:\n  - {name: n, cpu_cores: x, memory_gib: 1}\n",
             "cluster.yaml:3: nodes[0].cpu_cores: expected a number from 0 to 1000000, found 'x'"),
            ("version: 1\nnodes:\n" + NODE + NODE,
             "cluster.yaml:4: nodes[1]: name: expected a name of its own, found 'n' as on line 3"),
            ("version: 1\nnodes:\n  - [\n", "cluster.yaml:4: expected YAML, found an error at column"),
            ("version: 9\nnodes: []\n", "cluster.yaml:1: version: expected version 1"),
            ("", "cluster.yaml:1: expected a mapping (key: value), found nothing"),
        ):
            self.cluster.write_text(text)
            code, out, err = self.place(good)
            self.assertEqual((code, out), (2, ""), text)
            self.assertIn(words, err)
        self.cluster.write_bytes(os.urandom(4096))
        self.assertEqual(self.place(good)[0], 2)

    def test_bad_jobs_name_line_and_model(self):
        for text, words in (
            ("  - {name: j, model: none.onnx}\n", "jobs.yaml:3: jobs[0].model: "),
            ("  - {name: j, modell: none.onnx}\n", "did you mean 'model'"),
            ("  - {name: j, model: jobs.yaml}\n", "jobs.yaml:3: jobs[0].model: "),
        ):
            code, out, err = self.place(self.jobs(text))
            self.assertEqual((code, out), (2, ""), text)
            self.assertIn(words, err)

    def test_who_is_passed_over_is_told_by_whom(self):
        self.cluster.write_text("version: 1\nnodes:\n" + NODE.replace("count: 2", "count: 1"))
        job = "  - {name: j%d, weight: %d, exclusive: true, demand: {any: {gpu_util_pct: 90, gpu_memory_gib: 1}}}\n"
        jobs = self.jobs("".join(job % (i, 1 + i % 2) for i in range(70)))  # more than the search takes
        code, out, err = self.place(jobs)
        self.assertEqual((code, err), (0, ""))
        self.assertIn("others do more work there", out)
        self.assertIn("j1 has the place that suited it best.", out)
        code, out, _ = self.place(jobs, "--one-by-one")
        self.assertNotIn("others do more work there", out)

    def test_measured_pairs_answer_where_they_measured(self):
        graphs = f"{ROOT}/examples/models/graphs"
        table = self.write("pair_jobs.csv", f"job,graph,family,batch\na,{graphs}/resnet18.onnx,r,8\nb,{graphs}/vgg11.onnx,v,8\n")
        pairs = self.write("pairs.csv", "gpu,sharing_mode,job_a,job_b,slowdown_a,slowdown_b,campaign\n"
                                        "t4,,a,b,3.0,5.0,one\nt4,,a,b,4.0,6.0,two\n")
        job = "  - {name: %s, model: " + graphs + "/%s.onnx, batch: %d}\n"
        self.cluster.write_text("version: 1\nnodes:\n" + NODE.replace("count: 2", "count: 1"))

        def slowdowns(second, *args):
            code, out, err = self.place(self.jobs(job % ("a", "resnet18", 8) + job % second), "--policy", "first-fit",
                                        "--slowdown-bound", "none", "--json", *args)
            self.assertEqual(code, 0, err)
            document = json.loads(out)
            return document["interference"], {t["job"]: (t["slowdown"], t["measured"]) for t in document["tenants"]}

        seen, other = ("b", "vgg11", 8), ("b", "vgg11", 16)
        given = ("--pairs", pairs, "--pair-jobs", table, "--interference", "utilisation")
        self.assertEqual(slowdowns(seen, *given), ("table, utilisation", {"a": (3.5, True), "b": (5.5, True)}))
        named, plain = slowdowns(other, *given), slowdowns(other, "--interference", "utilisation")
        for tenant in "ab":
            self.assertAlmostEqual(named[1][tenant][0], plain[1][tenant][0], places=5)
            self.assertFalse(named[1][tenant][1])
        half = job.replace("batch", "precision: amp, batch")
        code, _, err = self.place(self.jobs(half % ("a", "resnet18", 8) + half % seen), *given)
        self.assertRegex(err, "2 of 2 jobs run as none of .* the first is a")
        table.write_text(table.read_text().replace("batch\n", "batch,precision\n").replace(",8\n", ",8,amp\n"))
        code, out, err = self.place(self.jobs(half % ("a", "resnet18", 8) + half % seen), "--policy", "first-fit",
                                    "--slowdown-bound", "none", "--json", *given)
        self.assertEqual({t["job"]: t["measured"] for t in json.loads(out)["tenants"]}, {"a": True, "b": True})
        self.assertEqual(err, "")
        pairs.write_text(pairs.read_text().replace(",two", ",one"))
        code, out, err = self.place(self.jobs(SMALL_JOB), *given)
        self.assertEqual((code, out), (2, ""))
        self.assertIn("pairs.csv: row 2: expected each pair once a GPU type, sharing mode and campaign", err)

    def test_options_are_checked(self):
        jobs = self.jobs(SMALL_JOB)
        for args in (["--policy", "horsu"], ["--interference", "psychic"], ["--slowdown-bound", "0.5"],
                     ["--slowdown-bound", "nan"], ["--seed", "-1"], ["--max-tenants", "0"], ["--bundle", "/none"],
                     ["--pairs", "/none"], ["--pair-jobs", "/none"]):
            code, out, err = self.place(jobs, *args)
            self.assertEqual((code, out), (2, ""), args)
            self.assertNotEqual(err, "")
        none = self.write("none.csv", "gpu,sharing_mode,job_a,job_b,slowdown_a,slowdown_b,campaign\n")
        table = self.write("table.csv", "job,graph,family\n")
        for args, words in ((["--interference-bundle", "/none"], "/none"), (["--interference-bundle", CLUSTER], "cluster.yaml"),
                            (["--pairs", "/none", "--pair-jobs", table], "/none"),
                            (["--pairs", none, "--pair-jobs", "/none"], "/none"),
                            (["--pairs", none, "--pair-jobs", table], "")):
            code, out, err = self.place(jobs, *args)
            self.assertEqual((code, out), (2, ""), args)
            self.assertIn(words, err)


if __name__ == "__main__":
    main()
