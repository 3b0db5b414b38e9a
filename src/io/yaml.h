// SPDX-License-Identifier: Apache-2.0
// Checked reading of YAML: a document as a flat table of values, each with its line; every error says file:line, key
// path, what was expected and what was found.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/units.h"

namespace horus {

// ---- YamlTree: one YAML document as a flat table of values, each with its line; the only door to yaml-cpp.
// Cost: linear; about 40 bytes a value and the text of its scalars; aliases are kept as references.

struct YamlLimits {
  // Of the file. yaml-cpp reads 3 to 15 MB/s and keeps up to 50 bytes for each that it read.
  size_t max_bytes = size_t{32} << 20;
  // yaml-cpp holds back every token of a collection in brackets that may be a key: up to 250 bytes each.
  size_t max_lookahead_bytes = size_t{4} << 20;
  // With every alias written out: scalars, lists and mappings, and bytes of scalars.
  uint32_t max_values = 2'000'000;
  uint32_t max_text_bytes = 64 << 20;
  uint32_t max_depth = 64;  // lists and mappings inside each other; our schemas need 8
};

class YamlTree {
 public:
  enum class Kind : uint8_t { kNull, kScalar, kList, kMap };

  // INVALID_ARGUMENT (syntax, tags, aliases to themselves, several documents) or RESOURCE_EXHAUSTED (limits).
  [[nodiscard]] static absl::StatusOr<std::shared_ptr<const YamlTree>> Parse(std::string file, std::string text,
                                                                             const YamlLimits& limits = {});

  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] static constexpr uint32_t root() { return 0; }

  // Of the value that `value` stands for, where it is an alias; lines are those of the place itself.
  [[nodiscard]] Kind kind(uint32_t value) const { return at(value).kind; }
  [[nodiscard]] bool plain(uint32_t value) const { return at(value).plain; }  // a scalar without quotes
  [[nodiscard]] std::string_view text(uint32_t value) const {
    const Value& scalar = at(value);
    return std::string_view(texts_).substr(scalar.text_begin, scalar.text_size);
  }
  [[nodiscard]] uint32_t line(uint32_t value) const { return values_[value].line; }
  // Items of a list; key, value, key, value ... of a mapping.
  [[nodiscard]] std::vector<uint32_t> children(uint32_t value) const;
  // Items of a list, pairs of a mapping.
  [[nodiscard]] uint32_t size(uint32_t value) const {
    const Value& container = at(value);
    return container.kind == Kind::kMap ? container.count / 2 : container.count;
  }

 private:
  friend class YamlTreeBuilder;
  static constexpr uint32_t kNone = ~uint32_t{0};

  struct Value {
    Kind kind = Kind::kNull;
    bool plain = false;
    uint32_t line = 0;
    uint32_t target = kNone;  // of an alias
    uint32_t text_begin = 0;
    uint32_t text_size = 0;
    uint32_t first_child = kNone;
    uint32_t next = kNone;  // sibling
    uint32_t count = 0;     // children
    // With every alias written out.
    uint32_t expanded_values = 1;
    uint32_t expanded_text = 0;
  };

  [[nodiscard]] const Value& at(uint32_t value) const {
    const uint32_t target = values_[value].target;
    return values_[target == kNone ? value : target];
  }

  std::string file_;
  std::string texts_;
  std::vector<Value> values_;
};

// ---- Checked reading of a YamlTree: every error says file:line, key path, what was expected and what was found.
// Cost: linear in what is read.

// The keys of a text with a blank between them: no constant where there are not so many.
template <size_t kCount>
consteval std::array<std::string_view, kCount> KeyList(std::string_view text) {
  std::array<std::string_view, kCount> keys;
  for (std::string_view& key : keys) {
    key = text.substr(0, text.find(' '));
    text.remove_prefix(key.size() < text.size() ? key.size() + 1 : text.size());
  }
  if (!text.empty() || keys.back().empty()) std::abort();
  return keys;
}

// A number of the file times `per_unit`, as an integer: cores to thousandths, GiB to MiB, s to us.
struct Scale {
  int64_t per_unit = 1;
  double min = 0;  // in the file's unit
  double max = 0;
  bool exact = false;  // refuse what is no whole multiple of 1 / per_unit; else round up
};

