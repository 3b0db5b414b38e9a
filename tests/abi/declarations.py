# SPDX-License-Identifier: Apache-2.0
"""Reads the declarations of the public C headers: name, kind, fields, and what their comments say of releases.

A header says in its first comment since when its declarations exist ("Since 0.1 where nothing else is said."). A comment
before a declaration, or behind it on its last line, may say "Since X.Y." or "Deprecated since X.Y until Z.W: ..."; one
before several that no empty line parts speaks for all of them. The comment of a handle says which threads may use it.
"""

import dataclasses
import pathlib
import re

HEADER = re.compile(r"Since (\d+\.\d+) where nothing else is said\.")
SINCE = re.compile(r"\bSince (\d+\.\d+)\.")
THREADS = re.compile(r"\bImmutable\b|\bOne thread at a time\b|\binternally synchronised\b", re.I)
CPLUSPLUS = re.compile(r"#ifdef __cplusplus\n(?:#if.*?#endif|(?!#endif).)*#endif", re.S)
RESERVED = {"reserved", "reserved0", "reserved1"}  # those that src/capi/boundary.h expects to be 0
DEPRECATED = re.compile(r"\bDeprecated since (\d+\.\d+) until (\d+\.\d+): \S")


@dataclasses.dataclass
class Declaration:
    name: str  # "horus_plan_get", "HORUS_OK", "horus_job.weight"
    kind: str  # function, struct, handle, type, callback, constant, field
    header: str
    since: str | None
    deprecated: tuple | None  # (since, until)
    complaints: list
    value: str | None = None  # of a constant that programs compile in; initialisers and releases are not frozen
    type: str | None = None  # of a field: "const char*", "float[8]"


def words(comment):
    return re.sub(r"\s*\n\s*\*?\s*", " ", comment)


def statements(text):
    """Yields (code, comments that speak for it): statements to their ';', and #define lines."""
    position, before, pending = 0, "", None
    while position < len(text):
        comment = re.compile(r"/\*.*?\*/", re.S).match(text, position)
        if comment:
            trailing = pending is not None and "\n" not in text[pending[2] : position]
            if trailing:
                pending = (pending[0], pending[1] + [words(comment[0])], comment.end())
            else:
                before = words(comment[0])
            position = comment.end()
            continue
        empty = re.compile(r"\n[ \t]*(?=\n)").match(text, position)
        if empty:
            before = ""
        if text[position].isspace():
            position += 1
            continue
        if pending:
            yield pending[:2]
        end = end_of_statement(text, position)
        pending = (text[position:end], [before] if before else [], end)
        position = end
    if pending:
        yield pending[:2]


def end_of_statement(text, start):
    if text[start] == "#":
        return re.compile(r"(?:\\\n|/(?!\*)|[^\n/])*").match(text, start).end()
    depth, position = 0, start
    while position < len(text):
        if text.startswith("/*", position):
            position = text.index("*/", position) + 2
            continue
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        position += 1
        if text[position - 1] == ";" and depth == 0:
            break
    return position


def named(code):
    """(kind, name, body of a struct) of a statement, or None of what declares nothing."""
    patterns = [
        ("constant", r"#define (HORUS_\w+)(?!\w)"),
        ("function", r"HORUS_API\b[^(]*?\b(horus_\w+)\s*\("),
        ("callback", r"typedef\b[^(;{]*\(\*(horus_\w+)\)"),
        ("struct", r"typedef struct (horus_\w+) \{(.*)\}"),
        ("handle", r"typedef struct (horus_\w+) horus_\w+;"),
        ("type", r"typedef \w+ (horus_\w+);"),
    ]
    for kind, pattern in patterns:
        match = re.match(pattern, code, re.S)
        if match:
            return kind, match[1], match[2] if kind == "struct" else None
    return None


def declared(name, kind, header, comments, default):
    text = " ".join(comments)
    own = SINCE.findall(text)
    leaving = DEPRECATED.search(text)
    complaints = []
    if "Deprecated" in text and not leaving:
        complaints.append('expected "Deprecated since X.Y until Z.W: what to use instead"')
    if kind == "handle" and not THREADS.search(text):
        complaints.append('expected its thread class: "Immutable", "One thread at a time" or "internally synchronised"')
    if kind == "field" and re.search(r"\.reserved\d*$", name) and name.partition(".")[2] not in RESERVED:
        complaints.append(f"expected a name that is checked to be 0: {', '.join(sorted(RESERVED))}")
    return Declaration(name, kind, header, own[-1] if own else default, leaving and leaving.groups(), complaints)


def read_header(path):
    raw = path.read_text(encoding="utf-8")
    head = re.search(r"/\*.*?\*/\s*/\*(.*?)\*/", raw, re.S)
    default = head and HEADER.search(words(head[1]))
    default = default and default[1]
    text = CPLUSPLUS.sub("", raw)
    for code, comments in statements(text):
        found = named(code)
        if not found:
            if not code.startswith("#"):
                raise ValueError(f"{path}: not understood: {code[:60]!r}")
            continue
        kind, name, body = found
        if name.endswith("_H_") or name == "HORUS_API":
            continue
        whole = declared(name, kind, path.name, comments, default)
        if kind == "constant" and not name.endswith("_INIT") and path.name != "version.h":
            whole.value = words(code.partition(name)[2]).strip()
        yield whole
        for field, said in statements(body or ""):
            written = re.match(r"(.*?)\s*(\w+)(\[[^\]]*\])?;$", field, re.S)
            one = declared(f"{name}.{written[2]}", "field", path.name, said, whole.since)
            one.type = written[1] + (written[3] or "")
            yield one


def headers(folder, deep=False):
    """The headers of a folder, and with `deep` those of the folders in it."""
    return sorted(pathlib.Path(folder).glob("**/*.h" if deep else "*.h"))


def read_headers(folder, deep=False):
    return [one for path in headers(folder, deep) for one in read_header(path)]
