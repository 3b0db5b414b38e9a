# SPDX-License-Identifier: Apache-2.0
"""An MPS daemon of the profiler's own: in a folder of its own, and gone when the profiler is gone, however it ended.

A guardian process holds the daemon. It ends it when the profiler closes the pipe between them, which the kernel does
for a profiler that was killed. The card's compute mode is left alone: only processes that are given the folder use MPS.
"""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

CONTROL = "nvidia-cuda-mps-control"
FOLDER_VARIABLE, NO_FOLDER = "CUDA_MPS_PIPE_DIRECTORY", "/dev/null"  # where a process looks for its daemon; nowhere
DRIVER_FOLDERS = ("/usr/local/nvidia/bin", "/usr/lib/nvidia/bin")  # where containers get the driver's programs
DEFAULT_FOLDER = "/tmp/nvidia-mps"  # where CUDA looks for a daemon
LONGEST_FOLDER = 60  # characters; the path of a socket has 107
START_S, QUIT_S, LOOK_S = 15.0, 10.0, 0.1


class NotStarted(RuntimeError):
    """MPS cannot be had here."""


class Mps:
    """Use it as a context; `environment` is what makes a process its client."""

    def __init__(self, seen):
        self.guardian = self.folder = None
        self.seen, self.environment = seen, {}  # what tells the daemon which GPU is meant

    def __enter__(self):
        path = os.pathsep.join([os.environ.get("PATH", os.defpath), *DRIVER_FOLDERS])
        if not shutil.which(CONTROL, path=path):
            raise NotStarted(f"{CONTROL} is not on the PATH")
        try:
            self.folder = tempfile.mkdtemp(prefix="horus-mps-", dir=short_folder())
        except OSError as error:
            raise NotStarted(f"no folder for its pipes: {error}") from None
        self.environment = {"CUDA_MPS_PIPE_DIRECTORY": self.folder, "CUDA_MPS_LOG_DIRECTORY": self.folder}
        self.guardian = subprocess.Popen([sys.executable, os.path.abspath(__file__), self.folder], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, start_new_session=True, text=True,
                                         env={**os.environ, **self.seen, "PATH": path})
        said = self.guardian.stdout.readline().strip()
        if said != "ready":
            self.__exit__()
            raise NotStarted(said or "its guardian ended without a word")
        return self

    def __exit__(self, *_):
        if self.guardian:
            self.guardian.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.guardian.wait(timeout=START_S + 2 * QUIT_S)
            self.guardian.stdout.close()
            self.guardian = None

    @property
    def log(self):
        """The daemon's last words, for an error message."""
        with contextlib.suppress(OSError):
            return pathlib.Path(self.folder, "control.log").read_text(errors="replace")[-400:].strip()
        return ""


def short_folder():
    """Where its pipes fit into the path of a socket; none says the usual place."""
    return "/tmp" if len(tempfile.gettempdir()) > LONGEST_FOLDER and os.path.isdir("/tmp") else None


def others_daemon():
    """The pipes of an MPS daemon that is not ours and that every process here would become a client of; none without."""
    folder = os.environ.get("CUDA_MPS_PIPE_DIRECTORY") or DEFAULT_FOLDER
    return folder if os.path.exists(os.path.join(folder, "control")) else None


def control(environment, text):
    """What the daemon answers to a command, or none."""
    with contextlib.suppress(subprocess.TimeoutExpired, OSError):
        done = subprocess.run([CONTROL], input=text + "\n", capture_output=True, text=True, env=environment,
                              timeout=QUIT_S)
        if done.returncode == 0:
            return done.stdout
    return None


def servers_of(folder):
    """Process ids whose MPS folder is ours: the daemon and its servers, whoever their parent is by now."""
    wanted, found = f"CUDA_MPS_PIPE_DIRECTORY={folder}".encode(), []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            with contextlib.suppress(OSError):
                with open(f"/proc/{entry}/environ", "rb") as file:
                    ours = wanted in file.read().split(b"\0")
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    if ours and b"nvidia-cuda-mps" in file.read():
                        found.append(int(entry))
    return found


def answers(daemon, environment):
    until = time.monotonic() + START_S
    while time.monotonic() < until and daemon.poll() is None:
        if control(environment, "get_server_list") is not None:
            return True
        time.sleep(LOOK_S)
    return False


def guard(folder):
    """The guardian: starts the daemon, says "ready" or why not, and ends it when the profiler is gone."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it is the profiler that they are for
    environment = {**os.environ, "CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
    output, daemon = os.path.join(folder, "output"), None
    try:
        with open(output, "w") as log:
            daemon = subprocess.Popen([CONTROL, "-f"], env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        if answers(daemon, environment):
            say("ready")
            sys.stdin.read()  # until the profiler closes it or ends
        else:
            words = " ".join(pathlib.Path(output).read_text(errors="replace").split())[-300:]
            say(f"{CONTROL} " + (f"ended with status {daemon.poll()}" if daemon.poll() is not None else
                                 f"does not answer after {START_S:.0f} s") + (f": {words}" if words else ""))
    except OSError as error:
        say(f"{CONTROL}: {error}")
    finally:
        end(daemon, environment, folder)


def say(text):
    with contextlib.suppress(OSError):  # a profiler that is gone hears nothing
        print(text, flush=True)


def end(daemon, environment, folder):
    """Asks the daemon to end, then ends what is left of it and its servers."""
    if daemon and daemon.poll() is None:
        control(environment, "quit -t 1")
        with contextlib.suppress(subprocess.TimeoutExpired):
            daemon.wait(timeout=QUIT_S)
    for pid in servers_of(folder):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    guard(sys.argv[1])
