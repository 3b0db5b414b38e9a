# SPDX-License-Identifier: Apache-2.0
"""The page in headless Chromium answers as the command does, to the byte: twenty questions, asked by its own controls. No errors in
the console, no request once it is loaded, no network needed the second time.

  python3 bindings/page/test/page_test.py [--page FOLDER] [--horus PROGRAM] [--pictures FOLDER]

The command must be built from the same sources (without the laboratory will do). Without Chromium it says so and ends with 77.
"""

import argparse
import functools
import http.server
import json
import math
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from chromium import Page  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
GRAPHS = ROOT / "examples/models/graphs"
NET = "examples/models/graphs/{}.onnx".format

# What is chosen, by the controls' ids, in that order; `drop` is a file, `gpus` replaces the chosen ones.
ALONE = [
    {"model": NET("resnet50"), "gpus": ["t4", "a100-80gb", "h100-sxm"]},
    {"model": NET("resnet50"), "batch": 256, "precision": "amp", "optimizer": "adamw", "gpus": ["k80", "rtx-4090", "h200"]},
    {"model": NET("vgg16"), "use": "inference", "batch": 1, "precision": "fp16", "gpus": ["l4", "v100-16gb"]},
    {"model": NET("bert_base"), "dims": "seq=384", "batch": 2, "precision": "amp-bf16", "gpus": ["h200", "a2"]},
    {"model": NET("gpt2"), "use": "inference", "dims": "seq=1024", "batch": 1, "gpus": ["a10g"]},
    {"model": NET("lstm_wikitext2"), "gpus": ["p100", "gh200-144gb"]},
    {"model": "llama-3.1-8b", "use": "inference", "batch": 8, "dims": "seq=1 past=4096", "gpus": ["h100-sxm", "l40s"]},
    {"model": "qwen3-0.6b", "use": "training", "batch": 2, "dims": "seq=2048", "precision": "bf16", "optimizer": "adam-8bit", "gpus": ["h100-sxm"]},
    {"model": "llama-3.1-8b", "use": "service", "gpus": ["t4", "h100-sxm", "a100-80gb"]},
    {"model": "mixtral-8x7b", "use": "service", "requests": 9.5, "tokensIn": 3000, "tokensOut": 100, "firstToken": 0, "token": 40, "gpus": ["h200", "b300"]},
    {"model": "qwen2.5-1.5b", "use": "service", "requests": 40, "gpus": ["rtx-3090", "l4"]},
    {"model": "qwen3-8b", "use": "service", "solve": "load", "tokensIn": 512, "gpus": ["l40s", "t4"]},
    {"model": "qwen3-8b", "use": "service", "solve": "context", "requests": 1, "gpus": ["l40s", "h100-sxm"]},
    {"model": "llama-3.1-70b", "use": "service", "solve": "gpus", "requests": 1, "gpus": ["h100-sxm", "l40s"]},
    {"drop": GRAPHS / "unet.onnx", "use": "training", "batch": 4, "gpus": ["a100-40gb", "t4"]},
    {"drop": "weighty.onnx", "use": "inference", "batch": 8, "gpus": ["a100-40gb"]},
    {"drop": "my net's.onnx", "use": "training", "gpus": ["t4"]},
    {"drop": "config.json", "use": "service", "gpus": ["h100-pcie"]},
    {"drop": "broken.onnx", "gpus": ["t4"]},  # refused, in the same words
    {"model": NET("gpt2"), "dims": "", "gpus": ["t4"]},
]


def config():
    return {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 2048, "intermediate_size": 5632,
            "num_hidden_layers": 22, "num_attention_heads": 32, "num_key_value_heads": 4, "vocab_size": 32000,
            "max_position_embeddings": 2048, "torch_dtype": "bfloat16", "hidden_act": "silu", "tie_word_embeddings": False}


def weighty(graph, mib):
    """The graph with a field that nobody knows, as large as weights are: `horus` skips it."""
    size = mib << 20
    length, rest = [], size
    while rest:
        length.append(rest & 127 | (128 if rest > 127 else 0))
        rest >>= 7
    return graph + bytes([0xFA, 0x3F]) + bytes(length) + bytes(size)  # field 1023, length-delimited


# Costs are printed as doubles; of each other number only the digits that a float has. On MIG instances a cost holds a cube root
# (laws.h), which musl and glibc round differently in every second case, and exponentials in one of a thousand.
def rounded_otherwise(a, b):
    cost = re.compile(r'\s*"(?:cost|value)": (-?[\d.e-]+),?')
    a, b = cost.fullmatch(a), cost.fullmatch(b)
    return bool(a and b) and math.isclose(float(a[1]), float(b[1]), rel_tol=1e-14)


