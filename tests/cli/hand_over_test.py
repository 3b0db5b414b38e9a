# SPDX-License-Identifier: Apache-2.0
"""horus profile and horus report become Python programs. Usage: see command.py."""

import importlib.util
import os
import pathlib
import shutil
import signal
import subprocess
import sys

from command import HORUS, ROOT, Files, main, run

# An interpreter that says what it was given and ends as it is told.
FAKE = """#!/bin/sh
case "$*" in *find_spec*) exit PROBE;; esac
for part in "$@"; do printf '%s\\n' "$part"; done
printf 'HORUS_COMMAND=%s\\n' "$HORUS_COMMAND"
END
"""
AWKWARD = ["run", "--help", "--", "a b", "", "--version", "train", "simulate", "-o=*", "'"]


class HandOver(Files):
    def fake(self, end="exit 0", probe=0):
        path = self.write("python", FAKE.replace("END", end).replace("PROBE", str(probe)))
        path.chmod(0o755)
        return path

    def hand(self, *args, command=HORUS, **environment):
        done = subprocess.run([command, *map(str, args)], capture_output=True, text=True, timeout=120, check=False,
                              env={**{name: value for name, value in os.environ.items() if not name.startswith("HORUS_")},
                                   **{name: str(value) for name, value in environment.items()}})
        return done.returncode, done.stdout, done.stderr

    def moved(self):
        """The command alone, in another place."""
        command = self.folder / "prefix" / "bin" / "horus"
        command.parent.mkdir(parents=True)
        shutil.copy(HORUS, command)
        return command

    def test_arguments_arrive_as_they_were_and_are_not_parsed_here(self):
        code, out, err = self.hand("profile", *AWKWARD, HORUS_PYTHON=self.fake())
        self.assertEqual((code, err), (0, ""))
        program, *arguments, command = out.split("\n")[:-1]
        self.assertEqual(pathlib.Path(program).resolve(), ROOT.resolve() / "bench/profile/horus-profile")
        self.assertEqual(arguments, AWKWARD)
        self.assertEqual(command, f"HORUS_COMMAND={HORUS.resolve()}")
        results = str(self.folder)  # of compare: what is not for the command itself
        code, out, err = self.hand("report", results, *AWKWARD, HORUS_PYTHON=self.fake())
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(out.split("\n")[:-2], ["-m", "horus.report", results, *AWKWARD])

    def test_the_exit_code_is_the_programs(self):
        for command in (["profile"], ["report", self.folder]):
            for code in (0, 1, 3, 130):
                self.assertEqual(self.hand(*command, HORUS_PYTHON=self.fake(f"exit {code}"))[0], code)
            self.assertEqual(self.hand(*command, HORUS_PYTHON=self.fake("kill -TERM $$"))[0], -signal.SIGTERM)

    def test_python3_of_the_path_is_the_interpreter_unless_another_is_named(self):
        self.fake().rename(self.folder / "python3")
        path = f"{self.folder}:{os.environ['PATH']}"
        for more in ({}, {"HORUS_PYTHON": ""}):
            self.assertIn("nets\n", self.hand("profile", "nets", PATH=path, **more)[1])

    def test_the_profiler_beside_an_installation_is_found_from_the_command(self):
        command = self.moved()
        program = self.folder / "prefix" / "share" / "horus" / "profile" / "horus-profile"
        program.parent.mkdir(parents=True)
        program.touch()
        link = self.folder / "horus"
        link.symlink_to(command)
        for one in (command, link):
            code, out, err = self.hand("profile", command=one, HORUS_PYTHON=self.fake())
            self.assertEqual((code, err), (0, ""))
            self.assertEqual(out.split("\n")[0], str(program))

    def test_what_is_missing_is_said_with_the_places_looked_at(self):
        command = self.moved()
        for args, environment, words in (
                (["profile"], {"HORUS_PYTHON": self.fake()}, [f"'{self.folder}/prefix/share/horus/profile/horus-profile'"]),
                (["report", self.folder], {"HORUS_PYTHON": "/nowhere/python"}, ["HORUS_PYTHON: cannot run", "'/nowhere/python'"]),
                (["report", self.folder], {"PATH": str(self.folder / "nothing")}, ["PATH: cannot run", "'python3'", "HORUS_PYTHON"]),
                (["report", self.folder], {"HORUS_PYTHON": self.fake(probe=3)}, ["no module horus.report", "-m pip install './bindings/python[report]'"])):
            code, out, err = self.hand(*args, command=command, **environment)
            self.assertEqual((code, out), (2, ""), args)
            self.assertEqual(err.count("\n"), 1, err)
            for word in words:
                self.assertIn(word, err)
        code, out, err = self.hand("profile", HORUS_PYTHON="/nowhere/python")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("'/nowhere/python'", err)

    def test_a_package_that_is_broken_says_so_itself(self):
        code, out, _ = self.hand("report", self.folder, HORUS_PYTHON=self.fake("exit 1", probe=1))
        self.assertEqual((code, out.split("\n")[1]), (1, "horus.report"))

    def test_the_real_interpreter_finds_no_package_where_there_is_none(self):
        if importlib.util.find_spec("horus"):
            self.skipTest("the package is installed for this interpreter")
        code, out, err = self.hand("report", self.folder, HORUS_PYTHON=sys.executable)
        self.assertEqual((code, out), (2, ""))
        self.assertIn("no module horus.report", err)

    def test_the_real_profiler_answers_in_both_spellings(self):
        code, out, err = self.hand("profile", "plan", "--minutes", "1", HORUS_PYTHON=sys.executable)
        self.assertEqual((code, err), (0, ""))
        self.assertIn("isolated", out)
        for spelling in ("train", "--train"):
            code, out, err = self.hand("profile", spelling, "--rows", self.folder, HORUS_PYTHON=sys.executable)
            self.assertEqual((code, out), (1, ""))
            self.assertIn("dataset.csv: expected a table", err)

    def test_both_are_listed(self):
        out = run("--help")[1]
        for words in ("  profile  ", "  report  ", "horus profile run --out rows"):
            self.assertIn(words, out)


if __name__ == "__main__":
    main()
