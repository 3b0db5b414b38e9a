// SPDX-License-Identifier: Apache-2.0
// Turns yaml-cpp's parse events into a YamlTree; its exceptions end here.
#include "io/yaml_tree.h"

#include <algorithm>
#include <exception>
#include <istream>
#include <streambuf>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/exceptions.h"
#include "yaml-cpp/mark.h"
#include "yaml-cpp/parser.h"

namespace horus {
namespace {

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

}  // namespace

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
    if (target == YamlTree::kNone || IsOpen(target)) {
      return Fail(mark, "expected an alias of a value that is complete, found one inside itself");
    }
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
  if (text.size() > limits.max_bytes) {
    return MakeError(absl::StatusCode::kResourceExhausted, "%s: expected at most %d bytes, found %d", tree->file_,
                     limits.max_bytes, text.size());
  }
  MeteredText metered(std::move(text), limits.max_lookahead_bytes);
  YamlTreeBuilder builder(*tree, limits, metered);
  const auto exceeded = [&] {
    return MakeError(absl::StatusCode::kResourceExhausted,
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
    return MakeError(absl::StatusCode::kInternal, "%s: reading YAML: %s", tree->file_, std::string(error.what()));
  }
  HORUS_RETURN_IF_ERROR(builder.status());
  if (metered.exceeded()) return exceeded();
  if (tree->values_.empty()) tree->values_.push_back({.kind = Kind::kNull, .line = 1});
  return tree;
}

absl::StatusOr<std::shared_ptr<const YamlTree>> YamlTree::Load(const std::string& path, const YamlLimits& limits) {
  HORUS_ASSIGN_OR_RETURN(std::string text, ReadFile(path, limits.max_bytes));
  return Parse(path, std::move(text), limits);
}

std::string_view YamlTree::text(uint32_t value) const {
  const Value& scalar = at(value);
  return std::string_view(texts_).substr(scalar.text_begin, scalar.text_size);
}

std::vector<uint32_t> YamlTree::children(uint32_t value) const {
  std::vector<uint32_t> children;
  children.reserve(at(value).count);
  for (uint32_t child = at(value).first_child; child != kNone; child = values_[child].next) children.push_back(child);
  return children;
}

uint32_t YamlTree::size(uint32_t value) const {
  const Value& container = at(value);
  return container.kind == Kind::kMap ? container.count / 2 : container.count;
}

}  // namespace horus
