# SPDX-License-Identifier: Apache-2.0
"""Reading a timeline, and what it adds up to, by hand-computed cases."""

import csv
import sys

import numpy as np
import pytest

from horus.plot import events, measure

HEAD = "time_us,event,job,node,gpus\n"
# Job 1 has GPU 0 of a from 0 to 40; job 2 shares it from 10 to 30 and then has b's two GPUs until 50.
SHARED = HEAD + """0,arrive,1,,
0,start,1,a,0
5,arrive,2,,
10,start,2,a,0
30,migrate,2,b,0 1
40,finish,1,a,0
50,finish,2,b,0 1
"""


@pytest.fixture
def write(tmp_path):
    def _write(text):
        path = tmp_path / "events.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return _write


def test_spells_end_where_a_job_moves_or_leaves(write):
    timeline = events.read_timeline(write(SHARED))
    spells = sorted(zip(timeline.spell_job, timeline.spell_gpu, timeline.spell_from_us, timeline.spell_to_us))
    assert spells == [(0, 0, 0, 40), (1, 0, 10, 30), (1, 1, 30, 50), (1, 2, 30, 50)]
    assert timeline.gpus == [("a", 0), ("b", 0), ("b", 1)]
    assert timeline.arrive_us.tolist() == [0, 5] and timeline.start_us.tolist() == [0, 10]
    assert timeline.finish_us.tolist() == [40, 50]


def test_time_beside_others_is_counted_for_each_spell(write):
    timeline = events.read_timeline(write(SHARED))
    levels = measure.tenant_levels(timeline)
    shared = dict(zip(zip(timeline.spell_job, timeline.spell_gpu), levels.spell_shared_us))
    assert shared == {(0, 0): 20, (1, 0): 20, (1, 1): 0, (1, 2): 0}
    assert (levels.tenants * (levels.to_us - levels.from_us)).sum() == 40 + 20 + 20 + 20  # GPU time is kept


def test_usage_is_the_mean_of_each_bin(write):
    usage = measure.usage_over_time(events.read_timeline(write(SHARED)), bins=5)
    assert usage.gpus == 3
    assert usage.by_tenants[0] == pytest.approx([1, 0, 0, 3, 2])
    assert usage.by_tenants[1] == pytest.approx([0, 1, 1, 0, 0])
    assert usage.waiting == pytest.approx([0.5, 0, 0, 0, 0])
    assert usage.idle == pytest.approx([2, 2, 2, 0, 1])


def test_idle_gpus_beside_used_ones_are_scattered(write):
    usage = measure.usage_over_time(events.read_timeline(write(SHARED)), bins=5, gpus_of_node={"a": 4, "b": 2})
    assert usage.gpus == 6
    assert usage.idle_on_used_nodes == pytest.approx([3, 3, 3, 3, 0])
    assert usage.fragmented_pct == pytest.approx([60, 60, 60, 100, 0])


def test_a_gang_on_several_nodes_is_one_start(write):
    timeline = events.read_timeline(write(HEAD + "0,arrive,7,,\n1,start,7,a,0 1\n1,start,7,b,0\n9,finish,7,a,0 1\n9,finish,7,b,0\n"))
    assert timeline.spell_gpu.tolist() == [0, 1, 2]
    assert timeline.counts == {"arrive": 1, "start": 1, "finish": 1}


def test_who_still_runs_runs_until_the_end(write):
    timeline = events.read_timeline(write(HEAD + "0,arrive,1,,\n0,start,1,a,0\n9,arrive,2,,\n"))
    assert timeline.spell_to_us.tolist() == [9]
    assert timeline.finish_us.tolist() == [events.NEVER, events.NEVER]


@pytest.mark.parametrize("leaves", ["preempt", "interrupt", "out-of-memory", "profiled", "fail"])
def test_who_is_put_back_holds_nothing(write, leaves):
    timeline = events.read_timeline(write(HEAD + f"0,arrive,1,,\n0,start,1,a,0\n4,{leaves},1,a,0\n9,reject,1,,\n"))
    assert timeline.spell_to_us.tolist() == [4]


