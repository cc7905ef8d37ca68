#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-seal: what is sealed does not change any more, by no program and over no handle; its signed digest
is verified; readers see retractions."""

import json
import os
import shutil
import sqlite3
import subprocess

from esdmtest import Site, client, client_environment, expect, expect_error, main, run, tool

MAKE = """
import netCDF4, numpy, sys
with netCDF4.Dataset(f"esdm://{sys.argv[1]}", "w") as d:
    d.createDimension("x", 5000)
    d.createVariable("v", "f8", ("x",))[:] = numpy.arange(5000.0) + float(sys.argv[2])
"""
# Has the container open before it is sealed, and writes after that.
LATE = """
import netCDF4, sys
d = netCDF4.Dataset("esdm://a.nc", "a")
d["v"][0] = 99
print("open", flush=True)
sys.stdin.readline()
d.close()
"""
READ = 'import netCDF4, sys\nd = netCDF4.Dataset("esdm://" + sys.argv[1])\nprint(getattr(d, "esdm_retracted", None), float(d["v"][0]))'


def make(name, first=0):
    client(["/usr/bin/python3", "-c", MAKE, name, str(first)])


def python(code, check=False):
    return client(["/usr/bin/python3", "-c", "import netCDF4\n" + code], check=check)


def seal(*arguments, check=True):
    return run([tool("esdm-seal"), *arguments], check=check)


def own_key(site):
    os.environ["XDG_CONFIG_HOME"] = str(site.file("config"))
    os.environ["ESDM_CONFIG"] = str(site.config)


def test_what_is_sealed_does_not_change():
    with Site(history=5) as site:
        own_key(site)
        make("a.nc")
        make("b.nc", 7)
        late = subprocess.Popen([tool("esdm-run"), "/usr/bin/python3", "-c", LATE], text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env=client_environment())
        expect(late.stdout.readline() == "open\n", "it is not open")
        out = seal("--note", "version 1", "a.nc")
        digest = run([tool("esdm-stat"), "--digest", "a.nc"]).stdout.split()[0]
        expect(digest in out.stdout and "version 1" in out.stdout, out.stdout)
        key = site.file("config/esdm/seal-key.pem")
        expect(key.stat().st_mode & 0o77 == 0 and "made the key" in out.stderr, out.stderr)
        _, said = late.communicate("\n", timeout=120)
        expect(late.returncode != 0 and "sealed" in said, f"{late.returncode}: {said}")
        for code in ('netCDF4.Dataset("esdm://a.nc", "a")', 'netCDF4.Dataset("esdm://a.nc", "w")'):
            expect_error(python(code))
        for command in (["esdm-cp", "-f", "esdm://b.nc", "esdm://a.nc"], ["esdm-rm", "a.nc"],
                        ["esdm-rm", "--for-good", "--yes", "a.nc"]):
            expect_error(run([tool(command[0]), *command[1:]], check=False), "sealed")
        expect_error(client(["mv", "esdm://a.nc", "esdm://c.nc"], check=False))
        expect_error(seal("a.nc", check=False), "sealed already")
        expect(python('print(netCDF4.Dataset("esdm://a.nc")["v"][0])', check=True).stdout == "0.0\n",
               "it cannot be read")
        run([tool("esdm-cp"), "esdm://a.nc", "esdm://copy.nc"])        # is another one
        python('netCDF4.Dataset("esdm://copy.nc", "a").close()', check=True)
        run([tool("esdm-tag"), "a.nc", "paper"])                       # no change of the data
        run([tool("esdm-gc")])
        seal("--verify")
        run([tool("esdm-tag"), "--remove", "a.nc", "paper"])
        run([tool("esdm-rm"), "--sealed", "a.nc"])
        run([tool("esdm-restore"), "a.nc"])
        expect_error(python('netCDF4.Dataset("esdm://a.nc", "a")'))    # sealed it comes back
        run([tool("esdm-rm"), "--sealed", "a.nc"])
        run([tool("esdm-gc"), "--replaced-now", "--yes"])
        expect_error(run([tool("esdm-restore"), "a.nc"], check=False))


def test_what_nco_writes_first_is_refused():
    """And nothing of it is left."""
    if shutil.which("ncks") is None:
        print("skipped: NCO is not installed")
        return
    with Site() as site:
        own_key(site)
        make("a.nc")
        make("b.nc", 7)
        seal("a.nc")
        done = client(["ncks", "-O", "esdm://b.nc", "esdm://a.nc"], check=False)
        expect(done.returncode != 0 and "sealed" in done.stderr, done.stderr)
        expect(run([tool("esdm-ls")]).stdout.split() == ["a.nc", "b.nc"], run([tool("esdm-ls")]).stdout)


def test_seals_are_verified():
    with Site() as site:
        own_key(site)
        make("a.nc")
        make("b.nc")
        run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", site.file("k.pem")])
        run(["openssl", "pkey", "-in", site.file("k.pem"), "-pubout", "-out", site.file("k.pub")])
        seal("--key", str(site.file("k.pem")), "a.nc")
        expect_error(seal("--key", "/nowhere", "b.nc", check=False), "/nowhere")
        seal("b.nc")
        run([tool("esdm-fsck"), "--data"])
        seal("--verify", "--public", str(site.file("k.pub")), "a.nc")
        done = seal("--verify", "--public", str(site.file("k.pub")), check=False)
        expect(done.returncode == 5, f"{done.stdout}{done.stderr}")
        told = json.loads(run([tool("esdm-seal"), "--json", "--verify"]).stdout)["containers"]
        expect([c["state"] for c in told] == ["the seal is right"] * 2, f"{told}")
        if (site.folder / "metadata").exists():                        # somebody changes the seal
            database = next(p for p in (site.folder / "metadata").iterdir()
                            if p.read_bytes()[:6] == b"SQLite")
            with sqlite3.connect(database) as db:
                names = [r[0] for r in db.execute("SELECT author FROM tag")]
            expect(len(names) == 2 and all("signature" in n for n in names), f"{names}")
        for pack in site.pack_files():
            text = bytearray(pack.read_bytes())
            text[len(text) // 2] ^= 1
            pack.write_bytes(text)
        done = seal("--verify", "a.nc", check=False)
        expect(done.returncode == 5 and "BROKEN" in done.stdout, f"{done.stdout}{done.stderr}")
        expect_error(run([tool("esdm-fsck"), "--data"], check=False), "the seal is broken")


def test_readers_see_retractions():
    with Site(history=5) as site:
        own_key(site)
        make("a.nc")
        run([tool("esdm-tag"), "a.nc", "paper"])
        seal("a.nc")
        digest = run([tool("esdm-stat"), "--digest", "a.nc"]).stdout
        seal("--retract", "wrong land mask", "a.nc")
        for name in ("a.nc", "a.nc@tag:paper", "a.nc@1"):
            done = client(["/usr/bin/python3", "-c", READ, name])
            expect(done.stdout == "wrong land mask 0.0\n", done.stdout)
            expect("was retracted" in done.stderr and "wrong land mask" in done.stderr, done.stderr)
        expect('esdm_retracted = "wrong land mask"' in
               client(["ncdump", "-h", "esdm://a.nc"]).stdout, "ncdump does not see it")
        expect("esdm_retracted" in run([tool("esdm-stat"), "-a", "a.nc"]).stdout, "esdm-stat")
        expect(run([tool("esdm-stat"), "--digest", "--exact", "a.nc"]).stdout == digest, "it counts")
        out = seal("--verify", "a.nc").stdout
        expect("wrong land mask" in out and "is right" in out, out)
        seal("--reinstate", "a.nc")
        done = client(["/usr/bin/python3", "-c", READ, "a.nc"])
        expect(done.stdout == "None 0.0\n" and "retracted" not in done.stderr, done.stdout)
        expect_error(seal("--reinstate", "a.nc", check=False), "not retracted")


if __name__ == "__main__":
    main(test_what_is_sealed_does_not_change, test_what_nco_writes_first_is_refused, test_seals_are_verified, test_readers_see_retractions)
