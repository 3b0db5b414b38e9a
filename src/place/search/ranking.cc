// SPDX-License-Identifier: Apache-2.0
// Builds, extends and refreshes the lists of best states; the tree of states.
#include "place/search/ranking.h"

#include <algorithm>
#include <cmath>

namespace horus {

// ---- Finds the leaf of a state, and divides leaves that are full.

namespace {

constexpr uint32_t kDimensions = 2;

// A tree with more nodes is made anew: where states gathered once and are no more, leaves stay. Chosen: some six times
// as many as a new tree has.
constexpr uint64_t kStatesPerNode = 4, kLeastNodes = 64;

float Coordinate(const Scorer::StateSummary& state, uint32_t dimension) {
  return dimension == 0 ? state.crowding : static_cast<float>(state.mem_free_mib) * state.per_mem_mib;
}

}  // namespace

void StateTree::Clear() {
  nodes_.clear();
  roots_.clear();
  at_.clear();
  count_ = capacity_ = 0;
}

uint32_t& StateTree::RootOf(const Scorer::StateSummary& state) {
  const size_t root = state.residents == Scorer::StateSummary::kNotSifted ? 0 : size_t{1} + state.context;
  if (roots_.size() <= root) roots_.resize(root + 1, kNone);
  return roots_[root];
}

void StateTree::Append(uint32_t leaf, const Scorer::StateSummary& state) {
  Node& into = nodes_[leaf];
  const size_t before = into.states.capacity();
  into.states.push_back(state);
  capacity_ += into.states.capacity() - before;
  into.region.Cover(state);
  ++count_;
  at_[state.state] = {leaf, static_cast<uint32_t>(into.states.size() - 1)};
}

void StateTree::Remove(uint32_t state) {
  const Where where = std::exchange(at_[state], Where());
  Node& leaf = nodes_[where.node];
  leaf.loose = true;
  --count_;
  if (where.position + 1 < leaf.states.size()) {
    leaf.states[where.position] = leaf.states.back();
    at_[leaf.states[where.position].state].position = where.position;
  }
  leaf.states.pop_back();
}

void StateTree::Put(const Scorer::StateSummary& state) {
  if (at_.size() <= state.state) at_.resize(state.state + size_t{1});
  if (at_[state.state].node != kNone) Remove(state.state);
  uint32_t& root = RootOf(state);
  if (root == kNone) {
    nodes_.emplace_back();
    root = static_cast<uint32_t>(nodes_.size() - 1);
  }
  uint32_t node = root;
  while (!nodes_[node].is_leaf()) {
    Node& inner = nodes_[node];
    inner.region.Cover(state);
    node = inner.left + (Coordinate(state, inner.dimension) < inner.below ? 0 : 1);
  }
  Append(node, state);
  if (nodes_[node].states.size() > nodes_[node].most && nodes_[node].region.sifted) Split(node);
  if (nodes_.size() > kLeastNodes + count_ / kStatesPerNode) Rebuild();
}

void StateTree::Rebuild() {
  StateTree anew;
  for (const Node& node : nodes_) {
    for (const Scorer::StateSummary& state : node.states) anew.Put(state);
  }
  *this = std::move(anew);
}

// At the median. A leaf of states that are all alike stays whole, and may hold twice as many.
void StateTree::Split(uint32_t leaf) {
  const auto left = static_cast<uint32_t>(nodes_.size());
  nodes_.resize(left + 2);
  for (const uint32_t child : {left, left + 1}) nodes_[child].states.reserve(nodes_[leaf].states.size());
  // From here on nothing fails.
  std::vector<Scorer::StateSummary>& states = nodes_[leaf].states;
  const auto middle = states.begin() + static_cast<ptrdiff_t>(states.size() / 2);
  for (uint32_t tried = 0; tried < kDimensions; ++tried) {
    const uint32_t dimension = (nodes_[leaf].dimension + tried) % kDimensions;
    const auto before = [dimension](const Scorer::StateSummary& a, const Scorer::StateSummary& b) {
      return Coordinate(a, dimension) < Coordinate(b, dimension);
    };
    std::nth_element(states.begin(), middle, states.end(), before);
    const float below = Coordinate(*middle, dimension);
    if (!(Coordinate(*std::ranges::min_element(states, before), dimension) < below)) continue;
    capacity_ += nodes_[left].states.capacity() + nodes_[left + 1].states.capacity() - states.capacity();
    nodes_[left].dimension = nodes_[left + 1].dimension = (dimension + 1) % kDimensions;
    nodes_[leaf].dimension = dimension;
    nodes_[leaf].below = below;
    nodes_[leaf].left = left;
    const std::vector<Scorer::StateSummary> divided = std::move(states);
    count_ -= divided.size();
    for (const Scorer::StateSummary& one : divided) Append(left + (Coordinate(one, dimension) < below ? 0 : 1), one);
    return;
  }
  for (uint32_t i = 0; i < states.size(); ++i) at_[states[i].state].position = i;
  nodes_[leaf].most = 2 * states.size();
  nodes_.resize(left);
}

void StateTree::Tighten(uint32_t node) {
  Node& one = nodes_[node];
  if (!one.is_leaf()) {
    one.region = nodes_[one.left].region;
    one.region.Cover(nodes_[one.left + 1].region);
  } else if (std::exchange(one.loose, false)) {
    one.region = {};
    for (const Scorer::StateSummary& state : one.states) one.region.Cover(state);
  }
}

uint64_t StateTree::bytes_held() const {
  return capacity_ * sizeof(Scorer::StateSummary) + BytesIn(nodes_, roots_, at_);
}

namespace {

// ---- Keeps what classes and guests cost each other in columns, and adds up thirty-two classes in a step.

// Of costs, beside Scorer::kCostMargin: more than what floats round in a sum of a few terms near 1.
constexpr float kFloatMargin = 1e-5F;

constexpr float kInfiniteFloat = std::numeric_limits<float>::infinity();

// A guest beyond what the row knows was not met.
PairTable::StateSummary PairIn(const PairTable::Row* row, uint32_t guest) {
  return row != nullptr && guest < row->summaries.size() ? row->summaries[guest] : PairTable::StateSummary();
}

}  // namespace

Sieve::Kind& Sieve::KindOf(uint32_t context) {
  while (kinds_.size() <= context) {
    auto kind = std::make_unique<Kind>();
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      // A class that never was asked on this kind of device may suit it: nobody is known to it.
      kind->mem_mib[slot] = taken_[slot] ? 0 : kNeverFits;
      kind->mem_beside_mib[slot] = kind->mem_mib[slot];
    }
    kinds_.push_back(std::move(kind));
  }
  return *kinds_[context];
}

