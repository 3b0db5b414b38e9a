# SPDX-License-Identifier: Apache-2.0
"""Manual pages of horus-slurm, out of what its --help says, and of horus-sbatch and the options of the SPANK plugin, out of its
table of words.

Usage: manual.py HORUS_SLURM FOLDER [--date YYYY-MM-DD]

Writes horus-slurm.1 and horus-sbatch.1."""

import argparse
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "cmake"))
from manual import roff, verbatim  # noqa: E402 (the pages of the horus command are made by it)

WORD = re.compile(r'\{"(?P<key>\w*)",\s*(?P<kind>[A-Z]+),\s*(?P<least>[^,]+),\s*(?P<most>[^,]+),\s*'
                  r'(?P<choices>NULL|"[^"]*"),\s*(?P<shows>NULL|"[^"]*"),\s*(?P<about>"[^"]*")\}')
FILES = [("/run/horus-slurm/alive", "tells job_submit.lua that the daemon is there."),
         ("/usr/bin/horus-grant", "TaskProlog of slurm.conf that puts into a job's environment what the job was granted."),
         ("/etc/default/horus-slurm", "options of the daemon, where the package's systemd unit starts it.")]
SBATCH = """Jobs that say something about themselves are placed by
.BR horus\\-slurm (1).
Where the SPANK plugin spank_horus.so is in plugstack.conf, sbatch, srun and salloc have the options below.
.B horus\\-sbatch
takes them where it is not; there they come first, and it hands all others to sbatch.
A relative model is that of the folder where the command is started. A comment of yours stays, behind the words.
"""


def said(program, *words):
    done = subprocess.run([program, *words], capture_output=True, text=True, check=True)
    return done.stdout + done.stderr  # Go's flags tell their help on the stream of errors


def head(page, about, version, date):
    return ('.\\" Made by bindings/slurm/manual.py.\n'
            + f'.TH {page.upper()} 1 "{date}" "horus {version}" "libhorus"\n.SH NAME\n{page} \\- {roff(about)}\n')


def item(name, text):
    text = text if text.endswith(".") else text + "."
    return f".TP\n{name}\n{roff(text)}\n"


def options(text):
    """Of one command, as Go's package flag tells them."""
    out = ""
    for name, meta, about in re.findall(r"^  -([\w-]+)(?: (\S+))?\n\s+\t(.*)$", text, re.M):
        out += item(f"\\fB{roff('--' + name)}\\fR" + (f" \\fI{roff(meta)}\\fR" if meta else ""), about)
    if text.count("\n  -") != out.count(".TP"):
        raise SystemExit(f"manual.py: expected each option in two lines, found: {text}")
    return out


def daemon(program, version, date):
    page = head("horus-slurm", "places the jobs of a Slurm cluster, so that they share GPUs within bounds", version, date)
    page += ".SH SYNOPSIS\n.B horus\\-slurm\n.I COMMAND\n[\\fIOPTIONS\\fR]\n"
    page += ".SH DESCRIPTION\nA daemon that gives jobs of a Slurm cluster their node and GPU, and what an administrator needs " \
            "beside it. It runs Slurm's commands, as SlurmUser or an operator. Jobs whose comment begins with horus: are " \
            "placed; all others are Slurm's.\n"
    found = re.findall(r"^  (\w+) +(\S.*)$", said(program, "--help"), re.M)
    if not found:
        raise SystemExit(f"manual.py: {program} --help lists no commands")
    for name, about in found:
        text = said(program, name, "--help")
        usage = re.match(r"usage: horus-slurm (.*)\n", text)
        if not usage:
            raise SystemExit(f"manual.py: {program} {name} --help tells no usage")
        page += f".SH {name.upper()}\n.B {roff('horus-slurm ' + usage[1])}\n.PP\n{roff(about)}.\n{options(text)}"
    page += ".SH FILES\n" + "".join(item(f"\\fI{roff(name)}\\fR", about) for name, about in FILES)
    return page + ".SH SEE ALSO\n.BR horus\\-sbatch (1),\n.BR horus (1),\n.BR squeue (1),\n.BR slurm.conf (5)\n"


def wrapper(version, date):
    source = (HERE / "spank/spank_horus.c").read_text(encoding="utf-8")
    table = source[source.index("words[] = {"):source.index("enum { WORDS")]
    words = list(WORD.finditer(table.replace('"\n     "', "")))
    if len(words) != table.count('{"'):
        raise SystemExit(f"manual.py: spank_horus.c: expected {table.count(chr(123) + chr(34))} words, read {len(words)}")
    page = head("horus-sbatch", "sbatch with words for horus-slurm, and the options of its SPANK plugin", version, date)
    page += ".SH SYNOPSIS\n.B horus\\-sbatch\n[\\fB\\-\\-horus\\-\\fIKEY VALUE\\fR...]\n[\\fIOPTIONS OF SBATCH\\fR]\n.I SCRIPT\n"
    page += ".br\n.B sbatch\n[\\fB\\-\\-horus\\-\\fIKEY VALUE\\fR...]\n[\\fIOPTIONS\\fR]\n.I SCRIPT\n.SH DESCRIPTION\n" + SBATCH + ".SH OPTIONS\n"
    for word in words:
        option = "--horus" + "-" * bool(word["key"]) + word["key"].replace("_", "-")
        text = word["about"].strip('"')
        choices = word["choices"].strip('"').split(", ")
        if word["choices"] != "NULL" and not all(one in text for one in choices):
            text += ": " + ", ".join(choices)
        elif word["kind"] == "FIGURE":
            text += f"; {word['least']} to {float(word['most']):.10g}"
        meta = word["shows"].strip('"') if word["shows"] != "NULL" else ""
        page += item(f"\\fB{roff(option)}\\fR" + (f" \\fI{roff(meta)}\\fR" if meta else ""), text)
    page += item("\\fB\\-\\-horus\\-wait\\fR \\fISECONDS\\fR", "of horus-sbatch alone, where job_submit.lua does not do it: Slurm "
                 "starts the job by itself so much later")
    page += ".SH EXAMPLES\n" + verbatim([
        "sbatch --gres=shard:8 --horus-model net.onnx --horus-batch 64 job.sh",
        "srun --horus-gpu-util-pct 40 --horus-gpu-memory-gib 6 python train.py",
        "horus-sbatch --horus-model net.onnx --horus-wait 300 --gres=shard:8 job.sh"])
    return page + ".SH SEE ALSO\n.BR horus\\-slurm (1),\n.BR sbatch (1),\n.BR srun (1),\n.BR salloc (1)\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--date", default="")
    given = parser.parse_args()
    version = said(given.program, "--version").split()[1]
    given.folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("horus-slurm.1", daemon(given.program, version, given.date)), ("horus-sbatch.1", wrapper(version, given.date))):
        (given.folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
