#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Kyoto Cabinet as data target: killed and stopped processes, full disks, other users, real files;
together with PostgreSQL."""

import os
import random
import re
import signal
import subprocess
import time

from esdmtest import (BUILD, Site, by_size, client, environment, expect, expect_error, main,
                      need_data, run, skip, tool)
from faults import PROGRAM, Writer, check_goes_on, committed, generation, must, program, shown
from postgres import Server, binaries

TARGETS = [{"name": "tiny", "plugin": "kv", "directory": "kv"}]

# Holds locks on all databases of a folder, as a process does that has them open for writing.
HOLDER = """
import fcntl, pathlib, sys, time
held = []
for path in sorted(pathlib.Path(sys.argv[1]).glob(sys.argv[2])):
    file = open(path, "r+b")
    fcntl.lockf(file, fcntl.LOCK_EX)
    held.append(file)
print(len(held), flush=True)
time.sleep(600)
"""


class Holder:
    """A process that has the databases locked."""

    def __init__(self, folder, pattern="s-*.kch"):
        self.command = ["/usr/bin/python3", "-c", HOLDER, str(folder), pattern]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True)
        self.count = int(self.process.stdout.readline())
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def need_kv():
    if not (BUILD / "esdm/esdm-data-kv.so").exists():
        skip("built without Kyoto Cabinet (package libkyotocabinet-dev)")


WRITE_BESIDE_READS = """
import netCDF4, numpy
d = netCDF4.Dataset("esdm://beside.nc", "w")
d.createDimension("time", None)
d.createDimension("cell", 1000)
d.createVariable("stored", "f8", ("cell",))[:] = numpy.arange(1000.)
d.createVariable("v", "f8", ("time", "cell"))
d.createVariable("again", "f8", ("time", "cell"))
d.sync()
odd = numpy.arange(1000) % 2 / 4  # equal values take no pack
for i in range(40):
    d["v"][2 * i, :] = i + odd
    assert d["stored"][i] == i
