#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""The copies of libnetcdf that the tests run, and the table of them in netcdf-plugin/README.md.

    libraries.py            prints the table
    libraries.py --write    puts it into the README
"""

import collections
import fcntl
import fnmatch
import glob
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

from clients import cache_folder, python_tag

HERE = pathlib.Path(__file__).parent
README = HERE.parents[2] / "netcdf-plugin/README.md"
BEGIN, END = "<!-- libraries.py: begin -->\n", "<!-- libraries.py: end -->\n"

# What other libraries do otherwise than 4.9.0; ESDM does as 4.9.0 whichever calls.
# From which version on, names of comparisons (fnmatch), what it is.
KNOWN = [
    ("4.9.1", ["quantize__*", "settings__random*nc4*"],
     "quantised variables get no `_FillValue`, and tiny values and NaN are rounded otherwise"),
    ("4.9.1", ["settings__random*nc4*"], "`nc_def_var_fletcher32` with 0 sets nothing"),
    ("4.9.3", ["storage__caches_and_filters*", "settings__random*"],
     "`nc_def_var_filter` looks at the format first"),
    ("4.9.3", ["ranges__not_numbers*"], "infinities read as `float` become fill values"),
    ("4.9.3", ["atts__conversions*cdf5*"], "what is left where a value does not fit `NC_UBYTE`"),
    ("4.9.3", ["conversions__kept*", "ranges__kept*"],
     "in netCDF-3 formats, what is left where a `float` or `double` does not fit an integer that it is "
     "read as (a fill value)"),
    ("4.9.3", ["fill__memory_types*"],
     "what becomes of a `_FillValue` that does not fit its type in netCDF-3 formats"),
    ("4.9.3", ["usertypes__attributes*"], "4.9.3 crashes when it copies attributes with strings inside"),
    ("4.9.3", ["atts__unknown_types*"],
     "`nc_abort` fails after an attribute of an unknown type was refused"),
    ("4.10.0", ["atts__reserved*nc4classic*"], "`_IsNetcdf4` is 1 in the classic model, too"),
]
KNOWN_MPI = [("4.9.0", ["storage__caches_and_filters*"],
              "`nc_var_par_access` of classic files does nothing")]
KNOWN_SYMBOLIC = [
    ("4.9.0", ["opening__of_the_library*", "opening__with_hints*"],
     "`nc__create` and calls without a path are not taken over"),
    ("4.10.0", ["version2__*"], "neither are `nccreate` and `ncopen` of the version 2 interface"),
]

ALWAYS, LONG = "always", "`--long`"
Library = collections.namedtuple("Library", "version source kind argument when")
LIBRARIES = [
    Library("4.9.0", "Debian 12, `libnetcdf19`", "debian", "libnetcdf.so.19", ALWAYS),
    Library("4.9.0", "the same, patched to bind its own symbols", "symbolic", "", ALWAYS),
    Library("4.9.0", "Debian 12, `libnetcdf-mpi-19`", "debian", "libnetcdf_mpi.so.19", ALWAYS),
    Library("4.9.0", "PyPI, netCDF4 1.6.2", "wheel", "1.6.2", LONG),
    Library("4.9.1", "PyPI, netCDF4 1.6.3", "wheel", "1.6.3", LONG),
    Library("4.9.2", "Rust crate netcdf-src 0.4.0", "crate", "0.4.0", LONG),
    Library("4.9.3-development", "PyPI, netCDF4 1.6.5", "wheel", "1.6.5", LONG),
    Library("4.9.3", "PyPI, netCDF4 1.7.4", "wheel", "1.7.4", ALWAYS),
    Library("4.9.3", "Rust crate netcdf-src 0.5.0", "crate", "0.5.0", LONG),
    Library("4.9.4-development", "PyPI, netCDF4 1.7.2", "wheel", "1.7.2", LONG),
    Library("4.10.0", "Rust crate netcdf-src 0.5.2", "crate", "0.5.2", LONG),
    Library("4.10.1", "PyPI, netCDF4 1.7.5.1", "wheel", "1.7.5.1", ALWAYS),
    Library("4.10.1", "Rust crate netcdf-src 0.5.3", "crate", "0.5.3", LONG),
    Library("4.10.1", "the same, linked with `-Bsymbolic-functions`", "crate", "0.5.3 symbolic",
            LONG),
]


class Unavailable(Exception):
    """A library that cannot be had here; the text says why."""


def quietly(command, **options):
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          timeout=900, **options)
    if done.returncode:
        raise Unavailable(f"{' '.join(map(str, command))}: {done.stdout.strip()[-300:]}")


def cached(name, make):
    """Folder `name` of the cache, filled once by make(folder)."""
    folder = cache_folder() / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / f"{name}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            (folder / "complete").touch()
    return folder


# ---- wheels --------------------------------------------------------------------------------------


def pip_download(folder, version, kind):
    """Gets a wheel or the sources, by the pip of an environment: Debian's Python may have none."""
    environment = cached(f"pip-{python_tag()}",
                         lambda made: quietly([sys.executable, "-m", "venv", made]))
    quietly([environment / "bin/python", "-m", "pip", "download", "-q", "--no-deps", kind,
             "-d", folder, f"netCDF4=={version}"])


