# SPDX-License-Identifier: Apache-2.0
"""What happened when, as columns: reads the timeline of `horus simulate` and measures it. Needs numpy alone.

A *spell* is one job on one GPU from a start, or a move, until it leaves. Times are microseconds, as in the file.
"""

from __future__ import annotations

import csv
import importlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

NEEDED_COLUMNS = ("time_us", "event", "job", "node", "gpus")
MORE_COLUMNS = ("profile", "gpu_type")  # of later versions
_COMES = ("start", "migrate")
_LEAVES = ("finish", "fail", "preempt", "out-of-memory", "interrupt", "profiled")
_EVENTS = (*_COMES, *_LEAVES, "arrive", "reject", "node-down", "node-up")
_CODES = {event: code for code, event in enumerate(_EVENTS)}
ROWS_AT_ONCE = 1 << 12
BYTES_AT_ONCE = 1 << 22
NEVER = -1  # in arrive_us, start_us and finish_us: it did not happen
NOT_STATED = "not stated"
TEXT_SHOWN = 80  # characters of a wrong value


@dataclass
class Timeline:
    """One run. Columns of jobs have a row a job, those of spells a row a spell."""

    job_ids: list[str]
    arrive_us: Ints
    start_us: Ints  # the first start
    finish_us: Ints
    job_profile: Ints  # index in profiles
    job_gpu: Ints  # index in gpus of the first GPU of its last spell, NEVER without one
    spell_job: Ints
    spell_gpu: Ints
    spell_from_us: Ints
    spell_to_us: Ints
    gpus: list[tuple[str, int]]  # node, index
    gpu_type: list[str]  # of each GPU
    profiles: list[str]
    end_us: int
    counts: dict[str, int] = field(default_factory=dict)  # events by name

    def plot(self, **options: Any) -> Axes:
        """Who ran where, beside whom: `gpu_timeline` of it."""
        from .timeline import gpu_timeline  # which needs this module
        return gpu_timeline(self, **options)

    def __repr__(self) -> str:
        return f"Timeline({len(self.job_ids)} jobs, {len(self.gpus)} GPUs, {len(self.spell_job)} spells)"


class _Names:
    """Numbers for texts, from 0 in the order in which they come; -1 for the empty one."""

    def __init__(self) -> None:
        self.numbers = {"": -1}

    def of(self, texts: Sequence[str]) -> Ints:
        numbers = self.numbers
        for text in dict.fromkeys(texts):
            numbers.setdefault(text, len(numbers) - 1)
        return np.fromiter(map(numbers.__getitem__, texts), np.int64, len(texts))

    def all(self) -> list[str]:
        return list(self.numbers)[1:]


