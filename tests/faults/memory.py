# SPDX-License-Identifier: Apache-2.0
"""Runs a contract test with every allocation of its calls failing in turn; what it never frees must be what it never
frees without failures.

Usage: memory.py PROGRAM REPORT | memory.py --every HEADERS SYMBOLS_LIST NOT_TRIED REPORT...
The second form reads the reports of all programs: each exported function must have been called, and in each that answers
a status an allocation must have failed (where NOT_TRIED is empty). Exit status 77 when a program has not run.
"""

import os
import pathlib
import re
import subprocess
import sys


def run(program, report, **settings):
    report.unlink(missing_ok=True)
    answer = subprocess.run([program], env={**os.environ, "HORUS_FAULTS_REPORT": str(report), **settings}, check=False)
    rows = [line.split() for line in report.read_text(encoding="utf-8").splitlines()] if report.exists() else []
    held = next((int(row[1]) for row in rows if row[0] == "held"), None)
    failed = sum(int(row[2]) for row in rows if row[0] != "held")
    return answer.returncode, held, failed


def try_one(program, report):
    status, held_without, _ = run(program, report, HORUS_FAULTS_NONE="1")
    if status != 0:
        print(f"{program}: exit status {status} although nothing fails")
        return 1
    status, held, failed = run(program, report)
    print(f"{failed} allocations failed; blocks never freed: {held}, without failures {held_without}")
    return 1 if status != 0 or held is None or held > held_without else 0


def every(headers, symbols, not_tried, reports):
    missing = [str(path) for path in reports if not path.exists()]
    if missing:
        print(f"SKIPPED: not run yet: {', '.join(missing)}")
        return 77
    called, failed = set(), {}
    for path in reports:
        for name, first, *rest in (line.split() for line in path.read_text(encoding="utf-8").splitlines()):
            if rest and int(first) > 0:
                called.add(name)
                failed[name] = failed.get(name, 0) + int(rest[0])
    wanted = [line.split()[0] for line in symbols.read_text(encoding="utf-8").splitlines() if line.startswith("horus_")]
    known = not_tried.read_text(encoding="utf-8").splitlines()
    # A function without status cannot say that it failed, and so allocates nothing. A build that leaves out functions has
    # others that only say so.
    text = "".join(header.read_text(encoding="utf-8") for header in sorted(headers.rglob("*.h")))
    answers = set() if known else set(re.findall(r"\bhorus_status (horus_\w+)\(", text))
    left_out = [name for name in wanted if not (failed.get(name) if name in answers else name in called) and name not in known]
    for name in left_out:
        print(f"no call of {name} under failing allocations")
    print(f"{len(called)} functions called, {sum(count > 0 for count in failed.values())} of them with failing allocations,")
    print(f"{sum(failed.values())} allocations failed; none in: {' '.join(sorted(n for n in called if failed[n] == 0))}")
    return 1 if left_out else 0


def main():
    if sys.argv[1] == "--every":
        return every(*map(pathlib.Path, sys.argv[2:5]), [pathlib.Path(name) for name in sys.argv[5:]])
    return try_one(sys.argv[1], pathlib.Path(sys.argv[2]))


if __name__ == "__main__":
    sys.exit(main())
