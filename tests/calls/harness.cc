// SPDX-License-Identifier: Apache-2.0
// What is checked of every call, and how random actions are chosen.
#include "calls/harness.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/hash.h"
#include "capi/handles.h"

namespace horus::calls {
namespace {

constexpr unsigned char kUntouched = 0xA5;
// As a caller compiled against another header may have it; it holds a code and a short line.
constexpr uint32_t kShortError = 24;

// All actions, each as often as it weighs.
const std::vector<void (*)(Harness&)>& Actions() {
  static const std::vector<void (*)(Harness&)> actions = [] {
    std::vector<void (*)(Harness&)> list;
    for (const auto& some :
         {ClusterActions(), LookActions(), PlaceActions(), ModeActions(), QueueActions(), ModelActions(), PairActions(),
          PredictActions(), SimActions(), MetricsActions(), FileActions()}) {
      for (const Action& action : some) list.insert(list.end(), action.weight, action.act);
    }
    return list;
  }();
  return actions;
}

bool IsUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at++]);
    const size_t more = lead < 0x80 ? 0 : lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    if (lead >= 0xF8 || (lead >= 0x80 && lead < 0xC0) || text.size() - at < more) return false;
    for (size_t i = 0; i < more; ++i) {
      if ((static_cast<unsigned char>(text[at++]) & 0xC0u) != 0x80u) return false;
    }
  }
  return true;
}

bool IsOneLine(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; });
}

}  // namespace

bool IsLineOfUtf8(std::string_view text) { return IsOneLine(text) && IsUtf8(text); }

SlotRows::SlotRows(size_t room) : node_ids(room + 1), devices(room + 1), tasks(room + 1) {
  columns.capacity = room;
  columns.node_ids = node_ids.data();
  columns.devices = devices.data();
  columns.tasks = tasks.data();
}

SlotRows::SlotRows(const std::vector<Slot>& slots) : SlotRows(slots.size()) {
  for (size_t i = 0; i < slots.size(); ++i) {
    node_ids[i] = slots[i].node;
    devices[i] = slots[i].device;
    tasks[i] = slots[i].task;
  }
}

std::vector<Slot> SlotRows::Sorted(size_t count) const {
  std::vector<Slot> slots;
  for (size_t i = 0; i < count; ++i) slots.push_back({node_ids[i], devices[i], tasks[i]});
  std::sort(slots.begin(), slots.end());
  return slots;
}

Harness::Harness(Choices* source, const HarnessOptions& given) : choices(*source), options(given) {
  horus_cluster* made = nullptr;
  HORUS_TRY(*this, kNone, horus_cluster_create, static_cast<const horus_catalogue*>(nullptr), &made);
  cluster.reset(made);
  hash_ = StateHash();
  const std::vector<Action> actions = ClusterActions();  // the first adds a node
  for (uint64_t tries = 0; nodes.size() < options.nodes && tries < 4 * options.nodes; ++tries) actions[0].act(*this);
  horus_placer* placer = nullptr;
  horus_placer_options caches = HORUS_PLACER_OPTIONS_INIT;
  caches.cache_bytes = options.cache_bytes;
  HORUS_TRY(*this, kNone, horus_placer_create, &caches, &placer);
  placers.emplace_back(placer);
  horus_queue* empty = nullptr;
  HORUS_TRY(*this, kNone, horus_queue_create, "fifo", static_cast<const horus_queue_options*>(nullptr), &empty);
  queue.reset(empty);
  BeginObservations();
}

void Harness::BeginObservations() {
  horus_observations* none = nullptr;
  const horus_status status = HORUS_TRY(*this, kNone, horus_observations_create, size_t{64}, &none);
  Require(status == HORUS_OK && none != nullptr, "observations to begin with");
  observations.reset(none);
}

void Harness::Step() {
  const auto& actions = Actions();
  actions[choices.Below(actions.size())](*this);
  // With a hash after every call nothing else can have changed unseen.
  if (options.check_every == 1 && generation == checked_) return;
  if (options.check_every > 1 && calls_ < next_check_) return;
  CheckAll();
  checked_ = generation;
  next_check_ = calls_ + options.check_every;
}

