#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""No terminal obeys what stands in names, attributes and texts: tools and the plug-in spell it out.
JSON stays exact, and names in all scripts stay readable."""

import json
import re
import subprocess

from esdmtest import Failed, Site, client_environment, environment, expect, main, tool

READABLE = "Größe_海面水温_температура"
BAD = "\x1b[31mred\x1b]0;title\x07 \x9b2J \u202egnp.exe \u2066x\u2069 \ufeff"
BAD_NAME = "v\u202egnp\u2066x\ufeff"  # what names may hold

MAKE = f"""
import netCDF4
d = netCDF4.Dataset("esdm://dir/{READABLE}{BAD_NAME}.nc", "w")
d.title = {BAD!r}
d.createDimension({BAD_NAME!r}, 3)
g = d.createGroup("g" + {BAD_NAME!r})
v = d.createVariable({BAD_NAME!r}, "f4", ({BAD_NAME!r},))
v.units = "K" + {BAD!r}
v[:] = 1
t = g.createVariable("text", str, ({BAD_NAME!r},))
t[0] = {BAD!r}
d.close()
"""

FAIL = f"""
import netCDF4
try:
    netCDF4.Dataset("esdm://no\\x1b[31m{BAD_NAME}/../x.nc", "w")
except Exception:
    pass
d = netCDF4.Dataset("esdm://bad{BAD_NAME}.nc", "w")
d.createDimension("x", 1)
import os
os._exit(3)
"""

# A tolerance that does not fit the numbers.
UNFIT = f"""
import sys, netCDF4
with netCDF4.Dataset(sys.argv[1], "w") as d:
    v = d.createVariable({BAD_NAME!r}, "f4", ())
    v.esdm_absolute_tolerance = 100.0
    v[...] = 1
"""

COPY = f"""
import sys, netCDF4
with netCDF4.Dataset(sys.argv[1]) as source, netCDF4.Dataset("esdm://dir/b{BAD_NAME}.nc", "w") as d:
    v = d.createVariable({BAD_NAME!r}, "f4", ())
    v.esdm_absolute_tolerance = source[{BAD_NAME!r}].esdm_absolute_tolerance
    v[...] = 1
"""

NEAR = f"""
import contextlib, netCDF4
with contextlib.suppress(OSError):
    netCDF4.Dataset("esdm://dir/duobt{BAD_NAME}.nc")
"""

DANGEROUS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def check(command, env=None, allowed=(0,)):
    done = subprocess.run([str(c) for c in command], env=env or environment(), capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=300, check=False)
    if done.returncode not in allowed:
        raise Failed(f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    for what in (done.stdout, done.stderr):
        try:
            text = what.decode("utf-8")
        except UnicodeDecodeError as problem:
            raise Failed(f"{command}: not UTF-8: {problem}: {what[-500:]}") from problem
        found = DANGEROUS.search(text)
        expect(not found, f"{command} prints {ascii(found and found[0])}: {ascii(text[-1500:])}")
    return done.stdout.decode(), done.stderr.decode()


def test_tools_and_plugin():
    with Site() as site:
        name = f"esdm://dir/{READABLE}{BAD_NAME}.nc"
        run = [tool("esdm-run"), "/usr/bin/python3", "-c"]
        check([*run, MAKE], client_environment())
        out, _ = check([tool("esdm-ls"), "-l"])
        expect(READABLE in out and "\\u202e" in out and "\\u2066" in out, ascii(out))
        out, _ = check([tool("esdm-stat"), "-a", name])
        expect("\\x1b[31mred" in out, ascii(out))
        for command in (["esdm-stat", "--explain", name], ["esdm-find", "title ~ '*'"],
                        ["esdm-cp", name, "esdm://copy" + BAD_NAME], ["esdm-fsck"],
                        ["esdm-gc"], ["esdm-advise", name], ["esdm-mkfs", "--check"],
                        ["esdm-rm", "esdm://copy" + BAD_NAME], ["esdm-ls", "dir/" + READABLE]):
            check([tool(command[0]), *command[1:]], allowed=(0, 1, 2, 3, 4))
        for command in (["esdm-stat", "esdm://absent" + BAD_NAME],
                        ["esdm-cp", "absent\x1b[31m" + BAD, "esdm://x"],
                        ["esdm-rm", "esdm://absent" + BAD_NAME], ["esdm-ls", "--no\x1b[31m"],
                        ["esdm-find", BAD], ["esdm-mkfs", site.file("no\x1b[31m.json")],
                        ["esdm-run", "./no\x1b[31m"]):
            _, err = check([tool(command[0]), *command[1:]], allowed=range(1, 128))
            expect(err, f"{command}: no message")
        env = client_environment({"ESDM_DEBUG": "1"})
        _, err = check([*run, FAIL], env, allowed=(3,))
        expect("\\x1b[31m" in err, ascii(err))
        plain = site.file("plain.nc")
        check([*run, UNFIT, plain], client_environment())
        for command, told in (([*run, COPY, plain], "is not taken"),
                              ([run[0], "nccopy", plain, f"esdm://dir/doubt{BAD_NAME}.nc"], "is not taken"),
                              ([*run, NEAR], "did you mean")):
            _, err = check(command, client_environment())
            expect(told in err, ascii(err))
        # What programs read is exact.
        done = subprocess.run([tool("esdm-stat"), "--json", name], env=environment(), check=True,
                              stdout=subprocess.PIPE)
        expect(BAD in json.dumps(json.loads(done.stdout), ensure_ascii=False).replace(
            json.dumps(BAD, ensure_ascii=False)[1:-1], BAD), done.stdout[-500:])
        done = subprocess.run([tool("esdm-ls"), "-0"], env=environment(), check=True,
                              stdout=subprocess.PIPE)
        expect(name[7:].encode() + b"\0" in done.stdout, ascii(done.stdout))


main(test_tools_and_plugin)
