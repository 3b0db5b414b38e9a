# SPDX-License-Identifier: Apache-2.0
"""horus gpus. Usage: see command.py."""

import json

from command import Files, main, run


class Gpus(Files):
    def test_lists_at_least_25_types(self):
        code, out, _ = run("gpus", "--json")
        self.assertEqual(code, 0)
        document = json.loads(out)
        self.assertGreaterEqual(len(document["gpu_types"]), 25)
        self.check_golden("gpus_keys.txt", document)

    def test_table_fits_100_columns(self):
        for args in (["gpus"], ["gpus", "a100-40gb"]):
            code, out, _ = run(*args)
            self.assertEqual(code, 0)
            self.assertLessEqual(max(map(len, out.splitlines())), 100)

    def test_one_type_by_any_spelling(self):
        code, out, _ = run("gpus", "NVIDIA A100_40GB", "--json")
        self.assertEqual(code, 0)
        self.assertEqual(json.loads(out)["name"], "a100-40gb")

    def test_unknown_type_suggests_near_ones(self):
        code, _, err = run("gpus", "a100-41gb")
        self.assertEqual(code, 2)
        self.assertIn("a100-40gb", err)

    def test_own_types_extend_the_catalogue(self):
        own = self.write("own.yaml", "version: 1\ngpu_types:\n  - {name: ours, based_on: t4, sm_count: 41}\n")
        code, out, _ = run("gpus", "ours", "--gpus-file", own, "--json")
        self.assertEqual(code, 0)
        self.assertEqual(json.loads(out)["sm_count"], 41)
        own.write_text("version: 1\ngpu_types:\n  - {name: ours, based_on: t5}\n")
        code, _, err = run("gpus", "--gpus-file", own)
        self.assertEqual(code, 2)
        self.assertIn("own.yaml:3: gpu_types[0].based_on: ", err)

    def test_no_text_of_a_file_commands_the_terminal(self):
        texts = r'display_name: "a\e[1m", architecture: "b\e[2m", aliases: ["c\e[3m"]'
        own = self.write("own.yaml", f"version: 1\ngpu_types:\n  - {{name: ours, based_on: t4, {texts}}}\n")
        whole = "".join(run("gpus", *name, "--gpus-file", own)[1] for name in ((), ("ours",)))
        self.assertNotIn("\x1b", whole)
        for shown in (r"a\x1B[1m", r"b\x1B[2m", r"c\x1B[3m"):
            self.assertIn(shown, whole)


if __name__ == "__main__":
    main()
