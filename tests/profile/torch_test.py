# SPDX-License-Identifier: Apache-2.0
"""The profiler with the real PyTorch on the CPU: steps, constants, graphs, a whole campaign. Usage: see fresh_machine.py.

Runs under the first interpreter found that has torch, or under each of $HORUS_TORCH_PYTHON (colon-separated); where there
is none it says so and ends with status 77. With $HORUS_COMMAND, the built `horus`, it also checks what that reads.
"""
import importlib.util
import json
import os
import pathlib
import unittest

from fresh_machine import ROOT, SKIPPED, FreshMachine, main, subprocess, sys


def have_torch():
    """The interpreters to test under."""
    asked = list(filter(None, os.environ.get("HORUS_TORCH_PYTHON", "").split(":")))
    found = []
    for one in asked or [sys.executable, *(os.path.join(folder, "python3") for folder in os.get_exec_path())]:
        done = subprocess.run([one, "-c", "import torch"], capture_output=True, check=False) if os.path.exists(one) else None
        if done and done.returncode == 0:
            found.append(one)
        elif asked:
            sys.exit(f"HORUS_TORCH_PYTHON: {one} cannot import torch")
        if found and not asked:
            break
    return found


if "HORUS_TORCH_FOUND" not in os.environ:
    interpreters = have_torch()
    if not interpreters:
        print("SKIPPED: no python3 has torch; nothing of the profiler's torch side is tested here")
        sys.exit(SKIPPED)
    failed = False
    for interpreter in interpreters:
        print(f"-- {interpreter}", flush=True)
        failed |= bool(subprocess.run([interpreter, *sys.argv], env={**os.environ, "HORUS_TORCH_FOUND": interpreter},
                                      check=False).returncode)
    sys.exit(failed)

sys.path.insert(0, str(ROOT / "bench" / "profile"))

import torch

import graphs
import training
import wire
import zoo

CPU = torch.device("cpu")
HORUS = os.environ.get("HORUS_COMMAND")
NETS = """
import torch

def tiny(batch):
    return torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(),
                               torch.nn.Linear(8 * 36, 4)), torch.rand(batch, 3, 8, 8)

def own_loss(batch):
    return torch.nn.Linear(8, 8), (torch.rand(batch, 8),), lambda outputs: outputs.square().mean()

def narrow(batch):
    return torch.nn.Linear(64, 64), torch.rand(batch, 64)

def wide(batch):
    return torch.nn.Linear(512, 1024), torch.rand(batch, 512)

def wrong(batch):
    return torch.nn.Linear(8, 8)
"""


def order(net, batch=2, **more):
    return {"net": net, "family": "own", "batch": batch, "dims": {}, "precision": "fp32", "optimizer": "adam",
            "mode": "training", **more}