d["again"][0, :] = 7.
d["again"][5, :] = 8.
assert (d["again"][0] == 7.).all() and (d["v"][78] == 39 + odd).all()
d.close()
"""


def test_kv__reads_of_other_data_end_no_packs():
    need_kv()
    with Site(targets=TARGETS, engine={"inline": 0, "threads": 1}):
        client(["/usr/bin/python3", "-c", WRITE_BESIDE_READS])
        told = run([tool("esdm-stat"), "esdm://beside.nc", "--fragments"]).stdout
        packs = set(re.findall(r"tiny (\S+) @", told))
        expect(told.count("tiny ") > 40 and 2 <= len(packs) <= 4, f"{len(packs)} packs: {told}")


def test_kv__real_files_come_back():
    need_kv()
    files = sorted(need_data("cmip6").rglob("*.nc"), key=lambda p: p.stat().st_size)
    # The journal would stay: databases are counted.
    with Site(targets=TARGETS, engine={"inline": 0}, backup={"journal": False, "every": 0}) as site:
        for source in files[:3]:
            name = source.name
            run([tool("esdm-cp"), source, f"esdm://cp/{name}"])
            client(["nccopy", source, f"esdm://nccopy/{name}"])
            for how in ("cp", "nccopy"):
                got = client(["ncdump", f"esdm://{how}/{name}"]).stdout.split("\n", 1)[1]
                expect(got == run(["ncdump", source]).stdout.split("\n", 1)[1], f"{how} {name}")
        databases = list(site.file("kv").glob("*.kch"))
        expect(databases, "no databases")
        run([tool("esdm-mkfs"), "--check"])
        for name in run([tool("esdm-ls")]).stdout.split():
            run([tool("esdm-rm"), "--for-good", f"esdm://{name}"])
        left = list(site.file("kv").glob("*.kch"))
        expect(left == [], f"databases are left: {left}")
        run([tool("esdm-mkfs"), "--remove", "--yes"])
        expect(not site.file("kv").exists(), "the folder is left")


def test_kv__writers_killed_at_random():
    need_kv()
    generator = random.Random(2)
    with Site(targets=TARGETS):
        must("write", "a", 1, 1)
        last = 1
        for _ in range(by_size(4, 12, 100)):
            with Writer("a", last + 1, 1000000) as writer:
                writer.wait_for("started")
                time.sleep(0.05 + generator.random() * 0.15)
                told = max(committed(writer.kill()), last)
            last = generation("a")
            expect(told <= last <= told + 1, f"generation {last}, told {told}")
        check_goes_on("a", last)
        run([tool("esdm-mkfs"), "--check"])


def test_kv__killed_in_a_transaction():
    """At each of the writes that put a pack into its shard."""
    need_kv()
    if subprocess.run(["strace", "-o", "/dev/null", "true"], stderr=subprocess.DEVNULL,
                      check=False).returncode:
        skip("strace may not trace here")
    with Site(targets=TARGETS):
        killed = 0
        for call in ("pwrite64", "ftruncate", "unlink", "fcntl"):
            for number in by_size((1, 5), (1, 2, 4, 8, 16, 32), range(1, 60)):
                name = f"{call}-{number}"
                must("write", name, 1, 1)
                done = program("write", name, 2, 4, prefix=[
                    "strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e",
                    f"inject={call}:signal=SIGKILL:when={number}"])
                killed += done.returncode != 0
                told = max(committed(done), 1)
                found = generation(name)
                expect(told <= found <= told + 1, f"{name}: {found}, told {told}\n{shown(done)}")
                check_goes_on(name, found)
        expect(killed > 4, f"only {killed} were killed")
        run([tool("esdm-mkfs"), "--check"])


def test_kv__killed_while_a_shard_is_made():
    """What is left has another name: it can neither be taken for a database nor stay."""
    need_kv()
    if subprocess.run(["strace", "-o", "/dev/null", "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        skip("strace may not trace here")
    with Site(targets=TARGETS, engine={"inline": 0}) as site:
        must("write", "a", 1, 1)
        before = sorted(site.file("kv").glob("s-*.kch"))
        done = program("write", "b", 1, 1, prefix=["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=renameat2",
                                                   "-P", site.file("kv"), "-e", "inject=renameat2:signal=SIGKILL:when=1"])
        expect(done.returncode != 0, shown(done))
        left = list(site.file("kv").glob(f"p-{'f' * 32}-*.kch"))
        expect(len(left) == 1 and sorted(site.file("kv").glob("s-*.kch")) == before, f"{left}")
        left[0].write_bytes(left[0].read_bytes()[:100])  # as after a loss of power
        run([tool("esdm-mkfs"), "--check"])
        run([tool("esdm-fsck"), "--data"])
        run([tool("esdm-gc"), "--yes"])
        expect(left[0].exists(), "it may be that of somebody who is about to go on")
        told = run([tool("esdm-gc"), "--yes", "--age", "0"]).stdout
        expect(not left[0].exists() and sorted(site.file("kv").glob("s-*.kch")) == before, told)
        check_goes_on("a", 1)


def test_kv__shard_locked_by_a_stopped_process():
    need_kv()
    with Site(targets=TARGETS) as site:
        client(["ncgen", "-o", "esdm://x.nc", write_cdl(site)])
        with Holder(site.file("kv")) as holder:
            expect(holder.count > 0, "no shard")
            # A writer gets past it.
            client(["ncgen", "-o", "esdm://y.nc", write_cdl(site)])
            expect("3499 ;" in client(["ncdump", "esdm://y.nc"]).stdout, "y.nc")
            holder.process.send_signal(signal.SIGSTOP)
            done = run([tool("esdm-cp"), "esdm://x.nc", site.file("out.nc")], check=False)
            expect_error(done, f"locked by process {holder.process.pid}", "stopped")
        expect("3499 ;" in client(["ncdump", "esdm://x.nc"]).stdout, "x.nc after the holder's end")


def write_cdl(site):
    path = site.file("x.cdl")
    path.write_text("netcdf x { dimensions: t = 7 ; n = 500 ; variables: int v(t) ; "
                    "double w(t, n) ; data: v = 1, 2, 3, 4, 5, 6, 7 ; w = "
                    + ", ".join(str(i) for i in range(3500)) + " ; }")
    return path


def test_kv__full_disk_keeps_what_is_there():
    need_kv()
    if os.geteuid() != 0:
        skip("mounting needs root")
    with Site(make=False, targets=TARGETS) as site:
        site.file("kv").mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", site.file("kv")],
                          stderr=subprocess.DEVNULL, check=False).returncode:
            skip("mounting is not permitted")
        try:
            run([tool("esdm-mkfs")])
            must("write", "a", 1, 1)
            done = program("write", "b", 1, 1000)
            expect(done.returncode == 3 and "no space" in done.stderr, shown(done))
            expect(generation("a") == 1, "a is lost")
            if committed(done) > 0:
                expect(generation("b") == committed(done), "b has not its last commit")
            expect_error(run([tool("esdm-mkfs"), "--check"], check=False), "full")
            if committed(done) > 0:
                run([tool("esdm-rm"), "--for-good", "esdm://b"])
            subprocess.run(["mount", "-o", "remount,size=200m", site.file("kv")], check=True)
            check_goes_on("a", 1)
        finally:
            subprocess.run(["umount", site.file("kv")], check=False)


def test_kv__many_processes_and_postgres():
    """Metadata in PostgreSQL, data in Kyoto Cabinet and files; several writers and readers."""
    need_kv()
    if binaries() is None:
        skip("PostgreSQL is not installed (package postgresql-15)")
    with Server() as server, Site(
            targets=TARGETS + [{"name": "disk", "plugin": "posix", "directory": "packs"}],
            metadata={"plugin": "postgres", "connection": server.connection()}):
        last = by_size(3, 6, 30)
        writers = [subprocess.Popen([PROGRAM, "write", f"c{i}", "1", str(last)], env=environment(),
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                   for i in range(4)]
        must("write", "read", 1, 1)
        while any(writer.poll() is None for writer in writers):
            expect(generation("read") == 1, "reader")
        for i, writer in enumerate(writers):
            _, text = writer.communicate()
            expect(writer.returncode == 0, text)
            expect(generation(f"c{i}") == last, f"c{i}")
        source = sorted(need_data("cmip6").rglob("*.nc"), key=lambda p: p.stat().st_size)[0]
        run([tool("esdm-cp"), source, "esdm://real.nc"])
        got = client(["ncdump", "esdm://real.nc"]).stdout.split("\n", 1)[1]
        expect(got == run(["ncdump", source]).stdout.split("\n", 1)[1], "real.nc differs")
        expect("real.nc" in run([tool("esdm-find"), 'units = "K"']).stdout, "not found")
        run([tool("esdm-mkfs"), "--check"])


def test_kv__other_programs_do_not_load_it():
    need_kv()
    command = ["/usr/bin/python3", "-c",
               "import netCDF4; d = netCDF4.Dataset('esdm://x.nc', 'w'); d.close(); "
               "print('kyoto' in open('/proc/self/maps').read())"]
    with Site(targets=TARGETS):
        expect(client(command).stdout.strip() == "True", "Kyoto Cabinet is not loaded")
    with Site():
        expect(client(command).stdout.strip() == "False", "it is loaded without need")


if __name__ == "__main__":
    main(test_kv__reads_of_other_data_end_no_packs,
         test_kv__real_files_come_back,
         test_kv__writers_killed_at_random,
         test_kv__killed_in_a_transaction,
         test_kv__killed_while_a_shard_is_made,
         test_kv__shard_locked_by_a_stopped_process,
         test_kv__full_disk_keeps_what_is_there,
         test_kv__many_processes_and_postgres,
         test_kv__other_programs_do_not_load_it)
