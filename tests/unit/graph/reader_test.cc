// SPDX-License-Identifier: Apache-2.0
// Rules of the ONNX reader: what is kept, what is refused, and where the message points.
#include "graph/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <cstdio>
#include <fstream>
#include <limits>

#include "graph/growth.h"
#include "graph/onnx_writer.h"

namespace horus {
namespace {

namespace w = onnx_writer;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<std::shared_ptr<const Graph>> Read(const w::Bytes& bytes, const ReadLimits& limits = {}) {
  return ReadOnnx(w::Span(bytes), limits);
}

std::string ErrorOf(const w::Bytes& bytes, const ReadLimits& limits = {}) {
  return std::string(Read(bytes, limits).status().message());
}

w::GraphParts ReluNet() {
  return {.nodes = {w::Node("Relu", {"x"}, {"y"})},
          .inputs = {w::Value("x", w::kFloat, {"batch", 3})},
          .outputs = {w::Value("y", w::kFloat, {"batch", 3})}};
}

// x -> a -> b, with the nodes in the given order.
w::GraphParts Chain(const std::vector<w::Bytes>& nodes) {
  return {.nodes = nodes, .inputs = {w::Value("x", w::kFloat, {1})}, .outputs = {w::UntypedValue("b")}};
}

TEST(Reader, KeepsNamesTypesAndSymbols) {
  const auto graph = Read(w::Model(ReluNet()));
  ASSERT_TRUE(graph.ok()) << graph.status();
  const GraphBody& main = (*graph)->main();
  EXPECT_EQ((*graph)->ir_version, 8);
  EXPECT_EQ((*graph)->opset, 17);
  EXPECT_THAT((*graph)->symbols, ElementsAre("batch"));
  ASSERT_EQ(main.nodes.size(), 1u);
  EXPECT_EQ(main.nodes[0].op_type, "Relu");
  const Value& x = main.values[main.inputs[0].value()];
  EXPECT_EQ(x.name, "x");
  EXPECT_EQ(x.dtype, DType::kFloat32);
  EXPECT_THAT(*x.dims, ElementsAre(DeclaredDim{.symbol = SymbolId(0)}, DeclaredDim{.size = 3}));
}

TEST(Reader, DecodesEveryFormOfSmallIntegerTensors) {
  const auto first = [](const w::Bytes& tensor) {
    w::GraphParts parts = ReluNet();
    parts.initialisers = {tensor};
    const auto graph = Read(w::Model(parts));
    EXPECT_TRUE(graph.ok()) << graph.status();
    return graph.ok() ? (*graph)->main().literals.at(0).ints : std::vector<int64_t>();
  };
  EXPECT_THAT(first(w::Int64Tensor("s", {2}, {-1, 768})), ElementsAre(-1, 768));
  EXPECT_THAT(first(w::Tensor("s", {2}, w::kInt64, w::Ints(7, {-1, 768}))), ElementsAre(-1, 768));
  EXPECT_THAT(first(w::Tensor("s", {2}, w::kInt64, w::PackedInts(7, {-1, 768}))), ElementsAre(-1, 768));
  EXPECT_THAT(first(w::Tensor("s", {2}, w::kInt32, w::PackedInts(5, {-1, 768}))), ElementsAre(-1, 768));
  EXPECT_THAT(first(w::Tensor("s", {1}, w::kInt32, w::Text(9, std::string("\xfe\xff\xff\xff", 4)))), ElementsAre(-2));
  EXPECT_THAT(first(w::Tensor("s", {2}, w::kInt8, w::Text(9, std::string("\xff\x7f", 2)))), ElementsAre(-1, 127));
  EXPECT_THAT(first(w::Tensor("s", {2}, w::kBool, w::Text(9, std::string("\x01\x00", 2)))), ElementsAre(1, 0));
}

TEST(Reader, TakesElementsBeforeDims) {
  w::GraphParts parts = ReluNet();
  parts.initialisers = {w::Text(9, w::RawInt64({5, 6})) + w::Text(8, "s") + w::Int(2, w::kInt64) + w::Int(1, 2)};
  const auto graph = Read(w::Model(parts));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT((*graph)->main().literals.at(0).ints, ElementsAre(5, 6));
}

TEST(Reader, KeepsDimsButNoElementsOfLargeTensors) {
  w::GraphParts parts = ReluNet();
  parts.initialisers = {w::Tensor("w", {100, 100}, w::kFloat, w::Text(9, std::string(40'000, 'x')))};
  const auto graph = Read(w::Model(parts));
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Literal& literal = (*graph)->main().literals.at(0);
  EXPECT_FALSE(literal.has_data);
  EXPECT_THAT(literal.dims, ElementsAre(100, 100));
  EXPECT_LT((*graph)->bytes_held, 10'000);
}

TEST(Reader, KeepsNoMoreFloatsThanATensorHasAxes) {
  const auto kept = [](const w::Bytes& tensor) {
    w::GraphParts parts = ReluNet();
    parts.initialisers = {tensor};
    return Read(w::Model(parts)).value()->main().literals.at(0).floats.size();
  };
  const auto raw = [](int64_t elements) { return w::Text(9, std::string(static_cast<size_t>(4 * elements), '\0')); };
  for (const int64_t elements : {64, 65}) {
    const size_t expected = elements == 64 ? 64 : 0;
    EXPECT_EQ(kept(w::Tensor("f", {elements}, w::kFloat, raw(elements))), expected);
    EXPECT_EQ(kept(raw(elements) + w::Tensor("f", {elements}, w::kFloat)), expected) << "payload before type";
    EXPECT_EQ(kept(w::FloatTensor("f", {elements}, std::vector<float>(static_cast<size_t>(elements)))), expected);
  }
}

TEST(Reader, KeepsEveryElementWhereTheLimitIsTheLargestNumber) {
  w::GraphParts parts = ReluNet();
  parts.initialisers = {w::Tensor("s", {2}, w::kInt64, w::Text(9, w::RawInt64({5, 6})))};
  const auto graph = Read(w::Model(parts), {.max_literal_elements = std::numeric_limits<int64_t>::max()});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT((*graph)->main().literals.at(0).ints, ElementsAre(5, 6));
}

TEST(Reader, TakesGraphsWithoutPayloads) {
  w::GraphParts parts = ReluNet();
  parts.initialisers = {w::Tensor("w", {4}, w::kFloat)};
  EXPECT_TRUE(Read(w::Model(parts)).ok());
}

TEST(Reader, TakesAnInitialiserThatIsAlsoAnInput) {
  w::GraphParts parts = ReluNet();
  parts.initialisers = {w::Tensor("w", {4}, w::kFloat)};
  parts.inputs.push_back(w::Value("w", w::kFloat, {4}));
  const auto graph = Read(w::Model(parts));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ((*graph)->main().inputs.size(), 1u);
}

TEST(Reader, KeepsUnknownOperators) {
  w::GraphParts parts = ReluNet();
  parts.nodes = {w::Node("FancyThing", {"x"}, {"y"}, {}, "", "my.domain")};
  const auto graph = Read(w::Model(parts));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ((*graph)->main().nodes[0].domain, "my.domain");
}

TEST(Reader, OrdersNodesByDependencyAndThenByFile) {
  const auto graph = Read(
      w::Model(Chain({w::Node("Relu", {"a"}, {"b"}), w::Node("Abs", {"x"}, {"a"}), w::Node("Neg", {"x"}, {"c"})})));
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::vector<std::string> order;
  for (const Node& node : (*graph)->main().nodes) order.push_back(node.op_type);
  EXPECT_THAT(order, ElementsAre("Abs", "Relu", "Neg"));
}

TEST(Reader, ResolvesNamesOfTheOuterScope) {
  const w::Bytes branch =
      w::Graph({.nodes = {w::Node("Neg", {"late"}, {"r"})}, .outputs = {w::UntypedValue("r")}, .name = "branch"});
  w::GraphParts parts = ReluNet();
  parts.nodes = {
      w::Node("If", {"c"}, {"y"}, {w::GraphAttribute("then_branch", branch), w::GraphAttribute("else_branch", branch)}),
      w::Node("Abs", {"x"}, {"late"})};
  parts.inputs.push_back(w::Value("c", w::kBool, {}));
  const auto graph = Read(w::Model(parts));
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ((*graph)->bodies.size(), 3u);
  EXPECT_EQ((*graph)->main().nodes[0].op_type, "Abs") << "the subgraph reads what Abs makes";
  const GraphBody& inner = (*graph)->bodies[1];
  ASSERT_EQ(inner.captures.size(), 1u);
  EXPECT_EQ((*graph)->main().values[inner.captures[0].second.value()].name, "late");
}

TEST(Reader, RefusesCyclesNamingNodeAndValue) {
  EXPECT_THAT(ErrorOf(w::Model(Chain({w::Node("Add", {"x", "b"}, {"a"}, {}, "first"), w::Node("Relu", {"a"}, {"b"})}))),
              AllOf(HasSubstr("node 0 'first' (Add) is part of a cycle"), HasSubstr("value 'a'")));
}

TEST(Reader, FindsACycleInTimeLinearInNodesAndOuterNames) {
  const auto model = [](int count) {
    std::vector<w::Bytes> nodes;
    std::vector<std::string> names;
    const auto name = [](int i) { return "v" + std::to_string(i); };
    for (int i = 0; i < count; ++i) {
      nodes.push_back(w::Node("Relu", {name(i)}, {name((i + 1) % count)}));
      names.push_back(name(i));
    }
    const w::Bytes branch = w::Graph({.nodes = {w::Node("Sum", names, {"r"})}, .outputs = {w::UntypedValue("r")}});
    nodes.push_back(w::Node("If", {"x"}, {"b"}, {w::GraphAttribute("then_branch", branch)}));
    return w::Model(Chain(nodes));
  };
  const auto refuse = [](const w::Bytes& bytes) { EXPECT_THAT(ErrorOf(bytes), HasSubstr("is part of a cycle")); };
  EXPECT_LT(GrowthOf(10'000, model, refuse), kMostLinearGrowth);
}

TEST(Reader, RefusesUndefinedNames) {
  EXPECT_THAT(ErrorOf(w::Model(Chain({w::Node("Relu", {"ghost"}, {"b"}, {}, "r")}))),
              AllOf(HasSubstr("node 0 'r' (Relu)"), HasSubstr("'ghost'"), HasSubstr("nothing defines")));
  EXPECT_THAT(ErrorOf(w::Model(Chain({w::Node("Relu", {"x"}, {"a"})}))), HasSubstr("'b'"));
}

TEST(Reader, RefusesValuesDefinedTwice) {
  EXPECT_THAT(ErrorOf(w::Model(Chain({w::Node("Relu", {"x"}, {"b"}), w::Node("Abs", {"x"}, {"b"})}))),
              AllOf(HasSubstr("'b' is defined twice"), HasSubstr("(Relu)"), HasSubstr("(Abs)")));
  EXPECT_THAT(ErrorOf(w::Model(Chain({w::Node("Relu", {"x"}, {"x"}), w::Node("Abs", {"x"}, {"b"})}))),
              HasSubstr("'x' is defined twice"));
}

TEST(Reader, RefusesTwoInitialisersOfOneName) {
  w::GraphParts parts = ReluNet();
  parts.initialisers = {w::Tensor("w", {4}, w::kFloat), w::Tensor("w", {4}, w::kFloat)};
  EXPECT_THAT(ErrorOf(w::Model(parts)), HasSubstr("two initialisers are named 'w'"));
}

TEST(Reader, RefusesNegativeAndOverflowingDims) {
  w::GraphParts parts = ReluNet();
  parts.initialisers = {w::Tensor("w", {4, -1}, w::kFloat)};
  EXPECT_THAT(ErrorOf(w::Model(parts)), AllOf(HasSubstr("'w'"), HasSubstr("-1")));
  parts.initialisers = {w::Tensor("w", {int64_t{1} << 40, int64_t{1} << 40}, w::kFloat)};
  EXPECT_THAT(ErrorOf(w::Model(parts)), AllOf(HasSubstr("'w'"), HasSubstr("overflows")));
  parts.initialisers.clear();
  parts.inputs = {w::Value("x", w::kFloat, {-7})};
  EXPECT_THAT(ErrorOf(w::Model(parts)), AllOf(HasSubstr("'x'"), HasSubstr("-7")));
}

TEST(Reader, RefusesPayloadsOfAnotherLength) {
  w::GraphParts parts = ReluNet();
  parts.initialisers = {w::Tensor("s", {3}, w::kInt64, w::Text(9, w::RawInt64({1, 2})))};
  EXPECT_THAT(ErrorOf(w::Model(parts)), AllOf(HasSubstr("'s'"), HasSubstr("16 bytes"), HasSubstr("3 elements")));
  parts.initialisers = {w::Tensor("s", {3}, w::kInt64, w::Ints(7, {1, 2}))};
  EXPECT_THAT(ErrorOf(w::Model(parts)), AllOf(HasSubstr("found 2 elements"), HasSubstr("expected 3")));
}

TEST(Reader, RefusesVersionsBelowItsRange) {
  EXPECT_THAT(ErrorOf(w::Model(w::Graph(ReluNet()), 17, 2)), AllOf(HasSubstr("IR version is 2"), HasSubstr("3 to 11")));
  EXPECT_THAT(ErrorOf(w::Model(w::Graph(ReluNet()), 6)), AllOf(HasSubstr("is 6"), HasSubstr("7 to 22")));
  EXPECT_TRUE(Read(w::Model(w::Graph(ReluNet()), kOldestOpset, kOldestIrVersion)).ok());
  EXPECT_TRUE(Read(w::Model(w::Graph(ReluNet()), kNewestOpset + 1, kNewestIrVersion + 1)).ok())
      << "newer ones are read";
}

TEST(Reader, RefusesMissingParts) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("IR version"));
  EXPECT_THAT(ErrorOf(w::Int(1, 8)), HasSubstr("no graph"));
  EXPECT_THAT(ErrorOf(w::Int(1, 8) + w::Text(7, w::Graph(ReluNet()))),
              HasSubstr("opset of the default ONNX domain is 0"));
  EXPECT_THAT(ErrorOf(w::Model(Chain({w::Text(1, "x") + w::Text(2, "b")}))),
              AllOf(HasSubstr("node 0"), HasSubstr("op_type")));
  w::GraphParts parts = ReluNet();
  parts.initialisers = {w::Ints(1, {4}) + w::Int(2, w::kFloat)};
  EXPECT_THAT(ErrorOf(w::Model(parts)), HasSubstr("has no name"));
}

TEST(Reader, RefusesEveryTruncation) {
  w::GraphParts parts = ReluNet();
  parts.initialisers = {w::Int64Tensor("s", {2}, {1, 2})};
  const w::Bytes header = w::Int(1, 8) + w::Text(8, w::Int(2, 17));
  const w::Bytes whole = w::Text(7, w::Graph(parts));
  for (size_t length = 1; length < whole.size(); ++length) {
    EXPECT_THAT(ErrorOf(header + whole.substr(0, length)),
                AnyOf(HasSubstr("truncated"), HasSubstr("not a protobuf field")))
        << length;
  }
  EXPECT_TRUE(Read(header + whole).ok());
}

TEST(Reader, RefusesWrongWireTypesNamingThePlace) {
  EXPECT_THAT(ErrorOf(w::Text(1, "8")),
              AllOf(HasSubstr("ModelProto at byte"), HasSubstr("field 1"), HasSubstr("varint")));
  EXPECT_THAT(ErrorOf(w::Model(Chain({w::Int(4, 7)}))), AllOf(HasSubstr("NodeProto"), HasSubstr("field 4")));
  EXPECT_THAT(ErrorOf("\x0b"), HasSubstr("group"));
}

TEST(Reader, KeepsItsLimits) {
  const w::Bytes model = w::Model(Chain({w::Node("Relu", {"x"}, {"a"}), w::Node("Abs", {"a"}, {"b"})}));
  EXPECT_THAT(ErrorOf(model, {.max_nodes = 1}), HasSubstr("more than 1 nodes"));
  EXPECT_THAT(ErrorOf(model, {.max_bytes_held = 100}), HasSubstr("more than 100 bytes"));
  EXPECT_THAT(ErrorOf(model, {.max_name_bytes = 3}), HasSubstr("limit 3"));
  w::GraphParts parts = ReluNet();
  parts.initialisers = {w::Tensor("w", std::vector<int64_t>(65, 1), w::kFloat)};
  EXPECT_THAT(ErrorOf(w::Model(parts)), HasSubstr("more than 64 dimensions"));
}

TEST(Reader, CountsReferencesOfAttributesAsHeld) {
  const auto held = [](size_t length) {
    const std::string ref(length, 'r');
    const w::Bytes function = w::Function(
        "my", "F", {"a"}, {"b"}, {w::Node("Flatten", {"a"}, {"b"}, {w::RefAttribute("axis", ref, 2)})}, {"axis"});
    return Read(w::Model(w::Graph(ReluNet()), 18, 8, {function})).value()->bytes_held;
  };
  EXPECT_GE(held(10'000), held(100) + 9'900);
}

// So many inside each other.
w::Bytes Nested(int subgraphs) {
  w::Bytes body = w::Graph({.nodes = {w::Node("Constant", {}, {"r"}, {w::IntAttribute("value_int", 1)})},
                            .outputs = {w::UntypedValue("r")}});
  for (int i = 1; i < subgraphs; ++i) {
    body = w::Graph({.nodes = {w::Node("If", {"c"}, {"r"}, {w::GraphAttribute("then_branch", body)})},
                     .outputs = {w::UntypedValue("r")}});
  }
  w::GraphParts parts = ReluNet();
  parts.nodes = {w::Node("If", {"c"}, {"y"}, {w::GraphAttribute("then_branch", body)})};
  parts.inputs.push_back(w::Value("c", w::kBool, {}));
  return w::Model(parts);
}

TEST(Reader, BoundsTheNestingOfSubgraphs) {
  EXPECT_TRUE(Read(Nested(32)).ok()) << Read(Nested(32)).status();
  const std::string error = ErrorOf(Nested(33));
  EXPECT_THAT(error, HasSubstr("subgraphs are nested deeper than 32 at byte"));
  EXPECT_THAT(error, HasSubstr("ONNX bytes: ...: node 0 (If): attribute 'then_branch'"));
  EXPECT_LT(error.size(), 700u);  // of an error struct's 1,016
  EXPECT_THAT(ErrorOf(Nested(33), {.max_nesting = 1'000'000}), HasSubstr("nested deeper than 32"));
  EXPECT_THAT(ErrorOf(Nested(2), {.max_nesting = 1}), HasSubstr("nested deeper than 1 "));
}

TEST(Reader, NeedsLittleStack) {
#ifdef __clang__  // sanitised, or counted
  constexpr size_t kStackBytes = 1 << 20;
#else
  constexpr size_t kStackBytes = 128 << 10;
#endif
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStackBytes), 0);
  w::Bytes bytes = Nested(kMostNesting);
  pthread_t thread;
  const auto read = [](void* given) -> void* {
    EXPECT_TRUE(Read(*static_cast<const w::Bytes*>(given)).ok());
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, read, &bytes), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  ASSERT_EQ(pthread_attr_destroy(&attributes), 0);
}

TEST(Reader, MakesNamesPrintableInMessages) {
  EXPECT_THAT(ErrorOf(w::Model(Chain({w::Node("Relu", {"gh\nost"}, {"b"})}))), HasSubstr("gh\\x0Aost"));
}

TEST(Reader, FingerprintIgnoresNamesAndWeightsButNotStructure) {
  const auto print = [](const w::GraphParts& parts) { return Read(w::Model(parts)).value()->fingerprint; };
  w::GraphParts parts = {.nodes = {w::Node("Add", {"x", "w"}, {"y"}), w::Node("Relu", {"y"}, {"z"})},
                         .initialisers = {w::FloatTensor("w", {1}, {1.5f})},
                         .inputs = {w::Value("x", w::kFloat, {1})},
                         .outputs = {w::UntypedValue("z")}};
  w::GraphParts renamed = {
      .nodes = {w::Node("Add", {"in", "weight"}, {"sum"}, {}, "named"), w::Node("Relu", {"sum"}, {"out"})},
      .initialisers = {w::FloatTensor("weight", {1}, {7.f})},
      .inputs = {w::Value("in", w::kFloat, {1})},
      .outputs = {w::UntypedValue("out")}};
  EXPECT_EQ(print(parts), print(renamed));
  w::GraphParts other = parts;
  other.nodes[1] = w::Node("Abs", {"y"}, {"z"});
  EXPECT_NE(print(parts), print(other));
  other = parts;
  other.nodes[0] = w::Node("Add", {"w", "x"}, {"y"});
  EXPECT_NE(print(parts), print(other)) << "wiring counts";
  other = parts;
  other.nodes[1] = w::Node("Relu", {"y"}, {"z"}, {w::IntAttribute("k", 1)});
  EXPECT_NE(print(parts), print(other)) << "attributes count";
  other = parts;
  other.initialisers = {w::FloatTensor("w", {1, 1}, {1.5f})};
  EXPECT_NE(print(parts), print(other)) << "shapes count";
}

TEST(Reader, ReadsFilesAndNamesThemInErrors) {
  const std::string path = testing::TempDir() + "/horus_reader_test.onnx";
  const auto write = [&path](const w::Bytes& bytes) { std::ofstream(path, std::ios::binary) << bytes; };
  w::GraphParts parts = ReluNet();
  parts.initialisers = {w::Tensor("w", {100'000}, w::kFloat, w::Text(9, std::string(400'000, 'x')))};
  const w::Bytes whole = w::Model(parts);
  write(whole);
  const auto graph = ReadOnnxFile(path);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ((*graph)->fingerprint, Read(whole).value()->fingerprint);
  write(whole.substr(0, 200'000));
  EXPECT_THAT(std::string(ReadOnnxFile(path).status().message()),
              AllOf(HasSubstr("horus_reader_test.onnx"), HasSubstr("truncated")));
  std::remove(path.c_str());
  EXPECT_EQ(ReadOnnxFile(path).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReadOnnxFile(testing::TempDir()).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace horus
