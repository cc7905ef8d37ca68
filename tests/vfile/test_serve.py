#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-serve: listing, search, structure, values and files over HTTP; what is hostile does no harm."""

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
import subprocess
import tempfile
import threading
import time
import urllib.parse

from esdmtest import SANITIZE, SOURCE, Site, by_size, client, expect, expect_error, main, need_data, run, skip, tool
from served import ask, serving

HOSTILE = '<script>document.title="harmed"</script>"&\'><img src=x onerror=alert(1)>'


def get(port, path):
    reply, body = ask(port, path)
    expect(reply.status == 200, f"{path}: {reply.status} {body[:300]}")
    return json.loads(body)


def fill(site):
    site.file("x.cdl").write_text(
        "netcdf x { dimensions: t = UNLIMITED; y = 3; x = 4; variables: short v(t, y, x); v:scale_factor = 0.5f; "
        'v:add_offset = 10.0; v:_FillValue = -1s; v:units = "K"; double t(t); data: t = 5, 6; v = 0, 1, 2, 3, 4, 5, 6, '
        "7, 8, 9, 10, 11, -1, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23; group: g { variables: int w(y); "
        "data: w = 1, 2, 3; } }")
    run(["ncgen", "-k", "nc4", "-o", site.file("x.nc"), site.file("x.cdl")])
    run([tool("esdm-cp"), site.file("x.nc"), "esdm://exp/x.nc"])
    run([tool("esdm-cp"), min(pathlib.Path(need_data("fields")).glob("*.nc"), key=lambda p: p.stat().st_size),
         "esdm://fields/real.nc"])


def test_views_are_browsed():
    with Site(views={"units": "{kind}/{part}"}) as site:
        for i in (1, 2):
            cdl = site.file(f"{i}.cdl")
            cdl.write_text('netcdf x { dimensions: time = UNLIMITED ; variables: double time(time) ; time:units = '
                           f'"days since 2000-01-01" ; :kind = "a/b" ; :part = "one" ; data: time = {i} ; }}')
            run(["ncgen", "-k", "nc4", "-o", site.file(f"{i}.nc"), cdl])
            run([tool("esdm-cp"), site.file(f"{i}.nc"), f"esdm://in/{i}.nc"])
        with serving(site) as (port, _):
            views = get(port, "/api/views/")["views"]
            expect([v["name"] for v in views] == ["cmip6", "cmip7", "cordex", "units"], f"{views}")
            expect(views[3]["template"] == "{kind}/{part}", f"{views}")
            expect(get(port, "/api/views/units:")["places"] == [{"name": "a%2Fb", "containers": 2, "folder": True}],
                   "first level")
            place = urllib.parse.quote("units:/a%2Fb")
            expect(get(port, f"/api/views/{place}")["places"] == [{"name": "one", "containers": 2, "folder": False}],
                   "last level")
            there = get(port, f"/api/views/{place}/one")["containers"]
            expect([c["name"] for c in there] == ["in/1.nc", "in/2.nc"], f"{there}")
            expect(get(port, f"/api/container/{place}/one")["datasets"][0]["dimensions"][0]["length"] == 2, "as one")
            expect(get(port, "/api/views/units:/none")["containers"] == [], "nothing")
            for wrong, status in (("/api/views/none:", 404), ("/api/views/units:/a/b/c", 404)):
                expect(ask(port, wrong)[0].status == status, wrong)


def test_facets():
    with Site() as site:
        for number, (model, kind) in enumerate((("A", "x"), ("A", "y"), ("B", HOSTILE))):
            site.file("f.cdl").write_text("netcdf f { dimensions: x = 1; variables: int v(x); data: v = 1; }")
            run(["ncgen", "-k", "nc4", "-o", site.file(f"{number}.nc"), site.file("f.cdl")])
            run([tool("esdm-cp"), site.file(f"{number}.nc"), f"esdm://{number}.nc"])
            run([tool("esdm-attr"), "-s", f"model={model}", "-s", f"kind={kind}", f"{number}.nc"])
        with serving(site) as (port, _):
            def facets(query):
                return [(f["name"], [(v["value"], v["containers"]) for v in f["values"]])
                        for f in get(port, "/api/facets?" + urllib.parse.urlencode(query))["facets"]]
            told = facets({"names": "model,kind,none"})
            expect(told[0] == ("model", [("A", 2), ("B", 1)]) and told[2] == ("none", []), f"{told}")
            expect(sorted(told[1][1]) == sorted([("x", 1), ("y", 1), (HOSTILE, 1)]), f"{told}")
            told = facets({"names": "model,kind", "q": "kind = x or kind = y"})
            expect(told[0] == ("model", [("A", 2)]) and len(told[1][1]) == 2, f"{told}")


