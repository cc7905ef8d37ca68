/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* An esdm_comm over an MPI communicator. */
#include "nodes.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Counts are ints in MPI. */
#define PART_BYTES ((size_t) 1 << 30)
#define TAG        1
#define TOP_BIT    (UINT64_C(1) << 63)

typedef struct mpi_comm {
    esdm_comm base;   /* first: cast back */
    MPI_Comm mpi;     /* a duplicate, which returns errors */
    mpi_nodes *nodes; /* a reference; NULL: not known */
} mpi_comm;

static MPI_Comm
mpi_of(const esdm_comm *comm)
{
    return ((const mpi_comm *) comm)->mpi;
}

static esdm_status fail(esdm_error *err, esdm_status status, const char *format, ...)
    ESDM_PRINTF(3, 4);

static esdm_status
fail(esdm_error *err, esdm_status status, const char *format, ...)
{
    if (err != NULL) {
        va_list arguments;
        va_start(arguments, format);
        err->status = status;
        err->os_errno = 0;
        (void) vsnprintf(err->message, sizeof err->message, format, arguments);
        va_end(arguments);
    }
    return status;
}

/* What MPI says to a return code. */
static esdm_status
check(int code, const char *call, esdm_error *err)
{
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int length = 0;
    if (code == MPI_SUCCESS)
        return ESDM_OK;
    (void) MPI_Error_string(code, text, &length);
    return fail(err, ESDM_EIO, "%s failed: %.300s", call, text);
}

static int
part_of(size_t bytes, size_t done)
{
    return (int) (bytes - done < PART_BYTES ? bytes - done : PART_BYTES);
}

static esdm_status
broadcast(esdm_comm *comm, void *data, size_t bytes, int root, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (size_t done = 0; done < bytes && status == ESDM_OK; done += PART_BYTES)
        status = check(
            MPI_Bcast((char *) data + done, part_of(bytes, done), MPI_BYTE, root, mpi_of(comm)),
            "MPI_Bcast", err);
    return status;
}

static esdm_status
too_many(size_t count, esdm_error *err)
{
    return fail(err, ESDM_ENOTSUP, "%zu numbers are too many for one MPI call", count);
}

static esdm_status
maximum(esdm_comm *comm, uint64_t *values, size_t count, esdm_error *err)
{
    if (count == 0)
        return ESDM_OK;
    if (count > INT_MAX)
        return too_many(count, err);
    /* MPICH 4.0 compares unsigned numbers as signed ones: let them be some of the same order. */
    for (size_t i = 0; i < count; i++)
        values[i] ^= TOP_BIT;
    esdm_status status =
        check(MPI_Allreduce(MPI_IN_PLACE, values, (int) count, MPI_INT64_T, MPI_MAX, mpi_of(comm)),
              "MPI_Allreduce", err);
    for (size_t i = 0; i < count; i++)
        values[i] ^= TOP_BIT;
    return status;
}

static esdm_status
sums(esdm_comm *comm, const uint64_t *values, size_t count, uint64_t *ret_lower, uint64_t *ret_all,
     esdm_error *err)
{
    if (count == 0)
        return ESDM_OK;
    if (count > INT_MAX)
        return too_many(count, err);
    esdm_status status =
        check(MPI_Exscan(values, ret_lower, (int) count, MPI_UINT64_T, MPI_SUM, mpi_of(comm)),
              "MPI_Exscan", err);
    if (comm->rank == 0) /* where it leaves them undefined */
        memset(ret_lower, 0, count * sizeof *ret_lower);
    if (status == ESDM_OK)
        status =
            check(MPI_Allreduce(values, ret_all, (int) count, MPI_UINT64_T, MPI_SUM, mpi_of(comm)),
                  "MPI_Allreduce", err);
    return status;
}

static esdm_status
gather(esdm_comm *comm, const void *data, size_t bytes, void *ret_all, esdm_error *err)
{
    if (bytes > INT_MAX)
        return too_many(bytes, err);
    return check(
        MPI_Allgather(data, (int) bytes, MPI_BYTE, ret_all, (int) bytes, MPI_BYTE, mpi_of(comm)),
        "MPI_Allgather", err);
}

static esdm_status
send_bytes(esdm_comm *comm, const void *data, size_t bytes, int to, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (size_t done = 0; done < bytes && status == ESDM_OK; done += PART_BYTES)
        status = check(MPI_Ssend((const char *) data + done, part_of(bytes, done), MPI_BYTE, to,
                                 TAG, mpi_of(comm)),
                       "MPI_Ssend", err);
    return status;
}

static esdm_status
receive_bytes(esdm_comm *comm, void *data, size_t bytes, int from, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (size_t done = 0; done < bytes && status == ESDM_OK; done += PART_BYTES) {
        MPI_Status received;
        int wanted = part_of(bytes, done);
        int count = 0;
        status = check(
            MPI_Recv((char *) data + done, wanted, MPI_BYTE, from, TAG, mpi_of(comm), &received),
            "MPI_Recv", err);
        if (status == ESDM_OK)
            status = check(MPI_Get_count(&received, MPI_BYTE, &count), "MPI_Get_count", err);
        if (status == ESDM_OK && count != wanted)
            status = fail(err, ESDM_EIO, "rank %d sent %d bytes, not %d", from, count, wanted);
    }
    return status;
}

