#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Missing and broken configurations, unreadable and foreign places: an error that names them."""

import json
import os
import pathlib
import shutil

from esdmtest import Site, client_environment, expect, expect_error, main, run, tool

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def with_config(text, *command):
    with Site(make=False) as site:
        site.config.write_text(text)
        return run([tool(command[0]), *command[1:]], check=False)


def valid():
    return {
        "site": {"name": "test"},
        "targets": [{"name": "disk", "plugin": "posix", "directory": "packs"}],
        "metadata": {"plugin": "sqlite", "directory": "metadata"},
    }


def test_syntax_error__has_line_and_column():
    done = with_config('{\n    "site": { "name": "x" },\n    "targets": [ }\n}\n', "esdm-ls")
    expect_error(done, "site.json", "3")
    expect_error(with_config("", "esdm-ls"), "site.json")
    expect_error(with_config("\x00\x01", "esdm-ls"), "site.json")


def test_unknown_key__is_named_with_the_nearest_known_one():
    config = valid()
    config["targets"][0]["direktory"] = config["targets"][0].pop("directory")
    expect_error(with_config(json.dumps(config), "esdm-ls"), "targets[0]", "direktory", "directory")
    config = valid()
    config["metdata"] = config.pop("metadata")
    expect_error(with_config(json.dumps(config), "esdm-ls"), "metdata", "metadata")


def test_wrong_type__is_named_with_its_path():
    config = valid()
    config["engine"] = {"threads": "many"}
    expect_error(with_config(json.dumps(config), "esdm-ls"), "engine.threads")
    expect_error(with_config("[]", "esdm-ls"), "object")


def test_unknown_plugin__lists_those_that_exist():
    config = valid()
    config["targets"][0]["plugin"] = "posiks"
    expect_error(with_config(json.dumps(config), "esdm-ls"), "posiks", "posix")
    with Site(make=False) as site:  # those in plug-in folders, too, and each once
        for name in ("esdm-data-brass.so", "esdm-data-posix.so", "esdm-meta-none.so", "esdm-data-.so"):
            site.file(name).touch()
        os.environ["ESDM_PLUGIN_PATH"] = str(site.folder)
        try:
            done = with_config(json.dumps(config), "esdm-ls")
        finally:
            del os.environ["ESDM_PLUGIN_PATH"]
        expect_error(done, "posiks", "posix", "brass")
        known = done.stderr.split("known: ")[1].split(")")[0].split(", ")
        expect("brass" in known and len(set(known)) == len(known), known)
        expect("none" not in known and "" not in known, known)


def test_missing_configuration_file__is_named():
    with Site(make=False) as site:
        os.environ["ESDM_CONFIG"] = str(site.file("nowhere.json"))
        expect_error(run([tool("esdm-ls")], check=False), "nowhere.json", "ESDM_CONFIG",
                     "must name the file of a site configuration")
        os.environ["ESDM_CONFIG"] = str(site.folder)
        expect_error(run([tool("esdm-ls")], check=False), "a folder",
                     "must name the file of a site configuration", str(site.folder) + "/site.json")
        for path, why in (site.file("nowhere.json"), "No such file"), (site.folder, "directory"):
            expect_error(run([tool("esdm-ls"), "--config", path], check=False),
                         "the site configuration: cannot", str(path), why)


def test_site_that_was_not_made__says_so():
    with Site(make=False):
        expect_error(run([tool("esdm-ls")], check=False), "esdm-mkfs")


def test_no_configuration__default_site_is_made_at_first_use():
    with Site(make=False) as site:
        home = site.file("home")
        home.mkdir()
        env = {"PATH": os.environ["PATH"], "HOME": str(home)}
        for name in ("ASAN_OPTIONS", "TSAN_OPTIONS"):
            env[name] = os.environ.get(name, "")
        done = run([tool("esdm-ls")], env=env, cwd=home)
        expect(done.stdout == "", f"a fresh site shows: {done.stdout}")
        source = home / "t.cdl"
        source.write_text("netcdf t { dimensions: x = 2 ; variables: int v(x) ; }")
        run([tool("esdm-run"), "ncgen", "-4", "-o", "esdm://first.nc", source], cwd=home,
            env=client_environment(env, inherit=False))
        expect((home / ".local/share/esdm").is_dir(), "the default site lies in XDG data")
        done = run([tool("esdm-ls")], env=env, cwd=home)
        expect(done.stdout.strip() == "first.nc", f"esdm-ls says: {done.stdout}")


def test_foreign_folder__is_not_touched():
    with Site(make=False) as site:
        packs = site.file("packs")
        packs.mkdir()
        (packs / "thesis.txt").write_text("years of work")
        expect_error(run([tool("esdm-mkfs")], check=False), "packs")
        expect([p.name for p in packs.iterdir()] == ["thesis.txt"], "foreign folder was changed")


