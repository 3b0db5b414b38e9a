// SPDX-License-Identifier: Apache-2.0
// YamlTree: one YAML document as a flat table of values, each with its line; the only door to yaml-cpp.
//
// Enters:  the text of one file.         Leaves: values, or "file:line: expected ..., found ...".
// Units:   lines from 1; counts of values.
// Cost:    linear; about 40 bytes a value and the text of its scalars; aliases are kept as references.
// Thread class: immutable, share freely.
#ifndef HORUS_IO_YAML_TREE_H_
#define HORUS_IO_YAML_TREE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace horus {

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
  // The file of that path; UNAVAILABLE when it cannot be read.
  [[nodiscard]] static absl::StatusOr<std::shared_ptr<const YamlTree>> Load(const std::string& path,
                                                                            const YamlLimits& limits = {});

  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] static constexpr uint32_t root() { return 0; }

  // Of the value that `value` stands for, where it is an alias; lines are those of the place itself.
  [[nodiscard]] Kind kind(uint32_t value) const { return at(value).kind; }
  [[nodiscard]] bool plain(uint32_t value) const { return at(value).plain; }  // a scalar without quotes
  [[nodiscard]] std::string_view text(uint32_t value) const;
  [[nodiscard]] uint32_t line(uint32_t value) const { return values_[value].line; }
  // Items of a list; key, value, key, value ... of a mapping.
  [[nodiscard]] std::vector<uint32_t> children(uint32_t value) const;
  [[nodiscard]] uint32_t size(uint32_t value) const;  // items of a list, pairs of a mapping

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

}  // namespace horus

#endif  // HORUS_IO_YAML_TREE_H_
