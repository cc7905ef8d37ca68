/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDMNC_BOUNDARY_H
#define ESDMNC_BOUNDARY_H

/**
 * @file
 * What the two halves of the NetCDF plug-in promise each other.
 *
 * The *router* (router/, shim/; libesdm-netcdf.so) is what LD_PRELOAD brings into every program. It
 * needs libc alone, decides which paths are ESDM's and finds the libnetcdf copies of the process.
 * The *dispatcher* (dispatch/; libesdm-netcdf-core.so) serves the NetCDF calls through libesdm. The
 * router loads it (RTLD_LOCAL) when the process first touches an ESDM path, so that a program that
 * never does pays for nothing and never meets libesdm's dependencies.
 *
 * A *container name* here is what esdm_container_open() takes, with or without `esdm://`.
 * All functions return NetCDF error codes (NC_NOERR, NC_E…) unless stated otherwise, may be called
 * from any thread at any time, and leave outputs untouched when they fail.
 */

#include <netcdf.h>
#include <netcdf_dispatch.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ESDMNC_EXPORT __attribute__((visibility("default")))

/** libnetcdf copies served in one process. */
#define ESDMNC_INSTANCES_MAX 8
/** The slot of libnetcdf's user-defined formats that is ours. */
#define ESDMNC_MODE_FLAG NC_UDF0
#define ESDMNC_FORMATX   NC_FORMATX_UDF0

/** One libnetcdf in the process. Immutable once published; lives until the process ends. */
typedef struct esdmnc_library {
    int instance;     /**< 0 … ESDMNC_INSTANCES_MAX-1 */
    const char *path; /**< file it was loaded from; "" for the program itself */
    void *handle;     /**< from dlopen(); for dlsym() */
    /* Functions of this copy. Those that a copy may lack are NULL then. */
    const char *(*strerror)(int ncerr);
    const char *(*inq_libvers)(void);
    int (*get_default_format)(void); /**< may be NULL; the router has applied it already */
    int (*get_chunk_cache)(size_t *size, size_t *nelems, float *preemption); /**< may be NULL */
    /** H5Zfilter_avail() of the HDF5 below: > 0 when it has the filter. May be NULL. */
    int (*filter_available)(int filter);
    /** NFC; the result is malloc'ed. May be NULL. */
    int (*utf8_normalize)(const unsigned char *utf8, unsigned char **ret_normalised);
} esdmnc_library;

/** What the libc shim reports for a container as if it were a file. */
typedef struct esdmnc_stat {
    uint64_t size_bytes;  /**< raw bytes of its data; at least 1 */
    uint64_t modified_ns; /**< since 1970-01-01 UTC */
    uint64_t created_ns;
    uint64_t id; /**< differs between containers and after a replacement: serves as inode number */
} esdmnc_stat;

/* ---- provided by the dispatcher (libesdm-netcdf-core.so) ------------------------------------- */

/**
 * The table for libnetcdf copy `instance`; NULL for a number that is out of range. Each copy has
 * a table of its own because two copies hand out the same ncids. `model` is ESDMNC_FORMATX and
 * `dispatch_version` NC_DISPATCH_VERSION.
 *
 * The router registers a copy of it with `create`, `open`, `abort` and `close` wrapped, so that
 *  - `path` in create and open is a container name (stubs and routed folders are resolved),
 *  - `cmode` in create has its format bits decided: nc_set_default_format() is applied and
 *    contradictory flags are refused,
 *  - NC_DISKLESS without NC_PERSIST means that closing drops all changes,
 *  - `parameters` is NULL: parallel opens end in NC_ENOPAR in the router,
 *  - `table` is the router's copy; do not compare it with your own.
 * libnetcdf assigns `ncid` before create and open run; `ncid >> 16` is the slot.
 */
ESDMNC_EXPORT const NC_Dispatch *esdmnc_dispatch_table(int instance);

/** Whether `ncid` (group bits are ignored) is an open ESDM container of this copy: 1 or 0. Called
 *  for every overridden nc_* call; must not lock for long. */
ESDMNC_EXPORT int esdmnc_owns(int instance, int ncid);

/** nc_delete(): NC_NOERR, ENOENT when there is none, NC_EPERM, … */
ESDMNC_EXPORT int esdmnc_delete(const char *container);

/** Whether the container exists: committed, or being created by this process at this moment.
 *  NC_NOERR, ENOENT, or the error that kept it from finding out. */
ESDMNC_EXPORT int esdmnc_exists(const char *container, esdmnc_stat *ret);

/** The NC_FORMAT_* of a container; NC_FORMAT_NETCDF4 when that is not known. */
ESDMNC_EXPORT int esdmnc_format(const char *container);

/** Whether a committed container lies below `folder/`: 1 or 0. */
ESDMNC_EXPORT int esdmnc_is_folder(const char *folder);

/** rename(2): an existing `to` is replaced. NC_NOERR, ENOENT, NC_EPERM, … */
ESDMNC_EXPORT int esdmnc_rename(const char *from, const char *to);

/**
 * Folder number `index` of the site configuration's "netcdf.routes": an absolute path, valid until
 * the process ends; NULL past the last one.
 *
 * The first call reads the configuration; later changes go unnoticed. A configuration that is
 * missing, broken or of a site that cannot be opened has no routes: $ESDM_DEBUG tells why. Makes
 * nothing, not even the default site.
 */
ESDMNC_EXPORT const char *esdmnc_route(size_t index);

/* Values of any type of an open container: what nc_reclaim_data() and nc_copy_data() do.
 * NC_EBADTYPE for types that the container does not have. */

/** Bytes of an element in memory, and whether it holds neither texts nor arrays: 1 or 0. */
ESDMNC_EXPORT int esdmnc_values_size(int instance, int ncid, nc_type type, size_t *ret_bytes,
                                     int *ret_is_fixed);
/** Frees what is within `count` elements, and sets it to NULL. */
ESDMNC_EXPORT int esdmnc_values_reclaim(int instance, int ncid, nc_type type, void *memory,
                                        size_t count);
/** On failure `copy` holds nothing that must be freed. */
ESDMNC_EXPORT int esdmnc_values_copy(int instance, int ncid, nc_type type, const void *memory,
                                     size_t count, void *copy);

/* ---- provided by the router (libesdm-netcdf.so) -----------------------------------------------
 */

/** The libnetcdf copy `instance`, or NULL when there is none. */
ESDMNC_EXPORT const esdmnc_library *esdmnc_library_get(int instance);

/** One line on stderr when $ESDM_DEBUG is set to anything but "" and "0"; nothing otherwise.
 *  The newline is added. Keeps errno. */
ESDMNC_EXPORT void esdmnc_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/**
 * The container behind a path: `esdm:` paths, stub files, and files in routed folders.
 *
 * @param container receives the name, `size` bytes with the NUL; ESDM_CONTAINER_NAME_MAX + 1 is
 *                  enough.
 * @return NC_NOERR; ENOENT when the path is not ESDM's; NC_EMAXNAME when it does not fit.
 */
ESDMNC_EXPORT int esdmnc_resolve(const char *path, char *container, size_t size);

#ifdef __cplusplus
}
#endif
#endif
