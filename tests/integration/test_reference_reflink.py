#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-ref --pin where a target can share the blocks of files (XFS): nothing is copied, the old bytes stay whatever
becomes of the files, and what is not needed any more goes."""

import contextlib
import json
import os
import shutil
import subprocess
import tempfile

from esdmtest import BUILD, Site, by_size, client, environment, expect, expect_error, main, need_program, run, skip, some, tool

CP, RM, GC, FSCK, REF, LS = (tool(f"esdm-{name}") for name in ("cp", "rm", "gc", "fsck", "ref", "ls"))
PYTHON = "/usr/bin/python3"
STEPS = 20

MAKE = """
import sys, netCDF4, numpy
shape = (int(sys.argv[2]), 100, 250)
for n, (name, form, options) in enumerate((("classic", "NETCDF3_64BIT_OFFSET", {}), ("plain", "NETCDF4", {}),
                                           ("deflated", "NETCDF4", dict(zlib=True, chunksizes=(4, 50, 250))))):
    values = numpy.random.default_rng(n).normal(size=(2, *shape)).astype("f4")
    with netCDF4.Dataset(f"{sys.argv[1]}/{name}.nc", "w", format=form) as d:
        for dimension, length in zip("tyx", (None, *shape[1:])):
            d.createDimension(dimension, length)
        for name, all in zip("ab", values):
            d.createVariable(name, "f4", ("t", "y", "x"), **options)[:] = all
"""
SAME = """
import sys, netCDF4, numpy
for pair in sys.argv[1:]:
    with netCDF4.Dataset(pair.split("=")[0]) as a, netCDF4.Dataset(pair.split("=")[1]) as b:
        for name in "ab":
            x, y = a[name][:], b[name][:]
            assert x.dtype == y.dtype and numpy.array_equal(numpy.ma.getdata(x), numpy.ma.getdata(y)), (pair, name)
"""
CHANGE = """
import sys, netCDF4
with netCDF4.Dataset(sys.argv[1], "r+") as d:
    d["a"][3:5, 20:70, 10:30] = 7
