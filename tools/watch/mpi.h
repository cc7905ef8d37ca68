/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_WATCH_MPI_H
#define ESDM_WATCH_MPI_H

/** @file What is asked of the MPI library of the caller (watch__here.mpi_caller). */

#include "watch/watch.h"

/** The library's function of that name; NULL: it has none. */
#define ASK(name, ...)                                                                             \
    ({                                                                                             \
        static watch_nc_cache cache_;                                                              \
        int (*real_)(__VA_ARGS__) =                                                                \
            (int (*)(__VA_ARGS__)) watch__nc_real(&cache_, name, watch__here.mpi_caller);          \
        real_;                                                                                     \
    })

/** Whether there is nothing to ask about, which would be an error. */
bool watch__mpi_is_no_info(MPI_Info info);
/** The name that records have: without links, and without "ufs:" and its like in front. Of a file
 *  that is to be made, in its folder. */
void watch__mpi_full_path(const char *path, char *ret, size_t bytes);

#endif
