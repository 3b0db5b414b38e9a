# SPDX-License-Identifier: Apache-2.0
"""Situations whose answer an administrator knows, one a line of a table. Usage: see command.py.

PAIRS: two jobs on one cluster. Either two such jobs may share a GPU or not; place and potential have to agree with the table.
WAYS: pods of a Kubernetes cluster, and the nodes that could give them what they ask for.
"""

import json
import random
import re
import unittest

from command import ROOT, Files, main, run
from kube_objects import HAMI, GPU, PRODUCT, claim, container, engine, gpu_device, node, pod, product, profile, resource_slice

LIGHT = "demand: {any: {gpu_util_pct: 20, mem_bw_util_pct: 5, gpu_memory_gib: 2, step_time_ms: 20}}"


def demand(**more):
    figures = {"gpu_util_pct": 20, "mem_bw_util_pct": 5, "gpu_memory_gib": 2, "step_time_ms": 20, **more}
    return "demand: {any: {" + ", ".join(f"{key}: {value}" for key, value in figures.items()) + "}}"


ONE = "{name: n, cpu_cores: 16, memory_gib: 64, gpus: [{type: v100-sxm2-16gb}]}"
TWO = "{name: x, cpu_cores: 16, memory_gib: 64, labels: {zone: x}, gpus: [{type: v100-sxm2-16gb}]}, " \
      "{name: y, cpu_cores: 16, memory_gib: 64, labels: {zone: y}, gpus: [{type: t4}]}"
# What is known; whether the two may share; nodes; one job; the other; options of both commands.
PAIRS = (
    ("one owner", True, ONE, f"tenant: red, {LIGHT}", f"tenant: red, {LIGHT}"),
    ("nobody states an owner", True, ONE, LIGHT, LIGHT),
    ("other owners", False, ONE, f"tenant: red, {LIGHT}", f"tenant: blue, {LIGHT}"),
    ("an owner and nobody's", False, ONE, f"tenant: red, {LIGHT}", LIGHT),
    ("other owners who both share with anyone", True, ONE, f"tenant: red, share: anyone, {LIGHT}", f"tenant: blue, share: anyone, {LIGHT}"),
    ("other owners of whom one shares with anyone", False, ONE, f"tenant: red, share: anyone, {LIGHT}", f"tenant: blue, {LIGHT}"),
    ("one owner who shares with anyone in one job", True, ONE, f"tenant: red, share: anyone, {LIGHT}", f"tenant: red, {LIGHT}"),
    ("an exclusive job", False, ONE, f"exclusive: true, {LIGHT}", LIGHT),
    ("a whole GPU requested", False, ONE, f"gpu_milli: 1000, {LIGHT}", LIGHT),
    ("requests that exceed a GPU", False, ONE, f"gpu_milli: 700, {LIGHT}", f"gpu_milli: 400, {LIGHT}"),
    ("requests that fill a GPU", True, ONE, f"gpu_milli: 600, {LIGHT}", f"gpu_milli: 400, {LIGHT}"),
    ("memory that fills the card and leaves no headroom", False, ONE, demand(gpu_memory_gib=8), demand(gpu_memory_gib=8)),
    ("the same without headroom", True, ONE, demand(gpu_memory_gib=8), demand(gpu_memory_gib=8), "--mem-headroom-mib", 0),
    ("upper bounds of memory beyond the card", False, ONE, demand(gpu_memory_gib="[4, 9]"), demand(gpu_memory_gib="[4, 9]")),
    ("limits of memory beyond the card", False, ONE, f"gpu_memory_request_gib: 5, gpu_memory_limit_gib: 12, {LIGHT}",
     f"gpu_memory_request_gib: 5, gpu_memory_limit_gib: 12, {LIGHT}"),
    ("the same lent twice", True, ONE, f"gpu_memory_request_gib: 5, gpu_memory_limit_gib: 12, {LIGHT}",
     f"gpu_memory_request_gib: 5, gpu_memory_limit_gib: 12, {LIGHT}", "--mem-overcommit", 2),
    ("a GPU in exclusive mode", False, ONE.replace("gb}", "gb, sharing: exclusive}"), LIGHT, LIGHT),
    ("a GPU for one tenant", False, ONE.replace("gb}", "gb, max_tenants: 1}"), LIGHT, LIGHT),
    ("one tenant a GPU by option", False, ONE, LIGHT, LIGHT, "--max-tenants", 1),
    ("a job that avoids the other's group", False, ONE, f"groups: [web], {LIGHT}", f"avoid_groups: [web], {LIGHT}"),
    ("a bound that sharing breaks", False, ONE, f"slowdown_bound: 1, {demand(gpu_util_pct=60)}", demand(gpu_util_pct=60)),
    ("a latency that sharing breaks", False, ONE, f"kind: inference, latency_bound_ms: 20.1, {LIGHT}", demand(gpu_util_pct=60)),
    ("nodes of other labels", False, TWO, f"node_selector: {{zone: x}}, {LIGHT}", f"node_selector: {{zone: y}}, {LIGHT}"),
    ("one label", True, TWO, f"node_selector: {{zone: x}}, {LIGHT}", f"node_selector: {{zone: x}}, {LIGHT}"),
    ("other GPU types", False, TWO, f"gpu_types: [t4], {LIGHT}", f"gpu_types: [v100-sxm2-16gb], {LIGHT}"),
    ("cores of the node exceeded by two", False, ONE, f"cpu_cores: 9, {LIGHT}", f"cpu_cores: 9, {LIGHT}"),
    ("host memory of the node exceeded by two", False, ONE, f"memory_gib: 40, {LIGHT}", f"memory_gib: 40, {LIGHT}"),
)

