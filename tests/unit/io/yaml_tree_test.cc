// SPDX-License-Identifier: Apache-2.0
// YamlTree: structure, lines, limits, and files that are no YAML.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/yaml.h"

namespace horus {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const std::string& text, const YamlLimits& limits = {}) {
  return std::string(YamlTree::Parse("f.yaml", text, limits).status().message());
}

absl::StatusCode CodeOf(const std::string& text, const YamlLimits& limits = {}) {
  return YamlTree::Parse("f.yaml", text, limits).status().code();
}

// Ten levels of ten aliases each: 10^10 values when written out.
std::string AliasBomb() {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string name = "a" + std::to_string(i);
    text += name + ": &" + name + " [";
    for (int j = 0; j < 10; ++j) text += (j > 0 ? ", *a" : "*a") + std::to_string(i - 1);
    text += "]\n";
  }
  return text;
}

TEST(YamlTree, KeepsLinesKindsAndQuotes) {
  const auto tree = YamlTree::Parse("f.yaml", "a: 1\nb:\n  - '2'\n  - ~\n");
  ASSERT_TRUE(tree.ok()) << tree.status();
  const YamlTree& t = **tree;
  const std::vector<uint32_t> root = t.children(YamlTree::root());
  ASSERT_EQ(root.size(), 4u);
  EXPECT_EQ(t.size(YamlTree::root()), 2u);
  EXPECT_EQ(t.text(root[1]), "1");
  EXPECT_TRUE(t.plain(root[1]));
  const std::vector<uint32_t> list = t.children(root[3]);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(t.text(list[0]), "2");
  EXPECT_FALSE(t.plain(list[0]));
  EXPECT_EQ(t.line(list[0]), 3u);
  EXPECT_EQ(t.kind(list[1]), YamlTree::Kind::kNull);
}

TEST(YamlTree, AliasStandsForItsAnchorAtItsOwnLine) {
  const auto tree = YamlTree::Parse("f.yaml", "a: &x {k: 7}\nb: *x\n");
  ASSERT_TRUE(tree.ok()) << tree.status();
  const std::vector<uint32_t> root = (*tree)->children(YamlTree::root());
  EXPECT_EQ((*tree)->kind(root[3]), YamlTree::Kind::kMap);
  EXPECT_EQ((*tree)->line(root[3]), 2u);
  EXPECT_EQ((*tree)->text((*tree)->children(root[3])[1]), "7");
}

TEST(YamlTree, SyntaxErrorNamesLineAndColumn) {
  EXPECT_THAT(ErrorOf("a: 1\nb: [1, 2\nc: 3\n"), HasSubstr("f.yaml:3: expected YAML, found an error at column"));
  EXPECT_EQ(CodeOf("a: 'open"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf("\t- tab"), absl::StatusCode::kInvalidArgument);
}

TEST(YamlTree, RefusesTagsDocumentsAndSelfReference) {
  EXPECT_EQ(ErrorOf("a: !!int 3\n"), "f.yaml:1: expected no tag, found 'tag:yaml.org,2002:int'");
  EXPECT_EQ(ErrorOf("a: 1\n---\nb: 2\n"), "f.yaml:2: expected one document, found a second one");
  EXPECT_EQ(ErrorOf("a: &a\n  - *a\n"),
            "f.yaml:2: expected an alias of a value that is complete, found one inside itself");
}

TEST(YamlTree, BoundsWhatAliasesExpandTo) {
  EXPECT_THAT(ErrorOf(AliasBomb()),
              HasSubstr("expected at most 2000000 values with every alias written out, found more"));
  EXPECT_EQ(CodeOf(AliasBomb()), absl::StatusCode::kResourceExhausted);
}

TEST(YamlTree, BoundsTheTextThatAliasesRepeat) {
  constexpr YamlLimits kLimits = {.max_text_bytes = 100};
  const std::string long_text(40, 'x');
  EXPECT_EQ(ErrorOf("- &a " + long_text + "\n- *a\n- " + long_text + "\n", kLimits),
            "f.yaml:3: expected at most 100 bytes of text with every alias written out, found more");
  EXPECT_EQ(ErrorOf("- &a {" + long_text + ": yes}\n- &b [*a]\n- *b\n", kLimits),
            "f.yaml:3: expected at most 100 bytes of text with every alias written out, found more");
  EXPECT_TRUE(YamlTree::Parse("f.yaml", "- &a " + long_text + "\n- *a\n", kLimits).ok());
  // As many bytes as a file may have are no reason without aliases.
  EXPECT_GE(YamlLimits().max_text_bytes, YamlLimits().max_bytes);
}

TEST(YamlTree, BoundsBytesValuesAndDepth) {
  EXPECT_EQ(ErrorOf("a: 123456789\n", {.max_bytes = 5}), "f.yaml: expected at most 5 bytes, found 13");
  EXPECT_EQ(
      ErrorOf("[" + std::string(20'000, '\n') + "a]", {.max_lookahead_bytes = 10'000}),
      "f.yaml: expected at most 10000 bytes in one collection in brackets, found more (write large lists with '-')");
  EXPECT_EQ(ErrorOf("[a, b, c]", {.max_values = 3}),
            "f.yaml:1: expected at most 3 values with every alias written out, found more");
  EXPECT_EQ(ErrorOf("[[[a]]]", {.max_depth = 2}),
            "f.yaml:1: expected at most 2 levels of lists and mappings, found more");
  EXPECT_FALSE(ErrorOf(std::string(100'000, '[')).empty());
  EXPECT_FALSE(ErrorOf(std::string(100'000, '{')).empty());
}

TEST(YamlTree, TheLimitsOfBytesAndValuesAreThoseOfTheDocument) {
  constexpr size_t kDocumentedBytes = size_t{32} << 20;
  constexpr size_t kDocumentedValues = 2'000'000;
  EXPECT_EQ(ErrorOf("a: " + std::string(kDocumentedBytes, 'x')),
            "f.yaml: expected at most 33554432 bytes, found 33554435");
  std::string list;
  for (size_t i = 0; i < kDocumentedValues; ++i) list += "-\n";  // and the list itself is one too many
  EXPECT_EQ(ErrorOf(list), "f.yaml:2000001: expected at most 2000000 values with every alias written out, found more");
}

TEST(YamlTree, SurvivesArbitraryBytes) {
  for (int byte = 0; byte < 256; ++byte) {
    for (const char* around : {"a: ", "- ", "{", "\"", "&"}) {
      // Any answer will do; it must come.
      const auto tree = YamlTree::Parse("f.yaml", std::string(around) + static_cast<char>(byte) + "\n");
      EXPECT_TRUE(tree.ok() || !tree.status().message().empty());
    }
  }
}

TEST(YamlTree, EmptyFileIsNothing) {
  const auto tree = YamlTree::Parse("f.yaml", "");
  ASSERT_TRUE(tree.ok());
  EXPECT_EQ((*tree)->kind(YamlTree::root()), YamlTree::Kind::kNull);
}

}  // namespace
}  // namespace horus
