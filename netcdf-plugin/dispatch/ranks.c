/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Ranks of parallel files. ESDM's part for the MPI of this process, libesdm-mpi-NAME.so, is loaded
 * when the first parallel call comes: programs without MPI never see one.
 */

#include "internal.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As in src/mpi/call.c. */
typedef esdm_status (*comm_of_call)(int kind, intptr_t value, esdm_comm **ret_comm,
                                    esdm_error *err);
typedef int (*at_finalize)(void (*function)(void));

typedef struct adapter {
    comm_of_call comm;
    at_finalize finalize;
} adapter;

/* ---- which MPI ------------------------------------------------------------------------------ */

typedef int (*library_version)(char *text, int *length);

/* Looks through everything that is loaded: Python loads MPI where no other module sees it. */
static int
find_version(struct dl_phdr_info *info, size_t size, void *user)
{
    (void) size;
    const char *slash = info->dlpi_name != NULL ? strrchr(info->dlpi_name, '/') : NULL;
    if (slash == NULL || strncmp(slash, "/libmp", 6) != 0)
        return 0;
    (void) snprintf(user, PATH_MAX, "%s", info->dlpi_name);
    return 1;
}

static void *
version_anywhere(void)
{
    char path[PATH_MAX] = "";
    if (!dl_iterate_phdr(find_version, path))
        return NULL;
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    void *found = handle != NULL ? dlsym(handle, "MPI_Get_library_version") : NULL;
    if (handle != NULL)
        dlclose(handle);
    return found;
}

/* "openmpi", "mpich" (and what has its ABI); NULL: no MPI that is known. */
static const char *
mpi_name(const esdmnc_library *library)
{
    static const char *const of_mpich[] = {"MPICH", "Intel", "MVAPICH", "CRAY"};
    char text[8192] = ""; /* MPI_MAX_LIBRARY_VERSION_STRING of all that are known */
    int length = 0;
    void *found = library != NULL
                      ? esdmnc_library_symbol(library->instance, "MPI_Get_library_version")
                      : NULL;
    if (found == NULL)
        found = dlsym(RTLD_DEFAULT, "MPI_Get_library_version");
    if (found == NULL)
        found = version_anywhere();
    if (found == NULL) {
        esdmnc_debug("parallel access: there is no MPI in this process");
        return NULL;
    }
    library_version version;
    memcpy(&version, &found, sizeof version);
    (void) version(text, &length);
    if (strstr(text, "Open MPI") != NULL)
        return "openmpi";
    for (size_t i = 0; i < sizeof of_mpich / sizeof of_mpich[0]; i++)
        if (strstr(text, of_mpich[i]) != NULL)
            return "mpich";
    esdmnc_say("parallel access: ESDM has no part for this MPI: %.*s", (int) strcspn(text, "\n"),
               text);
    return NULL;
}

/* Loads the part for that MPI. It stays. */
static int
load_adapter(const esdmnc_library *library, adapter *ret)
{
    char file[64];
    const char *name = mpi_name(library);
    if (name == NULL)
        return NC_ENOPAR;
    (void) snprintf(file, sizeof file, "libesdm-mpi-%s.so.0", name);
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL); /* beside us, by our run path */
    if (handle == NULL) {
        esdmnc_say("parallel access needs a part of ESDM that is not there: %s", dlerror());
        return NC_ENOPAR;
    }
    void *comm = dlsym(handle, "esdm_mpi_comm_of_call");
    void *finalize = dlsym(handle, "esdm_mpi_at_finalize");
    if (comm == NULL || finalize == NULL) {
        esdmnc_debug("%s is of another version", file);
        return NC_ENOPAR;
    }
    memcpy(&ret->comm, &comm, sizeof comm);
    memcpy(&ret->finalize, &finalize, sizeof finalize);
    return NC_NOERR;
}

/* ---- what the router asks for --------------------------------------------------------------- */

static atomic_bool parallel_seen;

bool
esdmnc_parallel_seen(void)
{
    return atomic_load_explicit(&parallel_seen, memory_order_relaxed);
}

int
esdmnc_ranks_open(const esdmnc_library *library, const esdmnc_parallel *parallel,
                  esdmnc_ranks **ret_ranks)
{
    adapter found;
    esdm_error err;
    int rc = load_adapter(library, &found);
    if (rc != NC_NOERR)
        return rc;
    esdm_status st = found.comm((int) parallel->kind, parallel->comm, ret_ranks, &err);
    if (st == ESDM_OK) {
        (void) found.finalize(esdmnc_files_finalize);
        atomic_store_explicit(&parallel_seen, true, memory_order_relaxed);
        return NC_NOERR;
    }
    rc = esdmnc_error(&err, "parallel access to", "communicator");
    return st == ESDM_EIO ? NC_EMPI : rc;
}

int
esdmnc_ranks_number(const esdmnc_ranks *ranks)
{
    return ranks->rank;
}

void
esdmnc_ranks_close(esdmnc_ranks *ranks)
{
    esdm_comm_unref(ranks);
}

int
esdmnc_ranks_share(esdmnc_ranks *ranks, void *data, size_t bytes)
{
    esdm_error err;
    if (ranks->ops->broadcast(ranks, data, bytes, 0, &err) == ESDM_OK)
        return NC_NOERR;
    (void) esdmnc_error(&err, "parallel", "access");
    return NC_EMPI;
}

int
esdmnc_ranks_agree(esdmnc_ranks *ranks, int status)
{
    esdm_error err;
    /* The largest number is the lowest rank's that failed; its status follows in the low half. */
    uint64_t worst =
        status == NC_NOERR ? 0 : (uint64_t) (ranks->size - ranks->rank) << 32 | (uint32_t) status;
    if (ranks->ops->maximum(ranks, &worst, 1, &err) == ESDM_OK)
        return (int) (uint32_t) worst;
    (void) esdmnc_error(&err, "parallel", "access");
    return NC_EMPI;
}

/* ---- for files ------------------------------------------------------------------------------ */

int
esdmnc_agree(const esdmnc_file *file, int rc)
{
    esdm_comm *comm = esdmnc_comm(file);
    return comm != NULL ? esdmnc_ranks_agree(comm, rc) : rc;
}

int
esdmnc_any(const esdmnc_file *file, bool mine, bool *ret_any)
{
    esdm_comm *comm = esdmnc_comm(file);
    uint64_t most = mine;
    esdm_error err;
    if (comm != NULL && comm->ops->maximum(comm, &most, 1, &err) != ESDM_OK) {
        (void) esdmnc_error(&err, "parallel access to", file->name);
        return NC_EMPI;
    }
    *ret_any = most != 0;
    return NC_NOERR;
}

int
esdmnc_error_of_all(const esdmnc_file *file, const esdm_error *err, const char *what)
{
    const esdm_comm *comm = esdmnc_comm(file);
    if (comm == NULL || comm->rank == 0)
        return esdmnc_error_loud(err, what, file->name);
    return esdmnc_error_quiet(err, what, file->name); /* rank 0 has said it */
}
