#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-ref --pin: containers keep what their files had, bit for bit, whatever becomes of the files; who
pins a file that was changed meanwhile is told so, and what others write is not hidden by it."""

import json
import os
import shutil
import sys

from esdmtest import Site, client, expect, expect_error, main, need_data, run, tool
from test_references import EQUAL, READ, make
from test_reference_update import counts, settle, store, update, value
from test_reference_update import make as make_small

REF = tool("esdm-ref")
FSCK = tool("esdm-fsck")


def python(script, *arguments, check=True):
    return client(["/usr/bin/python3", "-c", script, *map(str, arguments)], check=check)


def test_generated_files_may_go():
    with Site() as site:
        folder = make(site)
        names = sorted(p.name for p in folder.iterdir())
        run([REF, "-q", folder, "esdm://files"])
        told = json.loads(run([REF, "--pin", "--json", "esdm://files"]).stdout)
        ways = {c["target"]: c["pinned"] for c in told["copies"]}
        expect(len(ways) == len(names), ways)
        for name in names:
            pinned = ways[f"esdm://files/{name}"]
            expect(pinned["way"] == "copy" and pinned["files"] == 1 and pinned["bytes"] > 0, (name, pinned))
        with_sizes = ways["esdm://files/contiguous.nc"]["bytes"]
        expect(with_sizes == 8 + 8 * 45 * (1 + 2 + 4 + 8 + 4 + 8), f"bytes of values: {with_sizes}")
        kept = site.folder / "kept"
        shutil.copytree(folder, kept)
        shutil.rmtree(folder)
        python(EQUAL, "parts", *[f"{kept / n}=esdm://files/{n}" for n in names])
        run([FSCK, "--data"])
        again = json.loads(run([REF, "--pin", "--json", "esdm://files"]).stdout)
        expect(all(c["pinned"]["files"] == 0 for c in again["copies"]), "pinned twice")
        done = run([REF, "--pin", "esdm://files/odd.nc"])
        expect("esdm://files/odd.nc: needs no file" in done.stdout, done.stdout)


def test_pinned_when_it_is_made():
    with Site() as site:
        folder = site.folder / "archive"
        folder.mkdir()
        make_small(**{str(folder / "a.nc"): 1, str(folder / "classic.nc"): 2})
        store(folder / "s.zarr", 4)
        settle(folder)
        done = run([REF, "--pin", "--verbose", folder, "esdm://arc"])
        for line in (f"{folder}/a.nc: copied into ESDM, 15.6 KiB", "esdm://arc/s.zarr: 2 files copied into ESDM, 32 B"):
            expect(line in done.stdout, f"{line}: {done.stdout}")
        for path in (folder / "a.nc", folder / "s.zarr/v/0"):
            data = bytearray(path.read_bytes())
            data[-8:] = bytes(8)
            path.write_bytes(data)
        os.unlink(folder / "classic.nc")
        expect(value("arc/a.nc") == 1 and value("arc/classic.nc") == 2, "values")
        expect(python("import netCDF4; print(*netCDF4.Dataset('esdm://arc/s.zarr')['v'][:])").stdout.split() ==
               ["4", "5", "6", "7"] * 2, "values of the store")
        # A later scan leaves it alone, and says so.
        settle(folder)
        got, told, done = update("--delete", folder, "esdm://arc")
        expect(got == counts() and told["kept"] == 2 and told["gone"][0]["pinned"] and not told["gone"][0]["removed"], told)
        done = run([REF, "--update", folder, "esdm://arc"])
        expect("kept, as it is pinned: " in done.stdout and "gone, but pinned: " in done.stdout, done.stdout)
        expect(value("arc/a.nc") == 1 and value("arc/classic.nc") == 2, "values")
        make_small(**{str(folder / "a.nc"): 9})
        got, _, _ = update("--force", "--delete", folder, "esdm://arc")
        expect(got == counts(changed=2, removed=1) and value("arc/a.nc") == 9, got)
        # --update --pin pins what was referred to before.
        got, told, _ = update("--pin", folder, "esdm://arc")
        expect(got == counts(unchanged=2) and all(c["pinned"]["files"] > 0 for c in told["copies"]), told)
        os.unlink(folder / "a.nc")
        expect(value("arc/a.nc") == 9, "values")


def test_a_changed_file_is_not_pinned():
    with Site() as site:
        folder = make(site)
        run([REF, "-q", folder, "esdm://files"])
        path = folder / "shuffle.nc"
        path.write_bytes(path.read_bytes() + b"x")
        os.unlink(folder / "whole.nc")
        done = run([REF, "--pin", "esdm://files"], check=False)
        expect_error(done, "shuffle.nc' was changed", "fragment [", "whole.nc")
        expect(done.returncode in (1, 3), done.returncode)
        expect_error(python(READ, "esdm://files/shuffle.nc", check=False), "shuffle.nc")
        os.unlink(folder / "deflate.nc")
        python(READ, "esdm://files/deflate.nc")  # the others are pinned
        expect_error(run([REF, "--pin", "esdm://nothing"], check=False), "nothing")
        expect_error(run([REF, "--pin", "-f", "esdm://files"], check=False), "--force")


def test_what_was_written_stays():
    with Site() as site:
        folder = make(site)
        run([REF, "-q", folder / "whole.nc", "esdm://w.nc"])
        python("""
