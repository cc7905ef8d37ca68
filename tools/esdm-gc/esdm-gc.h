/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_GC_H
#define ESDM_TOOLS_GC_H

/** @file Containers whose stub file was removed, and stubs whose container was. */

#include "common/common.h"

#include <sys/types.h>

/** A stub file as it was found. All owned. */
typedef struct gc_stub {
    char *path; /**< real */
    char *container;
    char *site; /**< NULL: made by an earlier ESDM */
    guint64 number;
    guint64 modified_ns;
    dev_t device;
    ino_t inode;
} gc_stub;

typedef struct gc_found {
    GPtrArray *names; /**< of containers that no stub names */
    guint64 young;    /**< others that were committed to within the age limit */
    GPtrArray *stubs; /**< gc_stub: whose containers are gone for good */
    guint64 stubs_young;
    guint64 stubs_left; /**< whose containers this site does not have, and may never have had */
} gc_found;

/** Nothing is found yet. */
void gc_found_init(gc_found *found);
void gc_found_clear(gc_found *found);

/**
 * Finds the containers of routed folders that no stub file names any more, and the stubs of these
 * folders whose containers are gone. Whatever cannot be looked at is an error, and so is a folder
 * without any stub that has containers: it may not be mounted.
 * @param folders "FOLDER", or "FOLDER=NAME" as in ESDM_NC_ROUTE; NULL-terminated.
 * @param age_s containers and stubs that were written to within this time are left out, and
 *        counted.
 * @param found initialised.
 */
tool_exit gc_find_stubless(esdm_session *session, char **folders, uint64_t age_s, gc_found *found);

/** Removes a stub, unless somebody has changed it since it was found. 0, or an errno; ESTALE:
 *  changed. */
int gc_remove_stub(const gc_stub *stub);
void gc_stub_free(gpointer stub);

#endif