Sieve::Column* Sieve::ColumnOf(Kind& kind, uint32_t guest) {
  if (guest < kind.columns.size() && kind.columns[guest] != nullptr) return kind.columns[guest].get();
  if (columns_ >= kMostColumns) return nullptr;
  if (kind.columns.size() <= guest) kind.columns.resize(std::max<size_t>(guest + 1, 2 * kind.columns.size()));
  auto column = std::make_unique<Column>();
  for (uint32_t slot = 0; slot < kSlots; ++slot) column->Set(slot, PairIn(kind.rows[slot], guest));
  kind.columns[guest] = std::move(column);
  ++columns_;
  return kind.columns[guest].get();
}

void Sieve::Reserve(Scorer& scorer, uint32_t slot) {
  for (uint32_t context = slot == kSlots ? 0 : known_kinds_[slot]; context < scorer.contexts(); ++context) {
    static_cast<void>(KindOf(context));
    static_cast<void>(scorer.OnContextOf(context));
  }
}

void Sieve::Admit(Scorer& scorer, uint32_t slot, double cutoff) noexcept {
  if (!taken_[slot]) {
    taken_[slot] = true;
    known_kinds_[slot] = 0;
    end_ = std::max(end_, slot + 1);
  }
  SetCutoff(slot, cutoff);
  for (uint32_t context = known_kinds_[slot]; context < scorer.contexts(); ++context) {
    Kind& kind = *kinds_[context];
    const Scorer::OnContext& here = scorer.OnContextOf(context);
    const bool fits = here.on != nullptr && here.mem_mib < kNeverFits;
    kind.mem_mib[slot] = fits ? static_cast<int32_t>(here.mem_mib) : kNeverFits;
    kind.mem_beside_mib[slot] = here.exclusive ? kNeverFits : kind.mem_mib[slot];
    kind.rows[slot] = here.row;
    if (fits) {
      kind.speed[slot] = static_cast<float>(here.work_alone);
      kind.per_weight[slot] = 1 / here.on->tenant.weight;
      kind.request_mib[slot] = static_cast<float>(here.on->tenant.memory.request_mib);
      kind.most_upper[slot] = static_cast<int32_t>(std::min<uint64_t>(here.most_upper, kNeverFits));
    }
    for (uint32_t guest = 0; guest < kind.columns.size(); ++guest) {
      if (kind.columns[guest] != nullptr) kind.columns[guest]->Set(slot, PairIn(here.row, guest));
    }
  }
  known_kinds_[slot] = static_cast<uint32_t>(scorer.contexts());
}