def unpack_wheel(folder, version):
    pip_download(folder, version, "--only-binary=:all:")
    wheel = next(folder.glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    wheel.unlink()


def wheel_folder(version):
    """What to put into PYTHONPATH of Debian's Python to import this netCDF4."""
    return cached(f"netCDF4-{version}-{python_tag()}", lambda folder: unpack_wheel(folder, version))


def unpack_sdist(folder, version):
    pip_download(folder, version, "--no-binary=netCDF4")
    archive = next(folder.glob("*.tar.gz"))
    shutil.unpack_archive(archive, folder)
    archive.unlink()


def sdist_folder(version):
    """netCDF4-python's sources, with its tests and examples."""
    folder = cached(f"netCDF4-{version}-sdist", lambda folder: unpack_sdist(folder, version))
    return next(path for path in folder.iterdir() if path.is_dir())


# ---- sources -------------------------------------------------------------------------------------


def fetch_crate(folder, version):
    """The C sources are in a Rust crate, which cargo knows how to get."""
    if shutil.which("cargo") is None:
        raise Unavailable("cargo is not installed")
    (folder / "src").mkdir()
    (folder / "src/lib.rs").touch()
    (folder / "Cargo.toml").write_text(
        '[package]\nname = "sources"\nversion = "0.0.0"\nedition = "2018"\n'
        f'[dependencies]\nnetcdf-src = "={version}"\n')
    quietly(["cargo", "vendor", "-q", "vendor"], cwd=folder)
    shutil.move(folder / "vendor/netcdf-src/source", folder / "source")
    shutil.rmtree(folder / "vendor")
    for name in ("timer_utils.h", "timer_utils.c"):  # left out of some crates, but configured
        place = folder / "source/unit_test" / name
        place.parent.mkdir(exist_ok=True)
        if not place.exists():
            place.touch()


def hdf5_environment():
    """Older sources are told by the environment where HDF5 is."""
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "hdf5-serial"], text=True,
                           stdout=subprocess.PIPE, check=False).stdout.split()
    where = {flag[:2]: flag[2:] for flag in flags}
    folder = where.get("-L", "")
    return dict(os.environ, HDF5_C_LIBRARY=f"{folder}/libhdf5.so",
                HDF5_HL_LIBRARY=f"{folder}/libhdf5_hl.so", HDF5_INCLUDE_DIR=where.get("-I", ""))


def build_crate(folder, version, symbolic):
    source = cached(f"netcdf-src-{version}", lambda f: fetch_crate(f, version)) / "source"
    off = ["BUILD_UTILITIES", "ENABLE_EXAMPLES", "ENABLE_DAP_REMOTE_TESTS", "ENABLE_TESTS",
           "ENABLE_FILTER_TESTING", "ENABLE_DAP", "ENABLE_BYTERANGE", "ENABLE_S3",
           "ENABLE_NCZARR_ZIP", "ENABLE_LIBXML2", "ENABLE_PLUGINS", "PLUGIN_INSTALL_DIR"]
    options = [f"-D{prefix}{name}=OFF" for name in off for prefix in ("", "NETCDF_")]
    if symbolic:
        options.append("-DCMAKE_SHARED_LINKER_FLAGS=-Wl,-Bsymbolic-functions")
    quietly(["cmake", "-S", source, "-B", folder / "build", "-G", "Ninja", *options,
             "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=ON"], env=hdf5_environment())
    quietly(["ninja", "-C", folder / "build", "netcdf"])
    built = glob.glob(f"{folder}/build/**/libnetcdf.so.[0-9]*", recursive=True)
    shutil.copy(built[0], folder / "libnetcdf.so")
    shutil.rmtree(folder / "build")


