/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_SQLITE_VIEWS_H
#define ESDM_BACKEND_SQLITE_VIEWS_H

/** @file Counts of containers for the levels of views. One thread at a time. */

#include "base/buffer.h"
#include "store.h"

#define SQLITE__VIEW_LEVELS ESDM_META_VIEW_LEVELS_MAX

/** A view that is kept, and the parts of the container that is looked at. */
typedef struct sqlite__view {
    uint64_t root;
    char *text; /* owned; what the texts below point into */
    const char *without;
    const char *attributes[SQLITE__VIEW_LEVELS];
    const char *values[SQLITE__VIEW_LEVELS];
    size_t nlevels;
    esdm__buffer parts[SQLITE__VIEW_LEVELS]; /* "=value", "-": there is none */
    bool kept_out;
} sqlite__view;

typedef struct sqlite__views {
    sqlite__view *items; /* owned */
    size_t count;
} sqlite__views;

/** All that are kept; none when the tables were never made. @param views cleared by the caller. */
esdm_status sqlite__views_load(sqlite__link *link, sqlite__views *views, esdm_error *err);
void sqlite__views_clear(sqlite__views *views);
/** Enters a container, whose name programs can say, in all views that it is in; within a write. */
esdm_status sqlite__views_enter(sqlite__link *link, sqlite__views *views, uint64_t container,
                                const void *attributes, size_t bytes, esdm_error *err);
esdm_status sqlite__views_leave(sqlite__link *link, const sqlite__views *views, uint64_t container,
                                esdm_error *err);
/** A container gets another name, within a write; NULL: none. */
esdm_status sqlite__views_named(sqlite__link *link, uint64_t container, const char *from,
                                const char *to, esdm_error *err);

#endif
