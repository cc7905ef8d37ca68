#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""A store of another user, and one on read-only media: reading works, writing is told."""

import os
import pwd
import shutil
import subprocess

from esdmtest import Site, client, environment, expect, expect_error, main, run, skip, tool
from faults import PROGRAM, must, shown

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]


def need_nobody():
    """Root becomes another user who can still reach what was built."""
    if os.geteuid() != 0:
        skip("becoming another user needs root")
    if subprocess.run([*NOBODY, "test", "-x", PROGRAM], check=False).returncode:
        skip("the build folder is not readable for other users")


def as_nobody(*command):
    return run([*NOBODY, *command], check=False, env=environment({"HOME": "/nonexistent"}))


def test_store_of_another_user__is_readable():
    need_nobody()
    with Site() as site:
        must("write", "c", 1, 1)
        run(["chmod", "-R", "a+rX,go-w", site.folder])
        before = sorted(str(p) for p in site.folder.rglob("*"))
        done = as_nobody(PROGRAM, "check", "c")
        expect(done.returncode == 0 and "generation 1" in done.stdout, shown(done))
        done = as_nobody(tool("esdm-ls"))
        expect(done.returncode == 0 and "c" in done.stdout, shown(done))
        done = client(["ncdump", "-v", "tiny", "esdm://c"], check=False, prefix=NOBODY)
        expect(done.returncode == 0 and "tiny" in done.stdout, shown(done))
        expect_error(as_nobody(PROGRAM, "write", "c", 2, 2), "denied")
        expect_error(as_nobody(PROGRAM, "write", "new", 1, 1), "denied")
        owner = pwd.getpwuid(site.folder.stat().st_uid).pw_name
        for done in (as_nobody(tool("esdm-rm"), "-f", "c"), as_nobody(tool("esdm-cp"), "esdm://c", "esdm://d"),
                     client(["nccopy", "esdm://c", "esdm://d"], check=False, prefix=NOBODY)):
            expect_error(done, "read-only", f"belongs to user '{owner}'", f"ask user '{owner}'", "esdm-mkfs",
                         "ESDM_CONFIG")
        if site.packs.exists():
            catalogue = site.folder / "metadata" / "catalogue.sqlite"
            os.chown(catalogue, 0, 65521)
            catalogue.chmod(0o664)
            expect_error(as_nobody(tool("esdm-rm"), "-f", "c"), "ask to be made a member of group 65521")
            catalogue.chmod(0o644)
        # The owner goes on, also beside a reader of the other user.
        must("write", "c", 2, 2)
        done = as_nobody(PROGRAM, "check", "c")
        expect("generation 2" in done.stdout, shown(done))
        after = sorted(str(p) for p in site.folder.rglob("*") if p.stat().st_uid == 65534)
        expect(not after, f"the reader left files: {after}; before: {before}")


GROUP, ADA, BOB, EVE = 65521, 65522, 65523, 65524


