# SPDX-License-Identifier: Apache-2.0
"""Checks that includes point one way: each room under src/ includes only the rooms it may know.

Usage: check_layers.py REPOSITORY_ROOT. Prints each forbidden include with file and line; exit status 1 if any.
"""

import pathlib
import re
import sys

# Room -> rooms it may include (itself always). "demand" is predict/demand.h alone: what the rooms below see of a job.
ALLOWED = {
    "base": set(),
    "device": {"base"},
    "graph": {"base"},
    "features": {"base", "device", "graph"},
    "trees": {"base"},
    "predict": {"base", "device", "graph", "features", "trees"},
    "interference": {"base", "device", "trees", "demand"},
    "place": {"base", "device", "interference", "demand"},
    "metrics": {"base", "place"},
    "queue": {"base", "demand"},
    "io": {"base", "device", "graph", "features", "predict", "demand", "interference", "place", "queue"},
    "capi": {"base", "device", "graph", "features", "trees", "predict", "demand", "interference", "place", "metrics",
             "queue"},
    "lab": {"base", "device", "graph", "features", "trees", "predict", "demand", "interference", "place", "queue", "io",
            "capi"},
    "cli": {"base", "device", "graph", "features", "trees", "predict", "demand", "interference", "place", "metrics",
            "queue", "io", "lab"},
}
# The rooms of src/place, which point one way too; files of other folders there, and those in none, are of "place".
PLACE_ROOMS = {
    "job": set(),
    "state": {"job"},
    "search": {"job", "state"},
    "place": {"job", "state", "search"},
    "modes": {"job", "state", "search", "place"},
}
# Folders that see the public headers only.
PUBLIC_ONLY = ("bindings", "examples", "tests/contract", "tests/install", "tests/abi")
# Foreign header prefix -> the files or folders that are its only doors.
DOORS = {
    "xgboost/": ("src/trees/train/", "tests/unit/trees/", "bench/"),
    "coin/": ("src/lab/lp/",),
    "Eigen/": ("src/predict/", "src/lab/models/", "src/lab/evaluate/", "bench/quality/"),
    "google/protobuf/": ("src/graph/", "src/place/", "src/trees/"),
    "yaml-cpp/": ("src/io/",),
    "csv.h": ("src/io/",),
    "nlohmann/": ("src/graph/", "src/io/", "src/lab/io/", "src/cli/", "src/trees/train/", "tests/unit/io/", "bench/"),
    "CLI/": ("src/cli/",),
    "xxhash.h": ("src/base/",),
    "onnx/": ("tests/", "bench/"),
    # abseil's tables break when their own allocation throws; the library answers NO_MEMORY and goes on.
    "absl/container/flat_hash": ("src/cli/", "tests/", "bench/"),
    "absl/container/node_hash": ("src/cli/", "tests/", "bench/"),
    # std::hash has no seed: who writes a file could make its keys collide.
    "unordered_": ("src/base/seeded_hash.h", "tests/", "bench/"),
}
INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')


def room_of(include):
    if include == "predict/demand.h":
        return "demand"
    return include.split("/")[0] if "/" in include else None


def place_room(path):
    folder = path.split("/")[1] if path.count("/") > 1 else ""
    return folder if folder in PLACE_ROOMS else "place"


def problems(root):
    files = [p for pattern in ("*.h", "*.hpp", "*.cc", "*.c", "*.cpp") for p in root.rglob(pattern)]
    for path in sorted(files):
        name = path.relative_to(root).as_posix()
        if name.startswith(("build/", "out/", ".")):
            continue
        room = name.split("/")[1] if name.startswith("src/") else None
        if room is not None and room not in ALLOWED:
            yield f"{name}:1: room '{room}' is not in the table of allowed edges"
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            included = match.group(1)
            target = room_of(included)
            inside = target in ALLOWED or target == "demand"
            if room and inside and target not in ALLOWED[room] | {room} and not (room == "predict" and target == "demand"):
                yield f"{name}:{number}: {room} may not know {target} ({included})"
            if room == "place" and target == "place":
                ours, theirs = place_room(name.removeprefix("src/")), place_room(included)
                if theirs not in PLACE_ROOMS[ours] | {ours}:
                    yield f"{name}:{number}: of place, {ours} may not know {theirs} ({included})"
            if inside and name.startswith(PUBLIC_ONLY):
                yield f"{name}:{number}: only include/horus may be included here ({included})"
            if name.startswith("include/") and not included.startswith("horus/") and "/" in included:
                yield f"{name}:{number}: an installed header includes {included}"
            for prefix, doors in DOORS.items():
                if included.startswith(prefix) and not name.startswith(doors):
                    yield f"{name}:{number}: {included} enters through {', '.join(doors)} only"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    found = list(problems(root))
    for problem in found:
        print(problem)
    print(f"layers: {len(found)} forbidden includes")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
