# SPDX-License-Identifier: Apache-2.0
"""The README's picture: where `horus place` puts the examples' jobs, with sharing and without.

Usage: python3 docs/picture.py build/dev/bin/horus > docs/sharing.svg      from the repository's root
"""

import json
import subprocess
import sys

LEFT, WIDTH, ROW, GAP, CHAR = 92, 376, 24, 6, 6.6  # px; the last: of a letter at 11 px, on the wide side
STYLE = """
text { font: 11px Helvetica, Arial, sans-serif; fill: #1c2128 } .h { font-size: 13px; font-weight: bold } .m { text-anchor: middle }
.card { fill: #fff; stroke: #d0d7de } .alone { fill: #e3e6ea } .shared { fill: #b9d8f5 } .waits { fill: none; stroke: #c2560c; stroke-dasharray: 4 3 }
@media (prefers-color-scheme: dark) { text { fill: #e6e8ea } .card { fill: #16191d; stroke: #3b4047 } .alone { fill: #343a41 } .shared { fill: #1d4f7f } .waits { stroke: #f0883e } }
"""


def plan(horus, policy):
    command = [horus, "place", "--cluster", "examples/cluster.yaml", "--jobs", "examples/jobs.yaml", "--policy", policy, "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def box(x, y, width, kind, text):
    return (f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{ROW}" rx="3"/>'
            f'<text class="m" x="{x + width / 2:.1f}" y="{y + 16:.1f}">{text}</text>')


def gpus_of(told):
    """Tenants by GPU. A gang is as slow everywhere as on its slowest GPU."""
    found, slowdown = {}, {}
    for one in told["tenants"]:
        found.setdefault((one["node_id"], one["node"], one["gpu"]), []).append(one["job"])
        slowdown[one["job"]] = max(slowdown.get(one["job"], 1), one["slowdown"])
    return found, {job: f"{job} {value:.2f}×" if value > 1.005 else job for job, value in slowdown.items()}


def column(told, title, x, rows, y):
    """A plan's GPUs in the order of `rows`, and below them who waits; where the column ends."""
    totals, (gpus, names) = told["totals"], gpus_of(told)
    parts = [f'<text class="h" x="{x}" y="{y - 12}">{title}: {totals["placed"]} of {totals["jobs"]} jobs start</text>']
    for gpu in rows:
        jobs = gpus.get(gpu, [])
        width = (WIDTH - 2 * (len(jobs) - 1)) / max(len(jobs), 1)
        parts += [box(x + i * (width + 2), y, width, "shared" if len(jobs) > 1 else "alone", names[job])
                  for i, job in enumerate(jobs)]
        y += ROW + GAP
    y += GAP
    parts.append(f'<text class="h" x="{x}" y="{y + 16}">Wait</text>')
    at = indent = 46
    for one in told["decisions"]:
        if one["verdict"] != "place":
            text = one["job"] + (" (fits no GPU)" if one["predicted_never"] else "")
            width = len(text) * CHAR + 12
            if at + width > WIDTH:
                at, y = indent, y + ROW + GAP
            parts.append(box(x + at, y, width, "waits", text))
            at += width + GAP
    return parts, y + ROW


def main():
    plans = plan(sys.argv[1], "horus"), plan(sys.argv[1], "exclusive")
    rows, top = sorted({gpu for told in plans for gpu in gpus_of(told)[0]}), 40
    parts = [f'<text x="12" y="{top + i * (ROW + GAP) + 16}">{node} gpu {gpu}</text>' for i, (_, node, gpu) in enumerate(rows)]
    ends = []
    for told, title, x in zip(plans, ("With horus", "One job a GPU"), (LEFT, LEFT + WIDTH + 24)):
        drawn, end = column(told, title, x, rows, top)
        parts, ends = parts + drawn, [*ends, end]
    totals, bottom = plans[0]["totals"], max(ends) + 22
    parts.append(f'<text x="{LEFT}" y="{bottom}">{totals["sharing_jobs"]} jobs share {totals["sharing_gpus"]} GPUs, expected to do '
                 f'the work of {totals["sharing_work"]:.1f}. ×: expected slowdown beside the neighbours.</text>')
    width, height = LEFT + 2 * WIDTH + 36, bottom + 14
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">\n'
          f"<title>Who runs beside whom, and who waits</title><style>{STYLE}</style>\n"
          f'<rect class="card" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="6"/>\n' + "\n".join(parts) + "\n</svg>")


if __name__ == "__main__":
    main()
