// SPDX-License-Identifier: Apache-2.0
// Divides the host of a node, and books the shares of a plan.
#include "place/host/plan_grants.h"

#include "place/policies/policies.h"
#include "place/work.h"

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
  if (user.gpu_us == 0 && user.matrix->host_us() > 0)
    host_us = static_cast<double>(user.matrix->speeds().back()) / user.matrix->Speed(share);
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
  return std::ranges::min_element(choices, {}, [&](const HostChoice& one) { return SizeOf(one.share, fair); })->share;
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

namespace {

constexpr size_t kSharesToTry = 4;   // of a newcomer: the best, the least, two between; each costs a search. Chosen
constexpr double kLeastWork = 1e-9;  // with a share that was not measured: only ratios of worth count

// Work that a division must gain before anybody is resized: profiles do not tell less apart.
constexpr double kLeastGrantGain = kBestCellTolerance;

constexpr HostShare kAnything = {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::max()};

HostShare HeldPerGpu(const JobSpec& job) {
  return {job.cpu_milli / job.gpus_per_task, job.mem_mib / job.gpus_per_task};
}

bool MayHoldOthers(const JobSpec& job) {
  return job.sensitivity.get() != nullptr && !IsCpuOnly(job) && job.alternatives.empty();
}

bool OnOneNode(std::span<const PlacedSlot> slots) {
  return std::ranges::all_of(slots, [&](const PlacedSlot& slot) { return slot.node_row == slots.front().node_row; });
}

HostShare FairShareOf(const NodeSpec& node) {
  return FairShare(node.cpu_milli, node.mem_mib, static_cast<int32_t>(std::max<size_t>(1, node.devices.size())));
}

// A step of the GPUs of the fastest type; 0 = unknown.
double FastestGpuUs(const JobSpec& job) {
  double fastest = 0;
  for (const TypeDemand& entry : job.demands) {
    const auto step = static_cast<double>(entry.demand.step_time_us.estimate);
    if (step > 0 && (fastest == 0 || step < fastest)) fastest = step;
  }
  return fastest;
}

JobSpec WayWith(const JobSpec& job, const HostShare& share) {
  JobSpec way = job;
  GrantHost(share.cpu_milli * job.gpus_per_task, share.mem_mib * job.gpus_per_task, way);
  return way;
}

// Change of speed of those whom a decision slows or speeds up, but for those of whom `counted` holds.
template <typename Counted>
double LossOfOthers(const Decision& decision, const Counted& counted) {
  double change = 0;
  for (const TenantEffect& effect : decision.effects) {
    if (effect.is_new || counted(effect.job)) continue;
    change += 1 / static_cast<double>(effect.after.estimate) - 1 / static_cast<double>(effect.before.estimate);
  }
  return change;
}

double WorkOf(const HostUser& user, const HostShare& share) { return user.weight * WorkWith(user, share); }

}  // namespace

// ---- Who may hold more or less.

void PlanGrants::FollowNode(const ClusterRows& rows, uint32_t node_row) {
  const LedgerNode& node = engine_.ledger().node(node_row);
  // A plan touches nodes too, and takes that back.
  if (uint64_t& read = read_[node_row]; std::exchange(read, node.version) == node.version) return;
  residents_.erase(node_row);
  if (node.spec == nullptr || node.state != AdminState::kUp) return;
  std::vector<uint32_t> known;  // a job of several GPUs is met on each
  const uint32_t end = node.first_device + static_cast<uint32_t>(node.devices);
  for (uint32_t device = node.first_device; device < end; ++device) {
    for (const uint32_t job_row : rows.residents[device]) {
      const JobRow& row = rows.jobs[job_row];
      if (!MayHoldOthers(rows.RequestOf(row)) || !OnOneNode(row.slots)) continue;
      if (std::ranges::find(known, job_row) != known.end()) continue;
      known.push_back(job_row);
      const auto was = std::make_shared<const JobSpec>(rows.SpecOf(row));
      residents_[node_row].push_back(HolderOf(*was, row.slots));
      residents_[node_row].back()->was = was;
    }
  }
}

std::unique_ptr<PlanGrants::Holder> PlanGrants::HolderOf(const JobSpec& job, std::span<const PlacedSlot> slots) const {
  auto holder = std::make_unique<Holder>();
  holder->spec = std::make_shared<JobSpec>(job);
  holder->slots.assign(slots.begin(), slots.end());
  holder->user = UserOf(job, FairShareOf(engine_.ledger().spec(slots.front().node_row)));
  const HostShare held = HeldPerGpu(job);
  HostShare& least = holder->user.least;
  least = {std::min(least.cpu_milli, held.cpu_milli), std::min(least.mem_mib, held.mem_mib)};
  return holder;
}

