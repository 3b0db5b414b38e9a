# SPDX-License-Identifier: Apache-2.0
"""The README's picture: what jobs wait and how much they are slowed, alone, packed by first-fit, and placed by horus.

Usage: python3 docs/picture.py > docs/sharing.svg                                 from the repository's root
       python3 docs/picture.py --data DIR build/default/bin/horus                 plays docs/sharing.csv again

The picture is drawn from docs/sharing.csv: means over ten seeds of `horus compare` on 64 V100 and 1,000 one-GPU training jobs.
DIR has Gavel's measured speeds (interference/gavel_throughputs_v100.json, the V100 part of oracle_throughputs.json) and pairs
(interference/gavel_pairs_dev.csv). They are the truth. Policies are told demands of the jobs' graphs, and slowdowns that are
predicted by a model that saw neither job's family.
"""

import csv
import json
import pathlib
import subprocess
import sys
import tempfile

TABLE = pathlib.Path(__file__).parent / "sharing.csv"
SEEDS = 10
GRID = """version: 1
cluster: {gpus: {v100-sxm2-16gb: 64}, gpus_per_node: 8, max_tenants: 2}
truth: {speeds: [{file: "%s", gpus: {v100: v100-sxm2-16gb}}]}
beliefs: {jobs: gavel_pairs_dev_jobs.csv, interference: utilisation, predictions: predicted.csv}
# Run times and arrivals as in Microsoft's Philly trace (the preset); a load of 1 asks for all the GPUs without sharing.
workloads:
  - {name: open, synthetic: {preset: philly, jobs: 2000, arrivals: poisson}, single_gpu: true, clip_percentile: 99, sample: 1000,
     load: [0.6, 0.8, 1.0, 1.2, 1.4]}
# The same for all: arrival order, the first 50 waiting jobs are tried, a pair that crashed once is not tried again.
defaults: {queue: fifo, look_ahead: 50, learn: failures, restart_s: 30}
policies: [{policy: exclusive}, {policy: first-fit}, {policy: horus}]
seeds: {first: 1, count: %d}
"""
POLICIES = [("exclusive", "exclusive: one job a GPU"), ("first-fit", "first-fit: share where memory fits"), ("horus", "horus")]
LEFT, TOP, WIDTH, HEIGHT, APART = 44, 66, 330, 170, 72  # px: of a panel; from one to the next
STYLE = """
text { font: 12px Helvetica, Arial, sans-serif; fill: #1c2128 } .h { font-weight: bold } .m { text-anchor: middle } .e { text-anchor: end }
.card { fill: #fff; stroke: #d0d7de } .grid { stroke: #d8dde3; stroke-width: 1 } polyline { fill: none; stroke-width: 2.5 }
.p0 { stroke: #6e7781 } .p1 { stroke: #c2560c; stroke-dasharray: 7 3 } .p2 { stroke: #0969da; stroke-width: 3.5 }
circle { stroke-width: 0 } circle.p0 { fill: #6e7781 } circle.p1 { fill: #c2560c } circle.p2 { fill: #0969da }
@media (prefers-color-scheme: dark) { text { fill: #e6e8ea } .card { fill: #16191d; stroke: #3b4047 } .grid { stroke: #30363d }
.p0 { stroke: #9aa4ae } .p1 { stroke: #f0883e } .p2 { stroke: #58a6ff }
circle.p0 { fill: #9aa4ae } circle.p1 { fill: #f0883e } circle.p2 { fill: #58a6ff } }
/* In a tall frame, which the site gives it on phones (docs/reference/site.css): one below the other. */
.tall { display: none }
@media (max-aspect-ratio: 2/1) { .all { transform: scale(2) } .card { width: 397px; height: 595px } .wide { display: none } .tall { display: inline }
.key1 { transform: translate(-218px, 20px) } .key2 { transform: translate(-506px, 40px) } .left { transform: translateY(42px) } .right { transform: translate(-402px, 270px) } }
"""


