/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_WRITE_REFER_H
#define ESDM_IO_WRITE_REFER_H

/** @file Fragments that refer to values which lie elsewhere (io/read/elsewhere.h). */

#include "io/container/dataset_io.h"
#include "layout/source.h"

/** One fragment to be. Borrows everything. */
typedef struct esdm__reference {
    esdm__box box;
    esdm__kind kind;    /* ESDM__KIND_FOREIGN or ESDM__KIND_LINK */
    const void *source; /* stored form of an esdm__foreign or esdm__link */
    size_t source_bytes;
    const void *decoding; /* of an esdm__decoding or esdm__link_map; NULL: as it is */
    size_t decoding_bytes;
    uint64_t position; /* foreign: of its bytes in the file, and how many are there */
    uint64_t stored_bytes;
    uint32_t filter_mask;
    uint32_t check_kind;
    uint64_t check;
    esdm__statistics statistics; /* class ESDM__CLASS_NONE: not known */
} esdm__reference;

/**
 * Enters fragments as if they had been written: this handle sees them at once, others after the
 * commit; they hide what was written there before, and unlimited dimensions grow. Nothing is read.
 * Any thread.
 * @return ESDM_EINVAL: a box lies outside of the dataset, or a description is too long. What came
 * before the one that failed is entered.
 */
esdm_status esdm__io_refer(esdm_dataset *dataset, const esdm__reference *references, size_t n,
                           esdm_error *err);

/**
 * Enters a fragment as if it had been written: this handle sees it at once, others after the
 * commit; it hides what was written there before, and unlimited dimensions grow. Nothing is read or
 * written. Before the commit the metadata store must know that the container shares the pack.
 * Any thread.
 * @param fragment of a dataset with equal elements; borrowed, with all that it points to.
 * @return ESDM_EINVAL: its box lies outside of the dataset.
 */
esdm_status esdm__io_share(esdm_dataset *dataset, const esdm__fragment *fragment, esdm_error *err);

#endif
