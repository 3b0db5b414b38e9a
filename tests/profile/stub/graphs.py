# SPDX-License-Identifier: Apache-2.0
"""Stands for the profiler's graphs.py: a file with the net's name in it."""
import pathlib

import zoo


def export(order, path):
    zoo.load_function(order["net"])
    pathlib.Path(path).write_text(zoo.plain_name(order["net"]))
    return {"exporter": "stub", "bytes": 1}
