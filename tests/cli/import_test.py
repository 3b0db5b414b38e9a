# SPDX-License-Identifier: Apache-2.0
"""horus import. Usage: see command.py."""

import json
import re
import subprocess

from command import HORUS, RESNET, ROOT, Files, check_record, main, run

GPU, PRODUCT = "nvidia.com/gpu", "nvidia.com/gpu.product"


def node(name, labels=None, gpus=0, cpu="64", memory="512Gi", resources=None, annotations=None, taints=None, ready="True",
         cordoned=False):
    """A node as kubelet and kwok write it."""
    allocatable = {"cpu": cpu, "memory": memory, "ephemeral-storage": "900Gi", "pods": "110", **(resources or {})}
    if gpus:
        allocatable[GPU] = str(gpus)
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})},
                         "annotations": {"kwok.x-k8s.io/node": "fake", **(annotations or {})},
                         "managedFields": [{"fieldsV1": {"f:metadata": {}}}]},
            "spec": {"unschedulable": True, "taints": taints or []} if cordoned else {"taints": taints or []},
            "status": {"allocatable": allocatable, "capacity": allocatable,
                       "conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": ready}]}}


def container(cpu="4", memory="16Gi", env=True, **requests):
    wanted = {"cpu": cpu, "memory": memory, **{f"nvidia.com/{name.replace('__', '.').replace('_', '-')}": str(count)
                                              for name, count in requests.items()}}
    one = {"name": "main", "image": "train:1", "resources": {"requests": wanted, "limits": wanted}}
    if env:
        one["env"] = [{"name": "SECRET", "value": "hidden"}]
    return one


def pod(name, on=None, gpus=0, namespace="default", labels=None, minute=0, phase=None, containers=None, annotations=None,
        status=None, **spec):
    """A pod that runs on node `on`, or waits."""
    wanted = containers or [container(gpu=gpus) if gpus else container()]
    document = {"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": name, "namespace": namespace, "labels": labels or {}, "annotations": annotations or {},
                             "creationTimestamp": f"2026-11-26T10:{minute:02d}:00Z"},
                "spec": {"containers": wanted, "schedulerName": "default-scheduler", **spec},
                "status": {"phase": phase or ("Running" if on else "Pending"), **(status or {})}}
    if on:
        document["spec"]["nodeName"] = on
        document["status"]["conditions"] = [{"type": "PodScheduled", "status": "True",
                                             "lastTransitionTime": f"2026-11-26T10:{minute:02d}:30Z"}]
    return document


def engine(*args, image="vllm/vllm-openai:v0.11.0", command=None, env=None, gpu=1):
    """A container that serves a language model."""
    one = {**container(gpu=gpu, env=False), "image": image, "args": list(args), "env": [{"name": k, "value": v} for k, v in (env or {}).items()]}
    return {**one, "command": list(command)} if command else one


LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


def deleted(one):
    one["metadata"].update(deletionTimestamp="2026-11-26T11:00:00Z", deletionGracePeriodSeconds=30)
    return one


def claim(name, device=None, pool=None, users=1, namespace="default", memory=None, count=1, device_class="gpu.nvidia.com"):
    document = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name, "namespace": namespace},
                "spec": {"devices": {"requests": [{"name": "g", "exactly": {
                    "deviceClassName": device_class, "allocationMode": "ExactCount", "count": count}}]}}}
    if device:
        result = {"request": "g", "driver": "gpu.nvidia.com", "pool": pool, "device": device}
        if memory:
            result.update(shareID="9b1f", consumedCapacity={"memory": memory})
        document["status"] = {"allocation": {"devices": {"results": [result]}},
                              "reservedFor": [{"resource": "pods", "name": f"p{i}", "uid": "u"} for i in range(users)]}
    return document


def gpu_device(i, product="NVIDIA A100-SXM4-80GB", memory="81920Mi", **attributes):
    values = {"type": "gpu", "uuid": f"GPU-{i}", "productName": product, "architecture": "Ampere", **attributes}
    return {"name": f"gpu-{i}", "attributes": {key: {"string": value} for key, value in values.items()},
            "capacity": {"memory": {"value": memory}}}


def resource_slice(name, on, devices, generation=1, count=1, pool=None, driver="gpu.nvidia.com"):
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name},
            "spec": {"driver": driver, "nodeName": on, "devices": devices,
                     "pool": {"name": pool or on, "generation": generation, "resourceSliceCount": count}}}


def profile(name, namespace="default", **first):
    figures = {"gpuType": "NVIDIA A100-SXM4-80GB", "gpuUtilPct": 12.5, "gpuUtilPctUpper": 20, "memMiB": 8192, "memMiBUpper": 9216,
               "stepTimeUs": 20_001, "operatorUs": 12.5, "prediction": {"traits": [12.1, 10, 2.5, 1, 0, 3.2, -0.5]}, **first}
    return {"apiVersion": "libhorus.org/v1alpha1", "kind": "JobProfile", "metadata": {"name": name, "namespace": namespace},
            "spec": {"kind": "inference", "demands": [figures, {"gpuType": "t4", "gpuUtilPct": 60, "memMiB": 8192}]}}


def measured(name, prefix="", **figures):
    """What Prometheus answers of one pod."""
    return [{"metric": {f"{prefix}namespace": "default", f"{prefix}pod": name, "figure": figure}, "value": [1795867200.1, str(value)]}
            for figure, value in figures.items()]


def answer(*pods):
    return {"status": "success", "data": {"resultType": "vector", "result": [one for pod in pods for one in pod]}}


def product(name, gpus=8, **more):
    return node(name, {PRODUCT: more.pop("product", "NVIDIA-A100-SXM4-80GB"), **more.pop("labels", {})}, gpus, **more)


HAMI = json.dumps([{"id": f"GPU-h{i}", "index": i, "count": 10, "devmem": 46068, "devcore": 100, "type": "NVIDIA-NVIDIA L40S",
                    "numa": 0, "mode": "hami-core", "devicepairscore": {}, **({"health": True} if i != 1 else {})} for i in range(3)])


def mixed():
    """One node of each kind that people have, and pods on them."""
    mig = {PRODUCT: "NVIDIA-A100-SXM4-80GB", "nvidia.com/mig.strategy": "mixed"}
    return [
        product("plain", 8, labels={"topology.kubernetes.io/zone": "z1", "nvidia.com/gpu.count": "8"}),
        product("sliced", 8, product="Tesla-T4-SHARED", labels={"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.count": "2",
                                                                "nvidia.com/gpu.sharing-strategy": "time-slicing"}),
        node("mps", {PRODUCT: "NVIDIA-L4", "nvidia.com/gpu.replicas": "2", "nvidia.com/gpu.sharing-strategy": "mps"},
             resources={"nvidia.com/gpu.shared": "4"}),
        product("single", 7, product="NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"),
        node("mig", mig, 2, resources={"nvidia.com/mig-1g.10gb": "2", "nvidia.com/mig-3g.40gb": "3"}),
        node("hami", gpus=20, annotations={"hami.io/node-nvidia-register": HAMI}),
        node("gke", {"cloud.google.com/gke-accelerator": "nvidia-h100-mega-80gb"}, 8),
        node("eks", {"karpenter.k8s.aws/instance-gpu-name": "a100", "karpenter.k8s.aws/instance-gpu-memory": "81920"}, 8),
        node("aks", {"kubernetes.azure.com/accelerator": "nvidia",
                     "node.kubernetes.io/instance-type": "Standard_NC48ads_A100_v4"}, 2),
        node("dra"), resource_slice("dra-old", "dra", [gpu_device(i) for i in range(9)]),
        resource_slice("dra-new", "dra", [gpu_device(i) for i in (10, 0, 1, 2)], generation=2),
        node("cpu-only"),
        pod("whole", "plain", 4, minute=1), pod("part", "sliced", 1, minute=2),
        pod("server", "mps", containers=[container(gpu__shared=1)], minute=3),
        pod("instance", "single", 1, minute=4), pod("third", "mig", containers=[container(mig_3g__40gb=1)], minute=5),
        pod("vgpu", "hami", containers=[container(gpu=1, gpumem=8000, gpucores=30)], minute=6,
            annotations={"hami.io/vgpu-devices-allocated": "GPU-h2,NVIDIA,8000,30:;"}),
        claim("c1", "gpu-10", "dra"), pod("claims", "dra", resourceClaims=[{"name": "g", "resourceClaimName": "c1"}], minute=7),
        pod("waits", gpus=2, minute=8), pod("gone", "plain", 1, phase="Succeeded", minute=9), pod("web", "plain", minute=9),
        pod("wants-mig", containers=[container(mig_1g__10gb=1)], minute=10),
    ]


