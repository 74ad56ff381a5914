# SPDX-License-Identifier: MIT
"""A headless Chromium for tests of pages, driven by its own driver over the WebDriver protocol.

Tests that need one are skipped where there is none: chromium and chromedriver, or what $CHROMIUM and
$CHROMEDRIVER name. It gets a folder of its own, and asks the network for nothing.
"""

import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
import urllib.request

OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
           "--disable-background-networking", "--disable-component-update", "--disable-sync",
           "--disable-dev-shm-usage", "--hide-scrollbars"]


def programs():
    """Paths of the browser and of its driver, or None where one is missing."""
    found = (shutil.which(os.environ.get("CHROMIUM", "chromium")),
             shutil.which(os.environ.get("CHROMEDRIVER", "chromedriver")))
    return found if all(found) else None


class Chromium:
    """One browser with one page. Use it as a context manager."""

    def __init__(self):
        browser, driver = programs()
        self.folder = tempfile.mkdtemp(prefix="redbucket-chromium-")
        self.driver = subprocess.Popen([driver, "--port=0"], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                       env={**os.environ, "HOME": self.folder})
        self.session = None
        try:
            self.url = f"http://127.0.0.1:{self._port()}"
            options = {"binary": browser,
                       "args": OPTIONS + [f"--user-data-dir={self.folder}/profile"]}
            answer = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": {
                "goog:chromeOptions": options,
                "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}}})
            self.session = answer["sessionId"]
        except BaseException:
            self.close()
            raise

    def _port(self):
        for line in self.driver.stdout:
            found = re.search(rb"successfully on port (\d+)", line)
            if found:
                return int(found[1])
        raise RuntimeError("chromedriver ended before it said its port")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        try:
            if self.session:
                self.ask("DELETE", f"/session/{self.session}")
        finally:
            self.driver.terminate()
            self.driver.wait()
            self.driver.stdout.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method,
                                         headers={"Content-Type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def tell(self, path, **body):
        return self.ask("POST", f"/session/{self.session}{path}", body)

    def protocol(self, command, **parameters):
        return self.tell("/goog/cdp/execute", cmd=command, params=parameters)

    def open(self, path, width=1280, height=900, dark=False):
        """Opens a file as a screen of that size would show it."""
        self.protocol("Emulation.setDeviceMetricsOverride", width=width, height=height,
                      deviceScaleFactor=1, mobile=False)
        self.protocol("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.tell("/url", url=f"file://{os.path.abspath(path)}")

    def run(self, script, *arguments):
        """What `script`, the body of a function, returns."""
        return self.tell("/execute/sync", script=script, args=list(arguments))

    def complaints(self):
        """What the console has got since the last look."""
        return [entry["message"] for entry in self.tell("/se/log", type="browser")]

    def requests(self):
        """Every address that was asked for since the last look."""
        found = []
        for entry in self.tell("/se/log", type="performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return found

    def picture(self, path):
        """The whole page, however long, as a PNG."""
        size = self.protocol("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        data = self.protocol("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                             clip=clip)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def paper(self, path):
        """The page as it is printed, as a PDF."""
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.tell("/print", background=True)))
