# SPDX-License-Identifier: Apache-2.0
"""Checks that every public declaration says since which release it exists, and what will go until when.

Usage: check_since.py INCLUDE_FOLDER LEDGER [--accept FIRST_SIZES | --judge | --layout [EMULATOR]]
The ledger holds "RELEASE NAME" of all that was ever accepted, behind it the value of a constant, the offset of a field
("@8") or the size of a struct ("#264"), of 64-bit machines: no line changes but that of a struct that grows, and none
leaves it without a break of the ABI. What is not in it must be of the release being made.
--accept adds that, and takes over what broke; a new struct also gets its row in FIRST_SIZES. --judge: exit status 1 where
programs break. --layout: compares offsets and sizes alone, by the compiler that CC names; exit status 77 on machines that
are not of 64 bits.
"""

import pathlib
import re
import sys

import check_abi
import declarations
import layout

SKIPPED = 77
KEPT_MINORS = 2  # minor releases that a deprecated declaration stays, tests/abi/README.md


def number(release):
    major, minor = release.split(".")
    return int(major), int(minor)


def present_release(folder):
    text = (pathlib.Path(folder) / "version.h").read_text(encoding="utf-8")
    return ".".join(re.search(rf"HORUS_VERSION_{part} (\d+)", text)[1] for part in ("MAJOR", "MINOR"))


def read_ledger(path):
    lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    rows = [(line + " ").split(" ", 2) for line in lines if not line.startswith("#")]
    return {name: (release, value.strip() or None) for release, name, value in rows}


def line_of(one, kept):
    return " ".join([kept.get(one.name, (one.since,))[0], one.name] + ([one.value] if one.value else []))


def breaks(found, ledger):
    now = {one.name: one for one in found}
    lines = [f"{name} is gone, of release {ledger[name][0]}" for name in ledger if name not in now]
    for name, (_, kept) in ledger.items():
        if name in now and broken(now[name], kept):
            lines.append(f"{name} is {now[name].value}, expected {kept}")
    return lines


def broken(one, kept):
    return layout.breaks(one.value, kept) if one.kind in layout.KINDS else one.value != kept


def of_one(one, present, ledger):
    if one.since is None:
        return ["says no release: neither its comment nor the first comment of its header does"]
    problems = list(one.complaints)
    recorded = ledger.get(one.name, (None,))[0]
    if recorded and recorded != one.since:
        problems.append(f"says since {one.since}, but exists since {recorded}")
    if not recorded and one.since != present:
        problems.append(f"is new and says since {one.since}: expected {present}, the release being made")
    if one.deprecated:
        start, until = map(number, one.deprecated)
        if until < (start[0], start[1] + KEPT_MINORS):
            problems.append(f"is deprecated since {one.deprecated[0]} until {one.deprecated[1]}: expected at least "
                            f"{KEPT_MINORS} minor releases")
        if start > number(present):
            problems.append(f"is deprecated since {one.deprecated[0]}, which is after {present}")
        if until <= number(present):
            problems.append(f"was to go with {one.deprecated[1]}")
    return problems


def check(found, present, ledger):
    problems = [f"{one.header}: {one.name} {text}" for one in found for text in of_one(one, present, ledger)]
    return problems + breaks(found, ledger)


def accept(found, path):
    kept = read_ledger(path)
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    path.write_text("\n".join(lines + [line_of(one, kept) for one in found]) + "\n", encoding="utf-8")


def add_first_sizes(found, path):
    """Rows of the structs that have none, by their last field: what they grow later is not in it."""
    text = path.read_text(encoding="utf-8")
    last = dict(one.name.split(".") for one in found if one.kind == "field")
    lacking = check_abi.without_first_size(list(last), text)
    rows = "".join(f"HORUS_FIRST_RELEASE({struct}, {last[struct]});\n" for struct in lacking)
    end = "\n}  // namespace horus::capi"
    path.write_text(text.replace(end, rows + end), encoding="utf-8")


def check_layout(folder, found, path, emulator):
    told = layout.measured(folder, found, emulator)
    if not told:
        print("skipped: the ledger has the layout of 64-bit machines")
        return SKIPPED
    problems = list(layout.differences(told, {name: kept for name, (_, kept) in read_ledger(path).items()}))
    print("\n".join(problems) or f"layout: {len(told)} structs and fields as accepted")
    return 1 if problems else 0


def main():
    folder, path, mode = sys.argv[1], pathlib.Path(sys.argv[2]), "".join(sys.argv[3:4])
    found, present = declarations.read_headers(folder), present_release(folder)
    if mode == "--layout":
        return check_layout(folder, found, path, sys.argv[4:])
    if mode:
        told = layout.measured(folder, found)
        if not told:
            sys.exit("expected a 64-bit machine: the ledger has its layout")
        for one in found:
            one.value = told.get(one.name, one.value)
    if mode == "--accept":
        accept(found, path)
        add_first_sizes(found, pathlib.Path(sys.argv[4]))
    problems = breaks(found, read_ledger(path)) if mode == "--judge" else check(found, present, read_ledger(path))
    for problem in problems:
        print(problem)
    if problems:
        print("What is gone or moved is a break of the ABI: tests/abi/README.md says how one is accepted.")
    print(f"since: {len(found)} declarations, {'each with its release' if not problems else 'see above'}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
