# SPDX-License-Identifier: Apache-2.0
"""Traces: made, as columns and back, edited, pickled."""

import pickle

import numpy as np
import pytest


def test_columns_make_the_same_trace_again(horus):
    trace = horus.Trace(profile=["b", "", "a"], owner=["x", "", "x"], gpu_types=["", "t4|v100-16gb", "t4"], id=[7, 8, 9],
                        kind=["best-effort", "training", "inference"], submit_us=[20, 10, 0], duration_us=[100, 0, 50],
                        steps=[0, 5, 0], tasks=[2, 1, 1], gpus_per_task=[1, -1, 2], cpu_milli=[1, 2, 3], deadline_us=[0, 11, 0],
                        endless=[False, False, True], step_us=[0, 0, 10], gpu_us=[0, 0, 4], priority=[-1, 0, 5])
    columns = trace.columns()
    assert columns["id"].tolist() == [9, 8, 7] and columns["profile"].tolist() == ["a", "", "b"]
    assert columns["gpu_types"].tolist() == ["t4", "t4|v100-16gb", ""] and columns["endless"].tolist() == [True, False, False]
    assert columns["kind"].tolist() == ["inference", "training", "best-effort"] and columns["gpus_per_task"].tolist() == [2, -1, 1]
    assert columns["gpu_us"].tolist() == [4, 0, 0] and columns["deadline_us"].tolist() == [0, 11, 0]
    again = horus.Trace(**columns)
    assert again == trace and pickle.loads(pickle.dumps(trace)) == trace
    pandas = pytest.importorskip("pandas")
    assert horus.Trace.from_frame(pandas.DataFrame(columns)) == trace == horus.Trace.from_frame(trace.to_frame())


def test_frames_may_count_seconds_as_files_do(horus):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"profile": ["a", "b"], "submit_s": [0, 1.5], "duration_s": [2, 0.000001]})
    columns = horus.Trace.from_frame(frame).columns()
    assert columns["submit_us"].tolist() == [0, 1_500_000] and columns["duration_us"].tolist() == [2_000_000, 1]
    with pytest.raises(horus.InvalidArgument, match="submit_us: expected it once, found submit_us beside it"):
        horus.Trace.from_frame(frame.assign(submit_us=0))
    with pytest.raises(horus.InvalidArgument, match=r"duration_s\[1\]: expected seconds, found nan"):
        horus.Trace.from_frame(frame.assign(duration_s=[1, np.nan]))


def test_microseconds_that_are_no_integers_are_named(horus):
    with pytest.raises(horus.InvalidArgument, match=r"found float64; round it: numpy.rint\(duration_us\).astype\('int64'\)"):
        horus.Trace(profile=["a"], duration_us=[1.5])
    with pytest.raises(horus.InvalidArgument, match=r"duration_us\[1\]: expected an integer, found nan"):
        horus.Trace(profile=["a", "b"], duration_us=[1.0, np.nan])


def test_edits_leave_the_original(horus):
    trace = horus.Trace(profile=["a", "b", "c"], duration_us=[1, 2, 3], submit_us=[0, 1, 2])
    assert trace.replace(submit_us=np.zeros(3, np.int64)).summary()["last_submit_us"] == 0
    assert trace.take(trace.columns()["duration_us"] > 1).profiles == ["b", "c"] and len(trace.take(slice(2))) == 2
    assert len(trace) == 3 and trace.summary()["last_submit_us"] == 2
    with pytest.raises(horus.InvalidArgument, match="submit_us: expected 3 rows, found 1"):
        trace.replace(submit_us=[0])


def test_synthetic_traces_are_those_of_the_command(horus):
    trace = horus.Trace.synthetic("philly", seed=7, jobs=50)
    assert len(trace) == 50 and trace == horus.Trace.synthetic(seed=7, jobs=50) != horus.Trace.synthetic(seed=8, jobs=50)
    made = horus.Trace.synthetic("horus2020", jobs=40, arrivals="backlog", size_gpus=[1, 4], size_weights=[3, 1],
                                 duration_us=[1, 1000], duration_shares_milli=[0, 1000], profile_names=["p", "q"], owners=2)
    columns = made.columns()
    assert set(columns["profile"]) == {"p", "q"} and set(columns["tasks"]) == {1, 4} and columns["submit_us"].max() == 0
    assert columns["duration_us"].max() <= 1000 and made.summary()["owners"] == 2


@pytest.mark.parametrize("options, words", [
    (dict(preset="nonsense"), ("nonsense", "philly")), (dict(arrivals="x"), ("arrivals", "bursty", "'x'")),
    (dict(size_gpus=[1, 2], size_weights=[1]), ("size_weights", "2 values", "1")), (dict(nonsense=1), ("nonsense", "seed")),
    (dict(duration_us=[1]), ("duration_shares_milli", "1 values", "0")), (dict(jobs=-5), ("jobs", "-5")),
])
def test_wrong_options_are_named(horus, options, words):
    with pytest.raises((horus.Error, TypeError)) as caught:
        horus.Trace.synthetic(**options)
    for word in words:
        assert word in str(caught.value)
