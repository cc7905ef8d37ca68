# SPDX-License-Identifier: LGPL-3.0-or-later
"""A TCP proxy in front of a server that breaks connections where a test wants it."""

import contextlib
import socket
import threading


class Proxy:
    """Forwards to a port on loopback; use as a context manager.

    Messages are what one side sends at once. `plan(connection, message)` is asked for each message
    of a client, both counted from 1, and answers None (forward it), "before" (cut the connection
    instead) or "after" (forward it, let the server work on it, and cut the connection when it
    answers, so that the client never knows).
    """

    def __init__(self, port, plan=lambda connection, message: None):
        self.target = port
        self.plan = plan
        self.refuse = False  # new connections are closed at once
        self.mute = False  # what the server answers is dropped
        self.connections = 0
        self.messages = 0
        self.text = b""  # of the message that plan() is asked for, by the connection that asks last
        self.cuts = 0
        self.lock = threading.Lock()
        self.serving = 0
        self.served = threading.Condition(self.lock)  # a connection has ended

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                if self.refuse:
                    client.close()
                    continue
                with self.lock:
                    self.connections += 1
                    self.serving += 1
                    number = self.connections
                threading.Thread(target=self.serve_one, args=(client, number), daemon=True).start()

    def wait_until_idle(self):
        """Until all that was sent by clients that have ended is forwarded, and counted."""
        with self.lock:
            if not self.served.wait_for(lambda: self.serving == 0, 300):
                raise RuntimeError("connections do not end")

    def serve_one(self, client, number):
        try:
            self.serve(client, number)
        finally:
            with self.lock:
                self.serving -= 1
                self.served.notify_all()

    def serve(self, client, number):
        try:
            server = socket.create_connection(("127.0.0.1", self.target))
        except OSError:
            client.close()
            return
        cut_answer = threading.Event()
        back = threading.Thread(target=self.answer, args=(server, client, cut_answer), daemon=True)
        back.start()
        count = 0
        with contextlib.suppress(OSError):
            while True:
                data = client.recv(1 << 20)
                if not data:
                    break
                count += 1
                with self.lock:
                    self.messages += 1
                    self.text = data
                what = self.plan(number, count)
                if what == "before":
                    self.cuts += 1
                    break
                if what == "after":
                    self.cuts += 1
                    cut_answer.set()
                server.sendall(data)
        for end in (client, server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        back.join()
        client.close()
        server.close()

    def answer(self, server, client, cut_answer):
        with contextlib.suppress(OSError):
            while True:
                data = server.recv(1 << 20)
                if not data or cut_answer.is_set():
                    break
                if not self.mute:
                    client.sendall(data)
        for end in (client, server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
