// SPDX-License-Identifier: Apache-2.0
// Checked reading of YAML: a document as a flat table of values, each with its line; every error says file:line, key
// path, what was expected and what was found.
#include "io/yaml.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <istream>
#include <limits>
#include <streambuf>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/format.h"
#include "base/text.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/exceptions.h"
#include "yaml-cpp/mark.h"
#include "yaml-cpp/parser.h"

namespace horus {

// ---- Turns yaml-cpp's parse events into a YamlTree; its exceptions end here.

// Feeds the parser until it has read `limit` bytes without telling of a single value, or is told to stop; then the
// text ends. The parser itself has no way to stop it, and would read a hostile file to the end.
class MeteredText final : public std::streambuf {
 public:
  MeteredText(std::string text, size_t limit) : text_(std::move(text)), limit_(limit) {}

  void OnEvent() { since_event_ = 0; }
  void Stop() { stopped_ = true; }
  [[nodiscard]] bool exceeded() const { return exceeded_; }

 private:
  int_type underflow() override {
    constexpr size_t kChunkBytes = 4096;
    exceeded_ = exceeded_ || since_event_ > limit_;
    const size_t size = std::min(kChunkBytes, text_.size() - position_);
    if (exceeded_ || stopped_ || size == 0) return traits_type::eof();
    char* const begin = text_.data() + position_;
    setg(begin, begin, begin + size);
    position_ += size;
    since_event_ += size;
    return traits_type::to_int_type(*begin);
  }

  std::string text_;
  size_t limit_;
  size_t position_ = 0;
  size_t since_event_ = 0;
  bool exceeded_ = false;
  bool stopped_ = false;
};

// After the first error it ignores every event and ends the text.
class YamlTreeBuilder final : public YAML::EventHandler {
 public:
  YamlTreeBuilder(YamlTree& tree, const YamlLimits& limits, MeteredText& text)
      : tree_(tree), limits_(limits), text_(text) {}

  [[nodiscard]] const absl::Status& status() const { return status_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) Fail(mark, "expected one document, found a second one");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { Add(YamlTree::Kind::kNull, mark, "", anchor); }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (!status_.ok()) return;
    const uint32_t target = anchor < anchors_.size() ? anchors_[anchor] : YamlTree::kNone;
    if (target == YamlTree::kNone || IsOpen(target))
      return Fail(mark, "expected an alias of a value that is complete, found one inside itself");
    const uint32_t value = Add(YamlTree::Kind::kNull, mark, "", 0);
    if (value == YamlTree::kNone) return;
    tree_.values_[value].target = target;
    const YamlTree::Value& written_out = tree_.values_[target];
    Grow(mark, value, {.values = uint64_t{written_out.expanded_values} - 1, .text = written_out.expanded_text});
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    const uint32_t value = Add(YamlTree::Kind::kScalar, mark, tag, anchor);
    if (value == YamlTree::kNone) return;
    YamlTree::Value& scalar = tree_.values_[value];
    scalar.plain = tag == "?";
    scalar.text_begin = static_cast<uint32_t>(tree_.texts_.size());
    scalar.text_size = static_cast<uint32_t>(text.size());
    // An alias repeats no text, so the texts are no longer than the file (escapes only shrink).
    tree_.texts_ += text;
    Grow(mark, value, {.values = 0, .text = text.size()});
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(YamlTree::Kind::kList, mark, tag, anchor);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(YamlTree::Kind::kMap, mark, tag, anchor);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct OpenValue {
    uint32_t value;
    uint32_t last_child;
  };
  struct Size {  // with every alias written out
    uint64_t values = 0;
    uint64_t text = 0;
  };

  void Fail(const YAML::Mark& mark, const std::string& message,
            absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
    if (status_.ok()) status_ = MakeError(code, "%s:%d: %s", tree_.file_, mark.line + 1, message);
    text_.Stop();
  }

  [[nodiscard]] bool IsOpen(uint32_t value) const {
    for (const OpenValue& open : open_) {
      if (open.value == value) return true;
    }
    return false;
  }

