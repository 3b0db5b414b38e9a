# SPDX-License-Identifier: Apache-2.0
"""Tables beside the first ones: the whole trace with its gangs, mixed clusters, three tenants, preemptive queues, and a
start from nothing."""
import json
import statistics
import sys

from policy_grids import CHOOSING, JCT, NO_BOUND, RESTART_S, Rows, family, gains_pct, others, paying, ratios, rivals
from policy_tables import ALL_AT_ONCE, add_backlog, add_open

FEW = ("exclusive", "first-fit", "gandiva", "gavel-maxmin", "lucid", "muri", "fgd", "clwp-nlwp", "reactive", "horus-paper")
ROUND_S = 300  # as Tiresias, Gavel and Synergy decide
WHOLE_LOADS = (1.0,)
# On the reference, whose speed most GPUs of a mixed cluster lack: see `mixed`.
MIXED_LOADS = (0.5, 0.75)
UNITS_APART = 10  # chosen: GPU types differ by less from job to job (a factor of 4), steps and epochs by more
OTHER_LOADS = (1.0, 1.5)


def reduced(weights):
    """horus and its references, less what the first tables tell of it."""
    return [one for one in family(weights) if one["name"] != "horus alike"]


def alone_in(speeds):
    """Key, as the file writes it -> speed alone, of one GPU type."""
    path, gpu, _ = speeds
    table = json.loads(path.read_text(encoding="utf-8"))[gpu]
    return {key: row["null"] for key, row in table.items() if row.get("null")}


def of_one_unit(speeds, folder):
    """The same GPU types from files without the jobs whose speeds two campaigns seem to count in different units: on some type
    they are UNITS_APART times faster or slower, against the first type, than the median job is. Names those."""
    first, apart = alone_in(speeds[0]), set()
    for one in speeds[1:]:
        ratio = {key: speed / first[key] for key, speed in alone_in(one).items() if key in first}
        median = statistics.median(ratio.values()) if ratio else 1
        apart |= {key for key, value in ratio.items() if not 1 / UNITS_APART < value / median < UNITS_APART}
    for key in sorted(apart):
        print(f"policies: {key}: counted in other units by another campaign, left out of mixed clusters", file=sys.stderr)
    kept = []
    for path, gpu, name in speeds:
        table = {key: {other: speed for other, speed in row.items() if other not in apart}
                 for key, row in json.loads(path.read_text(encoding="utf-8"))[gpu].items() if key not in apart}
        kept.append((folder / f"{name}_one_unit.json", gpu, name))
        kept[-1][0].write_text(json.dumps({gpu: table}), encoding="utf-8")
    return kept, sorted(apart)


def share_measured(speeds, folder, measured):
    """Of the GPU time of the traces' jobs that have a speed alone: per cent that single-GPU jobs of measured types bring; and
    per cent of the jobs without a speed."""
    alone = alone_in(speeds)
    under, whole, unknown, jobs = 0.0, 0.0, 0, 0
    for trace in sorted(folder.glob("*.trace")):
        for line in trace.read_text(encoding="utf-8").splitlines():
            fields = line.split("\t")
            kind, steps, gpus = fields[0], *((fields[4], fields[6]) if len(fields) == 7 else (fields[5], fields[6]))
            jobs += 1
            speed = alone.get(f"('{kind}', {int(gpus)})")
            if not speed:
                unknown += 1
                continue
            hours = int(steps) / speed * int(gpus)
            whole += hours
            under += hours if int(gpus) == 1 and kind in measured else 0
    return 100 * under / whole, 100 * unknown / jobs


def whole(setting, suffix):
    """Every job with a speed alone: gangs have their GPUs to themselves under every policy, at the speed of the file for so
    many; and the share of the work that is not under a measured truth of sharing."""
    speeds, short = setting.speeds[0], setting.short
    rows = Rows(setting.told("jobs, gangs among them, their GPUs anywhere and to themselves,"))
    under, unknown = share_measured(speeds, setting.traces, setting.inputs.measured)
    rows.add(f"trace_measured_{short}{suffix}", under, "%", "higher", f"{unknown:.1f} % of the jobs have no speed alone", None,
             "GPU time of the traces' jobs with a speed alone that single-GPU jobs of measured types bring")
    if all(key.endswith(", 1)") for key in alone_in(speeds)):
        print(f"policies: whole: {speeds[2]}: no speeds of gangs, no table", file=sys.stderr)
        return rows.rows
    jobs, truth = {"single_gpu": False}, {"unmeasured_alone": True}

    def policies(weights):
        """A gang finds fewer jobs in its way where few are tried: as few as horus-paper tries."""
        return reduced(weights) + CHOOSING + rivals(*FEW) + [paying("horus of 5", weights, look_ahead=5)] + [
            {"policy": "exclusive", "name": f"exclusive of {few}", "look_ahead": few} for few in (5, 20)]

    results = setting.play("whole_backlog", setting.backlog(**jobs), "fifo", policies("prices"), truth=truth)
    add_backlog(rows, short, results, suffix, "whole_", aims=False)
    for queue, weights in (("srtf", "shortest"), ("fifo", "prices")):
        results = setting.play(f"whole_{queue}", setting.opened(WHOLE_LOADS, **jobs), queue, policies(weights), truth=truth)
        results.values = {f"open at load {load}": of for load, of in zip(WHOLE_LOADS, results.values.values())}
        add_open(rows, short, results, suffix, queue, "whole_", aims=False)
    return rows.rows