def test_listing_search_and_structure():
    with Site() as site:
        fill(site)
        with serving(site) as (port, _):
            names = [c["name"] for c in get(port, "/api/list")["containers"]]
            expect(names == ["exp/x.nc", "fields/real.nc"], f"list: {names}")
            expect(len(get(port, "/api/list?prefix=exp")["containers"]) == 1, "prefix")
            page = get(port, "/api/list?limit=1")
            expect(page["more"] and get(port, "/api/list?after=exp/x.nc")["containers"][0]["name"] == names[1], "pages")
            found = get(port, "/api/find?q=" + urllib.parse.quote("v:units = K"))["matches"]
            expect(found == [{"container": "exp/x.nc", "dataset": "/v"}], f"find: {found}")
            found = get(port, "/api/find?q=" + urllib.parse.quote("v:unts = K"))
            expect(found["matches"] == [] and "did you mean" in found["why"][0], f"a slip of the pen: {found}")
            found = get(port, "/api/find?q=" + urllib.parse.quote("v:units = m"))
            expect(found["matches"] == [] and found["why"] == [], f"{found}")
            tree = get(port, "/api/container/exp/x.nc")
            v = next(d for d in tree["datasets"] if d["name"] == "v")
            expect([d["length"] for d in v["dimensions"]] == [2, 3, 4] and v["dimensions"][0]["unlimited"], f"{v}")
            expect(next(a for a in v["attributes"] if a["name"] == "units")["values"] == "K", f"{v}")
            expect(tree["groups"][0]["datasets"][0]["path"] == "/g/w", f"{tree['groups']}")
            expect(len(get(port, "/api/snapshots/exp/x.nc")["snapshots"]) == 1, "snapshots")
            told = get(port, "/api/fragments/exp/x.nc?variable=/v")
            expect(told["count"] >= 1 and sum(t["fragments"] for t in told["targets"].values()) == told["count"] and
                   sum(c["stored_bytes"] for c in told["codecs"].values()) == told["stored_bytes"] and
                   list(told["targets"]) == sorted({f["target"] for f in told["fragments"]}), f"fragments: {told}")
            expect("accuracy" not in told, f"nothing was stated: {told}")
            body = ask(port, "/api/values/exp/x.nc?variable=/t&type=double")[1]
            expect(struct.unpack("<2d", body) == (5, 6), "doubles")
            body = ask(port, "/api/values/exp/x.nc?variable=/v&start=1,0,0&count=1,2,2&stride=1,1,3")[1]
            values = struct.unpack("<4f", body)
            expect(values[0] != values[0] and values[1:] == (17.5, 18.0, 19.5), f"values: {values}")
            for path, status in (("/api/values/exp/x.nc?variable=/v&start=1,0,0&count=2,1,1", 400),
                                 ("/api/values/exp/x.nc?variable=/v&start=1", 400),
                                 ("/api/values/exp/x.nc?variable=/none", 404), ("/api/find?q=a+%3D", 400),
                                 ("/api/values/exp/x.nc?variable=/v&count=18446744073709551615,1,1", 400),
                                 ("/api/values/exp/x.nc?variable=/v&stride=0,1,1", 400),
                                 ("/api/values/exp/x.nc?variable=/v&type=half", 400), ("/api/facets", 400),
                                 ("/api/facets?names=a,,b", 400), ("/api/facets?names=" + "a," * 32 + "a", 400),
                                 ("/api/facets?names=a&q=b+%3D", 400),
                                 ("/api/container/none", 404), ("/api/container/../x", 400), ("/none", 404),
                                 ("/api/container/exp/x.nc?snapshot=99", 404), ("/files/none.nc", 404),
                                 ("/api/container/exp/x.nc?snapshot=x", 400), ("/files/exp/x.nc?format=hdf4", 400)):
                reply, body = ask(port, path)
                expect(reply.status == status and json.loads(body)["error"], f"{path}: {reply.status} {body[:200]}")
            expect(ask(port, "/api/list", "DELETE")[0].status == 405, "DELETE")
            expect(ask(port, "/api/list", headers={"Host": "evil.example"})[0].status == 421, "another name")


