#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""The recipes of conda and Spack name the version, the options and all that the build needs; with --long rattler-build
resolves conda's, its script builds and installs with this machine's libraries, and what it installs works."""

import hashlib
import io
import json
import os
import re
import shutil
import sys
import tarfile
import types

from esdmtest import SIZE, SOURCE, Site, expect, main, run, skip

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
    text = (SOURCE / "packaging/conda/recipe.yaml").read_text()
    expect(f"\n  version: {version()}\n" in text, "another version")
    host = re.search(r"  host:\n((?:    - .*\n)+)", text).group(1)
    for module, least in wanted().items():
        found = re.search(rf"^    - {NAMES[module][0]}(?: >=(\S+))?$", host, re.MULTILINE)
        expect(found, f"host lacks {NAMES[module][0]}")
        expect(not found.group(1) or found.group(1) == least, f"{module}: {found.group(0)}, not {least}")
    try:
        import yaml
    except ImportError:
        print("no module yaml: the form was not checked")
        return
    recipe = yaml.safe_load(text)
    expect(recipe["context"] == {"version": version()} and recipe["tests"][0]["script"], f"{recipe}")


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


def make_channel(folder, specifications):
    """Empty packages of the oldest versions that are asked for: what they would hold is on this machine."""
    (folder / "noarch").mkdir(parents=True)
    (folder / "linux-64").mkdir()
    packages = {}
    for specification in specifications:
        name, _, least = specification.partition(" >=")
        index = {"name": name, "version": least or "1", "build": "0", "build_number": 0, "depends": [], "subdir": "linux-64"}
        file = folder / "linux-64" / f"{name}-{index['version']}-0.tar.bz2"
        with tarfile.open(file, "w:bz2") as package:
            for member, told in ("index.json", index), ("paths.json", {"paths": [], "paths_version": 1}):
                header = tarfile.TarInfo(f"info/{member}")
                header.size = len(json.dumps(told))
                package.addfile(header, io.BytesIO(json.dumps(told).encode()))
        data = file.read_bytes()
        packages[file.name] = {**index, "sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
    for part, held in ("linux-64", packages), ("noarch", {}):
        (folder / part / "repodata.json").write_text(json.dumps({"info": {"subdir": part}, "packages": held, "packages.conda": {}}))


RESOLVE = """
import sys
from rattler_build import cli_api
cli_api.build_recipes([sys.argv[1] + "/packaging/conda/recipe.yaml"], channel=["file://" + sys.argv[2] + "/channel"], render_only=True,
    with_solve=True, variant_overrides={"c_compiler": ["gcc"], "c_stdlib": ["sysroot"]}, output_dir=sys.argv[2] + "/built")
"""


def test_conda__is_resolved_by_rattler_build():
    if SIZE != "long":
        print("rattler-build is fetched with --long alone")
        return
    with Site(make=False) as site:
        run(["/usr/bin/python3", "-m", "venv", site.file("env")])
        got = run([site.file("env") / "bin/pip", "install", "-q", "py-rattler-build==0.73.0"], check=False)
        if got.returncode:
            skip(f"no package index: {got.stderr.strip()[-300:]}")
        text = (SOURCE / "packaging/conda/recipe.yaml").read_text()
        asked = re.findall(r"^    - ([\w-]+(?: >=\S+)?)$", text[text.index("requirements:"):text.index("  run:")], re.MULTILINE)
        expect(len(asked) > 20, f"{asked}")
        make_channel(site.file("channel"), [*asked, "gcc_linux-64", "sysroot_linux-64"])
        resolve = [site.file("env") / "bin/python", "-W", "ignore", "-c", RESOLVE, SOURCE, site.folder]
        told = run(resolve).stdout
        rendered, = json.loads(told[told.index("["):])
        expect(rendered["recipe"]["package"]["version"] == version(), f"{rendered['recipe']['package']}")
        found = {one["name"] for part in ("build", "host") for one in rendered["finalized_dependencies"][part]["resolved"]}
        expect(found == {one.partition(" ")[0] for one in asked} | {"gcc_linux-64", "sysroot_linux-64"}, f"{found}")
        shutil.rmtree(site.file("channel"))
        make_channel(site.file("channel"), asked)
        expect(run(resolve, check=False).returncode, "a channel without a compiler is enough")


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
        text = (SOURCE / "packaging/conda/recipe.yaml").read_text()
        commands = re.findall(r"^      - (.*)$", re.search(r"    script:\n((?:      - .*\n)+)", text).group(1), re.MULTILINE)
        expect(len(commands) >= 5, f"{commands}")
        (site.folder / "small.cdl").write_text((SOURCE / "packaging/conda/small.cdl").read_text())
        env.update(PATH=f"{prefix}/bin:{os.environ['PATH']}", PKG_CONFIG_PATH=f"{prefix}/lib/pkgconfig")
        run(["esdm-mkfs"], env=env)
        for command in commands:
            run(["bash", "-ec", command], env=env, cwd=site.folder)


if __name__ == "__main__":
    main(test_conda__names_what_is_needed, test_spack__names_what_is_needed, test_conda__is_resolved_by_rattler_build,
         test_conda__builds_and_installs)