def mixed(setting, suffix):
    """GPUs of all types in one cluster. `horus alone` chooses GPUs as horus does and shares none: what the choice of a type
    gives, apart from sharing."""
    setting.speeds, apart = of_one_unit(setting.speeds, setting.folder)
    rows, rest = Rows(setting.told() + (f"; without {', '.join(apart)}, whose units differ" if apart else "")), rivals(*FEW)

    def policies(weights):
        return reduced(weights) + [paying("horus alone", weights, slowdown_bound=1)] + rest

    add_backlog(rows, setting.short, setting.play("mixed_backlog", setting.backlog(), "fifo", policies("prices")), suffix,
                aims=False)
    for queue, weights in (("srtf", "shortest"), ("fifo", "prices")):
        results = setting.play(f"mixed_{queue}", setting.opened(MIXED_LOADS), queue, policies(weights))
        add_open(rows, setting.short, results, suffix, queue, aims=False)
    return rows.rows


def three(setting, suffix):
    """Three tenants a GPU under both rules that make their slowdowns of those of pairs, which nobody measured."""
    rows = Rows(setting.told())
    policies = reduced("prices") + rivals("exclusive", "first-fit", "least-utilised", "gandiva", "muri", "horus-paper")
    for name, tenants, rule in (("two", 2, "adds"), ("three_adds", 3, "adds"), ("three_multiplies", 3, "multiplies")):
        results = setting.play(name, setting.backlog(), "fifo", policies, {"max_tenants": tenants}, {"many_tenants": rule})
        what = f"at most {tenants} tenants, slowdowns of pairs {'add up' if rule == 'adds' else 'multiply'}; {ALL_AT_ONCE}"
        rows.add(f"{name}_backlog_rate_{setting.short}{suffix}", results.mean("backlog", "horus", "backlog_rate"), "work/GPU",
                 "higher", f"bound of pairs {results.mean('backlog', 'horus', 'bound_rate'):.3f}; "
                 + others(results, "backlog", "backlog_rate"), None, f"work rate while jobs waited; {what}")
        rows.add(f"{name}_belief_error_{setting.short}{suffix}", results.mean("backlog", "horus online", "belief_error"), "ln", "lower",
                 others(results, "backlog", "belief_error", but=("horus online",)), None,
                 f"mean |ln(believed / true slowdown)| when jobs come to share, horus online; {what}")
        ratio = ratios(results, "backlog", "makespan_s", "exclusive")
        rows.add(f"{name}_makespan_{setting.short}{suffix}", ratio["horus"][0], "ratio", "lower",
                 f"+- {ratio['horus'][1]:.3f}; " + "; ".join(f"{p} {v[0]:.3f}" for p, v in ratio.items() if p != "horus"), None,
                 f"makespan over that of exclusive, paired; {what}")
    return rows.rows


WAYS = (("waits", {}),  # nobody is preempted
        ("free", {"preempt": True, "restart_s": 0}),
        ("restarts", {"preempt": True}),
        ("rounds", {"preempt": True, "round_s": ROUND_S}))


