# SPDX-License-Identifier: Apache-2.0
"""Reading a timeline, and what it adds up to, by hand-computed cases."""

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
        path.write_text(text)
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
    (HEAD + "soon,arrive,1,,\n", "line 2: invalid literal"),
])
def test_wrong_files_say_where_and_what(write, text, says):
    path = write(text)
    with pytest.raises(ValueError, match=says) as caught:
        events.read_timeline(path)
    assert str(caught.value).startswith(path)


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
