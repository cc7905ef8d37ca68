#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""The recipes of conda and Spack name the version, the options and all that the build needs; with --long conda's
script builds and installs, and what it installs works."""

import os
import re
import sys
import types

from esdmtest import SIZE, SOURCE, Site, expect, main, run

# What pkg-config calls it: what conda-forge and Spack do.
NAMES = {"jansson": ("jansson", "jansson"), "sqlite3": ("libsqlite", "sqlite"), "liblz4": ("lz4-c", "lz4"),
         "libzstd": ("zstd", "zstd"), "libpcre2-8": ("pcre2", "pcre2"), "libxxhash": ("xxhash", "xxhash"),
         "glib-2.0": ("glib", "glib"), "netcdf": ("libnetcdf", "netcdf-c"), "libcrypto": ("openssl", "openssl"),
         "hdf5": ("hdf5", "hdf5"), "fuse3": ("libfuse", "libfuse"), "libmicrohttpd": ("libmicrohttpd", "libmicrohttpd"),
         "otf2": ("otf2", "otf2")}


def wanted():
    """{module: oldest version or None} that CMake asks pkg-config for."""
    text = "".join((SOURCE / f).read_text() for f in ("CMakeLists.txt", "netcdf-plugin/CMakeLists.txt", "tools/CMakeLists.txt"))
    found = {}
    for call in re.findall(r"pkg_check_modules\(\w+ ([^)]*)\)", text):
        for word in call.split():
            name, _, version = word.partition(">=")
            if not name.isupper() and "_" not in name and name != "hdf5-serial":
                found[name] = version or found.get(name)
    expect(set(found) == set(NAMES), f"packages that the recipes are not checked for: {set(found) ^ set(NAMES)}")
    return found


def version():
    text = (SOURCE / "src/include/esdm/version.h").read_text()
    return ".".join(re.search(rf"ESDM_VERSION_{part} (\d+)", text).group(1) for part in ("MAJOR", "MINOR", "PATCH"))


def test_conda__names_what_is_needed():
    text = (SOURCE / "packaging/conda/meta.yaml").read_text()
    expect(f'{{% set version = "{version()}" %}}' in text, "another version")
    host = re.search(r"  host:\n((?:    - .*\n)+)", text).group(1)
    for module, least in wanted().items():
        found = re.search(rf"^    - {NAMES[module][0]}(?: >=(\S+))?$", host, re.MULTILINE)
        expect(found, f"host lacks {NAMES[module][0]}")
        expect(not found.group(1) or found.group(1) == least, f"{module}: {found.group(0)}, not {least}")
    plain = re.sub(r"\{%.*%\}\n", "", text).replace("{{ version }}", version())
    plain = re.sub(r"\{\{ (\w+)\('c'\) \}\}", r"\1", plain)
    try:
        import yaml
    except ImportError:
        print("no module yaml: the form was not checked")
        return
    recipe = yaml.safe_load(plain)
    expect(recipe["package"] == {"name": "esdm", "version": version()} and recipe["test"]["commands"], f"{recipe}")


def load_spack():
    """The class, and what it declares: (kind, text, options)."""
    declared, module = [], types.ModuleType("spack.package")

    def note(kind):
        return lambda text, **options: declared.append((kind, text, options))

    class CMakePackage:
        def define(self, name, value):
            return f"-D{name}={'ON' if value is True else 'OFF' if value is False else value}"

        def define_from_variant(self, name, variant):
            expect(any(d[:2] == ("variant", variant) for d in declared), f"no variant {variant}")
            return f"-D{name}=ON"

    for kind in ("license", "version", "variant", "depends_on", "generator"):
        setattr(module, kind, note(kind))
    module.CMakePackage = CMakePackage
    module.run_after = module.on_package_attributes = lambda *_, **__: lambda f: f
    module.Executable, module.join_path = run, os.path.join
    sys.modules.update({"spack": types.ModuleType("spack"), "spack.package": module})
    scope = {}
    exec(compile((SOURCE / "packaging/spack/package.py").read_text(), "package.py", "exec"), scope)  # pylint: disable=exec-used
    return scope["Esdm"], declared


def test_spack__names_what_is_needed():
    package, declared = load_spack()
    expect(("version", version(), {}) in declared, "another version")
    needs = {}
    for kind, text, options in declared:
        if kind == "depends_on":
            name, _, least = text.partition("@")
            needs[name] = least.rstrip(":")
            for variant in re.findall(r"[+~](\w+)", options.get("when", "")):
                expect(any(d[:2] == ("variant", variant) for d in declared), f"{text}: no variant {variant}")
    for module, least in wanted().items():
        name = NAMES[module][1]
        expect(name in needs, f"no dependency {name}")
        expect(not needs[name] or needs[name] == least, f"{name}: {needs[name]}, not {least}")
    options = "".join(f.read_text() for f in (SOURCE / "cmake").glob("*.cmake")) + (SOURCE / "CMakeLists.txt").read_text()
    for argument in package().cmake_args():
        name = re.fullmatch(r"-D(\w+)=(ON|OFF)", argument).group(1)
        expect(f"option({name} " in options, f"CMake has no option {name}")


def test_conda__builds_and_installs():
    run(["bash", "-n", SOURCE / "packaging/conda/build.sh"])
    if SIZE != "long":
        print("conda's script builds with --long alone")
        return
    with Site(make=False) as site:
        prefix = site.file("prefix")
        env = {**os.environ, "PREFIX": str(prefix), "SRC_DIR": str(SOURCE),
               "CMAKE_ARGS": "-DCMAKE_C_COMPILER_LAUNCHER=ccache", "CPU_COUNT": "2"}
        run(["bash", "-e", SOURCE / "packaging/conda/build.sh"], env=env, cwd=site.folder, timeout=3000)
        text = (SOURCE / "packaging/conda/meta.yaml").read_text()
        commands = re.findall(r"^    - (.*)$", re.search(r"  commands:\n((?:    - .*\n)+)", text).group(1), re.MULTILINE)
        expect(len(commands) >= 5, f"{commands}")
        (site.folder / "small.cdl").write_text((SOURCE / "packaging/conda/small.cdl").read_text())
        env.update(PATH=f"{prefix}/bin:{os.environ['PATH']}", PKG_CONFIG_PATH=f"{prefix}/lib/pkgconfig")
        run(["esdm-mkfs"], env=env)
        for command in commands:
            run(["bash", "-ec", command], env=env, cwd=site.folder)


main(test_conda__names_what_is_needed, test_spack__names_what_is_needed, test_conda__builds_and_installs)
