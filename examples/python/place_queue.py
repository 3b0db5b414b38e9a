# SPDX-License-Identifier: Apache-2.0
"""Where a morning's queue should go: graphs to demands, demands to a plan, the plan onto the cluster, and why.

Usage: place_queue.py FOLDER_OF_GRAPHS
"""

import pathlib
import sys

import horus

QUEUE = [  # name, graph, run
    ("vision", "resnet50.onnx", horus.RunSpec(batch=64, optimizer="momentum", precision="amp")),
    ("words", "bert_base.onnx", horus.RunSpec(batch=16, optimizer="adamw", precision="amp", dims={"seq": 128})),
    ("sweep-a", "mobilenet_v2.onnx", horus.RunSpec(batch=32)),
    ("sweep-b", "mobilenet_v2.onnx", horus.RunSpec(batch=32)),
    ("too-large", "vgg16.onnx", horus.RunSpec(batch=2048, optimizer="adam")),
]
TYPES = ["a100-40gb", "t4"]


def main():
    folder = pathlib.Path(sys.argv[1])
    cluster = horus.Cluster([
        horus.Node(id=1, name="large", cpu_milli=64_000, mem_mib=524_288,
                   devices=[horus.Device("a100-40gb", sharing_mode="mps", nvlink_island=0)] * 2),
        horus.Node(id=2, name="small", cpu_milli=16_000, mem_mib=65_536, devices=[horus.Device("t4")] * 2),
    ])
    predictor = horus.Predictor()
    jobs = [
        horus.Job(id=number, name=name, cpu_milli=4_000, mem_mib=16_384, submit_us=number,
                  demands=predictor.predict(horus.Graph.from_onnx(folder / graph), TYPES, run))
        for number, (name, graph, run) in enumerate(QUEUE, 1)
    ]
    placer = horus.Placer("horus", slowdown_bound=1.5)
    plan = placer.place(cluster, jobs)
    names = {job.id: job.name for job in jobs}
    for decision in plan:  # a refusal is a decision like any other
        print(f"{names[decision.job]:10} {decision.verdict:7} {decision.text}")
    cluster.apply(plan)
    print(cluster)

    with cluster.what_if() as copy:  # would it fit without the first?
        copy.release(1)
        print("without vision:", placer.place(copy, jobs[0].replace(id=99)))
    print(placer.explain(cluster, jobs[-1]))


if __name__ == "__main__":
    main()
