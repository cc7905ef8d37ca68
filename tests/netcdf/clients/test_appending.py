#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Two programs that append to one container at once, as they do when a job is started twice: the one
that would overwrite the other's new records ends with an error and says why."""

from esdmtest import Site, client, expect, main, need_program, run, tool

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


if __name__ == "__main__":
    main(test_netcdf4__second_appender_is_told,
         test_netcdf4__last_one_wins_where_the_site_says_so,
         test_nco__appends_beside_another_program)
