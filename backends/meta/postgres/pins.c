/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Pins: the table of this process, and pinning. */

#include <stdlib.h>

#include "base/error.h"
#include "postgres.h"

/* ---- table ---------------------------------------------------------------------------------- */

postgres__pin_entry *
postgres__pins_find(postgres__pins *pins, uint64_t container, uint64_t snapshot)
{
    for (size_t i = pins->count; i-- > 0;) {
        if (pins->entries[i].container == container && pins->entries[i].snapshot == snapshot)
            return &pins->entries[i];
    }
    return NULL;
}

postgres__pin_entry *
postgres__pins_add(postgres__pins *pins, uint64_t container, uint64_t snapshot)
{
    postgres__pin_entry *found = postgres__pins_find(pins, container, snapshot);
    if (found != NULL)
        return found;
    if (pins->count == pins->capacity) {
        size_t capacity = pins->capacity == 0 ? 16 : 2 * pins->capacity;
        postgres__pin_entry *grown = realloc(pins->entries, capacity * sizeof *grown);
        if (grown == NULL)
            return NULL;
        pins->entries = grown;
        pins->capacity = capacity;
    }
    found = &pins->entries[pins->count++];
    *found = (postgres__pin_entry){.container = container, .snapshot = snapshot};
    return found;
}

void
postgres__pins_erase(postgres__pins *pins, postgres__pin_entry *entry)
{
    *entry = pins->entries[--pins->count];
}

void
postgres__pins_clear(postgres__pins *pins)
{
    free(pins->entries);
    *pins = (postgres__pins){0};
}

/* ---- locks ---------------------------------------------------------------------------------- */

static void
unlock(postgres__store *store, const postgres__pin_entry *entry)
{
    for (uint32_t i = 0; i < entry->held; i++) {
        postgres__params params = {0};
        postgres__put_int(&params, entry->container);
        postgres__put_int(&params, entry->snapshot);
        postgres__link_send(&store->link, POSTGRES__UNPIN, &params);
        postgres__params_clear(&params);
    }
}

void
postgres__pins_sink(postgres__store *store)
{
    for (size_t i = store->pins.count; i-- > 0 && store->pins.floating > 0;) {
        postgres__pin_entry *entry = &store->pins.entries[i];
        if (entry->count > 0)
            continue;
        unlock(store, entry);
        postgres__pins_erase(&store->pins, entry);
        store->pins.floating--;
    }
}

void
postgres__pins_float(postgres__store *store, uint64_t container, uint64_t snapshot)
{
    postgres__pin_entry *entry = postgres__pins_add(&store->pins, container, snapshot);
    if (entry == NULL) { /* pinning is then left to pin() */
        const postgres__pin_entry made = {.container = container, .snapshot = snapshot, .held = 1};
        unlock(store, &made);
        return;
    }
    store->pins.floating += entry->held == 0;
    entry->held++;
}

esdm_status
postgres__pins_adopt(postgres__store *store, uint64_t container, uint64_t snapshot, esdm_error *err)
{
    postgres__pin_entry *entry = postgres__pins_add(&store->pins, container, snapshot);
    if (entry == NULL) {
        const postgres__pin_entry made = {.container = container, .snapshot = snapshot, .held = 1};
        unlock(store, &made);
        return esdm__error_nomem(err, sizeof *entry, "a pin");
    }
    store->pins.floating -= entry->count == 0 && entry->held > 0;
    entry->held++;
    entry->count++;
    entry->lost = false;
    return ESDM_OK;
}

/* ---- operations ----------------------------------------------------------------------------- */

