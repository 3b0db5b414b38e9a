# SPDX-License-Identifier: Apache-2.0
"""Which nets there are, with the runs worth making of each; needs torch only where a net is built or listed."""
import dataclasses
import difflib
import hashlib
import importlib
import importlib.util
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
# The zoo's definitions: beside this file in a packed copy, in examples/models of the repository.
ZOO_PLACES = (HERE / "zoo", HERE.parent.parent / "examples" / "models")
GROUPS = ("generative", "translation", "language", "llama", "structured", "mobile", "vision")
JOB_NAME_LENGTH = 60  # docs/measure.md


@dataclasses.dataclass(frozen=True)
class Runs:
    """What is worth running of one net: batches from small to large, its usual optimiser, sizes of other axes.

    Batch 0 is that of a net without a batch axis.
    """

    family: str
    batches: tuple
    optimizer: str
    dims: tuple = ({},)  # each a dictionary of axis and size; the first is the usual one
    needs: str = "torch"


WHOLE = (0,)  # no batch axis: a step takes the whole graph
IMAGE = (4, 16, 64, 192)
SEQ = ({"seq": 128}, {"seq": 384})
TORCHVISION = "torchvision"
# In the order in which families enter the plan: one net of each family first.
ZOO = {
    "transformer_base": Runs("translation", (4, 16, 64, 128), "adam", ({"src_seq": 64, "tgt_seq": 64},)),
    "bert_base": Runs("transformer encoder", (4, 8, 32, 64), "adamw", SEQ),
    "dcgan_generator": Runs("gan", (16, 64, 256, 1024), "adam"),
    "ddpm_cifar10": Runs("diffusion", (4, 16, 64, 128), "adam"),
    "unet": Runs("segmentation", (1, 2, 4, 8), "momentum"),
    "lstm_wikitext2": Runs("recurrent language model", (10, 40, 80, 320), "sgd", ({"seq": 35},)),
    "gru_seq2seq": Runs("recurrent translation", (8, 32, 128, 256), "adam", ({"src_seq": 32, "tgt_seq": 32},)),
    "gpt2": Runs("transformer decoder", (2, 8, 16, 32), "adamw", ({"seq": 128}, {"seq": 512})),
    "tinyllama_1b1": Runs("llama", (1, 2, 4, 8), "adamw", ({"seq": 128}, {"seq": 512})),
    "moe_expert_choice": Runs("mixture of experts", (2, 8, 16, 32), "adamw"),
    "gcn_cora": Runs("graph network", WHOLE, "adam", ({"nodes": 2708}, {"nodes": 10000}, {"nodes": 20000})),
    "multvae_ml20m": Runs("recommender", (64, 256, 1024, 4096), "adam"),
    "a3c_pong_rollout": Runs("reinforcement learning", (4, 16, 64, 128), "adam"),
    "deepspeech2": Runs("speech", (4, 16, 32, 64), "adam", ({"seq": 400}, {"seq": 1200})),
    "pointnet": Runs("point cloud", (16, 32, 128, 256), "adam"),
    "nasnet_mobile_75px": Runs("nasnet", (16, 64, 256, 512), "momentum"),
    "mobilenet_v1_75px": Runs("mobilenet", (16, 64, 256, 512), "momentum"),
    "resnet50": Runs("resnet", IMAGE, "momentum", needs=TORCHVISION),
    "vgg16": Runs("vgg", (4, 16, 32, 128), "momentum", needs=TORCHVISION),
    "alexnet": Runs("alexnet", (16, 64, 256, 1024), "momentum", needs=TORCHVISION),
    "densenet121": Runs("densenet", (4, 16, 64, 128), "momentum", needs=TORCHVISION),
    "squeezenet1_1": Runs("squeezenet", (16, 64, 256, 512), "momentum", needs=TORCHVISION),
    "shufflenet_v2_x1_0": Runs("shufflenet", (16, 64, 256, 512), "momentum", needs=TORCHVISION),
    "mnasnet1_0": Runs("mnasnet", (8, 32, 128, 256), "momentum", needs=TORCHVISION),
    "efficientnet_b0": Runs("efficientnet", (8, 32, 64, 192), "momentum", needs=TORCHVISION),
    "regnet_y_400mf": Runs("regnet", (8, 32, 128, 256), "momentum", needs=TORCHVISION),
    "convnext_tiny": Runs("convnext", (4, 16, 32, 96), "adamw", needs=TORCHVISION),
    "vit_b_16": Runs("vision transformer", (4, 16, 32, 96), "adamw", needs=TORCHVISION),
    "inception_v3": Runs("inception", (4, 16, 64, 128), "momentum", needs=TORCHVISION),
    "ssd300_vgg16": Runs("detection", (2, 4, 16, 32), "momentum", needs=TORCHVISION),
    "r3d_18": Runs("video", (1, 4, 8, 24), "momentum", needs=TORCHVISION),
    # Second members of the families.
    "bert_small": Runs("transformer encoder", (8, 32, 128, 256), "adamw", SEQ),
    "bert_tiny": Runs("transformer encoder", (16, 64, 256, 1024), "adamw", SEQ),
    "dcgan_discriminator": Runs("gan", (16, 64, 256, 1024), "adam"),
    "cyclegan": Runs("gan", (1, 2, 4, 8), "adam"),
    "transformer_multi30k": Runs("translation", (16, 64, 128, 256), "adam", ({"src_seq": 32, "tgt_seq": 32},)),
    "graphsage_arxiv": Runs("graph network", WHOLE, "adam", ({"nodes": 16384, "edges": 114688},
                                                          {"nodes": 65536, "edges": 458752},
                                                          {"nodes": 169343, "edges": 1166243})),
    "autoencoder_ml20m": Runs("recommender", (512, 1024, 2048, 8192), "adam"),
    "dlrm_criteo": Runs("recommender", (128, 512, 2048, 8192), "sgd"),
    "dqn_atari": Runs("reinforcement learning", (32, 128, 512, 2048), "adam"),
    "wav2vec2_base": Runs("speech", (2, 8, 16, 32), "adamw", ({"seq": 16000}, {"seq": 64000})),
    "moe_top2_dense": Runs("mixture of experts", (2, 8, 16, 32), "adamw", ({"seq": 128},)),
    "resnet18": Runs("resnet", (8, 32, 128, 512), "momentum", needs=TORCHVISION),
    "resnet18_cifar": Runs("resnet", (16, 64, 256, 1024), "momentum", needs=TORCHVISION),
    "mobilenet_v2": Runs("mobilenet", (8, 32, 64, 192), "momentum", needs=TORCHVISION),
    "mobilenet_v3_large": Runs("mobilenet", (8, 32, 128, 256), "momentum", needs=TORCHVISION),
    "deeplabv3_resnet50": Runs("segmentation", (2, 4, 8, 16), "momentum", needs=TORCHVISION),
    "swin_t": Runs("vision transformer", (4, 16, 32, 96), "adamw", needs=TORCHVISION),
}


