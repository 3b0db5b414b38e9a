# SPDX-License-Identifier: Apache-2.0
"""horus train and horus evaluate on measured pairs. Usage: see command.py."""

import csv
import json

from command import ROOT, Files, main, run


class Pairs(Files):
    """horus train --pairs and horus evaluate --pairs."""

    NETS = {"resnet18": "resnet", "vgg11": "vgg", "squeezenet1_1": "squeezenet", "mobilenet_v2": "mobilenet"}
    HEADER = "gpu,sharing_mode,job_a,job_b,slowdown_a,slowdown_b,campaign\n"

    def files(self):
        """Pairs of eight jobs of four families on two GPU types; a slowdown is a product of the victim's and the other's."""
        jobs = [(f"{net} {batch}", net, batch) for net in self.NETS for batch in (8, 32)]
        table = "job,graph,family,batch\n" + "".join(
            f"{job},{ROOT}/examples/models/graphs/{net}.onnx,{self.NETS[net]},{batch}\n" for job, net, batch in jobs)
        pairs = self.HEADER
        for gpu, scale in (("v100-16gb", 1.3), ("T4", 1.6)):
            for a in range(len(jobs)):
                for b in range(a, len(jobs)):
                    slowdowns = [scale * (1 + 0.05 * v) * (1 + 0.02 * o) for v, o in ((a, b), (b, a))]
                    pairs += f"{gpu},,{jobs[a][0]},{jobs[b][0]},{slowdowns[0]:.4f},{slowdowns[1]:.4f},first\n"
        return "--pairs", self.write("pairs.csv", pairs), "--jobs", self.write("jobs.csv", table)

    def test_a_bundle_is_trained_and_reported(self):
        out = self.folder / "p.hbundle"
        code, text, err = run("train", *self.files(), "--out", out, "--json")
        self.assertEqual((code, err), (0, ""))
        report = json.loads(text)
        self.assertEqual((report["schema"], report["version"]), ("horus-train-pairs", 1))
        self.assertEqual(report["devices"], [{"gpu": "v100-sxm2-16gb", "sharing_mode": "time-slice"},
                                             {"gpu": "t4", "sharing_mode": "time-slice"}])
        self.assertEqual((report["jobs"], report["pairs"], report["rows"]), (8, 72, 128))
        self.assertIn("horus", [kind["kind"] for kind in report["kinds"]])
        self.check_golden("train_pairs_keys.txt", report)
        self.assertTrue(out.exists())
        first = out.read_bytes()
        self.assertEqual(run("train", *self.files(), "--out", out)[0], 0)
        self.assertEqual(out.read_bytes(), first)

    def test_every_protocol_answers_for_every_device(self):
        files = self.files()
        for leave, groups in (("pair", 10), ("job", 8), ("family", 4), ("gpu", 2)):
            code, out, err = run("evaluate", *files, "--leave", leave, "--model", "horus", "--model", "constant", "--json",
                                 "--rows")
            self.assertEqual((code, err), (0, ""), leave)
            document = json.loads(out)
            self.check_golden("evaluate_pairs_keys.txt", document)
            evaluations = document["evaluations"]
            self.assertEqual([(e["model"], e["gpu"]) for e in evaluations],
                             [(m, g) for m in ("horus", "constant") for g in ("v100-sxm2-16gb", "t4")])
            for evaluation in evaluations:
                self.assertEqual(len(evaluation["rows"]), evaluation["rows_measured"])
                self.assertGreaterEqual(evaluation["rows_measured"], 64)
                self.assertLessEqual(evaluation["groups"], groups)
                for row in evaluation["rows"]:
                    self.assertEqual((row["gpu"], row["campaign"]), (evaluation["gpu"], "first"))
            if leave == "pair":  # the other half of what a pair's jobs do is known
                errors = {(e["model"], e["gpu"]): e["mape_pct"] for e in evaluations}
                self.assertLess(errors["horus", "t4"], errors["constant", "t4"])

    def test_models_are_judged_as_they_are_on_the_same_rows_as_when_groups_are_left_out(self):
        files = self.files()
        for leave in ("pair", "family"):
            trained, as_is = (json.loads(run("evaluate", *files, "--leave", leave, "--model", "horus", "--model", "utilisation",
                                             "--json", "--rows", *more)[1]) for more in ((), ("--as-is",)))
            self.check_golden("evaluate_pairs_keys.txt", as_is)
            self.assertEqual((trained["as_is"], as_is["as_is"]), (False, True))
            which = [[[(row["where"], row["victim"], row["left_out"]) for row in one["rows"]] for one in document["evaluations"]]
                     for document in (trained, as_is)]
            self.assertEqual(*which)
            horus, utilisation = (as_is["evaluations"][place] for place in (0, 2))
            self.assertNotEqual(horus["mape_pct"], trained["evaluations"][0]["mape_pct"])
            self.assertEqual((horus["coverage_asked_pct"], utilisation["coverage_observed_pct"]), (None, None))
            self.assertGreater(horus["coverage_promised_pct"], 0)
            self.assertAlmostEqual(utilisation["mape_pct"], trained["evaluations"][2]["mape_pct"], 4)  # it learns nothing

    def test_a_bundle_that_knows_the_pairs_is_better_as_it_is_than_the_built_in_one(self):
        files, out = self.files(), self.folder / "p.hbundle"
        self.assertEqual(run("train", *files, "--out", out)[0], 0)
        built_in, own = (json.loads(run("evaluate", *files, "--as-is", "--model", "horus", "--json", *more)[1])["evaluations"]
                         for more in ((), ("--interference-bundle", out)))
        for before, after in zip(built_in, own):
            self.assertLess(after["mape_pct"], before["mape_pct"] / 2)
        code, text, err = run("evaluate", *files, "--as-is")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("predicted by models as they are", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 110)

    def test_measured_demands_replace_what_graphs_predict(self):
        """The slowdowns beside a job are drawn by how busy it is, which its graph does not tell: measured, it does."""
        files = self.files()
        names = [line.split(",")[0] for line in files[3].read_text().splitlines()[1:]]
        busy = {name: 5 + 90 * (3 * i % 8) / 7 for i, name in enumerate(names)}
        rows = "".join(f"t4,,{a},{b},{1 + busy[b] / 100:.3f},{1 + busy[a] / 100:.3f},\n"
                       for i, a in enumerate(names) for b in names[i:])
        pairs = self.write("busy.csv", self.HEADER + rows)
        demands = self.write("demands.csv", "job,gpu,gpu_util_pct\n" + "".join(f"{n},T4,{busy[n]}\n" for n in names))
        graphless = self.write("graphless.csv", "job,family\n" + "".join(f"{n},{n.split()[0]}\n" for n in names))

        def error(jobs, *more):
            code, out, err = run("evaluate", "--pairs", pairs, "--jobs", jobs, "--model", "horus", "--leave", "family", "--json", *more)
            self.assertEqual((code, err), (0, ""))
            return json.loads(out)["evaluations"][0]["mape_pct"]

        predicted = error(files[3])
        self.assertLess(error(files[3], "--demands", demands), predicted / 2)
        self.assertLess(error(graphless, "--demands", demands), predicted / 2)

    def test_a_job_without_a_graph_needs_demands_where_pairs_name_it_alone(self):
        _, pairs, _, jobs = self.files()
        pairs.write_text(pairs.read_text() + "t4,,measured,vgg11 8,1.5,2,first\n")
        jobs.write_text(jobs.read_text() + "measured,,ours,\n")
        given = self.write("demands.csv", "job,gpu,gpu_util_pct,step_time_us\nmeasured,t4,11,5000\n")
        other = self.write("other.csv", "job,gpu,gpu_util_pct,step_time_us\nmeasured,v100-16gb,11,5000\nmeasured,t4,,5000\n")
        out = self.folder / "p.hbundle"
        for more in ((), ("--demands", other)):
            code, text, err = run("train", "--pairs", pairs, "--jobs", jobs, "--out", out, *more)
            self.assertEqual((code, text), (2, ""))
            self.assertIn("jobs.csv: row 9: graph: expected an ONNX file, or the measured gpu_util_pct of the job on t4, "
                          "found neither", err)
        code, text, err = run("train", "--pairs", pairs, "--jobs", jobs, "--out", out, "--demands", given, "--json")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(json.loads(text)["jobs"], 9)

    def test_observations_of_a_newcomer_are_judged(self):
        code, out, err = run("evaluate", *self.files(), "--model", "horus", "--observe", 0, "--observe", 2, "--json")
        self.assertEqual((code, err), (0, ""))
        document = json.loads(out)
        self.check_golden("evaluate_online_keys.txt", document)
        evaluations = document["evaluations"]
        self.assertEqual([(e["gpu"], e["observed"]) for e in evaluations],
                         [(gpu, n) for gpu in ("v100-sxm2-16gb", "t4") for n in (0, 2)])
        for none, two in (evaluations[:2], evaluations[2:]):
            self.assertEqual(none["all"]["before"], none["all"]["after"])
            self.assertLess(two["residents"]["after"]["mape_pct"], two["residents"]["before"]["mape_pct"])

    def test_any_two_jobs_are_predicted_without_their_families(self):
        out = self.folder / "predicted.csv"
        code, text, err = run("evaluate", *self.files(), "--model", "horus", "--predictions", out)
        self.assertEqual((code, err), (0, ""))
        with out.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len({(r["gpu"], r["victim"], r["other"]) for r in rows}), 2 * 8 * 8)
        for row in rows:
            self.assertLessEqual(1, float(row["slowdown"]))
            self.assertLessEqual(float(row["slowdown"]), float(row["bound"]))
        known = out.read_bytes()
        code, text, err = run("evaluate", *self.files(), "--model", "horus", "--predictions", out, "--leave-gpu")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("without its GPU type", text)
        self.assertNotEqual(out.read_bytes(), known)
        code, text, err = run("evaluate", *self.files(), "--leave-gpu")
        self.assertEqual((code, text), (2, ""))
        self.assertIn("--leave-gpu: expected --observe or --predictions beside it, found neither", err)
        code, text, err = run("evaluate", *self.files(), "--predictions", out)
        self.assertEqual((code, text), (2, ""))
        self.assertIn("--predictions: expected one --model, found 0", err)

    def test_text_fits_the_page(self):
        for args in (["train", "--out", self.folder / "p.hbundle"], ["evaluate", "--model", "factors", "--rows"],
                     ["evaluate", "--model", "horus", "--observe", 3]):
            code, out, err = run(*args, *self.files())
            self.assertEqual((code, err), (0, ""))
            self.assertLessEqual(max(map(len, out.splitlines())), 100)

    def test_gavels_own_layout_is_read(self):
        *_, jobs = self.files()
        names = [line.split(",")[0] for line in jobs.read_text().splitlines()[1:]]
        speeds = {f"('{a}', 1)": {"null": 10.0, **{f"('{b}', 1)": [10 / (1.5 + 0.1 * i), 10 / (1.5 + 0.1 * j)]
                                                   for j, b in enumerate(names)}} for i, a in enumerate(names)}
        speeds["('resnet18 8', 1)"]["('vgg11 8', 1)"] = speeds["('vgg11 8', 1)"]["('resnet18 8', 1)"] = [0.0, 0.0]
        gavel = self.write("gavel.json", json.dumps({"k80": speeds}))
        code, out, err = run("evaluate", "--pairs", gavel, "--jobs", jobs, "--model", "constant", "--leave", "pair", "--json")
        self.assertEqual((code, err), (0, ""))
        document = json.loads(out)
        self.assertEqual((document["pairs"], document["left_out"]["apart"]), (35, 2))

    def test_bad_input_names_the_place_and_writes_nothing(self):
        _, pairs, _, jobs = self.files()
        out = self.folder / "none.hbundle"
        zero = self.write("zero.csv", self.HEADER + "t4,,resnet18 8,vgg11 8,1.5,0,\n")
        unknown = self.write("unknown.csv", self.HEADER + "t4,,resnet18 8,nobody,1.5,2,\n")
        few = self.write("few.csv", self.HEADER + "t4,,resnet18 8,vgg11 8,1.5,2,\n")
        strange = self.write("strange.csv", "job,gpu,gpu_util_pct\nnobody,t4,11\n")
        lost = self.write("lost.csv", "job,graph,family\nresnet18 8,nosuch.onnx,f\nvgg11 8,nosuch.onnx,f\n")
        for args, words in (
            (["--pairs", zero, "--jobs", jobs], "zero.csv: row 1: slowdown_b: expected a ratio"),
            (["--pairs", unknown, "--jobs", jobs], "unknown.csv: row 1: job_b"),
            (["--pairs", few, "--jobs", jobs], "8"),
            (["--pairs", few, "--jobs", lost], "lost.csv: row 1: graph"),
            (["--pairs", pairs], "--jobs"),
            (["--pairs", pairs, "--jobs", jobs, "--data", pairs], "expected one of --data"),
            (["--data", pairs, "--jobs", jobs], "--jobs: expected --pairs beside it"),
            (["--data", pairs, "--demands", jobs], "--demands: expected --pairs beside it"),
            (["--pairs", pairs, "--jobs", jobs, "--demands", strange], "strange.csv: row 1: job: expected"),
            (["--pairs", pairs, "--jobs", jobs, "--rounds", 3], "--rounds: expected --data beside it"),
            ([], "found neither"),
        ):
            code, text, err = run("train", "--out", out, *args)
            self.assertEqual((code, text), (2, ""), args)
            self.assertIn(words, err)
            self.assertFalse(out.exists())
        for args, words in ((["--leave", "rows"], "pair, job, family, gpu"), (["--model", "psychic"], "'psychic'"),
                            (["--observe", 1, "--model", "utilisation"], "'utilisation'"), (["--observe", 65], "--observe"),
                            (["--observe", 1, "--leave", "gpu"], "--leave"), (["--observe", 1, "--rows"], "--rows"),
                            (["--as-is", "--model", "factors"], "with --as-is, found 'factors'"),
                            (["--as-is", "--observe", 1], "--observe"), (["--as-is", "--promise", 0.9], "--promise"),
                            (["--interference-bundle", out], "--as-is"),
                            (["--as-is", "--interference-bundle", out], "none.hbundle"),
                            (["--observe", 64], "expected fewer than")):
            code, text, err = run("evaluate", "--pairs", pairs, "--jobs", jobs, *args)
            self.assertEqual((code, text), (2, ""), args)
            self.assertIn(words, err)


if __name__ == "__main__":
    main()
