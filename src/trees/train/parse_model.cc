// SPDX-License-Identifier: Apache-2.0
// From XGBoost's own model bytes to trees in pre-order.
#include "trees/train/parse_model.h"

#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

namespace horus::train {
namespace {

using Json = nlohmann::json;

// The member at a path of names, or nullptr.
const Json* Find(const Json& from, std::initializer_list<const char*> path) {
  const Json* at = &from;
  for (const char* name : path) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(name);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

// An array of numbers under `name` as T; false when it is absent, of another length or not of numbers.
template <typename T>
bool ReadColumn(const Json& tree, const char* name, size_t size, std::vector<T>& out) {
  const Json* column = Find(tree, {name});
  if (column == nullptr || !column->is_array() || (size != 0 && column->size() != size)) return false;
  out.clear();
  out.reserve(column->size());
  for (const Json& value : *column) {
    if (!value.is_number()) return false;
    out.push_back(value.get<T>());
  }
  return true;
}

struct Columns {
  std::vector<int32_t> left, right, feature, default_left, split_type;
  std::vector<float> value, cover;

  bool Read(const Json& tree) {
    if (!ReadColumn(tree, "left_children", 0, left) || left.empty()) return false;
    const size_t size = left.size();
    return ReadColumn(tree, "right_children", size, right) && ReadColumn(tree, "split_indices", size, feature) &&
           ReadColumn(tree, "default_left", size, default_left) && ReadColumn(tree, "split_type", size, split_type) &&
           ReadColumn(tree, "split_conditions", size, value) && ReadColumn(tree, "sum_hessian", size, cover);
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

}  // namespace

std::string ParseModel(std::span<const char> ubjson, ParsedForest& out) {
  const Json model = Json::from_ubjson(ubjson.begin(), ubjson.end(), /*strict=*/true, /*allow_exceptions=*/false);
  const Json* booster = Find(model, {"learner", "gradient_booster", "name"});
  const Json* base = Find(model, {"learner", "learner_model_param", "base_score"});
  const Json* trees = Find(model, {"learner", "gradient_booster", "model", "trees"});
  if (booster == nullptr || *booster != "gbtree" || base == nullptr || !base->is_string() || trees == nullptr ||
      !trees->is_array()) {
    return "XGBoost's model has a layout that this library does not know";
  }
  // A number up to XGBoost 3.0, a list of one, "[5E-1]", from 3.1.
  const std::string& text = base->get_ref<const std::string&>();
  const char* number = text.c_str() + (text.starts_with('[') ? 1 : 0);
  char* end = nullptr;
  out.base_score = std::strtof(number, &end);
  if (end == number || std::string_view(end) != (number == text.c_str() ? "" : "]")) {
    return "XGBoost's model has a base score that this library does not know: " + text;
  }
  for (const Json& tree : *trees) {
    Columns columns;
    if (!columns.Read(tree) || !AppendPreOrder(columns, out)) {
      return std::string("tree ") + std::to_string(out.tree_sizes.size()) +
             " of XGBoost's model has a layout that this library " + "does not know";
    }
  }
  return {};
}

}  // namespace horus::train
