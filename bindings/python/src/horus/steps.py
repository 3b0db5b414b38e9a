# SPDX-License-Identifier: Apache-2.0
"""Step times that a job tells of itself, in seconds, as text that Prometheus scrapes: what an observer of the cluster learns from.

Needs nothing but Python: neither the compiled module nor numpy, and no other file of the package, so an image for training may hold
this one alone. A step is one step of the optimiser::

    steps = Steps()                  # port 9401; of a job of Slurm one of its own
    for batch in loader:
        train(batch)
        steps.mark()

CUDA works behind the program's back: a step returns before the GPU is done with it. The time between marks is right all the same
in the mean of many steps, since the program runs ahead of the GPU by a bounded number of kernels. Nothing here waits for the GPU.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import operator
import os
import socket
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer
from typing import Any

__all__ = ["Steps", "lightning_callback", "transformers_callback"]

_log = logging.getLogger("horus.steps")
_PATHS = ("/metrics", "/")
_SCRAPER_S = 5  # how long one may keep the only thread that serves; Prometheus gives up after 10 s as it comes
_clock = time.perf_counter_ns


class Steps:
    """Counts steps and their time, and serves both on rank 0 from the first step on.

    `port`: TCP, on all addresses; 0 = any free one; None = 9401, but 20000 + SLURM_JOB_ID % 10000 in a job of Slurm, where jobs
    share nodes. Path /metrics. `warmup`: how many first steps are left out, while libraries choose kernels and compile. `samples`:
    of one step, all ranks together; 0 = not told. `registry`: a CollectorRegistry of prometheus_client that the job serves already,
    instead of a port. `serve`: whether this process serves; None = where torch.distributed, if it is initialised, or else the
    variable RANK says 0, or neither says anything.

    What fails in serving (the port is taken) is a warning of the logger "horus.steps", and training goes on.

    Internally synchronised: any thread may call anything. Steps of several threads count together. Make it in the process that
    trains: a forked child counts for itself and serves nothing. Pickled or copied it keeps its settings and counts from 0."""

    def __init__(self, port: int | None = None, *, warmup: int = 5, samples: int = 0, registry: Any = None,
                 serve: bool | None = None) -> None:
        self._settings = {"port": _own_port() if port is None else _whole(port, "port", 2**16 - 1), "warmup": _whole(warmup, "warmup"),
                          "samples": _whole(samples, "samples"), "registry": registry, "serve": serve}
        self._samples = samples
        self._registry = registry
        self._lock = threading.RLock()  # so that a signal's handler may mark within a mark
        self._opened = False
        self._server: _Server | None = None
        self._collector: _Collector | None = None
        self._last: int | None = None  # ns of the clock
        self._paused: int | None = None  # ns of the clock
        self._left_out = warmup
        self._wrong_samples = False
        # Steps, ns, samples: replaced as a whole, so that whoever serves reads it without a lock.
        self._total = (0, 0, 0)
        self._began = time.time()

    def mark(self, samples: int | None = None) -> None:
        """A step ends here, and the next begins. The first call begins the first step. `samples`: of this step, where not as always."""
        with self._lock:
            now = _clock()
            if self._last is not None:
                self._add((now if self._paused is None else self._paused) - self._last, samples)
                self._last, self._paused = now, None
                return
        self.resume()

    def step(self, samples: int | None = None) -> contextlib.AbstractContextManager[None]:
        """`with steps.step():` around a step counts the time in it, unless it raises. In place of mark, not beside it.

        On CUDA the block must hold what waits for the GPU, such as loss.item(); otherwise it tells too little."""
        return _Step(self, samples)

    def pause(self) -> None:
        """What follows is no step, until resume or mark: evaluation, checkpoints. What a GPU still has to do of the step falls into it."""
        with self._lock:
            now = _clock()
            if self._last is not None and self._paused is None:
                self._paused = now

    def resume(self) -> None:
        """Ends a pause, or begins the first step. Anywhere else it does nothing."""
        self._open()
        with self._lock:
            now = _clock()
            if self._last is None:
                self._last = now
            elif self._paused is not None:
                self._last += now - self._paused
                self._paused = None

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """`with steps.paused():` around what is no step."""
        self.pause()
        try:
            yield
        finally:
            self.resume()

    @property
    def count(self) -> int:
        """Steps after the warm-up."""
        return self._total[0]

    @property
    def seconds(self) -> float:
        """Their time."""
        return self._total[1] / 1e9

    @property
    def port(self) -> int | None:
        """On which it serves; None where it does not."""
        server = self._server
        return None if server is None else int(server.socket.getsockname()[1])

    def text(self) -> str:
        """What is served (Prometheus' text format 0.0.4)."""
        count, ns, samples = self._total
        lines = [_head("horus_job_step_seconds", "summary"),
                 f"horus_job_step_seconds_sum {ns // 10**9}.{ns % 10**9:09d}", f"horus_job_step_seconds_count {count}"]
        if samples:
            lines += [_head("horus_job_samples_total", "counter"), f"horus_job_samples_total {samples}"]
        lines += [_head("horus_job_start_time_seconds", "gauge"), f"horus_job_start_time_seconds {self._began:.3f}"]
        return "\n".join(lines) + "\n"

    def close(self) -> None:
        """Stops to serve, within half a second. Without it a job serves until its process ends, so that its last steps are seen."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()
        collector, self._collector = self._collector, None
        if collector is not None:
            self._registry.unregister(collector)

    def __repr__(self) -> str:
        count, ns, _ = self._total
        return f"<horus.steps.Steps: {count} steps" + (f" of {ns / 1e9 / count:.3g} s>" if count else ">")

    def __reduce__(self) -> tuple[Any, ...]:
        return (_again, (self._settings,))

    def _add(self, ns: int, samples: int | None) -> None:
        """With the lock."""
        if self._left_out:
            self._left_out -= 1
            return
        if samples is None:
            samples = self._samples
        else:
            samples = self._counted(samples)
        count, before, before_samples = self._total
        # A signal's handler that marks between clock and here leaves less than nothing; a sum that falls would look like a new start.
        self._total = (count + 1, before + max(ns, 0), before_samples + samples)

    def _counted(self, samples: int) -> int:
        """What is wrong here is told once: it could end a training after days."""
        try:
            number = operator.index(samples)
        except TypeError:
            number = -1
        if number < 0 and not self._wrong_samples:
            self._wrong_samples = True
            _tell("samples: expected a whole number >= 0, found %.80r; such samples are not counted", samples)
        return max(0, number)

    def _open(self) -> None:
        """Serves from here on, where it should. Whatever goes wrong ends here."""
        with self._lock:
            if self._opened:
                return
            self._opened = True
        try:
            serve = self._settings["serve"]
            if not (_rank() == 0 if serve is None else serve):
                return
            if self._registry is None:
                self._server = _Server(self, self._settings["port"])
            else:
                collector = _Collector(self)
                self._registry.register(collector)
                self._collector = collector
        except Exception as error:
            where = f"port {self._settings['port']}" if self._registry is None else "registry"
            _tell("%s: expected to serve step times there, found %s: %s; training goes on without", where, type(error).__name__, error)


class _Step:
    """What Steps.step gives."""

    __slots__ = ("_began", "_samples", "_steps")

    def __init__(self, steps: Steps, samples: int | None) -> None:
        self._steps = steps
        self._samples = samples

    def __enter__(self) -> None:
        if not self._steps._opened:
            self._steps._open()
        self._began = _clock()

    def __exit__(self, kind: object, *_: object) -> None:
        ns = _clock() - self._began
        if kind is None:
            with self._steps._lock:
                self._steps._add(ns, self._samples)


def lightning_callback(steps: Steps | None = None) -> Any:
    """A callback for the Trainer of lightning.pytorch, or of pytorch_lightning, that marks the batches after which the optimiser
    stepped: several that are accumulated are one step. Validation, checkpoints and what lies between epochs do not count.

    `steps`: Steps() where it is None; the Trainer's global rank 0 serves. Raises ImportError without either package."""
    return _callback(_Lightning, _lightning().Callback, steps)


def transformers_callback(steps: Steps | None = None) -> Any:
    """A TrainerCallback for the Trainer of Hugging Face's transformers that marks the steps of its optimiser: several batches that
    are accumulated are one step. Evaluation, checkpoints and what lies between epochs do not count.

    `steps`: Steps() where it is None; the Trainer's process 0 serves. Raises ImportError without transformers."""
    return _callback(_Transformers, importlib.import_module("transformers").TrainerCallback, steps)


class _Hooks:
    """What both callbacks are."""

    _steps: Steps

    def _begin(self, leads: bool) -> None:
        if self._steps._settings["serve"] is None:
            self._steps._settings["serve"] = leads


class _Lightning(_Hooks):
    _seen = 0

    def __reduce__(self) -> tuple[Any, ...]:  # a launcher that spawns its processes sends them its callbacks
        return (lightning_callback, (self._steps,))

    def on_train_start(self, trainer: Any, *_: Any) -> None:
        self._begin(bool(trainer.is_global_zero))
        self._seen = trainer.global_step

    def on_train_batch_start(self, *_: Any) -> None:
        self._steps.resume()

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        if trainer.global_step != self._seen:
            self._seen = trainer.global_step
            self._steps.mark()

    def on_save_checkpoint(self, *_: Any) -> None:
        self._steps.pause()

    def on_validation_start(self, *_: Any) -> None:
        self._steps.pause()

    def on_train_epoch_end(self, *_: Any) -> None:
        self._steps.pause()


class _Transformers(_Hooks):
    def __reduce__(self) -> tuple[Any, ...]:
        return (transformers_callback, (self._steps,))

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._begin(bool(state.is_world_process_zero))

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._steps.resume()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._steps.mark()
        if control.should_evaluate or control.should_save:
            self._steps.pause()

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._steps.pause()


def _lightning() -> Any:
    """Of the two packages the one that the job uses: a Trainer knows the Callback of its own."""
    names = ("lightning.pytorch", "pytorch_lightning")
    for name in names:
        if sys.modules.get(name) is not None:
            return sys.modules[name]
    try:
        return importlib.import_module(names[0])
    except ModuleNotFoundError:
        return importlib.import_module(names[1])


def _callback(hooks: type[_Hooks], base: type, steps: Steps | None) -> Any:
    made = type(hooks.__name__.strip("_") + "Steps", (hooks, base), {"__module__": __name__})()
    made._steps = Steps() if steps is None else steps
    return made


class _Collector:
    """The same for a registry of prometheus_client."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    def describe(self) -> Iterator[Any]:  # by which a registry refuses a second one
        return self.collect()

    def collect(self) -> Iterator[Any]:
        core = importlib.import_module("prometheus_client.core")
        count, ns, samples = self._steps._total
        summary = core.SummaryMetricFamily("horus_job_step_seconds", _HELP["horus_job_step_seconds"])
        summary.add_metric([], count_value=count, sum_value=ns / 1e9)
        yield summary
        if samples:
            yield core.CounterMetricFamily("horus_job_samples", _HELP["horus_job_samples_total"], value=samples)
        yield core.GaugeMetricFamily("horus_job_start_time_seconds", _HELP["horus_job_start_time_seconds"], value=self._steps._began)


_HELP = {"horus_job_step_seconds": "Steps of the optimiser after the warm-up, and their time.",
         "horus_job_samples_total": "Samples of these steps, of all ranks together.",
         "horus_job_start_time_seconds": "Unix time from which on the steps are counted, from 0: another value is another start."}


def _head(name: str, kind: str) -> str:
    return f"# HELP {name} {_HELP[name]}\n# TYPE {name} {kind}"


class _Handler(BaseHTTPRequestHandler):
    timeout = _SCRAPER_S
    server_version = "horus"
    sys_version = ""
    server: _Server

    def do_GET(self) -> None:
        if self.path.partition("?")[0] not in _PATHS:
            self.send_error(404)
            return
        body = self.server.steps.text().encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        _log.debug(format, *arguments)


class _Server(TCPServer):  # an HTTPServer would look its own name up, and a DNS may take its time
    """One thread and one request at a time, so that no number of scrapers takes much from the training."""

    def __init__(self, steps: Steps, port: int) -> None:
        super().__init__(("", port), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = _listening(port)
        self.steps = steps
        threading.Thread(target=self.serve_forever, name="horus-steps", daemon=True).start()
        _serving.add(steps)

    def handle_error(self, request: Any, client_address: Any) -> None:
        _log.debug("a scrape failed", exc_info=True)


def _listening(port: int) -> socket.socket:
    """On all addresses, of IPv6 too where the pod has it."""
    if socket.has_dualstack_ipv6():
        with contextlib.suppress(OSError):
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))


_serving: weakref.WeakSet[Steps] = weakref.WeakSet()


def _in_child() -> None:
    """A forked worker of a data loader does not keep the port from the job's next start, should it live longer."""
    for steps in _serving:
        steps._lock = threading.RLock()
        server, steps._server = steps._server, None
        if server is not None:
            server.socket.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def _own_port() -> int:
    job = os.environ.get("SLURM_JOB_ID", "")
    return 20_000 + int(job) % 10_000 if job.isascii() and job.isdigit() else 9401


def _rank() -> int:
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    return int(os.environ.get("RANK") or 0)


def _whole(value: int, name: str, most: int = 2**63 - 1) -> int:
    if not isinstance(value, int) or not 0 <= value <= most:
        raise ValueError(f"{name}: expected a whole number from 0 to {most}, found {value!r:.80}")
    return value


def _tell(message: str, *arguments: object) -> None:
    """To the log. A handler of the job's that raises does not reach the loop either."""
    with contextlib.suppress(Exception):
        _log.warning(message, *arguments)


def _again(settings: dict[str, Any]) -> Steps:
    return Steps(**settings)
