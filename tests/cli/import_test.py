# SPDX-License-Identifier: Apache-2.0
"""horus import. Usage: see command.py."""

import json
import re
import subprocess

from command import HORUS, check_record, main, run
from kube_objects import (
    GPU, PRODUCT, Imported, answer, claim, container, deleted, engine, gpu_device, mixed, node, pod, product,
    profile, resource_slice)


class Import(Imported):
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
