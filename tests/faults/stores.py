# SPDX-License-Identifier: LGPL-3.0-or-later
"""What tests of targets on servers share."""

import contextlib
import json
import os
import subprocess
import time

import s3server
from esdmtest import Site, expect, skip
from faults import LONG, Writer

WRONG_SECRET = "wrongSECRET/wrong+secret0"

OUTPUTS = []  # of all programs, searched for secrets at the end
real_popen_communicate = subprocess.Popen.communicate


def recording_communicate(self, *arguments, **options):
    out, err = real_popen_communicate(self, *arguments, **options)
    OUTPUTS.extend(text for text in (out, err) if isinstance(text, str))
    return out, err


subprocess.Popen.communicate = recording_communicate


@contextlib.contextmanager
def s3_site(server, make=True, others=(), engine=None, durability="process", metadata=None,
            backup=None, **keys):
    """A site whose first target is on the server; the environment has the credentials."""
    saved = {k: os.environ.get(k) for k in server.client_environment()}
    os.environ.update(server.client_environment())
    target = server.target(prefix=f"t{time.monotonic_ns():x}", part="5 MiB", **keys)
    target.setdefault("timeout", 60)
    engine = {"threads": 2, "memory": "256 MiB", **(engine or {})}
    try:
        with Site(make=make, targets=[target, *others], engine=engine,
                  durability=durability, **({"metadata": metadata} if metadata else {}),
                  **({"backup": backup} if backup else {})) as site:
            site.prefix = target["prefix"]
            yield site
    finally:
        for key, value in saved.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value


@contextlib.contextmanager
def giving_up(site, seconds):
    """What the first target's server does not answer is given up after so many seconds. For when
    nobody is there: on a busy machine a server that lives can take as long."""
    text = site.config.read_text()
    config = json.loads(text)
    config["targets"][0]["timeout"] = seconds
    site.config.write_text(json.dumps(config))
    try:
        yield
    finally:
        site.config.write_text(text)


class Timed:
    """Fails when what takes `most` seconds on an idle machine takes as long as what hangs."""

    def __init__(self, most):
        self.most = max(most * 20, LONG)

    def __enter__(self):
        self.start = time.monotonic()

    def __exit__(self, kind, *_):
        seconds = time.monotonic() - self.start
        if kind is None:
            expect(seconds < self.most, f"took {seconds:.1f} s, not less than {self.most}")


class RecordedWriter(Writer):
    def finish(self):
        done = super().finish()
        OUTPUTS.append(done.stdout)
        return done


def finish(process):
    out, err = process.communicate(timeout=LONG)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def no_secret_was_printed(least):
    """By any program that a test has started before: `least` of them, or the search is wrong."""
    if not OUTPUTS:
        skip("no server was there")
    expect(len(OUTPUTS) >= least, f"only {len(OUTPUTS)} outputs were seen")
    for text in OUTPUTS:
        for secret in (s3server.SECRET_KEY, WRONG_SECRET):
            expect(secret not in text, f"a secret is in: {text}")
