// SPDX-License-Identifier: Apache-2.0
// Values are found in what is sorted, by hand.
#include "base/vectors.h"

#include <gtest/gtest.h>

#include <string>

namespace horus {
namespace {

struct Named {
  int key = 0;
  std::string name;
};

TEST(FindSorted, FindsWhatIsThereAndNothingElse) {
  const std::vector<Named> values = {{2, "two"}, {4, "four"}, {4, "four again"}, {6, "six"}};
  ASSERT_NE(FindSorted(values, 4, &Named::key), nullptr);
  EXPECT_EQ(FindSorted(values, 4, &Named::key)->name, "four");  // the first of equals
  for (const int missing : {1, 3, 7}) EXPECT_EQ(FindSorted(values, missing, &Named::key), nullptr) << missing;
  const std::vector<Named> none;
  EXPECT_EQ(FindSorted(none, 4, &Named::key), nullptr);
}

}  // namespace
}  // namespace horus
