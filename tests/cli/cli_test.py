# SPDX-License-Identifier: Apache-2.0
"""Runs the built horus command and checks exit codes, output and JSON keys.

Usage: cli_test.py HORUS_BINARY REPOSITORY_ROOT [unittest arguments]
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HORUS = pathlib.Path(sys.argv[1])
ROOT = pathlib.Path(sys.argv[2])
RESNET = ROOT / "examples/models/graphs/resnet50.onnx"
CLUSTER = ROOT / "examples/cluster.yaml"
JOBS = ROOT / "examples/jobs.yaml"

# Objects whose keys are the user's, not ours.
FREE_KEYS = {"run.dims", "decisions[].refused_devices"}

NODE = "  - {name: n, cpu_cores: 8, memory_gib: 32, gpus: [{type: t4, count: 2}]}\n"
SMALL_JOB = "  - {name: j, demand: {any: {gpu_util_pct: 30, gpu_memory_gib: 2}}}\n"
LARGE_JOB = "  - {name: huge, demand: {any: {gpu_util_pct: 30, gpu_memory_gib: 200}}}\n"


def run(*args, cwd=None):
    done = subprocess.run([HORUS, *map(str, args)], capture_output=True, cwd=cwd, timeout=120, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace")


def keys_of(value, path=""):
    """Every key path below `value`; list positions are written []."""
    if isinstance(value, list):
        return set().union(*(keys_of(item, path + "[]") for item in value)) if value else set()
    if not isinstance(value, dict):
        return set()
    found = set()
    for key, below in value.items():
        here = f"{path}.{key}" if path else key
        found.add(here)
        if here not in FREE_KEYS:
            found |= keys_of(below, here)
    return found


class Files(unittest.TestCase):
    """A folder of small files for each test."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.cluster = self.write("cluster.yaml", "version: 1\nnodes:\n" + NODE)

    def write(self, name, text):
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def jobs(self, text):
        return self.write("jobs.yaml", "version: 1\njobs:\n" + text)

    def place(self, jobs, *args):
        return run("place", "--cluster", self.cluster, "--jobs", jobs, *args)

    def check_golden(self, name, document):
        """The keys are stable: they are only added to, and the list here grows with them."""
        golden = (ROOT / "tests/cli" / name).read_text().split()
        self.assertEqual(sorted(keys_of(document)), sorted(golden))


