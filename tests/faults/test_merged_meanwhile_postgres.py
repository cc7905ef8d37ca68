#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""The orders of test_merged_meanwhile.py with the catalogue on a PostgreSQL server."""

from test_named_meanwhile import ordered_on_postgres
from test_merged_meanwhile import TESTS

if __name__ == "__main__":
    ordered_on_postgres(*TESTS)
