// SPDX-License-Identifier: Apache-2.0
// Harness: one cluster and everything beside it, driven by random calls of the C ABI, with a mirror of what must be
// there. Every call is checked: its error, that a failure changed nothing, and now and then (after every call under a
// fuzzer) everything that the cluster says against the mirror.
//
// Enters:  choices.                       Leaves: nothing; what is broken is printed and ends the program.
// Units:   as horus/*.h.
// Cost:    a full check is linear in the cluster.   Thread class: one thread at a time.
#ifndef HORUS_TESTS_CALLS_HARNESS_H_
#define HORUS_TESTS_CALLS_HARNESS_H_

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "calls/choices.h"
#include "horus/lab/lab.h"

namespace horus::calls {

template <typename T, void (*kFree)(T*)>
struct FreeBy {
  void operator()(T* handle) const { kFree(handle); }
};
template <typename T, void (*kFree)(T*)>
using Handle = std::unique_ptr<T, FreeBy<T, kFree>>;
using ClusterHandle = Handle<horus_cluster, horus_cluster_free>;
using PlacerHandle = Handle<horus_placer, horus_placer_free>;
using PlanHandle = Handle<horus_plan, horus_plan_free>;
using PredictorHandle = Handle<horus_predictor, horus_predictor_free>;
using QueueHandle = Handle<horus_queue, horus_queue_free>;
using ModelHandle = Handle<horus_interference, horus_interference_free>;
using ObservationsHandle = Handle<horus_observations, horus_observations_free>;
using MetricsHandle = Handle<horus_metrics, horus_metrics_free>;

// Whether the text may stand in a line of its own: no control characters, valid UTF-8.
[[nodiscard]] bool IsLineOfUtf8(std::string_view text);

struct HarnessOptions {
  uint64_t nodes = 2;          // to begin with
  uint64_t max_nodes = 5;      // that calls add up to
  uint32_t devices = 4;        // of a node at most
  uint64_t job_ids = 24;       // ids are 1 to this
  uint64_t hostile = 8;        // one in so many arguments is corrupted
  uint64_t variety = 4;        // one in so many jobs has relations, requests or a sensitivity of its own
  uint64_t other_placers = 1;  // one in so many plans is made by another than the default placer
  uint64_t cache_bytes = 0;    // of the default placer; 0 = as the library has it
  uint64_t max_fits = 0;       // models that are learned, each a second under a fuzzer, which looks at every comparison
  uint64_t check_every = 1;    // calls between two looks at everything; 1 = the state's hash after each call too
};

struct Slot {
  uint64_t node = 0;
  uint32_t device = 0;
  uint32_t task = 0;
  friend auto operator<=>(const Slot&, const Slot&) = default;
};

// Slots as columns: room to be filled by a call, or what a call takes in.
struct SlotRows {
  std::vector<uint64_t> node_ids;
  std::vector<uint32_t> devices, tasks;
  horus_slots columns = HORUS_SLOTS_INIT;

  explicit SlotRows(size_t room);
  explicit SlotRows(const std::vector<Slot>& slots);
  SlotRows(const SlotRows&) = delete;  // the columns point into it
  SlotRows& operator=(const SlotRows&) = delete;
  [[nodiscard]] std::vector<Slot> Sorted(size_t count) const;
};

// What a job that is resident must say of itself.
struct MirrorJob {
  std::vector<Slot> slots;
  int64_t cpu_milli = 0;  // per task: what it holds
  int64_t mem_mib = 0;
  bool adopted = false;
};

struct PlannedMove {
  int32_t kind = 0;
  uint64_t job = 0;
  std::vector<Slot> to;
  int64_t cpu_milli = 0;
  int64_t mem_mib = 0;
};
struct PlannedJob {
  uint64_t job = 0;
  MirrorJob what;
};
// A plan and what applying it must do.
struct Planned {
  PlanHandle plan;
  std::vector<PlannedJob> places;
  std::vector<PlannedMove> moves;
  uint64_t generation = 0;  // of the cluster that it saw
  bool what_if = false;
};

enum class Effect : uint8_t { kNone, kChanges };  // what success may do to the cluster

struct CallCount {
  uint64_t calls = 0;
  uint64_t failed = 0;
  std::chrono::nanoseconds longest{0}, together{0};
};

class Harness {
 public:
  Harness(Choices* choices, const HarnessOptions& options);

