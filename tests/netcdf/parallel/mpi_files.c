/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Does with files by MPI what a report is compared with; of any MPI, and nothing of ESDM.
 *
 *     mpi_files FILE            40 steps of 4,000 numbers a rank, collective through a view with
 * gaps; read again by each rank on its own; pointers of all kinds; rank 1 is late
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mpi_needs.h"

enum { STEPS = 40, WIDTH = 4000, BYTES = WIDTH * (int) sizeof(int) };

static void
write_together(const char *path, int rank, int ranks)
{
    MPI_File file;
    MPI_Info hints;
    MPI_Datatype rows;
    static int values[WIDTH];
    DO(MPI_Info_create(&hints));
    DO(MPI_Info_set(hints, "cb_nodes", "1"));
    DO(MPI_Info_set(hints, "of_no_library", "7"));
    DO(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, hints, &file));
    DO(MPI_Info_free(&hints));
    DO(MPI_Type_vector(STEPS, WIDTH, ranks * WIDTH, MPI_INT, &rows));
    DO(MPI_Type_commit(&rows));
    DO(MPI_File_set_view(file, (MPI_Offset) rank * BYTES, MPI_INT, rows, "native", MPI_INFO_NULL));
    for (int step = 0; step < STEPS; step++) {
        const struct timespec late = {.tv_nsec = 200000000};
        for (int i = 0; i < WIDTH; i++)
            values[i] = rank * 1000000 + step * 10000 + i;
        if (rank == 1 && step % 8 == 0)
            (void) nanosleep(&late, NULL);
        DO(MPI_File_write_all(file, values, WIDTH, MPI_INT, MPI_STATUS_IGNORE));
    }
    DO(MPI_Type_free(&rows));
    DO(MPI_File_sync(file));
    DO(MPI_File_close(&file));
}

/* The part of the next rank, in small pieces. */
static void
read_alone(const char *path, int rank, int ranks)
{
    MPI_File file;
    MPI_Status status;
    int other = (rank + 1) % ranks;
    int count = -1;
    int values[100];
    DO(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    for (int step = 0; step < STEPS; step++) {
        MPI_Offset at = ((MPI_Offset) step * ranks + other) * BYTES;
        for (int i = 0; i < WIDTH; i += 100) {
            DO(MPI_File_read_at(file, at + i * (MPI_Offset) sizeof(int), values, 100, MPI_INT,
                                &status));
            DO(MPI_Get_count(&status, MPI_INT, &count));
            need_true(count == 100 && values[99] == other * 1000000 + step * 10000 + i + 99,
                      "values of another rank");
        }
    }
    /* Beyond the end there are half as many as asked for. */
    DO(MPI_File_seek(file, -50 * (MPI_Offset) sizeof(int), MPI_SEEK_END));
    DO(MPI_File_read(file, values, 100, MPI_INT, MPI_STATUS_IGNORE));
    DO(MPI_File_close(&file));
}

static void
use_pointers(const char *path, int rank, int ranks)
{
    char name[4096];
    MPI_File file;
    MPI_Request request;
    char text[10];
    (void) snprintf(name, sizeof name, "%s.pointers", path);
    (void) memset(text, 'a' + rank, sizeof text);
    DO(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    DO(MPI_File_write_ordered(file, text, sizeof text, MPI_BYTE, MPI_STATUS_IGNORE));
    DO(MPI_File_write_shared(file, text, sizeof text, MPI_BYTE, MPI_STATUS_IGNORE));
    DO(MPI_File_iwrite_at(file, 1000 + rank * 10, text, sizeof text, MPI_BYTE, &request));
    DO(MPI_Wait(&request, MPI_STATUS_IGNORE));
    DO(MPI_File_write_at_all_begin(file, 2000 + rank * 10, text, sizeof text, MPI_BYTE));
    DO(MPI_File_write_at_all_end(file, text, MPI_STATUS_IGNORE));
    DO(MPI_Barrier(MPI_COMM_WORLD));
    DO(MPI_File_read_at_all(file, 2000 + (ranks - 1) * 10, text, sizeof text, MPI_BYTE,
                            MPI_STATUS_IGNORE));
    need_true(text[9] == 'a' + ranks - 1, "what another rank wrote");
    DO(MPI_File_close(&file));
}

int
main(int argc, char **argv)
{
    int rank;
    int ranks;
    mpi_begin(&argc, &argv, &rank, &ranks);
    need_true(argc == 2, "usage: mpi_files FILE");
    write_together(argv[1], rank, ranks);
    DO(MPI_Barrier(MPI_COMM_WORLD));
    read_alone(argv[1], rank, ranks);
    use_pointers(argv[1], rank, ranks);
    DO(MPI_Finalize());
    return 0;
}
