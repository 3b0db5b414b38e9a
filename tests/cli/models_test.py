# SPDX-License-Identifier: Apache-2.0
"""Language models: horus models, and configs and names where a model is expected. Usage: see command.py."""

import json

from command import ROOT, Files, main, run

TINY = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128,
        "vocab_size": 256, "max_position_embeddings": 512, "torch_dtype": "float16"}


class Models(Files):
    def test_lists_names_with_their_parameters(self):
        code, out, _ = run("models", "--json")
        self.assertEqual(code, 0)
        document = json.loads(out)
        models = {model["name"]: model for model in document["models"]}
        self.assertGreaterEqual(len(models), 30)
        self.assertEqual(models["llama-3.1-8b"]["parameters"], 8030261248)
        self.assertEqual(models["llama-3.1-8b"]["context"], 131072)
        self.check_golden("models_keys.txt", document)
        code, out, _ = run("models")
        self.assertEqual(code, 0)
        self.assertLessEqual(max(map(len, out.splitlines())), 100)

    def test_a_name_is_a_model(self):
        code, out, err = run("inspect", "llama-3.1-8b", "--gpu", "h100-sxm", "--dim", "seq=1", "--dim", "past=4096", "--json")
        self.assertEqual((code, err), (0, ""))
        document = json.loads(out)
        self.assertEqual((document["run"]["mode"], document["run"]["precision"]), ("inference", "bf16"))
        self.assertEqual(document["parameters"], 8030261248)

    def test_a_config_runs_in_its_dtype_and_in_parts(self):
        config = self.write("config.json", json.dumps(TINY))
        code, whole, err = run("inspect", config, "--dim", "seq=8", "--json")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(json.loads(whole)["run"]["precision"], "fp16")
        code, part, _ = run("inspect", config, "--dim", "seq=8", "--tensor-parallel", 2, "--json")
        self.assertEqual(2 * json.loads(part)["parameters"], json.loads(whole)["parameters"] + 5 * 64)
        code, out, _ = run("inspect", config, "--dim", "seq=8", "--lora-rank", 4, "--json")
        self.assertEqual(json.loads(out)["run"]["mode"], "training")
        self.assertEqual(json.loads(out)["parameters"], 2 * 4 * 4 * (64 + 64))
        code, out, _ = run("inspect", config, "--dim", "seq=1", "--solve", "past", "--gpu", "t4", "--solve-max", 4096, "--json")
        self.assertEqual((code, json.loads(out)["gpus"][0]["largest"]), (0, 4096))

    def test_jobs_name_models(self):
        self.write("config.json", json.dumps(TINY))
        cluster = self.write("cluster.yaml", "version: 1\nnodes:\n  - {name: n, cpu_cores: 8, memory_gib: 64, gpus: [{type: l40s, count: 4}]}\n")
        job = "name: %s, kind: inference, dims: {seq: 1, past: 1024}, model: %s"
        jobs = self.write("jobs.yaml", "version: 1\njobs:\n  - {" + job % ("a", "config.json") + "}\n  - {" +
                          job % ("b", "llama-3.1-8b, gpus: 2, tensor_parallel: 2, weights: fp8, cache: fp8") + "}\n")
        code, out, err = run("place", "--cluster", cluster, "--jobs", jobs, "--json")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual([one["verdict"] for one in json.loads(out)["decisions"]], ["place", "place"])

    def test_a_service_is_answered_for_each_gpu_type(self):
        ask = ("inspect", "llama-3.1-8b", "--requests-per-s", 3, "--tokens-in", 1024, "--tokens-out", 256, "--token-ms", 50)
        code, out, err = run(*ask, "--gpu", "h100-sxm,l40s,t4", "--json")
        self.assertEqual((code, err), (0, ""))
        document = json.loads(out)
        self.check_golden("service_keys.txt", document)
        self.assertEqual([gpu["verdict"] for gpu in document["gpus"]], ["served", "late", "no-room"])
        first = document["gpus"][0]
        self.assertAlmostEqual(first["memory_mib"], sum(first[part + "_mib"] for part in ("weights", "activations", "engine", "cache")),
                               delta=2)
        self.assertIn("--max-num-seqs %d " % first["most_running"], first["engine_arguments"])
        self.assertIsNone(document["gpus"][2]["engine_arguments"])
        code, out, _ = run(*ask)
        self.assertEqual(code, 0)
        self.assertIn("h100-sxm", out)
        self.assertNotIn("l40s", out)
        self.assertLessEqual(max(map(len, out.splitlines())), 100)

    def test_what_is_to_be_found_is_what_the_forward_question_says(self):
        load = ("inspect", "llama-3.1-8b", "--tokens-in", 1024, "--tokens-out", 256, "--token-ms", 30)
        for word, given, option in (("load", (), "--requests-per-s"), ("load", ("--users", 1), "--users"),
                                    ("context", ("--requests-per-s", 2), "--longest")):
            code, out, err = run(*load, *given, "--solve", word, "--gpu", "h100-sxm,l40s,t4", "--json")
            self.assertEqual((code, err), (0, ""), word)
            document = json.loads(out)
            self.assertEqual(document["solve"], word)
            for gpu in document["gpus"]:
                solved = gpu["solved"]
                for value, served in ((solved["value"], True), (solved["next"], False)):
                    if not value:
                        continue
                    beside = () if option != "--longest" else given
                    code, out, err = run(*load, *beside, option, value, "--gpu", gpu["gpu_type"], "--json")
                    if (code, served) == (2, False):
                        continue  # beyond what the model was made for
                    self.assertEqual(code, 0, err)
                    there = json.loads(out)["gpus"][0]
                    self.assertEqual(there["verdict"] == "served", served, (word, gpu["gpu_type"], value))
                    if served:
                        self.assertEqual(there["engine_arguments"], gpu["engine_arguments"])
            self.assertEqual(document["gpus"][2]["solved"]["value"], 0, "fp16 weights do not fit a T4")

    def test_the_fewest_gpus_come_first_and_serve_their_part_of_the_load(self):
        ask = ("inspect", "llama-3.1-70b", "--weights", "fp8", "--token-ms", 60)
        code, out, err = run(*ask, "--requests-per-s", 8, "--solve", "gpus", "--gpu", "l40s,h100-sxm,a10", "--json")
        self.assertEqual((code, err), (0, ""))
        gpus = [gpu for gpu in json.loads(out)["gpus"] if gpu["solved"]["value"]]
        self.assertTrue(gpus)
        self.assertEqual([gpu["solved"]["gpus"] for gpu in gpus], sorted(gpu["solved"]["gpus"] for gpu in gpus))
        for gpu in gpus:
            copies = gpu["solved"]["value"]
            self.assertEqual(gpu["solved"]["gpus"], copies * gpu["tensor_parallel"])
            part = (*ask, "--tensor-parallel", gpu["tensor_parallel"], "--gpu", gpu["gpu_type"], "--json", "--requests-per-s")
            self.assertEqual(json.loads(run(*part, 8 / copies)[1])["gpus"][0]["verdict"], "served")
            if copies > 1:
                self.assertNotEqual(json.loads(run(*part, 8 / (copies - 1))[1])["gpus"][0]["verdict"], "served")

    def test_solutions_are_told_within_100_columns(self):
        for words in (("--solve", "load", "--token-ms", 30), ("--solve", "context", "--users", 4),
                      ("--solve", "gpus", "--requests-per-s", 90, "--first-token-ms", 400)):
            code, out, err = run("inspect", "qwen3-8b", *words)
            self.assertEqual((code, err), (0, ""))
            self.assertIn("LIMIT", out)
            self.assertLessEqual(max(map(len, out.splitlines())), 100)

    def test_a_model_that_answers_in_one_step_is_served_in_batches(self):
        bert = ROOT / "examples/models/graphs/bert_base.onnx"
        ask = ("inspect", bert, "--dim", "seq=128", "--precision", "fp16", "--gpu", "a10", "--requests-per-s", 20, "--answer-ms", 200)
        one, many = (json.loads(run(*ask, "--batch", batch, "--json")[1])["gpus"][0] for batch in (1, 32))
        self.assertGreater(many["most_requests_per_s"], 2 * one["most_requests_per_s"])
        self.assertEqual((many["verdict"], many["token_ms"], many["most_running"]), ("served", 0, 32))
        code, out, err = run(*ask)
        self.assertEqual((code, err), (0, ""))
        self.assertIn("max_batch_size: 32", out)
        cluster = self.write("cluster.yaml", "version: 1\nnodes:\n  - {name: n, cpu_cores: 8, memory_gib: 64, gpus: [{type: a10, count: 1}]}\n")
        job = "version: 1\njobs:\n  - {name: e, kind: inference, model: %s, precision: fp16, dims: {seq: 128}, service: %s}\n"
        jobs = self.write("jobs.yaml", job % (bert, "{requests_per_s: 20, answer_ms: 200}"))
        decision = json.loads(run("place", "--cluster", cluster, "--jobs", jobs, "--json")[1])["decisions"][0]
        self.assertEqual(decision["verdict"], "place")
        self.assertAlmostEqual(decision["service"]["first_token_us"] / 1e3, many["first_token_ms"], delta=0.01)
        for service, says in (("{requests_per_s: 1, tokens_in: 9, tokens_out: 9}", "'answer_ms' alone"),
                              ("{requests_per_s: 1, answer: 9}", "answer_ms")):
            code, _, err = run("place", "--cluster", cluster, "--jobs", self.write("jobs.yaml", job % (bert, service)))
            self.assertEqual(code, 2)
            self.assertIn(says, err)
        for options, says in ((("--tokens-in", 9), "--tokens-in, --tokens-out: expected none"), (("--token-ms", 9), "token_us: expected none")):
            code, _, err = run(*ask, *options)
            self.assertEqual(code, 2)
            self.assertIn(says, err)

    def test_two_services_beside_each_other(self):
        ask = ("inspect", "llama-3.1-8b", "--requests-per-s", 2, "--token-ms", 60, "--gpu", "h100-sxm", "--beside", "qwen2.5-7b")
        other = "{requests_per_s: 0.5, tokens_in: 2048, tokens_out: 512, token_ms: 80}"
        code, out, err = run(*ask, "--beside-service", other, "--json")
        self.assertEqual((code, err), (0, ""))
        gpu = json.loads(out)["gpus"][0]
        alone = json.loads(run("inspect", "llama-3.1-8b", "--requests-per-s", 2, "--token-ms", 60, "--gpu", "h100-sxm", "--json")[1])["gpus"][0]
        for option in gpu["options"]:
            self.assertGreaterEqual(option["token_ms"][0], alone["token_ms"])
            self.assertEqual(option["kept"][0], option["slowdown"][0] <= alone["largest_slowdown"])
            self.assertTrue(all(kept or not surely for kept, surely in zip(option["kept"], option["kept_surely"])))
        # Who hardly works hardly slows, whoever shares its time; an instance stays as small.
        rare = json.loads(run(*ask, "--beside-service", other.replace("0.5", "0.01"), "--json")[1])["gpus"][0]
        slowed = {option["mode"].split()[0]: option["slowdown"][0] for option in rare["options"]}
        self.assertLess(max(slowed["time-slice"], slowed["mps"]), 1.1)
        self.assertGreater(slowed["mig"], 1.5)
        best = gpu["options"][gpu["best"]]
        self.assertEqual(sum(best["kept"]), max(sum(option["kept"]) for option in gpu["options"]))
        self.assertTrue(all("--gpu-memory-utilization" in words for words in gpu["engine_arguments"]))
        code, out, _ = run(*ask, "--beside-service", other)
        self.assertIn("  Best: ", out)
        self.assertLessEqual(max(len(line) for line in out.splitlines() if "--gpu" not in line and "tokens in" not in line), 100)
        code, _, err = run(*ask, "--beside-service", "{requests_per_s: 1, token_in: 5}")
        self.assertEqual(code, 2)
        self.assertIn("token_in", err)
        code, out, err = run(*ask[:-1], ROOT / "examples/models/graphs/resnet50.onnx", "--beside-batch", 32, "--beside-mode", "training", "--json")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual([words is None for words in json.loads(out)["gpus"][0]["engine_arguments"]], [False, True])

    def test_engines_have_their_own_words(self):
        for engine, word in (("vllm", "--gpu-memory-utilization 0."), ("sglang", "--max-total-tokens "),
                             ("tensorrt-llm", " kv_cache_config.max_tokens=")):
            code, out, _ = run("inspect", "qwen2.5-7b", "--users", 4, "--gpu", "l40s", "--framework", engine)
            self.assertEqual(code, 0)
            self.assertIn(word, out)

    def test_what_no_service_can_be_is_refused(self):
        for options, says in ((("--token-ms", 50), "--requests-per-s or --users"),
                              (("--users", 2, "--pipeline-parallel", 2), "--pipeline-parallel: expected none of a service"),
                              (("--users", 2, "--solve", "past"), "expected one of load, context, gpus, found 'past'"),
                              (("--users", 2, "--answer-ms", 2), "--answer-ms: expected --first-token-ms"),
                              (("--solve", "context"), "either requests_per_s or"),
                              (("--users", 2, "--solve", "context", "--beside-mib", 9), "expected none of a service"),
                              (("--solve", "load", "--users", 1), "expected a promised time beside users"),
                              (("--users", 2, "--requests-per-s", 2), "--users")):
            code, _, err = run("inspect", "gpt2", "--gpu", "t4", *options)
            self.assertEqual(code, 2)
            self.assertIn(says, err)

    def test_services_share_a_gpu_within_their_promises(self):
        cluster = self.write("cluster.yaml", "version: 1\nnodes:\n  - {name: n, cpu_cores: 8, memory_gib: 64, gpus: [{type: h100-sxm, count: 1}]}\n")
        job = "  - {name: %s, kind: inference, model: qwen2.5-7b, service: {requests_per_s: 0.2, tokens_in: 500, tokens_out: 100%s}}\n"
        jobs = self.write("jobs.yaml", "version: 1\njobs:\n" + job % ("a", ", token_ms: 100") + job % ("b", ", token_ms: 100") +
                          job % ("c", ", token_ms: 1"))
        code, out, err = run("place", "--cluster", cluster, "--jobs", jobs, "--json")
        self.assertEqual((code, err), (0, ""))
        decisions = {one["job"]: one for one in json.loads(out)["decisions"]}
        self.assertEqual([decisions[job]["verdict"] == "place" for job in "abc"], [True, True, False])
        self.assertIn("--gpu-memory-utilization", decisions["b"]["engine_arguments"])
        self.assertIsNone(decisions["c"]["engine_arguments"])
        # What nine in ten stay below holds at the bound of the slowdown, which lies above what is expected.
        alone = json.loads(run("place", "--cluster", cluster, "--jobs", self.write("one.yaml", "version: 1\njobs:\n" + job % (
            "a", ", token_ms: 100")), "--json")[1])["decisions"][0]["service"]
        shares = decisions["a"]["service"]
        self.assertGreater(shares["token_upper_us"] / alone["token_upper_us"], shares["token_us"] / alone["token_us"])
        copies = self.write("copies.yaml", "version: 1\njobs:\n" + (job % ("a", ", copies: 2")))
        both = json.loads(run("place", "--cluster", cluster, "--jobs", copies, "--json")[1])["decisions"]
        self.assertEqual([one["job"] for one in both], ["a-1", "a-2"])
        resident = self.write("now.yaml", (self.folder / "cluster.yaml").read_text() + "residents:\n" + (
            job % ("a", ", copies: 2")).replace("name: a", "name: a, id: 9, on: [{node: n, gpu: 0}]"))
        code, _, err = run("place", "--cluster", resident, "--jobs", jobs)
        self.assertEqual(code, 2)
        self.assertIn("expected no 'copies'", err)
        bounded = open(ROOT / "examples/services/jobs.yaml").read()
        even = self.write("even.yaml", bounded.replace("    service:", "    slowdown_confidence: 0.5\n    service:"))
        placed = lambda file: sum(one["verdict"] == "place" for one in json.loads(run(
            "place", "--cluster", ROOT / "examples/services/cluster.yaml", "--jobs", file, "--max-tenants", 4, "--json")[1])["decisions"])
        self.assertGreater(placed(even), placed(ROOT / "examples/services/jobs.yaml"))

    def test_a_service_that_cannot_be_is_refused_by_its_line(self):
        cluster = self.write("cluster.yaml", "version: 1\nnodes:\n  - {name: n, cpu_cores: 8, memory_gib: 64, gpus: [{type: l40s, count: 1}]}\n")
        for service, says in (("{requests_per_s: 1, users: 2, tokens_in: 1, tokens_out: 1}", "either 'requests_per_s' or 'users'"),
                              ("{requests_per_s: 1, tokens_in: 5}", "tokens_out"), ("{requests_per_s: 1, token_in: 5}", "token_in"),
                              ("{requests_per_s: 1, tokens_in: 0, tokens_out: 1}", "tokens_in"),
                              ("{users: 1, tokens_in: 5, tokens_out: 1, measured: [{gpu: l44s, users: 1, token_ms: 9}]}", "l40s"),
                              ("{users: 1, tokens_in: 5, tokens_out: 1, measured: [{gpu: t4, users: 1}]}", "'token_ms'")):
            jobs = self.write("jobs.yaml", "version: 1\njobs:\n  - name: a\n    kind: inference\n    model: gpt2\n    service: %s\n" % service)
            code, _, err = run("place", "--cluster", cluster, "--jobs", jobs)
            self.assertEqual(code, 2)
            self.assertIn("jobs.yaml:6", err)
            self.assertIn(says, err)
        jobs = self.write("jobs.yaml", "version: 1\njobs:\n  - name: a\n    model: gpt2\n    service: {users: 1, tokens_in: 1, tokens_out: 1}\n")
        code, _, err = run("place", "--cluster", cluster, "--jobs", jobs)
        self.assertEqual(code, 2)
        self.assertIn("kind 'training'", err)

    def test_parts_need_their_gpus(self):
        cluster = self.write("cluster.yaml", "version: 1\nnodes:\n  - {name: n, cpu_cores: 8, memory_gib: 64, gpus: [{type: l40s, count: 4}]}\n")
        jobs = self.write("jobs.yaml", "version: 1\njobs:\n  - {name: a, kind: inference, dims: {seq: 1, past: 8}, model: llama-3.1-70b, tensor_parallel: 4}\n")
        code, _, err = run("place", "--cluster", cluster, "--jobs", jobs)
        self.assertEqual(code, 2)
        self.assertIn("tensor_parallel: expected a divisor of the job's GPUs (1)", err)

    def test_two_that_do_not_fit_are_called_so(self):
        code, out, _ = run("inspect", "llama-3.1-70b", "--dim", "seq=1", "--gpu", "a100-40gb", "--beside", "gpt2", "--beside-dim", "seq=1", "--json")
        gpu = json.loads(out)["gpus"][0]
        self.assertEqual((code, gpu["fits"]), (0, False))
        self.assertFalse([one["mode"] for one in gpu["options"] if one["mode"].startswith("mig")])  # on half the card

    def test_refusals_name_file_and_field(self):
        config = self.write("config.json", json.dumps({**TINY, "hidden_size": -1}))
        code, out, err = run("inspect", config, "--dim", "seq=8")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("config.json: config field hidden_size: expected an integer", err)
        code, _, err = run("inspect", "llama-3.1-9b", "--dim", "seq=8")
        self.assertEqual(code, 2)
        self.assertIn("did you mean 'llama-3.1-8b'", err)
        code, _, err = run("inspect", "nothing.onnx", "--weights", "fp8")
        self.assertEqual(code, 2)
        self.assertIn("expected a config.json or a known model", err)


if __name__ == "__main__":
    main()
