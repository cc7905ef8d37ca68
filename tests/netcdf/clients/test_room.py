#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""The first opening of a process finds room for ESDM's descriptors, which have high numbers: in a process with threads
the kernel takes 9 ms and more to make room, and nobody who imports or opens waits for it. Counted by the kernel's own
word (FDSize of /proc/self/status), not by the clock."""

import re
import shutil

from clients import python_of
from esdmtest import Site, client, expect, main, run, skip, tool
from inprocess import python

ROOM = 513  # at least: 512 is ESDM's first number

BEGIN = """
import os, threading, time
def room():
    with open("/proc/self/status") as status:
        return int(status.read().split("FDSize:")[1].split()[0])
def wait_for_room():
    for _ in range(1000):
        if room() >= %d:
            break
        time.sleep(0.01)
    return room()
def threads(number):
    for _ in range(number):
        threading.Thread(target=threading.Event().wait, daemon=True).start()
def open_new(name):
    import netCDF4
    before = room()
    with netCDF4.Dataset("esdm://" + name, "w") as d:
        d.createDimension("x", 1)
    high = [int(fd) for fd in os.listdir("/proc/self/fd") if int(fd) >= 512]
    assert high, "ESDM has no descriptor of a high number"
    return before, room()
def in_child(function):
    pid = os.fork()
    if pid == 0:
        try:
            function()
        except BaseException as problem:
            print("child:", problem, flush=True)
            os._exit(1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
print("small", room())
""" % ROOM


def told_by(site, script, prefix=()):
    """What a script prints: {"word": [numbers]}."""
    text = python(site, "debian", BEGIN + script, prefix=prefix).stdout
    told = {words[0]: [int(word) for word in words[1:]] for words in map(str.split, text.splitlines())}
    if told["small"][0] >= ROOM:
        skip("programs begin with room for so many descriptors here")
    return told


def test_an_import_makes_room():
    with Site() as site:
        told = told_by(site, """
import esdm
print("import", room())
print("open", *open_new("a.nc"))
""")
        expect(told["import"][0] >= ROOM and told["open"][0] == told["open"][1], f"{told}")


def test_an_import_beside_threads_has_it_made():
    """By a thread of its own, which ends: neither the import nor the opening does it, and nothing is opened for it."""
    if shutil.which("strace") is None:
        skip("strace is not installed")
    with Site() as site:
        log = site.file("strace.txt")
        told = told_by(site, """
import netCDF4
threads(2)
import esdm
print("import", wait_for_room())
before = len(os.listdir("/proc/self/task"))
print("open", *open_new("a.nc"))
esdm.activate()
""", ["strace", "-f", "-qq", "-e", "trace=fcntl,dup3,execve", "-o", log])
        expect(told["import"][0] >= ROOM and told["open"][0] == told["open"][1], f"{told}")
        calls = log.read_text().splitlines()
        # The program's own process is the first line's.
        makers = [line.split()[0] for line in calls if re.search(r"dup3\(-1", line)]
        expect(len(makers) == 1 and makers[0] != calls[0].split()[0], f"{makers}, {calls[0]}")


def test_an_opening_that_comes_at_once_is_right():
    with Site() as site:
        python(site, "debian", BEGIN + """
import netCDF4
threads(2)
import esdm
assert open_new("a.nc")[1] > 512
""")
        expect(run([tool("esdm-ls")]).stdout.split() == ["a.nc"], "esdm-ls")


FORKED = """
def child():
    here = room()  # with one thread, whatever the parent has
    threads(1)
    print("child", here, *open_new("child.nc"), flush=True)
import netCDF4
threads(%d)
import esdm
wait_for_room()
in_child(child)
"""


def test_a_forked_child_has_room():
    for threads in (0, 2):
        with Site() as site:
            told = told_by(site, FORKED % threads)["child"]
            expect(told[0] >= ROOM and told[1] == told[2], f"{threads} threads: {told}")


def test_a_small_limit_is_kept():
    """Half of the numbers are the program's, as ever."""
    with Site() as site:
        text = python(site, "debian", "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (600, 600))\n" + BEGIN + """
threads(1)
import esdm
print("import", wait_for_room())
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
def child():
    print("child", room())
in_child(child)
import netCDF4
with netCDF4.Dataset("esdm://a.nc", "w") as d:
    d.createDimension("x", 1)
assert all(int(fd) < 200 for fd in os.listdir("/proc/self/fd"))
""").stdout
        expect(int(re.search(r"import (\d+)", text).group(1)) >= ROOM, text)
        expect(int(re.search(r"child (\d+)", text).group(1)) > 100, text)


def test_esdm_run_makes_room():
    with Site():
        text = client([python_of("debian"), "-c", BEGIN.replace('print("small", room())', "") + """
import netCDF4
print(room(), *open_new("a.nc"))
def child():
    print(room(), flush=True)
in_child(child)
"""], prefix=["env"]).stdout
        seen = [int(word) for word in text.split()]
        expect(len(seen) == 4 and min(seen) >= ROOM and seen[1] == seen[2], f"{seen}")


main(test_an_import_makes_room, test_an_import_beside_threads_has_it_made, test_an_opening_that_comes_at_once_is_right,
     test_a_forked_child_has_room, test_a_small_limit_is_kept, test_esdm_run_makes_room)
