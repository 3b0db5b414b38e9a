# SPDX-License-Identifier: Apache-2.0
"""horus inspect --solve. Usage: see command.py."""

import json

from command import RESNET, ROOT, Files, main, run


class Solve(Files):
    def solve(self, *args):
        code, out, err = run("inspect", *args, "--json")
        self.assertEqual((code, err), (0, ""), args)
        return json.loads(out)

    def test_the_answer_fits_and_the_next_does_not(self):
        document = self.solve(RESNET, "--solve", "batch", "--gpu", "t4", "--gpu", "a100-40gb", "--beside-mib", 1000,
                              "--beside-mib", 2000)
        self.assertEqual(document["resident_mib"], 3000)
        self.check_golden("solve_keys.txt", document)
        for gpu in document["gpus"]:
            self.assertLess(gpu["largest"], gpu["alone"]["largest"])
            for answer, free in ((gpu, gpu["free_mib"]), (gpu["alone"], gpu["gpu_memory_mib"])):
                for batch, fits in ((answer["largest"], True), (answer["next"], False)):
                    code, out, err = run("inspect", RESNET, "--batch", batch, "--gpu", gpu["gpu_type"], "--json")
                    self.assertEqual(code, 0, err)
                    self.assertEqual(json.loads(out)["gpus"][0]["memory_upper_mib"] <= free, fits)

    def test_without_gpu_it_answers_for_the_whole_catalogue(self):
        types = json.loads(run("gpus", "--json")[1])["gpu_types"]
        document = self.solve(RESNET, "--solve", "batch")
        self.assertEqual([gpu["gpu_type"] for gpu in document["gpus"]], [gpu["name"] for gpu in types])
        for gpu in document["gpus"]:
            self.assertGreater(gpu["largest"], 0)
            self.assertEqual({key: gpu[key] for key in gpu["alone"]}, gpu["alone"])

    def test_a_position_table_ends_the_sequence(self):
        gpu = self.solve(ROOT / "examples/models/graphs/gpt2.onnx", "--solve", "seq", "--gpu", "h200")["gpus"][0]
        self.assertEqual((gpu["largest"], gpu["reason"], gpu["next"], gpu["short_mib"]), (1024, "graph", 1025, None))
        self.assertIn("Gather", gpu["message"])

    def test_the_maximum_and_residents_larger_than_the_gpu(self):
        gpu = self.solve(RESNET, "--solve", "batch", "--gpu", "t4", "--solve-max", 5)["gpus"][0]
        self.assertEqual((gpu["largest"], gpu["reason"], gpu["next"]), (5, "maximum", None))
        gpu = self.solve(RESNET, "--solve", "batch", "--gpu", "t4", "--beside-mib", 20000)["gpus"][0]
        self.assertEqual((gpu["largest"], gpu["free_mib"], gpu["memory_upper_mib"]), (0, 0, None))
        self.assertGreater(gpu["short_mib"], 20000 - gpu["gpu_memory_mib"])

    def test_text_fits_100_columns_and_says_why(self):
        bert = ROOT / "examples/models/graphs/bert_base.onnx"
        for args, words in (
            ([RESNET, "--solve", "batch"], ["Largest batch", "LARGEST", "h200", "over"]),
            ([RESNET, "--solve", "batch", "--beside-mib", 9000, "--gpu", "k80"], ["ALONE", "BESIDE", "8.79 GiB"]),
            ([bert, "--solve", "seq", "--batch", 2, "--gpu", "h200"], ["the graph refuses 513", "Gather"]),
        ):
            code, out, err = run("inspect", *args)
            self.assertEqual((code, err), (0, ""))
            self.assertLessEqual(max(map(len, out.splitlines())), 100)
            for word in words:
                self.assertIn(word, out)

    def test_bad_requests_name_what_is_wrong(self):
        bert = ROOT / "examples/models/graphs/bert_base.onnx"
        for args, words in (
            ([bert, "--solve", "length"], "expected batch or one of 'seq', found 'length'"),
            ([bert, "--solve", "seq", "--dim", "seq=64"], "bound to 64"),
            ([bert, "--solve", "batch"], "expected a size for 'seq'"),
            ([RESNET, "--solve", "batch", "--batch", 4], "bound to 4"),
            ([RESNET, "--solve", "batch", "--dim", "batch=4"], "bound to 4"),
            ([RESNET, "--solve", "batch", "--gpu", "a100-41gb"], "a100-40gb"),
            ([RESNET, "--solve", ""], "--solve"),
            ([RESNET, "--solve", "batch", "--solve-max", 0], "--solve-max"),
            ([RESNET, "--solve", "batch", "--beside-mib", -1], "--beside-mib"),
            ([RESNET, "--solve", "batch", "--beside-mib", 1 << 32, "--beside-mib", 1], "--beside-mib"),
            ([RESNET, "--solve", "batch", "--features"], "--features"),
            ([RESNET, "--beside-mib", 1], "--solve"),
            ([RESNET, "--solve-max", 9], "--solve"),
        ):
            code, out, err = run("inspect", *args)
            self.assertEqual((code, out), (2, ""), (args, err))
            self.assertIn(words, err, args)


if __name__ == "__main__":
    main()