class TopLevel(unittest.TestCase):
    def test_version_and_help_answer_zero(self):
        code, out, _ = run("--version")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"^horus \d+\.\d+\.\d+\n$")
        for args in (["--help"], ["inspect", "--help"], ["place", "--help"], ["gpus", "--help"]):
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

    def test_lost_output_is_no_success(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([HORUS, "gpus"], stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"cannot write", done.stderr)


class Gpus(Files):
    def test_lists_at_least_25_types(self):
        code, out, _ = run("gpus", "--json")
        self.assertEqual(code, 0)
        document = json.loads(out)
        self.assertGreaterEqual(len(document["gpu_types"]), 25)
        self.check_golden("gpus_keys.txt", document)

    def test_table_fits_100_columns(self):
        for args in (["gpus"], ["gpus", "a100-40gb"]):
            code, out, _ = run(*args)
            self.assertEqual(code, 0)
            self.assertLessEqual(max(map(len, out.splitlines())), 100)

    def test_one_type_by_any_spelling(self):
        code, out, _ = run("gpus", "NVIDIA A100_40GB", "--json")
        self.assertEqual(code, 0)
        self.assertEqual(json.loads(out)["name"], "a100-40gb")

    def test_unknown_type_suggests_near_ones(self):
        code, _, err = run("gpus", "a100-41gb")
        self.assertEqual(code, 2)
        self.assertIn("a100-40gb", err)

    def test_own_types_extend_the_catalogue(self):
        own = self.write("own.yaml", "version: 1\ngpu_types:\n  - {name: ours, based_on: t4, sm_count: 41}\n")
        code, out, _ = run("gpus", "ours", "--gpus-file", own, "--json")
        self.assertEqual(code, 0)
        self.assertEqual(json.loads(out)["sm_count"], 41)
        own.write_text("version: 1\ngpu_types:\n  - {name: ours, based_on: t5}\n")
        code, _, err = run("gpus", "--gpus-file", own)
        self.assertEqual(code, 2)
        self.assertIn("own.yaml:3: gpu_types[0].based_on: ", err)


class Inspect(Files):
    def test_resnet50_has_its_published_parameters(self):
        code, out, err = run("inspect", RESNET, "--batch", 64, "--gpu", "a100-40gb", "--gpu", "t4", "--features", "--json")
        self.assertEqual((code, err), (0, ""))
        document = json.loads(out)
        self.assertEqual(document["parameters"], 25557032)
        self.assertEqual(document["run"]["batch"], 64)
        self.assertEqual([gpu["gpu_type"] for gpu in document["gpus"]], ["a100-40gb", "t4"])
        self.assertGreater(document["step_flops"], 2 * document["forward_flops"])
        for gpu in document["gpus"]:
            self.assertLessEqual(gpu["memory_mib"], gpu["memory_upper_mib"])
            self.assertLessEqual(gpu["gpu_util_pct"], gpu["gpu_util_upper_pct"])
        self.check_golden("inspect_keys.txt", document)

    def test_memory_grows_with_batch_and_shrinks_without_training(self):
        def peak(*args):
            code, out, err = run("inspect", RESNET, "--json", *args)
            self.assertEqual(code, 0, err)
            return json.loads(out)["memory"]["peak_without_context_bytes"]

        self.assertGreater(peak("--batch", 64), peak("--batch", 8))
        self.assertGreater(peak("--batch", 8), peak("--batch", 8, "--mode", "inference"))
        self.assertGreater(peak("--batch", 8, "--optimizer", "adam"), peak("--batch", 8))
        self.assertGreater(peak("--batch", 64), peak("--batch", 64, "--checkpoint", 4))
        self.assertGreater(peak("--batch", 8, "--replicas", 4), peak("--batch", 8))

    def test_text_says_what_people_ask_for(self):
        code, out, err = run("inspect", RESNET, "--batch", 64, "--gpu", "a100-40gb", "--top", 3)
        self.assertEqual((code, err), (0, ""))
        for word in ("parameters", "25557032", "forward", "weights", "gradients", "optimiser state", "activations",
                     "workspace", "context", "a100-40gb", "Conv"):
            self.assertIn(word, out)
        self.assertLessEqual(max(map(len, out.splitlines())), 100)

    def test_model_may_follow_the_gpu(self):
        self.assertEqual(run("inspect", "--gpu", "t4", RESNET)[0], 0)

    def test_without_gpu_it_still_answers(self):
        code, out, _ = run("inspect", RESNET)
        self.assertEqual(code, 0)
        self.assertIn("name a --gpu", out)

    def test_bad_input_names_the_place(self):
        garbage = self.write("garbage.onnx", os.urandom(64))
        cut = self.write("cut.onnx", RESNET.read_bytes()[:1000])
        for args, words in (
            ([self.folder / "none.onnx"], "none.onnx"),
            ([self.folder], str(self.folder)),
            ([garbage], "garbage.onnx"),
            ([cut], "cut.onnx"),
            ([RESNET, "--gpu", "a100-41gb"], "a100-40gb"),
            ([RESNET, "--dim", "seq"], "expected NAME=SIZE"),
            ([RESNET, "--dim", "nosuch=4"], "nosuch"),
            ([RESNET, "--precision", "fp12"], "fp12"),
            ([RESNET, "--optimizer", "adamm"], "adamm"),
            ([RESNET, "--mode", "dreaming"], "dreaming"),
            ([RESNET, "--bundle", garbage], "garbage.onnx"),
        ):
            code, out, err = run("inspect", *args)
            self.assertEqual((code, out), (2, ""), (args, err))
            self.assertIn(words, err, args)


class Learn(Files):
    """horus train, horus evaluate, and what their bundles change."""

    HEADER = "graph,family,gpu,batch,framework,step_time_us,mem_mib,gpu_util_pct\n"

    def rows(self):
        """Three families at five batches on two GPU types, whose steps take as long as the batch is large."""
        rows = [f"{ROOT}/examples/models/graphs/{net}.onnx,{net},{gpu},{batch},pytorch-1,{speed * batch * 900},"
                f"{1200 + 40 * batch},{30 + batch / 2}\n"
                for net in ("resnet18", "vgg11", "squeezenet1_1") for batch in (4, 8, 16, 32, 64)
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

    def test_text_fits_the_page(self):
        for args in (["train", "--out", self.folder / "p.hbundle"], ["evaluate", "--model", "factors", "--rows"]):
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
        lost = self.write("lost.csv", "job,graph,family\nresnet18 8,nosuch.onnx,f\nvgg11 8,nosuch.onnx,f\n")
        for args, words in (
            (["--pairs", zero, "--jobs", jobs], "zero.csv: row 1: slowdown_b: expected a ratio"),
            (["--pairs", unknown, "--jobs", jobs], "unknown.csv: row 1: job_b"),
            (["--pairs", few, "--jobs", jobs], "8"),
            (["--pairs", few, "--jobs", lost], "lost.csv: row 1: graph"),
            (["--pairs", pairs], "--jobs"),
            (["--pairs", pairs, "--jobs", jobs, "--data", pairs], "expected one of --data"),
            (["--data", pairs, "--jobs", jobs], "--jobs: expected --pairs beside it"),
            (["--pairs", pairs, "--jobs", jobs, "--rounds", 3], "--rounds: expected --data beside it"),
            ([], "found neither"),
        ):
            code, text, err = run("train", "--out", out, *args)
            self.assertEqual((code, text), (2, ""), args)
            self.assertIn(words, err)
            self.assertFalse(out.exists())
        for args, words in ((["--leave", "rows"], "pair, job, family, gpu"), (["--model", "psychic"], "'psychic'")):
            code, text, err = run("evaluate", "--pairs", pairs, "--jobs", jobs, *args)
            self.assertEqual((code, text), (2, ""), args)
            self.assertIn(words, err)


class Solve(Files):
    def solve(self, *args):
        code, out, err = run("inspect", *args, "--json")
        self.assertEqual((code, err), (0, ""), args)
        return json.loads(out)

    def test_the_answer_fits_and_the_next_does_not(self):
        document = self.solve(RESNET, "--solve", "batch", "--gpu", "t4", "--gpu", "a100-40gb", "--beside-mib", 1000,
                              "--beside-mib", 2000)
        self.assertEqual(document["resident_mib"], 3000)
        self.check_golden("solve_keys.txt", document)
        for gpu in document["gpus"]:
            self.assertLess(gpu["largest"], gpu["alone"]["largest"])
            for answer, free in ((gpu, gpu["free_mib"]), (gpu["alone"], gpu["gpu_memory_mib"])):
                for batch, fits in ((answer["largest"], True), (answer["next"], False)):
                    code, out, err = run("inspect", RESNET, "--batch", batch, "--gpu", gpu["gpu_type"], "--json")
                    self.assertEqual(code, 0, err)
                    self.assertEqual(json.loads(out)["gpus"][0]["memory_upper_mib"] <= free, fits)

    def test_without_gpu_it_answers_for_the_whole_catalogue(self):
        types = json.loads(run("gpus", "--json")[1])["gpu_types"]
        document = self.solve(RESNET, "--solve", "batch")
        self.assertEqual([gpu["gpu_type"] for gpu in document["gpus"]], [gpu["name"] for gpu in types])
        for gpu in document["gpus"]:
            self.assertGreater(gpu["largest"], 0)
            self.assertEqual({key: gpu[key] for key in gpu["alone"]}, gpu["alone"])

    def test_a_position_table_ends_the_sequence(self):
        gpu = self.solve(ROOT / "examples/models/graphs/gpt2.onnx", "--solve", "seq", "--gpu", "h200")["gpus"][0]
        self.assertEqual((gpu["largest"], gpu["reason"], gpu["next"], gpu["short_mib"]), (1024, "graph", 1025, None))
        self.assertIn("Gather", gpu["message"])

    def test_the_maximum_and_residents_larger_than_the_gpu(self):
        gpu = self.solve(RESNET, "--solve", "batch", "--gpu", "t4", "--solve-max", 5)["gpus"][0]
        self.assertEqual((gpu["largest"], gpu["reason"], gpu["next"]), (5, "maximum", None))
        gpu = self.solve(RESNET, "--solve", "batch", "--gpu", "t4", "--beside-mib", 20000)["gpus"][0]
        self.assertEqual((gpu["largest"], gpu["free_mib"], gpu["memory_upper_mib"]), (0, 0, None))
        self.assertGreater(gpu["short_mib"], 20000 - gpu["gpu_memory_mib"])

    def test_text_fits_100_columns_and_says_why(self):
        bert = ROOT / "examples/models/graphs/bert_base.onnx"
        for args, words in (
            ([RESNET, "--solve", "batch"], ["Largest batch", "LARGEST", "h200", "over"]),
            ([RESNET, "--solve", "batch", "--beside-mib", 9000, "--gpu", "k80"], ["ALONE", "BESIDE", "8.79 GiB"]),
            ([bert, "--solve", "seq", "--batch", 2, "--gpu", "h200"], ["the graph refuses 513", "Gather"]),
        ):
            code, out, err = run("inspect", *args)
            self.assertEqual((code, err), (0, ""))
            self.assertLessEqual(max(map(len, out.splitlines())), 100)
            for word in words:
                self.assertIn(word, out)

    def test_bad_requests_name_what_is_wrong(self):
        bert = ROOT / "examples/models/graphs/bert_base.onnx"
        for args, words in (
            ([bert, "--solve", "length"], "expected batch or one of 'seq', found 'length'"),
            ([bert, "--solve", "seq", "--dim", "seq=64"], "bound to 64"),
            ([bert, "--solve", "batch"], "dimension 'seq' of graph input"),
            ([RESNET, "--solve", "batch", "--batch", 4], "bound to 4"),
            ([RESNET, "--solve", "batch", "--dim", "batch=4"], "bound to 4"),
            ([RESNET, "--solve", "batch", "--gpu", "a100-41gb"], "a100-40gb"),
            ([RESNET, "--solve", ""], "--solve"),
            ([RESNET, "--solve", "batch", "--solve-max", 0], "--solve-max"),
            ([RESNET, "--solve", "batch", "--beside-mib", -1], "--beside-mib"),
            ([RESNET, "--solve", "batch", "--beside-mib", 1 << 32, "--beside-mib", 1], "--beside-mib"),
            ([RESNET, "--solve", "batch", "--features"], "--features"),
            ([RESNET, "--beside-mib", 1], "--solve"),
            ([RESNET, "--solve-max", 9], "--solve"),
        ):
            code, out, err = run("inspect", *args)
            self.assertEqual((code, out), (2, ""), (args, err))
            self.assertIn(words, err, args)


class Place(Files):
    def test_examples_are_decided(self):
        code, out, err = run("place", "--cluster", CLUSTER, "--jobs", JOBS, "--json")
        self.assertEqual((code, err), (0, ""))
        document = json.loads(out)
        decisions = {decision["job"]: decision for decision in document["decisions"]}
        self.assertEqual(len(decisions), 12)
        self.assertEqual(len(decisions["bert-base-4gpu"]["slots"]), 4)
        refused = decisions["vgg16-huge-batch"]
        self.assertEqual((refused["verdict"], refused["reason"]), ("reject", "gpu_memory"))
        self.assertGreater(refused["nearest_miss"]["needed"], refused["nearest_miss"]["available"])
        self.assertEqual(document["totals"]["tenants_above_bound"], 0)
        self.check_golden("place_keys.txt", document)

    def test_text_explains(self):
        code, out, err = run("place", "--cluster", CLUSTER, "--jobs", JOBS, "--explain")
        self.assertEqual((code, err), (0, ""))
        for word in ("EXPECTED SLOWDOWN", "Nearest miss", "runner-up", "chosen", "GPUs in use",
                     "predicted utilisation", "above slowdown bound"):
            self.assertIn(word, out)

    def test_table_fits_100_columns(self):
        _, out, _ = run("place", "--cluster", CLUSTER, "--jobs", JOBS)
        self.assertLessEqual(max(map(len, out.splitlines())), 100)

    def test_same_input_gives_same_bytes(self):
        args = ("place", "--cluster", CLUSTER, "--jobs", JOBS, "--policy", "random", "--seed", 7, "--json")
        self.assertEqual(run(*args), run(*args))

    def test_every_policy_of_the_help_runs(self):
        for policy in ("horus", "first-fit", "best-fit", "random", "exclusive"):
            code, out, err = run("place", "--cluster", CLUSTER, "--jobs", JOBS, "--policy", policy, "--json")
            self.assertEqual(code, 0, err)
            self.assertEqual(json.loads(out)["policy"], policy)

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

    def test_options_are_checked(self):
        jobs = self.jobs(SMALL_JOB)
        for args in (["--policy", "horsu"], ["--interference", "psychic"], ["--slowdown-bound", "0.5"],
                     ["--slowdown-bound", "nan"], ["--seed", "-1"], ["--max-tenants", "0"], ["--bundle", "/none"]):
            code, out, err = self.place(jobs, *args)
            self.assertEqual((code, out), (2, ""), args)
            self.assertNotEqual(err, "")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
