# SPDX-License-Identifier: Apache-2.0
"""Learning from one's own measurements: how right predictions are, what they become, and what sharing was seen to cost."""

import argparse

import horus

GPU = "v100-pcie-16gb"
NETS = ["resnet50", "mobilenet_v2", "densenet121", "resnet18", "vgg16"]
BATCHES = [8, 32]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", help="with the graphs of NETS: examples/models/graphs")
    parser.add_argument("library", nargs="?", help="libhorus_train.so: a predictor is trained anew as well")
    asked = parser.parse_args()
    folder = asked.folder
    # A campaign, a row a run: columns of docs/measure.md. A pandas frame (read_csv of one's own file) does as well.
    runs = {"graph": [f"{net}.onnx" for net in NETS for _ in BATCHES], "family": [net for net in NETS for _ in BATCHES],
            "gpu": [GPU] * len(NETS) * len(BATCHES), "batch": BATCHES * len(NETS)}
    # Made up: memory as predicted and a fifth more.
    predictor = horus.Predictor()
    told = predictor.predict_rows([horus.Graph.from_onnx(f"{folder}/{graph}") for graph in runs["graph"]], runs["gpu"],
                                  [horus.RunSpec(batch=batch) for batch in runs["batch"]])
    runs["mem_mib"] = told["mem_mib"] * 1.2
    print("mem_mib:", predictor.evaluate(runs, folder=folder)["mem_mib"])

    # Seen at run time: from now on these jobs are answered with what they took.
    seen = horus.Observations()
    for row, mem in zip(told, runs["mem_mib"]):
        seen.add_demand(int(row["profile_id"]), GPU, mem_mib=float(mem))
    print("mem_mib, observed:", predictor.observe(seen).evaluate(runs, folder=folder)["mem_mib"])

    # And what two of them lost beside each other.
    model = horus.InterferenceModel()
    one, other = horus.demands_of(told[:2])
    for _ in range(10):
        seen.add_slowdown(GPU, one, [other], 1.9)
    print(f"before: {model.slowdown(GPU, [one, other]).estimate[0]:.2f} times")
    print(f"after:  {model.observe(seen).slowdown(GPU, [one, other]).estimate[0]:.2f} times")

    if asked.library:
        learned = horus.Predictor.fit(runs, folder=folder, library=asked.library)
        print("mem_mib, trained:", learned.evaluate(runs, folder=folder)["mem_mib"])


if __name__ == "__main__":
    main()
