// SPDX-License-Identifier: Apache-2.0
// Fairness: how long a job took against what a fair share of the cluster would have given it.
//
// Enters:  a trace and what became of it.
// Leaves:  finish-time fairness by job.
// Units:   a ratio; above 1 = later than with a fair share.
// Cost:    a sort of the jobs.           Thread class: pure functions.
#ifndef HORUS_LAB_FAIRNESS_H_
#define HORUS_LAB_FAIRNESS_H_

#include <span>
#include <vector>

#include "lab/simulator.h"
#include "lab/trace/trace.h"

namespace horus {

// rho = completion time / time with a fair share (finish-time fairness: Themis, NSDI 2020). The fair share of a job is
// 1/n of all devices, where n is the mean number of jobs in the system, itself included, from its submission to its
// finish; a job of g devices and run time d that has C/n of C devices takes d * max(1, g * n / C). 0 for jobs that did
// not finish. Rejected jobs were never in the system; devices that were down count.
[[nodiscard]] std::vector<double> FinishTimeFairness(const Trace& trace, const SimResult& result);

// (sum of x)^2 / (n * sum of x^2), from 1/n (one has all) to 1 (all alike); 0 of nothing. (Jain, Chiu and Hawe, 1984.)
[[nodiscard]] double JainIndex(std::span<const double> values);

}  // namespace horus

#endif  // HORUS_LAB_FAIRNESS_H_
