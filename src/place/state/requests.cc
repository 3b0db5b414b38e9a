// SPDX-License-Identifier: Apache-2.0
// What is a job's own and what it shares, compared and hashed field by field.
#include "place/state/requests.h"

#include <bit>
#include <type_traits>

#include "base/hash.h"
#include "base/seeded_hash.h"
#include "place/state/groups.h"

namespace horus {
namespace {

// Each field; equal fields add equal words but for -0 and 0, which then are two requests.
template <typename Number>
  requires std::is_arithmetic_v<Number> || std::is_enum_v<Number>
void Add(SecretHasher& hasher, Number value) {
  if constexpr (std::is_same_v<Number, float>) {
    hasher.Add(uint64_t{std::bit_cast<uint32_t>(value)});
  } else if constexpr (std::is_same_v<Number, double>) {
    hasher.Add(std::bit_cast<uint64_t>(value));
  } else {
    hasher.Add(static_cast<uint64_t>(value));
  }
}
void Add(SecretHasher& hasher, const std::string& text) { hasher.Add(text); }
void Add(SecretHasher& hasher, const std::pair<std::string, std::string>& label) {
  hasher.Add(label.first);
  hasher.Add(label.second);
}
void Add(SecretHasher& hasher, const SharedSensitivity& one) {
  hasher.Add(one.get() == nullptr ? 0 : one.get()->Hash(ProcessSecret()));
}
void Add(SecretHasher&, const JobAlternative&) {}  // of those that run there are none
void Add(SecretHasher& hasher, const TypeDemand& entry) { hasher.Add(HashOfDemand(entry, ProcessSecret())); }
template <typename T>
void Add(SecretHasher& hasher, const std::vector<T>& all) {
  hasher.Add(all.size());
  for (const T& one : all) Add(hasher, one);
}

uint64_t HashOfRequest(const JobSpec& job) {
  SecretHasher hasher;
  std::apply([&](const auto&... field) { (Add(hasher, field), ...); }, SharedFields(job));
  return hasher.Hash();
}

JobSpec WithoutOwn(JobSpec job) {
  job.id = 0;
  std::string().swap(job.name);
  job.submit_us = job.deadline_us = 0;
  return job;
}

// What a request holds outside of itself.
uint64_t BytesBehind(const JobSpec& job) {
  uint64_t bytes = BytesIn(job.tenant, job.demands, job.node_selector, job.groups, job.avoid_groups);
  for (const auto& [key, value] : job.node_selector) bytes += BytesIn(key, value);
  for (const auto* names : {&job.groups, &job.avoid_groups}) {
    for (const std::string& name : *names) bytes += name.capacity();
  }
  if (const Sensitivity* matrix = job.sensitivity.get(); matrix != nullptr) {
    bytes += sizeof(Sensitivity) + matrix->cpu_milli().size_bytes() + matrix->mem_mib().size_bytes() +
             matrix->speeds().size_bytes();
  }
  return bytes;
}

}  // namespace

std::string_view BytesOf(const Demand& demand) {
  // Without gaps from the first field to the last.
  constexpr size_t kBytes = offsetof(Demand, sm_cap) + sizeof(Demand::sm_cap);
  static_assert(kBytes == 2 * sizeof(uint64_t) + sizeof(double) + 3 * sizeof(Bounded) + 2 * sizeof(BoundedInt) +
                              sizeof(uint32_t) + 5 * sizeof(float) + sizeof(Demand::traits));
  return {reinterpret_cast<const char*>(&demand), kBytes};
}

uint64_t HashOfDemand(const TypeDemand& entry, uint64_t seed) {
  return Hash64(BytesOf(entry.demand), seed ^ entry.type.value());
}

bool SameRequest(const JobSpec& a, const JobSpec& b) { return SharedFields(a) == SharedFields(b); }

uint32_t HoldRequest(const JobSpec& job, RequestTable& table) {
  return table.Hold(
      HashOfRequest(job), [&](const Request& known) { return SameRequest(known.spec, job); },
      [&] { return Request{WithoutOwn(job), OwnerMark(job)}; });
}

uint64_t BytesHeld(const RequestTable& table) {
  return table.bytes_held([](const Request& request) { return BytesBehind(request.spec); });
}

}  // namespace horus