  // Adds a value below the innermost open one; kNone after an error.
  uint32_t Add(YamlTree::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    text_.OnEvent();
    if (!status_.ok()) return YamlTree::kNone;
    if (!tag.empty() && tag != "?" && tag != "!") {
      Fail(mark, "expected no tag, found " + Quoted(tag));
      return YamlTree::kNone;
    }
    const uint32_t value = static_cast<uint32_t>(tree_.values_.size());
    tree_.values_.push_back({.kind = kind, .line = static_cast<uint32_t>(mark.line + 1)});
    if (anchor != 0) {
      if (anchors_.size() <= anchor) anchors_.resize(anchor + 1, YamlTree::kNone);
      anchors_[anchor] = value;
    }
    if (!open_.empty()) {
      OpenValue& parent = open_.back();
      (parent.last_child == YamlTree::kNone ? tree_.values_[parent.value].first_child
                                            : tree_.values_[parent.last_child].next) = value;
      parent.last_child = value;
      ++tree_.values_[parent.value].count;
    }
    ++total_.values;
    CheckTotal(mark);
    return status_.ok() ? value : YamlTree::kNone;
  }

  void Open(YamlTree::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    const uint32_t value = Add(kind, mark, tag, anchor);
    if (value == YamlTree::kNone) return;
    if (open_.size() >= limits_.max_depth) {
      return Fail(mark, Formatted("expected at most %d levels of lists and mappings, found more", limits_.max_depth),
                  absl::StatusCode::kResourceExhausted);
    }
    open_.push_back({value, YamlTree::kNone});
    open_totals_.push_back(total_);
  }

  void Close() {
    if (!status_.ok() || open_.empty()) return;
    // All that was added since this value was opened lies inside it.
    YamlTree::Value& closed = tree_.values_[open_.back().value];
    closed.expanded_values = static_cast<uint32_t>(1 + total_.values - open_totals_.back().values);
    closed.expanded_text = static_cast<uint32_t>(total_.text - open_totals_.back().text);
    open_.pop_back();
    open_totals_.pop_back();
  }

  // Bounded: each is at most a limit, and the totals are checked with every step.
  void Grow(const YAML::Mark& mark, uint32_t value, const Size& by) {
    tree_.values_[value].expanded_values += static_cast<uint32_t>(by.values);
    tree_.values_[value].expanded_text += static_cast<uint32_t>(by.text);
    total_.values += by.values;
    total_.text += by.text;
    CheckTotal(mark);
  }

  void CheckTotal(const YAML::Mark& mark) {
    const bool values = total_.values > limits_.max_values;
    if (!values && total_.text <= limits_.max_text_bytes) return;
    Fail(mark,
         Formatted("expected at most %d %s with every alias written out, found more",
                   values ? limits_.max_values : limits_.max_text_bytes, values ? "values" : "bytes of text"),
         absl::StatusCode::kResourceExhausted);
  }