def test_members_of_a_group__share_a_site():
    """As site-config/README.md makes it. Whatever the umask of who writes: the rights of the directories
    say who reads, also of the journals, from which any member may restore."""
    need_nobody()
    with Site() as site:
        if not site.packs.exists():
            skip("data lie elsewhere")
        site.folder.chmod(0o755)
        site.config.chmod(0o644)
        home = site.file("home")
        home.mkdir()
        home.chmod(0o777)

        def rights(mode):
            for folder in site.packs, site.folder / "metadata":
                for path in folder, *folder.rglob("*"):
                    os.chown(path, ADA, GROUP)
                    path.chmod(mode if path.is_dir() else 0o660 | (mode & 0o004))

        def member(who, *command, check=True):
            groups = ["--clear-groups"] if who == EVE else [f"--groups={GROUP}"]
            return run(["setpriv", f"--reuid={who}", f"--regid={who}", *groups, "--", *command], umask=0o077,
                       check=check, env=environment({"HOME": str(home), "XDG_CACHE_HOME": str(home / str(who))}))

        for mode in 0o2775, 0o2770:
            rights(mode)
            made = f"of-ada-{mode:o}"
            # a shard folder that is lost is made by whoever needs it
            for shard in site.packs.iterdir():
                if shard.is_dir() and not any(shard.iterdir()):
                    shard.rmdir()
            member(ADA, tool("esdm-pattern"), "-q", "-s", "64x64", f"esdm://{made}")
            member(BOB, tool("esdm-cp"), f"esdm://{made}", home / f"{made}.nc")
            member(BOB, tool("esdm-cp"), home / f"{made}.nc", f"esdm://of-bob-{mode:o}")
            member(ADA, tool("esdm-cp"), "-f", f"esdm://of-bob-{mode:o}", home / "back.nc")
            for who in ADA, BOB:
                member(who, tool("esdm-fsck"), "--data")
            packs = [p for p in site.packs.rglob("*") if p.is_file() and p.name != "esdm-mark.json"]
            expect(len(packs) >= 4, f"packs and journals: {packs}")
            for path in packs:
                expect(path.stat().st_mode & 0o444 == mode & 0o444, f"{path}: {path.stat().st_mode:o}")
            got = member(EVE, tool("esdm-cp"), "-f", f"esdm://{made}", home / "eve.nc", check=False)
            if mode & 0o004:
                expect(got.returncode == 0, shown(got))
                expect_error(member(EVE, tool("esdm-rm"), made, check=False), "read-only")
            else:
                expect_error(got, "denied")
        # anybody of the group restores the site from what lies on the targets
        (site.folder / "metadata" / "catalogue.sqlite").unlink()
        for name in "-wal", "-shm":
            (site.folder / "metadata" / f"catalogue.sqlite{name}").unlink(missing_ok=True)
        member(BOB, tool("esdm-mkfs"), "--restore", site.config)
        expect(len(member(BOB, tool("esdm-ls")).stdout.split()) == 4, "containers of others are missing")
        member(BOB, tool("esdm-fsck"), "--data")


def test_unreadable_store__is_told():
    need_nobody()
    with Site() as site:
        must("write", "c", 1, 1)
        run(["chmod", "-R", "a+rX", site.folder])
        site.packs.chmod(0o700)
        expect_error(as_nobody(PROGRAM, "check", "c"), "denied", "packs")
        site.packs.chmod(0o755)
        (site.folder / "metadata").chmod(0o700)
        expect_error(as_nobody(PROGRAM, "check", "c"), "denied", "metadata")


def test_read_only_media__are_readable():
    if os.geteuid() != 0:
        skip("mounting needs root")
    with Site() as site:
        must("write", "c", 1, 1)
        place = site.file("media")
        place.mkdir()
        for name in ("site.json", "packs", "metadata"):
            source = site.file(name)
            copy = shutil.copytree if source.is_dir() else shutil.copy2
            copy(source, place / name)
        script = (f"mount --bind {place} {place} && mount -o remount,ro,bind {place} && "
                  f"export ESDM_CONFIG={place}/site.json && "
                  f"{PROGRAM} check c && ! touch {place}/x 2>/dev/null && "
                  f"{{ {PROGRAM} write c 2 2; echo status $?; }}")
        done = run(["unshare", "-m", "sh", "-c", script], check=False)
        if "unshare:" in done.stderr or "mount:" in done.stderr:
            skip("may not make a mount namespace")
        expect("generation 1" in done.stdout, f"not readable:\n{shown(done)}")
        expect("status 3" in done.stdout, f"writing was not refused:\n{shown(done)}")
        expect("read-only" in done.stderr.lower() or "denied" in done.stderr.lower(), shown(done))


main(test_store_of_another_user__is_readable, test_members_of_a_group__share_a_site, test_unreadable_store__is_told,
     test_read_only_media__are_readable)
