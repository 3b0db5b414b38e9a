# SPDX-License-Identifier: Apache-2.0
"""horus traces. Usage: see command.py."""

import json
import os

from command import Files, main, run

GAVEL = "A3C\trun\t-n\t0\t7\t0.000000\t1\nLM (batch size 5)\trun\t-n\t1\t9\t2.500000\t4\n"
PLAIN = "submit_s,duration_s,tasks,profile\n0,60,1,a\n30,60,2,b\n60,x,1,a\n"


class Traces(Files):
    def test_show_prints_a_page(self):
        code, out, err = run("traces", "show", self.write("vc.trace", GAVEL))
        self.assertEqual((code, err), (0, ""))
        self.assertIn("gavel trace: 2 jobs, 5 GPUs", out)
        self.assertLessEqual(max(map(len, out.splitlines())), 100)

    def test_show_json_has_stable_keys(self):
        # A line without GPUs is left out, so that every list holds something.
        plain = self.write("jobs.csv", PLAIN)
        pai = self.write(
            "pai.csv",
            "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n"
            "j,ps,1,Failed,5,9,100,1,,\n",
        )
        code, out, _ = run("traces", "show", plain, pai, "--skip-bad", "--json")
        self.assertEqual(code, 0)
        document = json.loads(out)
        self.assertEqual((document["rows"], document["skipped"], document["jobs"]), (4, 1, 2))
        self.assertEqual(document["left_out"][0]["rows"], 1)
        self.assertIn("line 4: duration_s", document["messages"][0])
        self.check_golden("traces_keys.txt", document)

    def test_no_byte_of_a_path_commands_the_terminal(self):
        code, out, err = run("traces", "show", self.folder / os.fsdecode(b"caf\xc3\xa9\x1b[31m\n\x7f\xc2\x9b\xff.csv"))
        self.assertEqual((code, out), (2, ""))
        self.assertIn("/caf\u00e9\\x1B[31m\\x0A\\x7F\\xC2\\x9B\\xFF.csv: cannot open", err)
        self.assertEqual(err.count("\n"), 1)

    def test_a_bad_line_ends_it(self):
        code, out, err = run("traces", "show", self.write("jobs.csv", PLAIN))
        self.assertEqual((code, out), (2, ""))
        self.assertIn("jobs.csv: line 4: duration_s: expected a number from 0 to", err)

    def test_convert_writes_what_show_reads(self):
        trace = self.write("vc.trace", GAVEL)
        plain = self.folder / "plain.csv"
        code, out, _ = run("traces", "convert", trace, "--format", "gavel", "--to", plain)
        self.assertEqual(code, 0)
        self.assertIn("2 jobs written", out)
        digests = [json.loads(run("traces", "show", path, "--json")[1])["digest"] for path in (trace, plain)]
        self.assertEqual(digests[0], digests[1])
        self.assertIn(digests[0], out)

    def test_convert_tells_what_it_skipped(self):
        plain = self.folder / "plain.csv"
        code, _, err = run("traces", "convert", self.write("jobs.csv", PLAIN), "--skip-bad", "--to", plain)
        self.assertEqual(code, 0)
        self.assertIn("1 of 3 rows skipped", err)
        self.assertEqual(len(plain.read_text().splitlines()), 3)

    def test_convert_writes_nothing_of_a_bad_file(self):
        plain = self.folder / "plain.csv"
        code, _, _ = run("traces", "convert", self.write("jobs.csv", PLAIN), "--to", plain)
        self.assertEqual(code, 2)
        self.assertFalse(plain.exists())

    def test_make_draws_a_preset(self):
        plain = self.folder / "plain.csv"
        code, out, _ = run("traces", "make", "horus2020", "--seed", "3", "--to", plain)
        self.assertEqual(code, 0)
        self.assertIn("2500 jobs written", out)
        again = run("traces", "make", "horus2020", "--seed", "3", "--to", plain)[1]
        self.assertEqual(out, again)
        self.assertNotEqual(out, run("traces", "make", "horus2020", "--seed", "4", "--to", plain)[1])

    def test_make_offers_the_asked_load(self):
        plain = self.folder / "plain.csv"
        shape = ["--jobs", "20000", "--gpus", "512", "--load", "0.5", "--arrivals", "poisson", "--profiles", "3"]
        self.assertEqual(run("traces", "make", "philly", *shape, "--to", plain)[0], 0)
        document = json.loads(run("traces", "show", plain, "--json")[1])
        hours = (document["last_submit_us"] - document["first_submit_us"]) / 3.6e9
        self.assertAlmostEqual(document["gpu_hours"] / (512 * hours), 0.5, delta=0.05)
        self.assertAlmostEqual(document["gap_scv"], 1, delta=0.1)
        self.assertEqual(len(document["profiles"]), 3)
        code, _, err = run("traces", "make", "philly", "--arrivals", "sometimes", "--to", plain)
        self.assertEqual(code, 2)
        self.assertIn("poisson", err)

    def test_bad_names_say_which_there_are(self):
        path = self.write("jobs.csv", PLAIN)
        code, _, err = run("traces", "show", path, "--format", "philly")
        self.assertEqual(code, 2)
        self.assertIn("auto, plain, openb, gavel, chronus, muri, pai", err)
        code, _, err = run("traces", "make", "helios", "--to", self.folder / "x.csv")
        self.assertEqual(code, 2)
        self.assertIn("philly or horus2020", err)


if __name__ == "__main__":
    main()
