# SPDX-License-Identifier: LGPL-3.0-or-later
"""Starts the tools that a wheel carries: each is a program in the package esdm, which stays as it is."""

import importlib.util
import os
import pathlib
import sys


def run():
    """Becomes the tool that has the name of this program."""
    package = importlib.util.find_spec("esdm").submodule_search_locations[0]
    name = pathlib.Path(sys.argv[0]).name
    program = pathlib.Path(package, "bin", name)
    try:
        os.execv(program, [str(program), *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"{name}: cannot run {program}: {error.strerror}")