horus_error* Harness::PrepareError() {
  // By turns none, a short one and a whole one; not by choice, which would take bytes of every call.
  const uint64_t turn = (calls_ + looks_) % 16;
  if (turn == 15) return error_ = nullptr;
  std::memset(static_cast<void*>(&error_room_), kUntouched, sizeof error_room_);
  error_room_.error.struct_size = turn == 7 ? kShortError : sizeof(horus_error);
  return error_ = &error_room_.error;
}

void Harness::JudgeError(horus_status status) {
  if (error_ == nullptr) return;
  const auto* bytes = reinterpret_cast<const unsigned char*>(&error_room_);
  const uint32_t size = error_->struct_size;
  const size_t from = status == HORUS_OK ? sizeof size : size;
  for (size_t i = from; i < sizeof error_room_; ++i) {
    Require(bytes[i] == kUntouched, "the error struct was written where it must not be", kUntouched, bytes[i]);
  }
  if (status == HORUS_OK) return;
  Require(error_->status == status, "the error's status", static_cast<uint64_t>(status),
          static_cast<uint64_t>(error_->status));
  const size_t room = size - offsetof(horus_error, message);
  const size_t length = strnlen(error_->message, room);
  Require(length > 0 && length < room, "the error's message is empty or has no end", room, length);
  const std::string_view message(error_->message, length);
  Require(IsLineOfUtf8(message), "the error's message is no line of UTF-8");
  // Without digits: names of this process's files have some.
  for (const char c : message) {
    if (c < '0' || c > '9') digest_ = CombineHash(digest_, static_cast<unsigned char>(c));
  }
}

horus_status Harness::Judge(const char* name, Effect effect, horus_status status, std::chrono::nanoseconds took) {
  last_call_ = name;
  last_status_ = status;
  if (looking_) {
    ++looks_;
  } else {
    ++calls_;
    CallCount& count = counts_[name];
    ++count.calls;
    count.failed += status == HORUS_OK ? 0 : 1;
    count.longest = std::max(count.longest, took);
    count.together += took;
  }
  Require(status >= HORUS_OK && status < HORUS_ERR_NO_MEMORY, "a status that no call may end with here", HORUS_OK,
          static_cast<uint64_t>(status));
  JudgeError(status);
  Note(static_cast<uint64_t>(status));
  const bool changes = effect == Effect::kChanges && status == HORUS_OK;
  if (changes) ++generation;
  if (options.check_every == 1 && cluster != nullptr && !looking_) {
    const uint64_t hash = StateHash();
    Require(changes || hash == hash_, "the state's hash changed", hash_, hash);
    hash_ = hash;
  }
  return status;
}

uint64_t Harness::StateHash() const { return cluster->value.state_hash(); }

void Harness::Note(uint64_t value) { digest_ = CombineHash(digest_, value); }

void Harness::Fail(const char* what, uint64_t expected, uint64_t found) const {
  std::fprintf(stderr, "calls: after %llu calls, the last %s -> %s: %s: expected %llu, found %llu\n",
               static_cast<unsigned long long>(calls_), last_call_, horus_status_name(last_status_), what,
               static_cast<unsigned long long>(expected), static_cast<unsigned long long>(found));
  if (error_ != nullptr && last_status_ != HORUS_OK) std::fprintf(stderr, "calls: message: %.900s\n", error_->message);
  std::abort();
}

uint64_t Harness::AnyJobId() { return choices.OneIn(64) ? choices.HostileBits() : 1 + choices.Below(options.job_ids); }

uint64_t Harness::SomeJob() {
  const uint64_t id = AnyJobId();
  const auto at = jobs.lower_bound(id);
  return at == jobs.end() ? id : at->first;
}

uint64_t Harness::SomeNode() {
  const uint64_t id = choices.OneIn(64) ? choices.HostileBits() : 1 + choices.Below(options.max_nodes);
  const auto at = nodes.lower_bound(id);
  return at == nodes.end() ? id : at->first;
}

uint32_t Harness::DevicesOf(uint64_t node) const {
  const auto at = nodes.find(node);
  return at == nodes.end() ? 0 : at->second;
}

}  // namespace horus::calls
