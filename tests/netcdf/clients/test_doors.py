#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""One snapshot of real files, and of files of other kinds that were made of them, through every door (the nc API,
xarray's engine, Zarr in the process and over HTTP, a mounted folder read by h5py and ncdump, byte ranges, OPeNDAP,
esdm-cp to files and to Zarr): one digest of values and attributes."""

import contextlib
import itertools
import json
import pathlib
import re
import shutil
import time

from clients import HERE, python_of
from esdmtest import SANITIZE, BUILD, Site, by_size, client_environment, expect, main, need_data, run, skip, some, tool
from inprocess import packages
from mounts import mounted, why_no_fuse
from served import serving


FAILURES_SHOWN = 40
AT_ONCE = 10  # files for one process of Python
DUMPED_BYTES = 5 << 20

# Other kinds of files, made of real ones; IN, OUT, and of the largest variable's first dimension the name DIM.
KINDS = {
    "classic": ["ncks", "-O", "-3", "IN", "OUT"],
    "64-bit offset": ["ncks", "-O", "-6", "IN", "OUT"],
    "CDF-5": ["ncks", "-O", "-5", "IN", "OUT"],
    "netCDF-4 classic": ["ncks", "-O", "-7", "IN", "OUT"],
    "packed": ["ncpdq", "-O", "-4", "IN", "OUT"],
    "packed, classic, records": ["ncpdq", "-O", "-3", "-a", "DIM", "IN", "OUT"],
    "chunked, deflate": ["nccopy", "-d", "4", "-s", "IN", "OUT"],
    "with records": ["ncks", "-O", "-4", "--mk_rec_dmn", "DIM", "IN", "OUT"],
    "records, 64-bit offset": ["ncks", "-O", "-6", "--mk_rec_dmn", "DIM", "IN", "OUT"],
    "without records": ["ncks", "-O", "-4", "--fix_rec_dmn", "all", "IN", "OUT"],
    "every second": ["ncks", "-O", "-d", "DIM,0,,2", "IN", "OUT"],
    "last first": ["ncpdq", "-O", "-a", "-DIM", "IN", "OUT"],
    "one element": ["ncks", "-O", "-d", "DIM,0", "IN", "OUT"],
    "groups": ["ncecat", "-O", "--gag", "IN", "IN2", "OUT"],
    "a new record dimension": ["ncecat", "-O", "IN", "IN", "OUT"],
    "averages": ["ncwa", "-O", "-a", "DIM", "IN", "OUT"],
    "unsigned and 64 bits": ["ncap2", "-O", "-5", "-s", "u=ushort(DIM_COUNT);v=int64(DIM_COUNT);w=ubyte(3);x=uint64(9)", "IN", "OUT"],
    "texts": ["ncatted", "-O", "-h", "-a", "text,global,c,sng,längere Texte", "-a", "many,global,c,s,1,2,3", "-a",
              "empty,global,c,c,", "IN", "OUT"],
    "cdo, 64-bit numbers": ["cdo", "-s", "-O", "-b", "F64", "-f", "nc4", "copy", "IN", "OUT"],
    "cdo, packed": ["cdo", "-s", "-O", "-b", "I16", "-f", "nc2", "copy", "IN", "OUT"],
}


def real_files():
    """Smallest and largest first, so that few are a sample of all kinds."""
    real = [*need_data("cmip6").rglob("*.nc"), *need_data("fields").glob("*.nc")]
    real.sort(key=lambda f: (f.stat().st_size, f.name))
    small = [f for f in real if f.stat().st_size < 40e6]
    return some(small, by_size(4, 10, len(small)))


def largest_dimension(file):
    told = run(["ncks", "--cdl", "-m", file]).stdout
    lengths = dict(re.findall(r"^\s+(\w+) = (?:UNLIMITED ; // \()?(\d+)", told, re.M))
    return max(lengths, key=lambda name: int(lengths[name])), lengths


def derived_files(site, real):
    """Yields (kind, file): a few of each kind in long form, one of some kinds in quick form."""
    small = [f for f in real if f.stat().st_size < 5e6]
    kinds = list(KINDS.items())[::by_size(5, 2, 1)]
    for turn in range(by_size(1, 1, 6)):
        for number, (kind, command) in enumerate(kinds):
            if shutil.which(command[0]) is None:
                continue
            file, other = (small[(7 * number + 31 * turn + i) % len(small)] for i in (0, 1))
            name, _ = largest_dimension(file)
            out = site.file(f"derived{turn}-{number}.nc")
            words = {"IN": str(file), "IN2": str(other), "OUT": str(out)}
            words = [words.get(w, w.replace("DIM_COUNT", f"${name}.size").replace("DIM", name)) for w in command]
            if run(words, check=False).returncode == 0:  # some files cannot become of some kinds
                yield f"{kind} of {file.name}", out


def of_kind(file, like):
    """ncdump breaks texts of files in the classic model into lines, and those of others not: a mounted file is
    netCDF-4 in the model of the container."""
    wanted = run(["ncdump", "-k", like]).stdout.strip()
    if run(["ncdump", "-k", file]).stdout.strip() == wanted:
        return file
    run(["nccopy", "-k", wanted, file, f"{file}4"])
    return f"{file}4"


def dump(file, whole):
    """@param whole with the values: of a large file that takes minutes, and other doors have compared them."""
    return run(["ncdump", "-p", "9,17", *([] if whole else ["-c"]), file]).stdout.splitlines()[1:]


def compare(said, told):
    """What differs, in words."""
    failures = [f"{door}: {'; '.join(told['differs'][door]) or 'other values'}"
                for door, text in told["digests"].items() if text != told["digests"]["file"]]
    if told["values"] == 0 or len(told["digests"]) < 8:
        failures.append(f"too little was compared: {told}")
    if len({json.dumps(d, sort_keys=True) for d in told["dimensions"].values()}) != 1:
        failures.append(f"dimensions differ: {told['dimensions']}")
    if told["numbers"]["file"] != told["numbers"]["DAP2"]:
        failures.append(f"OPeNDAP: {'; '.join(told['OPeNDAP'])}")
    if said["mounted"]:
        like = of_kind(said["exported"], said["mounted"])
        whole = pathlib.Path(said["file"]).stat().st_size < DUMPED_BYTES
        pairs = itertools.zip_longest(dump(like, whole), dump(said["mounted"], whole), fillvalue="(nothing)")
        differs = (f"ncdump of the mounted file: {b[:200]} instead of {a[:200]}" for a, b in pairs if a != b)
        failures += itertools.islice(differs, 3)
    return [f"{said['kind']}: {failure}" for failure in failures]


def take(site, port, folder, number, kind, file):
    name = f"real/{number}.nc"
    exported = site.file(f"{number}.nc")
    run([tool("esdm-cp"), file, f"esdm://{name}"])
    run([tool("esdm-cp"), f"esdm://{name}", exported])
    run([tool("esdm-cp"), f"esdm://{name}", site.file(f"{number}.zarr")])
    return {"kind": kind, "name": name, "file": str(file), "port": port, "exported": str(exported), "zarr": str(site.file(f"{number}.zarr")),
            "mounted": str(pathlib.Path(folder, name)) if folder else None}


def test_one_digest_through_every_door():
    if SANITIZE:
        skip("the sanitizer's library must come first, and nothing is preloaded here")
    python = python_of("zarr")
    real, most_seconds = real_files(), by_size(8, 30, 3000)
    with Site() as site, contextlib.ExitStack() as stack:
        env = client_environment({"PYTHONPATH": str(packages(site)),
                                  "ESDM_LIBRARY_DIR": f"{BUILD}:{BUILD / 'netcdf-plugin'}"})
        derived = list(derived_files(site, real))
        expect(len(derived) >= by_size(3, 8, 100), f"{len(derived)} files were derived")
        chosen = [f for pair in itertools.zip_longest(derived, ((f.name, f) for f in real)) for f in pair if f]
        port, _ = stack.enter_context(serving(site))
        reason = why_no_fuse()
        folder = stack.enter_context(mounted(site))[0] if reason is None else None
        done, begun, told, failures = 0, time.monotonic(), {}, []
        while done < len(chosen) and (done == 0 or time.monotonic() - begun < most_seconds):
            said = [take(site, port, folder, done + i, *f) for i, f in enumerate(chosen[done:done + AT_ONCE])]
            lines = run([python, HERE / "doors.py", *map(json.dumps, said)], env=env).stdout.splitlines()
            expect(len(lines) == len(said), "\n".join(lines))
            for one, line in zip(said, lines):
                told = json.loads(line)
                failures += compare(one, told)
                if len(failures) > FAILURES_SHOWN:
                    break
                pathlib.Path(one["exported"]).unlink()
                shutil.rmtree(one["zarr"])
                run([tool("esdm-rm"), one["name"]])
            done += len(said)
            print(f"{done} of {len(chosen)}, {len(failures)} differences", *failures[:3], sep="\n  ", flush=True)
        expect(not failures, f"{len(failures)} differences:\n" + "\n".join(failures))
        print(f"{done} of {len(chosen)} files ({len(real)} real, {len(derived)} derived from them) through {', '.join(sorted(told['digests']))} and OPeNDAP",
              f"; not mounted: {reason}" if reason else "")


main(test_one_digest_through_every_door)
