# SPDX-License-Identifier: Apache-2.0
"""Manual pages and completions that cmake/manual.py makes of the command: complete, well formed, and working in their shells.
A shell or mandoc that is not there is named, and its test skipped. Usage: see command.py."""

import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from command import HORUS, ROOT, main, run

# What stands before the cursor, and what must be offered for it; in a folder with cluster.yaml and a folder `models`.
OFFERED = (
    ("horus pla", {"place"}),
    ("horus traces ", {"show", "convert", "make"}),
    ("horus traces make p", {"philly"}),
    ("horus place --pol", {"--policy"}),
    ("horus place --policy gav", {"gavel-threshold", "gavel-maxmin"}),
    ("horus place --cluster clu", {"cluster.yaml"}),
    ("horus compare grid.yaml --out mod", {"models"}),
    ("horus inspect clu", {"cluster.yaml"}),
    ("horus inspect --gpu h100-p", {"h100-pcie"}),
    ("horus inspect --bundle bui", {"builtin"}),
    ("horus potential --sens", {"--sensitivities"}),
    ("horus profile pl", {"plan"}),
    ("horus profile run --minu", {"--minutes"}),
)
BASH = 'source "$1"; read -ra COMP_WORDS <<<"$2"; [[ $2 != *" " ]] || COMP_WORDS+=(""); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n' \
    '_horus; printf "%s\\n" "${COMPREPLY[@]}"'
# Tab completes what is unambiguous; Ctrl-X shows the line.
ZSH = ("PS1=; unsetopt zle_bracketed_paste beep; fpath=({folder} $fpath); autoload -Uz compinit; compinit -D -u; "
       "show() {{ print -r -- \"<<$BUFFER>>\"; BUFFER=; }}; zle -N show; bindkey '^X' show; bindkey '^I' complete-word; print ready\n")
WAIT_S = 60


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.made.cleanup)
        cls.folder = pathlib.Path(cls.made.name)
        subprocess.run([sys.executable, ROOT / "cmake/manual.py", HORUS, cls.folder, "--date", "2026-01-31"], check=True)
        (cls.folder / "here/models").mkdir(parents=True)
        (cls.folder / "here/cluster.yaml").touch()

    def page(self, *words):
        return (self.folder / "man1" / ("-".join(("horus", *words)) + ".1")).read_text(encoding="utf-8")

    def need(self, program):
        if not shutil.which(program):
            print(f"SKIPPED: {program} is not installed; scripts/packages.sh names it", file=sys.stderr)
            self.skipTest(f"{program} is not installed")

    def test_every_option_of_every_command_is_in_its_page(self):
        commands = re.findall(r"^  ([a-z]+) {2,}", run("--help")[1].partition("Subcommands:")[2].partition("\n\n\n")[0], re.M)
        self.assertGreaterEqual(len(commands), 14)
        for command in commands:
            page = self.page(command).replace("\\-", "-")
            if command != "profile":
                options = re.findall(r"^  (?:-h,)?(--[\w-]+)", run(command, "--help")[1].partition("\n\n\n")[0], re.M)
                self.assertIn("--help", options)
                for option in options:
                    self.assertIn(f"\\fB{option}\\fR", page, command)
        self.assertIn("\\fB--log\\fR \\fIFILE\\fR\nCSV file with the other scheduler's decisions. Needed.", self.page("shadow").replace("\\-", "-"))
        self.assertIn("From 1 to 256. Default: 3.", self.page("place"))

    def test_equal_commands_give_equal_pages(self):
        with tempfile.TemporaryDirectory() as again:
            subprocess.run([sys.executable, ROOT / "cmake/manual.py", HORUS, again, "--date", "2026-01-31"], check=True)
            for part in ("man1", "bash", "zsh", "fish"):
                for path in (self.folder / part).iterdir():
                    self.assertEqual(path.read_bytes(), (pathlib.Path(again) / part / path.name).read_bytes())

    def test_mandoc_has_nothing_to_say(self):
        self.need("mandoc")
        done = subprocess.run(["mandoc", "-Tlint", "-W", "warning", *sorted((self.folder / "man1").iterdir())], capture_output=True,
                              text=True, check=False)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_bash_completes(self):
        self.need("bash")
        for line, expected in OFFERED:
            done = subprocess.run(["bash", "--norc", "-c", BASH, "bash", self.folder / "bash/horus", line], cwd=self.folder / "here",
                                  capture_output=True, text=True, check=True)
            self.assertEqual(set(done.stdout.split()), expected, line)

    def test_fish_completes(self):
        self.need("fish")
        for line, expected in OFFERED:
            done = subprocess.run(["fish", "--no-config", "-c", f"source {self.folder}/fish/horus.fish; complete -C '{line}'"],
                                  cwd=self.folder / "here", capture_output=True, text=True, check=True)
            offered = {answer.partition("\t")[0].rstrip("/") for answer in done.stdout.splitlines()}
            self.assertEqual(offered, expected, line)

    def test_zsh_completes(self):
        self.need("zsh")
        process, terminal = pty.fork()
        if process == 0:
            os.chdir(self.folder / "here")
            os.execvpe("zsh", ["zsh", "-f", "-i"], dict(os.environ, TERM="dumb", HOME=str(self.folder)))
        try:
            os.write(terminal, ZSH.format(folder=self.folder / "zsh").encode())
            self.wait_for(terminal, r"\nready")
            for line, expected in OFFERED:
                if len(expected) == 1:
                    os.write(terminal, f"{line}\t\x18".encode())
                    shown = self.wait_for(terminal, r"<<(.*?)>>")
                    self.assertEqual(shown.rstrip(" =/"), line.rpartition(" ")[0] + " " + next(iter(expected)))
        finally:
            os.close(terminal)
            os.waitpid(process, 0)

    def wait_for(self, terminal, pattern):
        said, end = b"", time.monotonic() + WAIT_S
        while time.monotonic() < end:
            if select.select([terminal], [], [], 1)[0]:
                said += os.read(terminal, 4096)
            found = re.search(pattern, said.decode(errors="replace"))
            if found:
                return found[1] if found.re.groups else found[0]
        self.fail(f"zsh did not answer with {pattern} within {WAIT_S} s: {said!r}")


if __name__ == "__main__":
    main()
