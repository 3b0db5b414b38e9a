# SPDX-License-Identifier: Apache-2.0
"""Gives a net weights: distinct random ones, or weights that are inputs of the graph and never filled."""
import contextlib

import torch


def build_random(build):
    """Every parameter and float buffer gets distinct values, so that the exporter merges none."""
    model = build()
    with torch.no_grad():
        for tensor in list(model.parameters()) + [b for b in model.buffers() if b.is_floating_point()]:
            tensor.uniform_(0.01, 0.1)
    return model


def build_unfilled(build):
    """The net with parameters that are allocated but never written: untouched pages take no memory."""
    register = torch.nn.Module.register_parameter

    def register_on_meta(module, name, parameter):
        register(module, name, parameter)
        if parameter is not None:
            module._parameters[name] = torch.nn.Parameter(parameter.to("meta"), requires_grad=False)

    torch.nn.Module.register_parameter = register_on_meta
    try:
        model = build()
    finally:
        torch.nn.Module.register_parameter = register
    made = {}
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:  # a tied parameter stays one object
                if id(parameter) not in made:
                    made[id(parameter)] = parameter, torch.nn.Parameter(torch.empty(parameter.shape), False)
                module._parameters[name] = made[id(parameter)][1]
    return model


@contextlib.contextmanager
def uncloned():
    """The tracer clones every input, which here means every weight: 30 GB of a net of 8e9 parameters."""
    clone = torch.Tensor.clone
    torch.Tensor.clone = lambda tensor, **options: tensor
    try:
        yield
    finally:
        torch.Tensor.clone = clone


class WeightsAsInputs(torch.nn.Module):
    """Calls a net with its parameters passed after its inputs: the exporter then cannot fold or merge them."""

    def __init__(self, net):
        super().__init__()
        self.names = [name for name, _ in net.named_parameters()]
        self.weights = tuple(weight.detach() for weight in net.parameters())
        order = {id(weight): index for index, weight in enumerate(net.parameters())}
        self.places = []  # module, attribute, index of the weight
        for module in net.modules():
            self.places += [(module, name, order[id(p)]) for name, p in module._parameters.items() if p is not None]
        for module, name, _ in self.places:
            del module._parameters[name]
        self.net = net

    def forward(self, *values):
        inputs, weights = values[:-len(self.names)], values[-len(self.names):]
        for module, name, index in self.places:
            object.__setattr__(module, name, weights[index])
        return self.net(*inputs)
