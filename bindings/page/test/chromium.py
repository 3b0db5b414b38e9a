# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium over its DevTools protocol on a pipe: nothing but Python."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time


class Page:
    """One tab. `trouble` collects what it logs as errors, `requests` the addresses that it asks for."""

    def __init__(self, program="chromium"):
        self.profile = tempfile.mkdtemp(prefix="page-")
        to_browser, self.out = os.pipe()
        self.into, from_browser = os.pipe()

        def wire():  # it reads from 3 and writes to 4
            os.dup2(to_browser, 13), os.dup2(from_browser, 14)
            os.dup2(13, 3), os.dup2(14, 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--remote-debugging-pipe", f"--user-data-dir={self.profile}", "about:blank"],
            preexec_fn=wire, pass_fds=(3, 4), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser), os.close(from_browser)
        self.buffer, self.last, self.session = b"", 0, None
        self.trouble, self.requests = [], []
        tab = next(one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=tab["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            self.call(f"{domain}.enable")

    def _read(self):
        while b"\0" not in self.buffer:
            more = os.read(self.into, 1 << 20)
            if not more:
                raise RuntimeError("Chromium ended")
            self.buffer += more
        message, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(message)
        method, given = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.trouble.append(given["exceptionDetails"].get("exception", {}).get("description", "exception"))
        elif method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            self.trouble.append(f"{given['entry']['text']} {given['entry'].get('url', '')}")
        elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning", "assert"):
            self.trouble.append(str(given["args"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])
        return message

    def call(self, method, **params):
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            reply = self._read()
            if reply.get("id") == self.last:
                if "error" in reply:
                    raise RuntimeError(f"{method}: {reply['error']['message']}")
                return reply["result"]

    def run(self, script):
        """The value of an expression, awaited."""
        reply = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True)
        if "exceptionDetails" in reply:
            raise RuntimeError(reply["exceptionDetails"]["exception"].get("description", script))
        return reply["result"].get("value")

    def until(self, script, patience_s=120):
        end = time.monotonic() + patience_s
        while not self.run(script):
            if time.monotonic() > end:
                raise RuntimeError(f"not within {patience_s} s: {script}; {self.trouble}")
            time.sleep(0.02)

    def files(self, selector, paths):
        """As if a person had chosen them."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[str(path) for path in paths])

    def look(self, width, scheme="light", height=900):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, path):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (RuntimeError, OSError):
            pass
        self.process.wait(timeout=30)
        shutil.rmtree(self.profile, ignore_errors=True)