# Crowds on four V100, decided one after another: what is known; the jobs; who of them shares a GPU with whom, None = waits.
HEAVY = "demand: {any: {gpu_util_pct: 95, mem_bw_util_pct: 50, gpu_memory_gib: 4, step_time_ms: 200}}"
NOTEBOOK = "demand: {any: {gpu_util_pct: 2, gpu_memory_gib: 1}}"
CROWDS = (
    ("ten notebooks, then two trainers", [NOTEBOOK] * 10 + [HEAVY] * 2, [range(10), [10], [11]], None),
    ("six trainers", [HEAVY] * 6, None, []),
    ("best-effort work beside a trainer of its owner", [f"gpus: 4, {HEAVY}", f"kind: best-effort, {HEAVY}"], [[0]], [1]),
    ("work of low priority beside production", [f"gpus: 4, priority: 10, {HEAVY}", f"priority: -5, {HEAVY}"], [[0]], [1]),
    ("a service that states nothing beside trainers", [f"gpus: 4, {HEAVY}", f"kind: inference, {HEAVY}"], [[0]], [1]),
    ("the same that may be slowed", [f"gpu_types: [v100-sxm2-16gb], {HEAVY}"] * 4 + [f"kind: inference, slowdown_bound: 9, {HEAVY}"], None, []),
    ("one GPU for a gang of four", [f"gpus: 4, {HEAVY}", HEAVY], [[0]], [1]),
)

# Requests of which nobody knows what runs; and the words of the verdict.
UNKNOWN = "Nothing can be said of sharing"
VERDICTS = (
    ("parts of HAMi", UNKNOWN, "gpu_milli: 300, share: anyone, demand: {any: {gpu_util_pct: 30, gpu_memory_gib: 3}}"),
    ("memory of HAMi", UNKNOWN, "share: anyone, demand: {any: {gpu_util_pct: 100, gpu_memory_gib: 3}}"),
    ("replicas", UNKNOWN, "gpu_milli: 250, share: anyone, demand: {v100-sxm2-16gb: {gpu_util_pct: 25, gpu_memory_gib: 3.8}}"),
    ("a third", UNKNOWN, "gpu_milli: 333, demand: {any: {gpu_util_pct: 33.3, gpu_memory_gib: 3.8}}"),
    ("whole GPUs", UNKNOWN, "gpu_milli: 1000, demand: {any: {gpu_util_pct: 100, gpu_memory_gib: 15}}"),
    ("measured use and memory", "Sharing pays", "demand: {any: {gpu_util_pct: 23, gpu_memory_gib: 3}}"),
    ("measured under a request", "Sharing pays", "gpu_milli: 300, demand: {any: {gpu_util_pct: 12, gpu_memory_gib: 3}}"),
    ("measured and bounded", "Nothing shares", "slowdown_bound: 1.01, demand: {any: {gpu_util_pct: 100, mem_bw_util_pct: 60, gpu_memory_gib: 3}}"),
    ("measured and exclusive", "Nothing shares", f"exclusive: true, {LIGHT}"),
    ("a graph", "Sharing", f"model: {ROOT}/examples/models/graphs/resnet50.onnx, batch: 8"),
)


