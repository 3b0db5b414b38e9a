// SPDX-License-Identifier: Apache-2.0
// A plan as one round of a synergy rule; of this folder only.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/id_map.h"
#include "base/seeded_hash.h"
#include "base/status.h"
#include "place/communication.h"
#include "place/engine.h"
#include "place/placer_impl.h"
#include "place/synergy/cluster_round.h"

namespace horus {

class Placer::Impl::Round {
 public:
  // Where a job of the round runs until now.
  struct Lease {
    std::shared_ptr<const JobSpec> spec;
    PlacedSlots slots;
    std::vector<SynergySlice> slices;  // of the round's servers; none where a node is not up
  };

  Round(Impl& my, std::span<const JobSpec> jobs, std::span<const uint32_t> order, const ProgressFn& progress,
        std::vector<Lease> leases = {})
      : my_(my),
        settings_(*my.scorer.policy().round()),
        jobs_(jobs),
        order_(order),
        progress_(progress),
        leases_(std::move(leases)) {
    leases_.resize(order.size());
  }

  // Those of `gone` are jobs of the round, and not in the ledger.
  absl::StatusOr<Plan> Make(const Cluster& cluster, const ReadFn& read, const IdMap<bool>* gone = nullptr);

 private:
  using Servers = std::vector<uint32_t>;

  absl::Status Step();  // between two jobs
  [[nodiscard]] const JobSpec& JobAt(size_t at) const { return jobs_[order_[at]]; }

  // The jobs that the rule knows, and where they may run.
  absl::Status Gather();
  // Servers whose labels, groups and kind of GPU admit the job: as they are, or idle and up.
  absl::Status Admitting(const JobSpec& job, bool idle, const Servers*& servers);
  void Resize(const SynergyResize& resize);
  absl::Status Grant(size_t at, const SynergyGrant& grant);
  [[nodiscard]] PlacedSlots ChooseSlots(size_t at, const SynergyGrant& grant) const;
  // What becomes of a job that ran: it stays, moves or leaves.
  void Renew(size_t at, const SynergyGrant& grant, std::shared_ptr<const JobSpec> granted,
             std::span<const PlacedSlot> slots, Decision decision);
  void Expire(size_t at);
  [[nodiscard]] Move MoveOf(ActionKind kind, size_t at, double speed) const;
  absl::Status PlaceOther(size_t at);
  // Whoever the round left out, with all others in their places.
  absl::Status RefuseRest();
  absl::Status Refuse(size_t at, const RoundRefusals& refusals);
  void Add(std::shared_ptr<const JobSpec> job, std::span<const PlacedSlot> slots, Decision decision, size_t at) {
    for (const PlacedSlot& slot : slots) touched_.push_back(slot.node_row);
    plan_.actions.push_back({ActionKind::kPlace, std::move(job), decision.slots});
    plan_.decisions[at] = std::move(decision);
  }

