#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""S3 targets with wrong settings, failing, slow, lying and dying servers: what was committed stays
readable, what cannot work is an error in time that says why, and no message holds a secret."""

import contextlib
import email.utils
import itertools
import os
import random
import threading
import time

import s3proxy
import s3server
from esdmtest import by_size, client, expect, expect_error, main, run, skip, tool
from faults import check_goes_on, committed, environment, generation, must, program, shown
from s3proxy import Proxy, Rule
from s3server import Server
from stores import OUTPUTS, RecordedWriter, Timed, giving_up, s3_site

MKFS = tool("esdm-mkfs")
WRONG_SECRET = "wrongSECRET/wrong+secret0"
PACKS = "/[^?]*/packs/.*"
SECRETS = {s3server.SECRET_KEY, WRONG_SECRET}

# ---- settings -----------------------------------------------------------------------------------


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
    """Servers send whole objects faster than parts of them; every request names what it wants."""
    asked = []

    def note(_, exchange):
        asked.append((exchange.target, exchange.headers["range"]))

    with Server() as server, Proxy(server, [Rule(note, method="GET", path=PACKS)]) as proxy:
        with s3_site(server, endpoint=proxy.endpoint, object=1):
            must("write", "a", 1, 1)
            expect(generation("a") == 1, "not read back")
            expect(asked, "nothing was read from packs")
            for target, wanted in asked:
                size = int(server.client().request("HEAD", target).headers["content-length"])
                expect(wanted == f"bytes=0-{size - 1}", f"{wanted} of {size} bytes")


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


# ---- passing failures ---------------------------------------------------------------------------

TROUBLES = {
    "SlowDown": s3proxy.fail(503, "SlowDown", "Please reduce your request rate."),
    "busy": s3proxy.fail(500, "InternalError"),
    "throttled": s3proxy.fail(429, "TooManyRequests", headers=[("Retry-After", "0")]),
    "reset": s3proxy.reset,
    "lost answer": s3proxy.lose_answer,
    "truncated": s3proxy.truncate(100),
    "proxy page": lambda proxy, exchange: setattr(exchange, "status", 502) or setattr(
        exchange, "answer", b"<html>Bad gateway<br>") or setattr(exchange, "answer_headers", []),
}


def in_turn(actions):
    """Another one for each request."""
    turn = itertools.cycle(actions)
    return lambda proxy, exchange: next(turn)(proxy, exchange)


def test_s3__passing_failures_are_not_noticed():
    """Every single request fails once."""
    troubles = by_size({}, {}, dict(TROUBLES))
    troubles["all in turn"] = in_turn(TROUBLES.values())
    with Server() as server:
        for name, action in troubles.items():
            rule = Rule(action, each=True)
            with Proxy(server, [rule]) as proxy, s3_site(server, endpoint=proxy.endpoint,
                                                         engine={"threads": 1}) as site:
                rule.seen.clear()
                must("write", "a", 1, 2)
                expect(generation("a") == 2, f"{name}: wrong data")
                expect(rule.hits > 10, f"{name}: only {rule.hits} requests failed")
                expect(proxy.count(r"POST .*\?uploadId.*") >= 2, f"{name}: no long upload")
                run([MKFS, "--check"])
                run([MKFS, "--remove", "--yes"])
                left = server.client().keys(site.prefix) + server.client().uploads(site.prefix)
                expect(not left, f"{name}: left behind: {left}")


def test_s3__lost_answers_do_not_make_strangers_of_our_packs():
    """The server did what it was asked for and nobody heard of it, several times over."""
    for pattern in (PACKS, r"/[^?]*/packs/[^?]*\?uploadId.*"):
        rule = Rule(s3proxy.lose_answer, method="PUT|POST", path=pattern, count=3)
        with Server() as server, Proxy(server, [rule]) as proxy:
            with s3_site(server, endpoint=proxy.endpoint, engine={"threads": 1}):
                must("write", "a", 1, 3)
                expect(generation("a") == 3, "wrong data")
                expect(rule.hits == 3, f"{rule.hits} answers were lost")


def test_s3__answers_that_say_nothing_are_not_believed():
    """An answer from somewhere else, and bits that change on their way, once for each request."""
    foreign = '"0123456789abcdef0123456789abcdef"'
    cases = {"no ETag": ("PUT|POST", s3proxy.swallow()), "foreign ETag": ("PUT", s3proxy.swallow(foreign)),
             "flipped while sent": ("PUT", s3proxy.flip_sent), "flipped while read": ("GET", s3proxy.flip)}
    # Uploads of several parts, and of one.
    rules = {f"{name}, packs of {pack}": (Rule(action, method, PACKS, each=True), pack)
             for name, (method, action) in cases.items() for pack in ("1 GiB", "64 KiB")}
    rules["never an ETag"] = (Rule(s3proxy.strip_etag, "PUT", PACKS), "64 KiB")
    with Server() as server:
        for name, (rule, pack) in rules.items():
            with Proxy(server, [rule]) as proxy, s3_site(server, endpoint=proxy.endpoint,
                                                         engine={"threads": 1, "pack": pack}):
                must("write", "a", 1, 2)
                expect(generation("a") == 2, f"{name}: wrong data")
                expect(rule.hits >= 2, f"{name}: only {rule.hits} requests were concerned")
        # Packs of one request: of parts that were never stored the server itself tells.
        with Proxy(server) as proxy, s3_site(server, endpoint=proxy.endpoint,
                                             engine={"pack": "64 KiB"}):
            must("write", "a", 1, 1)
            proxy.rules = [Rule(s3proxy.swallow(foreign), method="PUT", path=PACKS)]
            done = program("write", "a", 2, 2)
            expect(done.returncode == 3, shown(done))
            expect_error(done, "does not have it", "0123456789abcdef")
            proxy.rules = []
            expect(generation("a") == 1, "wrong data")
            check_goes_on("a", 1)


def test_s3__servers_without_conditions_are_used():
    def refuse(proxy, exchange):
        if "if-none-match" in exchange.headers:
            exchange.reply(501, "NotImplemented", "A header you provided is not implemented")

    with Server() as server, Proxy(server, [Rule(refuse, method="PUT|POST")]) as proxy:
        with s3_site(server, endpoint=proxy.endpoint, engine={"threads": 1}):
            must("write", "a", 1, 2)
            expect(generation("a") == 2, "wrong data")


# ---- lasting failures ---------------------------------------------------------------------------


def test_s3__lasting_failures_end_in_time():
    with Server() as server, Proxy(server) as proxy:
        with s3_site(server, endpoint=proxy.endpoint) as site:
            must("write", "a", 1, 1)
            cases = [(s3proxy.fail(503, "SlowDown"), 5, ["SlowDown", "attempts"]),
                     (s3proxy.reset, 5, ["attempts"]),
                     (s3proxy.hang, 2, ["timed out"]),
                     (s3proxy.fail(507, "XMinioStorageFull"), 60, ["no space", "full"]),
                     (s3proxy.fail(403, "AccessDenied"), 60, ["permission", "AccessDenied"]),
                     (s3proxy.fail(403, "QuotaExceeded"), 60, ["quota"])]
            for action, seconds, words in cases:
                proxy.rules = [Rule(action, method="PUT|POST")]
                with giving_up(site, seconds), Timed(30):
                    done = program("write", "a", 2, 2)
                expect(done.returncode == 3, shown(done))
                expect_error(done, "cloud", *words)
                proxy.rules = []
                expect(generation("a") == 1, "the last commit is not there")
            proxy.rules = [Rule(s3proxy.hang, method="GET", path=PACKS)]
            with giving_up(site, 2), Timed(40):
                done = program("check", "a")
            expect_error(done, "timed out", "container 'a'", "dataset")
            proxy.rules = []
            check_goes_on("a", 1)


SYNC_AGAIN = """
import netCDF4, numpy as np
nc = netCDF4.Dataset("esdm://again.nc", "w")
nc.createDimension("t", None)
nc.createDimension("x", 100000)
v = nc.createVariable("v", "f8", ("t", "x"))
failures = 0
odd = np.arange(100000) % 2 / 4  # equal values take no pack
for i in range(16):
    v[i] = i + odd
