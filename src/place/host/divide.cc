// SPDX-License-Identifier: Apache-2.0
#include "place/host/divide.h"

#include <algorithm>

namespace horus {
namespace {

constexpr double kLeastShareGain = 1e-9;  // of work: what is less differs by rounding alone

// What is left for each of `gpus` beside what they hold.
HostShare UpTo(const HostShare& held, const HostShare& free, int32_t gpus) {
  return {held.cpu_milli + free.cpu_milli / gpus, held.mem_mib + free.mem_mib / gpus};
}

std::vector<HostChoice> ChoicesOf(const HostUser& user, const HostShare& from, const HostShare& to) {
  std::vector<HostChoice> choices = user.matrix->Choices(from, to);
  for (HostChoice& choice : choices) choice.speed = WorkWith(user, choice.share);
  return choices;
}

}  // namespace

double WorkWith(const HostUser& user, const HostShare& share) {
  const double gpu_us = user.gpu_us > 0 ? user.gpu_us : 1;
  double host_us = user.matrix->HostUs(share, gpu_us);
  if (host_us == 0) return 0;  // so little was not measured
  if (user.gpu_us == 0 && user.matrix->host_us() > 0) {
    host_us = static_cast<double>(user.matrix->speeds().back()) / user.matrix->Speed(share);
  }
  return gpu_us / std::max(host_us, gpu_us * user.slowdown);
}

HostShare LeastShare(const HostUser& user, const HostShare& need, const HostShare& fair, const HostShare& most,
                     double bound) {
  const HostShare first = {std::max(need.cpu_milli, user.matrix->cpu_milli().front()),
                           std::max(need.mem_mib, user.matrix->mem_mib().front())};
  const double wanted = WorkWith(user, fair) / bound;
  std::vector<HostChoice> choices = ChoicesOf(user, first, most);
  std::erase_if(choices, [&](const HostChoice& one) { return one.speed == 0 || one.speed < wanted; });
  if (choices.empty()) return first;
  return std::min_element(
             choices.begin(), choices.end(),
             [&](const HostChoice& a, const HostChoice& b) { return SizeOf(a.share, fair) < SizeOf(b.share, fair); })
      ->share;
}

std::vector<HostShare> SharesToTry(const HostUser& user, const HostShare& fair, const HostShare& most, size_t count) {
  std::vector<HostChoice> choices = ChoicesOf(user, user.least, most);
  const HostChoice best = BestChoice(choices, fair);
  const HostChoice least = choices.front();
  // Between the two those that gain most for their size.
  std::erase_if(choices, [&](const HostChoice& one) { return one.speed <= least.speed || one.speed >= best.speed; });
  const auto worth = [&](const HostChoice& one) {
    return (one.speed - least.speed) / (SizeOf(one.share, fair) - SizeOf(least.share, fair));
  };
  std::ranges::stable_sort(choices, [&](const HostChoice& a, const HostChoice& b) { return worth(a) > worth(b); });
  if (choices.size() > count - 2) choices.resize(count - 2);
  choices.push_back(best);
  std::ranges::stable_sort(choices, [](const HostChoice& a, const HostChoice& b) { return a.speed > b.speed; });
  std::vector<HostShare> shares;
  for (const HostChoice& choice : choices) shares.push_back(choice.share);
  if (!(best.share == least.share)) shares.push_back(least.share);
  return shares;
}

std::vector<HostShare> DivideHost(std::span<const HostUser> users, HostShare free, const HostShare& fair) {
  std::vector<HostShare> held;
  for (const HostUser& user : users) held.push_back(user.least);
  while (true) {
    double best = 0;
    size_t who = users.size();
    HostShare what;
    for (size_t i = 0; i < users.size(); ++i) {
      const HostUser& user = users[i];
      const double now = WorkWith(user, held[i]);
      for (const HostChoice& choice : ChoicesOf(user, held[i], UpTo(held[i], free, user.gpus))) {
        const double gain = user.weight * (choice.speed - now);
        if (gain <= kLeastShareGain) continue;
        const double worth = gain / (SizeOf(choice.share, fair) - SizeOf(held[i], fair));
        if (worth <= best) continue;
        best = worth;
        who = i;
        what = choice.share;
      }
    }
    if (who == users.size()) return held;
    free = free - (what - held[who]) * users[who].gpus;
    held[who] = what;
  }
}

}  // namespace horus
