#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-recipe record --image: programs that run in images of containers (bubblewrap on a root file system of a folder), pinned by
digests, bounded as others are, and refused when the image is not what it was."""

import json
import os
import pathlib
import pty
import shutil
import subprocess

from esdmtest import SANITIZE, Site, client, client_environment, expect, expect_error, main, need_program, run, skip, tool

MEAN = ["ncra", "-O", "esdm://in.nc", "esdm://mean.nc"]


def recipe(*arguments, check=True, **more):
    return run([tool("esdm-recipe"), *map(str, arguments)], check=check, **more)


def pattern(name, seed, shape="time=3,lat=64,lon=128"):
    run([tool("esdm-pattern"), "-q", "-f", "-s", shape, "-u", "-v", "tas", "--seed", str(seed), f"esdm:{name}"])


def needs(program):
    """Paths of the libraries of a program, and of the loader."""
    text = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    return [word for line in text.splitlines() for word in line.split() if word.startswith("/")]


def make_image(folder, *programs):
    """A root file system in which nothing is but programs and what they are linked with."""
    for name in programs:
        path = pathlib.Path(shutil.which(name)).resolve()
        for source in (str(path), *needs(path)):
            to = folder / source.lstrip("/")
            to = folder / "usr/bin" / name if source == str(path) else to
            to.parent.mkdir(parents=True, exist_ok=True)
            if not to.exists():
                shutil.copy(source, to)
    (folder / "etc").mkdir()
    (folder / "etc/hostname").write_text("image\n")
    (folder / "bin").symlink_to("usr/bin") if not (folder / "bin").exists() else None
    (folder / "tmp").mkdir()
    (folder / "home").mkdir()
    return folder


def need_bubblewrap():
    need_program("bwrap", "ncra", "ncks", "ldd")
    if SANITIZE:
        skip("the image has no runtime of a sanitizer")
    if subprocess.run(["bwrap", "--ro-bind", "/", "/", "true"], check=False, capture_output=True).returncode != 0:
        skip("bubblewrap may not make namespaces here")


def values(name):
    return client(["ncdump", "-v", "tas", f"esdm://{name}"]).stdout


def test_record_check_drop_restore():
    need_bubblewrap()
    with Site(history=1) as site:
        image = make_image(site.file("image"), "ncra", "sh", "mv")
        pattern("in.nc", 1, "time=3,lat=512,lon=1024")
        run([tool("esdm-run"), "--record", "--image", image, *MEAN], env=client_environment(), cwd=site.folder)
        before = values("mean.nc")
        known = json.loads(recipe("--json", "show", "mean.nc").stdout)
        expect(known["version"] == 2 and known["image"]["folder"] == str(image) and known["image"]["bytes"] > 1 << 20, f"{known}")
        expect([i.get("container") for i in known["inputs"]] == ["in.nc"], f"no program of this machine: {known['inputs']}")
        expect(known["image"]["sha256"] in recipe("show", "mean.nc").stdout, "show")
        os.utime(image / "usr/bin/ncra")                       # times, and what a run has of its own, do not count
        (image / "tmp/left").write_text("left")
        expect(json.loads(recipe("--json", "check", "mean.nc").stdout)["same"], "bit for bit")
        dropped = recipe("drop", "mean.nc")
        expect(str(image) in dropped.stderr, f"values hang on the image: {dropped.stderr}")

        kept = (image / "etc/hostname").read_text()
        (image / "etc/hostname").write_text("another\n")
        for command in ("check", "restore"):
            bad = recipe(command, "mean.nc", check=False)
            expect_error(bad, f"image '{image}' is not what it was")
            expect(bad.returncode == 4, f"{bad.returncode}")
        (image / "etc/hostname").write_text(kept)
        (image / "etc/more").symlink_to("hostname")
        expect_error(recipe("restore", "mean.nc", check=False), "is not what it was")
        (image / "etc/more").unlink()
        (image / "usr/bin/ncra").chmod(0o700)
        expect_error(recipe("restore", "mean.nc", check=False), "is not what it was")
        (image / "usr/bin/ncra").chmod(0o755)
        recipe("restore", "mean.nc")
        expect(values("mean.nc") == before, "all values are back")
        run([tool("esdm-fsck"), "--data"])
        image.rename(site.file("elsewhere"))
        expect_error(recipe("check", "mean.nc", check=False), "is not there any more")


# What it can see and write to is told by files of the run: the site, its working directory, and nothing else.
LOOK = """
ncra -O esdm://in.nc esdm://mean.nc || exit 3
[ -e {secret} ] && exit 4
[ "$(cat /etc/hostname)" = image ] || exit 5
read grid < {visible} || exit 6
[ "$grid" = grid ] || exit 7
(: > {visible}) 2>/dev/null && exit 8
(: > /etc/mine) 2>/dev/null && exit 9
if [ -e {again} ]; then (: > {beside}) 2>/dev/null && exit 10; fi
exit 0
"""


def test_what_is_visible_and_bounded():
    need_bubblewrap()
    with Site(history=1) as site:
        image = make_image(site.file("image"), "ncra", "sh", "cat", "mv")
        work, away = site.file("work"), site.file("away")
        work.mkdir(), away.mkdir()
        (away / "secret").write_text("secret\n")
        (away / "grid").write_text("grid\n")
        script = work / "look.sh"
        script.write_text(LOOK.format(secret=away / "secret", visible=away / "grid", beside=work / "beside", again=work / "again"))
        pattern("in.nc", 1)
        command = ["--", "sh", str(script)]
        bad = recipe("record", "--image", image, *command, cwd=work, check=False)
        expect_error(bad, "status 6")                          # the grid is not visible
        recipe("record", "--image", image, "--visible", away / "grid", *command, cwd=work)
        known = json.loads(recipe("--json", "show", "mean.nc").stdout)
        files = {i["file"] for i in known["inputs"] if "file" in i}
        expect(known["visible"] == [str(away / "grid")], f"{known}")
        (work / "again").write_text("")                        # it is not written to when it runs again
        expect(json.loads(recipe("--json", "check", "mean.nc").stdout)["same"], "bit for bit")
        expect(not (work / "beside").exists(), "it has written beside")
        expect(not (image / "etc/mine").exists(), "it has written to the image")
        expect(files <= {str(script), str(away / "grid"), str(work / "again")}, f"{files}")


def test_without_a_runner_and_wrong_use():
    need_program("ncra", "ldd")
    with Site(history=1) as site:
        image = make_image(site.file("image"), "sh")
        nothing = site.file("nothing")
        nothing.mkdir()
        env = {**client_environment(), "PATH": str(nothing)}
        expect_error(recipe("record", "--image", image, "--", "sh", env=env, check=False), "install bubblewrap")
        sif = site.file("image.sif")
        sif.write_bytes(b"#!/usr/bin/env run-singularity\n")
        expect_error(recipe("record", "--image", sif, "--", "sh", env=env, check=False), "install apptainer")
        expect_error(recipe("record", "--image", site.file("none"), "--", "sh", check=False), "No such file")
        expect_error(recipe("record", "--image", nothing, "--", "sh", check=False), "no root file system")
        (nothing / "oci-layout").write_text("{}")
        expect_error(recipe("record", "--image", nothing, "--", "sh", check=False), "umoci unpack")
        expect_error(recipe("record", "--visible", nothing, "--", "sh", check=False), "goes with --image")
        expect_error(recipe("record", "--image", image, "--visible", site.file("none"), "--", "sh", check=False), "no such file")
        expect_error(recipe("--image", image, "check", "mean.nc", check=False), "--image goes with record")
        expect_error(run([tool("esdm-run"), "--image", image, "sh"], check=False, env=client_environment()), "--image goes with --record")


def at_terminal(command, env):
    """What a command says there."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(command[0], command, env)
    output = b""
    try:
        while chunk := os.read(fd, 4096):
            output += chunk
    except OSError:  # it has ended
        pass
    os.close(fd)
    os.waitpid(pid, 0)
    return output.decode(errors="replace")


