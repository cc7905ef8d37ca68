/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Committed fragments to which those of a container may be equal: looked for once, when the
 * first one is about to be stored, and only where the site wants it. */

#include "io/container/dataset_io.h"
#include "io/packs/equals.h"

struct esdm__equals *
esdm__container_equals(const esdm_container *container)
{
    esdm__container_io *io = esdm__io_of(container);
    if (!io->dedups || io->trial != NULL || io->comm != NULL || io->opened.guards_all)
        return NULL;
    (void) pthread_mutex_lock(&io->equals_lock);
    if (!io->equals_sought)
        io->equals = esdm__equals_new(io->session, container->name);
    io->equals_sought = true;
    struct esdm__equals *equals = io->equals;
    (void) pthread_mutex_unlock(&io->equals_lock);
    return equals;
}

esdm_status
esdm__container_shares(esdm_container *container, uint64_t **ret_records, size_t *ret_count,
                       esdm_error *err)
{
    esdm__container_io *io = esdm__io_of(container);
    *ret_records = NULL;
    *ret_count = 0;
    if (!io->dedups)
        return ESDM_OK;
    (void) pthread_mutex_lock(&io->equals_lock);
    const struct esdm__equals *equals = io->equals;
    (void) pthread_mutex_unlock(&io->equals_lock);
    return equals != NULL ? esdm__equals_records(equals, ret_records, ret_count, err) : ESDM_OK;
}
