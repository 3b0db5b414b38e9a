# SPDX-License-Identifier: Apache-2.0
"""What README and pages show of the command is what the command says: each block that begins with `$ horus` is run, README's picture
drawn again, and the log of its replay made again."""

import json
import shlex
import subprocess
import sys
import unittest

from command import HORUS, ROOT, main, run

LEFT_OUT = "…"


def transcripts():
    """Page, command line and lines shown of each block."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for block in page.read_text(encoding="utf-8").split("```")[1::2]:
            lines = block.partition("\n")[2].replace("\\\n", " ").rstrip("\n").splitlines()
            if lines and lines[0].startswith("$ horus ") and not lines[0].startswith("$ horus profile "):  # needs a GPU
                yield page.name, lines[0][len("$ horus "):], lines[1:]


def same(shown, said):
    """A line may leave its end out."""
    return said.startswith(shown[:-len(LEFT_OUT)]) if shown.endswith(LEFT_OUT) else said == shown


def position_of(part, lines, begin):
    for at in range(begin, len(lines) - len(part) + 1):
        if all(map(same, part, lines[at:at + len(part)])):
            return at
    return -1


class Readme(unittest.TestCase):
    def test_every_transcript_is_what_the_command_says(self):
        shown = list(transcripts())
        self.assertGreaterEqual(len([page for page, _, _ in shown if page == "README.md"]), 2)
        self.assertGreaterEqual(len(shown), 8)
        for page, command, lines in shown:
            code, out, err = run(*shlex.split(command), cwd=ROOT)
            self.assertEqual((code, err), (0, ""), (page, command))
            said, at = out.splitlines(), 0
            for part in "\n".join(lines).split(f"\n{LEFT_OUT}"):
                part = [line for line in part.strip("\n").splitlines()]
                found = position_of(part, said, at)
                self.assertGreaterEqual(found, 0, f"{page}: {command}: not said, or not in this order:\n" + "\n".join(part))
                at = found + len(part)

    def test_the_picture_shows_the_figures_beside_it(self):
        self.assertIn("](docs/sharing.svg)", (ROOT / "README.md").read_text(encoding="utf-8"))
        drawn = subprocess.run([sys.executable, "docs/picture.py"], cwd=ROOT, capture_output=True, check=True)
        self.assertEqual(drawn.stdout.decode(), (ROOT / "docs/sharing.svg").read_text(encoding="utf-8"))

    def test_the_log_of_the_replay_is_what_first_fit_chooses(self):
        code, out, err = run("place", "--cluster", "examples/cluster.yaml", "--jobs", "examples/jobs.yaml", "--policy", "first-fit",
                             "--json", cwd=ROOT)
        self.assertEqual((code, err), (0, ""))
        placed = [one for one in json.loads(out)["decisions"] if one["verdict"] == "place"]
        lines = ["time_s,event,job,node,devices"]
        for number, one in enumerate(placed, 1):
            devices = ";".join(str(slot["gpu"]) for slot in one["slots"])
            lines.append(f"{60 * number},place,{one['job']},{one['slots'][0]['node']},{devices}")
        self.assertEqual((ROOT / "examples/decisions.csv").read_text(encoding="utf-8").splitlines(), lines)

    def test_it_fits_a_screen_or_two_and_names_the_two_commands(self):
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        self.assertLessEqual(len(text.splitlines()), 100)
        for command in ("./scripts/quickstart", "./scripts/test"):
            self.assertIn(f"\n{command} ", text)


if __name__ == "__main__":
    main()