  // One random action: mostly one call, and those that check what it did.
  void Step();
  void CheckAll();
  void BeginObservations();  // with none, in place of those that are there

  [[nodiscard]] uint64_t calls() const { return calls_; }    // without those of CheckAll
  [[nodiscard]] uint64_t digest() const { return digest_; }  // of all that calls answered
  [[nodiscard]] const std::map<std::string_view, CallCount>& counts() const { return counts_; }

  // Calls `function` with `args` and an error struct, and checks what comes back.
  template <typename... Given, typename... Args>
  horus_status Try(const char* name, Effect effect, horus_status (*function)(Given...), Args... args) {
    horus_error* error = PrepareError();
    const auto begin = std::chrono::steady_clock::now();
    const horus_status status = function(args..., error);
    return Judge(name, effect, status, std::chrono::steady_clock::now() - begin);
  }
  void Note(uint64_t value);  // takes it into the digest
  [[noreturn]] void Fail(const char* what, uint64_t expected = 0, uint64_t found = 0) const;
  void Require(bool rule, const char* what, uint64_t expected = 0, uint64_t found = 0) const {
    if (!rule) Fail(what, expected, found);
  }

  // A resident, a node that is there, or now and then an id that nothing has.
  uint64_t SomeJob();
  uint64_t SomeNode();
  uint64_t AnyJobId();
  [[nodiscard]] uint32_t DevicesOf(uint64_t node) const;

  Choices& choices;
  const HarnessOptions options;
  MetricsHandle metrics;
  std::map<std::string, double> counted;  // by the metrics, as it last said
  uint64_t ticks = 0;                     // of its clock, in nanoseconds
  ClusterHandle cluster;
  std::map<uint64_t, MirrorJob> jobs;
  std::map<uint64_t, uint32_t> nodes;  // devices by id
  std::vector<Planned> plans;
  std::vector<PlacerHandle> placers;
  std::vector<ModelHandle> models;
  std::vector<PredictorHandle> predictors;
  ObservationsHandle observations;
  QueueHandle queue;
  std::set<uint64_t> queued;
  uint64_t generation = 0;  // counts the changes of the cluster
  uint64_t fits = 0;        // models that were learned
  bool simulating = false;  // on another cluster, which callbacks do not know

 private:
  horus_error* PrepareError();
  horus_status Judge(const char* name, Effect effect, horus_status status, std::chrono::nanoseconds took);
  void JudgeError(horus_status status);
  [[nodiscard]] uint64_t StateHash() const;

  struct ErrorRoom {
    horus_error error;
    unsigned char guard[16];
  } error_room_ = {};
  horus_error* error_ = nullptr;
  const char* last_call_ = "none";
  horus_status last_status_ = HORUS_OK;
  uint64_t calls_ = 0;
  uint64_t looks_ = 0;  // calls of CheckAll
  bool looking_ = false;
  uint64_t digest_ = 0;
  uint64_t hash_ = 0;
  uint64_t next_check_ = 0;
  uint64_t checked_ = 0;  // generation
  std::map<std::string_view, CallCount> counts_;
};

#define HORUS_TRY(harness, effect, function, ...) (harness).Try(#function, Effect::effect, function, __VA_ARGS__)

// Actions, by subject. A weight is how often it is done beside the others.
struct Action {
  void (*act)(Harness&);
  uint32_t weight;
};
std::vector<Action> ClusterActions();
std::vector<Action> LookActions();
std::vector<Action> PlaceActions();
std::vector<Action> ModeActions();
std::vector<Action> QueueActions();
std::vector<Action> ModelActions();
std::vector<Action> PairActions();
std::vector<Action> PredictActions();
std::vector<Action> FileActions();
std::vector<Action> SimActions();
std::vector<Action> MetricsActions();

// What a call answered becomes one of the few models that are kept; one of them, or NULL.
void KeepModel(Harness& harness, horus_status status, horus_interference* model);
const horus_interference* SomeModel(Harness& harness);
[[nodiscard]] horus_interference_info InfoOf(const horus_interference* model);
[[nodiscard]] horus_library_info Library();

// The capacity of a node and of its devices, and who is there, against the mirror.
void CheckNode(Harness& harness, uint64_t node);
void CheckDevice(Harness& harness, uint64_t node, uint32_t device);
void CheckJob(Harness& harness, uint64_t id);

}  // namespace horus::calls

#endif  // HORUS_TESTS_CALLS_HARNESS_H_
