#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-serve: listing, search, structure, values and files over HTTP; what is hostile does no harm."""

import contextlib
import http.client
import json
import pathlib
import socket
import struct
import subprocess
import threading
import time
import urllib.parse

from esdmtest import SANITIZE, SOURCE, Site, by_size, client, expect, main, run, tool
from served import ask, fill, serving

HOSTILE = '<script>document.title="harmed"</script>"&\'><img src=x onerror=alert(1)>'


def get(port, path):
    reply, body = ask(port, path)
    expect(reply.status == 200, f"{path}: {reply.status} {body[:300]}")
    return json.loads(body)


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


def fill_large():
    client(["/usr/bin/python3", "-c", "import netCDF4, numpy\nd = netCDF4.Dataset('esdm://large.nc', 'w')\n"
            "d.createDimension('x', 8 << 20)\nd.createVariable('v', 'f4', ('x',))[:] = numpy.arange(8 << 20)\n"])


def ask_large(stack, port, room):
    """A connection that does not wait, and has room for so many bytes."""
    one = stack.enter_context(socket.socket())
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    one.connect(("127.0.0.1", port))
    one.sendall(b"GET /files/large.nc HTTP/1.1\r\nHost: localhost\r\n\r\n")
    one.setblocking(False)
    return one


def test_floods__clients_that_hardly_take_the_answer_give_their_place_to_others():
    """Each has asked for what does not fit into the buffers of its connection, and takes some bytes now and then."""
    with Site() as site:
        fill(site)
        fill_large()
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
                    flood.append(ask_large(stack, port, 4096))
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
        fill_large()
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
                    places.append(ask_large(stack, port, 60_000 if number else 150_000))
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


main(test_listing_search_and_structure, test_facets, test_views_are_browsed,
     test_files__whole_in_ranges_and_unchanged, test_what_a_query_joins, test_programs__read_ranges,
     test_hostile_names_and_values__are_text, test_slow_and_many_clients__others_are_answered,
     test_floods__clients_that_ask_for_nothing_give_their_place_to_others,
     test_floods__clients_that_hardly_take_the_answer_give_their_place_to_others,
     test_floods__clients_that_take_the_answer_at_leisure_give_their_place_when_others_wait,
     test_end__comes_in_time_beside_slow_clients)