"""


@contextlib.contextmanager
def xfs():
    """A file system whose files can share blocks, in a file."""
    need_program("mkfs.xfs", "mount", "losetup")
    if os.geteuid() != 0:
        skip("only root mounts file systems")
    with tempfile.TemporaryDirectory(prefix="esdm-xfs.") as folder:
        image, place = f"{folder}/image", f"{folder}/mounted"
        os.mkdir(place)
        with open(image, "wb") as file:
            file.truncate(400 << 20)
        subprocess.run(["mkfs.xfs", "-q", "-m", "reflink=1", image], check=True)
        if subprocess.run(["mount", "-o", "loop", image, place], capture_output=True, check=False).returncode != 0:
            skip("no loop devices here")
        try:
            yield place
        finally:
            subprocess.run(["umount", place], check=True)


def sources(place, folder, steps=STEPS):
    """Files, and copies of them that stay, somewhere below `place`."""
    os.makedirs(folder)
    run([PYTHON, "-c", MAKE, folder, str(steps)])
    kept = tempfile.mkdtemp(prefix="kept.", dir=place)
    for name in os.listdir(folder):
        os.utime(f"{folder}/{name}", (1e9, 1e9))  # long ago: nobody writes to it
        shutil.copy2(f"{folder}/{name}", kept)
    return sorted(os.listdir(folder)), kept


def same(names, kept, prefix):
    client([PYTHON, "-c", SAME, *(f"{kept}/{n}=esdm://{prefix}/{n}" for n in names)])


def held(site):
    """Clones that the targets have."""
    return sorted(p.name for p in site.folder.rglob("files/*"))


def used(place):
    os.sync()
    s = os.statvfs(place)
    return (s.f_blocks - s.f_bfree) * s.f_frsize


def pinned(*arguments):
    return {c["target"]: c["pinned"] for c in json.loads(run([REF, "--pin", "--json", *arguments]).stdout)["copies"]}


def spoil(folder):
    """What is rewritten in place, cut off and removed."""
    data = open(f"{folder}/classic.nc", "rb").read()
    with open(f"{folder}/classic.nc", "r+b") as file:
        file.seek(len(data) // 2)
        file.write(bytes(4096))
    os.truncate(f"{folder}/deflated.nc", 1 << 20)
    os.unlink(f"{folder}/plain.nc")


def test_reflink__pins_without_copying():
    with xfs() as place, Site(parent=place) as site:
        names, kept = sources(place, f"{place}/archive")
        run([REF, "-q", f"{place}/archive", "esdm://r"])
        before = used(place)
        ways = pinned("esdm://r")
        bytes_of_all = sum(w["bytes"] for w in ways.values())
        expect(all(w["way"] == "reflink" and w["shared_bytes"] == w["bytes"] == 4000000 for w in ways.values()), ways)
        expect(used(place) - before < bytes_of_all / 10, f"{used(place) - before} bytes for {bytes_of_all}")
        expect(len(held(site)) == 3, held(site))
        expect(all(p["files"] == 0 for p in pinned("esdm://r").values()), "pinned twice")
        spoil(f"{place}/archive")
        same(names, kept, "r")
        run([FSCK, "--data"])
        run([GC, "--yes", "--age=0"])
        same(names, kept, "r")
        # A copy of it needs neither.
        run([CP, "esdm://r/plain.nc", f"{place}/copy.nc"])
        client([PYTHON, "-c", SAME, f"{kept}/plain.nc={place}/copy.nc"])
        # Clones of the container share what was cloned.
        run([CP, "--reflink", "esdm://r/plain.nc", "esdm://c/plain.nc"])
        run([RM, "--yes", "--for-good", "r/plain.nc", "r/classic.nc"])
        done = run([GC, "--yes", "--age=0", "--verbose"])
        expect(len(held(site)) == 2, f"{held(site)}: {done.stdout}")
        same(["plain.nc"], kept, "c")
        # With everything else the site moves to another folder.
        os.rename(site.folder, f"{place}/moved")
        os.environ["ESDM_CONFIG"] = f"{place}/moved/site.json"
        same(["plain.nc"], kept, "c")
        os.rename(f"{place}/moved", site.folder)
        os.environ["ESDM_CONFIG"] = str(site.config)
        run([RM, "--yes", "--for-good", "c/plain.nc"])
        run([GC, "--yes", "--age=0"])
        expect(len(held(site)) == 1, held(site))
        os.unlink(next(site.folder.rglob("files/*")))
        done = run([FSCK], check=False)
        expect(done.returncode != 0 and "problem" in done.stdout and "esdm-file:" in done.stdout, done.stdout)
        run([tool("esdm-mkfs"), "--remove", "--yes"])
        expect(not held(site), held(site))


def test_reflink__what_was_written_over_stays():
    with xfs() as place, Site(parent=place) as site:
        names, kept = sources(place, f"{place}/archive")
        run([REF, "-q", f"{place}/archive", "esdm://r"])
        for name in names:
            for target in (f"esdm://r/{name}", f"{kept}/{name}"):
                client([PYTHON, "-c", CHANGE, target])
        ways = pinned("esdm://r")
        # Files of few large parts are seen in pieces: their values are copied.
        expect(ways["esdm://r/deflated.nc"]["way"] == "both", ways)
        spoil(f"{place}/archive")
        same(names, kept, "r")
        run([FSCK, "--data"])
        # Values of clones are copied, too, when that is wanted; then nothing needs these.
        ways = pinned("--reflink=never", "esdm://r")
        expect(ways["esdm://r/deflated.nc"]["way"] == "copy", ways)
        # Snapshots of before need the clones; a copy does not.
        for name in names:
            run([CP, f"esdm://r/{name}", f"esdm://n/{name}"])
        run([RM, "--yes", "--for-good", *(f"r/{name}" for name in names)])
        run([GC, "--yes", "--age=0"])
        expect(not held(site), held(site))
        same(names, kept, "n")


def test_reflink__falls_back_to_copies():
    with xfs() as place, Site(parent=place) as site:
        with tempfile.TemporaryDirectory() as elsewhere:
            names, kept = sources(place, f"{elsewhere}/archive")
            run([REF, "-q", "--pin", f"{elsewhere}/archive", "esdm://r"])
            spoil(f"{elsewhere}/archive")
            same(names, kept, "r")
            expect(not held(site), "another file system")
        # A file of which little is referred to, and small ones.
        small, copies = sources(place, f"{place}/small", 1)
        run([REF, "-q", "--pin", f"{place}/small", "esdm://s"])
        shutil.rmtree(f"{place}/small")
        same(small, copies, "s")
        expect(not held(site), "small files")
        # One that was changed since is an error, and leaves nothing behind.
        changed, _ = sources(place, f"{place}/changed")
        run([REF, "-q", f"{place}/changed", "esdm://x"])
        spoil(f"{place}/changed")
        for name in changed:
            expect_error(run([REF, "--pin", f"esdm://x/{name}"], check=False), f"changed/{name}")
        expect(not held(site), held(site))
        expect_error(run([REF, "--pin", "--reflink", "esdm://x"], check=False), "--reflink=never")


def test_reflink__emptied_targets_tell_what_stays():
    targets = [{"name": name, "plugin": "posix", "directory": f"packs-{name}"} for name in ("one", "two")]
    with xfs() as place, Site(parent=place, targets=targets) as site:
        names, kept = sources(place, f"{place}/archive")
        run([REF, "-q", "--pin", f"{place}/archive", "esdm://r"])
        done = run([tool("esdm-drain"), "--age=0s", "--from=one"], check=False)
        expect("3 clones of files of pinned containers stay" in done.stdout + done.stderr, f"{done}")
        run([REF, "-q", "--pin", "--reflink=never", "esdm://r"])
        # A snapshot of before needs the clones; a container that begins with the newest one does not.
        for name in names:
            run([CP, "--reflink", f"esdm://r/{name}", f"esdm://n/{name}"])
        run([RM, "--yes", "--for-good", *(f"r/{name}" for name in names)])
        run([GC, "--yes", "--age=0"])
        done = run([tool("esdm-drain"), "--age=0s", "--from=one"])
        expect("clones of files" not in done.stdout + done.stderr, f"{done}")
        same(names, kept, "n")
        expect(not held(site), held(site))


def test_reflink__what_was_killed_is_gone_on_with():
    kill_at = BUILD / "tests/support/kill_at"
    with xfs() as place, Site(parent=place) as site:
        names, kept = sources(place, f"{place}/archive")
        left = 0
        for call, number in some([("fsync", 1), ("fsync", 2), ("fsync", 3), ("fsync", 4), ("ioctl", 1), ("ioctl", 2),
                                  ("pwrite64", 1), ("pwrite64", 3), ("close", 40), ("unlink", 1), ("openat", 60)], by_size(5, 8, 11)):
            run([REF, "-q", "-f", f"{place}/archive", "esdm://r"])
            done = subprocess.run([kill_at, call, str(number), REF, "-q", "--pin", "esdm://r"], check=False, env=environment(),
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            killed = done.returncode == 137 or "the process that copied it died" in done.stderr # it, or one of its processes
            expect(killed or done.returncode == 0, f"{call} {number}: {done.returncode} {done.stderr}")
            left += killed
            run([GC, "--yes", "--age=0"])
            same(names, kept, "r")
            expect(run([REF, "-q", "--pin", "esdm://r"]).returncode == 0, "pinned again")
            run([FSCK, "--data"])
            same(names, kept, "r")
        expect(left > 0, "nothing was killed")
        spoil(f"{place}/archive")
        run([GC, "--yes", "--age=0"])
        same(names, kept, "r")
        run([RM, "--yes", "--for-good", *(f"r/{name}" for name in names)])
        run([GC, "--yes", "--age=0"])
        expect(not held(site), held(site))


if __name__ == "__main__":
    main(*(f for n, f in sorted(globals().items()) if n.startswith("test_")))
