/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_CONTAINER_BEHIND_H
#define ESDM_IO_CONTAINER_BEHIND_H

/**
 * @file
 * Who has to wait for boxes that are stored after their put has returned (io/session/behind.h). The
 * thread that stores them uses the dataset's structure, accuracy, choices of codecs and map of
 * regions, as the holder of the write lock does. So a caller who changes one of these waits first,
 * while it holds that lock. For the structure esdm__container_settle() does so.
 */

#include "io/container/dataset_io.h"

/** What a job's struct has behind the esdm__job. */
typedef struct esdm__behind_box {
    esdm_dataset *dataset;
    esdm__box box;
    const esdm_dataspace *strided; /* the selection whose indices the box holds; NULL: dense */
} esdm__behind_box;

/** ESDM_EINVAL in a forked child, where another thread's put may have left locks behind: before
 * any is taken. */
esdm_status esdm__container_check_process(const esdm_container *container, esdm_error *err);
/** Waits until all boxes of the dataset are stored; what has failed is tried again.
 *  @return the failure of what stays. Caller holds the write lock. */
esdm_status esdm__dataset_settle(const esdm_dataset *dataset, esdm__dataset_io *io,
                                 esdm_error *err);
/** Waits until no box is being stored: each is stored, or waits behind one that has failed. */
void esdm__dataset_wait(const esdm_dataset *dataset, const esdm__dataset_io *io);
/** Drops all of them. @param lost told of each selection; NULL: nobody is. */
void esdm__dataset_drop_boxes(const esdm_dataset *dataset, esdm__dataset_io *io,
                              void (*lost)(void *user, const esdm_dataspace *space), void *user);
/** Counts what is gathered or waits as writes that failed, since it could not be stored before
 * something changed. Commits report it until it is written again or given up. Caller holds the
 * write lock. */
void esdm__dataset_give_up_unstored(const esdm_dataset *dataset, esdm__dataset_io *io,
                                    const esdm_error *why);
/** Drops those that cannot be stored. Caller holds the write lock. @return how many. */
size_t esdm__dataset_give_up_boxes(const esdm_dataset *dataset, esdm__dataset_io *io);
/** esdm_container.settle */
void esdm__container_wait(esdm_container *container);

#endif
