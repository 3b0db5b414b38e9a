# SPDX-License-Identifier: Apache-2.0
"""horus potential. Usage: see command.py."""

import json
import unittest

from command import ROOT, Files, check_record, main, run

# On "k80" sharing halves everybody; on "v100" A and B lose a fifth beside each other. B beside B did not run.
SPEEDS = {
    "k80": {
        "('A', 1)": {"null": 1, "('A', 1)": [0.5, 0.5], "('B', 1)": [0.5, 1]},
        "('B', 1)": {"null": 2, "('A', 1)": [1, 0.5], "('B', 1)": [0, 0]},
    },
    "v100": {
        "('A', 1)": {"null": 4, "('A', 1)": [2, 2], "('B', 1)": [3.2, 3.2]},
        "('B', 1)": {"null": 4, "('A', 1)": [3.2, 3.2], "('B', 1)": [0, 0]},
    },
}
# Of A 60 steps on one GPU, of B 60 and a job on two GPUs; C has no speeds.
TRACE = "A\tp\t-n\t1\t60\t0\t1\nB\tp\t-n\t1\t60\t0\t1\nB\tp\t-n\t1\t60\t0\t2\nC\tp\t-n\t1\t60\t0\t1\n"


def has_solver():
    code, _, err = run("potential", "--cluster", ROOT / "examples/cluster.yaml", "--jobs", ROOT / "examples/jobs.yaml")
    return code == 0 or "libhorus_lp" not in err


