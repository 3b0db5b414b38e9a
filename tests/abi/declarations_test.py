# SPDX-License-Identifier: Apache-2.0
"""What the checks of the public headers must find, on headers made up for it."""

import pathlib
import tempfile
import unittest

import check_abi
import check_since
import declarations

TEXT = """/* SPDX-License-Identifier: Apache-2.0 */
/* A topic.
 * Since 0.1 where nothing else is said. */
#ifndef HORUS_TOPIC_H_
#define HORUS_TOPIC_H_
#include "horus/base.h"
#ifdef __cplusplus
extern "C++" {
#if __cplusplus >= 201402L
#endif
}
extern "C" {
#endif
#define HORUS_A 1 /* not a / slash */
#define HORUS_B 2 /* Since 0.2. */
/* One of several
 * words; Since 0.3. */
typedef struct horus_row {
  uint32_t struct_size; /* ; { */
  double x[4]; /* in m. Since
                  0.4. */
} horus_row;
#define HORUS_ROW_INIT \\
  {sizeof(horus_row), 0}

HORUS_API const char* horus_name(int32_t a,
                                 int32_t b);
/* Deprecated since 0.2 until 0.4: horus_name. */
HORUS_API void horus_old(void);
HORUS_API void horus_older(void);
typedef int32_t (*horus_callback)(void* user);
typedef struct horus_handle horus_handle;
#endif
"""
STRUCT = """typedef struct horus_{0} {{
  uint32_t struct_size;
}} horus_{0};
#define HORUS_{1}_INIT HORUS_INIT(horus_{0})
"""


def read(text):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "topic.h"
        path.write_text(text, encoding="utf-8")
        return {one.name: one for one in declarations.read_header(path)}


def problems(text, present="0.1", ledger=None):
    return check_since.check(list(read(text).values()), present, ledger or {})


class Declarations(unittest.TestCase):
    def test_every_kind_is_found(self):
        kinds = {name: one.kind for name, one in read(TEXT).items()}
        self.assertEqual(kinds, {
            "HORUS_A": "constant", "HORUS_B": "constant", "HORUS_ROW_INIT": "constant", "horus_row": "struct",
            "horus_row.struct_size": "field", "horus_row.x": "field", "horus_name": "function",
            "horus_old": "function", "horus_older": "function", "horus_callback": "callback",
            "horus_handle": "handle"})

    def test_the_nearest_comment_speaks(self):
        since = {name: one.since for name, one in read(TEXT).items()}
        self.assertEqual(since["HORUS_A"], "0.1")
        self.assertEqual(since["HORUS_B"], "0.2")
        self.assertEqual(since["horus_row"], "0.3")
        self.assertEqual(since["horus_row.struct_size"], "0.3")
        self.assertEqual(since["horus_row.x"], "0.4")
        self.assertEqual(since["horus_name"], "0.1")

    def test_a_comment_speaks_for_all_until_an_empty_line(self):
        found = read(TEXT)
        self.assertEqual(found["horus_old"].deprecated, ("0.2", "0.4"))
        self.assertEqual(found["horus_older"].deprecated, ("0.2", "0.4"))
        self.assertIsNone(found["horus_name"].deprecated)

    def test_unknown_forms_are_refused(self):
        with self.assertRaisesRegex(ValueError, "not understood"):
            read(TEXT.replace("typedef struct horus_handle horus_handle;", "int horus_global;"))

    def test_a_handle_says_its_thread_class(self):
        silent = "/* SPDX */\n/* Since 0.1 where nothing else is said. */\n\ntypedef struct horus_a horus_a;\n"
        self.assertIn("horus_a expected its thread class", "".join(problems(silent)))
        self.assertEqual(problems(silent.replace("typedef", "/* Immutable: share freely. */\ntypedef")), [])

    def test_reserved_fields_have_names_that_are_checked(self):
        header = ("/* SPDX */\n/* Since 0.1 where nothing else is said. */\n\n"
                  "typedef struct horus_a {\n  int32_t %s;\n} horus_a;\n")
        self.assertEqual(problems(header % "reserved1"), [])
        self.assertEqual(problems(header % "reservations"), [])
        self.assertIn("horus_a.reserved2 expected a name", "".join(problems(header % "reserved2")))