def play(data, horus):
    """Writes docs/sharing.csv: hours from submission to completion, and the slowdown that 1 % exceed."""
    data, horus = pathlib.Path(data).resolve(), pathlib.Path(horus).resolve()
    with tempfile.TemporaryDirectory() as folder:
        def run(*command):
            subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        root = TABLE.parent.parent
        run(sys.executable, root / "bench/quality/pairs.py", "--data", data, "--out", ".")
        run(horus, "evaluate", "--pairs", "gavel_pairs_dev_pairs.csv", "--jobs", "gavel_pairs_dev_jobs.csv", "--model", "horus",
            "--bundle", "none", "--predictions", "predicted.csv")
        grid = GRID % (data / "interference/gavel_throughputs_v100.json", SEEDS)
        (pathlib.Path(folder) / "grid.yaml").write_text(grid, encoding="utf-8")
        run(horus, "compare", "grid.yaml", "--out", "results", "--quiet")
        document = json.loads((pathlib.Path(folder) / "results/results.json").read_text(encoding="utf-8"))
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["policy", "load", "jct_mean_h", "slowdown_p99"])
        for one in document["summary"]:
            metrics = one["metrics"]
            table.writerow([one["policy"], one["workload"].rpartition(" ")[2], f"{metrics['jct_mean_s']['mean'] / 3600:.2f}",
                            f"{metrics['slowdown_p99']['mean']:.3f}"])


def results():
    """By policy and load: completion times in hours, and slowdowns."""
    hours, slowdowns = {}, {}
    with TABLE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            hours.setdefault(row["policy"], {})[float(row["load"])] = float(row["jct_mean_h"])
            slowdowns.setdefault(row["policy"], {})[float(row["load"])] = float(row["slowdown_p99"])
    return hours, slowdowns


def panel(x, title, lines, ticks, unit):
    """Lines over the load; `ticks` are those of the vertical axis, from its lowest to its highest value."""
    loads = sorted(lines[POLICIES[0][0]])

    def place(load, value):
        across = (load - loads[0]) / (loads[-1] - loads[0])
        up = (value - ticks[0]) / (ticks[-1] - ticks[0])
        assert -1e-6 < up < 1 + 1e-6, f"{title}: {value} is outside the axis"
        return x + 8 + across * (WIDTH - 16), TOP + HEIGHT - up * HEIGHT

    parts = [f'<text class="h" x="{x}" y="{TOP - 14}">{title}</text>']
    for tick in ticks:
        y = place(loads[0], tick)[1]
        parts.append(f'<line class="grid" x1="{x}" x2="{x + WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'
                     f'<text class="e" x="{x - 6}" y="{y + 4:.1f}">{tick}{unit}</text>')
    parts += [f'<text class="m" x="{place(load, ticks[0])[0]:.1f}" y="{TOP + HEIGHT + 17}">{load:g}</text>' for load in loads]
    for number, (policy, _) in enumerate(POLICIES):
        points = [place(load, lines[policy][load]) for load in loads]
        parts.append(f'<polyline class="p{number}" points="' + " ".join(f"{a:.1f},{b:.1f}" for a, b in points) + '"/>')
        parts += [f'<circle class="p{number}" cx="{a:.1f}" cy="{b:.1f}" r="3.5"/>' for a, b in points]
    return parts


def legend(x, y):
    parts = []
    for number, (_, text) in enumerate(POLICIES):
        parts.append(f'<g class="key{number}"><line class="p{number}" x1="{x}" x2="{x + 28}" y1="{y - 4}" y2="{y - 4}" stroke-width="2.5"/>'
                     f'<text x="{x + 34}" y="{y}">{text}</text></g>')
        x += 34 + 7 * len(text) + 16
    return parts


def main():
    if sys.argv[1:2] == ["--data"]:
        play(*sys.argv[2:4])
        return
    hours, slowdowns = results()
    second, below = LEFT + WIDTH + APART, TOP + HEIGHT + 36
    width, height = second + WIDTH + 20, below + 14
    told = ("Load: GPU time asked for / GPU time there is.", "64 V100, 1,000 jobs, measured speeds of pairs;", f"mean of {SEEDS} seeds.")
    parts = [*legend(LEFT, 26), '<g class="left">', *panel(LEFT, "Mean job completion time", hours, range(0, 61, 20), " h"), '</g><g class="right">',
             *panel(second, "Slowdown that 1 job in 100 exceeds", slowdowns, range(1, 5), "×"),
             f'</g><text class="wide" x="{LEFT}" y="{below}">{" ".join(told)}</text>',
             *(f'<text class="tall" x="{LEFT}" y="{2 * below + 4 + 17 * line}">{text}</text>' for line, text in enumerate(told))]
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" preserveAspectRatio="xMinYMin" '
          f'role="img">\n<title>Completion times and slowdowns over the load of a cluster, by policy</title><style>{STYLE}</style>\n<g class="all">\n'
          f'<rect class="card" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="6"/>\n' + "\n".join(parts) + "\n</g>\n</svg>")


if __name__ == "__main__":
    main()
