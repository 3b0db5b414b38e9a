// SPDX-License-Identifier: Apache-2.0
// Entry points of the ONNX reader: bytes and files.
#include "graph/reader.h"

#include <fcntl.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <limits>
#include <queue>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/text.h"
#include "graph/scope.h"
#include "graph/wire.h"

namespace horus {
namespace {

// ---- Beginnings of files that are no ONNX models.

constexpr size_t kTellingBytes = 512;  // more are not looked at

struct Beginning {
  std::string_view bytes;
  std::string_view what;
};

constexpr std::string_view kHtml = "an HTML page (the download gave an error page, or one to sign in?)";
constexpr std::string_view kZip =
    "a zip archive, as torch.save writes: export the model with torch.onnx.export, or unpack it";
constexpr std::string_view kPickle =
    "a Python pickle, as torch.save wrote before PyTorch 1.6: export the model with torch.onnx.export";
constexpr std::string_view kCompressed = "a compressed file: unpack it";
constexpr std::string_view kSafetensors =
    "a safetensors file, which has weights but no graph: export the model with torch.onnx.export";

// Each format's own description of its first bytes; of a pickle, protocols 2 to 5.
constexpr std::array kBeginnings = {
    Beginning{"version https://git-lfs", "a git-lfs pointer: run `git lfs pull`"},
    Beginning{std::string_view("PK\3\4", 4), kZip},
    Beginning{"\x80\x02", kPickle},
    Beginning{"\x80\x03", kPickle},
    Beginning{"\x80\x04", kPickle},
    Beginning{"\x80\x05", kPickle},
    Beginning{"\x1F\x8B", kCompressed},          // gzip
    Beginning{"BZh", kCompressed},               // bzip2
    Beginning{"\xFD\x37zXZ", kCompressed},       // xz
    Beginning{"\x28\xB5\x2F\xFD", kCompressed},  // zstd
    Beginning{"\x89HDF\r\n", "an HDF5 file, as Keras writes: convert the model with tf2onnx"},
};

// Texts begin so after white space, in any case.
constexpr std::array kTextBeginnings = {
    Beginning{"<!doctype html", kHtml},
    Beginning{"<html", kHtml},
    Beginning{"<?xml", "an XML document (the download gave an error message?)"},
    Beginning{"{", "a JSON text (the download gave an error message?)"},
    Beginning{"[", "a JSON text (the download gave an error message?)"},
};

// A length in eight bytes, then a JSON object of so many.
bool IsSafetensors(std::string_view head) {
  constexpr size_t kLengthBytes = 8;
  return head.size() > kLengthBytes && head.substr(kLengthBytes - 2, 2) == std::string_view("\0\0", 2) &&
         head.substr(kLengthBytes).starts_with("{\"");
}

std::optional<std::string_view> WhatBeginsSo(std::string_view head) {
  for (const Beginning& one : kBeginnings) {
    if (head.starts_with(one.bytes)) return one.what;
  }
  if (IsSafetensors(head)) return kSafetensors;
  if (!IsText(head)) return std::nullopt;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (head.starts_with(kByteOrderMark)) head.remove_prefix(kByteOrderMark.size());
  const absl::string_view text = absl::StripLeadingAsciiWhitespace(absl::string_view(head.data(), head.size()));
  for (const Beginning& one : kTextBeginnings) {
    if (absl::StartsWithIgnoreCase(text, absl::string_view(one.bytes.data(), one.bytes.size()))) return one.what;
  }
  return "a text file";
}

// Only of what failed: a model may begin with any bytes.
absl::Status NameForeignFile(std::string_view head, const absl::Status& failed) {
  const std::optional<std::string_view> what = WhatBeginsSo(head.substr(0, kTellingBytes));
  return what ? MakeError(failed.code(), "not an ONNX model but %s", *what) : failed;
}

// ---- Resolves names across scopes, orders nodes, and refuses what is undefined, defined twice or cyclic.

using Definition = Scope::Definition;

absl::Status DefinedTwice(const Scope& scope, ValueId id, const std::string& second) {
  std::string first = "an input or initialiser";
  if (const uint32_t producer = scope.producer[id.value()]; producer != kNoNode)
    first = DescribeNode(scope.body.nodes[producer], producer);
  return DataLoss("value %s is defined twice: by %s and by %s", Quoted(scope.body.values[id.value()].name), first,
                  second);
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
    for (const ValueId id : Given(scope->body.nodes[n].outputs)) {
      if (scope->definition[id.value()] != Definition::kNone)
        return DefinedTwice(*scope, id, DescribeNode(scope->body.nodes[n], n));
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
  if (!scope->body.parent.valid()) return DataLoss("%s reads %s, which nothing defines", reader, Quoted(name));
  Scope& parent = (*scopes)[scope->body.parent.value()];
  const ValueId outer = parent.Intern(name);
  definition = Definition::kCapture;
  scope->body.captures.emplace_back(id, outer);
  parent.subgraph_uses.emplace_back(scope->owner_node, outer);
  return absl::OkStatus();
}

absl::Status ResolveNames(Scopes* scopes, Scope* scope) {
  for (size_t n = 0; n < scope->body.nodes.size(); ++n) {
    for (const ValueId id : Given(scope->body.nodes[n].inputs)) {
      if (scope->definition[id.value()] != Definition::kNone) continue;
      HORUS_RETURN_IF_ERROR(Capture(scopes, scope, id, DescribeNode(scope->body.nodes[n], n)));
    }
  }
  for (size_t i = 0; i < scope->subgraph_uses.size(); ++i) {
    const auto [n, id] = scope->subgraph_uses[i];
    if (scope->definition[id.value()] != Definition::kNone) continue;
    HORUS_RETURN_IF_ERROR(
        Capture(scopes, scope, id, absl::StrCat("a subgraph of ", DescribeNode(scope->body.nodes[n], n))));
  }
  for (const ValueId id : scope->body.outputs)
    HORUS_RETURN_IF_ERROR(Capture(scopes, scope, id, "the list of graph outputs"));
  return absl::OkStatus();
}

// Edges producer -> reader between the nodes of one scope.
void ForEachEdge(const Scope& scope, auto visit) {
  for (uint32_t n = 0; n < scope.body.nodes.size(); ++n) {
    for (const ValueId id : Given(scope.body.nodes[n].inputs)) {
      if (scope.producer[id.value()] != kNoNode) visit(scope.producer[id.value()], n);
    }
  }
  for (const auto& [n, id] : scope.subgraph_uses) {
    if (scope.producer[id.value()] != kNoNode) visit(scope.producer[id.value()], n);
  }
}

// Follows producers among the nodes still waiting until one repeats: that node lies on a cycle.
absl::Status CycleError(const Scope& scope, const std::vector<uint32_t>& waiting) {
  using Use = std::pair<uint32_t, ValueId>;
  std::vector<Use> uses = scope.subgraph_uses;  // by node, so that a step looks only at its own
  std::ranges::stable_sort(uses, [](const Use& a, const Use& b) { return a.first < b.first; });
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
  return DataLoss("%s is part of a cycle through value %s", DescribeNode(scope.body.nodes[node], node),
                  via.valid() ? Quoted(scope.body.values[via.value()].name) : "?");
}

absl::Status OrderNodes(Scope* scope) {
  bool in_order = true;
  ForEachEdge(*scope, [&](uint32_t from, uint32_t to) { in_order = in_order && from < to; });
  if (in_order) return absl::OkStatus();
  const size_t nodes = scope->body.nodes.size();
  std::vector<std::vector<uint32_t>> readers(nodes);
  std::vector<uint32_t> waiting(nodes, 0);  // edges that come in
  ForEachEdge(*scope, [&](uint32_t from, uint32_t to) {
    readers[from].push_back(to);
    ++waiting[to];
  });
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
  for (uint32_t n = 0; n < nodes; ++n) {
    if (waiting[n] == 0) ready.push(n);
  }
  std::vector<uint32_t> order;
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (const uint32_t reader : readers[order.back()]) {
      if (--waiting[reader] == 0) ready.push(reader);
    }
  }
  if (order.size() != nodes) return CycleError(*scope, waiting);
  std::vector<Node> sorted;
  sorted.reserve(nodes);
  for (const uint32_t n : order) sorted.push_back(std::move(scope->body.nodes[n]));
  scope->body.nodes = std::move(sorted);
  return absl::OkStatus();
}

// Read size. Payloads are seeked over, and the block behind each is read for a few fields only: large blocks would make
// a file with weights several times slower than one without.
constexpr int kFileBlockBytes = 8 * 1024;

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }
  // The first bytes, wherever reading has come to; none where they cannot be read.
  [[nodiscard]] std::string Head() const {
    std::string head(kTellingBytes, '\0');
    head.resize(static_cast<size_t>(std::max<ssize_t>(pread(fd_, head.data(), head.size(), 0), 0)));
    return head;
  }

