// SPDX-License-Identifier: Apache-2.0
// Compares the jobs of the window by what their work is worth where they would go.
#include "place/modes/selection.h"

#include <numeric>

#include "base/hash.h"

namespace horus {
namespace {

constexpr size_t kMostTaken = 8;  // bookings after which a kind's place is searched anew

bool Overlap(const JobView& a, const JobView& b) {
  const auto any = [](const JobView& view) { return view.types.empty() || !view.types.front().type.valid(); };
  if (IsCpuOnly(*a.job) || IsCpuOnly(*b.job)) return IsCpuOnly(*a.job) && IsCpuOnly(*b.job);
  if (any(a) || any(b)) return true;
  return std::ranges::any_of(a.types, [&](const auto& one) { return b.On(one.type) != nullptr; });
}

// The whole GPUs that are up, by what they are.
std::vector<WorkPricer::Gpus> GpusOf(const Ledger& ledger) {
  std::vector<WorkPricer::Gpus> gpus;
  const StateTable& states = ledger.states();
  for (uint32_t id = 0; id < states.state_limit(); ++id) {
    if (states.digest(id) == 0 || states.refs(id) == 0) continue;
    const DeviceRow& row = states.state(id);
    if (row.state != AdminState::kUp || row.compute_share != 1) continue;
    const auto same = [&](const WorkPricer::Gpus& one) {
      return one.device.type == row.type && one.device.mode == row.mode && one.device.mem_mib == row.mem_mib &&
             one.device.max_tenants == row.max_tenants;
    };
    auto at = std::ranges::find_if(gpus, same);
    if (at == gpus.end()) {
      DeviceRow idle{.type = row.type,
                     .mode = row.mode,
                     .max_tenants = row.max_tenants,
                     .mem_mib = row.mem_mib,
                     .mps_clients = row.mps_clients};
      states.Finish(idle);
      at = gpus.insert(gpus.end(), {std::move(idle), 0});
    }
    at->count += states.refs(id);
  }
  return gpus;
}

}  // namespace

absl::Status Selection::Start(WorkPricer& pricer) {
  IdMap<uint32_t> known;
  for (size_t at = 0; at < views_.size(); ++at) {
    const uint64_t key = CombineHash(views_[at].request, views_[at].owner);
    kind_of_.push_back(known.FindOrInsert(key, static_cast<uint32_t>(kinds_.size())));
    if (kind_of_[at] == kinds_.size()) kinds_.push_back({.stated = views_[at].job, .job = *views_[at].job});
  }
  left_.resize(views_.size());
  std::iota(left_.begin(), left_.end(), 0);
  std::vector<double> prices(kinds_.size(), 1);
  if (options_.prices && engine_.policy().maximises_work()) HORUS_SET_OR_RETURN(prices, Prices(pricer));
  for (size_t i = 0; i < kinds_.size(); ++i) {
    float& weight = kinds_[i].job.weight;
    weight = std::clamp(weight * static_cast<float>(prices[i]), 1 / kMaxWorkWeight, kMaxWorkWeight);
    kinds_[i].view = ViewJob(kinds_[i].job);  // kinds_ has its size
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<double>> Selection::Prices(WorkPricer& pricer) const {
  std::vector<WorkPricer::Kind> priced;
  IdMap<uint32_t> known;
  std::vector<uint32_t> price_of(kinds_.size(), UINT32_MAX);
  for (size_t at = 0; at < views_.size(); ++at) {
    const JobView& view = views_[at];
    if (view.types.empty()) continue;
    const uint32_t one = known.FindOrInsert(view.digest, static_cast<uint32_t>(priced.size()));
    if (one == priced.size()) priced.push_back({&view, 0});
    priced[one].gpus += GpuCount(*view.job);
    price_of[kind_of_[at]] = one;
  }
  HORUS_ASSIGN_OR_RETURN(const std::vector<double> found, pricer.Of(engine_.scorer().model(), engine_.scorer().limits(),
                                                                    priced, GpusOf(engine_.ledger())));
  std::vector<double> prices(kinds_.size(), 1);
  for (size_t kind = 0; kind < kinds_.size(); ++kind) {
    if (price_of[kind] != UINT32_MAX) prices[kind] = found[price_of[kind]];
  }
  return prices;
}

// Where the kind would go now. Only what was booked since changed.
absl::Status Selection::Find(Kind& kind) {
  if (kind.known && kind.seen == taken_.size()) return absl::OkStatus();
  if (engine_.IsOpen(*kind.stated)) return FindOther(kind);
  const JobView& view = kind.view;
  std::vector<uint32_t> changed;
  for (size_t i = kind.seen; i < taken_.size(); ++i) {
    for (const PlacedSlot& slot : taken_[i].slots) changed.push_back(slot.node_row);
  }
  const Ledger& ledger = engine_.ledger();
  std::ranges::sort(changed, [&](uint32_t a, uint32_t b) { return ledger.spec(a).id < ledger.spec(b).id; });
  changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
  const auto is_changed = [&](const PlacedSlot& slot) {
    return std::ranges::find(changed, slot.node_row) != changed.end();
  };
  const bool one = GpuCount(*view.job) == 1 && !engine_.policy().PricesNode(*view.job);
  if (kind.known && one && changed.size() <= kMostTaken && std::ranges::none_of(kind.best.slots, is_changed)) {
    HORUS_RETURN_IF_ERROR(engine_.Find(view, &changed, found_));
    const bool better = !found_.best.slots.empty() &&
                        (found_.best.cost < kind.best.cost ||
                         (found_.best.cost == kind.best.cost &&
                          ledger.spec(found_.best.slots[0].node_row).id < ledger.spec(kind.best.slots[0].node_row).id));
    if (better) kind.best = found_.best;
  } else {
    HORUS_RETURN_IF_ERROR(engine_.Find(view, nullptr, found_));
    kind.best = found_.best;
  }
  if (kind.best.slots.empty() && engine_.HasOtherWays(*kind.stated)) return FindOther(kind);
  Found(kind);
  return absl::OkStatus();
}

void Selection::Found(Kind& kind) const {
  kind.refused = kind.best.slots.empty();
  const bool late = !kind.known && !taken_.empty();  // others took what it might have had
  if (!kind.fitted && !late) kind.wanted = kind.best.slots;
  kind.fitted = kind.fitted || !kind.refused || late;
  kind.known = true;
  kind.seen = taken_.size();
}

absl::Status Selection::FindOther(Kind& kind) {
  HORUS_ASSIGN_OR_RETURN(ChosenWay way, engine_.Choose(*kind.stated));
  kind.best = {.cost = way.decision.winner.cost, .slots = std::move(way.slots)};
  if (way.job != nullptr) {
    way.job->weight = kind.job.weight;
    kind.job = std::move(*way.job);
    kind.view = ViewJob(kind.job);
    kind.chosen = true;
  }
  Found(kind);
  return absl::OkStatus();
}

// Of a job of the kind where the kind goes; a gang may be deferred, since its place does not pay.
absl::StatusOr<Selection::Chosen> Selection::Settle(size_t at, const Kind& kind) {
  Chosen chosen{.at = at};
  std::vector<const JobSpec*> others;
  for (size_t i = 0; i < left_.size() && others.size() < kMostWaiting; ++i) {
    if (left_[i] != at) others.push_back(views_[left_[i]].job);
  }
  engine_.SetWaiting(others);
  if (kind.chosen) {
    HORUS_ASSIGN_OR_RETURN(ChosenWay way, engine_.Choose(*views_[at].job));
    chosen.place = {.cost = way.decision.winner.cost, .slots = std::move(way.slots)};
    chosen.decision = std::move(way.decision);
    if (way.job == nullptr) return chosen;
    way.job->weight = kind.job.weight;
    chosen.view = ViewJob(*way.job);
    chosen.job = std::move(way.job);
    return chosen;
  }
  auto job = std::make_shared<JobSpec>(*views_[at].job);
  job->weight = kind.job.weight;
  chosen.view = kind.view;
  chosen.view.job = job.get();
  chosen.job = std::move(job);
  HORUS_ASSIGN_OR_RETURN(chosen.decision, engine_.Decide(chosen.view));
  chosen.place = engine_.found().best;
  return chosen;
}

double Selection::CostOf(const Kind& kind) const {
  if (!engine_.policy().maximises_work()) return kind.best.cost;
  return WorkWeight(kind.job) * kind.best.cost / std::max(GpuCount(kind.job), 1);
}

bool Selection::IsHeldUp(const JobView& view) const {
  return std::ranges::any_of(patient_, [&](const JobView* one) { return one < &view && Overlap(*one, view); });
}

absl::StatusOr<std::optional<Selection::Chosen>> Selection::Next() {
  while (true) {
    std::optional<size_t> best;  // position in left_
    std::pair<int64_t, double> least;
    uint32_t tried = 0;
    patient_.clear();
    for (size_t i = 0; i < left_.size(); ++i) {
      const JobView& view = views_[left_[i]];
      if (best && view.job->priority < views_[left_[*best]].job->priority) break;
      Kind& kind = kinds_[kind_of_[left_[i]]];
      const bool held_up = !patient_.empty() && IsHeldUp(view);
      if (!held_up && !kind.refused) HORUS_RETURN_IF_ERROR(Find(kind));
      const bool patient = IsPatient(*view.job);
      if (held_up || kind.refused) {
        if (patient && !held_up) patient_.push_back(&view);
        continue;
      }
      if (patient) {  // those before it do not wait so long, or are preferred already
        if (!best) best = i;
        break;
      }
      const std::pair cost(largest_first_ ? -int64_t{GpuCount(*view.job)} : 0, CostOf(kind));
      if (!best || cost < least) {
        best = i;
        least = cost;
      }
      if (++tried == options_.window) break;
    }
    if (!best) return std::optional<Chosen>();
    Kind& kind = kinds_[kind_of_[left_[*best]]];
    HORUS_ASSIGN_OR_RETURN(Chosen chosen, Settle(left_[*best], kind));
    if (chosen.decision.verdict != Verdict::kPlace) {
      kind.refused = true;
      continue;
    }
    left_.erase(left_.begin() + static_cast<ptrdiff_t>(*best));
    taken_.push_back({chosen.job->id, chosen.place.slots});
    return chosen;
  }
}

bool Selection::LeavesGang() const {
  return std::ranges::any_of(left_,
                             [&](size_t at) { return GpuCount(*views_[at].job) > 1 && kinds_[kind_of_[at]].fitted; });
}

JobId Selection::Passed(Kind& kind) const {
  if (kind.passed) return *kind.passed;
  const auto is_there = [&](const Booking& booking) {
    return std::ranges::any_of(booking.slots, [&](const PlacedSlot& slot) {
      return std::ranges::any_of(kind.wanted, [&](const PlacedSlot& one) {
        return one.node_row == slot.node_row && one.device == slot.device;
      });
    });
  };
  const auto at = std::ranges::find_if(taken_, is_there);
  return *(kind.passed = at != taken_.end() ? at->job : 0);
}

absl::StatusOr<Decision> Selection::Left(size_t at) {
  Kind& kind = kinds_[kind_of_[at]];
  const JobView& view = views_[at];
  const bool held_up = IsHeldUp(view);
  Decision decision;
  if (engine_.IsOpen(*view.job)) {
    HORUS_ASSIGN_OR_RETURN(ChosenWay way, engine_.Choose(*view.job));
    decision = std::move(way.decision);
  } else {
    HORUS_ASSIGN_OR_RETURN(decision, engine_.Decide(view));
  }
  if (decision.verdict == Verdict::kPlace)
    return Decision{.job = view.job->id, .verdict = Verdict::kDefer, .reason = Reason::kPassedOver};
  const bool passed = held_up || !taken_.empty();
  if (passed && (kind.fitted || !kind.known) && !decision.predicted_never && decision.verdict == Verdict::kDefer) {
    decision.reason = Reason::kPassedOver;
    decision.passed_by = Passed(kind);
  }
  return decision;
}

}  // namespace horus