void Sieve::Dismiss(uint32_t slot) noexcept {
  taken_[slot] = false;
  for (const std::unique_ptr<Kind>& kind : kinds_) {
    kind->mem_mib[slot] = kind->mem_beside_mib[slot] = kNeverFits;
    kind->rows[slot] = nullptr;
  }
}

void Sieve::Add(const Scorer::StateSummary& state, uint32_t slot) {
  if (state.residents == Scorer::StateSummary::kNotSifted) return;
  Kind& kind = KindOf(state.context);
  for (const uint32_t guest : state.pairs.guests) {
    if (Column* column = ColumnOf(kind, guest)) column->Set(slot, PairIn(kind.rows[slot], guest));
  }
}

void Sieve::Clear() {
  kinds_.clear();
  taken_ = {};
  end_ = columns_ = 0;
}

// Without branches, on arrays of one width, so that the compiler makes vector instructions of it.
void Sieve::Step(const LeastCost& least, const Kind& kind, const Scorer::StateSummary& state,
                 const std::array<const Column*, 3>& guests, uint32_t from, std::vector<Hit>& hits) const {
  constexpr auto kUnit = static_cast<float>(1e-6 * PairTable::StateSummary::kStep);  // of excess
  constexpr int32_t kUnknown = PairTable::StateSummary::kUnknown;
  alignas(64) std::array<int32_t, kLanes> own = {}, upper = {}, fits, unknown = {};
  alignas(64) std::array<float, kLanes> lost = {}, floor;
  fits.fill(1);
  for (size_t r = 0; r < guests.size(); ++r) {
    const float before = state.pairs.before[r];
    const float weight = state.pairs.weight[r];
    const auto room = static_cast<int32_t>(state.pairs.room[r]);
    const uint16_t* const mine = guests[r]->mine.data() + from;
    const uint16_t* const mine_upper = guests[r]->mine_upper.data() + from;
    const uint16_t* const theirs = guests[r]->theirs.data() + from;
    const uint16_t* const theirs_upper = guests[r]->theirs_upper.data() + from;
    for (uint32_t i = 0; i < kLanes; ++i) own[i] += mine[i];
    for (uint32_t i = 0; i < kLanes; ++i) unknown[i] |= static_cast<int32_t>(mine_upper[i] == kUnknown);
    for (uint32_t i = 0; i < kLanes; ++i) upper[i] += mine_upper[i];
    for (uint32_t i = 0; i < kLanes; ++i) fits[i] &= static_cast<int32_t>(theirs_upper[i] <= room);
    for (uint32_t i = 0; i < kLanes; ++i) {
      const float more = kUnit * static_cast<float>(theirs[i]);
      lost[i] += weight * more / (before * (before + more));
    }
  }
  const auto own_work = static_cast<float>(least.own_work);
  const auto lost_work = static_cast<float>(least.lost_work);
  const auto per_mem = static_cast<float>(least.memory_left) * state.per_mem_mib;
  const auto free = static_cast<float>(state.mem_free_mib);
  const float least_of_all = static_cast<float>(state.residents == 0 ? least.idle : 0) - kFloatMargin;
  const float* const speed = kind.speed.data() + from;
  const float* const per_weight = kind.per_weight.data() + from;
  const float* const request = kind.request_mib.data() + from;
  const int32_t* const most_upper = kind.most_upper.data() + from;
  const float* const cutoff = cutoff_.data() + from;
  const int32_t* const mem = (state.residents == 0 ? kind.mem_mib : kind.mem_beside_mib).data() + from;
  const auto unbounded = static_cast<int32_t>(least.own_work > 0 || least.lost_work < 0);
  int32_t any = 0;
  for (uint32_t i = 0; i < kLanes; ++i) {
    floor[i] = own_work * (speed[i] / (1 + kUnit * static_cast<float>(own[i]))) + lost_work * lost[i] * per_weight[i] +
               per_mem * (free - request[i]) + least_of_all;
    // Of guests that the class did not meet the columns have lower bounds of the estimates alone.
    fits[i] = (fits[i] & static_cast<int32_t>(upper[i] <= most_upper[i])) | unknown[i];
    fits[i] &= static_cast<int32_t>(floor[i] < cutoff[i]) | (unknown[i] & unbounded);
    fits[i] &= static_cast<int32_t>(mem[i] <= state.mem_free_mib);
    any |= fits[i];
  }
  if (any == 0) return;
  for (uint32_t i = 0; i < kLanes; ++i) {
    if (fits[i] != 0) hits.push_back({from + i, unknown[i] != 0 ? -kInfiniteFloat : floor[i]});
  }
}