class _Rows:
    """The rows of a timeline in the order of the file, texts as numbers: what a million jobs need is a few arrays."""

    def __init__(self) -> None:
        self.jobs, self.nodes, self.gpus, self.profiles, self.types = (_Names() for _ in range(5))
        self.indices: list[list[int]] = []  # by number of the text of gpus
        self.parts: list[tuple[Ints, ...]] = []

    def add_numbered(self, time: Ints, *columns: tuple[list[str], Ints]) -> None:
        """All rows at once: of each column its texts in the order in which they come, and by row a number of one."""
        (events, event), *others = columns
        codes = np.fromiter(map(_code, events), np.int64, len(events))
        if (event < 0).any():
            _code("")
        indices = [[_index(one) for one in text.split()] for text in others[2][0]]
        for names, (texts, _) in zip((self.jobs, self.nodes, self.gpus, self.profiles, self.types), others):
            names.numbers.update({text: at for at, text in enumerate(texts)})
        self.indices = indices
        self.parts = [(time, codes[event], *(numbers for _, numbers in others))]

    def add(self, time: Sequence[Any], event: Sequence[str], job: Sequence[str], node: Sequence[str],
            gpus: Sequence[str], profile: Sequence[str], gpu_type: Sequence[str]) -> None:
        """ValueError: a value is not what it should be."""
        for one in dict.fromkeys(event):
            _code(one)
        times = np.fromiter(map(_whole, time), np.int64, len(time))
        codes = np.fromiter(map(_CODES.__getitem__, event), np.int64, len(event))
        places = self.gpus.of(gpus)
        for text in self.gpus.all()[len(self.indices):]:
            self.indices.append([_index(one) for one in text.split()])
        self.parts.append((times, codes, self.jobs.of(job), self.nodes.of(node), places, self.profiles.of(profile),
                           self.types.of(gpu_type)))

    def build(self, profile_of: Mapping[str, str], type_of: Mapping[str, str]) -> Timeline:
        columns = [np.concatenate([part[i] for part in self.parts]) if self.parts else np.zeros(0, np.int64)
                   for i in range(7)]
        time, event, job, node, places, profile, gpu_type = columns
        # A job on several nodes has a row for each: rows in turn that agree in these are one event.
        first = np.ones(len(time), bool)
        first[1:] = (time[1:] != time[:-1]) | (event[1:] != event[:-1]) | (job[1:] != job[:-1])
        of_job = job >= 0
        comes = of_job & (event < len(_COMES))
        moves = of_job & first & (event < len(_COMES) + len(_LEAVES))
        end = max(int(time.max()), 0) if time.size else 0
        until = _next_of_job(time, job, np.nonzero(moves)[0], end)
        begins = np.maximum.accumulate(np.where(first, np.arange(len(time)), 0)) if time.size else time
        row, index = self._spread(np.nonzero(comes)[0], places)
        gpu, first_spell = _number_by_first(node[row] * (int(index.max(initial=0)) + 1) + index)
        names, jobs = self.nodes.all(), self.jobs.all()
        leads = np.ones(len(row), bool)  # the first GPU of a start
        leads[1:] = begins[row][1:] != begins[row][:-1]
        job_profile, profiles = _stated(profile[_first_rows(job, len(jobs))], self.profiles.all(), jobs, profile_of)
        gpus = [(names[node[row[at]]] if node[row[at]] >= 0 else "", int(index[at])) for at in first_spell]
        types = self.types.all()
        return Timeline(
            jobs, _last(job, time, event == _CODES["arrive"], len(jobs)),
            _last(job[::-1], time[::-1], comes[::-1], len(jobs)),
            _last(job, time, event == _CODES["finish"], len(jobs)), job_profile,
            _last(job[row], gpu, leads, len(jobs)), job[row], gpu, time[row], until[begins[row]], gpus,
            [types[at] if at >= 0 else type_of.get(name, NOT_STATED)
             for at, (name, _) in zip(gpu_type[row[first_spell]].tolist(), gpus)],
            profiles, end,
            {_EVENTS[code]: int(n) for code, n in enumerate(np.bincount(event[first], minlength=len(_EVENTS))) if n})

    def _spread(self, rows: Ints, places: Ints) -> tuple[Ints, Ints]:
        """A row for each GPU, and its index on the node."""
        rows = rows[places[rows] >= 0]
        length = np.array([len(indices) for indices in self.indices], np.int64)
        begin = np.concatenate([[0], np.cumsum(length)])[:-1].astype(np.int64)
        flat = np.array([index for indices in self.indices for index in indices], np.int64)
        count = length[places[rows]] if rows.size else rows
        spread = np.repeat(rows, count)
        within = np.arange(len(spread)) - np.repeat(np.cumsum(count) - count, count)
        return spread, flat[begin[places[spread]] + within] if spread.size else spread


def _code(event: str) -> int:
    if event not in _CODES:
        raise ValueError(f"event: expected one of {', '.join(sorted(_CODES))}, found {event[:TEXT_SHOWN]!r}")
    return _CODES[event]


def _whole(value: Any) -> int:
    """A time. Texts other than digits, which int() would take, are refused."""
    if isinstance(value, str) and not value.removeprefix("-").isdecimal():
        raise ValueError(f"time_us: expected whole microseconds, found {value[:TEXT_SHOWN]!r}")
    return int(value)


