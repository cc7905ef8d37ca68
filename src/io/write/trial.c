/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/write/trial.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "io/packs/equals.h"

#define NONE UINT32_MAX

/* A fragment, however often it occurs. */
typedef struct seen {
    uint64_t hash[2];
    uint64_t stored_bytes;
    uint32_t last;   /* the newest container that has it */
    uint32_t before; /* the one before that; NONE: there is none */
} seen;

typedef struct written {
    uint64_t fragments;
    uint64_t head_bytes;
} written;

struct esdm__trial {
    pthread_mutex_t lock; /* guards all below; a leaf lock */
    esdm__trial_counts counts;
    written *containers; /* owned; the last one is being written */
    size_t ncontainers;
    size_t oldest; /* container that is looked at */
    seen *items;   /* owned */
    size_t count;
    uint32_t *table; /* owned; by hash: number of an item plus 1; a power of two */
    size_t slots;
};

esdm__trial *
esdm__trial_new(void)
{
    esdm__trial *trial = calloc(1, sizeof *trial);
    if (trial != NULL)
        (void) pthread_mutex_init(&trial->lock, NULL);
    return trial;
}

void
esdm__trial_free(esdm__trial *trial)
{
    if (trial == NULL)
        return;
    (void) pthread_mutex_destroy(&trial->lock);
    free(trial->containers);
    free(trial->items);
    free(trial->table);
    free(trial);
}

const esdm__trial_counts *
esdm__trial_counted(const esdm__trial *trial)
{
    return &trial->counts;
}

/* As list_sources() of io/packs/equals.c chooses them. */
static void
choose_oldest(esdm__trial *trial)
{
    size_t now = trial->ncontainers - 1;
    uint64_t fragments = 0;
    trial->oldest = now;
    while (trial->oldest > 0 && now - trial->oldest < ESDM__EQUALS_CONTAINERS) {
        const written *one = &trial->containers[trial->oldest - 1];
        if (fragments + one->fragments > ESDM__EQUALS_FRAGMENTS)
            break;
        fragments += one->fragments;
        trial->counts.head_bytes += one->head_bytes;
        trial->oldest--;
    }
    if (fragments > trial->counts.looked_at)
        trial->counts.looked_at = fragments;
}

esdm_status
esdm__trial_begin(esdm__trial *trial, esdm_error *err)
{
    if (trial->ncontainers >= NONE ||
        !esdm__array_grow(&trial->containers, trial->ncontainers, sizeof *trial->containers))
        return esdm__error_nomem(err, trial->ncontainers * sizeof *trial->containers, "containers");
    trial->containers[trial->ncontainers++] = (written){0};
    choose_oldest(trial);
    return ESDM_OK;
}

static uint32_t *
slot_of(const esdm__trial *trial, const seen *wanted)
{
    size_t at = (size_t) wanted->hash[0] & (trial->slots - 1);
    for (; trial->table[at] != 0; at = (at + 1) & (trial->slots - 1)) {
        const seen *one = &trial->items[trial->table[at] - 1];
        if (memcmp(one->hash, wanted->hash, sizeof one->hash) == 0 &&
            one->stored_bytes == wanted->stored_bytes)
            break;
    }
    return &trial->table[at];
}

static bool
grow_table(esdm__trial *trial)
{
    if (2 * (trial->count + 1) <= trial->slots)
        return true;
    size_t slots = trial->slots > 0 ? 2 * trial->slots : 1024;
    uint32_t *table = calloc(slots, sizeof *table);
    if (table == NULL || trial->count >= NONE - 1) {
        free(table);
        return false;
    }
    free(trial->table);
    trial->table = table;
    trial->slots = slots;
    for (size_t i = 0; i < trial->count; i++)
        *slot_of(trial, &trial->items[i]) = (uint32_t) i + 1;
    return true;
}

/* @param ret_equal whether a container that is looked at has it. false: out of memory. */
static bool
find_or_add(esdm__trial *trial, const seen *wanted, bool *ret_equal)
{
    uint32_t now = (uint32_t) trial->ncontainers - 1;
    *ret_equal = false;
    if (!grow_table(trial))
        return false;
    uint32_t *slot = slot_of(trial, wanted);
    if (*slot == 0) {
        if (!esdm__array_grow(&trial->items, trial->count, sizeof *trial->items))
            return false;
        trial->items[trial->count] = *wanted;
        trial->items[trial->count].last = now;
        trial->items[trial->count].before = NONE;
        *slot = (uint32_t) ++trial->count;
        return true;
    }
    seen *one = &trial->items[*slot - 1];
    uint32_t other = one->last != now ? one->last : one->before;
    *ret_equal = other != NONE && other >= trial->oldest;
    if (one->last != now) {
        one->before = one->last;
        one->last = now;
    }
    return true;
}

esdm_status
esdm__trial_note(esdm__trial *trial, const esdm__blob *blob, esdm_error *err)
{
    bool equal = false;
    seen one = {.stored_bytes = blob->head_bytes + blob->payload_bytes};
    esdm__blob_hash(blob->head, blob->head_bytes, one.hash);
    (void) pthread_mutex_lock(&trial->lock);
    bool noted = find_or_add(trial, &one, &equal);
    if (noted) {
        trial->containers[trial->ncontainers - 1].fragments++;
        trial->containers[trial->ncontainers - 1].head_bytes += blob->head_bytes;
        trial->counts.fragments++;
        trial->counts.bytes += one.stored_bytes;
        trial->counts.equals += equal;
        trial->counts.equal_bytes += equal ? one.stored_bytes : 0;
    }
    (void) pthread_mutex_unlock(&trial->lock);
    return noted ? ESDM_OK : esdm__error_nomem(err, trial->count * sizeof one, "fragments");
}
