#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Every libnetcdf of libraries.py: all comparisons of tests/netcdf/compare and, for those in wheels,
netCDF4-python. README.md has the table of them."""

import re
import tempfile

import clients
import libraries
from esdmtest import (BUILD, SANITIZE, SIZE, Failed, Site, client, client_environment, environment,
                      expect, main, run, skip)

CALLS = BUILD / "tests/netcdf/compare/nc_compare_calls"


def chosen(kinds):
    """The libraries of this test run, with their paths; those that cannot be had are told."""
    found = []
    for library in libraries.LIBRARIES:
        if library.kind not in kinds or (library.when == libraries.LONG and SIZE != "long"):
            continue
        if SIZE == "quick" and library.kind == "wheel" and library.version != "4.10.1":
            continue
        try:
            found.append((library, libraries.path_of(library, BUILD).resolve()))
        except libraries.Unavailable as reason:
            print(f"not tested: netCDF {library.version} ({library.source}): {reason}")
    return found


def title(library):
    return f"netCDF {library.version} ({library.source})"


def compare_calls(library, path):
    """Runs the comparisons with `path` in the place of the library that they were linked with;
    returns the names of those that differ."""
    with tempfile.TemporaryDirectory() as folder:
        for file in path.parent.iterdir() if library.kind == "wheel" else [path]:
            (libraries.pathlib.Path(folder) / file.name).symlink_to(file)
        link = libraries.pathlib.Path(folder) / "libnetcdf.so.19"
        if not link.exists():
            link.symlink_to(path)
        env = environment({"LD_LIBRARY_PATH": folder, "ESDM_DEBUG": "1"})
        if SANITIZE:
            env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        done = run([CALLS], check=False, env=env)
    text = done.stdout + done.stderr
    expect(f"libnetcdf 0: {folder}" in text, f"{title(library)} was not what ran:\n{text[:500]}")
    ran = set(re.findall(r"\[ RUN      \] (\S+)", text))
    expect(len(ran) > 100, f"{title(library)}: {len(ran)} comparisons ran:\n{text[-1000:]}")
    return {name for name in re.findall(r"\[  FAILED  \] (\S+)", text) if name in ran}


def test_calls__equal_but_for_what_is_known():
    failures = []
    for library, path in chosen(("debian", "symbolic", "wheel", "crate")):
        version = libraries.version_of(path)
        expect(version == library.version, f"{title(library)} says that it is {version}")
        differs = compare_calls(library, path)
        for name in sorted(differs):
            if not libraries.is_known(library, name):
                failures.append(f"{title(library)}: {name} differs")
        print(f"        {title(library)}: {len(differs)} of the comparisons differ")
    if failures:
        raise Failed("\n".join(failures))


def test_python__with_the_wheels_library():
    clients.python_of("debian")  # whose numpy and xarray are used
    for library, _ in chosen(("wheel",)):
        folder = libraries.wheel_folder(library.argument)
        clients.check_modes("/usr/bin/python3", {"PYTHONPATH": str(folder)})


def test_two_copies__in_one_process():
    python = clients.python_of("debian")
    wheels = chosen(("wheel",))
    if not wheels:
        skip("no wheel")
    debian = chosen(("debian",))[0][1]
    library, path = wheels[-1]
    script = clients.HERE / "two_copies.py"
    folder = str(libraries.wheel_folder(library.argument))
    with Site():
        for other, env in ((path, libraries.needs(path)), (debian, {"PYTHONPATH": folder})):
            done = client([python, script, other, "esdm://two"], env=env)
            expect({"4.9.0", library.version} <= set(done.stdout.split()), done.stdout)
        env = client_environment({"PYTHONPATH": folder})
        with tempfile.TemporaryDirectory() as plain:
            run([python, script, debian, plain], env=env)


def test_table__is_in_the_readme():
    text = libraries.README.read_text()
    expect(libraries.readme_with(text, libraries.table()) == text,
           "the table in netcdf-plugin/README.md is old: libraries.py --write")


main(test_calls__equal_but_for_what_is_known, test_python__with_the_wheels_library,
     test_two_copies__in_one_process, test_table__is_in_the_readme)
