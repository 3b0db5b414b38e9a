# SPDX-License-Identifier: Apache-2.0
"""The nets of the zoo, one module a family group."""
import importlib

GROUPS = ("vision", "mobile", "generative", "translation", "language", "llama", "decoders", "multimodal", "latent",
          "structured")


def all_nets():
    """Every net, in the order of the groups; names are unique."""
    found = {}
    for group in GROUPS:
        for net in importlib.import_module("nets." + group).nets():
            if net.name in found:
                raise ValueError(f"net {net.name} is defined twice")
            found[net.name] = net
    return found
