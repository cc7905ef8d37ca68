/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 *     mpi_striped OUT [FACTOR]      16 collective writes of 256 KiB a rank into OUT, one rank's
 * behind the other's, on what mpi_stripes.c makes of it. FACTOR: the program states striping_factor
 */
#include <string.h>

#include "mpi_needs.h"

enum { CALLS = 16, BYTES = 262144 };

int
main(int argc, char **argv)
{
    static unsigned char values[BYTES];
    int rank;
    int ranks;
    MPI_File file;
    MPI_Info hints = MPI_INFO_NULL;
    mpi_begin(&argc, &argv, &rank, &ranks);
    need_true(argc >= 2, "usage: mpi_striped OUT [FACTOR]");
    if (argc > 2) {
        DO(MPI_Info_create(&hints));
        DO(MPI_Info_set(hints, "striping_factor", argv[2]));
    }
    DO(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, hints, &file));
    for (int i = 0; i < CALLS; i++) {
        (void) memset(values, 'a' + (rank + i) % 26, sizeof values);
        DO(MPI_File_write_at_all(file, ((MPI_Offset) i * ranks + rank) * BYTES, values, BYTES,
                                 MPI_BYTE, MPI_STATUS_IGNORE));
    }
    DO(MPI_File_close(&file));
    if (argc > 2)
        DO(MPI_Info_free(&hints));
    DO(MPI_Finalize());
    return 0;
}
