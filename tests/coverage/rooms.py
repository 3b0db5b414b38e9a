# SPDX-License-Identifier: Apache-2.0
"""Coverage by room from an lcov tracefile: a table, and what was missed as FILE:LINE.

Usage: rooms.py TRACEFILE SOURCE_ROOT MISSED_FILE
Rooms are the folders of src, with their subfolders; the headers of the C++ face are the room "face". Exit status 1 when
an aim is missed. A branch is one way out of one condition; those in code that no test enters count as missed. Comparisons
that are defaulted have none: clang 19 never counts their false ways, whatever they answer.
"""

import collections
import pathlib
import sys

AIMS = {"capi": (100.0, 95.0), "place": (100.0, 95.0)}  # per cent of lines and of branches
AIM_OF_ALL = (90.0, 0.0)


class Count:
    """Lines and branches of a room: those reached, and all."""

    def __init__(self):
        self.lines = [0, 0]
        self.branches = [0, 0]

    def add(self, other):
        for mine, theirs in ((self.lines, other.lines), (self.branches, other.branches)):
            mine[0] += theirs[0]
            mine[1] += theirs[1]


def per_cent(pair):
    return 100.0 if pair[1] == 0 else 100.0 * pair[0] / pair[1]


def records(lines):
    """{file: ({line: count}, {(line, condition, way): count})}, all records of a file added."""
    files = {}
    reached, ways = {}, {}
    for row in lines:
        key, _, value = row.strip().partition(":")
        if key == "SF":
            reached, ways = files.setdefault(value, ({}, {}))
        elif key == "DA":
            line, count = value.split(",")[:2]
            reached[int(line)] = reached.get(int(line), 0) + int(count)
        elif key == "BRDA":
            line, condition, way, count = value.split(",")
            at = (int(line), int(condition), int(way))
            ways[at] = ways.get(at, 0) + (0 if count == "-" else int(count))
    return files


def room_of(path):
    """The room of a path relative to the source root, None for what is none of ours."""
    parts = path.parts
    if parts[0] == "include":
        return "face" if path.suffix == ".hpp" else None
    return parts[1] if parts[0] == "src" and len(parts) > 2 else None


def text_of(path):
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def collect(lines, root, text_of=text_of):
    rooms, missed = collections.defaultdict(Count), []
    for source, (reached, ways) in records(lines).items():
        path = pathlib.Path(source)
        if not path.is_relative_to(root):
            continue
        path = path.relative_to(root)
        room = room_of(path)
        if room is None:
            continue
        defaulted = {at for at, line in enumerate(text_of(root / path), 1) if line.rstrip().endswith("= default;")}
        ways = {at: n for at, n in ways.items() if at[0] not in defaulted}
        count = Count()
        count.lines = [sum(n > 0 for n in reached.values()), len(reached)]
        count.branches = [sum(n > 0 for n in ways.values()), len(ways)]
        rooms[room].add(count)
        missed += [(str(path), line, "line") for line, n in sorted(reached.items()) if n == 0]
        missed += [(str(path), at[0], f"branch {at[1]}.{at[2]}") for at, n in sorted(ways.items())
                   if n == 0 and reached.get(at[0], 1) > 0]
    return rooms, missed


def table(rooms):
    yield "| room | lines | reached | branches | reached |"
    yield "|---|---|---|---|---|"
    for name in sorted(rooms, key=lambda name: (name == "all", name)):
        count = rooms[name]
        yield (f"| {name} | {count.lines[1]} | {per_cent(count.lines):.1f} % | {count.branches[1]} | "
               f"{per_cent(count.branches):.1f} % |")


def aims_missed(rooms):
    for name, aims in {**AIMS, "all": AIM_OF_ALL}.items():
        for what, pair, aim in zip(("lines", "branches"), (rooms[name].lines, rooms[name].branches), aims):
            if per_cent(pair) < aim:
                yield f"{name}: {pair[0]} of {pair[1]} {what} ({per_cent(pair):.2f} %), aim {aim:g} %"


def main():
    tracefile, root, missed_file = (pathlib.Path(name) for name in sys.argv[1:4])
    with tracefile.open(encoding="utf-8") as lines:
        rooms, missed = collect(lines, root)
    total = Count()
    for count in rooms.values():
        total.add(count)
    rooms["all"] = total
    print("\n".join(table(rooms)))
    missed_file.write_text("".join(f"{path}:{line}: {what}\n" for path, line, what in sorted(missed)), encoding="utf-8")
    short = list(aims_missed(rooms))
    for line in short:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
