# SPDX-License-Identifier: Apache-2.0
"""The built horus command for the tests beside this file: run it, read its JSON's keys, write it small files.

Each test is called as: <command>_test.py HORUS_BINARY REPOSITORY_ROOT [unittest arguments]
"""

import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest

HORUS = pathlib.Path(sys.argv[1])
ROOT = pathlib.Path(sys.argv[2])
RESNET = ROOT / "examples/models/graphs/resnet50.onnx"


def field(number, value):
    """A protobuf field: a varint below 2^14, or bytes."""
    def varint(n):
        return bytes([n]) if n < 128 else bytes([n & 127 | 128, n >> 7])
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def unknown_model():
    """An ONNX model of two operators that nobody knows, between 64 x 64 floats."""
    def value(name):
        shape = field(1, field(1, 64)) * 2
        return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))

    def node(x, y):
        return field(1, field(1, x) + field(2, y) + field(4, "Mystery") + field(7, "my"))

    graph = node("x", "y") + node("y", "z") + field(2, "g") + field(11, value("x")) + field(12, value("z"))
    return field(1, 8) + field(7, graph) + field(8, field(2, 17)) + field(8, field(1, "my") + field(2, 1))


# Objects whose keys are the user's, not ours.
FREE_KEYS = {"run.dims", "decisions[].refused_devices", "broken_rules", "cluster.gpus", "cluster.nodes[].gpus"}


def run(*args, cwd=None):
    done = subprocess.run([HORUS, *map(str, args)], capture_output=True, cwd=cwd, timeout=120, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace")


def keys_of(value, path=""):
    """Every key path below `value`; list positions are written []."""
    if isinstance(value, list):
        return set().union(*(keys_of(item, path + "[]") for item in value)) if value else set()
    if not isinstance(value, dict):
        return set()
    found = set()
    for key, below in value.items():
        here = f"{path}.{key}" if path else key
        found.add(here)
        if here not in FREE_KEYS:
            found |= keys_of(below, here)
    return found


class Files(unittest.TestCase):
    """A folder of small files for each test."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def check_golden(self, name, document):
        """The keys are stable: they are only added to, and the list here grows with them."""
        golden = (ROOT / "tests/cli" / name).read_text().split()
        self.assertEqual(sorted(keys_of(document)), sorted(golden))


def check_record(test, document, *words):
    """It says what made it, and of which source."""
    test.assertEqual(document["horus"], run("--version")[1].split()[1])
    test.assertRegex(document["revision"], r"^([0-9a-f]{12}(-dirty)?|unknown|[\w.+-]+)$")
    command = shlex.split(document["command"])
    test.assertEqual(command[:1 + len(words)], [str(HORUS), *map(str, words)])


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
