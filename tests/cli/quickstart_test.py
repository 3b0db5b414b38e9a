# SPDX-License-Identifier: Apache-2.0
"""The command of scripts/quickstart, which has no laboratory: what it leaves out says how to get it. Usage: see command.py; run by
.ci/run, as the builds of the other tests have all commands."""

from command import ROOT, Files, main, run

LEFT_OUT = ("potential", "traces", "simulate", "compare", "train", "calibrate", "evaluate")


class Quickstart(Files):
    def test_a_command_left_out_says_in_one_line_how_to_get_it(self):
        for command in LEFT_OUT:
            for rest in ((), ("--help",), ("grid.yaml", "--policy", "horus")):
                code, out, err = run(command, *rest)
                self.assertEqual((code, out), (2, ""), command)
                self.assertRegex(err, rf"^horus: {command}: .*\./scripts/quickstart --all .*\n$")

    def test_help_shows_examples_of_what_is_built(self):
        code, out, err = run("--help")
        self.assertEqual((code, err), (0, ""))
        examples = out.split("Examples:")[1]
        for command in LEFT_OUT:
            self.assertIn(command, out)
            self.assertNotIn(f"horus {command} ", examples)
        for command in ("inspect", "place", "shadow", "import", "gpus"):
            self.assertIn(f"  horus {command}", examples)

    def test_import_names_as_next_what_is_built(self):
        _, out, _ = run("import", ROOT / "examples/kubernetes/import/objects.json", "--out", self.folder / "out")
        self.assertIn("  horus shadow --cluster", out)
        self.assertNotIn("horus potential", out)

    def test_measured_pairs_answer_here_too(self):
        code, _, err = run("place", "--cluster", ROOT / "examples/cluster.yaml", "--jobs", ROOT / "examples/jobs.yaml",
                           "--pairs", "none.csv", "--pair-jobs", "none.csv")
        self.assertEqual(code, 2)
        self.assertIn("none.csv", err)
        self.assertNotIn("laboratory", err)


if __name__ == "__main__":
    main()
