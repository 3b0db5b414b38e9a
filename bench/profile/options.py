# SPDX-License-Identifier: Apache-2.0
"""The command line of horus-profile."""
import argparse
import contextlib
import pathlib
import sys

import limits
import train

KINDS, MODES = ("isolated", "pairs", "triples"), ("time-slice", "mps")
FIXED = ("batches", "precisions", "optimizers", "modes")  # with any of them, runs are the product of all


def listed(choices=None, kind=str):
    """A comma-separated option."""
    def parse(text):
        found = [kind(one) for one in text.split(",") if one]
        strange = [one for one in found if choices and one not in choices]
        if strange or not found:
            raise argparse.ArgumentTypeError(f"expected some of {', '.join(choices or ['values'])}, found '{text}'")
        return found
    return parse


def above_zero(kind):
    def parse(text):
        with contextlib.suppress(ValueError):
            if kind(text) > 0:
                return kind(text)
        raise argparse.ArgumentTypeError(f"expected a number above 0, found '{text}'")
    return parse


def what_to_run(parser):
    parser.add_argument("--minutes", type=above_zero(float), default=10.0, help="time to spend (10)")
    parser.add_argument("--net", action="append", default=[], metavar="NAME",
                        help="net of the zoo, FILE.py:FUNCTION or MODULE:FUNCTION; may be repeated (the whole zoo)")
    parser.add_argument("--family", default="own", help="model family of nets of your own (own)")
    parser.add_argument("--batches", type=listed(kind=above_zero(int)),
                        help="comma-separated; with any of the next three: their product")
    parser.add_argument("--precisions", type=listed(("fp32", "tf32", "amp", "amp-bf16", "fp16", "bf16")))
    parser.add_argument("--optimizers", type=listed(("sgd", "momentum", "adam", "adamw", "adafactor")))
    parser.add_argument("--modes", type=listed(("training", "inference")))
    parser.add_argument("--kinds", type=listed(KINDS), default=list(KINDS), help="isolated,pairs,triples (all)")
    parser.add_argument("--sharing", type=listed(MODES), default=list(MODES), help="time-slice,mps (both)")
    parser.add_argument("--window", type=above_zero(float), default=limits.WINDOW_S, help="seconds measured at least (2)")
    parser.add_argument("--steps", type=above_zero(int), default=limits.WINDOW_STEPS, help="steps measured at least (20)")
    parser.add_argument("--warm", type=above_zero(float), default=limits.WARM_S, help="seconds of warm-up (1)")
    parser.add_argument("--window-max", type=above_zero(float), default=limits.WINDOW_MAX_S,
                        help="seconds measured at most (20)")


def arguments(argv, about):
    parser = argparse.ArgumentParser(prog="horus-profile", description=about,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="measure")
    run.add_argument("--out", required=True, type=pathlib.Path, help="folder of the campaign; an old one is continued")
    what_to_run(run)
    run.add_argument("--index", type=int, help="GPU, as NVML numbers them (the first of CUDA_VISIBLE_DEVICES, else 0)")
    run.add_argument("--gpu", help="its name in the rows (from NVML: 'NVIDIA H200' is h200)")
    run.add_argument("--campaign", help="name of the campaign in the rows (gpu and month)")
    run.add_argument("--graphs-at", default="graphs",
                     help="where the zoo's graphs lie, as seen from the rows; then none is copied (graphs)")
    run.add_argument("--in-use-ok", action="store_true", help="go on although others use the GPU")
    run.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu is for tests")
    run.add_argument("--train", action="store_true", help="then train on the rows, into the folder 'trained' beside them")
    run.add_argument("--horus", default=train.COMMAND, help=f"with --train: the built command ({train.COMMAND})")
    plan = commands.add_parser("plan", help="say what run would do, without a GPU")
    what_to_run(plan)
    plan.add_argument("--out", type=pathlib.Path, help="go on from the runs of this folder")
    plan.add_argument("--list", action="store_true", help="name every isolated run, in order")
    train.add_arguments(commands.add_parser("train", help="from rows to a predictor and an interference model"))
    commands.add_parser("nets", help="list the zoo")
    commands.add_parser("pack", help="copy this folder with the zoo").add_argument("folder", type=pathlib.Path)
    argv = sys.argv[1:] if argv is None else list(argv)
    if argv[:1] == ["--train"]:  # `horus profile --train`, as it is also called
        argv[0] = "train"
    return parser, parser.parse_args(argv)
