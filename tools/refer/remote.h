/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_REFER_REMOTE_H
#define ESDM_TOOLS_REFER_REMOTE_H

/**
 * @file
 * Objects on web servers, as the parsers need them. One process looks at one object at a time; the
 * functions that do not name an object may be called by any thread.
 */

#include "common/common.h"

/** Through which everything is asked; borrowed. Before all else. */
void remote_use(esdm_session *session);
esdm_session *remote_session(void);

/** An object that is open; a part of it is kept in memory. */
typedef struct remote_object {
    char *url;
    esdm_remote_state state;
    GHashTable *blocks; /* number -> bytes, owned */
} remote_object;

/** The object of that URL, kept open until another one is asked for. Borrowed. */
esdm_status remote_open(const char *url, remote_object **ret, esdm_error *err);
/** false: remote_failure() tells why. Behind the end are zeros. */
bool remote_read(remote_object *object, uint64_t position, void *to, size_t bytes);
/** Of the last remote_read() that failed since the object was opened; NULL: none. */
const esdm_error *remote_failure(void);

/** The local path by which HDF5, and so libnetcdf, opens the object; borrowed until the next one.
 */
esdm_status remote_path(const char *url, const char **ret_path, esdm_error *err);
/** Ends all of it. */
void remote_end(void);

#endif
