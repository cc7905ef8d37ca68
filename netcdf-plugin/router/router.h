/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDMNC_ROUTER_H
#define ESDMNC_ROUTER_H

/**
 * @file
 * Inside of libesdm-netcdf.so. Nothing here is exported.
 *
 * Everything may run in any thread, in a forked child, and before constructors of the program ran.
 */

#include "router/boundary.h"
#include "router/stub_build.h"

#include <limits.h>
#include <netcdf_mem.h>

#include <stdbool.h>
#include <string.h>

/** Longest container name, as ESDM_CONTAINER_NAME_MAX in esdm/container.h (libesdm is not needed
 *  to build the router). */
#define ESDMNC_NAME_MAX 1024

/* ---- libnetcdf copies (libraries.c) --------------------------------------------------------- */

/** Functions of a libnetcdf that the router calls in place of an override or for itself. */
#define ESDMNC_REAL_FUNCTIONS(X)                                                                   \
    X(NC_infermodel)                                                                               \
    X(nc_initialize)                                                                               \
    X(add_to_NCList)                                                                               \
    X(del_from_NCList)                                                                             \
    X(nc_create)                                                                                   \
    X(nc__create)                                                                                  \
    X(nc__create_mp)                                                                               \
    X(nc_open)                                                                                     \
    X(nc__open)                                                                                    \
    X(nc__open_mp)                                                                                 \
    X(nc_open_mem)                                                                                 \
    X(nc_open_memio)                                                                               \
    X(nc_create_par)                                                                               \
    X(nc_create_par_fortran)                                                                       \
    X(nc_open_par)                                                                                 \
    X(nc_open_par_fortran)                                                                         \
    X(nc_var_par_access)                                                                           \
    X(nc_delete)                                                                                   \
    X(nc_delete_mp)                                                                                \
    X(nc__testurl)                                                                                 \
    X(nc_def_user_format)                                                                          \
    X(nc_inq_user_format)                                                                          \
    X(nc_get_default_format)                                                                       \
    X(nc_set_default_format)                                                                       \
    X(nc_def_var)                                                                                  \
    X(nc_inq_dimlen)                                                                               \
    X(nc_inq_unlimdims)                                                                            \
    X(nc_inq_grp_parent)                                                                           \
    X(nc_inq_format_extended)                                                                      \
    X(nc_def_var_chunking)                                                                         \
    X(nc_inq_var_chunking)                                                                         \
    X(nc_set_chunk_cache)                                                                          \
    X(nc_set_chunk_cache_ints)                                                                     \
    X(nc_set_var_chunk_cache)                                                                      \
    X(nc_get_var_chunk_cache)                                                                      \
    X(nc_inq_varndims)                                                                             \
    X(nc_inq_vartype)                                                                              \
    X(nc_def_var_chunking_ints)                                                                    \
    X(nc_inq_var_chunking_ints)                                                                    \
    X(nc_set_var_chunk_cache_ints)                                                                 \
    X(nc_get_var_chunk_cache_ints)                                                                 \
    X(nc_def_var_filter)                                                                           \
    X(nc_reclaim_data)                                                                             \
    X(nc_reclaim_data_all)                                                                         \
    X(nc_copy_data)                                                                                \
    X(nc_copy_data_all)                                                                            \
    X(ncaux_reclaim_data)                                                                          \
    X(ncaux_reclaim_data_all)                                                                      \
    X(ncaux_type_alignment)                                                                        \
    X(ncaux_class_alignment)                                                                       \
    X(nc_inq_user_type)                                                                            \
    X(nc_inq_compound_field)                                                                       \
    X(nc_inq_attname)                                                                              \
    X(nc_inq_att)                                                                                  \
    X(nc_get_att)                                                                                  \
    X(nc_get_att_double)                                                                           \
    X(nc_free_string)

typedef enum esdmnc__function {
#define X(name) ESDMNC_FN_##name,
    ESDMNC_REAL_FUNCTIONS(X)
#undef X
        ESDMNC_FN_COUNT
} esdmnc__function;

