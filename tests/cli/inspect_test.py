# SPDX-License-Identifier: Apache-2.0
"""horus inspect but for --solve. Usage: see command.py."""

import json
import os

from command import RESNET, Files, main, run


class Inspect(Files):
    def test_resnet50_has_its_published_parameters(self):
        code, out, err = run("inspect", RESNET, "--batch", 64, "--gpu", "a100-40gb,t4", "--features", "--json")
        self.assertEqual((code, err), (0, ""))
        document = json.loads(out)
        self.assertEqual(document["parameters"], 25557032)
        self.assertEqual(document["run"]["batch"], 64)
        self.assertEqual([gpu["gpu_type"] for gpu in document["gpus"]], ["a100-40gb", "t4"])
        self.assertGreater(document["step_flops"], 2 * document["forward_flops"])
        for gpu in document["gpus"]:
            self.assertLessEqual(gpu["memory_mib"], gpu["memory_upper_mib"])
            self.assertLessEqual(gpu["gpu_util_pct"], gpu["gpu_util_upper_pct"])
        self.check_golden("inspect_keys.txt", document)

    def test_memory_grows_with_batch_and_shrinks_without_training(self):
        def peak(*args):
            code, out, err = run("inspect", RESNET, "--json", *args)
            self.assertEqual(code, 0, err)
            return json.loads(out)["memory"]["peak_without_context_bytes"]

        self.assertGreater(peak("--batch", 64), peak("--batch", 8))
        self.assertGreater(peak("--batch", 8), peak("--batch", 8, "--mode", "inference"))
        self.assertGreater(peak("--batch", 8, "--optimizer", "adam"), peak("--batch", 8))
        self.assertGreater(peak("--batch", 64), peak("--batch", 64, "--checkpoint", 4))
        self.assertGreater(peak("--batch", 8, "--replicas", 4), peak("--batch", 8))

    def test_text_says_what_people_ask_for(self):
        code, out, err = run("inspect", RESNET, "--batch", 64, "--gpu", "a100-40gb", "--top", 3)
        self.assertEqual((code, err), (0, ""))
        for word in ("parameters", "25557032", "forward", "weights", "gradients", "optimiser state", "activations",
                     "workspace", "context", "a100-40gb", "Conv"):
            self.assertIn(word, out)
        self.assertLessEqual(max(map(len, out.splitlines())), 100)

    def test_two_jobs_beside_each_other_in_each_mode_of_the_card(self):
        both = ("--mode", "inference", "--batch", 64, "--beside", RESNET, "--beside-batch", 64)
        code, out, err = run("inspect", RESNET, "--gpu", "a100-80gb,k80", *both, "--beside-mode", "inference", "--json")
        self.assertEqual((code, err), (0, ""))
        a100, k80 = json.loads(out)["gpus"]
        self.assertEqual([(one["mode"], one["caps_pct"]) for one in k80["options"]],
                         [("time-slice", [100, 100]), ("mps", [100, 100])])  # its MPS knows no caps
        self.assertEqual({one["mode"] for one in a100["options"]}, {"time-slice", "mps", "mig 3g.40gb"})
        for one in a100["options"]:
            if min(one["caps_pct"]) == 100:  # copies
                self.assertAlmostEqual(*one["slowdown"], places=5)
            for estimate, upper in zip(one["slowdown"], one["slowdown_upper"]):
                self.assertLessEqual(1, estimate)
                self.assertLessEqual(estimate, upper)
        capped = [one for one in a100["options"] if min(one["caps_pct"]) < 100]
        self.assertEqual(len(capped), 2)
        for one in capped:
            self.assertLessEqual(min(one["slowdown"]), 1.2)
        code, out, err = run("inspect", RESNET, "--gpu", "a100-80gb", *both, "--beside-mode", "training")
        self.assertEqual((code, err), (0, ""))
        self.assertLessEqual(max(map(len, out.splitlines())), 100)
        self.assertIn("training, batch 64", out)
        self.assertEqual(run("inspect", RESNET, "--beside", RESNET)[0], 2)  # on which GPU?

    def test_open_dimensions_are_refused_by_name(self):
        bert = RESNET.parent / "bert_base.onnx"
        self.assertEqual(run("inspect", bert, "--dim", "seq=64")[0], 0)
        code, out, err = run("inspect", bert)
        self.assertEqual((code, out), (2, ""))
        self.assertIn("expected a size for 'seq', found none", err)
        self.assertIn("--dim NAME=SIZE", err)
        code, _, err = run("inspect", bert, "--dim", "sentence=64")
        self.assertEqual(code, 2)
        self.assertIn("'sentence'; its inputs name 'batch', 'seq'", err)

    def test_notes_what_was_read_between_the_lines(self):
        def notes(model, *args):
            code, out, err = run("inspect", RESNET.parent / model, "--dim", "seq=64", "--json", *args)
            self.assertEqual(code, 0, err)
            return " ".join(json.loads(out)["notes"])

        self.assertIn("attention without Dropout", notes("bert_base.onnx"))
        self.assertEqual(notes("bert_base.onnx", "--mode", "inference"), "")
        self.assertRegex(notes("lstm_wikitext2.onnx"), "'words.weight' and 'onnx::MatMul_205' .* if they are one tied weight")
        self.assertNotIn("tied", notes("llama3_8b.onnx"))  # both have names of parameters: two of them

    def test_model_may_follow_the_gpu(self):
        self.assertEqual(run("inspect", "--gpu", "t4", RESNET)[0], 0)

    def test_without_gpu_it_still_answers(self):
        code, out, _ = run("inspect", RESNET)
        self.assertEqual(code, 0)
        self.assertIn("name a --gpu", out)

    def test_bad_input_names_the_place(self):
        garbage = self.write("garbage.onnx", os.urandom(64))
        cut = self.write("cut.onnx", RESNET.read_bytes()[:1000])
        for args, words in (
            ([self.folder / "none.onnx"], "none.onnx"),
            ([self.folder], str(self.folder)),
            ([garbage], "garbage.onnx"),
            ([cut], "cut.onnx"),
            ([RESNET, "--gpu", "a100-41gb"], "a100-40gb"),
            ([RESNET, "--dim", "seq"], "expected NAME=SIZE"),
            ([RESNET, "--dim", "nosuch=4"], "nosuch"),
            ([RESNET, "--precision", "fp12"], "fp12"),
            ([RESNET, "--optimizer", "adamm"], "adamm"),
            ([RESNET, "--mode", "dreaming"], "dreaming"),
            ([RESNET, "--bundle", garbage], "garbage.onnx"),
        ):
            code, out, err = run("inspect", *args)
            self.assertEqual((code, out), (2, ""), (args, err))
            self.assertIn(words, err, args)


if __name__ == "__main__":
    main()
