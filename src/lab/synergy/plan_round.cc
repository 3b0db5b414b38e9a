// SPDX-License-Identifier: Apache-2.0
// A plan as one round of a synergy rule, over the engine of a placer.
#include <algorithm>
#include <limits>
#include <tuple>

#include "base/hash.h"
#include "base/id_map.h"
#include "base/seeded_hash.h"
#include "base/status.h"
#include "base/units.h"
#include "lab/policies/rivals.h"
#include "lab/synergy/rules.h"
#include "place/state/cluster.h"
#include "place/state/communication.h"
#include "place/state/fit.h"
#include "place/state/ledger.h"

namespace horus {
namespace {

using Kind = std::tuple<uint16_t, SharingMode, int64_t, float>;

Kind KindOf(const DeviceSpec& device) {
  return {device.type.value(), device.mode, device.mem_mib, device.compute_share};
}

// Over-commitment by adopted jobs may be larger than rounds count with.
int64_t Counted(int64_t free) { return std::max(free, -kMaxHostQuantity); }

HostShare PerGpu(const JobSpec& job) { return FairShare(job.cpu_milli, job.mem_mib, job.gpus_per_task); }

// What parts of a node may give, so that together it is never more than the node has: what no GPU job holds is
// everybody's burden, and what one part lacks is missing in the others.
void ShareFree(int64_t free, std::span<int64_t> parts, std::span<const int64_t> used, std::span<const int32_t> gpus,
               int64_t total) {
  int64_t all_gpus = 0, others = total - free;
  for (size_t p = 0; p < parts.size(); ++p) {
    all_gpus += gpus[p];
    others -= used[p];
  }
  int64_t lack = 0;
  for (size_t p = 0; p < parts.size(); ++p) {
    const int64_t burden = (std::max<int64_t>(0, others) * gpus[p] + all_gpus - 1) / all_gpus;
    parts[p] -= used[p] + burden;
    lack += std::max<int64_t>(0, -parts[p]);
  }
  for (int64_t& part : parts) {
    const int64_t taken = std::clamp<int64_t>(part, 0, lack);
    part -= taken;
    lack -= taken;
  }
}

// Whether rules know such jobs: whole GPUs, run in one way.
bool TakesRounds(const JobSpec& job) {
  return !IsCpuOnly(job) && job.alternatives.empty() && (job.gpu_milli == 0 || job.gpu_milli == kMilliPerGpu);
}

// A cluster as a round sees it: servers with what is free and residents with what they hold, read off a ledger.
class ClusterRound {
 public:
  // GPUs of one node that are alike: type, sharing mode, memory, share of a card. A node that mixes several is as many
  // servers, each with its GPUs' part of cores and memory, so that no GPU's fair share depends on its neighbours.
  struct Place {
    uint32_t node_row = 0;
    uint32_t sample = 0;  // one of the devices
  };
  struct ResidentJob {
    std::shared_ptr<const JobSpec> spec;
    PlacedSlots slots;
  };

  // `nodes`: rows, ascending id. Residents are those that the rule may resize: on whole GPUs, on nodes that are up and
  // considered. Those of `gone` count as gone, as they must in the ledger.
  void Read(const Cluster& cluster, const Ledger& ledger, std::span<const uint32_t> nodes,
            const SynergySettings& settings, const IdMap<bool>* gone) {
    AddServers(ledger, nodes);
    const bool resizes = settings.rule == SynergyRule::kTune || settings.rule == SynergyRule::kOpt;
    if (!resizes && !mixed_) return;
    const std::vector<HostShare> used = ReadJobs(cluster, ledger, settings, gone);
    if (mixed_) ShareOut(ledger, used);
    if (!resizes) {
      jobs_.clear();
      residents_.clear();
    }
  }

