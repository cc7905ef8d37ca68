#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""ncview shows a container, by its path and through a stub file, as it shows the file: the same
pixels on an X server without a screen. Nothing here waits longer than a bounded time."""

import contextlib
import os
import subprocess
import time

from esdmtest import (SANITIZE, Site, client, client_environment, environment, expect, main,
                      need_data, need_program, skip, tool)

SECONDS = 120  # an ncview that has not drawn by then hangs
WIDTH = HEIGHT = 900
BAR = 30  # rows of ncview's colour bar, whose colours differ from run to run


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


def same(a, b):
    """Equal pixels, but for the rows of the colour bar."""
    rows = [row for row in range(HEIGHT)
            if a[4 * WIDTH * row:4 * WIDTH * (row + 1)] != b[4 * WIDTH * row:4 * WIDTH * (row + 1)]]
    return not rows or rows[-1] - rows[0] < BAR


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


def picture(screen, command, cwd, env, expected=None):
    """What is on the screen when ncview has drawn: the expected picture, or one that stays."""
    cwd.mkdir()
    blank = screen.pixels()
    with shown(screen, command, env, cwd) as viewer:
        last, since = blank, time.monotonic()
        end = since + SECONDS
        while time.monotonic() < end and viewer.poll() is None:
            time.sleep(0.3)
            now = screen.pixels()
            if now != last:
                last, since = now, time.monotonic()
            drawn = (cwd / "frame.00000.png").exists()
            if drawn and (same(now, expected) if expected else time.monotonic() - since > 3):
                break
        text = (cwd / "output").read_text(errors="replace")
        expect(viewer.poll() is None, f"{command} ended with {viewer.returncode}: {text}")
        expect(drawn and last != blank, f"{command} drew nothing in {SECONDS} s: {text}")
    end = time.monotonic() + 30
    while screen.pixels() != blank and time.monotonic() < end:
        time.sleep(0.1)
    return last


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
            expected = picture(screen, ["ncview", "-frames", str(source)],
                                      site.file("plain"), environment())
            for name, path in (("url", "esdm://view/era5_u.nc"), ("stub", routed / "era5_u.nc")):
                got = picture(screen, [tool("esdm-run"), "ncview", "-frames", str(path)],
                              site.file(name), client_environment(), expected)
                expect(same(got, expected), f"ncview draws another picture of {path}")


main(test_ncview__shows_the_same_picture)
