# SPDX-License-Identifier: Apache-2.0
"""Manual pages and shell completions of the command, out of what its --help says.

Usage: manual.py HORUS FOLDER [--date YYYY-MM-DD] [--gzip]

Writes man1/horus.1 and one page a subcommand (--gzip: compressed), bash/horus, zsh/_horus and fish/horus.fish.
"""

import argparse
import dataclasses
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys

COLUMN = 30  # where --help begins to describe an option
FILES, FOLDERS, GPUS = "files", "folders", "gpus"
KINDS = {"FILE": FILES, "FILE...": FILES, "PATH": FILES, "PATH...": FILES, "DIR": FOLDERS, "TYPE": GPUS, "BUNDLE": FILES}
BUNDLES = ["builtin", "none"]
GPU_POSITIONALS = {("gpus", "NAME")}
# NAME=horus; N:INT in [1 - 256]=3; TYPE[=N]; NAME:{backlog,poisson,bursty}
SPEC = re.compile(r"(?P<meta>[^:=\s]+(?:=[A-Z]+\]?)?)"
                  r"(?::(?P<type>[A-Z]*)(?: in \[(?P<range>[^]]*)\]|\{(?P<set>[^}]*)\})?)?(?:=(?P<default>.*))?")


@dataclasses.dataclass
class Option:
    names: list  # -h, --help; of a positional its one name
    text: str
    meta: str = ""  # what stands for its value; none: a flag
    kind: str = ""
    choices: list = dataclasses.field(default_factory=list)
    default: str = ""
    range: str = ""
    many: bool = False
    required: bool = False
    needs: str = ""
    excludes: str = ""


@dataclasses.dataclass
class Command:
    path: tuple
    about: str
    usage: str = ""
    positionals: list = dataclasses.field(default_factory=list)
    options: list = dataclasses.field(default_factory=list)
    subcommands: dict = dataclasses.field(default_factory=dict)  # name: about
    footer: str = ""
    foreign: bool = False  # a Python program that horus hands over to

    @property
    def name(self):
        return " ".join(("horus", *self.path))


# Reading --help.


def choices_in(text):
    """The values that a description lists: 'training or inference'; 'Of images in memory: nchw, or nhwc (channels_last)'."""
    found = []
    for part in re.sub(r" \([^)]*\)", "", text).split("; "):
        values = re.split(r", or |, | or ", part.rpartition(": ")[2])
        if len(values) > 1 and all(re.fullmatch(r"[a-z0-9][\w.-]*", value) for value in values):
            found += [value for value in values if value not in found]
    return found


def option(left, text):
    """An option or positional of --help: what stands left of its description, and that."""
    left, _, excludes = left.strip().partition(" Excludes: ")
    left, _, needs = left.partition(" Needs: ")
    names, _, spec = left.partition(" ")
    made = Option(names.split(",") if names.startswith("-") else [names], text, needs=needs, excludes=excludes)
    spec = f" {spec} "
    made.required, made.many = " REQUIRED " in spec, " ... " in spec
    spec = spec.replace(" REQUIRED ", " ").replace(" ... ", " ").strip()
    if not spec:
        return made
    match = SPEC.fullmatch(spec)
    if not match:
        raise SystemExit(f"manual.py: cannot read the option: {left}")
    made.meta, made.default, made.range = match["meta"], match["default"] or "", match["range"] or ""
    made.kind = KINDS.get(re.sub(r"\[?=.*", "", made.meta), "")
    made.choices = match["set"].split(",") if match["set"] else choices_in(text)
    if made.meta == "BUNDLE":
        made.choices = BUNDLES
    return made


def entries(lines):
    """Left side and description of each line of a section."""
    number = 0
    while number < len(lines):
        line = lines[number]
        if number + 1 < len(lines) and lines[number + 1].startswith(" " * COLUMN):
            yield line, lines[number + 1].strip()
            number += 2
        else:
            yield line[:COLUMN], line[COLUMN:].strip()
            number += 1


