# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-serve on a port of its own, and requests to it."""

import contextlib
import http.client
import os
import pathlib
import subprocess
import urllib.parse

from esdmtest import expect, need_data, run, skip, tool


def fill(site):
    """A small container with a group, and a real one."""
    site.file("x.cdl").write_text(
        "netcdf x { dimensions: t = UNLIMITED; y = 3; x = 4; variables: short v(t, y, x); v:scale_factor = 0.5f; "
        'v:add_offset = 10.0; v:_FillValue = -1s; v:units = "K"; double t(t); data: t = 5, 6; v = 0, 1, 2, 3, 4, 5, 6, '
        "7, 8, 9, 10, 11, -1, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23; group: g { variables: int w(y); "
        "data: w = 1, 2, 3; } }")
    run(["ncgen", "-k", "nc4", "-o", site.file("x.nc"), site.file("x.cdl")])
    run([tool("esdm-cp"), site.file("x.nc"), "esdm://exp/x.nc"])
    run([tool("esdm-cp"), min(pathlib.Path(need_data("fields")).glob("*.nc"), key=lambda p: p.stat().st_size),
         "esdm://fields/real.nc"])


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
