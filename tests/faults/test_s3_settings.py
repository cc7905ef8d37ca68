#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""S3 targets with wrong and unusual settings, credentials and certificates: what cannot work is an error that
says why, and no message holds a secret."""

import contextlib
import email.utils
import os
import time

import s3server
from esdmtest import by_size, expect, expect_error, main, run, skip, tool
from faults import environment, generation, must, program, shown
from s3proxy import Proxy, Rule
from s3server import Server
from stores import WRONG_SECRET, Timed, no_secret_was_printed, s3_site

MKFS = tool("esdm-mkfs")
PACKS = "/[^?]*/packs/.*"


def mkfs(**options):
    return run([MKFS], check=False, **options)


def test_s3__wrong_settings_are_explained():
    with Server() as server:
        cases = [
            ({"access_key": s3server.ACCESS_KEY, "secret_key": WRONG_SECRET},
             ["secret key", "targets[0]", "SignatureDoesNotMatch"]),
            ({"access_key": "nobody", "secret_key": WRONG_SECRET}, ["access_key"]),
            ({"bucket": "no-such-bucket"}, ["no-such-bucket", "create_bucket"]),
            ({"region": "mars-1"}, ["mars-1", "us-east-1", "region"]),
            ({"endpoint": "http://127.0.0.1:1", "timeout": 1}, ["127.0.0.1:1", "running"]),
            ({"endpoint": "http://no-such-host.invalid", "timeout": 1}, ["no-such-host.invalid"]),
            ({"endpoint": server.endpoint.replace("http", "https"), "timeout": 1},
             ["https://127.0.0.1"]),
            ({"profile": "nobody", "credentials_file": "/dev/null"}, ["nobody", "/dev/null"]),
            ({"ca_file": "no-such-file.pem"}, ["ca_file", "no-such-file.pem"]),
            ({"bukket": "x"}, ["bukket", "bucket"]),
        ]
        for keys, words in cases:
            with s3_site(server, make=False, **keys), Timed(15):
                expect_error(mkfs(), *words)
                expect_error(run([MKFS, "--check"], check=False))
        expect(not server.client().keys(), "something was written")


def test_s3__missing_credentials_are_explained():
    with Server() as server, s3_site(server, make=False):
        for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            del os.environ[key]
        home = os.environ.get("HOME")
        os.environ["HOME"] = "/nonexistent"
        expect_error(mkfs(), "AWS_ACCESS_KEY_ID", "/nonexistent/.aws/credentials", "targets[0]")
        os.environ["HOME"] = home or "/"


def test_s3__credentials_come_from_the_file_of_aws():
    """Of the default profile and of another one, where the variables say and where the target does."""
    lines = (f"[default]\naws_access_key_id = {s3server.ACCESS_KEY}\n"
             f"aws_secret_access_key = {s3server.SECRET_KEY}\n"
             f"[wrong]\naws_access_key_id = {s3server.ACCESS_KEY}\n"
             f"aws_secret_access_key = {WRONG_SECRET}\n")
    with Server() as server:
        home = server.folder / "home"
        (home / ".aws").mkdir(parents=True)
        (home / ".aws/credentials").write_text(lines)
        stated = server.folder / "stated"
        stated.write_text(lines.replace("[default]", "[climate]"))
        cases = [({}, {"HOME": home}),
                 ({}, {"AWS_SHARED_CREDENTIALS_FILE": stated, "AWS_PROFILE": "climate"}),
                 ({"credentials_file": str(stated), "profile": "climate"}, {"HOME": "/nonexistent"})]
        for keys, variables in cases:
            with s3_site(server, make=False, **keys):
                keep = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
                with variables_set({**dict.fromkeys(keep), **variables}):
                    run([MKFS])
                    must("write", "a", 1, 1)
                    expect(generation("a") == 1, "not read back")
                with variables_set({**dict.fromkeys(keep), "AWS_PROFILE": "wrong",
                                    "AWS_SHARED_CREDENTIALS_FILE": stated}):
                    if not keys:
                        expect_error(program("check", "a"), "SignatureDoesNotMatch")


@contextlib.contextmanager
def variables_set(variables):
    """Of the environment; None: not there."""
    saved = {name: os.environ.get(name) for name in variables}

    def put(values):
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = str(value)

    put(variables)
    try:
        yield
    finally:
        put(saved)


def test_s3__the_bucket_may_be_part_of_the_host():
    server = Server()
    server.port = s3server.free_port()
    with Proxy(server) as proxy:
        domain = proxy.endpoint.replace("http://127.0.0.1", "localhost")
        server.options = ["--virtual-domain", domain]
        with server:
            for style, endpoint in (("host", f"http://{domain}"), ("path", proxy.endpoint)):
                with s3_site(server, endpoint=endpoint, style=style):
                    proxy.log.clear()
                    must("write", "a", 1, 2)
                    expect(generation("a") == 2, f"{style}: not read back")
                    run([MKFS, "--check"])
                    run([MKFS, "--remove", "--yes"])
                    named = proxy.count(rf"\w+ /{s3server.BUCKET}\b.*")
                    expect(len(proxy.log) > 5 and named == (style == "path") * len(proxy.log),
                           f"{style}: {proxy.log[:5]}")


def test_s3__packs_of_one_fragment_are_read_as_a_whole():
    """One request takes all of a large fragment: from its values on where the index page has the outline of its
    head, and every request names what it wants."""
    asked = []

    def note(_, exchange):
        asked.append((exchange.target, exchange.headers["range"]))

    with Server() as server, Proxy(server, [Rule(note, method="GET", path=PACKS)]) as proxy:
        with s3_site(server, endpoint=proxy.endpoint, object=1):
            must("write", "a", 1, 1)
            expect(generation("a") == 1, "not read back")
            expect(asked, "nothing was read from packs")
            expect(len({target for target, _ in asked}) == len(asked), f"asked twice: {asked}")
            for target, wanted in asked:
                size = int(server.client().request("HEAD", target).headers["content-length"])
                first, last = (int(x) for x in wanted.removeprefix("bytes=").split("-"))
                outlined = size > 1 << 20
                expect(last == size - 1 and (0 < first < size / 100 if outlined else first == 0),
                       f"{wanted} of {size} bytes")


def test_s3__a_bucket_is_made_when_asked_for():
    with Server() as server, s3_site(server, make=False, bucket="fresh-one", create_bucket=True):
        expect("fresh-one" in run([MKFS, "--dry-run"]).stdout, "not told")
        expect(server.client().request("HEAD", "/fresh-one").status == 404, "made by a dry run")
        run([MKFS])
        must("write", "a", 1, 1)
        expect(generation("a") == 1, "not read back")


def test_s3__clock_skew_is_told_in_seconds():
    def refuse(proxy, exchange):
        date = email.utils.formatdate(time.time() + 3600, usegmt=True)
        exchange.reply(403, "RequestTimeTooSkewed", headers=[("Date", date)])

    with Server() as server, Proxy(server, [Rule(refuse)]) as proxy:
        with s3_site(server, make=False, endpoint=proxy.endpoint):
            done = mkfs()
            expect_error(done, "clock", "behind", "NTP")
            expect(any(f"{s} seconds" in done.stderr for s in range(3590, 3602)), shown(done))


def test_s3__certificates_are_verified():
    with Server(tls=True) as server:
        with s3_site(server) as site:
            must("write", "a", 1, 1)
            expect(generation("a") == 1, "not read back")
            text = site.config.read_text().replace('"ca_file"', '"region": "us-east-1", "$"')
            site.config.write_text(text.replace(f'"$": "{server.ca_file}",', ""))
            expect_error(run([MKFS, "--check"], check=False), "certificate", "ca_file")


def test_s3__secrets_of_the_configuration_stay_there():
    """Neither in containers nor in what is printed, nor in messages about broken JSON."""
    with Server() as server:
        keys = {"access_key": s3server.ACCESS_KEY, "secret_key": s3server.SECRET_KEY}
        with s3_site(server, **keys) as site:
            for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
                del os.environ[name]
            must("write", "a", 1, 1)
            for command in (["esdm-stat", "a"], ["esdm-stat", "--json", "a"], ["esdm-ls", "--json"],
                            ["esdm-mkfs", "--check", "--json"], ["esdm-mkfs", "--remove", "-n"]):
                run([tool(command[0]), *command[1:]], env=environment({"ESDM_DEBUG": "1"}))
            for path in site.folder.rglob("*"):
                if path.is_file() and path != site.config:
                    expect(s3server.SECRET_KEY.encode() not in path.read_bytes(), f"in {path}")
            for path in server.folder.rglob("*"):
                if path.is_file() and "data" in path.parts:
                    expect(s3server.SECRET_KEY.encode() not in path.read_bytes(), f"in {path}")
            text = site.config.read_text()
            for cut in range(len(text)):
                if cut % by_size(23, 7, 1) == 0 and text[:cut].strip():
                    site.config.write_text(text[:cut])
                    expect_error(run([MKFS, "--validate"], check=False))


def test_s3__no_secret_was_printed():
    no_secret_was_printed(180)


if not (s3server.pathlib.Path(tool("")).parent / "esdm/esdm-data-s3.so").exists():
    skip("this ESDM was built without S3")
main(*[test for name, test in list(globals().items()) if name.startswith("test_")])
