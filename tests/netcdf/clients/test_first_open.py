#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""What the first open of a process asks of the dynamic linker and of the processor: each question goes
through all libraries below libnetcdf, or out of a virtual machine."""

import re
import subprocess

from esdmtest import BUILD, Site, client, expect, main, need_program, run, tool


def linked(site, what):
    """What the linker tells while `ncdump` prints a container."""
    log = site.file("linker")
    told = client(["ncdump", "esdm://small.nc"], env={"LD_DEBUG": what, "LD_DEBUG_OUTPUT": str(log)})
    expect("v = 7" in told.stdout, told.stdout)
    logs = [f.read_text(errors="replace") for f in log.parent.glob(f"{log.name}.*")]
    expect(any("libesdm-netcdf-core.so" in text for text in logs), "ESDM was not loaded")
    return "\n".join(logs)


def small_container(site):
    source = site.file("small.cdl")
    source.write_text("netcdf small { dimensions: x = 1 ; variables: int v(x) ; data: v = 7 ; }")
    run(["ncgen", "-o", site.file("small.nc"), source])
    run([tool("esdm-cp"), site.file("small.nc"), "esdm://small.nc"])


def test_few_names_are_looked_for():
    need_program("ncgen", "ncdump")
    with Site(metadata={"plugin": "sqlite", "directory": "metadata"}) as site:
        small_container(site)
        told = linked(site, "files,symbols,bindings")
        # The copy that the program started with is found without being opened once more.
        again = re.findall(r"opening file=(\S*/libnetcdf\.so\S*) .*direct_opencount=[1-9]", told)
        expect(not again, f"opened again: {again}")
        # There is no Python here: one question tells.
        python = set(re.findall(r"symbol=(_?Py\w+);", told))
        expect(python <= {"Py_IsInitialized"}, f"looked for in all libraries: {python}")
        # Own functions are bound when the library is linked.
        own = re.findall(r"binding file (\S*/libesdm\.so\S*) \[0\] to \1 \[0\]: normal symbol `(esdm_\w+)'", told)
        expect(not own, f"libesdm looks for its own: {own[:5]}")


def test_the_site_is_looked_for_once():
    need_program("ncgen", "ncdump", "strace")
    with Site() as site:
        small_container(site)
        log = site.file("calls")
        told = client(["ncdump", "esdm://small.nc"], prefix=["strace", "-f", "-qq", "-o", log, "-e", "trace=access,faccessat,faccessat2"])
        expect("v = 7" in told.stdout, told.stdout)
        looks = [line for line in log.read_text().splitlines() if f'"{site.config}", R_OK' in line]
        expect(len(looks) == 1, f"{looks}")


def test_the_processor_is_not_asked_again():
    library = BUILD / "libesdm.so"
    symbols = subprocess.run(["nm", library], capture_output=True, text=True, check=False).stdout
    if " U __x86_get_cpuid_feature_leaf" in symbols:  # else libc does not tell, or they were stripped
        expect("__cpu_indicator_init" not in symbols,
               "a constructor of libesdm asks the processor")


main(test_few_names_are_looked_for, test_the_site_is_looked_for_once, test_the_processor_is_not_asked_again)
