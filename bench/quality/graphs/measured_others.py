#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Exports the nets of measured tables that measured.py does not, as ONNX graphs without weights.

  measured_others.py --cache DIR              every net, and the graphs of single operators
  measured_others.py --cache DIR NET...       these alone, again if they are there
  measured_others.py --list                   names them

CACHE/NET.onnx       the graph; batch and length are open
CACHE/op_NAME.onnx   one operator, all its sizes open (measured_operators.py)
CACHE/index.csv      as measured.py writes it; image size and mode are blank, because a graph stands for its net's rows
CACHE/failed.csv     what could not be exported

A graph is accepted if its parameters are the published ones within 0.5 %. Packages are installed into CACHE/venv as
measured.py does, and transformers with them; weights are never fetched. Each net has a process of its own.
"""
import argparse
import contextlib
import json
import pathlib
import subprocess
import sys
import warnings

import measured
import measured_nets
import measured_operators

KEPT = 1 << 20  # elements of a tensor that may be copied
ALONE = ("transformers==4.38.2", "tokenizers==0.15.2", "regex")


def install(folder):
    """The interpreter that has torch, timm and transformers."""
    python, stamp = measured.install(folder), folder / "venv" / "others.txt"
    said = "\n".join(ALONE)
    if not stamp.exists() or stamp.read_text() != said:
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", *ALONE], check=True)
        stamp.write_text(said)
    return python


def unfilled(net):
    """The net with weights that are allocated and never written; tied ones are tied again."""
    import torch
    from nets import storage
    model = storage.build_unfilled(net.build)
    for module in model.modules():
        if hasattr(module, "tie"):
            module.tie()
    model.train(net.dropout)
    for module in model.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            module.eval()
    model.training = True  # of the root: the exporter then merges tensors by address, not by value
    return model


@contextlib.contextmanager
def uncopied(torch):
    """The tracer copies what it is given: of weights, which nothing writes to, that would fill their memory."""
    clone = torch.Tensor.clone
    torch.Tensor.clone = lambda self, **how: self.detach() if self.is_leaf and self.numel() > KEPT else clone(self, **how)
    try:
        yield
    finally:
        torch.Tensor.clone = clone


def export(net, path):
    """Writes the graph; (parameters, nodes)."""
    import torch
    import weightless
    sys.path.insert(0, str(pathlib.Path(weightless.__file__).parent))  # its export.py, not the one beside this file
    import export as zoo
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    model = unfilled(net)
    parameters = sum(p.numel() for p in model.parameters())
    with uncopied(torch):
        traced = zoo.trace(net, model, zoo.sample(net.inputs))
    zoo.inputs_to_initialisers(traced.graph, {one.name for one in net.inputs})
    zoo.finish(net, traced)
    held = sum(weightless.parameters(traced.graph).values())
    wrong = weightless.problems(traced.graph)
    if held != parameters:
        wrong.insert(0, f"the graph has {held} parameters, torch {parameters}")
    if wrong:
        raise RuntimeError("; ".join(wrong[:3]))
    write(traced, path)
    return dict(parameters=parameters, nodes=len(traced.graph.node))


def write(graph_model, path):
    partial = path.with_suffix(".part")
    partial.write_bytes(graph_model.SerializeToString(deterministic=True))
    partial.replace(path)


def export_named(name, path):
    """In the process of one net: what was counted, or what failed, on the last line."""
    try:
        if name in measured_operators.OPERATORS:
            graph_model = measured_operators.build(name)
            write(graph_model, path)
            said = dict(parameters=0, nodes=len(graph_model.graph.node))
        else:
            said = export(measured_nets.all_nets()[name], path)
        print(json.dumps(said))
        return 0
    except Exception as error:  # exporters raise whatever a net brings out in them
        print(f"{type(error).__name__}: {error}".replace("\n", " ")[:300])
        return 1


def judge(net, parameters):
    """(accepted, reason)"""
    if net is None or net.published_parameters is None:
        return 1, ""
    if measured.stands_for(parameters, net.published_parameters / 1e6):
        return 1, ""
    return 0, f"expected {net.published_parameters} parameters, found {parameters}"


def in_own_process(python, name, path, seconds):
    try:
        ran = subprocess.run([python, __file__, "--one", name, "--cache", str(path)], capture_output=True, text=True,
                             timeout=seconds, env=measured.environment(path.parent))
    except subprocess.TimeoutExpired:
        raise measured.Error(f"took longer than {seconds} s") from None
    last = (ran.stdout.strip().splitlines() or [""])[-1]
    if ran.returncode or not last.startswith("{"):
        raise measured.Error(last or ran.stderr.strip()[-300:].replace("\n", " ") or f"exit status {ran.returncode}")
    return json.loads(last)


def export_all(nets, options):
    """The graphs that are missing, or those that were named; the tables are written after each."""
    cache = options.cache
    index = {row["net"]: row for row in measured.read_rows(cache / "index.csv", measured.INDEX)
             if row["net"] in nets and (cache / row["file"]).exists()}
    failed = {row["net"]: row for row in measured.read_rows(cache / "failed.csv", measured.FAILED)}
    todo = options.nets or [name for name in nets if name not in index and (options.retry or name not in failed)]
    python = (options.python or install(cache)) if todo else ""
    for name in todo:
        failed.pop(name, None)
        index.pop(name, None)
        net, file = nets[name], f"{name}.onnx"
        try:
            made = in_own_process(python, name, cache / file, options.seconds)
            accepted, reason = judge(net, made["parameters"])
            index[name] = dict(net=name, family=net.family if net else name, file=file, nodes=made["nodes"],
                               parameters=made["parameters"], accepted=accepted, reason=reason)
            said = "{parameters} parameters, {nodes} nodes".format(**made) + (f"; {reason}" if reason else "")
        except measured.Error as error:
            failed[name] = dict(net=name, error=str(error))
            said = f"FAILED: {error}"
        measured.write_rows(cache / "index.csv", measured.INDEX, [index[one] for one in sorted(index)])
        measured.write_rows(cache / "failed.csv", measured.FAILED, [failed[one] for one in sorted(failed)])
        print(f"{name}: {said}", flush=True)
    print(f"{len(nets)} nets and operators: {len(index)} graphs, {len(failed)} failed")
    return 0


def work(options):
    nets = {**measured_nets.all_nets(), **dict.fromkeys(measured_operators.OPERATORS)}
    unknown = [name for name in options.nets if name not in nets]
    if unknown:
        raise measured.Error(f"expected names of --list, found {' '.join(unknown)}")
    if options.list:
        print("\n".join(nets))
        return 0
    with measured.locked(options.cache):
        return export_all(nets, options)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nets", nargs="*", metavar="NET")
    parser.add_argument("--cache", type=pathlib.Path, default=measured.default_cache(), metavar="DIR",
                        help="of graphs (%(default)s)")
    parser.add_argument("--list", action="store_true", help="name the nets and operators")
    parser.add_argument("--retry", action="store_true", help="try again what failed before")
    parser.add_argument("--seconds", type=measured.at_least_one, default=1800, metavar="N", help="a net (%(default)s)")
    parser.add_argument("--python", metavar="FILE", help="an interpreter with torch, timm, transformers: install nothing")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        return export_named(options.one, options.cache)
    try:
        return work(options)
    except (measured.Error, OSError, subprocess.CalledProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
