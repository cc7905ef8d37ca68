#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""The same as powerloss, with packs in Kyoto Cabinet databases: their records, transactions and logs."""

from esdmtest import BUILD, by_size, main, skip
from test_powerloss import lose_power


def test_powerloss__all_that_was_committed_to_databases_is_there():
    lose_power("kv", by_size(10, 25, 2000))


if __name__ == "__main__":
    if not (BUILD / "esdm/esdm-data-kv.so").exists():
        skip("esdm-data-kv was not built")
    main(test_powerloss__all_that_was_committed_to_databases_is_there)