class Real(FreshMachine):
    stand_ins = ()

    def setUp(self):
        super().setUp()
        self.nets.write_text(NETS)
        sys.modules.pop("nets", None)

    def test_a_campaign_of_a_users_net_end_to_end(self):
        code, said = self.run_tool("tiny", more=("--batches", "2", "--kinds", "isolated,pairs", "--sharing", "time-slice"))
        self.assertEqual(code, 0, said)
        rows = self.rows("dataset.csv")
        self.assertGreater(float(rows[0]["step_time_us"]), 0)
        self.assertEqual(rows[0]["framework"], training.framework())
        graph = (self.out / rows[0]["graph"]).read_bytes()
        self.assertLess(len(graph), 4000)  # 1400 weights of 4 bytes are not in it
        self.assertIn(b"Conv", graph)
        self.assertIn(b"BatchNormalization", graph)
        groups = [run["outcome"] for run in self.journal() if run["kind"] == "shared"]
        self.assertEqual(groups, ["ok"])
        # A busy machine may slow the job alone so much that the pair looks impossible.
        self.assertEqual(len(self.rows("pairs.csv")) + self.manifest()["groups_dropped"], 1)
        self.assertEqual(self.manifest()["sessions"][0]["software"]["torch"], torch.__version__)
        self.assert_nobody_left()

    @unittest.skipUnless(HORUS, "HORUS_COMMAND is not set")
    def test_from_nothing_to_a_bundle_in_one_go(self):
        code, said = self.run_tool("tiny", "narrow", "wide", more=(
            "--batches", "2,4,8,16", "--kinds", "isolated", "--window", "0.5", "--train", "--horus", HORUS))
        self.assertEqual(code, 0, said)
        self.assertGreaterEqual(len(self.rows("dataset.csv")), 12)
        self.assertGreater((self.out / "trained" / "demand.hbundle").stat().st_size, 0)
        found = json.loads((self.out / "trained" / "accuracy.json").read_text())
        self.assertLessEqual({"gpu_util_pct", "step_time_us"}, set(found["demand"]["before"]))

    def test_every_optimiser_and_mode_makes_steps(self):
        net = f"{self.nets}:tiny"
        for more in ({"optimizer": "sgd"}, {"optimizer": "momentum"}, {"optimizer": "adamw"}, {"mode": "inference"},
                     {"precision": "bf16"}, {"precision": "amp-bf16"}, {"precision": "tf32"}):
            step = training.Step(order(net, **more), CPU)
            before = [one.detach().clone() for one in step.model.parameters()]
            step()
            step()
            moved = any(not torch.equal(a, b) for a, b in zip(before, step.model.parameters()))
            self.assertEqual(moved, more.get("mode") != "inference", more)

    def test_a_net_may_bring_its_loss(self):
        step = training.Step(order(f"{self.nets}:own_loss"), CPU)
        step()
        self.assertFalse(isinstance(step.loss, training.Loss))

    def test_a_function_that_returns_no_net_is_refused(self):
        with self.assertRaisesRegex(TypeError, "expected .model, inputs."):
            training.Step(order(f"{self.nets}:wrong"), CPU)

    def test_unknown_words_are_refused_with_what_was_expected(self):
        net = f"{self.nets}:tiny"
        for more, expected in (({"optimizer": "lamb"}, "expected one of sgd"), ({"precision": "fp8"}, "expected one of fp32")):
            with self.assertRaisesRegex(ValueError, expected):
                training.Step(order(net, **more), CPU)
        with self.assertRaisesRegex(ValueError, r"expected axes of \['batch', 'seq'\]"):
            training.Step(order("bert_tiny", dims={"sequence": 4}), CPU)

    def test_the_graph_has_a_batch_axis_and_no_weights(self):
        for name, exporter in graphs.EXPORTERS.items():
            if name == "dynamo" and importlib.util.find_spec("onnxscript") is None:
                continue  # it cannot run without; the other one is there then
            path = self.folder / f"{name}.onnx"
            try:
                graphs.export(order(f"{self.nets}:tiny"), str(path), {name: exporter})
            except RuntimeError as error:
                self.assertEqual(name, "torchscript", error)  # gone from the newest PyTorch
                continue
            self.assertIn(b"batch", path.read_bytes())
            self.assertLess(path.stat().st_size, 4000, name)

    @unittest.skipUnless(HORUS, "HORUS_COMMAND is not set")
    def test_horus_reads_what_each_exporter_wrote_with_every_parameter_that_trains(self):
        trained = sum(one.numel() for one in training.net_of(order(f"{self.nets}:tiny"))[0]().parameters())
        for name, exporter in graphs.EXPORTERS.items():
            if name == "dynamo" and importlib.util.find_spec("onnxscript") is None:
                continue
            path = self.folder / f"{name}.onnx"
            graphs.export(order(f"{self.nets}:tiny"), str(path), {name: exporter})
            read = json.loads(subprocess.run([HORUS, "inspect", path, "--batch", "4", "--json"], check=True,
                                             capture_output=True, text=True).stdout)
            self.assertEqual(read["parameters"], trained, name)  # normalisations are not folded away
            self.assertEqual(read["forward_flops"], 4 * 2 * (36 * 8 * 27 + 8 * 36 * 4), name)
            self.assertEqual(read["coverage"]["unknown"], [], name)

    def test_no_exporter_takes_it(self):
        def fails(*_):
            raise ValueError("no such operator")
        with self.assertRaisesRegex(RuntimeError, "one: ValueError: no such operator"):
            graphs.export(order(f"{self.nets}:tiny"), str(self.folder / "x.onnx"), {"one": fails})


class Parts(FreshMachine):
    stand_ins = ()

    def test_a_net_computes_on_its_device_what_it_makes_from_sizes(self):
        step = training.Step(order("bert_tiny", dims={"seq": 8}), torch.device("meta"))
        step()  # a tensor left on the CPU could not be added to one of the meta device
        self.assertIs(torch.arange, step.constants.originals["arange"])

    def test_constants_are_made_once(self):
        constants = training.Constants(CPU)
        with constants:
            self.assertIs(torch.arange(5), torch.arange(5))
            self.assertIsNot(torch.arange(5), torch.arange(6))
        self.assertIsNot(torch.arange(5), torch.arange(5))

    def test_out_of_memory_is_told_from_other_errors(self):
        self.assertTrue(training.is_out_of_memory(RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")))
        for said in ("cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate`",
                     "NVML_SUCCESS == r INTERNAL ASSERT FAILED at CUDACachingAllocator.cpp"):
            self.assertTrue(training.is_out_of_memory(RuntimeError(said)), said)
        for other in (RuntimeError("shapes differ"), ValueError("out of memory"), RuntimeError("CUDA error: device-side assert")):
            self.assertFalse(training.is_out_of_memory(other), other)

    def test_nets_need_what_the_plan_says(self):
        known, missing = zoo.definitions()
        buildable = {net for net, runs in zoo.ZOO.items() if runs.needs == "torch"}
        self.assertLessEqual(buildable, set(known))
        self.assertLessEqual(set(missing.values()), {"torchvision"})

    def test_stripping_agrees_with_the_onnx_package(self):
        if importlib.util.find_spec("onnx") is None:
            self.skipTest("the onnx package is not installed")
        import onnx
        path = pathlib.Path(ROOT, "examples/models/graphs/bert_tiny.onnx")
        model = onnx.load_from_string(wire.light_model(path.read_bytes(), {"horus.net": "x"}))
        self.assertEqual(model.graph, onnx.load(str(path), load_external_data=False).graph)
        self.assertEqual([(one.key, one.value) for one in model.metadata_props], [("horus.net", "x")])


if __name__ == "__main__":
    main()