def test_job_types_come_from_the_column_else_from_the_table(write):
    text = "time_us,event,job,node,gpus,profile,gpu_type\n0,arrive,1,,,lm,\n0,arrive,2,,,,\n1,start,1,a,0,,v100\n2,start,2,b,0,,\n"
    timeline = events.read_timeline(write(text), {"1": "no", "2": "vision"}, {"a": "no", "b": "k80"})
    assert timeline.profiles == ["lm", "vision"]
    assert timeline.gpu_type == ["v100", "k80"]


@pytest.mark.parametrize(("text", "says"), [
    ("", "line 1: expected the columns time_us, event, job, node, gpus of a timeline"),
    ("a,b\n", "found a, b"),
    (HEAD + "0,begin,1,,\n", "line 2: event: expected one of"),
    (HEAD + "0,arrive,1\n", "line 2: expected 5 fields, found 3"),
    (HEAD + "soon,arrive,1,,\n", "line 2: time_us: expected whole microseconds, found 'soon'"),
    (HEAD + "0,arrive,1,,\n" * 5000 + "9,start,1,a,x\n", "line 5002: gpus: expected indices of GPUs"),
    (HEAD + "0,arrive,1,,\n0,start,1,a,0", "line 3: expected the end of a line, found that of the file: it is cut"),
    (HEAD + "0,arrive,1,,\n0,sta", "line 3: expected 5 fields, found 2"),
    (HEAD + "0,,1,,\n", "line 2: event: expected one of"),
    (HEAD.encode() + b"0,arrive,\xff,,\n", "expected UTF-8, found: 'utf-8' codec can't decode byte 0xff"),
])
@pytest.mark.parametrize("reader", ["pandas", "rows"])
def test_wrong_files_say_where_and_what(write, monkeypatch, text, says, reader):
    if reader == "rows":
        monkeypatch.setitem(sys.modules, "pandas", None)
    path = write(text)
    with pytest.raises(ValueError, match=says) as caught:
        events.read_timeline(path)
    assert str(caught.value).startswith(path)


def random_rows(rng, jobs=300):
    """A file of every kind of event, with gangs on two nodes, and names that repeat."""
    rows = []
    for job in range(jobs):
        time, profile = int(rng.integers(0, 500)), ["lm", "vision", ""][rng.integers(3)]
        rows.append((time, f"arrive,{job + 7},,,,{profile}"))
        for event in rng.choice(["start", "migrate", "preempt", "fail", "finish", "out-of-memory", "interrupt"], rng.integers(0, 6)):
            time += int(rng.integers(0, 40))
            nodes = rng.choice(["a", "b", "c"], rng.integers(1, 3), replace=False)
            rows.append((time, "\n".join(f"{event},{job + 7},{node},{' '.join(map(str, range(rng.integers(1, 4))))},{'v100' if node == 'a' else ''},{profile}"
                                         for node in nodes)))
    rows.append((600, "node-down,,a,,,"))
    rows.sort(key=lambda row: row[0])
    lines = [f"{time},{one}" for time, several in rows for one in several.split("\n")]
    return "time_us,event,job,node,gpus,gpu_type,profile\n" + "\n".join(lines) + "\n"


def plain(timeline):
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(timeline).items()}


@pytest.mark.parametrize("seed", range(5))
def test_with_and_without_pandas_and_from_objects_the_same_is_read(write, monkeypatch, seed):
    pytest.importorskip("pandas")
    text = random_rows(np.random.default_rng(seed))
    fast = events.read_timeline(write(text), {"7": "table"}, {"b": "k80"})
    monkeypatch.setitem(sys.modules, "pandas", None)
    slow = events.read_timeline(write(text), {"7": "table"}, {"b": "k80"})
    told = events.from_events(csv.DictReader(text.splitlines()), {"7": "table"}, {"b": "k80"})
    assert plain(fast) == plain(slow) == plain(told)
    assert plain(fast) == by_hand(text, {"7": "table"}, {"b": "k80"})


