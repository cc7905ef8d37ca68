/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_CONTAINER_FAILED_H
#define ESDM_IO_CONTAINER_FAILED_H

/**
 * @file
 * Writes of a dataset that failed: a part of them may be stored, the rest is not. Nothing is
 * committed before they are written again, or given up. Threads: the dataset's write lock.
 */

#include "model/copy.h"

struct esdm__failed_list;

/** Zero-initialise. */
typedef struct esdm__failed_writes {
    struct esdm__failed_list *list; /* owned; NULL: none failed */
} esdm__failed_writes;

/** How many selections are kept; 1 when there was no memory to tell them apart. */
size_t esdm__failed_count(const esdm__failed_writes *failed);
void esdm__failed_clear(esdm__failed_writes *failed);
/** A write of the selection, which has elements, failed. Without memory, or when they are too many,
 *  the hull of several is kept: more is to be written again. */
void esdm__failed_note(esdm__failed_writes *failed, const esdm_dataspace *space,
                       const esdm_error *why);
/** The selection was written: what of those that failed it covers needs not be written again. */
void esdm__failed_mend(esdm__failed_writes *failed, const esdm_dataspace *space);
/** ESDM_OK when there are none; else the error of the first one, with what to do. */
esdm_status esdm__failed_status(const esdm__failed_writes *failed, esdm_error *err);

#endif