while True:
    try:
        nc.sync()
        break
    except Exception as error:
        failures += 1
        if failures > 5:
            raise
nc.close()
with netCDF4.Dataset("esdm://again.nc") as nc:
    assert len(nc["v"]) == 16 and all((nc["v"][i] == i + odd).all() for i in range(16))
print("failures", failures)
"""


def test_s3__what_was_refused_is_stored_by_the_next_commit():
    """A quota that is used up for a while costs nothing that was written."""
    with Server() as server:
        for pattern in (r"/[^?]*/packs/[^?]*", r"/[^?]*/packs/.*partNumber.*", r"/[^?]*/packs/[^?]*\?uploadId.*"):
            rule = Rule(s3proxy.fail(403, "QuotaExceeded"), "PUT|POST", pattern, count=1)
            whole = "uploadId" not in pattern and "partNumber" not in pattern
            with Proxy(server, [rule]) as proxy, s3_site(
                    server, endpoint=proxy.endpoint,
                    engine={"threads": 1, "memory": "64 MiB", "pack": "64 KiB" if whole else "1 GiB"}):
                done = client(["/usr/bin/python3", "-c", SYNC_AGAIN])
                # What was begun before the commit is tried again by it.
                told = done.stdout + done.stderr
                expect(rule.hits == 1 and done.stdout in ("failures 0\n", "failures 1\n"), f"{pattern}: {told}")
                expect("planned" not in told, told)


def test_s3__wrong_bytes_are_found():
    with Server() as server, Proxy(server) as proxy:
        with s3_site(server, endpoint=proxy.endpoint, engine={"threads": 1}):
            must("write", "a", 1, 1)
            for action, words in [(s3proxy.flip, ["damaged"]),
                                  (s3proxy.whole, ["range"]),
                                  (s3proxy.fail(404, "NoSuchKey"), ["NoSuchKey"]),
                                  (s3proxy.fail(416, "InvalidRange"), ["shorter"])]:
                proxy.rules = [Rule(action, method="GET", path=PACKS)]
                done = program("read", "a")
                lines = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
                expect(lines["tiny"] == "ok 1", f"{lines}")  # inline: other data stays readable
                for name in ("large", "packed"):
                    text = lines[name]
                    expect(not text.startswith("ok"), f"{name} is taken for good")
                    for word in ("'a'", name, "fragment", "pack", "cloud", *words):
                        expect(word in text, f"'{word}' is not in: {text}")
            proxy.rules = []
            expect(generation("a") == 1, "wrong data")


def test_s3__slow_servers_are_waited_for():
    with Server() as server, Proxy(server, [Rule(s3proxy.delay(0.05))]) as proxy:
        with s3_site(server, endpoint=proxy.endpoint, timeout=4):
            must("write", "a", 1, 1)
            proxy.rules = [Rule(s3proxy.slow(800_000), method="GET", path=PACKS)]
            expect(generation("a") == 1, "wrong data")
            # Longer than the time limit for an object: what goes on is no failure.
            proxy.rules = []
            proxy.takes_bytes_per_s = by_size(4_000_000, 1_000_000, 500_000)
            must("write", "a", 2, 2)
            proxy.takes_bytes_per_s = None
            expect(generation("a") == 2, "wrong data")


def test_s3__one_slow_request_holds_up_no_other():
    """Of many requests each waits for any connection that is free, not for a certain one. The first
    one is held until all have come: shorter than it takes a client to give it up."""
    packs, arrived, held = set(), set(), []
    all_came = threading.Event()

    def hold_first(_, exchange):
        arrived.add(exchange.target)
        if len(arrived) == len(packs):
            all_came.set()
        if not held:
            held.append(0)
            held[0] = len(packs) if all_came.wait(20) else len(arrived)

    with Server() as server, Proxy(server) as proxy:
        for connections in (2, 3, 8):
            with s3_site(server, endpoint=proxy.endpoint, object=1, connections=connections,
                         engine={"fragment": "256 KiB"}) as site:
                must("write", "a", 1, 1)
                packs = {key for key in server.client().keys(site.prefix) if "/packs/" in key}
                expect(len(packs) > 16, f"few packs: {packs}")
                arrived.clear()
                held.clear()
                all_came.clear()
                proxy.rules = [Rule(hold_first, method="DELETE", path=PACKS)]
                run([MKFS, "--remove", "--yes"])
                proxy.rules = []
                expect(held == [len(packs)], f"{connections} connections: {held} of {len(packs)} "
                                             "came while the first one was held")


def test_s3__another_target_takes_over():
    """The server refuses everything: what follows goes to the second target."""
    with Server() as server, Proxy(server) as proxy:
        with s3_site(server, endpoint=proxy.endpoint, others=[
                {"name": "disk", "plugin": "posix", "directory": "packs"}]) as site:
            must("write", "a", 1, 1)
            for action in (s3proxy.fail(507, "InsufficientStorage"), s3proxy.reset):
                proxy.rules = [Rule(action, method="PUT|POST")]
                with giving_up(site, 5):
                    done = program("write", "b", 1, 1)
                proxy.rules = []
                # What it had taken before it refused cannot be had back: then the commit fails.
                if done.returncode == 0:
                    expect(generation("b") == 1, "wrong data")
                else:
                    expect_error(done, "cloud")
            expect(generation("a") == 1, "wrong data")


# ---- dying --------------------------------------------------------------------------------------


def test_s3__server_killed_during_a_write():
    generator = random.Random(8)
    with Server() as server:
        with s3_site(server) as site:
            must("write", "a", 1, 1)
            for commits in by_size([1], [2], [i % 5 for i in range(20)]):
                last = generation("a")
                with giving_up(site, 5), RecordedWriter("a", last + 1, 1000000) as writer:
                    writer.wait_for("started")
                    writer.wait_for("committed", commits)
                    time.sleep(generator.uniform(0.02, 0.1))
                    server.kill()
                    with Timed(60):
                        done = writer.finish()
                    expect_error(program("check", "a"), "127.0.0.1")
                expect(done.returncode == 3, shown(done))
                expect_error(done, "cloud", "cannot")
                server.start()
                found = generation("a")
                told = committed(done) or last
                expect(told <= found <= told + 1, f"{found} after {told}")
                check_goes_on("a", found)
            run([MKFS, "--check"])


def test_s3__server_restarted_during_a_write():
    with Server() as server:
        with s3_site(server, timeout=300), RecordedWriter("a", 1, 40) as writer:
            for number in range(by_size(1, 2, 5)):
                writer.wait_for("committed", 1 + 5 * number)
                server.kill()
                time.sleep(0.5)
                server.start()
            done = writer.finish()
            expect(done.returncode == 0 and committed(done) == 40, shown(done))
            expect(generation("a") == 40, "wrong data")


def test_s3__server_stopped_during_a_read():
    """It keeps its connections open and says nothing; then it goes on."""
    with Server() as server:
        with s3_site(server) as site:
            must("write", "a", 1, 1)
            server.pause()
            try:
                with giving_up(site, 2), Timed(30):
                    expect_error(program("check", "a"), "127.0.0.1")
            finally:
                server.resume()
            expect(generation("a") == 1, "wrong data")


def test_s3__killed_writer_leaves_the_last_commit():
    with Server() as server, Proxy(server) as proxy:
        with s3_site(server, endpoint=proxy.endpoint, engine={"threads": 1}) as site:
            must("write", "a", 1, 1)
            # It dies while the end of its upload is on the way.
            proxy.rules = [Rule(s3proxy.hang, method="POST", path=r".*\?uploadId.*")]
            with RecordedWriter("a", 2, 2) as writer:
                while proxy.count(r"POST .*\?uploadId.*") < 2 and writer.process.poll() is None:
                    time.sleep(0.05)
            proxy.rules = []
            expect(generation("a") == 1, "the last commit is not there")
            uploads = server.client().uploads(site.prefix)
            expect(uploads, "there is no upload left behind: the test is wrong")
            expect("upload" in run([MKFS, "--check"]).stdout, "the check does not tell of it")
            check_goes_on("a", 1)
            run([tool("esdm-rm"), "--for-good", "a"])
            expect(not server.client().uploads(site.prefix), "removed with its container")
            run([MKFS, "--remove", "--yes"])
            expect(not server.client().keys(site.prefix), "something is left")


# ---- the end ------------------------------------------------------------------------------------


def test_s3__no_secret_was_printed():
    if not OUTPUTS:
        skip("no server was there")
    expect(len(OUTPUTS) > 100, f"only {len(OUTPUTS)} outputs were seen")
    for text in OUTPUTS:
        for secret in SECRETS:
            expect(secret not in text, f"a secret is in: {text}")


if not (s3server.pathlib.Path(tool("")).parent / "esdm/esdm-data-s3.so").exists():
    skip("this ESDM was built without S3")
main(*[test for name, test in list(globals().items()) if name.startswith("test_")])
