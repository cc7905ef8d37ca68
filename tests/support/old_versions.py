# SPDX-License-Identifier: LGPL-3.0-or-later
"""Earlier versions of ESDM, built from the history of this repository.

A version is the commit before the one that first had a text in a file: so it is found by what changed, whatever the
commit is called. Each is built once, below $ESDM_TEST_CACHE, $XDG_CACHE_HOME or ~/.cache, in `esdm-tests/versions`."""

import fcntl
import json
import os
import pathlib
import re
import shutil
import subprocess

from esdmtest import BUILD, SOURCE, Failed, skip

BUILD_SECONDS = 1500


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(os.environ.get("ESDM_TEST_CACHE", base)) / "esdm-tests" / "versions"


def git(*arguments):
    done = subprocess.run(["git", "-c", f"safe.directory={pathlib.Path(SOURCE).resolve()}", "-C", SOURCE, *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def commit_before(text, path):
    """The last commit without `text` in `path`."""
    if shutil.which("git") is None or not git("rev-parse", "--git-dir"):
        skip(f"{SOURCE} is no checkout of git: earlier versions are built from its history")
    changes = git("log", "--format=%H", "--reverse", f"-S{text}", "--", path).split()
    commit = git("rev-parse", "--verify", "--quiet", f"{changes[0]}^") if changes else ""
    if not commit:
        skip(f"the history of {SOURCE} does not reach to before '{text}' in {path} (git fetch --unshallow)")
    return commit


def is_built(text, path):
    return (cache_folder() / commit_before(text, path)[:16] / "built").exists()


class Version:
    """One that is built. Its programs find their own library."""

    def __init__(self, text, path):
        self.commit = commit_before(text, path)
        self.folder = cache_folder() / self.commit[:16]
        cache_folder().mkdir(parents=True, exist_ok=True)
        with open(cache_folder() / f"{self.commit[:16]}.lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (self.folder / "built").exists():
                self.build()

    def build(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        source = self.folder / "source"
        source.mkdir(parents=True)
        build, log = self.folder / "build", self.folder / "log"
        # What versions have in common is compiled once.
        same_for_all = {"CCACHE_BASEDIR": str(self.folder), "CCACHE_NOHASHDIR": "1"}
        launcher = ["-DCMAKE_C_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        with open(log, "w", encoding="utf-8") as out:
            packed = subprocess.run(["git", "-c", f"safe.directory={pathlib.Path(SOURCE).resolve()}", "-C", SOURCE,
                                     "archive", self.commit], stdout=subprocess.PIPE, check=True)
            subprocess.run(["tar", "x", "-C", source], input=packed.stdout, check=True)
            for command in (["cmake", "-S", source, "-B", build, "-G", "Ninja", "-DESDM_TESTS=OFF", *launcher],
                            ["ninja", "-C", build, "tools/all", "netcdf-plugin/all", "backends/all"]):
                done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False,
                                      timeout=BUILD_SECONDS, env={**os.environ, **same_for_all})
                if done.returncode != 0:
                    raise Failed(f"version {self.commit[:8]} cannot be built:\n"
                                 f"{log.read_text(errors='replace')[-3000:]}")
        shutil.rmtree(source)
        (self.folder / "built").touch()

    def tool(self, name):
        return str(self.folder / "build" / "tools" / name)


# What in a source file depends on the version and on the tables of plug-ins.
DEPENDS = "ESDM_PLUGIN_ABI", "ESDM_VERSION_", "table_bytes"


def later(folder, changes):
    """The library that is built, linked anew with headers that are changed: {file below src/include: (text, text in
    its place)}. Compiled anew is what depends on these. @return the folder of libesdm.so"""
    headers = folder / "include"
    shutil.copytree(pathlib.Path(SOURCE, "src/include"), headers)
    for name, (now, then) in changes.items():
        text = (headers / name).read_text()
        if text.count(now) != 1:
            raise Failed(f"{name} has '{now}' {text.count(now)} times")
        (headers / name).write_text(text.replace(now, then))

    def shell(command):
        done = subprocess.run(command, shell=True, cwd=BUILD, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=BUILD_SECONDS, check=False)
        if done.returncode != 0:
            raise Failed(f"{command}\n{done.stdout[-3000:]}")
        return done.stdout

    link = next(c for c in shell("ninja -t commands libesdm.so").splitlines() if " -shared " in c and " -o libesdm.so" in c)
    compiled = 0
    for one in json.loads(pathlib.Path(BUILD, "compile_commands.json").read_text()):
        made = re.search(r" -o (\S+)", one["command"])
        if made is None or f" {made.group(1)} " not in link:
            continue
        text = pathlib.Path(one["file"]).read_text()
        if any(word in text for word in DEPENDS):
            target = folder / f"{compiled}.o"
            shell(one["command"].replace(made.group(0), f" -o {target}").replace(" -I", f" -I{headers} -I", 1))
            link = link.replace(f" {made.group(1)} ", f" {target} ")
            compiled += 1
    if compiled < 3:
        raise Failed(f"only {compiled} files depend on the version")
    name = re.search(r" -o (libesdm\S+)", link).group(1)
    shell(link.replace(f" -o {name}", f" -o {folder / name}"))
    for short in "libesdm.so.0", "libesdm.so":
        (folder / short).symlink_to(name)
    return folder