def test_files__whole_in_ranges_and_unchanged():
    with Site() as site:
        fill(site)
        with serving(site) as (port, _):
            reply, whole = ask(port, "/files/fields/real.nc")
            tag = reply.getheader("ETag")
            site.file("whole.nc").write_bytes(whole)
            run([tool("esdm-cp"), "esdm://fields/real.nc", site.file("exported.nc")])
            expect(run(["ncdump", site.file("whole.nc")]).stdout.split("\n", 1)[1] ==
                   run(["ncdump", site.file("exported.nc")]).stdout.split("\n", 1)[1], "another file")
            head, none = ask(port, "/files/fields/real.nc", "HEAD")
            expect(int(head.getheader("Content-Length")) == len(whole) and none == b"", "HEAD")
            for wanted, part in (("bytes=0-9", whole[:10]), ("bytes=1000-4999", whole[1000:5000]), ("bytes=-7", whole[-7:]),
                                 (f"bytes={len(whole) - 5}-", whole[-5:]), ("bytes=10-999999999999", whole[10:])):
                reply, body = ask(port, "/files/fields/real.nc", headers={"Range": wanted})
                expect(reply.status == 206 and body == part, f"{wanted}: {reply.status}, {len(body)} bytes")
            for wanted in ("bytes=5-2", "lines=1-2", "bytes=0-1,4-5", "bytes=x-", "bytes=-"):
                expect(ask(port, "/files/fields/real.nc", headers={"Range": wanted})[1] == whole, f"{wanted}")
            expect(ask(port, "/files/fields/real.nc", headers={"Range": f"bytes={len(whole)}-"})[0].status == 416, "416")
            expect(ask(port, "/files/fields/real.nc", headers={"If-None-Match": f'"x", {tag}'})[0].status == 304, "304")
            expect(ask(port, "/files/fields/real.nc", headers={"Range": "bytes=0-1", "If-Range": '"x"'})[1] == whole, "If-Range")
            run([tool("esdm-cp"), "--force", site.file("x.nc"), "esdm://fields/real.nc"])
            expect(ask(port, "/files/fields/real.nc", "HEAD")[0].getheader("ETag") != tag, "an old ETag")


def test_what_a_query_joins():
    with Site() as site:
        def add(number):
            path = site.file(f"{number}.nc")
            site.file("m.cdl").write_text(
                "netcdf m { dimensions: t = UNLIMITED; variables: double t(t); int v(t); "
                f':pair = "p"; data: t = {number}; v = {number}; }}')
            run(["ncgen", "-k", "nc4", "-o", path, site.file("m.cdl")])
            run([tool("esdm-cp"), path, f"esdm://{number}.nc"])

        def told(port):
            reply, body = ask(port, "/files/%3Fpair=p")
            expect(reply.status == 200, f"{reply.status} {body[:300]}")
            site.file("got.nc").write_bytes(body)
            return run(["ncdump", "-v", "v", site.file("got.nc")]).stdout
        add(1)
        add(2)
        run([tool("esdm-ln"), "esdm://?pair=p", "esdm://saved"])
        with serving(site) as (port, _):
            def saved():
                shape = get(port, "/zarr/saved/v/zarr.json")["shape"]
                site.file("got.nc").write_bytes(ask(port, "/files/saved")[1])
                expect("v(t)" in run(["ncdump", "-h", site.file("got.nc")]).stdout, "no file")
                dds = ask(port, "/dap/saved.dds?v")[1].decode()
                values = run(["ncdump", "-v", "v", site.file("got.nc")]).stdout.rpartition("v = ")[2].split(" ;")[0]
                return shape, f"t = {shape[0]}]" in dds, values
            expect(saved() == ([2], True, "1, 2"), f"saved: {saved()}")
            expect("v = 1, 2 ;" in told(port), "two")
            client(["/usr/bin/python3", "-c", "import netCDF4\nwith netCDF4.Dataset('esdm://2.nc', 'a') as d:\n"
                    "    d['t'][1] = 3\n    d['v'][1] = 3"])
            expect("v = 1, 2, 3 ;" in told(port), "what was added is not seen")
            for query, why in (("titel = = 3", "query, column 9: expected a value"),
                               ("titel=3", "no container has an attribute 'titel'")):
                reply, body = ask(port, "/files/" + urllib.parse.quote("?" + query))
                expect(reply.status in (400, 404) and why in json.loads(body)["error"], f"{reply.status} {body}")
            time.sleep(1.1)
            expect(saved() == ([3], True, "1, 2, 3"), f"what was added is not seen by the name: {saved()}")


def test_programs__read_ranges():
    with Site() as site:
        fill(site)
        with serving(site) as (port, _):
            url = f"http://localhost:{port}/files/exp/x.nc"
            settings = subprocess.run(["nc-config", "--all"], capture_output=True, text=True, check=False).stdout
            script = SOURCE / "tests/vfile/read_ranges.py"
            done = subprocess.run(["/usr/bin/python3", script, url], capture_output=True, text=True, check=False)
            expect(done.returncode == 0 or "No module named" in done.stderr, done.stderr)
            expect(done.returncode != 0 or done.stdout.split() == ["21", "2"], done.stdout)
            dump = subprocess.run(["ncdump", "-h", url + "#mode=bytes"], capture_output=True, text=True, check=False)
            print("ncdump #mode=bytes:", dump.returncode, dump.stderr.strip(), "byterange" in settings)