import netCDF4
with netCDF4.Dataset("esdm://w.nc", "a") as nc:
    nc["step_f4"][2, 1] = -5
""")
        run([REF, "--pin", "esdm://w.nc"])
        shutil.rmtree(folder)
        python("""
import netCDF4
with netCDF4.Dataset("esdm://w.nc") as nc:
    v = nc["step_f4"][:]
    assert (v[2, 1] == -5).all() and v[2, 2, 0] == 2 * 45 + 18 and v[6, 4, 8] == 7 * 45 - 1
""")
        # The snapshot before needs the file.
        expect_error(python(READ, "esdm://w.nc@1", check=False), "whole.nc")


LARGE = """
import sys, netCDF4, numpy as np
values = np.random.default_rng(2).integers(0, 255, (40, 300, 900), "u1").astype("f4") / 7
with netCDF4.Dataset(sys.argv[1], "w") as nc:
    for name, n in (("t", 40), ("y", 300), ("x", 900)):
        nc.createDimension(name, n)
    for name, more in (("a", dict(contiguous=True)), ("b", dict(zlib=True, complevel=1, chunksizes=(1, 70, 900))),
                       ("c", dict(zlib=True, complevel=1, chunksizes=(40, 10, 10)))):
        nc.createVariable(name, "f4", ("t", "y", "x"), **more)[:] = values
    holes = nc.createVariable("holes", "f4", ("t", "y", "x"), zlib=True, chunksizes=(1, 300, 900), fill_value=-1.)
    holes[7] = values[7]
    holes[30] = values[30]
"""


def test_large_variables():
    """More than what is in memory at a time; chunks that lie across all of it, and chunks that are not there."""
    with Site() as site:
        path = site.folder / "large.nc"
        python(LARGE, path)
        run([REF, "-q", path, "esdm://l.nc"])
        told = json.loads(run([REF, "--pin", "--json", "esdm://l.nc"]).stdout)
        bytes_of = 40 * 300 * 900 * 4
        expect(told["copies"][0]["pinned"]["bytes"] == 3 * bytes_of + 2 * bytes_of // 40, told)
        moved = site.folder / "moved.nc"
        path.rename(moved)
        python(EQUAL, "whole", f"{moved}=esdm://l.nc")


def test_stated_accuracies_are_not_applied():
    with Site() as site:
        folder = make(site)
        run([REF, "-q", folder / "whole.nc", "esdm://w.nc"])
        done = python("""
import netCDF4
with netCDF4.Dataset("esdm://w.nc", "a") as nc:
    nc["step_f4"].esdm_absolute_tolerance = 5.0
""")
        done = run([REF, "--pin", "esdm://w.nc"], check=False)
        expect_error(done, "step_f4", "accuracy is stated")


def test_real_files():
    data = need_data("cmip6")
    files = sorted(data.rglob("*.nc"))[::60]
    with Site() as site:
        folder = site.folder / "copies"
        folder.mkdir()
        for f in files:
            shutil.copy(f, folder / f.name)
        run([REF, "-q", "--pin", folder, "esdm://cmip6"])
        shutil.rmtree(folder)
        python(EQUAL, "whole", *[f"{f}=esdm://cmip6/{f.name}" for f in files])


if __name__ == "__main__":
    sys.exit(main(test_generated_files_may_go, test_pinned_when_it_is_made, test_a_changed_file_is_not_pinned,
                  test_what_was_written_stays, test_large_variables, test_stated_accuracies_are_not_applied,
                  test_real_files))
