# SPDX-License-Identifier: Apache-2.0
"""The page of the command line, out of what its --help says. Usage: commands.py HORUS > commands.md"""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "cmake"))
import manual  # noqa: E402  reads --help for manual pages and completions

OPENING = """# The command `horus`

What `--help` prints, command by command. What holds for all of them:

- Text goes to stdout, at up to 100 columns. An error is one line on stderr, `horus: ...`. Progress appears on stderr, only if
  it is a terminal and the work takes more than a second.
- `--json` prints one [JSON document](json.md). Keys, columns and options have their unit in the name:
  `_us`, `_mib`, `_pct`, `_milli` (a thousandth).
- Files to write (`--out`, `--to`, `--predictions`, `--prometheus`, `--html`) replace what was there, whole or not at all. `--timeline`
  grows during the run. A file that another option names is refused.
- `horus profile`, and `horus report` on results of `compare` and `simulate`, are Python programs, with exit codes of their own.
  `HORUS_PYTHON` names the interpreter, else it is `python3`. That report needs the Python package with the extra `report`
  ([Python](../python.md)).

| exit code | meaning |
|---|---|
| 0 | decided; refused jobs included |
| 1 | internal error, or the output could not be written |
| 2 | bad input: options, files, values; nothing was decided or written |
| 3 | with `--strict`: a job found no place; `horus import`: nodes or pods with GPUs were left out |

Manual pages (`man horus`) and completions for bash, zsh and fish are installed with the command.
"""


def help_text(horus, path):
    environment = dict(os.environ, HORUS_PYTHON=sys.executable, COLUMNS="100", HORUS_COMMAND=str(horus))
    done = subprocess.run([horus, *path, "--help"], capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        raise SystemExit(f"commands.py: {' '.join(('horus', *path))} --help: exit code {done.returncode}\n{done.stderr}")
    return done.stdout.rstrip()


def main():
    horus = pathlib.Path(sys.argv[1]).resolve()
    print(OPENING)
    commands = manual.collect(horus)
    first = [command.path[:1] for command in commands]  # a command's own subcommands come right behind it
    for command in sorted(commands, key=lambda command: (first.index(command.path[:1]), len(command.path))):
        print(f"## {command.name}\n\n```text\n{help_text(horus, command.path)}\n```\n")


if __name__ == "__main__":
    main()
