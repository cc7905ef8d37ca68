/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TESTS_SQLITE_TREES_SUPPORT_H
#define ESDM_TESTS_SQLITE_TREES_SUPPORT_H

/** @file A catalogue with many times and boxes. */

#include "store_support.h"

/* Container n: times n % 97 to that + 2, latitudes n % 90, longitudes n % 170, each to that + 1. */
static const char catalogue[] =
    "BEGIN;"
    "INSERT INTO container SELECT value, printf('run%d', value), 'u', 1, 1, 1, 1, 1, 1, 0, 0, 0, 2,"
    " NULL FROM generate;"
    "INSERT INTO attribute SELECT value, 0, '@time_min', 0, NULL, value % 97, NULL FROM generate;"
    "INSERT INTO attribute SELECT value, 0, '@time_max', 0, NULL, value % 97 + 2, NULL"
    " FROM generate;"
    "INSERT INTO attribute SELECT value, 0, '@lat_min', 0, NULL, value % 90, NULL FROM generate;"
    "INSERT INTO attribute SELECT value, 0, '@lat_max', 0, NULL, value % 90 + 1, NULL"
    " FROM generate;"
    "INSERT INTO attribute SELECT value, 0, '@lon_min', 0, NULL, value % 170, NULL FROM generate;"
    "INSERT INTO attribute SELECT value, 0, '@lon_max', 0, NULL, value % 170 + 1, NULL"
    " FROM generate;"
    "UPDATE store SET value = 1000000 WHERE key = 'indexed';"
    "COMMIT;";

static inline int
setup(void **state)
{
    *state = store_with(catalogue);
    return 0;
}

#define NUMBER(key, sign, value)                                                                   \
    {                                                                                              \
        .attribute = (key), .op = ESDM_META_##sign, .is_number = true, .number = (value)           \
    }

/* What is asked of times alone: @time_min <= low, @time_max >= high. */
static inline size_t
count_times(fixture *f, double low, double high)
{
    const esdm_meta_condition c[] = {NUMBER("@time_min", LE, low), NUMBER("@time_max", GE, high)};
    esdm_error err = {0};
    size_t found = 0;
    if (sqlite__find(f->store, c, 2, count_match, &found, &err) != ESDM_OK)
        fail_msg("%s", err.message);
    return found;
}

#endif
