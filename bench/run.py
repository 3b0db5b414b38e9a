# SPDX-License-Identifier: Apache-2.0
"""Runs benchmark programs and wraps the rows of each in one JSON file; checks rows against their aims.

Usage: run.py [NAME...] [--data DIR] [--smoke] [--out DIR] [--programs DIR]
       run.py NAME [options of that benchmark...]
       run.py --check DIR
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
QUALITY = ROOT / "bench" / "quality"
COLUMNS = ("metric", "value", "unit", "aim", "better", "baseline", "protocol")


def output_of(*command):
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def cache_entry(programs, name):
    cache = programs.parent / "CMakeCache.txt"
    if cache.exists():
        for line in cache.read_text(encoding="utf-8").splitlines():
            if line.startswith(name + ":"):
                return line.split("=", 1)[1]
    return "unknown"


def environment(programs, command):
    compiler = cache_entry(programs, "CMAKE_CXX_COMPILER")
    return {
        "machine": {"processor": processor(), "cores": os.cpu_count(), "system": platform.platform()},
        "compiler": output_of(compiler, "--version").splitlines()[0],
        "build_type": cache_entry(programs, "CMAKE_BUILD_TYPE"),
        "flags": cache_entry(programs, "CMAKE_CXX_FLAGS"),
        "revision": output_of("git", "describe", "--always", "--dirty"),
        "time_utc": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": command,
    }


def horus_of(arguments):
    return pathlib.Path(arguments.programs).parent / "bin" / "horus"


def from_here(word):
    """Paths of the caller's folder hold in ours; FILE:FUNCTION too."""
    path, colon, rest = word.partition(":")
    return str(pathlib.Path(path).resolve()) + colon + rest if os.path.exists(path) else word


def run_program(program, arguments, out):
    name = program.stem.removeprefix("bench_")
    with tempfile.TemporaryDirectory() as folder:
        rows_file = pathlib.Path(folder) / "rows.jsonl"
        command = [str(program), "--rows", str(rows_file)]
        if program.suffix:
            command += ["--horus", str(horus_of(arguments))]
        command += ["--smoke"] if arguments.smoke else []
        command += ["--data", from_here(arguments.data)] if arguments.data else []
        command += map(from_here, arguments.own)
        done = subprocess.run(command, cwd=ROOT, check=False)
        if arguments.help:
            return True
        if done.returncode != 0:
            print(f"bench: {name}: exit status {done.returncode}", file=sys.stderr)
            return False
        rows = [json.loads(line) for line in rows_file.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        missing = [column for column in COLUMNS if column not in row]
        if missing:
            print(f"bench: {name}: row {row.get('metric')}: no {', '.join(missing)}", file=sys.stderr)
            return False
    words = ["scripts/bench", name] + (["--smoke"] if arguments.smoke else []) + (
        ["--data", "DIR"] if arguments.data else []) + [os.path.basename(word) if os.path.isabs(word) else word for word in arguments.own]
    result = {"benchmark": name, "by": arguments.by, "smoke": arguments.smoke, **environment(pathlib.Path(arguments.programs), " ".join(words)), "rows": rows}
    (out / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"{name}: {len(rows)} rows -> {out / (name + '.json')}")
    for row in rows:
        aim = "" if row["aim"] is None else f"  (aim {'<=' if row['better'] == 'lower' else '>='} {row['aim']:g})"
        beside = f"  [{row['baseline']}]" if row["baseline"] else ""
        print(f"  {row['metric']:<44} {row['value']:>12.4g} {row['unit']}{aim}{beside}")
    return True


def check(folder):
    missed = total = 0
    for path in sorted(pathlib.Path(folder).glob("*.json")):
        for row in json.loads(path.read_text(encoding="utf-8"))["rows"]:
            if row["aim"] is None:
                continue
            total += 1
            better = row["value"] <= row["aim"] if row["better"] == "lower" else row["value"] >= row["aim"]
            if not better:
                missed += 1
                print(f"{path.stem}: {row['metric']} = {row['value']:g} {row['unit']}, aim {row['aim']:g}")
    print(f"{missed} of {total} rows with an aim miss it")
    return 0 if total else 1


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Runs benchmarks; each writes one JSON file.", add_help=False)
    parser.add_argument("-h", "--help", action="store_true", help="show this, or the options of the one benchmark named")
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks to run; all when none is named")
    parser.add_argument("--data", help="folder with measured data sets in their documented layout")
    parser.add_argument("--smoke", action="store_true", help="smallest sizes: shows that rows come out, not how fast")
    parser.add_argument("--out", default=str(ROOT / "out" / "bench"), help="folder for the results")
    parser.add_argument("--programs", default=str(ROOT / "build" / "release" / "bench"), help=argparse.SUPPRESS)
    parser.add_argument("--check", metavar="DIR", help="print the rows of earlier results that miss their aim")
    parser.add_argument("--by", default="", help="who ran it, for bench/results")
    arguments, arguments.own = parser.parse_known_args()
    arguments.own += ["--help"] if arguments.help else []
    if arguments.help and not arguments.names:
        return parser.print_help()
    if arguments.own and len(arguments.names) != 1:
        parser.error(f"{arguments.own[0]}: an option of a benchmark, of which one has to be named")
    if arguments.check:
        return check(arguments.check)
    programs = {p.name.removeprefix("bench_"): p for p in pathlib.Path(arguments.programs).glob("bench_*") if p.is_file()}
    scripts = {path.stem: path for path in QUALITY.glob("*.py")
               if os.access(path, os.X_OK) and not path.stem.startswith("record_")}
    if horus_of(arguments).exists() or arguments.names == ["own"]:  # that runs on the Python package alone
        programs.update(scripts)
    else:
        print(f"bench: SKIPPED, for the horus command is not built: {', '.join(sorted(scripts))}", file=sys.stderr)
    unknown = sorted(set(arguments.names) - set(programs))
    if unknown or not programs:
        print(f"bench: unknown {', '.join(unknown)}; there are: {', '.join(sorted(programs)) or 'none built'}",
              file=sys.stderr)
        return 2
    out = pathlib.Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    results = [run_program(programs[name], arguments, out) for name in arguments.names or sorted(programs)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
