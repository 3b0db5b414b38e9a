#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Exports nets of timm and transformers as weight-free ONNX graphs; nothing is downloaded, weights are random.

  export.py --out DIR                       every net of nets.txt, fixed sizes, inference
  export.py --out DIR --mode train          as a training step would trace it (dropout and batch norm stay)
  export.py --out DIR --axes named          leading and sequence axes named, sizes computed in the graph
  export.py --out DIR --names FILE          the nets of FILE: lines `timm NAME` or `transformers NAME`

Stopped, it goes on where it was: a net whose line stands in DIR/exports.csv is not exported again. The line says the
file, its nodes, the parameters and multiply-adds that torch counts at the sizes of the export, or what failed.
Needs torch (apt's 1.13 or PyPI's), timm, transformers, onnx; see README.md.
"""
import argparse
import contextlib
import csv
import io
import multiprocessing
import pathlib
import sys
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "examples" / "models"))  # macs.py, weightless.py
sys.path.insert(0, str(HERE))

COLUMNS = ("net", "library", "mode", "axes", "file", "inputs", "parameters", "forward_macs", "nodes", "error")
OPSET = {"1": 16, "2": 18}  # by torch's major version
SECONDS = 900               # of one net
BATCH = 2                   # batch norm in training mode needs more than one value a channel


def timm_net(name):
    """The net, its inputs by name and the names of their axes."""
    import timm
    import torch
    model = timm.create_model(name, pretrained=False, scriptable=False)
    size = model.default_cfg.get("input_size", (3, 224, 224))
    return model, {"image": torch.rand(BATCH, *size)}, {"image": {0: "batch"}}


def randomise(model):
    """Distinct values, so that the exporter merges no equal tensors."""
    import torch
    with torch.no_grad():
        for tensor in list(model.parameters()) + [b for b in model.buffers() if b.is_floating_point()]:
            tensor.uniform_(0.01, 0.1)


def strip(model):
    """Drops payloads above weightless.KEPT_BYTES: what is left steers shapes."""
    import weightless
    pending = [model.graph] + [function for function in model.functions]
    while pending:
        graph = pending.pop()
        for tensor in getattr(graph, "initializer", ()):
            if weightless.size_bytes(tensor) > weightless.KEPT_BYTES:
                weightless.strip(tensor)
        for node in graph.node:
            for attribute in node.attribute:
                pending += [attribute.g] if attribute.HasField("g") else list(attribute.graphs)
                if attribute.HasField("t") and weightless.size_bytes(attribute.t) > weightless.KEPT_BYTES:
                    weightless.strip(attribute.t)


def trace(model, inputs, axes, mode, newest):
    """The exporter's model: by tracing, or by torch.export where `newest` is set."""
    import onnx
    import torch
    names, values = list(inputs), tuple(inputs.values())
    major = torch.__version__[0]
    training = torch.onnx.TrainingMode.TRAINING if mode == "train" else torch.onnx.TrainingMode.EVAL
    if newest:
        program = torch.onnx.export(model, values, dynamo=True, input_names=names, verbose=False,
                                    dynamic_shapes=tuple(dict(axes[n]) for n in names) if axes else None)
        return program.model_proto
    buffer = io.BytesIO()
    torch.onnx.export(model, values, buffer, opset_version=OPSET[major], training=training, input_names=names,
                      do_constant_folding=mode != "train", dynamic_axes=axes or None,
                      **({} if major == "1" else {"dynamo": False}))
    return onnx.load_from_string(buffer.getvalue())


def whole_attention(torch):
    """Has newer versions of torch run attention as the products that are counted."""
    if not hasattr(torch.nn, "attention"):
        return contextlib.nullcontext()
    return torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)


def export_one(library, name, mode, axes, newest, path):
    """Writes the graph; what was counted."""
    import torch
    import macs
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(1)
    if library == "timm":
        model, inputs, named = timm_net(name)
    else:
        import language
        model, inputs, named = language.build(name, BATCH)
    randomise(model)
    parameters = sum(p.numel() for p in model.parameters())
    model.eval()
    with whole_attention(torch):
        counted = macs.forward_macs(model, tuple(inputs.values()))
    model.train(mode == "train")
    graph = trace(model, inputs, named if axes == "named" else {}, mode, newest)
    strip(graph)
    path.write_bytes(graph.SerializeToString(deterministic=True))
    described = "; ".join(f"{key}: {' x '.join(map(str, value.shape))}" for key, value in inputs.items())
    return dict(file=path.name, inputs=described, parameters=parameters, forward_macs=counted,
                nodes=len(graph.graph.node))


def attempt(result, *job):
    try:
        result.send(export_one(*job))
    except Exception as error:  # the others go on
        result.send(dict(error=f"{type(error).__name__}: {error}"[:300].replace("\n", " ")))


def in_own_process(job):
    """Its own process gives the memory back and can be stopped."""
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=attempt, args=(sending, *job))
    process.start()
    sending.close()
    try:
        return receiving.recv() if receiving.poll(SECONDS) else dict(error=f"took longer than {SECONDS} s")
    except EOFError:
        return dict(error="its process was killed, for want of memory perhaps")
    finally:
        process.kill()
        process.join()


def read_names(path):
    lines = [line.split("#")[0].split() for line in path.read_text().splitlines()]
    wrong = [line for line in lines if line and (len(line) != 2 or line[0] not in ("timm", "transformers"))]
    if wrong:
        raise SystemExit(f"error: {path}: expected `timm NAME` or `transformers NAME`, found {wrong[0]}")
    return [tuple(line) for line in lines if line]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=pathlib.Path, help="folder of the graphs, outside the repository")
    parser.add_argument("--names", type=pathlib.Path, default=HERE / "nets.txt")
    parser.add_argument("--mode", choices=("train", "infer"), default="infer")
    parser.add_argument("--axes", choices=("fixed", "named"), default="fixed")
    parser.add_argument("--newest", action="store_true", help="by torch.export (torch from 2.6, onnxscript)")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    table = options.out / "exports.csv"
    mode = options.mode + ("-newest" if options.newest else "")
    done = set()
    if table.exists():
        with table.open(newline="") as source:
            done = {tuple(row[c] for c in COLUMNS[:4]) for row in csv.DictReader(source)}
    else:
        table.write_text(",".join(COLUMNS) + "\n")
    for library, name in read_names(options.names):
        key = dict(net=name, library=library, mode=mode, axes=options.axes)
        if tuple(key.values()) in done:
            continue
        path = options.out / f"{name}.{mode}.{options.axes}.onnx"
        row = in_own_process((library, name, options.mode, options.axes, options.newest, path))
        with table.open("a", newline="") as out:  # at once: a stopped run goes on here
            csv.DictWriter(out, COLUMNS, lineterminator="\n").writerow({**key, **row})
        print(f"{name} {mode} {options.axes}: {row.get('error') or row['nodes']}", flush=True)


if __name__ == "__main__":
    main()
