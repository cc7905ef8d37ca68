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

/** A count, or what is to be added to one that is kept. */
typedef struct sqlite__facet {
    const char *name; /* borrowed */
    char *part;       /* owned; NULL: an empty slot */
    int64_t n;
} sqlite__facet;

/** Open addressing, at most three quarters full. */
typedef struct sqlite__counts {
    sqlite__facet *items; /* owned */
    size_t capacity;      /* a power of two */
    size_t count;
    const char **names; /* attributes that are counted; owned, their texts are the views' */
    size_t nnames;
    bool kept; /* the store has these counts */
} sqlite__counts;

typedef struct sqlite__views {
    sqlite__view *items; /* owned */
    size_t count;
    sqlite__counts facets; /* what is to be added: sqlite__facets_flush() */
} sqlite__views;

/** All that are kept; none when the tables were never made. @param views cleared by the caller. */
esdm_status sqlite__views_load(sqlite__link *link, sqlite__views *views, esdm_error *err);
void sqlite__views_clear(sqlite__views *views);
/** Enters a container, whose name programs can say, in all views that it is in; within a write. */
esdm_status sqlite__views_enter(sqlite__link *link, sqlite__views *views, uint64_t container,
                                const void *attributes, size_t bytes, esdm_error *err);
esdm_status sqlite__views_leave(sqlite__link *link, sqlite__views *views, uint64_t container,
                                esdm_error *err);
/** A container gets another name, within a write; NULL: none. */
esdm_status sqlite__views_named(sqlite__link *link, uint64_t container, const char *from,
                                const char *to, esdm_error *err);

/* ---- facets_kept.c -------------------------------------------------------------------------- */

/** Within a write: begins anew with the attributes that views name; then containers enter. */
esdm_status sqlite__facets_make(sqlite__link *link, bool any, esdm_error *err);
/** Whether counts are kept, and can be relied on. */
esdm_status sqlite__facets_are_kept(sqlite__link *link, bool *ret_kept, esdm_error *err);
/** Takes the names of views, which own them. */
esdm_status sqlite__facets_load(sqlite__link *link, sqlite__views *views, esdm_error *err);
/** Notes what a container adds, whose name programs can say, and what it takes away, as the index
 *  has it; nothing when no counts are kept. */
esdm_status sqlite__facets_enter(sqlite__link *link, sqlite__counts *facets, uint64_t container,
                                 const void *attributes, size_t bytes, esdm_error *err);
esdm_status sqlite__facets_leave(sqlite__link *link, sqlite__counts *facets, uint64_t container,
                                 esdm_error *err);
/** Within the write: adds what was noted. */
esdm_status sqlite__facets_flush(sqlite__link *link, sqlite__counts *facets, esdm_error *err);
void sqlite__facets_clear(sqlite__counts *facets);

/**
 * Counts of the values of `names` among all that have the attribute `asked`, from those that are
 * kept; containers that wait to be entered are not among them.
 * @param without what to take away, filled by sqlite__facets_leave() with these names and `asked`.
 * @param ret_told false: they do not say it, and nothing was told.
 */
esdm_status sqlite__facets_tell(sqlite__link *link, const sqlite__counts *without,
                                const char *asked, const char *const *names, size_t nnames,
                                esdm_meta_facet_visitor visit, void *user, bool *ret_told,
                                esdm_error *err);

#endif
