#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""kill -9 during operations on history as in test_kill_history.py, with the catalogue on a PostgreSQL server, which
goes on for a moment when a client is dead. A few points in the default size, all of them in the long one."""

from esdmtest import by_size
from test_kill_history import (TESTS, on_postgres, test_kill_history__branch, test_kill_history__dedup,
                               test_kill_history__merge)

on_postgres(by_size([test_kill_history__branch], [test_kill_history__branch, test_kill_history__merge,
                                                  test_kill_history__dedup], TESTS), by_size(2, 5, None))
