# SPDX-License-Identifier: Apache-2.0
"""How bench/quality/datasets.py turns measured tables into datasets: which rows, under which graph, in which units.

Usage: datasets_test.py REPOSITORY_ROOT
"""
import contextlib
import csv
import io
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(ROOT / "bench" / "quality"))

import datasets
import datasets_measured

INDEX = ("net", "family", "image_size", "mode", "file", "parameters", "nodes", "accepted", "reason")
# One row of each layout; the numbers are made up.
TIMM = dict(net="net_a", family="deit", gpu="RTX 3090", mode="train", precision="amp_fp16", layout="nhwc", compiled="0",
            torch="1.12", batch="64", image_size="224", step_time_ms="100", params_m="20", reparam="0", held_by="")
NVIDIA = dict(net="ResNet-50 v1.5", framework="PyTorch", gpu="A100 80GB", n_gpus="1", precision="amp", batch_per_gpu="",
              seq_len="", mode="train", throughput="512", unit="images/s", flag="", note="")
NEUSIGHT = dict(net="opt_13", architecture="OPT", seq_len="64", batch="2", mode="inference", compiled="0", gpu="Tesla T4",
                n_gpus="1", forward_ms="10", backward_ms="")
OPERATOR = dict(op="bmm", gpu="Tesla T4", rows_b="", width_h="", gemm_b="2", gemm_m="3", gemm_k="5", gemm_n="7", conv_n="",
                conv_cin="", conv_cout="", conv_kernel="", conv_in_size="", conv_stride="", conv_pad="", latency_ms="0.5",
                torch="2.1.0")
XMEM = dict(library_id="t5-small", net="T5-small", family="transformer", optimizer="AdamW", batch="4", precision="fp32",
            input="tokens<=128 (longest of batch)", gpu="NVIDIA GeForce RTX 3060", oom="0", nvml_peak_bytes="1048576",
            source="plot/data/002-x/y.json")
PEFT = dict(base_model="meta-llama/Llama-3.2-3B", method="LORA", variant="llama-3.2-3B-rank32", batch="4",
            gpu="NVIDIA L40S", reserved_p99_bytes="1048576", ms_per_step="200", tokens_per_s="2000", torch="2.9")
QWEN = dict(task="fine-tune", net="Qwen-7B", method="LoRA", gpus="1", seq_len="512", batch="1", kv_cache="", memory_gb="2",
            speed="4")


