#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Two programs that append to one container at once, as they do when a job is started twice: the one
that would overwrite the other's new records ends with an error and says why."""

import os
import pathlib
import subprocess
import time

from esdmtest import SANITIZE, Site, client, client_environment, expect, main, need_program, run, tool

# Opens the container, lets another program append to it (arguments), and then appends at the end that it
# knows.
APPEND = """
import subprocess, sys, netCDF4
d = netCDF4.Dataset("esdm://run.nc", "a")
n = len(d.dimensions["time"])
print("opened with", n, flush=True)
if len(sys.argv) > 2:
    subprocess.run(sys.argv[2:], check=True)
value = float(sys.argv[1])
d["time"][n] = value
d["tas"][n, :] = value
d.close()
print("closed", flush=True)
"""

MAKE = """
import netCDF4
d = netCDF4.Dataset("esdm://run.nc", "w")
d.createDimension("time", None)
d.createDimension("cell", 500)
d.createVariable("time", "f8", ("time",))
d.createVariable("tas", "f4", ("time", "cell"))
d["time"][:] = [0, 1]
d["tas"][0:2, :] = 0.0
d.close()
"""

SHOW = """
import netCDF4
d = netCDF4.Dataset("esdm://run.nc")
print([float(x) for x in d["time"][:]], [float(x) for x in d["tas"][:, 7]])
"""


def python(text, *arguments, **options):
    return client(["/usr/bin/python3", "-c", text, *arguments], **options)


def shown():
    return python(SHOW).stdout.strip()


def expect_conflict(done):
    expect(done.returncode != 0, f"no error: {done.stdout}{done.stderr}")
    expect(done.stdout.count("closed") < done.stdout.count("opened"), f"not told: {done.stdout}")
    for words in ("another program has written index 2 of dimension 'time'", "Open the container again"):
        expect(words in done.stderr, f"not said: {words}: {done.stderr}")


def test_netcdf4__second_appender_is_told():
    with Site():
        python(MAKE)
        expect_conflict(python(APPEND, "5", "/usr/bin/python3", "-c", APPEND, "4", check=False))
        expect(shown() == "[0.0, 1.0, 4.0] [0.0, 0.0, 4.0]", shown())
        expect(run([tool("esdm-ls")]).stdout.split() == ["run.nc"], "something else is there")
        python(APPEND, "6")
        expect(shown() == "[0.0, 1.0, 4.0, 6.0] [0.0, 0.0, 4.0, 6.0]", shown())


def test_netcdf4__last_one_wins_where_the_site_says_so():
    with Site(overlap="last"):
        python(MAKE)
        python(APPEND, "5", "/usr/bin/python3", "-c", APPEND, "4")
        expect(shown() == "[0.0, 1.0, 5.0] [0.0, 0.0, 5.0]", shown())


def test_nco__appends_beside_another_program():
    need_program("ncrcat")
    with Site() as site:
        python(MAKE)
        more = site.file("more.nc")
        python(MAKE.replace("esdm://run.nc", str(more)).replace("[0, 1]", "[8, 9]"))
        expect_conflict(python(APPEND, "5", "ncrcat", "--no_tmp_fl", "--rec_apn", str(more), "esdm://run.nc", check=False))
        expect(shown() == "[0.0, 1.0, 8.0, 9.0] [0.0, 0.0, 0.0, 0.0]", shown())
        client(["ncrcat", "--no_tmp_fl", "--rec_apn", str(more), "esdm://run.nc"])
        expect(shown().startswith("[0.0, 1.0, 8.0, 9.0, 8.0, 9.0]"), shown())


# Copies esdm://run.nc record by record, as NCO's -O does with one name for both: reads, writes beside it, lets
# others go first (arguments), and renames.
REWRITE = """
import os, subprocess, sys, netCDF4
old, new = (sys.argv[1], sys.argv[1] + ".new")
with netCDF4.Dataset(old) as a, netCDF4.Dataset(new, "w") as b:
    b.createDimension("time", None)
    b.createDimension("cell", 500)
    for name in ("time", "tas"):
        v = a[name]
        b.createVariable(name, v.dtype, v.dimensions)[:] = v[:] + 100
if len(sys.argv) > 2:
    subprocess.run(sys.argv[2:], check=True)
try:
    os.rename(new, old)
except OSError as e:
    sys.exit(f"refused: {e}")
"""
REFUSED = "esdm: rename '{0}': '{1}' was {2} by another program"


def times(path):
    text = python(f"import netCDF4; print([float(x) for x in netCDF4.Dataset({str(path)!r})['time'][:]])").stdout
    return text.strip()


class Held:
    """A program of NCO that has read or copied its output, and tells that times of its records go back: it
    waits with that, as nobody reads what it tells, until go_on()."""

    def __init__(self, command):
        self.end, told = os.pipe()
        os.set_blocking(told, False)
        try:
            while True:
                os.write(told, b" " * 4096)
        except BlockingIOError:
            pass
        os.set_blocking(told, True)
        command = [str(c) for c in (tool("esdm-run"), *command)]
        self.program = subprocess.Popen(  # pylint: disable=consider-using-with
            command, env=client_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=told)
        os.close(told)
        syscall = pathlib.Path(f"/proc/{self.program.pid}/syscall")
        while not syscall.read_text().startswith("1 0x2 "): # write(2)
            expect(self.program.poll() is None, "ended before it told anything")
            time.sleep(0.01)

    def go_on(self):
        with open(self.end, encoding="utf-8", errors="replace") as pipe:
            told = pipe.read()
        return self.program.wait(timeout=120), told.strip()


