#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Containers that refer to objects in a bucket that refuses whoever does not sign: keys come from the configuration, the
environment or a file, and are stored in no container."""

import json
import os
import sys

from esdmtest import BUILD, Site, expect, expect_error, main, run, skip, tool
from s3server import ACCESS_KEY, BUCKET, SECRET_KEY, Server
from test_reference_update import python, store
from test_references import EQUAL, make

REF = tool("esdm-ref")

if not (BUILD / "esdm/esdm-source-http.so").exists():
    skip("built without libcurl")

for variable in [name for name in os.environ if name.startswith("AWS_")]:
    del os.environ[variable]  # the tester's own


def configure(site, server, url=None, roots=None, **keys):
    config = json.loads(site.config.read_text())
    bucket = f"{server.endpoint}/{BUCKET}"
    config["references"] = {"roots": roots or [bucket], **({"ca_file": server.ca_file} if server.ca_file else {})}
    if keys is not None:
        config["references"]["s3"] = [{"url": url or bucket, **keys}]
    site.config.write_text(json.dumps(config))
    site.config.chmod(0o600)
    return bucket


def put(server, key, data):
    answer = server.client().request("PUT", f"/{BUCKET}/{key}", body=data)
    expect(answer.status == 200, f"{key}: {answer.status} {answer.body[:200]}")


def put_folder(server, folder):
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        put(server, str(path.relative_to(folder)), path.read_bytes())


def no_secret_in(folder, *but):
    for path in folder.rglob("*"):
        if path.is_file() and path not in but:
            data = path.read_bytes()
            expect(SECRET_KEY.encode() not in data and ACCESS_KEY.encode() not in data, f"keys are in {path}")


def environment(**values):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SHARED_CREDENTIALS_FILE", "HOME"):
        os.environ.pop(name, None)
    os.environ["HOME"] = "/nonexistent"
    os.environ.update(values)


GOOD = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}


def test_a_bucket_that_wants_a_signature():
    with Site() as site, Server() as server:
        folder = make(site)
        store(folder / "s.zarr", 4)
        put_folder(server, folder)
        put(server, "of a run/one+two.nc", (folder / "odd.nc").read_bytes())
        names = sorted(p.name for p in folder.glob("*.nc"))
        bucket = configure(site, server)
        # Without keys, with wrong ones, and without a signature.
        environment()
        expect_error(run([REF, f"{bucket}/odd.nc", "esdm://x.nc"], check=False), f"{bucket}/odd.nc", "no S3 credentials", "AWS_ACCESS_KEY_ID")
        environment(AWS_ACCESS_KEY_ID=ACCESS_KEY, AWS_SECRET_ACCESS_KEY="wrong")
        done = run([REF, f"{bucket}/odd.nc", "esdm://x.nc"], check=False)
        expect_error(done, f"{bucket}/odd.nc", "the keys of AWS_ACCESS_KEY_ID", "status 403")
        environment(**GOOD)
        for name in names:
            run([REF, "-q", f"{bucket}/{name}", f"esdm://s3/{name}"])
        run([REF, "-q", f"{bucket}/of%20a%20run/one+two.nc", "esdm://space.nc"])
        python(EQUAL, "parts", *[f"{folder / n}=esdm://s3/{n}" for n in names], f"{folder / 'odd.nc'}=esdm://space.nc")
        expect_error(run([REF, f"{bucket}/none.nc", "esdm://none.nc"], check=False), f"{bucket}/none.nc", "is not there")
        run([tool("esdm-fsck"), "--data"])
        no_secret_in(site.folder)
        # Who reads it needs keys, too.
        environment(AWS_ACCESS_KEY_ID=ACCESS_KEY, AWS_SECRET_ACCESS_KEY="wrong")
        read = "import netCDF4, sys; d = netCDF4.Dataset(sys.argv[1]); [v[...] for v in d.variables.values()]"
        expect_error(python(read, "esdm://s3/whole.nc", check=False), f"{bucket}/whole.nc", "fragment [", "status 403")
        # Keys of a profile in a file, and of the configuration itself.
        environment()
        file = site.folder / "keys"
        file.write_text(f"[default]\naws_access_key_id = no\naws_secret_access_key = no\n[data]\naws_access_key_id = {ACCESS_KEY}\n"
                        f"aws_secret_access_key = {SECRET_KEY}\n")
        configure(site, server, profile="data", credentials_file="keys")
        python(EQUAL, "whole", f"{folder / 'whole.nc'}=esdm://s3/whole.nc")
        configure(site, server, profile="none", credentials_file=str(file))
        expect_error(python(read, "esdm://s3/whole.nc", check=False), "no profile [none]", str(file))
        configure(site, server, access_key=ACCESS_KEY, secret_key=SECRET_KEY)
        python(EQUAL, "whole", f"{folder / 'whole.nc'}=esdm://s3/whole.nc")
        # It was changed.
        put(server, "whole.nc", (folder / "whole.nc").read_bytes() + b"x")
        expect_error(python(read, "esdm://s3/whole.nc", check=False), f"{bucket}/whole.nc", "was changed")
        site.config.chmod(0o644)
        expect("chmod" in run([tool("esdm-ls")]).stderr, "a configuration with keys that others may read")
        no_secret_in(site.folder, file, site.config)


def test_stores_and_https():
    with Site() as site, Server(tls=True) as server:
        folder = site.folder / "z"
        folder.mkdir()
        store(folder / "s.zarr", 4)
        meta = {"zarr_consolidated_format": 1, "metadata": {str(p.relative_to(folder / "s.zarr")): json.loads(p.read_text())
                                                            for p in (folder / "s.zarr").rglob(".z*")}}
        (folder / "s.zarr/.zmetadata").write_text(json.dumps(meta))
        put_folder(server, folder)
        bucket = configure(site, server, url=f"{server.endpoint}/{BUCKET}/s.zarr")
        environment(**GOOD)
        run([REF, "-q", f"{bucket}/s.zarr", "esdm://s.zarr"])
        got = python("import netCDF4; print(*netCDF4.Dataset('esdm://s.zarr')['v'][:])").stdout.split()
        expect(got == ["4", "5", "6", "7"] * 2, got)
        # What lies beside the place is not signed.
        put(server, "other.zarr", b"x" * 1000)
        expect_error(run([REF, f"{bucket}/other.zarr", "esdm://o"], check=False), "status 403", "references.s3")
        no_secret_in(site.folder)


def test_what_the_configuration_says_wrong():
    with Site() as site, Server() as server:
        for keys, words in (({"url": "/data"}, ["s3[0].url", "no URL"]), ({"url": "http://other/x"}, ["s3[0].url", "references.roots"]),
                            ({"access_key": "a"}, ["s3[0]", "go together"]), ({"session_token": "a"}, ["needs \"access_key\""]),
                            ({"region": "a b"}, ["s3[0].region", "letters"]), ({"regoin": "a"}, ["regoin", "region"]),
                            ({"access_key": "a", "secret_key": "HIDDEN", "profile": "p"}, ["give either keys"])):
            configure(site, server, **keys)
            done = run([tool("esdm-ls")], check=False)
            expect_error(done, *words)
            expect("HIDDEN" not in done.stderr, done.stderr)


if __name__ == "__main__":
    sys.exit(main(test_a_bucket_that_wants_a_signature, test_stores_and_https, test_what_the_configuration_says_wrong))
