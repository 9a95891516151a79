"""A headless Chromium that a program drives: the DevTools protocol over a pipe, with nothing but Python's own library."""

import base64
import json
import os
import subprocess
import tempfile
import time


class Browser:
    """One tab. Use it in a `with`."""

    def __init__(self, width=1280, height=900, dark=False, programme="chromium"):
        self.profile = tempfile.TemporaryDirectory(prefix="weft-browser-", ignore_cleanup_errors=True)
        to_read, self.to_browser = os.pipe()
        self.from_browser, to_write = os.pipe()
        words = [programme, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe",
                 "--allow-file-access-from-files", "--no-first-run", "--disable-background-networking",
                 f"--user-data-dir={self.profile.name}", "about:blank"]

        def as_three_and_four():
            read, write = os.dup(to_read), os.dup(to_write)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        close_fds=False, preexec_fn=as_three_and_four)
        os.close(to_read)
        os.close(to_write)
        self.number, self.buffer, self.events, self.session = 0, b"", [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.profile.cleanup()

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def call(self, method, **parameters):
        """What a method of the protocol answers."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.next()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def next(self):
        while b"\0" not in self.buffer:
            piece = os.read(self.from_browser, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has ended")
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def open(self, path, wait="globalThis.weftPage !== undefined"):
        """Opens a file and waits until its program says that it is ready."""
        self.visit(f"file://{os.path.realpath(path)}", wait)

    def visit(self, url, wait="globalThis.weftPage !== undefined"):
        self.call("Page.navigate", url=url)
        self.until(wait)

    def ask(self, script):
        """The value of an expression of the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def until(self, script, seconds=30):
        end = time.monotonic() + seconds
        while True:
            try:
                if self.ask(f"Boolean({script})"):
                    return
            except RuntimeError:
                if time.monotonic() > end:
                    raise
            if time.monotonic() > end:
                raise RuntimeError(f"never true: {script}")
            time.sleep(0.02)

    def key(self, key):
        """Presses and releases a key."""
        text = {"Space": " ", "Enter": "\r"}.get(key, key if len(key) == 1 else "")
        named = {"key": key if key == "Enter" else text or key, "code": key, **({"windowsVirtualKeyCode": 13} if key == "Enter" else {})}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **named)
        self.call("Input.dispatchKeyEvent", type="keyUp", **named)

    def click(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def picture(self, path, whole=False):
        """A picture of the window, or of all of the page."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))

    def complaints(self, server=None):
        """Errors and warnings on the console, exceptions, and requests to anywhere but files, data and this server."""
        own = [f"{scheme}:" for scheme in ("file", "data", "about")] + ([f"http://{server}/"] if server else [])
        found = []
        for event in self.events:
            method, what = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(f"exception: {what['exceptionDetails'].get('exception', {}).get('description', what)}")
            elif method == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning", "assert"):
                found.append(f"console: {what['args']}")
            elif method == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning"):
                found.append(f"log: {what['entry']['text']}")
            elif method == "Network.requestWillBeSent" and not what["request"]["url"].startswith(tuple(own)):
                found.append(f"request: {what['request']['url']}")
        return found