  // The servers of those slots; none where a node is not up or not considered.
  [[nodiscard]] std::vector<SynergySlice> SlicesOf(const Ledger& ledger, std::span<const PlacedSlot> slots) const {
    std::map<uint32_t, int32_t> gpus;
    for (const PlacedSlot& slot : slots) {
      const uint32_t server = server_of_[ledger.device_of(slot)];
      if (server == kNone || ledger.node(slot.node_row).state != AdminState::kUp) return {};
      ++gpus[server];
    }
    std::vector<SynergySlice> slices;
    for (const auto& [server, count] : gpus) slices.push_back({server, count});
    return slices;
  }

  [[nodiscard]] std::span<const SynergyServer> servers() const { return servers_; }
  [[nodiscard]] const Place& place(size_t server) const { return places_[server]; }
  [[nodiscard]] uint32_t kinds() const { return kinds_; }  // above every SynergyServer::kind
  [[nodiscard]] std::span<const SynergyResident> residents() const { return residents_; }
  [[nodiscard]] const ResidentJob& resident(size_t index) const { return jobs_[index]; }  // ascending job id
  // Devices of the server that are idle and up in the ledger, ascending.
  [[nodiscard]] std::vector<int32_t> IdleOn(const Ledger& ledger, size_t server) const {
    const LedgerNode& node = ledger.node(places_[server].node_row);
    std::vector<int32_t> idle;
    for (int32_t i = 0; i < node.devices; ++i) {
      const uint32_t device = node.first_device + static_cast<uint32_t>(i);
      const DeviceRow& state = ledger.state(device);
      if (server_of_[device] == server && state.tenants.empty() && state.state == AdminState::kUp) idle.push_back(i);
    }
    return idle;
  }

 private:
  static constexpr uint32_t kNone = 0xFFFFFFFFu;

  void AddServers(const Ledger& ledger, std::span<const uint32_t> nodes) {
    server_of_.assign(ledger.device_limit(), kNone);
    std::map<Kind, uint32_t> kinds;
    for (const uint32_t row : nodes) {
      const LedgerNode& node = ledger.node(row);
      const bool up = node.state == AdminState::kUp;
      const size_t first = servers_.size();
      Kind last;
      uint32_t server = kNone;
      for (size_t i = 0; i < node.spec->devices.size(); ++i) {
        const uint32_t device = node.first_device + static_cast<uint32_t>(i);
        if (const Kind kind = KindOf(node.spec->devices[i]); server == kNone || kind != last) {
          last = kind;
          const uint32_t number = kinds.try_emplace(kind, static_cast<uint32_t>(kinds.size())).first->second;
          server = static_cast<uint32_t>(first);
          while (server < servers_.size() && servers_[server].kind != number) ++server;
          if (server == servers_.size()) {
            servers_.push_back({.cpu_milli = node.spec->cpu_milli,
                                .mem_mib = node.spec->mem_mib,
                                .cpu_free_milli = up ? Counted(node.free.cpu_milli) : 0,
                                .mem_free_mib = up ? Counted(node.free.mem_mib) : 0,
                                .kind = number,
                                .host = row,
                                .storage_free_mb_s = up ? Counted(node.free.storage_mb_s) : 0});
            places_.push_back({row, device});
          }
        }
        server_of_[device] = server;
        ++servers_[server].gpus;
        const DeviceRow& state = ledger.state(device);
        if (up && state.tenants.empty() && state.state == AdminState::kUp) ++servers_[server].gpus_free;
      }
      mixed_ |= servers_.size() > first + 1;
    }
    kinds_ = static_cast<uint32_t>(kinds.size());
  }

