// SPDX-License-Identifier: Apache-2.0
// Resolves names across scopes, orders nodes, and refuses what is undefined, defined twice or cyclic.
#include <algorithm>
#include <functional>
#include <queue>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "graph/scope.h"

namespace horus {

std::string DescribeNode(const Node& node, size_t position) {
  std::string text = Formatted("node %d", position);
  if (!node.name.empty()) absl::StrAppend(&text, " ", Quoted(node.name));
  const std::string type = Quoted(node.op_type.empty() ? "?" : node.op_type);
  absl::StrAppend(&text, " (", type.substr(1, type.size() - 2), ")");
  return text;
}

std::string DescribeBody(const GraphBody& body, size_t position) {
  return position == 0 ? "the main graph" : absl::StrCat("graph ", Quoted(body.name));
}

namespace {

using Definition = Scope::Definition;

absl::Status DefinedTwice(const Scope& scope, ValueId id, const std::string& second) {
  std::string first = "an input or initialiser";
  if (const uint32_t producer = scope.producer[id.value()]; producer != kNoNode) {
    first = DescribeNode(scope.body.nodes[producer], producer);
  }
  return MakeError(absl::StatusCode::kDataLoss, "value %s is defined twice: by %s and by %s",
                   Quoted(scope.body.values[id.value()].name), first, second);
}

absl::Status DefineValues(Scope* scope) {
  for (const ValueId id : scope->declared_inputs) {
    Definition& definition = scope->definition[id.value()];
    if (definition == Definition::kInitialiser) continue;
    if (definition != Definition::kNone) return DefinedTwice(*scope, id, "another graph input");
    definition = Definition::kInput;
    scope->body.inputs.push_back(id);
  }
  for (uint32_t n = 0; n < scope->body.nodes.size(); ++n) {
    for (const ValueId id : scope->body.nodes[n].outputs) {
      if (!id.valid()) continue;
      if (scope->definition[id.value()] != Definition::kNone) {
        return DefinedTwice(*scope, id, DescribeNode(scope->body.nodes[n], n));
      }
      scope->definition[id.value()] = Definition::kNode;
      scope->producer[id.value()] = n;
    }
  }
  return absl::OkStatus();
}

// Makes `id`, which nothing in this scope defines, a name of the enclosing scope.
absl::Status Capture(Scopes* scopes, Scope* scope, ValueId id, const std::string& reader) {
  Definition& definition = scope->definition[id.value()];
  if (definition != Definition::kNone) return absl::OkStatus();
  const std::string& name = scope->body.values[id.value()].name;
  if (!scope->body.parent.valid()) {
    return MakeError(absl::StatusCode::kDataLoss, "%s reads %s, which nothing defines", reader, Quoted(name));
  }
  Scope& parent = (*scopes)[scope->body.parent.value()];
  const ValueId outer = parent.Intern(name);
  definition = Definition::kCapture;
  scope->body.captures.emplace_back(id, outer);
  parent.subgraph_uses.emplace_back(scope->owner_node, outer);
  return absl::OkStatus();
}

absl::Status ResolveNames(Scopes* scopes, Scope* scope) {
  for (size_t n = 0; n < scope->body.nodes.size(); ++n) {
    for (const ValueId id : scope->body.nodes[n].inputs) {
      if (!id.valid() || scope->definition[id.value()] != Definition::kNone) continue;
      HORUS_RETURN_IF_ERROR(Capture(scopes, scope, id, DescribeNode(scope->body.nodes[n], n)));
    }
  }
  for (size_t i = 0; i < scope->subgraph_uses.size(); ++i) {
    const auto [n, id] = scope->subgraph_uses[i];
    if (scope->definition[id.value()] != Definition::kNone) continue;
    HORUS_RETURN_IF_ERROR(
        Capture(scopes, scope, id, absl::StrCat("a subgraph of ", DescribeNode(scope->body.nodes[n], n))));
  }
  for (const ValueId id : scope->body.outputs) {
    HORUS_RETURN_IF_ERROR(Capture(scopes, scope, id, "the list of graph outputs"));
  }
  return absl::OkStatus();
}

// Edges producer -> reader between the nodes of one scope, as (reader) lists by producer.
struct Edges {
  std::vector<uint32_t> begin;  // per node, and one past the end
  std::vector<uint32_t> reader;
  std::vector<uint32_t> waiting;  // per node: edges that come in
  bool in_order = true;           // every edge goes forward in file order
};

template <typename Visit>
void ForEachEdge(const Scope& scope, Visit visit) {
  for (uint32_t n = 0; n < scope.body.nodes.size(); ++n) {
    for (const ValueId id : scope.body.nodes[n].inputs) {
      if (id.valid() && scope.producer[id.value()] != kNoNode) visit(scope.producer[id.value()], n);
    }
  }
  for (const auto& [n, id] : scope.subgraph_uses) {
    if (scope.producer[id.value()] != kNoNode) visit(scope.producer[id.value()], n);
  }
}

Edges BuildEdges(const Scope& scope) {
  const size_t nodes = scope.body.nodes.size();
  Edges edges;
  ForEachEdge(scope, [&edges](uint32_t from, uint32_t to) { edges.in_order = edges.in_order && from < to; });
  if (edges.in_order) return edges;
  edges.begin.assign(nodes + 1, 0);
  edges.waiting.assign(nodes, 0);
  ForEachEdge(scope, [&edges](uint32_t from, uint32_t to) {
    ++edges.begin[from + 1];
    ++edges.waiting[to];
  });
  for (size_t n = 0; n < nodes; ++n) edges.begin[n + 1] += edges.begin[n];
  edges.reader.resize(edges.begin[nodes]);
  std::vector<uint32_t> next(edges.begin.begin(), edges.begin.end() - 1);
  ForEachEdge(scope, [&](uint32_t from, uint32_t to) { edges.reader[next[from]++] = to; });
  return edges;
}

// Follows producers among the nodes still waiting until one repeats: that node lies on a cycle.
absl::Status CycleError(const Scope& scope, const std::vector<uint32_t>& waiting) {
  using Use = std::pair<uint32_t, ValueId>;
  std::vector<Use> uses = scope.subgraph_uses;  // by node, so that a step looks only at its own
  std::stable_sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) { return a.first < b.first; });
  uint32_t node = 0;
  while (waiting[node] == 0) ++node;
  std::vector<bool> seen(waiting.size(), false);
  ValueId via;
  while (!seen[node]) {
    seen[node] = true;
    uint32_t producer = kNoNode;
    const auto look = [&](ValueId id) {
      if (!id.valid() || producer != kNoNode) return;
      const uint32_t candidate = scope.producer[id.value()];
      if (candidate == kNoNode || waiting[candidate] == 0) return;
      producer = candidate;
      via = id;
    };
    for (const ValueId id : scope.body.nodes[node].inputs) look(id);
    auto use = std::lower_bound(uses.begin(), uses.end(), node, [](const Use& u, uint32_t n) { return u.first < n; });
    for (; use != uses.end() && use->first == node; ++use) look(use->second);
    if (producer == kNoNode) break;
    node = producer;
  }
  return MakeError(absl::StatusCode::kDataLoss, "%s is part of a cycle through value %s",
                   DescribeNode(scope.body.nodes[node], node),
                   via.valid() ? Quoted(scope.body.values[via.value()].name) : "?");
}

