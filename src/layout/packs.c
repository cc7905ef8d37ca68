/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "layout/packs.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"

typedef struct pack_node {
    esdm__pack_name name; /* first: a name given out is cast back */
    uint32_t rank;
    uint64_t hash;
    char texts[]; /* target, NUL, pack, NUL */
} pack_node;

typedef struct source_node {
    esdm__source source; /* first, as above */
    uint64_t hash;
    uint8_t data[];
} source_node;

struct esdm__packs {
    atomic_uint references;
    bool ordered;
    uint32_t count;
    uint32_t slots;    /* a power of two, more than count */
    pack_node **table; /* open addressing; NULL: free */
    pack_node **nodes; /* `slots` long; in order of entry until esdm__packs_order() */
    uint32_t nsources;
    uint32_t source_slots; /* as `slots` */
    source_node **sources; /* open addressing; NULL: free */
};

esdm__packs *
esdm__packs_new(void)
{
    esdm__packs *packs = calloc(1, sizeof *packs);
    if (packs != NULL)
        atomic_init(&packs->references, 1);
    return packs;
}

void
esdm__packs_ref(esdm__packs *packs)
{
    atomic_fetch_add_explicit(&packs->references, 1, memory_order_relaxed);
}

void
esdm__packs_unref(esdm__packs *packs)
{
    if (packs == NULL ||
        atomic_fetch_sub_explicit(&packs->references, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < packs->count; i++)
        free(packs->nodes[i]);
    for (uint32_t i = 0; i < packs->source_slots; i++)
        free(packs->sources[i]);
    free(packs->sources);
    free(packs->nodes);
    free(packs->table);
    free(packs);
}

static uint64_t
hash_name(const char *target, const char *pack)
{
    return esdm__checksum(target, strlen(target)) * 31 + esdm__checksum(pack, strlen(pack));
}

/* The slot of a name, or the free one where it belongs. */
static pack_node **
find_slot(pack_node **table, uint32_t slots, uint64_t hash, const char *target, const char *pack)
{
    uint32_t i = (uint32_t) hash & (slots - 1);
    while (table[i] != NULL && (table[i]->hash != hash || strcmp(table[i]->name.pack, pack) != 0 ||
                                strcmp(table[i]->name.target, target) != 0))
        i = (i + 1) & (slots - 1);
    return &table[i];
}

static bool
grow(esdm__packs *packs)
{
    uint32_t slots = packs->slots > 0 ? packs->slots * 2 : 4;
    pack_node **table = calloc(slots, sizeof(pack_node *));
    pack_node **nodes = realloc(packs->nodes, slots * sizeof(pack_node *));
    if (nodes != NULL)
        packs->nodes = nodes;
    if (table == NULL || nodes == NULL) {
        free(table);
        return false;
    }
    for (uint32_t i = 0; i < packs->count; i++) {
        pack_node *node = packs->nodes[i];
        *find_slot(table, slots, node->hash, node->name.target, node->name.pack) = node;
    }
    free(packs->table);
    packs->table = table;
    packs->slots = slots;
    return true;
}

static pack_node *
new_node(uint64_t hash, const char *target, const char *pack)
{
    size_t target_bytes = strlen(target) + 1;
    size_t pack_bytes = strlen(pack) + 1;
    pack_node *node = malloc(sizeof *node + target_bytes + pack_bytes);
    if (node == NULL)
        return NULL;
    memcpy(node->texts, target, target_bytes);
    memcpy(node->texts + target_bytes, pack, pack_bytes);
    node->name = (esdm__pack_name){node->texts, node->texts + target_bytes};
    node->rank = 0;
    node->hash = hash;
    return node;
}

const esdm__pack_name *
esdm__packs_intern(esdm__packs *packs, const char *target, const char *pack)
{
    if (packs->count >= packs->slots / 2 && !grow(packs))
        return NULL;
    uint64_t hash = hash_name(target, pack);
    pack_node **slot = find_slot(packs->table, packs->slots, hash, target, pack);
    if (*slot == NULL) {
        pack_node *node = new_node(hash, target, pack);
        if (node == NULL)
            return NULL;
        *slot = node;
        packs->nodes[packs->count++] = node;
        packs->ordered = false;
    }
    return &(*slot)->name;
}

/* ---- descriptions ------------------------------------------------------------------------- */

static source_node **
find_source(source_node **table, uint32_t slots, uint64_t hash, const esdm__source *source)
{
    uint32_t i = (uint32_t) hash & (slots - 1);
    while (table[i] != NULL && (table[i]->hash != hash || table[i]->source.role != source->role ||
                                table[i]->source.bytes != source->bytes ||
                                memcmp(table[i]->data, source->data, source->bytes) != 0))
        i = (i + 1) & (slots - 1);
    return &table[i];
}

static bool
grow_sources(esdm__packs *packs)
{
    uint32_t slots = packs->source_slots > 0 ? packs->source_slots * 2 : 4;
    source_node **table = calloc(slots, sizeof(source_node *));
    if (table == NULL)
        return false;
    for (uint32_t i = 0; i < packs->source_slots; i++) {
        source_node *node = packs->sources[i];
        if (node != NULL)
            *find_source(table, slots, node->hash, &node->source) = node;
    }
    free(packs->sources);
    packs->sources = table;
    packs->source_slots = slots;
    return true;
}

const esdm__source *
esdm__packs_source(esdm__packs *packs, const esdm__source *source)
{
    if (packs->nsources >= packs->source_slots / 2 && !grow_sources(packs))
        return NULL;
    uint64_t hash = esdm__checksum(source->data, source->bytes) * 31 + source->role;
    source_node **slot = find_source(packs->sources, packs->source_slots, hash, source);
    if (*slot == NULL) {
        source_node *node = malloc(sizeof *node + source->bytes);
        if (node == NULL)
            return NULL;
        memcpy(node->data, source->data, source->bytes);
        node->hash = hash;
        node->source = (esdm__source){source->role, source->bytes, node->data};
        *slot = node;
        packs->nsources++;
    }
    return &(*slot)->source;
}

/* ---- order -------------------------------------------------------------------------------- */

static int
by_name(const void *a, const void *b)
{
    const pack_node *x = *(pack_node *const *) a;
    const pack_node *y = *(pack_node *const *) b;
    int order = strcmp(x->name.target, y->name.target);
    return order != 0 ? order : strcmp(x->name.pack, y->name.pack);
}

void
esdm__packs_order(esdm__packs *packs)
{
    if (packs->ordered)
        return;
    if (packs->count > 0)
        qsort(packs->nodes, packs->count, sizeof(pack_node *), by_name);
    for (uint32_t i = 0; i < packs->count; i++)
        packs->nodes[i]->rank = i + 1;
    packs->ordered = true;
}

uint32_t
esdm__packs_rank(const esdm__pack_name *name)
{
    return name != NULL ? ((const pack_node *) name)->rank : 0;
}