class Guards(unittest.TestCase):
    def told(self, old, new, guarded="row"):
        """Of a header and one in a folder below it, which is changed."""
        with tempfile.TemporaryDirectory() as root:
            folder, sizes = pathlib.Path(root), pathlib.Path(root) / "sizes"
            (folder / "lab").mkdir()
            (folder / "row.h").write_text(STRUCT.format("row", "ROW"), encoding="utf-8")
            (folder / "lab/new.h").write_text(STRUCT.format("new", "NEW").replace(old, new), encoding="utf-8")
            sizes.write_text(f"HORUS_FIRST_RELEASE(horus_{guarded}, n);\n", encoding="utf-8")
            return check_abi.unguarded(folder, sizes)

    def test_a_struct_that_is_not_guarded_is_named(self):
        self.assertEqual(self.told("new", "new"), [])
        self.assertEqual(self.told("struct_size", "length"), ["horus_new does not tell its size"])
        self.assertEqual(self.told("INIT(horus_new)", "INIT(horus_row)"),
                         ["no header has: #define HORUS_NEW_INIT HORUS_INIT(horus_new)"])

    def test_the_first_size_of_what_is_frozen_is_kept(self):
        self.assertEqual(self.told("new", "new", "new"), ["sizes lacks horus_row: scripts/abi-accept adds it"])
        with tempfile.TemporaryDirectory() as root:
            sizes = pathlib.Path(root) / "sizes"
            sizes.write_text("HORUS_FIRST_RELEASE(horus_old, n);\n\n}  // namespace horus::capi\n", encoding="utf-8")
            for body in ("double x[4]", "double y; int32_t z"):
                check_since.add_first_sizes(read(TEXT.replace("double x[4]", body)).values(), sizes)
                self.assertEqual(sizes.read_text(encoding="utf-8"), "HORUS_FIRST_RELEASE(horus_old, n);\n"
                                 "HORUS_FIRST_RELEASE(horus_row, x);\n\n}  // namespace horus::capi\n")


class Since(unittest.TestCase):
    def test_a_header_without_release_is_told(self):
        told = problems("/* SPDX */\n/* A topic. */\n#define HORUS_A 1\n")
        self.assertIn("HORUS_A says no release", "".join(told))

    def test_what_is_new_is_of_the_release_being_made(self):
        header = "/* SPDX */\n/* Since 0.1 where nothing else is said. */\n#define HORUS_A 1\n"
        self.assertEqual(problems(header, "0.1"), [])
        self.assertEqual(len(problems(header, "0.2")), 1)
        self.assertEqual(problems(header, "0.2", {"HORUS_A": ("0.1", "1")}), [])

    def test_a_release_never_changes_and_nothing_goes_silently(self):
        header = "/* SPDX */\n/* Since 0.2 where nothing else is said. */\n#define HORUS_A 1\n"
        self.assertIn("exists since 0.1", "".join(problems(header, "0.2", {"HORUS_A": ("0.1", "1")})))
        self.assertIn("HORUS_B is gone", "".join(problems(header, "0.2", {"HORUS_B": ("0.1", "1")})))

    def test_a_constant_does_not_move(self):
        header = "/* SPDX */\n/* Since 0.1 where nothing else is said. */\n#define HORUS_A 1 /* first */\n"
        self.assertEqual(problems(header, "0.1", {"HORUS_A": ("0.1", "1")}), [])
        self.assertEqual(problems(header, "0.1", {"HORUS_A": ("0.1", "2")}), ["HORUS_A is 1, expected 2"])

    def test_deprecated_declarations_stay_two_minor_releases(self):
        header = "/* SPDX */\n/* Since 0.1 where nothing else is said. */\n#define HORUS_A 1 /* Deprecated since %s */\n"
        known = {"HORUS_A": ("0.1", "1")}
        self.assertEqual(problems(header % "0.2 until 0.4: B.", "0.3", known), [])
        self.assertIn("at least 2", "".join(problems(header % "0.2 until 0.3: B.", "0.2", known)))
        self.assertIn("was to go", "".join(problems(header % "0.2 until 0.4: B.", "0.4", known)))
        self.assertIn("expected", "".join(problems(header % "0.2.", "0.2", known)))


if __name__ == "__main__":
    unittest.main()