def test_hostile_names_and_values__are_text():
    with Site() as site:
        site.file("h.py").write_text(
            "import netCDF4, sys\nd = netCDF4.Dataset(sys.argv[1], 'w')\nd.createDimension('x', 2)\n"
            f"v = d.createVariable('v', 'f4', ('x',))\nv.units = {HOSTILE!r}\nd.title = {HOSTILE!r}\nv[:] = 1\nd.close()\n")
        run(["/usr/bin/python3", site.file("h.py"), site.file("h.nc")])
        name = "a<b>&\"c'!%41.nc"
        run([tool("esdm-cp"), site.file("h.nc"), f"esdm://{name}"])
        with serving(site) as (port, _):
            expect(get(port, "/api/list")["containers"][0]["name"] == name, "name")
            reply, body = ask(port, "/api/container/" + urllib.parse.quote(name))
            expect(json.loads(body)["attributes"][0]["values"] == HOSTILE, "value")
            expect(reply.getheader("Content-Type").startswith("application/json"), "type")
            expect(reply.getheader("X-Content-Type-Options") == "nosniff", "nosniff")
            expect("script-src 'self'" in reply.getheader("Content-Security-Policy"), "policy")
            for path in ("/", "/base.js", "/page.js", "/browse.js", "/storage.js", "/axes.js", "/picture.js", "/coast.js", "/page.css"):
                reply, body = ask(port, path)
                expect(reply.status == 200 and b"innerHTML" not in body and b"http://" not in body, f"{path}")


def test_slow_and_many_clients__others_are_answered():
    with Site() as site:
        fill(site)
        with serving(site) as (port, server), contextlib.ExitStack() as stack:
            for i in range(100):
                slow = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
                slow.sendall(b"GET /files/fields/real.nc HTTP/1.1\r\nHost: localhost\r\n" + (b"\r\n" if i % 2 else b""))
            time.sleep(0.2)
            expect(ask(port, "/api/list")[0].status == 200, "no answer beside slow clients")
            junk = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
            with contextlib.suppress(OSError):
                junk.sendall(b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 1000000 + b"\r\n\r\n")
            expect(ask(port, "/api/list")[0].status == 200, "no answer after a long header")
            memory = int(pathlib.Path(f"/proc/{server.pid}/status").read_text().split("VmHWM:")[1].split()[0])
            expect(SANITIZE or memory < 256 * 1024, f"{memory} KiB of memory")


def test_floods__clients_that_ask_for_nothing_give_their_place_to_others():
    """More of them than the server has places; some send a byte now and then, and would never be idle."""
    with Site() as site:
        fill(site)
        with serving(site) as (port, server), contextlib.ExitStack() as stack:
            flood = []
            for i in range(by_size(300, 600, 600)):
                slow = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
                slow.setblocking(False)
                flood.append(slow)
            over = threading.Event()

            def drip():
                while not over.wait(0.3):
                    for slow in flood[::2]:
                        with contextlib.suppress(OSError):
                            slow.send(b"G")

            dripping = threading.Thread(target=drip)
            dripping.start()
            try:
                for _ in range(3):
                    began = time.monotonic()
                    expect(ask(port, "/api/list")[0].status == 200, "no answer in a flood")
                    print(f"{time.monotonic() - began:.1f} s in a flood", flush=True)
            finally:
                over.set()
                dripping.join()
            expect(server.poll() is None, "the server has ended")
            kept = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            for _ in range(2):      # one connection goes on with the next request
                kept.request("GET", "/api/list")
                expect(kept.getresponse().read(), "kept")
            kept.close()


