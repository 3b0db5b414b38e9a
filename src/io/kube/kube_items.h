// SPDX-License-Identifier: Apache-2.0
// The objects of what `kubectl get ... -o json` printed, one at a time, however long the list is.
//
// Enters:  a path, or "-" for standard input: v1 Lists, typed lists, single objects, several of them one after another.
// Leaves:  each object with its place in the file; errors name the place, what was expected and what was found.
// Cost:    linear; memory for one object (kMaxKubeObjectBytes of text).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "nlohmann/json.hpp"

namespace horus {

// etcd takes 1.5 MiB of a request; as indented JSON an object is a few times as large.
inline constexpr size_t kMaxKubeObjectBytes = size_t{8} << 20;
inline constexpr size_t kMaxKubeDepth = 64;  // a custom resource's schema reaches 30
inline constexpr uint64_t kMaxKubeFileBytes = uint64_t{1} << 34;

using KubeJson = nlohmann::json;

// ---- Quantities and times as Kubernetes writes them: "500m", "1.5Gi", "2e3"; "2026-11-26T12:00:00Z". Nullopt for what
// is none, or beyond the limits.

// Far above any node, and far below where sums over a cluster would overflow: 2^60 bytes, or thousandths of a core.
inline constexpr int64_t kMostQuantity = int64_t{1} << 60;

// The quantity times `per_unit` (1000: cores to thousandths), rounded up as Kubernetes does; from 0 to kMostQuantity.
// Suffixes n, u, m, k, M, G, T, P, E, Ki to Ei, and exponents (e3, E-3).
[[nodiscard]] std::optional<int64_t> ParseKubeQuantity(std::string_view text, int64_t per_unit);

// RFC 3339 in UTC, as the API server writes it; parts of a second are dropped. Years 1970 to 9999.
[[nodiscard]] std::optional<int64_t> ParseKubeTime(std::string_view text);

// ---- Values.

// A value of an object and the way that leads to it. What is absent or null is a view of nothing, and reads as the
// default; what has another type than asked for is an error.
class KubeView {
 public:
  KubeView(const KubeJson* json, std::string where) : json_(json), where_(std::move(where)) {}

  [[nodiscard]] bool present() const { return json_ != nullptr && !json_->is_null(); }
  [[nodiscard]] const KubeJson* json() const { return json_; }
  [[nodiscard]] const std::string& where() const { return where_; }
  // The value of a key; of anything but an object: of nothing.
  [[nodiscard]] KubeView operator[](std::string_view key) const;

  // "<where>: expected <expected>, found <what is there>".
  [[nodiscard]] absl::Status Expected(std::string_view expected) const;
  [[nodiscard]] absl::StatusOr<std::string> Text() const;  // "" where absent
  [[nodiscard]] absl::StatusOr<int64_t> Integer(int64_t fallback) const;
  [[nodiscard]] absl::StatusOr<double> Number() const;  // 0 where absent
  [[nodiscard]] absl::StatusOr<bool> Bool() const;      // false where absent
  [[nodiscard]] absl::StatusOr<std::vector<KubeView>> List() const;
  // The items, each as `read` answers it.
  template <typename T>
  [[nodiscard]] absl::StatusOr<std::vector<T>> ListOf(absl::StatusOr<T> (*read)(const KubeView&)) const {
    HORUS_ASSIGN_OR_RETURN(const std::vector<KubeView> items, List());
    std::vector<T> read_items;
    for (const KubeView& item : items) HORUS_SET_OR_RETURN(read_items.emplace_back(), read(item));
    return read_items;
  }
  // Of several keys at once.
  struct TextAt {
    std::string_view key;
    std::string& out;
  };
  [[nodiscard]] absl::Status ReadTexts(std::initializer_list<TextAt> texts) const;
  [[nodiscard]] absl::StatusOr<std::vector<std::pair<std::string, KubeView>>> Pairs() const;  // ascending keys
  // 0 where absent.
  [[nodiscard]] absl::StatusOr<int64_t> Quantity(int64_t per_unit) const;
  // Seconds; nullopt where absent.
  [[nodiscard]] absl::StatusOr<std::optional<int64_t>> Time() const;

 private:
  const KubeJson* json_;
  std::string where_;
};

// Called with the object's kind ("Node", "Pod", ...); the view is gone afterwards.
using KubeItemSink = std::function<absl::Status(std::string_view kind, const KubeView& object)>;

// `file` is the name in errors.
[[nodiscard]] absl::Status ReadKubeItems(std::istream& stream, const std::string& file, const KubeItemSink& sink);
[[nodiscard]] absl::Status ReadKubeFile(const std::string& path, const KubeItemSink& sink);

}  // namespace horus
