# SPDX-License-Identifier: LGPL-3.0-or-later
"""What tests of targets on servers share."""

import contextlib
import os
import subprocess
import time

from esdmtest import Site, expect
from faults import PROGRAM, environment

OUTPUTS = []  # of all programs, searched for secrets at the end
real_popen_communicate = subprocess.Popen.communicate


def recording_communicate(self, *arguments, **options):
    out, err = real_popen_communicate(self, *arguments, **options)
    OUTPUTS.extend(text for text in (out, err) if isinstance(text, str))
    return out, err


subprocess.Popen.communicate = recording_communicate


@contextlib.contextmanager
def s3_site(server, make=True, others=(), engine=None, durability="process", metadata=None, **keys):
    """A site whose first target is on the server; the environment has the credentials."""
    saved = {k: os.environ.get(k) for k in server.client_environment()}
    os.environ.update(server.client_environment())
    target = server.target(prefix=f"t{time.monotonic_ns():x}", part="5 MiB", **keys)
    target.setdefault("timeout", 20)
    engine = {"threads": 2, "memory": "256 MiB", **(engine or {})}
    try:
        with Site(make=make, targets=[target, *others], engine=engine,
                  durability=durability, **({"metadata": metadata} if metadata else {})) as site:
            site.prefix = target["prefix"]
            yield site
    finally:
        for key, value in saved.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value


class Timed:
    """Measures, and fails when it took too long."""

    def __init__(self, most):
        self.most = most

    def __enter__(self):
        self.start = time.monotonic()

    def __exit__(self, kind, *_):
        seconds = time.monotonic() - self.start
        if kind is None:
            expect(seconds < self.most, f"took {seconds:.1f} s, not less than {self.most}")


def start_writer(name, first, last):
    return subprocess.Popen([PROGRAM, "write", name, str(first), str(last)],
                            env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def finish(writer, seconds=60):
    out, err = writer.communicate(timeout=seconds)
    return subprocess.CompletedProcess(writer.args, writer.returncode, out, err)
