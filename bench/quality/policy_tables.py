# SPDX-License-Identifier: Apache-2.0
"""Tables of single-GPU jobs on one GPU type: the backlog, horus with bounds on slowdowns, open arrivals."""
import policy_grids
from policy_grids import CHOOSING, JCT, PATIENT, PAYING, REFERENCES, RIVALS, Rows, family, gains_pct, others, ratios

LOADS = (0.8, 1.0, 1.5)
AIMS = {"gap_closed_lp": {"v100": 0.85, "p100": 0.75, "k80": 0.6},
        "makespan_vs_exclusive": {"v100": 0.95, "p100": 1.0, "k80": 1.0}}
BOUNDS = [{"policy": "exclusive"}] + [dict(PAYING, name=f"horus {bound}", weights="prices", slowdown_bound=bound)
                                      for bound in (1.25, 1.5, 2.0, 2.5)] + [dict(PAYING, name="horus none", weights="prices")]
BOUNDS += [dict(PAYING, name=f"horus {bound} half{told}", weights="prices", slowdown_bound=bound, bounded_pct=50, **learns)
           for bound in (1.5, 2.0) for told, learns in (("", {}), (" corrects", {"learn": "corrects"}))]
ALL_AT_ONCE = f"all jobs at once, first come first served, look-ahead {policy_grids.LOOK_AHEAD}"


def add_backlog(rows, short, results, suffix, prefix="", aims=True):
    """`suffix` of the metrics: size of the cluster; `prefix`: the table, where it is not the first one."""
    what = ALL_AT_ONCE
    for policy in ("horus", "horus online", "oracle", "horus one by one", *(one["name"] for one in CHOOSING)):
        if policy not in results.values["backlog"]:
            continue
        own = {"horus": "", "horus online": "_online"}.get(policy, "_" + policy.removeprefix("horus ").replace(" ", "_"))
        rows.add(f"{prefix}gap_closed_lp_{short}{suffix}{own}", results.mean("backlog", policy, "gap_closed"), "ratio", "higher",
                 others(results, "backlog", "gap_closed") if not own else "",
                 AIMS["gap_closed_lp"].get(short) if aims and not own and not suffix else None,
                 f"share of the gap in work rate from exclusive use to the bound of the linear program for the work that was "
                 f"done while jobs waited, closed by {policy}; {what}")
    rows.add(f"{prefix}backlog_rate_{short}{suffix}", results.mean("backlog", "horus", "backlog_rate"), "work/GPU", "higher",
             f"bound {results.mean('backlog', 'horus', 'bound_rate'):.3f}; " + others(results, "backlog", "backlog_rate"), None,
             f"work rate while jobs waited, 1 = alone; {what}")
    ratio = ratios(results, "backlog", "makespan_s", "exclusive")
    rows.add(f"{prefix}makespan_vs_exclusive_{short}{suffix}", ratio["horus"][0], "ratio", "lower",
             f"+- {ratio['horus'][1]:.3f}; " + "; ".join(f"{p} {v[0]:.3f}" for p, v in ratio.items() if p != "horus"),
             AIMS["makespan_vs_exclusive"].get(short) if aims and not suffix else None,
             f"makespan over that of exclusive, paired; {what}")
    for metric, unit in (("most_done_s", "s"), ("wait_mean_s", "s"), ("useful_pct", "%"), ("allocation_pct", "%"),
                         ("slowdown_p95", "ratio"), ("failures", "starts"), ("migrations", "moves"), ("belief_error", "ln")):
        if results.has("backlog", metric):
            rows.add(f"{prefix}backlog_{metric}_{short}{suffix}", results.mean("backlog", "horus", metric), unit,
                     "higher" if metric in ("useful_pct", "allocation_pct") else "lower",
                     others(results, "backlog", metric), None, what)


def add_open(rows, short, results, suffix, queue, prefix="", aims=True):
    for workload in results.values:
        load = workload.rsplit(" ", 1)[-1]
        name = f"{queue}_{load.replace('.', '_')}_{short}{suffix}"
        what = f"arrivals at load {load}, queue {queue} for all, unfinished jobs counted to the horizon"
        foes = [p for p in results.values[workload] if p not in REFERENCES]
        best = min(foes, key=lambda p: results.mean(workload, p, JCT))
        rows.add(f"{prefix}jct_{name}", results.mean(workload, "horus", JCT), "s", "lower",
                 others(results, workload, JCT, "{:.4g}"), None, f"mean JCT; {what}")
        for metric, told in (("wait_mean_s", "mean"), ("wait_p99_s", "99th percentile of the")):
            rows.add(f"{prefix}{metric.removesuffix('_s').removesuffix('_mean')}_{name}", results.mean(workload, "horus", metric),
                     "s", "lower", others(results, workload, metric, "{:.4g}"), None, f"{told} wait of finished jobs; {what}")
        for metric, rival in (("jct_gain_vs_paper_pct", "horus-paper"), ("jct_gain_vs_best_rival_pct", best)):
            mean, half = gains_pct(results, workload, "horus", rival, JCT)
            online = gains_pct(results, workload, "horus online", rival, JCT)
            rows.add(f"{prefix}{metric}_{name}", mean - half, "%", "higher",
                     f"lower end of {mean:.2f} +- {half:.2f} over {rival}; online {online[0]:.2f} +- {online[1]:.2f}",
                     0 if aims and float(load) >= 1 else None, f"mean JCT saved, paired, lower end of the 95 % interval; {what}")


def backlog(setting, suffix):
    """All jobs at once, first come first served: what the bound limits, and the makespan."""
    rows = Rows(setting.told())
    add_backlog(rows, setting.short, setting.play("backlog", setting.backlog(), "fifo", family("prices") + CHOOSING + RIVALS), suffix)
    return rows.rows


def bounds(setting, suffix):
    """horus where all jobs, or half of them, state a bound on their slowdown, on the backlog."""
    rows, results = Rows(setting.told()), setting.play("bounds", setting.backlog(), "fifo", BOUNDS)
    for policy in results.values["backlog"]:
        if not policy.startswith("horus"):
            continue
        bound = "_".join(policy.split()[1:]).replace(".", "_")
        rows.add(f"bound_{bound}_gap_closed_{setting.short}{suffix}", results.mean("backlog", policy, "gap_closed"), "ratio",
                 "higher", f"backlog rate {results.mean('backlog', policy, 'backlog_rate'):.3f}; slowdown p95 "
                 f"{results.mean('backlog', policy, 'slowdown_p95'):.2f}; above the bound "
                 f"{results.mean('backlog', policy, 'above_bound_pct'):.1f} % of the jobs", None,
                 "of the gap without a bound; the bound holds for what is predicted, with its margin; half: every other job states it")
    return rows.rows


def opened(setting, suffix):
    """Arrivals of the trace stretched to a load, up to a horizon, the first fifth not counted; the same queue for all."""
    rows = Rows(setting.told())
    for queue, weights in (("srtf", "shortest"), ("fifo", "prices")):
        results = setting.play(f"open_{queue}", setting.opened(LOADS), queue, family(weights) + CHOOSING + PATIENT + RIVALS)
        add_open(rows, setting.short, results, suffix, queue)
    return rows.rows


TABLES = {"backlog": backlog, "bounds": bounds, "open": opened}
