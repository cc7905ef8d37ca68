#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Containers that share packs, changed at random, compared with a model (sharing_model.c); on SQLite
and PostgreSQL. $ESDM_MODEL_STEPS says how many steps (10000 takes minutes), $ESDM_MODEL_SEED which; they are written to
the file $ESDM_MODEL_LOG as they are done."""

import os
import pathlib
import subprocess
import tempfile

from esdmtest import BUILD, Site, by_size, environment, expect, main
from postgres import Server, skip_without_postgres

GIVEN = os.environ.get("ESDM_MODEL_STEPS")
STEPS = int(GIVEN or by_size(60, 160, 2000))
SEED = os.environ.get("ESDM_MODEL_SEED", "1")

SITE = {
    "targets": [{"name": name, "plugin": "posix", "directory": name}
                for name in ("fast", "disk", "more")],
    "policies": [{"container": "n[01]", "copies": 2}],
    "history": 3,
    "durability": "process",
}


def run_model(steps, **variables):
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(os.environ.get("ESDM_MODEL_LOG") or pathlib.Path(folder, "log"))
        with log.open("w", encoding="utf-8") as told:
            done = subprocess.run([BUILD / "tests/faults/sharing_model", str(steps), SEED],
                                  env=environment(variables), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=told, text=True, errors="replace", timeout=60 + steps * 5, check=False)
        said = log.read_text(encoding="utf-8", errors="replace").splitlines()[-30:]
    expect(done.returncode == 0, f"seed {SEED}, of {steps} steps:\n" + "\n".join(said))
    print(f"seed {SEED}, {steps} steps:", ", ".join(done.stdout.splitlines()))


def test_sharing__nothing_is_lost_and_nothing_left():
    with Site(**SITE):
        run_model(STEPS)


def test_sharing__nothing_is_lost_and_nothing_left_on_postgres():
    skip_without_postgres()
    with Server() as server, Site(**SITE, metadata={
            "plugin": "postgres", "host": "127.0.0.1", "port": server.port,
            "database": "postgres", "user": "esdm"}):
        # What a client that is killed has asked for may still be done: then it has taken place.
        run_model(STEPS if GIVEN else max(STEPS // 2, 20), ESDM_MODEL_AT_WORK=server.sql_command(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'esdm'"))


main(
    test_sharing__nothing_is_lost_and_nothing_left,
    test_sharing__nothing_is_lost_and_nothing_left_on_postgres,
)