# ---- what tests want -----------------------------------------------------------------------------


def path_of(library, build):
    """Path of the shared library; raises Unavailable."""
    if library.kind == "symbolic":
        return build / "tests/netcdf/router/copies/libnetcdf-symbolic.so"
    if library.kind == "wheel":
        folder = wheel_folder(library.argument)
        return pathlib.Path(glob.glob(f"{folder}/*.libs/libnetcdf*")[0])
    if library.kind == "crate":
        version, _, symbolic = library.argument.partition(" ")
        name = "netcdf-" + library.argument.replace(" ", "-")
        return cached(name, lambda f: build_crate(f, version, bool(symbolic))) / "libnetcdf.so"
    listed = subprocess.run(["/sbin/ldconfig", "-p"], stdout=subprocess.PIPE, text=True, check=True)
    for line in listed.stdout.splitlines():
        name, _, path = line.strip().partition(" => ")
        if name.split(" ")[0] == library.argument:
            return pathlib.Path(path)
    raise Unavailable(f"{library.argument} is not installed")


def needs(path):
    """The environment in which a library outside its Python package finds what it needs."""
    return {"LD_LIBRARY_PATH": str(path.parent)} if path.parent.name.endswith(".libs") else {}


def version_of(path):
    """What the library itself says. In a process of its own: it brings an HDF5 along."""
    code = ("import ctypes, sys; f = ctypes.CDLL(sys.argv[1]).nc_inq_libvers;"
            "f.restype = ctypes.c_char_p; print(f().decode().split()[0])")
    return subprocess.run([sys.executable, "-c", code, path], stdout=subprocess.PIPE, text=True,
                          check=True, env=dict(os.environ, **needs(path))).stdout.strip()


def order(version):
    """Sorts a development version before the release."""
    number, _, note = version.partition("-")
    return (*map(int, number.split(".")), not note)


def known(library):
    """What is known to differ: pairs of patterns and text."""
    rules = KNOWN + (KNOWN_MPI if "mpi" in library.argument else [])
    if library.kind == "symbolic" or "symbolic" in library.argument:
        rules = rules + KNOWN_SYMBOLIC
    return [(patterns, text) for since, patterns, text in rules
            if order(library.version) >= order(since)]


def is_known(library, comparison):
    return any(fnmatch.fnmatch(comparison, pattern.replace("[", "[[]"))
               for patterns, _ in known(library) for pattern in patterns)


def table():
    lines = ["| netCDF-C | where from | tested | calls | programs |",
             "| --- | --- | --- | --- | --- |"]
    notes = []
    programs = {"debian": "all of `tests/netcdf/clients`", "wheel": "netCDF4-python, xarray",
                "symbolic": "", "crate": ""}
    for library in LIBRARIES:
        what = [text for _, text in known(library)]
        if what and what not in notes:
            notes.append(what)
        calls = f"equal, but for [{notes.index(what) + 1}]" if what else "equal"
        used = "MPI programs" if "mpi" in library.argument else programs[library.kind]
        lines.append(f"| {library.version} | {library.source} | {library.when} | {calls} | {used} |")
    for number, what in enumerate(notes, 1):
        lines += ["", f"[{number}] {'; '.join(what)}."]
    return "\n".join(lines) + "\n"


def readme_with(text, new):
    head, rest = text.split(BEGIN)
    return head + BEGIN + new + END + rest.split(END)[1]


def main():
    if sys.argv[1:] == ["--write"]:
        README.write_text(readme_with(README.read_text(), table()))
    else:
        print(table(), end="")


if __name__ == "__main__":
    main()
