# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-mount on a folder of a site."""

import contextlib
import os
import pathlib
import subprocess
import time

from esdmtest import expect, need_program, skip, tool


def why_no_fuse():
    """Why nothing can be mounted here, or None."""
    if not pathlib.Path(tool("esdm-mount")).exists():
        return "esdm-mount was not built: libfuse3-dev is missing"
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as problem:
        return f"/dev/fuse cannot be opened: {problem.strerror}"
    return None


def need_fuse():
    need_program("fusermount3")
    reason = why_no_fuse()
    if reason:
        skip(reason)


@contextlib.contextmanager
def mounted(site, *options):
    folder = site.file("mnt")
    folder.mkdir(exist_ok=True)
    with open(site.file("mount.log"), "w", encoding="utf-8") as log:
        daemon = subprocess.Popen([tool("esdm-mount"), "--foreground", *options, folder], stdin=subprocess.DEVNULL,
                                  stdout=log, stderr=log, env={**os.environ, "XDG_CACHE_HOME": str(site.file("cache"))})
    until = time.monotonic() + 60
    while not os.path.ismount(folder):
        if daemon.poll() is not None or time.monotonic() > until:
            text = site.file("mount.log").read_text()
            daemon.kill()
            if "fuse" in text and "permitted" in text:
                skip(f"this place does not allow to mount: {text}")
            expect(False, f"not mounted: {text}")
        time.sleep(0.02)
    try:
        yield folder, daemon
    finally:
        subprocess.run(["fusermount3", "-u", "-z", folder], check=False, stderr=subprocess.DEVNULL)
        try:
            daemon.wait(60)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
