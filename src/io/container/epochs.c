/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/container/epochs.h"

#include <stdlib.h>

void
esdm__epochs_note(esdm__epochs *epochs, const esdm_dataspace *space)
{
    esdm__box box;
    esdm__box_of_space(&box, space);
    if (epochs->open)
        esdm__box_hull(&epochs->hull, &box);
    else
        esdm__box_copy(&epochs->hull, &box);
    if (epochs->unshared)
        esdm__box_hull(&epochs->unshared_hull, &box);
    else
        esdm__box_copy(&epochs->unshared_hull, &box);
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
esdm__epochs_clear(esdm__epochs *epochs)
{
    free(epochs->cuts);
    *epochs = (esdm__epochs){0};
}
