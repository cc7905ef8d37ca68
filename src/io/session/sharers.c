/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/session/sharers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"

typedef struct loading {
    esdm__sharers *all;
    bool failed;
} loading;

static bool
note_sharer(const char *uuid, uint64_t container, void *user)
{
    loading *l = user;
    esdm__sharers *all = l->all;
    l->failed = !esdm__array_grow(&all->items, all->count, sizeof *all->items);
    if (l->failed)
        return false;
    esdm__sharer *one = &all->items[all->count++];
    one->container = container;
    (void) snprintf(one->uuid, sizeof one->uuid, "%s", uuid);
    return true;
}

static int
compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int
by_uuid(const void *a, const void *b)
{
    const esdm__sharer *x = a;
    const esdm__sharer *y = b;
    int order = strcmp(x->uuid, y->uuid);
    return order != 0 ? order : compare_numbers(x->container, y->container);
}

static int
by_container(const void *a, const void *b)
{
    const esdm__sharer *x = a;
    const esdm__sharer *y = b;
    int order = compare_numbers(x->container, y->container);
    return order != 0 ? order : strcmp(x->uuid, y->uuid);
}

static bool
sort(esdm__sharers *all)
{
    if (all->count == 0)
        return true;
    all->own = malloc(all->count * sizeof *all->own);
    if (all->own == NULL)
        return false;
    memcpy(all->own, all->items, all->count * sizeof *all->own);
    qsort(all->items, all->count, sizeof *all->items, by_uuid);
    qsort(all->own, all->count, sizeof *all->own, by_container);
    return true;
}

esdm_status
esdm__sharers_load(const esdm_session *session, esdm__sharers *ret_all, esdm_error *err)
{
    esdm__sharers all = {0};
    loading l = {.all = &all};
    esdm_status status = ESDM_OK;
    if (session->meta->shared_list != NULL)
        status = session->meta->shared_list(session->store, 0, note_sharer, &l, err);
    if (status == ESDM_OK && (l.failed || !sort(&all)))
        status = esdm__error_nomem(err, all.count * sizeof *all.items, "who shares packs");
    if (status == ESDM_OK)
        *ret_all = all;
    else
        esdm__sharers_clear(&all);
    return status;
}

void
esdm__sharers_clear(esdm__sharers *all)
{
    free(all->items);
    free(all->own);
    *all = (esdm__sharers){0};
}

/* Where the key is in a sorted array, or would be. */
static size_t
first_of(const esdm__sharer *items, size_t count, const esdm__sharer *key,
         int (*compare)(const void *, const void *))
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(&items[middle], key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static esdm__sharer
key_of(const char *uuid, uint64_t container)
{
    esdm__sharer key = {.container = container};
    (void) snprintf(key.uuid, sizeof key.uuid, "%s", uuid);
    return key;
}

size_t
esdm__sharers_of(const esdm__sharers *all, uint64_t container, const esdm__sharer **ret_first)
{
    const esdm__sharer key = key_of("", container);
    size_t first = first_of(all->own, all->count, &key, by_container);
    size_t end = first;
    while (end < all->count && all->own[end].container == container)
        end++;
    *ret_first = all->own + first;
    return end - first;
}

bool
esdm__sharers_any(const esdm__sharers *all, const char *uuid)
{
    const esdm__sharer key = key_of(uuid, 0);
    size_t first = first_of(all->items, all->count, &key, by_uuid);
    return first < all->count && strcmp(all->items[first].uuid, key.uuid) == 0;
}

bool
esdm__sharers_has(const esdm__sharers *all, const char *uuid, uint64_t container)
{
    const esdm__sharer key = key_of(uuid, container);
    size_t first = first_of(all->items, all->count, &key, by_uuid);
    return first < all->count && by_uuid(&all->items[first], &key) == 0;
}

/* ---- one of them -------------------------------------------------------------------------- */

static bool
note_any(const char *uuid, uint64_t container, void *user)
{
    (void) uuid, (void) container;
    *(bool *) user = true;
    return false;
}

esdm_status
esdm__sharers_ask(const esdm_session *session, const char *uuid, bool *ret_any, esdm_error *err)
{
    esdm__sharers all = {0};
    bool any = false;
    esdm_status status;
    if (session->meta->shared_of != NULL) {
        status = session->meta->shared_of(session->store, uuid, note_any, &any, err);
    } else {
        status = esdm__sharers_load(session, &all, err);
        any = esdm__sharers_any(&all, uuid);
        esdm__sharers_clear(&all);
    }
    if (status == ESDM_OK)
        *ret_any = any;
    return status;
}