void PlanGrants::Follow(const Cluster& cluster) {
  newcomers_.clear();
  measured_ = false;
  for (Holder* holder : changed_) *holder->spec = *holder->was;
  changed_.clear();
  const Ledger& ledger = engine_.ledger();
  const bool resizes = engine_.options().host_grants == HostGrants::kResize && engine_.scorer().policy().grants_host();
  if (!resizes || cluster.rows().sensitive == 0) {
    residents_.clear();
    read_.clear();
    whole_ = false;
    return;
  }
  if (!whole_ || generation_ != ledger.generation() || followed_ < ledger.log_begin()) {
    residents_.clear();
    read_.clear();
    settled_.clear();
    for (const uint32_t row : ledger.order()) FollowNode(cluster.rows(), row);
  } else {
    for (uint64_t i = followed_; i < ledger.log_end(); ++i) {
      if (ledger.touched(i).node_row < ledger.node_rows()) FollowNode(cluster.rows(), ledger.touched(i).node_row);
    }
  }
  whole_ = true;
  generation_ = ledger.generation();
  followed_ = ledger.log_end();
}

bool PlanGrants::Chooses(const JobSpec& job) const {
  return engine_.scorer().policy().grants_host() && MayHoldOthers(job);
}

bool PlanGrants::Active(std::span<const JobSpec> jobs) const {
  return !residents_.empty() || std::ranges::any_of(jobs, [&](const JobSpec& job) { return Chooses(job); });
}

void PlanGrants::MeasureNodes() {
  if (std::exchange(measured_, true)) return;
  fair_ = most_ = {};
  for (const uint32_t row : engine_.nodes()) {
    const NodeSpec& node = engine_.ledger().spec(row);
    if (node.devices.empty()) continue;
    const HostShare fair = FairShareOf(node);
    fair_ = {std::max(fair_.cpu_milli, fair.cpu_milli), std::max(fair_.mem_mib, fair.mem_mib)};
    most_ = {std::max(most_.cpu_milli, node.cpu_milli), std::max(most_.mem_mib, node.mem_mib)};
  }
}

HostUser PlanGrants::UserOf(const JobSpec& job, const HostShare& fair) const {
  HostUser user{
      .matrix = job.sensitivity.get(), .gpu_us = FastestGpuUs(job), .gpus = GpuCount(job), .weight = MostWork(job)};
  const double bound = job.slowdown_bound > 0 ? static_cast<double>(job.slowdown_bound) : GuardOf(job.kind);
  user.least = LeastShare(user, NeedPerGpu(job), fair, kAnything, bound);
  return user;
}

// ---- A newcomer.

absl::Status PlanGrants::Choose(const JobSpec& job, ChosenWay& choice) {
  if (engine_.options().host_grants == HostGrants::kStated) {
    JobSpec way = job;
    SetHostTime(way);
    HORUS_ASSIGN_OR_RETURN(choice, engine_.Choose(way));
    return absl::OkStatus();
  }
  MeasureNodes();
  const HostUser user = UserOf(job, fair_);
  const HostShare most = {most_.cpu_milli / job.gpus_per_task, most_.mem_mib / job.gpus_per_task};
  const std::vector<HostShare> shares = SharesToTry(user, fair_, most, kSharesToTry);
  const double best = std::max(WorkWith(user, shares.front()), kLeastWork);
  for (const HostShare& share : shares) {
    HORUS_ASSIGN_OR_RETURN(ChosenWay next, engine_.Choose(WayWith(job, share)));
    if (next.job == nullptr) {
      if (choice.job == nullptr) choice = std::move(next);  // of refusals that of the least tells
      continue;
    }
    const double alone = next.decision.relative_speed / static_cast<double>(next.decision.own.estimate);
    const double own = WorkWith(user, share) / best * alone;
    next.worth = own + LossOfOthers(next.decision, [](JobId) { return false; });
    // The search prices work by what the job does with this share.
    const double waits = GpuCount(job) * (alone - own);
    for (PricedPlace* place : {&next.decision.winner, &next.decision.runner_up}) {
      if (waits == 0 || place->terms.empty()) continue;
      place->cost += waits;
      place->terms.push_back({"host", waits});
    }
    if (choice.job == nullptr || next.worth > choice.worth) choice = std::move(next);
    if (choice.worth >= 1) break;  // nothing is better than to run as if alone
  }
  return choice.job == nullptr ? Reclaim(WayWith(job, shares.back()), choice) : absl::OkStatus();
}

