# SPDX-License-Identifier: Apache-2.0
"""Interference models: by name, from tables, from callables; asked for one device and for columns."""

import pickle

import numpy as np
import pytest

DEVICE = "v100-pcie-16gb"


def rows_of(horus, count, seed=0):
    draw = np.random.default_rng(seed)
    flat = horus.demand_rows(2 * count, gpu_util_pct=draw.uniform(5, 95, 2 * count).astype(np.float32),
                             mem_bw_util_pct=draw.uniform(1, 60, 2 * count).astype(np.float32),
                             mem_mib=draw.integers(500, 8_000, 2 * count), step_time_us=np.full(2 * count, 100_000),
                             profile_id=np.arange(1, 2 * count + 1, dtype=np.uint64))
    return flat.reshape(count, 2)


def test_sharing_costs(horus, make):
    model = horus.InterferenceModel()
    found = model.slowdown(DEVICE, [make.demand(90), make.demand(90)])
    assert found.estimate.shape == (2,) and (found.estimate > 1).all() and (found.upper >= found.estimate).all()
    assert model.slowdown(DEVICE, [make.demand(90)]).estimate.tolist() == [1.0]


@pytest.mark.parametrize("name", ["horus", "boosted", "iasp", "iapp", "utilisation"])
def test_columns_answer_as_single_devices_do(horus, name):
    model = horus.InterferenceModel(name)
    rows = rows_of(horus, 20)
    found = model.slowdown(horus.SharedDevice(DEVICE), rows)
    assert found.estimate.shape == found.upper.shape == (20, 2) and found.estimate.dtype == np.float32
    from horus.predict import demands_of

    for i in range(20):
        one = model.slowdown(DEVICE, demands_of(rows[i]))
        assert (one.estimate == found.estimate[i]).all() and (one.upper == found.upper[i]).all()
    assert (model.slowdown(DEVICE, rows[3]).estimate == found.estimate[3]).all()


def test_matrix_is_pairs(horus, make):
    model = horus.InterferenceModel()
    jobs = [make.demand(u) for u in (20, 50, 90)]
    matrix = model.matrix(DEVICE, jobs)
    assert matrix.shape == (3, 3)
    assert matrix[0, 2] == model.slowdown(DEVICE, [jobs[0], jobs[2]]).estimate[0]


def test_what_no_gpu_does_is_refused(horus, make):
    model, two = horus.InterferenceModel(), [make.demand(50), make.demand(50)]
    with pytest.raises(horus.InvalidArgument, match=f"sharing_mode: expected one that {DEVICE} has, found mig"):
        model.matrix(horus.SharedDevice(DEVICE, sharing_mode="mig"), two)
    exclusive = horus.SharedDevice(DEVICE, sharing_mode="exclusive")
    for ask in (lambda: model.slowdown(exclusive, two), lambda: model.quantile(0.5, exclusive, two),
                lambda: model.matrix(exclusive, two)):
        with pytest.raises(horus.InvalidArgument, match="expected one on an exclusive device, found 2"):
            ask()
    assert model.slowdown(exclusive, two[:1]).estimate.tolist() == [1.0]
    part = horus.SharedDevice("a100-40gb", sharing_mode="mig", compute_share=3 / 7)
    assert (model.matrix(part, two) > 1).all()


@pytest.mark.parametrize("tenants, words", [
    (np.zeros((3, 2)), ("tenants", "demand_dtype", "float64")), ("x", ("tenants", "Demand")), (3, ("tenants",)),
    ([1], ("tenants[0]", "Demand", "1")),
])
def test_wrong_tenants_are_named(horus, tenants, words):
    with pytest.raises((horus.InvalidArgument, TypeError)) as caught:
        horus.InterferenceModel().slowdown(DEVICE, tenants)
    for word in words:
        assert word in str(caught.value)


def test_rows_without_their_size_or_in_steps_are_refused(horus):
    model = horus.InterferenceModel()
    with pytest.raises(horus.InvalidArgument, match="struct_size"):
        model.slowdown(DEVICE, np.zeros((2, 2), horus.demand_dtype))
    with pytest.raises(horus.InvalidArgument, match="contiguous"):
        model.slowdown(DEVICE, rows_of(horus, 8)[::2])
    with pytest.raises(horus.InvalidArgument, match="2 dimensions"):
        model.slowdown(DEVICE, rows_of(horus, 8).reshape(2, 4, 2))


def test_a_table_answers_what_was_measured(horus, make):
    a, b = make.demand(30, profile_id=1), make.demand(60, profile_id=2)
    model = horus.InterferenceModel.from_table([DEVICE], [1], [2], [1.25], [2.5])
    assert model.slowdown(DEVICE, [a, b]).estimate.tolist() == [1.25, 2.5]
    with pytest.raises(horus.InvalidArgument, match="slowdown_b: expected 1 rows, found 2"):
        horus.InterferenceModel.from_table([DEVICE], [1], [2], [1.25], [2.5, 3])
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(model)


def double(device, tenants):
    return np.full(len(tenants), 1.0 + 0.5 * (len(tenants) - 1))