@unittest.skipUnless(has_solver(), "built without libhorus_lp.so")
class Potential(Files):
    def setUp(self):
        super().setUp()
        self.speeds = self.write("speeds.json", json.dumps(SPEEDS))
        self.trace = self.write("jobs.trace", TRACE)

    def ask(self, *args):
        code, out, err = run("potential", *args, "--json")
        self.assertEqual((code, err), (0, ""), args)
        return json.loads(out)

    def measured(self, *args):
        return self.ask("--speeds", self.speeds, "--mix", self.trace, *args)

    def test_each_type_alone_then_all_together(self):
        document = self.measured("--gpus", "k80=4", "--gpus", "v100=10")
        self.check_golden("potential_keys.txt", document)
        self.assertEqual([case["gpu"] for case in document["cases"]], ["k80", "v100", None])
        self.assertEqual([case["gpus"] for case in document["cases"]], [4, 10, 14])
        k80, v100, _ = document["cases"]
        self.assertTrue(all(abs(row["gain_pct"]) < 1e-6 and not row["pays"] for row in k80["bounds"]))
        self.assertEqual((v100["pairs"], v100["pairs_run"], v100["pairs_apart"]), (3, 2, 1))
        bounds = {row["slowdown_bound"]: row for row in v100["bounds"]}
        self.assertEqual(list(bounds), [1.25, 1.5, 2, 2.5, None])
        self.assertEqual(bounds[1.25]["pairs_admitted"], 1)
        self.assertEqual(bounds[2]["pairs_admitted"], 2)
        # Equal work of A and B on v100: every GPU runs the pair at 0.8 + 0.8.
        self.assertAlmostEqual(bounds[1.25]["exclusive_rate"], 10)
        self.assertAlmostEqual(bounds[1.25]["shared_rate"], 16)
        self.assertAlmostEqual(bounds[1.25]["gain_pct"], 60)
        self.assertAlmostEqual(bounds[1.25]["makespan_cut_pct"], 37.5)
        self.assertAlmostEqual(bounds[1.25]["pairs"][0]["gpus"], 10)
        self.assertIn("does not pay on k80", k80["verdict"])
        self.assertIn("pays on v100", v100["verdict"])
        self.assertEqual(document["jobs"], 2)
        self.assertIn("Left out: 1 jobs of 1 types without measured speeds.", document["notes"])
        self.assertIn("Left out: 1 jobs on more than one GPU.", document["notes"])

    def test_a_type_answers_to_every_name_of_the_catalogue(self):
        by_own_names = self.measured("--gpus", "k80=1", "--gpus", "v100=10", "--reference", "v100")
        for k80, v100 in (("NVIDIA Tesla K80", "v100-sxm2-16gb"), ("K80", "Tesla V100-SXM2-16GB")):
            document = self.measured("--gpus", k80, "--gpus", v100 + "=10", "--reference", v100)
            self.assertEqual((document["cases"], document["reference"]), (by_own_names["cases"], "v100"))
        speeds = self.write("own.json", json.dumps({"NVIDIA GeForce RTX 3090": SPEEDS["k80"]}))
        document = self.ask("--speeds", speeds, "--mix", self.trace, "--gpus", "rtx-3090")
        self.assertEqual((document["reference"], document["cases"][0]["gpus"]), ("NVIDIA GeForce RTX 3090", 1))
        predicted = self.ask("--cluster", ROOT / "examples/cluster.yaml", "--jobs", ROOT / "examples/jobs.yaml", "--reference", "V100")
        self.assertEqual(predicted["reference"], "v100-sxm2-16gb")

    def test_shares_say_the_same_as_the_jobs_that_they_sum_up(self):
        # On k80 A takes 60 s and B 30.
        shares = self.write("mix.csv", "profile,share\nA,2\nB,1\n")
        asked = ("--gpus", "k80=1", "--gpus", "v100=1", "--bound", "none")
        by_jobs = self.measured(*asked)
        by_shares = self.ask("--speeds", self.speeds, "--mix", shares, *asked)
        for one, other in zip(by_jobs["cases"], by_shares["cases"]):
            self.assertAlmostEqual(one["bounds"][0]["gain_pct"], other["bounds"][0]["gain_pct"])
        # In another unit the same shares are another mix.
        other = self.ask("--speeds", self.speeds, "--mix", shares, "--reference", "v100", *asked)
        self.assertNotAlmostEqual(by_shares["cases"][1]["bounds"][0]["gain_pct"],
                                  other["cases"][1]["bounds"][0]["gain_pct"])

    def test_quantiles_are_bounds_that_so_many_pairs_keep(self):
        document = self.measured("--gpus", "v100=10", "--quantiles", "50,100")
        rows = document["cases"][0]["quantiles"]
        self.assertEqual([(row["pct"], row["slowdown_bound"], row["pairs_admitted"]) for row in rows], [(50, 1.25, 1), (100, 2, 2)])
        self.assertAlmostEqual(rows[0]["gain_pct"], 60)
        self.assertEqual([row["pct"] for row in self.measured()["cases"][0]["quantiles"]], [10, 25, 50, 75, 90])
        for args, message in ((("--quantiles", "101"), "--quantiles: expected a number from 0 to 100, found '101'"), (("--quantiles", "5"), "--quantiles: expected --json")):
            code, _, err = run("potential", "--speeds", self.speeds, "--mix", self.trace, *args)
            self.assertEqual(code, 2)
            self.assertIn(message, err)

    def test_it_tells_cluster_and_what_made_it(self):
        document = self.measured("--gpus", "k80=4", "--gpus", "v100=10", "--bound", "none")
        self.assertEqual(document["cluster"], {"gpus": {"k80": 4, "v100": 10}})
        check_record(self, document, "potential", "--speeds", self.speeds)

    def test_the_least_gain_decides_the_verdict(self):
        for least, pays in ((59, True), (61, False)):
            document = self.measured("--gpus", "v100=1", "--bound", "1.25", "--least-gain", least)
            self.assertEqual(document["cases"][0]["bounds"][0]["pays"], pays)

    def test_clipped_jobs_count_no_longer(self):
        # Percentile 0 is the shortest job: both count alike on k80 too, where B takes half the time.
        clipped = self.measured("--gpus", "k80=1", "--gpus", "v100=1", "--clip", 0, "--bound", "none")
        self.assertEqual(clipped["clip_percentile"], 0)
        whole = self.measured("--gpus", "k80=1", "--gpus", "v100=1", "--bound", "none")
        self.assertNotAlmostEqual(clipped["cases"][2]["bounds"][0]["shared_rate"],
                                  whole["cases"][2]["bounds"][0]["shared_rate"])

    def test_what_jobs_that_run_gain_by_sharing_today_is_the_measure(self):
        def job(name, more="", figures="gpu_util_pct: 30, gpu_memory_gib: 4, step_time_ms: 9"):
            return f"  - {{name: {name}, {more}demand: {{t4: {{{figures}}}}}}}\n"
        def on(i, gpu):
            return f"id: {i}, on: [{{node: a, gpu: {gpu}}}], "
        def today(*residents, jobs=job("waits", "id: 9, ")):
            cluster = self.write("now.yaml", "version: 1\nnodes: [{name: a, cpu_cores: 8, memory_gib: 64, gpus: [{type: t4, count: 2}]}]\n"
                                 + ("residents:\n" + "".join(residents) if residents else ""))
            return self.ask("--cluster", cluster, "--jobs", self.write("waiting.yaml", "version: 1\njobs:\n" + jobs), "--bound", "none")
        apart, beside = (today(job("x", on(1, 0)), job("y", on(2, gpu))) for gpu in (1, 0))
        self.assertEqual((apart["jobs"], beside["jobs"]), (3, 3))  # what runs counts as what waits does
        row = beside["cases"][0]["bounds"][0]
        self.assertAlmostEqual(apart["cases"][0]["today_rate"], 2)
        # The GPU that two jobs share does what the best pairs do, and the other one holds one job.
        self.assertAlmostEqual(beside["cases"][0]["today_rate"], 1 + row["shared_rate"] / 2)
        self.assertAlmostEqual(row["gain_over_today_pct"], 100 * (row["shared_rate"] / beside["cases"][0]["today_rate"] - 1))
        self.assertAlmostEqual(row["exclusive_rate"], 2)
        for case in (today(jobs=job("a") + job("b"))["cases"][0], self.measured("--gpus", "v100=1")["cases"][0]):
            self.assertIsNone(case["today_rate"])
            self.assertIsNone(case["bounds"][0]["gain_over_today_pct"])
        # Of sharers that nobody knows nothing is said.
        unknown = today(*(job(name, on(i, 0) + "gpu_milli: 250, share: anyone, ", "gpu_util_pct: [52, 100], gpu_memory_gib: 3")
                          for i, name in enumerate("xy", 1)))
        self.assertAlmostEqual(unknown["cases"][0]["today_rate"], 2)
        self.assertEqual(unknown["jobs_of_requests_alone"], 2)
        code, _, err = run("potential", "--cluster", self.folder / "now.yaml", "--jobs", self.write("twice.yaml", "version: 1\njobs:\n" + job("x", "id: 1, ")))
        self.assertEqual(code, 2)
        self.assertIn("id: expected an id of its own, found 1", err)

    def test_text_fits_80_columns_and_gives_the_verdict(self):
        for args in (("--speeds", self.speeds, "--mix", self.trace),
                     ("--cluster", ROOT / "examples/cluster.yaml", "--jobs", ROOT / "examples/jobs.yaml")):
            code, out, err = run("potential", *args)
            self.assertEqual((code, err), (0, ""))
            self.assertLessEqual(max(map(len, out.splitlines())), 80)
            for word in ("ONE JOB A GPU", "TODAY", "GAIN", "of ", "Sharing", "not even the best plan gains 5 %"):
                self.assertIn(word, out)

    def test_predicted_pairs_follow_model_and_mix(self):
        base = ("--cluster", ROOT / "examples/cluster.yaml", "--jobs", ROOT / "examples/jobs.yaml", "--bound", "none")
        horus = self.ask(*base)
        self.assertEqual(horus["source"], "horus")
        names = [case["gpu"] for case in horus["cases"]]
        self.assertIn("a100-40gb mps", names)
        other = self.ask(*base, "--interference", "utilisation")
        self.assertNotEqual([case["bounds"] for case in horus["cases"]], [case["bounds"] for case in other["cases"]])
        mix = self.write("mix.csv", "profile,share\nresnet50,1\n")
        self.assertEqual(self.ask(*base, "--mix", mix)["jobs"], 1)

    def test_other_cores_sharing_and_both(self):
        # At 3 cores A does 1, at 6 twice that; B needs one core. Two jobs on one GPU hold together 3 at the fair share:
        # nothing shares. Alone, A with 6 cores takes a third of the GPUs. Beside B, A with 3 is busy for half the time.
        cores = self.write("cores.csv", "profile,cpu_cores,memory_gib,speed\nA,3,1,1\nA,6,1,2\nB,1,1,1\n")
        asked = ("--gpus", "v100=10", "--bound", "none", "--sensitivities", cores, "--cores-per-gpu", 3, "--memory-gib-per-gpu", 8)
        document = self.measured(*asked)
        row = document["cases"][0]["bounds"][0]
        for key, value in (("exclusive_rate", 10), ("shared_rate", 10), ("resized_rate", 40 / 3), ("both_rate", 460 / 31),
                           ("resized_gain_pct", 100 / 3), ("both_gain_pct", 1500 / 31)):
            self.assertAlmostEqual(row[key], value, 6, key)
        self.assertEqual([(pair["job_a"], pair["job_b"]) for pair in row["both_pairs"]][:1], [("A", "B")])
        self.assertIn("Sensitive to cores and host memory: 2 of 2 profiles; the others hold none.", document["notes"])
        self.assertNotIn("both_rate", self.measured("--gpus", "v100=10")["cases"][0]["bounds"][0])
        files = ("--speeds", self.speeds, "--mix", self.trace)
        code, out, err = run("potential", *files, *asked)
        self.assertEqual((code, err), (0, ""))
        self.assertLessEqual(max(map(len, out.splitlines())), 100)
        for words in ("RESIZED GAIN", "13.33", "14.84", "48.4 %"):
            self.assertIn(words, out)

    def test_the_cluster_has_the_cores_of_predicted_pairs(self):
        cores = self.write("cores.csv", "profile,cpu_cores,memory_gib,speed\nresnet50,4,8,0.5\nresnet50,16,16,1.5\n")
        base = ("--cluster", ROOT / "examples/cluster.yaml", "--jobs", ROOT / "examples/jobs.yaml", "--bound", "none")
        document = self.ask(*base, "--sensitivities", cores)
        self.assertTrue(any(note.startswith("Sensitive to cores and host memory: 1 of ") for note in document["notes"]))
        for case in document["cases"]:
            for row in case["bounds"]:
                self.assertGreaterEqual(row["both_rate"], max(row["resized_rate"], row["shared_rate"]))
                self.assertGreaterEqual(min(row["resized_rate"], row["shared_rate"]), row["exclusive_rate"])

    def test_jobs_that_state_the_same_figures_are_one_profile(self):
        def job(name, more="", util=40):
            return f"  - {{name: {name}, {more}demand: {{any: {{gpu_util_pct: {util}, gpu_memory_gib: 4}}}}}}\n"
        cluster = self.write("cluster.yaml", "version: 1\nnodes: [{name: a, cpu_cores: 8, memory_gib: 64, gpus: [{type: t4}]}]\n")
        jobs = self.write("jobs.yaml", "version: 1\njobs:\n" + job("a") + job("b") + job("c", util=41)
                          + job("d", more="gpu_milli: 1000, ") + job("e", more="exclusive: true, "))
        code, out, err = run("potential", "--cluster", cluster, "--jobs", jobs, "--json")
        self.assertEqual((code, err), (0, ""))
        found = json.loads(out)
        self.assertEqual((found["jobs"], found["profiles"]), (5, ["a", "c", "d", "e"]))

    def test_jobs_left_out_take_their_gpus_along(self):
        def job(name, more=""):
            return f"  - {{name: {name}, {more}demand: {{t4: {{gpu_util_pct: 40, gpu_memory_gib: 4, step_time_ms: 9}}}}}}\n"
        def nodes(t4):
            return f"version: 1\nnodes: [{{name: a, cpu_cores: 8, memory_gib: 64, gpus: [{{type: t4, count: {t4}}}, {{type: k80, count: 2}}]}}]\n"
        alone = "version: 1\njobs:\n" + job("a") + job("b")
        asked = ("--jobs", self.write("jobs.yaml", alone + job("gang", "gpus: 4, ")), "--bound", "none")
        found = self.ask("--cluster", self.write("cluster.yaml", nodes(6)), *asked)
        self.assertIn("Left out: 1 job not on exactly one GPU, or with alternatives, and 4 GPUs for that.", found["notes"])
        self.assertEqual((found["cluster"]["gpus"], found["gpus_free"]), ({"k80": 2, "t4": 2}, 2))  # it runs on no K80
        less = self.ask("--cluster", self.write("less.yaml", nodes(2)), "--jobs", self.write("alone.yaml", alone), "--bound", "none")
        self.assertEqual(found["cases"], less["cases"])
        self.assertTrue(any(note.startswith("2 GPUs are free") for note in found["notes"]))
        self.assertIsNone(self.measured("--gpus", "v100=10")["gpus_free"])  # of a mix nobody knows

    def test_what_the_solver_leaves_over_is_no_gain(self):
        code, out, err = run("potential", "--speeds", self.speeds, "--mix", self.trace, "--gpus", "k80=4")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("Sharing does not pay on k80: it gains nothing, whatever the bound.", out)

    def test_bad_requests_name_what_is_wrong(self):
        files = ("--speeds", self.speeds, "--mix", self.trace)
        bad_mix = self.write("bad.csv", "profile,share\nAa,1\n")
        shares = self.write("mix.csv", "profile,share\nA,1\n")
        bad_trace = self.write("bad.trace", "A\tp\n")
        cores = self.write("cores.csv", "profile,cpu_cores,memory_gib,speed\nA,3,1,1\n")
        others = self.write("others.csv", "profile,cpu_cores,memory_gib,speed\nC,3,1,1\n")
        inputs = self.write("inputs.csv", "profile,cpu_cores,memory_gib,speed,host_us\nA,3,1,1,500\n")
        per_gpu = ("--cores-per-gpu", 3, "--memory-gib-per-gpu", 8)
        for args, words in (
            ((), "expected --speeds and --mix"),
            (("--speeds", self.speeds), "--mix: expected with --speeds"),
            ((*files, "--cluster", ROOT / "examples/cluster.yaml"), "options of both"),
            ((*files, "--gpus", "v100="), "expected TYPE=N"),
            ((*files, "--gpus", "v100=0"), "expected TYPE=N"),
            ((*files, "--gpus", "p100=1"), "expected one of k80, v100, found 'p100', which is none of them"),
            ((*files, "--gpus", "k08=1"), "expected one of k80, v100, found 'k08'; did you mean 'k80'?"),
            ((*files, "--gpus", "k80", "--gpus", "Tesla K80=2"), "expected each type once, found 'Tesla K80=2' again"),
            ((*files, "--gpus", "k80=1", "--gpus", "k80=2"), "expected each type once"),
            ((*files, "--bound", "0.5"), "--bound: expected a number of at least 1, or none, found '0.5'"),
            ((*files, "--reference", "a100"), "--reference: expected one of k80, v100"),
            ((*files, "--clip", 101), "--clip"),
            (("--speeds", self.speeds, "--mix", shares, "--clip", 99), "--clip: expected a trace"),
            ((*files, "--speeds", self.speeds), "GPU types that no other file measured"),
            (("--speeds", self.speeds, "--mix", bad_mix), "row 1: profile: expected one whose speeds are known"),
            (("--speeds", self.speeds, "--mix", bad_trace), "bad.trace: line 1: expected 7 or 9 or 10 fields"),
            ((*files, "--sensitivities", cores), "expected --cores-per-gpu and --memory-gib-per-gpu, found not both"),
            ((*files, *per_gpu), "expected with --sensitivities, found none"),
            ((*files, *per_gpu, "--sensitivities", others), "others.csv: expected a profile of the 2 whose speeds are known"),
            ((*files, *per_gpu, "--sensitivities", inputs), "profile 'A': expected speeds of whole jobs"),
            (("--cluster", ROOT / "examples/cluster.yaml", "--jobs", ROOT / "examples/jobs.yaml", *per_gpu),
             "expected with --speeds, found --cluster, which has both"),
            (("--speeds", self.folder / "none.json", "--mix", self.trace), "none.json"),
        ):
            code, out, err = run("potential", *args)
            self.assertEqual((code, out), (2, ""), (args, err))
            self.assertIn(words, err, args)


if __name__ == "__main__":
    main()