 private:
  int fd_;
};

absl::Status CheckSize(int64_t bytes) {
  if (bytes <= std::numeric_limits<int>::max()) return absl::OkStatus();
  return ResourceExhausted("%d bytes, but a protobuf message has at most %d: weights belong into external data", bytes,
                           std::numeric_limits<int>::max());
}

absl::StatusOr<std::shared_ptr<const Graph>> Read(google::protobuf::io::ZeroCopyInputStream* stream, int bytes,
                                                  const ReadLimits& limits) {
  WireReader in(stream, bytes);
  HORUS_ASSIGN_OR_RETURN(ParsedModel parsed, ParseModel(&in, limits));
  HORUS_RETURN_IF_ERROR(LinkScopes(&parsed.scopes));
  auto graph = std::make_shared<Graph>(std::move(parsed.graph));
  graph->bodies.reserve(parsed.scopes.size());
  for (Scope& scope : parsed.scopes) graph->bodies.push_back(std::move(scope.body));
  graph->fingerprint = FingerprintOf(*graph);
  return std::shared_ptr<const Graph>(std::move(graph));
}

}  // namespace

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

absl::StatusOr<std::shared_ptr<const Graph>> ReadOnnx(std::span<const uint8_t> bytes, const ReadLimits& limits) {
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (absl::Status status = CheckSize(static_cast<int64_t>(bytes.size())); !status.ok())
    return At("ONNX bytes", NameForeignFile(head, status));
  const int size = static_cast<int>(bytes.size());
  google::protobuf::io::ArrayInputStream stream(bytes.data(), size);
  auto graph = Read(&stream, size, limits);
  if (!graph.ok()) return At("ONNX bytes", NameForeignFile(head, graph.status()));
  return graph;
}

absl::StatusOr<std::shared_ptr<const Graph>> ReadOnnxFile(const std::string& path, const ReadLimits& limits) {
  const std::string place = "ONNX file " + Quoted(path, std::numeric_limits<int16_t>::max());
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info{};
  if (file.get() < 0 || fstat(file.get(), &info) != 0)
    return Unavailable("%s: cannot open: %s", place, strerror(errno));
  if (!S_ISREG(info.st_mode)) return Unavailable("%s: not a regular file", place);
  if (absl::Status status = CheckSize(info.st_size); !status.ok())
    return At(place, NameForeignFile(file.Head(), status));
  google::protobuf::io::FileInputStream stream(file.get(), kFileBlockBytes);
  auto graph = Read(&stream, static_cast<int>(info.st_size), limits);
  if (stream.GetErrno() != 0) return Unavailable("%s: cannot read: %s", place, strerror(stream.GetErrno()));
  if (!graph.ok()) return At(place, NameForeignFile(file.Head(), graph.status()));
  return graph;
}

}  // namespace horus