  // Returns what GPU jobs hold on each server.
  [[nodiscard]] std::vector<HostShare> ReadJobs(const Cluster& cluster, const Ledger& ledger,
                                                const SynergySettings& settings, const IdMap<bool>* gone) {
    std::vector<HostShare> used(servers_.size());
    std::vector<std::pair<ResidentJob, SynergyResident>> found;
    for (const JobRow& row : cluster.rows().jobs) {
      if (!row.live() || (gone != nullptr && gone->contains(row.id))) continue;
      const JobSpec& request = cluster.rows().RequestOf(row);
      if (IsCpuOnly(request)) continue;
      const HostShare held = PerGpu(request);
      for (const PlacedSlot& slot : row.slots) {
        const uint32_t server = server_of_[ledger.device_of(slot)];
        if (server != kNone) used[server] = used[server] + held;
      }
      if (!TakesRounds(request)) continue;
      SynergyResident resident{
          .slices = SlicesOf(ledger, row.slots), .held = held, .floor = {}, .sensitivity = request.sensitivity.get()};
      if (resident.slices.empty()) continue;
      const SynergyJob job{.need = NeedPerGpu(request), .sensitivity = resident.sensitivity};
      for (const SynergySlice& slice : resident.slices) {
        // A part of a mixed node has the fair share of the whole.
        const SynergyServer& server = servers_[slice.server];
        const auto gpus = static_cast<int32_t>(ledger.node(server.host).devices);
        const HostShare floor = SynergyFloor(job, FairShare(server.cpu_milli, server.mem_mib, gpus));
        resident.floor.cpu_milli = std::max(resident.floor.cpu_milli, floor.cpu_milli);
        resident.floor.mem_mib = std::max(resident.floor.mem_mib, floor.mem_mib);
      }
      resident.floor.cpu_milli = std::min(resident.floor.cpu_milli, held.cpu_milli);
      resident.floor.mem_mib = std::min(resident.floor.mem_mib, held.mem_mib);
      const bool may_grow = settings.rule == SynergyRule::kOpt || settings.options.grow;
      if (!may_grow && resident.floor == held) continue;
      found.emplace_back(ResidentJob{std::make_shared<const JobSpec>(cluster.rows().SpecOf(row)), row.slots},
                         std::move(resident));
    }
    // Rows are history, and must decide nothing.
    std::ranges::sort(found, [](const auto& a, const auto& b) { return a.first.spec->id < b.first.spec->id; });
    for (auto& [job, resident] : found) {
      jobs_.push_back(std::move(job));
      residents_.push_back(std::move(resident));
    }
    return used;
  }

  void ShareOut(const Ledger& ledger, std::span<const HostShare> used) {
    for (size_t first = 0, end = 0; first < servers_.size(); first = end) {
      while (end < servers_.size() && servers_[end].host == servers_[first].host) ++end;
      const LedgerNode& node = ledger.node(servers_[first].host);
      if (end - first < 2) continue;
      std::vector<int64_t> cpu, mem, cpu_used, mem_used;
      std::vector<int32_t> gpus;
      for (size_t s = first; s < end; ++s) {
        SynergyServer& server = servers_[s];
        server.cpu_milli = node.spec->cpu_milli * server.gpus / node.devices;
        server.mem_mib = node.spec->mem_mib * server.gpus / node.devices;
        gpus.push_back(server.gpus);
        cpu.push_back(server.cpu_milli);
        mem.push_back(server.mem_mib);
        cpu_used.push_back(used[s].cpu_milli);
        mem_used.push_back(used[s].mem_mib);
      }
      if (node.state != AdminState::kUp) continue;  // nothing is free there
      ShareFree(node.free.cpu_milli, cpu, cpu_used, gpus, node.spec->cpu_milli);
      ShareFree(node.free.mem_mib, mem, mem_used, gpus, node.spec->mem_mib);
      for (size_t s = first; s < end; ++s) {
        servers_[s].cpu_free_milli = Counted(cpu[s - first]);
        servers_[s].mem_free_mib = Counted(mem[s - first]);
      }
    }
  }

