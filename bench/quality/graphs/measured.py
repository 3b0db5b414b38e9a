#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Exports the timm nets whose step times were measured as ONNX graphs without weights.

  measured.py --data DIR                  every net and image size of the tables, the cheapest first
  measured.py --data DIR --subset         200 nets alone, spread over families and sizes
  measured.py --data DIR --list           names those 200 and exports nothing

Tables are the *.csv under --data whose header names net, family, mode, image_size, params_m, gmacs and reparam. What it
needs is installed first: Debian's python3-torch (1.13, as in Debian 12) where it is missing, and timm into CACHE/venv.
Weights are never fetched.

CACHE/NET-SIZE-MODE.onnx   the graph. MODE is `both`: one graph stands for training and for inference. It is traced in
                           inference mode with nothing folded, since eager steps ran every normalisation by itself, and
                           without dropout, which was 0; what training does with it `--mode` of `horus inspect` says
CACHE/index.csv            which graph stands for the rows of a net, image size and mode (train, eval), else why none
CACHE/failed.csv           what could not be exported; tried again only with --retry

A graph stands for a row if its parameters are those of the row within 0.5 %, no branch was folded into another before
the row ran (`reparam`), and the net runs the same layers in either mode. Stopped, the tool goes on where it was. Each
net has a process of its own, with a limit of processor time and of memory.

The 200 are nets with training rows. Families get equally many, as far as they have them; what is left over goes to the
families whose names have the smallest hashes. A family's nets, ordered by multiply-adds, are cut into as many equal
parts, and of each the net is taken that has inference rows too, if any has, and the smallest hash.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import csv
import fcntl
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
HEADER = ("net", "family", "mode", "image_size", "params_m", "gmacs", "reparam")
INDEX = ("net", "family", "image_size", "mode", "file", "parameters", "nodes", "accepted", "reason")
FAILED = ("net", "image_size", "error")
MODES = {"train": "train", "infer": "eval"}  # of a table, of the index
SUBSET = 200
NEAR = 0.005      # how far parameters may be apart
IDLE = 10         # clock time over processor time, before a process counts as stuck
GIB = 1 << 30
PYTHON = "/usr/bin/python3"  # Debian's, which finds Debian's torch
DEBIAN = "/usr/lib/python3/dist-packages"
WITH_DEPENDENCIES = ("numpy<2", "pyyaml", "typing_extensions", "onnx==1.16.2", "protobuf<5")
ALONE = ("timm==1.0.31", "safetensors", "huggingface_hub==0.21.4", "requests", "tqdm", "filelock", "fsspec",
         "packaging", "urllib3", "certifi", "idna", "charset_normalizer", "six")
BLAS = "libopenblas0-pthread"  # the plain one takes 20 times as long; unpacked beside the system's libraries
DIFFERS = {"volo": "a training step mixes tokens and has a head more"}  # family: how its layers differ by mode


class Error(Exception):
    """What is wrong, for people."""


class Net:
    """One net at one image size, with what the tables say of it."""

    def __init__(self, name, family, size):
        self.name, self.family, self.size = name, family, size
        self.rows = {mode: [] for mode in MODES.values()}  # (params_m, reparam)
        self.gmacs = 0.0

    @property
    def key(self):
        return self.name, str(self.size)

    @property
    def file(self):
        return file_name(self.name, self.size, "both")


def at_least_one(text):
    """A number of an option."""
    if not text.isdigit() or text.strip("0") == "":
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, found '{text}'")
    return int(text)


def default_cache():
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "horus" / "graphs"


def file_name(net, size, mode):
    return f"{net}-{size}-{mode}.onnx"


def hashed(text):
    return hashlib.sha256(text.encode()).hexdigest()


def read_tables(folder):
    """{(name, size): Net} of all tables below the folder."""
    nets, found = {}, False
    for path in sorted(folder.rglob("*.csv")):
        with path.open(newline="", encoding="utf-8") as source:
            reader = csv.DictReader(source)
            if set(HEADER) <= set(reader.fieldnames or ()):
                found = True
                for number, row in enumerate(reader, 1):
                    add_row(nets, f"{path}: row {number}", row)
    if not found:
        raise Error(f"{folder}: expected a table whose header names {', '.join(HEADER)}, found none")
    return nets


def add_row(nets, where, row):
    for column, expected, right in (
            ("image_size", "pixels above 0", str.isdigit), ("params_m", "millions of parameters above 0", is_positive),
            ("gmacs", "multiply-adds, or blank", lambda text: not text or is_positive(text)),
            ("mode", "train or infer", MODES.__contains__), ("reparam", "0 or 1", ("0", "1").__contains__),
            ("net", "a name without / and spaces", lambda text: text and not set(text) & set("/ \t"))):
        if not right(row[column] or ""):
            raise Error(f"{where}: {column}: expected {expected}, found '{row[column]}'")
    key = row["net"], row["image_size"]
    net = nets.setdefault(key, Net(row["net"], row["family"], int(row["image_size"])))
    if net.family != row["family"]:
        raise Error(f"{where}: family: expected {net.family}, as in an earlier row, found '{row['family']}'")
    net.rows[MODES[row["mode"]]].append((float(row["params_m"]), row["reparam"] == "1"))
    net.gmacs = max(net.gmacs, float(row["gmacs"] or 0))


