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
/** The same by one request, of bytes that are all there and not kept. */
bool remote_read_range(remote_object *object, uint64_t position, void *to, size_t bytes);
/** Of the last remote_read() that failed since the object was opened; NULL: none. */
const esdm_error *remote_failure(void);

/** What an object is, by its first bytes. */
typedef enum remote_kind { REMOTE_HDF5, REMOTE_CLASSIC, REMOTE_GRIB } remote_kind;

/** ESDM_ENOTSUP: it is nothing that can be referred to. */
esdm_status remote_kind_of(const char *url, remote_kind *ret_kind, esdm_error *err);

/** A local file that begins so, for libnetcdf, which knows paths alone.
 *  @param bytes,all the file is `all` bytes long, of which the first are in memory.
 *  @param ret_path borrowed until the next one. */
esdm_status remote_stand_in(const void *data, size_t bytes, uint64_t all, const char **ret_path,
                            esdm_error *err);
/** The local path by which HDF5, and so libnetcdf, opens the object; borrowed until the next one.
 */
esdm_status remote_path(const char **ret_path, esdm_error *err);
/** Ends all of it. */
void remote_end(void);

#endif