  std::vector<SynergyServer> servers_;
  std::vector<Place> places_;
  std::vector<uint32_t> server_of_;  // by device
  uint32_t kinds_ = 0;
  bool mixed_ = false;  // some node is several servers
  std::vector<ResidentJob> jobs_;
  std::vector<SynergyResident> residents_;
};

// A job as a round sees it.
struct RoundJob {
  const JobSpec* spec = nullptr;
  SynergyJob job;
  std::span<const uint32_t> allowed;  // servers, ascending; also where `job.allowed` is empty because it is all of them
};

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
    std::ranges::stable_sort(idle,
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
    std::ranges::sort(idle);
  }
  return chosen;
}

// GPUs with `share` each that the idle server holds, as many as the job's shape lets be there.
int32_t RoomWhenIdle(const RoundJob& job, const SynergyServer& server, const NodeSpec& node, const HostShare& share) {
  int64_t gpus = std::min(job.job.gpus, server.gpus);
  if (share.cpu_milli > 0) gpus = std::min(gpus, server.cpu_milli / share.cpu_milli);
  if (share.mem_mib > 0) gpus = std::min(gpus, server.mem_mib / share.mem_mib);
  if (job.spec->spread_tasks) gpus = std::min<int64_t>(gpus, job.job.unit);
  if (job.spec->storage_mb_s > 0)
    gpus = std::min(gpus, node.storage_mb_s / job.spec->storage_mb_s * int64_t{job.job.unit});
  return static_cast<int32_t>(gpus);
}

class RoundPlan {
 public:
  RoundPlan(Engine& engine, const SynergySettings& settings, const RoundRequest& request)
      : engine_(engine),
        ledger_(engine.ledger()),
        settings_(settings),
        jobs_(request.jobs),
        order_(request.order),
        progress_(request.progress),
        leases_(request.leases.begin(), request.leases.end()),
        held_(request.order.size()) {
    leases_.resize(order_.size());
  }

  // Those of `gone` are jobs of the round, and not in the ledger.
  absl::StatusOr<Plan> Make(const Cluster& cluster, const ReadFn& read, const IdMap<bool>* gone) {
    state_.Read(cluster, ledger_, engine_.nodes(), settings_, gone);
    if (read != nullptr) read();
    plan_.model_epoch = engine_.scorer().model().epoch();
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
        if (grant.slices.empty() || (grant.slices == held_[runnable_[i]]) != stays) continue;
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
    engine_.AddSeen(touched_, plan_);
    return std::move(plan_);
  }

 private:
  using Servers = std::vector<uint32_t>;

  // Between two jobs.
  absl::Status Step() {
    HORUS_RETURN_IF_ERROR(engine_.GoOn());
    if (progress_ == nullptr || done_++ % kProgressStep != 0 || progress_(done_ - 1, order_.size()))
      return absl::OkStatus();
    return Cancelled("plan: cancelled after %d of %d jobs", done_ - 1, order_.size());
  }
  [[nodiscard]] const JobSpec& JobAt(size_t at) const { return jobs_[order_[at]]; }

  // The jobs that the rule knows, and where they may run.
  absl::Status Gather() {
    wanted_.resize(order_.size());
    for (size_t at = 0; at < order_.size(); ++at) {
      HORUS_RETURN_IF_ERROR(engine_.GoOn());
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
      held_[at] = state_.SlicesOf(ledger_, leases_[at].slots);
      wanted_[at].job.held = held_[at];
      if (!servers->empty()) runnable_.push_back(at);
    }
    return absl::OkStatus();
  }

  // Servers whose labels, groups and kind of GPU admit the job: as they are, or idle and up.
  absl::Status Admitting(const JobSpec& job, bool idle, const Servers*& servers) {
    const JobView view = ViewJob(job, engine_.options().probe_outside);
    IdMap<std::unique_ptr<Servers>>& known = idle ? admitting_idle_ : admitting_;
    if (const std::unique_ptr<Servers>* found = known.Find(view.request)) {
      servers = found->get();
      return absl::OkStatus();
    }
    engine_.scorer().SetJob(view);
    const Ledger& emptied = engine_.emptied();
    std::vector<std::optional<bool>> kinds(state_.kinds());
    auto admitting = std::make_unique<Servers>();
    for (uint32_t s = 0; s < state_.servers().size(); ++s) {
      const LedgerNode& node = ledger_.node(state_.place(s).node_row);
      if (FitNode(job, *node.spec, idle ? AdminState::kUp : node.state) != Reason::kNone) continue;
      if (!idle && KeepsAway(job, node.groups)) continue;
      std::optional<bool>& admits = kinds[state_.servers()[s].kind];
      if (!admits.has_value()) {
        DeviceVerdict verdict;
        HORUS_RETURN_IF_ERROR(
            engine_.scorer().Judge(emptied.states(), emptied.state_id(state_.place(s).sample), verdict));
        admits = verdict.reason == Reason::kNone;
      }
      if (*admits) admitting->push_back(s);
    }
    servers = known.Insert(view.request, std::move(admitting)).get();
    return absl::OkStatus();
  }

