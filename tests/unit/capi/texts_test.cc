// SPDX-License-Identifier: Apache-2.0
// Texts that leave the library: cut where they must be, on one line, and not at all where there is no memory for them.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "capi/boundary.h"

namespace horus::capi {
namespace {

std::string Copied(const std::string& text, size_t capacity) {
  std::string out(capacity + 1, '#');
  CopyLine(text, out.data(), capacity);
  EXPECT_EQ(out[capacity], '#') << "wrote beyond " << capacity;
  return out.c_str();
}

TEST(CopyLine, CutsBetweenCharacters) {
  const std::string text = "a\u00e9\u20ac\U0001f600";  // of 1, 2, 3 and 4 bytes
  const std::string cuts[] = {"", "a", "a", "a\u00e9", "a\u00e9", "a\u00e9", "a\u00e9\u20ac"};
  for (size_t room = 0; room < std::size(cuts); ++room) EXPECT_EQ(Copied(text, room + 1), cuts[room]) << room;
  EXPECT_EQ(Copied(text, text.size()), "a\u00e9\u20ac");
  EXPECT_EQ(Copied(text, text.size() + 1), text);
}

TEST(CopyLine, IsUtf8WhateverComes) {
  EXPECT_EQ(Copied(std::string(9, '\x80'), 5), "????");
  EXPECT_EQ(Copied("/tmp/\xC3\xA9\xE9.new", 20), "/tmp/\u00e9?.new");
  EXPECT_EQ(Copied("\xE2\x82", 5), "??");
}

TEST(CopyLine, MakesOneLine) {
  EXPECT_EQ(Copied("a\nb\tc\x01"
                   "d",
                   20),
            "a b c d");
}

TEST(CopyLine, CommandsNoTerminal) {
  EXPECT_EQ(Copied("a\x1b[1mb\x7f"
                   "c\u009bd\u00a0",
                   20),
            "a [1mb c d\u00a0");
}

TEST(Fail, CutsAMessageToTheCallersStruct) {
  std::string text;
  while (text.size() < sizeof(horus_error)) text += "\u00e9";
  horus_error error = HORUS_ERROR_INIT;
  EXPECT_EQ(Fail(&error, HORUS_ERR_STATE, text), HORUS_ERR_STATE);
  EXPECT_EQ(error.status, HORUS_ERR_STATE);
  const size_t length = std::strlen(error.message);
  EXPECT_EQ(length % 2, 0u);
  EXPECT_GE(length + 2, sizeof error.message - 1);
  EXPECT_EQ(text.compare(0, length, error.message), 0);
}

}  // namespace
}  // namespace horus::capi
