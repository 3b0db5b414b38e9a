# SPDX-License-Identifier: Apache-2.0
"""Place, watch, mend: what a scheduler does while jobs share. place -> observe -> commit -> review -> apply; and back to
the model before, should the new one predict worse. Prints output.txt. Usage: loop.py"""

import horus

GPU = "v100-sxm2-16gb"


def make_job(number, name, util, step_ms):
    """A job measured alone; horus.Predictor predicts the same from a graph (examples/python/place_queue.py)."""
    demand = horus.Demand(flags=horus.DemandFlag.GIVEN, profile_id=number, gpu_util_pct=util, mem_mib=3_000,
                          step_time_us=1_000 * step_ms)
    return horus.Job(id=number, name=name, demands={GPU: demand})


def watched(job, beside):
    """What the runtime would report: the step time now / alone. Here the second and the third job do each other harm."""
    return 1 + sum(1.3 if job + other == 5 else 0.1 for other in beside)


def observe(title, gpus, jobs, model):
    """Each tenant of each shared GPU, for three minutes. gpus: where each job is."""
    observations = horus.Observations()
    print(title)
    for job, gpu in gpus.items():
        beside = [other for other in gpus if other != job and gpus[other] == gpu]
        if not beside:
            continue
        tenants = [jobs[number].demands[GPU] for number in (job, *beside)]  # the job first
        predicted, seen = model.slowdown(GPU, tenants), watched(job, beside)
        print(f"  job {job} on gpu {gpu} beside {' '.join(f'job {other}' for other in beside)}: "
              f"expected {predicted.estimate[0]:.2f}x, seen {seen:.2f}x")
        for _ in range(3):
            observations.add_slowdown(GPU, tenants[0], tenants[1:], seen, predicted=predicted.estimate[0],
                                      predicted_upper=predicted.upper[0])
    return observations


def main():
    device = horus.Device(GPU)
    cluster = horus.Cluster([horus.Node(id=1, name="gpu-node", cpu_milli=32_000, mem_mib=131_072, devices=[device, device])])
    jobs = {job.id: job for job in (make_job(1, "vision", 85, 190), make_job(2, "language", 30, 40),
                                    make_job(3, "speech", 25, 60))}
    model = horus.InterferenceModel("horus")
    plan = horus.Placer(interference=model).place(cluster, list(jobs.values()))
    gpus = {}
    for decision in plan:
        print(f"job {decision.job}: {decision.text}")
        gpus[decision.job] = decision.slots[0].device
    cluster.apply(plan)

    observations = observe("By the built-in model:", gpus, jobs, model)

    # A new model beside the old one: keep it where it predicts what was seen, else go on with the old one.
    learned = model.observe(observations)
    again = observe("By a model that learned from it:", gpus, jobs, learned)
    old, new = observations.calibration()["error"], again.calibration()["error"]
    print(f"The new model errs by {100 * new:.0f} %, the old one by {100 * old:.0f} %: "
          f"the {'new' if new <= old else 'old'} one is kept.\nReview:")
    if new <= old:
        model = learned

    review = horus.Placer(interference=model).review(cluster)
    for one in review.reviews:
        print(f"  job {one.job} on gpu {one.device}: slowed {one.slowdown:.2f}x, the GPU does {one.pack_work:.2f} of the "
              f"work of one job alone: {one.advice}")
    for move in review.moves:
        gpus[move.job] = move.after[0].device
        print(f"  job {move.job} moves to gpu {gpus[move.job]}: {move.gain:.2f} of work gained")
    cluster.apply(review)
    observe("After the review:", gpus, jobs, model)


if __name__ == "__main__":
    main()