def convert(*rows, graphs=()):
    """(rows of the dataset, what was said) of a table; `graphs` are (net, image size, mode[, changes])."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as said:
        folder = pathlib.Path(folder)
        for name, columns, content in (("data/table.csv", tuple(rows[0]), rows),
                                       ("graphs/index.csv", INDEX, [indexed(*graph) for graph in graphs])):
            path = folder / name
            path.parent.mkdir()
            with path.open("w", newline="") as out:
                writer = csv.DictWriter(out, columns)
                writer.writeheader()
                writer.writerows(content)
        made = []
        for path in datasets.convert_all(folder / "data", folder / "out", [folder / "graphs"]):
            with path.open(newline="") as source:
                made += list(csv.DictReader(source))
        for row in made:
            row["graph"] = (folder / "out" / row["graph"]).resolve().name
        return made, said.getvalue()


def indexed(net, size="", mode="", **changes):
    return {**dict(net=net, family=net, image_size=size, mode=mode, file=f"{net}.onnx", parameters="20000000", nodes="9",
                   accepted="1", reason=""), **changes}


class Tables(unittest.TestCase):
    def test_a_row_finds_its_graph_from_where_the_dataset_lies(self):
        rows, said = convert(TIMM, graphs=[("net_a", "224", "train")])
        self.assertEqual((rows[0]["graph"], said), ("net_a.onnx", ""))

    def test_a_table_without_graphs_is_told_and_makes_no_dataset(self):
        for graphs in ([], [("net_a", "224", "eval")], [("net_a", "288", "train")]):
            rows, said = convert(TIMM, graphs=graphs)
            self.assertEqual(rows, [])
            self.assertEqual(said, "table: no graph for net_a: 1 rows left out\ntable: no row has a graph: no dataset\n")

    def test_a_refused_graph_is_none(self):
        with tempfile.TemporaryDirectory() as folder:
            index = pathlib.Path(folder) / "index.csv"
            index.write_text(",".join(INDEX) + "\nnet_a,deit,224,train,a.onnx,1,1,0,why\nnet_b,deit,,,b.onnx,1,1,1,\n")
            self.assertEqual(list(datasets.exported_graphs([pathlib.Path(folder)])), [("net_b", "", "")])

    def test_many_nets_without_graphs_are_told_in_one_line(self):
        _, said = convert(*({**TIMM, "net": f"net_{i:02}"} for i in range(datasets.NAMED + 1)))
        self.assertIn("no graph for 21 nets (net_00, net_01, net_02, ...): 21 rows left out", said)

    def test_layouts_are_told_apart(self):
        every = (TIMM, NVIDIA, NEUSIGHT, OPERATOR, XMEM, PEFT, QWEN)
        found = [next(read for read, columns in datasets.LAYOUTS if columns <= set(row)) for row in every]
        self.assertEqual(found, [read for read, _ in datasets_measured.LAYOUTS])

    def test_columns_of_rows_are_columns_of_datasets(self):
        for table, graph in ((TIMM, ("net_a", "224", "train")), (QWEN, ("qwen-7b-lora64",))):
            rows, _ = convert(table, graphs=[graph])
            self.assertEqual(tuple(rows[0]), datasets.COLUMNS)


class Timm(unittest.TestCase):
    GRAPHS = [("net_a", "224", "train"), ("net_a", "224", "eval")]

    def test_a_training_row(self):
        row, = convert(TIMM, graphs=self.GRAPHS)[0]
        self.assertEqual((row["mode"], row["optimizer"], row["framework"], row["precision"], row["layout"]),
                         ("training", "momentum", "pytorch-1", "amp", "nhwc"))
        self.assertEqual((row["gpu"], row["batch"], row["step_time_us"]), ("rtx-3090", "64", "100000.0"))
        self.assertEqual((row["family"], row["campaign"]), ("vision_transformer", "timm train 3090 1.12 nhwc"))

    def test_frameworks(self):
        for torch, compiled, framework in (("1.13", "0", "pytorch-1"), ("2.4.0", "0", "pytorch"),
                                           ("2.9.1", "1", "pytorch-compiled")):
            row, = convert({**TIMM, "mode": "infer", "torch": torch, "compiled": compiled}, graphs=self.GRAPHS)[0]
            self.assertEqual((row["framework"], row["optimizer"]), (framework, ""))

    def test_rows_that_are_held_back_folded_or_of_another_net_are_left_out(self):
        for change, reason in ((dict(held_by="family"), "held back (family)"), (dict(reparam="1"), "branches were folded"),
                               (dict(params_m="20.2"), "another net of that name: its parameters are not the graph's")):
            rows, said = convert({**TIMM, **change}, graphs=self.GRAPHS)
            self.assertEqual(rows, [])
            self.assertIn(f"1 rows left out: {reason}", said)


class Nvidia(unittest.TestCase):
    GRAPHS = [("resnet50-224px",)]

    def test_time_is_batch_over_rate_and_a_blank_batch_is_the_configured_one(self):
        row, = convert(NVIDIA, graphs=self.GRAPHS)[0]
        self.assertEqual((row["batch"], row["step_time_us"], row["layout"]), ("256", "500000.0", "nhwc"))
        row, = convert({**NVIDIA, "gpu": "V100 16GB", "precision": "fp32"}, graphs=self.GRAPHS)[0]
        self.assertEqual((row["batch"], row["layout"], row["gpu"]), ("112", "nchw", "v100-sxm2-16gb"))

    def test_without_a_batch_a_row_of_inference_is_left_out(self):
        self.assertIn("no batch is told", convert({**NVIDIA, "mode": "infer"}, graphs=self.GRAPHS)[1])

    def test_a_volta_has_no_tf32(self):
        row, = convert({**NVIDIA, "gpu": "V100 32GB", "precision": "tf32"}, graphs=self.GRAPHS)[0]
        self.assertEqual(row["precision"], "fp32")

    def test_bert_has_384_tokens_where_none_are_told_and_never_512(self):
        bert = {**NVIDIA, "net": "BERT-large", "batch_per_gpu": "8"}
        self.assertEqual([row["dims"] for row in convert(bert, {**bert, "seq_len": "128"})[0]], ["seq=384", "seq=128"])
        self.assertIn("not 512 tokens, it seems", convert({**bert, "seq_len": "512"})[1])

    def test_several_gpus_and_unknown_nets_are_left_out(self):
        self.assertIn("several GPUs", convert({**NVIDIA, "n_gpus": "8"}, graphs=self.GRAPHS)[1])
        self.assertIn("no graph for WaveGlow", convert({**NVIDIA, "net": "WaveGlow"}, graphs=self.GRAPHS)[1])


class Neusight(unittest.TestCase):
    GRAPHS = [("opt-1.3b",)]

    def test_a_training_row_is_both_passes(self):
        row, = convert({**NEUSIGHT, "mode": "training", "backward_ms": "20"}, graphs=self.GRAPHS)[0]
        self.assertEqual((row["step_time_us"], row["dims"], row["precision"]), ("30000.0", "seq=64", "fp32-ieee"))

    def test_a_forward_pass_that_waited_for_memory_is_left_out(self):
        rows, said = convert({**NEUSIGHT, "mode": "training", "backward_ms": "14"}, graphs=self.GRAPHS)
        self.assertEqual(rows, [])
        self.assertIn("backward pass below 1.5 forward passes", said)

    def test_gpus_of_others_are_left_out(self):
        self.assertIn("no AMD Instinct MI100 in the catalogue", convert({**NEUSIGHT, "gpu": "AMD Instinct MI100"})[1])

    def test_sizes_of_operators_are_dimensions_of_their_graphs(self):
        blank = {column: "" for column in OPERATOR if column.startswith(("gemm", "conv", "rows", "width"))}
        for change, graph, batch, dims in (
                ({}, "op_bmm", "2", "rows=3;inner=5;columns=7"),
                (dict(op="linear"), "op_linear", "6", "inner=5;columns=7"),
                ({**blank, "op": "ln", "rows_b": "8", "width_h": "16"}, "op_ln", "8", "width=16"),
                ({**blank, "op": "conv", "conv_n": "2", "conv_cin": "3", "conv_cout": "4", "conv_kernel": "3",
                  "conv_in_size": "9", "conv_stride": "1", "conv_pad": "1"}, "op_conv3x3", "2",
                 "channels=3;filters=4;height=9;width=9")):
            row, = convert({**OPERATOR, **change}, graphs=[(graph,)])[0]
            self.assertEqual((row["net"], row["batch"], row["dims"], row["step_time_us"]), (graph, batch, dims, "500.000"))

    def test_an_operator_with_its_sizes_is_a_family(self):
        rows, _ = convert(OPERATOR, {**OPERATOR, "gpu": "Tesla P4"}, {**OPERATOR, "gemm_n": "8"}, graphs=[("op_bmm",)])
        self.assertEqual([row["family"] for row in rows], ["op_bmm 2x3x5x7", "op_bmm 2x3x5x7", "op_bmm 2x3x5x8"])


class Memory(unittest.TestCase):
    def test_xmem(self):
        # its peaks lack the context, of which 400 MiB are counted
        row, = convert(XMEM, graphs=[("t5-small",)])[0]
        self.assertEqual((row["mem_mib"], row["optimizer"], row["dims"]), ("401.0", "adamw", "src_seq=128;tgt_seq=128"))
        self.assertEqual((row["gpu"], row["note"]), ("opaque:rtx-3060-12gb", "zero_grad at a random place"))
        self.assertIn("out of memory", convert({**XMEM, "oom": "1"}, graphs=[("t5-small",)])[1])

    def test_a_picture_has_no_length(self):
        row, = convert({**XMEM, "family": "cnn", "library_id": "vgg16"}, graphs=[("vgg16-86px",)])[0]
        self.assertEqual((row["net"], row["dims"]), ("vgg16-86px", ""))

    def test_peft_gives_memory_at_the_longest_and_time_at_the_mean(self):
        memory, time = convert(PEFT, graphs=[("llama-3.2-3b-lora-qv32",)])[0]
        self.assertEqual((memory["mem_mib"], memory["dims"], memory["step_time_us"]), ("401.0", "seq=768", ""))
        self.assertEqual((time["mem_mib"], time["dims"], time["step_time_us"]), ("", "seq=100", "200000.0"))
        self.assertEqual((time["frozen"], time["family"]), ("model;lm_head", "llama-3.2-3b"))

    def test_peft_trains_all_weights_or_those_of_lora(self):
        rows, _ = convert({**PEFT, "method": "FULL", "variant": "full"}, graphs=[("llama-3.2-3b",)])
        self.assertEqual([row["frozen"] for row in rows], ["", ""])
        for change in (dict(method="BOFT"), dict(variant="llama-3.2-3B-rank32-dora"), dict(base_model="flux")):
            self.assertIn("no graph holds the method", convert({**PEFT, **change}, graphs=[("llama-3.2-3b-lora-qv32",)])[1])

    def test_qwen(self):
        row, = convert(QWEN, graphs=[("qwen-7b-lora64",)])[0]
        self.assertEqual((row["mem_mib"], row["step_time_us"], row["checkpoint_segments"]), ("2048.0", "500000.0", "32"))
        row, = convert({**QWEN, "speed": "1.5", "method": "LoRA (emb)"}, graphs=[("qwen-7b-lora64",)])[0]
        self.assertEqual((row["step_time_us"], row["frozen"]), ("", "model.layers;model.norm"))
        for change in (dict(method="Full"), dict(method="Q-LoRA"), dict(task="generate to length"), dict(gpus="4")):
            self.assertIn("no graph holds the method", convert({**QWEN, **change}, graphs=[("qwen-7b-lora64",)])[1])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
