// SPDX-License-Identifier: Apache-2.0
// Scope: one graph body while it is read, with its table of names.
//
// Enters:  names as they occur in the file, in any order.
// Leaves:  dense value ids, who defines each value, who only uses it.
// Cost:    one hash per name occurrence.
#pragma once

#include <deque>

#include "base/id_map.h"
#include "base/seeded_hash.h"
#include "base/status.h"
#include "graph/graph.h"

namespace horus {

// ---- NameTable: numbers by name, for names that are held elsewhere. A failed allocation leaves it as it was.
// Cost: one hash and mostly one comparison a call.

class NameTable {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};

  [[nodiscard]] uint32_t Find(std::string_view name, const auto& name_of) {
    // Seeded in each process: who writes a file cannot make its names collide. Where two do, the next place is free.
    for (place_ = SeededHash()(name);; ++place_) {
      const uint32_t* number = numbers_.Find(place_);
      if (number == nullptr) return kNone;
      if (name_of(*number) == name) return *number;
    }
  }

  // Room for one more: the next Add allocates nothing.
  void ReserveOne() { numbers_.ReserveOne(); }
  // For the name that Find did not know just now.
  void Add(uint32_t number) { numbers_.Insert(place_, number); }

 private:
  IdMap<uint32_t> numbers_;
  uint64_t place_ = 0;
};

inline constexpr uint32_t kNoNode = ~uint32_t{0};

class Scope {
 public:
  Scope() = default;
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  enum class Definition : uint8_t { kNone, kInput, kInitialiser, kNode, kCapture };

  // The id of `name`, added when it is new.
  ValueId Intern(std::string_view name) {
    const uint32_t known = names_.Find(name, [this](uint32_t id) -> std::string_view { return body.values[id].name; });
    if (known != NameTable::kNone) return ValueId(known);
    const auto id = static_cast<uint32_t>(body.values.size());
    names_.ReserveOne();
    body.values.push_back(Value{.name = std::string(name)});
    definition.push_back(Definition::kNone);
    producer.push_back(kNoNode);
    names_.Add(id);
    return ValueId(id);
  }

  GraphBody body;
  std::vector<Definition> definition;                       // per value
  std::vector<uint32_t> producer;                           // per value: the node that writes it, or kNoNode
  std::vector<ValueId> declared_inputs;                     // initialisers among them too (IR 3)
  uint32_t owner_node = kNoNode;                            // node of the parent that holds this subgraph
  std::vector<std::pair<uint32_t, ValueId>> subgraph_uses;  // (node, value of this scope its subgraphs read)

 private:
  NameTable names_;
};

using Scopes = std::deque<Scope>;  // position = BodyId; addresses stay put

// Resolves names across scopes, orders nodes topologically and checks that every name is defined.
[[nodiscard]] absl::Status LinkScopes(Scopes* scopes);

// Text for errors: "node 12 'conv1' (Conv)".
[[nodiscard]] std::string DescribeNode(const Node& node, size_t position);

// "the main graph", or "graph 'body'".
[[nodiscard]] std::string DescribeBody(const GraphBody& body, size_t position);

class WireReader;
struct ReadLimits;

// Walks the ModelProto that a reader stands at once, without loading weights: scopes with raw order, functions and the
// header fields of a Graph. Linear; call depth is bounded by ReadLimits::max_nesting.
struct ParsedModel {
  Graph graph;  // without bodies
  Scopes scopes;
};
[[nodiscard]] absl::StatusOr<ParsedModel> ParseModel(WireReader* in, const ReadLimits& limits);

}  // namespace horus
