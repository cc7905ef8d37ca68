# SPDX-License-Identifier: LGPL-3.0-or-later
"""Starting programs over MPI, as root and with more ranks than cores too."""

import atexit
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import esdmtest

# Memory that MPI itself never frees, nor HDF5 1.10 and netCDF-4 on it; nor libraries that it loads and unloads.
LEAKS = "leak:libopen-pal\nleak:libopen-rte\nleak:libmpi\nleak:mca_\nleak:libpmix\nleak:libevent\n" \
        "leak:libhdf5\nleak:NC4_\nleak:nc4_\nleak:_dl_init\n" \
        "leak:libmpich\nleak:libfabric\nleak:libucs\nleak:libucp\nleak:libhwloc\nleak:libpciaccess\n"


@functools.lru_cache(maxsize=None)
def sessions():
    """A folder of this process for Open MPI's own files. All its jobs of a user make and remove one
    below /tmp: two that begin and end at the same moment fail. Short: sockets lie in it."""
    folder = tempfile.mkdtemp(prefix="ompi-", dir="/tmp")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


LEAKS_TOO = True  # what is not freed is looked for; False: the same jobs run elsewhere, too


def environment(folder, **more):
    """The environment of ranks; `folder` is a temporary one for files of this module."""
    env = dict(os.environ)
    env.update(
        OMPI_MCA_orte_tmpdir_base=sessions(),
        OMPI_ALLOW_RUN_AS_ROOT="1",
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
        OMPI_MCA_rmaps_base_oversubscribe="1",
        OMPI_MCA_mpi_yield_when_idle="1",  # more ranks than cores: do not spin
        OMPI_MCA_btl="self,vader",
        OMPI_MCA_btl_vader_single_copy_mechanism="none",  # needs rights that containers lack
        OMPI_MCA_odls_base_sigkill_timeout="0",  # the other ranks of one that died end at once
        OMPI_MCA_plm_rsh_agent="/bin/false",  # no other nodes
        HYDRA_LAUNCHER="fork",
        MPIR_CVAR_POLLS_BEFORE_YIELD="1",
    )
    sanitizers = os.environ.get("ESDM_SANITIZE", "")
    if "address" in sanitizers and not LEAKS_TOO:
        env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    elif "address" in sanitizers:  # the libraries' frames are found by their tables, which takes long: few of them
        leaks = os.path.join(folder, "leaks.supp")
        others = pathlib.Path(__file__).with_name("leaks.txt")
        with open(leaks, "w", encoding="ascii") as out:
            out.write(LEAKS + others.read_text(encoding="ascii"))
        env["LSAN_OPTIONS"] = f"suppressions={leaks}:print_suppressions=0"
        env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":fast_unwind_on_malloc=0:malloc_context_size=16"
    if sanitizers:  # whose dlopen() does not know our run path
        env["LD_LIBRARY_PATH"] = os.environ["ESDM_BUILD"]
    if "thread" in sanitizers:
        env["TSAN_OPTIONS"] = env.get("TSAN_OPTIONS", "") + ":detect_deadlocks=0"
    env.update(more)
    return env


def make_site(folder, name, plugin="posix", targets=None, threads=2, metadata=None, **more):
    """Makes a site below `folder`, with one target unless told otherwise; the environment of its
    ranks. `threads` of each rank; None: as many as ESDM thinks right. `more` goes into that.
    $ESDM_TEST_SITE names another site for those that do not ask for targets."""
    build = pathlib.Path(os.environ["ESDM_BUILD"])
    folder = pathlib.Path(folder)
    target = {"name": "disk", "plugin": plugin, "directory": f"{name}/packs"}
    site = {"site": {"name": name}, "targets": targets or [target],
            "metadata": metadata or {"plugin": "sqlite", "directory": f"{name}/metadata"},
            "engine": {"threads": threads} if threads else {}}
    path = folder / f"{name}.json"
    if targets is None and "ESDM_TEST_SITE" in os.environ:
        path = folder / name / "site.json"
        path.parent.mkdir()
        site = json.loads(esdmtest.site_text(pathlib.PurePath(f"{folder.name}-{name}")))
    path.write_text(json.dumps(site))
    env = environment(folder, ESDM_CONFIG=str(path), ESDM_PLUGIN_PATH=str(build / "plugins"), **more)
    subprocess.run([build / "tools/esdm-mkfs", str(path)], env=env, check=True,
                   stdout=subprocess.DEVNULL)
    return env


def missing(what):
    """Ends a test that cannot run: skipped, but failed where tests/run.sh has installed all."""
    required = os.environ.get("ESDM_TEST_MPI") == "required"
    print(f"{'FAILED' if required else 'skipped'}: {what}")
    sys.exit(1 if required else 77)


def launcher(mpi):
    """The command that starts ranks of an MPI: "openmpi" or "mpich". Ends the test without one."""
    for name in (f"mpiexec.{mpi}", f"mpirun.{mpi}", "mpiexec", "mpirun"):
        path = shutil.which(name)
        if path:
            return path
    return missing(f"no mpirun of {mpi}")


def run(mpi, ranks, command, env, timeout=600, check=True):
    """Runs the command on `ranks` ranks. A job that takes longer than `timeout` seconds hangs."""
    line = [launcher(mpi), "-n", str(ranks)] + command
    try:
        done = subprocess.run(line, env=env, timeout=timeout, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except subprocess.TimeoutExpired as hung:
        raise SystemExit(f"hangs: {' '.join(line)}\n{(hung.stdout or b'')[-4000:]}")
    if check and done.returncode != 0:
        raise SystemExit(f"exit status {done.returncode}: {' '.join(line)}\n{done.stdout[-6000:]}")
    return done
