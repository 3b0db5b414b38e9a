# SPDX-License-Identifier: Apache-2.0
"""A process that runs jobs on the device: reads orders, runs steps until told to stop, says what it measured.

Orders: {"do": "load", job}, {"do": "run", "warm_s", "min_s", "min_steps"}, and while it runs "window" (measure from now
on) and "stop" (what ended after "until" does not count); {"do": "export", job, "path"}; {"do": "exit"}. Answers: ready,
loaded, warm, enough, result, exported, failed. Between "window" and "stop" it goes on running, so that its neighbours never
run alone.
"""
import gc
import os
import sys
import time
import traceback

import clocks
import link

POLL_S = 0.005  # how often a running worker looks for orders
MIB = 1 << 20


def say_failed(say, error, torch_training, where):
    """OOM is an outcome of its own; of any other error the last line and the place in the user's code."""
    frames = [one for one in traceback.extract_tb(error.__traceback__) if f"{os.sep}torch{os.sep}" not in one.filename]
    place = f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
    say({"event": "failed", "outcome": "oom" if torch_training.is_out_of_memory(error) else "error", "during": where,
         "error": f"{type(error).__name__}: {str(error).strip()[:600]}", "at": place})


class Memory:
    """The allocator's figures in MiB; none on a device without an allocator of its own."""

    def __init__(self, torch, device):
        self.cuda = torch.cuda if device.type == "cuda" else None
        self.torch = torch

    def clear(self):
        gc.collect()
        if self.cuda:
            self.cuda.synchronize()
            clear_workspaces = getattr(self.torch._C, "_cuda_clearCublasWorkspaces", None)
            if clear_workspaces:
                clear_workspaces()
            self.cuda.empty_cache()
            self.cuda.reset_peak_memory_stats()

    def figures(self):
        if not self.cuda:
            return {}
        return {"allocated_peak_mib": self.cuda.max_memory_allocated() / MIB,
                "reserved_peak_mib": self.cuda.max_memory_reserved() / MIB}

    def reserved(self):
        return self.cuda.memory_reserved() / MIB if self.cuda else 0.0


def percentile(ordered, share):
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def summary(times_ms):
    """Step times in microseconds; empty when none was whole."""
    if not times_ms:
        return {"steps": 0}
    ordered = sorted(times_ms)
    middle = len(ordered) // 2
    median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return {"steps": len(ordered), "step_mean_us": 1e3 * sum(ordered) / len(ordered), "step_median_us": 1e3 * median,
            "step_p95_us": 1e3 * percentile(ordered, 0.95), "step_min_us": 1e3 * ordered[0]}


def run(reader, say, step, clock, order):
    """Steps until "stop": warm-up, then a window; every step counted began after it opened and ended before it closed.

    Times of the monotonic clock, which all processes share.
    """
    began, polled, steps, times, opened, state = None, 0.0, 0, [], None, "warming"
    while True:
        step()
        took = clock.mark()
        steps += 1
        now = time.monotonic()
        if took is not None and began is None:  # the first steps load kernels and libraries, for seconds now and then
            began = now
        if opened is not None and took is not None:
            times.append((now, took))
            whole = len(times) - order["skip"]
            if state == "open" and (whole >= order["min_steps"] and now - opened >= order["min_s"]
                                    or whole > 0 and now - opened >= order["max_s"]):
                state = "enough"
                say({"event": "enough"})
        elif state == "warming" and began is not None and now - began >= order["warm_s"] and steps >= order["warm_steps"]:
            state = "warm"
            say({"event": "warm"})
        if now - polled >= POLL_S:
            polled, message = now, reader.poll()
            if message and message["do"] == "window":
                state, opened, times = "open", now, []
            elif message and message["do"] == "stop":
                whole = [took for ended, took in times[order["skip"]:] if ended <= message["until"]]
                return {"event": "result", "opened": opened, "closed": min(now, message["until"]), **summary(whole)}
            elif message and message["do"] == "exit":
                raise link.Closed()


def environment(torch):
    found = {"torch": torch.__version__, "python": sys.version.split()[0], "cuda": torch.version.cuda,
             "cudnn": torch.backends.cudnn.version(), "cudnn_benchmark": torch.backends.cudnn.benchmark}
    for package in ("torchvision",):
        try:
            found[package] = __import__(package).__version__
        except Exception:  # an optional package that is broken is as good as absent
            found[package] = None
    return found


class Worker:
    def __init__(self, reader, say, device_name):
        import torch
        import training
        self.torch, self.training, self.reader, self.say = torch, training, reader, say
        self.device = torch.device(device_name)
        self.memory, self.step = Memory(torch, self.device), None
        self.environment = environment(torch)  # imports what the zoo may need, while another worker measures

    def wake(self):
        """Opens the context; only now is the device touched."""
        if self.device.type == "cuda":
            self.torch.zeros(1, device=self.device)
            self.environment["device"] = self.torch.cuda.get_device_name(0)
        self.say({"event": "awake", **self.environment})

    def load(self, order):
        self.step = None
        self.memory.clear()
        self.step = self.training.Step(order["job"], self.device)
        self.training.synchronize(self.device)
        self.say({"event": "loaded", "framework": self.training.framework(), "reserved_mib": self.memory.reserved()})

    def run(self, order):
        result = run(self.reader, self.say, self.step, clocks.clock_of(self.torch, self.device), order)
        self.training.synchronize(self.device)
        self.say({**result, **self.memory.figures()})

    def unload(self, _):
        self.step = None
        self.memory.clear()
        self.say({"event": "unloaded"})

    def export(self, order):
        import graphs
        self.say({"event": "exported", **graphs.export(order["job"], order["path"])})

    def obey(self, order):
        try:
            getattr(self, order["do"])(order)
        except link.Closed:
            raise
        except Exception as error:  # the user's code and the framework may raise anything; the profiler decides
            if order["do"] != "export":
                self.step = None
            say_failed(self.say, error, self.training, order["do"])
            del error
            self.clear_after_failure()

    def clear_after_failure(self):
        try:
            self.memory.clear()
        except Exception:  # a broken context stays broken: the profiler starts another worker
            os._exit(3)


def main():
    link.die_with_parent(int(sys.argv[2]))
    answers = os.dup(1)
    os.dup2(2, 1)  # what nets print must not mix with the answers
    reader = link.Reader(0)
    say = lambda message: link.write(answers, message)
    worker = Worker(reader, say, sys.argv[1])
    say({"event": "ready"})
    try:
        while True:
            order = reader.wait()
            if order["do"] == "exit":
                break
            if order["do"] == "wake":
                worker.wake()
            elif order["do"] in ("load", "run", "unload", "export"):
                worker.obey(order)
            # "window" and "stop" that come after a failure mean nothing any more
    except (link.Closed, BrokenPipeError):
        pass
    os._exit(0)  # without the framework's slow farewell


if __name__ == "__main__":
    main()
