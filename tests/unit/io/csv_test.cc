// SPDX-License-Identifier: Apache-2.0
// CSV tables: what is read, and how what is wrong is named.
#include "io/csv.h"

#include <gtest/gtest.h>

#include <string>

namespace horus {
namespace {

using Rows = std::vector<std::vector<std::string>>;

TEST(Csv, ReadsQuotesNewlinesAndBlankLines) {
  const auto table = ParseCsv(
      "\xEF\xBB\xBF"
      "a,b\r\n1,\"x,\"\"y\"\"\nz\"\r\n\n2,\n",
      "t.csv");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->header, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(table->rows, (Rows{{"1", "x,\"y\"\nz"}, {"2", ""}}));
}

TEST(Csv, TheLastLineNeedsNoNewline) {
  const auto table = ParseCsv("a\n1", "t.csv");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->rows, (Rows{{"1"}}));
}

TEST(Csv, ARowOfEndlessFieldsTakesLittleMemory) {
  const std::string many(5'000'000, ',');
  EXPECT_FALSE(ParseCsv("a,b\n" + many + "\n", "t.csv").ok());
  EXPECT_EQ(ParseCsv(many + "\n", "t.csv").status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(Csv, ErrorsNameFileAndRow) {
  const auto refused = [](std::string_view text, std::string_view words) {
    const absl::Status status = ParseCsv(text, "t.csv").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_NE(status.message().find("t.csv"), std::string::npos);
    EXPECT_NE(std::string(status.message()).find(words), std::string::npos) << status;
  };
  refused("", "header");
  refused("a,b\n1,2\n3\n", "row 2: expected 2 fields");
  refused("a,b\n1,2,3\n", "row 1: expected 2 fields as in the header, found 3");
  refused("a,a\n", "occurs twice");
  refused("a,\n", "a name for every column");
  refused("a\n\"x\"y\n", "row 1");
  refused("a\n\"never closed\n", "row 1");
  refused(std::string_view("a\n1\0\n", 5), "null byte at 3");
}

// "line:field|field" of each row, "line!" of a broken one.
std::string Scanned(std::string_view text, char separator = ',') {
  std::string all;
  const absl::Status status = ScanCsv(text, "t.csv", separator, [&](const CsvLine& line) {
    all += std::to_string(line.line) + (line.broken != nullptr ? "!" : ":");
    for (size_t i = 0; line.broken == nullptr && i < line.fields.size(); ++i)
      all += (i > 0 ? "|" : "") + line.fields[i];
    all += ' ';
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  return all;
}

TEST(CsvScan, NumbersRowsByTheLineWhereTheyBegin) {
  EXPECT_EQ(Scanned("a,b\r\n\n\"x\ny\",2\n\n7"), "1:a|b 3:x\ny|2 6:7 ");
  EXPECT_EQ(Scanned("a b\tc\n", '\t'), "1:a b|c ");
  EXPECT_EQ(Scanned(""), "");
}

TEST(CsvScan, ABrokenRowCostsItsFirstLineAlone) {
  EXPECT_EQ(Scanned("1\n\"x\"y\n3\n"), "1:1 2! 3:3 ");
  EXPECT_EQ(Scanned("1\n2,\"open\n3\n4"), "1:1 2! 3:3 4:4 ");
  EXPECT_EQ(Scanned("\"open"), "1! ");
}

TEST(CsvScan, ARowMayTakeAHundredLines) {
  const std::string most = "\"" + std::string(kMaxScannedRowLines - 1, '\n') + "\"\n7\n";
  EXPECT_EQ(Scanned(most), "1:" + std::string(kMaxScannedRowLines - 1, '\n') + " 101:7 ");
  EXPECT_EQ(Scanned("\"\n" + most.substr(1)).substr(0, 3), "1! ");
}

TEST(CsvScan, StopsAtTheErrorOfTheVisit) {
  int rows = 0;
  const absl::Status status = ScanCsv("1\n2\n3\n", "t.csv", ',', [&](const CsvLine&) {
    return ++rows == 2 ? absl::CancelledError("enough") : absl::OkStatus();
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(rows, 2);
}

}  // namespace
}  // namespace horus
