# SPDX-License-Identifier: Apache-2.0
"""Input pipelines of different nature for sensitivity.py, of the standard library alone: `LOADERS` by name, each a function of the workers.

As in the loaders of frameworks, worker processes make batches and the main process takes them from a bounded queue. What differs is
what a batch costs and where: in workers or in the main process, in C or in Python, in the processor or in the kernel.
"""
import array
import gzip
import io
import multiprocessing
import os
import pathlib
import random
import tarfile
import tempfile
import zlib
from concurrent.futures import ThreadPoolExecutor

PREFETCH = 2  # batches a worker, as in PyTorch
WORDS = [f"word{i}" for i in range(2_000)]
DRAW = random.Random(1)
TEXT = " ".join(DRAW.choices(WORDS, k=4_000))
IMAGE = zlib.compress(bytes(DRAW.choices(range(64), k=150_528)))  # 224 x 224 x 3, of low entropy as pictures are
SMALL_FILES, SMALL_BYTES = 400, 20_000


def _work(make, queue, seed):
    draw = random.Random(seed)
    while True:
        queue.put(make(draw))


class Workers:
    """Batches of endless worker processes."""

    def __init__(self, workers, make, collate=None):
        self._workers, self._make, self._collate = workers, make, collate

    def __iter__(self):
        context = multiprocessing.get_context("fork")
        queue = context.Queue(PREFETCH * self._workers)
        for seed in range(self._workers):
            context.Process(target=_work, args=(self._make, queue, seed), daemon=True).start()
        while True:
            batch = queue.get()
            yield self._collate(batch) if self._collate else batch


def _decoded(draw):
    """A picture, decompressed, flipped and cropped."""
    pixels = zlib.decompress(IMAGE)
    if draw.random() < 0.5:
        pixels = pixels[::-1]
    row, column = draw.randrange(24), draw.randrange(24)
    return b"".join(pixels[672 * (row + y) + 3 * column:672 * (row + y) + 3 * column + 600] for y in range(200))


def decode(workers):
    return Workers(workers, lambda draw: b"".join(_decoded(draw) for _ in range(8)))


def tokenise(workers):
    """Words become numbers, in Python."""
    known = {word: number for number, word in enumerate(WORDS)}

    def make(draw):
        return array.array("i", [known[word] for word in TEXT.split()[draw.randrange(100):]] * 4)
    return Workers(workers, make)


def augment(workers):
    """Tables of brightness over large arrays: memory-bound work in C."""
    pixels = bytes(1 << 20)

    def make(draw):
        return pixels.translate(bytes(min(255, i + draw.randrange(9)) for i in range(256)))[::-1][:1 << 16]
    return Workers(workers, make)


def small_files(workers):
    """Many small files, found in the page cache."""
    folder = pathlib.Path(tempfile.gettempdir()) / "horus_bench_files"
    folder.mkdir(exist_ok=True)
    for number in range(SMALL_FILES):
        file = folder / str(number)
        if not file.exists():
            file.write_bytes(os.urandom(SMALL_BYTES))

    def make(draw):
        return [zlib.crc32((folder / str(draw.randrange(SMALL_FILES))).read_bytes()) for _ in range(64)]
    return Workers(workers, make)


def shards(workers):
    """A compressed archive of samples, read in order."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as out:
        for number in range(40):
            info = tarfile.TarInfo(f"{number}.txt")
            info.size = len(TEXT)
            out.addfile(info, io.BytesIO(TEXT.encode()))
    packed = gzip.compress(made.getvalue())

    def make(draw):
        with tarfile.open(fileobj=io.BytesIO(gzip.decompress(packed))) as shard:
            return [len(shard.extractfile(member).read()) for member in shard]
    return Workers(workers, make)


def collating(workers):
    """Workers do most; the main process puts each batch together, and nobody helps it."""
    return Workers(workers, lambda draw: [_decoded(draw) for _ in range(4)], lambda batch: zlib.crc32(b"".join(batch * 20)))


def threads(workers):
    """Threads that decompress without the interpreter's lock, and a main thread that needs it."""
    with ThreadPoolExecutor(workers) as pool:
        waiting = [pool.submit(zlib.decompress, IMAGE) for _ in range(4 * workers)]
        while True:
            batch = []
            for _ in range(8):
                batch.append(waiting.pop(0).result())
                waiting.append(pool.submit(zlib.decompress, IMAGE))
            yield sum(batch[0][:2_000])


LOADERS = {one.__name__: one for one in (decode, tokenise, augment, small_files, shards, collating, threads)}
