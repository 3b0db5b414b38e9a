# SPDX-License-Identifier: Apache-2.0
"""Input pipelines as people write them, over the same pictures: PyTorch, WebDataset, Hugging Face datasets, TensorFlow. Each function
takes the number of workers and returns an iterable of batches. Those whose framework is installed are profiled; or one by the command:
horus profile --sensitivity loaders.py:torch_files"""

import argparse
import functools
import importlib.util
import io
import os
import pathlib
import random
import statistics
import tarfile
import tempfile

from horus.profile import profile_inputs

PICTURES, SHARDS, BATCH = 400, 4, 16  # of 256 x 256


def torch_files(workers):
    from torch.utils.data import DataLoader
    return DataLoader(Files(), BATCH, shuffle=True, num_workers=workers, persistent_workers=workers > 0)


def webdataset_alone(workers):
    """One process, whatever the number of workers."""
    import webdataset
    return webdataset.WebDataset(f"{data()}/{{0..{SHARDS - 1}}}.tar", shardshuffle=False).shuffle(100).map(decoded).batched(BATCH)


def webdataset_loader(workers):
    """At least a shard a worker."""
    import webdataset
    return webdataset.WebLoader(webdataset_alone(workers), batch_size=None, num_workers=workers)


def datasets_loader(workers):
    from datasets import load_from_disk
    from torch.utils.data import DataLoader
    rows = load_from_disk(arrow()).with_transform(decoded_rows)
    return DataLoader(rows, BATCH, shuffle=True, num_workers=workers, persistent_workers=workers > 0)


def datasets_alone(workers):
    from datasets import load_from_disk
    rows = load_from_disk(arrow()).to_iterable_dataset().map(decoded_rows, batched=True, batch_size=BATCH, remove_columns=["jpg"])
    return rows.with_format("numpy").batch(BATCH)


def tensorflow_data(workers):
    import tensorflow
    files = tensorflow.data.Dataset.list_files(f"{data()}/*.jpg")
    return files.map(read_by_tensorflow, num_parallel_calls=workers).batch(BATCH).prefetch(2)


NEEDS = {torch_files: ("torch",), webdataset_alone: ("webdataset",), webdataset_loader: ("webdataset", "torch"),
         datasets_loader: ("datasets", "torch"), datasets_alone: ("datasets",), tensorflow_data: ("tensorflow",)}


class Files:
    """A dataset of files, as torch takes it."""

    def __init__(self):
        self.files = sorted(data().glob("*.jpg"))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        return pixels(self.files[index].read_bytes())


def decoded(sample):
    return pixels(sample["jpg"]), sample["__key__"]  # a batch is made of tuples


def decoded_rows(rows):
    return {"pixels": [pixels(one) for one in rows["jpg"]]}


def read_by_tensorflow(file):
    import tensorflow
    return tensorflow.image.resize(tensorflow.io.decode_jpeg(tensorflow.io.read_file(file), channels=3), (224, 224))


def pixels(jpeg):
    import numpy
    from PIL import Image
    return numpy.array(Image.open(io.BytesIO(jpeg)).resize((224, 224)))


@functools.lru_cache(None)
def data():
    """The folder with the pictures, as files and in shards; made once."""
    folder = pathlib.Path(tempfile.gettempdir(), f"horus_pictures_{os.getuid()}")
    if not folder.exists():
        from PIL import Image
        made, draw = pathlib.Path(tempfile.mkdtemp(dir=folder.parent)), random.Random(1)
        for number in range(PICTURES):
            picture = Image.frombytes("RGB", (32, 32), draw.randbytes(3 * 32 * 32)).resize((256, 256))
            picture.save(made / f"{number}.jpg", quality=90)
            with tarfile.open(made / f"{number % SHARDS}.tar", "a") as shard:
                shard.add(made / f"{number}.jpg", f"{number}.jpg")
        made.rename(folder)
    return folder


def arrow():
    """The same as a dataset on disk."""
    from datasets import Dataset
    folder = data() / "arrow"
    if not folder.exists():
        Dataset.from_dict({"jpg": [file.read_bytes() for file in data().glob("*.jpg")]}).save_to_disk(folder)
    return str(folder)


def again(found, others):
    """How far measured rates are from the medians of later profiles, the farthest first."""
    ratios = [one.rate / statistics.median(other.rate(one.cores).rate for other in others) - 1 for one in found.rates]
    return ", ".join(f"{ratio:+.0%}" for ratio in sorted(ratios, key=abs, reverse=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20, help="of each profile")
    parser.add_argument("--again", type=int, default=0, metavar="N", help="profile N times more and compare")
    asked = parser.parse_args()
    for loader, needs in NEEDS.items():
        missing = [one for one in ("PIL", *needs) if importlib.util.find_spec(one) is None]
        if missing:
            print(f"{loader.__name__}: not tried, {', '.join(missing)} missing")
            continue
        found, *others = (profile_inputs(f"{__file__}:{loader.__name__}", budget_s=asked.seconds) for _ in range(1 + asked.again))
        print(found.report())
        if others:
            print(f"beside the median of {len(others)} later profiles: {again(found, others)}")


if __name__ == "__main__":
    main()
