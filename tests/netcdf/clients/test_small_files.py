#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Many small classic files: what each costs, and that a container which a program has looked at as a
file before it opens it is opened once, and yet is the newest."""

import re
import sys

import lostsite
from clients import python_of
from esdmtest import SANITIZE, SOURCE, Site, client, client_environment, expect, main, need_program, run, skip, tool

sys.path.insert(0, str(SOURCE / "tests/bench"))
from small_files import TUNABLES, WRITER  # noqa: E402

COUNT = 12
# 5 of them with cdo 2.1: it asks whether the file is there, looks at its bytes, opens it, and reads
# four variables. It had 28 before containers were handed over and pages listed for all, 12 before
# who asks again was answered from what was read last, 10 before shared memory told
# that, and 7 before index pages came together.
READINGS = 6
# 16 of a file that is written. Each page of the log took two calls, and each look at the catalogue
# a lock.
CALLS = 20
COUNTED = "fcntl,pread64,pwrite64,pwritev,getpid,getrandom,fstat,newfstatat,open,openat,close"


def test_each_small_file_costs_few_readings():
    need_program("cdo", "strace")
    with Site(metadata={"plugin": "sqlite", "directory": "metadata"}) as site:
        run(["cdo", "-s", "-f", "nc", "-splitsel,1", "-settaxis,2000-01-01,00:00:00,1day",
             f"-for,1,{COUNT}", site.file("in_")])
        files = sorted(site.folder.glob("in_*.nc"))
        expect(len(files) == COUNT, f"{files}")
        run([tool("esdm-cp"), *files, "esdm://in/"])
        names = [f"esdm://in/{f.name}" for f in files]

        def readings(*sources):
            log = site.file("calls")
            client(["cdo", "-s", "-O", "mergetime", *sources, site.file("out.nc")],
                   prefix=["strace", "-f", "-qq", "-o", log, "-e", "trace=fcntl"])
            return len(re.findall(r"F_SETLK, \{l_type=F_RDLCK.*l_start=12[3-7]", log.read_text()))

        few, all_of_them = readings(*names[:2]), readings(*names)
        each = (all_of_them - few) / (COUNT - 2)
        expect(4 < each <= READINGS, f"{each} readings of the catalogue for each file")
        run(["cdo", "-s", "-O", "mergetime", *files, site.file("plain.nc")])
        run(["cdo", "-s", "diffv", site.file("plain.nc"), site.file("out.nc")])


MOST = 1.08  # 1.03 on 30 November; a library that was looked up for each opening made 1.11 of it


def test_opening_costs_few_instructions():
    """Of user space, beside the same program on files."""
    need_program("cdo", "valgrind")
    if SANITIZE:
        skip("a sanitizer's code counts, too")
    with Site(metadata={"plugin": "sqlite", "directory": "metadata"}) as site:
        site.file("in").mkdir()
        script = site.file("writer.py")
        script.write_text(WRITER)
        for prefix in ("esdm://in/", f"{site.file('in')}/"):
            client([python_of("debian"), script, 0, COUNT, prefix])

        def count(command, folder, files):
            names = [f"{folder}/{day:05}.nc" for day in range(files)]
            out = site.file("profile")
            done = run([*command, "valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "cdo", "-s", "-O",
                        "mergetime", *names, site.file("out.nc")], env=client_environment({"GLIBC_TUNABLES": TUNABLES}))
            return int(re.search(r"Collected : (\d+)", done.stdout + done.stderr).group(1))

        costs = [count(command, folder, COUNT) - count(command, folder, 2)
                 for command, folder in (([tool("esdm-run")], "esdm://in"), ([], site.file("in")))]
        print(f"{costs[0] / (COUNT - 2):,.0f} instructions of a container, {costs[1] / (COUNT - 2):,.0f} of a file")
        expect(costs[1] * 0.5 < costs[0] < costs[1] * MOST, f"{costs}")


WRITE = """
import netCDF4, sys
for day in range(int(sys.argv[1])):
    with netCDF4.Dataset(f"esdm://{sys.argv[1]}/{day}.nc", "w", format="NETCDF3_CLASSIC") as data:
        data.title = "a small file"
        data.createDimension("time", None)
        data.createDimension("lat", 48)
        data.createVariable("lat", "f8", ("lat",))[:] = range(48)
        tas = data.createVariable("tas", "f4", ("time", "lat"))
        tas.units, tas.long_name = "K", "air temperature"
        tas[0] = day