typedef enum esdmnc__hook {
    ESDMNC_HOOK_UNKNOWN,
    ESDMNC_HOOK_WORKS,
    ESDMNC_HOOK_BYPASSED /**< linked with -Bsymbolic-functions or alike */
} esdmnc__hook;

/** One libnetcdf copy. Never freed: its library is pinned by `handle`, or never goes. */
typedef struct esdmnc__library {
    esdmnc_library api;
    _Atomic(void *) handle; /**< from dlopen(); NULL: not needed yet */
    uintptr_t start;        /**< address range it is mapped at */
    uintptr_t end;
    void *real[ESDMNC_FN_COUNT]; /**< NULL where the copy lacks the function */
    /* Set once by esdmnc__library_serve(), under its lock. */
    int mode_flag;     /**< NC_UDF0, or NC_UDF1 when the program took that one; 0: not yet */
    int hooked;        /**< esdmnc__hook: do its own calls of NC_infermodel reach ours? Atomic */
    bool by_rc_file;   /**< loaded without preloading (rcfile.c) */
    NC_Dispatch table; /**< what is registered: the dispatcher's with our wrappers */
    const NC_Dispatch *core_table;
} esdmnc__library;

/** The copy whose code contains or would be called from `address` (a return address); when that
 *  leaves doubt, the one the program itself links, else any. NULL: no libnetcdf here. */
esdmnc__library *esdmnc__library_for(const void *address);

/** What was loaded with the code at `address`; NULL: nothing. Takes no lock (glibc 2.35). */
struct link_map *esdmnc__map_of(const void *address);

/** The copy `instance`; NULL past the last. */
esdmnc__library *esdmnc__library_at(int instance);

/** Makes the copy able to open containers: loads the dispatcher and registers the table. NC_NOERR
 * or the reason why not. Cheap when done. */
int esdmnc__library_serve(esdmnc__library *library);

/** Real function number `function` of `library`; when there is no library, the next one in the
 *  process's search order. May be NULL. */
void *esdmnc__real(const esdmnc__library *library, esdmnc__function function);
extern const char *const esdmnc__function_names[ESDMNC_FN_COUNT];

/** Gives a copy that was found the chunk cache of $ESDM_NC_CHUNK_CACHE (chunk_cache.c). */
void esdmnc__chunk_cache_set(const esdmnc__library *library);

/** Waits until no other thread is initialising a libnetcdf (filelist.c). */
void esdmnc__initialised(void);
/** In a forked child, as esdmnc__creations_forked(). */
void esdmnc__filelist_forked(void);

/* ---- the dispatcher (core.c) ---------------------------------------------------------------- */

typedef struct esdmnc__core {
    const NC_Dispatch *(*dispatch_table)(int instance);
    int (*owns)(int instance, int ncid);
    int (*remove)(const char *container);
    int (*exists)(const char *container, esdmnc_stat *ret);
    int (*format)(const char *container);
    int (*is_folder)(const char *folder);
    int (*rename)(const char *from, const char *to);
    int (*may_rename)(const char *from, const char *to);
    uint64_t (*stub_number)(int instance, int ncid, uint64_t *ret_version);
    void (*site)(char *ret_id);
    int (*numbered)(const char *container, uint64_t number, uint64_t version, char *ret_name,
                    size_t size);
    int (*stub_file)(const char *container, const char *path);
    const char *(*route)(size_t index);
    int (*values_size)(int instance, int ncid, nc_type type, size_t *ret_bytes, int *ret_is_fixed);
    int (*values_reclaim)(int instance, int ncid, nc_type type, void *memory, size_t count);
    int (*values_copy)(int instance, int ncid, nc_type type, const void *memory, size_t count,
                       void *copy);
    int (*ranks_open)(const esdmnc_library *library, const esdmnc_parallel *parallel,
                      esdmnc_ranks **ret_ranks);
    int (*ranks_number)(const esdmnc_ranks *ranks);
    int (*ranks_agree)(esdmnc_ranks *ranks, int status);
    int (*ranks_share)(esdmnc_ranks *ranks, void *data, size_t bytes);
    void (*ranks_close)(esdmnc_ranks *ranks);
    void (*recipe_copy)(const char *from, const char *to, char *ret_from, char *ret_to);
    bool (*descriptor_is_kept)(int fd);
    int (*descriptor_opened)(int fd);
    unsigned (*descriptor_limit)(void);
    bool (*records_write)(const char *path, char *ret_why, size_t bytes);
} esdmnc__core;

