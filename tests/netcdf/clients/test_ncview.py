#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""ncview shows a container, by its path and through a stub file, as it shows the file: it draws on an
X server without a screen, and the frame that it saves is the same. Nothing here waits longer than a
bounded time."""

import contextlib
import os
import struct
import subprocess
import time
import zlib

from esdmtest import (SANITIZE, Site, client, client_environment, environment, expect, main,
                      need_data, need_program, skip, tool)

SECONDS = 120  # an ncview that has not drawn by then hangs
WIDTH = HEIGHT = 900
PNG_END = b"IEND\xaeB`\x82"


class Screen:
    """An X server that keeps its screen in a file."""

    def __init__(self, folder):
        self.folder = folder

    def __enter__(self):
        read, write = os.pipe()
        self.server = subprocess.Popen(
            ["Xvfb", "-displayfd", str(write), "-screen", "0", f"{WIDTH}x{HEIGHT}x24", "-nolisten", "tcp",
             "-fbdir", self.folder], pass_fds=[write], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(write)
        with os.fdopen(read) as pipe:
            number = pipe.readline().strip()
        expect(number, "Xvfb did not start")
        self.display = f":{number}"
        return self

    def __exit__(self, *_):
        self.server.terminate()
        self.server.wait(30)

    def pixels(self):
        return (self.folder / "Xvfb_screen0").read_bytes()[-4 * WIDTH * HEIGHT:]


def image(png):
    """Size and picture of a PNG file, without the texts that ncview puts into it."""
    at, size, data = 8, b"", b""
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at:at + 8])
        body = png[at + 8:at + 8 + length]
        size = body if kind == b"IHDR" else size
        data += body if kind == b"IDAT" else b""
        at += 12 + length
    return size, zlib.decompress(data)


@contextlib.contextmanager
def shown(screen, command, env, cwd):
    """Runs ncview; ends it with the block."""
    env = dict(env, DISPLAY=screen.display, HOME=str(cwd))
    with open(cwd / "output", "w", encoding="utf-8") as output:
        viewer = subprocess.Popen(command, env=env, cwd=cwd, stdin=subprocess.DEVNULL,
                                  stdout=output, stderr=subprocess.STDOUT)
    try:
        yield viewer
    finally:
        viewer.terminate()
        try:
            viewer.wait(30)
        except subprocess.TimeoutExpired:
            viewer.kill()
            viewer.wait()


def frame(screen, command, cwd, env):
    """The first frame that ncview saves, once it has drawn on the screen."""
    cwd.mkdir()
    blank = screen.pixels()
    saved = cwd / "frame.00000.png"
    with shown(screen, command, env, cwd) as viewer:
        end = time.monotonic() + SECONDS
        drawn, content = False, b""
        while time.monotonic() < end and viewer.poll() is None:
            drawn = drawn or screen.pixels() != blank
            content = saved.read_bytes() if saved.exists() else b""
            if drawn and content.endswith(PNG_END):
                break
            time.sleep(0.1)
        text = (cwd / "output").read_text(errors="replace")
        expect(viewer.poll() is None, f"{command} ended with {viewer.returncode}: {text}")
        expect(drawn, f"{command} drew nothing in {SECONDS} s: {text}")
        expect(content.endswith(PNG_END), f"{command} saved no frame in {SECONDS} s: {text}")
    end = time.monotonic() + 30
    while screen.pixels() != blank and time.monotonic() < end:
        time.sleep(0.1)
    return content


def test_ncview__shows_the_same_picture():
    need_program("ncview", "Xvfb", "nccopy")
    if SANITIZE:
        skip("ncview is too slow under sanitizers")
    source = need_data("fields", "era5_u.nc")
    with Site() as site:
        routed = site.file("routed")
        routed.mkdir()
        client(["nccopy", source, "esdm://view/era5_u.nc"])
        client(["nccopy", source, routed / "era5_u.nc"], env={"ESDM_NC_ROUTE": str(routed)})
        with Screen(site.folder) as screen:
            expected = frame(screen, ["ncview", "-frames", str(source)], site.file("plain"),
                             environment())
            for name, path in (("url", "esdm://view/era5_u.nc"), ("stub", routed / "era5_u.nc")):
                got = frame(screen, [tool("esdm-run"), "ncview", "-frames", str(path)],
                            site.file(name), client_environment())
                expect(image(got) == image(expected), f"ncview draws another picture of {path}")


main(test_ncview__shows_the_same_picture)
