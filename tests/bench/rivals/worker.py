# SPDX-License-Identifier: LGPL-3.0-or-later
"""One task of one store in a process of its own; prints a line of JSON. Started by compare.py:

    worker.py STORE PATTERN TASK FOLDER SCALE DATA      (task "write", or one of the pattern's)
    worker.py --have                                    which stores can be used here, and versions
"""

import importlib.metadata
import importlib.util
import json
import pathlib
import sys
import time

from patterns import PATTERNS
from stores import PLAIN, STORES


def have():
    """Patterns, and the stores with versions of what each needs, or what is not installed."""
    told = {}
    for name, kind in STORES.items():
        missing = [m for m in kind.needs if importlib.util.find_spec(m) is None]
        versions = {}
        for module in kind.needs:
            try:
                versions[module] = importlib.metadata.version(module)
            except importlib.metadata.PackageNotFoundError:
                versions[module] = ""
        told[name] = {"missing": missing, "versions": versions, "plain": name in PLAIN}
    patterns = {name: {"tasks": ["write", *kind.tasks], "what": kind.__doc__.splitlines()[0]}
                for name, kind in PATTERNS.items()}
    return {"stores": told, "patterns": patterns,
            "plots": importlib.util.find_spec("matplotlib") is not None}


def memory_mib(field):
    """VmRSS, or VmHWM: the most since reset_peak(). See proc(5)."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    return 0


def reset_peak():
    pathlib.Path("/proc/self/clear_refs").write_text("5")


def main():
    if sys.argv[1] == "--have":
        print(json.dumps(have()))
        return
    store_name, pattern_name, task, folder, scale, data = sys.argv[1:]
    for module in STORES[store_name].needs:  # first, as at the head of a program
        __import__(module)
    pattern = PATTERNS[pattern_name](float(scale), pathlib.Path(data) if data else None)
    path = pathlib.Path(folder) / f"{pattern_name}-{list(STORES).index(store_name)}"
    store = STORES[store_name]()
    reset_peak()
    before = memory_mib("VmRSS")
    began, cpu = time.perf_counter(), time.process_time()
    if task == "write":
        store.create(path)
        pattern.write(store)
        store.close()
        found = None
    else:
        store.open(path)
        opened = time.perf_counter()
        found = getattr(pattern, task)(store)
        store.close()
    print(json.dumps({"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu,
                      "open": opened - began if task != "write" else None, "checksum": found,
                      "memory_mib": memory_mib("VmHWM") - before, "value_bytes": pattern.size()}))


main()
