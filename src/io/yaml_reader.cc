// SPDX-License-Identifier: Apache-2.0
// The checks behind YamlValue and YamlMap.
#include "io/yaml_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/format.h"
#include "base/text.h"

namespace horus {
namespace {

constexpr size_t kShownKeys = 4;    // of a mapping that is in the wrong place
constexpr double kRounding = 1e-6;  // of one unit: what decimal fractions lose in binary
constexpr int64_t kFileVersion = 1;

template <typename Number>
std::optional<Number> ParseWhole(std::string_view text) {
  if (text.starts_with("+-")) return std::nullopt;
  if (text.starts_with('+')) text.remove_prefix(1);
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string Shown(double number) { return Formatted("%.15g", number); }

std::string Range(std::string_view what, std::string_view min, std::string_view max) {
  return Formatted("%s from %s to %s", std::string(what), std::string(min), std::string(max));
}

// One line for each scalar below `value`: "way.to[0].it: text".
void Flatten(const YamlTree& tree, uint32_t value, const std::string& way, std::vector<std::string>& lines) {
  const std::vector<uint32_t> children = tree.children(value);
  switch (tree.kind(value)) {
    case YamlTree::Kind::kNull:
      lines.push_back(way + ": ~");
      return;
    case YamlTree::Kind::kScalar:
      lines.push_back(absl::StrCat(way, ": ", absl::CEscape(std::string(tree.text(value)))));
      return;
    case YamlTree::Kind::kList:
      for (size_t i = 0; i < children.size(); ++i) Flatten(tree, children[i], absl::StrCat(way, "[", i, "]"), lines);
      return;
    case YamlTree::Kind::kMap:
      for (size_t i = 0; i + 1 < children.size(); i += 2) {
        Flatten(tree, children[i + 1], absl::StrCat(way, ".", std::string(tree.text(children[i]))), lines);
      }
  }
}

}  // namespace

std::string YamlValue::Flat(std::span<const std::string_view> without) const {
  std::vector<std::string> lines;
  if (!is_map()) {
    Flatten(*tree_, value_, "", lines);
  } else {
    const std::vector<uint32_t> children = tree_->children(value_);
    for (size_t i = 0; i + 1 < children.size(); i += 2) {
      const std::string_view key = tree_->text(children[i]);
      if (std::find(without.begin(), without.end(), key) != without.end()) continue;
      Flatten(*tree_, children[i + 1], std::string(key), lines);
    }
  }
  std::sort(lines.begin(), lines.end());
  return lines.empty() ? "" : absl::StrCat(absl::StrJoin(lines, "\n"), "\n");
}

std::string YamlValue::Where() const { return absl::StrCat(file(), ":", line(), path_.empty() ? "" : ": ", path_); }

std::string YamlValue::Found() const {
  switch (tree_->kind(value_)) {
    case YamlTree::Kind::kNull:
      return "nothing";
    case YamlTree::Kind::kScalar:
      return tree_->plain(value_) ? Quoted(tree_->text(value_)) : "the quoted text " + Quoted(tree_->text(value_));
    case YamlTree::Kind::kList:
      return Formatted("a list of %d", tree_->size(value_));
    case YamlTree::Kind::kMap:
      break;
  }
  const std::vector<uint32_t> children = tree_->children(value_);
  std::vector<std::string> keys;
  for (size_t i = 0; i < children.size() && keys.size() < kShownKeys; i += 2) {
    keys.push_back(Quoted(tree_->text(children[i])));
  }
  if (keys.empty()) return "an empty mapping";
  if (children.size() / 2 > kShownKeys) keys.push_back("...");
  return "a mapping of " + absl::StrJoin(keys, ", ");
}

absl::Status YamlValue::Expected(std::string_view expected) const {
  return Error(Formatted("expected %s, found %s", std::string(expected), Found()));
}

absl::Status YamlValue::Error(std::string_view message) const {
  return InvalidArgument("%s: %s", Where(), std::string(message));
}

absl::Status YamlValue::Wrap(const absl::Status& status) const {
  if (status.ok()) return status;
  return MakeError(status.code(), "%s: %s", Where(), std::string(status.message()));
}

std::optional<std::string_view> YamlValue::PlainText() const {
  if (tree_->kind(value_) != YamlTree::Kind::kScalar || !tree_->plain(value_)) return std::nullopt;
  return tree_->text(value_);
}

// Keys must be scalars and differ. Sorted, so that many keys stay cheap.
absl::Status YamlValue::CheckKeys() const {
  if (!is_map()) return Expected("a mapping (key: value)");
  const std::vector<uint32_t> children = tree_->children(value_);
  std::vector<std::pair<std::string_view, uint32_t>> keys;
  for (size_t i = 0; i < children.size(); i += 2) {
    if (tree_->kind(children[i]) != YamlTree::Kind::kScalar) {
      return YamlValue(tree_, children[i], path_).Expected("a key");
    }
    keys.emplace_back(tree_->text(children[i]), children[i]);
  }
  std::sort(keys.begin(), keys.end());
  for (size_t i = 1; i < keys.size(); ++i) {
    if (keys[i].first != keys[i - 1].first) continue;
    return YamlValue(tree_, keys[i].second, path_)
        .Error(Formatted("expected key %s once, found it on line %d already", Quoted(keys[i].first),
                         tree_->line(keys[i - 1].second)));
  }
  return absl::OkStatus();
}

absl::StatusOr<YamlMap> YamlValue::Map(std::span<const std::string_view> keys) const {
  HORUS_RETURN_IF_ERROR(CheckKeys());
  const std::vector<uint32_t> children = tree_->children(value_);
  std::vector<std::pair<std::string_view, YamlValue>> pairs;
  for (size_t i = 0; i + 1 < children.size(); i += 2) {
    const std::string_view key = tree_->text(children[i]);
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      const std::string near = Nearest(key, keys, 1);
      const std::string expected =
          near.empty() ? absl::StrCat("one of the keys ",
                                      absl::StrJoin(keys, ", ",
                                                    [](std::string* out, std::string_view name) { out->append(name); }))
                       : absl::StrCat("a known key (did you mean '", near, "'?)");
      return YamlValue(tree_, children[i], path_).Error(Formatted("expected %s, found %s", expected, Quoted(key)));
    }
    pairs.emplace_back(
        key, YamlValue(tree_, children[i + 1], path_.empty() ? std::string(key) : path_ + "." + std::string(key)));
  }
  return YamlMap(*this, std::move(pairs));
}

absl::StatusOr<std::vector<std::pair<std::string, YamlValue>>> YamlValue::Pairs(size_t max) const {
  HORUS_RETURN_IF_ERROR(CheckKeys());
  if (tree_->size(value_) > max) {
    return Error(Formatted("expected at most %d keys, found %d", max, tree_->size(value_)));
  }
  const std::vector<uint32_t> children = tree_->children(value_);
  std::vector<std::pair<std::string, YamlValue>> pairs;
  for (size_t i = 0; i + 1 < children.size(); i += 2) {
    std::string key(tree_->text(children[i]));
    YamlValue value(tree_, children[i + 1], path_.empty() ? key : path_ + "[" + Quoted(key) + "]");
    pairs.emplace_back(std::move(key), std::move(value));
  }
  return pairs;
}

absl::StatusOr<std::vector<YamlValue>> YamlValue::List(size_t max) const {
  if (!is_list()) return Expected("a list");
  if (tree_->size(value_) > max) {
    return Error(Formatted("expected at most %d items, found %d", max, tree_->size(value_)));
  }
  std::vector<YamlValue> items;
  for (const uint32_t child : tree_->children(value_)) {
    items.emplace_back(tree_, child, absl::StrCat(path_, "[", items.size(), "]"));
  }
  return items;
}

absl::StatusOr<std::string> YamlValue::Text(size_t max_bytes) const {
  if (tree_->kind(value_) != YamlTree::Kind::kScalar) return Expected("text");
  const std::string_view text = tree_->text(value_);
  if (text.empty()) return Expected("text that is not empty");
  if (text.size() > max_bytes) {
    return Error(Formatted("expected at most %d bytes of text, found %d", max_bytes, text.size()));
  }
  if (text.find('\0') != std::string_view::npos) return Expected("text without null bytes");
  return std::string(text);
}

absl::StatusOr<int64_t> YamlValue::Integer(int64_t min, int64_t max) const {
  const std::optional<std::string_view> text = PlainText();
  const std::optional<int64_t> number = text ? ParseWhole<int64_t>(*text) : std::nullopt;
  if (!number || *number < min || *number > max) {
    return Expected(Range("an integer", absl::StrCat(min), absl::StrCat(max)));
  }
  return *number;
}

absl::StatusOr<uint64_t> YamlValue::Id() const {
  const std::optional<std::string_view> text = PlainText();
  const std::optional<uint64_t> number = text ? ParseWhole<uint64_t>(*text) : std::nullopt;
  if (!number) {
    return Expected(Range("an integer", "0", absl::StrCat(std::numeric_limits<uint64_t>::max())));
  }
  return *number;
}

absl::StatusOr<double> YamlValue::Number(double min, double max) const {
  const std::optional<std::string_view> text = PlainText();
  const std::optional<double> number = text ? ParseWhole<double>(*text) : std::nullopt;
  // Written so that NaN is refused.
  if (!number || !(*number >= min && *number <= max)) return Expected(Range("a number", Shown(min), Shown(max)));
  return *number;
}

absl::StatusOr<int64_t> YamlValue::Scaled(const Scale& scale) const {
  HORUS_ASSIGN_OR_RETURN(const double number, Number(scale.min, scale.max));
  const double scaled = number * static_cast<double>(scale.per_unit);
  const double nearest = std::round(scaled);
  const bool nothing = nearest == 0 && number != 0;  // no rounding of a decimal, but too little
  if (!nothing && std::abs(scaled - nearest) <= kRounding * std::max(1.0, std::abs(scaled) * kRounding)) {
    return static_cast<int64_t>(nearest);
  }
  if (scale.exact) {
    return Expected(Formatted("a multiple of %s", Shown(1 / static_cast<double>(scale.per_unit))));
  }
  return static_cast<int64_t>(std::ceil(scaled));
}

absl::StatusOr<bool> YamlValue::Bool() const {
  const std::optional<std::string_view> text = PlainText();
  if (text == "true") return true;
  if (text == "false") return false;
  return Expected("true or false");
}

absl::StatusOr<size_t> YamlValue::Choice(std::span<const std::string_view> choices) const {
  if (tree_->kind(value_) == YamlTree::Kind::kScalar) {
    const auto found = std::find(choices.begin(), choices.end(), tree_->text(value_));
    if (found != choices.end()) return static_cast<size_t>(found - choices.begin());
  }
  return Expected("one of " +
                  absl::StrJoin(choices, ", ", [](std::string* out, std::string_view name) { out->append(name); }));
}

const YamlValue* YamlMap::Find(std::string_view key) const {
  for (const auto& [name, value] : pairs_) {
    if (name == key) return &value;
  }
  return nullptr;
}

absl::StatusOr<YamlValue> YamlMap::Require(std::string_view key, std::string_view what) const {
  if (const YamlValue* value = Find(key)) return *value;
  return value_.Error(Formatted("expected key %s (%s), found none", Quoted(key), std::string(what)));
}

absl::Status YamlMap::ReadText(std::string_view key, size_t max_bytes, std::string& out) const {
  if (const YamlValue* value = Find(key)) {
    HORUS_ASSIGN_OR_RETURN(out, value->Text(max_bytes));
  }
  return absl::OkStatus();
}

absl::Status YamlMap::ReadId(std::string_view key, uint64_t& out) const {
  if (const YamlValue* value = Find(key)) {
    HORUS_ASSIGN_OR_RETURN(out, value->Id());
  }
  return absl::OkStatus();
}

absl::Status YamlMap::ReadNumber(std::string_view key, double min, double max, double& out) const {
  if (const YamlValue* value = Find(key)) {
    HORUS_ASSIGN_OR_RETURN(out, value->Number(min, max));
  }
  return absl::OkStatus();
}

absl::Status YamlMap::ReadScaled(std::string_view key, const Scale& scale, int64_t& out) const {
  if (const YamlValue* value = Find(key)) {
    HORUS_ASSIGN_OR_RETURN(out, value->Scaled(scale));
  }
  return absl::OkStatus();
}

absl::Status YamlMap::ReadBool(std::string_view key, bool& out) const {
  if (const YamlValue* value = Find(key)) {
    HORUS_ASSIGN_OR_RETURN(out, value->Bool());
  }
  return absl::OkStatus();
}

absl::StatusOr<YamlMap> OpenVersion1(const std::shared_ptr<const YamlTree>& tree,
                                     std::span<const std::string_view> keys) {
  const YamlValue root = YamlValue::Root(tree);
  // The version comes first: a file of a later version may well have keys that are unknown here.
  if (root.is_map()) {
    HORUS_ASSIGN_OR_RETURN(const auto pairs, root.Pairs(keys.size() + 64));
    for (const auto& [key, value] : pairs) {
      if (key != "version") continue;
      const absl::StatusOr<int64_t> version = value.Integer(kFileVersion, kFileVersion);
      if (!version.ok()) return value.Expected("version 1, the only one that this release reads");
    }
  }
  HORUS_ASSIGN_OR_RETURN(YamlMap map, root.Map(keys));
  HORUS_RETURN_IF_ERROR(map.Require("version", "1").status());
  return map;
}

}  // namespace horus
