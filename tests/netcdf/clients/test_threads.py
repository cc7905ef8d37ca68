#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""A program whose threads open, read, make and close containers at the same time (nc_threads.c). The
same on plain files crashes stock netCDF."""

from esdmtest import BUILD, SIZE, Site, by_size, client, main, run, tool

PROGRAM = BUILD / "tests/netcdf/clients/nc_threads"
THREADS = 8


def check(prefix, threads, rounds, **options):
    seconds = ["60"] if SIZE == "long" else []
    print(client([PROGRAM, prefix, threads, rounds, *seconds], **options).stdout, end="")
    run([tool("esdm-fsck"), "--data", "--quiet"])


def test_containers():
    with Site():
        for threads in (2, THREADS):
            check("esdm://threads/", threads, by_size(10, 40, 0))


def test_a_routed_folder():
    with Site() as site:
        folder = site.file("routed")
        folder.mkdir()
        check(f"{folder}/", THREADS, by_size(5, 20, 0), env={"ESDM_NC_ROUTE": str(folder)})


main(test_containers, test_a_routed_folder)
