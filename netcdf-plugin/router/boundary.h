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

#include <stdbool.h>
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
    /* Functions of this copy. Those that a copy may lack are NULL then. */
    const char *(*strerror)(int ncerr);
    const char *(*inq_libvers)(void);
    int (*get_default_format)(void); /**< may be NULL; the router has applied it already */
    int (*get_chunk_cache)(size_t *size, size_t *nelems, float *preemption); /**< may be NULL */
    /** NFC; the result is malloc'ed. May be NULL. */
    int (*utf8_normalize)(const unsigned char *utf8, unsigned char **ret_normalised);
} esdmnc_library;

/** How a parallel call gives its communicator. The numbers are those of src/mpi/call.c. */
typedef enum esdmnc_comm_kind {
    ESDMNC_COMM_HANDLE = 0,   /**< an MPI_Comm: a pointer or an int */
    ESDMNC_COMM_FORTRAN = 1,  /**< an INTEGER */
    ESDMNC_COMM_STRUCTURE = 2 /**< address of libnetcdf's NC_MPI_INFO, which begins with one */
} esdmnc_comm_kind;

/** The communicator of nc_create_par() or nc_open_par(). */
typedef struct esdmnc_parallel {
    esdmnc_comm_kind kind;
    intptr_t comm;
} esdmnc_parallel;

/** The ranks of a parallel call (esdm/comm.h). */
typedef struct esdm_comm esdmnc_ranks;

/** What the libc shim reports for a container as if it were a file. */
typedef struct esdmnc_stat {
    uint64_t size_bytes;  /**< raw bytes of its data; at least 1 */
    uint64_t modified_ns; /**< since 1970-01-01 UTC */
    uint64_t created_ns;
    uint64_t id; /**< differs between containers and after a replacement: serves as inode number */
} esdmnc_stat;

/** Bytes of a site's id: hexadecimal digits and a NUL. */
#define ESDMNC_SITE_BYTES 33

/** What a create gives for `chunksizehintp`, which points to its first member. */
typedef struct esdmnc_new_stub {
    size_t version; /**< that stub and container get */
    const char
        *folder; /**< real path of the folder in which the stub lies; "": none, or not known */
} esdmnc_new_stub;

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
 *  - NC_DISKLESS without NC_PERSIST means that closing drops all changes, and so does NC_MMAP in
 *    create,
 *  - `parameters` in create and open is an esdmnc_ranks for parallel calls, borrowed, else NULL;
 *    a parallel call has the same container name and mode on all ranks,
 *  - `initialsz` in create is the number of the container's stub, 0 for none, and `chunksizehintp`
 *    is that of an esdmnc_new_stub, the same on all ranks,
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

/** rename(2): an existing `to` is replaced. NC_NOERR, ENOENT, NC_EPERM, … ESTALE, which is told on
 *  stderr: it was changed or replaced by others since this process, or the one that wrote `from`,
 *  has read it. */
ESDMNC_EXPORT int esdmnc_rename(const char *from, const char *to);
/** Whether the rename would be refused for that, as far as is known before: ESTALE, else NC_NOERR.
 */
ESDMNC_EXPORT int esdmnc_may_rename(const char *from, const char *to);

/** The number and version that were given to the container when its stub was made or renewed; 0:
 *  none is known. The ncid is open. */
ESDMNC_EXPORT uint64_t esdmnc_stub_number(int instance, int ncid, uint64_t *ret_version);

/** The id of the site that this process has open, which stays the same as long as the site; "":
 *  none is open. @param ret_id ESDMNC_SITE_BYTES. */
ESDMNC_EXPORT void esdmnc_site(char *ret_id);

/** The name by which a committed container with this number and version is read: `container`, or
 *  what says the former container that had this name (`container@TIME`). NC_NOERR; ENOENT: it is
 * not kept. */
ESDMNC_EXPORT int esdmnc_numbered(const char *container, uint64_t number, uint64_t version,
                                  char *ret_name, size_t size);

/** Notes that the stub of a container which is to be replaced is gone (`path` NULL), or that a file
 *  of that whole path stands for the former container `container` (esdmnc_numbered()), which is
 * kept as long as that is there. NC_NOERR, or it cannot be noted. */
ESDMNC_EXPORT int esdmnc_stub_file(const char *container, const char *path);

/** A run that is recorded, or run again (dispatch/recipe.c), copies a container: notes it, and says
 *  which containers are meant. @param from, to  names; NULL: a plain file. @param ret_from, ret_to
 *  as large as names can be. */
