#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-serve: who is answered: other users of the machine, and who has the token, over TLS or not."""

import base64
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import socket
import ssl
import struct
import tempfile

from esdmtest import SANITIZE, Site, client, expect, expect_error, main, run, skip, tool
from served import ask, fill, serving

AS_ANOTHER = """
import http.client, os, sys
os.setgroups([]); os.setgid(64000); os.setuid(int(sys.argv[2]))
c = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=60)
c.request("GET", "/api/list")
r = c.getresponse()
print(r.status, r.read().decode())
"""


ANOTHER, UNMAPPED = 64000, int(pathlib.Path("/proc/sys/kernel/overflowuid").read_text())


def asked(port, user=ANOTHER):
    return run(["/usr/bin/python3", "-c", AS_ANOTHER, port, user]).stdout


def test_other_users_of_the_machine__read_what_the_directories_let_them():
    if os.geteuid() != 0:
        skip("only root can ask as another user")
    with Site() as site:
        fill(site)
        with serving(site) as (port, _):
            told = asked(port)
            expect(told.startswith("403") and "--all-users" in told and "exp/x.nc" not in told, told)
            expect(ask(port, "/api/list")[0].status == 200, "the own user")
            site.folder.chmod(0o755)
            told = asked(port)
            expect(told.startswith("200") and "exp/x.nc" in told, f"who can read the site: {told}")
            site.packs.chmod(0o700)
            expect(asked(port).startswith("403"), "who cannot read the packs")
            site.folder.chmod(0o700)
        with serving(site, "--all-users") as (port, _):
            expect(asked(port).startswith("200"), "--all-users")


def test_other_users__must_come_by_the_way_that_links_lead():
    if os.geteuid() != 0:
        skip("only root can ask as another user")
    with Site() as site, tempfile.TemporaryDirectory() as hidden:
        site.folder.chmod(0o755)
        site.packs.rename(pathlib.Path(hidden) / "packs")
        site.packs.symlink_to(pathlib.Path(hidden) / "packs")
        with serving(site) as (port, _):
            expect(asked(port).startswith("403"), "a link into a folder of the user's own")
            os.chmod(hidden, 0o755)
            expect(asked(port).startswith("200"), "a link into a folder that is open")


def test_other_users__that_the_server_cannot_tell_apart_read_nothing():
    """Those of other user namespaces have the number of the kernel's nobody."""
    if os.geteuid() != 0:
        skip("only root can ask as another user")
    with Site() as site:
        site.folder.chmod(0o755)
        with serving(site) as (port, _):
            expect(asked(port).startswith("200"), "who can read the site")
            expect(asked(port, UNMAPPED).startswith("403"), "nobody")
        if run(["unshare", "-U", "true"], check=False).returncode != 0:
            return
        with serving(site, under=["unshare", "-Ur"]) as (port, _):
            expect(ask(port, "/api/list")[0].status == 200, "root is the own user there")
            expect(asked(port).startswith("403"), "a stranger to the namespace")
        with serving(site, under=["unshare", "-U"]) as (port, _):   # which has that number itself
            expect(ask(port, "/api/list")[0].status == 403, "root is a stranger there")
            expect(asked(port).startswith("403"), "a stranger as the server's user is")


def test_other_users__do_not_read_with_the_rights_of_the_server():
    """What lies in no directory has no modes: the server would use its own keys."""
    if os.geteuid() != 0:
        skip("only root can ask as another user")
    with Site() as site:
        site.folder.chmod(0o755)
        was = site.config.read_text()
        more_targets, keys = json.loads(was), json.loads(was)
        more_targets["targets"].append({"name": "other", "plugin": "mem"})
        place = "https://127.0.0.1:9/bucket"
        keys["references"] = {"roots": [place], "s3": [{"url": place}]}
        with serving(site) as (port, _):
            for config, status in ((was, "200"), (json.dumps(more_targets), "403"), (json.dumps(keys), "403"), (was, "200")):
                site.config.write_text(config)
                told = asked(port)
                expect(told.startswith(status), f"{config}: {told}")
                expect(ask(port, "/api/list")[0].status == 200, "the own user")