class Site(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Test:
    def __init__(self, folder, horus):
        self.horus = horus
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="page-test-"))
        (self.work / "examples").symlink_to(ROOT / "examples")
        graph = (GRAPHS / "vgg16.onnx").read_bytes()
        (self.work / "weighty.onnx").write_bytes(weighty(graph, 512))
        (self.work / "my net's.onnx").write_bytes(graph)
        (self.work / "broken.onnx").write_bytes(graph[: len(graph) // 2])
        (self.work / "config.json").write_text(json.dumps(config()))
        self.server = http.server.ThreadingHTTPServer(("localhost", 0), functools.partial(Site, directory=str(folder)))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://localhost:{self.server.server_port}/"
        self.page = Page()
        self.questions = self.rounded = 0

    def close(self):
        self.page.close()
        self.server.server_close()
        shutil.rmtree(self.work)

    # ---- The controls, as a person uses them.

    def settle(self):
        """Until all that is shown answers what was last chosen."""
        self.page.until("horus.settled()")

    def click(self, selector):
        self.page.run(f"document.querySelector({json.dumps(selector)}).click()")

    def put(self, name, value):
        self.page.run(f"""(() => {{ const e = document.getElementById({json.dumps(name)}); e.value = {json.dumps(str(value))};
            if (e.value !== {json.dumps(str(value))}) throw new Error("no such value: {name} {value}");
            e.dispatchEvent(new Event(e.tagName === "SELECT" ? "change" : "input", {{bubbles: true}})); }})()""")

    def choose(self, wanted):
        for name, value in wanted.items():
            if name == "drop":
                path = self.work / value if isinstance(value, str) else value
                if not (self.work / path.name).exists():
                    shutil.copy(path, self.work)
                self.page.files("#file", [path])
                self.page.until(f"document.getElementById('model').value === {json.dumps(path.name)}")
            elif name == "use":
                self.click(f"input[name=use][value={value}]")
            elif name == "gpus":
                old = self.page.run("horus.state.gpus.slice()")
                for gpu in value:
                    if gpu not in old:
                        self.put("add-gpu", self.named(gpu))
                for gpu in old:
                    if gpu not in value:
                        self.click(f'#gpus button[aria-label="Do not ask about {gpu}"]')
            else:
                self.put(name, value)

    @functools.cache
    def named(self, gpu):
        return json.loads(self.run(["gpus", gpu, "--json"]).stdout)["name"]

    # ---- What is shown, and what the command says.

    def run(self, words):
        return subprocess.run([self.horus, *words], cwd=self.work, capture_output=True, text=True, check=False)

    def shown(self, name):
        return self.page.run(f"document.getElementById({json.dumps(name)})?.textContent")

    def same(self, part, what):
        """The command that the page shows, on the files that it shows, prints what the page was answered."""
        self.questions += 1
        for name in ("cluster.yaml", "jobs.yaml"):
            text = self.shown(f"{part}-{name.replace('.', '-')}")
            if text is not None:
                (self.work / name).write_text(text)
        words = shlex.split(self.shown(f"{part}-command"))
        assert words[0] == "horus", words
        native = self.run([*words[1:], "--json"])
        assert native.returncode == 0, (what, native.stderr)
        given = self.shown(f"{part}-json")
        if given == native.stdout:
            return
        ours, theirs = given.splitlines(), native.stdout.splitlines()
        assert len(ours) == len(theirs), f"{what}: {len(ours)} lines on the page, {len(theirs)} by the command"
        for i, (a, b) in enumerate(zip(ours, theirs)):
            if a != b:
                assert rounded_otherwise(a, b), f"{what}: line {i + 1}: the page has {a.strip()}, the command {b.strip()}"
                self.rounded += 1

    def refused(self, what):
        self.questions += 1
        job = self.page.run("horus.line()")
        native = self.run([*job, "--json"])
        said = self.page.run("document.querySelector('#alone .error').textContent")
        assert native.returncode == 2 and native.stderr.strip() == f"horus: {said}", (what, said, native.stderr)

    # ---- Tests.

    def opens(self):
        self.page.look(1280)
        self.page.call("Page.navigate", url=self.url)
        self.page.until("window.horus?.settled()")
        self.loaded = len(self.page.requests)
        assert all(one.startswith((self.url, f"blob:{self.url}")) for one in self.page.requests), self.page.requests

    def answers_as_the_command(self):
        for wanted in ALONE:
            self.choose(wanted)
            self.settle()
            if self.page.run("document.querySelector('#alone .error') !== null"):
                self.refused(wanted)
            else:
                self.same("alone", wanted)

    def says_who_shares(self):
        self.choose({"model": NET("resnet50"), "use": "training", "batch": 64, "gpus": ["a100-80gb", "t4"]})
        for third in (False, True):
            if third:
                self.click("#add-job")
            self.settle()
            keys = self.page.run("[...document.querySelectorAll('#beside-at option')].map((one) => one.value)")
            assert len(keys) == 5, keys
            for key in (keys[0], keys[-1]):
                self.put("beside-at", key)
                self.settle()
                self.same("beside", key)

    def says_what_services_lose(self):
        self.click("#tab-2")
        self.choose({"model": "qwen2.5-7b", "use": "service", "requests": 0.5})
        self.click('[aria-label="Remove job C"]')  # of three, nobody is asked about in pairs
        for first in ({"model": "llama-3.1-8b", "use": "service"}, {"model": NET("gpt2"), "use": "training"}):
            self.click("#tab-0")
            self.choose({**first, "gpus": ["h100-sxm", "t4"]})
            self.click("#tab-1")
            self.choose({"model": "qwen2.5-7b", "use": "service", "requests": 0.5})
            self.settle()
            self.same("pair", first)
            assert "each" in self.shown("beside"), self.shown("beside")
            self.same("beside", first)

    def places_click_by_click(self):
        for clicks in ("AABB", "CCC"):
            for job in clicks:
                self.click(f"#place-{job}")
            self.settle()
            self.same("cluster", clicks)
        placed = self.page.run("document.querySelectorAll('#decisions li').length")
        drawn = self.page.run("document.querySelectorAll('#cluster .fill i').length")
        kept = self.page.run("document.querySelectorAll('#decisions .refused').length")
        assert placed == 7 and drawn == placed - kept, (placed, drawn, kept)

    def is_quick(self):
        """From the drop of a file to the first answer: two seconds at most."""
        self.choose({"gpus": ["t4", "a100-80gb", "h100-sxm"]})
        self.settle()
        shutil.copy(GRAPHS / "resnet50.onnx", self.work / "fresh.onnx")
        began = time.monotonic()
        self.choose({"drop": "fresh.onnx"})
        self.page.until("document.getElementById('alone-command')?.textContent.includes('fresh.onnx')")
        took = time.monotonic() - began
        print(f"     first answer {took:.2f} s after the drop")
        assert took < 2, took

    def names_every_control(self):
        nodes = self.page.call("Accessibility.getFullAXTree")["nodes"]
        controls = ("button", "combobox", "textbox", "spinbutton", "radio", "tab", "MenuListPopup", "link", "image", "img", "region")
        bare = [one["role"]["value"] for one in nodes if not one.get("ignored") and one.get("role", {}).get("value") in controls
                and one["role"]["value"] != "MenuListPopup" and not one.get("name", {}).get("value")]
        assert not bare, bare

    def is_reached_by_keyboard(self):
        seen = []
        self.page.run("document.body.focus()")
        for _ in range(60):
            for kind in ("keyDown", "keyUp"):
                self.page.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
            seen.append(self.page.run("document.activeElement.id || document.activeElement.tagName"))
        for one in ("tab-2", "file", "model", "add-gpu", "place-A"):  # of the tabs the one that is shown; arrows reach the others
            assert one in seen, (one, seen)

    def fits_a_phone(self):
        self.page.look(390, height=844)
        assert self.page.run("document.documentElement.scrollWidth") <= 390
        self.page.look(1280)

    def is_silent_and_alone(self):
        assert not self.page.trouble, self.page.trouble
        more = [one for one in self.page.requests[self.loaded:] if not one.startswith("blob:")]
        assert not more, more

    def works_offline(self):
        self.page.until("navigator.serviceWorker.controller !== null && caches.match('horus.wasm').then(Boolean)")
        self.server.shutdown()
        self.server.socket.close()
        self.page.call("Page.reload")
        time.sleep(0.5)
        self.page.until("window.horus?.settled()")
        self.same("alone", "offline")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / "build/wasm/page")
    parser.add_argument("--horus", type=pathlib.Path, default=ROOT / "build/quickstart/bin/horus")
    parser.add_argument("--pictures", type=pathlib.Path, help="leave screenshots there")
    given = parser.parse_args()
    if not shutil.which("chromium"):
        print("SKIPPED: chromium is missing", file=sys.stderr)
        return 77
    test = Test(given.page.resolve(), given.horus.resolve())
    try:
        for one in (test.opens, test.answers_as_the_command, test.says_who_shares, test.places_click_by_click, test.is_quick,
                    test.names_every_control, test.is_reached_by_keyboard, test.fits_a_phone, test.says_what_services_lose, test.is_silent_and_alone):
            one()
            print(f"ok   {one.__name__}")
        if given.pictures:
            for name, width, scheme in (("light", 1440, "light"), ("dark", 1440, "dark"), ("phone", 390, "light")):
                test.page.look(width, scheme)
                time.sleep(0.4)
                test.page.picture(given.pictures / f"{name}.png")
            test.page.look(1280)
        test.works_offline()
        print(f"ok   works_offline\n{test.questions} questions, answered as the command answers them, but for the last digit of {test.rounded} costs")
    finally:
        test.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
