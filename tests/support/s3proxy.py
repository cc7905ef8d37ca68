# SPDX-License-Identifier: LGPL-3.0-or-later
"""A proxy before an S3 server that does harm when told to.

Signatures cover the header "host", which the proxy leaves as it is: the server accepts what clients
sign for the proxy's address.
"""

import contextlib
import http.client
import re
import socket
import struct
import threading
import time


class Rule:
    """What happens to requests that match: `action(exchange)` for the first `count` of them after
    `skip` others; once for each different request with `each`."""

    def __init__(self, action, method=".*", path=".*", count=None, skip=0, each=False):
        self.action = action
        self.pattern = re.compile(f"(?:{method}) (?:{path})")
        self.count = count
        self.skip = skip
        self.each = each
        self.hits = 0
        self.seen = {}

    def matches(self, exchange):
        """Under the proxy's lock."""
        if not self.pattern.fullmatch(f"{exchange.method} {exchange.target}"):
            return False
        if self.each:
            key = (exchange.method, exchange.target, exchange.headers.get("range"))
            self.seen[key] = self.seen.get(key, 0) + 1
            if self.seen[key] > (self.count or 1):
                return False
        elif self.skip > 0:
            self.skip -= 1
            return False
        elif self.count is not None and self.hits >= self.count:
            return False
        self.hits += 1
        return True


class Dropped(Exception):
    """The connection has been closed on purpose."""


class Exchange:
    """One request and its answer."""

    def __init__(self, connection, stream, bytes_per_s=None):
        self.connection = connection
        line = stream.readline(65536).decode("latin-1").split()
        if len(line) < 2:
            raise EOFError
        self.method, self.target = line[:2]
        self.headers = {}
        while True:
            line = stream.readline(65536).decode("latin-1").strip()
            if not line:
                break
            name, _, value = line.partition(":")
            self.headers[name.lower()] = value.strip()
        left = int(self.headers.get("content-length", 0))
        self.body = b""
        while bytes_per_s is not None and left > 0:
            piece = stream.read(min(left, max(1, bytes_per_s // 20)))
            if not piece:
                raise EOFError
            self.body += piece
            left -= len(piece)
            time.sleep(len(piece) / bytes_per_s)
        self.body += stream.read(left)
        self.status = self.answer_headers = self.answer = None

    def forward(self, upstream):
        """Asks the server, once."""
        if self.status is not None:
            return
        server = http.client.HTTPConnection(*upstream, timeout=120)
        try:
            server.putrequest(self.method, self.target, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name not in ("connection", "expect"):
                    server.putheader(name, value)
            server.endheaders(self.body)
            response = server.getresponse()
            self.status = response.status
            self.answer_headers = [(k, v) for k, v in response.getheaders()
                                   if k.lower() not in ("transfer-encoding", "connection")]
            self.answer = response.read()
        finally:
            server.close()

    def reply(self, status, code, text="", headers=()):
        """An answer of our own."""
        self.status = status
        self.answer = (f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code>'
                       f"<Message>{text}</Message></Error>").encode()
        self.answer_headers = list(headers)

    def drop(self):
        """Closes with a reset."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        raise Dropped

    def send(self, limit=None, bytes_per_s=None):
        """@param limit bytes of the body; then the connection is closed."""
        names = {k.lower() for k, _ in self.answer_headers}
        head = [f"HTTP/1.1 {self.status} X"] + [f"{k}: {v}" for k, v in self.answer_headers]
        if "content-length" not in names and self.status != 204:
            head.append(f"Content-Length: {len(self.answer)}")
        self.connection.sendall(("\r\n".join(head) + "\r\n\r\n").encode("latin-1"))
        body = self.answer if self.method != "HEAD" else b""
        if limit is not None:
            self.connection.sendall(body[:limit])
            self.connection.close()
            raise Dropped
        step = len(body) if bytes_per_s is None else max(1, bytes_per_s // 20)
        for at in range(0, len(body), step or 1):
            self.connection.sendall(body[at:at + step])
            if bytes_per_s is not None:
                time.sleep(step / bytes_per_s)


# ---- actions ------------------------------------------------------------------------------------


def fail(status, code, text="", headers=()):
    return lambda proxy, exchange: exchange.reply(status, code, text, headers)


def reset(proxy, exchange):
    exchange.drop()


def lose_answer(proxy, exchange):
    exchange.forward(proxy.upstream)
    exchange.drop()


def truncate(limit):
    def action(proxy, exchange):
        exchange.forward(proxy.upstream)
        exchange.send(limit=min(limit, max(0, len(exchange.answer) - 1)))

    return action


def flip(proxy, exchange):
    exchange.forward(proxy.upstream)
    if exchange.answer:
        middle = len(exchange.answer) // 2
        exchange.answer = (exchange.answer[:middle] + bytes([exchange.answer[middle] ^ 0x10])
                           + exchange.answer[middle + 1:])


def flip_sent(proxy, exchange):
    """One bit of what the client sends."""
    if exchange.body:
        middle = len(exchange.body) // 2
        exchange.body = (exchange.body[:middle] + bytes([exchange.body[middle] ^ 0x10])
                         + exchange.body[middle + 1:])


def swallow(*etag):
    """Says that all is well, and keeps the request from the server."""

    def action(proxy, exchange):
        exchange.status, exchange.answer = 200, b""
        exchange.answer_headers = [("ETag", text) for text in etag]

    return action


def strip_etag(proxy, exchange):
    exchange.forward(proxy.upstream)
    exchange.answer_headers = [(k, v) for k, v in exchange.answer_headers if k.lower() != "etag"]


def delay(seconds):
    return lambda proxy, exchange: time.sleep(seconds)


def hang(proxy, exchange):
    proxy.stopping.wait(600)
    exchange.drop()


def slow(bytes_per_s):
    def action(proxy, exchange):
        exchange.forward(proxy.upstream)
        exchange.send(bytes_per_s=bytes_per_s)
        raise Sent

    return action


def whole(proxy, exchange):
    """Ignores the range, as some servers do."""
    asked = exchange.headers.pop("range", None)
    exchange.forward(proxy.upstream)
    exchange.headers["range"] = asked


def with_status(status):
    """The server's answer, with another status."""

    def action(proxy, exchange):
        exchange.forward(proxy.upstream)
        exchange.status = status

    return action


class Sent(Exception):
    """The action has answered itself."""


class Proxy:
    """Use as a context manager; `rules` may change at any time, the first that matches counts."""

    def __init__(self, server, rules=()):
        self.upstream = ("127.0.0.1", server.port)
        self.rules = list(rules)
        self.takes_bytes_per_s = None  # of what each connection sends; None: as fast as it comes
        self.log = []
        self.at_once = self.most_at_once = 0  # requests whose answer is not there yet
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        self.connections = set()

    def __enter__(self):
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(128)
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def accept(self):
        while not self.stopping.is_set():
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with contextlib.suppress(OSError, EOFError, Dropped, http.client.HTTPException), connection:
            stream = connection.makefile("rb")
            while not self.stopping.is_set():
                self.exchange(Exchange(connection, stream, self.takes_bytes_per_s))

    def exchange(self, exchange):
        with self.lock:
            self.log.append(f"{exchange.method} {exchange.target}")
            rule = next((r for r in self.rules if r.matches(exchange)), None)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if rule is not None:
                rule.action(self, exchange)
            exchange.forward(self.upstream)
            exchange.send()
        except Sent:
            pass
        finally:
            with self.lock:
                self.at_once -= 1

    def count(self, pattern):
        """Requests so far that match."""
        with self.lock:
            return sum(re.fullmatch(pattern, line) is not None for line in self.log)
