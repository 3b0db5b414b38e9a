#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes public tables of measured runs as datasets (docs/measure.md), with graphs of examples/models and of --graphs.

Usage: datasets.py --data DIR [--graphs DIR]... --out DIR

Every *.csv under --data whose header is one of the known layouts becomes OUT/<name>.csv. A net without a graph is left
out and named on stderr. --graphs are the folders that graphs/measured.py and graphs/measured_others.py fill; their
nets are taken before those of the zoo. What a table does not say is assumed, and said here:

layout      assumed
MISO        TensorFlow (memory grows by doubling), Adam, float32; 32x32 images (224x224 would not fit at batch 512);
            BERT on 384 tokens (SQuAD), speech of 12 s (LibriSpeech's mean), translation of 64 tokens a side
Alnair      TensorFlow, Adam, float32; 75x75 images (the least that Inception takes; larger ones would not fit at batch
            1024); BERT on 128 tokens. MGUP is a maximum
SchedTune   PyTorch, momentum, float32, 224x224 images (299x299 Inception); the GPU is an opaque id; each net is a family
            of its own, as in the table: three families of siblings could promise no more than 75 %
Salus       TensorFlow, momentum, float32; the GPU is not named; families as SchedTune
Gavel       PyTorch before 2.0, float32; K80, P100 PCIe 16 GB, V100 SXM2 16 GB; 32 tokens a side

The layouts below stand in datasets_measured.py, and what they assume at its head: timm, NVIDIA's examples, NeuSight's
nets and operators, xMem, PEFT, Qwen.
"""
import argparse
import csv
import os
import pathlib
import re
import sys

import datasets_measured

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MODELS = ROOT / "examples" / "models"
COLUMNS = ("graph", "net", "family", "batch", "dims", "mode", "precision", "optimizer", "framework", "layout",
           "frozen", "checkpoint_segments", "gpu", "sharing_mode", "gpu_util_pct", "gpu_util_max_pct", "mem_bw_util_pct",
           "mem_mib", "step_time_us", "power_w", "campaign", "note")
# GPU words of file names and columns -> catalogue types; the form that the sources of the tables name or imply.
GPUS = {"k80": "k80", "m60": "m60", "p100": "p100-pcie-16gb", "v100": "v100-sxm2-16gb", "t4": "t4", "a100": "a100-40gb",
        "a10": "a10", "a40": "a40", "h100": "h100-sxm", "h200": "h200"}
MB_PER_MIB = 1e6 / (1 << 20)
US_PER_S = 1e6
NAMED = 20  # nets without a graph that are named one by one
TRACED = {"training": "train", "inference": "eval"}  # a dataset's mode -> an index's

# Names of the tables -> zoo net, dimensions, optimiser.
MISO = {"resnet": ("resnet50_32px", ""), "mobilenet": ("mobilenet_v2_32px", ""), "bert": ("bert_base", "seq=384"),
        "cyclegan": ("cyclegan", ""), "deepspeech2": ("deepspeech2", "seq=1200"),
        "transformer": ("transformer_base", "src_seq=64;tgt_seq=64")}
ALNAIR = {"mobilenet": ("mobilenet_v1_75px", ""), "nasnet_mobile": ("nasnet_mobile_75px", ""),
          "efficientnet_v2": ("efficientnet_v2_s_75px", ""), "resnet50": ("resnet50_75px", ""),
          "inception_v3": ("inception_v3_75px", ""), "dcgan": ("dcgan_mnist", ""),
          "small_bert/bert_en_uncased_l-2_h-128_a-2": ("bert_tiny", "seq=128"),
          "small_bert/bert_en_uncased_l-4_h-512_a-8": ("bert_small", "seq=128")}
GAVEL = {"ResNet-18": ("resnet18_cifar", "", "momentum"), "ResNet-50": ("resnet50", "", "momentum"),
         "LM": ("lstm_wikitext2", "seq=35", "sgd"),
         "Transformer": ("transformer_multi30k", "src_seq=32;tgt_seq=32", "adam"),
         "Recommendation": ("autoencoder_ml20m", "", "adam"), "CycleGAN": ("cyclegan", "", "adam"),
         "A3C": ("a3c_pong_rollout", "", "adam")}
SALUS = {"inception3": "inception_v3"}


class Writer:
    """Rows of one dataset; nets without a graph, and rows left out for another reason, are counted instead."""

    def __init__(self, families, out, exported=None):
        self.families, self.out, self.exported = families, out, exported or {}
        self.rows, self.without, self.left = [], {}, {}

    def exported_for(self, net, size, mode):
        return self.exported.get((net, size, TRACED[mode]) if size else (net, "", ""))

    def add(self, net, name, size=None, **fields):
        """A row, if the net has a graph: an exported one (of an image size, if given), else one of the zoo."""
        graph = self.exported_for(net, size, fields.get("mode", "training"))
        if graph is None and (size or net not in self.families):
            self.without[name] = self.without.get(name, 0) + 1
            return
        path = graph["path"] if graph else MODELS / "graphs" / f"{net}.onnx"
        family = graph["family"] if graph else self.families[net]  # fields may name another than the graph's
        self.rows.append({"graph": os.path.relpath(path, self.out), "net": net, "family": family, "precision": "fp32",
                          "mode": "training", "sharing_mode": "exclusive", **fields})

    def leave_out(self, reason):
        self.left[reason] = self.left.get(reason, 0) + 1

    def write(self, name):
        """The file; none if no row has a graph."""
        for reason, count in sorted(self.left.items()):
            print(f"{name}: {count} rows left out: {reason}", file=sys.stderr)
        if len(self.without) > NAMED:
            some = ", ".join(sorted(self.without)[:3])
            print(f"{name}: no graph for {len(self.without)} nets ({some}, ...): {sum(self.without.values())} rows left out; "
                  "--graphs names folders of more", file=sys.stderr)
        else:
            for missing, count in sorted(self.without.items()):
                print(f"{name}: no graph for {missing}: {count} rows left out", file=sys.stderr)
        if not self.rows:
            print(f"{name}: no row has a graph: no dataset", file=sys.stderr)
            return None
        path = self.out / f"{name}.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows)
        return path


def gpu_in(text):
    """The GPU that a text names as a word of its own; an opaque one if it names none."""
    words = re.split(r"[^a-z0-9]+", text.lower())
    found = [gpu for word, gpu in GPUS.items() if word in words]
    return found[0] if found else f"opaque:{words[0]}"


def miso(rows, stem, writer):
    for r in rows:  # its power is left out: one type of GPU teaches nothing of others
        net, dims = MISO.get(r["model"], (r["model"], ""))
        writer.add(net, r["model"], dims=dims, batch=r["batch"], optimizer="adam", framework="tensorflow",
                   precision="tf32",
                   gpu=gpu_in(stem), gpu_util_pct=r["gpu_util_pct"], mem_bw_util_pct=r["gpu_mem_util_pct"])


def alnair(rows, stem, writer):
    for r in rows:
        name = "".join(r["Model"].split()).lower()
        net, dims = ALNAIR.get(name, (name, ""))
        bert = re.fullmatch(r"small_bert/bert_en_uncased_l-(\d+)_h-(\d+)_a-\d+", name)
        if name not in ALNAIR and bert:
            net, dims = f"bert_l{bert[1]}_h{bert[2]}", "seq=128"
        writer.add(net, r["Model"].strip(), dims=dims, batch=r["BS"], optimizer="adam", framework="tensorflow",
                   gpu=gpu_in(stem), gpu_util_max_pct=r["MGUP"])


def schedtune(rows, stem, writer):
    known = {"model", "batchsize", "activations", "parameters", "input", "peak mem usage"}
    cards = {}
    for r in rows:
        card = tuple(v for k, v in r.items() if k not in known)
        cards.setdefault(card, f"opaque:{stem}-{len(cards) + 1}")
        writer.add(r["model"], r["model"], family=r["model"], batch=r["batchsize"], optimizer="momentum", framework="pytorch-1", campaign=stem,
                   gpu=cards[card], mem_mib=r["peak mem usage"])


def salus(rows, stem, writer):
    seen = set()
    for r in rows:
        model, batch, *_ = r["name"].split("_")
        if (model, batch) in seen:  # each configuration was run for three lengths of time
            continue
        seen.add((model, batch))
        writer.add(SALUS.get(model, model), model, family=model, batch=batch, optimizer="momentum", framework="tensorflow",
                   gpu=f"opaque:{stem}", mem_mib=f"{float(r['peak_mem_mb']) * MB_PER_MIB:.1f}", campaign=stem)


def gavel(rows, stem, writer):
    # A pass over all data takes as long at any batch size: such a row is no step.
    passes = {}
    for r in rows:
        name = job_of(r["job"])[0]
        passes.setdefault((r["source"], r["gpu"], name), []).append(float(r["steps_per_s"]))
    for r in rows:
        name, batch = job_of(r["job"])
        speeds = [s for s in passes[r["source"], r["gpu"], name] if s > 0]
        if r["scale_factor"] != "1" or float(r["steps_per_s"]) <= 0:
            continue
        net, dims, optimizer = GAVEL.get(name, ("", "", ""))
        if name == "Recommendation" and max(speeds) < 3 * min(speeds):
            writer.add("", f"{r['job']} of {r['source']} (a whole pass, not a step)")
            continue
        writer.add(net, r["job"], dims=dims, batch=batch, optimizer=optimizer, framework="pytorch-1",
                   gpu=gpu_in(r["gpu"]), step_time_us=f"{US_PER_S / float(r['steps_per_s']):.1f}",
                   campaign=r["source"], note=HOST_WORK.get(name, ""))


def job_of(text):
    match = re.fullmatch(r"(.*?)(?: \(batch size (\d+)\))?", text)
    return match[1], match[2] or "1"


# Nets whose step does work that no graph shows.
HOST_WORK = {"A3C": "host: a step simulates its games"}

# Columns that tell a layout.
LAYOUTS = ((miso, {"model", "batch", "gpu_util_pct", "power_w"}), (alnair, {"Model", "BS", "MGUP"}),
           (schedtune, {"model", "batchsize", "peak mem usage"}), (salus, {"name", "runtime_s", "peak_mem_mb"}),
           (gavel, {"source", "gpu", "job", "scale_factor", "steps_per_s"}), *datasets_measured.LAYOUTS)


def convert(path, families, out, exported=None):
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        header = set(reader.fieldnames or [])
        layout = next((read for read, columns in LAYOUTS if columns <= header), None)
        if layout is None:
            return None
        rows = list(reader)
    writer = Writer(families, out, exported)
    layout(rows, path.stem, writer)
    return writer.write(path.stem)


def zoo_families():
    """Net of the zoo -> model family."""
    with (MODELS / "zoo.csv").open(newline="", encoding="utf-8") as file:
        return {row["net"]: row["family"] for row in csv.DictReader(file)}


def exported_graphs(folders):
    """(net, image size, mode) -> the row of the index, with its path; size and mode blank: one graph for all rows."""
    found = {}
    for folder in folders:
        index = folder / "index.csv"
        if not index.exists():
            print(f"{folder}: expected index.csv of exported graphs, found none", file=sys.stderr)
            continue
        with index.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if row["accepted"] == "1":
                    path = (folder / row["file"]).resolve()
                    found[row["net"], row["image_size"], row["mode"]] = {**row, "path": path}
    return found


def convert_all(data, out, graphs=(), convert_one=convert):
    """What convert_one makes of each table under `data` whose layout it knows."""
    out.mkdir(parents=True, exist_ok=True)
    families, exported = zoo_families(), exported_graphs(graphs)
    return [found for path in sorted(data.rglob("*.csv"))
            if (found := convert_one(path, families, out.resolve(), exported))]


def main(doc, convert_every, takes_graphs=False):
    """A command line of --data and --out around convert_every(data, out[, graphs]), whose paths it prints."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=pathlib.Path)
    if takes_graphs:
        parser.add_argument("--graphs", action="append", default=[], type=pathlib.Path, metavar="DIR",
                            help="folder of exported graphs; may be repeated")
    parser.add_argument("--out", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    written = convert_every(arguments.data, arguments.out, *([arguments.graphs] if takes_graphs else []))
    for path in written:
        print(path)
    return 0 if written else 1


if __name__ == "__main__":
    sys.exit(main(__doc__, convert_all, takes_graphs=True))