class UnknownNet(ValueError):
    """A net that neither the zoo nor the user's files have."""


def zoo_folder():
    """The folder with nets/ and graphs/."""
    for place in ZOO_PLACES:
        if (place / "nets" / "spec.py").exists():
            return place
    raise FileNotFoundError("the zoo's nets: expected in " + " or ".join(str(place) for place in ZOO_PLACES)
                            + "; `horus-profile pack DIR` makes a copy of this folder that has them")


def definitions():
    """Net name -> definition, of every group whose packages are there; the other groups with the missing package."""
    folder = str(zoo_folder())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    found, missing = {}, {}
    for group in GROUPS:
        try:
            for net in importlib.import_module("nets." + group).nets():
                found[net.name] = net
        except ModuleNotFoundError as error:
            missing[group] = error.name
        except Exception as error:  # a package that does not fit this PyTorch raises what it likes
            missing[group] = f"{needs_of(group)} ({type(error).__name__}: {first_line(error)})"
    return found, missing


def needs_of(group):
    return TORCHVISION if group == "vision" else "torch"


def first_line(error):
    return (str(error).strip().splitlines() or [""])[0][:200]


def choose(names, runs, folder):
    """The runs of the nets asked for (all of the zoo when none is); FILE.py:FUNCTION and MODULE:FUNCTION are the user's."""
    if not names:
        return dict(ZOO)
    chosen = {}
    for name in names:
        if ":" in name:
            chosen[own_net(name, folder)] = runs
        elif name in ZOO:
            chosen[name] = ZOO[name]
        else:
            near = difflib.get_close_matches(name, ZOO, 3)
            raise UnknownNet(f"net '{name}': expected FILE.py:FUNCTION, MODULE:FUNCTION or a net of the zoo"
                             + (f" (did you mean {', '.join(near)}?)" if near else "")
                             + "; `horus-profile nets` lists them")
    return chosen


def own_net(name, folder):
    """The user's net, its file with the whole path; where it is not there, UnknownNet."""
    file, function = name.rsplit(":", 1)
    if not file.endswith(".py"):
        module = file.split(".")[0]
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
        if importlib.util.find_spec(module) is None:
            raise UnknownNet(f"net '{name}': no module {module}, neither in {folder} nor installed")
        return name
    path = folder / file  # the file alone where it is absolute
    if not path.is_file():
        raise UnknownNet(f"net '{name}': no file {path}")
    return f"{path}:{function}"


def plain_name(net):
    """A zoo net's name; of a user's net the function."""
    return net.rsplit(":", 1)[1] if ":" in net else net


@dataclasses.dataclass(frozen=True)
class Job:
    """One thing to run: what a row of a dataset describes, but for the GPU."""

    net: str
    family: str
    batch: int
    dims: tuple  # ((axis, size), ...)
    precision: str = "fp32"
    optimizer: str = "sgd"
    mode: str = "training"

    @property
    def dims_text(self):
        return ";".join(f"{axis}={size}" for axis, size in self.dims)

    @property
    def name(self):
        """The job's name in tables of pairs: short, unique, printable ASCII."""
        parts = [plain_name(self.net), *([f"b{self.batch}"] if self.batch else []), *(f"{axis[0]}{size}" for axis, size in self.dims),
                 self.precision, self.optimizer if self.mode == "training" else self.mode]
        text = "-".join(parts)
        if len(text) <= JOB_NAME_LENGTH and ":" not in self.net:
            return text
        return text[:JOB_NAME_LENGTH - 9] + "-" + hashlib.sha256(repr(self).encode()).hexdigest()[:8]

    def order(self):
        """As a worker reads it."""
        return {**dataclasses.asdict(self), "dims": dict(self.dims), "name": self.name}


def load_function(net):
    """The function that FILE.py:FUNCTION or MODULE:FUNCTION names."""
    file, function = net.rsplit(":", 1)
    path = pathlib.Path(file)
    if path.suffix == ".py":
        sys.path.insert(0, str(path.parent))
        own = f"own_{path.stem}"  # a name that none of this folder has
        spec = importlib.util.spec_from_file_location(own, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[own] = module
        spec.loader.exec_module(module)
    else:
        sys.path.insert(0, os.getcwd())
        module = importlib.import_module(file)
    if not callable(getattr(module, function, None)):
        raise UnknownNet(f"{file}: no function '{function}'")
    return getattr(module, function)
