#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Programs that read HDF5 files without the NetCDF library (h5dump, h5py, pyfive): what they are given for a
container is no valid file without variables, with which they would go on and end with 0."""

from clients import python_of
from esdmtest import SOURCE, Site, client, expect, main, need_program, run

LOOK = "import sys; print(open(sys.argv[1], 'rb').read(4))"
TOLD = "a container is read by the NetCDF library"


class Made(Site):
    """A site with the container a.nc, and a routed folder with a stub."""

    def __enter__(self):
        super().__enter__()
        self.source, self.out = self.file("source.nc"), self.file("out")
        self.out.mkdir()
        run(["ncgen", "-k", "nc4", "-o", self.source, SOURCE / "tests/netcdf/clients/classic.cdl"])
        client(["nccopy", self.source, "esdm://a.nc"])
        client(["nccopy", self.source, self.out / "stub.nc"], env={"ESDM_NC_ROUTE": str(self.out)})
        return self


def test_programs_with_libhdf5__are_refused():
    need_program("h5dump", "h5ls", "h5repack", "nccopy")
    with Made() as site:
        names = {"esdm:a.nc": TOLD, "esdm:/a.nc": TOLD, f"{site.folder}/esdm:/a.nc": TOLD,
                 str(site.out / "stub.nc"): ""}
        out = site.file("out.h5")
        for command in (["h5dump", "-n", "NAME"], ["h5ls", "NAME"], ["h5repack", "NAME", out]):
            for name, told in names.items():
                done = client([name if word == "NAME" else word for word in command], check=False)
                expect(done.returncode != 0, f"{command} {name} ended with 0: {done.stdout}")
                expect(told in done.stderr, done.stderr)


def test_readers_of_bytes__find_no_hdf5():
    """pyfive takes a file for HDF5 by its first bytes; NetCDF's programs keep the format of what they read."""
    need_program("ncks", "nccopy")
    with Made():
        shown = client([python_of("debian"), "-c", LOOK, "esdm://a.nc"]).stdout.strip()
        expect(shown == repr(b"CDF\x01"), shown)
        client(["nccopy", "-k", "64-bit offset", "esdm://a.nc", "esdm://offset.nc"])
        shown = client([python_of("debian"), "-c", LOOK, "esdm://offset.nc"]).stdout.strip()
        expect(shown == repr(b"CDF\x02"), shown)
        client(["ncks", "esdm://a.nc", "esdm://b.nc"])
        kind = client(["ncdump", "-k", "esdm://b.nc"]).stdout.strip()
        expect(kind == "netCDF-4", kind)


main(test_programs_with_libhdf5__are_refused, test_readers_of_bytes__find_no_hdf5)
