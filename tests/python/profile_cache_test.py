# SPDX-License-Identifier: Apache-2.0
"""The memory model of input pipelines beside a real page cache: a dataset that is read again and again in a control group whose memory
does not hold it. Bytes that came from the disk are counted; no time is. Needs the right to make a memory control group."""

import os
import pathlib
import subprocess
import sys

import pytest

profile = pytest.importorskip("horus.profile")

MIB = 1 << 20
FILES = 200  # of 1 MiB
EPOCHS = 6
READER = """
import os, pathlib, random, sys
file, group, order, files, epochs = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
(group / "cgroup.procs").write_text(str(os.getpid()))
opened, buffer, draw, places = os.open(file, os.O_RDONLY), bytearray(1 << 20), random.Random(1), list(range(files))
os.posix_fadvise(opened, 0, 0, os.POSIX_FADV_RANDOM)
for _ in range(epochs):
    if order == "shuffled":
        draw.shuffle(places)
    before = [int(line.split()[1]) for line in open("/proc/self/io") if line.startswith("read_bytes")][0]
    for place in places:
        os.preadv(opened, [buffer], place << 20)
    after = [int(line.split()[1]) for line in open("/proc/self/io") if line.startswith("read_bytes")][0]
    print((after - before) / (files << 20))
"""


def group_with(limit_mib):
    """A new memory control group below ours (version 2) or below the root (version 1); None where none can be made."""
    own = [line.split(":", 2) for line in pathlib.Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()]
    places = [(pathlib.Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
              *((pathlib.Path("/sys/fs/cgroup" + path), "memory.max") for _, names, path in own if names == ""),
              (pathlib.Path("/sys/fs/cgroup"), "memory.max")]
    for parent, name in places:
        group = parent / f"horus_profile_{os.getpid()}"
        try:
            group.mkdir()
            (group / name).write_text(str(limit_mib * MIB), encoding="ascii")
            return group
        except OSError:
            if group.is_dir():
                group.rmdir()
    return None


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    file = tmp_path_factory.mktemp("dataset") / "files"
    block = os.urandom(MIB)
    with file.open("wb") as out:
        for _ in range(FILES):
            out.write(block)
        out.flush()
        os.fsync(out.fileno())
    yield file
    file.unlink()


def misses(dataset, limit_mib, order):
    """The share of each epoch that came from the disk."""
    with dataset.open("rb") as opened:
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    group = group_with(limit_mib)
    if group is None:
        pytest.skip("no memory control group can be made here: the memory model is not checked against a page cache")
    try:
        done = subprocess.run([sys.executable, "-c", READER, str(dataset), str(group), order, str(FILES), str(EPOCHS)],
                              capture_output=True, text=True, check=True)
    finally:
        group.rmdir()
    found = [float(line) for line in done.stdout.split()]
    if found[0] < 0.9:
        pytest.skip(f"the first epoch read {found[0]:.0%} from the disk: the page cache cannot be emptied here, or is not counted")
    return found[1:]


def modelled(limit_mib, cache):
    return 1 - profile.InputStorage(FILES, 100, (1,), 1, 1, cache=cache).hits(limit_mib)


def test_read_in_order_nothing_comes_from_a_cache_that_does_not_hold_all(dataset):
    assert modelled(100, "lru-sequential") == 1 and min(misses(dataset, 100, "in order")) > 0.9


def test_shuffled_far_less_than_the_cached_part_comes_from_it(dataset):
    found = misses(dataset, 100, "shuffled")
    mean = sum(found) / len(found)
    assert mean == pytest.approx(modelled(100, "lru-shuffled"), abs=0.2) and mean > modelled(100, "fixed") + 0.1, found


@pytest.mark.parametrize(("order", "cache"), [("in order", "lru-sequential"), ("shuffled", "lru-shuffled"), ("shuffled", "fixed")])
def test_everything_comes_from_a_cache_that_holds_all(dataset, order, cache):
    assert modelled(FILES + 100, cache) == 0 and max(misses(dataset, FILES + 100, order)) < 0.05
