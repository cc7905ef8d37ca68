# SPDX-License-Identifier: LGPL-3.0-or-later
"""A Linux of its own for tests, where the kernel of the machine lacks what they need (NFS): user-mode Linux, an
ordinary process whose root is that of the machine. Folders that services write to are its own, and so is /srv.

It has one processor, and what it does takes several times as long: for right and wrong, not for speed.
"""

import contextlib
import functools
import glob
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

from esdmtest import Failed, expect, skip

INSIDE = "ESDM_TEST_INSIDE"  # set in the guest
PROGRAMS = {"linux.uml": "user-mode-linux", "modprobe": "kmod", "rpc.nfsd": "nfs-kernel-server",
            "rpc.mountd": "nfs-kernel-server", "exportfs": "nfs-kernel-server", "nfsdcld": "nfs-kernel-server",
            "mount.nfs4": "nfs-common", "ip": "iproute2"}

# Its first process. Only what comes between the two lines with the mark is told.
INIT = """#!/bin/bash
exec 2>&1
mount -t proc proc /proc
mount -t sysfs sys /sys
mkdir -p /dev/shm
for folder in /run /var/lib/nfs /srv /dev/shm; do mount -t tmpfs guest $folder; done
mkdir -p /run/guest/lib /var/lib/nfs/v4recovery /var/lib/nfs/rpc_pipefs /var/lib/nfs/nfsdcld
ln -s @modules@ /run/guest/lib/modules
touch /var/lib/nfs/etab /var/lib/nfs/rmtab
modprobe -d /run/guest -a @names@
ip link set lo up
echo; echo "@mark@ begin"
cd @folder@
env -i @environment@ @command@ </dev/null
status=$?
echo; echo "@mark@ $status"
read -r < <(sleep 1000)
"""


def modules():
    found = glob.glob("/usr/lib/uml/modules/*")
    return pathlib.Path(found[0]).parent if found else None


def skip_without_guest():
    """Where the programs are not there, or the kernel does not come up."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    missing = sorted({package for program, package in PROGRAMS.items() if shutil.which(program) is None})
    if missing or modules() is None:
        skip(f"tools/install-deps.sh guest installs what is missing: {' '.join(missing or ['user-mode-linux'])}")
    if os.geteuid() != 0:
        skip("needs root: the guest has the rights of the one who starts it")
    if INSIDE not in os.environ and run_inside(["true"], timeout=60) != 0:
        skip("user-mode Linux does not come up here")


def run_inside(command, names=(), timeout=900, memory="900M"):
    """Exit status of a command in a guest of its own, with kernel modules; None: it did not come to an end. It runs in
    this folder and has this environment."""
    mark = f"guest-{os.getpid()}"
    kept = {key: value for key, value in os.environ.items() if key not in ("TMPDIR", "LD_PRELOAD")}
    values = {"modules": modules(), "names": " ".join(names or ["nfsd"]), "mark": mark, "folder": shlex.quote(os.getcwd()),
              "command": shlex.join(map(str, command)),
              "environment": shlex.join(f"{key}={value}" for key, value in (kept | {INSIDE: "1"}).items())}
    with tempfile.TemporaryDirectory(prefix="esdm-guest.") as folder:
        script = pathlib.Path(folder) / "init"
        script.write_text(re.sub("@([a-z]+)@", lambda m: str(values[m[1]]), INIT))
        script.chmod(0o755)
        # Its memory is a file in $TMPDIR, its sockets are below $HOME.
        begun = subprocess.Popen(
            ["linux.uml", f"mem={memory}", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "rw", "quiet",
             f"init={script}", "con=null", "con0=null,fd:1", f"umid={mark}"], start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            env={**os.environ, "TMPDIR": "/dev/shm" if os.access("/dev/shm", os.W_OK) else folder, "HOME": folder})
        ending = threading.Timer(timeout, os.killpg, (begun.pid, signal.SIGKILL))
        ending.start()
        try:
            return follow(begun.stdout, mark)
        finally:
            ending.cancel()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(begun.pid, signal.SIGKILL)
            begun.wait()


def follow(lines, mark):
    """Tells what comes between the lines with the mark; the status in the second one, or None. The guest is then ended
    from outside: it would wait for servers that its nodes do not reach."""
    inside = False
    for line in lines:
        line = line.replace("\r", "")
        if line.startswith(f"{mark} ") and inside:
            return int(line.split()[1])
        if inside and line.strip():
            print(line, end="", flush=True)
        inside |= line == f"{mark} begin\n"
    return None


def in_guest(*names, timeout=900):
    """A test that runs in a guest with these kernel modules."""
    def wrap(test):
        @functools.wraps(test)
        def outside():
            if INSIDE in os.environ:
                test()
                return
            status = run_inside(["/usr/bin/python3", os.path.abspath(sys.argv[0]), test.__name__], names, timeout)
            if status is None:
                raise Failed(f"the guest did not come to its end in {timeout} s")
            expect(status == 0, f"it failed in the guest: {status}")
        return outside
    return wrap