def _index(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"gpus: expected indices of GPUs, apart by spaces, found {text[:TEXT_SHOWN]!r}")
    return int(text)


def _next_of_job(time: Ints, job: Ints, moves: Ints, end: int) -> Ints:
    """By row: when its job is next moved or leaves; `end` where it never is. Of rows in `moves`."""
    until = np.full(len(time), end, np.int64)
    order = moves[np.argsort(job[moves], kind="stable")]
    same = job[order][1:] == job[order][:-1]
    until[order[:-1]] = np.where(same, time[order][1:], end)
    return until


def _number_by_first(keys: Ints) -> tuple[Ints, Ints]:
    """Equal keys get one number, from 0 in the order in which they come; and where each came first."""
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return rank[inverse.reshape(-1)], np.sort(first)


def _first_rows(job: Ints, jobs: int) -> Ints:
    found = np.zeros(jobs, np.int64)
    rows = np.nonzero(job >= 0)[0][::-1]
    found[job[rows]] = rows
    return found


def _last(job: Ints, values: Ints, where: Flags, jobs: int) -> Ints:
    """By job the last of its values, NEVER without one."""
    found = np.full(jobs, NEVER, np.int64)
    where = where & (job >= 0)
    found[job[where]] = values[where]
    return found


def _stated(numbers: Ints, names: list[str], jobs: list[str], profile_of: Mapping[str, str]) -> tuple[Ints, list[str]]:
    """The profile of each job by the file, else by the table; numbered anew in the order of the jobs."""
    texts = [names[at] if at >= 0 else profile_of.get(job, NOT_STATED) for at, job in zip(numbers.tolist(), jobs)]
    found = _Names()
    return found.of(texts), found.all()


def read_timeline(path: str | os.PathLike[str], profile_of: Mapping[str, str] | None = None,
                  type_of: Mapping[str, str] | None = None) -> Timeline:
    """Reads a CSV file of `horus simulate --timeline`.

    profile_of: job id to job type, type_of: node to GPU type; the columns `profile` and `gpu_type` go before them.
    ValueError: a column is missing, a value is not what it should be, or the file is cut; says file, line, expected and
    found.
    """
    rows, name = _Rows(), os.fspath(path)
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        line = 0  # what is wrong is after it
        try:
            header = next(reader, [])
            missing = [column for column in NEEDED_COLUMNS if column not in header]
            if missing:
                raise ValueError(f"expected the columns {', '.join(NEEDED_COLUMNS)} of a timeline of horus simulate, "
                                 f"found {', '.join(header)[:200] or 'nothing'}")
            columns = [header.index(column) if column in header else None for column in (*NEEDED_COLUMNS, *MORE_COLUMNS)]
            line = reader.line_num
            if _read_with_pandas(rows, name, header, columns):
                line += sum(len(part[0]) for part in rows.parts)
            else:
                while block := list(islice(reader, ROWS_AT_ONCE)):
                    line = _add_block(rows, block, columns, len(header), line)
            _check_end(name, line)
        except UnicodeDecodeError as error:
            raise ValueError(f"{name}: expected UTF-8, found: {error}") from None
        except _AtLine as error:
            raise ValueError(f"{name}: line {error.line}: {error}") from None
        except (ValueError, csv.Error) as error:
            raise ValueError(f"{name}: line {line + 1}: {error}") from None
    return rows.build(profile_of or {}, type_of or {})