/** Loads the dispatcher at first use; NULL when it cannot be loaded ($ESDM_DEBUG tells why). */
const esdmnc__core *esdmnc__core_get(void);
/** The same, but never loads. */
const esdmnc__core *esdmnc__core_if_loaded(void);

/* ---- wrapped table entries (table.c) -------------------------------------------------------- */

/** Fills library->table from library->core_table. */
void esdmnc__table_wrap(esdmnc__library *library);

/* ---- what is being created or written (creations.c) ------------------------------------------ */

/** Whether this process has made it and not closed it yet. */
bool esdmnc__creation_is_made(const char *container);
/** @param made nc_create() made it; else it was opened for writing, through its stub.
 *  @param has_new_stub which goes when nothing comes of it.
 *  @param path that the program gave: of its stub, or a name; "" for none. */
void esdmnc__creation_add(int instance, int ncid, bool made, bool has_new_stub, const char *path,
                          const char *container);
/** What was added last for the ncid is written anew in the place of another: when it is committed,
 *  its stub gets this version. @param number of the stub. */
void esdmnc__creation_version(int instance, int ncid, uint64_t number, uint64_t version);
/** After a call that succeeded: the stub gets the time of the commit. */
void esdmnc__creation_closed(int instance, int ncid);
void esdmnc__creation_synced(int instance, int ncid);
/** After nc_abort(): of what did not come into being the stub goes, too. */
void esdmnc__creation_aborted(int instance, int ncid);
/** Whether this process is creating a container below `folder/`. */
bool esdmnc__creating_below(const char *folder);
/** In a forked child: frees a lock that another thread of the parent may have held. */
void esdmnc__creations_forked(void);

/** What a call of the second routing layer, or a parallel one, tells create and open behind
 *  libnetcdf's back. */
typedef struct esdmnc__pending {
    const char *path;    /**< as the program gave it; NULL: no such call is under way */
    int mode;            /**< likewise */
    esdmnc_ranks *ranks; /**< of a parallel call; borrowed */
    bool probing; /**< is this libnetcdf hooked? NC_infermodel answers by setting `reached` */
    bool reached;
} esdmnc__pending;
extern __thread esdmnc__pending esdmnc__pending_call;

/** Whether the copy's own calls of NC_infermodel reach ours (opens.c). */
bool esdmnc__library_is_hooked(esdmnc__library *library);
/** nc_create() and nc_open() through the copy for a path that is ours, with what the pending call
 *  holds besides (opens.c). */
int esdmnc__create_ours(esdmnc__library *library, const char *path, int cmode, int *ncidp);
int esdmnc__open_ours(esdmnc__library *library, const char *path, int mode, int *ncidp);

/** NC_EINVAL or NC_EDISKLESS for create flags that contradict each other or cannot be had here. */
int esdmnc__create_mode_check(int mode);
int esdmnc__open_mode_check(int mode);

/** Copies a text into a buffer that is known to hold it. */
static inline void
esdmnc__text_copy(char *to, const char *from)
{
    memcpy(to, from, strlen(from) + 1);
}

/* ---- loaded by an RC file (rcfile.c) --------------------------------------------------------- */

/** NC_NOERR, or NC_EPERM after a message: without preloading nothing is written. */
int esdmnc__rc_mode_check(const esdmnc__library *library, const char *path, int mode);
/** NC_NOERR, or NC_ENOTBUILT after a message: what was opened has user-defined types. */
int esdmnc__rc_types_check(const esdmnc__library *library, const char *path, int ncid);