static void
release(esdm_comm *base)
{
    mpi_comm *comm = (mpi_comm *) base;
    int finalized = 0;
    (void) MPI_Finalized(&finalized);
    if (!finalized)
        (void) MPI_Comm_free(&comm->mpi);
    mpi_nodes_unref(comm->nodes);
    free(comm);
}

static const esdm_comm_ops ops = {
    .broadcast = broadcast,
    .maximum = maximum,
    .sums = sums,
    .gather = gather,
    .send = send_bytes,
    .receive = receive_bytes,
    .release = release,
};

/* What this file was compiled for, and how the library calls itself. Others have MPICH's ABI. */
#if defined(OPEN_MPI)
#define MPI_FAMILY "Open MPI"
static const char *const family[] = {"Open MPI"};
#else
#define MPI_FAMILY "MPICH"
static const char *const family[] = {"MPICH", "MVAPICH", "Intel", "CRAY"};
#endif

/* Handles of one MPI mean nothing to another, so this comes before any use of them. */
static esdm_status
check_family(esdm_error *err)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING + 8192] = ""; /* another one may write more */
    int length = 0;
    (void) MPI_Get_library_version(text, &length);
    for (size_t i = 0; i < sizeof family / sizeof family[0]; i++)
        if (strstr(text, family[i]) != NULL)
            return ESDM_OK;
    return fail(err, ESDM_EINVAL,
                "this part of ESDM is made for " MPI_FAMILY
                ", the MPI of this process is '%.*s': link the libesdm-mpi of that one",
                (int) strcspn(text, "\n"), text);
}

/* Whether MPI can be used now. */
static esdm_status
check_running(esdm_error *err)
{
    int initialized = 0;
    int finalized = 0;
    esdm_status status = check_family(err);
    if (status != ESDM_OK)
        return status;
    (void) MPI_Initialized(&initialized);
    (void) MPI_Finalized(&finalized);
    if (!initialized || finalized)
        return fail(err, ESDM_EINVAL, "MPI is %s", finalized ? "finalised" : "not initialised");
    return ESDM_OK;
}

esdm_status
esdm_mpi_comm_new(MPI_Comm communicator, esdm_comm **ret_comm, esdm_error *err)
{
    int inter = 0;
    if (ret_comm == NULL)
        return fail(err, ESDM_EINVAL, "esdm_mpi_comm_new: ret_comm is NULL");
    esdm_status status = check_running(err);
    if (status != ESDM_OK)
        return status;
    if (communicator == MPI_COMM_NULL)
        return fail(err, ESDM_EINVAL, "the communicator is MPI_COMM_NULL");
    status = check(MPI_Comm_test_inter(communicator, &inter), "MPI_Comm_test_inter", err);
    if (status == ESDM_OK && inter)
        return fail(err, ESDM_ENOTSUP, "inter-communicators cannot share a container");
    mpi_comm *comm = calloc(1, sizeof *comm);
    /* Collective: even a rank without memory takes part. */
    MPI_Comm duplicate = MPI_COMM_NULL;
    if (status == ESDM_OK)
        status = check(MPI_Comm_dup(communicator, &duplicate), "MPI_Comm_dup", err);
    if (status != ESDM_OK) {
        free(comm);
        return status;
    }
    (void) MPI_Comm_set_errhandler(duplicate, MPI_ERRORS_RETURN);
    int ready = comm != NULL;
    status = check(MPI_Allreduce(MPI_IN_PLACE, &ready, 1, MPI_INT, MPI_MIN, duplicate),
                   "MPI_Allreduce", err);
    if (status == ESDM_OK && !ready)
        status = fail(err, ESDM_ENOMEM, "out of memory for a communicator");
    if (status != ESDM_OK || comm == NULL) {
        (void) MPI_Comm_free(&duplicate);
        free(comm);
        return status;
    }
    comm->base.ops = &ops;
    comm->base.references = 1;
    comm->mpi = duplicate;
    (void) MPI_Comm_rank(duplicate, &comm->base.rank);
    (void) MPI_Comm_size(duplicate, &comm->base.size);
    comm->nodes = mpi_nodes_of(communicator, duplicate);
    comm->base.nodes = comm->nodes != NULL ? &comm->nodes->lists : NULL;
    *ret_comm = &comm->base;
    return ESDM_OK;
}

esdm_status
esdm_mpi_container_create(esdm_session *session, MPI_Comm communicator, const char *name,
                          esdm_create_mode mode, esdm_container **ret_container, esdm_error *err)
{
    esdm_comm *comm = NULL;
    esdm_status status = esdm_mpi_comm_new(communicator, &comm, err);
    if (status != ESDM_OK)
        return status;
    status = esdm_container_create_collective(session, comm, name, mode, ret_container, err);
    esdm_comm_unref(comm); /* the container has its own reference */
    return status;
}

esdm_status
esdm_mpi_container_open(esdm_session *session, MPI_Comm communicator, const char *name,
                        esdm_open_mode mode, uint64_t snapshot, esdm_container **ret_container,
                        esdm_error *err)
{
    esdm_comm *comm = NULL;
    esdm_status status = esdm_mpi_comm_new(communicator, &comm, err);
    if (status != ESDM_OK)
        return status;
    status =
        esdm_container_open_collective(session, comm, name, mode, snapshot, ret_container, err);
    esdm_comm_unref(comm);
    return status;
}
