// SPDX-License-Identifier: Apache-2.0
// All types of GPU that one library handle knows: the built-in ones and those that a user adds.
//
// Enters:  GpuType values; names in any usual spelling.
// Leaves:  dense ids and the types behind them; errors name type, field, expected and found.
// Cost:    At is an array access; Find is a binary search; Extend copies and sorts.
#pragma once

#include <cassert>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/status.h"
#include "device/gpu_type.h"

namespace horus {

class Catalogue {
 public:
  static constexpr size_t kMaxTypes = 4096;  // far below what GpuTypeId can count

  Catalogue() = default;  // knows no type; a start for Extend

  // BuiltInTypes(); one shared instance, built on first use.
  [[nodiscard]] static std::shared_ptr<const Catalogue> Default();

  // `base` and after it `types`, in order: ids of `base` keep their meaning. Fields left 0 that have a
  // rule (context_mib, max_mps_clients; see gpu_fields.h) are filled. A name or alias that is taken is refused:
  // nobody's file can change what a built-in name means.
  [[nodiscard]] static absl::StatusOr<Catalogue> Extend(const Catalogue& base, std::vector<GpuType> types);

  [[nodiscard]] size_t size() const { return types_.size(); }
  [[nodiscard]] std::span<const GpuType> types() const { return types_; }
  [[nodiscard]] bool Contains(GpuTypeId id) const { return id.value() < types_.size(); }
  // Requires Contains(id).
  [[nodiscard]] const GpuType& at(GpuTypeId id) const {
    assert(Contains(id));
    return types_[id.value()];
  }

  // The type of that name or alias; case, ' ', '_', brand prefixes ("NVIDIA Tesla ...") and "-SHARED" behind it do not
  // matter. NOT_FOUND suggests the nearest names, and of a MIG instance ("...-MIG-1g.5gb") names card and profile.
  [[nodiscard]] absl::StatusOr<GpuTypeId> Find(std::string_view name_or_alias) const;
  // The same where an unknown name is no error: none, at no cost of suggestions.
  [[nodiscard]] std::optional<GpuTypeId> FindKnown(std::string_view name_or_alias) const;

  friend bool operator==(const Catalogue&, const Catalogue&) = default;

 private:
  struct Key {
    std::string folded;
    GpuTypeId id;
    friend bool operator==(const Key&, const Key&) = default;
  };

  [[nodiscard]] std::optional<GpuTypeId> FindFolded(std::string_view folded) const;
  [[nodiscard]] absl::Status RefuseMigInstance(std::string_view name) const;

  std::vector<GpuType> types_;
  std::vector<Key> keys_;  // sorted by folded name
};

// The data sheets of catalogue_data.cc, without what CompleteByRule fills in.
[[nodiscard]] std::vector<GpuType> BuiltInTypes();

}  // namespace horus
