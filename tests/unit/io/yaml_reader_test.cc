// SPDX-License-Identifier: Apache-2.0
// YamlValue and YamlMap: each kind of wrong value names file, line, key, expected and found.
#include <array>
#include <string>

#include "gtest/gtest.h"
#include "io/yaml.h"

namespace horus {
namespace {

constexpr std::array<std::string_view, 4> kKeys = {"version", "name", "count", "cpu_cores"};

YamlValue Root(const std::string& text) {
  auto tree = YamlTree::Parse("f.yaml", text);
  EXPECT_TRUE(tree.ok()) << tree.status();
  return YamlValue::Root(*tree);
}

// The value of `count` in a file of that one key.
YamlValue Count(const std::string& text) {
  const auto map = Root("\ncount: " + text).Map(kKeys);
  EXPECT_TRUE(map.ok()) << map.status();
  return *map->Find("count");
}

template <typename T>
std::string Message(const absl::StatusOr<T>& result) {
  return std::string(result.status().message());
}

TEST(YamlReader, UnknownKeyIsRefusedWithTheNearest) {
  EXPECT_EQ(Message(Root("name: a\ncounts: 3\n").Map(kKeys)),
            "f.yaml:2: expected a known key (did you mean 'count'?), found 'counts'");
  EXPECT_EQ(Message(Root("zzzzzzz: 3\n").Map(kKeys)),
            "f.yaml:1: expected one of the keys version, name, count, cpu_cores, found 'zzzzzzz'");
}

TEST(YamlReader, KeyGivenTwiceIsRefused) {
  EXPECT_EQ(Message(Root("count: 1\nname: a\ncount: 2\n").Map(kKeys)),
            "f.yaml:3: expected key 'count' once, found it on line 1 already");
}

TEST(YamlReader, MappingIsExpectedWhereOneBelongs) {
  EXPECT_EQ(Message(Root("- a\n- b\n").Map(kKeys)), "f.yaml:1: expected a mapping (key: value), found a list of 2");
  EXPECT_EQ(Message(Root("").Map(kKeys)), "f.yaml:1: expected a mapping (key: value), found nothing");
  EXPECT_EQ(Message(Root("? [a]\n: 1\n").Map(kKeys)), "f.yaml:1: expected a key, found a list of 1");
}

TEST(YamlReader, MissingKeyIsNamed) {
  const auto map = Root("name: a\n").Map(kKeys);
  ASSERT_TRUE(map.ok());
  EXPECT_EQ(Message(map->Require("count", "a number")), "f.yaml:1: expected key 'count' (a number), found none");
}

TEST(YamlReader, IntegersAreInRangeAndUnquoted) {
  EXPECT_EQ(*Count("12").Integer(1, 99), 12);
  EXPECT_EQ(*Count("-3").Integer(-5, 99), -3);
  EXPECT_EQ(Message(Count("0").Integer(1, 99)), "f.yaml:2: count: expected an integer from 1 to 99, found '0'");
  EXPECT_EQ(Message(Count("1.5").Integer(1, 99)), "f.yaml:2: count: expected an integer from 1 to 99, found '1.5'");
  EXPECT_EQ(Message(Count("many").Integer(1, 99)), "f.yaml:2: count: expected an integer from 1 to 99, found 'many'");
  EXPECT_EQ(Message(Count("'3'").Integer(1, 99)),
            "f.yaml:2: count: expected an integer from 1 to 99, found the quoted text '3'");
  EXPECT_EQ(Message(Count("").Integer(1, 99)), "f.yaml:2: count: expected an integer from 1 to 99, found nothing");
  EXPECT_EQ(Message(Count("[1]").Integer(1, 99)),
            "f.yaml:2: count: expected an integer from 1 to 99, found a list of 1");
  EXPECT_EQ(Message(Count("{a: 1}").Integer(1, 99)),
            "f.yaml:2: count: expected an integer from 1 to 99, found a mapping of 'a'");
}

TEST(YamlReader, NumbersThatOverflowAreRefused) {
  EXPECT_EQ(Message(Count("99999999999999999999").Integer(1, 99)),
            "f.yaml:2: count: expected an integer from 1 to 99, found '99999999999999999999'");
  EXPECT_EQ(*Count("18446744073709551615").Id(), ~uint64_t{0});
  EXPECT_EQ(Message(Count("18446744073709551616").Id()),
            "f.yaml:2: count: expected an integer from 0 to 18446744073709551615, found '18446744073709551616'");
  EXPECT_FALSE(Count("-1").Id().ok());
  EXPECT_EQ(Message(Count("1e999").Number(0, 100)), "f.yaml:2: count: expected a number from 0 to 100, found '1e999'");
}

TEST(YamlReader, NumbersMustBeFinite) {
  EXPECT_DOUBLE_EQ(*Count("2.5").Number(0, 100), 2.5);
  for (const char* text : {"nan", ".nan", "inf", ".inf", "-inf", "0x10", "1e", "1,5"}) {
    EXPECT_FALSE(Count(text).Number(0, 1e300).ok()) << text;
  }
}

TEST(YamlReader, CoresHaveThreeDecimalsAndMemoryRoundsUp) {
  EXPECT_EQ(*Count("0.3").Scaled(kCoresToMilli), 300);
  EXPECT_EQ(*Count("1.001").Scaled(kCoresToMilli), 1001);
  EXPECT_EQ(Message(Count("0.0005").Scaled(kCoresToMilli)),
            "f.yaml:2: count: expected a multiple of 0.001, found '0.0005'");
  EXPECT_FALSE(Count("0.0000000004").Scaled(kCoresToMilli).ok());
  EXPECT_EQ(*Count("0").Scaled(kCoresToMilli), 0);
  EXPECT_EQ(*Count("0.0000000004").Scaled(kGibToMib), 1);
  EXPECT_EQ(*Count("0.5").Scaled(kGibToMib), 512);
  EXPECT_EQ(*Count("0.1").Scaled(kGibToMib), 103);  // 102.4 MiB
  EXPECT_EQ(*Count("1000000").Scaled(kGibToMib), 1'024'000'000);
  EXPECT_FALSE(Count("1000001").Scaled(kGibToMib).ok());
}

TEST(YamlReader, BooleansAreTrueOrFalse) {
  EXPECT_TRUE(*Count("true").Bool());
  EXPECT_FALSE(*Count("false").Bool());
  EXPECT_EQ(Message(Count("yes").Bool()), "f.yaml:2: count: expected true or false, found 'yes'");
}

TEST(YamlReader, TextIsShortAndNotEmpty) {
  EXPECT_EQ(*Count("abc").Text(3), "abc");
  EXPECT_EQ(*Count("17").Text(3), "17");
  EXPECT_EQ(Message(Count("abcd").Text(3)), "f.yaml:2: count: expected at most 3 bytes of text, found 4");
  EXPECT_EQ(Message(Count("''").Text(3)), "f.yaml:2: count: expected text that is not empty, found the quoted text ''");
  EXPECT_EQ(Message(Count("[a]").Text(3)), "f.yaml:2: count: expected text, found a list of 1");
}

TEST(YamlReader, ListsAreBoundedAndNumbered) {
  const auto items = Count("[1, x]").List(2);
  ASSERT_TRUE(items.ok());
  EXPECT_EQ(Message((*items)[1].Integer(0, 9)), "f.yaml:2: count[1]: expected an integer from 0 to 9, found 'x'");
  EXPECT_EQ(Message(Count("[1, 2, 3]").List(2)), "f.yaml:2: count: expected at most 2 items, found 3");
  EXPECT_EQ(Message(Count("3").List(2)), "f.yaml:2: count: expected a list, found '3'");
}

TEST(YamlReader, VersionComesFirst) {
  const auto open = [](const std::string& text) {
    auto tree = YamlTree::Parse("f.yaml", text);
    return OpenVersion1(*tree, kKeys);
  };
  EXPECT_TRUE(open("version: 1\nname: a\n").ok());
  EXPECT_EQ(Message(open("new_key: 1\nversion: 2\n")),
            "f.yaml:2: version: expected version 1, the only one that this release reads, found '2'");
  EXPECT_EQ(Message(open("name: a\n")), "f.yaml:1: expected key 'version' (1), found none");
  EXPECT_EQ(Message(open("")), "f.yaml:1: expected a mapping (key: value), found nothing");
}

}  // namespace
}  // namespace horus