/* ---- stubs in memory (memory.c) ------------------------------------------------------------- */

/** Keeps in mind whom the bytes belong to. NC_NOERR, NC_ENOMEM. */
int esdmnc__memory_opened(int instance, int ncid, const NC_memio *memory);
/** The ncid is closed: hands the bytes to `ret`, or frees them when they are ours. Nothing when the
 *  ncid was not opened from memory. */
void esdmnc__memory_closed(int instance, int ncid, NC_memio *ret);
/** In a forked child, as esdmnc__creations_forked(). */
void esdmnc__memory_forked(void);

/* ---- messages (debug.c) -----------------------------------------------------------------------
 */

/** One line on stderr, for what a NetCDF code cannot tell the user. Keeps errno. */
void esdmnc__tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- paths (path.c) ------------------------------------------------------------------------- */

/** `esdm:` in front, or behind a folder that somebody put there (os.path.abspath): the part from
 *  `esdm:` on. NULL: not such a path. One strncmp for most paths. */
const char *esdmnc__path_prefixed(const char *path);
/** The second half of esdmnc__path_prefixed() alone. Keeps errno. */
const char *esdmnc__path_mangled(const char *path);
/** Takes `esdm:` and slashes off. NC_NOERR, NC_EMAXNAME. */
int esdmnc__path_container(const char *prefixed, char *container, size_t size);

/** Whether NetCDF calls on this path are ours. @param creating for nc_create(). */
bool esdmnc__path_is_ours(const char *path, bool creating);
/** Whether it could be on another rank: `esdm:` paths, stubs, and all in routed folders. */
bool esdmnc__path_may_be_ours(const char *path);

/** Where a create goes. */
typedef struct esdmnc__target {
    char container[ESDMNC_NAME_MAX + 1];

    bool write_stub;  /**< a stub has to be put at the path after the create */
    uint64_t number;  /**< of the stub; 0: none */
    uint64_t version; /**< of what is created; differs from the stub's where it is written anew */
    char folder[PATH_MAX]; /**< real path of the one in which the stub lies; "": none, or unknown */
} esdmnc__target;
int esdmnc__path_target(const char *path, int cmode, esdmnc__target *ret);
/** The name for a new container at a path that has no stub: `container`, or when that belongs to a
 *  stub elsewhere another one. @param folder that routes the path. */
int esdmnc__path_free_name(const char *path, const char *folder, char *container, size_t size);

/** Container name that a routed folder gives to the path. NC_NOERR; ENOENT: not routed. The first
 *  call loads the dispatcher, which alone knows the site configuration. */
int esdmnc__route_container(const char *path, char *container, size_t size);

/** The same, and `folder` (PATH_MAX bytes) receives the real path of the routed folder. */
int esdmnc__route(const char *path, char *container, size_t size, char *folder);
/** A file that is created is not routed: tells, once, of entries of $ESDM_NC_ROUTE that cannot
 *  route anything. Keeps errno. */
void esdmnc__route_told(const char *path);

/* ---- stubs that were moved (living.c) ------------------------------------------------------- */

typedef enum esdmnc__living {
    ESDMNC_LIVING_NO,
    ESDMNC_LIVING_YES,
    ESDMNC_LIVING_UNKNOWN /**< not everything could be looked at */
} esdmnc__living;
/** Whether a stub of the container lies in or beside the routed folder. @param where receives its
 *  path. */
esdmnc__living esdmnc__living_stub(const char *folder, const char *container, char *where,
                                   size_t size);
/** This process has put a stub at an absolute path. */
void esdmnc__living_note(const char *path, const char *container);
/** In a forked child, as esdmnc__creations_forked(). */
void esdmnc__living_forked(void);

/* ---- room for descriptors (room.c) ----------------------------------------------------------- */

/** The library has become active in a running process: where that has threads, one that is started
 *  makes room for ESDM's descriptors. Once; what fails is left to the first opening. */