def test_a_callable_is_a_model(horus, make):
    model = horus.InterferenceModel.from_callable(double)
    assert model.slowdown(DEVICE, [make.demand()] * 3).estimate.tolist() == [2, 2, 2]
    seen = []

    def both(device, tenants):
        seen.append((device.gpu_type, tenants.dtype, tenants["gpu_util_pct"].tolist()))
        return np.full(len(tenants), 1.5), np.full(len(tenants), 3.0)

    found = horus.InterferenceModel.from_callable(both).slowdown(DEVICE, [make.demand(30), make.demand(60)])
    assert found.estimate.tolist() == [1.5, 1.5] and found.upper.tolist() == [3, 3]
    assert seen[0] == (DEVICE, horus.demand_dtype, [30.0, 60.0])
    again = pickle.loads(pickle.dumps(model))
    assert again.slowdown(DEVICE, [make.demand()] * 2).estimate.tolist() == [1.5, 1.5]


@pytest.mark.parametrize("answer, kind", [
    (lambda d, t: 1 / 0, ZeroDivisionError), (lambda d, t: None, TypeError), (lambda d, t: [1.0], ValueError),
    (lambda d, t: [0.5] * len(t), None), (lambda d, t: [float("nan")] * len(t), None), (lambda: 1, TypeError),
    (lambda d, t: "text", TypeError), (lambda d, t: ([1.0] * len(t), [0.5] * len(t)), None),
])
def test_wrong_answers_of_a_callable_end_the_call(horus, make, answer, kind):
    model = horus.InterferenceModel.from_callable(answer)
    with pytest.raises(kind or horus.CallbackError):
        model.slowdown(DEVICE, [make.demand(), make.demand()])


def test_observing_moves_the_answers(horus, make):
    model = horus.InterferenceModel()
    a, b = make.demand(50, profile_id=11), make.demand(60, profile_id=12)
    before = model.slowdown(DEVICE, [a, b]).estimate[0]
    seen = horus.Observations()
    for _ in range(30):
        seen.add_slowdown(DEVICE, a, [b], 3.0, predicted=float(before), predicted_upper=4.0, device_id=5)
    learned = model.observe(seen)
    after = learned.slowdown(DEVICE, [a, b]).estimate[0]
    assert abs(after - 3.0) < abs(before - 3.0) and learned.epoch != model.epoch
    assert (DEVICE, "time-slice", 11) in learned.changes() and model.changes() == []
    assert seen.calibration()["predictions"] == 30 and seen.devices()["device_id"].tolist() == [5]
    with pytest.raises(TypeError, match="co_tenants"):
        seen.add_slowdown(DEVICE, a, [3], 3.0)


def test_a_resident_is_observed_where_it_is(horus, make):
    cluster = make.cluster(gpu=DEVICE)
    jobs = [make.job(i, demands={DEVICE: make.demand(50, profile_id=10 + i)}) for i in (1, 2)]
    for job in jobs:
        cluster.adopt(job, [horus.Slot(1, 0)])
    cluster = horus.Cluster.restore(cluster.snapshot())  # nobody remembers the jobs
    by_place, stated = horus.Observations(), horus.Observations()
    by_place.add_resident(cluster, 2, slowdown=1.5, predicted=1.4, predicted_upper=2, device_id=9, mem_mib=4_100)
    stated.add_slowdown(DEVICE, jobs[1].demands[DEVICE], [jobs[0].demands[DEVICE]], 1.5, predicted=1.4, predicted_upper=2,
                        device_id=9)
    stated.add_demand(12, DEVICE, mem_mib=4_100)
    assert by_place.to_bytes() == stated.to_bytes()
    by_place.add_resident(cluster, 2, horus.Slot(1, 0), step_time_us=10)
    with pytest.raises(horus.NotFound, match="device 1 of node 1"):
        by_place.add_resident(cluster, 2, horus.Slot(1, 1), slowdown=2)
    with pytest.raises(horus.InvalidArgument, match="at least one measured"):
        by_place.add_resident(cluster, 2)
    model = horus.InterferenceModel().observe(by_place)
    with pytest.raises(horus.Unsupported, match=r"Observations\.to_bytes"):
        model.to_bytes()


def test_models_by_name_pickle_and_unknown_names_are_told(horus):
    model = horus.InterferenceModel("iasp")
    assert pickle.loads(pickle.dumps(model)).epoch == model.epoch
    with pytest.raises(horus.NotFound, match="utilisation"):
        horus.InterferenceModel("nonsense")
    assert "iasp" in repr(model) and "<table>" in model._repr_html_()


def test_measured_pairs_are_told_apart_from_predicted_ones(horus):
    one, two, three = (horus.Demand(gpu_util_pct=50, mem_mib=100, step_time_us=1000, profile_id=i) for i in (1, 2, 3))
    model = horus.InterferenceModel.from_table([DEVICE], [1], [2], [1.5], [float("nan")])
    told = model.measured(DEVICE, [one, two, three])
    assert told.dtype == np.bool_ and told.tolist() == [[True, True, False], [False, True, False], [False, False, True]]


def test_requests_wait_longer_where_a_job_is_slowed(horus):
    alone, shared = (horus.request_latency(50, 10_000, slowdown) for slowdown in (1, 1.5))
    assert alone.utilisation == pytest.approx(0.5) and shared.p99_us > alone.p99_us > alone.mean_us > 10_000
    assert horus.request_latency(200, 10_000).p99_us == float("inf")
    bound = horus.largest_slowdown(50, 10_000, shared.p99_us)
    assert bound == pytest.approx(1.5, rel=1e-6) and horus.largest_slowdown(50, 10_000, 5_000) == 0
    with pytest.raises(horus.InvalidArgument, match="service_us"):
        horus.request_latency(50, 0)
    with pytest.raises(TypeError, match="requests_per_s: expected float"):
        horus.request_latency("x", 1)
