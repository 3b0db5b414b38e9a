# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of what may be corrupted: every field of every public struct, but for those named here.

Usage: make_fields.py HEADER_FOLDER OUT
A new field needs no line. A count with a documented limit may be named in LIMITED: it is then tried far beyond it too.
"""

import pathlib
import re
import sys

sys.path.append(str(pathlib.Path(__file__).parents[1] / "abi"))
import declarations

LEFT_ALONE = {
    r"\.struct_size": "is corrupted by itself",
    r"\.(\w+_)?user": "is the callback's",
    r"\.(\w+_)?library_path": "what it names is loaded and run",
    r"placer_options\.cache_bytes": "bounds what a run may hold, which is to be flat",
    r"batch_options\.max_evaluations|preempt_options\.max_checks": "bounds the time of a call",
    r"synthetic_options\.jobs|sim_options\.(horizon|round|rebalance)_us": "bounds the time of a call",
}
LIMITED = {
    "horus_node": "device_count label_count",
    "horus_job": "demand_count selector_count alternative_count group_count avoid_count",
    "horus_job_alternative": "demand_count",
    "horus_sensitivity": "cpu_count mem_count",
    "horus_queue_options": "las_threshold_count",
    "horus_slowdown_observation": "co_tenant_count",
    "horus_speeds": "gpu_count profile_count pair_count",
}


def left_alone(name):
    return any(re.search(f"(?:{pattern})$", name) for pattern in LEFT_ALONE)


def stale(found):
    """Exceptions that except nothing."""
    names = {one.name for one in found}
    limited = [f"{struct}.{name}" for struct, counts in LIMITED.items() for name in counts.split()]
    unused = [pattern for pattern in LEFT_ALONE if not any(re.search(f"(?:{pattern})$", name) for name in names)]
    return [name for name in limited if name not in names] + unused


def kind(one):
    struct, name = one.name.split(".")
    if one.type == "const char*":
        return "kText"
    if one.type.endswith("*"):
        return "kPointer"
    if name.endswith("count") and one.type in ("size_t", "uint32_t"):
        return "kCount" if name in LIMITED.get(struct, "").split() else "kFewer"
    return "kNumber"


def tables(found):
    """Struct -> [(field, kind)]."""
    callbacks = {one.name for one in found if one.kind == "callback"}
    result = {one.name: [] for one in found if one.kind == "struct"}
    for one in found:
        if one.kind == "field" and one.type not in callbacks and not left_alone(one.name):
            struct, name = one.name.split(".")
            result[struct].append((name, kind(one)))
    return {struct: fields for struct, fields in result.items() if fields}


def written(struct, fields):
    row = "    {{offsetof({0}, {1}), sizeof({0}::{1}), FieldKind::{2}}},"
    rows = [row.format(struct, *field) for field in fields]
    head = ["template <>", f"std::span<const Field> FieldsOf<{struct}>() {{", "  static constexpr Field kFields[] = {"]
    return "\n".join([*head, *rows, "  };", "  return kFields;", "}", ""])


def main():
    folder, out = map(pathlib.Path, sys.argv[1:3])
    found = declarations.read_headers(folder, deep=True)
    if old := stale(found):
        sys.exit(f"make_fields: no header has {', '.join(old)}")
    headers = [path.relative_to(folder).as_posix() for path in declarations.headers(folder, deep=True)]
    lines = ['#include "calls/corrupt.h"', *(f'#include "horus/{header}"' for header in headers)]
    lines += ["namespace horus::calls {", *(written(*row) for row in tables(found).items())]
    out.write_text("\n".join([*lines, "}  // namespace horus::calls", ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
