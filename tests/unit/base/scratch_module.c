/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file A library of its own with the memory of threads, for test_scratch.c to unload. */

#include <string.h>

#include "base/scratch.h"
#include "esdm/status.h"

ESDM_API int scratch_module_use(size_t bytes);

/** 1: a piece was used, and stays with the thread. */
int
scratch_module_use(size_t bytes)
{
    void *piece = esdm__scratch_new(bytes);
    if (piece != NULL)
        memset(piece, 1, bytes);
    esdm__scratch_free(piece);
    return piece != NULL;
}