static esdm_status
pin_anew(postgres__store *store, uint64_t container, uint64_t snapshot, esdm_error *err)
{
    postgres__params params = {0};
    PGresult *result = NULL;
    postgres__array_begin(&params, POSTGRES__INTS);
    postgres__array_int(&params, container);
    postgres__array_end(&params);
    postgres__array_begin(&params, POSTGRES__INTS);
    postgres__array_int(&params, snapshot);
    postgres__array_end(&params);
    esdm_status status = postgres__run(store, POSTGRES__PIN, &params, &result, err);
    postgres__params_clear(&params);
    bool pinned = status == ESDM_OK && PQntuples(result) == 1 && postgres__bool(result, 0, 0);
    PQclear(result);
    if (status != ESDM_OK)
        return status;
    if (!pinned)
        return esdm__error_set(err, ESDM_ENOENT, "snapshot %llu of record %llu is gone",
                               (unsigned long long) snapshot, (unsigned long long) container);
    return postgres__pins_adopt(store, container, snapshot, err);
}

esdm_status
postgres__pins_take(postgres__store *store, uint64_t container, uint64_t snapshot, esdm_error *err)
{
    postgres__pin_entry *entry = postgres__pins_find(&store->pins, container, snapshot);
    if (entry == NULL || entry->held == 0 || entry->lost)
        return pin_anew(store, container, snapshot, err);
    store->pins.floating -= entry->count == 0;
    entry->count++;
    return ESDM_OK;
}

void
postgres__pins_drop(postgres__store *store, uint64_t container, uint64_t snapshot)
{
    postgres__pin_entry *entry = postgres__pins_find(&store->pins, container, snapshot);
    if (entry != NULL && entry->count > 0 && --entry->count == 0) {
        unlock(store, entry);
        postgres__pins_erase(&store->pins, entry);
    }
}

esdm_status
postgres__pin(void *self, uint64_t container, uint64_t snapshot, esdm_error *err)
{
    postgres__store *store = self;
    if (container == 0 || container > POSTGRES__CONTAINER_MAX || snapshot == 0 ||
        snapshot > POSTGRES__LOW_MAX)
        return esdm__error_set(err, ESDM_EINVAL, "record %llu has no snapshot %llu",
                               (unsigned long long) container, (unsigned long long) snapshot);
    esdm_status status = postgres__enter(store, err);
    if (status != ESDM_OK)
        return status;
    status = postgres__pins_take(store, container, snapshot, err);
    postgres__leave(store);
    return status;
}

void
postgres__unpin(void *self, uint64_t container, uint64_t snapshot)
{
    postgres__store *store = self;
    if (postgres__enter_known(store, NULL) != ESDM_OK) /* a forked child: they are its parent's */
        return;
    postgres__pins_drop(store, container, snapshot);
    postgres__leave(store);
}

/* ---- after a lost connection ---------------------------------------------------------------- */

esdm_status
postgres__pins_renew(postgres__store *store, postgres__failure *ret_failure, esdm_error *err)
{
    postgres__pins *pins = &store->pins;
    for (size_t i = pins->count; i-- > 0;) {
        pins->entries[i].unseen |= pins->entries[i].container == 0 && pins->entries[i].held > 0;
        pins->entries[i].held = 0;
        if (pins->entries[i].count == 0)
            postgres__pins_erase(pins, &pins->entries[i]);
    }
    pins->floating = 0;
    if (pins->count == 0)
        return ESDM_OK;
    postgres__params params = {0};
    PGresult *result = NULL;
    for (int column = 0; column < 2; column++) {
        postgres__array_begin(&params, POSTGRES__INTS);
        for (size_t i = 0; i < pins->count; i++)
            postgres__array_int(&params, column == 0 ? pins->entries[i].container
                                                     : pins->entries[i].snapshot);
        postgres__array_end(&params);
    }
    esdm_status status =
        postgres__link_run(&store->link, POSTGRES__PIN, &params, &result, ret_failure, err);
    postgres__params_clear(&params);
    for (size_t i = 0; status == ESDM_OK && i < pins->count; i++) {
        bool pinned = (size_t) PQntuples(result) > i && postgres__bool(result, (int) i, 0);
        pins->entries[i].held = pinned;
        pins->entries[i].lost = !pinned;
    }
    PQclear(result);
    return status;
}