bool Sieve::Sift(const LeastCost& least, const Scorer::StateSummary& state, std::vector<Hit>& hits) {
  if (state.residents == Scorer::StateSummary::kNotSifted) {
    for (uint32_t slot = 0; slot < end_; ++slot) {
      if (taken_[slot]) hits.push_back({slot, -kInfiniteFloat});
    }
    return true;
  }
  Kind& kind = KindOf(state.context);
  std::array<const Column*, 3> guests = {};
  for (size_t r = 0; r < guests.size(); ++r) {
    guests[r] = ColumnOf(kind, state.pairs.guests[r]);
    if (guests[r] == nullptr) return false;
  }
  for (uint32_t from = 0; from < end_; from += kLanes) Step(least, kind, state, guests, from, hits);
  return true;
}

uint64_t Sieve::bytes_held() const {
  uint64_t bytes = sizeof(*this) + kinds_.size() * sizeof(Kind) + columns_ * sizeof(Column);
  for (const std::unique_ptr<Kind>& kind : kinds_) bytes += kind->columns.capacity() * sizeof(void*);
  return bytes;
}

namespace {

// A class that comes once is not worth a long list; one that exhausts its list gets one so many times as long.
// Of 4, 8, 16, 32 and 64 the fastest on the busy clusters of bench_place.
constexpr size_t kFirstWanted = 16;
constexpr size_t kGrowth = 8;

// A list may grow to so many times what is wanted before it is cut back.
constexpr size_t kMostOverWanted = 4;

// What the sieve finds for a class that stays away is kept up to so many times what is wanted; then the class starts
// anew.
constexpr size_t kMostSievedOverWanted = 16;

// Openings after which a class that stayed away makes room in the sieve for another.
constexpr uint64_t kStaleAfter = 32 * Sieve::kSlots;

bool Cheaper(const RankedState& a, const RankedState& b) {
  return std::tie(a.cost, a.state) < std::tie(b.cost, b.state);
}
bool Dearer(const RankedState& a, const RankedState& b) { return Cheaper(b, a); }

constexpr double kBeyondAll = std::numeric_limits<double>::infinity();

constexpr size_t kAll =
    std::numeric_limits<size_t>::max() / 2;  // more states than there are, and twice as many are a number

// States in which a newcomer meets a resident at once. More ask for more than they need; fewer call the model often.
// Chosen: with 256 newcomers take a tenth longer with horus, and as long with boosted (scripts/bench place --only
// unique).
constexpr size_t kMeetAtOnce = 64;

// A class without entries: a ranking and its cell in the map at the mean load.
constexpr uint64_t kClassBytes = sizeof(Ranking) + 64;

}  // namespace

