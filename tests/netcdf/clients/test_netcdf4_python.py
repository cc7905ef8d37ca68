#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""netCDF4-python's own tutorial and tests, unmodified, in routed folders: every file that they
make is a container and a stub."""

import re
import shutil

import clients
import libraries
from esdmtest import Failed, Site, client, expect, main, run, skip, tool

# Tests that cannot hold for stub files, and why.
NOT_HERE = {
    "test_alignment.py::AlignmentTestCase::test_setting_alignment":
        "looks into the file with h5ls",
    "test_compression.py": "compares sizes of files, which are those of stubs",
    "test_compression_bzip2.py": "compares sizes of files",
    "test_compression_quant.py": "compares sizes of files",
    "test_compression_zstd.py": "compares sizes of files",
}
RUN_SEEDED = """
import random, runpy, sys, numpy
random.seed(0), numpy.random.seed(0)
runpy.run_path(sys.argv[1])
"""


def sources(python):
    version = run([python, "-c", "import netCDF4; print(netCDF4.__version__)"]).stdout.strip()
    try:
        return libraries.sdist_folder(re.sub(r"\.post\d+$", "", version))
    except libraries.Unavailable as reason:
        return skip(f"cannot get the sources of netCDF4 {version}: {reason}")


def test_tutorial__prints_the_same():
    python = clients.python_of("pypi")
    tutorial = sources(python) / "examples/tutorial.py"
    with Site() as site:
        plain, routed = site.file("plain"), site.file("routed")
        plain.mkdir()
        routed.mkdir()
        command = [python, "-c", RUN_SEEDED, tutorial]
        expected = run(command, cwd=plain).stdout
        got = client(command, cwd=routed, env={"ESDM_NC_ROUTE": str(routed)}).stdout
        dates = re.compile(r"\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}")
        clients.compare_output(dates.sub("DATE", expected), dates.sub("DATE", got), "the tutorial")
        expect(len(expected) > 5000, f"the tutorial is short: {expected}")
        names = run([tool("esdm-ls")]).stdout.split()
        expect(len(names) > 15, f"the tutorial made few containers: {names}")


def test_unit_tests__pass():
    python = clients.python_of("pypi")
    with Site() as site:
        tests = site.file("test")
        shutil.copytree(sources(python) / "test", tests)
        temporary = site.file("temporary")
        temporary.mkdir()
        env = {"ESDM_NC_ROUTE": f"{tests}=tests:{temporary}=temporary", "TMPDIR": str(temporary),
               "NO_NET": "1"}
        command = [python, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider"]
        command += [option for name in NOT_HERE for option in
                    (["--deselect", name] if "::" in name else ["--ignore", name])]
        done = client([*command, "."], check=False, cwd=tests, env=env)
        if done.returncode:
            raise Failed("\n".join(line for line in done.stdout.splitlines()
                                   if re.match(r"FAILED|ERROR|E  ", line))[:3000])
        passed = int(re.search(r"(\d+) passed", done.stdout).group(1))
        expect(passed > 120, done.stdout[-2000:])
        print(f"        {passed} tests pass")


main(test_tutorial__prints_the_same, test_unit_tests__pass)
