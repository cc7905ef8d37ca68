#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""A PostgreSQL server of a site's own: made, started by the first program, stopped when idle, moved, killed."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from esdmtest import (BUILD, Site, by_size, client, expect, expect_error, main_at_once, need_data, run,  # noqa: E402
                      tool)
from nodes import wait_until  # noqa: E402
from ownserver import APPEND, LOCAL, SETTINGS, OwnServer, check_shared, dump, shared_container  # noqa: E402
from postgres import skip_without_postgres  # noqa: E402

# ---- made and removed -----------------------------------------------------------------------------

def test_private__one_line_makes_it_and_programs_start_it():
    source = sorted(need_data("cmip6").rglob("*.nc"), key=lambda p: p.stat().st_size)[0]
    with OwnServer(make=False) as own:
        own.tool("--make", *LOCAL, *SETTINGS)
        before = own.site.config.read_text()
        done = run([tool("esdm-mkfs"), "--private-postgres", own.folder, "--dry-run"])
        expect("nothing was changed" in done.stdout, done.stdout)
        expect(own.site.config.read_text() == before, "a dry run has changed the configuration")
        run([tool("esdm-mkfs"), "--private-postgres", own.folder])
        config = json.loads(own.site.config.read_text())
        expect(config["metadata"] == {"plugin": "postgres", "directory": str(own.folder)}, config)
        for name in ("password", "admin-password", "server.key"):
            mode = (own.folder / name).stat().st_mode & 0o777
            expect(mode == 0o600, f"{name}: {mode:o}")
        own.tool("--stop")
        expect(own.status()["state"] == "stopped", own.status())
        expect(own.postmasters() == [], "it runs on")
        run([tool("esdm-cp"), source, "esdm://a.nc"])
        expect(own.status()["state"] == "running", own.status())
        expect(dump("esdm://a.nc") == dump(source), "the container differs")
        done = run([tool("esdm-mkfs"), "--check"])
        expect("runs on node" in done.stdout, done.stdout)
        run([tool("esdm-mkfs"), "--private-postgres", own.folder])  # changes nothing
        run([tool("esdm-mkfs"), "--remove", "--yes"])
        expect(own.postmasters() == [], "it runs on")
        expect(not own.folder.exists() or not list(own.folder.iterdir()), "something is left")


def test_private__stops_when_idle_and_starts_again():
    with OwnServer(*LOCAL) as own:
        settings = json.loads((own.folder / "esdm-postgres.json").read_text())
        settings["idle"] = 1
        (own.folder / "esdm-postgres.json").write_text(json.dumps(settings))
        shared_container()
        # Somebody who is connected keeps it, for longer than the idle time.
        script = ("import netCDF4, time\nd = netCDF4.Dataset('esdm://shared.nc', 'a')\ntime.sleep(4)\n"
                  "d['v'][0, 0] = 0\nd.close()\n")
        client(["/usr/bin/python3", "-c", script])
        number = own.leases()[-1]
        wait_until(lambda: own.status()["state"] == "stopped", "it stops")
        expect(own.postmasters() == [], "it runs on")
        check_shared([0], 1)
        expect(own.leases()[-1] == number + 1, f"{own.leases()}")


def test_private__limits_of_the_first_program_are_its_own():
    with OwnServer(*LOCAL) as own:
        run(["prlimit", "--fsize=100000:unlimited", "--cpu=20:unlimited", tool("esdm-ls")])
        expect(own.status()["state"] == "running", own.status())
        shared_container()  # grows the server's log beyond that
        number = own.leases()[-1]
        check_shared([], 0)
        postmaster = own.postmasters()[0]
        limits = pathlib.Path(f"/proc/{postmaster}/limits").read_text()
        for line in limits.splitlines():
            if line.startswith(("Max file size", "Max cpu time")):
                expect("100000" not in line and " 20 " not in line, line)
        expect(own.leases()[-1] == number, "another server was started")


