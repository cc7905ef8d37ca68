/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Stands in for the driver that an MPI library has for Lustre: files are made of stripes, as the
 * hints striping_factor and striping_unit say when they are made (else one stripe, of 1 MiB), and
 * each of $STRIPES_SERVERS (4) servers works off what all ranks write at $STRIPES_BYTES_PER_S
 * (10e6). A stripe costs 20 ms when the file is made. The bytes go to the MPI library.
 *
 * A library of its own between the program and MPI: what is preloaded comes before it.
 * $STRIPES_FOLDER has a file for each server, and "log": a line for each file, with its stripes.
 */
#include <fcntl.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define MAKE_MS 20

static long factor = 1;
static long unit = 1 << 20;

static long
number(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? (long) strtod(text, NULL) : otherwise;
}

static long
hint(MPI_Info info, const char *key, long otherwise)
{
    char value[64] = "";
    int found = 0;
    if (info != MPI_INFO_NULL)
        (void) MPI_Info_get(info, key, (int) sizeof value - 1, value, &found);
    return found && atol(value) > 0 ? atol(value) : otherwise;
}

static void
pass(double seconds)
{
    struct timespec left = {(time_t) seconds, (long) ((seconds - (double) (time_t) seconds) * 1e9)};
    while (nanosleep(&left, &left) != 0)
        continue;
}

/* One request after the other, of all ranks. */
static void
serve(long server, double bytes)
{
    char path[PATH_MAX];
    const char *folder = getenv("STRIPES_FOLDER");
    (void) snprintf(path, sizeof path, "%s/server.%ld", folder != NULL ? folder : ".", server);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    (void) flock(fd, LOCK_EX);
    pass(bytes / (double) number("STRIPES_BYTES_PER_S", 10000000));
    (void) close(fd);
}

int
MPI_File_open(MPI_Comm comm, const char *path, int mode, MPI_Info info, MPI_File *ret)
{
    int rank;
    char log[PATH_MAX];
    (void) MPI_Comm_rank(comm, &rank);
    if (mode & MPI_MODE_CREATE) {
        factor = hint(info, "striping_factor", 1);
        unit = hint(info, "striping_unit", 1 << 20);
        const char *folder = getenv("STRIPES_FOLDER");
        (void) snprintf(log, sizeof log, "%s/log", folder != NULL ? folder : ".");
        FILE *out = rank == 0 ? fopen(log, "ae") : NULL;
        if (out != NULL) {
            (void) fprintf(out, "%ld %ld\n", factor, unit);
            (void) fclose(out);
        }
        if (rank == 0)
            pass((double) factor * MAKE_MS / 1000);
    }
    (void) MPI_Barrier(comm);
    return PMPI_File_open(comm, path, mode, info, ret);
}

int
MPI_File_write_at_all(MPI_File file, MPI_Offset at, const void *values, int count,
                      MPI_Datatype type, MPI_Status *status)
{
    int bytes = 0;
    int result = PMPI_File_write_at_all(file, at, values, count, type, status);
    (void) MPI_Type_size(type, &bytes);
    long servers = number("STRIPES_SERVERS", 4);
    for (MPI_Offset begin = at, end = at + (MPI_Offset) bytes * count; begin < end;) {
        MPI_Offset next = (begin / unit + 1) * unit < end ? (begin / unit + 1) * unit : end;
        serve((long) (begin / unit) % factor % servers, (double) (next - begin));
        begin = next;
    }
    return result;
}