class YamlMap;

// One value and the way that leads to it.
class YamlValue {
 public:
  YamlValue(std::shared_ptr<const YamlTree> tree, uint32_t value, std::string path)
      : tree_(std::move(tree)), value_(value), path_(std::move(path)) {}
  [[nodiscard]] static YamlValue Root(std::shared_ptr<const YamlTree> tree) {
    return YamlValue(std::move(tree), YamlTree::root(), "");
  }

  [[nodiscard]] const std::string& file() const { return tree_->file(); }
  [[nodiscard]] uint32_t line() const { return tree_->line(value_); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string Where() const;  // "file:line: path"
  [[nodiscard]] bool is_list() const { return tree_->kind(value_) == YamlTree::Kind::kList; }
  [[nodiscard]] bool is_map() const { return tree_->kind(value_) == YamlTree::Kind::kMap; }

  // What lies below, one line a scalar, keys ascending: equal for equal values. `without`: keys of this mapping that
  // are left out.
  [[nodiscard]] std::string Flat(std::span<const std::string_view> without = {}) const;

  // "<where>: expected <expected>, found <what is there>".
  [[nodiscard]] absl::Status Expected(std::string_view expected) const;
  // "<where>: <message>", for rules between values and for errors of other rooms.
  [[nodiscard]] absl::Status Error(std::string_view message) const {
    return InvalidArgument("%s: %s", Where(), message);
  }
  [[nodiscard]] absl::Status Wrap(const absl::Status& status) const {
    return status.ok() ? status : At(Where(), status);
  }
  template <typename T>
  [[nodiscard]] absl::StatusOr<T> Wrap(absl::StatusOr<T> value) const {
    if (value.ok()) return value;
    return Wrap(value.status());
  }

  // A mapping whose keys are unique and all in `keys`.
  [[nodiscard]] absl::StatusOr<YamlMap> Map(std::span<const std::string_view> keys) const;
  // Pairs in file order, keys unique; for mappings with keys of the user's choice.
  [[nodiscard]] absl::StatusOr<std::vector<std::pair<std::string, YamlValue>>> Pairs(size_t max) const;
  [[nodiscard]] absl::StatusOr<std::vector<YamlValue>> List(size_t max) const;
  // A list of texts; and pairs whose values are texts.
  [[nodiscard]] absl::StatusOr<std::vector<std::string>> Texts(size_t max, size_t max_bytes) const;
  [[nodiscard]] absl::StatusOr<std::vector<std::pair<std::string, std::string>>> TextPairs(size_t max,
                                                                                           size_t max_bytes) const;

  [[nodiscard]] absl::StatusOr<std::string> Text(size_t max_bytes) const;  // not empty
  [[nodiscard]] absl::StatusOr<int64_t> Integer(int64_t min, int64_t max) const;
  [[nodiscard]] absl::StatusOr<uint64_t> Id() const;  // any unsigned 64-bit number
  [[nodiscard]] absl::StatusOr<double> Number(double min, double max) const;
  [[nodiscard]] absl::StatusOr<int64_t> Scaled(const Scale& scale) const;
  [[nodiscard]] absl::StatusOr<bool> Bool() const;  // true or false
  // The position of the text in `choices`.
  [[nodiscard]] absl::StatusOr<size_t> Choice(std::span<const std::string_view> choices) const;

 private:
  struct Pair {
    std::string_view key;
    uint32_t key_at = 0, value_at = 0;
  };
  [[nodiscard]] std::string Found() const;
  [[nodiscard]] std::optional<std::string_view> PlainText() const;       // nullopt unless a scalar without quotes
  [[nodiscard]] absl::StatusOr<std::vector<Pair>> CheckedPairs() const;  // keys are scalars and differ

  std::shared_ptr<const YamlTree> tree_;
  uint32_t value_;
  std::string path_;
};

// The keys of one mapping. Read... leave their output as it is when the key is absent.
class YamlMap {
 public:
  YamlMap(YamlValue value, std::vector<std::pair<std::string_view, YamlValue>> pairs)
      : value_(std::move(value)), pairs_(std::move(pairs)) {}

