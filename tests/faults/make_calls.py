# SPDX-License-Identifier: Apache-2.0
"""Writes a C file that defines every exported function anew: each calls the library's own under failing allocations.

Usage: make_calls.py HEADER_FOLDER SYMBOLS_LIST OUT
A test program that is linked with it (and with calls.cc) calls these instead. A function that answers a status is called
with its 1st, 2nd, 3rd ... allocation failing until it runs to its end; the others must do with none, or be named below.
"""

import pathlib
import re
import sys

# Outputs beside a status: T* that is not const. What calls.h can compare, in words of the C type.
SCALAR = re.compile(r"^(u?int\d+_t|size_t|float|double|void|char|const char\*)$")


def functions(folder):
    for path in sorted(pathlib.Path(folder).rglob("*.h")):
        text = re.sub(r"/\*.*?\*/", " ", path.read_text(encoding="utf-8"), flags=re.S)
        handles = set(re.findall(r"typedef struct (horus_\w+) \1;", text))
        for result, name, given in re.findall(r"HORUS_API\s+([^;(]*?)\b(horus_\w+)\s*\(([^;]*)\);", text):
            yield result.strip(), name, arguments(given), handles


def arguments(given):
    given = " ".join(given.split())
    if given in ("", "void"):
        return []
    return [tuple(part.strip() for part in re.match(r"(.*?)(\w+)$", one.strip()).groups()) for one in given.split(",")]


def outputs(given, handles):
    """(argument, bytes to compare) of what the call may write."""
    names = [name for _, name in given]
    for kind, name in given:
        base = re.match(r"^(const char\*|\w+)\s*\*$", kind)
        if not base or name in ("error", "user"):
            continue
        base = base[1]
        if base in handles:
            continue
        if not SCALAR.match(base):
            # A struct says its own size; horus_demand columns are as many as the types asked for.
            many = "gpu_type_count" if base == "horus_demand" and "gpu_type_count" in names else "1"
            yield name, f"StructBytes({name}, sizeof *{name}, {many})"
        elif "capacity" in names and name != "count":
            yield name, f"{name} == NULL ? 0 : capacity * {1 if base == 'void' else f'sizeof *{name}'}"
        elif base != "void":
            yield name, f"{name} == NULL ? 0 : sizeof *{name}"
    for kind, name in given:
        if re.match(r"^horus_\w+\s*\*\*$", kind):
            yield name, f"{name} == NULL ? 0 : sizeof *{name}"


def clusters(given):
    return next((name for kind, name in given if re.match(r"^(const )?horus_cluster\s*\*$", kind)), "NULL")


def calls_back(given):
    return " || ".join(f"{name} != NULL" for kind, name in given if kind in ("horus_progress", "horus_sim_observer")) or "false"


def wrapper(result, name, given, handles):
    typed = ", ".join(f"{kind} {argument}" for kind, argument in given) or "void"
    passed = ", ".join(argument for _, argument in given)
    lines = [
        f"{result} {name}({typed}) {{",
        f"  typedef {result} (*Real)({typed});",
        "  static struct Function function;",
        f'  const Real real = (Real)Find(&function, "{name}");',
    ]
    if result != "horus_status":
        lines += ["  const bool outermost = BeginPlain(&function);"]
        call = f"real({passed});"
        lines += [f"  {call}"] if result == "void" else [f"  {result} answer = {call}"]
        lines += ["  EndPlain(&function, outermost);"] + ([] if result == "void" else ["  return answer;"]) + ["}"]
        return lines
    rows = [f"{{{argument}, {size}}}" for argument, size in outputs(given, handles)] or ["{NULL, 0}"]
    lines += [
        f"  const struct Output outputs[] = {{{', '.join(rows)}}};",
        "  struct Trial trial;",
        f"  horus_status status;",
        f"  Begin(&trial, &function, sizeof outputs / sizeof *outputs, outputs, {clusters(given)}, {calls_back(given)}, error);",
        "  do {",
        "    Arm(&trial);",
        f"    status = real({passed});",
        "  } while (Again(&trial, status));",
        "  return status;",
        "}",
    ]
    return [re.sub(r"\berror\b", given[-1][1], line) if given else line for line in lines]


def main():
    folder, symbols, out = sys.argv[1:4]
    found = list(functions(folder))
    wanted = [line.split()[0] for line in pathlib.Path(symbols).read_text(encoding="utf-8").splitlines() if line.startswith("horus_")]
    left_out = sorted(set(wanted) ^ {name for _, name, _, _ in found})
    if left_out:
        print(f"the headers in {folder} and {symbols} differ: {', '.join(left_out)}")
        return 1
    all_handles = set().union(*(handles for _, _, _, handles in found))
    lines = ["/* Made by make_calls.py. */", '#include "calls.h"', ""]
    for result, name, given, _ in found:
        lines += wrapper(result, name, given, all_handles) + [""]
    pathlib.Path(out).write_text("\n".join(lines), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
