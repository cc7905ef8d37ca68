/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TESTS_SQLITE_COMMIT_SUPPORT_H
#define ESDM_TESTS_SQLITE_COMMIT_SUPPORT_H

/** @file Commits of containers that have one dimension. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "store.h"

/** @param container 0: a new one. @return its number. */
static inline uint64_t
commit(sqlite__store *store, const char *name, esdm_meta_commit_kind kind, uint64_t container,
       uint64_t length)
{
    static unsigned number;
    char uuid[40];
    esdm_error err = {0};
    esdm_meta_committed done = {0};
    const esdm_meta_length lengths[] = {{.dimension = 1, .length = length}};
    (void) snprintf(uuid, sizeof uuid, "%032x", ++number);
    const esdm_meta_commit what = {.kind = kind,
                                   .name = name,
                                   .uuid = uuid,
                                   .container = container,
                                   .document = kind == ESDM_META_UPDATE ? NULL : "{}",
                                   .document_bytes = kind == ESDM_META_UPDATE ? 0 : 2,
                                   .lengths = lengths,
                                   .nlengths = 1,
                                   .history = 1};
    if (sqlite__commit(store, &what, &done, &err) != ESDM_OK)
        fail_msg("%s", err.message);
    return done.container;
}

#endif
