#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Checks that each tool is known where tools are listed: `esdm COMMAND`, and the programs of the wheel.

Usage: check_tools.py [SOURCE_FOLDER]
"""

import pathlib
import re
import sys
import tomllib

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")


def tools():
    told = (ROOT / "tools/CMakeLists.txt").read_text(encoding="utf-8")
    return set(re.findall(r"^\s*esdm_tool\((esdm-\w+)", told, re.M)) - {"esdm-front"} | {"esdm-run"}


def of_wheel():
    """Raises when pip could not read it either."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        return set(tomllib.load(file)["project"]["scripts"]) - {"esdm"}


def of_front():
    told = (ROOT / "tools/esdm/esdm.c").read_text(encoding="utf-8")
    return {f"esdm-{name}" for name in re.findall(r'^    \{"([a-z]+)", "', told, re.M)}


def main():
    wrong = []
    for where, found in (("pyproject.toml", of_wheel()), ("tools/esdm/esdm.c", of_front())):
        wrong += [f"{where} lacks {name}" for name in sorted(tools() - found)]
        wrong += [f"{where} has {name}, which is not in tools/CMakeLists.txt" for name in sorted(found - tools())]
    if not tools() > {"esdm-ls", "esdm-mount", "esdm-replay"}:
        wrong.append("the tools of tools/CMakeLists.txt were not found")
    print("\n".join(wrong))
    return 1 if wrong else 0


sys.exit(main())