void esdmnc__room_activated(void);
/** In a forked child, whose table has room for what is open alone. */
void esdmnc__room_forked(void);

/* ---- renames into routed folders (moves.c) -------------------------------------------------- */

typedef struct esdmnc__move {
    bool active;
    bool replaces;   /**< a stub at the target, and its container with it */
    bool at_home;    /**< the stub is where its container got its name */
    uint64_t number; /**< of the stub at the target */
    uint64_t version;
    char site[ESDMNC_SITE_BYTES]; /**< likewise */
    char wanted[ESDMNC_NAME_MAX + 1];
    char folder[PATH_MAX]; /**< that routes the target */
} esdmnc__move;
/** Before a rename of real files; either may be NULL. Keeps errno. @return an errno: the container
 *  may not take the place of the other one, which was changed since it was read. */
int esdmnc__move_begin(const char *from, const char *to, esdmnc__move *ret);
/** After it succeeded. Keeps errno. @return an errno, as above: the rename has to be taken back,
 *  and then esdmnc__move_undo() called. */
int esdmnc__move_end(const char *to, esdmnc__move *move);
/** Puts back what stood at the target. Keeps errno. */
void esdmnc__move_undo(const char *to, const esdmnc__move *move);

/* ---- stub files (stub.c) -------------------------------------------------------------------- */

typedef struct esdmnc__stub {
    char container[ESDMNC_NAME_MAX + 1];
    bool is_original; /**< the file that was made with the container, not a copy of it */
    uint64_t number;  /**< the same in the container that was made with it; 0: none */
    uint64_t version; /**< the same in the container, until a program writes the file anew: that
                       * gives both another one, so that copies of the stub are told from it */
    char site[ESDMNC_SITE_BYTES]; /**< id of the site that has the container; ESDMNC_SITE_NONE; "":
                                   * made by an earlier ESDM */
    uint64_t copied_ns;           /**< when the copy was made, since 1970-01-01 UTC; 0: not known */
    bool annotated; /**< a program that does not know of ESDM has added attributes to the file */
    bool remains;   /**< such a program has made another file of it: it is no stub any more; the
                     * container is known all the same */
} esdmnc__stub;

/** Nothing was committed to the container yet, on any site. */
#define ESDMNC_SITE_NONE "00000000000000000000000000000000"

/** Reads the stub at `path`. NC_NOERR; ENOENT when the file is not there or not a stub (any more);
 *  NC_ENOTNC when it has the magic but is damaged. */
int esdmnc__stub_read(const char *path, esdmnc__stub *ret);
/** The same for bytes in memory, which are nobody's original. */
int esdmnc__stub_parse(const void *bytes, size_t size, esdmnc__stub *ret);
/** Whether the bytes are those of a stub, which they are a copy of. @param ret_stub may be NULL. */
bool esdmnc__memory_stub(const NC_memio *memory, esdmnc__stub *ret_stub);
/** Puts a stub at `path` in one step, replacing what is there. @param site as in esdmnc__stub.
 *  NC_NOERR or an errno. */
int esdmnc__stub_write(const char *path, const char *container, uint64_t number, uint64_t version,
                       const char *site);
/** The container of the stub at `path` was committed: the stub tells on which site from now on, in
 *  place. NC_NOERR or an errno; ENOENT: it tells none. */
int esdmnc__stub_settle(const char *path, const char *site);
/** Gives the original stub at `path` the version of what stands there now, in place. NC_NOERR or an
 *  errno; ENOENT: there is no original. */
int esdmnc__stub_renew(const char *path, uint64_t version);
/** Removes the stub at `path` if it is the original of `container`. Best effort. */
void esdmnc__stub_drop(const char *path, const char *container);
/** The bytes of a stub without an inode, for descriptors of `esdm:` paths.
 *  @param format NC_FORMAT_*: begins like a file of that kind.
 *  @return length, at most `size`; 0 when it does not fit. */
size_t esdmnc__stub_bytes(const char *container, int format, unsigned char *bytes, size_t size);

#endif