def test_floods__clients_that_hardly_take_the_answer_give_their_place_to_others():
    """Each has asked for what does not fit into the buffers of its connection, and takes some bytes now and then."""
    with Site() as site:
        fill(site)
        client(["/usr/bin/python3", "-c", "import netCDF4, numpy\nd = netCDF4.Dataset('esdm://large.nc', 'w')\n"
                "d.createDimension('x', 8 << 20)\nd.createVariable('v', 'f4', ('x',))[:] = numpy.arange(8 << 20)\n"])
        with serving(site) as (port, server), contextlib.ExitStack() as stack:
            flood, over = [], threading.Event()

            def sip():
                while not over.wait(0.3):
                    for slow in list(flood):
                        with contextlib.suppress(OSError):
                            slow.recv(100)

            sipping = threading.Thread(target=sip)
            sipping.start()
            try:
                for _ in range(128):
                    slow = socket.socket()
                    stack.enter_context(slow)
                    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                    slow.connect(("127.0.0.1", port))
                    slow.sendall(b"GET /files/large.nc HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    slow.setblocking(False)
                    flood.append(slow)
                time.sleep(1)
                expect(ask(port, "/api/list")[0].status == 200, "no answer in a flood")
            finally:
                over.set()
                sipping.join()
            body = ask(port, "/files/large.nc")[1]  # who takes it gets all of it
            expect(len(body) > 32 << 20 and server.poll() is None, f"{len(body)} bytes")


def test_floods__clients_that_take_the_answer_at_leisure_give_their_place_when_others_wait():
    """Each takes some 200 KB/s, three times what is too slow at any time. Who takes it faster keeps its place."""
    with Site() as site:
        fill(site)
        client(["/usr/bin/python3", "-c", "import netCDF4, numpy\nd = netCDF4.Dataset('esdm://large.nc', 'w')\n"
                "d.createDimension('x', 8 << 20)\nd.createVariable('v', 'f4', ('x',))[:] = numpy.arange(8 << 20)\n"])
        with serving(site) as (port, server), contextlib.ExitStack() as stack:
            places, over, ended = [], threading.Event(), set()

            def take():
                while not over.wait(0.3):
                    for number, one in enumerate(list(places)):
                        with contextlib.suppress(OSError):
                            if one.recv(60_000 if number else 150_000) == b"":
                                ended.add(number)

            taking = threading.Thread(target=take)
            taking.start()
            try:
                for number in range(128):
                    one = socket.socket()
                    stack.enter_context(one)
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 60_000 if number else 150_000)
                    one.connect(("127.0.0.1", port))
                    one.sendall(b"GET /files/large.nc HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    one.setblocking(False)
                    places.append(one)
                time.sleep(12)
                expect(len(ended) <= 3, f"{len(ended)} have lost their place, though nobody waits")
                began = time.monotonic()
                for _ in range(5):  # each needs a place of its own
                    kept = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                    stack.callback(kept.close)
                    kept.request("GET", "/api/list")
                    expect(kept.getresponse().status == 200, "no answer in a flood")
                print(f"{time.monotonic() - began:.1f} s in a flood", flush=True)
                expect(time.monotonic() - began < 30, f"{time.monotonic() - began:.1f} s in a flood")
                time.sleep(1)
                expect(0 not in ended and len(ended) <= 12, f"{sorted(ended)} have lost their place")
            finally:
                over.set()
                taking.join()
            expect(server.poll() is None, "the server has ended")


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


def test_end__comes_in_time_beside_slow_clients():
    with Site() as site:
        fill(site)
        with serving(site) as (port, server), contextlib.ExitStack() as stack:
            for i in range(60):
                slow = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
                slow.sendall(b"GET /files/fields/real.nc HTTP/1.1\r\nHost: localhost\r\n" + (b"\r\n" if i % 2 else b""))
            expect(ask(port, "/api/list")[0].status == 200, "no answer beside slow clients")
            server.terminate()
            expect(server.wait(60) == 0, f"ended with {server.returncode}: {site.file('serve.log').read_text()}")
            try:
                socket.create_connection(("127.0.0.1", port), timeout=60).close()
                expect(False, "the port is still open")
            except ConnectionRefusedError:
                pass


main(test_listing_search_and_structure, test_facets, test_views_are_browsed, test_files__whole_in_ranges_and_unchanged, test_what_a_query_joins,
     test_programs__read_ranges, test_hostile_names_and_values__are_text, test_slow_and_many_clients__others_are_answered,
     test_floods__clients_that_ask_for_nothing_give_their_place_to_others,
     test_floods__clients_that_hardly_take_the_answer_give_their_place_to_others,
     test_floods__clients_that_take_the_answer_at_leisure_give_their_place_when_others_wait,
     test_other_users_of_the_machine__read_what_the_directories_let_them, test_other_users__must_come_by_the_way_that_links_lead,
     test_other_users__that_the_server_cannot_tell_apart_read_nothing, test_other_users__do_not_read_with_the_rights_of_the_server,
     test_other_users__access_lists_are_no_right, test_own_user__a_table_that_misses_the_connection_is_read_again,
     test_others__need_the_token, test_others__get_what_is_encrypted, test_end__comes_in_time_beside_slow_clients,
     test_references__others_get_what_everybody_may_read)
