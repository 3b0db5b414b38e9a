# SPDX-License-Identifier: Apache-2.0
"""Exports one net of timm for measured.py, and says its parameters and nodes on the last line.

Usage: measured_one.py NET IMAGE_SIZE FAMILY FILE SECONDS BYTES     limits of processor time and of memory
"""
import io
import json
import pathlib
import resource
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "examples" / "models"))  # weightless.py, nets/

OPSET = 17  # the first that writes a layer normalisation as one operator, which is what ran
BATCH = 2   # of the trace; the graph leaves it open


def build(name, size, filled=False):
    """The net, its weights allocated and never written where its constructor lets them be, unless `filled`."""
    import timm
    from nets import storage
    settings = {}
    default = timm.models.get_pretrained_cfg(name)
    if default is not None and default.fixed_input_size and default.input_size[-1] != size:
        settings["img_size"] = size
    create = lambda: timm.create_model(name, pretrained=False, exportable=True, **settings)
    try:
        return create().eval() if filled else storage.build_unfilled(create).eval()
    except (RuntimeError, NotImplementedError):  # some compute with their weights, or run a part, to find a size
        return create().eval()


def trace(model, size):
    """The exporter's model: weights are inputs, nothing is folded."""
    import onnx
    import torch

    class Whole(torch.nn.Module):
        """Marked as training while the net in it is not: the exporter then merges tensors by address, not by value."""

        def __init__(self):
            super().__init__()
            self.net = model
            self.training = True

        def forward(self, image):
            return self.net(image)

    buffer = io.BytesIO()
    torch.onnx.export(Whole(), (torch.zeros(BATCH, 3, size, size),), buffer, opset_version=OPSET,
                      training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False,
                      export_params=False, keep_initializers_as_inputs=True,
                      input_names=["image"], output_names=["classes"],
                      dynamic_axes={"image": {0: "batch"}, "classes": {0: "batch"}})
    return onnx.load_from_string(buffer.getvalue())


def finish(graph_model, metadata):
    """Weights become initialisers without payload, under the names that they have in the net."""
    import weightless
    graph = graph_model.graph
    own = lambda name: name.removeprefix("net.")
    for value in [value for value in graph.input if value.name != "image"]:
        kind = value.type.tensor_type
        dims = [dim.dim_value for dim in kind.shape.dim]
        graph.initializer.add(name=own(value.name), data_type=kind.elem_type, dims=dims)
        graph.input.remove(value)
    for node in graph.node:
        node.input[:] = map(own, node.input)
    weightless.strip_model(graph_model)
    if not any(attribute.HasField("g") for node in graph.node for attribute in node.attribute):
        weightless.shorten(graph)
    del graph_model.metadata_props[:]
    for key, value in metadata.items():
        graph_model.metadata_props.add(key="horus." + key, value=value)


def export(name, size, family, path):
    import timm
    import torch
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    model = build(name, size)
    try:
        graph_model = trace(model, size)
    except RuntimeError:  # a table that the constructor computes and keeps beside the weights was never filled
        model = build(name, size, filled=True)
        graph_model = trace(model, size)
    finish(graph_model, {"net": name, "family": family, "source": f"timm {timm.__version__}", "weights": "stripped"})
    partial = path.with_suffix(".part")
    partial.write_bytes(graph_model.SerializeToString(deterministic=True))
    partial.replace(path)
    named = {name for name, _ in model.named_parameters()}
    held = {tensor.name: torch.Size(tensor.dims).numel() for tensor in graph_model.graph.initializer}
    parameters = sum(count for name, count in held.items() if name in named)
    return dict(parameters=parameters, nodes=len(graph_model.graph.node))


def main():
    name, size, family, file, seconds, limit = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
    resource.setrlimit(resource.RLIMIT_DATA, (int(limit), int(limit)))
    try:
        print(json.dumps(export(name, int(size), family, pathlib.Path(file))))
    except Exception as error:  # exporters raise whatever a net brings out in them
        print(f"{type(error).__name__}: {error}".replace("\n", " ")[:300])
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
