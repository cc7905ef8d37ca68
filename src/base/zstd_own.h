/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_ZSTD_OWN_H
#define ESDM_BASE_ZSTD_OWN_H

/**
 * @file
 * The zstd contexts of this thread, kept from block to block: making one takes longer than encoding
 * a block. For one source file of a plug-in, which links libzstd; each has its own.
 */

#include <zstd.h>

#include "base/per_thread.h"

typedef struct esdm__zstd_contexts {
    ZSTD_CCtx *encoder;
    ZSTD_DCtx *decoder;
} esdm__zstd_contexts;

static void
esdm__zstd_clear(void *memory)
{
    esdm__zstd_contexts *own = memory;
    (void) ZSTD_freeCCtx(own->encoder);
    (void) ZSTD_freeDCtx(own->decoder);
}

static esdm__per_thread esdm__zstd_threads =
    ESDM__PER_THREAD(esdm__zstd_contexts, esdm__zstd_clear);

__attribute__((destructor)) static void
esdm__zstd_drop(void)
{
    esdm__per_thread_drop(&esdm__zstd_threads);
}

/** NULL: out of memory. Borrowed; until the thread ends. */
static inline ZSTD_CCtx *
esdm__zstd_own_encoder(void)
{
    esdm__zstd_contexts *own = esdm__per_thread_get(&esdm__zstd_threads);
    if (own != NULL && own->encoder == NULL)
        own->encoder = ZSTD_createCCtx();
    return own != NULL ? own->encoder : NULL;
}

/** The same. */
static inline ZSTD_DCtx *
esdm__zstd_own_decoder(void)
{
    esdm__zstd_contexts *own = esdm__per_thread_get(&esdm__zstd_threads);
    if (own != NULL && own->decoder == NULL)
        own->decoder = ZSTD_createDCtx();
    return own != NULL ? own->decoder : NULL;
}

#endif