  void Resize(const SynergyResize& resize) {
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
      move.from.push_back({ledger_.spec(slot.node_row).id, slot.device, slot.task});
      touched_.push_back(slot.node_row);
    }
    move.to = move.from;
    if (const Sensitivity* matrix = was.sensitivity.get())
      move.gain = matrix->Speed(resize.share) - matrix->Speed(held);
    move.host_from = {was.cpu_milli, was.mem_mib};
    move.host_to = {is->cpu_milli, is->mem_mib};
    plan_.moves.push_back(std::move(move));
    ledger_.Resize(was, *is, resident.slots);
    plan_.actions.push_back({ActionKind::kResize, std::move(is), {}});
  }

  absl::Status Grant(size_t at, const SynergyGrant& grant) {
    const JobSpec& job = JobAt(at);
    auto granted = std::make_shared<JobSpec>(job);
    GrantHost(grant.share.cpu_milli * job.gpus_per_task, grant.share.mem_mib * job.gpus_per_task, *granted);
    SearchResult found;
    found.spans_nodes = grant.slices.size() > 1;
    found.best.slots = ChooseSlots(at, grant);
    HORUS_ASSIGN_OR_RETURN(Decision decision,
                           engine_.Explain(ViewJob(*granted, engine_.options().probe_outside), found));
    decision.winner.cost = -grant.speed;
    decision.winner.terms = {{"speed", -grant.speed}};
    if (leases_[at].spec != nullptr) {
      ledger_.Place(*granted, found.best.slots);
      Renew(at, grant, std::move(granted), found.best.slots, std::move(decision));
      return absl::OkStatus();
    }
    decision.probe = engine_.IsProbe(job, found.best.slots.front());
    granted->exclusive |= decision.probe;
    ledger_.Place(*granted, found.best.slots);
    Add(std::move(granted), found.best.slots, std::move(decision), at);
    return absl::OkStatus();
  }

  [[nodiscard]] PlacedSlots ChooseSlots(size_t at, const SynergyGrant& grant) const {
    if (grant.slices == held_[at]) return leases_[at].slots;
    PlacedSlots slots;
    for (const SynergySlice& slice : grant.slices) {
      const uint32_t row = state_.place(slice.server).node_row;
      const auto gpus = static_cast<size_t>(slice.gpus);
      std::vector<int32_t> chosen = ChooseLinked(ledger_.spec(row), state_.IdleOn(ledger_, slice.server), gpus);
      for (const int32_t device : chosen) {
        const auto task = static_cast<int32_t>(slots.size()) / JobAt(at).gpus_per_task;
        slots.push_back(SlotAt(row, device, task));
      }
    }
    return slots;
  }