def is_positive(text):
    try:
        return 0 < float(text) < float("inf")
    except ValueError:
        return False


def stands_for(parameters, params_m, reparam=False):
    """Whether a graph with so many parameters is the net of a row."""
    return not reparam and abs(parameters / 1e6 / params_m - 1) <= NEAR


def judge(net, mode, parameters):
    """(accepted, reason) of the rows of one mode; accepted if the graph stands for any."""
    if mode == "train" and net.family in DIFFERS:
        return 0, DIFFERS[net.family]
    right = [row for row in net.rows[mode] if stands_for(parameters, *row)]
    wrong = sorted({params_m for params_m, reparam in net.rows[mode] if not stands_for(parameters, params_m)})
    reasons = []
    if wrong:
        expected = " or ".join(f"{params_m:g}" for params_m in wrong)
        reasons.append(f"expected {expected} million parameters, found {parameters / 1e6:.2f}")
    if any(reparam for _, reparam in net.rows[mode]):
        reasons.append("rows with folded branches are left out")
    return int(bool(right)), "; ".join(reasons)


def shares(counts, total):
    """How many of `total` places each family gets."""
    given = dict.fromkeys(counts, 0)
    while total > 0:
        open_ones = sorted((name for name in counts if given[name] < counts[name]), key=hashed)
        if not open_ones:
            break
        for name in open_ones[:total]:
            given[name] += 1
        total -= min(total, len(open_ones))
    return given


def choose(nets, total=SUBSET):
    """The fixed subset; what the head of this file says."""
    sizes = collections.defaultdict(list)
    for net in nets.values():
        if net.rows["train"]:
            sizes[net.name].append(net)
    families = collections.defaultdict(list)
    for several in sizes.values():  # of a net with several image sizes the one with most rows, inference included
        best = min(several, key=lambda n: (not n.rows["eval"], -len(n.rows["train"]) - len(n.rows["eval"]), n.size))
        families[best.family].append(best)
    chosen = []
    for family, places in sorted(shares({name: len(members) for name, members in families.items()}, total).items()):
        members = sorted(families[family], key=lambda n: (n.gmacs, n.name))
        for part in range(places):
            low, high = len(members) * part // places, len(members) * (part + 1) // places
            chosen.append(min(members[low:high], key=lambda n: (not n.rows["eval"], hashed(n.name))))
    return {net.key: net for net in chosen}


def read_rows(path, columns):
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as source:
        reader = csv.DictReader(source)
        if tuple(reader.fieldnames or ()) != columns:
            raise Error(f"{path}: expected the columns {','.join(columns)}, found {','.join(reader.fieldnames or ())}; "
                        "delete it and the graphs will be made again")
        return list(reader)


def write_rows(path, columns, rows):
    """At once and whole: a stopped run leaves the old file or the new one."""
    partial = path.with_suffix(".part")
    with partial.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    partial.replace(path)


class Cache:
    """The folder of graphs with its two tables."""

    def __init__(self, folder):
        self.folder = folder
        self.made, self.failed = {}, {}  # (net, size): (parameters, nodes); error
        for row in read_rows(folder / "index.csv", INDEX):
            if (folder / row["file"]).exists():
                self.made[row["net"], row["image_size"]] = int(row["parameters"]), int(row["nodes"])
        for row in read_rows(folder / "failed.csv", FAILED):
            self.failed[row["net"], row["image_size"]] = row["error"]

    def write(self, nets):
        rows = []
        for key in sorted(self.made.keys() & nets.keys()):
            net, (parameters, nodes) = nets[key], self.made[key]
            for mode in (mode for mode in net.rows if net.rows[mode]):
                accepted, reason = judge(net, mode, parameters)
                rows.append(dict(net=net.name, family=net.family, image_size=net.size, mode=mode, file=net.file,
                                 parameters=parameters, nodes=nodes, accepted=accepted, reason=reason))
        write_rows(self.folder / "index.csv", INDEX, rows)
        write_rows(self.folder / "failed.csv", FAILED, [dict(net=name, image_size=size, error=self.failed[name, size])
                                                        for name, size in sorted(self.failed)])


