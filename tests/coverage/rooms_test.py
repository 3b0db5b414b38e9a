# SPDX-License-Identifier: Apache-2.0
"""Tests of rooms.py: what is counted where, and that an aim can be missed."""

import pathlib
import unittest

import rooms

ROOT = pathlib.Path("/house")
TRACE = """SF:/house/src/place/search/sieve.cc
DA:3,7
DA:4,0
BRDA:3,0,0,7
BRDA:3,0,1,0
BRDA:4,1,0,-
end_of_record
SF:/house/src/capi/plan.h
DA:1,1
end_of_record
SF:/house/include/horus/plan.hpp
DA:1,0
end_of_record
SF:/house/include/horus/plan.h
DA:1,0
end_of_record
SF:/usr/include/absl/status.h
DA:1,0
end_of_record
"""


class Rooms(unittest.TestCase):
    def setUp(self):
        self.rooms, self.missed = rooms.collect(TRACE.splitlines(), ROOT)

    def test_counts_the_rooms_of_src_and_the_cplusplus_face_alone(self):
        self.assertEqual(sorted(self.rooms), ["capi", "face", "place"])
        self.assertEqual(self.rooms["place"].lines, [1, 2])
        self.assertEqual(self.rooms["place"].branches, [1, 3])

    def test_names_what_was_missed_and_a_branch_of_a_missed_line_by_its_line(self):
        self.assertEqual([f"{path}:{line} {what}" for path, line, what in self.missed if "place" in path],
                         ["src/place/search/sieve.cc:4 line", "src/place/search/sieve.cc:3 branch 0.1"])

    def test_leaves_out_the_branches_of_defaulted_comparisons(self):
        text = ["", "", "bool operator==(const A&) const = default;"]
        self.assertEqual(rooms.collect(TRACE.splitlines(), ROOT, lambda path: text)[0]["place"].branches, [0, 1])

    def test_an_aim_can_be_missed_and_met(self):
        self.rooms["all"] = self.rooms["capi"]
        self.assertEqual([text.split(":")[0] for text in rooms.aims_missed(self.rooms)], ["place", "place"])
        self.rooms["place"].lines = self.rooms["place"].branches = [2, 2]
        self.assertEqual(list(rooms.aims_missed(self.rooms)), [])


if __name__ == "__main__":
    unittest.main()