def test_large_images_and_the_machine_itself():
    with Site(history=1) as site:
        for root in ("/", "//", "/usr/.."):
            done = recipe("record", "--image", root, "--", "sh", check=False, timeout=20)
            expect(done.returncode == 2 and "root of this machine" in done.stderr, f"{root}: {done.stderr}")
        image = site.file("image")
        (image / "usr").mkdir(parents=True)
        with open(image / "usr/large", "wb") as f:
            f.truncate(1 << 29)  # takes no room, but more than half a second
        env = {**client_environment(), "PATH": str(site.file("nothing")), "TERM": "xterm"}
        command = [str(tool("esdm-recipe")), "record", "--image", str(image), "--", "sh"]
        told = at_terminal(command, env)
        expect(f"{image}: " in told and "were read for its SHA-256" in told and "install bubblewrap" in told, told)
        told = recipe(*command[1:], env=env, check=False)
        expect("were read" not in told.stderr, f"no terminal: {told.stderr}")


# In the place of Apptainer: what it is called with, and then the program on this machine.
STAND_IN = """#!/usr/bin/python3
import os, sys
words = sys.argv[1:]
open({notes!r}, "w").write("\\n".join(words))
at = words.index({image!r})
os.execvp({run!r}, [{run!r}, *words[at + 2:]])
"""


def test_packed_images_go_to_apptainer():
    """Apptainer itself is in no Debian: a stand-in notes how it is called."""
    need_program("ncra")
    with Site(history=1) as site:
        place, notes, image = site.file("bin"), site.file("notes"), site.file("nco.sif")
        place.mkdir()
        image.write_bytes(b"packed")
        stand_in = place / "apptainer"
        stand_in.write_text(STAND_IN.format(notes=str(notes), image=str(image), run=tool("esdm-run")))
        stand_in.chmod(0o755)
        env = {**client_environment(), "PATH": f"{place}:{os.environ['PATH']}"}
        pattern("in.nc", 1)
        recipe("record", "--image", image, "--", *MEAN, env=env, cwd=place)
        words = notes.read_text().split("\n")
        at = words.index(str(image))
        binds = {words[i + 1] for i, word in enumerate(words) if word == "--bind"}
        expect(words[0] == "exec" and "--contain" in words[:at] and words[at + 1].endswith("/esdm-run"), f"{words}")
        expect(words[words.index("--pwd") + 1] == str(place) and f"{place}:{place}:rw" in binds, f"{words}")
        packs = site.file("packs")
        expect(f"{packs}:{packs}:rw" in binds and f"{site.config}:{site.config}:ro" in binds, f"{binds}")
        expect(json.loads(recipe("--json", "check", "mean.nc", env=env).stdout)["same"], "bit for bit")
        binds = {w for w in notes.read_text().split("\n") if w.startswith(f"{place}:")}
        expect(binds == {f"{place}:{place}:ro"}, f"when it runs again its folder is to be read alone: {binds}")
        image.write_bytes(b"other")
        expect_error(recipe("check", "mean.nc", env=env, check=False), "is not what it was")


main(test_large_images_and_the_machine_itself, test_record_check_drop_restore, test_what_is_visible_and_bounded, test_without_a_runner_and_wrong_use,
     test_packed_images_go_to_apptainer)
