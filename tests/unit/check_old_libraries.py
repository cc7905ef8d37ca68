#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""A plug-in whose library is too old is left out, and CMake says so; with a new one it is built.

Usage: check_old_libraries.py SOURCE_FOLDER CMAKE C_COMPILER
"""

import pathlib
import subprocess
import sys
import tempfile

PROJECT = """cmake_minimum_required(VERSION 3.18)
project(old LANGUAGES C)
include({root}/cmake/EsdmBuild.cmake)
function(esdm_loadable kind name)
  add_custom_target(esdm-${{kind}}-${{name}})
endfunction()
function(install)
endfunction()
{line}
if(TARGET esdm-codec-zfp)
  message(STATUS "it is built")
endif()
"""


def optional_line(root):
    """How the project asks for zfp."""
    lines = (root / "backends/CMakeLists.txt").read_text().splitlines()
    found = [line for line in lines if line.startswith("esdm_optional(codec zfp ")]
    assert len(found) == 1, found
    return found[0]


def configure(root, cmake, compiler, functions):
    """What CMake says where libzfp has these functions."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "zfp.h").write_text("".join(f"int {f}(void);\n" for f in functions))
        (folder / "zfp.c").write_text("".join(f"int {f}(void) {{ return 0; }}\n"
                                              for f in functions))
        subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "libzfp.so",
                        folder / "zfp.c"], check=True, timeout=60)
        (folder / "CMakeLists.txt").write_text(
            PROJECT.format(root=root, line=optional_line(root)))
        done = subprocess.run(
            [cmake, "-S", folder, "-B", folder / "build", f"-DESDM_ZFP_INCLUDE={folder}",
             f"-DESDM_ZFP_LIBRARY={folder}/libzfp.so", f"-DCMAKE_C_COMPILER={compiler}"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
        if done.returncode != 0:
            sys.exit(f"cmake: {done.stdout}")
        return " ".join(done.stdout.split())


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    cmake, compiler = sys.argv[2:4]
    old = configure(root, cmake, compiler, ["zfp_compress"])
    if "it is built" in old or "codec/zfp is left out: libzfp is too old" not in old:
        sys.exit(f"an old libzfp: {old}")
    new = configure(root, cmake, compiler, ["zfp_compress", "zfp_field_blocks"])
    if "it is built" not in new or "left out" in new:
        sys.exit(f"a new libzfp: {new}")


if __name__ == "__main__":
    main()
