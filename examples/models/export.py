#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Exports the zoo's weight-free ONNX graphs with torch, writes zoo.csv, and checks what is committed.

  export.py                 every net (needs torch and torchvision)
  export.py NET...          these nets only; the other rows of zoo.csv stay
  export.py --refresh       sources and published figures only, into zoo.csv, README.md and the graphs' metadata
  export.py --check         graphs and zoo.csv agree (needs onnx only)
"""
import argparse
import collections
import contextlib
import csv
import io
import multiprocessing
import pathlib
import resource
import sys
import time
import zlib

import onnx

import weightless

HERE = pathlib.Path(__file__).resolve().parent
GRAPHS = HERE / "graphs"
TABLE = HERE / "zoo.csv"
README = HERE / "README.md"
MARKS = ("<!-- zoo table -->", "<!-- end of zoo table -->")
COLUMNS = ("file", "net", "family", "inputs", "opset", "published_parameters", "published_rounding",
           "published_forward_gflops", "multiply_add_counts", "source", "parameters_exact", "own_forward_macs",
           "nodes", "note")
MEASURED = ("parameters_exact", "own_forward_macs", "nodes")


def describe(inputs):
    """`image: batch=1 x 3 x 224 x 224`; several inputs are joined by semicolons."""
    dims = lambda one: " x ".join(str(d) if isinstance(d, int) else f"{d[0]}={d[1]}" for d in one.dims)
    return "; ".join(f"{one.name}: {dims(one)}" for one in inputs)


def sample(inputs, most=None):
    """Inputs at their default sizes; named ones at `most` where that is less."""
    import torch
    sizes = [[min(d, most) if most and i in one.symbols() else d for i, d in enumerate(one.sizes())] for one in inputs]
    return tuple(torch.randint(0, one.high, size) if one.kind == "int" else torch.rand(size)
                 for one, size in zip(inputs, sizes))


def build(net):
    """The net in inference mode, with distinct random weights, or unfilled ones when they become inputs."""
    import torch
    from nets import storage
    torch.manual_seed(zlib.crc32(net.name.encode()))
    model = storage.build_unfilled(net.build) if net.symbolic else storage.build_random(net.build)
    model.eval()
    for module in model.modules():  # its fused inference path has no ONNX form; with dropout 0 both are equal
        if isinstance(module, torch.nn.MultiheadAttention):
            module.train(True)
            module.dropout = 0.0
    model.training = True  # of the root alone: the exporter then merges tensors by address, not by value
    return model


def trace(net, model, inputs):
    """The exporter's graph, still with its weights (or with the weights as further inputs)."""
    import torch
    from nets import storage
    names = [one.name for one in net.inputs]
    axes = {one.name: one.symbols() for one in net.inputs if one.symbols()}
    axes.update(net.output_axes if net.output_axes is not None else {name: {0: "batch"} for name in net.outputs})
    if net.symbolic:
        model = storage.WeightsAsInputs(model)
        names, inputs = names + model.names, inputs + model.weights
    buffer = io.BytesIO()
    with storage.uncloned() if net.merged else contextlib.nullcontext():
        torch.onnx.export(model, inputs, buffer, opset_version=net.opset, training=torch.onnx.TrainingMode.PRESERVE,
                          do_constant_folding=True, input_names=names, output_names=list(net.outputs),
                          dynamic_axes=axes)
    return onnx.load_from_string(buffer.getvalue())


def finish(net, model):
    """Drops weights, shortens names and writes the metadata; doing it twice changes nothing."""
    weightless.strip_model(model)
    weightless.shorten(model.graph)
    del model.metadata_props[:]
    for key, value in (("horus.net", net.name), ("horus.family", net.family),
                       ("horus.source", net.source or "none published"), ("horus.weights", "stripped")):
        model.metadata_props.add(key=key, value=value)


def save(net, model):
    (GRAPHS / f"{net.name}.onnx").write_bytes(model.SerializeToString(deterministic=True))


def row_of(net, measured):
    """A row of zoo.csv: what the net's definition says, and what was measured (from an export or an older row)."""
    known = net.published_parameters is not None
    return dict(file=f"graphs/{net.name}.onnx", net=net.name, family=net.family, inputs=describe(net.inputs),
                opset=net.opset, published_parameters=net.published_parameters,
                published_rounding=net.rounding if known else None, published_forward_gflops=net.published_gflops,
                multiply_add_counts=net.multiply_add, source=net.source, note=net.note,
                **{column: measured[column] for column in MEASURED})


def refresh(known):
    """Rewrites everything that needs no export."""
    rows = read_table()
    for name in rows:
        model = onnx.load(str(GRAPHS / f"{name}.onnx"), load_external_data=False)
        finish(known[name], model)
        save(known[name], model)
    write_tables(known, rows)
    return 0


def export_one(net):
    """Writes the graph of one net and returns what was counted and what it cost."""
    import macs
    started = time.monotonic()
    model, inputs = build(net), sample(net.inputs)
    exact = sum(p.numel() for p in model.parameters())
    named = {name for name, _ in model.named_parameters()}
    counted = macs.forward_macs(model, inputs, net.merged)
    graph_model = trace(net, model, sample(net.inputs, 16) if net.merged else inputs)
    inputs_to_initialisers(graph_model.graph, {one.name for one in net.inputs})
    if net.merged:
        weightless.merge(graph_model.graph)
    finish(net, graph_model)
    found = weightless.parameters(graph_model.graph)
    wrong = weightless.problems(graph_model.graph)
    if sum(found.values()) != exact:
        extra = {n: c for n, c in found.items() if n not in named}
        wrong.append(f"the graph has {sum(found.values())} parameters, torch {exact}; unnamed: {list(extra)[:12]}")
    if wrong:
        raise RuntimeError(f"{net.name}: " + "; ".join(wrong[:8]))
    save(net, graph_model)
    measured = dict(parameters_exact=exact, own_forward_macs=counted, nodes=len(graph_model.graph.node))
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return measured, f"{time.monotonic() - started:.1f} s, peak {peak_mib} MiB"