// Describes all anew where too much was missed.
absl::Status Rankings::Relist(const Ledger& ledger) {
  generation_ = 0;  // until all is well
  DismissAll(0);
  sieve_.Clear();
  opened_.clear();
  tree_.Clear();
  for (uint32_t state = 0; state < index_.state_limit(); ++state) {
    if (!index_.has_devices(state)) continue;
    Scorer::StateSummary summary;
    HORUS_RETURN_IF_ERROR(scorer_.Describe(ledger.states(), state, summary));
    tree_.Put(summary);
  }
  opened_begin_ = index_.opened_end();
  generation_ = index_.generation();
  numbering_ = scorer_.numbering();
  rows_numbering_ = scorer_.rows_numbering();
  return absl::OkStatus();
}

absl::Status Rankings::Describe(const Ledger& ledger) {
  if (generation_ != index_.generation() || numbering_ != scorer_.numbering() ||
      index_.opened_begin() > opened_begin_ + opened_.size()) {
    return Relist(ledger);
  }
  if (std::exchange(rows_numbering_, scorer_.rows_numbering()) != scorer_.rows_numbering()) EmptySieve();
  if (index_.opened_begin() > opened_begin_) {
    opened_.erase(opened_.begin(), opened_.begin() + static_cast<ptrdiff_t>(index_.opened_begin() - opened_begin_));
    opened_begin_ = index_.opened_begin();
  }
  for (const DeviceIndex::Opening& opening : index_.opened_since(opened_begin_ + opened_.size())) {
    Scorer::StateSummary summary;  // of nothing
    // What is something else by now was opened again as such.
    if (ledger.states().digest(opening.state) == opening.digest) {
      HORUS_RETURN_IF_ERROR(scorer_.Describe(ledger.states(), opening.state, summary));
      tree_.Put(summary);
      SiftForAll(summary);
    }
    opened_.push_back(summary);
  }
  return absl::OkStatus();
}

void Rankings::ForgetSieved(Ranking& ranking) noexcept {
  entries_ -= ranking.sieved.size();
  ranking.sieved.clear();
  if (ranking.sieved.capacity() > kMostOverWanted * ranking.wanted) std::vector<RankedState>().swap(ranking.sieved);
}

void Rankings::Dismiss(uint32_t slot, uint64_t seen) noexcept {
  Ranking& ranking = *std::exchange(seats_[slot].ranking, nullptr);
  ranking.slot = Ranking::kNoSlot;
  ranking.seen = seen;
  sieve_.Dismiss(slot);
}

void Rankings::DismissAll(uint64_t seen) {
  for (uint32_t slot = 0; slot < seats_.size(); ++slot) {
    if (seats_[slot].ranking != nullptr) Dismiss(slot, seen);
  }
}

void Rankings::EmptySieve() {
  DismissAll(opened_begin_ + opened_.size());
  sieve_.Clear();
}

