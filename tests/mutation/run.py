# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of the placer against every mutant of its fit rules and its ledger.

The files under mutation are compiled once, with all of their mutants behind switches, and linked into the test programs.
Each test is run once with every switch off to see which mutants it passes; each mutant is then run with the tests that
pass it. A mutant is killed when a test fails, crashes or takes 20 times as long.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import resource
import shlex
import subprocess
import sys
import time

import mutants

# The fit rules, and what a device, a node and a planner's ledger promise, book and give back.
FILES = ["src/place/state/fit.cc", "src/place/job/own_bound.cc", "src/place/search/admit.cc", "src/place/state/ledger.cc",
         "src/place/state/device_states.cc", "src/place/state/groups.cc", "src/place/state/cluster_jobs.cc"]
# Test programs, the quick ones first; of which of them some suites alone; and test sources that are compiled anew with fewer
# random operations. The other suites of that program killed nothing more in a run of those that take below 0.15 s.
PROGRAMS = ["place_test", "place_alloc_test", "property_test"]
SUITES = {"property_test": ("PlaceProperty.", "PlaceSample.")}
FEWER = {"place_property_test.cc": 1000}
# Tests that take nearly all the time of the programs, and killed nothing that no other test does, but for the last: it fills
# a device to its limit.
LEFT_OUT = ("BatchSearch.WithAnyBudgetIsSound", "FailingAnswers.OfThePolicyEndEveryMode", "FailingAnswers.OfTheModelEndEveryMode",
            "WhatIf.KnowsHowManyJobsADeviceHolds")
MEMORY_BYTES = 6 << 30
ROOT = pathlib.Path(__file__).resolve().parents[2]
EXPLAINED = pathlib.Path(__file__).with_name("explained.txt")
# One line, so that the others keep their number.
PROLOGUE = "bool HorusMutantIsOn(int number);\n#define HM(n) HorusMutantIsOn(n)\n#line 1\n"


def fail(message):
    sys.exit(f"mutate: {message}")


