#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Every operator of cdo with one output, and every operation of NCO, on variables whose accuracy a person
stated: what they compute is stored bit for bit. In the long form all, else every n-th."""

import pathlib
import re
import subprocess

from clients import python_of
from esdmtest import Failed, Site, by_size, client, expect, main, need_program, run, some, tool

HERE = pathlib.Path(__file__).parent
FIELDS = HERE / "derived_fields.py"
SECONDS = 5  # without their parameters cdo asks for them, for ever


def cdo_operators():
    """(words, number of inputs)"""
    lines = (HERE / "every_operator.txt").read_text().splitlines()
    parameters = {word.split(",")[0]: word for line in lines if line[0] not in "#-" for word in line.split()}
    passed_by = {word for line in lines if line[0] == "-" for word in line.split()}
    for line in run(["cdo", "--operators"]).stdout.splitlines():
        found = re.match(r"(\S+) .*?\(?(?:Percentile|Precipitation)?\((\S+)\|1\)$", line)
        if found and "-->" not in line and found[2] != "0" and found[1] not in passed_by:
            inputs = {"1": 1, "3": 3}.get(found[2], 2)
            yield ["cdo", "-s", "-O", parameters.get(found[1], found[1])], inputs


def nco_operations():
    kinds = "avg min max mabs mebs mibs tabs rms rmssdn sqravg avgsqr sqrt ttl".split()
    for kind in kinds:
        yield ["ncra", "-h", "-O", "-y", kind], 2
        yield ["nces", "-h", "-O", "-y", kind], 2
        yield ["ncwa", "-h", "-O", "-a", "time", "-y", kind], 1
    for sign in "+-*/":
        yield ["ncbo", "-h", "-O", "--op_typ=" + sign], 2
    for function in "abs atan ceil cos erf exp floor log log10 rint sin sqrt tanh".split():
        yield ["ncap2", "-h", "-O", "-s", f"tas={function}(tas/300)"], 1
    for method in "avg total min max rms rmssdn sqravg avgsqr".split():
        yield ["ncap2", "-h", "-O", "-s", f"tas=tas.{method}($time)"], 1


def inputs_of(words, number, files):
    """The choices to try: not each operator takes any two files."""
    season = re.match(r"(day|mon|year|yday|ymon|yseas|yhour)(add|sub|mul|div)$", words[-1])
    if number == 1:
        return [[files["A"]]]
    if season:
        return [[files["A"], f"-{season[1]}mean", files["A"]]]
    if "pctl" in words[-1]:
        prefix = words[-1].split("pctl")[0]
        rest = ",3" if prefix in ("timsel", "ydrun") else ""
        return [[files["A"], f"-{prefix}min{rest}", files["A"], f"-{prefix}max{rest}", files["A"]]]
    return [[files["A"], files["B"], files["A"]][:number], [files["A"]] * number]


def works(words, choices, out):
    """Which of the inputs the program takes, on plain files."""
    for number, given in enumerate(choices):
        out.unlink(missing_ok=True)
        done = subprocess.run([*map(str, (*words, *given, out))], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
                              timeout=SECONDS)
        if done.returncode == 0 and out.exists() and out.read_bytes()[:3] in (b"CDF", b"\x89HD"):
            return number
    return None


def test_all():
    need_program("cdo", "ncks", "ncap2")
    python = python_of("debian")
    with Site() as site:
        run([python, FIELDS, "make", site.folder])
        plain = {key: site.file(f"{key}.nc") for key in "AB"}
        exported = {key: site.file(f"exported-{key}.nc") for key in "AB"}
        stored = {key: f"esdm://in/{key}" for key in "AB"}
        for key, path in plain.items():
            run(["ncatted", "-h", "-a", "esdm_absolute_tolerance,tas,c,c,0.01 K", path])
            client(["ncks", "-h", path, stored[key]])
            run([tool("esdm-cp"), stored[key], exported[key]])
        pairs, passed_by, failed = [], [], []
        operations = [*cdo_operators(), *nco_operations()]
        operations = some(operations, len(operations) // by_size(45, 30, 1))
        for number, (words, inputs) in enumerate(operations):
            for kind, reference, source in (("container", exported, stored), ("file", plain, plain)):
                expected = site.file(f"{kind}-{number}.nc")
                try:
                    choice = works(words, inputs_of(words, inputs, reference), expected)
                except subprocess.TimeoutExpired:
                    choice = None
                if choice is None:
                    passed_by.append(words[-1])
                    break
                url = f"esdm://{kind}/{number}"
                done = client([*words, *inputs_of(words, inputs, source)[choice], url], check=False)
                if done.returncode == 0:
                    pairs += [str(expected), url]
                else:
                    failed.append(f"{kind}: {' '.join(words)}: {done.stderr}")
        taken = len(pairs) // 2
        print(f"{taken} results; not run with these data: {' '.join(passed_by)}")
        expect(not failed, "\n".join(failed))
        problem = client([python, FIELDS, "derived", str(plain["A"]), str(plain["B"]), *pairs], check=False)
        if problem.returncode:
            names = {str(i): " ".join(w) for i, (w, _) in enumerate(operations)}
            raise Failed(re.sub(r"/(\d+):", lambda m: f" {names[m[1]]}:", problem.stdout + problem.stderr))
        expect(len(passed_by) * 2 < len(operations), "most operators must work with these data")


main(test_all)