void Rankings::Admit(Ranking& ranking) {
  uint32_t slot = ranking.slot;
  bool makes_room = false;
  if (slot == Ranking::kNoSlot) {
    const auto free = std::ranges::find_if(seats_, [](const Seat& seat) { return seat.ranking == nullptr; });
    slot = static_cast<uint32_t>(free - seats_.begin());
    if (slot == Sieve::kSlots) {
      const auto longest_away = std::ranges::min_element(seats_, {}, &Seat::last_came);
      if (longest_away->last_came + kStaleAfter > ranking.seen) return;
      slot = static_cast<uint32_t>(longest_away - seats_.begin());
      makes_room = true;
    }
  }
  sieve_.Reserve(scorer_, ranking.slot == Ranking::kNoSlot ? Sieve::kSlots : slot);
  if (slot == seats_.size()) seats_.emplace_back();
  // From here on nothing fails.
  if (makes_room) Dismiss(slot, ranking.seen);
  seats_[slot] = {&ranking, ranking.seen};
  ranking.slot = slot;
  sieve_.Admit(scorer_, slot, ranking.cutoff);
}

void Rankings::SiftForAll(const Scorer::StateSummary& summary) {
  if (seats_.empty()) return;
  hits_.clear();
  if (!sieve_.Sift(*scorer_.policy().least_cost(), summary, hits_)) {
    EmptySieve();
    return;
  }
  for (const Sieve::Hit& hit : hits_) {
    Ranking& ranking = *seats_[hit.slot].ranking;
    ranking.sieved.push_back({static_cast<double>(hit.floor), summary.state, false, summary.digest});
    ++entries_;
    if (ranking.sieved.size() <= kMostSievedOverWanted * ranking.wanted) continue;
    ForgetSieved(ranking);  // to be made anew, should it come again
    ranking.generation = 0;
    Dismiss(hit.slot, 0);
  }
}

absl::Status Rankings::Sift(const Ledger& ledger, std::span<const Scorer::StateSummary> summaries, double cutoff) {
  left_.clear();
  gone_.clear();
  scorer_.Sift(summaries, cutoff, left_);
  for (const Scorer::Sifted& one : left_) {
    const Scorer::StateSummary& summary = summaries[one.at];
    if (index_.digest(summary.state) != summary.digest) {
      gone_.push_back(summary.state);
      continue;
    }
    if (!one.met) {
      Await(one.floor, summary.state);
      continue;
    }
    RankedState entry{one.floor, summary.state, false, summary.digest};
    if (!std::isinf(one.floor)) {
      scratch_.push_back(entry);
    } else {
      HORUS_ASSIGN_OR_RETURN(const bool fits, Weigh(ledger, entry));
      if (fits && entry.cost < cutoff) scratch_.push_back(entry);
    }
  }
  return absl::OkStatus();
}

void Rankings::Await(double floor, uint32_t state) {
  auto rounded = static_cast<float>(floor);
  if (static_cast<double>(rounded) > floor) rounded = std::nextafter(rounded, -kInfiniteFloat);
  pending_.push_back({rounded, state});
  std::push_heap(pending_.begin(), pending_.end(), std::greater<>());
}

