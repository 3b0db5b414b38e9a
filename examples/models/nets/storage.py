# SPDX-License-Identifier: Apache-2.0
"""Gives a net weights: distinct random ones, or ones that take no memory at all."""
import torch


def build_random(build):
    """Every parameter and float buffer gets distinct values, so that the exporter merges none."""
    model = build()
    with torch.no_grad():
        for tensor in list(model.parameters()) + [b for b in model.buffers() if b.is_floating_point()]:
            tensor.uniform_(0.01, 0.1)
    return model


def build_without_storage(build):
    """Parameters become views of one zero: their shapes are real, their storage is four bytes each."""
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
    views = {}
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:  # a tied parameter stays one object
                view = views.setdefault(id(parameter), torch.nn.Parameter(
                    torch.zeros(1).expand(parameter.shape), requires_grad=False))
                module._parameters[name] = view
                views[id(view)] = view
    return model
