#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Records what PyTorch allocates in training steps on a CPU and replays it against the rules of its CUDA allocator.

  record_allocations.py NET... > tests/unit/features/pytorch_allocations.csv

For each torchvision net: three steps (SGD with momentum, gradients kept between steps), logged for 2 and 4 images. The
sequences are the same but for sizes, which are linear in the batch, so they tell those of any batch. Convolutions only
allocate (their results' values do not matter), since their scratch on a CPU is not that on a GPU. No GPU is needed.
"""
import bisect
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BATCHES = (8, 32)
RECORDED = (2, 4)
STEPS = 3
KIB, MIB = 1 << 10, 1 << 20
# Options with which the zoo's graphs were exported.
OPTIONS = {"googlenet": {"aux_logits": False, "init_weights": False},
           "inception_v3": {"aux_logits": False, "init_weights": False},
           "efficientnet_b0": {"stochastic_depth_prob": 0.0},
           "convnext_tiny": {"stochastic_depth_prob": 0.0},
           "swin_t": {"stochastic_depth_prob": 0.0}}
EDGE = {"inception_v3": 299}


class Allocator:
    """c10/cuda/CUDACachingAllocator.cpp, restated: see src/features/allocator.h for the same rules in C++."""

    def __init__(self):
        self.sizes, self.before, self.after, self.free, self.small = [], [], [], [], []
        self.pools = {True: [], False: []}
        self.used = self.peak = self.reserved = 0

    def _add(self, size, before, after, small):
        for column, value in ((self.sizes, size), (self.before, before), (self.after, after), (self.free, True),
                              (self.small, small)):
            column.append(value)
        return len(self.sizes) - 1

    def take(self, size):
        size = -(-size // 512) * 512
        small = size <= MIB
        pool = self.pools[small]
        at = bisect.bisect_left(pool, (size, -1))
        if at < len(pool):
            block = pool.pop(at)[1]
        else:
            segment = 2 * MIB if small else 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
            self.reserved += segment
            block = self._add(segment, None, None, small)
        rest = self.sizes[block] - size
        if rest >= 512 if small else rest > MIB:
            tail = self._add(rest, block, self.after[block], small)
            if self.after[block] is not None:
                self.before[self.after[block]] = tail
            self.after[block], self.sizes[block] = tail, size
            bisect.insort(pool, (rest, tail))
        self.free[block] = False
        self.used += self.sizes[block]
        self.peak = max(self.peak, self.used)
        return block

    def give(self, block):
        self.used -= self.sizes[block]
        if self.after[block] is not None and self.free[self.after[block]]:
            self._merge(block, self.after[block])
        if self.before[block] is not None and self.free[self.before[block]]:
            left = self.before[block]
            self._unpool(left)
            self._merge(left, block, pooled=False)
            block = left
        self.free[block] = True
        bisect.insort(self.pools[self.small[block]], (self.sizes[block], block))

    def _merge(self, left, right, pooled=True):
        if pooled:
            self._unpool(right)
        self.sizes[left] += self.sizes[right]
        self.after[left] = self.after[right]
        if self.after[left] is not None:
            self.before[self.after[left]] = left

    def _unpool(self, block):
        pool = self.pools[self.small[block]]
        pool.remove((self.sizes[block], block))


def train(net, batch, log):
    import torch
    import torchvision

    class Convolution(torch.autograd.Function):
        @staticmethod
        def forward(context, x, weight, bias, stride, padding, dilation):
            context.save_for_backward(x, weight)
            context.has_bias = bias is not None
            sizes = [(edge + 2 * p - d * (k - 1) - 1) // s + 1
                     for edge, k, s, p, d in zip(x.shape[2:], weight.shape[2:], stride, padding, dilation)]
            return torch.empty(x.shape[0], weight.shape[0], *sizes)

        @staticmethod
        def backward(context, gradient):
            x, weight = context.saved_tensors
            of_x = torch.empty_like(x) if context.needs_input_grad[0] else None
            of_weight = torch.empty_like(weight)
            of_bias = torch.empty(weight.shape[0]) if context.has_bias else None
            return of_x, of_weight, of_bias, None, None, None

    torch.set_num_threads(1)
    torch.nn.Conv2d.forward = lambda self, x: Convolution.apply(x, self.weight, self.bias, self.stride, self.padding,
                                                                self.dilation)
    logger = ctypes.CDLL(os.environ["LD_PRELOAD"])
    made = getattr(torchvision.models, net)(**OPTIONS.get(net, {}))
    values = made.state_dict()
    logger.log_start(log.encode())
    model = getattr(torchvision.models, net)(**OPTIONS.get(net, {}))
    model.load_state_dict(values)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()
    edge = EDGE.get(net, 224)
    for _ in range(STEPS):
        images = torch.empty(batch, 3, edge, edge).fill_(0.5)
        labels = torch.zeros(batch, dtype=torch.long)
        output = model(images)
        loss = loss_of(output, labels)
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
    logger.log_stop()
    print(torch.__version__, torchvision.__version__, file=sys.stderr)


def events(log):
    """[(number, size)], size None for a release, in order."""
    live, found, count = {}, [], 0
    for line in log.read_text().splitlines():
        kind, address, size = line.split()
        if kind == "take":
            live[address] = count
            found.append((count, int(size)))
            count += 1
        elif kind == "other":
            live.pop(address, None)
        elif address in live:
            found.append((live.pop(address), None))
    return found


def replay(fewer, more, batch):
    allocator, blocks = Allocator(), {}
    for (number, size), (other, larger) in zip(fewer, more):
        assert number == other
        if size is None:
            allocator.give(blocks.pop(number))
        elif size > 0:
            slope = (larger - size) // (RECORDED[1] - RECORDED[0])
            blocks[number] = allocator.take(size + slope * (batch - RECORDED[0]))
    return allocator.peak, allocator.reserved


def main():
    if len(sys.argv) == 5 and sys.argv[1] == "--train":
        train(sys.argv[2], int(sys.argv[3]), sys.argv[4])
        return
    print("net,batch,peak_bytes,reserved_bytes")
    with tempfile.TemporaryDirectory() as folder:
        library = pathlib.Path(folder) / "log.so"
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", HERE / "allocation_log.c", "-o", library, "-ldl"], check=True)
        for net in sys.argv[1:]:
            logs = []
            for batch in RECORDED:
                log = pathlib.Path(folder) / f"{net}_{batch}"
                subprocess.run([sys.executable, __file__, "--train", net, str(batch), log], check=True,
                               env={**os.environ, "LD_PRELOAD": str(library)})
                logs.append(events(log))
            if len(logs[0]) != len(logs[1]):
                print(f"{net}: the sequence of allocations differs between batches", file=sys.stderr)
                continue
            for batch in BATCHES:
                print(net, batch, *replay(*logs, batch), sep=",", flush=True)


if __name__ == "__main__":
    main()
