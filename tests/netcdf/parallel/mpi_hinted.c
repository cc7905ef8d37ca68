/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Files by MPI that hints may make faster, and must not change.
 *
 *     mpi_hinted IN OUT large       8 collective writes of 1 MiB a rank into OUT, in pieces of
 *                                   256 KiB that take turns, and the same read again
 *     mpi_hinted IN OUT [stated]    32 independent reads a rank of 64 pieces of 512 bytes each, 16
 * KiB apart, of IN, which the first rank makes; 32 collective writes of 256 KiB a rank into OUT.
 * "stated": the program has a hint of its own for reading. Prints a sum of what was read
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_needs.h"

enum {
    CALLS = 32,
    PIECES = 64,
    PIECE = 512,
    APART = 16384,
    WRITE = 262144,
    LARGE = 1 << 20,
    LARGE_CALLS = 8
};

static void
make_input(const char *path)
{
    static unsigned char all[APART];
    FILE *file = fopen(path, "wb");
    for (int i = 0; file != NULL && i < CALLS * PIECES; i++) {
        for (int k = 0; k < APART; k++)
            all[k] = (unsigned char) (i * 31 + k / 7);
        need_true(fwrite(all, sizeof all, 1, file) == 1, "fwrite");
    }
    need_true(file != NULL && fclose(file) == 0, "the input");
}

static uint64_t
read_pieces(const char *path, int rank, int stated)
{
    static unsigned char values[PIECES * PIECE];
    uint64_t sum = UINT64_C(14695981039346656037);
    MPI_File file;
    MPI_Datatype rows;
    MPI_Datatype pieces;
    MPI_Info hints = MPI_INFO_NULL;
    if (stated) {
        DO(MPI_Info_create(&hints));
        DO(MPI_Info_set(hints, "romio_ds_read", "enable"));
    }
    DO(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, hints, &file));
    DO(MPI_Type_create_hvector(PIECES, PIECE, APART, MPI_BYTE, &rows));
    DO(MPI_Type_create_resized(rows, 0, (MPI_Aint) PIECES * APART, &pieces));
    DO(MPI_Type_commit(&pieces));
    DO(MPI_File_set_view(file, (MPI_Offset) rank * PIECE, MPI_BYTE, pieces, "native",
                         MPI_INFO_NULL));
    for (int i = 0; i < CALLS; i++) {
        DO(MPI_File_read(file, values, sizeof values, MPI_BYTE, MPI_STATUS_IGNORE));
        for (size_t k = 0; k < sizeof values; k++)
            sum = (sum ^ values[k]) * UINT64_C(1099511628211);
    }
    DO(MPI_Type_free(&pieces));
    DO(MPI_Type_free(&rows));
    DO(MPI_File_close(&file));
    if (stated)
        DO(MPI_Info_free(&hints));
    return sum;
}

static void
write_together(const char *path, int rank, int ranks)
{
    static unsigned char values[WRITE];
    MPI_File file;
    DO(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                     &file));
    for (int i = 0; i < CALLS; i++) {
        (void) memset(values, 'a' + rank + 4 * (i % 5), sizeof values);
        DO(MPI_File_write_at_all(file, ((MPI_Offset) i * ranks + rank) * WRITE, values, WRITE,
                                 MPI_BYTE, MPI_STATUS_IGNORE));
    }
    DO(MPI_File_close(&file));
}

/* Pieces of all ranks take turns. @return a sum of what was read. */
static uint64_t
move_large(const char *path, int rank, int ranks)
{
    static unsigned char values[LARGE];
    uint64_t sum = 0;
    MPI_File file;
    MPI_Datatype rows;
    MPI_Datatype pieces;
    DO(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    DO(MPI_Type_create_hvector(LARGE / WRITE, WRITE, (MPI_Aint) ranks * WRITE, MPI_BYTE, &rows));
    DO(MPI_Type_create_resized(rows, 0, (MPI_Aint) ranks * LARGE, &pieces));
    DO(MPI_Type_commit(&pieces));
    DO(MPI_File_set_view(file, (MPI_Offset) rank * WRITE, MPI_BYTE, pieces, "native",
                         MPI_INFO_NULL));
    for (int i = 0; i < LARGE_CALLS; i++) {
        (void) memset(values, 'a' + (rank + i) % 26, sizeof values);
        DO(MPI_File_write_all(file, values, LARGE, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    DO(MPI_File_seek(file, 0, MPI_SEEK_SET));
    for (int i = 0; i < LARGE_CALLS; i++) {
        DO(MPI_File_read_all(file, values, LARGE, MPI_BYTE, MPI_STATUS_IGNORE));
        for (size_t k = 0; k < sizeof values; k += 64)
            sum = sum * 31 + values[k];
    }
    DO(MPI_Type_free(&pieces));
    DO(MPI_Type_free(&rows));
    DO(MPI_File_close(&file));
    return sum;
}

int
main(int argc, char **argv)
{
    int rank;
    int ranks;
    uint64_t sums[64] = {0};
    mpi_begin(&argc, &argv, &rank, &ranks);
    need_true(argc >= 3 && ranks <= 64, "usage: mpi_hinted IN OUT [stated | large]");
    uint64_t sum;
    if (argc > 3 && strcmp(argv[3], "large") == 0) {
        sum = move_large(argv[2], rank, ranks);
    } else {
        if (rank == 0)
            make_input(argv[1]);
        DO(MPI_Barrier(MPI_COMM_WORLD));
        sum = read_pieces(argv[1], rank, argc > 3);
        write_together(argv[2], rank, ranks);
    }
    DO(MPI_Gather(&sum, 1, MPI_UINT64_T, sums, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD));
    for (int i = 0; i < ranks && rank == 0; i++)
        (void) printf("%016llx\n", (unsigned long long) sums[i]);
    DO(MPI_Finalize());
    return 0;
}
