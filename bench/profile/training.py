# SPDX-License-Identifier: Apache-2.0
"""Makes one training (or inference) step of a job on a device; works with PyTorch 1.13 and later."""
import contextlib
import itertools

import torch

import zoo

LEARNING_RATE = 1e-4  # small, so that random data keep the weights finite
MOMENTUM = 0.9
SEED = 1
# What libraries say when they get no memory: CUDA, cuBLAS (its handle too), cuDNN, the CPU, and the allocator of PyTorch in
# a container whose NVML it cannot ask for the reason.
OUT_OF_MEMORY = ("out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUBLAS_STATUS_NOT_INITIALIZED", "CUDNN_STATUS_ALLOC_FAILED",
                 "can't allocate memory", "NVML_SUCCESS == ")
DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "amp": torch.float16, "amp-bf16": torch.bfloat16}
PRECISIONS = ("fp32", "tf32", "amp", "amp-bf16", "fp16", "bf16")


def optimizer_of(name, parameters):
    makers = {
        "sgd": lambda: torch.optim.SGD(parameters, LEARNING_RATE),
        "momentum": lambda: torch.optim.SGD(parameters, LEARNING_RATE, momentum=MOMENTUM),
        "adam": lambda: torch.optim.Adam(parameters, LEARNING_RATE),
        "adamw": lambda: torch.optim.AdamW(parameters, LEARNING_RATE),
    }
    if name == "adafactor" and hasattr(torch.optim, "Adafactor"):
        return torch.optim.Adafactor(parameters, LEARNING_RATE)
    if name not in makers:
        raise ValueError(f"optimizer '{name}': expected one of {', '.join(makers)} (adafactor from PyTorch 2.5)")
    return makers[name]()


def scaler_of(enabled):
    """Loss scaling of float16 training; the class moved in PyTorch 2.3."""
    if hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler("cuda", enabled=enabled)
    return torch.cuda.amp.GradScaler(enabled=enabled)


def framework():
    """The word of docs/measure.md for this PyTorch."""
    return "pytorch-1" if torch.__version__.startswith("1.") else "pytorch"


def set_precision(name):
    if name not in PRECISIONS:
        raise ValueError(f"precision '{name}': expected one of {', '.join(PRECISIONS)}")
    # Behind `fp32` stands fp32 alone: PyTorch's own default lets convolutions use TF32.
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    torch.backends.cudnn.allow_tf32 = name == "tf32"


class Constants:
    """Within it, what a net computes from sizes alone (positions, tables) is made once, on the device.

    Nets of the zoo call torch.arange and the like in their forward pass, without a device; a training script would
    keep them in buffers.
    """

    NAMES = ("arange", "eye", "tensor")

    def __init__(self, device):
        self.device, self.known = device, {}
        self.originals = {name: getattr(torch, name) for name in self.NAMES}
        self.wrapped = {name: self.wrap(name) for name in self.NAMES}

    def wrap(self, name):
        make = self.originals[name]

        def made(*arguments, **options):
            if options.get("device") is not None or any(torch.is_tensor(one) for one in arguments):
                return make(*arguments, **options)
            key = name, repr(arguments), repr(sorted(options.items()))
            if key not in self.known:
                self.known[key] = make(*arguments, **{**options, "device": self.device})
            return self.known[key]

        return made

    def __enter__(self):
        for name, function in self.wrapped.items():
            setattr(torch, name, function)

    def __exit__(self, *_):
        for name, function in self.originals.items():
            setattr(torch, name, function)


def tensors(value):
    """All tensors of a nested output, in order."""
    if torch.is_tensor(value):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    return list(itertools.chain.from_iterable(tensors(one) for one in value)) if value is not None else []


class Loss:
    """Softmax cross-entropy on the first floating output, mean squares of the others: what src/features assumes."""

    def __init__(self):
        self.target = None

    def __call__(self, outputs):
        first, *others = [one for one in tensors(outputs) if one.is_floating_point()]
        if first.dim() < 2:
            first = first.reshape(-1, 1)
        logits = first if first.dim() >= 4 else first.reshape(-1, first.shape[-1])
        if self.target is None:
            shape = (logits.shape[0],) + tuple(logits.shape[2:])
            self.target = torch.randint(0, logits.shape[1], shape, device=logits.device)
        loss = torch.nn.functional.cross_entropy(logits.float(), self.target)
        for one in others:
            loss = loss + one.float().square().mean()
        return loss


