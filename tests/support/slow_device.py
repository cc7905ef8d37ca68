# SPDX-License-Identifier: LGPL-3.0-or-later
"""A file on a slow device: slow_file.c, mounted by FUSE."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from esdmtest import BUILD, need_program, run, skip

SLOW = BUILD / "tests/netcdf/clients/slow_file"
DELAY_US = 4000


@contextlib.contextmanager
def slow_device(content):
    """`content(path)` makes the file; yields the path of the slow one."""
    if not SLOW.exists():
        skip("built without FUSE")
    need_program("fusermount3")
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        skip("no /dev/fuse")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="run7.esdm-test-ahead."))
    mount = folder / "slow"
    mount.mkdir()
    content(folder / "content")
    server = subprocess.Popen([SLOW, folder / "content", str(DELAY_US), mount],
                              stdin=subprocess.DEVNULL)
    try:
        for _ in range(6000):
            if (mount / "data").exists():
                break
            if server.poll() is not None:
                skip("FUSE file systems cannot be mounted here")
            time.sleep(0.05)
        yield mount / "data"
    finally:
        run(["fusermount3", "-u", mount], check=False)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(timeout=20)
        server.kill()
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)
