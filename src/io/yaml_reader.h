// SPDX-License-Identifier: Apache-2.0
// Checked reading of a YamlTree: every error says file:line, key path, what was expected and what was found.
//
// Enters:  one value of a tree and the keys that the schema knows.
// Leaves:  C++ values in range, or INVALID_ARGUMENT "file:line: nodes[3].id: expected ..., found ...".
// Units:   lines from 1; list positions from 0, as in the key path.
// Cost:    linear in what is read.       Thread class: values over an immutable tree, share freely.
#ifndef HORUS_IO_YAML_READER_H_
#define HORUS_IO_YAML_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "io/yaml_tree.h"

namespace horus {

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
  [[nodiscard]] absl::Status Error(std::string_view message) const;
  [[nodiscard]] absl::Status Wrap(const absl::Status& status) const;

  // A mapping whose keys are unique and all in `keys`.
  [[nodiscard]] absl::StatusOr<YamlMap> Map(std::span<const std::string_view> keys) const;
  // Pairs in file order, keys unique; for mappings with keys of the user's choice.
  [[nodiscard]] absl::StatusOr<std::vector<std::pair<std::string, YamlValue>>> Pairs(size_t max) const;
  [[nodiscard]] absl::StatusOr<std::vector<YamlValue>> List(size_t max) const;

  [[nodiscard]] absl::StatusOr<std::string> Text(size_t max_bytes) const;  // not empty
  [[nodiscard]] absl::StatusOr<int64_t> Integer(int64_t min, int64_t max) const;
  [[nodiscard]] absl::StatusOr<uint64_t> Id() const;  // any unsigned 64-bit number
  [[nodiscard]] absl::StatusOr<double> Number(double min, double max) const;
  [[nodiscard]] absl::StatusOr<int64_t> Scaled(const Scale& scale) const;
  [[nodiscard]] absl::StatusOr<bool> Bool() const;  // true or false
  // The position of the text in `choices`.
  [[nodiscard]] absl::StatusOr<size_t> Choice(std::span<const std::string_view> choices) const;

 private:
  [[nodiscard]] std::string Found() const;
  [[nodiscard]] std::optional<std::string_view> PlainText() const;  // nullopt unless a scalar without quotes
  [[nodiscard]] absl::Status CheckKeys() const;

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

  [[nodiscard]] absl::Status ReadText(std::string_view key, size_t max_bytes, std::string& out) const;
  [[nodiscard]] absl::Status ReadId(std::string_view key, uint64_t& out) const;
  template <typename Int>
  [[nodiscard]] absl::Status ReadInteger(std::string_view key, int64_t min, int64_t max, Int& out) const {
    if (const YamlValue* value = Find(key)) {
      HORUS_ASSIGN_OR_RETURN(const int64_t read, value->Integer(min, max));
      out = static_cast<Int>(read);
    }
    return absl::OkStatus();
  }
  [[nodiscard]] absl::Status ReadNumber(std::string_view key, double min, double max, double& out) const;
  [[nodiscard]] absl::Status ReadScaled(std::string_view key, const Scale& scale, int64_t& out) const;
  [[nodiscard]] absl::Status ReadBool(std::string_view key, bool& out) const;

 private:
  YamlValue value_;
  std::vector<std::pair<std::string_view, YamlValue>> pairs_;
};

// The root mapping of a file whose `version` is 1, the only one so far.
[[nodiscard]] absl::StatusOr<YamlMap> OpenVersion1(const std::shared_ptr<const YamlTree>& tree,
                                                   std::span<const std::string_view> keys);

}  // namespace horus

#endif  // HORUS_IO_YAML_READER_H_