ESDMNC_EXPORT void esdmnc_recipe_copy(const char *from, const char *to, char *ret_from,
                                      char *ret_to);

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

/**
 * Collective: the ranks of a communicator. Loads the part of ESDM that is made for the MPI of this
 * process. @param library whose MPI to look for first. @param ret_ranks owned;
 * esdmnc_ranks_close(). NC_ENOPAR when there is no MPI or no such part: on all ranks.
 */
ESDMNC_EXPORT int esdmnc_ranks_open(const esdmnc_library *library, const esdmnc_parallel *parallel,
                                    esdmnc_ranks **ret_ranks);
ESDMNC_EXPORT int esdmnc_ranks_number(const esdmnc_ranks *ranks); /**< 0 … */
/** Collective: NC_NOERR when all ranks have that, else the lowest failing rank's status for all. */
ESDMNC_EXPORT int esdmnc_ranks_agree(esdmnc_ranks *ranks, int status);
/** Collective: copies rank 0's bytes to all. NC_EMPI. */
ESDMNC_EXPORT int esdmnc_ranks_share(esdmnc_ranks *ranks, void *data, size_t bytes);
ESDMNC_EXPORT void esdmnc_ranks_close(esdmnc_ranks *ranks); /**< NULL is accepted */

/* What calls that open and close descriptors ask (esdm/descriptors.h). */
ESDMNC_EXPORT bool esdmnc_descriptor_is_kept(int fd);
ESDMNC_EXPORT int esdmnc_descriptor_opened(int fd);
ESDMNC_EXPORT unsigned esdmnc_descriptor_limit(void);

/** Writes what this process did with ESDM so far, into a file that is made or emptied.
 *  @return false: `ret_why` tells the reason, cut off at `bytes`. Any thread. */
ESDMNC_EXPORT bool esdmnc_records_write(const char *path, char *ret_why, size_t bytes);

/* ---- provided by the router (libesdm-netcdf.so) -----------------------------------------------
 */

/** The libnetcdf copy `instance`, or NULL when there is none. */
ESDMNC_EXPORT const esdmnc_library *esdmnc_library_get(int instance);

/** What dlsym() finds from the copy `instance` on, in it and the libraries below it; NULL: nothing.
 *  Keeps errno. Any thread. */
ESDMNC_EXPORT void *esdmnc_library_symbol(int instance, const char *name);

/** Whether the process was made active while it ran, and not by esdm-run. Any thread. */
ESDMNC_EXPORT bool esdmnc_is_activated(void);

/** Whether somebody listens to what this thread says (esdm_netcdf_listen()), who has it now; else
 * it goes to standard error. @param line without an end of line. */
ESDMNC_EXPORT bool esdmnc_is_heard(const char *line);

/** One line on stderr when $ESDM_DEBUG is set to anything but "" and "0"; nothing otherwise.
 *  The newline is added. Keeps errno. */
ESDMNC_EXPORT void esdmnc_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Where a program has the value of an attribute from. */
typedef enum esdmnc_origin {
    ESDMNC_FROM_PROGRAM,  /**< itself: it did not meet it while it listed attributes */
    ESDMNC_FROM_FILE,     /**< it listed the attributes of some variable in a NetCDF file */
    ESDMNC_FROM_CONTAINER /**< the same of an ESDM container */
} esdmnc_origin;

/** Of an attribute `esdm_…`. @param value its text without NULs at the end, or its numbers as
 *  doubles. */
ESDMNC_EXPORT esdmnc_origin esdmnc_attribute_origin(const char *name, const void *value,
                                                    size_t bytes);

/**
 * The container behind a path: `esdm:` paths, stub files, and files in routed folders.
 *
 * @param container receives the name, `size` bytes with the NUL; ESDM_CONTAINER_NAME_MAX + 1 is
 *                  enough.
 * @return NC_NOERR; ENOENT when the path is not ESDM's; NC_EMAXNAME when it does not fit.
 */
ESDMNC_EXPORT int esdmnc_resolve(const char *path, char *container, size_t size);

/** The container of an ncid that is being closed is not committed yet: what nc_create() did besides
 *  can still be undone when the ncid is gone. */
ESDMNC_EXPORT void esdmnc_creation_keep(int instance, int ncid);
/** That container is committed or dropped by now. */
ESDMNC_EXPORT void esdmnc_creation_end(const char *container);

#ifdef __cplusplus
}
#endif
#endif