def by_hand(text, profile_of, type_of):
    """The same by plain steps, an event after the other."""
    jobs, gpus, types, profiles, counts, open_, spells = {}, {}, [], {}, {}, {}, []
    last = None
    for row in csv.DictReader(text.splitlines()):
        now, event, name = int(row["time_us"]), row["event"], row["job"]
        again, last = last == (now, event, name), (now, event, name)
        counts[event] = counts.get(event, 0) + (not again)
        if not name:
            continue
        stated = row["profile"] or profile_of.get(name, "not stated")
        job = jobs.setdefault(name, {"profile": profiles.setdefault(stated, len(profiles)) if name not in jobs else 0,
                                     "arrive": -1, "start": -1, "finish": -1, "gpu": -1})
        comes = event in ("start", "migrate")
        if event not in ("arrive", "reject") and not again:
            for spell in open_.pop(name, ()):
                spell[3] = now
        if comes:
            job["start"] = now if job["start"] < 0 else job["start"]
            for index in row["gpus"].split():
                if (row["node"], int(index)) not in gpus:
                    gpus[row["node"], int(index)] = len(gpus)
                    types.append(row["gpu_type"] or type_of.get(row["node"], "not stated"))
                gpu = gpus[row["node"], int(index)]
                job["gpu"] = job["gpu"] if again or open_.get(name) else gpu
                spells.append([list(jobs).index(name), gpu, now, None])
                open_.setdefault(name, []).append(spells[-1])
        elif event in ("arrive", "finish"):
            job[event] = now
    end = int(text.split("\n")[-2].split(",")[0])
    columns = [[spell[i] if spell[i] is not None else end for spell in spells] for i in range(4)]
    return {"job_ids": list(jobs), **{f"{key}_us": [job[key] for job in jobs.values()] for key in ("arrive", "start", "finish")},
            "job_profile": [job["profile"] for job in jobs.values()], "job_gpu": [job["gpu"] for job in jobs.values()],
            "spell_job": columns[0], "spell_gpu": columns[1], "spell_from_us": columns[2], "spell_to_us": columns[3],
            "gpus": list(gpus), "gpu_type": types, "profiles": list(profiles), "end_us": end, "counts": counts}


def test_names_with_commas_are_read_whole(write):
    text = "time_us,event,job,node,gpus,gpu_type,profile\n0,arrive,1,,,,\"lm, small\"\n1,start,1,\"a,b\",0,v100,\"lm, small\"\n"
    timeline = events.read_timeline(write(text))
    assert timeline.profiles == ["lm, small"] and timeline.gpus == [("a,b", 0)]


def test_levels_agree_with_a_count_by_hand_on_random_spells():
    rng = np.random.default_rng(1)
    rows, end = [], 400
    for job in range(60):
        since = int(rng.integers(0, 300))
        until = since + int(rng.integers(1, 99))
        rows += [(since, "start", job), (until, "finish", job)]
    rows.sort(key=lambda row: row[0])
    rows.append((end, "arrive", 99))
    timeline = events.from_events({"time_us": t, "event": e, "job": j, "node": "n", "gpus": [j % 3]} for t, e, j in rows)
    levels = measure.tenant_levels(timeline)
    for gpu in range(3):
        count = np.zeros(end)
        for job, on, since, until in zip(timeline.spell_job, timeline.spell_gpu, timeline.spell_from_us, timeline.spell_to_us):
            if on == gpu:
                count[since:until] += 1
        seen = np.zeros(end)
        for on, tenants, since, until in zip(levels.gpu, levels.tenants, levels.from_us, levels.to_us):
            if on == gpu:
                seen[since:until] += tenants
        assert (seen == count).all()
