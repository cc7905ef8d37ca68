# SPDX-License-Identifier: LGPL-3.0-or-later
"""Earlier versions of ESDM, built from the history of this repository.

A version is the commit before the one that first had a text in a file: so it is found by what changed, whatever the
commit is called. Each is built once, below $ESDM_TEST_CACHE, $XDG_CACHE_HOME or ~/.cache, in `esdm-tests/versions`."""

import fcntl
import os
import pathlib
import shutil
import subprocess

from esdmtest import SOURCE, Failed, skip

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