  // What becomes of a job that ran: it stays, moves or leaves.
  void Renew(size_t at, const SynergyGrant& grant, std::shared_ptr<const JobSpec> granted,
             std::span<const PlacedSlot> slots, Decision decision) {
    const Lease& lease = leases_[at];
    const bool stays = grant.slices == held_[at];
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

  void Expire(size_t at) {
    for (const PlacedSlot& slot : leases_[at].slots) touched_.push_back(slot.node_row);
    plan_.moves.push_back(MoveOf(ActionKind::kPreempt, at, 0));
    plan_.actions.push_back({ActionKind::kPreempt, leases_[at].spec, {}});
  }

  [[nodiscard]] Move MoveOf(ActionKind kind, size_t at, double speed) const {
    const Lease& lease = leases_[at];
    const JobSpec& was = *lease.spec;
    Move move{.kind = kind, .job = was.id, .from = SlotsOf(ledger_, lease.slots)};
    const HostShare held = {was.cpu_milli / was.gpus_per_task, was.mem_mib / was.gpus_per_task};
    const Sensitivity* matrix = was.sensitivity.get();
    move.gain = speed - (matrix == nullptr ? 1 : matrix->Speed(held));
    move.host_from = {was.cpu_milli, was.mem_mib};
    return move;
  }

  absl::Status PlaceOther(size_t at) {
    HORUS_RETURN_IF_ERROR(Step());
    HORUS_ASSIGN_OR_RETURN(ChosenWay choice, engine_.Choose(JobAt(at)));
    if (choice.job == nullptr) {
      plan_.decisions[at] = std::move(choice.decision);
      return absl::OkStatus();
    }
    ledger_.Place(*choice.job, choice.slots);
    Add(std::move(choice.job), choice.slots, std::move(choice.decision), at);
    return absl::OkStatus();
  }

  // Whoever the round left out, with all others in their places.
  absl::Status RefuseRest() {
    for (size_t at = 0; at < order_.size(); ++at) {
      if (wanted_[at].spec == nullptr || plan_.decisions[at].verdict == Verdict::kPlace) continue;
      HORUS_RETURN_IF_ERROR(Step());
      if (!classes_) classes_ = ClassesOf(state_.servers());
      HORUS_RETURN_IF_ERROR(Refuse(at));
    }
    return absl::OkStatus();
  }

  // The search tells what keeps a job of whole GPUs out: first without its host, for where GPUs are busy their cores
  // are too, then with the least that the rule would give it. It may still find a place where the rule does not: then
  // the rule's own terms tell.
  absl::Status Refuse(size_t at) {
    const JobSpec& job = JobAt(at);
    RoundJob when_idle = wanted_[at];
    const Servers* idle = nullptr;
    HORUS_RETURN_IF_ERROR(Admitting(job, /*idle=*/true, idle));
    when_idle.allowed = *idle;
    const HostShare least = Least(when_idle);
    JobSpec asked = job;
    asked.exclusive = true;
    asked.cpu_milli = least.cpu_milli * job.gpus_per_task;
    asked.mem_mib = least.mem_mib * job.gpus_per_task;
    Decision& decision = plan_.decisions[at];
    const JobView view = ViewJob(asked, engine_.options().probe_outside);
    HORUS_ASSIGN_OR_RETURN(decision, engine_.Decide(view));
    if (decision.verdict == Verdict::kReject || decision.predicted_never) return absl::OkStatus();
    const Sensitivity* matrix = job.sensitivity.get();
    const uint64_t request =
        matrix == nullptr ? view.request : CombineHash(view.request, matrix->Hash(ProcessSecret()));
    const bool* fits = fits_alone_.Find(request);
    if (fits == nullptr) fits = &fits_alone_.Insert(request, FitsAlone(when_idle));
    const bool found = decision.verdict == Verdict::kPlace;
    if (*fits && !found) {
      asked.cpu_milli = asked.mem_mib = 0;
      HORUS_ASSIGN_OR_RETURN(Decision without_host, engine_.Decide(ViewJob(asked, engine_.options().probe_outside)));
      if (without_host.verdict == Verdict::kDefer) decision = std::move(without_host);
      return absl::OkStatus();
    }
    decision = {.job = job.id, .verdict = *fits ? Verdict::kDefer : Verdict::kReject};
    Explain(*fits ? wanted_[at] : when_idle, !*fits, decision);
    return absl::OkStatus();
  }

  [[nodiscard]] HostShare LevelOn(JobDemands& demands, uint32_t server) const {
    const HostLevels& levels = demands.On(server);
    if (settings_.rule == SynergyRule::kGreedy) return levels.best;
    return settings_.rule == SynergyRule::kFair ? levels.fair : levels.floor;
  }

  // The least share per GPU by which the rule would run the job on one of `allowed`; what it needs where that is empty.
  [[nodiscard]] HostShare Least(const RoundJob& job) const {
    if (job.allowed.empty()) return job.job.need;
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    HostShare least{kMost, kMost};
    JobDemands demands(job.job, *classes_, settings_.options.tolerance);
    for (const uint32_t server : job.allowed) {
      const HostShare level = LevelOn(demands, server);
      least = {std::min(least.cpu_milli, level.cpu_milli), std::min(least.mem_mib, level.mem_mib)};
    }
    return least;
  }

  // Whether the rule would run it alone, on the servers `allowed` when idle.
  [[nodiscard]] bool FitsAlone(const RoundJob& job) const {
    JobDemands demands(job.job, *classes_, settings_.options.tolerance);
    std::map<uint32_t, int64_t> together;  // GPUs, by class
    for (const uint32_t server : job.allowed) {
      const NodeSpec& node = ledger_.spec(state_.place(server).node_row);
      const int32_t room = RoomWhenIdle(job, state_.servers()[server], node, LevelOn(demands, server));
      if (room >= job.job.gpus) return true;
      int64_t& gpus = together[classes_->of[server]];
      gpus += room / job.job.unit * job.job.unit;
      if (job.job.unit < job.job.gpus && gpus >= job.job.gpus) return true;
    }
    return false;
  }

  // Reason and nearest miss: on the servers as they are, or idle.
  void Explain(const RoundJob& job, bool idle, Decision& decision) const {
    JobDemands demands(job.job, *classes_, settings_.options.tolerance);
    int32_t most = -1;
    uint32_t nearest = 0;
    for (const uint32_t server : job.allowed) {
      const int32_t gpus =
          idle ? state_.servers()[server].gpus : static_cast<int32_t>(state_.IdleOn(ledger_, server).size());
      if (gpus <= most) continue;
      most = gpus;
      nearest = server;
    }
    decision.reason = Reason::kGang;
    decision.miss = {};
    if (most < 0) return;
    const SynergyServer& server = state_.servers()[nearest];
    const LedgerNode& node = ledger_.node(state_.place(nearest).node_row);
    decision.miss = {Reason::kGang, node.id, -1, static_cast<double>(job.job.gpus), static_cast<double>(most), "GPUs"};
    if (most < job.job.gpus) return;
    const HostShare level = LevelOn(demands, nearest);
    const int64_t cpu = level.cpu_milli * job.job.gpus, mem = level.mem_mib * job.job.gpus;
    const int64_t cpu_free = idle ? server.cpu_milli : std::min(server.cpu_milli, node.free.cpu_milli);
    const int64_t mem_free = idle ? server.mem_mib : std::min(server.mem_mib, node.free.mem_mib);
    if (cpu > cpu_free) {
      decision.reason = Reason::kCpu;
      decision.miss = {Reason::kCpu, node.id, -1, static_cast<double>(cpu), static_cast<double>(cpu_free),
                       "milli-cores"};
    } else if (mem > mem_free) {
      decision.reason = Reason::kHostMemory;
      decision.miss = {Reason::kHostMemory,           node.id, -1, static_cast<double>(mem),
                       static_cast<double>(mem_free), "MiB"};
    }
  }

  void Add(std::shared_ptr<const JobSpec> job, std::span<const PlacedSlot> slots, Decision decision, size_t at) {
    for (const PlacedSlot& slot : slots) touched_.push_back(slot.node_row);
    plan_.actions.push_back({ActionKind::kPlace, std::move(job), decision.slots});
    plan_.decisions[at] = std::move(decision);
  }

  Engine& engine_;
  Ledger& ledger_;
  const SynergySettings& settings_;
  std::span<const JobSpec> jobs_;
  std::span<const uint32_t> order_;
  const ProgressFn& progress_;
  std::vector<Lease> leases_;                    // by position in the order, as all that follows
  std::vector<std::vector<SynergySlice>> held_;  // by leases, of the round's servers; none where a node is not up
  uint64_t done_ = 0;
  Plan plan_;
  std::vector<uint32_t> touched_;  // node rows
  ClusterRound state_;
  std::optional<ServerClasses> classes_;            // made when the first is refused
  std::vector<RoundJob> wanted_;                    // by position in the order; without spec: not for the rule
  std::vector<size_t> runnable_;                    // positions of those that some server admits
  IdMap<std::unique_ptr<Servers>> admitting_;       // by JobView::request
  IdMap<std::unique_ptr<Servers>> admitting_idle_;  // the same
  IdMap<bool> fits_alone_;                          // by that and the sensitivity
};

// ---- synergy-*: a round of whole GPUs with cores and host memory by sensitivity (Mohan et al., OSDI 2022).

bool IsPart(int32_t gpu_milli) { return gpu_milli > 0 && gpu_milli < kMilliPerGpu; }

// What is priced here are the devices of an idle cluster, and places for jobs that no rule knows.
class SynergyPolicy final : public RoundPolicy {
 public:
  explicit SynergyPolicy(SynergySettings settings) : settings_(std::move(settings)) {}

