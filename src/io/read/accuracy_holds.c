/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Whether numbers that were read keep what a dataset states of those that were written. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codec/verify.h"
#include "io/container/accuracy.h"
#include "io/container/behind.h"
#include "io/encode/choose.h"
#include "io/read/read.h"

static double
loosest_of_io(esdm_dataset *dataset, esdm__dataset_io *io)
{
    esdm_accuracy_report report;
    uint64_t record = 0;
    uint64_t snapshot = 0;
    double loosest = 0;
    esdm__container_position(dataset->group->container, &record, &snapshot);
    (void) pthread_mutex_lock(&io->write_lock);
    esdm__dataset_wait(dataset, io);
    if (io->choice == NULL)
        io->choice = calloc(1, sizeof *io->choice);
    if (io->choice != NULL && io->choice->loosest_snapshot == snapshot)
        loosest = io->choice->loosest;
    (void) pthread_mutex_unlock(&io->write_lock);
    if (loosest > 0 || esdm__accuracy_report(dataset, NULL, 0, &report, NULL) != ESDM_OK)
        return loosest;
    loosest = report.lossy_fragments > 0 ? report.absolute : 0;
    (void) pthread_mutex_lock(&io->write_lock);
    esdm__dataset_wait(dataset, io);
    if (io->choice != NULL) {
        io->choice->loosest = loosest;
        io->choice->loosest_snapshot = snapshot;
    }
    (void) pthread_mutex_unlock(&io->write_lock);
    return loosest;
}

/* The loosest bound that a committed fragment has; 0: none. Kept, as comparisons ask for it again
 * and again. */
static double
loosest_of(esdm_dataset *dataset)
{
    esdm__dataset_io *io = NULL;
    if (esdm__dataset_io_get(dataset, &io, NULL) != ESDM_OK)
        return 0;
    double loosest = loosest_of_io(dataset, io);
    esdm__dataset_io_put(dataset);
    return loosest;
}

bool
esdm__accuracy_holds(const esdm_dataset *dataset, const void *before, const void *after,
                     uint64_t count, uint64_t *ret_index)
{
    esdm__accuracy a;
    esdm__accuracy_facts facts = {0};
    size_t bytes = esdm_type_size(dataset->type);
    const char *x = before;
    const char *y = after;
    if (count == 0 || memcmp(x, y, (size_t) count * bytes) == 0)
        return true;
    bool lossy = esdm__accuracy_compile(dataset, &a, NULL) == ESDM_OK && a.lossy;
    if (lossy && fmin(fmin(a.range, a.deviation), a.noise) < (double) INFINITY) {
        a.codec.absolute = fmin(a.codec.absolute, loosest_of((esdm_dataset *) (uintptr_t) dataset));
        lossy = a.codec.absolute > 0;
    }
    if (lossy && esdm__accuracy_verify(&a.codec, dataset->type, x, y, (size_t) count, &facts))
        return true;
    for (uint64_t i = 0; i < count; i++, x += bytes, y += bytes) {
        if (memcmp(x, y, bytes) != 0 &&
            !(lossy && esdm__accuracy_verify(&a.codec, dataset->type, x, y, 1, &facts))) {
            *ret_index = i;
            return false;
        }
    }
    return true;
}
