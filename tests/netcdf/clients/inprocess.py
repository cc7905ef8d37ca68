# SPDX-License-Identifier: LGPL-3.0-or-later
"""Running Python programs that make themselves active: `import esdm`, without esdm-run."""

import json
import subprocess

from clients import python_of
from esdmtest import BUILD, SANITIZE, SOURCE, client_environment, run, skip, tool


def packages(site):
    """A folder as pip makes it, with the entry points."""
    folder = site.file("packages")
    info = folder / "esdm-0.1.0.dist-info"
    if not info.exists():
        info.mkdir(parents=True)
        (folder / "esdm").symlink_to(SOURCE / "python/esdm")
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: esdm\nVersion: 0.1.0\n")
        (info / "entry_points.txt").write_text(
            "[xarray.backends]\nesdm = esdm.xarray_engine:EsdmBackend\n")
    return folder


def python(site, kind, script, check=True):
    """Not under esdm-run."""
    if SANITIZE:
        skip("the sanitizer's library must come first, and nothing is preloaded here")
    env = client_environment({
        "PYTHONPATH": str(packages(site)),
        "ESDM_LIBRARY_DIR": f"{BUILD}:{BUILD / 'netcdf-plugin'}"})
    env.pop("LD_PRELOAD", None)
    return subprocess.run([python_of(kind), "-c", script], env=env, cwd=site.folder, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300,
                          check=False) if not check else run(
        [python_of(kind), "-c", script], env=env, cwd=site.folder)


def names():
    told = json.loads(run([tool("esdm-ls"), "--json"]).stdout)
    return [c["name"] for c in told["containers"]]