absl::Status OrderNodes(Scope* scope) {
  Edges edges = BuildEdges(*scope);
  if (edges.in_order) return absl::OkStatus();
  const size_t nodes = scope->body.nodes.size();
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
  for (uint32_t n = 0; n < nodes; ++n) {
    if (edges.waiting[n] == 0) ready.push(n);
  }
  std::vector<uint32_t> order;
  order.reserve(nodes);
  while (!ready.empty()) {
    const uint32_t n = ready.top();
    ready.pop();
    order.push_back(n);
    for (uint32_t e = edges.begin[n]; e < edges.begin[n + 1]; ++e) {
      if (--edges.waiting[edges.reader[e]] == 0) ready.push(edges.reader[e]);
    }
  }
  if (order.size() != nodes) return CycleError(*scope, edges.waiting);
  std::vector<Node> sorted;
  sorted.reserve(nodes);
  for (const uint32_t n : order) sorted.push_back(std::move(scope->body.nodes[n]));
  scope->body.nodes = std::move(sorted);
  return absl::OkStatus();
}

}  // namespace

absl::Status LinkScopes(Scopes* scopes) {
  const auto place = [scopes](size_t b, const absl::Status& status) {
    if (status.ok()) return status;
    return absl::Status(status.code(), absl::StrCat(DescribeBody((*scopes)[b].body, b), ": ", status.message()));
  };
  for (size_t b = 0; b < scopes->size(); ++b) HORUS_RETURN_IF_ERROR(place(b, DefineValues(&(*scopes)[b])));
  // Children have larger ids than their parents, so what a scope hands up is there before its turn.
  for (size_t b = scopes->size(); b-- > 0;) HORUS_RETURN_IF_ERROR(place(b, ResolveNames(scopes, &(*scopes)[b])));
  for (size_t b = 0; b < scopes->size(); ++b) HORUS_RETURN_IF_ERROR(place(b, OrderNodes(&(*scopes)[b])));
  return absl::OkStatus();
}

}  // namespace horus