absl::Status PlanGrants::Reclaim(const JobSpec& way, ChosenWay& choice) {
  if (choice.decision.verdict != Verdict::kDefer) return absl::OkStatus();
  const size_t mark = engine_.ledger().Mark();
  bool some = false;
  for (const auto* of : {&residents_, &newcomers_}) {
    for (const auto& [row, holders] : *of) {
      for (const std::unique_ptr<Holder>& holder : holders) {
        if (holder->user.least == HeldPerGpu(*holder->spec)) continue;
        some = true;
        engine_.ledger().Resize(*holder->spec, WayWith(*holder->spec, holder->user.least), holder->slots);
      }
    }
  }
  if (!some) return absl::OkStatus();
  HORUS_ASSIGN_OR_RETURN(ChosenWay found, engine_.Choose(way));
  engine_.ledger().UndoTo(mark);
  if (found.job == nullptr || !OnOneNode(found.slots)) return absl::OkStatus();
  const uint32_t row = found.slots.front().node_row;
  Node before, after;
  HORUS_RETURN_IF_ERROR(Read(row, nullptr, before));
  Holder guest;
  guest.spec = found.job;
  guest.slots = found.slots;
  const bool grows = Chooses(way) && engine_.options().host_grants != HostGrants::kStated;
  if (grows) guest.user = UserOf(way, after.fair = FairShareOf(engine_.ledger().spec(row)));
  engine_.ledger().Place(*guest.spec, guest.slots);
  HORUS_RETURN_IF_ERROR(Read(row, grows ? &guest : nullptr, after));
  engine_.ledger().UndoTo(mark);
  if (after.free.cpu_milli < 0 || after.free.mem_mib < 0) return absl::OkStatus();
  const std::vector<HostShare> shares = DivideHost(after.users, after.free, after.fair);
  double gain = LossOfOthers(found.decision, [&](JobId job) {
    return std::ranges::any_of(after.holders, [&](const Holder* holder) { return holder->spec->id == job; });
  });
  if (!grows) gain += found.decision.relative_speed / static_cast<double>(found.decision.own.estimate) * GpuCount(way);
  for (size_t i = 0; i < after.users.size(); ++i) gain += WorkOf(after.users[i], shares[i]);
  for (size_t i = 0; i < before.users.size(); ++i)
    gain -= WorkOf(before.users[i], HeldPerGpu(*before.holders[i]->spec));
  if (gain <= kLeastGrantGain) return absl::OkStatus();
  for (size_t i = 0; i < before.holders.size(); ++i) Hold(*before.holders[i], shares[i]);
  if (grows) *found.job = WayWith(*found.job, shares.back());
  found.decision.cpu_milli = found.job->cpu_milli;
  found.decision.mem_mib = found.job->mem_mib;
  choice = std::move(found);
  return absl::OkStatus();
}

void PlanGrants::Placed(const Plan& plan, std::span<const PlacedSlot> slots) {
  const JobSpec& job = *plan.actions.back().job;
  if (engine_.options().host_grants != HostGrants::kResize || !Chooses(job) || !OnOneNode(slots)) return;
  std::unique_ptr<Holder> holder = HolderOf(job, slots);
  holder->decision = plan.decisions.size() - 1;
  holder->action = plan.actions.size() - 1;
  newcomers_[slots.front().node_row].push_back(std::move(holder));
}

// ---- A node's users.

// What its GPUs take for a step beside those who share them, as if it never waited for its input.
absl::Status PlanGrants::SetBeside(const Holder& holder, HostUser& user) const {
  for (const PlacedSlot& slot : holder.slots) {
    const uint32_t device = engine_.ledger().device_of(slot);
    const DeviceRow& row = engine_.ledger().state(device);
    const std::span<const LedgerResident> residents = engine_.ledger().residents(device);
    Demand busy = DemandOn(*holder.spec, row.type);
    user.gpu_us = static_cast<double>(busy.step_time_us.estimate);
    if (residents.size() < 2) continue;
    busy.host_us = 0;
    std::vector<const Demand*> demands = {&busy};
    for (const LedgerResident& one : residents) {
      if (one.job != holder.spec->id) demands.push_back(&engine_.ledger().states().tenant(one.tenant).demand);
    }
    std::vector<Slowdown> slowdowns(demands.size());
    HORUS_RETURN_IF_ERROR(engine_.scorer().model().Predict(ContextOf(row), demands, slowdowns));
    user.slowdown = std::max(user.slowdown, static_cast<double>(slowdowns.front().estimate));
  }
  return absl::OkStatus();
}

