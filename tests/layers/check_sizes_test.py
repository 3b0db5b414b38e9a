# SPDX-License-Identifier: Apache-2.0
"""Tests of check_sizes.py: it finds what could overflow, and asks nothing of what cannot."""

import unittest

import check_sizes


def found(code):
    return [expression for _, expression in check_sizes.unproven(code)]


class Sizes(unittest.TestCase):
    def test_finds_products_shifts_and_limits(self):
        for code in ("x = rows * columns;", "x = 1 << bits;", "x *= count;", "if (at + size > end) return;",
                     "for (; i < at + size; ++i) {", "data.resize(header.count * kRowBytes);"):
            self.assertEqual(len(found(code)), 1, code)

    def test_asks_nothing_of_what_cannot_overflow(self):
        for code in ("constexpr int64_t kBytes = 8 * 1024;", "x = CheckedMul(rows, columns);", "x = all.size() * sizeof(Row);",
                     "const double area = a * b;", "float f = 0;\ng = f * count;", "x = static_cast<Wide>(a) * b;",
                     "bits = bits << 8;", "int* p = &x;", '// rows * columns', 'Error("a * b");'):
            self.assertEqual(found(code), [], code)

    def test_takes_a_reason_on_the_line_or_above_the_statement(self):
        for code in ("x = a * b;  // Bounded: both are small.", "// Bounded: both are small.\nx =\n    a * b;"):
            self.assertEqual(found(code), [], code)

    def test_takes_a_reason_for_a_whole_file(self):
        self.assertEqual(found("// Bounded throughout: all are small.\nx = a * b;\ny = c * d;"), [])
        self.assertEqual(len(found("// Bounded throughout:\nx = a * b;")), 1)

    def test_takes_no_reason_of_another_statement(self):
        for code in ("// Bounded: both are small.\nx = a * b;\ny = c * d;", "x = a * b;  // Bounded:"):
            self.assertEqual(len(found(code)), 1, code)


if __name__ == "__main__":
    unittest.main()
