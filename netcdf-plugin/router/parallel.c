/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Parallel calls. They are served on every libnetcdf, serial builds included: what they add, the
 * communicator, goes past libnetcdf in the pending call. MPI's handles are pointers or ints; either
 * passes through an intptr_t in a register, which is all that is needed to hand them on.
 *
 * Whether a path in a routed folder is ours can look different to each rank, for another one may be
 * making or removing a stub there: rank 0 decides for all.
 */
#include "router/overrides.h"

#define NOT_SERVED (-10000) /* no NetCDF code */

/* Not in the public headers, which need MPI. */
ESDMNC_EXPORT int nc_create_par(const char *path, int mode, intptr_t comm, intptr_t info,
                                int *ncidp);
ESDMNC_EXPORT int nc_open_par(const char *path, int mode, intptr_t comm, intptr_t info, int *ncidp);
ESDMNC_EXPORT int nc_create_par_fortran(const char *path, int mode, int comm, int info, int *ncidp);
ESDMNC_EXPORT int nc_open_par_fortran(const char *path, int mode, int comm, int info, int *ncidp);
ESDMNC_EXPORT int nc_var_par_access(int ncid, int varid, int access);

/** What all ranks have to have in common. */
typedef struct common {
    uint64_t path; /**< hash */
    int mode;
    int ours; /**< as rank 0 sees it */
} common;

/** FNV-1a. */
static uint64_t
hash_of(const char *text)
{
    uint64_t hash = 14695981039346656037u;
    for (; *text; text++) {
        hash = (hash ^ (unsigned char) *text) * 1099511628211u;
    }
    return hash;
}

/** Compares this rank's arguments with rank 0's, and learns whether the path is ours. */
static int
compare(const esdmnc__core *core, esdmnc_ranks *ranks, const char *path, int mode, bool *ours)
{
    common first = {.path = hash_of(path), .mode = mode, .ours = *ours};
    int status = core->ranks_share(ranks, &first, sizeof(first));
    if (status != NC_NOERR) {
        return status;
    }
    *ours = first.ours;
    if (!first.ours) {
        return NC_NOERR; /* the library may say what it thinks of them */
    }
    if (first.path != hash_of(path) || first.mode != mode) {
        esdmnc__tell("parallel access to '%s': rank %d gives another path or mode than rank 0",
                     path, core->ranks_number(ranks));
        return NC_EINVAL;
    }
    return NC_NOERR;
}

static int
check_mode(int mode, bool creating)
{
    if (mode & (NC_DISKLESS | NC_INMEMORY | NC_MMAP)) {
        return NC_EINVAL;
    }
    return creating ? esdmnc__create_mode_check(mode) : esdmnc__open_mode_check(mode);
}

/** The call on a container, or NOT_SERVED. */
static int
serve(esdmnc__library *library, const char *path, int mode, esdmnc_parallel parallel, bool creating,
      int *ncidp)
{
    if (!path || !library || !esdmnc__path_may_be_ours(path)) {
        return NOT_SERVED;
    }
    const esdmnc__core *core = esdmnc__core_get();
    esdmnc_ranks *ranks = NULL;
    bool ours = esdmnc__path_is_ours(path, creating);
    int status = core ? core->ranks_open(&library->api, &parallel, &ranks) : NC_ENOTBUILT;
    if (status != NC_NOERR) {
        return ours ? status : NOT_SERVED;
    }
    status = compare(core, ranks, path, mode, &ours);
    if (status == NC_NOERR && ours) {
        status = check_mode(mode, creating);
    }
    if (status == NC_NOERR && ours) {
        status = esdmnc__library_serve(library);
    }
    status = core->ranks_agree(ranks, status);
    if (status == NC_NOERR && ours) {
        esdmnc__pending before = esdmnc__pending_call;
        esdmnc__pending_call = (esdmnc__pending){.ranks = ranks};
        status = creating ? esdmnc__create_ours(library, path, mode, ncidp)
                          : esdmnc__open_ours(library, path, mode, ncidp);
        esdmnc__pending_call = before;
    } else if (status == NC_NOERR) {
        status = NOT_SERVED;
    }
    core->ranks_close(ranks);
    return status;
}

/* NOLINTBEGIN(bugprone-macro-parentheses): a type takes none. */
#define PARALLEL_CALL(name, handle, creating, how)                                                 \
    int name(const char *path, int mode, handle comm, handle info, int *ncidp)                     \
    {                                                                                              \
        esdmnc__library *library = esdmnc__library_for(__builtin_return_address(0));               \
        const esdmnc_parallel parallel = {.kind = how, .comm = comm};                              \
        int status = serve(library, path, mode, parallel, creating, ncidp);                        \
        if (status != NOT_SERVED) {                                                                \
            return status;                                                                         \
        }                                                                                          \
        __typeof__(&name) real = esdmnc__real(library, ESDMNC_FN_##name);                          \
        return real ? real(path, mode, comm, info, ncidp) : NC_ENOTBUILT;                          \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

PARALLEL_CALL(nc_create_par, intptr_t, true, ESDMNC_COMM_HANDLE)
PARALLEL_CALL(nc_open_par, intptr_t, false, ESDMNC_COMM_HANDLE)
PARALLEL_CALL(nc_create_par_fortran, int, true, ESDMNC_COMM_FORTRAN)
PARALLEL_CALL(nc_open_par_fortran, int, false, ESDMNC_COMM_FORTRAN)

/** Serial builds refuse it without asking the table. */
int
nc_var_par_access(int ncid, int varid, int access)
{
    esdmnc__library *library = CALLER();
    if (!owns(library, ncid)) {
        return CALL_REAL(library, nc_var_par_access, ncid, varid, access);
    }
    return library->table.var_par_access(ncid, varid, access);
}
