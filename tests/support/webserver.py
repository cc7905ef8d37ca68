# SPDX-License-Identifier: LGPL-3.0-or-later
"""A web server on the loopback that serves a folder, with ranges, ETags and conditions or without, and that
can be told to fail. It runs in threads of this process and ends with its `with` block."""

import contextlib
import email.utils
import hashlib
import http.server
import os
import pathlib
import ssl
import subprocess
import threading
import time
import urllib.parse


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def answer(self, status, headers=(), body=b""):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if not any(name.lower() == "content-length" for name, _ in headers):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_HEAD(self):
        self.do_GET()

    def find(self):
        """The file, or None when it was answered otherwise."""
        web = self.server.web
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        with web.lock:
            web.requests.append((self.command, path, dict(self.headers)))
            fault = web.faults.pop(0) if web.faults and self.command == "GET" else None
        if fault == "drop":
            self.close_connection = True
            return None
        if fault == "hang":
            web.released.wait(60)
            self.close_connection = True
            return None
        if isinstance(fault, int):
            self.answer(fault, [("Retry-After", "0")])
            return None
        if path in web.moved:
            self.answer(302, [("Location", web.moved[path])])
            return None
        if web.no_head and self.command == "HEAD":
            self.answer(405)
            return None
        file = web.folder / path.lstrip("/")
        if not file.is_file():
            self.answer(404, body=b"not here")
            return None
        return file, fault

    def describe(self, file, data):
        web = self.server.web
        headers = [("Date", email.utils.formatdate(time.time(), usegmt=True))]
        modified = int(os.stat(file).st_mtime)
        etag = '"' + hashlib.sha256(data).hexdigest()[:20] + '"'
        if web.modified:
            headers.append(("Last-Modified", email.utils.formatdate(modified, usegmt=True)))
        if web.etags:
            headers.append(("ETag", ("W/" if web.etags == "weak" else "") + etag))
        return headers, etag, modified

    def has_failed(self, etag, modified):
        """Whether a condition of the request is not met."""
        web = self.server.web
        match = self.headers.get("If-Match")
        since = self.headers.get("If-Unmodified-Since")
        if not web.conditions:
            return False
        if match is not None:
            return not web.etags or match != etag
        return since is not None and modified > email.utils.parsedate_to_datetime(since).timestamp()

    def do_GET(self):
        web = self.server.web
        found = self.find()
        if found is None:
            return
        file, fault = found
        data = file.read_bytes()
        headers, etag, modified = self.describe(file, data)
        if self.has_failed(etag, modified):
            self.answer(412, headers)
            return
        wanted = self.headers.get("Range")
        status = 200
        if wanted is not None and web.ranges:
            first, last = wanted.removeprefix("bytes=").split("-")
            first, last = int(first), min(int(last), len(data) - 1)
            if first >= len(data):
                self.answer(416, [*headers, ("Content-Range", f"bytes */{len(data)}")])
                return
            headers.append(("Content-Range", f"bytes {first}-{last}/{len(data)}"))
            data, status = data[first:last + 1], 206
        headers.append(("Content-Length", str(len(data))))
        if fault == "cut":
            self.close_connection = True
            data = data[:len(data) // 2]
        with contextlib.suppress(OSError):
            self.answer(status, headers, data)


class Web:
    """Serves `folder`; attributes may be changed while it runs."""

    def __init__(self, folder, etags=True, modified=True, ranges=True, conditions=True, no_head=False,
                 tls=None):
        """@param tls: files of a certificate and its key."""
        self.folder = pathlib.Path(folder)
        self.tls = tls
        self.etags, self.modified, self.ranges = etags, modified, ranges
        self.conditions, self.no_head = conditions, no_head
        self.lock = threading.Lock()
        self.requests = []  # (method, path, headers)
        self.faults = []  # of the next GETs: a status, "drop", "cut" or "hang"
        self.moved = {}  # path: URL
        self.released = threading.Event()

    def __enter__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.web = self
        self.server.daemon_threads = True
        if self.tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.tls)
            # The handshake is the connection's thread's, not the listener's.
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                     do_handshake_on_connect=False)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.url = f"http{'s' if self.tls else ''}://127.0.0.1:{self.server.server_address[1]}"
        return self

    def __exit__(self, *_):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(10)

    def seen(self, method=None):
        with self.lock:
            return [r for r in self.requests if method in (None, r[0])]


class Authority:
    """One that makes certificates, in a folder."""

    def __init__(self, folder, name):
        self.folder, self.name = pathlib.Path(folder), name
        self.folder.mkdir(exist_ok=True)
        self.file = self.folder / f"{name}.pem"
        self.openssl("req", "-x509", *self.KEY, "-days", "2", "-subj", f"/CN={name}", "-keyout",
                     self.folder / f"{name}.key", "-out", self.file)

    KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")

    @staticmethod
    def openssl(*arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)

    def certify(self, name):
        """Files of a certificate for "IP:127.0.0.1" and the like, and of its key."""
        base = self.folder / f"{self.name}-{name.replace(':', '-')}"
        request, key, extra = base.with_suffix(".csr"), base.with_suffix(".key"), base.with_suffix(".ext")
        extra.write_text(f"subjectAltName={name}\n")
        self.openssl("req", "-new", *self.KEY, "-subj", "/CN=server", "-keyout", key, "-out", request)
        self.openssl("x509", "-req", "-in", request, "-CA", self.file, "-CAkey", self.folder / f"{self.name}.key",
                     "-CAcreateserial", "-days", "2", "-extfile", extra, "-out", base.with_suffix(".crt"))
        return base.with_suffix(".crt"), key
