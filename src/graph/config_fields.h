// SPDX-License-Identifier: Apache-2.0
// ConfigFields: the fields of one object of a config.json, read with limits.
//
// Enters:  JSON text.                    Leaves: values; the first error names field, expected and found.
// Units:   as the file has them.
// Cost:    linear in the text, at most kMaxConfigBytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace horus {

inline constexpr size_t kMaxConfigBytes = size_t{1} << 20;
inline constexpr int kMaxConfigDepth = 16;
inline constexpr int64_t kMaxConfigSize = int64_t{1} << 24;  // of a dimension, a vocabulary, a context
inline constexpr int64_t kMaxConfigLayers = 1024;

// A value of the file. No tree of the JSON library: its destructor allocates, and ends the process where that fails.
struct ConfigValue {
  enum class Kind : uint8_t { kNull, kFlag, kInteger, kReal, kText, kList, kObject };
  Kind kind = Kind::kNull;
  bool flag = false;
  int64_t integer = 0;  // those beyond its range are kReal
  double real = 0;
  std::string text;
  std::vector<ConfigValue> items;
  std::vector<std::string> keys;  // of an object, one an item
};

[[nodiscard]] absl::StatusOr<ConfigValue> ParseConfig(std::string_view text);

// Getters answer something harmless after an error; who reads checks status() before using it.
class ConfigFields {
 public:
  ConfigFields(const ConfigValue& object, std::string prefix) : object_(object), prefix_(std::move(prefix)) {}

  [[nodiscard]] const absl::Status& status() const { return status_; }
  // Whether the field is there and not null.
  [[nodiscard]] bool Has(std::string_view key) { return Find(key) != nullptr; }
  [[nodiscard]] bool IsList(std::string_view key) {
    const ConfigValue* value = Find(key);
    return value != nullptr && value->kind == ConfigValue::Kind::kList;
  }
  // The first name by which the file has a field that families call differently; all are understood. The first of all
  // where it has none.
  std::string_view Either(std::initializer_list<std::string_view> keys);
  // From 1 to `most`; without a fallback the field has to be there. A fallback may be 0: "none". A list of the same
  // size for each layer counts as the size.
  int64_t Size(std::string_view key, std::optional<int64_t> fallback = std::nullopt, int64_t most = kMaxConfigSize);
  int64_t Group(std::string_view key);                 // as Size; -1 and none: 0, all in one
  double Real(std::string_view key, double fallback);  // from 0 to kMaxConfigSize
  bool Flag(std::string_view key, bool fallback);
  std::string Text(std::string_view key, std::string_view fallback);
  std::vector<std::string> Texts(std::string_view key);      // integers as texts
  std::vector<int64_t> Sizes(std::string_view key);          // 0 is a size here
  std::optional<ConfigFields> Object(std::string_view key);  // none when absent
  std::vector<ConfigFields> Objects(std::string_view key);   // of a list, or of an object's fields
  [[nodiscard]] std::vector<std::string> Keys() const { return object_.keys; }
  // Of a field that is there.
  void Expect(std::string_view key, bool fits, std::string_view expected) {
    static_cast<void>(Find(key));
    if (!fits) Fail(key, expected);
  }
  // Understood: they change no size.
  void Known(std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) asked_.emplace(key);
  }
  void KnownAs(const ConfigFields& other) { asked_.insert(other.asked_.begin(), other.asked_.end()); }
  // Whether a field that nobody asked for speaks of sizes or parts.
  void RefuseUnknown();
  void Take(const ConfigFields& inner) {
    if (status_.ok()) status_ = inner.status_;
  }

 private:
  [[nodiscard]] const ConfigValue* Find(std::string_view key);
  void Fail(std::string_view key, std::string_view expected);

  const ConfigValue& object_;
  std::string prefix_;
  std::set<std::string, std::less<>> asked_;
  absl::Status status_;
};

}  // namespace horus