class Build:
    """The mutated test programs, in the folder `out`."""

    def __init__(self, build, out, chosen):
        self.build, self.out = build, out
        self.out.mkdir(parents=True, exist_ok=True)
        commands = json.loads((build / "compile_commands.json").read_text())
        self.commands = {str(pathlib.Path(one["file"]).relative_to(ROOT)): one["command"] for one in commands
                         if pathlib.Path(one["file"]).is_relative_to(ROOT)}
        self.mutants, self.uncompiled = [], set()
        trees = (ROOT / "src", ROOT / "tests/property", ROOT / "tests/unit")
        self.newest = max(path.stat().st_mtime for tree in trees for path in tree.rglob("*.h"))
        for name in chosen:
            if name not in self.commands:
                fail(f"{name}: not a source of this build")
            self.mutants += mutants.mutants_of(name, (ROOT / name).read_text())

    def compile(self, name, source, to, extra=(), check=True):
        """Compiles `source` as if it were the file `name`."""
        words = [word for word in shlex.split(self.commands[name]) if word not in ("-Werror", "-g")]
        words[words.index("-o") + 1] = str(to)
        words[words.index("-c") + 1] = str(source)
        if words[0].endswith("ccache"):
            words = words[1:]
        words += ["-w", "-g0", "-fmax-errors=0", "-fdiagnostics-plain-output", f"-I{(ROOT / name).parent}", *extra]
        done = subprocess.run(words, cwd=self.build, capture_output=True, text=True)
        if check and done.returncode != 0:
            fail(f"{name} does not compile:\n{done.stderr[:4000]}")
        return done

    def made(self, to, *sources):
        """Whether the object is newer than its sources and all headers."""
        return to.exists() and to.stat().st_mtime > max(self.newest, *(one.stat().st_mtime for one in sources))

    def compile_switched(self, name):
        """Leaves the object with all mutants of the file that compile."""
        code = (ROOT / name).read_text()
        source = self.out / (name.replace("/", "_"))
        to = source.with_suffix(".o")
        numbered = [(number, one) for number, one in enumerate(self.mutants) if one.file == name]
        base, dropped = numbered[0][0], source.with_suffix(".uncompiled")
        if dropped.exists() and self.made(to, ROOT / name, *pathlib.Path(__file__).parent.glob("*.py")):
            kept = json.loads(dropped.read_text())
            if kept[0] == base:
                self.uncompiled |= set(kept[1])
                return to
        while True:
            text, spans = mutants.switched(code, [one for one in numbered if one[0] not in self.uncompiled])
            source.write_text(PROLOGUE + text)
            done = self.compile(name, source, to, ["-D_GLIBCXX_ASSERTIONS"], check=False)
            if done.returncode == 0:
                dropped.write_text(json.dumps([base, [one[0] for one in numbered if one[0] in self.uncompiled]]))
                return to
            starts = [0]
            for line in text.split("\n"):
                starts.append(starts[-1] + len(line) + 1)
            wrong = set()
            for line, column in re.findall(rf"^{re.escape(str(source))}:(\d+):(\d+): (?:error|required|note)", done.stderr, re.M):
                at = starts[int(line) - 1] + int(column) - 1
                inside = [(end - start, number) for number, (start, end) in spans.items() if start <= at <= end]
                if inside:
                    wrong.add(min(inside)[1])
            if not wrong:
                fail(f"{name} with its mutants does not compile, and no mutant is to blame:\n{done.stderr[:3000]}")
            self.uncompiled |= wrong

    def link(self, program, objects):
        commands = subprocess.run(["ninja", "-C", str(self.build), "-t", "commands", program], check=True,
                                  capture_output=True, text=True).stdout.splitlines()
        command = [one for one in commands if f" {program} " in one + " " or f"/{program} " in one + " "][-1]
        words = shlex.split(command)
        words = words[words.index("&&") + 1:]
        words = words[:words.index("&&")]
        at = words.index("-o") + 1
        where, words[at] = words[at], str(self.out / program)
        for name in FEWER:
            words = [str(self.out / f"{name}.o") if word.endswith(f"/{name}.o") else word for word in words]
        first = next(i for i, word in enumerate(words) if word.endswith(".o"))
        words[first:first] = [str(one) for one in objects]  # before the library that holds the same
        words += ["-s", f"-Wl,-rpath,{(self.build / where).parent}"]
        done = subprocess.run(words, cwd=self.build, capture_output=True, text=True)
        if done.returncode != 0:
            fail(f"{program} does not link:\n{done.stderr[:4000]}")

    def make(self):
        objects = [self.compile_switched(name) for name in dict.fromkeys(one.file for one in self.mutants)]
        switch = pathlib.Path(__file__).with_name("switch.cc")
        subprocess.run(["c++", "-std=c++20", "-O2", f"-DHORUS_MUTANTS={len(self.mutants)}", "-c", str(switch),
                        "-o", str(self.out / "switch.o")], check=True)
        for name, operations in FEWER.items() if "property_test" in PROGRAMS else ():
            path = next(one for one in self.commands if one.endswith("/" + name))
            stamp = self.out / f"{name}.o"
            if self.made(stamp, ROOT / path):
                continue
            self.compile(path, ROOT / path, stamp, ["-UHORUS_PROPERTY_OPS", f"-DHORUS_PROPERTY_OPS={operations}"])
        for program in PROGRAMS:
            self.link(program, [*objects, self.out / "switch.o"])

    def same_object(self, mutant):
        """Whether the compiler makes the same of the mutant as of the original."""
        code = (ROOT / mutant.file).read_text()
        keep = self.out / "same"
        keep.mkdir(exist_ok=True)
        digests = []
        for text in (code, mutants.apply(code, mutant)):
            known = keep / hashlib.sha256((mutant.file + text).encode()).hexdigest()
            if not known.exists():
                source, to = self.out / pathlib.Path(mutant.file).name, self.out / "same.o"
                source.write_text(text)
                done = self.compile(mutant.file, source, to, check=False)
                known.write_text(hashlib.sha256(to.read_bytes()).hexdigest() if done.returncode == 0 else "none")
            digests.append(known.read_text())
        return digests[0] == digests[1]


