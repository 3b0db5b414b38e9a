# SPDX-License-Identifier: Apache-2.0
"""horus train and horus evaluate on measured runs. Usage: see command.py."""

import json

from command import RESNET, ROOT, Files, main, run


class Learn(Files):
    """horus train, horus evaluate, and what their bundles change."""

    HEADER = "graph,family,gpu,batch,framework,step_time_us,mem_mib,gpu_util_pct\n"

    def rows(self):
        """Three families at five batches on two GPU types, whose steps take as long as the batch and the net are large."""
        rows = [f"{ROOT}/examples/models/graphs/{net}.onnx,{net},{gpu},{batch},pytorch-1,{speed * batch * us},"
                f"{1200 + 40 * batch},{30 + batch / 2}\n"
                for net, us in (("resnet18", 900), ("vgg11", 2700), ("squeezenet1_1", 450)) for batch in (4, 8, 16, 32, 64)
                for gpu, speed in (("v100-16gb", 1), ("t4", 2))]
        return self.write("rows.csv", self.HEADER + "".join(rows))

    def train(self, *args):
        code, out, err = run("train", "--data", self.rows(), "--out", self.folder / "m.hbundle", *args)
        self.assertEqual((code, err), (0, ""))
        return self.folder / "m.hbundle", out

    def test_a_bundle_predicts_what_it_was_trained_on(self):
        bundle, out = self.train("--json")
        report = json.loads(out)
        self.assertEqual({q["quantity"] for q in report["quantities"]}, {"step_time_us", "mem_mib", "gpu_util_pct"})
        for quantity in report["quantities"]:
            self.assertEqual((quantity["rows"], quantity["families"], quantity["gpu_types"]), (30, 3, 2))
            self.assertAlmostEqual(quantity["coverage_promised"], 0.75)
        code, out, _ = run("inspect", ROOT / "examples/models/graphs/resnet18.onnx", "--batch", 16, "--framework",
                           "pytorch-1", "--gpu", "t4", "--bundle", bundle, "--explain", "--json")
        self.assertEqual(code, 0)
        gpu = json.loads(out)["gpus"][0]
        self.assertLess(abs(gpu["step_time_us"] / (2 * 16 * 900) - 1), 0.5)
        self.assertLess(abs(gpu["memory_mib"] / (1200 + 40 * 16) - 1), 0.2)
        step = next(e for e in gpu["explanations"] if e["quantity"] == "step_time_us")
        self.assertTrue(step["calibrated"])
        self.assertEqual(step["distance"], 0)
        self.assertLessEqual(step["predicted"], step["upper"])

    def test_what_the_rows_do_not_measure_is_kept_of_the_bundle_that_it_starts_from(self):
        def step_us(*bundle):
            code, out, err = run("inspect", RESNET, "--batch", 32, "--gpu", "v100-16gb", *bundle, "--json")
            self.assertEqual((code, err), (0, ""))
            return json.loads(out)["gpus"][0]["step_time_us"]

        memory = self.write("memory.csv", "".join(  # without step_time_us
            ",".join(cell for i, cell in enumerate(line.split(",")) if i != 5) + "\n"
            for line in self.rows().read_text().splitlines()))
        out, chained = self.folder / "memory.hbundle", self.folder / "chained.hbundle"
        code, text, err = run("train", "--data", memory, "--out", out)
        self.assertEqual((code, err), (0, ""))
        self.assertIn("kept from builtin: mem_bw_util_pct, step_time_us", text)
        self.assertEqual(step_us("--bundle", out), step_us("--bundle", "builtin"))
        self.assertEqual(step_us(), step_us("--bundle", "builtin"))
        learned, _ = self.train()
        self.assertEqual(run("train", "--data", memory, "--bundle", learned, "--out", chained)[0], 0)
        self.assertEqual(step_us("--bundle", chained), step_us("--bundle", learned))
        self.assertEqual(run("train", "--data", memory, "--bundle", "none", "--out", out)[0], 0)
        self.assertEqual(step_us("--bundle", out), step_us("--bundle", "none"))
        self.assertNotEqual(step_us("--bundle", "none"), step_us())

    def test_a_site_is_known_from_its_own_runs_or_its_base_stated(self):
        site = self.folder / "site.hbundle"
        code, out, err = run("calibrate", "--data", self.rows(), "--out", site, "--json")
        self.assertEqual((code, err), (0, ""))
        report = json.loads(out)
        for quantity in report["quantities"]:
            self.assertEqual(quantity["runs"], 30)
            self.assertLess(quantity["error_after"], quantity["error_before"])
        code, out, err = run("calibrate", "--base-memory", 2000, "--out", site)
        self.assertEqual((code, err), (0, ""))
        self.assertIn("take 2000 MiB here", out)

        def memory(*bundle):
            out = run("inspect", RESNET, "--batch", 8, "--gpu", "t4", "--json", "--top", 0, *bundle)[1]
            return json.loads(out)["gpus"][0]["memory_mib"]

        self.assertGreater(memory("--bundle", site), memory() + 500)
        code, out, err = run("calibrate", "--out", site)
        self.assertEqual((code, out), (2, ""))
        self.assertIn("expected rows that measure mem_mib, step_time_us or utilisation, or a stated base, found neither", err)

    def test_a_job_outside_is_told_on_which_side(self):
        out = " ".join(run("inspect", RESNET, "--batch", 1, "--mode", "inference", "--gpu", "h100-sxm")[1].split())
        self.assertRegex(out, r"with at (least|most) [0-9.]+ times this")
        self.assertNotIn("beyond", out)

    def test_training_twice_gives_the_same_bytes(self):
        first = self.train()[0].read_bytes()
        self.assertEqual(self.train()[0].read_bytes(), first)

    def test_evaluation_compares_with_the_baselines(self):
        data = self.rows()
        for leave in ("family", "model", "gpu", "rows"):
            code, out, err = run("evaluate", "--data", data, "--leave", leave, "--rounds", 10, "--json", "--rows")
            self.assertEqual((code, err), (0, ""))
            for evaluation in json.loads(out)["evaluations"]:
                self.assertEqual(len(evaluation["rows"]), 30)
                names = [m["method"] for m in evaluation["methods"]]
                self.assertEqual(names[:5], ["horus", "constant", "linear", "horus_six", "roofline"])
                error = {m["method"]: m["rmsle"] for m in evaluation["methods"]}
                if evaluation["quantity"] == "step_time_us":  # the one that these rows make by a law of the prior's kind
                    self.assertLess(error["horus"], error["constant"])

    def test_a_bundle_is_judged_as_it_is(self):
        bundle, _ = self.train()
        code, out, err = run("evaluate", "--data", self.rows(), "--bundle", bundle)
        self.assertEqual((code, err), (0, ""))
        self.assertIn("step_time_us: 30 rows", out)
        self.assertLessEqual(max(map(len, out.splitlines())), 100)

    def test_a_quantity_that_cannot_be_judged_is_named_and_the_others_are(self):
        header = self.HEADER.replace("gpu_util_pct", "power_w")
        rows = self.rows().read_text().splitlines()[1:]
        one_family = [r.rsplit(",", 1)[0] + (",150" if "resnet18" in r else ",") for r in rows]
        data = self.write("one.csv", header + "\n".join(one_family) + "\n")
        code, out, err = run("evaluate", "--data", data, "--rounds", 5, "--json")
        self.assertEqual((code, err), (0, ""))
        document = json.loads(out)
        self.assertEqual({e["quantity"] for e in document["evaluations"]}, {"mem_mib", "step_time_us"})
        self.assertEqual([s["quantity"] for s in document["skipped"]], ["power_w"])

    def test_undescribed_gpus_can_be_judged(self):
        data = self.write("opaque.csv", self.rows().read_text().replace(",t4,", ",opaque:x,"))
        code, out, err = run("evaluate", "--data", data, "--rounds", 5)
        self.assertEqual((code, err), (0, ""))
        self.assertIn("step_time_us: 30 rows", out)

    def test_rows_may_be_left_out_by_net_or_family(self):
        _, out = self.train("--without", "vgg11", "--json")
        self.assertEqual(json.loads(out)["rows"], 20)

    def test_bad_input_names_the_place_and_writes_nothing(self):
        out = self.folder / "none.hbundle"
        missing = self.write("missing.csv", self.HEADER + "nosuch.onnx,f,t4,8,,100,,\n")
        unit = self.write("unit.csv", self.HEADER + f"{RESNET},f,t4,8,,100,,150\n")
        few = self.write("few.csv", self.HEADER + f"{RESNET},f,t4,8,,100,,\n")
        for data, args, words in (
            (missing, [], "missing.csv: row 1: graph"),
            (unit, [], "unit.csv: row 1: gpu_util_pct: expected a number from 0 to 100 per cent, found '150'"),
            (few, [], "at least 8 rows"),
            (self.folder / "absent.csv", [], "absent.csv"),
            (self.rows(), ["--without", "nosuch"], "nosuch"),
            (self.rows(), ["--promise", 2], "--promise"),
        ):
            code, text, err = run("train", "--data", data, "--out", out, *args)
            self.assertEqual((code, text), (2, ""), err)
            self.assertIn(words, err)
            self.assertFalse(out.exists())
        self.assertEqual(run("evaluate", "--data", self.rows(), "--leave", "nothing")[0], 2)

    def test_the_text_of_an_explanation_fits_the_page(self):
        code, out, err = run("inspect", RESNET, "--batch", 64, "--gpu", "a100-40gb", "--explain")
        self.assertEqual((code, err), (0, ""))
        for word in ("Why, on a100-40gb", "ROOFLINE", "step_time_us", "DISTANCE"):
            self.assertIn(word, out)
        self.assertLessEqual(max(map(len, out.splitlines())), 100)


if __name__ == "__main__":
    main()
