# SPDX-License-Identifier: Apache-2.0
"""Place, watch, mend: what a scheduler does while jobs share. place -> observe -> commit -> review -> apply; and back to
the model before, should the new one foretell worse. Usage: loop.py"""

import horus

GPU = "v100-sxm2-16gb"


def make_job(number, name, util, step_ms):
    """A job measured alone; horus.Predictor foretells the same from a graph (examples/python/place_queue.py)."""
    demand = horus.Demand(flags=horus.DEMAND_GIVEN, profile_id=number, gpu_util_pct=util, mem_mib=3_000,
                          step_time_us=1_000 * step_ms)
    return horus.Job(id=number, name=name, demands={GPU: demand})


def watched(job, beside):
    """What the runtime would report: the step time now / alone. Here the first and the third job do each other harm."""
    return 1 + sum(1.3 if job + other == 4 else 0.1 for other in beside)


def observe(places, jobs, model, observations):
    """Each tenant of each shared GPU, once."""
    for there in places.values():
        for job in there:
            beside = [other for other in there if other != job]
            if not beside:
                continue
            tenants = [jobs[number].demands[GPU] for number in (job, *beside)]  # the job first
            foretold = model.slowdown(GPU, tenants)
            observations.add_slowdown(GPU, tenants[0], tenants[1:], watched(job, beside), predicted=foretold.estimate[0],
                                      predicted_upper=foretold.upper[0])


def main():
    device = horus.Device(GPU)
    cluster = horus.Cluster([horus.Node(id=1, name="node", cpu_milli=32_000, mem_mib=131_072, devices=[device, device])])
    jobs = {job.id: job for job in (make_job(1, "vision", 85, 190), make_job(2, "language", 30, 40),
                                    make_job(3, "speech", 25, 60))}
    model = horus.InterferenceModel("horus")
    plan = horus.Placer(interference=model).place(cluster, list(jobs.values()))
    places = {}
    for decision in plan:
        print(f"job {decision.job}: {decision.text}")
        for slot in decision.slots:
            places.setdefault((slot.node, slot.device), []).append(decision.job)
    cluster.apply(plan)

    observations = horus.Observations()
    for _ in range(3):
        observe(places, jobs, model, observations)

    # A new model beside the old one: keep it where it foretells what was seen, else go on with the old one.
    learned, again = model.observe(observations), horus.Observations()
    observe(places, jobs, learned, again)
    old, new = observations.calibration()["error"], again.calibration()["error"]
    print(f"the new model errs by {new:.0%}, the old one by {old:.0%}")
    if new <= old:
        model = learned

    review = horus.Placer(interference=model).review(cluster)
    for one in review.reviews:
        print(f"job {one.job}: slowed {one.slowdown:.2f}x, its GPU does the work of {one.pack_work:.2f}: {one.advice}")
    cluster.apply(review)


if __name__ == "__main__":
    main()
