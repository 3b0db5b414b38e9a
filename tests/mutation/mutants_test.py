# SPDX-License-Identifier: Apache-2.0
"""Tests of mutants.py and of the list of explained survivors: what is changed, what is left alone, what is told apart."""

import pathlib
import tempfile
import unittest

import mutants
import run

HERE = pathlib.Path(__file__).parent
EXAMPLE = (HERE / "example.cc").read_text()
EXPECTED = """\
8:58: > to !=
8:58: > to <=
8:58: > to >=
8:60: 0 to 1
9:3: condition false
9:3: condition negated
9:13: <= to <
9:13: <= to ==
9:13: <= to >
9:16: 0 to 1
9:18: || to &&
9:27: != to ==
9:38: && to ||
9:47: == to !=
9:63: false to true
10:3: statement dropped
10:26: - to +
11:16: 0 to 1
11:21: < to <=
11:21: < to >=
11:39: 0 to 1
11:35: statement dropped
11:42: += to -=
12:3: condition negated
12:15: std::min to std::max
12:42: 0 to 1
12:46: != to ==
12:55: && to ||
12:58: ! dropped
""".splitlines()


def changes(body, head="void f() {"):
    """(operator, what it becomes) of each mutant of a function with that body."""
    return [(one.operator, " ".join(one.text.split())) for one in mutants.mutants_of("a.cc", f"{head}\n  {body}\n}}\n")]


class Mutants(unittest.TestCase):
    def test_finds_these_in_the_example(self):
        found = [one.place.removeprefix("example.cc:") for one in mutants.mutants_of("example.cc", EXAMPLE)]
        self.assertEqual(sorted(found), sorted(EXPECTED))

    def test_leaves_alone_what_is_not_code_of_a_function(self):
        for body in ("// a < b", "/* a + b */", 'Log("a && b");'.replace("Log", "return "), "return 'a';", "std::vector<int> all;",
                     "constexpr int kMost = 1 << 4;", "static_assert(1 + 1 == 2);", "const Row& row = *rows;",
                     "Map<std::pair<A, B>, C> map{};", "Guard guard(*this);", "auto&& x = y;", "const auto [a, b] = c;",
                     "struct Local {\n    int a;\n  } local{a, {b}};"):
            self.assertEqual(changes(body), [], body)
        self.assertEqual(mutants.mutants_of("a.cc", "int x = 1 + 1;\nnamespace a {\nint y = 0;\nstruct B { int c = 1; };\n}\n"), [])

    def test_takes_operands_by_precedence(self):
        self.assertEqual(changes("return a + b * c < d(e, f) && !g;"),
                         [("+ to -", "a - b * c"), ("* to /", "b / c"), ("< to !=", "a + b * c != d(e, f)"),
                          ("< to <=", "a + b * c <= d(e, f)"), ("< to >=", "a + b * c >= d(e, f)"),
                          ("&& to ||", "a + b * c < d(e, f) || !g"), ("! dropped", "(g)")])
        self.assertEqual(changes("x = a - b - c;"), [("statement dropped", ";"), ("- to +", "a + b"), ("- to +", "a - b + c")])
        self.assertEqual(changes("return std::min(a, b.max(c));"), [("std::min to std::max", "std::max(a, b.max(c))")])

    def test_mutates_statements_conditions_and_answers(self):
        self.assertEqual(changes("if (int i = f(); g(i)) h();"),
                         [("condition false", "false"), ("condition negated", "!(g(i))"), ("statement dropped", ";")])
        self.assertEqual(changes("all.used -= x;"), [("statement dropped", ";"), ("-= to +=", "all.used += x;")])
        self.assertEqual(changes("return f(x);", "bool g() {"), [("condition negated", "!(f(x))")])
        self.assertEqual(changes("return f(x);", "int g() {"), [])
        self.assertEqual(changes("Each([&](int i) { Add(i); });"), [("statement dropped", ";"), ("statement dropped", ";")])

    def test_loops_that_count_by_one_end_alike_at_and_beyond_the_end(self):
        self.assertEqual([one for one, _ in changes("for (int i = k; i < n; ++i) {\n}")], ["< to <=", "< to >="])

    def test_a_mutant_keeps_its_name_when_other_lines_change(self):
        names = [one.name for one in mutants.mutants_of("a.cc", EXAMPLE)]
        self.assertEqual(len(set(names)), len(names))
        self.assertEqual([one.name for one in mutants.mutants_of("a.cc", "\n// more\n" + EXAMPLE)], names)

    def test_the_file_with_switches_holds_every_mutant_and_the_original(self):
        found = mutants.mutants_of("example.cc", EXAMPLE)
        text, spans = mutants.switched(EXAMPLE, list(enumerate(found)))
        for number, one in enumerate(found):
            begin, end = spans[number]
            self.assertEqual(text[begin:end], one.text)
            self.assertEqual(text.count(f"HM({number})"), 1, one.place)
        self.assertEqual(mutants.switched(EXAMPLE, [])[0], EXAMPLE)

    def test_one_mutant_alone_changes_one_place(self):
        one = next(one for one in mutants.mutants_of("example.cc", EXAMPLE) if one.operator == "- to +")
        self.assertEqual(mutants.apply(EXAMPLE, one), EXAMPLE.replace("used - asked", "used + asked"))


class Explained(unittest.TestCase):
    def read(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(text)
            file.flush()
            return run.read_explained(pathlib.Path(file.name))

    def test_a_reason_holds_for_the_names_below_it(self):
        self.assertEqual(self.read("# note\nwhy\n  a | b | c | 1\n\n  d | e | f | 2\nother\n  g | h | i | 1\n"),
                         {"a | b | c | 1": "why", "d | e | f | 2": "why", "g | h | i | 1": "other"})

    def test_a_name_needs_a_reason_and_stands_once(self):
        for text in ("  a | b | c | 1\n", "why\n  a | b | c | 1\n  a | b | c | 1\n"):
            with self.assertRaises(SystemExit):
                self.read(text)

    def test_every_explained_mutant_is_a_mutant_of_the_code_as_it_is(self):
        known = {one.name for name in run.FILES for one in mutants.mutants_of(name, (run.ROOT / name).read_text())}
        self.assertEqual([name for name in run.read_explained() if name not in known], [])


if __name__ == "__main__":
    unittest.main()