class Tests:
    """The tests of the mutated programs, and which mutants each passes."""

    def __init__(self, build):
        self.out, self.seconds, self.passes = build.out, {}, collections.defaultdict(list)
        for program in PROGRAMS:
            listed = self.run(program, ["--gtest_list_tests"], 60)[1]
            suite = ""
            for line in listed.splitlines():
                line = line.split("#")[0].rstrip()
                if line.startswith("  "):
                    self.look(program, suite + line.strip())
                elif line.endswith("."):
                    suite = line
        print(f"{len(self.seconds)} tests, {sum(self.seconds.values()):.0f} s", flush=True)

    def run(self, program, arguments, limit_s, **environment):
        def limits():
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        try:
            done = subprocess.run([str(self.out / program), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=limit_s, env={**os.environ, **environment}, preexec_fn=limits)
            return done.returncode, done.stdout.decode(errors="replace")
        except subprocess.TimeoutExpired as late:
            return 124, (late.stdout or b"").decode(errors="replace")

    def look(self, program, test):
        if test in LEFT_OUT or not test.startswith(SUITES.get(program, "")):
            return
        passed = self.out / "passed"
        passed.unlink(missing_ok=True)
        begin = resource.getrusage(resource.RUSAGE_CHILDREN)
        code, output = self.run(program, [f"--gtest_filter={test}"], 300, HORUS_MUTANTS_PASSED=str(passed))
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime
        if code != 0:
            fail(f"{test} fails without a mutant:\n{output[-2000:]}")
        self.seconds[program, test] = seconds
        for number, byte in enumerate(passed.read_bytes()):
            if byte:
                self.passes[number].append((program, test))

    def kill(self, number):
        """The test that tells the mutant from the original, or None."""
        for program in PROGRAMS:
            tests = sorted((test for one, test in self.passes[number] if one == program),
                           key=lambda test: self.seconds[program, test])
            quick = [test for test in tests if self.seconds[program, test] < 0.3]
            for some in (quick, tests[len(quick):]):
                if not some:
                    continue
                start = min(self.seconds.values())  # of the process, which they share here
                limit = 5 + 20 * sum(self.seconds[program, test] - start for test in some)
                arguments = [f"--gtest_filter={':'.join(some)}", "--gtest_fail_fast"]
                code, output = self.run(program, arguments, limit, HORUS_MUTANT=str(number))
                if code == 0:
                    continue
                failed = re.findall(r"\[  FAILED  \] ([\w./]+)", output) or re.findall(r"\[ RUN      \] ([\w./]+)", output)
                how = "takes too long" if code == 124 else "crashes" if code < 0 else "fails"
                return f"{failed[-1] if failed else program} {how}"
        return None


def read_explained(path=EXPLAINED):
    """Names of mutants with their reasons: a reason stands at the margin, the names that it holds for below, indented."""
    explained, reason = {}, None
    for line in path.read_text().splitlines() if path.exists() else ():
        if not line.strip() or line.startswith("#"):
            continue
        if not line.startswith(" "):
            reason = line.strip()
        elif reason is None:
            fail(f"{path.name}: a name before any reason: {line.strip()}")
        elif line.strip() in explained:
            fail(f"{path.name}: named twice: {line.strip()}")
        else:
            explained[line.strip()] = reason
    return explained


def table(results):
    rows = collections.defaultdict(collections.Counter)
    for mutant, outcome in results:
        rows[mutant.file][outcome] += 1
    total = sum(rows.values(), collections.Counter())
    lines = ["| file | mutants | killed | did not compile | same object code | survived, explained | survived |",
             "|---|---|---|---|---|---|---|"]
    for name, row in [*rows.items(), ("all", total)]:
        cells = [sum(row.values()), *(row[one] for one in ("killed", "uncompiled", "same", "explained", "survived"))]
        lines.append("| " + " | ".join([name, *map(str, cells)]) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(prog="scripts/mutate", description=__doc__)
    parser.add_argument("files", nargs="*", help="default: " + ", ".join(FILES))
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/dev", help="a build with tests")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/mutation", help="for what is made")
    parser.add_argument("--program", action="append", choices=PROGRAMS, help="only tests of this one; repeatable")
    parser.add_argument("--list", action="store_true", help="list the mutants and run nothing")
    parser.add_argument("--again", action="store_true", help="only those that survived the last run of the same files")
    parser.add_argument("--most", type=int, help="only so many of them, evenly spread")
    arguments = parser.parse_args()
    files = [str(pathlib.Path(one).resolve().relative_to(ROOT)) for one in arguments.files] or FILES
    if arguments.list:
        for name in files:
            for one in mutants.mutants_of(name, (ROOT / name).read_text()):
                print(f"{one.place}  =>  {' '.join(one.text.split())}")
        return 0

    if arguments.program:
        PROGRAMS[:] = arguments.program
    begin = time.monotonic()
    explained = read_explained()
    build = Build(arguments.build.resolve(), arguments.out.resolve(), files)
    build.make()
    print(f"built with {len(build.mutants)} mutants after {time.monotonic() - begin:.0f} s", flush=True)
    tests = Tests(build)
    last_path = build.out / "last.json"
    last = json.loads(last_path.read_text()) if last_path.exists() else {}
    count = min(arguments.most or len(build.mutants), len(build.mutants))
    chosen = {i * len(build.mutants) // count for i in range(count)}

    def judge(number):
        mutant = build.mutants[number]
        if number in build.uncompiled:
            return "uncompiled", None
        if arguments.again and last.get(mutant.name, ["survived"])[0] in ("killed", "same"):
            return last[mutant.name]
        if killer := tests.kill(number):
            return "killed", killer
        return "explained" if mutant.name in explained else "survived", None

    results, survivors = [], []
    pool = concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0)))  # each waits for its process
    for number, (outcome, killer) in zip(sorted(chosen), pool.map(judge, sorted(chosen))):
        mutant = build.mutants[number]
        results.append((mutant, outcome))
        last[mutant.name] = [outcome, killer]
        if outcome == "survived":
            survivors.append((number, mutant))
            print(f"{time.monotonic() - begin:5.0f} s, {number + 1} of {len(build.mutants)}: {mutant.place} survives", flush=True)
    last_path.write_text(json.dumps(last, indent=1))
    for number, mutant in list(survivors):
        if build.same_object(mutant):
            results[results.index((mutant, "survived"))] = (mutant, "same")
            survivors.remove((number, mutant))
            last[mutant.name] = ["same", None]
    last_path.write_text(json.dumps(last, indent=1))

    print(table(results))
    print(f"{time.monotonic() - begin:.0f} s")
    for number, mutant in survivors:
        passed = "passed by no test" if not tests.passes[number] else f"{len(tests.passes[number])} tests pass it"
        print(f"\nsurvived: {mutant.place} ({passed})\n  {mutant.name}\n  became: {' '.join(mutant.text.split())}")
    known = {mutant.name: outcome for mutant, outcome in results}
    stale = [name for name in explained if name.split(" | ")[0] in files and len(chosen) == len(build.mutants) and
             known.get(name) != "explained"]
    stale += [name for name in explained if name.split(" | ")[0] not in FILES]
    for name in stale:
        print(f"\nstale in {EXPLAINED.name} ({known.get(name, 'no such mutant')}): {name}")
    return 1 if survivors or stale else 0


if __name__ == "__main__":
    sys.exit(main())
