# SPDX-License-Identifier: Apache-2.0
"""Clusters, jobs and traces from files: what the command reads, and its errors."""

import pickle

import pytest

from conftest import GRAPHS, ROOT

CLUSTER = """
version: 1
nodes:
  - {name: n, count: 2, cpu_cores: 16, memory_gib: 64, rack: r1, labels: {zone: east},
     gpus: [{type: t4, count: 2, sharing: mps, max_tenants: 2}]}
  - {name: old, state: drained, cpu_cores: 8, memory_gib: 32, gpus: [{type: v100-16gb, sharing: exclusive}]}
residents:
  - {name: r, id: 900, demand: {any: {gpu_util_pct: [20, 30], gpu_memory_gib: 2}}, on: [{node: n-001, gpu: 1}]}
"""
OWN_GPU = "version: 1\ngpu_types:\n  - {name: a900-24gb, based_on: v100-pcie-16gb, mem_mib: 24576}\n"


def test_a_cluster_is_that_of_the_file(horus):
    cluster = horus.Cluster.from_yaml(CLUSTER)
    info = cluster.info()
    assert (info["nodes"], info["devices"], info["jobs"]) == (3, 5, 1)
    assert cluster.node(3)["state"] == "drained" and cluster.device(1, 0)["sharing_mode"] == "mps"
    assert cluster.slots(900) == (horus.Slot(2, 1, 0),) and cluster.job(900)["adopted"]
    devices = [horus.Device("t4", sharing_mode="mps", max_tenants=2, physical_gpu=card) for card in range(2)]
    built = horus.Cluster([horus.Node(id=i + 1, name=f"n-00{i}", cpu_milli=16_000, mem_mib=65_536, rack=1,
                                      labels={"zone": "east"}, devices=devices) for i in range(2)])
    built.add_node(horus.Node(id=3, name="old", cpu_milli=8_000, mem_mib=32_768,
                              devices=[horus.Device("v100-16gb", sharing_mode="exclusive", physical_gpu=0)]))
    built.set_node_state(3, "drained")
    demand = horus.Demand(gpu_util_pct=20, gpu_util_pct_upper=30, mem_mib=2048, mem_mib_upper=2048, flags=horus.DemandFlag.GIVEN)
    built.adopt(horus.Job(id=900, name="r", demands={"any": demand}), [horus.Slot(2, 1, 0)])
    assert built.info()["state_hash"] == info["state_hash"]


