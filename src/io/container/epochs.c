/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/container/epochs.h"

#include <stdlib.h>

bool
esdm__epochs_reserve(esdm__epochs *epochs)
{
    if (epochs->hulls == NULL)
        epochs->hulls = calloc(1, sizeof *epochs->hulls);
    return epochs->hulls != NULL;
}

void
esdm__epochs_note(esdm__epochs *epochs, const esdm_dataspace *space)
{
    esdm__box box;
    esdm__box_of_space(&box, space);
    if (epochs->open)
        esdm__box_hull(&epochs->hulls->written, &box);
    else
        esdm__box_copy(&epochs->hulls->written, &box);
    if (epochs->unshared)
        esdm__box_hull(&epochs->hulls->unshared, &box);
    else
        esdm__box_copy(&epochs->hulls->unshared, &box);
    epochs->open = true;
    epochs->unshared = true;
}

bool
esdm__epochs_cut(esdm__epochs *epochs, uint32_t pending)
{
    epochs->open = false;
    if (epochs->count == epochs->capacity) {
        uint32_t capacity = epochs->capacity == 0 ? 8 : 2 * epochs->capacity;
        uint32_t *cuts = realloc(epochs->cuts, capacity * sizeof *cuts);
        if (cuts != NULL) {
            epochs->cuts = cuts;
            epochs->capacity = capacity;
        }
    }
    bool room = epochs->count < epochs->capacity;
    if (room)
        epochs->cuts[epochs->count] = pending;
    epochs->count++;
    return room;
}

void
esdm__epochs_drop(esdm__epochs *epochs, uint32_t number)
{
    for (uint32_t i = 0; i < epochs->count && i < epochs->capacity; i++)
        epochs->cuts[i] -= epochs->cuts[i] > number;
    epochs->shared -= epochs->shared > number;
}

void
esdm__epochs_clear(esdm__epochs *epochs)
{
    free(epochs->cuts);
    free(epochs->hulls);
    *epochs = (esdm__epochs){0};
}