def classic(site, name, *values):
    path = site.file(name)
    text = MAKE.replace("esdm://run.nc", str(path)).replace('"w"', '"w", format="NETCDF3_CLASSIC"')
    subprocess.run(["/usr/bin/python3", "-c", text.replace("[0, 1]", str(list(values)))], check=True)
    return path


def check_nco(site, target, shown_name):
    """Two programs copy, append and rename: the one that has copied before the other one has renamed loses."""
    one, two = classic(site, "one.nc", 2, 3), classic(site, "two.nc", 4, 5)
    append = ["ncrcat", "--rec_apn"]
    held = Held([*append, one, target])
    client([*append, str(two), target])
    done, err = held.go_on()
    expect(done != 0, f"the second one was not told: {times(target)}")
    expect(f"'{shown_name}' was replaced by another program" in err and "run the program again" in err, err)
    expect(times(target) == "[0.0, 1.0, 4.0, 5.0]", times(target))
    left = [n for n in run([tool("esdm-ls")]).stdout.split() if n.endswith(".tmp")]
    expect(len(left) == 1 and left[0] in err, f"{left}: {err}")
    # What it has made is there, for who wants it all the same.
    run([tool("esdm-mv"), "--replace", left[0], shown_name])
    expect(times(target) == "[0.0, 1.0, 2.0, 3.0]", times(target))
    # Nobody comes in between: as ever.
    client([*append, str(two), target])
    expect(times(target).endswith("2.0, 3.0, 4.0, 5.0]"), times(target))


def test_nco__copies_changes_and_renames():
    need_program("ncrcat")
    with Site() as site:
        python(MAKE)
        check_nco(site, "esdm://run.nc", "run.nc")


def check_over_what_was_read(site, target, container):
    """NCO reads its first input, which is what it will replace, tells of the second one, and waits."""
    back = classic(site, "back.nc", 6, 8, 7, 9)
    held = Held(["ncrcat", "-O", target, back, target])
    python(APPEND.replace("esdm://run.nc", target), "4")
    status, err = held.go_on()
    expect(status != 0 and f"'{container}' was changed by another program" in err, f"{status}: {err}")
    expect(times(target) == "[0.0, 1.0, 4.0]", times(target))
    client(["ncrcat", "-O", target, back, target])
    expect(times(target) == "[0.0, 1.0, 4.0, 6.0, 8.0, 7.0, 9.0]", times(target))
    # What was not read is replaced, whatever others do.
    client(["ncks", "-O", back, target])
    expect(times(target) == "[6.0, 8.0, 7.0, 9.0]", times(target))


def test_nco__over_what_it_has_read():
    need_program("ncrcat")
    with Site() as site:
        python(MAKE)
        check_over_what_was_read(site, "esdm://run.nc", "run.nc")


def test_nco__over_what_it_has_read_in_a_routed_folder():
    need_program("ncrcat")
    with Site() as site:
        folder = site.file("routed")
        folder.mkdir()
        os.environ["ESDM_NC_ROUTE"] = f"{folder}=runs"
        try:
            python(MAKE.replace("esdm://run.nc", f"{folder}/run.nc"))
            check_over_what_was_read(site, f"{folder}/run.nc", "runs/run.nc")
            expect(all("stub" not in p.name for p in folder.iterdir()), "stubs are left")
        finally:
            del os.environ["ESDM_NC_ROUTE"]


def test_nco__the_last_rename_wins_where_the_site_says_so():
    need_program("ncrcat")
    with Site(overlap="last") as site:
        python(MAKE)
        one, two = classic(site, "one.nc", 2, 3), classic(site, "two.nc", 4, 5)
        held = Held(["ncrcat", "--rec_apn", one, "esdm://run.nc"])
        client(["ncrcat", "--rec_apn", str(two), "esdm://run.nc"])
        done, err = held.go_on()
        expect(done == 0, err)
        expect(times("esdm://run.nc") == "[0.0, 1.0, 2.0, 3.0]", times("esdm://run.nc"))


def test_programs_that_rename__over_what_they_have_read():
    need_program("ncap2")
    more = ["/usr/bin/python3", "-c", APPEND, "4"]
    with Site() as site:
        python(MAKE)
        python(REWRITE, "esdm://run.nc")
        expect(times("esdm://run.nc") == "[100.0, 101.0]", times("esdm://run.nc"))
        done = python(REWRITE, "esdm://run.nc", *more, check=False)
        expect(done.returncode != 0 and "refused: [Errno 116]" in done.stderr, done.stderr)
        expect(REFUSED.format("run.nc.new", "run.nc", "changed") in done.stderr, done.stderr)
        expect(times("esdm://run.nc") == "[100.0, 101.0, 4.0]", times("esdm://run.nc"))
        # One that has never read it replaces it, whatever others do.
        client(["ncap2", "-O", "-s", "tas=tas+1", "esdm://run.nc.new", "esdm://run.nc"])
        expect(times("esdm://run.nc") == "[200.0, 201.0]", times("esdm://run.nc"))
        client(["ncap2", "-O", "-s", "time=time+1", "esdm://run.nc", "esdm://run.nc"])
        expect(times("esdm://run.nc") == "[201.0, 202.0]", times("esdm://run.nc"))


# Preloaded with a sanitizer's runtime NCO tells nothing of times that go back, so that it cannot be held.
HELD = () if SANITIZE else (test_nco__copies_changes_and_renames,
                            test_nco__over_what_it_has_read,
                            test_nco__over_what_it_has_read_in_a_routed_folder,
                            test_nco__the_last_rename_wins_where_the_site_says_so)

if __name__ == "__main__":
    main(*HELD,
         test_programs_that_rename__over_what_they_have_read,
         test_netcdf4__second_appender_is_told,
         test_netcdf4__last_one_wins_where_the_site_says_so,
         test_nco__appends_beside_another_program)