def read(path, help_text):
    head, _, footer = help_text.partition("\n\n\n")
    about, _, rest = head.partition("\nUsage: ")
    command = Command(path, " ".join(about.split()), footer=footer.strip("\n"))
    sections = rest.split("\n\n")
    command.usage = sections[0].strip()
    for section in sections[1:]:
        title, *lines = section.splitlines()
        if title == "Subcommands:":
            command.subcommands = {left.strip(): text for left, text in entries(lines)}
        elif title in ("Options:", "Positionals:"):
            found = [option(left, text) for left, text in entries(lines)]
            if title == "Options:":
                command.options = found
            else:
                command.positionals = found
        else:
            raise SystemExit(f"manual.py: {command.name} --help: a section that is not known: {title}")
    for one in command.positionals:
        if (*path, one.names[0]) in GPU_POSITIONALS:
            one.kind = GPUS
    return command


def plain_about(about):
    return re.sub(r" \(a Python program: .*\)", "", about)


def read_foreign(path, about, help_text):
    """A Python program that horus hands over to: its --help as it is, and of that what can be completed."""
    command = Command(path, plain_about(about), footer=help_text.strip("\n"), foreign=True)
    command.usage = f"horus {' '.join(path)} [OPTIONS]"
    named = re.search(r"^\s+\{([\w,-]+)\}$", help_text, re.M)
    for name in named[1].split(",") if named else ():
        described = re.search(rf"^    {re.escape(name)}\s+(.*)$", help_text, re.M)
        command.subcommands[name] = described[1] if described else ""
    for match in re.finditer(r"^  (-\w, )?(--[\w-]+)(?: ([A-Z]\w*))?(?:\s{2,}|\n\s+|\n|$)(\S.*)?", help_text, re.M):
        names = [name for name in ((match[1] or "").strip(", "), match[2]) if name]
        command.options.append(Option(names, match[4] or "", match[3] or "", KINDS.get(match[3] or "", "")))
    return command


def collect(horus):
    """Every command by its path, the top first."""

    def said(*words):
        environment = dict(os.environ, HORUS_PYTHON=sys.executable, COLUMNS="120", HORUS_COMMAND=str(horus))
        done = subprocess.run([horus, *words, "--help"], capture_output=True, text=True, check=False, env=environment)
        return done.stdout if done.returncode == 0 else ""

    found, todo = [], [((), "", False)]
    while todo:
        path, about, foreign = todo.pop(0)
        text, foreign = said(*path), foreign or "(a Python program: " in about
        if not text and not foreign:
            raise SystemExit(f"manual.py: {horus} {' '.join(path)} --help failed")
        command = read_foreign(path, about, text) if foreign else read(path, text)
        found.append(command)
        todo += [((*path, name), about, foreign) for name, about in command.subcommands.items()]
    return found


def gpu_types(horus):
    done = subprocess.run([horus, "gpus"], capture_output=True, text=True, check=True)
    return [line.split()[0] for line in done.stdout.splitlines()[1:] if re.match(r"[a-z]", line)]


# Manual pages.


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("^", "\\(ha").replace("~", "\\(ti")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def listed(one):
    """An option as a manual page has it."""
    if not one.names[0].startswith("-"):
        head = f"\\fI{roff(one.names[0])}\\fR"
    else:
        head = ", ".join(f"\\fB{roff(name)}\\fR" for name in one.names)
        if one.meta:
            head += f" \\fI{roff(one.meta)}\\fR"
    notes = [("Needed. " if one.required else ""), f"From {one.range.replace(' - ', ' to ')}. " if one.range else "",
             f"Default: {one.default}. " if one.default else "", f"Needs {one.needs.replace(' ', ', ')}. " if one.needs else "",
             f"Not with {one.excludes.replace(' ', ', ')}. " if one.excludes else ""]
    text = one.text + ("" if not one.text or one.text.endswith(".") else ".")
    return f".TP\n{head}\n{roff(' '.join(filter(None, [text, ''.join(notes).strip()])) or 'A flag.')}\n"


def verbatim(lines):
    return ".nf\n" + "\n".join(roff(line).replace("'", "\\(aq") if line else "\\&" for line in lines) + "\n.fi\n"


