# SPDX-License-Identifier: Apache-2.0
"""Learning from one's own measurements: how right predictions are, what they become, and what sharing was seen to cost.

Usage: learn.py FOLDER_OF_GRAPHS [LIBHORUS_TRAIN.SO]     with the training library a predictor is trained anew as well
"""

import pathlib
import sys

import numpy as np

import horus

GPU = "v100-pcie-16gb"
NETS = ["resnet50", "mobilenet_v2", "densenet121", "resnet18", "vgg16"]


def main():
    folder = pathlib.Path(sys.argv[1])
    graphs = [horus.Graph.from_onnx(folder / f"{net}.onnx") for net in NETS for _ in (8, 32)]
    runs = [horus.RunSpec(batch=batch) for _ in NETS for batch in (8, 32)]
    families = [net for net in NETS for _ in (8, 32)]
    types = [GPU] * len(graphs)

    # A made-up campaign: memory as predicted and a fifth more.
    predictor = horus.Predictor()
    told = predictor.predict_rows(graphs, types, runs)
    memory = told["mem_mib"] * 1.2
    print("mem_mib:", predictor.evaluate(graphs, types, runs, mem_mib=memory)["mem_mib"])

    # Seen at run time: from now on these jobs are answered with what they took.
    seen = horus.Observations()
    for row, mem in zip(told, memory):
        seen.add_demand(int(row["profile_id"]), GPU, mem_mib=float(mem))
    print("mem_mib, observed:", predictor.observe(seen).evaluate(graphs, types, runs, mem_mib=memory)["mem_mib"])

    # And what two of them lost beside each other.
    model = horus.InterferenceModel()
    one, other = horus.demands_of(told[:2])
    for _ in range(10):
        seen.add_slowdown(GPU, one, [other], 1.9)
    print(f"before: {model.slowdown(GPU, [one, other]).estimate[0]:.2f} times")
    print(f"after:  {model.observe(seen).slowdown(GPU, [one, other]).estimate[0]:.2f} times")

    if len(sys.argv) > 2:
        learned = horus.Predictor.fit(graphs, types, families, runs, mem_mib=np.asarray(memory), library=sys.argv[2])
        print("mem_mib, trained:", learned.evaluate(graphs, types, runs, mem_mib=memory)["mem_mib"])


if __name__ == "__main__":
    main()
