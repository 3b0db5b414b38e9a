# SPDX-License-Identifier: Apache-2.0
"""horus import: what pods run, by command lines, profiles and measurements. Usage: see command.py."""

import json
import re

from command import RESNET, ROOT, main, run
from kube_objects import (
    LLAMA, Imported, answer, claim, engine, gpu_device, measured, node, pod, product, profile, resource_slice)


class Known(Imported):
    def engines(self, *containers, nodes=None, args=(), **more):
        """What is said of pods with these containers, each on a node of its own."""
        objects = nodes or [product(f"n{i}", 8) for i in range(len(containers))]
        objects += [pod(f"p{i}", f"n{i}", containers=[one], minute=i, **more) for i, one in enumerate(containers)]
        found = self.report(objects, *args)
        return sorted(found["engines"], key=lambda one: (one["engine"], one["model"] or ""))

    def test_command_lines_of_every_engine_say_its_model(self):
        shell = ["/bin/bash", "-lc"]
        for name, model, known, gpus, memory, one in (
                ("vLLM", LLAMA, "llama-3.1-8b", 1, 90, engine("--model", LLAMA)),
                ("vLLM", LLAMA, "llama-3.1-8b", 2, 45, engine(LLAMA, "--tensor-parallel-size=2", "--gpu_memory_utilization", "0.45", command=["vllm", "serve"], gpu=2)),
                ("vLLM", "Qwen/Qwen3-32B-FP8", "qwen3-32b", 4, 85,
                 engine("pip install vllm && exec vllm serve ${MODEL} \\\n  -tp 4 --gpu-memory-utilization '0.85' --max-model-len 32k; sleep 5",
                        command=shell, env={"MODEL": "Qwen/Qwen3-32B-FP8"}, gpu=4)),
                ("vLLM", "/models/models--mistralai--Mistral-Nemo-Instruct-2407/snapshots/0a1b2c", "mistral-nemo", 1, 90,
                 engine("-m", "vllm.entrypoints.openai.api_server", "--model=/models/models--mistralai--Mistral-Nemo-Instruct-2407/snapshots/0a1b2c",
                        image="registry.example.com/serve:1", command=["python3"])),
                ("SGLang", "deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "llama-3.1-70b", 4, 80,
                 engine("-m", "sglang.launch_server", "--model-path", "deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "--tp", "4", "--mem-fraction-static", "0.8",
                        image="lmsysorg/sglang:v0.5.3", command=["python3"], gpu=4)),
                ("TGI", "Qwen/Qwen2.5-7B-Instruct-AWQ", "qwen2.5-7b", 1, 100,
                 engine("--quantize", "awq", "--max-total-tokens", "8192", image="ghcr.io/huggingface/text-generation-inference:3.3",
                        env={"MODEL_ID": "Qwen/Qwen2.5-7B-Instruct-AWQ"})),
                ("TensorRT-LLM", LLAMA, "llama-3.1-8b", 1, 50,
                 engine(LLAMA, "--kv_cache_free_gpu_memory_fraction", "0.5", command=["trtllm-serve", "serve"], image="nvcr.io/nvidia/tensorrt-llm/release:1.0")),
                ("NIM", "nvcr.io/nim/meta/llama-3.1-8b-instruct", "llama-3.1-8b", 1, 90, engine(image="nvcr.io/nim/meta/llama-3.1-8b-instruct:1.8"))):
            found = self.engines(one)
            self.assertEqual([(row["engine"], row["model"], row["architecture"], row["gpus"], round(row["memory_pct"]), row["by"]) for row in found],
                             [(name, model, known, gpus, memory, "engine")])

    def test_an_engine_takes_its_share_of_the_memory_and_may_share_the_rest(self):
        self.engines(engine("--model", LLAMA, "--gpu-memory-utilization", "0.4"))
        line = self.line("default/p0", "jobs.yaml")
        self.assertIn("kind: inference", line)
        self.assertIn("gpu_memory_gib: [32, 32]", line)  # of 80 GiB
        self.assertRegex(line, r"step_time_ms: \[\d+")
        self.assertNotIn("gpu_milli", line)
        _, text, _ = run("shadow", "--cluster", self.folder / "out/cluster.yaml", "--jobs", self.folder / "out/jobs.yaml", "--log",
                         self.folder / "out/decisions.csv", "--json")
        self.assertEqual(json.loads(text)["decisions_of_requests_alone"], 0)

    def test_quantised_weights_are_faster_steps(self):
        steps = []
        for more in ((), ("--quantization", "fp8")):
            self.engines(engine("--model", LLAMA, *more), nodes=[product("n0", 8, product="NVIDIA-H100-80GB-HBM3")])
            steps.append(float(re.search(r"step_time_ms: \[([\d.]+)", self.line("default/p0", "jobs.yaml"))[1]))
        self.assertLess(steps[1], 0.8 * steps[0])

    def test_what_is_not_known_of_an_engine_is_said_and_not_guessed(self):
        for words, one in ((("unknown model: give its config.json with --profiles",), engine("--model", "acme/house-7b")),
                           (("its command line names no model",), engine("--port", "80")),
                           (("quantization 'squeezellm'",), engine("--model", LLAMA, "--quantization", "squeezellm")),
                           (("--tensor-parallel-size: expected 1 to", "'two'"), engine("--model", LLAMA, "--tensor-parallel-size", "two")),
                           (("--gpu-memory-utilization", "'9'"), engine("--model", LLAMA, "--gpu-memory-utilization", "9")),
                           (("asks for 1 GPUs", "among 8"), engine("--model", LLAMA, "-tp", "8")),
                           (("llama-3.1-70b needs",), engine("--model", "meta-llama/Llama-3.3-70B-Instruct")),
                           (("llama-3.1-8b needs", "told to take 8192"), engine("--model", LLAMA, "--gpu-memory-utilization", "0.1")),
                           (("it loads whatever it is asked for",), engine(image="ollama/ollama:0.12"))):
            found = self.engines(one)
            self.assertEqual([(row["by"], row["architecture"]) for row in found], [("nobody", None)])
            for word in words:
                self.assertIn(word, found[0]["why_not"])
            self.assertIn("gpu_milli: 1000", self.line("default/p0", "jobs.yaml"))

    def test_what_only_names_an_engine_is_none(self):
        for one in (engine("bench.py", "--backend", "vllm", command=["python"]), engine("pip install vllm; python train.py", command=["sh", "-c"]),
                    engine("serve", image="registry.example.com/search:1")):
            self.assertEqual(self.engines(one), [])

    def test_long_command_lines_end_soon(self):
        long = engine("$A " * 700_000, command=["sh", "-c"], env={"A": "vllm serve " * 90})
        words = engine(*["vllm"] * 300_000, command=["x"], env={f"V{i}": "$A" for i in range(20_000)})
        for one in (long, words, engine("--model", "/" * 2_000_000), engine("--model", "a-" * 1_000_000)):
            self.assertLessEqual(len(self.engines(one)), 1)

    def test_names_of_other_sizes_are_other_models(self):
        for model in ("meta-llama/Llama-3.2-11B-Vision-Instruct", "Qwen/Qwen3-Embedding-8B", "nvidia/Llama-3.1-Nemotron-70B-Instruct-HF", "Qwen/Qwen3-8B-GGUF",
                      "deepseek-ai/deepseek-coder-6.7b-instruct"):
            self.assertIsNone(self.engines(engine("--model", model))[0]["architecture"], model)

    def test_profiles_measurements_and_jobprofiles_go_before_command_lines(self):
        one = engine("--model", LLAMA)
        said = self.said(["{pods: {name: p0}, kind: training, demand: {any: {gpu_util_pct: 40, gpu_memory_gib: 3}}}"])
        self.assertEqual(self.engines(one, args=said)[0]["by"], "pattern")
        self.assertIn("kind: training", self.line("default/p0", "jobs.yaml"))
        seen = self.said(measured=answer(measured("p0", gpu_util_pct=12.5, gpu_memory_mib=70000)))
        self.assertEqual(self.engines(one, args=seen)[0]["by"], "measured")
        self.assertIn("kind: inference, demand: {a100-80gb: {gpu_util_pct: [12.5, 12.5]", self.line("default/p0", "jobs.yaml"))
        terms = self.said(["{pods: {name: p0}, share: anyone, slowdown_bound: 1.5}"])
        self.assertEqual(self.engines(one, args=terms)[0]["by"], "engine")
        self.assertRegex(self.line("default/p0", "jobs.yaml"), "share: anyone, slowdown_bound: 1.5, kind: inference, demand: .*step_time_ms")

    def test_a_profile_may_give_the_architecture_and_leave_the_rest_to_the_command_line(self):
        config = self.write("config.json", json.dumps({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
                                                       "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 131072}))
        said = self.said([f"{{pods: {{name: p0}}, kind: inference, model: {config}, share: anyone}}"])
        self.engines(engine("--model", "acme/house-8b", "--gpu-memory-utilization", "0.4"), args=said)
        own = self.line("default/p0", "jobs.yaml")
        # Of a pod that is no engine it says nothing that can be run.
        found = self.report([product("n0"), pod("p0", "n0", 1)], *said)
        self.assertTrue(any("or is no engine" in note for note in found["notes"]), found["notes"])
        self.engines(engine("--model", LLAMA, "--gpu-memory-utilization", "0.4"), args=self.said(["{pods: {name: p0}, kind: inference, share: anyone}"]))
        self.assertEqual(own, self.line("default/p0", "jobs.yaml"))
        self.assertIn("profiles.yaml:3: profiles[0].model: ", self.import_([product("a")], *self.said(
            ["{pods: {name: a}, kind: inference, model: none.json}"]), code=2))

    def test_a_profile_may_say_the_load_and_leave_the_model_to_the_command_line(self):
        said = self.said([f"{{pods: {{name: 'p*'}}, kind: inference, service: {{requests_per_s: 0.2, tokens_in: 800, tokens_out: 200, token_ms: 80}}}}"])
        one = engine("--model", "Qwen/Qwen2.5-7B-Instruct", "--quantization", "fp8", "--kv-cache-dtype", "fp8", "--tensor-parallel-size", "2", gpu=2)
        self.assertEqual([row["by"] for row in self.engines(one, args=said)], ["pattern"])
        for words in ("service: {", 'model: "qwen2.5-7b"', "framework: vllm", "tensor_parallel: 2", 'weights: "fp8"', 'cache: "fp8"'):
            self.assertIn(words, self.line("default/p0", "jobs.yaml"))
        code, _, err = run("place", "--cluster", self.folder / "out/now.yaml", "--jobs", self.folder / "out/waiting.yaml")
        self.assertEqual((code, err), (0, ""))
        for model, gpus in (("acme/house-7b", 1), (LLAMA, 2)):  # not known; of other numbers of GPUs
            self.engines(engine("--model", model, gpu=gpus), args=said)
            self.assertIn("gpu_milli: 1000", self.line("default/p0", "jobs.yaml"))
        found = self.report([product("n0"), pod("p0", "n0", 1)], *said)
        self.assertTrue(any("or is no engine" in note for note in found["notes"]), found["notes"])
        self.assertIn("answer_ms", self.import_([product("a")], *self.said(
            ["{pods: {name: a}, kind: inference, service: {requests_per_s: 1, answer_ms: 5}}"]), code=2))

    def test_a_replica_holds_no_memory_back_from_an_engine(self):
        shared = product("n0", 4, labels={"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.count": "1"})
        self.engines(engine("--model", "acme/house-7b"), nodes=[shared])
        self.assertIn("gpu_memory_gib: [72, 72]", self.line("default/p0", "jobs.yaml"))

    def test_engines_are_told_in_the_report(self):
        objects = [product("a"), *(pod(f"llama-{i}", "a", containers=[engine("--model", LLAMA)], minute=i) for i in range(2)),
                   pod("own", "a", containers=[engine("--model", "acme/house-7b")], minute=3)]
        out = re.sub(r"\s+", " ", self.import_(objects))
        for words in (f"vLLM {LLAMA} 1 90 % 2 llama-3.1-8b, always busy", "acme/house-7b 1 90 % 1 requests: unknown model: give its config.json", "do not tell the load",
                      "its command line 2 2"):
            self.assertIn(words, out)

    # ---- Replicas.

    def test_the_load_of_a_replica_is_unknown_and_not_its_share(self):
        labels = {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.count": "1"}
        self.import_([product("a", 4, product="Tesla-T4-SHARED", labels=labels), *(pod(f"p{i}", "a", 1, minute=i) for i in range(4))])
        self.assertIn("gpu_milli: 250, share: anyone", self.line("default/p0", "jobs.yaml"))
        self.assertIn("gpu_util_pct: [52, 100]", self.line("default/p0", "jobs.yaml"))
        _, text, _ = run("shadow", "--cluster", self.folder / "out/cluster.yaml", "--jobs", self.folder / "out/jobs.yaml", "--log",
                         self.folder / "out/decisions.csv", "--json")
        found = json.loads(text)
        self.assertEqual(found["decisions_of_requests_alone"], 4)
        self.assertGreater(found["theirs"]["slowdown"]["mean"], 1.2)  # four on one GPU are not free

    def test_described_replicas_hold_no_more_than_their_share(self):
        labels = {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.count": "1"}
        args = self.said(["{pods: {name: 'p*'}, demand: {any: {gpu_util_pct: 20, gpu_memory_gib: 3}}}"])
        found = self.report([product("a", 4, labels=labels), *(pod(f"p{i}", "a", 1, minute=i) for i in range(4))], *args)
        self.assertEqual((found["jobs_run"], found["left_out"]), (4, []))

    def test_a_pod_that_waits_takes_a_replica_where_one_is_free(self):
        labels = {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.count": "1", "pool": "t4"}
        shared = product("t4", 4, product="Tesla-T4-SHARED", labels=labels)
        def startable(waiting, *others):
            return self.report([shared, *others, *(pod(f"p{i}", "t4", 1, minute=i) for i in range(2)), *waiting])
        # Beside whole GPUs that are taken; two replicas are free.
        whole = [product("a", 1), pod("train", "a", 1)]
        waits = [pod(f"w{i}", gpus=1, minute=20 + i) for i in range(3)]
        found = startable(waits, *whole)
        self.assertEqual((found["jobs_wait"], found["jobs_startable"], found["jobs_startable_beside"]), (3, 2, 2))
        # A whole GPU that is free comes first; the selector of a pod holds.
        found = startable(waits[:1], product("a", 1))
        self.assertEqual((found["jobs_startable"], found["jobs_startable_beside"]), (1, 0))
        found = startable([pod("w", gpus=1, nodeSelector={"pool": "t4"})], product("a", 1))
        self.assertEqual((found["jobs_startable"], found["jobs_startable_beside"]), (1, 1))
        self.assertIn("gpu_milli: 250", self.line("default/w", "waiting.yaml"))

    def test_patterns_say_what_many_pods_run(self):
        objects = [product("a"), pod("train-1", "a", 1, "vision", {"app": "resnet", "tier": "x"}, 1), pod("train-2", "a", 2, "vision", {}, 2),
                   pod("etrain-1", "a", 1, "vision-dev", {}, 3), pod("waits", None, 1, "vision", {"app": "resnet"}, 4)]
        for pods, names in (("{namespace: vision}", ("train-1", "train-2", "waits")), ("{namespace: vision*, name: 'train-?'}", ("train-1", "train-2")),
                            ("{name: '*train*1'}", ("train-1", "etrain-1")), ("{image: 'train:*'}", ("train-1", "train-2", "etrain-1", "waits")),
                            ("{image: train}", ()), ("{labels: {app: r*, tier: '*'}}", ("train-1",)), ("{labels: {app: r}}", ())):
            args = self.said([f"{{pods: {pods}, demand: {{any: {{gpu_util_pct: 40, gpu_memory_gib: 3}}}}}}"])
            found = self.described(objects, *args)
            self.assertEqual(found["pattern"][0], len(names), pods)
            self.assertEqual(found["nobody"][0], 4 - len(names), pods)
            for name in names:
                line = self.line(("vision-dev/" if name[0] == "e" else "vision/") + name, "jobs.yaml")
                self.assertIn('{"any": {"gpu_util_pct": 40, "gpu_memory_gib": 3}}', line)
                self.assertNotIn("gpu_milli", line)  # it may share

    def test_the_first_pattern_that_matches_holds(self):
        objects = [product("a"), pod("one", "a", 1, minute=1), pod("two", "a", 1, minute=2)]
        args = self.said(["{pods: {name: one}, kind: best-effort, share: anyone, demand: {any: {gpu_util_pct: 1, gpu_memory_gib: 1}}}",
                          f"{{pods: {{name: '*'}}, model: {RESNET}, batch: 32, exclusive: true}}", "{pods: {name: two}, model: llama-3.1-8b, dims: {seq: 64}}"])
        notes = self.report(objects, *args)["notes"]
        self.assertIn('kind: best-effort, share: anyone', self.line("default/one", "jobs.yaml"))
        self.assertIn(f'model: "{RESNET}", batch: 32, exclusive: true', self.line("default/two", "jobs.yaml"))
        self.assertIn(f"1 profiles are the first match of no pod with GPUs: '{self.folder / 'profiles.yaml'}:5: profiles[2]'", notes)

    def test_a_model_is_found_from_the_folder_of_the_profiles(self):
        (self.folder / "net.onnx").write_bytes(RESNET.read_bytes())
        self.import_([product("a"), pod("p", "a", 1)], *self.said(["{pods: {name: p}, model: net.onnx}"]))
        code, _, err = run("potential", "--cluster", self.folder / "out/cluster.yaml", "--jobs", self.folder / "out/jobs.yaml", cwd="/")
        self.assertEqual((code, err), (0, ""))

    def test_a_pod_that_cannot_be_what_a_pattern_says_keeps_its_requests(self):
        objects = [product("a"), pod("p", "a", 2)]
        for wrong in ("model: llama-3.1-8b, dims: {seq: 64}, kind: inference, tensor_parallel: 4", "demand: {t4: {gpu_util_pct: 40, gpu_memory_gib: 3}}"):
            found = self.report(objects, *self.said([f"{{pods: {{name: p}}, {wrong}}}"]))
            self.assertTrue(any("default/p matches with another number or type of GPUs" in note for note in found["notes"]), found["notes"])
            self.assertIn("gpu_milli: 1000", self.line("default/p", "jobs.yaml"))
        self.import_(objects, *self.said(["{pods: {name: p}, model: llama-3.1-8b, dims: {seq: 64}, kind: inference, tensor_parallel: 2}"]))
        self.assertIn("tensor_parallel: 2", self.line("default/p", "jobs.yaml"))

    def test_what_was_measured_goes_before_patterns_and_after_a_pods_own_profile(self):
        shared = {**gpu_device(0), "allowMultipleAllocations": True}
        own = pod("own", "d", resourceClaims=[{"name": "g", "resourceClaimName": "c"}], annotations={"libhorus.org/profile": "net"}, minute=3)
        part = product("s", 4, labels={"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.count": "1"})
        objects = [product("a"), node("d"), resource_slice("x", "d", [shared]), claim("c", "gpu-0", "d", memory="30Gi"), profile("net"), own, part,
                   pod("seen", "a", 1, minute=1), pod("unseen", "a", 2, minute=2), pod("part", "s", 1, minute=4), pod("odd", "s", 1, "other", minute=5)]
        seen = [measured(name, gpu_util_pct=12.5, gpu_util_pct_upper=60, mem_bw_util_pct=4, gpu_memory_mib=5000) for name in ("seen", "own", "part")]
        found = self.report(objects, *self.said(
            ["{pods: {namespace: default}, share: anyone, slowdown_bound: 2, demand: {any: {gpu_util_pct: 70, gpu_memory_gib: 3}}}"], answer(*seen)))
        self.assertEqual([(one["by"], one["jobs"], one["gpus"]) for one in found["described"]],
                         [("job_profile", 1, 1), ("measured", 1, 1), ("pattern", 2, 2.5), ("engine", 0, 0), ("nobody", 1, 0.5)])
        self.assertEqual(sum(one["gpus_pct"] for one in found["described"]), 100)
        line = self.line("default/seen", "jobs.yaml")
        self.assertIn("share: anyone, slowdown_bound: 2, demand: {a100-80gb: {gpu_util_pct: [12.5, 60], mem_bw_util_pct: [4, 4], "
                      "gpu_memory_gib: [4.8828125, 4.8828125]}}", line)
        self.assertIn("gpu_util_pct: [12.5, 20]", self.line("default/own", "jobs.yaml"))  # the JobProfile's
        self.assertIn('"gpu_util_pct": 70', self.line("default/part", "jobs.yaml"))  # the exporter saw all pods of that GPU
        self.assertTrue(any(note.startswith("1 measured pods have parts of GPUs") for note in found["notes"]), found["notes"])

    def test_a_pod_that_waits_does_what_its_siblings_were_seen_to_do(self):
        def owned(one, owner):
            one["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}]
            return one
        objects = [product("a"), owned(pod("runs", "a", 1, minute=1), "web"), owned(pod("waits", None, 1, minute=2), "web"),
                   owned(pod("other", None, 1, minute=3), "batch"), pod("alone", None, 1, minute=4),
                   owned(pod("larger", None, 2, minute=5), "web"), owned(pod("foreign", None, 1, "elsewhere", minute=6), "web")]
        found = self.described(objects, *self.said(measured=answer(measured("runs", gpu_util_pct=12.5, gpu_memory_mib=5000))))
        self.assertEqual((found["measured"], found["nobody"]), ((2, 1), (4, 0)))
        self.assertIn("gpu_util_pct: [12.5, 12.5]", self.line("default/waits", "waiting.yaml"))

    def test_a_gang_is_as_busy_as_its_busiest_pod(self):
        gang = {"scheduling.x-k8s.io/pod-group": "g"}
        objects = [product("a"), *(pod(f"p{i}", "a", 1, labels=gang, minute=1) for i in range(2))]
        self.import_(objects, *self.said(measured=answer(measured("p0", gpu_util_pct=10, gpu_memory_mib=90000),
                                                         measured("p1", gpu_util_pct=100, gpu_memory_mib=2048))))
        line = self.line("default/g", "jobs.yaml")
        self.assertIn("tasks: 2", line)
        # A card's memory less what placers keep free, and never a figure that reads as a request.
        self.assertRegex(line, r"gpu_util_pct: \[99\.9\d*, 100\], gpu_memory_gib: \[79\.51171875, 79\.51171875\]")
        _, text, _ = run("shadow", "--cluster", self.folder / "out/cluster.yaml", "--jobs", self.folder / "out/jobs.yaml", "--log",
                         self.folder / "out/decisions.csv", "--json")
        self.assertEqual((json.loads(text)["decisions_of_requests_alone"], json.loads(text)["broken_rules"]), (0, {}))

    def test_measured_pods_that_nobody_has_are_told(self):
        found = self.report([product("a"), pod("p", "a", 1)], *self.said(measured=answer(measured("exporter", gpu_util_pct=1, gpu_memory_mib=1))))
        self.assertIn("1 pods were measured, and none is among the objects: default/exporter", found["notes"])
        renamed = measured("p", "exported_", gpu_util_pct=1, gpu_memory_mib=1)
        self.assertEqual(self.described([product("a"), pod("p", "a", 1)], *self.said(measured=answer(renamed)))["measured"], (1, 1))

    def test_wrong_profiles_and_measurements_are_told_with_their_place(self):
        demand = "demand: {any: {gpu_util_pct: 40, gpu_memory_gib: 3}}"
        for pattern, parts in ((f"{{pods: {{namspace: a}}, {demand}}}", ("profiles.yaml:3: profiles[0].pods", "namespace", "'namspace'")),
                            (f"{{pods: {{}}, {demand}}}", ("profiles[0].pods: expected at least one of",)),
                            (f"{{{demand}}}", ("profiles[0]: expected key 'pods'",)),
                            ("{pods: {name: a}, model: none.onnx}", ("profiles.yaml:3: profiles[0].model: ", "none.onnx")),
                            ("{pods: {name: a}, model: llama-3.1-8b}", ("profiles.yaml:3: profiles[0].model: ", "expected a size for 'seq'")),
                            ("{pods: {name: a}, batch: 8}", ("profiles[0]: expected either 'model'", "found neither")),
                            (f"{{pods: {{name: a}}, gpus: 2, {demand}}}", ("profiles[0]", "'gpus'")),
                            ("{pods: {name: a}, demand: {any: {gpu_util_pct: 400}}}", ("profiles[0].demand",))):
            err = self.import_([product("a")], *self.said([pattern]), code=2)
            for part in parts:
                self.assertIn(part, err)
        wrong = measured("p", gpu_util_pct=140)
        for answered, parts in (({"data": {"resultType": "matrix", "result": []}}, ("measured.json: data.resultType: expected vector", "'matrix'")),
                                ([], ("data.resultType: expected vector",)), (answer(wrong), ("data.result[0].value[1]: expected per cent", "'140'")),
                                (answer(measured("", gpu_util_pct=1)), ("data.result[0].metric.pod: expected the name of a pod",)),
                                (answer(measured("p", gpu_busy=1)), ("data.result[0].metric.figure: expected gpu_util_pct", "'gpu_busy'"))):
            err = self.import_([product("a")], *self.said(measured=answered), code=2)
            for part in parts:
                self.assertIn(part, err)

    def test_the_example_of_the_docs_describes_all_but_one_job(self):
        folder = ROOT / "examples/kubernetes/import"
        found = self.described(json.loads((folder / "objects.json").read_text())["items"], "--profiles", folder / "profiles.yaml",
                               "--measured", folder / "measured.json")
        self.assertEqual(found, {"job_profile": (0, 0), "measured": (4, 4), "pattern": (5, 4), "engine": (0, 0), "nobody": (1, 1)})
        for command in ("potential", "place"):
            code, _, err = run(command, "--cluster", self.folder / "out/cluster.yaml", "--jobs", self.folder / "out/jobs.yaml")
            self.assertEqual((code, err), (0, ""), command)


if __name__ == "__main__":
    main()