class Import(Files):
    def import_(self, objects, *args, code=0, name="objects.json"):
        text = objects if isinstance(objects, (str, bytes)) else json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        found, out, err = run("import", self.write(name, text), "--out", self.folder / "out", *args)
        self.assertEqual(found, code, err or out)
        return err if code in (1, 2) else out

    def read(self, name):
        return (self.folder / "out" / name).read_text()

    def line(self, name, file="cluster.yaml"):
        """The line of a node or job."""
        found = [line for line in self.read(file).splitlines() if f'name: "{name}"' in line]
        self.assertEqual(len(found), 1, f"{name} in {file}")
        return found[0]

    def report(self, objects, *args, code=0):
        return json.loads(self.import_(objects, "--json", *args, code=code))

    def test_it_says_how_many_waiting_jobs_could_start_now(self):
        profiles = self.write("profiles.yaml", "version: 1\nprofiles:\n  - {pods: {name: 'small-*'}, share: anyone, "
                              "demand: {any: {gpu_util_pct: 20, gpu_memory_gib: 4, step_time_ms: 10}}}\n")
        objects = [product("a", 1), pod("small-0", "a", 1), pod("small-1", gpus=1), pod("whole", gpus=1)]
        found = self.report(objects, "--profiles", profiles)
        self.assertEqual((found["jobs_wait"], found["jobs_startable"], found["jobs_startable_beside"]), (2, 1, 1))
        self.assertIn("2 jobs wait. Now would start: 0 on GPUs of their own, 1 beside others", self.import_(objects, "--profiles", profiles))
        self.assertEqual(self.report([product("a", 2), *objects[1:]])["jobs_startable_beside"], 0)
        code, out, err = run("place", "--cluster", self.folder / "out/now.yaml", "--jobs", self.folder / "out/waiting.yaml")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("No GPU that it may have is free: it shares with nobody, and jobs are on a gpu 0", out)

    def test_what_prometheus_does_not_tell_is_said(self):
        objects = [product("a", 1), pod("train", "a", 1)]
        def answer(document):
            return self.write("measured.json", json.dumps(document))
        empty = {"status": "success", "data": {"resultType": "vector", "result": []}}
        other = {**empty, "data": {"resultType": "vector", "result": [
            {"metric": {"figure": figure, "namespace": "default", "pod": "dcgm-exporter-x"}, "value": [0, "30"]}
            for figure in ("gpu_util_pct", "gpu_memory_mib")]}}
        for document, pods in ((empty, 0), (other, 1)):
            notes = self.report(objects, "--measured", answer(document))["notes"]
            self.assertIn(f"says nothing of these pods: it tells of {pods}.", notes[0])
            self.assertIn("exported_pod", notes[0])
        code, out, err = run("import", self.write("o.json", json.dumps({"kind": "List", "items": objects})), "--out", self.folder / "out",
                             "--measured", answer({"status": "error", "errorType": "bad_data", "error": "parse error: unexpected x"}))
        self.assertEqual((code, out), (2, ""))
        self.assertIn("Prometheus did not answer the query: 'parse error: unexpected x'", err)

    def test_place_shadow_and_potential_run_on_what_it_writes(self):
        self.import_(mixed())
        out = self.folder / "out"
        both = ("--cluster", out / "cluster.yaml", "--jobs", out / "jobs.yaml")
        for command in (("shadow", *both, "--log", out / "decisions.csv"), ("potential", *both), ("place", *both),
                        ("place", "--cluster", out / "now.yaml", "--jobs", out / "waiting.yaml")):
            code, _, err = run(*command)
            self.assertEqual((code, err), (0, ""), command)
        code, text, _ = run("place", "--cluster", out / "now.yaml", "--jobs", out / "waiting.yaml", "--json")
        decisions = {one["job"]: one for one in json.loads(text)["decisions"]}
        self.assertEqual(decisions["default/waits"]["verdict"], "place")
        self.assertEqual([slot["node"] for slot in decisions["default/wants-mig"]["slots"]], ["mig/mig-1g.10gb"])
        code, text, _ = run("shadow", *both, "--log", out / "decisions.csv", "--json")
        self.assertEqual(json.loads(text)["decisions"], 7)

    def test_every_source_tells_the_type(self):
        self.import_(mixed())
        for name, gpus in (("plain", "{type: a100-80gb, count: 8}"), ("sliced", "{type: t4, count: 2, max_tenants: 4}"),
                           ("mps", "{type: l4, count: 2, sharing: mps, max_tenants: 2}"),
                           ("single", "{type: a100-40gb, mig: [" + ", ".join(['"1g.5gb"'] * 7) + "]}"),
                           ("hami", "{type: l40s, count: 2, max_tenants: 10}"), ("gke", "{type: h100-sxm, count: 8}"),
                           ("eks", "{type: a100-80gb, count: 8}"), ("aks", "{type: a100-pcie-80gb, count: 2}"),
                           ("dra", "{type: a100-80gb, count: 4}")):
            self.assertIn(f"gpus: [{gpus}]", self.line(name), name)
        for part, gpus in (("", "{type: a100-80gb, count: 2}"), ("/mig-1g.10gb", '{type: a100-80gb, mig: ["1g.10gb", "1g.10gb"]}'),
                           ("/mig-3g.40gb", '{type: a100-80gb, mig: ["3g.40gb", "3g.40gb"]}, {type: a100-80gb, mig: ["3g.40gb"]}')):
            self.assertIn(f"gpus: [{gpus}]", self.line("mig" + part))
        self.assertNotIn("cpu-only", self.read("cluster.yaml"))

    def test_the_devices_that_claims_and_annotations_name_are_taken(self):
        found = self.report(mixed())
        self.assertEqual((found["pods_told"], found["pods_assumed"]), (2, 5))
        log = self.read("decisions.csv").splitlines()
        self.assertEqual(log[0], "time_s,event,job,node,devices")
        self.assertIn("390,place,default/claims,dra,3", log)  # gpu-10 stands behind gpu-2
        self.assertIn("330,place,default/vgpu,hami,1", log)  # the card between is not healthy
        self.assertIn("on: [{node: \"dra\", gpu: 3}]", self.line("default/claims", "now.yaml"))
        self.check_golden("import_keys.txt", self.report([*mixed(), pod("llm", "plain", containers=[engine()], minute=11),
                                                        node("odd", {PRODUCT: "NVIDIA-Z1"}, 1)], code=3))
        check_record(self, found, "import")

    def test_requests_are_the_demand(self):
        self.import_(mixed())
        for name, part in (("whole", "gpus: 4, gpu_milli: 1000, cpu_cores: 4, memory_gib: 16"),
                           ("part", "gpu_milli: 250, share: anyone"), ("server", "gpu_milli: 500, share: anyone"),
                           ("instance", "a100-40gb: {gpu_util_pct: 14.29, gpu_memory_gib: 4.26171875}"),
                           ("vgpu", "gpu_milli: 300, share: anyone"),
                           ("vgpu", "l40s: {gpu_util_pct: 30, gpu_memory_gib: 7.8125}"),
                           ("wants-mig", 'node_selector: {"libhorus.org/offers-mig-1g.10gb": "yes"}')):
            self.assertIn(part, self.line(f"default/{name}", "jobs.yaml"), name)
        self.assertIn('"libhorus.org/offers-mig-1g.10gb": "yes"', self.line("mig/mig-1g.10gb"))
        self.assertNotIn("offers-mig", self.line("mig"))
        self.assertNotIn("default/gone", self.read("jobs.yaml"))
        self.assertNotIn("default/whole", self.read("waiting.yaml"))

    def test_an_unknown_type_leaves_the_node_out_and_the_exit_code_says_so(self):
        odd = [product("known"), product("odd", product="NVIDIA-H100-81GB-HBM3"), pod("there", "odd", 1)]
        out = self.import_(odd, code=3)
        for part in ("node odd", "nvidia.com/gpu.product=NVIDIA-H100-81GB-HBM3", "h100-80gb-hbm3", "1 nodes and 1 pods"):
            self.assertIn(part, re.sub(r"\s+", " ", out))
        self.assertNotIn("odd", self.read("cluster.yaml"))
        own = self.write("own.yaml", "version: 1\ngpu_types:\n  - {name: h100-81gb-hbm3, based_on: h100}\n")
        self.import_(odd, "--gpus-file", own)
        code, _, err = run("place", "--cluster", self.folder / "out/now.yaml", "--jobs", self.folder / "out/waiting.yaml")
        self.assertEqual((code, err), (0, ""))

    def test_memory_that_contradicts_the_type_is_told(self):
        label = {"nvidia.com/gpu.memory": "97871"}
        self.assertIn("found 97871 MiB", re.sub(r"\s+", " ", self.import_([product("a"), product("b", labels=label)], code=3)))

    def test_counts_that_contradict_each_other_invent_no_gpus(self):
        def counts(allocatable, count, replicas, capacity=None, **more):
            labels = {"nvidia.com/gpu.count": str(count), "nvidia.com/gpu.replicas": str(replicas), **more}
            one = product("n", allocatable, labels=labels)
            one["status"]["capacity"] = {**one["status"]["capacity"], GPU: str(capacity or allocatable)}
            return one
        for wrong in (counts(10, 1, 1),  # the plugin shares, and discovery does not know it
                      counts(8, 2, 1), counts(1, 1, 10), counts(4, 4, 10), counts(10, 10, 10), counts(20, 10, 10),
                      product("n", 8, product="Tesla-T4-SHARED"),
                      node("n", {"karpenter.k8s.aws/instance-gpu-name": "a10g", "karpenter.k8s.aws/instance-gpu-count": "1"}, 10)):
            found = self.report([product("fine"), wrong], code=3)
            self.assertRegex(found["left_out"][0]["reason"], "in another way|replicas beside it")
            self.assertNotIn('"n"', self.read("cluster.yaml"))
        for right, cards in ((counts(7, 8, 1, 8), "count: 7}"), (counts(7, 7, 1, 8), "count: 7}"),  # one is not healthy
                             (counts(4, 8, 1), "count: 4}"), (counts(10, 1, 10), "max_tenants: 10}"),
                             (counts(30, 4, 10, 40), "count: 3, max_tenants: 10}")):
            self.import_([right])
            self.assertIn(cards, self.line("n"))

    def test_instances_of_one_size_count_as_such_or_by_their_cards(self):
        single = {"product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"}
        for count in ("14", "2"):
            self.import_([product("a", 14, labels={"nvidia.com/gpu.count": count}, **single)])
            self.assertIn("{type: a100-40gb, count: 2, mig: [" + ", ".join(['"1g.5gb"'] * 7) + "]}", self.line("a"))
        self.report([product("b"), product("a", 14, labels={"nvidia.com/gpu.count": "1"}, **single)], code=3)

    def test_no_gpu_is_given_twice(self):
        """Eight pods on seven GPUs: one of them is on the eighth, which is not healthy."""
        found = self.report([product("a", 7), *(pod(f"p{i}", "a", 1, minute=i) for i in range(8))], code=3)
        self.assertEqual([one["name"] for one in found["left_out"]], ["default/p7"])
        self.assertIn("less what other pods hold", found["left_out"][0]["reason"])
        self.assertIn("state: drained", self.line("a"))
        shared = product("a", 4, labels={"nvidia.com/gpu.replicas": "2"})
        found = self.report([shared, *(pod(f"p{i}", "a", 1, minute=i) for i in range(5))], code=3)
        self.assertEqual([one["name"] for one in found["left_out"]], ["default/p4"])

    def test_several_replicas_of_one_pod_are_as_few_gpus_as_they_may_be(self):
        shared = product("a", 8, labels={"nvidia.com/gpu.replicas": "2"})
        found = self.report([shared, pod("two", "a", 2, minute=1), pod("three", "a", 3, minute=2), pod("waits", gpus=4)])
        self.assertIn("gpu_milli: 1000", self.line("default/two", "jobs.yaml"))
        self.assertIn("gpus: 2, share: anyone", self.line("default/three", "jobs.yaml"))
        self.assertIn("gpu_util_pct: [52, 100]", self.line("default/three", "jobs.yaml"))
        self.assertIn("gpus: 2, gpu_milli: 1000", self.line("default/waits", "jobs.yaml"))
        self.assertTrue(any(note.startswith("3 pods ask for several replicas") for note in found["notes"]), found["notes"])

    def test_what_cannot_be_told_of_gpus_closes_the_node(self):
        objects = [product("a"), pod("strange", "a", containers=[container(pgpu=1)])]
        found = self.report(objects, code=3)
        self.assertEqual([one["name"] for one in found["left_out"]], ["default/strange"])
        self.assertIn("state: drained", self.line("a"))
        for lacks in ([pod("c", resourceClaims=[{"name": "g", "resourceClaimName": "nowhere"}])],
                      [pod("c", resourceClaims=[{"name": "g", "resourceClaimTemplateName": "t"}])],
                      [pod("c", resourceClaims=[{"name": "g", "resourceClaimName": "x"}]),
                       claim("x", device_class="mig.nvidia.com")],
                      [pod("c", containers=[container(gpu=1, mig_1g__10gb=1)])],
                      [pod("c", containers=[container(mig_1g__10gb=1)])],
                      [pod("c", "nowhere", 1)]):
            found = self.report([product("a"), *lacks], code=3)
            self.assertEqual([one["name"] for one in found["left_out"]], ["default/c"], lacks)

    def test_resources_that_are_no_gpus_are_not_read(self):
        cards = {"nvidia.com/hostdev": "8", "rdma/rdma_shared_device_a": "63"}
        both = [container(gpu=8, hostdev=8)]
        found = self.report([product("a", resources=cards), pod("train", "a", containers=both), pod("wait", containers=both),
                             pod("net", containers=[container(hostdev=1)])])
        self.assertEqual((found["jobs_run"], found["jobs_wait"], found["pods_without_gpus"]), (1, 1, 1))
        self.assertNotIn("state", self.line("a"))
        self.assertIn("gpus: 8, gpu_milli: 1000", self.line("default/wait", "waiting.yaml"))
        # Where the device plugin is gone, network cards are no GPUs, however many there are.
        gone = product("gone", 0, labels={"nvidia.com/gpu.count": "8"}, resources=cards)
        self.assertIn("found none", self.report([product("a"), gone], code=3)["left_out"][0]["reason"])

    def test_vgpus_of_volcano_are_parts_of_gpus(self):
        cards = ":".join(f"GPU-{i},10,32768,NVIDIA-Tesla V100-SXM2-32GB,{health},hami-core" for i, health in
                         enumerate(("true", "false", "true")))
        one = node("a", annotations={"volcano.sh/node-vgpu-register": cards + ":"},
                   resources={"volcano.sh/vgpu-number": "30", "volcano.sh/vgpu-memory": "98304", "volcano.sh/vgpu-cores": "300"})

        def part(memory, cores=None):
            wanted = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": str(memory),
                      **({"volcano.sh/vgpu-cores": str(cores)} if cores else {})}
            return [{"name": "main", "resources": {"requests": wanted, "limits": wanted}}]
        found = self.report([one, product("b"), pod("waits", containers=part(8192)),
                             pod("runs", "a", containers=part(3072, 30),
                                 annotations={"volcano.sh/vgpu-ids-new": "GPU-2,NVIDIA,3072,30:;"})])
        self.assertEqual(found["pods_told"], 1)
        self.assertIn("[{type: v100-sxm2-32gb, count: 2, max_tenants: 10}]", self.line("a"))
        self.assertIn("gpu_util_pct: 30, gpu_memory_gib: 3}", self.line("default/runs", "jobs.yaml"))
        self.assertIn('on: [{node: "a", gpu: 1}]', self.line("default/runs", "now.yaml"))
        self.assertIn("gpu_memory_gib: 8}", self.line("default/waits", "jobs.yaml"))
        _, out, _ = run("place", "--cluster", self.folder / "out/now.yaml", "--jobs", self.folder / "out/waiting.yaml", "--json")
        self.assertEqual([slot["node"] for slot in json.loads(out)["decisions"][0]["slots"]], ["a"])
        # Without the annotation nobody knows its cards.
        bare = product("b", 0, resources={"volcano.sh/vgpu-number": "30"}, labels={"nvidia.com/gpu.count": "3"})
        self.assertIn("found none", self.report([product("a"), bare], code=3)["left_out"][0]["reason"])

    def test_fractions_of_kai_are_parts_of_gpus(self):
        def part(name, on=None, group=None, minute=0, labels=None, **annotations):
            labels = labels or ({"runai-gpu-group": group} if group else {})
            return pod(name, on, labels=labels, minute=minute,
                       annotations={key.replace("_", "-"): value for key, value in annotations.items()})
        reserves = pod("gpu-reservation-a-x1", "a", 1, "kai-resource-reservation", {"runai-gpu-group": "g1"},
                       annotations={"run.ai/reserve_for_gpu_index": "GPU-0"})
        objects = [product("a", 4), reserves, pod("whole", "a", 1, minute=1), part("half", "a", "g1", 2, gpu_fraction="0.5"),
                   part("third", "a", "g1", 3, gpu_fraction="0.29"), part("memory", "a", "g2", 4, gpu_memory="20000"),
                   part("pair", "a", None, 5, {"runai-gpu-group/1": "g2", "runai-gpu-group/2": "g3"},
                        gpu_fraction="0.25", gpu_fraction_num_devices="2"),
                   part("waits", gpu_memory="20000"), part("limits", **{"nvidia.com/container.main.gpu-memory.request": "4Gi"}),
                   part("dynamic", **{"nvidia.cdi.k8s.io/main.gpu-memory.request": "30GiB", "nvidia.cdi.k8s.io/main.gpu-memory.limit": "60GiB",
                                      "kai.scheduler/gpu-compute-sharing-mode": "time-slicing"})]
        found = self.report(objects)
        self.assertEqual((found["jobs_run"], found["jobs_wait"], found["pods_assumed"]), (5, 3, 5))
        self.assertIn("7 pods ask for parts of GPUs by annotations of KAI or Run:ai.", found["notes"])
        now = {name: re.search(r"on: \[(.*?)\]", self.line(f"default/{name}", "now.yaml"))[1]
               for name in ("whole", "half", "third", "memory", "pair")}
        self.assertEqual(now, {"whole": '{node: "a", gpu: 0}', "half": '{node: "a", gpu: 1}', "third": '{node: "a", gpu: 1}',
                               "memory": '{node: "a", gpu: 2}', "pair": '{node: "a", gpu: 2}, {node: "a", gpu: 3}'})
        for name, text in (("half", "gpu_milli: 500, share: anyone"), ("third", "gpu_milli: 290, share: anyone"),
                           ("waits", "any: {gpu_util_pct: 100, gpu_memory_gib: 19.53125}"),
                           ("limits", "any: {gpu_util_pct: 100, gpu_memory_gib: 4}"),
                           ("dynamic", "any: {gpu_util_pct: 100, gpu_memory_gib: 30}"), ("pair", "gpus: 2, share: anyone")):
            self.assertIn(text, self.line(f"default/{name}", "jobs.yaml"))
        self.assertNotIn("reservation", self.read("jobs.yaml"))
        code, _, err = run("place", "--cluster", self.folder / "out/now.yaml", "--jobs", self.folder / "out/waiting.yaml")
        self.assertEqual((code, err), (0, ""))
        for wrong in ({"gpu_fraction": "half"}, {"gpu_fraction": "1.5"}, {"gpu_fraction": "nan"}, {"gpu_memory": "-1"},
                      {"gpu_fraction": "0.5", "gpu_fraction_num_devices": "0"}):
            found = self.report([product("a"), part("odd", **wrong)], code=3)
            self.assertIn("annotation gpu-", found["left_out"][0]["reason"])

    def test_a_renamed_resource_is_what_discovery_counts(self):
        labels = {"nvidia.com/gpu.count": "2", "nvidia.com/gpu.replicas": "4"}
        self.import_([product("a", 0, labels=labels, resources={"nvidia.com/team-gpu": "8", "nvidia.com/hostdev": "8"}), product("b"),
                      pod("runs", "a", containers=[container(team_gpu=1)]), pod("waits", containers=[container(team_gpu=2)])])
        self.assertIn("count: 2, max_tenants: 4}", self.line("a"))
        self.assertIn("gpu_milli: 250", self.line("default/runs", "jobs.yaml"))
        self.assertIn("libhorus.org/offers-team-gpu", self.line("default/waits", "jobs.yaml"))

    def test_the_reason_names_what_is_missing_or_not_read(self):
        def holder(device):
            return [claim("c", device, "a"), pod("p", "a", resourceClaims=[{"name": "g", "resourceClaimName": "c"}])]
        could = {**gpu_device(1, type="mig", profile="1g.10gb", parentUUID="GPU-0"), "consumesCounters": [{"counterSet": "x"}]}
        vm = {**gpu_device(2, type="vfio"), "name": "gpu-vfio-2"}
        listed = resource_slice("s", "a", [gpu_device(0), could, vm])
        for device, slices, part in (("gpu-1", [listed], "a partition"), ("gpu-vfio-2", [listed], "of type 'vfio'"),
                                     ("gpu-9", [listed], "no resource slice of its node lists"),
                                     ("gpu-0", [], "no resource slice of its node is among the objects (resourceslices)")):
            found = self.report([product("b"), node("a"), *slices, *holder(device)], code=3)
            self.assertEqual([one["name"] for one in found["left_out"]], ["default/p"])
            self.assertIn(part, found["left_out"][0]["reason"])
        wants = claim("later", device_class="mig.nvidia.com")
        waits = pod("w", resourceClaims=[{"name": "g", "resourceClaimName": "later"}])
        self.assertIn("'mig.nvidia.com', which is not read", self.report([product("a"), wants, waits], code=3)["left_out"][0]["reason"])
        self.assertIn("(resourceslices)", self.import_([node("a"), *holder("gpu-0")], code=2))
        self.assertIn("(resourceclaims)", self.report([product("a"), holder("gpu-0")[1]], code=3)["left_out"][0]["reason"])
        self.assertIn("No pods are among the objects: nothing tells what runs and waits.", self.report([product("a")])["notes"])

    def test_an_incomplete_pool_is_not_believed(self):
        part = [node("a"), resource_slice("s", "a", [gpu_device(0)], count=2)]
        self.assertIn("expected 2 resource slices of generation 1, found 1",
                      self.report([product("b"), *part], code=3)["left_out"][0]["reason"])
        found = self.report([product("a"), part[1]])
        self.assertEqual(found["gpus"][0]["known_by"], PRODUCT)
        self.assertIn("resource slices", found["notes"][0])

    def test_who_only_watches_devices_holds_none(self):
        watch = claim("watch", "gpu-0", "a")
        exactly = {"deviceClassName": "gpu.nvidia.com", "allocationMode": "All", "adminAccess": True}
        watch["spec"]["devices"]["requests"] = [{"name": "g", "exactly": exactly}, {"name": "h", **exactly}]  # h: v1beta1
        watch["status"]["allocation"]["devices"]["results"][0]["adminAccess"] = True
        later = {**watch, "metadata": {"name": "later", "namespace": "default"}, "status": {}}
        found = self.report([node("a"), resource_slice("s", "a", [gpu_device(0)]), claim("c", "gpu-0", "a"), watch, later,
                             pod("works", "a", resourceClaims=[{"name": "g", "resourceClaimName": "c"}]),
                             pod("watches", "a", resourceClaims=[{"name": "g", "resourceClaimName": "watch"}]),
                             pod("will-watch", resourceClaims=[{"name": "g", "resourceClaimName": "later"}])])
        self.assertEqual((found["pods"], found["pods_without_gpus"]), (1, 2))

    def test_a_channel_of_a_compute_domain_is_no_gpu(self):
        channel = claim("channel", device_class="compute-domain-default-channel.nvidia.com")
        self.import_([product("a"), channel, pod("waits", gpus=4, resourceClaims=[{"name": "c", "resourceClaimName": "channel"}])])
        self.assertIn("gpus: 4, gpu_milli: 1000", self.line("default/waits", "waiting.yaml"))

    def test_claims_of_shared_devices_take_their_part_of_the_memory(self):
        shared = {**gpu_device(0), "allowMultipleAllocations": True}
        objects = [node("a"), resource_slice("s", "a", [shared])]
        for i, memory in ((1, "30Gi"), (2, "20Gi")):
            objects += [claim(f"c{i}", "gpu-0", "a", memory=memory),
                        pod(f"p{i}", "a", resourceClaims=[{"name": "g", "resourceClaimName": f"c{i}"}], minute=i)]
        objects += [claim("both", "gpu-0", "a", users=2)]
        self.import_(objects)
        self.assertIn("a100-80gb: {gpu_util_pct: 100, gpu_memory_gib: 30}", self.line("default/p1", "jobs.yaml"))
        code, _, err = run("place", "--cluster", self.folder / "out/now.yaml", "--jobs", self.folder / "out/waiting.yaml")
        self.assertEqual((code, err), (0, ""))

    def test_who_has_all_of_a_shared_device_has_it_alone(self):
        shared = {**gpu_device(0), "allowMultipleAllocations": True}
        self.import_([node("a"), resource_slice("s", "a", [shared]), claim("c", "gpu-0", "a", memory="81920Mi"),
                      pod("p", "a", resourceClaims=[{"name": "g", "resourceClaimName": "c"}])])
        self.assertIn("gpu_milli: 1000", self.line("default/p", "jobs.yaml"))
        self.assertNotIn("share", self.line("default/p", "jobs.yaml"))

    def test_a_profile_says_what_jobs_use_and_consent_with_whom_they_share(self):
        objects = [node("a"), resource_slice("s", "a", [{**gpu_device(0), "allowMultipleAllocations": True}]), profile("net")]
        said = {"libhorus.org/profile": "net"}
        for i, (name, memory, more) in enumerate((("alone", "30Gi", {}), ("shares", "30Gi", {"share": "same-tenant"}),
                                                  ("bound", "20Gi", {"share": "anyone", "slowdown-bound": " 1.5 ",
                                                                     "slowdown-confidence": "0.8"}),
                                                  ("needs-more", "8704Mi", {"share": "anyone"}),
                                                  ("wrong", "10Gi", {"share": "all"}), ("lost", "10Gi", {"profile": "none"}))):
            annotations = {**said, **{f"libhorus.org/{key}": value for key, value in more.items()}}
            objects += [claim(name, "gpu-0", "a", memory=memory),
                        pod(name, "a", resourceClaims=[{"name": "g", "resourceClaimName": name}], annotations=annotations, minute=i)]
        notes = self.report(objects)["notes"]
        demand = ("demand: {a100-80gb: {gpu_util_pct: [12.5, 20], gpu_memory_gib: [8, 9], step_time_ms: [20.001, 20.001], "
                  "operator_us: 12.5, kernels: 316.22776601683796, device_share: 0.31622776601683794}, "
                  "t4: {gpu_util_pct: [60, 60], gpu_memory_gib: [8, 8]}}")
        for name, part in (("alone", "kind: inference, exclusive: true, gpu_memory_request_gib: 30, "),
                           ("shares", "kind: inference, gpu_memory_request_gib: 30, "),
                           ("bound", "kind: inference, gpu_memory_request_gib: 20, slowdown_bound: 1.5, "
                                     "slowdown_confidence: 0.800000012, "),
                           ("wrong", "kind: inference, exclusive: true, gpu_memory_request_gib: 10, ")):
            self.assertIn(part + demand, re.sub(r"\s+", " ", self.line(f"default/{name}", "jobs.yaml")), name)
        self.assertIn("share: anyone", self.line("default/bound", "jobs.yaml"))
        line = re.sub(r"\s+", " ", self.line("default/needs-more", "jobs.yaml"))
        self.assertIn("kind: inference, " + demand.replace("[8, 8]", "[8, 8.5]"), line)  # the larger figure counts on each type
        self.assertIn("demand: {a100-80gb: {gpu_util_pct: 100", self.line("default/lost", "jobs.yaml"))
        for part in ("default/wrong: annotation libhorus.org/share: expected same-tenant or anyone, found 'all'",
                     "JobProfile default/none: it is not among the objects"):
            self.assertTrue(any(part in note for note in notes), notes)
        for figures, part in (({"gpuType": "z1"}, "'z1'"), ({"stepTimeUs": 2**45}, "steps of"), ({"gpuUtilPctUpper": 1}, "gpu_util_pct"),
                              ({"prediction": {"traits": [0, 0, 10]}}, "prediction.traits[2]"),
                              ({"prediction": {"traits": [0, 0, 0, 0, 0, 0, 0.1]}}, "prediction.traits[6]")):
            found = self.report([*objects[:2], profile("net", **figures), *objects[3:5]])["notes"]
            self.assertTrue(any(part in note for note in found), found)

    def test_consent_is_refused_beside_whole_gpus_as_by_the_scheduler(self):
        consents = {"libhorus.org/profile": "net", "libhorus.org/share": "same-tenant"}
        objects = [product("a"), profile("net"), pod("p0", "a", 1, annotations=consents)]
        self.assertTrue(any("default/p0: annotation libhorus.org/share: the scheduler refuses it beside whole GPUs" in note
                            for note in self.report(objects)["notes"]))
        self.assertIn("exclusive: true", self.line("default/p0", "jobs.yaml"))
        said = self.said(["{pods: {name: p0}, share: same-tenant, demand: {any: {gpu_util_pct: 20, gpu_memory_gib: 8}}}"])
        self.report([objects[0], objects[2]], *said)  # asked without JobProfiles
        self.assertNotIn("exclusive", self.line("default/p0", "jobs.yaml"))

    def said(self, profiles=None, measured=None):
        """Options that say what jobs run."""
        args = []
        if profiles is not None:
            args += ["--profiles", self.write("profiles.yaml", "version: 1\nprofiles:\n" + "".join(f"  - {one}\n" for one in profiles))]
        if measured is not None:
            args += ["--measured", self.write("measured.json", json.dumps(measured))]
        return args

    def described(self, objects, *args):
        return {one["by"]: (one["jobs"], one["gpus"]) for one in self.report(objects, *args)["described"]}

    # ---- Engines of language models, by their command lines.

    def engines(self, *containers, nodes=None, args=(), **more):
        """What is said of pods with these containers, each on a node of its own."""
        objects = nodes or [product(f"n{i}", 8) for i in range(len(containers))]
        objects += [pod(f"p{i}", f"n{i}", containers=[one], minute=i, **more) for i, one in enumerate(containers)]
        found = self.report(objects, *args)
        return sorted(found["engines"], key=lambda one: (one["engine"], one["model"] or ""))

    def test_command_lines_of_every_engine_say_its_model(self):
        shell = ["/bin/bash", "-lc"]
        for name, model, known, gpus, memory, one in (
                ("vLLM", LLAMA, "llama-3.1-8b", 1, 90, engine("--model", LLAMA)),
                ("vLLM", LLAMA, "llama-3.1-8b", 2, 45, engine(LLAMA, "--tensor-parallel-size=2", "--gpu_memory_utilization", "0.45", command=["vllm", "serve"], gpu=2)),
                ("vLLM", "Qwen/Qwen3-32B-FP8", "qwen3-32b", 4, 85,
                 engine("pip install vllm && exec vllm serve ${MODEL} \\\n  -tp 4 --gpu-memory-utilization '0.85' --max-model-len 32k; sleep 5",
                        command=shell, env={"MODEL": "Qwen/Qwen3-32B-FP8"}, gpu=4)),
                ("vLLM", "/models/models--mistralai--Mistral-Nemo-Instruct-2407/snapshots/0a1b2c", "mistral-nemo", 1, 90,
                 engine("-m", "vllm.entrypoints.openai.api_server", "--model=/models/models--mistralai--Mistral-Nemo-Instruct-2407/snapshots/0a1b2c",
                        image="registry.example.com/serve:1", command=["python3"])),
                ("SGLang", "deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "llama-3.1-70b", 4, 80,
                 engine("-m", "sglang.launch_server", "--model-path", "deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "--tp", "4", "--mem-fraction-static", "0.8",
                        image="lmsysorg/sglang:v0.5.3", command=["python3"], gpu=4)),
                ("TGI", "Qwen/Qwen2.5-7B-Instruct-AWQ", "qwen2.5-7b", 1, 100,
                 engine("--quantize", "awq", "--max-total-tokens", "8192", image="ghcr.io/huggingface/text-generation-inference:3.3",
                        env={"MODEL_ID": "Qwen/Qwen2.5-7B-Instruct-AWQ"})),
                ("TensorRT-LLM", LLAMA, "llama-3.1-8b", 1, 50,
                 engine(LLAMA, "--kv_cache_free_gpu_memory_fraction", "0.5", command=["trtllm-serve", "serve"], image="nvcr.io/nvidia/tensorrt-llm/release:1.0")),
                ("NIM", "nvcr.io/nim/meta/llama-3.1-8b-instruct", "llama-3.1-8b", 1, 90, engine(image="nvcr.io/nim/meta/llama-3.1-8b-instruct:1.8"))):
            found = self.engines(one)
            self.assertEqual([(row["engine"], row["model"], row["architecture"], row["gpus"], round(row["memory_pct"]), row["by"]) for row in found],
                             [(name, model, known, gpus, memory, "engine")])

    def test_an_engine_takes_its_share_of_the_memory_and_may_share_the_rest(self):
        self.engines(engine("--model", LLAMA, "--gpu-memory-utilization", "0.4"))
        line = self.line("default/p0", "jobs.yaml")
        self.assertIn("kind: inference", line)
        self.assertIn("gpu_memory_gib: [32, 32]", line)  # of 80 GiB
        self.assertRegex(line, r"step_time_ms: \[\d+")
        self.assertNotIn("gpu_milli", line)
        _, text, _ = run("shadow", "--cluster", self.folder / "out/cluster.yaml", "--jobs", self.folder / "out/jobs.yaml", "--log",
                         self.folder / "out/decisions.csv", "--json")
        self.assertEqual(json.loads(text)["decisions_of_requests_alone"], 0)

    def test_quantised_weights_are_faster_steps(self):
        steps = []
        for more in ((), ("--quantization", "fp8")):
            self.engines(engine("--model", LLAMA, *more), nodes=[product("n0", 8, product="NVIDIA-H100-80GB-HBM3")])
            steps.append(float(re.search(r"step_time_ms: \[([\d.]+)", self.line("default/p0", "jobs.yaml"))[1]))
        self.assertLess(steps[1], 0.8 * steps[0])

    def test_what_is_not_known_of_an_engine_is_said_and_not_guessed(self):
        for words, one in ((("unknown model: give its config.json with --profiles",), engine("--model", "acme/house-7b")),
                           (("its command line names no model",), engine("--port", "80")),
                           (("quantization 'squeezellm'",), engine("--model", LLAMA, "--quantization", "squeezellm")),
                           (("--tensor-parallel-size: expected 1 to", "'two'"), engine("--model", LLAMA, "--tensor-parallel-size", "two")),
                           (("--gpu-memory-utilization", "'9'"), engine("--model", LLAMA, "--gpu-memory-utilization", "9")),
                           (("asks for 1 GPUs", "among 8"), engine("--model", LLAMA, "-tp", "8")),
                           (("llama-3.1-70b needs",), engine("--model", "meta-llama/Llama-3.3-70B-Instruct")),
                           (("llama-3.1-8b needs", "told to take 8192"), engine("--model", LLAMA, "--gpu-memory-utilization", "0.1")),
                           (("it loads whatever it is asked for",), engine(image="ollama/ollama:0.12"))):
            found = self.engines(one)
            self.assertEqual([(row["by"], row["architecture"]) for row in found], [("nobody", None)])
            for word in words:
                self.assertIn(word, found[0]["why_not"])
            self.assertIn("gpu_milli: 1000", self.line("default/p0", "jobs.yaml"))

    def test_what_only_names_an_engine_is_none(self):
        for one in (engine("bench.py", "--backend", "vllm", command=["python"]), engine("pip install vllm; python train.py", command=["sh", "-c"]),
                    engine("serve", image="registry.example.com/search:1")):
            self.assertEqual(self.engines(one), [])

    def test_long_command_lines_end_soon(self):
        long = engine("$A " * 700_000, command=["sh", "-c"], env={"A": "vllm serve " * 90})
        words = engine(*["vllm"] * 300_000, command=["x"], env={f"V{i}": "$A" for i in range(20_000)})
        for one in (long, words, engine("--model", "/" * 2_000_000), engine("--model", "a-" * 1_000_000)):
            self.assertLessEqual(len(self.engines(one)), 1)

    def test_names_of_other_sizes_are_other_models(self):
        for model in ("meta-llama/Llama-3.2-11B-Vision-Instruct", "Qwen/Qwen3-Embedding-8B", "nvidia/Llama-3.1-Nemotron-70B-Instruct-HF", "Qwen/Qwen3-8B-GGUF",
                      "deepseek-ai/deepseek-coder-6.7b-instruct"):
            self.assertIsNone(self.engines(engine("--model", model))[0]["architecture"], model)

    def test_profiles_measurements_and_jobprofiles_go_before_command_lines(self):
        one = engine("--model", LLAMA)
        said = self.said(["{pods: {name: p0}, kind: training, demand: {any: {gpu_util_pct: 40, gpu_memory_gib: 3}}}"])
        self.assertEqual(self.engines(one, args=said)[0]["by"], "pattern")
        self.assertIn("kind: training", self.line("default/p0", "jobs.yaml"))
        seen = self.said(measured=answer(measured("p0", gpu_util_pct=12.5, gpu_memory_mib=70000)))
        self.assertEqual(self.engines(one, args=seen)[0]["by"], "measured")
        self.assertIn("kind: inference, demand: {a100-80gb: {gpu_util_pct: [12.5, 12.5]", self.line("default/p0", "jobs.yaml"))
        terms = self.said(["{pods: {name: p0}, share: anyone, slowdown_bound: 1.5}"])
        self.assertEqual(self.engines(one, args=terms)[0]["by"], "engine")
        self.assertRegex(self.line("default/p0", "jobs.yaml"), "share: anyone, slowdown_bound: 1.5, kind: inference, demand: .*step_time_ms")

    def test_a_profile_may_give_the_architecture_and_leave_the_rest_to_the_command_line(self):
        config = self.write("config.json", json.dumps({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
                                                       "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 131072}))
        said = self.said([f"{{pods: {{name: p0}}, kind: inference, model: {config}, share: anyone}}"])
        self.engines(engine("--model", "acme/house-8b", "--gpu-memory-utilization", "0.4"), args=said)
        own = self.line("default/p0", "jobs.yaml")
        # Of a pod that is no engine it says nothing that can be run.
        found = self.report([product("n0"), pod("p0", "n0", 1)], *said)
        self.assertTrue(any("or is no engine" in note for note in found["notes"]), found["notes"])
        self.engines(engine("--model", LLAMA, "--gpu-memory-utilization", "0.4"), args=self.said(["{pods: {name: p0}, kind: inference, share: anyone}"]))
        self.assertEqual(own, self.line("default/p0", "jobs.yaml"))
        self.assertIn("profiles.yaml:3: profiles[0].model: ", self.import_([product("a")], *self.said(
            ["{pods: {name: a}, kind: inference, model: none.json}"]), code=2))

    def test_a_profile_may_say_the_load_and_leave_the_model_to_the_command_line(self):
        said = self.said([f"{{pods: {{name: 'p*'}}, kind: inference, service: {{requests_per_s: 0.2, tokens_in: 800, tokens_out: 200, token_ms: 80}}}}"])
        one = engine("--model", "Qwen/Qwen2.5-7B-Instruct", "--quantization", "fp8", "--kv-cache-dtype", "fp8", "--tensor-parallel-size", "2", gpu=2)
        self.assertEqual([row["by"] for row in self.engines(one, args=said)], ["pattern"])
        for words in ("service: {", 'model: "qwen2.5-7b"', "framework: vllm", "tensor_parallel: 2", 'weights: "fp8"', 'cache: "fp8"'):
            self.assertIn(words, self.line("default/p0", "jobs.yaml"))
        code, _, err = run("place", "--cluster", self.folder / "out/now.yaml", "--jobs", self.folder / "out/waiting.yaml")
        self.assertEqual((code, err), (0, ""))
        for model, gpus in (("acme/house-7b", 1), (LLAMA, 2)):  # not known; of other numbers of GPUs
            self.engines(engine("--model", model, gpu=gpus), args=said)
            self.assertIn("gpu_milli: 1000", self.line("default/p0", "jobs.yaml"))
        found = self.report([product("n0"), pod("p0", "n0", 1)], *said)
        self.assertTrue(any("or is no engine" in note for note in found["notes"]), found["notes"])
        self.assertIn("answer_ms", self.import_([product("a")], *self.said(
            ["{pods: {name: a}, kind: inference, service: {requests_per_s: 1, answer_ms: 5}}"]), code=2))

    def test_a_replica_holds_no_memory_back_from_an_engine(self):
        shared = product("n0", 4, labels={"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.count": "1"})
        self.engines(engine("--model", "acme/house-7b"), nodes=[shared])
        self.assertIn("gpu_memory_gib: [72, 72]", self.line("default/p0", "jobs.yaml"))

    def test_engines_are_told_in_the_report(self):
        objects = [product("a"), *(pod(f"llama-{i}", "a", containers=[engine("--model", LLAMA)], minute=i) for i in range(2)),
                   pod("own", "a", containers=[engine("--model", "acme/house-7b")], minute=3)]
        out = re.sub(r"\s+", " ", self.import_(objects))
        for words in (f"vLLM {LLAMA} 1 90 % 2 llama-3.1-8b, always busy", "acme/house-7b 1 90 % 1 requests: unknown model: give its config.json", "do not tell the load",
                      "its command line 2 2"):
            self.assertIn(words, out)

    # ---- Replicas.

    def test_the_load_of_a_replica_is_unknown_and_not_its_share(self):
        labels = {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.count": "1"}
        self.import_([product("a", 4, product="Tesla-T4-SHARED", labels=labels), *(pod(f"p{i}", "a", 1, minute=i) for i in range(4))])
        self.assertIn("gpu_milli: 250, share: anyone", self.line("default/p0", "jobs.yaml"))
        self.assertIn("gpu_util_pct: [52, 100]", self.line("default/p0", "jobs.yaml"))
        _, text, _ = run("shadow", "--cluster", self.folder / "out/cluster.yaml", "--jobs", self.folder / "out/jobs.yaml", "--log",
                         self.folder / "out/decisions.csv", "--json")
        found = json.loads(text)
        self.assertEqual(found["decisions_of_requests_alone"], 4)
        self.assertGreater(found["theirs"]["slowdown"]["mean"], 1.2)  # four on one GPU are not free

    def test_described_replicas_hold_no_more_than_their_share(self):
        labels = {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.count": "1"}
        args = self.said(["{pods: {name: 'p*'}, demand: {any: {gpu_util_pct: 20, gpu_memory_gib: 3}}}"])
        found = self.report([product("a", 4, labels=labels), *(pod(f"p{i}", "a", 1, minute=i) for i in range(4))], *args)
        self.assertEqual((found["jobs_run"], found["left_out"]), (4, []))

    def test_a_pod_that_waits_takes_a_replica_where_one_is_free(self):
        labels = {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.count": "1", "pool": "t4"}
        shared = product("t4", 4, product="Tesla-T4-SHARED", labels=labels)
        def startable(waiting, *others):
            return self.report([shared, *others, *(pod(f"p{i}", "t4", 1, minute=i) for i in range(2)), *waiting])
        # Beside whole GPUs that are taken; two replicas are free.
        whole = [product("a", 1), pod("train", "a", 1)]
        waits = [pod(f"w{i}", gpus=1, minute=20 + i) for i in range(3)]
        found = startable(waits, *whole)
        self.assertEqual((found["jobs_wait"], found["jobs_startable"], found["jobs_startable_beside"]), (3, 2, 2))
        # A whole GPU that is free comes first; the selector of a pod holds.
        found = startable(waits[:1], product("a", 1))
        self.assertEqual((found["jobs_startable"], found["jobs_startable_beside"]), (1, 0))
        found = startable([pod("w", gpus=1, nodeSelector={"pool": "t4"})], product("a", 1))
        self.assertEqual((found["jobs_startable"], found["jobs_startable_beside"]), (1, 1))
        self.assertIn("gpu_milli: 250", self.line("default/w", "waiting.yaml"))

    def test_patterns_say_what_many_pods_run(self):
        objects = [product("a"), pod("train-1", "a", 1, "vision", {"app": "resnet", "tier": "x"}, 1), pod("train-2", "a", 2, "vision", {}, 2),
                   pod("etrain-1", "a", 1, "vision-dev", {}, 3), pod("waits", None, 1, "vision", {"app": "resnet"}, 4)]
        for pods, names in (("{namespace: vision}", ("train-1", "train-2", "waits")), ("{namespace: vision*, name: 'train-?'}", ("train-1", "train-2")),
                            ("{name: '*train*1'}", ("train-1", "etrain-1")), ("{image: 'train:*'}", ("train-1", "train-2", "etrain-1", "waits")),
                            ("{image: train}", ()), ("{labels: {app: r*, tier: '*'}}", ("train-1",)), ("{labels: {app: r}}", ())):
            args = self.said([f"{{pods: {pods}, demand: {{any: {{gpu_util_pct: 40, gpu_memory_gib: 3}}}}}}"])
            found = self.described(objects, *args)
            self.assertEqual(found["pattern"][0], len(names), pods)
            self.assertEqual(found["nobody"][0], 4 - len(names), pods)
            for name in names:
                line = self.line(("vision-dev/" if name[0] == "e" else "vision/") + name, "jobs.yaml")
                self.assertIn('{"any": {"gpu_util_pct": 40, "gpu_memory_gib": 3}}', line)
                self.assertNotIn("gpu_milli", line)  # it may share

    def test_the_first_pattern_that_matches_holds(self):
        objects = [product("a"), pod("one", "a", 1, minute=1), pod("two", "a", 1, minute=2)]
        args = self.said(["{pods: {name: one}, kind: best-effort, share: anyone, demand: {any: {gpu_util_pct: 1, gpu_memory_gib: 1}}}",
                          f"{{pods: {{name: '*'}}, model: {RESNET}, batch: 32, exclusive: true}}", "{pods: {name: two}, model: llama-3.1-8b, dims: {seq: 64}}"])
        notes = self.report(objects, *args)["notes"]
        self.assertIn('kind: best-effort, share: anyone', self.line("default/one", "jobs.yaml"))
        self.assertIn(f'model: "{RESNET}", batch: 32, exclusive: true', self.line("default/two", "jobs.yaml"))
        self.assertIn(f"1 profiles are the first match of no pod with GPUs: '{self.folder / 'profiles.yaml'}:5: profiles[2]'", notes)

    def test_a_model_is_found_from_the_folder_of_the_profiles(self):
        (self.folder / "net.onnx").write_bytes(RESNET.read_bytes())
        self.import_([product("a"), pod("p", "a", 1)], *self.said(["{pods: {name: p}, model: net.onnx}"]))
        code, _, err = run("potential", "--cluster", self.folder / "out/cluster.yaml", "--jobs", self.folder / "out/jobs.yaml", cwd="/")
        self.assertEqual((code, err), (0, ""))

    def test_a_pod_that_cannot_be_what_a_pattern_says_keeps_its_requests(self):
        objects = [product("a"), pod("p", "a", 2)]
        for wrong in ("model: llama-3.1-8b, dims: {seq: 64}, kind: inference, tensor_parallel: 4", "demand: {t4: {gpu_util_pct: 40, gpu_memory_gib: 3}}"):
            found = self.report(objects, *self.said([f"{{pods: {{name: p}}, {wrong}}}"]))
            self.assertTrue(any("default/p matches with another number or type of GPUs" in note for note in found["notes"]), found["notes"])
            self.assertIn("gpu_milli: 1000", self.line("default/p", "jobs.yaml"))
        self.import_(objects, *self.said(["{pods: {name: p}, model: llama-3.1-8b, dims: {seq: 64}, kind: inference, tensor_parallel: 2}"]))
        self.assertIn("tensor_parallel: 2", self.line("default/p", "jobs.yaml"))

    def test_what_was_measured_goes_before_patterns_and_after_a_pods_own_profile(self):
        shared = {**gpu_device(0), "allowMultipleAllocations": True}
        own = pod("own", "d", resourceClaims=[{"name": "g", "resourceClaimName": "c"}], annotations={"libhorus.org/profile": "net"}, minute=3)
        part = product("s", 4, labels={"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.count": "1"})
        objects = [product("a"), node("d"), resource_slice("x", "d", [shared]), claim("c", "gpu-0", "d", memory="30Gi"), profile("net"), own, part,
                   pod("seen", "a", 1, minute=1), pod("unseen", "a", 2, minute=2), pod("part", "s", 1, minute=4), pod("odd", "s", 1, "other", minute=5)]
        seen = [measured(name, gpu_util_pct=12.5, gpu_util_pct_upper=60, mem_bw_util_pct=4, gpu_memory_mib=5000) for name in ("seen", "own", "part")]
        found = self.report(objects, *self.said(
            ["{pods: {namespace: default}, share: anyone, slowdown_bound: 2, demand: {any: {gpu_util_pct: 70, gpu_memory_gib: 3}}}"], answer(*seen)))
        self.assertEqual([(one["by"], one["jobs"], one["gpus"]) for one in found["described"]],
                         [("job_profile", 1, 1), ("measured", 1, 1), ("pattern", 2, 2.5), ("engine", 0, 0), ("nobody", 1, 0.5)])
        self.assertEqual(sum(one["gpus_pct"] for one in found["described"]), 100)
        line = self.line("default/seen", "jobs.yaml")
        self.assertIn("share: anyone, slowdown_bound: 2, demand: {a100-80gb: {gpu_util_pct: [12.5, 60], mem_bw_util_pct: [4, 4], "
                      "gpu_memory_gib: [4.8828125, 4.8828125]}}", line)
        self.assertIn("gpu_util_pct: [12.5, 20]", self.line("default/own", "jobs.yaml"))  # the JobProfile's
        self.assertIn('"gpu_util_pct": 70', self.line("default/part", "jobs.yaml"))  # the exporter saw all pods of that GPU
        self.assertTrue(any(note.startswith("1 measured pods have parts of GPUs") for note in found["notes"]), found["notes"])

    def test_a_pod_that_waits_does_what_its_siblings_were_seen_to_do(self):
        def owned(one, owner):
            one["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}]
            return one
        objects = [product("a"), owned(pod("runs", "a", 1, minute=1), "web"), owned(pod("waits", None, 1, minute=2), "web"),
                   owned(pod("other", None, 1, minute=3), "batch"), pod("alone", None, 1, minute=4),
                   owned(pod("larger", None, 2, minute=5), "web"), owned(pod("foreign", None, 1, "elsewhere", minute=6), "web")]
        found = self.described(objects, *self.said(measured=answer(measured("runs", gpu_util_pct=12.5, gpu_memory_mib=5000))))
        self.assertEqual((found["measured"], found["nobody"]), ((2, 1), (4, 0)))
        self.assertIn("gpu_util_pct: [12.5, 12.5]", self.line("default/waits", "waiting.yaml"))

    def test_a_gang_is_as_busy_as_its_busiest_pod(self):
        gang = {"scheduling.x-k8s.io/pod-group": "g"}
        objects = [product("a"), *(pod(f"p{i}", "a", 1, labels=gang, minute=1) for i in range(2))]
        self.import_(objects, *self.said(measured=answer(measured("p0", gpu_util_pct=10, gpu_memory_mib=90000),
                                                         measured("p1", gpu_util_pct=100, gpu_memory_mib=2048))))
        line = self.line("default/g", "jobs.yaml")
        self.assertIn("tasks: 2", line)
        # A card's memory less what placers keep free, and never a figure that reads as a request.
        self.assertRegex(line, r"gpu_util_pct: \[99\.9\d*, 100\], gpu_memory_gib: \[79\.51171875, 79\.51171875\]")
        _, text, _ = run("shadow", "--cluster", self.folder / "out/cluster.yaml", "--jobs", self.folder / "out/jobs.yaml", "--log",
                         self.folder / "out/decisions.csv", "--json")
        self.assertEqual((json.loads(text)["decisions_of_requests_alone"], json.loads(text)["broken_rules"]), (0, {}))

    def test_measured_pods_that_nobody_has_are_told(self):
        found = self.report([product("a"), pod("p", "a", 1)], *self.said(measured=answer(measured("exporter", gpu_util_pct=1, gpu_memory_mib=1))))
        self.assertIn("1 pods were measured, and none is among the objects: default/exporter", found["notes"])
        renamed = measured("p", "exported_", gpu_util_pct=1, gpu_memory_mib=1)
        self.assertEqual(self.described([product("a"), pod("p", "a", 1)], *self.said(measured=answer(renamed)))["measured"], (1, 1))

    def test_wrong_profiles_and_measurements_are_told_with_their_place(self):
        demand = "demand: {any: {gpu_util_pct: 40, gpu_memory_gib: 3}}"
        for pattern, parts in ((f"{{pods: {{namspace: a}}, {demand}}}", ("profiles.yaml:3: profiles[0].pods", "namespace", "'namspace'")),
                            (f"{{pods: {{}}, {demand}}}", ("profiles[0].pods: expected at least one of",)),
                            (f"{{{demand}}}", ("profiles[0]: expected key 'pods'",)),
                            ("{pods: {name: a}, model: none.onnx}", ("profiles.yaml:3: profiles[0].model: ", "none.onnx")),
                            ("{pods: {name: a}, model: llama-3.1-8b}", ("profiles.yaml:3: profiles[0].model: ", "expected a size for 'seq'")),
                            ("{pods: {name: a}, batch: 8}", ("profiles[0]: expected either 'model'", "found neither")),
                            (f"{{pods: {{name: a}}, gpus: 2, {demand}}}", ("profiles[0]", "'gpus'")),
                            ("{pods: {name: a}, demand: {any: {gpu_util_pct: 400}}}", ("profiles[0].demand",))):
            err = self.import_([product("a")], *self.said([pattern]), code=2)
            for part in parts:
                self.assertIn(part, err)
        wrong = measured("p", gpu_util_pct=140)
        for answered, parts in (({"data": {"resultType": "matrix", "result": []}}, ("measured.json: data.resultType: expected vector", "'matrix'")),
                                ([], ("data.resultType: expected vector",)), (answer(wrong), ("data.result[0].value[1]: expected per cent", "'140'")),
                                (answer(measured("", gpu_util_pct=1)), ("data.result[0].metric.pod: expected the name of a pod",)),
                                (answer(measured("p", gpu_busy=1)), ("data.result[0].metric.figure: expected gpu_util_pct", "'gpu_busy'"))):
            err = self.import_([product("a")], *self.said(measured=answered), code=2)
            for part in parts:
                self.assertIn(part, err)

    def test_the_example_of_the_docs_describes_all_but_one_job(self):
        folder = ROOT / "examples/kubernetes/import"
        found = self.described(json.loads((folder / "objects.json").read_text())["items"], "--profiles", folder / "profiles.yaml",
                               "--measured", folder / "measured.json")
        self.assertEqual(found, {"job_profile": (0, 0), "measured": (4, 4), "pattern": (5, 4), "engine": (0, 0), "nobody": (1, 1)})
        for command in ("potential", "place"):
            code, _, err = run(command, "--cluster", self.folder / "out/cluster.yaml", "--jobs", self.folder / "out/jobs.yaml")
            self.assertEqual((code, err), (0, ""), command)

    def test_claims_that_fill_a_gpu_fit_where_no_memory_is_kept_free(self):
        objects = [node("a"), resource_slice("s", "a", [{**gpu_device(0), "allowMultipleAllocations": True}])]
        for i in (1, 2):
            objects += [claim(f"c{i}", "gpu-0", "a", memory="40Gi"),
                        pod(f"p{i}", "a", resourceClaims=[{"name": "g", "resourceClaimName": f"c{i}"}], minute=i)]
        self.import_(objects)
        out, broken = self.folder / "out", {}
        for headroom in ("500", "0"):
            _, text, _ = run("shadow", "--cluster", out / "cluster.yaml", "--jobs", out / "jobs.yaml", "--log",
                             out / "decisions.csv", "--json", "--mem-headroom-mib", headroom)
            broken[headroom] = json.loads(text)["broken_rules"]
        self.assertEqual(broken, {"500": {"gpu_memory": 1}, "0": {}})

    def test_pods_by_resource_get_devices_of_slices(self):
        objects = [node("a"), resource_slice("s", "a", [gpu_device(i) for i in range(3)]), claim("c", "gpu-0", "a"),
                   pod("by-claim", "a", resourceClaims=[{"name": "g", "resourceClaimName": "c"}], minute=1),
                   pod("by-resource", "a", 1, minute=0), pod("waits", gpus=1, minute=2), claim("later", count=2),
                   pod("waits-by-claim", resourceClaims=[{"name": "g", "resourceClaimName": "later"}], minute=3),
                   claim("made", "gpu-2", "a"),  # by the scheduler, for a pod that asks for the resource
                   pod("extended", "a", 1, status={"extendedResourceClaimStatus": {"resourceClaimName": "made"}}, minute=4)]
        self.import_(objects)
        log = self.read("decisions.csv")
        for part in ("default/by-claim,a,0\n", "default/by-resource,a,1\n", "default/extended,a,2\n"):
            self.assertIn(part, log)
        self.assertIn("gpu_milli: 1000", self.line("default/waits", "waiting.yaml"))
        self.assertIn("gpus: 2, gpu_milli: 1000", self.line("default/waits-by-claim", "waiting.yaml"))

    def test_mig_devices_of_the_driver_lie_on_their_cards(self):
        def instance(i, parent, profile="1g.10gb", **more):
            return {**gpu_device(i, type="mig", profile=profile, parentUUID=parent), "name": f"gpu-{parent}-mig-{i}", **more}
        devices = [instance(0, "A"), instance(1, "B", "3g.40gb"), instance(2, "A", "2g.20gb"),
                   instance(9, "A", "7g.80gb", consumesCounters=[{"counterSet": "x"}])]  # could be, and is not
        self.import_([node("a"), resource_slice("s", "a", devices)])
        for profile in ("1g.10gb", "2g.20gb", "3g.40gb"):
            self.assertIn(f'gpus: [{{type: a100-80gb, mig: ["{profile}"]}}]', self.line(f"a/mig-{profile}"))

    def test_a_card_beside_its_instances_is_its_instances(self):
        cut = [{**gpu_device(i, type="mig", profile=profile, parentUUID="GPU-0"), "name": f"gpu-0-mig-{i}"}
               for i, profile in enumerate(("1g.10gb", "1g.10gb", "2g.20gb"))]
        cards = {"a/mig-1g.10gb": 'mig: ["1g.10gb", "1g.10gb"]', "a/mig-2g.20gb": 'mig: ["2g.20gb"]'}
        self.import_([node("a"), resource_slice("s", "a", [gpu_device(0), *cut])])
        for part, gpus in cards.items():
            self.assertIn(f"gpus: [{{type: a100-80gb, {gpus}}}]", self.line(part))
        # Whatever pool comes first.
        for pools in (("x", "y"), ("y", "x")):
            self.import_([node("a"), resource_slice("s", "a", [gpu_device(0), gpu_device(1)], pool=pools[0]),
                          resource_slice("t", "a", cut, pool=pools[1])])
            for part, gpus in {"a": None, **cards}.items():
                self.assertIn("gpus: [{type: a100-80gb" + (f", {gpus}" if gpus else "") + "}]", self.line(part))

    def test_pods_of_a_group_that_are_alike_are_one_job(self):
        group = {"scheduling.x-k8s.io/pod-group": "ring"}
        objects = [product("a"), product("b")]
        objects += [pod(f"ring-{i}", "ab"[i % 2], 4, namespace="team", labels=group, minute=i) for i in range(4)]
        objects += [pod("ring-4", None, 4, namespace="team", labels=group), pod("launcher", "a", 0, "team", group)]
        self.import_(objects)
        self.assertIn('tenant: "team", tasks: 4, gpus: 4', self.line("team/ring", "jobs.yaml"))
        self.assertNotIn("tasks", self.line("team/ring#2", "jobs.yaml"))  # waits
        self.assertIn("team/ring,a|b|a|b,0;1;2;3|0;1;2;3|4;5;6;7|4;5;6;7", self.read("decisions.csv"))
        code, _, err = run("shadow", "--cluster", self.folder / "out/cluster.yaml", "--jobs", self.folder / "out/jobs.yaml",
                           "--log", self.folder / "out/decisions.csv")
        self.assertEqual((code, err), (0, ""))

    def test_pods_that_a_scheduler_would_still_place_wait(self):
        objects = [product("a"), pod("waits", gpus=1), pod("gated", gpus=1, schedulingGates=[{"name": "kueue.x-k8s.io/admission"}]),
                   deleted(pod("deleted", gpus=1)), deleted(pod("ends", "a", 1)), pod("pulls", "a", 1, phase="Pending"),
                   pod("refused", "a", 1, phase="Failed"), pod("done", "a", 1, phase="Succeeded")]
        found = self.report(objects)
        self.assertEqual((found["jobs_wait"], found["jobs_run"], found["pods_done"]), (2, 2, 3))
        self.assertIn("1 pods that wait are held back by scheduling gates.", found["notes"])

    def test_requests_count_as_the_scheduler_counts_them(self):
        inits = [{**container("1", "1Gi"), "restartPolicy": "Always"}, container("9500m", "2Gi"), container("2", "40G")]
        objects = [product("a"), pod("p", gpus=1, initContainers=inits, overhead={"cpu": "250m", "memory": "120Mi"}),
                   pod("limits", containers=[{"name": "x", "resources": {"limits": {"cpu": "1", GPU: "1"}}}]),
                   pod("as-a-whole", gpus=1, resources={"requests": {"cpu": "7"}})]
        self.import_(objects)
        self.assertIn("cpu_cores: 10.75, memory_gib: 38.37", self.line("default/p", "jobs.yaml"))  # 9.5 + 1 + 0.25
        self.assertIn("cpu_cores: 1, memory_gib: 0", self.line("default/limits", "jobs.yaml"))
        self.assertIn("cpu_cores: 7, memory_gib: 16", self.line("default/as-a-whole", "jobs.yaml"))

    def test_what_others_use_is_taken_off_the_node(self):
        self.import_([product("a", cpu="31850m", memory="131072Mi"), pod("web", "a"), pod("idle"), pod("job", "a", 1)])
        self.assertIn("cpu_cores: 27.85, memory_gib: 112", self.line("a"))

    def test_states_and_racks_are_kept(self):
        labels = {"topology.kubernetes.io/zone": "z", "example.com/row": "7"}
        nodes = [product("up", labels=labels), product("down", ready="Unknown"), product("cordoned", cordoned=True),
                 product("nvl72", labels={**labels, "nvidia.com/gpu.clique": "7b968a6d-c8aa-45e1-9e70-e1e51be99c31.1"}),
                 product("nvswitch", labels={**labels, "nvidia.com/gpu.clique": "00000000-0000-0000-0000-000000000000.0"})]
        self.import_(nodes)
        self.assertIn('rack: "7b968a6d-c8aa-45e1-9e70-e1e51be99c31.1"', self.line("nvl72"))
        for name in ("up", "nvswitch"):  # NVLink of the latter ends at the node
            self.assertIn('rack: "z"', self.line(name))
        self.assertIn("state: down", self.line("down"))
        self.assertIn("state: drained", self.line("cordoned", "now.yaml"))
        self.assertNotIn("state", self.line("cordoned"))  # when its pods came nobody knows that it was
        self.import_(nodes, "--rack-label", "example.com/row")
        self.assertIn('rack: "7"', self.line("up"))

    def test_taints_and_affinities_close_nodes(self):
        taint = [{"key": "team", "value": "vision", "effect": "NoSchedule"}]
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["3"]}]}]}}}
        objects = [product("a", taints=taint, labels={"size": "4"}), product("b", labels={"size": "2"}),
                   pod("plain", gpus=1), pod("big", gpus=1, affinity=affinity),
                   pod("vision", gpus=1, affinity=affinity, tolerations=[{"key": "team", "operator": "Exists"}]),
                   pod("picky", gpus=1, nodeSelector={"size": "2"}, tolerations=[{"operator": "Exists"}])]
        self.import_(objects)
        _, out, _ = run("place", "--cluster", self.folder / "out/now.yaml", "--jobs", self.folder / "out/waiting.yaml", "--json")
        where = {one["job"]: [slot["node"] for slot in one["slots"]] for one in json.loads(out)["decisions"]}
        self.assertEqual(where, {"default/plain": ["b"], "default/big": [], "default/vision": ["a"], "default/picky": ["b"]})

    def test_lists_of_any_form_and_several_files_are_one_cluster(self):
        nodes = json.dumps({"kind": "NodeList", "apiVersion": "v1", "items": [
            {key: value for key, value in product("a").items() if key not in ("kind", "apiVersion")}]})
        single, two = json.dumps(product("b")), json.dumps(product("c")) + "\n" + json.dumps({"kind": "List", "items": []})
        files = [self.write(f"{i}.json", text) for i, text in enumerate((nodes, single, two))]
        code, _, err = run("import", *files, "--out", self.folder / "out")
        self.assertEqual((code, err), (0, ""))
        for name in "abc":
            self.line(name)
        done = subprocess.run([HORUS, "import", "-", "--out", self.folder / "in"], input=nodes.encode(), capture_output=True,
                              timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertIn('name: "a"', (self.folder / "in/cluster.yaml").read_text())

    def test_the_same_objects_give_the_same_bytes(self):
        written = []
        for objects in (mixed(), mixed()):
            self.import_(objects)
            written.append([self.read(name) for name in ("cluster.yaml", "jobs.yaml", "decisions.csv", "now.yaml", "waiting.yaml")])
        self.assertEqual(*written)

    def test_wrong_objects_are_named_with_place_expected_and_found(self):
        fine = product("a")
        broken = json.dumps({"items": [fine, {**product("b"), "status": {"allocatable": {"cpu": "5x"}}}]})
        for text, parts in (
                (broken, ["objects.json: items[1] (Node b): status.allocatable.cpu", "a quantity", "'5x'"]),
                (json.dumps({"items": [{**fine, "metadata": {"name": "a", "labels": {"x": 5}}}]}), ["metadata.labels.x", "text", "5"]),
                (json.dumps({"items": [{**fine, "metadata": {"name": "a|b"}}]}), ["metadata.name", "'a|b'"]),
                (json.dumps({"items": [fine, fine]}), ["items[1] (Node a)", "once"]),
                (json.dumps({"items": [fine, 5]}), ["items[1]", "an object", "5"]),
                (json.dumps({"items": [{"metadata": {}}]}), ["items[0]", "kind"]),
                (json.dumps({"items": [fine, {**pod("p"), "spec": {"containers": "no"}}]}), ["spec.containers", "a list", "'no'"]),
                (json.dumps({"items": [fine, pod("p", priority=2**40)]}), ["spec.priority", "32 bits"]),
                (json.dumps({"items": [fine]})[:-20], ["items[0]", "its end"]),
                (json.dumps({"items": [pod("p")]}), ["expected nodes"]),
                (json.dumps({"items": [node("n")]}), ["expected nodes with GPUs"]),
                ('{"items": [{"kind": "Node", "kind": "Node"}]}', ["items[0]", "once", "'kind'"]),
                ("[1]", ["an object", "a list"]), ("", ["found nothing"]), ("nodes", ["found something else"]), ("5", ["an object"])):
            err = self.import_(text, code=2)
            self.assertEqual(err.count("\n"), 1, err)
            for part in parts:
                self.assertIn(part, err)
        self.assertFalse((self.folder / "out").exists())

    def test_hostile_documents_end_soon_and_small(self):
        deep = "[" * 200_000
        for text in (deep, '{"items":' + deep, '{"items":[{"metadata":{"labels":' + '{"a":' * 100_000,
                     '{"items":[{"managedFields":' + deep, '{"items":[{"kind":"Node","metadata":{"name":"' + "x" * 20_000_000,
                     '{"items":[{"kind":"Pod","spec":' + "9" * 1_000_000, '{"items":[{"kind":"Node","status":{"x":1e999999}}]}',
                     b'{"items":[{"kind":"Node","metadata":{"name":"\xff"}}]}',
                     json.dumps({"items": [product("a", gpus=10**17)]}), json.dumps({"items": [product("a", gpus="1e30")]}),
                     json.dumps({"items": [node("a", gpus=1, annotations={"hami.io/node-nvidia-register": deep})]})):
            self.assertEqual(len(self.import_(text, code=2).splitlines()), 1)

    def test_no_text_of_an_object_commands_the_terminal(self):
        objects = [product("a"), product("b", product="x\x1b[31m"), pod("p", labels={"scheduling.x-k8s.io/pod-group": "g\x1b[1m"}, gpus=1)]
        self.assertNotIn("\x1b", self.import_(objects, code=3))
        self.assertNotIn("\x1b", self.read("jobs.yaml"))

    def test_a_name_that_looks_like_a_number_stays_text(self):
        self.import_([product("1e3", labels={"yes": "no", "n": "5"}), pod("007", "1e3", 1, namespace="true")])
        code, _, err = run("place", "--cluster", self.folder / "out/now.yaml", "--jobs", self.folder / "out/jobs.yaml")
        self.assertEqual(code, 2)  # it runs already, and waits
        self.assertIn("id", err)
        code, _, err = run("place", "--cluster", self.folder / "out/now.yaml", "--jobs", self.folder / "out/waiting.yaml")
        self.assertEqual((code, err), (0, ""))


if __name__ == "__main__":
    main()
