#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""What variables are told about their storage: `ncdump -s` shows the same of files and containers,
whichever program copied them with whichever options."""

import difflib
import pathlib

from esdmtest import SANITIZE, Site, client, environment, expect, main, need_program, run, tool

HERE = pathlib.Path(__file__).parent

# What only an HDF5 file has.
FILES_ONLY = ("_NCProperties",)

NCCOPY = ["", "-d 5", "-d 2 -s", "-d 0", "-c t/1,y/2,x/3", "-c a:1,2,3", "-F plain,1,4", "-F *,2|1,3",
          "-F *,none", "-F none", "-F plain,4,32,16", "-F szip,3", "-u", "-m 1M -h 2M -e 100", "-w",
          "-V a,plain,deflated"]
NCKS = ["-h -L 3", "-h -4 --cnk_plc=all --cnk_dmn y,2 --cnk_dmn x,2", "-h -3", "-h -v deflated"]


def dump(path, stock):
    """The listing without its first line, which has the name."""
    command = ["ncdump", "-s", path]
    text = (run(command) if stock else client(command)).stdout
    lines = text.split("\n")[1:]
    return [line for line in lines if not line.strip().lstrip(":").startswith(FILES_ONLY)]


def check(what, file, container):
    difference = "\n".join(difflib.unified_diff(dump(file, True), dump(container, False), n=0))
    expect(not difference, f"{what}: the listings differ\n{difference}")


def test_copies():
    need_program("ncgen", "ncdump", "nccopy", "ncks")
    with Site() as site:
        file = site.file("in.nc")
        run(["ncgen", "-4", "-o", file, HERE / "settings.cdl"])
        client(["ncgen", "-4", "-o", "esdm://in.nc", HERE / "settings.cdl"])
        check("ncgen", file, "esdm://in.nc")
        commands = [["nccopy", *o.split()] for o in NCCOPY]
        if not SANITIZE:  # ncks copies chunk shapes that contiguous variables do not have
            commands += [["ncks", *o.split()] for o in NCKS]
        for i, command in enumerate(commands):
            out = site.file(f"out{i}.nc")
            what = " ".join(command)
            run([*command, file, out])
            client([*command, file, f"esdm://from_file{i}.nc"])
            check(f"{what}, from a file", out, f"esdm://from_file{i}.nc")
            client([*command, "esdm://in.nc", f"esdm://out{i}.nc"])
            check(f"{what}, between containers", out, f"esdm://out{i}.nc")


def test_esdm_cp():
    need_program("ncgen", "ncdump")
    with Site() as site:
        file, back = site.file("in.nc"), site.file("back.nc")
        run(["ncgen", "-4", "-o", file, HERE / "settings.cdl"])
        copy = tool("esdm-cp")
        run([copy, file, "esdm://in.nc"], env=environment())
        check("esdm-cp of a file", file, "esdm://in.nc")
        run([copy, "esdm://in.nc", "esdm://again.nc"], env=environment())
        check("esdm-cp of a container", file, "esdm://again.nc")
        run([copy, "esdm://again.nc", back], env=environment())
        expect(dump(back, True) == dump(file, True), "esdm-cp to a file: the listings differ")


if __name__ == "__main__":
    main(test_copies, test_esdm_cp)
