#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Whom ESDM obeys: configurations of others, setuid programs, keys that everybody can read."""

import os
import pathlib
import shutil
import stat
import tempfile

from esdmtest import (Failed, SANITIZE, Site, client, environment, expect, expect_error, main, run,
                      skip, tool)

STRANGER = 65533


def plain_environment(**more):
    """None that names a configuration."""
    env = {k: v for k, v in environment().items() if k != "ESDM_CONFIG"}
    return {**env, **more}


def test_found_configuration__must_be_the_users_own():
    with Site() as site:
        env = plain_environment(XDG_CONFIG_HOME=str(site.file("xdg")))
        here = site.file("esdm.json")
        shutil.copy(site.config, here)
        run([tool("esdm-ls")], env=env, cwd=site.folder)

        def refused(*words):
            for command in ([tool("esdm-ls")], [tool("esdm-mkfs"), "--check"]):
                expect_error(run(command, env=env, cwd=site.folder, check=False), "esdm.json",
                             "ESDM_CONFIG", *words)
            # Who names it, trusts it: a site of a group is used so.
            for name in (str(here), "esdm.json"):
                run([tool("esdm-ls")], env={**env, "ESDM_CONFIG": name}, cwd=site.folder)
            run([tool("esdm-ls"), "--config", "esdm.json"], env=env, cwd=site.folder)

        here.chmod(0o646)
        refused("everybody can write", "chmod o-w")
        here.chmod(0o664)
        if os.getuid() == 0:
            os.chown(here, -1, STRANGER)
            refused("group can write", "chmod g-w")
            os.chown(here, STRANGER, 0)
            here.chmod(0o644)
            refused("another user")
            os.chown(here, 0, 0)
            run([tool("esdm-ls")], env=env, cwd=site.folder)
            # A link of somebody else to a good one.
            here.unlink()
            here.symlink_to(site.config)
            run([tool("esdm-ls")], env=env, cwd=site.folder)
            os.chown(here, STRANGER, STRANGER, follow_symlinks=False)
            refused("link")
        here.unlink()
        os.mkfifo(here, 0o600)
        expect_error(run([tool("esdm-ls")], env=env, cwd=site.folder, check=False, timeout=60),
                     "regular")


def test_foreign_configuration__routes_nothing():
    """What a NetCDF program writes in a folder of everybody goes where it said."""
    if os.getuid() != 0:
        skip("only root can make files of another user")
    with Site() as site:
        here = site.file("esdm.json")
        here.write_text(site.config.read_text().replace(
            '"metadata"', f'"netcdf": {{"routes": ["{site.folder}"]}}, "metadata"', 1))
        source = site.file("t.cdl")
        source.write_text("netcdf t { dimensions: x = 2 ; variables: int v(x) ; data: v = 1, 2 ; }")
        saved = dict(os.environ)
        os.environ.pop("ESDM_CONFIG")
        try:
            client(["ncgen", "-4", "-o", site.file("own.nc"), source], cwd=site.folder)
            os.chown(here, STRANGER, STRANGER)
            client(["ncgen", "-4", "-o", site.file("plain.nc"), source], cwd=site.folder)
            done = client(["ncgen", "-4", "-o", "esdm://x.nc", source], cwd=site.folder, check=False)
            expect_error(done, "belongs to another user")
        finally:
            os.environ.update(saved)
        expect(run([tool("esdm-ls")]).stdout.count("own.nc") == 1, "the own one routes")
        expect(site.file("plain.nc").read_bytes()[1:4] == b"HDF", "the foreign one does not")


def test_setuid_program__ignores_the_environment():
    if os.getuid() != 0 or SANITIZE:
        skip("needs root, and programs without sanitizers")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="esdm-setuid.", dir="/var/tmp"))
    try:
        folder.chmod(0o755)
        if os.statvfs(folder).f_flag & os.ST_NOSUID:
            skip("setuid programs do not work here")
        program = folder / "esdm-ls"
        shutil.copy(tool("esdm-ls"), program)
        os.chown(program, STRANGER, STRANGER)
        with Site() as site:
            run([tool("esdm-pattern"), "-q", "-s", "2x2", "esdm://seen.nc"])
            for path in [site.folder, *site.folder.rglob("*")]:
                os.chown(path, STRANGER, STRANGER)
                path.chmod(0o755 if path.is_dir() else 0o644)
            shutil.copy(site.config, site.file("esdm.json"))
            env = environment({"HOME": str(folder)})

            def ls(**more):
                done = run([program], env={**env, **more}, cwd=site.folder, check=False,
                           user=STRANGER - 1, group=STRANGER - 1, extra_groups=[])
                return done

            expect(ls().stdout.split() == ["seen.nc"], "without setuid it is as always")
            program.chmod(0o755 | stat.S_ISUID)
            if ls().stdout.split() == ["seen.nc"]:
                raise Failed("a setuid program obeys $ESDM_CONFIG")
            expect("no site" in ls().stderr, ls().stderr)
    finally:
        shutil.rmtree(folder)


def test_secret_that_everybody_can_read__is_warned_of():
    with Site() as site:
        targets = ('[{"name": "disk", "plugin": "posix", "directory": "packs"}, {"name": "far", '
                   '"plugin": "s3", "bucket": "b", "endpoint": "http://127.0.0.1:1", '
                   '"access_key": "a", "secret_key": "k"}]')
        before = site.config.read_text()
        start = before.index("[")
        site.config.write_text(before[:start] + targets + before[before.index("]") + 1:])
        site.config.chmod(0o600)
        done = run([tool("esdm-ls")], check=False)
        expect("chmod" not in done.stderr, done.stderr)
        site.config.chmod(0o644)
        done = run([tool("esdm-ls")], check=False)
        expect(done.stderr.count("chmod o-r") == 1 and "secret" in done.stderr, done.stderr)
        expect("'k'" not in done.stderr, "the key is shown")
        done = run([tool("esdm-mkfs"), "--check"], check=False)
        expect("chmod o-r" in done.stdout + done.stderr, done.stdout + done.stderr)


def test_password_of_records_that_everybody_can_read__is_warned_of():
    for url, told in (("postgresql://me:pw@127.0.0.1:1/d", True),
                      ("postgresql://127.0.0.1:1/d?user=me&password=pw", True),
                      ("postgresql://me@127.0.0.1:1/d", False)):
        with Site(monitor={"modules": ["stats"], "stats_file": url}) as site:
            site.config.chmod(0o644)
            done = run([tool("esdm-ls")], check=False)
            expect(("chmod o-r" in done.stderr) == told, f"{url}: {done.stderr}")


main(test_found_configuration__must_be_the_users_own, test_foreign_configuration__routes_nothing,
     test_setuid_program__ignores_the_environment,
     test_secret_that_everybody_can_read__is_warned_of,
     test_password_of_records_that_everybody_can_read__is_warned_of)