  YamlTree& tree_;
  const YamlLimits& limits_;
  MeteredText& text_;
  absl::Status status_;
  std::vector<OpenValue> open_;
  std::vector<Size> open_totals_;  // total_ when each open value began
  std::vector<uint32_t> anchors_;  // value by yaml-cpp's anchor number
  Size total_;                     // so far
  int documents_ = 0;
};

absl::StatusOr<std::shared_ptr<const YamlTree>> YamlTree::Parse(std::string file, std::string text,
                                                                const YamlLimits& limits) {
  auto tree = std::make_shared<YamlTree>();
  tree->file_ = std::move(file);
  if (text.size() > limits.max_bytes)
    return ResourceExhausted("%s: expected at most %d bytes, found %d", tree->file_, limits.max_bytes, text.size());
  MeteredText metered(std::move(text), limits.max_lookahead_bytes);
  YamlTreeBuilder builder(*tree, limits, metered);
  const auto exceeded = [&] {
    return ResourceExhausted(
        "%s: expected at most %d bytes in one collection in brackets, found more (write large lists with "
        "'-')",
        tree->file_, limits.max_lookahead_bytes);
  };
  try {
    std::istream stream(&metered);
    YAML::Parser parser(stream);
    while (builder.status().ok() && parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    // An error of ours that came earlier in the file is the better explanation.
    HORUS_RETURN_IF_ERROR(builder.status());
    if (metered.exceeded()) return exceeded();
    return InvalidArgument("%s:%d: expected YAML, found an error at column %d: %s", tree->file_, error.mark.line + 1,
                           error.mark.column + 1, Quoted(error.msg));
  } catch (const std::exception& error) {
    return MakeError(absl::StatusCode::kInternal, "%s: reading YAML: %s", tree->file_, error.what());
  }
  HORUS_RETURN_IF_ERROR(builder.status());
  if (metered.exceeded()) return exceeded();
  if (tree->values_.empty()) tree->values_.push_back({.kind = Kind::kNull, .line = 1});
  return tree;
}

std::vector<uint32_t> YamlTree::children(uint32_t value) const {
  std::vector<uint32_t> children;
  children.reserve(at(value).count);
  for (uint32_t child = at(value).first_child; child != kNone; child = values_[child].next) children.push_back(child);
  return children;
}

namespace {

// ---- The checks behind YamlValue and YamlMap.

constexpr size_t kShownKeys = 4;    // of a mapping that is in the wrong place
constexpr double kRounding = 1e-6;  // of one unit: what decimal fractions lose in binary
constexpr int64_t kFileVersion = 1;

template <typename Number>
std::optional<Number> ParseWhole(std::string_view text) {
  if (text.starts_with("+-")) return std::nullopt;
  if (text.starts_with('+')) text.remove_prefix(1);
  return ParseNumber<Number>(text);
}

std::string Shown(double number) { return Formatted("%.15g", number); }

std::string Range(std::string_view what, std::string_view min, std::string_view max) {
  return Formatted("%s from %s to %s", what, min, max);
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
      for (size_t i = 0; i + 1 < children.size(); i += 2)
        Flatten(tree, children[i + 1], absl::StrCat(way, ".", std::string(tree.text(children[i]))), lines);
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
      if (std::ranges::find(without, key) != without.end()) continue;
      Flatten(*tree_, children[i + 1], std::string(key), lines);
    }
  }
  std::ranges::sort(lines);
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
  for (size_t i = 0; i < children.size() && keys.size() < kShownKeys; i += 2)
    keys.push_back(Quoted(tree_->text(children[i])));
  if (keys.empty()) return "an empty mapping";
  if (children.size() / 2 > kShownKeys) keys.push_back("...");
  return "a mapping of " + absl::StrJoin(keys, ", ");
}

absl::Status YamlValue::Expected(std::string_view expected) const {
  return Error(Formatted("expected %s, found %s", expected, Found()));
}

std::optional<std::string_view> YamlValue::PlainText() const {
  if (tree_->kind(value_) != YamlTree::Kind::kScalar || !tree_->plain(value_)) return std::nullopt;
  return tree_->text(value_);
}

absl::StatusOr<std::vector<YamlValue::Pair>> YamlValue::CheckedPairs() const {
  if (!is_map()) return Expected("a mapping (key: value)");
  const std::vector<uint32_t> children = tree_->children(value_);
  std::vector<Pair> pairs;
  for (size_t i = 0; i + 1 < children.size(); i += 2) {
    if (tree_->kind(children[i]) != YamlTree::Kind::kScalar)
      return YamlValue(tree_, children[i], path_).Expected("a key");
    pairs.push_back({tree_->text(children[i]), children[i], children[i + 1]});
  }
  std::vector<Pair> sorted = pairs;  // so that many keys stay cheap
  std::ranges::sort(sorted, {}, [](const Pair& pair) { return std::pair(pair.key, pair.key_at); });
  const auto twice = std::ranges::adjacent_find(sorted, {}, &Pair::key);
  if (twice == sorted.end()) return pairs;
  return YamlValue(tree_, std::next(twice)->key_at, path_)
      .Error(Formatted("expected key %s once, found it on line %d already", Quoted(twice->key),
                       tree_->line(twice->key_at)));
}

absl::StatusOr<YamlMap> YamlValue::Map(std::span<const std::string_view> keys) const {
  HORUS_ASSIGN_OR_RETURN(const std::vector<Pair> pairs, CheckedPairs());
  std::vector<std::pair<std::string_view, YamlValue>> values;
  for (const auto& [key, key_at, value_at] : pairs) {
    if (std::ranges::find(keys, key) == keys.end()) {
      const std::string near = Nearest(key, keys, 1);
      const std::string expected =
          near.empty() ? "one of the keys " + Listed(keys) : "a known key (did you mean '" + near + "'?)";
      return YamlValue(tree_, key_at, path_).Error(Formatted("expected %s, found %s", expected, Quoted(key)));
    }
    values.emplace_back(key,
                        YamlValue(tree_, value_at, path_.empty() ? std::string(key) : path_ + "." + std::string(key)));
  }
  return YamlMap(*this, std::move(values));
}

absl::StatusOr<std::vector<std::pair<std::string, YamlValue>>> YamlValue::Pairs(size_t max) const {
  HORUS_ASSIGN_OR_RETURN(const std::vector<Pair> pairs, CheckedPairs());
  if (pairs.size() > max) return Error(Formatted("expected at most %d keys, found %d", max, pairs.size()));
  std::vector<std::pair<std::string, YamlValue>> values;
  for (const auto& [key, key_at, value_at] : pairs) {
    const std::string path = path_.empty() ? std::string(key) : path_ + "[" + Quoted(key) + "]";
    values.emplace_back(key, YamlValue(tree_, value_at, path));
  }
  return values;
}

absl::StatusOr<std::vector<YamlValue>> YamlValue::List(size_t max) const {
  if (!is_list()) return Expected("a list");
  if (tree_->size(value_) > max)
    return Error(Formatted("expected at most %d items, found %d", max, tree_->size(value_)));
  std::vector<YamlValue> items;
  for (const uint32_t child : tree_->children(value_))
    items.emplace_back(tree_, child, absl::StrCat(path_, "[", items.size(), "]"));
  return items;
}

absl::StatusOr<std::vector<std::string>> YamlValue::Texts(size_t max, size_t max_bytes) const {
  HORUS_ASSIGN_OR_RETURN(const std::vector<YamlValue> items, List(max));
  std::vector<std::string> texts(items.size());
  for (size_t i = 0; i < items.size(); ++i) HORUS_SET_OR_RETURN(texts[i], items[i].Text(max_bytes));
  return texts;
}

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> YamlValue::TextPairs(size_t max,
                                                                                      size_t max_bytes) const {
  HORUS_ASSIGN_OR_RETURN(const auto pairs, Pairs(max));
  std::vector<std::pair<std::string, std::string>> texts;
  for (const auto& [key, value] : pairs) {
    HORUS_ASSIGN_OR_RETURN(std::string text, value.Text(max_bytes));
    texts.emplace_back(key, std::move(text));
  }
  return texts;
}

absl::StatusOr<std::string> YamlValue::Text(size_t max_bytes) const {
  if (tree_->kind(value_) != YamlTree::Kind::kScalar) return Expected("text");
  const std::string_view text = tree_->text(value_);
  if (text.empty()) return Expected("text that is not empty");
  if (text.size() > max_bytes)
    return Error(Formatted("expected at most %d bytes of text, found %d", max_bytes, text.size()));
  if (text.find('\0') != std::string_view::npos) return Expected("text without null bytes");
  return std::string(text);
}

absl::StatusOr<int64_t> YamlValue::Integer(int64_t min, int64_t max) const {
  const std::optional<std::string_view> text = PlainText();
  const std::optional<int64_t> number = text ? ParseWhole<int64_t>(*text) : std::nullopt;
  if (!number || *number < min || *number > max)
    return Expected(Range("an integer", absl::StrCat(min), absl::StrCat(max)));
  return *number;
}

absl::StatusOr<uint64_t> YamlValue::Id() const {
  const std::optional<std::string_view> text = PlainText();
  const std::optional<uint64_t> number = text ? ParseWhole<uint64_t>(*text) : std::nullopt;
  if (!number) return Expected(Range("an integer", "0", absl::StrCat(std::numeric_limits<uint64_t>::max())));
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
  if (!nothing && std::abs(scaled - nearest) <= kRounding * std::max(1.0, std::abs(scaled) * kRounding))
    return static_cast<int64_t>(nearest);
  if (scale.exact) return Expected(Formatted("a multiple of %s", Shown(1 / static_cast<double>(scale.per_unit))));
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
    const auto found = std::ranges::find(choices, tree_->text(value_));
    if (found != choices.end()) return static_cast<size_t>(found - choices.begin());
    return Error(ExpectedOneOf(choices, tree_->text(value_)));
  }
  return Expected("one of " + Listed(choices));
}

const YamlValue* YamlMap::Find(std::string_view key) const {
  for (const auto& [name, value] : pairs_) {
    if (name == key) return &value;
  }
  return nullptr;
}

absl::StatusOr<YamlValue> YamlMap::Require(std::string_view key, std::string_view what) const {
  if (const YamlValue* value = Find(key)) return *value;
  return value_.Error(Formatted("expected key %s (%s), found none", Quoted(key), what));
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