def test_target_that_vanished__is_named():
    with Site() as site:
        site.packs.rename(site.file("elsewhere"))
        expect_error(run([tool("esdm-mkfs"), "--check"], check=False), "packs")


def test_target_with_packs_that_vanished__is_not_made_anew():
    posix = [{"name": "disk", "plugin": "posix", "directory": "packs"}]
    with Site(targets=posix) as site:
        for name in ("one", "two"):
            run([tool("esdm-pattern"), "-q", "-s", "10x200x200", f"esdm://{name}.nc"])
        packs = site.pack_files()
        expect(len(packs) >= 2, f"{packs}")
        lost = f"{len(packs)} of the {len(packs)} packs"
        run([tool("esdm-mkfs"), "--check"])
        away = site.packs.rename(site.file("away"))
        for mounted in (False, True):  # and a mount point without its disk
            if mounted:
                site.packs.mkdir()
            for options in ([], ["--dry-run"]):
                done = run([tool("esdm-mkfs"), *options], check=False)
                expect_error(done, "disk", f"{len(packs)} packs", "mounted", "--yes")
                expect(done.returncode == 4, f"status {done.returncode}")
            if not mounted:  # nor does anybody who reads advise to make it
                done = run([tool("esdm-cp"), "esdm://one.nc", site.file("one.nc")], check=False)
                expect_error(done, "is its disk mounted?")
            expect(not mounted or not list(site.packs.iterdir()), "something was made")
            expect(mounted or not site.packs.exists(), "the directory was made")
        run([tool("esdm-mkfs"), "--yes"])
        done = run([tool("esdm-mkfs"), "--check"], check=False)
        expect_error(done, "disk", lost, "esdm-fsck")
        expect(done.returncode == 5 and "is good" not in done.stdout, done.stdout)
        site.packs.rename(site.file("new"))
        away.rename(site.packs)
        run([tool("esdm-mkfs"), "--check"])
        packs[0].unlink()
        expect_error(run([tool("esdm-mkfs"), "--check"], check=False),
                     f"1 of the {len(packs)} packs")


def test_lost_catalogue__is_not_made_anew_beside_packs():
    posix = [{"name": "disk", "plugin": "posix", "directory": "packs"}]
    sqlite = {"plugin": "sqlite", "directory": "metadata"}
    with Site(targets=posix, metadata=sqlite) as site:
        catalogue = site.file("metadata/catalogue.sqlite")
        for lose in (lambda: os.truncate(catalogue, 0), catalogue.unlink):
            run([tool("esdm-pattern"), "-q", "-f", "-s", "10x200x200", "esdm://one.nc"])
            packs = site.pack_files()
            aside = shutil.copy(catalogue, site.file("aside"))
            lose()
            for ending in "-wal", "-shm":
                pathlib.Path(f"{catalogue}{ending}").unlink(missing_ok=True)
            expect_error(run([tool("esdm-ls")], check=False), "backup", "catalogue.sqlite")
            for options in ([], ["--dry-run"]):
                done = run([tool("esdm-mkfs"), *options], check=False)
                expect_error(done, "disk", f"{len(packs)} pack", "backup", "--yes")
                expect(done.returncode == 4, f"status {done.returncode}")
            shutil.copy(aside, catalogue)
            run([tool("esdm-mkfs")])
            run([tool("esdm-fsck"), "--data"])
        catalogue.unlink()
        run([tool("esdm-mkfs"), "--yes"])
        expect(run([tool("esdm-ls")]).stdout == "", "the new catalogue is not empty")
    with Site(targets=posix, metadata=sqlite) as site:  # what was never used is made again
        site.file("metadata/catalogue.sqlite").unlink()
        run([tool("esdm-mkfs")])


def test_unreadable_configuration__is_named():
    if os.geteuid() != 0:
        return
    with Site() as site:
        site.folder.chmod(0o755)
        site.config.chmod(0)
        tools = pathlib.Path(tool("esdm-ls"))
        if run([*NOBODY, "test", "-x", tools], check=False).returncode != 0:
            return
        done = run([*NOBODY, tools], check=False)
        expect_error(done, "site.json")


main(
    test_syntax_error__has_line_and_column,
    test_unknown_key__is_named_with_the_nearest_known_one,
    test_wrong_type__is_named_with_its_path,
    test_unknown_plugin__lists_those_that_exist,
    test_missing_configuration_file__is_named,
    test_site_that_was_not_made__says_so,
    test_no_configuration__default_site_is_made_at_first_use,
    test_foreign_folder__is_not_touched,
    test_target_that_vanished__is_named,
    test_target_with_packs_that_vanished__is_not_made_anew,
    test_lost_catalogue__is_not_made_anew_beside_packs,
    test_unreadable_configuration__is_named,
)