"""


def test_each_small_file_is_written_by_few_calls():
    need_program("strace")
    with Site(metadata={"plugin": "sqlite", "directory": "metadata"}) as site:
        def calls(count):
            log = site.file("calls")
            client([python_of("debian"), "-c", WRITE, count],
                   prefix=["strace", "-f", "-qq", "-o", log, "-e", f"trace={COUNTED}"])
            return len(log.read_text().splitlines())

        few, many = calls(10), calls(50)
        each = (many - few) / 40
        expect(5 < each <= CALLS, f"{each} system calls for each file that is written")
        run([tool("esdm-fsck"), "--data"])


MANY = """
import netCDF4, numpy, sys
first, last, longitudes, options = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
for day in range(first, last):
    with netCDF4.Dataset(f"esdm://days/{day:03}.nc", "w", format="NETCDF4_CLASSIC" if options else "NETCDF3_CLASSIC") as data:
        data.createDimension("time", None)
        data.createDimension("lat", 40)
        data.createDimension("lon", longitudes)
        data.createVariable("lat", "f8", ("lat",))[:] = numpy.arange(40) + day
        tas = data.createVariable("tas", "f4", ("time", "lat", "lon"), zlib="zlib" in options)
        tas[0] = numpy.arange(40 * longitudes).reshape(40, longitudes) * 1.1 + day
"""

# Opened anew, changed, and by another session: what is added goes to a pack.
CHANGE = """
import netCDF4, numpy
with netCDF4.Dataset("esdm://days/030.nc", "a") as data:
    data["tas"][1] = numpy.arange(2400).reshape(40, 60) + 7.5
    data["tas"][0, 3, 4] = -1
"""

LOOK_AT = """
import netCDF4, numpy, sys
count, changed = int(sys.argv[1]), sys.argv[2:]
for day in range(count):
    with netCDF4.Dataset(f"esdm://days/{day:03}.nc") as data:
        data.set_auto_mask(False)
        expected = numpy.arange(2400).reshape(40, 60) * 1.1 + day
        if changed and day == 30:
            expected[3, 4] = -1
            assert data["tas"].shape[0] == 2 and (data["tas"][1] == numpy.arange(2400).reshape(40, 60) + 7.5).all()
        assert (data["tas"][0] == expected.astype("f4")).all(), day
        assert (data["lat"][:] == numpy.arange(40) + day).all(), day
"""

OWN_PACKS = 16  # of the first containers of a session


def python(*arguments):
    client([python_of("debian"), "-c", *arguments])


def test_many_small_files_make_few_packs():
    """Of 9.6 KB and 320 bytes each. What is larger, compressed, or not among many has packs as ever."""
    with Site(metadata={"plugin": "sqlite", "directory": "metadata"}) as site:
        python(MANY, 0, 40, 60)
        expect(len(site.pack_files()) == OWN_PACKS, f"{len(site.pack_files())} packs of 40 files")
        python(LOOK_AT, 40)
        run([tool("esdm-fsck"), "--data"])
        python(MANY, 40, 44, 60)
        expect(len(site.pack_files()) == OWN_PACKS + 4, f"{len(site.pack_files())} packs, 4 files of another program")
        python(MANY, 100, 140, 120)
        expect(len(site.pack_files()) == OWN_PACKS + 44, f"{len(site.pack_files())} packs, 40 files of 19 KB")
        python(MANY, 200, 240, 60, "zlib")
        expect(len(site.pack_files()) == OWN_PACKS + 84, f"{len(site.pack_files())} packs, 40 files that are compressed")
    with Site(engine={"inline": 0}) as site:
        python(MANY, 0, 40, 60)
        expect(len(site.pack_files()) == 40, f"{len(site.pack_files())} packs without small ones")
    # The largest "inline" there is: 16 times as much is more than an index page takes.
    with Site(engine={"inline": "1 MiB"}) as site:
        python(MANY, 0, 18, 14000)
        python(MANY, 20, 38, 7000)
        expect(len(site.pack_files()) == 18 + OWN_PACKS, f"{len(site.pack_files())} packs, 18 files of 2.2 MB")
        run([tool("esdm-fsck"), "--data"])


def test_what_has_no_pack_is_changed_cloned_drained_and_brought_back():
    with Site(metadata={"plugin": "sqlite", "directory": "metadata"}) as site:
        python(MANY, 0, 40, 60)
        python(CHANGE)
        expect(len(site.pack_files()) == OWN_PACKS + 1, f"{len(site.pack_files())} packs: what was added has one")
        python(LOOK_AT, 40, "changed")
        run([tool("esdm-cp"), "--reflink", "esdm://days/020.nc", "esdm://clone.nc"])
        run([tool("esdm-rm"), "esdm://days/020.nc"])
        run([tool("esdm-gc"), "--age", "0", "--replaced-now", "--yes"])
        run([tool("esdm-mv"), "esdm://clone.nc", "esdm://days/020.nc"])
        run([tool("esdm-compact"), "esdm://days/030.nc", "esdm://days/025.nc"])
        run([tool("esdm-drain")])
        python(LOOK_AT, 40, "changed")
        run([tool("esdm-fsck"), "--data"])
        lostsite.lose(site)
        lostsite.expect_restored(lostsite.restore())
        python(LOOK_AT, 40, "changed")
        lostsite.check_sound()


# Asked of a module, what is not there costs an error that is made and dropped: watch.py asked so seven times for each
# file, 61,000 of the 74,600 instructions that it took.
ASKED = """
import sys, types
missed = []
class Counted(types.ModuleType):
    def __getattr__(self, name):
        missed.append(name)
        raise AttributeError(name)