def notes_of(footer):
    """Examples, and what else stands below the options."""
    examples, notes = "", []
    for paragraph in footer.split("\n\n"):
        lines = paragraph.strip("\n").splitlines()
        if lines and lines[0] == "Examples:":
            examples = ".SH EXAMPLES\n" + verbatim(lines[1:])
        elif lines:
            notes.append(roff("\n".join(lines)))
    return examples + (".SH NOTES\n" + "\n.PP\n".join(notes) + "\n" if notes else "")


def manual(command, commands, version, date):
    page = "-".join(("horus", *command.path))
    text = (f".\\\" Made of what {command.name} --help says; see cmake/manual.py.\n"
            f'.TH {page.upper()} 1 "{date}" "horus {version}" "libhorus"\n'
            f".SH NAME\n{page} \\- {roff(command.about.rstrip('.'))}\n"
            f".SH SYNOPSIS\n.B {command.name}\n" + roff(command.usage[len(command.name):].strip()) + "\n")
    if command.foreign:
        text += ".SH DESCRIPTION\nA Python program that\n.B horus\nstarts.\n" + (
            verbatim(command.footer.splitlines()) if command.footer
            else roff("It is part of the Python package; once that is installed, --help lists its options.\n"))
    else:
        if command.positionals:
            text += ".SH ARGUMENTS\n" + "".join(map(listed, command.positionals))
        text += ".SH OPTIONS\n" + "".join(map(listed, command.options))
        if command.subcommands:
            text += ".SH COMMANDS\n"
        for name, about in command.subcommands.items():
            text += f".TP\n\\fB{name}\\fR\n{roff(plain_about(about))}. See \\fB{page}-{name}\\fR(1).\n"
        text += notes_of(command.footer)
    near = command.path, command.path[:-1]
    others = [other for other in commands if other is not command and (not other.path or other.path[:-1] in near)]
    return text + ".SH SEE ALSO\n" + ",\n".join(f"\\fB{'-'.join(('horus', *other.path))}\\fR(1)" for other in others) + "\n"


# Completions.


def key(command):
    return "".join(f"/{part}" for part in command.path)


def values(one, gpus):
    return gpus if one.kind == GPUS else one.choices


def brief(one):
    """Its description, for a line of a list; no second list of the values."""
    return one.meta.lower() if one.choices and one.text.startswith(one.choices[0]) else one.text


def bash(commands, gpus):
    def reply(one):
        words = " ".join(values(one, gpus))
        return {FILES: f"_horus_files '{words}'", FOLDERS: "_horus_folders"}.get(one.kind, f"_horus_words '{words}'")

    nodes = "|".join(key(command) for command in commands if command.path)
    cases, options = [], []
    for command in commands:
        groups = {}
        for one in command.options:
            if one.meta:
                groups.setdefault(reply(one), []).extend(f"'{key(command)} {name}'" for name in one.names)
        cases += [f"    {' | '.join(names)}) {call}; return ;;" for call, names in groups.items()]
        names = " ".join(name for one in command.options for name in one.names)
        rest = "_horus_words '" + " ".join(command.subcommands) + "'" if command.subcommands else (
            reply(command.positionals[0]) if command.positionals else "_horus_words ''")
        options.append(f"    '{key(command)}') options='{names}'; rest=\"{rest}\" ;;")
    return f"""# Completion of horus in bash; made of what horus --help says.
_horus_words() {{ mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur"); }}
_horus_files() {{
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur"; compgen -f -- "$cur")
}}
_horus_folders() {{
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -d -- "$cur")
}}
_horus() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}} at='' word options rest
  if [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then prev=${{COMP_WORDS[COMP_CWORD - 2]}}; fi
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$at/$word" in {nodes}) at+=/$word ;; esac
  done
  case "$at $prev" in
{chr(10).join(cases)}
  esac
  case "$at" in
{chr(10).join(options)}
  esac
  if [[ $cur == -* ]]; then _horus_words "$options"; else eval "$rest"; fi
}}
complete -F _horus horus
"""


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def zsh(commands, gpus):
    def action(one):
        words = " ".join(values(one, gpus))
        files = {FILES: "_files", FOLDERS: "_files -/"}.get(one.kind)
        if files and words:
            return f"{{_horus_or_files {words}}}"
        return files or f"({words})"

    def plain(text):
        return re.sub(r"([\[\]:])", r"\\\1", text)

    functions = []
    for command in commands:
        lines = []
        for one in command.options:
            value = f":{plain(one.meta)}:{action(one)}" if one.meta else ""
            for name in one.names:
                lines.append(quoted(f"{'*' if one.many else ''}{name}{'=' if one.meta and name.startswith('--') else ''}"
                                    f"[{plain(brief(one))}]{value}"))
        for one in command.positionals:
            lines.append(quoted(f"{'*' if one.many else '1'}:{plain(one.names[0])}:{action(one)}"))
        name = "_horus" + "".join(f"_{part}" for part in command.path)
        body = " \\\n    ".join(lines)
        if command.subcommands:
            known = "\n".join(f"    {quoted(f'{sub}:{about}')}" for sub, about in command.subcommands.items())
            cases = "\n".join(f"    {sub}) {name}_{sub} ;;" for sub in command.subcommands)
            functions.append(f"""{name}() {{
  local context state state_descr line
  typeset -A opt_args
  _arguments -C \\
    {body} \\
    '1:command:->command' '*::argument:->rest' && return
  local -a commands
  commands=(
{known}
  )
  case $state in
    command) _describe command commands ;;
    rest) case $line[1] in
{cases}
    esac ;;
  esac
}}
""")
        else:
            functions.append(f"{name}() {{\n  _arguments \\\n    {body or chr(39) + '*:argument:_files' + chr(39)}\n}}\n")
    either = "_horus_or_files() { _alternative \"values:value:($*)\" 'files:file:_files' }\n"
    return "#compdef horus\n# Completion of horus in zsh; made of what horus --help says.\n" + either + "\n".join(functions[::-1]) + '\n_horus "$@"\n'


