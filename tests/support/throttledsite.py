# SPDX-License-Identifier: LGPL-3.0-or-later
"""Targets of the plug-in that throttles, and what esdm-tune finds on a site of them."""

import json
import os

from esdmtest import BUILD, expect, run, tool

os.environ["ESDM_PLUGIN_PATH"] = str(BUILD / "plugins")
FAR = str(BUILD / "tests/integration/far_program")


def throttled(name, **keys):
    return {"name": name, "plugin": "throttled", "directory": name, **keys}


def tuned(*command):
    found = json.loads(run([tool("esdm-tune"), "--json", "--quiet", *command]).stdout)
    expect(found["ratio"] is not None, f"a run of a pair took too long: {found}")
    print(f"    {1 / found['ratio']:.1f} times as fast: {found['best']}, {len(found['trials'])} of {found['settings']}", flush=True)
    return found