// The cheapest first: often one resident alone makes a place too dear.
absl::Status Rankings::MeetPending(const Ledger& ledger, double limit, size_t wanted, double& cutoff) {
  const auto next = [&] {
    return !pending_.empty() && static_cast<double>(pending_.front().floor) < std::min(limit, cutoff);
  };
  while (next()) {
    meeting_.clear();
    while (meeting_.size() < kMeetAtOnce && next()) {
      meeting_.push_back(&tree_.Of(pending_.front().state));
      std::pop_heap(pending_.begin(), pending_.end(), std::greater<>());
      pending_.pop_back();
    }
    HORUS_RETURN_IF_ERROR(scorer_.MeetNext(ledger.states(), meeting_));
    for (const Scorer::StateSummary* summary : meeting_) {
      left_.clear();
      scorer_.Sift({summary, 1}, cutoff, left_);
      for (const Scorer::Sifted& one : left_) {
        if (one.met) {
          scratch_.push_back({one.floor, summary->state, false, summary->digest});
        } else {
          Await(one.floor, summary->state);
        }
      }
    }
    if (scratch_.size() > 2 * wanted) CutBack(wanted, cutoff);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Rankings::Weigh(const Ledger& ledger, RankedState& entry) {
  DeviceVerdict verdict;
  HORUS_RETURN_IF_ERROR(scorer_.Weigh(ledger.states(), entry.state, verdict));
  entry.cost = verdict.cost;
  entry.weighed = true;
  return verdict.reason == Reason::kNone;
}

// Leaves no more than the `wanted` cheapest in scratch_; what is not there costs `cutoff` at least.
void Rankings::CutBack(size_t wanted, double& cutoff) {
  if (scratch_.size() <= wanted) return;
  const auto last = scratch_.begin() + static_cast<ptrdiff_t>(wanted);
  std::nth_element(scratch_.begin(), last, scratch_.end(), Cheaper);
  cutoff = std::min(cutoff, last->cost);
  scratch_.erase(last, scratch_.end());
}

// Takes scratch_ as the list.
void Rankings::Keep(double cutoff, Ranking& ranking) {
  CutBack(ranking.wanted, cutoff);
  ranking.cutoff = cutoff;
  entries_ -= ranking.states.size();
  if (ranking.slot != Ranking::kNoSlot) sieve_.SetCutoff(ranking.slot, cutoff);
  ranking.states.assign(scratch_.begin(), scratch_.end());
  std::make_heap(ranking.states.begin(), ranking.states.end(), Dearer);
  entries_ += ranking.states.size();
}

absl::Status Rankings::Rebuild(const Ledger& ledger, Ranking& ranking) {
  ranking.generation = 0;  // until it is whole
  ForgetSieved(ranking);
  scratch_.clear();
  pending_.clear();
  double cutoff = kBeyondAll;
  order_.clear();
  const auto dearer = [](const Floor& a, const Floor& b) { return b.cost < a.cost; };
  const auto offer = [&](uint32_t node) {
    const double cost = scorer_.LeastCostIn(tree_.node(node).region);
    if (!(cost < cutoff)) return;
    order_.push_back({cost, node});
    std::push_heap(order_.begin(), order_.end(), dearer);
  };
  for (const uint32_t root : tree_.roots()) {
    if (root != StateTree::kNone) offer(root);
  }
  for (;;) {
    const double limit = order_.empty() ? kBeyondAll : order_.front().cost;
    HORUS_RETURN_IF_ERROR(MeetPending(ledger, limit, ranking.wanted, cutoff));
    if (order_.empty() || !(limit < cutoff)) break;
    const uint32_t node = order_.front().node;
    std::pop_heap(order_.begin(), order_.end(), dearer);
    order_.pop_back();
    if (tree_.node(node).is_leaf()) {
      HORUS_RETURN_IF_ERROR(Sift(ledger, tree_.node(node).states, cutoff));
      for (const uint32_t state : gone_) tree_.Remove(state);
      // The sooner the cutoff falls, the fewer leaves are opened.
      if (scratch_.size() > 2 * ranking.wanted) CutBack(ranking.wanted, cutoff);
    } else {
      const uint32_t left = tree_.node(node).left;
      offer(left);
      offer(left + 1);
    }
    tree_.Tighten(node);
  }
  Keep(cutoff, ranking);
  ranking.generation = index_.generation();
  ranking.seen = index_.opened_end();
  return absl::OkStatus();
}

absl::Status Rankings::CatchUp(const Ledger& ledger, Ranking& ranking) {
  scratch_.clear();
  pending_.clear();
  ranking.generation = 0;  // until it is whole
  for (RankedState entry : ranking.sieved) {
    if (!IsCurrent(entry)) continue;
    if (std::isinf(entry.cost)) {
      HORUS_ASSIGN_OR_RETURN(const bool fits, Weigh(ledger, entry));
      if (ranking.slot != Ranking::kNoSlot) sieve_.Add(tree_.Of(entry.state), ranking.slot);
      if (!fits || !(entry.cost < ranking.cutoff)) continue;
    }
    scratch_.push_back(entry);
  }
  ForgetSieved(ranking);
  if (ranking.slot == Ranking::kNoSlot) {
    const auto opened = std::span<const Scorer::StateSummary>(opened_).subspan(ranking.seen - opened_begin_);
    HORUS_RETURN_IF_ERROR(Sift(ledger, opened, ranking.cutoff));
    double cutoff = ranking.cutoff;
    HORUS_RETURN_IF_ERROR(MeetPending(ledger, kBeyondAll, kAll, cutoff));
  }
  ranking.seen = index_.opened_end();
  if (ranking.states.size() + scratch_.size() <= kMostOverWanted * ranking.wanted) {
    Push(ranking, scratch_);
  } else {
    for (const RankedState& entry : ranking.states) {
      if (IsCurrent(entry)) scratch_.push_back(entry);
    }
    Keep(ranking.cutoff, ranking);
  }
  ranking.generation = index_.generation();
  if (scorer_.sifts_pairs()) Admit(ranking);
  return absl::OkStatus();
}

void Rankings::Push(Ranking& ranking, std::span<const RankedState> states) {
  for (const RankedState& entry : states) {
    ranking.states.push_back(entry);
    ++entries_;
    std::push_heap(ranking.states.begin(), ranking.states.end(), Dearer);
  }
}

absl::Status Rankings::Pop(const Ledger& ledger, double limit, double floor, Ranking& ranking, RankedState& state,
                           bool& found) {
  found = false;
  while (!ranking.states.empty() && !(ranking.states.front().cost + floor > limit)) {
    std::pop_heap(ranking.states.begin(), ranking.states.end(), Dearer);
    state = ranking.states.back();
    ranking.states.pop_back();
    --entries_;
    if (!IsCurrent(state)) continue;
    if (state.weighed) {
      found = true;
      return absl::OkStatus();
    }
    HORUS_ASSIGN_OR_RETURN(const bool fits, Weigh(ledger, state));
    if (fits) Push(ranking, {&state, 1});
  }
  return absl::OkStatus();
}

absl::Status Rankings::Find(const Ledger& ledger, Ranking*& ranking) {
  const uint64_t bytes = of_class_.size() * kClassBytes + entries_ * kEntryBytes + sieve_.bytes_held();
  if (epoch_ != scorer_.model().epoch() || bytes > most_bytes_) {
    DismissAll(0);
    sieve_.Clear();
    of_class_.clear();
    entries_ = 0;
    epoch_ = scorer_.model().epoch();
  }
  HORUS_RETURN_IF_ERROR(Describe(ledger));
  std::unique_ptr<Ranking>* known = of_class_.Find(scorer_.class_digest());
  if (known == nullptr) known = &of_class_.Insert(scorer_.class_digest(), std::make_unique<Ranking>());
  ranking = known->get();
  if (ranking->wanted == 0 || ranking->generation != index_.generation() ||
      (ranking->slot == Ranking::kNoSlot && ranking->seen < opened_begin_)) {
    ranking->wanted = std::max(ranking->wanted, kFirstWanted);
    return Rebuild(ledger, *ranking);
  }
  return CatchUp(ledger, *ranking);
}

absl::Status Rankings::Bound(const Ledger& ledger, std::vector<double>& floors) {
  HORUS_RETURN_IF_ERROR(Describe(ledger));
  scratch_.clear();
  pending_.clear();
  for (const StateTree::Node& node : tree_.nodes()) {
    double cutoff = kBeyondAll;
    HORUS_RETURN_IF_ERROR(Sift(ledger, node.states, cutoff));
    HORUS_RETURN_IF_ERROR(MeetPending(ledger, kBeyondAll, kAll, cutoff));
  }
  floors.assign(ledger.states().state_limit(), kBeyondAll);
  for (const RankedState& one : scratch_) floors[one.state] = one.cost;
  return absl::OkStatus();
}

absl::Status Rankings::Extend(const Ledger& ledger, Ranking& ranking) {
  ranking.wanted *= kGrowth;
  return Rebuild(ledger, ranking);
}

}  // namespace horus
