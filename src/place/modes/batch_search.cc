// SPDX-License-Identifier: Apache-2.0
// Starts and local moves of a batch.
#include "place/modes/batch_search.h"

#include <algorithm>
#include <array>
#include <deque>
#include <utility>

#include "base/status.h"
#include "place/search/admit.h"

namespace horus {

// ---- The auction, one bid after another.

std::vector<uint32_t> Assign(size_t persons, size_t objects, std::span<const AssignmentEdge> edges, double epsilon,
                             uint64_t max_bids) {
  std::vector<size_t> first(persons + 1, 0);
  for (const AssignmentEdge& edge : edges) ++first[edge.person + 1];
  for (size_t i = 0; i < persons; ++i) first[i + 1] += first[i];
  std::vector<double> price(objects, 0);
  std::vector<uint32_t> owner(objects, kNoObject);
  std::vector<uint32_t> object_of(persons, kNoObject);
  std::deque<uint32_t> without;
  for (uint32_t i = 0; i < persons; ++i) without.push_back(i);
  for (uint64_t bids = 0; !without.empty() && bids < max_bids; ++bids) {
    const uint32_t person = without.front();
    without.pop_front();
    const AssignmentEdge* best = nullptr;
    double profit = 0;  // of staying out
    double next = 0;
    for (const AssignmentEdge& edge : edges.subspan(first[person], first[person + 1] - first[person])) {
      const double here = edge.value - price[edge.object];
      if (here > profit) {
        next = std::max(next, profit);
        profit = here;
        best = &edge;
      } else {
        next = std::max(next, here);
      }
    }
    if (best == nullptr) continue;  // prices only rise: nothing will pay any more
    price[best->object] += profit - next + epsilon;
    const uint32_t loser = owner[best->object];
    if (loser != kNoObject) {
      object_of[loser] = kNoObject;
      without.push_back(loser);
    }
    owner[best->object] = person;
    object_of[person] = best->object;
  }
  return object_of;
}

// Being placed, for policies whose costs do not say what it is worth: above any cost that tells places apart.
constexpr double kPlaced = 1e9;
constexpr double kLeastGain = 1e-6;  // below is rounding: slowdowns are floats
// A search for the best place costs about as much as so many prices.
constexpr uint64_t kSearchPrice = 16;
constexpr size_t kMostCandidates = 64;  // of a kind of job
constexpr size_t kSpareCandidates = 2;  // beyond one for each job of the kind
constexpr size_t kFewDevices = 64;      // all of them are candidates
constexpr size_t kTriedCandidates = 8;  // of a job in a large batch
constexpr double kEpsilon = 1e-3;       // of the auction: a thousandth of a job
constexpr uint64_t kBidsPerJob = 64;

std::vector<BatchPlace> BatchSearch::places() const {
  std::vector<BatchPlace> places;
  places.reserve(items_.size());
  for (const Item& item : items_) places.push_back(item.place);
  return places;
}

void BatchSearch::Put(Item& item, const BatchPlace& place) {
  const std::array slots = {SlotAt(place.node_row, place.device)};
  engine_.ledger().Place(item.job(), slots);
  item.place = place;
}

void BatchSearch::Take(Item& item) {
  const std::array slots = {SlotAt(item.place.node_row, item.place.device)};
  engine_.ledger().Remove(item.job(), slots);
  item.place = {};
}

void BatchSearch::Back(size_t mark, std::span<const std::pair<uint32_t, BatchPlace>> before) {
  engine_.ledger().UndoTo(mark);
  for (const auto& [index, place] : before) items_[index].place = place;
}

void BatchSearch::Clear() {
  for (Item& item : items_) {
    if (item.placed()) Take(item);
  }
}

void BatchSearch::Book(std::span<const BatchPlace> places) {
  for (size_t i = 0; i < items_.size(); ++i) {
    if (places[i].device != kNoDevice) Put(items_[i], places[i]);
  }
}

absl::StatusOr<std::optional<double>> BatchSearch::Value(const Item& item, const BatchPlace& place) {
  ++evaluations_;
  Ledger& ledger = engine_.ledger();
  Scorer& scorer = engine_.scorer();
  const JobSpec& job = item.job();
  const uint32_t device = DeviceOf(place);
  if (AdmitNode(scorer.policy(), ledger, place.node_row, job) != Reason::kNone ||
      BarsFrom(ledger, device, *item.view) != Reason::kNone) {
    return std::nullopt;
  }
  scorer.SetJob(*item.view);
  if (!scorer.policy().maximises_work()) {
    DeviceVerdict verdict;
    HORUS_RETURN_IF_ERROR(scorer.Weigh(ledger.states(), ledger.state_id(device), verdict));
    if (verdict.reason != Reason::kNone) return std::nullopt;
    return kPlaced - verdict.cost;
  }
  HORUS_ASSIGN_OR_RETURN(const Evaluation evaluation, scorer.Evaluate(ledger.states(), ledger.state_id(device)));
  if (evaluation.verdict.reason != Reason::kNone) return std::nullopt;
  return meter_.GainOf(ledger, device, job, evaluation.candidate);
}

absl::StatusOr<std::optional<double>> BatchSearch::Total(std::span<const BatchPlace> places) {
  Clear();
  double total = 0;
  for (size_t i = 0; i < items_.size(); ++i) {
    if (places[i].device == kNoDevice) continue;
    HORUS_ASSIGN_OR_RETURN(const std::optional<double> value, Value(items_[i], places[i]));
    if (!value) return std::nullopt;
    total += *value;
    Put(items_[i], places[i]);
  }
  return total;
}

absl::StatusOr<BatchSearch::Valued> BatchSearch::FindPlace(const Item& item) {
  Valued best;
  evaluations_ += kSearchPrice;
  HORUS_RETURN_IF_ERROR(engine_.Find(*item.view, nullptr, found_));
  for (const Placement* one : {&found_.best, &found_.second}) {
    if (one->slots.empty()) break;
    const BatchPlace here = {one->slots[0].node_row, one->slots[0].device};
    HORUS_ASSIGN_OR_RETURN(const std::optional<double> gain, Value(item, here));
    if (gain && (!best.found() || *gain > best.value + kLeastGain)) best = {here, *gain};
  }
  return best;
}

absl::Status BatchSearch::Insert(std::span<const uint32_t> order) {
  for (const uint32_t index : order) {
    if (items_[index].placed()) continue;
    HORUS_ASSIGN_OR_RETURN(const Valued best, FindPlace(items_[index]));
    if (best.found()) Put(items_[index], best.place);
  }
  return absl::OkStatus();
}

absl::Status BatchSearch::FindCandidates() {
  Ledger& ledger = engine_.ledger();
  thorough_ = items_.size() <= kSmallBatch;
  IdMap<uint32_t> group_of;  // by request
  std::vector<size_t> count;
  std::vector<uint32_t> example;
  for (uint32_t i = 0; i < items_.size(); ++i) {
    Item& item = items_[i];
    item_of_.FindOrInsert(item.job().id, i);
    item.group = group_of.FindOrInsert(item.view->request, static_cast<uint32_t>(count.size()));
    if (item.group == count.size()) {
      count.push_back(0);
      example.push_back(i);
    }
    ++count[item.group];
  }
  candidates_.assign(count.size(), {});
  first_values_.assign(count.size(), {});
  size_t devices = 0;
  for (const uint32_t row : engine_.nodes()) devices += ledger.spec(row).devices.size();
  for (uint32_t group = 0; group < count.size() && !spent(); ++group) {
    Item item = items_[example[group]];
    std::vector<BatchPlace>& places = candidates_[group];
    if (devices <= kFewDevices) {
      for (const uint32_t row : engine_.nodes()) {
        for (int32_t i = 0; i < static_cast<int32_t>(ledger.spec(row).devices.size()); ++i) places.push_back({row, i});
      }
    } else {
      // Where they would go if nobody else came.
      const size_t mark = ledger.Mark();
      const size_t wanted = std::min(count[group] + kSpareCandidates, kMostCandidates);
      for (size_t i = 0; i < wanted && !spent(); ++i) {
        evaluations_ += kSearchPrice;
        HORUS_RETURN_IF_ERROR(engine_.Find(*item.view, nullptr, found_));
        if (found_.best.slots.empty()) break;
        const BatchPlace place = {found_.best.slots[0].node_row, found_.best.slots[0].device};
        if (std::ranges::find(places, place) == places.end()) places.push_back(place);
        ledger.Place(item.job(), found_.best.slots);
      }
      ledger.UndoTo(mark);
    }
    for (size_t i = 0; i < places.size();) {
      HORUS_ASSIGN_OR_RETURN(const std::optional<double> value, Value(item, places[i]));
      if (value) {
        first_values_[group].push_back(*value);
        ++i;
      } else {
        places.erase(places.begin() + static_cast<ptrdiff_t>(i));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status BatchSearch::BookMatching() {
  std::vector<AssignmentEdge> edges;
  std::vector<BatchPlace> objects;
  IdMap<uint32_t> object_of;  // by device
  for (uint32_t i = 0; i < items_.size(); ++i) {
    const uint32_t group = items_[i].group;
    for (size_t c = 0; c < candidates_[group].size(); ++c) {
      const BatchPlace& place = candidates_[group][c];
      const uint32_t object = object_of.FindOrInsert(DeviceOf(place), static_cast<uint32_t>(objects.size()));
      if (object == objects.size()) objects.push_back(place);
      edges.push_back({i, object, first_values_[group][c]});
    }
  }
  const std::vector<uint32_t> chosen =
      Assign(items_.size(), objects.size(), edges, kEpsilon, kBidsPerJob * items_.size());
  for (uint32_t i = 0; i < items_.size(); ++i) {
    if (chosen[i] == kNoObject) continue;
    HORUS_ASSIGN_OR_RETURN(const std::optional<double> value, Value(items_[i], objects[chosen[i]]));
    if (value) Put(items_[i], objects[chosen[i]]);  // two on one node may lack its host resources
  }
  return absl::OkStatus();
}

// To its best place as things are.
absl::Status BatchSearch::TryRelocate(uint32_t index, double& gained) {
  Item& item = items_[index];
  const BatchPlace was = item.place;
  const size_t mark = engine_.ledger().Mark();
  std::optional<double> here = 0;
  if (item.placed()) {
    Take(item);
    HORUS_ASSIGN_OR_RETURN(here, Value(item, was));
  }
  HORUS_ASSIGN_OR_RETURN(const Valued best, FindPlace(item));
  if (here && best.found() && best.value > *here + kLeastGain) {
    Put(item, best.place);
    gained += best.value - *here;
    return absl::OkStatus();
  }
  Back(mark, std::array{std::pair(index, was)});
  return absl::OkStatus();
}

// The job where `other` is, and that one where the job was, or at its best place, or left out.
absl::StatusOr<bool> BatchSearch::TryInsteadOf(uint32_t index, uint32_t other, double& gained) {
  Item& item = items_[index];
  Item& out = items_[other];
  const std::array before = {std::pair(index, item.place), std::pair(other, out.place)};
  const size_t mark = engine_.ledger().Mark();
  const auto [was, target] = std::pair(item.place, out.place);
  const bool was_placed = item.placed();
  std::optional<double> mine = 0;
  if (was_placed) {
    Take(item);
    HORUS_ASSIGN_OR_RETURN(mine, Value(item, was));
  }
  Take(out);
  HORUS_ASSIGN_OR_RETURN(const std::optional<double> theirs, Value(out, target));
  std::optional<double> instead;
  if (mine && theirs) {  // what does not fit without itself is nobody's to price
    HORUS_ASSIGN_OR_RETURN(instead, Value(item, target));
  }
  if (instead) {
    Put(item, target);
    Valued best;
    if (thorough_ || !was_placed) {
      HORUS_ASSIGN_OR_RETURN(best, FindPlace(out));
    } else {
      HORUS_ASSIGN_OR_RETURN(const std::optional<double> swapped, Value(out, was));
      if (swapped) best = {was, *swapped};
    }
    const double delta = -*mine - *theirs + *instead + best.value;
    if (delta > kLeastGain && (best.found() || (!was_placed && out.job().priority <= item.job().priority))) {
      if (best.found()) Put(out, best.place);
      gained += delta;
      return true;
    }
  }
  Back(mark, before);
  return false;
}

absl::Status BatchSearch::TryCandidates(uint32_t index, double& gained) {
  const Ledger& ledger = engine_.ledger();
  const std::vector<BatchPlace>& places = candidates_[items_[index].group];
  // Jobs of one kind start at different candidates, so that they do not all ask for the same.
  const size_t tried = thorough_ ? places.size() : std::min(places.size(), kTriedCandidates);
  for (size_t i = 0; i < tried && !spent(); ++i) {
    const BatchPlace& place = places[thorough_ ? i : (index + i) % places.size()];
    if (place == items_[index].place) continue;
    std::vector<uint32_t> others;  // the residents change below
    for (const LedgerResident& resident : ledger.residents(DeviceOf(place))) {
      if (const uint32_t* other = item_of_.Find(resident.job)) others.push_back(*other);
    }
    for (const uint32_t other : others) {
      HORUS_ASSIGN_OR_RETURN(const bool done, TryInsteadOf(index, other, gained));
      if (done) return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

absl::Status BatchSearch::Improve() {
  for (uint32_t round = 0; round < options_.max_rounds && !spent(); ++round) {
    double in_round = 0;
    for (uint32_t i = 0; i < items_.size() && !spent(); ++i) {
      HORUS_RETURN_IF_ERROR(TryRelocate(i, in_round));
      HORUS_RETURN_IF_ERROR(TryCandidates(i, in_round));
    }
    if (in_round <= kLeastGain) break;
  }
  return absl::OkStatus();
}

}  // namespace horus