def preempt(setting, suffix):
    """Queues that preempt, where run times are known (srtf) and where they are not (las): what sharing adds where a place can
    be taken back."""
    rows = Rows(setting.told())
    for queue, weights in (("srtf", "shortest"), ("las", "prices")):
        # Where jobs preempt they go one by one.
        placers = [{"policy": "exclusive"}, {"policy": "first-fit", "slowdown_bound": NO_BOUND},
                   {"policy": "horus-paper", "slowdown_bound": NO_BOUND}, {"policy": "horus", "weights": weights}]
        policies = [dict(placer, name=f"{placer['policy']} {way}", **keys) for placer in placers for way, keys in WAYS]
        policies.append(paying("horus rebalanced", weights))
        results = setting.play(f"preempt_{queue}", setting.opened(OTHER_LOADS), queue, policies)
        for workload in results.values:
            name = f"{queue}_{workload.rsplit(' ', 1)[-1].replace('.', '_')}_{setting.short}{suffix}"
            for way, keys in WAYS:
                own = f"horus {way}"
                gain, half = gains_pct(results, workload, own, f"exclusive {way}", JCT)
                what = {"waits": "nobody is preempted", "free": "preemption costs nothing"}.get(
                    way, f"restarts cost {RESTART_S} s") + (f", rounds of {ROUND_S} s" if "round_s" in keys else "")
                rows.add(f"preempt_{way}_jct_{name}", results.mean(workload, own, JCT), "s", "lower",
                         f"{gain:.2f} +- {half:.2f} % less than exclusive; " + others(results, workload, JCT, "{:.4g}", (own,)),
                         None, f"mean JCT, unfinished jobs counted to the horizon; queue {queue} for all, {what}")
                rows.add(f"preempt_{way}_count_{name}", results.mean(workload, own, "preemptions"), "stops", "lower",
                         others(results, workload, "preemptions", "{:.4g}", (own,)), None, f"preemptions; {what}")
    return rows.rows


def nothing(setting, suffix):
    """horus whose model predicts nothing, and who learns from what it sees of pairs while it goes on."""
    rows, rest = Rows(setting.told()), rivals("exclusive", "first-fit", "gandiva", "horus-paper")

    def policies(weights):
        return [paying("horus", weights), paying("horus online", weights, learn="pairs"),
                paying("horus corrects", weights, learn="corrects"),
                paying("told nothing", weights, interference="nothing"),
                paying("nothing, pairs", weights, interference="nothing", learn="pairs"),
                paying("nothing, corrects", weights, interference="nothing", learn="corrects"),
                paying("oracle", weights, interference="truth")] + rest

    results = setting.play("nothing_backlog", setting.backlog(), "fifo", policies("prices"))
    for own, metric in (("nothing, pairs", "nothing"), ("nothing, corrects", "nothing_corrects")):
        rows.add(f"{metric}_gap_closed_{setting.short}{suffix}", results.mean("backlog", own, "gap_closed"), "ratio", "higher",
                 others(results, "backlog", "gap_closed", but=(own,)), None, f"of the gap to the bound; {ALL_AT_ONCE}")
    ratio = ratios(results, "backlog", "makespan_s", "exclusive")
    rows.add(f"nothing_makespan_{setting.short}{suffix}", ratio["nothing, pairs"][0], "ratio", "lower",
             "; ".join(f"{p} {v[0]:.3f}" for p, v in ratio.items()), None, f"makespan over that of exclusive; {ALL_AT_ONCE}")
    results = setting.play("nothing_srtf", setting.opened(OTHER_LOADS), "srtf", policies("shortest"))
    for workload in results.values:
        load = workload.rsplit(" ", 1)[-1].replace(".", "_")
        gain, half = gains_pct(results, workload, "nothing, pairs", "horus-paper", JCT)
        rows.add(f"nothing_jct_srtf_{load}_{setting.short}{suffix}", results.mean(workload, "nothing, pairs", JCT), "s", "lower",
                 f"{gain:.2f} +- {half:.2f} % less than horus-paper; "
                 + others(results, workload, JCT, "{:.4g}", ("nothing, pairs",)), None, "mean JCT; queue srtf for all")
    return rows.rows


def card(setting, suffix):
    """The backlog on a GPU type that the model has not seen, nor either job's family."""
    rows = Rows(setting.told())
    results = setting.play("card_backlog", setting.backlog(), "fifo", CHOOSING + rivals("exclusive", "first-fit"),
                           beliefs={"predictions": str(setting.inputs.card_unseen())})
    for own, metric in (("choosing", "card"), ("choosing online", "card_online")):
        rows.add(f"{metric}_gap_closed_{setting.short}{suffix}", results.mean("backlog", own, "gap_closed"), "ratio", "higher",
                 others(results, "backlog", "gap_closed", but=(own,)), None, f"of the gap to the bound; {ALL_AT_ONCE}")
    return rows.rows


TABLES = {"whole": whole, "three": three, "preempt": preempt, "nothing": nothing, "card": card}  # of one GPU type
MIXED = {"mixed": mixed}  # of all of them