real = sys
counted = Counted("sys")
counted.__dict__.update(real.__dict__)
sys.modules["sys"] = counted
watch = {name: lambda *arguments: None for name in ("settle", "abandon", "doubt", "ending")}
exec(open(real.argv[1]).read(), watch)
del missed[:]
numbers = [watch["opening"]() for _ in range(3)]
assert [watch["closing"](number, None) for number in numbers] == [0, 0, 0]
assert numbers == [1, 2, 3] and missed == [], missed
try:
    1 / 0
except ZeroDivisionError as error:
    number = numbers[0]
    assert watch["closing"](number, None) > 0
counted.last_value = KeyError("x")  # by now the program has ended so
assert watch["closing"](numbers[0], None) > 0
counted.ps1 = ">>> "
assert watch["closing"](numbers[0], None) == 0 and missed == [], missed
sys.modules["sys"] = real
"""


def test_watching_asks_for_nothing_that_is_not_there():
    run([python_of("debian"), "-c", ASKED, SOURCE / "netcdf-plugin/dispatch/watch.py"])


LOOK = """
import netCDF4, os, subprocess, sys
cp, path = sys.argv[1], "esdm://a.nc"
def look():
    with open(path, "rb") as file:
        return file.read(4)
def value():
    with netCDF4.Dataset(path) as data:
        return float(data["v"][0])
def copy(name):
    subprocess.run([cp, "-f", name, path], check=True)
assert look() == b"CDF\\x02", look()
assert value() == 1
look(); copy("esdm://two.nc"); assert value() == 2          # replaced meanwhile
look(); copy("esdm://three.nc"); assert look() == b"CDF\\x01"  # and netCDF-4: no HDF5 for Python
assert value() == 3
look()
if os.fork() == 0:
    os._exit(0 if value() == 3 else 1)                      # the child has a session of its own
assert os.wait()[1] == 0
look()
with netCDF4.Dataset(path, "a") as data:
    data["v"][0] = 4
assert value() == 4
look(); os.remove(path)
try:
    value()
    sys.exit("it is still there")
except FileNotFoundError:
    pass
with open("esdm://two.nc", "rb"):
    pass                                                    # and it is never opened
"""


def test_who_looks_before_opening_gets_the_newest():
    need_program("ncgen")
    with Site() as site:
        for name, number, kind in (("one", 1, "nc6"), ("two", 2, "nc6"), ("three", 3, "nc4")):
            cdl = site.file(f"{name}.cdl")
            cdl.write_text(f"netcdf {name} {{ dimensions: x = 1 ; variables: double v(x) ; "
                           f"data: v = {number} ; }}")
            run(["ncgen", "-k", kind, "-o", site.file(f"{name}.nc"), cdl])
            run([tool("esdm-cp"), site.file(f"{name}.nc"), f"esdm://{name}.nc"])
        run([tool("esdm-cp"), "esdm://one.nc", "esdm://a.nc"])
        client([python_of("debian"), "-c", LOOK, tool("esdm-cp")])
        run([tool("esdm-fsck"), "--data"])
        run([tool("esdm-gc"), "--age", "0", "--replaced-now", "--yes"])


main(test_each_small_file_costs_few_readings, test_opening_costs_few_instructions,
     test_each_small_file_is_written_by_few_calls, test_many_small_files_make_few_packs,
     test_what_has_no_pack_is_changed_cloned_drained_and_brought_back, test_watching_asks_for_nothing_that_is_not_there,
     test_who_looks_before_opening_gets_the_newest)
