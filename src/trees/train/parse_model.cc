// SPDX-License-Identifier: Apache-2.0
// From XGBoost's own model bytes to trees in pre-order.
//
// Read event by event: a tree of nlohmann::json allocates when it is destroyed, so memory that runs out would end the
// process.
#include "trees/train/parse_model.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

namespace horus::train {
namespace {

using Json = nlohmann::json;

constexpr char kUnknownLayout[] = "XGBoost's model has a layout that this library does not know";

// What is read of one tree.
struct Columns {
  std::vector<int32_t> left, right, feature, default_left, split_type;
  std::vector<float> value, cover;

  [[nodiscard]] bool AreComplete() const {
    const size_t size = left.size();
    return size > 0 && right.size() == size && feature.size() == size && default_left.size() == size &&
           split_type.size() == size && value.size() == size && cover.size() == size;
  }
};

// Appends the tree below node 0; pruned nodes that nothing points to stay behind.
bool AppendPreOrder(const Columns& columns, ParsedForest& out) {
  struct Pending {
    int32_t node;
    uint32_t parent;  // whose right child it is
  };
  constexpr uint32_t kNoParent = std::numeric_limits<uint32_t>::max();
  const auto size = static_cast<int32_t>(columns.left.size());
  const size_t first = out.nodes.size();
  std::vector<Pending> pending = {{0, kNoParent}};
  while (!pending.empty()) {
    const auto [node, parent] = pending.back();
    pending.pop_back();
    const auto at = static_cast<uint32_t>(out.nodes.size() - first);
    if (node < 0 || node >= size || at >= columns.left.size()) return false;
    if (parent != kNoParent) out.nodes[first + parent].right = at;
    horus_train_node& made = out.nodes.emplace_back();
    made.value = columns.value[node];
    made.cover = columns.cover[node];
    if (columns.left[node] < 0) {
      made.split = std::numeric_limits<uint32_t>::max();
      continue;
    }
    if (columns.split_type[node] != 0 || columns.feature[node] < 0) return false;
    made.split = 2 * static_cast<uint32_t>(columns.feature[node]) + (columns.default_left[node] != 0 ? 1u : 0u);
    pending.push_back({columns.right[node], at});
    pending.push_back({columns.left[node], kNoParent});
  }
  out.tree_sizes.push_back(static_cast<uint32_t>(out.nodes.size() - first));
  return true;
}

// Follows the model's values as they come; keeps the columns of one tree at a time.
class ModelReader final : public nlohmann::json_sax<Json> {
 public:
  explicit ModelReader(ParsedForest& out) : out_(out) {}

  // After the last event.
  [[nodiscard]] std::string Finish(bool parsed) {
    if (!booster_is_known_ || !has_trees_) return kUnknownLayout;
    if (!wrong_.empty()) return wrong_;
    if (!parsed || !has_base_score_) return kUnknownLayout;
    // A number up to XGBoost 3.0, a list of one, "[5E-1]", from 3.1.
    const bool list = base_score_.starts_with('[');
    const char* const end = base_score_.data() + base_score_.size();
    const auto [rest, error] = std::from_chars(base_score_.data() + (list ? 1 : 0), end, out_.base_score);
    if (error != std::errc() || std::string_view(rest, end) != (list ? "]" : ""))
      return "XGBoost's model has a base score that this library does not know: " + base_score_;
    return {};
  }

