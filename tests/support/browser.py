# SPDX-License-Identifier: LGPL-3.0-or-later
"""Chromium without a window, driven by its DevTools protocol over a WebSocket (RFC 6455)."""

import base64
import contextlib
import json
import os
import shutil
import socket
import struct
import subprocess
import time
import urllib.request


class Browser:
    """One page. js() evaluates an expression there, wait() until one is true."""

    def __init__(self, port):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=60) as reply:
            page = next(p for p in json.load(reply) if p["type"] == "page")
        path = "/" + page["webSocketDebuggerUrl"].split("/", 3)[3]
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        self.stream = self.socket.makefile("rb")
        while self.stream.readline().strip():
            pass
        self.number = 0
        self.problems = []  # exceptions of scripts and errors of the console
        for domain in ("Runtime", "Log", "Page"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        self.number += 1
        body, mask = json.dumps({"id": self.number, "method": method, "params": parameters}).encode(), os.urandom(4)
        head = struct.pack("!BB", 0x81, 0x80 | len(body)) if len(body) < 126 else struct.pack("!BBH", 0x81, 0xfe, len(body))
        self.socket.sendall(head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(body)))
        while True:
            length = self.stream.read(2)[1] & 127
            if length > 125:
                length = int.from_bytes(self.stream.read(2 if length == 126 else 8), "big")
            told = json.loads(self.stream.read(length))
            if told.get("id") == self.number:
                return told["result"]
            if told.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.problems.append(told["params"])

    def js(self, expression):
        done = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in done:
            raise RuntimeError(f"{expression}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def open(self, url):
        self.call("Page.navigate", url=url)

    def wait(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while not self.js(f"(() => {{ try {{ return !!({condition}); }} catch {{ return false; }} }})()"):  # a page may come first
            if time.monotonic() > end:
                raise TimeoutError(f"never true: {condition}; the page says '{self.js('document.body.innerText')[:500]}'")
            time.sleep(0.05)


@contextlib.contextmanager
def browsing(folder):
    """A Browser; None where there is no Chromium that works. @param folder for its files."""
    program = shutil.which("chromium")
    if program is None:
        print("no chromium: the page is not shown")
        yield None
        return
    with subprocess.Popen([program, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
                           "--window-size=1300,1000", f"--user-data-dir={folder}", "about:blank"],
                          stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        try:
            line = next((line for line in process.stderr if "DevTools listening on" in line), None)
            if line is None:
                print("chromium does not work here: the page is not shown")
                yield None
            else:
                yield Browser(int(line.split(":")[2].split("/")[0]))
        finally:
            process.terminate()