  Impl& my_;
  const SynergySettings& settings_;
  std::span<const JobSpec> jobs_;
  std::span<const uint32_t> order_;
  const ProgressFn& progress_;
  std::vector<Lease> leases_;  // by position in the order
  uint64_t done_ = 0;
  Plan plan_;
  std::vector<uint32_t> touched_;  // node rows
  ClusterRound state_;
  std::vector<RoundJob> wanted_;                    // by position in the order; without spec: not for the rule
  std::vector<size_t> runnable_;                    // positions of those that some server admits
  IdMap<std::unique_ptr<Servers>> admitting_;       // by JobView::request
  IdMap<std::unique_ptr<Servers>> admitting_idle_;  // the same
  IdMap<bool> fits_alone_;                          // by that and the sensitivity
};

namespace {

constexpr size_t kProgressStep = 256;  // jobs between two calls, as in placer.cc

// As many of `idle` (ascending, all alike) as wanted: those with the fastest links between them, of the smallest part
// of the node that has enough, lowest numbers among equals.
std::vector<int32_t> ChooseLinked(const NodeSpec& node, std::vector<int32_t> idle, size_t wanted) {
  std::vector<int32_t> chosen(idle.begin(), idle.begin() + static_cast<ptrdiff_t>(wanted));
  if (wanted < 2 || wanted == idle.size()) return chosen;
  const auto spec = [&](int32_t device) -> const DeviceSpec& { return node.devices[static_cast<size_t>(device)]; };
  double fastest = 0;
  for (const Reach reach : kReaches) {
    const double link = LinkMbPerS(spec(idle.front()), reach);
    if (link <= fastest) continue;
    std::stable_sort(idle.begin(), idle.end(),
                     [&](int32_t a, int32_t b) { return PartOf(spec(a), reach) < PartOf(spec(b), reach); });
    size_t smallest = idle.size() + 1;
    for (size_t begin = 0, end = 0; begin < idle.size(); begin = end) {
      while (end < idle.size() && PartOf(spec(idle[end]), reach) == PartOf(spec(idle[begin]), reach)) ++end;
      if (PartOf(spec(idle[begin]), reach) < 0 || end - begin < wanted || end - begin >= smallest) continue;
      smallest = end - begin;
      fastest = link;
      chosen.assign(idle.begin() + static_cast<ptrdiff_t>(begin),
                    idle.begin() + static_cast<ptrdiff_t>(begin + wanted));
    }
    std::sort(idle.begin(), idle.end());
  }
  return chosen;
}

}  // namespace

absl::StatusOr<Plan> Placer::Impl::Round::Make(const Cluster& cluster, const ReadFn& read, const IdMap<bool>* gone) {
  my_.emptied.FollowEmptied(my_.ledger);
  state_.Read(cluster, my_.ledger, my_.considered(my_.ledger), settings_, gone);
  if (read != nullptr) read();
  plan_.model_epoch = my_.scorer.model().epoch();
  plan_.decisions.resize(order_.size());
  HORUS_RETURN_IF_ERROR(Gather());
  std::vector<SynergyJob> known;
  for (const size_t at : runnable_) known.push_back(wanted_[at].job);
  HORUS_ASSIGN_OR_RETURN(
      const SynergyRound round,
      AllocateRound(settings_.rule, {state_.servers(), state_.residents(), known}, settings_.options));
  for (const SynergyResize& resize : round.resizes) Resize(resize);
  for (const bool stays : {true, false}) {  // who stays has its devices before others choose theirs
    for (size_t i = 0; i < runnable_.size(); ++i) {
      const SynergyGrant& grant = round.grants[i];
      if (grant.slices.empty() || (grant.slices == leases_[runnable_[i]].slices) != stays) continue;
      HORUS_RETURN_IF_ERROR(Step());
      HORUS_RETURN_IF_ERROR(Grant(runnable_[i], grant));
    }
  }
  for (size_t i = 0; i < order_.size(); ++i) {
    if (wanted_[i].spec == nullptr) HORUS_RETURN_IF_ERROR(PlaceOther(i));
  }
  HORUS_RETURN_IF_ERROR(RefuseRest());
  for (size_t i = 0; i < order_.size(); ++i) {
    if (plan_.decisions[i].verdict != Verdict::kPlace && leases_[i].spec != nullptr) Expire(i);
  }
  my_.AddSeen(touched_, plan_);
  return std::move(plan_);
}

absl::Status Placer::Impl::Round::Step() {
  HORUS_RETURN_IF_ERROR(my_.GoOn());
  if (progress_ == nullptr || done_++ % kProgressStep != 0 || progress_(done_ - 1, order_.size())) {
    return absl::OkStatus();
  }
  return MakeError(absl::StatusCode::kCancelled, "plan: cancelled after %d of %d jobs", done_ - 1, order_.size());
}

absl::Status Placer::Impl::Round::Admitting(const JobSpec& job, bool idle, const Servers*& servers) {
  const JobView view = ViewJob(job, my_.options.probe_outside);
  IdMap<std::unique_ptr<Servers>>& known = idle ? admitting_idle_ : admitting_;
  if (const std::unique_ptr<Servers>* found = known.Find(view.request)) {
    servers = found->get();
    return absl::OkStatus();
  }
  my_.scorer.SetJob(view);
  std::vector<std::optional<bool>> kinds(state_.kinds());
  auto admitting = std::make_unique<Servers>();
  for (uint32_t s = 0; s < state_.servers().size(); ++s) {
    const LedgerNode& node = my_.ledger.node(state_.place(s).node_row);
    if (FitNode(job, *node.spec, idle ? AdminState::kUp : node.state) != Reason::kNone) continue;
    if (!idle && KeepsAway(job, node.groups)) continue;
    std::optional<bool>& admits = kinds[state_.servers()[s].kind];
    if (!admits.has_value()) {
      DeviceVerdict verdict;
      HORUS_RETURN_IF_ERROR(
          my_.scorer.Judge(my_.emptied.states(), my_.emptied.state_id(state_.place(s).sample), verdict));
      admits = verdict.reason == Reason::kNone;
    }
    if (*admits) admitting->push_back(s);
  }
  servers = known.Insert(view.request, std::move(admitting)).get();
  return absl::OkStatus();
}

absl::Status Placer::Impl::Round::Gather() {
  wanted_.resize(order_.size());
  for (size_t at = 0; at < order_.size(); ++at) {
    HORUS_RETURN_IF_ERROR(my_.GoOn());
    const JobSpec& job = JobAt(at);
    if (!TakesRounds(job)) continue;
    const Servers* servers = nullptr;
    HORUS_RETURN_IF_ERROR(Admitting(job, /*idle=*/false, servers));
    const bool minds = GroupsOf(job) > 0 || job.spread_tasks || job.storage_mb_s > 0;
    wanted_[at] = {&job,
                   {.gpus = GpuCount(job),
                    .unit = job.gpus_per_task,
                    .need = NeedPerGpu(job),
                    .sensitivity = job.sensitivity.get(),
                    .allowed = {},
                    .held = {},
                    .spec = minds ? &job : nullptr},
                   *servers};
    if (servers->size() < state_.servers().size()) wanted_[at].job.allowed = *servers;
    leases_[at].slices = state_.SlicesOf(my_.ledger, leases_[at].slots);
    wanted_[at].job.held = leases_[at].slices;
    if (!servers->empty()) runnable_.push_back(at);
  }
  return absl::OkStatus();
}

void Placer::Impl::Round::Resize(const SynergyResize& resize) {
  const ClusterRound::ResidentJob& resident = state_.resident(resize.resident);
  const JobSpec& was = *resident.spec;
  const HostShare held = state_.residents()[resize.resident].held;
  const auto per_task = [&](int64_t share, int64_t before, int64_t task) {
    return share == before ? task : share * was.gpus_per_task;  // what did not change keeps its odd thousandths
  };
  auto is = std::make_shared<JobSpec>(was);
  GrantHost(per_task(resize.share.cpu_milli, held.cpu_milli, was.cpu_milli),
            per_task(resize.share.mem_mib, held.mem_mib, was.mem_mib), *is);
  Move move{.kind = ActionKind::kResize, .job = was.id};
  for (const PlacedSlot& slot : resident.slots) {
    move.from.push_back({my_.ledger.spec(slot.node_row).id, slot.device, slot.task});
    touched_.push_back(slot.node_row);
  }
  move.to = move.from;
  if (const Sensitivity* matrix = was.sensitivity.get()) move.gain = matrix->Speed(resize.share) - matrix->Speed(held);
  move.host_from = {was.cpu_milli, was.mem_mib};
  move.host_to = {is->cpu_milli, is->mem_mib};
  plan_.moves.push_back(std::move(move));
  my_.ledger.Resize(was, *is, resident.slots);
  plan_.actions.push_back({ActionKind::kResize, std::move(is), {}});
}

PlacedSlots Placer::Impl::Round::ChooseSlots(size_t at, const SynergyGrant& grant) const {
  if (grant.slices == leases_[at].slices) return leases_[at].slots;
  PlacedSlots slots;
  for (const SynergySlice& slice : grant.slices) {
    const uint32_t row = state_.place(slice.server).node_row;
    const auto gpus = static_cast<size_t>(slice.gpus);
    std::vector<int32_t> chosen = ChooseLinked(my_.ledger.spec(row), state_.IdleOn(my_.ledger, slice.server), gpus);
    for (const int32_t device : chosen) {
      const auto task = static_cast<int32_t>(slots.size()) / JobAt(at).gpus_per_task;
      slots.push_back(SlotAt(row, device, task));
    }
  }
  return slots;
}

absl::Status Placer::Impl::Round::Grant(size_t at, const SynergyGrant& grant) {
  const JobSpec& job = JobAt(at);
  auto granted = std::make_shared<JobSpec>(job);
  GrantHost(grant.share.cpu_milli * job.gpus_per_task, grant.share.mem_mib * job.gpus_per_task, *granted);
  SearchResult found;
  found.spans_nodes = grant.slices.size() > 1;
  found.best.slots = ChooseSlots(at, grant);
  const JobView view = ViewJob(*granted, my_.options.probe_outside);
  my_.scorer.SetJob(view);
  Decision decision{.job = job.id};
  HORUS_RETURN_IF_ERROR(my_.explainer.Placed(my_.ledger, view, found, decision));
  decision.winner.cost = -grant.speed;
  decision.winner.terms = {{"speed", -grant.speed}};
  if (leases_[at].spec != nullptr) {
    my_.ledger.Place(*granted, found.best.slots);
    Renew(at, grant, std::move(granted), found.best.slots, std::move(decision));
    return absl::OkStatus();
  }
  decision.probe = my_.options.probe_outside && my_.IsUnknownAt(job, found.best.slots.front());
  granted->exclusive |= decision.probe;
  my_.ledger.Place(*granted, found.best.slots);
  Add(std::move(granted), found.best.slots, std::move(decision), at);
  return absl::OkStatus();
}

absl::Status Placer::Impl::Round::PlaceOther(size_t at) {
  HORUS_RETURN_IF_ERROR(Step());
  Choice choice;
  HORUS_RETURN_IF_ERROR(my_.Choose(JobAt(at), choice));
  if (choice.job == nullptr) {
    plan_.decisions[at] = std::move(choice.decision);
    return absl::OkStatus();
  }
  my_.ledger.Place(*choice.job, choice.slots);
  Add(std::move(choice.job), choice.slots, std::move(choice.decision), at);
  return absl::OkStatus();
}

absl::Status Placer::Impl::Round::RefuseRest() {
  std::optional<RoundRefusals> refusals;  // made when the first is refused
  for (size_t at = 0; at < order_.size(); ++at) {
    if (wanted_[at].spec == nullptr || plan_.decisions[at].verdict == Verdict::kPlace) continue;
    HORUS_RETURN_IF_ERROR(Step());
    if (!refusals.has_value()) refusals.emplace(state_, settings_);
    HORUS_RETURN_IF_ERROR(Refuse(at, *refusals));
  }
  return absl::OkStatus();
}

// The search tells what keeps a job of whole GPUs out: first without its host, for where GPUs are busy their cores are
// too, then with the least that the rule would give it. It may still find a place where the rule does not: then the
// rule's own terms tell.
absl::Status Placer::Impl::Round::Refuse(size_t at, const RoundRefusals& refusals) {
  const JobSpec& job = JobAt(at);
  RoundJob when_idle = wanted_[at];
  const Servers* idle = nullptr;
  HORUS_RETURN_IF_ERROR(Admitting(job, /*idle=*/true, idle));
  when_idle.allowed = *idle;
  const HostShare least = refusals.Least(when_idle);
  JobSpec asked = job;
  asked.exclusive = true;
  asked.cpu_milli = least.cpu_milli * job.gpus_per_task;
  asked.mem_mib = least.mem_mib * job.gpus_per_task;
  Decision& decision = plan_.decisions[at];
  const JobView view = ViewJob(asked, my_.options.probe_outside);
  HORUS_ASSIGN_OR_RETURN(decision, my_.Decide(view));
  if (decision.verdict == Verdict::kReject || decision.predicted_never) return absl::OkStatus();
  const Sensitivity* matrix = job.sensitivity.get();
  const uint64_t request = matrix == nullptr ? view.request : CombineHash(view.request, matrix->Hash(ProcessSecret()));
  const bool* fits = fits_alone_.Find(request);
  if (fits == nullptr) fits = &fits_alone_.Insert(request, refusals.FitsAlone(when_idle, my_.ledger));
  const bool found = decision.verdict == Verdict::kPlace;
  if (*fits && !found) {
    asked.cpu_milli = asked.mem_mib = 0;
    HORUS_ASSIGN_OR_RETURN(Decision without_host, my_.Decide(ViewJob(asked, my_.options.probe_outside)));
    if (without_host.verdict == Verdict::kDefer) decision = std::move(without_host);
    return absl::OkStatus();
  }
  decision = {.job = job.id, .verdict = *fits ? Verdict::kDefer : Verdict::kReject};
  refusals.Explain(*fits ? wanted_[at] : when_idle, my_.ledger, !*fits, decision);
  return absl::OkStatus();
}

absl::StatusOr<Plan> Placer::Impl::PlanRound(const Cluster& cluster, std::span<const JobSpec> jobs,
                                             std::span<const uint32_t> order, const ProgressFn& progress,
                                             const ReadFn& read) {
  return Round(*this, jobs, order, progress).Make(cluster, read);
}

// ---- What becomes of jobs that run when a round decides them again.

Move Placer::Impl::Round::MoveOf(ActionKind kind, size_t at, double speed) const {
  const Lease& lease = leases_[at];
  const JobSpec& was = *lease.spec;
  Move move{.kind = kind, .job = was.id, .from = SlotsOf(my_.ledger, lease.slots)};
  const HostShare held = {was.cpu_milli / was.gpus_per_task, was.mem_mib / was.gpus_per_task};
  const Sensitivity* matrix = was.sensitivity.get();
  move.gain = speed - (matrix == nullptr ? 1 : matrix->Speed(held));
  move.host_from = {was.cpu_milli, was.mem_mib};
  return move;
}

void Placer::Impl::Round::Renew(size_t at, const SynergyGrant& grant, std::shared_ptr<const JobSpec> granted,
                                std::span<const PlacedSlot> slots, Decision decision) {
  const Lease& lease = leases_[at];
  const bool stays = grant.slices == lease.slices;
  const bool alike = granted->cpu_milli == lease.spec->cpu_milli && granted->mem_mib == lease.spec->mem_mib;
  if (!stays || !alike) {
    Move move = MoveOf(stays ? ActionKind::kResize : ActionKind::kMigrate, at, grant.speed);
    move.to = decision.slots;
    move.host_to = {granted->cpu_milli, granted->mem_mib};
    for (const PlacedSlot& slot : lease.slots) touched_.push_back(slot.node_row);
    for (const PlacedSlot& slot : slots) touched_.push_back(slot.node_row);
    plan_.actions.push_back({move.kind, std::move(granted), stays ? Slots() : decision.slots});
    plan_.moves.push_back(std::move(move));
  }
  plan_.decisions[at] = std::move(decision);
}

void Placer::Impl::Round::Expire(size_t at) {
  for (const PlacedSlot& slot : leases_[at].slots) touched_.push_back(slot.node_row);
  plan_.moves.push_back(MoveOf(ActionKind::kPreempt, at, 0));
  plan_.actions.push_back({ActionKind::kPreempt, leases_[at].spec, {}});
}

absl::StatusOr<Plan> Placer::MakeRound(const Cluster& cluster, std::span<const JobSpec> jobs, const ReadFn& read) {
  Impl& my = *impl_;
  if (my.scorer.policy().round() == nullptr) {
    return MakeError(absl::StatusCode::kUnimplemented, "policy %s: expected one that decides rounds",
                     std::string(my.scorer.policy().name()));
  }
  if (jobs.size() > my.options.max_jobs) {
    return MakeError(absl::StatusCode::kResourceExhausted, "round: expected at most %d jobs, found %d",
                     my.options.max_jobs, jobs.size());
  }
  std::vector<JobSpec> known(jobs.begin(), jobs.end());
  std::vector<Impl::Round::Lease> leases(jobs.size());
  IdMap<bool> gone;
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < jobs.size(); ++i) {
    order.push_back(i);
    const uint32_t row = cluster.rows().RowOfJob(jobs[i].id);
    if (row == kNoRow || gone.contains(jobs[i].id)) continue;
    const JobRow& held = cluster.rows().jobs[row];
    known[i] = cluster.rows().SpecOf(held);
    if (!TakesRounds(known[i])) {
      return InvalidArgument("round: job %s: expected whole GPUs of one that runs, found others",
                             IdAndName(known[i].id, known[i].name));
    }
    leases[i] = {std::make_shared<const JobSpec>(known[i]), held.slots, {}};
    gone.Insert(jobs[i].id, true);
  }
  HORUS_RETURN_IF_ERROR(PlanningOrder(cluster, known, my.scorer.model(), &gone).status());
  HORUS_RETURN_IF_ERROR(my.SelectNodes(cluster, std::nullopt));
  my.ledger.Follow(cluster);
  for (const Impl::Round::Lease& lease : leases) {
    if (lease.spec != nullptr) my.ledger.Remove(*lease.spec, lease.slots);
  }
  return Impl::Round(my, known, order, nullptr, std::move(leases)).Make(cluster, read, &gone);
}

}  // namespace horus