def _read_with_pandas(rows: _Rows, path: str, header: list[str], columns: list[int | None]) -> bool:
    """Several times as fast as row by row. False, and nothing is read: there is no pandas, or the file is not plain
    enough to be sure that it reads what the rows would say, or something is wrong in it, which reading by rows tells."""
    try:
        pandas = importlib.import_module("pandas")
    except ImportError:
        return False
    with open(path, "rb") as file:
        blocks = iter(lambda: file.read(BYTES_AT_ONCE), b"")
        commas, lines, quotes = (sum(counts) for counts in zip(*(
            (block.count(b","), block.count(b"\n"), block.count(b'"') + block.count(b"\r")) for block in blocks)))
    if quotes or commas != lines * (len(header) - 1):
        return False
    kinds = {name: "int64" if name == "time_us" else "str" if name == "job" else "category" for name in header}
    try:
        table = pandas.read_csv(path, dtype=kinds, na_filter=False, skip_blank_lines=False, encoding="utf-8")
        rows.add_numbered(table["time_us"].to_numpy(), *(
            ([], np.full(len(table), -1)) if at is None else _factors(pandas, table[header[at]]) for at in columns[1:]))
    except ValueError:
        return False
    return True


def _factors(pandas: Any, column: Any) -> tuple[list[str], Ints]:
    """Texts in the order in which they come, and their numbers; -1 for the empty one."""
    names = None
    if str(column.dtype) == "category":
        names, column = column.cat.categories, column.cat.codes
    numbers, found = pandas.factorize(column)
    texts = [str(text) for text in (found if names is None else names[found])]
    numbers = np.asarray(numbers, np.int64)
    if "" not in texts:
        return texts, numbers
    empty = texts.index("")
    del texts[empty]
    return texts, np.where(numbers == empty, -1, numbers - (numbers > empty))


class _AtLine(ValueError):
    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def _add_block(rows: _Rows, block: list[list[str]], columns: list[int | None], width: int, line: int) -> int:
    """Rows after `line`; returns the last one's."""
    try:
        _add(rows, block, columns, width)
    except ValueError:  # which one?
        for at, row in enumerate(block, line + 1):
            try:
                _add(_Rows(), [row], columns, width)
            except ValueError as error:
                raise _AtLine(str(error), at) from None
        raise
    return line + len(block)


def _add(rows: _Rows, block: list[list[str]], columns: list[int | None], width: int) -> None:
    wrong = next((row for row in block if len(row) != width), None)
    if wrong is not None:
        raise ValueError(f"expected {width} fields, found {len(wrong)}")
    fields = list(zip(*block))
    rows.add(*(("",) * len(block) if at is None else fields[at] for at in columns))


def _check_end(path: str, line: int) -> None:
    """The command ends each line; a file without the last end was cut within a row."""
    with open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            raise _AtLine("expected the end of a line, found that of the file: it is cut", line)


def _told(kind: str, time_us: int, job: int, slots: Iterable[Any]) -> list[tuple[int, str, str, str, str, str, str]]:
    """Rows of an event: one a node."""
    devices: dict[int, list[int]] = {}
    for slot in slots:
        devices.setdefault(int(slot.node), []).append(int(slot.device))
    name = "" if kind.startswith("node-") else str(job)
    return [(int(time_us), kind, name, str(node), " ".join(str(index) for index in indices if index >= 0), "", "")
            for node, indices in sorted(devices.items())] or [(int(time_us), kind, name, "", "", "", "")]


def from_events(events: Iterable[Any], profile_of: Mapping[str, str] | None = None,
                type_of: Mapping[str, str] | None = None) -> Timeline:
    """Events as mappings with the columns of the file, of which `gpus` is text, or the indices themselves; or as
    `horus.simulate` tells its observer: (kind, time_us, job, slots). A node is then called by its number."""
    made = []
    for event in events:
        if not isinstance(event, Mapping):
            made += _told(*event)
            continue
        gpus, job = event.get("gpus", ""), event.get("job", "")
        indices = gpus if isinstance(gpus, str) else " ".join(str(index) for index in gpus)
        made.append((int(event["time_us"]), str(event["event"]), "" if job is None else str(job),
                     str(event.get("node", "")), indices, str(event.get("profile", "")), str(event.get("gpu_type", ""))))
    rows = _Rows()
    if made:
        rows.add(*zip(*made))
    return rows.build(profile_of or {}, type_of or {})