def test_private__errors_say_what_to_do():
    with OwnServer(make=False) as own:
        foreign = own.folder / "thesis.tex"
        foreign.write_text("x")
        expect_error(own.tool("--make", check=False), "not empty", "thesis.tex")
        expect(foreign.exists(), "a foreign file is gone")
        foreign.unlink()
        expect_error(own.tool("--make", "--binaries", "/usr/share", check=False),
                     "not installed", "package postgresql-15")
        expect_error(own.tool("--start", check=False), "no PostgreSQL server", "--make")
        expect_error(own.tool("--make", "--lease", "1", check=False), "3 ...")
        if os.geteuid() == 0:
            roots = own.site.folder / "roots"
            expect_error(run([tool("esdm-postgres"), "--make", roots], check=False), "root", "install -d")
            expect_error(run([tool("esdm-mkfs"), "--private-postgres", roots], check=False), "root")
            expect("sqlite" in own.site.config.read_text(), "the configuration was changed")
        run([tool("esdm-mkfs")])
        expect_error(run([tool("esdm-mkfs"), "--private-postgres", own.folder], check=False),
                     "--migrate")
        own.tool("--make", *LOCAL)
        mark = own.folder / "esdm-postgres.json"
        mark.write_text(mark.read_text().replace('"15"', '"99"').replace('"idle"', '"idel"'))
        expect_error(own.tool("--start", check=False), "unknown key", "idel")
        mark.write_text(mark.read_text().replace('"idel"', '"idle"'))
        if '"99"' in mark.read_text():
            expect_error(own.tool("--start", check=False), "PostgreSQL 99 is not installed")
        own.site.config.write_text(json.dumps({**json.loads(own.site.config.read_text()), "metadata": {
            "plugin": "postgres", "directory": str(own.folder), "user": "x"}}))
        expect_error(run([tool("esdm-ls")], check=False), "metadata", "user", "the site's own")


def test_private__others_cannot_use_it():
    if os.geteuid() != 0:
        return
    with OwnServer(*LOCAL) as own:
        done = run(["setpriv", "--reuid=nobody", "--clear-groups", tool("esdm-ls")], check=False)
        expect_error(done, "permission denied")


def test_private__another_server_at_its_place_is_not_taken_for_it():
    """Whoever listens there gets no password."""
    with OwnServer(*LOCAL) as own:
        run([tool("esdm-ls")])
        port = own.status()["port"]
        own.tool("--stop")
        script = ("import socket, sys\ns = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
                  "print('up', flush=True)\nsaid = b''\nc, _ = s.accept()\nsaid += c.recv(4096)\n"
                  "c.sendall(b'N')\nsaid += c.recv(4096)\nprint(said, flush=True)\n")
        with subprocess.Popen(["/usr/bin/python3", "-c", script, str(port)], stdout=subprocess.PIPE,
                              text=True) as other:
            expect(other.stdout.readline() == "up\n", "no listener")
            run([tool("esdm-ls")])
            said = other.stdout.readline()
        password = (own.folder / "password").read_text().strip()
        expect(password not in said and "esdm" not in said, said)
        expect(own.status()["port"] != port, "the port is taken")


def test_private__an_ordinary_user_needs_nothing():
    """Not even a folder that somebody has made."""
    with Site(make=False, parent="/dev/shm") as site:
        as_user = []
        if os.geteuid() == 0:
            as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "env",
                       "PGHOST=nowhere.invalid", f"HOME={site.folder}"]
            for path in (site.folder, site.config):
                shutil.chown(path, "postgres", "postgres")
        folder = site.folder / "own" / "postgres"
        run([*as_user, tool("esdm-postgres"), "--make", *LOCAL, *SETTINGS, folder])
        try:
            run([*as_user, tool("esdm-mkfs"), "--private-postgres", folder])
            source = site.file("x.cdl")
            source.write_text("netcdf x { dimensions: t = 2 ; variables: int v(t) ; data: v = 1, 2 ; }")
            source.chmod(0o644)
            client(["ncgen", "-o", "esdm://x.nc", source], prefix=as_user)
            expect("v = 1, 2" in client(["ncdump", "esdm://x.nc"], prefix=as_user).stdout, "values")
            run([*as_user, tool("esdm-mkfs"), "--remove", "--yes"])
            expect(not folder.exists(), "the folder is left")
        finally:
            if folder.exists():
                run([*as_user, tool("esdm-postgres"), "--stop", folder])


