/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_READ_STATISTICS_H
#define ESDM_IO_READ_STATISTICS_H

/** @file Statistics of the values in a box, from those of its fragments where they do. */

#include "base/statistics.h"
#include "io/container/beyond.h"
#include "io/container/dataset_io.h"
#include "io/container/missing.h"

typedef struct esdm__box_statistics {
    esdm__statistics values; /* class ESDM__CLASS_NONE: nothing is there, or nothing is known */
    uint64_t elements;       /* of the box */
    uint64_t read_elements;  /* whose values had to be read */
    bool bounds;             /* all valid values lie between minimum and maximum */
    bool exact;              /* these are the statistics of the values */
} esdm__box_statistics;

/**
 * Of a box inside of the dataset. Own writes count, as in esdm__io_read().
 *
 * The statistics of a fragment are those of all its values. They are exact where all of it is seen;
 * where a newer one hides a part, or the box takes a part, they are bounds.
 * @param readers whether what is beyond `valid_range` is missing, too, as readers have it.
 * @param read whether values are read where that makes the result exact; at most 16 MiB of memory
 * at a time.
 * @return ESDM_ENOTSUP: the type is no number. Else as esdm__io_read().
 */
esdm_status esdm__io_statistics(esdm_dataset *dataset, const esdm__box *box, bool readers,
                                bool read, esdm__box_statistics *ret, esdm_error *err);
/**
 * What is known of all values of one fragment without reading any; class ESDM__CLASS_NONE: nothing.
 */
esdm__statistics esdm__fragment_statistics(const esdm_dataset *dataset,
                                           const esdm__missing *missing,
                                           const esdm__fragment *fragment);

#endif