def fish(commands, gpus):
    def single(text):
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    nodes = " ".join(key(command) for command in commands if command.path)
    lines = [f"""# Completion of horus in fish; made of what horus --help says.
function __horus_at
    set -l at ''
    for word in (commandline -opc)[2..-1]
        contains -- "$at/$word" {nodes}; and set at "$at/$word"
    end
    test "$at" = "$argv[1]"
end
complete -c horus -f"""]
    for command in commands:
        start = f"complete -c horus -n '__horus_at \"{key(command)}\"'"
        for name, about in command.subcommands.items():
            lines.append(f"{start} -a {name} -d {single(about)}")
        for one in command.positionals:
            words = " ".join(values(one, gpus))
            lines.append(start + (" -F" if one.kind in (FILES, FOLDERS) else "") + (f" -a {single(words)}" if words else ""))
        for one in command.options:
            line = start + "".join(f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}" for name in one.names)
            words = " ".join(values(one, gpus))
            if one.kind == FOLDERS:
                line += " -x -a '(__fish_complete_directories (commandline -ct))'"
            elif one.kind == FILES:
                line += " -r -F" + (f" -a {single(words)}" if words else "")
            elif one.meta:
                line += " -x" + (f" -a {single(words)}" if words else "")
            lines.append(f"{line} -d {single(brief(one))}")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("horus", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--date", default="")
    parser.add_argument("--gzip", action="store_true")
    options = parser.parse_args()
    horus, folder = options.horus.resolve(), options.folder
    commands, gpus = collect(horus), gpu_types(horus)
    version = subprocess.run([horus, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    for part in ("man1", "bash", "zsh", "fish"):
        shutil.rmtree(folder / part, ignore_errors=True)
        (folder / part).mkdir(parents=True)
    for command in commands:
        page = manual(command, commands, version, options.date).encode()
        name = "-".join(("horus", *command.path)) + ".1"
        if options.gzip:
            page, name = gzip.compress(page, 9, mtime=0), name + ".gz"
        (folder / "man1" / name).write_bytes(page)
    for name, text in (("bash/horus", bash), ("zsh/_horus", zsh), ("fish/horus.fish", fish)):
        (folder / name).write_text(text(commands, gpus), encoding="utf-8")


if __name__ == "__main__":
    main()