def solver():
    code, _, err = run("potential", "--cluster", ROOT / "examples/cluster.yaml", "--jobs", ROOT / "examples/jobs.yaml")
    return code == 0 or "libhorus_lp" not in err


class Situations(Files):
    def files(self, nodes, *jobs):
        cluster = self.write("cluster.yaml", f"version: 1\nnodes: [{nodes}]\n")
        text = "".join(f"  - {{name: j{i}, {job}}}\n" for i, job in enumerate(jobs))
        return "--cluster", cluster, "--jobs", self.write("jobs.yaml", f"version: 1\njobs:\n{text}")

    def ask(self, *args):
        code, out, err = run(*args)
        self.assertEqual((code in (0, 3), err), (True, ""), args)
        return json.loads(out)

    def test_pairs_are_placed_as_the_table_says(self):
        for name, share, nodes, one, other, *options in PAIRS:
            with self.subTest(name):
                found = self.ask("place", *self.files(nodes, one, other), "--slowdown-bound", "none", "--json", *options)
                places = [[(slot["node"], slot["gpu"]) for slot in job["slots"]] for job in found["decisions"]]
                self.assertEqual(bool(places[0]) and places[0] == places[1], share, places)

    def test_crowds_are_placed_as_the_table_says(self):
        for name, jobs, together, waiting in CROWDS:
            with self.subTest(name):
                found = self.ask("place", *self.files(ONE.replace("gb}", "gb, count: 4}"), *jobs), "--json")["decisions"]
                order = {one["job"]: {(slot["node"], slot["gpu"]) for slot in one["slots"]} for one in found}
                if together is not None:
                    groups = [{frozenset(order[f"j{i}"]) for i in group} for group in together]
                    self.assertTrue(all(len(places) == 1 for places in groups), order)
                    self.assertEqual(len(set().union(*groups)), len(groups), order)
                if waiting is not None:
                    self.assertEqual([f"j{i}" for i in waiting], sorted(job for job, places in order.items() if not places))

    def test_a_service_that_few_ask_costs_its_neighbour_little(self):
        service = "kind: inference, slowdown_bound: 9, demand: {any: {gpu_util_pct: 46, gpu_memory_gib: 2, step_time_ms: 6}}"
        slowdown = {}
        for rate in (0, 0.1, 1000):
            found = self.ask("place", *self.files(ONE, f"request_rate_hz: {rate}, {service}", HEAVY), "--slowdown-bound", "none", "--json")
            slowdown[rate] = {one["job"]: one["slowdown"] for one in found["tenants"]}
        self.assertLess(slowdown[0.1]["j1"], 1.01)
        self.assertGreater(slowdown[0]["j1"], 1.03)
        self.assertEqual(slowdown[0], slowdown[1000])
        self.assertEqual(slowdown[0.1]["j0"], slowdown[0]["j0"])  # while it serves a request the other is there

    @unittest.skipUnless(solver(), "built without libhorus_lp.so")
    def test_potential_counts_the_pairs_that_place_makes(self):
        for name, share, nodes, one, other, *options in PAIRS:
            with self.subTest(name):
                found = self.ask("potential", *self.files(nodes, one, other), "--bound", "none", "--json", *options)
                run_together = sum(case["pairs_run"] for case in found["cases"] if case["gpu"])
                # "n" and "y" run the jobs that have no labels or types, too; each pair counts once a kind of GPU.
                self.assertEqual(run_together > 0, share, found["cases"])
                pays = any(row["pays"] for case in found["cases"] for row in case["bounds"])
                self.assertEqual(pays, share, found["cases"])

    @unittest.skipUnless(solver(), "built without libhorus_lp.so")
    def test_requests_alone_say_nothing_of_what_sharing_gives(self):
        for name, words, job in VERDICTS:
            with self.subTest(name):
                found = self.ask("potential", *self.files(ONE, job, job), "--bound", "none", "--json")
                self.assertTrue(found["cases"][0]["verdict"].startswith(words), found["cases"][0]["verdict"])
                known = words != UNKNOWN
                self.assertEqual(found["jobs_of_requests_alone"], 0 if known else 2)
                self.assertEqual(any("--profiles" in note for note in found["notes"]), not known)
                if not known:
                    self.assertFalse(found["cases"][0]["bounds"][0]["pays"])

    @unittest.skipUnless(solver(), "built without libhorus_lp.so")
    def test_what_is_known_counts_beside_what_is_not(self):
        unknown = "share: anyone, demand: {any: {gpu_util_pct: 100, gpu_memory_gib: 3}}"
        found = self.ask("potential", *self.files(ONE, LIGHT, LIGHT, unknown), "--bound", "none", "--json")
        self.assertIn("Sharing pays", found["cases"][0]["verdict"])
        self.assertEqual(found["cases"][0]["pairs_run"], 1)
        busy = demand(gpu_util_pct=90)
        files = self.files(ONE, busy, busy, unknown)
        self.assertIn("Of jobs that are known, sharing does not pay",
                      self.ask("potential", *files, "--bound", 1.05, "--json")["cases"][0]["verdict"])
        self.assertIn("  unknown", run("potential", *files, "--bound", 1.05)[1])

    @unittest.skipUnless(solver(), "built without libhorus_lp.so")
    def test_a_job_does_not_share_with_itself(self):
        for jobs, runs in ((1, 0), (2, 1), (3, 1)):
            found = self.ask("potential", *self.files(ONE, *[LIGHT] * jobs), "--bound", "none", "--json")
            self.assertEqual((found["profiles"], found["cases"][0]["pairs_run"]), (["j0"], runs))

    @unittest.skipUnless(solver(), "built without libhorus_lp.so")
    def test_gpus_of_other_labels_are_other_gpus(self):
        nodes = TWO.replace("t4", "v100-sxm2-16gb")
        job = "node_selector: {zone: x}, " + LIGHT
        found = self.ask("potential", *self.files(nodes, job, job, LIGHT), "--bound", "none", "--json")
        self.assertEqual([case["gpu"] for case in found["cases"]], ["v100-sxm2-16gb other nodes", "v100-sxm2-16gb zone=x", None])
        self.assertEqual([case["pairs_run"] for case in found["cases"]], [0, 2, 2])
        many = ", ".join(f"{{name: n{i}, cpu_cores: 16, memory_gib: 64, labels: {{host: n{i}}}, gpus: [{{type: t4}}]}}" for i in range(70))
        pinned = [f"node_selector: {{host: n{i}}}, {LIGHT}" for i in range(70)]
        found = self.ask("potential", *self.files(many, *pinned), "--bound", "none", "--json")
        self.assertTrue(any("Labels of nodes do not count" in note for note in found["notes"]), found["notes"])


