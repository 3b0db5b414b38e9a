# SPDX-License-Identifier: Apache-2.0
"""What a step of a model costs and asks of each GPU type, from its graph alone."""

import argparse

import horus


def graph_of(name):
    if not name.startswith("torchvision:"):
        return horus.Graph.from_onnx(name)
    import torch
    import torchvision

    module = getattr(torchvision.models, name.split(":", 1)[1])().train()
    return horus.Graph.from_torch(module, torch.randn(1, 3, 224, 224))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="MODEL.onnx or, where torch is installed, torchvision:resnet50")
    parser.add_argument("batch", nargs="?", type=int, default=32)
    asked = parser.parse_args()

    graph = graph_of(asked.model)
    run = horus.RunSpec(batch=asked.batch, optimizer="adam", precision="amp")
    cost = graph.cost(run)
    print(graph)
    print(f"  parameters     {cost.parameters / 1e6:10.1f} M")
    print(f"  training step  {cost.training_flops / 1e9:10.1f} GFLOP")
    print(f"  memory         {cost.peak_bytes / 2**30:10.2f} GiB, context left out")

    types = ["t4", "v100-pcie-16gb", "a100-40gb"]
    predictor = horus.Predictor()
    for name, demand in predictor.predict(graph, types, run).items():
        print(f"  {name:15} {demand.gpu_util_pct:4.0f} % busy, {demand.mem_mib / 1024:5.1f} GiB (at most "
              f"{demand.mem_mib_upper / 1024:.1f}), {demand.step_time_us / 1000:7.1f} ms a step"
              f"{', unlike the training data' if demand.outside else ''}")
    for name, found in zip(types, predictor.solve(graph, types, run.replace(batch=None))):
        print(f"  {name:15} largest batch {found.largest}")


if __name__ == "__main__":
    main()
