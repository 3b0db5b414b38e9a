// SPDX-License-Identifier: Apache-2.0
// Hashes what a graph computes, whatever its values are called.
#include "graph/fingerprint.h"

#include <algorithm>
#include <bit>

#include "base/hash.h"

namespace horus {
namespace {

constexpr uint64_t kSeed = 0x686f7275735f6731;  // "horus_g1": the version of this fingerprint
constexpr uint64_t kAbsent = ~uint64_t{0};

class Fingerprint {
 public:
  void Add(uint64_t value) { state_ = CombineHash(state_, value); }
  void Add(std::string_view text) { Add(Hash64(text)); }

  void AddLiteral(const Literal& literal) {
    Add(static_cast<uint64_t>(literal.dtype));
    Add(literal.dims.size());
    for (const int64_t dim : literal.dims) Add(static_cast<uint64_t>(dim));
    // Zeros may have been dropped by a tool that strips weights, integers steer shapes: only the latter count.
    Add(literal.ints.size());
    for (const int64_t element : literal.ints) Add(static_cast<uint64_t>(element));
  }

  void AddBody(const GraphBody& body);

  [[nodiscard]] uint64_t state() const { return state_; }

 private:
  void AddAttribute(const Attribute& attribute);
  void AddDeclared(const Value& value);
  void AddUse(ValueId id, const GraphBody& body, std::vector<uint64_t>* number, uint64_t* next);

  uint64_t state_ = kSeed;
};

void Fingerprint::AddAttribute(const Attribute& attribute) {
  Add(attribute.name);
  Add(attribute.ref);
  Add(attribute.value.index());
  if (const auto* i = std::get_if<int64_t>(&attribute.value)) Add(static_cast<uint64_t>(*i));
  if (const auto* f = std::get_if<float>(&attribute.value)) Add(std::bit_cast<uint32_t>(*f));
  if (const auto* s = std::get_if<std::string>(&attribute.value)) Add(*s);
  if (const auto* t = std::get_if<Literal>(&attribute.value)) AddLiteral(*t);
  if (const auto* g = std::get_if<BodyId>(&attribute.value)) Add(g->value());
  if (const auto* list = std::get_if<std::vector<int64_t>>(&attribute.value)) {
    for (const int64_t element : *list) Add(static_cast<uint64_t>(element));
  }
  if (const auto* list = std::get_if<std::vector<float>>(&attribute.value)) {
    for (const float element : *list) Add(std::bit_cast<uint32_t>(element));
  }
  if (const auto* list = std::get_if<std::vector<std::string>>(&attribute.value)) {
    for (const std::string& element : *list) Add(element);
  }
  if (const auto* list = std::get_if<std::vector<BodyId>>(&attribute.value)) {
    for (const BodyId element : *list) Add(element.value());
  }
}

void Fingerprint::AddDeclared(const Value& value) {
  Add(static_cast<uint64_t>(value.dtype));
  Add(value.dims.has_value() ? value.dims->size() : kAbsent);
  if (!value.dims.has_value()) return;
  for (const DeclaredDim& dim : *value.dims) {
    Add(static_cast<uint64_t>(dim.size));
    Add(dim.symbol.value());
  }
}

// Values are numbered in the order in which they first matter, so names and file order of initialisers do not count.
void Fingerprint::AddUse(ValueId id, const GraphBody& body, std::vector<uint64_t>* number, uint64_t* next) {
  if (!id.valid()) return Add(kAbsent);
  uint64_t& mine = (*number)[id.value()];
  if (mine == kAbsent) {
    mine = (*next)++;
    const int32_t literal = body.values[id.value()].literal;
    if (literal >= 0) AddLiteral(body.literals[static_cast<size_t>(literal)]);
  }
  Add(mine);
}

void Fingerprint::AddBody(const GraphBody& body) {
  std::vector<uint64_t> number(body.values.size(), kAbsent);
  uint64_t next = 0;
  for (const ValueId id : body.inputs) {
    AddUse(id, body, &number, &next);
    AddDeclared(body.values[id.value()]);
  }
  for (const auto& [inner, outer] : body.captures) {
    AddUse(inner, body, &number, &next);
    Add(outer.value());
  }
  std::vector<const Attribute*> sorted;
  for (const Node& node : body.nodes) {
    Add(node.domain);
    Add(node.op_type);
    Add(node.inputs.size());
    for (const ValueId id : node.inputs) AddUse(id, body, &number, &next);
    Add(node.outputs.size());
    for (const ValueId id : node.outputs) AddUse(id, body, &number, &next);
    sorted.clear();
    for (const Attribute& attribute : node.attributes) sorted.push_back(&attribute);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Attribute* a, const Attribute* b) { return a->name < b->name; });
    for (const Attribute* attribute : sorted) AddAttribute(*attribute);
  }
  for (const ValueId id : body.outputs) AddUse(id, body, &number, &next);
}

}  // namespace

uint64_t FingerprintOf(const Graph& graph) {
  Fingerprint fingerprint;
  fingerprint.Add(static_cast<uint64_t>(graph.opset));
  for (const GraphBody& body : graph.bodies) fingerprint.AddBody(body);
  for (const Function& function : graph.functions) {
    fingerprint.Add(function.domain);
    fingerprint.Add(function.name);
    fingerprint.Add(function.body.value());
  }
  return fingerprint.state();
}

}  // namespace horus