def kinds():
    """A node of each way to get GPUs."""
    shared = {**gpu_device(0), "allowMultipleAllocations": True}
    mig = {**gpu_device(1, type="mig", profile="1g.10gb", parentUUID="A"), "name": "mig-1"}
    sliced = {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing"}
    return [product("plain", 8), product("sliced", 8, labels=sliced), product("wide", 20, labels={**sliced, "nvidia.com/gpu.replicas": "10"}),
            node("mps", {PRODUCT: "NVIDIA-L4", "nvidia.com/gpu.replicas": "2"}, resources={"nvidia.com/gpu.shared": "4"}),
            node("mig", {PRODUCT: "NVIDIA-A100-SXM4-80GB", "nvidia.com/mig.strategy": "mixed"}, resources={"nvidia.com/mig-1g.10gb": "2"}),
            node("hami", gpus=20, annotations={"hami.io/node-nvidia-register": HAMI}),
            node("volcano", annotations={"volcano.sh/node-vgpu-register": "GPU-v0,10,32768,NVIDIA-Tesla V100-SXM2-32GB,true,hami-core:"},
                 resources={"volcano.sh/vgpu-number": "10"}),
            node("dra"), resource_slice("dra", "dra", [gpu_device(i) for i in range(4)]),
            node("lent"), resource_slice("lent", "lent", [shared]), node("cut"), resource_slice("cut", "cut", [mig])]


def claims(name):
    return {"resourceClaims": [{"name": "g", "resourceClaimName": name}]}


WHOLE = {"plain", "sliced", "wide", "hami"}
VOLCANO = [{"name": "main", "resources": {"limits": {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "3072"}}}]
VGPU = {"hami.io/vgpu-devices-allocated": "GPU-h2,NVIDIA,3000,30:;"}
# What is known; pods and claims, the pod "p" among them; the nodes where that pod can get what it asks for.
WAYS = (
    ("a part of HAMi waits", {"hami"}, [pod("p", containers=[container(gpu=1, gpumem=3000)])]),
    ("cores of HAMi wait", {"hami"}, [pod("p", containers=[container(gpu=1, gpucores=30)])]),
    ("a part of HAMi runs", {"hami"}, [pod("p", "hami", containers=[container(gpu=1, gpumem=3000)], annotations=VGPU)]),
    ("a card by HAMi's scheduler", {"hami"}, [pod("p", gpus=1, schedulerName="hami-scheduler")]),
    ("a card that HAMi gave", {"hami"}, [pod("p", "hami", 1, annotations=VGPU)]),
    ("a part of Volcano waits", {"volcano"}, [pod("p", containers=VOLCANO)]),
    ("a part of Volcano runs", {"volcano"}, [pod("p", "volcano", containers=VOLCANO, annotations={"volcano.sh/vgpu-ids-new": "GPU-v0,NVIDIA,3072,0:;"})]),
    ("a fraction of KAI", {"plain"}, [pod("p", annotations={"gpu-fraction": "0.5"})]),
    ("a GPU waits", WHOLE, [pod("p", gpus=1)]),
    ("a GPU runs", {"plain", "hami"}, [pod("p", "plain", 1)]),
    ("a time slice runs", {"sliced", "wide"}, [pod("p", "sliced", 1)]),
    ("a renamed replica", {"mps"}, [pod("p", containers=[container(gpu__shared=1)])]),
    ("an instance of MIG", {"mig"}, [pod("p", containers=[container(mig_1g__10gb=1)])]),
    ("a claim waits", {"dra", "lent"}, [claim("c"), pod("p", **claims("c"))]),
    ("a claim runs", {"dra", "lent"}, [claim("c", "gpu-1", "dra"), pod("p", "dra", **claims("c"))]),
    ("a part by a claim", {"lent"}, [claim("c", "gpu-0", "lent", memory="10Gi"), pod("p", "lent", **claims("c"))]),
    ("an instance by a claim", {"cut"}, [claim("c", "mig-1", "cut"), pod("p", "cut", **claims("c"))]),
    ("a class stands for the resource", {"plain", "hami", "dra"},
     [claim("c", "gpu-1", "dra"), pod("p", "dra", 1, status={"extendedResourceClaimStatus": {"resourceClaimName": "c"}})]),
    ("and so for others that wait", WHOLE | {"dra"},
     [claim("c", "gpu-1", "dra"), pod("e", "dra", 1, status={"extendedResourceClaimStatus": {"resourceClaimName": "c"}}), pod("p", gpus=1)]),
)


class Imported(Files):
    def load(self, objects, code=0, args=()):
        found, out, err = run("import", self.write("in.json", json.dumps({"items": objects})), "--out", self.folder / "out", "--json", *args)
        self.assertEqual((found, err), (code, ""), out)
        return json.loads(out)

    def entries(self, file, key):
        """name -> the texts of a mapping, of each line of a file."""
        found = {}
        for line in (self.folder / "out" / file).read_text().splitlines():
            if name := re.search(r'name: "([^"]*)"', line):
                texts = re.search(key + r": \{([^}]*)\}", line)
                found[name[1]] = dict(re.findall(r'"([^"]*)": "([^"]*)"', texts[1] if texts else ""))
        return found

    def open_to(self, job):
        selector = self.entries("jobs.yaml", "node_selector")[job]
        return {name for name, labels in self.entries("cluster.yaml", "labels").items() if selector.items() <= labels.items()}


class Ways(Imported):
    def test_jobs_keep_to_nodes_that_can_give_what_they_ask_for(self):
        for name, nodes, objects in WAYS:
            with self.subTest(name):
                self.load([*kinds(), *objects])
                self.assertEqual(self.open_to("default/p"), nodes)

    def test_where_all_nodes_are_alike_nothing_is_written(self):
        self.load([product("a", 8), product("b", 8), pod("p", "a", 1), pod("q", gpus=1)])
        self.assertNotIn("libhorus.org", (self.folder / "out/now.yaml").read_text())

    def test_a_whole_gpu_goes_to_whom_somebody_described(self):
        shared = product("shared", 4, product="Tesla-T4-SHARED", labels={
            "nvidia.com/gpu.count": "1", "nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing"})
        told = pod("told", gpus=1, minute=1, annotations={"libhorus.org/profile": "net"})
        self.load([product("big", 1), shared, profile("net"), pod("anon", gpus=1), told])
        jobs = {line.split('"')[1]: line for line in (self.folder / "out/waiting.yaml").read_text().splitlines() if "name:" in line}
        self.assertEqual({name: "gpu_milli: 1000" in line or "exclusive" in line for name, line in jobs.items()},
                         {"default/anon": False, "default/told": True})

    def test_of_whom_nobody_says_what_it_runs_that_keeps_the_type_it_runs_on(self):
        t4 = [product(f"t4-{i}", 8, product="Tesla-T4") for i in range(2)]
        both = {"scheduling.x-k8s.io/pod-group": "g"}
        self.load([product("a100", 2), product("h100", 8, product="NVIDIA-H100-80GB-HBM3"), *t4, pod("a", "a100", 1, minute=1), pod("b", "a100", 1, minute=2),
                   pod("h", "h100", 1, minute=3), pod("waits", gpus=1, minute=4), pod("g0", "h100", 1, labels=both, minute=5), pod("g1", "t4-0", 1, labels=both, minute=5)])
        demands = {line.split('"')[1]: re.findall(r"(\S+): {gpu_util_pct", line) for line in (self.folder / "out/jobs.yaml").read_text().splitlines() if "name:" in line}
        every = ["t4", "a100-80gb", "h100-sxm"]
        self.assertEqual({name: [one.strip("{") for one in types] for name, types in demands.items()},
                         {"default/a": ["a100-80gb"], "default/b": ["a100-80gb"], "default/h": ["h100-sxm"], "default/waits": every, "default/g": every})
        out = self.folder / "out"
        _, text, err = run("shadow", "--cluster", out / "cluster.yaml", "--jobs", out / "jobs.yaml", "--log", out / "decisions.csv", "--out", out / "beside.json")
        self.assertEqual(err, "")
        ours = {one["job"]: one["ours"] for one in map(json.loads, (out / "beside.json").read_text().splitlines())}
        self.assertEqual({name: where.split(":")[0] for name, where in ours.items() if name != "default/g"},
                         {"default/a": "a100", "default/b": "a100", "default/h": "h100"})

    def test_an_engine_that_runs_holds_what_it_was_told_whatever_comes(self):
        load = "service: {requests_per_s: 0.2, tokens_in: 800, tokens_out: 200, token_ms: 80}"
        one = engine("--model", "Qwen/Qwen2.5-7B-Instruct", "--gpu-memory-utilization", "0.9")
        there = {"nodeSelector": {"kubernetes.io/hostname": "n0"}}
        objects = [product("n0", 1), product("t4", 1, product="Tesla-T4"), pod("serves", "n0", containers=[one]),
                   pod("fits", gpus=1, minute=1, **there), pod("large", gpus=1, minute=2, **there)]
        out = self.folder / "out"
        for says, held in (("model: qwen2.5-7b, " + load, 72), (load, 72), ("demand: {any: {gpu_util_pct: 10, gpu_memory_gib: 40, step_time_ms: 20}}", 72),
                           ("demand: {a100-80gb: {gpu_util_pct: 10, gpu_memory_gib: 76}, t4: {gpu_util_pct: 10, gpu_memory_gib: 9}}, request_rate_hz: 3", 76)):
            with self.subTest(says):
                profiles = [f"{{pods: {{name: serves}}, kind: inference, share: anyone, {says}}}"] + [
                    f"{{pods: {{name: {name}}}, share: anyone, demand: {{any: {{gpu_util_pct: 10, gpu_memory_gib: {gib}, step_time_ms: 300}}}}}}"
                    for name, gib in (("fits", 79 - held), ("large", 40))]
                self.load(objects, args=("--profiles", self.write("profiles.yaml", "version: 1\nprofiles:\n" + "".join(f"  - {row}\n" for row in profiles))))
                _, text, err = run("place", "--cluster", out / "now.yaml", "--jobs", out / "waiting.yaml", "--json")
                self.assertEqual(err, "")
                found = json.loads(text)
                held_mib = [one["memory_mib"] for one in found["tenants"] if one["job"] == "default/serves"]
                self.assertEqual(held_mib, [held << 10])
                self.assertEqual({one["job"]: one["verdict"] for one in found["decisions"]}["default/large"], "defer")
                line = next(row for row in (out / "jobs.yaml").read_text().splitlines() if "default/serves" in row)
                self.assertRegex(line, r"gpu_types: \[a100-80gb\]|demand: {a100-80gb: {[^}]*}}")  # of another type nobody knows it
                self.assertEqual("request_rate_hz" in line, "request_rate_hz" in says)

    def test_what_no_node_can_give_is_left_out(self):
        for lacks in ([pod("p", containers=[container(gpu=1, gpumem=3000)])], [claim("c"), pod("p", **claims("c"))]):
            found = self.load([product("a", 8), *lacks], code=3)
            self.assertEqual([one["name"] for one in found["left_out"]], ["default/p"])

    def test_shadow_and_place_move_nothing_to_another_backend(self):
        """Everything is full but one kind of node: only its own pods go there."""
        objects = [*kinds(), pod("part", "hami", containers=[container(gpu=1, gpumem=46_000)], annotations={
            "hami.io/vgpu-devices-allocated": "GPU-h2,NVIDIA,46000,0:;"}, minute=1),
            pod("waits", containers=[container(gpu=1, gpumem=30_000)], minute=2),
            pod("waits-too", containers=[container(gpu=1, gpumem=30_000)], minute=3)]
        self.load(objects)
        out = self.folder / "out"
        _, text, err = run("place", "--cluster", out / "now.yaml", "--jobs", out / "waiting.yaml", "--json")
        self.assertEqual(err, "")
        where = [[slot["node"] for slot in one["slots"]] for one in json.loads(text)["decisions"]]
        self.assertEqual(where, [["hami"], []])  # one healthy card is free, and no other node is HAMi's
        _, text, err = run("shadow", "--cluster", out / "cluster.yaml", "--jobs", out / "jobs.yaml", "--log", out / "decisions.csv", "--json")
        self.assertEqual((json.loads(text)["broken_rules"], err), ({}, ""))

    def test_random_clusters_send_nobody_where_the_scheduler_could_not(self):
        draw = random.Random(53)
        for _ in range(6):
            nodes, offers = [], {}
            for i in range(draw.randint(2, 6)):
                name, way = f"n{i}", draw.choice(("gpu", "gpu.shared", "mig", "hami", "claims"))
                offers[name] = way
                nodes += {"gpu": [product(name, 2)], "gpu.shared": [product(name, 0, labels={"nvidia.com/gpu.replicas": "2"},
                                                                           resources={"nvidia.com/gpu.shared": "4"})],
                          "mig": [product(name, 0, resources={"nvidia.com/mig-1g.10gb": "2"})],
                          "hami": [node(name, gpus=20, annotations={"hami.io/node-nvidia-register": HAMI})],
                          "claims": [node(name), resource_slice(name, name, [gpu_device(i)])]}[way]
            asks = {"gpu": ({"gpu", "hami"}, {"gpus": 1}), "gpu.shared": ({"gpu.shared"}, {"containers": [container(gpu__shared=1)]}),
                    "mig": ({"mig"}, {"containers": [container(mig_1g__10gb=1)]}),
                    "hami": ({"hami"}, {"containers": [container(gpu=1, gpumem=1000)]}), "claims": ({"claims"}, claims("c"))}
            asks = {way: ask for way, ask in asks.items() if ask[0] & set(offers.values())}
            self.load([*nodes, claim("c"), *(pod(way.replace(".", "-"), **ask) for way, (_, ask) in asks.items())])
            for way, (ways, _) in asks.items():
                self.assertEqual(self.open_to("default/" + way.replace(".", "-")), {name for name, of in offers.items() if of in ways}, (way, offers))


class SharedClaims(Imported):
    """One claim is one set of GPUs, whoever uses it: one job."""

    def setUp(self):
        super().setUp()
        self.nodes = [n for i in "ab" for n in (node(i), resource_slice(i, i, [{**gpu_device(j), "allowMultipleAllocations": True} for j in range(2)]))]

    def jobs(self, *objects, code=0):
        self.load([*self.nodes, *objects], code)
        return self.entries("jobs.yaml", "demand")

    def test_pods_that_run_together_are_one_job(self):
        found = self.jobs(claim("both", "gpu-1", "b", users=2, memory="30Gi"), pod("p", "b", minute=1, **claims("both")),
                          pod("q", "b", minute=5, **claims("both")), pod("other", "a", minute=2, **claims("own")), claim("own", "gpu-0", "a"))
        self.assertEqual(set(found), {"default/both", "default/other"})
        jobs = (self.folder / "out/jobs.yaml").read_text()
        self.assertEqual(jobs.count("gpu_memory_gib: 30"), 1)  # once
        self.assertIn("cpu_cores: 8, memory_gib: 32", jobs)
        log = (self.folder / "out/decisions.csv").read_text().splitlines()[1:]
        self.assertEqual([line.split(",", 2)[2] for line in log], ["default/both,b,1", "default/other,a,0"])

    def test_the_place_of_one_who_comes_later_is_given(self):
        found = self.jobs(claim("both", "gpu-1", "b", users=1), pod("p", "b", minute=1, **claims("both")), pod("late", minute=5, **claims("both")))
        self.assertEqual(set(found), {"default/both"})
        self.assertNotIn("name: ", (self.folder / "out/waiting.yaml").read_text())
        self.assertEqual(len((self.folder / "out/decisions.csv").read_text().splitlines()), 2)

    def test_those_who_wait_together_wait_as_one(self):
        self.jobs(claim("both", count=2), pod("p", **claims("both")), pod("q", **claims("both")))
        self.assertEqual((self.folder / "out/waiting.yaml").read_text().count("name: "), 1)
        self.assertIn("gpus: 2", (self.folder / "out/waiting.yaml").read_text())

    def test_a_claim_that_holds_a_gpu_holds_it_before_its_pod_is_bound(self):
        self.jobs(claim("c", "gpu-1", "b"), pod("p", minute=3, **claims("c")))
        self.assertIn('on: [{node: "b", gpu: 1}]', (self.folder / "out/now.yaml").read_text())

    def test_claims_join_through_others_and_only_where_they_have_gpus(self):
        network = {**claim("net", "nic", "b"), "spec": {"devices": {"requests": [{"name": "n", "exactly": {"deviceClassName": "nic"}}]}}}
        network["status"]["allocation"]["devices"]["results"][0]["driver"] = "dra.net"
        def two(*names):
            return {"resourceClaims": [{"name": name, "resourceClaimName": name} for name in names]}
        held = [claim("c0", "gpu-0", "b"), claim("c1", "gpu-1", "b"), network]
        found = self.jobs(*held, pod("p", "b", minute=1, **two("c0")), pod("q", "b", minute=2, **two("c1")), pod("r", "b", minute=3, **two("c0", "c1")))
        self.assertEqual(len(found), 1)
        self.assertIn("gpus: 2", (self.folder / "out/jobs.yaml").read_text())
        found = self.jobs(*held, pod("p", "b", minute=1, **two("c0", "net")), pod("q", "b", minute=2, **two("c1", "net")))
        self.assertEqual(set(found), {"default/p", "default/q"})

    def test_a_claim_that_selects_by_expressions_keeps_the_type_that_it_has(self):
        selects = claim("c", "gpu-1", "b")
        selects["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = [{"cel": {"expression": "true"}}]
        self.nodes += [node("t"), resource_slice("t", "t", [gpu_device(0, "Tesla-T4", "15360Mi")])]
        self.nodes += [profile("net")]
        known = {"annotations": {"libhorus.org/profile": "net"}}
        for objects, more, types in (([selects], {}, ["a100-80gb"]), ([claim("c", "gpu-1", "b")], {}, ["a100-80gb"]),
                                     ([claim("c", "gpu-1", "b")], known, ["a100-80gb", "t4"]), ([selects], known, ["a100-80gb"])):
            self.jobs(*objects, pod("p", "b", **claims("c"), **more))
            self.assertEqual(sorted(re.findall(r"([\w-]+): \{gpu_util_pct", (self.folder / "out/jobs.yaml").read_text())), types)

    def test_who_shares_a_claim_that_is_missing_is_named(self):
        found = self.load([*self.nodes, pod("p", **claims("lost")), pod("q", **claims("lost"))], code=3)
        self.assertEqual([one["name"] for one in found["left_out"]], ["default/p", "default/q"])


if __name__ == "__main__":
    main()