def test_private__catalogues_move_there_and_back():
    with OwnServer(make=False) as own:
        run([tool("esdm-mkfs")])
        shared_container()
        own.tool("--make", *LOCAL, *SETTINGS)
        config = json.loads(own.site.config.read_text())
        there, back = own.site.folder / "there.json", own.site.folder / "back.json"
        there.write_text(json.dumps({**config, "metadata": {"plugin": "postgres",
                                                            "directory": str(own.folder)}}))
        back.write_text(json.dumps({**config, "metadata": {"plugin": "sqlite", "directory": "back"}}))
        run([tool("esdm-mkfs"), "--migrate", own.site.config, there])
        expect(run([tool("esdm-ls"), "--config", there]).stdout.split() == ["shared.nc"], "not there")
        run([tool("esdm-mkfs"), "--migrate", there, back])
        expect(run([tool("esdm-ls"), "--config", back]).stdout.split() == ["shared.nc"], "not back")


def test_private__other_tests_pass_on_it():
    """Sites of their own in the same server, while it is started by whoever comes first."""
    with OwnServer(*LOCAL) as own:
        text = json.loads(own.site.config.read_text())
        text["metadata"] = {"plugin": "postgres", "directory": str(own.folder), "schema": "t@hex@"}
        text["targets"] = [{"name": "disk", "plugin": "posix", "directory": "packs"}]
        text.pop("site", None)
        template = own.site.folder / "template.json"
        template.write_text(json.dumps(text))
        for name in by_size(["processes"], ["processes"], ["commit", "processes", "threads"]):
            run([BUILD / f"tests/integration/integration_{name}"],
                env={**os.environ, "ESDM_TEST_SITE": str(template)}, timeout=1800)
            own.tool("--stop")


# ---- killed -------------------------------------------------------------------------------------

def test_private__a_killed_server_comes_back():
    count = by_size(60, 80, 600)
    with OwnServer(*LOCAL) as own:
        shared_container()
        for victim in ("postmaster", "keeper"):
            with subprocess.Popen([tool("esdm-run"), "/usr/bin/python3", "-c", APPEND, "0", str(count)],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as program:
                expect(program.stdout.readline() == "open\n", "not open")
                expect(program.stdout.readline() == "begun\n", "not begun")
                os.kill(own.postmasters()[0] if victim == "postmaster" else own.status()["process"],
                        signal.SIGKILL)
                said = program.stdout.read()
                expect(program.wait() == 0 and "done" in said, f"{victim}: {said}")
            check_shared([0], count)
            expect(len(own.postmasters()) == 1, f"{victim}: {own.postmasters()}")


# ---- backup -------------------------------------------------------------------------------------

def test_private__a_lost_folder_is_restored_from_the_targets():
    sources = sorted(need_data("cmip6").rglob("*.nc"), key=lambda p: p.stat().st_size)[:3]
    with OwnServer(*LOCAL) as own:
        for i, source in enumerate(sources):
            run([tool("esdm-cp"), source, f"esdm://{i}.nc"])
        own.tool("--stop")
        shutil.rmtree(own.folder / "data")
        expect_error(run([tool("esdm-ls")], check=False), "log")
        for path in own.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        expect_error(run([tool("esdm-ls")], check=False), "esdm-mkfs")
        own.tool("--make", *LOCAL, *SETTINGS)
        run([tool("esdm-mkfs"), "--restore"])
        for i, source in enumerate(sources):
            expect(dump(f"esdm://{i}.nc") == dump(source), f"{source.name} differs")
        run([tool("esdm-fsck"), "--data"])


def test_private__a_copy_of_the_folder_serves_elsewhere():
    with OwnServer(*LOCAL) as own:
        shared_container()
        own.tool("--stop")
        copy = own.site.folder / "copy"
        run(["cp", "-a", own.folder, copy])
        shutil.rmtree(own.folder)
        copy.rename(own.folder)
        check_shared([], 0)


if __name__ == "__main__":
    skip_without_postgres()
    main_at_once(test_private__one_line_makes_it_and_programs_start_it,
                 test_private__stops_when_idle_and_starts_again,
                 test_private__limits_of_the_first_program_are_its_own,
                 test_private__errors_say_what_to_do,
                 test_private__others_cannot_use_it,
                 test_private__another_server_at_its_place_is_not_taken_for_it,
                 test_private__an_ordinary_user_needs_nothing,
                 test_private__catalogues_move_there_and_back,
                 test_private__other_tests_pass_on_it,
                 test_private__a_killed_server_comes_back,
                 test_private__a_lost_folder_is_restored_from_the_targets,
                 test_private__a_copy_of_the_folder_serves_elsewhere, processes=3)