def test_other_users__access_lists_are_no_right():
    if os.geteuid() != 0:
        skip("only root can ask as another user")
    with Site() as site:
        site.folder.chmod(0o755)
        # user::rwx, user:ANOTHER:---, group::r-x, mask::r-x, other::r-x: the mode stays 0755
        entries = ((1, 7, -1), (2, 0, ANOTHER), (4, 5, -1), (16, 5, -1), (32, 5, -1))
        listed = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *e) for e in entries)
        with serving(site) as (port, _):
            for folder in (site.packs, site.folder):
                try:
                    os.setxattr(folder, "system.posix_acl_access", listed)
                except OSError as e:
                    skip(f"no access lists here: {e}")
                expect(asked(port).startswith("403"), f"who is excluded from {folder}")
                os.removexattr(folder, "system.posix_acl_access")
                expect(asked(port).startswith("200"), f"{folder} without a list")


MISSED = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
/* The first two tables that are opened have no line. */
static FILE *opened(const char *name, const char *path, const char *mode)
{
    static int count;
    FILE *(*next)(const char *, const char *) = (FILE *(*)(const char *, const char *)) dlsym(RTLD_NEXT, name);
    if (strncmp(path, "/proc/net/tcp", 13) == 0 && count < 2) {
        count++;
        (void) !write(2, "missed\\n", 7);
        path = "/dev/null";
    }
    return next(path, mode);
}
FILE *fopen(const char *path, const char *mode) { return opened("fopen", path, mode); }
FILE *fopen64(const char *path, const char *mode) { return opened("fopen64", path, mode); }
"""


def test_own_user__a_table_that_misses_the_connection_is_read_again():
    if shutil.which("cc") is None or SANITIZE:
        skip("needs a C compiler, without a sanitizer")
    with Site() as site:
        site.file("missed.c").write_text(MISSED)
        run(["cc", "-shared", "-fPIC", "-o", site.file("missed.so"), site.file("missed.c"), "-ldl"])
        with serving(site, under=["env", f"LD_PRELOAD={site.file('missed.so')}"]) as (port, _):
            reply, body = ask(port, "/api/list")
            expect(reply.status == 200, f"{reply.status} {body}")
        expect("missed" in site.file("serve.log").read_text(), "no table was asked for")


def test_references__others_get_what_everybody_may_read():
    with Site() as site:
        text = "netcdf r { dimensions: x = 3; variables: int v(x); data: v = 1, 2, 3; }"
        site.file("r.cdl").write_text(text)
        for name in ("secret.nc", "given.nc"):
            run(["ncgen", "-k", "nc4", "-o", site.file(name), site.file("r.cdl")])
            site.file(name).chmod(0o600)
            run([tool("esdm-cp"), "--reference", site.file(name), f"esdm://{name}"])
        client(["ncdump", "esdm://secret.nc"])  # the user himself may
        with serving(site) as (port, _):
            reply, body = ask(port, "/api/values/secret.nc?variable=/v")
            expect(reply.status == 403 and b"references.roots" in body, f"{reply.status} {body}")
            with contextlib.suppress(http.client.IncompleteRead):  # the header is sent before values are read
                reply, body = ask(port, "/files/secret.nc")
                expect(False, f"the file was served: {reply.status} {body[-200:]}")
        folder = site.file("given")
        folder.mkdir()
        config = json.loads(site.config.read_text())
        config["references"] = {"roots": [str(folder)]}
        site.config.write_text(json.dumps(config))
        site.file("given.nc").rename(folder / "given.nc")
        run([tool("esdm-cp"), "-f", "--reference", folder / "given.nc", "esdm://given.nc"])
        with serving(site) as (port, _):
            expect(ask(port, "/api/values/secret.nc?variable=/v")[0].status == 403, "outside of the roots")
            body = ask(port, "/api/values/given.nc?variable=/v")[1]
            expect(len(body) == 12 and struct.unpack("<3f", body) == (1, 2, 3), f"below the roots: {body}")


def test_others__need_the_token():
    with Site() as site:
        fill(site)
        expect_error(run([tool("esdm-serve"), "--address", "0.0.0.0"], check=False), "token-file")
        site.file("token").write_text("short")
        expect_error(run([tool("esdm-serve"), "--token-file", site.file("token")], check=False), "letters")
        site.file("token").write_text("0123456789abcdefgh\n")
        with serving(site, "--token-file", site.file("token")) as (port, _):
            basic = base64.b64encode(b"me:0123456789abcdefgh").decode()
            for given, status in ((None, 401), ("Bearer wrong", 401), ("Bearer 0123456789abcdefgh", 200),
                                  (f"Basic {basic}", 200), ("Bearer 0123456789abcdefghi", 401)):
                for path in ("/", "/api/list", "/files/exp/x.nc"):
                    reply, _ = ask(port, path, headers={"Authorization": given} if given else {})
                    expect(reply.status == status, f"{path} with {given}: {reply.status}")


def make_certificate(folder):
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate])
    key.chmod(0o600)
    return key, certificate


def test_others__get_what_is_encrypted():
    with Site() as site:
        fill(site)
        token = site.file("token")
        token.write_text("0123456789abcdefgh\n")
        key, certificate = make_certificate(site.folder)
        others = [tool("esdm-serve"), "--port", "0", "--address", "0.0.0.0", "--token-file", token]
        expect_error(run(others, check=False), "--certificate", "--plain")
        expect_error(run([*others, "--plain", "--certificate", certificate], check=False), "--plain")
        expect_error(run([*others, "--key", key], check=False), "--certificate")
        expect_error(run([*others, "--certificate", certificate], check=False), "private key", "certificate.pem")
        expect_error(run([*others, "--certificate", site.file("none"), "--key", key], check=False), "none")
        other = site.file("other")
        other.mkdir()
        strange, _ = make_certificate(other)
        expect_error(run([*others, "--certificate", certificate, "--key", strange], check=False), "cannot listen")
        bearer = {"Authorization": "Bearer 0123456789abcdefgh"}
        with serving(site, "--address", "0.0.0.0", "--token-file", token, "--plain") as (port, _):
            expect(ask(port, "/api/list")[0].status == 401 and ask(port, "/api/list", headers=bearer)[0].status == 200,
                   "--plain")
        with serving(site, "--address", "0.0.0.0", "--token-file", token, "--certificate", certificate, "--key", key) as (port, _):
            trusted = ssl.create_default_context(cafile=certificate)
            expect(ask(port, "/api/list", tls=trusted)[0].status == 401, "without the token")
            reply, body = ask(port, "/files/exp/x.nc", headers=bearer, tls=trusted)
            expect(reply.status == 200 and body[1:4] == b"HDF", f"{reply.status} {body[:10]}")
            reply, part = ask(port, "/files/exp/x.nc", headers={**bearer, "Range": "bytes=100-199"}, tls=trusted)
            expect(reply.status == 206 and part == body[100:200], f"{reply.status}")
            try:
                ask(port, "/api/list", headers=bearer, tls=ssl.create_default_context())
                expect(False, "a certificate that nobody vouches for was taken")
            except ssl.SSLCertVerificationError:
                pass
            with contextlib.suppress(OSError, http.client.HTTPException):
                expect(ask(port, "/api/list", headers=bearer)[0].status not in (200, 401), "answered without TLS")
            with contextlib.ExitStack() as stack:  # who begins no TLS holds nobody up
                for _ in range(50):
                    stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60)).sendall(b"x")
                expect(ask(port, "/api/list", headers=bearer, tls=trusted)[0].status == 200, "beside silent clients")


main(test_other_users_of_the_machine__read_what_the_directories_let_them,
     test_other_users__must_come_by_the_way_that_links_lead,
     test_other_users__that_the_server_cannot_tell_apart_read_nothing,
     test_other_users__do_not_read_with_the_rights_of_the_server, test_other_users__access_lists_are_no_right,
     test_own_user__a_table_that_misses_the_connection_is_read_again, test_others__need_the_token,
     test_others__get_what_is_encrypted, test_references__others_get_what_everybody_may_read)