  std::string_view name() const override { return SynergyNames()[static_cast<size_t>(settings_.rule)]; }

  absl::StatusOr<Plan> PlanRound(Engine& engine, const Cluster& cluster, const RoundRequest& request) const override {
    return RoundPlan(engine, settings_, request).Make(cluster, request.read, request.gone);
  }

  // Whole GPUs are for one job. Parts of a GPU are packed: the fullest device first, an idle one last.
  absl::Status ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const override {
    score = {};
    if (!IsPart(candidate.gpu_milli)) {
      score.declined = candidate.residents() > 0;
      return absl::OkStatus();
    }
    for (const TenantClass* tenant : candidate.tenants) score.declined |= !IsPart(tenant->gpu_milli);
    score.cost = static_cast<double>(kMilliPerGpu - candidate.milli_used - candidate.gpu_milli) / kMilliPerGpu;
    return absl::OkStatus();
  }

 private:
  SynergySettings settings_;
};

}  // namespace

std::unique_ptr<Policy> MakeSynergyPolicy(SynergyRule rule, const PolicyOptions& options) {
  LabPolicyOptions lab = LabOf(options);
  return std::make_unique<SynergyPolicy>(
      SynergySettings{rule, {lab.synergy_tolerance, lab.synergy_grow, std::move(lab.lp_library)}});
}