absl::Status PlanGrants::Read(uint32_t node_row, Holder* guest, Node& node) {
  node.fair = FairShareOf(engine_.ledger().spec(node_row));
  const HostFree& free = engine_.ledger().node(node_row).free;
  node.free = {free.cpu_milli, free.mem_mib};
  for (auto* of : {&residents_, &newcomers_}) {
    const auto at = of->find(node_row);
    if (at == of->end()) continue;
    for (const std::unique_ptr<Holder>& holder : at->second) node.holders.push_back(holder.get());
  }
  if (guest != nullptr) node.holders.push_back(guest);
  for (const Holder* holder : node.holders) {
    HostUser user = holder->user;
    HORUS_RETURN_IF_ERROR(SetBeside(*holder, user));
    node.free = node.free + (HeldPerGpu(*holder->spec) - user.least) * user.gpus;
    node.users.push_back(user);
  }
  return absl::OkStatus();
}

void PlanGrants::Hold(Holder& holder, const HostShare& share) {
  if (share == HeldPerGpu(*holder.spec)) return;
  if (holder.was != nullptr) changed_.push_back(&holder);
  const JobSpec before = *holder.spec;
  *holder.spec = WayWith(before, share);
  engine_.ledger().Resize(before, *holder.spec, holder.slots);
}

absl::Status PlanGrants::Divide(uint32_t node_row, Plan& plan, RowList& touched) {
  Node node;
  HORUS_RETURN_IF_ERROR(Read(node_row, nullptr, node));
  if (node.free.cpu_milli >= 0 && node.free.mem_mib >= 0) {
    const std::vector<HostShare> shares = DivideHost(node.users, node.free, node.fair);
    double gain = 0;
    for (size_t i = 0; i < shares.size(); ++i)
      gain += WorkOf(node.users[i], shares[i]) - WorkOf(node.users[i], HeldPerGpu(*node.holders[i]->spec));
    for (size_t i = 0; gain > kLeastGrantGain && i < shares.size(); ++i) Hold(*node.holders[i], shares[i]);
  }
  for (Holder* holder : node.holders) {
    if (holder->was != nullptr) continue;
    Decision& decision = plan.decisions[holder->decision];
    decision.cpu_milli = holder->spec->cpu_milli;
    decision.mem_mib = holder->spec->mem_mib;
    plan.actions[holder->action].job = std::make_shared<JobSpec>(*holder->spec);
  }
  for (const Holder* holder : node.holders) {
    if (holder->was == nullptr || *holder->spec == *holder->was) continue;
    const JobSpec& was = *holder->was;
    const JobSpec& is = *holder->spec;
    touched.push_back(node_row);
    Move move{.kind = ActionKind::kResize, .job = was.id};
    for (const PlacedSlot& slot : holder->slots)
      move.from.push_back({engine_.ledger().spec(slot.node_row).id, slot.device, slot.task});
    move.to = move.from;
    move.gain = was.sensitivity.get()->Speed(HeldPerGpu(is)) - was.sensitivity.get()->Speed(HeldPerGpu(was));
    move.host_from = {was.cpu_milli, was.mem_mib};
    move.host_to = {is.cpu_milli, is.mem_mib};
    plan.moves.push_back(std::move(move));
    plan.actions.push_back({ActionKind::kResize, std::make_shared<JobSpec>(is), {}});
  }
  return absl::OkStatus();
}

absl::Status PlanGrants::Finish(Plan& plan, RowList& touched) {
  if (engine_.options().host_grants != HostGrants::kResize) return absl::OkStatus();
  RowList used = touched;
  std::ranges::sort(used);
  std::vector<uint32_t> rows;
  for (const auto& [row, holders] : residents_) rows.push_back(row);
  for (const auto& [row, holders] : newcomers_) rows.push_back(row);
  SortUnique(rows);
  const std::vector<uint32_t>* const considered = engine_.selected();
  for (const uint32_t row : rows) {
    if (considered != nullptr && std::ranges::find(*considered, row) == considered->end()) continue;
    // Only what changes nothing is remembered: a plan may be dropped, and another placer made the same.
    const bool as_it_was = !newcomers_.contains(row) && !std::binary_search(used.begin(), used.end(), row);
    const uint64_t version = engine_.ledger().node(row).version;
    if (as_it_was && settled_[row] == version) continue;
    const size_t before = plan.moves.size();
    HORUS_RETURN_IF_ERROR(Divide(row, plan, touched));
    if (as_it_was && plan.moves.size() == before) settled_[row] = version;
  }
  return absl::OkStatus();
}

}  // namespace horus
