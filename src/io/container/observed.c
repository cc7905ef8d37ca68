/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Names of containers and datasets for those who observe. */
#include <stdlib.h>

#include "io/container/dataset_io.h"

static uint32_t
object_of(const esdm_dataset *dataset, esdm__monitor *monitor)
{
    esdm__dataset_io *io = __atomic_load_n(&dataset->io, __ATOMIC_ACQUIRE);
    uint32_t object = io != NULL ? atomic_load(&io->object) : 0;
    if (object != 0)
        return object;
    char *path = esdm__dataset_path(dataset);
    object = esdm__monitor_object(monitor, dataset->group->container->name, path, NULL);
    free(path);
    if (io != NULL)
        atomic_store(&io->object, object);
    return object;
}

void
esdm__dataset_observed(const esdm_dataset *dataset, const esdm__span *span, esdm__span_facts facts)
{
    if (!esdm__span_is_observed(span))
        return;
    facts.object = object_of(dataset, span->monitor);
    esdm__span_stop(span, &facts);
}

void
esdm__container_observed(const esdm_container *container, const esdm__span *span,
                         esdm__span_kind kind, esdm_status status)
{
    if (!esdm__span_is_observed(span))
        return;
    const esdm__span_facts facts = {
        .kind = kind,
        .object = esdm__monitor_object(span->monitor, container->name, NULL, NULL),
        .status = status};
    esdm__span_stop(span, &facts);
}
