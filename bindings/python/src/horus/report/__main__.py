# SPDX-License-Identifier: Apache-2.0
"""The command: python -m horus.report RESULTS... -o report.html."""

from __future__ import annotations

import argparse
import shlex
import sys

from .._install import install
from . import ReportError, write

BAD_INPUT = 2  # exit code, as of the command horus
EPILOG = """RESULTS, each known by its content:
  a folder of horus compare --out (several of clusters of different sizes: GPUs saved at equal JCT)
  the JSON of horus potential --json
  a timeline of horus simulate --timeline X.csv, with X.json of --json beside it
  a trace in plain CSV: the job types of timelines          a CSV of node,gpu_type[,gpus]: their GPU types
  a table of pairs: speeds in Gavel's JSON, or a CSV with victim,other,slowdown: its quantiles
"""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="horus report", description="What sharing would give a cluster, as one HTML file.",
                                   epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("results", nargs="+", metavar="RESULTS", help="files and folders, below")
    made.add_argument("-o", "--out", required=True, metavar="FILE", help="the report")
    made.add_argument("--policy", help="whose figures come first (default: horus)")
    made.add_argument("--gpus", action="append", default=[], metavar="FOLDER=N",
                      help="GPUs of the cluster of a compare folder, where its files do not say; may be repeated")
    made.add_argument("--plotly-js", metavar="FILE", help="a smaller plotly.js bundle: plotly-basic.min.js suffices")
    return made


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parser().parse_args(arguments)
    try:
        gpus = dict(_size(text) for text in options.gpus)
        size = write(options.results, options.out, policy=options.policy, gpus=gpus, plotly_js=options.plotly_js,
                     command=shlex.join(["horus", "report", *arguments]))
    except ReportError as error:
        print(f"horus: {error}", file=sys.stderr)
        return BAD_INPUT
    except OSError as error:
        print(f"horus: {error.filename or options.out}: {error.strerror}", file=sys.stderr)
        return BAD_INPUT
    except ImportError as error:
        print(f"horus: report: {error}: {install('report')}", file=sys.stderr)
        return BAD_INPUT
    print(f"{options.out}: {size / 1e6:.1f} MB")
    return 0


def _size(text: str) -> tuple[str, int]:
    folder, _, count = text.rpartition("=")
    if not folder or not count.isdecimal() or int(count) == 0:
        raise ReportError(f"--gpus: expected FOLDER=N with N from 1, found {text!r}")
    return folder, int(count)


if __name__ == "__main__":
    sys.exit(main())
