# SPDX-License-Identifier: Apache-2.0
"""Objects of Kubernetes as kubectl lists them, and what horus import makes of them: for tests."""

import json

from command import Files, run

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


class Imported(Files):
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