def test_text_and_path_say_the_same(horus, tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text(CLUSTER)
    assert horus.Cluster.from_yaml(path) == horus.Cluster.from_yaml(str(path)) == horus.Cluster.from_yaml(CLUSTER)


def test_the_files_of_the_examples(horus):
    cluster = horus.Cluster.from_yaml(ROOT / "examples/cluster.yaml")
    jobs = horus.read_jobs(ROOT / "examples/jobs.yaml", cluster)
    first = jobs[0]
    assert first.name == "resnet50" and first.cpu_milli == 8_000 and set(first.demands) >= {"a100-40gb", "t4"}
    run = horus.RunSpec(batch=64, optimizer="momentum", precision="amp")
    graph = horus.Graph.from_onnx(GRAPHS / "resnet50.onnx")
    assert first.demands["t4"] == horus.Predictor().predict(graph, "t4", run)
    assert len(horus.Placer().place(cluster, jobs)) == len(jobs)


def test_another_predictor_answers_for_models(horus, tmp_path):
    seen = horus.Observations()
    graph = horus.Graph.from_onnx(GRAPHS / "resnet18.onnx")
    told = horus.Predictor().predict(graph, "t4", horus.RunSpec(batch=8))
    seen.add_demand(told.profile_id, "t4", mem_mib=4321)
    jobs = f"version: 1\njobs:\n  - {{model: {GRAPHS / 'resnet18.onnx'}, batch: 8, gpu_types: [t4]}}\n"
    cluster = horus.Cluster.from_yaml(CLUSTER)
    (before,), (after,) = (horus.read_jobs(jobs, cluster, p) for p in (None, horus.Predictor().observe(seen)))
    assert before.demands["t4"] == told and after.demands["t4"].measured and after.demands["t4"].mem_mib == 4321


def test_types_of_gpu_files_belong_to_the_cluster(horus, tmp_path):
    (tmp_path / "gpus.yaml").write_text(OWN_GPU)
    path = tmp_path / "cluster.yaml"
    path.write_text("version: 1\ngpu_types_files: [gpus.yaml]\nnodes:\n"
                    "  - {name: n, cpu_cores: 4, memory_gib: 16, gpus: [{type: a900-24gb, count: 2}]}\n")
    cluster = horus.Cluster.from_yaml(path)
    assert "a900-24gb" in cluster.catalogue.names and "a900-24gb" not in horus.gpus().names
    assert cluster.device(1, 1)["gpu_type"] == "a900-24gb"
    again = pickle.loads(pickle.dumps(cluster))
    assert again == cluster and again.catalogue.names == cluster.catalogue.names
    (job,) = horus.read_jobs("version: 1\njobs:\n  - {demand: {a900-24gb: {gpu_util_pct: 5, gpu_memory_gib: 1}}}\n", cluster)
    plan = horus.Placer(catalogue=cluster.catalogue).place(cluster, job)
    assert plan[0].verdict == "place" and plan[0].slots[0].node == 1


@pytest.mark.parametrize("text, words", [
    ("version: 1\nnodes: [{name: n, cpu_cores: 1, memory_gib: 1, gpus: [{type: t5}]}]", ("<text>:2", "gpus[0].type", "t5", "t4")),
    ("version: 1\nnodes: [{name: n, cpu_cores: x, memory_gib: 1}]", ("<text>:2", "cpu_cores", "expected", "found 'x'")),
    ("version: 1\nnodse: []\n", ("<text>:2", "nodse")), ("version: 2\nnodes: []\n", ("<text>:1", "version", "expected version 1", "'2'")),
    ("version: 1\nnodes: [\n", ("<text>",)),
    (CLUSTER.replace("node: n-001", "node: n-007"), ("residents[0].on[0].node", "n-007", "n-00")),
])
def test_an_error_names_line_key_expected_and_found(horus, text, words):
    with pytest.raises(horus.InvalidArgument) as caught:
        horus.Cluster.from_yaml(text)
    for word in words:
        assert word in str(caught.value)


def test_wrong_sources_and_jobs(horus, tmp_path):
    cluster = horus.Cluster.from_yaml(CLUSTER)
    with pytest.raises(horus.FileError, match="nowhere"):
        horus.Cluster.from_yaml("/nowhere/cluster.yaml")
    with pytest.raises(TypeError, match="source: expected a path"):
        horus.Cluster.from_yaml(3)
    with pytest.raises(TypeError, match="cluster: expected Cluster"):
        horus.read_jobs("version: 1\njobs: []\n", None)
    with pytest.raises(horus.InvalidArgument, match=r"<text>:3.*jobs\[0\].id.*900"):  # the resident's
        horus.read_jobs("version: 1\njobs:\n  - {id: 900, demand: {any: {gpu_util_pct: 5, gpu_memory_gib: 1}}}\n", cluster)
    with pytest.raises(horus.Error, match="no_such.onnx"):
        horus.read_jobs("version: 1\njobs:\n  - {model: no_such.onnx}\n", cluster)


def test_a_published_trace_is_read(horus, tmp_path):
    path = tmp_path / "plain.csv"
    path.write_text("submit_s,duration_s,gpus_per_task,profile\n0,60,1,a\n5,30,2,b\n")
    trace = horus.Trace.from_file(path)
    assert trace.columns()["submit_us"].tolist() == [0, 5_000_000] and trace.profiles == ["a", "b"]
    assert trace.summary()["digest"] == horus.Trace.from_file(path, "plain").summary()["digest"]
    with pytest.raises(horus.NotFound, match="plain.*nonsense"):
        horus.Trace.from_file(path, "nonsense")
    path.write_text("submit_s,duration_s,gpus_per_task,profile\n0,x,1,a\n")
    with pytest.raises(horus.InvalidArgument, match=r"plain.csv.*duration_s.*'x'"):
        horus.Trace.from_file(path)
    with pytest.raises(horus.FileError):
        horus.Trace.from_file(tmp_path / "none.csv")