def inputs_to_initialisers(graph, real):
    """A graph exported without weights lists them as inputs: make them payload-free initialisers."""
    for value in [value for value in graph.input if value.name not in real]:
        kind = value.type.tensor_type
        graph.initializer.add(name=value.name, data_type=kind.elem_type, dims=[d.dim_value for d in kind.shape.dim])
        graph.input.remove(value)


def write_tables(known, measured):
    """zoo.csv and the table in README.md, in the order of the definitions."""
    rows = [row_of(net, measured[name]) for name, net in known.items() if name in measured]
    with TABLE.open("w", newline="") as out:
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    shown = ("net", "family", "inputs", "parameters_exact", "published_parameters", "own_forward_macs",
             "published_forward_gflops")
    lines = ["| " + " | ".join(shown) + " |", "|" + "---|" * len(shown)]
    lines += ["| " + " | ".join(str(row[c] or "") for c in shown) + " |" for row in rows]
    text = README.read_text()
    before, rest = text.split(MARKS[0])
    README.write_text(before + MARKS[0] + "\n" + "\n".join(lines) + "\n" + MARKS[1] + rest.split(MARKS[1])[1])


def read_table():
    if not TABLE.exists():
        return {}
    with TABLE.open(newline="") as source:
        return {row["net"]: row for row in csv.DictReader(source)}


def check_row(row):
    """What is wrong with one row and its graph, as sentences."""
    path = HERE / row["file"]
    if not path.exists():
        return [f"{row['file']} is missing"]
    model = onnx.load(str(path), load_external_data=False)
    found = weightless.problems(model.graph)
    counted = sum(weightless.parameters(model.graph).values())
    exact = int(row["parameters_exact"])
    if counted != exact:
        found.append(f"graph has {counted} parameters, zoo.csv says {exact}")
    if row["published_parameters"]:
        published, rounding = int(row["published_parameters"]), int(row["published_rounding"])
        if abs(exact - published) >= rounding:
            found.append(f"{exact} parameters, published {published} (rounded to {rounding})")
    if row["published_forward_gflops"]:
        published = float(row["published_forward_gflops"]) * 1e9 / int(row["multiply_add_counts"])
        if abs(int(row["own_forward_macs"]) / published - 1) > 0.02:
            found.append(f"{row['own_forward_macs']} multiply-adds, published {published:.0f}: more than 2 % apart")
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    if metadata.get("horus.net") != row["net"] or metadata.get("horus.family") != row["family"]:
        found.append("metadata names another net or family")
    return found


def check():
    rows = read_table()
    wrong = [f"{name}: {text}" for name, row in rows.items() for text in check_row(row)]
    listed = {row["file"] for row in rows.values()}
    files = sorted(GRAPHS.glob("*.onnx"))
    wrong += [f"graphs/{p.name} has no row in zoo.csv" for p in files if f"graphs/{p.name}" not in listed]
    families = {row["family"] for row in rows.values()}
    total = sum(p.stat().st_size for p in files)
    print(f"{len(rows)} nets, {len(families)} families, {total / 1024:.0f} KiB, {len(wrong)} problems")
    print("\n".join(wrong))
    return 1 if wrong or not rows else 0


def operators():
    """Operator types over all graphs, with the number of nodes and of nets that hold them."""
    nodes, nets = collections.Counter(), collections.Counter()
    for path in sorted(GRAPHS.glob("*.onnx")):
        types = [node.op_type for node in onnx.load(str(path), load_external_data=False).graph.node]
        nodes.update(types)
        nets.update(set(types))
    for name in sorted(nodes):
        print(f"{name},{nodes[name]},{nets[name]}")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("net", nargs="*")
    parser.add_argument("--check", action="store_true", help="check the committed graphs against zoo.csv")
    parser.add_argument("--refresh", action="store_true", help="rewrite sources and published figures, export nothing")
    parser.add_argument("--operators", action="store_true", help="list operator types: name, nodes, nets")
    options = parser.parse_args()
    if options.check or options.operators:
        return check() if options.check else operators()
    import nets
    known = nets.all_nets()
    unknown = [name for name in options.net if name not in known]
    if unknown:
        parser.error(f"unknown nets {unknown}; known: {', '.join(known)}")
    if options.refresh:
        return refresh(known)
    measured, failed = read_table(), []
    GRAPHS.mkdir(exist_ok=True)
    for name in options.net or known:
        with multiprocessing.get_context("spawn").Pool(1) as pool:  # its own process: memory is given back
            found, text = pool.apply(export_by_name, (name,))
        if found:
            measured[name] = found
            write_tables(known, measured)
            text = ", ".join(f"{column} {found[column]}" for column in MEASURED) + ", " + text
        else:
            failed.append(name)
        print(f"{name}: {text}", flush=True)
    print(f"{len(failed)} failed: {failed}" if failed else "all exported")
    return 1 if failed else 0


def export_by_name(name):
    """The counts and the cost of one net; none and the reason when it fails, so that the others go on."""
    import nets
    try:
        return export_one(nets.all_nets()[name])
    except Exception as error:
        return None, f"FAILED {type(error).__name__}: {str(error)[:1500]}"


if __name__ == "__main__":
    sys.exit(main())
