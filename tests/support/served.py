# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-serve on a port of its own, and requests to it."""

import contextlib
import http.client
import os
import pathlib
import subprocess
import urllib.parse

from esdmtest import expect, skip, tool


@contextlib.contextmanager
def serving(site, *options, under=()):
    """@param under a command that starts it."""
    if not pathlib.Path(tool("esdm-serve")).exists():
        skip("esdm-serve was not built: libmicrohttpd-dev is missing")
    env = {**os.environ, "XDG_CACHE_HOME": str(site.file("cache"))}
    with open(site.file("serve.log"), "w", encoding="utf-8") as log:
        server = subprocess.Popen([*under, tool("esdm-serve"), "--port", "0", *options], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=log, text=True, env=env)
    line = server.stdout.readline().strip()
    expect(line.startswith(("http://", "https://")), f"not started: {line} {site.file('serve.log').read_text()}")
    try:
        yield urllib.parse.urlparse(line).port, server
    finally:
        server.terminate()
        status = server.wait(300)
        expect(status == 0, f"ended with {status}: {site.file('serve.log').read_text()}")
        server.stdout.close()


def ask(port, path, method="GET", headers=None, tls=None):
    """With TLS where a context of ssl is given."""
    connection = (http.client.HTTPSConnection("localhost", port, timeout=300, context=tls) if tls else
                  http.client.HTTPConnection("127.0.0.1", port, timeout=300))
    connection.request(method, path, headers=headers or {})
    reply = connection.getresponse()
    body = reply.read()
    connection.close()
    return reply, body