def install(folder):
    """The interpreter that has torch and timm."""
    said = "\n".join(WITH_DEPENDENCIES + ALONE + (BLAS,))
    venv, stamp = folder / "venv", folder / "venv" / "installed.txt"
    if not stamp.exists() or stamp.read_text() != said:
        run = lambda *command: subprocess.run(command, check=True, cwd=ROOT)
        run("bash", "-c", 'source scripts/packages.sh && ensure_packages "${packages_graphs[@]}"')
        run(PYTHON, "-m", "venv", "--clear", str(venv))
        pip = (str(venv / "bin" / "pip"), "install", "--quiet")
        run(*pip, *WITH_DEPENDENCIES)
        run(*pip, "--no-deps", *ALONE)
        site, = venv.glob("lib/python3*/site-packages")
        (site / "debian.pth").write_text(DEBIAN + "\n")  # behind the environment's own packages, which are newer
        if subprocess.run(["apt-get", "download", BLAS], cwd=venv).returncode:
            raise Error(f"apt-get found no {BLAS}: run `apt-get update`, then this again")
        package, = venv.glob(f"{BLAS}_*.deb")
        run("dpkg-deb", "--extract", str(package), str(venv / "blas"))
        stamp.write_text(said)
    return str(venv / "bin" / "python")


def environment(folder):
    """Of a process that exports."""
    variables = {**os.environ, "TIMM_FUSED_ATTN": "0", "OMP_NUM_THREADS": "1"}
    for libraries in (folder / "venv" / "blas").glob("usr/lib/*/openblas-pthread"):
        variables["LD_LIBRARY_PATH"] = str(libraries)
    return variables


def export(python, net, folder, seconds, memory_gib):
    """(parameters, nodes) of the graph that one process writes; Error with its reason."""
    command = [python, str(HERE / "measured_one.py"), net.name, str(net.size), net.family, str(folder / net.file),
               str(seconds), str(memory_gib * GIB)]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=IDLE * seconds, env=environment(folder))
    except subprocess.TimeoutExpired:
        raise Error(f"took longer than {IDLE * seconds} s by the clock") from None
    if ran.returncode == -signal.SIGXCPU:
        raise Error(f"took longer than {seconds} s of processor time")
    if ran.returncode < 0:
        raise Error(f"its process ended by {signal.Signals(-ran.returncode).name}, for want of memory perhaps")
    last = (ran.stdout.strip().splitlines() or [""])[-1]
    if ran.returncode or not last.startswith("{"):
        raise Error(last or ran.stderr.strip()[-300:].replace("\n", " ") or f"exit status {ran.returncode}")
    told = json.loads(last)
    return told["parameters"], told["nodes"]


def export_all(todo, nets, cache, python, options):
    """Exports with so many processes at a time; the tables are written after each net."""
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        waiting = {pool.submit(export, python, net, cache.folder, options.seconds, options.memory_gib): net
                   for net in todo}
        try:
            for number, future in enumerate(concurrent.futures.as_completed(waiting), 1):
                net = waiting[future]
                cache.failed.pop(net.key, None)
                try:
                    cache.made[net.key] = future.result()
                    said = "{} parameters, {} nodes".format(*cache.made[net.key])
                except Error as error:
                    cache.failed[net.key] = str(error)
                    said = f"FAILED: {error}"
                cache.write(nets)
                print(f"{number}/{len(todo)} {net.name} {net.size}: {said}", flush=True)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextlib.contextmanager
def locked(folder):
    """The folder is there, outside the repository, and no other run fills it."""
    if folder.resolve().is_relative_to(ROOT):
        raise Error(f"--cache: expected a folder outside the repository, found {folder}")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Error(f"{folder}: another run fills this folder") from None
        yield


def work(options):
    nets = read_tables(options.data)
    chosen = choose(nets) if options.subset or options.list else nets
    order = sorted(chosen.values(), key=lambda net: (net.gmacs, net.name, net.size))
    if options.list:
        for net in order:
            print(net.name, net.size, net.family)
        return 0
    with locked(options.cache):
        cache = Cache(options.cache)
        todo = [net for net in order if net.key not in cache.made and (options.retry or net.key not in cache.failed)]
        if todo:
            export_all(todo, nets, cache, options.python or install(options.cache), options)
        cache.write(nets)
    there = sum(key in cache.made for key in chosen)
    print(f"{len(chosen)} nets and sizes: {there} graphs, {sum(key in cache.failed for key in chosen)} failed")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=pathlib.Path, metavar="DIR", help="of the tables")
    parser.add_argument("--cache", type=pathlib.Path, default=default_cache(), metavar="DIR",
                        help="of graphs (%(default)s)")
    parser.add_argument("--subset", action="store_true", help=f"export {SUBSET} nets alone")
    parser.add_argument("--list", action="store_true", help="name these nets, with image size and family")
    parser.add_argument("--jobs", type=at_least_one, default=1, metavar="N", help="nets at a time")
    parser.add_argument("--seconds", type=at_least_one, default=900, metavar="N",
                        help="of processor time a net (%(default)s)")
    parser.add_argument("--memory-gib", type=at_least_one, default=12, metavar="N", help="a net (%(default)s)")
    parser.add_argument("--retry", action="store_true", help="try again what failed before")
    parser.add_argument("--python", metavar="FILE", help="an interpreter with torch, timm and onnx: install nothing")
    options = parser.parse_args()
    try:
        return work(options)
    except (Error, OSError, subprocess.CalledProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
    sys.exit(130)