def resize(dims, batch, sizes):
    """The sizes of an input: named axes take what the job says."""
    known = {"batch": batch, **sizes}
    return [one if isinstance(one, int) else known.get(one[0], one[1]) for one in dims]


def zoo_net(order):
    """(build, make inputs) of a net of the zoo; both run on the default device."""
    known, missing = zoo.definitions()
    if order["net"] not in known:
        needs = zoo.ZOO[order["net"]].needs if order["net"] in zoo.ZOO else ", ".join(missing.values())
        raise zoo.UnknownNet(f"net '{order['net']}' needs {needs}, which is not installed or does not fit")
    net = known[order["net"]]
    axes = {one[0] for given in net.inputs for one in given.dims if not isinstance(one, int)}
    strange = set(order["dims"]) - axes
    if strange:
        raise ValueError(f"net '{net.name}': expected axes of {sorted(axes)}, found {sorted(strange)}")

    def inputs():
        return tuple(torch.randint(0, one.high, resize(one.dims, order["batch"], order["dims"]))
                     if one.kind == "int" else torch.rand(resize(one.dims, order["batch"], order["dims"]))
                     for one in net.inputs)

    return net.build, inputs, None


def user_net(order):
    """FUNCTION(batch) of the user's file: (model, inputs) or (model, inputs, loss of the outputs)."""
    made = zoo.load_function(order["net"])(order["batch"])
    if not isinstance(made, (tuple, list)) or len(made) not in (2, 3) or not isinstance(made[0], torch.nn.Module):
        raise TypeError(f"{order['net']}: expected (model, inputs) or (model, inputs, loss), found {type(made).__name__}")
    model, inputs, *loss = made
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    return (lambda: model), (lambda: inputs), loss[0] if loss else None


def net_of(order):
    return user_net(order) if ":" in order["net"] else zoo_net(order)


def on_device(device):
    """Builds parameters where they will live (from PyTorch 2.0); before, they are built on the CPU and moved."""
    return device if hasattr(device, "__enter__") else contextlib.nullcontext()


class Step:
    """One step of a job, called as often as wanted; data stay on the device."""

    def __init__(self, order, device):
        torch.manual_seed(SEED)
        build, make_inputs, loss = net_of(order)
        set_precision(order["precision"])  # after the user's code, which may set its own
        self.device = device
        self.constants = contextlib.nullcontext() if ":" in order["net"] else Constants(device)
        self.training, self.loss = order["mode"] == "training", loss or Loss()
        with on_device(device):
            model, inputs = build(), make_inputs()
        whole = order["precision"] in ("fp16", "bf16")
        kind = DTYPES.get(order["precision"])
        self.model = model.to(device, kind) if whole else model.to(device)
        self.model.train(self.training)
        self.inputs = tuple(one.to(device, kind if whole and one.is_floating_point() else None) for one in inputs)
        self.cast = (lambda: torch.autocast(device.type, dtype=kind)) if order["precision"].startswith("amp") \
            else contextlib.nullcontext
        if self.training:
            self.optimizer = optimizer_of(order["optimizer"], self.model.parameters())
            self.scaler = scaler_of(order["precision"] == "amp" and device.type == "cuda")

    def __call__(self):
        if not self.training:
            with torch.no_grad(), self.cast(), self.constants:
                return self.model(*self.inputs)
        self.optimizer.zero_grad(set_to_none=True)
        with self.cast():
            with self.constants:
                outputs = self.model(*self.inputs)
            loss = self.loss(outputs)
        if self.scaler.is_enabled():
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            loss.backward()
            self.optimizer.step()
        return None


def synchronize(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def is_out_of_memory(error):
    kind = getattr(torch.cuda, "OutOfMemoryError", None)
    if kind is not None and isinstance(error, kind):
        return True
    text = str(error)
    return isinstance(error, (RuntimeError, MemoryError)) and (
        any(words in text for words in OUT_OF_MEMORY))
