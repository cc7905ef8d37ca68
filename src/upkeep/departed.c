/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "upkeep/departed.h"

#include <stdlib.h>
#include <string.h>

void
esdm__departed_add(esdm__departed *d, const char *pack, uint64_t bytes)
{
    /* Fragments of a pack come one after the other. */
    if (d->count > d->sorted && strcmp(d->packs[d->count - 1].name, pack) == 0) {
        d->packs[d->count - 1].bytes += bytes;
        return;
    }
    if (d->count == d->capacity) {
        size_t capacity = d->capacity > 0 ? 2 * d->capacity : 64;
        esdm__departed_pack *grown = realloc(d->packs, capacity * sizeof *grown);
        if (grown == NULL)
            return;
        d->packs = grown;
        d->capacity = capacity;
    }
    char *name = strdup(pack);
    if (name != NULL)
        d->packs[d->count++] = (esdm__departed_pack){.name = name, .bytes = bytes};
}

static int
by_name(const void *a, const void *b)
{
    const esdm__departed_pack *x = a;
    const esdm__departed_pack *y = b;
    return strcmp(x->name, y->name);
}

static void
sort(esdm__departed *d)
{
    size_t left = 0;
    qsort(d->packs, d->count, sizeof *d->packs, by_name);
    for (size_t i = 0; i < d->count; i++) {
        if (left > 0 && by_name(&d->packs[left - 1], &d->packs[i]) == 0) {
            d->packs[left - 1].bytes += d->packs[i].bytes;
            free(d->packs[i].name);
        } else {
            d->packs[left++] = d->packs[i];
        }
    }
    d->count = left;
    d->sorted = left;
}

uint64_t
esdm__departed_bytes(esdm__departed *d, const char *pack)
{
    const esdm__departed_pack key = {.name = (char *) pack};
    if (d->count == 0)
        return 0;
    if (d->sorted < d->count)
        sort(d);
    const esdm__departed_pack *found = bsearch(&key, d->packs, d->count, sizeof *d->packs, by_name);
    return found != NULL ? found->bytes : 0;
}

void
esdm__departed_clear(esdm__departed *d)
{
    for (size_t i = 0; i < d->count; i++)
        free(d->packs[i].name);
    free(d->packs);
    *d = (esdm__departed){0};
}
