# SPDX-License-Identifier: Apache-2.0
"""Checks that every public declaration says since which release it exists, and what will go until when.

Usage: check_since.py INCLUDE_FOLDER LEDGER [--accept | --judge]
The ledger holds "RELEASE NAME" or "RELEASE CONSTANT VALUE" of all that was ever accepted: neither changes, and nothing
leaves it without a break of the ABI. What is not in it must be of the release being made.
--accept adds that, and takes over what broke. --judge: exit status 1 where programs break.
"""

import pathlib
import re
import sys

import declarations

KEPT_MINORS = 2  # minor releases that a deprecated declaration stays, docs/abi.md


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
    values = {one.name: one.value for one in found}
    lines = [f"{name} is gone, of release {ledger[name][0]}" for name in ledger if name not in values]
    return lines + [
        f"{name} is {values[name]}, expected {ledger[name][1]}"
        for name in ledger
        if name in values and values[name] != ledger[name][1]
    ]


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


def main():
    folder, path = sys.argv[1:3]
    found, present = declarations.read_headers(folder), present_release(folder)
    if "--accept" in sys.argv[3:]:
        old = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
        kept = read_ledger(path)
        lines = [line for line in old if line.startswith("#")]
        lines += [line_of(one, kept) for one in found]
        pathlib.Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")
    judging = "--judge" in sys.argv[3:]
    problems = breaks(found, read_ledger(path)) if judging else check(found, present, read_ledger(path))
    for problem in problems:
        print(problem)
    if problems:
        print("What is gone or moved is a break of the ABI: docs/abi.md says how one is accepted.")
    print(f"since: {len(found)} declarations, {'each with its release' if not problems else 'see above'}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