  [[nodiscard]] const YamlValue& value() const { return value_; }
  [[nodiscard]] const YamlValue* Find(std::string_view key) const;
  [[nodiscard]] bool Has(std::string_view key) const { return Find(key) != nullptr; }
  // The value, or "<where>: expected key '<key>' (<what>), found none".
  [[nodiscard]] absl::StatusOr<YamlValue> Require(std::string_view key, std::string_view what) const;

  [[nodiscard]] absl::Status ReadText(std::string_view key, size_t max_bytes, std::string& out) const {
    return Read(key, out, [&](const YamlValue& value) { return value.Text(max_bytes); });
  }
  [[nodiscard]] absl::Status ReadId(std::string_view key, uint64_t& out) const {
    return Read(key, out, [&](const YamlValue& value) { return value.Id(); });
  }
  [[nodiscard]] absl::Status ReadInteger(std::string_view key, int64_t min, int64_t max, auto& out) const {
    return Read(key, out, [&](const YamlValue& value) { return value.Integer(min, max); });
  }
  [[nodiscard]] absl::Status ReadNumber(std::string_view key, double min, double max, auto& out) const {
    return Read(key, out, [&](const YamlValue& value) { return value.Number(min, max); });
  }
  [[nodiscard]] absl::Status ReadScaled(std::string_view key, const Scale& scale, auto& out) const {
    return Read(key, out, [&](const YamlValue& value) { return value.Scaled(scale); });
  }
  [[nodiscard]] absl::Status ReadBool(std::string_view key, bool& out) const {
    return Read(key, out, [&](const YamlValue& value) { return value.Bool(); });
  }
  // The enumerator that is at the text's position in `choices`.
  [[nodiscard]] absl::Status ReadChoice(std::string_view key, std::span<const std::string_view> choices,
                                        auto& out) const {
    return Read(key, out, [&](const YamlValue& value) { return value.Choice(choices); });
  }
  // One of `values` by the name that `name_of` gives it.
  template <typename Enum, size_t kCount, typename NameOf>
  [[nodiscard]] absl::Status ReadEnum(std::string_view key, const std::array<Enum, kCount>& values, NameOf name_of,
                                      Enum& out) const {
    std::array<std::string_view, kCount> names;
    for (size_t i = 0; i < kCount; ++i) names[i] = name_of(values[i]);
    size_t position = kCount;
    HORUS_RETURN_IF_ERROR(Read(key, position, [&](const YamlValue& value) { return value.Choice(names); }));
    if (position < kCount) out = values[position];
    return absl::OkStatus();
  }

 private:
  template <typename Value, typename ReadValue>
  [[nodiscard]] absl::Status Read(std::string_view key, Value& out, const ReadValue& read) const {
    const YamlValue* value = Find(key);
    if (value == nullptr) return absl::OkStatus();
    HORUS_ASSIGN_OR_RETURN(auto found, read(*value));
    out = static_cast<Value>(std::move(found));
    return absl::OkStatus();
  }

  YamlValue value_;
  std::vector<std::pair<std::string_view, YamlValue>> pairs_;
};

// The root mapping of a file whose `version` is 1, the only one so far.
[[nodiscard]] absl::StatusOr<YamlMap> OpenVersion1(const std::shared_ptr<const YamlTree>& tree,
                                                   std::span<const std::string_view> keys);

// ---- The units of people's files and the integers that they become.

// Upper ends are far above any machine, and keep the products inside 53 bits or the limits of place/job/job.h.
inline constexpr Scale kCoresToMilli = {.per_unit = kMilliPerCore, .min = 0, .max = 1e6, .exact = true};
inline constexpr Scale kGibToMib = {.per_unit = 1024, .min = 0, .max = 1e6};
inline constexpr Scale kSecondsToUs = {.per_unit = 1'000'000, .min = 0, .max = 4e9};   // 126 years
inline constexpr Scale kMillisecondsToUs = {.per_unit = 1000, .min = 0, .max = 1e10};  // 115 days

inline constexpr Scale kPercentToMilli = {.per_unit = 10, .min = 0.1, .max = 100, .exact = true};

}  // namespace horus