const RoundPolicy* RoundPolicyOf(const Placer& placer) { return dynamic_cast<const RoundPolicy*>(&placer.policy()); }

absl::StatusOr<Plan> MakeRound(Placer& placer, const Cluster& cluster, std::span<const JobSpec> jobs) {
  const RoundPolicy* policy = RoundPolicyOf(placer);
  if (policy == nullptr)
    return Unimplemented("policy %s: expected one that decides rounds", std::string(placer.policy().name()));
  std::vector<JobSpec> known(jobs.begin(), jobs.end());
  std::vector<Lease> leases(jobs.size());
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
    leases[i] = {std::make_shared<const JobSpec>(known[i]), held.slots};
    gone.Insert(jobs[i].id, true);
  }
  Engine& engine = placer.engine();
  HORUS_RETURN_IF_ERROR(engine.OrderAny(cluster, known, &gone).status());
  HORUS_RETURN_IF_ERROR(engine.Follow(cluster));
  for (const Lease& lease : leases) {
    if (lease.spec != nullptr) engine.ledger().Remove(*lease.spec, lease.slots);
  }
  return policy->PlanRound(
      engine, cluster,
      {.jobs = known, .order = order, .leases = leases, .gone = &gone, .progress = nullptr, .read = nullptr});
}

}  // namespace horus
