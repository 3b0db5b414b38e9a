# SPDX-License-Identifier: Apache-2.0
"""The command: python -m horus.profile FILE.py:FUNCTION, as `horus profile --sensitivity` runs it."""

from __future__ import annotations

import argparse
import json
import sys

from . import InputProfile, InputStorage, PipelineError, measure_disk, profile_inputs
from ..errors import Error, InvalidArgument
from .storage import CACHES

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130  # exit codes, as of the command horus; that of a shell
MIB_PER_GIB = 1024


def _numbers(text: str) -> list[float]:
    return [float(one) for one in text.split(",")]


def _cores(text: str) -> int | list[int]:
    return [int(one) for one in text.split(",")] if "," in text else int(text)


_numbers.__name__, _cores.__name__ = "list of numbers", "number or list of cores"  # as argparse words what it expected


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="horus profile", description="How fast an input pipeline is with so many CPU cores and so much host memory per GPU: "
        "measured at a few counts of cores, computed elsewhere. No GPU is needed.",
        usage="%(prog)s --sensitivity FILE.py:FUNCTION [options]")
    made.add_argument("pipeline", metavar="FILE.py:FUNCTION", help="called with the number of workers; returns an iterable of batches")
    made.add_argument("--sensitivity", action="store_true", help=argparse.SUPPRESS)  # the command's word for this program
    made.add_argument("--cores", type=_cores, metavar="LIST|MAX", help="per GPU: the counts, or the most (default: all usable)")
    made.add_argument("--workers-per-core", type=float, default=1, metavar="X", help="default: 1")
    made.add_argument("--budget", type=float, default=120, metavar="SECONDS", help="for all runs together (default: 120)")
    made.add_argument("--runs", type=int, default=5, metavar="N", help="core counts measured at most (default: 5)")
    made.add_argument("--tolerance", type=float, default=0.03, metavar="X", help="error at which no more are measured (default: 0.03)")
    made.add_argument("--timeout", type=float, default=120, metavar="SECONDS", help="longest wait for a batch (default: 120)")
    gpu = made.add_argument_group("the GPU: speeds become those of the whole job")
    gpu.add_argument("--step-ms", type=float, metavar="X", help="its time for a batch; or predicted from")
    gpu.add_argument("--gpu", metavar="TYPE")
    gpu.add_argument("--model", metavar="NET.onnx")
    gpu.add_argument("--batch", type=int, metavar="N", help="samples in a batch")
    host = made.add_argument_group("host memory, per GPU")
    host.add_argument("--memory-gib", type=_numbers, metavar="LIST", help="points of the memory axis")
    host.add_argument("--dataset-gib", type=float, metavar="X", help="what an epoch reads, all GPUs together")
    host.add_argument("--epoch-batches", type=float, metavar="N", help="batches of an epoch, all GPUs together")
    host.add_argument("--disk-mib-s", type=float, metavar="X", help="default: measured in --disk, once a node")
    host.add_argument("--memory-mib-s", type=float, metavar="X", help="of the page cache; default: measured likewise")
    host.add_argument("--disk", default=".", metavar="PATH", help="a folder or file on the disk of the dataset (default: .)")
    host.add_argument("--process-gib", type=float, default=0, metavar="X", help="memory that cannot cache (default: 0)")
    host.add_argument("--gpus", type=int, default=1, metavar="N", help="of the job (default: 1)")
    host.add_argument("--cache", choices=CACHES, default="fixed", help="who caches (default: fixed)")
    out = made.add_argument_group("results")
    out.add_argument("--fair-cores", type=float, metavar="X", help="of the fair share per GPU, to which speeds are relative")
    out.add_argument("--fair-memory-gib", type=float, metavar="X")
    out.add_argument("--name", metavar="NAME", help="of the profile in the file (default: FUNCTION)")
    out.add_argument("--out", metavar="FILE.csv", help="sensitivities; needs both of --fair-...")
    out.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return made


def _step_ms(options: argparse.Namespace) -> float:
    predicted = (options.gpu, options.model, options.batch)
    if options.step_ms is not None and any(one is not None for one in predicted):
        raise InvalidArgument("--step-ms: expected alone, or --gpu, --model and --batch instead")
    if all(one is None for one in predicted):
        return float(options.step_ms or 0)
    if None in predicted:
        raise InvalidArgument("--gpu, --model, --batch: expected all three or none")
    import horus

    demands = horus.Predictor().predict(horus.Graph.from_onnx(options.model), [options.gpu], horus.RunSpec(batch=options.batch))
    demand = next(iter(demands.values()))
    if demand.step_time_us <= 0:
        raise InvalidArgument(f"--model: expected a net whose step time can be predicted, found none for {options.model}")
    return float(demand.step_time_us) / 1e3


def _storage(options: argparse.Namespace) -> InputStorage | None:
    asked = (options.memory_gib, options.dataset_gib, options.epoch_batches)
    if all(one is None for one in asked):
        return None
    if None in asked:
        raise InvalidArgument("--memory-gib, --dataset-gib, --epoch-batches: expected all three or none")
    disk, memory = options.disk_mib_s, options.memory_mib_s
    if disk is None or memory is None:
        found = measure_disk(options.disk, cache=True)
        disk, memory = disk or found.disk_mib_s, memory or found.memory_mib_s
        print(f"{options.disk}: disk {disk:.0f} MiB/s, page cache {memory:.0f} MiB/s", file=sys.stderr)
    return InputStorage(options.dataset_gib * MIB_PER_GIB, options.epoch_batches,
                        tuple(round(gib * MIB_PER_GIB) for gib in options.memory_gib), disk, memory,
                        options.process_gib * MIB_PER_GIB, options.gpus, options.cache)


def _run(options: argparse.Namespace) -> InputProfile:
    if options.out and None in (options.fair_cores, options.fair_memory_gib):
        raise InvalidArgument("--out: expected --fair-cores and --fair-memory-gib beside it, to which speeds are relative")
    step_ms, storage = _step_ms(options), _storage(options)
    found = profile_inputs(options.pipeline, cores=options.cores, workers_per_core=options.workers_per_core, max_runs=options.runs,
                           tolerance=options.tolerance, budget_s=options.budget, timeout_s=options.timeout, storage=storage,
                           progress=lambda line: print(line, file=sys.stderr, flush=True))
    found = found.with_gpu_step(step_ms) if step_ms else found
    if options.out:
        found.write(options.out, options.name or options.pipeline.rpartition(":")[2], options.fair_cores, options.fair_memory_gib)
    print(json.dumps(found.to_dict(), indent=1) if options.json else found.report())
    return found


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        _run(options)
    except PipelineError as error:
        print(f"horus: profile: {error}", file=sys.stderr)
        return FAILED
    except Error as error:
        print(f"horus: profile: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("horus: profile: interrupted", file=sys.stderr)
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
