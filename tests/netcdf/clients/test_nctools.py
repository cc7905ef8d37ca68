#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Options of ncdump, nccopy and ncgen: exit status, output and what is written are the same on files and
on containers."""

import clients
from esdmtest import (SOURCE, Site, by_size, client, expect, main, need_program, run)

CDL = SOURCE / "tests/netcdf/clients"

SAMPLE = """netcdf sample {
dimensions: time = UNLIMITED ; lat = 3 ; lon = 4 ; bnds = 2 ;
variables:
  double time(time) ; time:units = "days since 1850-01-01" ; time:calendar = "noleap" ;
    time:bounds = "time_bnds" ;
  double time_bnds(time, bnds) ;
  float lat(lat) ; lat:units = "degrees_north" ;
  float lon(lon) ;
  float temp(time, lat, lon) ; temp:_FillValue = -9.f ; temp:long_name = "a \\"name\\" & <more>" ;
  short packed(lat, lon) ; packed:scale_factor = 0.5 ;
  char text(lat, bnds) ;
  byte flag ;
// global attributes:
  :title = "sample" ; :numbers = 1b, 2b ; :empty = "" ;
data:
 time = 0, 31.5, 59 ; time_bnds = 0, 31, 31, 59, 59, 90 ; lat = -45, 0, 45 ; lon = 0, 90, 180, 270 ;
 temp = 1, 2, 3, 4, 5, _, 7, 8, 9, 10, 11, 12, 1.25, 2.5, 3.125, 1e10, 1e-10, 0.1, NaN, Infinity, 5, 6, 7,
  8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12.3456789 ;
 packed = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, -32767 ; text = "ab", "c", "de" ; flag = -1 ;
}
"""
KINDS = ["classic", "64-bit-offset", "cdf5", "netCDF-4", "netCDF-4-classic"]
DUMPS = ["", "-h", "-c", "-k", "-s", "-hs", "-s -F", "-x", "-x -h", "-t", "-i", "-t -v time,time_bnds",
         "-b c", "-f f", "-b", "-l 40", "-n other", "-p 4", "-p 3,9", "-v temp", "-v temp,lat -p 9,17",
         "-v nothing", "-g /", "-g nowhere", "-w", "-Xp", "-v lat -f c"]
GROUP_DUMPS = ["-g /g", "-g g/h", "-v /g/v", "-v v", "-x", "-c", "-t"]
COPIES = ["", "-k 1", "-k 2", "-k 3", "-k 4", "-k 5", "-k 6", "-k nc7", "-k 64-bit-data", "-k nonsense", "-3",
          "-5", "-6", "-4", "-7", "-u", "-w", "-r", "-4 -d 3", "-4 -d 3 -s", "-7 -d 9", "-d 0", "-4 -s",
          "-4 -c time/2,lat/3,lon/2", "-4 -c temp:1,3,4", "-4 -c temp:1,3,4 -c lat/1 -d 1", "-4 -c lat/",
          "-4 -M 1", "-u -4 -c lon/2", "-v temp", "-V temp,lat", "-V nothing", "-m 100", "-m 1K -4",
          "-h 1M -e 7 -4", "-4 -F temp,shuffle,deflate,4", "-4 -F *,none", "-4 -F *,zstd,3", "-4 -F temp,1,5",
          "-4 -F nowhere,1,5", "-d 10"]
GROUP_COPIES = ["", "-g /g", "-G /g", "-G g/h", "-V /g/v", "-v /g/h/w", "-k 1", "-u"]
GROUPS = """netcdf groups {
dimensions: x = 2 ;
variables: int v(x) ;
data: v = 1, 2 ;
group: g { dimensions: t = UNLIMITED ; variables: int v(t) ; string s ; data: v = 3, 4, 5 ; s = "text" ;
  group: h { variables: double w(x) ; w:a = 1, 2 ; data: w = 1.5, 2.5 ; } }
}
"""
GENERATIONS = ["-k 1", "-k 2", "-k 3", "-k 4", "-k 5", "-k 6", "-k nc3", "-k nc4", "-k nc5", "-k nc6", "-k nc7",
               "-3", "-4", "-5", "-6", "-7", "-x -3", "-x -4", "-4 -h", "-b -4", "-4 -N renamed", "-k nonsense"]


def without_properties(text):
    """They name the library that made the file."""
    return "\n".join(line for line in text.splitlines() if "_NCProperties" not in line)


def without_hint(text):
    """We tell a person who named what is not there which container was perhaps meant; stock cannot."""
    return "\n".join(line for line in text.splitlines()
                     if not line.startswith("esdm: there is no container '"))


class Pair:
    """A folder with files, and containers of the same names."""

    def __init__(self, site):
        self.folder = site.file("files")
        self.folder.mkdir()

    def both(self, command, status_only=False):
        """Runs a command with @NAME for paths on both; compares all that it tells."""
        told = []
        for esdm in (False, True):
            prefix = "esdm://opts/" if esdm else "./"
            words = [word.replace("@", prefix) for word in command]
            start = client if esdm else run
            done = start(words, check=False, cwd=self.folder)
            text = f"status {done.returncode}\n"
            if not status_only:
                text += done.stdout + done.stderr
            told.append(without_hint(without_properties(text.replace("esdm://opts/", "./"))))
        clients.compare_output(*told, " ".join(command))
        return told[0].splitlines()[0] == "status 0"

    def same(self, name, what, data=True):
        """Compares all that ncdump tells of two files with settings and kind."""
        told = []
        for path, start in ((f"./{name}", run), (f"esdm://opts/{name}", client)):
            done = start(["ncdump", "-s" if data else "-hs", path], check=False, cwd=self.folder)
            text = f"status {done.returncode}\n{done.stdout}{done.stderr}"
            told.append(without_hint(without_properties(text.replace("esdm://opts/", "./"))))
        clients.compare_output(*told, f"{what}: ncdump -s")

    def make(self, name, cdl, *options):
        (self.folder / f"{name}.cdl").write_text(cdl)
        expect(self.both(["ncgen", *options, "-o", f"@{name}.nc", f"{name}.cdl"]), f"ncgen of {name}")


def some(options):
    """All in the long form of the tests."""
    return by_size(options[::7], options[::3], options)


def test_ncdump__prints_the_same():
    need_program("ncgen", "ncdump")
    with Site() as site:
        pair = Pair(site)
        for kind in by_size(KINDS[3:4], KINDS[2:4], KINDS):
            pair.make(kind, SAMPLE, "-k", kind)
            for options in some(DUMPS):
                pair.both(["ncdump", *options.split(), f"@{kind}.nc"])
        pair.make("groups", GROUPS, "-4")
        for options in some(GROUP_DUMPS):
            pair.both(["ncdump", *options.split(), "@groups.nc"])
        pair.both(["ncdump", "@absent.nc"])
        pair.both(["ncdump", "-Q", "@groups.nc"])


def test_nccopy__writes_the_same():
    need_program("ncgen", "ncdump", "nccopy")
    with Site() as site:
        pair = Pair(site)
        pair.make("classic", SAMPLE, "-3")
        pair.make("hdf5", SAMPLE, "-4")
        pair.make("groups", GROUPS, "-4")
        (pair.folder / "types.cdl").write_text((CDL / "user_types.cdl").read_text())
        expect(pair.both(["ncgen", "-4", "-o", "@types.nc", "types.cdl"]), "ncgen of types")
        cases = [(name, options) for name in ("classic", "hdf5") for options in some(COPIES)]
        cases += [("groups", options) for options in some(GROUP_COPIES)]
        cases += [("types", options) for options in ("", "-u", "-k 3")]
        for number, (name, options) in enumerate(cases):
            copy = f"copy{number}.nc"
            if pair.both(["nccopy", *options.split(), f"@{name}.nc", f"@{copy}"]):
                # What nobody wrote is not filled in files: nccopy does not want it.
                unfilled = {"-v", "-g", "-G"} & set(options.split())
                pair.same(copy, f"nccopy {options} {name}.nc", not unfilled)


def test_ncgen__writes_the_same():
    need_program("ncgen", "ncdump")
    with Site() as site:
        pair = Pair(site)
        (pair.folder / "sample.cdl").write_text(SAMPLE)
        for number, options in enumerate(some(GENERATIONS)):
            if pair.both(["ncgen", *options.split(), "-o", f"@made{number}.nc", "sample.cdl"]):
                pair.same(f"made{number}.nc", f"ncgen {options}")
        for kind in ("classic", "nc4"):
            if pair.both(["ncgen3", "-k", kind, "-o", f"@three{kind}.nc", "sample.cdl"]):
                pair.same(f"three{kind}.nc", f"ncgen3 -k {kind}")


main(test_ncdump__prints_the_same, test_nccopy__writes_the_same, test_ncgen__writes_the_same)