  bool null() override { return Other(); }
  bool boolean(bool) override { return Other(); }
  bool number_integer(number_integer_t number) override { return Number(number); }
  bool number_unsigned(number_unsigned_t number) override { return Number(number); }
  bool number_float(number_float_t number, const string_t&) override { return Number(number); }
  bool binary(binary_t&) override { return Other(); }
  bool string(string_t& text) override {
    if (At({"learner", "gradient_booster", "name"})) booster_is_known_ = text == "gbtree";
    if (At({"learner", "learner_model_param", "base_score"})) {
      has_base_score_ = true;
      base_score_ = text;
    }
    return Other();
  }
  bool key(string_t& name) override {
    levels_.back().key = name;
    return true;
  }
  bool start_object(std::size_t) override {
    if (IsTree()) columns_ = {};
    return Open(false);
  }
  bool start_array(std::size_t) override {
    if (At(kTrees)) has_trees_ = true;
    const bool in_column = InColumn();  // a list within a column is none that we know
    return Open(true) && (!in_column || Refuse());
  }
  bool end_object() override {
    levels_.pop_back();
    return !IsTree() || (columns_.AreComplete() && AppendPreOrder(columns_, out_)) || Refuse();
  }
  bool end_array() override {
    levels_.pop_back();
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  struct Level {
    bool is_array = false;
    std::string key;  // of the value that comes, in an object
  };
  using Path = std::initializer_list<const char*>;
  static constexpr Path kTrees = {"learner", "gradient_booster", "model", "trees"};

  // Whether the levels up to the named are objects, and their keys these.
  [[nodiscard]] bool Below(Path path) const {
    return levels_.size() >= path.size() &&
           std::equal(path.begin(), path.end(), levels_.begin(),
                      [](const char* name, const Level& level) { return !level.is_array && level.key == name; });
  }
  [[nodiscard]] bool At(Path path) const { return levels_.size() == path.size() && Below(path); }
  // Whether what begins or ended is an element of the list of trees.
  [[nodiscard]] bool IsTree() const { return levels_.size() == 5 && levels_[4].is_array && Below(kTrees); }
  // Whether what comes is an element of a list in a tree.
  [[nodiscard]] bool InColumn() const {
    return levels_.size() == 7 && levels_[4].is_array && !levels_[5].is_array && levels_[6].is_array && Below(kTrees);
  }

  bool Open(bool is_array) {
    levels_.push_back({.is_array = is_array, .key = {}});
    return true;
  }
  bool Refuse() {
    wrong_ = std::string("tree ") + std::to_string(out_.tree_sizes.size()) +
             " of XGBoost's model has a layout that this library does not know";
    return false;
  }
  // Neither a number nor a list: not in a column that is read.
  bool Other() { return !InColumn() || (Integers() == nullptr && Floats() == nullptr) || Refuse(); }

  [[nodiscard]] std::vector<int32_t>* Integers() {
    const std::string& name = levels_[5].key;
    if (name == "left_children") return &columns_.left;
    if (name == "right_children") return &columns_.right;
    if (name == "split_indices") return &columns_.feature;
    if (name == "default_left") return &columns_.default_left;
    if (name == "split_type") return &columns_.split_type;
    return nullptr;
  }
  [[nodiscard]] std::vector<float>* Floats() {
    const std::string& name = levels_[5].key;
    if (name == "split_conditions") return &columns_.value;
    if (name == "sum_hessian") return &columns_.cover;
    return nullptr;
  }
  template <typename T>
  bool Number(T number) {
    if (!InColumn()) return true;
    if (std::vector<float>* floats = Floats()) {
      floats->push_back(static_cast<float>(number));
    } else if (std::vector<int32_t>* integers = Integers()) {
      const auto value = static_cast<double>(number);
      if (!(value >= std::numeric_limits<int32_t>::min() && value <= std::numeric_limits<int32_t>::max()))
        return Refuse();
      integers->push_back(static_cast<int32_t>(value));
    }
    return true;
  }

  ParsedForest& out_;
  std::vector<Level> levels_;
  Columns columns_;
  bool booster_is_known_ = false;
  bool has_trees_ = false;
  bool has_base_score_ = false;
  std::string base_score_;
  std::string wrong_;
};

}  // namespace

std::string ParseModel(std::span<const char> ubjson, ParsedForest& out) {
  ModelReader reader(out);
  const bool parsed = Json::sax_parse(ubjson.begin(), ubjson.end(), &reader, Json::input_format_t::ubjson);
  return reader.Finish(parsed);
}

}  // namespace horus::train
