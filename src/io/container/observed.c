/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Containers and datasets for those who observe: names, what they are, which handle it is. */
#include <stdlib.h>

#include "io/container/dataset_io.h"
#include "io/session/session.h"

/* What is left out for want of memory, a replay does without. */
static void
describe(const esdm_dataset *dataset, esdm__monitor *monitor, uint32_t object)
{
    esdm__dimension_facts dimensions[ESDM_MAX_RANK];
    const esdm_container *container = dataset->group->container;
    char *accuracy = NULL;
    if (!esdm__monitor_traces(monitor))
        return;
    for (uint32_t i = 0; i < dataset->rank; i++) {
        const esdm_dimension *d = dataset->dimensions[i];
        dimensions[i] = (esdm__dimension_facts){
            d->id, d->name, atomic_load_explicit(&d->length, memory_order_relaxed), d->unlimited};
    }
    esdm_accuracy own;
    if (esdm_dataset_accuracy(dataset, &own) &&
        esdm_accuracy_print(&own, &accuracy, NULL) != ESDM_OK)
        accuracy = NULL;
    esdm__monitor_dataset(monitor,
                          &(esdm__dataset_facts){.handle = esdm__io_of(container)->observed,
                                                 .object = object,
                                                 .id = dataset->id,
                                                 .type = esdm_type_name(dataset->type),
                                                 .rank = dataset->rank,
                                                 .dimensions = dimensions,
                                                 .chunk = dataset->stated->chunk,
                                                 .codec = dataset->stated->codec,
                                                 .accuracy = accuracy});
    free(accuracy);
}

static uint32_t
object_of(const esdm_dataset *dataset, esdm__monitor *monitor)
{
    uint32_t object = atomic_load(&dataset->object);
    if (object != 0)
        return object;
    char *path = esdm__dataset_path(dataset);
    object = esdm__monitor_object(monitor, dataset->group->container->name, path, NULL);
    free(path);
    const bool used = __atomic_load_n(&dataset->io, __ATOMIC_ACQUIRE) != NULL;
    if (used)
        atomic_store((atomic_uint *) (uintptr_t) &dataset->object, object);
    if (used || esdm__monitor_is_new(monitor, object))
        describe(dataset, monitor, object);
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

char *
esdm__selection_detail(const esdm_dataset *dataset, const esdm_dataspace *space, esdm_type memory)
{
    const esdm_container *container = dataset->group->container;
    if (!esdm__monitor_traces(container->session->monitor))
        return NULL;
    return esdm__detail_selection(esdm__io_of(container)->observed, esdm_type_name(memory),
                                  space->rank, space->offset, space->size, space->stride);
}

void
esdm__meeting_observed(const esdm__span *span, const esdm_dataset *dataset,
                       const esdm_container *container, const esdm_dataspace *space, bool writing,
                       esdm_status status)
{
    if (!esdm__span_is_observed(span))
        return;
    char *selection = dataset != NULL && space != NULL
                          ? esdm__selection_detail(dataset, space, dataset->type)
                          : NULL;
    bool traces = esdm__monitor_traces(span->monitor);
    const esdm__span_facts facts = {
        .kind = ESDM__SPAN_ALIGN,
        .object = dataset != NULL
                      ? object_of(dataset, span->monitor)
                      : esdm__monitor_object(span->monitor, container->name, NULL, NULL),
        .status = status,
        .detail = traces
                      ? esdm__detail_meeting(esdm__io_of(container)->observed, writing, selection)
                      : NULL};
    esdm__span_stop(span, &facts);
}

void
esdm__structure_observed(const esdm_container *container)
{
    esdm__monitor *monitor = container->session->monitor;
    if (!esdm__monitor_traces(monitor))
        return;
    for (size_t i = 0; i < container->datasets.count; i++)
        (void) object_of(container->datasets.items[i], monitor);
}

static esdm__span_facts
container_facts(const esdm_container *container, esdm__monitor *monitor, esdm__span_kind kind,
                esdm_status status)
{
    bool traces = esdm__monitor_traces(monitor);
    return (esdm__span_facts){
        .kind = kind,
        .object = esdm__monitor_object(monitor, container->name, NULL, NULL),
        .status = status,
        .detail = traces ? esdm__detail_handle(esdm__io_of(container)->observed) : NULL};
}

void
esdm__container_observed(const esdm_container *container, const esdm__span *span,
                         esdm__span_kind kind, esdm_status status)
{
    if (!esdm__span_is_observed(span))
        return;
    const esdm__span_facts facts = container_facts(container, span->monitor, kind, status);
    esdm__span_stop(span, &facts);
}

esdm__span_facts
esdm__closing_facts(const esdm_container *container, const esdm__span *span)
{
    return esdm__span_is_observed(span)
               ? container_facts(container, span->monitor, ESDM__SPAN_CLOSE, ESDM_OK)
               : (esdm__span_facts){.kind = ESDM__SPAN_CLOSE};
}

void
esdm__opening_observed(const esdm__span *span, const char *name, esdm_container *container,
                       const char *mode, const esdm_comm *comm, esdm_status status)
{
    if (!esdm__span_is_observed(span))
        return;
    bool traces = esdm__monitor_traces(span->monitor);
    if (container != NULL)
        esdm__io_of(container)->observed = span->id;
    const esdm__span_facts facts = {
        .kind = ESDM__SPAN_OPEN,
        .object = esdm__monitor_object(span->monitor, name, NULL, NULL),
        .status = status,
        .detail = traces ? esdm__detail_opening(span->id, mode, comm != NULL ? comm->size : 0,
                                                comm != NULL ? comm->rank : 0)
                         : NULL};
    esdm__span_stop(span, &facts);
}
