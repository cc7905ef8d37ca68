/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Which calls take another way when ranks share a container. */
#include "io/io.h"

#include "io/container/behind.h"
#include "io/ranks/collective.h"
#include "io/session/session.h"

esdm_status
esdm__io_commit(esdm_container *container, const char *message, esdm_error *err)
{
    if (!container->writable)
        return ESDM_OK;
    esdm_status ours = esdm__container_check_process(container, err);
    if (ours != ESDM_OK)
        return ours;
    esdm__span span;
    if (container->structure_dirty)
        esdm__structure_observed(container);
    esdm__span_begin(&span, container->session->monitor);
    esdm_status status = esdm__io_of(container)->comm != NULL
                             ? esdm__collective_commit(container, message, err)
                             : esdm__commit_alone(container, message, err);
    esdm__container_observed(container, &span, ESDM__SPAN_COMMIT, status);
    return status;
}

esdm_status
esdm__io_refresh(esdm_container *container, esdm_error *err)
{
    return esdm__io_of(container)->comm != NULL ? esdm__collective_refresh(container, err)
                                                : esdm__container_refresh(container, err);
}
