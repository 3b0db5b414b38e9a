# SPDX-License-Identifier: Apache-2.0
"""Metrics: what the library did, counted and told."""

import logging

import pytest


@pytest.fixture
def cluster(horus):
    return horus.Cluster([horus.Node(id=1, cpu_milli=64_000, mem_mib=262_144, devices=[horus.Device("t4")])])


def value(metrics, name, labels=""):
    found = [metric.value for metric in metrics.rows() if (metric.name, metric.labels) == (name, labels)]
    return found[0] if found else None


def test_calls_are_counted_and_timed_where_metrics_is_set(horus, cluster):
    metrics, other = horus.Metrics(), horus.Cluster()
    placer, job = horus.Placer(), horus.Job(id=1, demands={"": horus.Demand(gpu_util_pct=20, mem_mib=1_000)})
    cluster.set_metrics(metrics)
    placer.set_metrics(metrics)
    cluster.apply(placer.place(cluster, job))
    with pytest.raises(horus.NotFound):
        other.release(1)
    assert value(metrics, "horus_calls_total", 'call="plan",status="OK"') == 1
    assert value(metrics, "horus_calls_total", 'call="apply",status="OK"') == 1
    assert value(metrics, "horus_calls_total", 'call="release",status="NOT_FOUND"') is None
    assert value(metrics, "horus_decisions_total", 'verdict="place"') == 1
    assert value(metrics, "horus_call_duration_seconds_count", 'call="plan"') == 1
    assert value(metrics, "horus_bytes_held", 'handle="cluster"') == cluster.bytes_held
    assert {metric.kind for metric in metrics.rows()} == {"counter", "gauge", "histogram"}
    assert 'horus_calls_total{call="apply",status="OK"} 1\n' in metrics.text()
    placer.set_metrics(None)
    placer.place(cluster, horus.Job(id=2, demands=job.demands))
    assert value(metrics, "horus_calls_total", 'call="plan",status="OK"') == 1


def test_a_logger_hears_lines_at_their_level(horus, cluster, caplog):
    cluster.set_metrics(horus.Metrics(logging.getLogger("horus.test"), times=False))
    with caplog.at_level(logging.DEBUG), pytest.raises(horus.NotFound):
        cluster.release(7)
    assert [(record.levelname, record.message.startswith("release: NOT_FOUND: ")) for record in caplog.records] == [
        ("WARNING", True)]


def test_a_callable_hears_what_its_level_asks_for_and_may_not_use_the_cluster_that_is_written(horus, cluster):
    heard = []

    def log(level, line):
        try:
            cluster.info()
        except horus.Busy:
            heard.append((level, line))

    cluster.set_metrics(horus.Metrics(log, level="debug"))
    cluster.set_node_state(1, "drained")
    assert heard[-1] == ("debug", "set_node_state: OK")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_a_log_raises_does_not_reach_the_call(horus, cluster):
    def log(level, line):
        raise RuntimeError("of the log")

    cluster.set_metrics(horus.Metrics(log, level="debug"))
    assert cluster.set_node_state(1, "drained") == []
    assert cluster.node(1)["state"] == "drained"


def test_a_predictor_tells_its_cache(horus, resnet):
    metrics, predictor, run = horus.Metrics(), horus.Predictor(), horus.RunSpec(batch=4)
    predictor.set_metrics(metrics)
    predictor.predict(resnet, ["t4"], run)
    predictor.predict(resnet, ["t4"], run)
    assert value(metrics, "horus_cache_misses_total", 'cache="demands"') == 1
    assert value(metrics, "horus_cache_hits_total", 'cache="demands"') == 1
    assert value(metrics, "horus_calls_total", 'call="demand",status="OK"') == 2


def test_a_frame_has_a_row_a_metric(horus):
    pytest.importorskip("pandas")
    frame = horus.Metrics().to_frame()
    assert list(frame.columns) == ["name", "labels", "kind", "value"] and len(frame) == 4


@pytest.mark.parametrize(("arguments", "words"), [
    ({"level": "loud"}, ("level", "warning", "'loud'")), ({"log": 3}, ("log", "Logger", "3"))])
def test_what_is_wrong_is_named(horus, arguments, words):
    with pytest.raises((horus.InvalidArgument, TypeError)) as caught:
        horus.Metrics(**arguments)
    for word in words:
        assert word in str(caught.value)


def test_only_metrics_is_taken(horus, cluster):
    with pytest.raises(TypeError, match="metrics"):
        cluster.set_metrics("loudly")
