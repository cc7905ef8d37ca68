/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "layout/records.h"

#include <stdlib.h>

#include "layout/page.h"

void
esdm__records_init(esdm__records *records, uint32_t rank)
{
    *records = (esdm__records){.rank = rank};
}

void
esdm__records_clear(esdm__records *records)
{
    free(records->bounds);
    free(records->strides);
    free(records->items);
    free(records->elsewhere);
    free(records->statistics);
    free(records->inline_data);
    esdm__records_init(records, records->rank);
}

/* Lets an array of few records' things grow with the others: new ones are 0. */
static bool
grow_rare(void *array, size_t item_bytes, uint32_t before, uint32_t capacity)
{
    void *old;
    memcpy(&old, array, sizeof old);
    if (old == NULL)
        return true;
    uint8_t *grown = realloc(old, ((size_t) capacity + 1) * item_bytes);
    if (grown == NULL)
        return false;
    memset(grown + before * item_bytes, 0, ((size_t) capacity + 1 - before) * item_bytes);
    memcpy(array, &grown, sizeof grown);
    return true;
}

static bool
reserve_items(esdm__records *records, uint32_t more)
{
    if (more > UINT32_MAX / 2 - records->count)
        return false;
    uint32_t need = records->count + more;
    if (need <= records->capacity && records->bounds != NULL)
        return true;
    uint32_t capacity = records->capacity + records->capacity / 2;
    capacity = capacity < need ? need : capacity;
    size_t numbers = (size_t) capacity * 2 * records->rank + 1; /* not NULL for rank 0 either */
    uint64_t *bounds = realloc(records->bounds, numbers * sizeof *bounds);
    if (bounds != NULL)
        records->bounds = bounds;
    esdm__record *items = realloc(records->items, (capacity > 0 ? capacity : 1) * sizeof *items);
    if (items != NULL)
        records->items = items;
    uint64_t *strides = records->strides;
    if (strides != NULL) {
        size_t bytes = ((size_t) capacity * records->rank + 1) * sizeof *strides;
        strides = realloc(records->strides, bytes);
        if (strides == NULL)
            return false;
        records->strides = strides;
    }
    if (bounds == NULL || items == NULL ||
        !grow_rare(&records->elsewhere, sizeof *records->elsewhere, records->count, capacity) ||
        !grow_rare(&records->statistics, sizeof *records->statistics, records->count, capacity))
        return false;
    records->capacity = capacity;
    return true;
}

bool
esdm__records_need_strides(esdm__records *records)
{
    if (records->strides != NULL)
        return true;
    size_t numbers = (size_t) records->capacity * records->rank;
    records->strides = malloc((numbers + 1) * sizeof *records->strides);
    for (size_t i = 0; records->strides != NULL && i < numbers; i++)
        records->strides[i] = 1;
    return records->strides != NULL;
}

bool
esdm__records_need_elsewhere(esdm__records *records)
{
    if (records->elsewhere == NULL)
        records->elsewhere = calloc((size_t) records->capacity + 1, sizeof *records->elsewhere);
    return records->elsewhere != NULL;
}

bool
esdm__records_need_statistics(esdm__records *records)
{
    if (records->statistics == NULL)
        records->statistics = calloc((size_t) records->capacity + 1, sizeof *records->statistics);
    return records->statistics != NULL;
}

bool
esdm__records_set_elsewhere(esdm__records *records, uint32_t index,
                            const esdm__elsewhere *elsewhere)
{
    if (!esdm__records_need_elsewhere(records))
        return false;
    records->elsewhere[index] = *elsewhere;
    return true;
}

bool
esdm__records_set_statistics(esdm__records *records, uint32_t index,
                             const esdm__statistics *statistics)
{
    if (!esdm__records_need_statistics(records))
        return false;
    records->statistics[index] = *statistics;
    return true;
}

static bool
reserve_inline(esdm__records *records, size_t more)
{
    if (more > SIZE_MAX / 4 - records->inline_bytes)
        return false;
    size_t need = records->inline_bytes + more;
    if (need <= records->inline_capacity)
        return true;
    size_t capacity = records->inline_capacity + records->inline_capacity / 2;
    capacity = capacity < need ? need : capacity;
    uint8_t *data = realloc(records->inline_data, capacity);
    if (data == NULL)
        return false;
    records->inline_data = data;
    records->inline_capacity = capacity;
    return true;
}

bool
esdm__records_set_outline(esdm__records *records, uint32_t index, const uint8_t *outline,
                          uint32_t bytes)
{
    esdm__record *item = &records->items[index];
    bool fits = item->outline_bytes >= bytes; /* in place of the one that it had */
    item->outline_bytes = 0;
    if (bytes == 0)
        return true;
    if (!fits) {
        if (bytes > ESDM__PAGE_OUTLINE_MAX ||
            records->inline_bytes + bytes > ESDM__PAGE_INLINE_MAX ||
            !reserve_inline(records, bytes))
            return false;
        (void) esdm__record_place_inline(item, records->inline_bytes);
        records->inline_bytes += bytes;
    }
    item->outline_bytes = (uint16_t) bytes;
    memcpy(records->inline_data + item->outline_at, outline, bytes);
    return true;
}

bool
esdm__records_reserve(esdm__records *records, uint32_t more, size_t more_inline)
{
    return reserve_items(records, more) && reserve_inline(records, more_inline);
}

bool
esdm__records_add(esdm__records *records, const uint64_t *bounds, const uint64_t *stride,
                  const esdm__record *item, const uint8_t *inline_data)
{
    size_t bytes = (size_t) esdm__record_inline_bytes(item);
    if (!esdm__records_reserve(records, 1, bytes) ||
        (stride != NULL && !esdm__records_need_strides(records)))
        return false;
    uint32_t index = records->count++;
    for (uint32_t d = 0; records->strides != NULL && d < records->rank; d++)
        records->strides[(size_t) index * records->rank + d] = stride != NULL ? stride[d] : 1;
    esdm__bounds_copy(records->rank, records->bounds + (size_t) index * 2 * records->rank, bounds);
    records->items[index] = *item;
    if (records->elsewhere != NULL)
        records->elsewhere[index] = (esdm__elsewhere){0};
    if (records->statistics != NULL)
        records->statistics[index] = (esdm__statistics){0};
    if (bytes > 0) {
        bytes = esdm__record_place_inline(&records->items[index], records->inline_bytes);
        memcpy(records->inline_data + records->inline_bytes, inline_data, bytes);
        records->inline_bytes += bytes;
    }
    return true;
}

/* What a record of another table points to, interned. */
static bool
intern(esdm__packs *names, esdm__record *item, esdm__elsewhere *elsewhere)
{
    if (names == NULL)
        return true;
    if (item->pack != NULL &&
        (item->pack = esdm__packs_intern(names, item->pack->target, item->pack->pack)) == NULL)
        return false;
    if (elsewhere->source != NULL &&
        (elsewhere->source = esdm__packs_source(names, elsewhere->source)) == NULL)
        return false;
    return elsewhere->decoding == NULL ||
           (elsewhere->decoding = esdm__packs_source(names, elsewhere->decoding)) != NULL;
}

bool
esdm__records_copy(esdm__records *records, const esdm__records *from, uint32_t index,
                   esdm__packs *names)
{
    esdm__record item = from->items[index];
    esdm__elsewhere elsewhere = {0};
    const uint8_t *data = NULL;
    if (from->elsewhere != NULL)
        elsewhere = from->elsewhere[index];
    if (esdm__record_inline_bytes(&item) > 0)
        data = from->inline_data + esdm__record_inline_at(&item);
    bool rare = elsewhere.source != NULL;
    bool known = from->statistics != NULL && from->statistics[index].class != ESDM__CLASS_NONE;
    /* Room first: a record is added as a whole, or not. */
    if (!intern(names, &item, &elsewhere) ||
        !esdm__records_reserve(records, 1, (size_t) esdm__record_inline_bytes(&item)) ||
        (rare && !esdm__records_need_elsewhere(records)) ||
        (known && !esdm__records_need_statistics(records)) ||
        !esdm__records_add(records, esdm__records_bounds(from, index),
                           esdm__records_stride(from, index), &item, data))
        return false;
    uint32_t to = records->count - 1;
    if (rare)
        records->elsewhere[to] = elsewhere;
    if (known)
        records->statistics[to] = from->statistics[index];
    return true;
}

/* Room for all that some of from[order[0 … count-1]] have. */
static bool
reserve_gathered(esdm__records *records, const esdm__records *from, const uint32_t *order,
                 uint32_t count)
{
    size_t inline_bytes = 0;
    bool strided = false, rare = false, known = false;
    for (uint32_t i = 0; i < count; i++)
        inline_bytes += (size_t) esdm__record_inline_bytes(&from->items[order[i]]);
    for (uint32_t i = 0; from->strides != NULL && i < count && !strided; i++)
        strided = esdm__records_stride(from, order[i]) != NULL;
    for (uint32_t i = 0; from->elsewhere != NULL && i < count && !rare; i++)
        rare = from->elsewhere[order[i]].source != NULL;
    for (uint32_t i = 0; from->statistics != NULL && i < count && !known; i++)
        known = from->statistics[order[i]].class != ESDM__CLASS_NONE;
    return esdm__records_reserve(records, count, inline_bytes) &&
           (!strided || esdm__records_need_strides(records)) &&
           (!rare || esdm__records_need_elsewhere(records)) &&
           (!known || esdm__records_need_statistics(records));
}

bool
esdm__records_gather(esdm__records *records, const esdm__records *from, const uint32_t *order,
                     uint32_t count)
{
    size_t rank = records->rank;
    if (!reserve_gathered(records, from, order, count))
        return false;
    for (uint32_t i = 0; i < count; i++)
        esdm__bounds_copy(records->rank, records->bounds + i * 2 * rank,
                          esdm__records_bounds(from, order[i]));
    for (uint32_t i = 0; i < count; i++) {
        esdm__record *item = &records->items[i];
        *item = from->items[order[i]];
        if (esdm__record_inline_bytes(item) == 0)
            continue;
        const uint8_t *data = from->inline_data + esdm__record_inline_at(item);
        size_t bytes = esdm__record_place_inline(item, records->inline_bytes);
        memcpy(records->inline_data + records->inline_bytes, data, bytes);
        records->inline_bytes += bytes;
    }
    for (uint32_t i = 0; records->strides != NULL && i < count; i++)
        memcpy(records->strides + i * rank, from->strides + order[i] * rank,
               rank * sizeof *records->strides);
    for (uint32_t i = 0; records->elsewhere != NULL && i < count; i++)
        records->elsewhere[i] = from->elsewhere[order[i]];
    for (uint32_t i = 0; records->statistics != NULL && i < count; i++)
        records->statistics[i] = from->statistics[order[i]];
    records->count = count;
    return true;
}

void
esdm__records_move(esdm__records *records, uint32_t from, uint32_t to)
{
    size_t rank = records->rank;
    esdm__bounds_copy(records->rank, records->bounds + to * 2 * rank,
                      records->bounds + from * 2 * rank);
    if (records->strides != NULL)
        memmove(records->strides + to * rank, records->strides + from * rank,
                rank * sizeof *records->strides);
    records->items[to] = records->items[from];
    if (records->elsewhere != NULL)
        records->elsewhere[to] = records->elsewhere[from];
    if (records->statistics != NULL)
        records->statistics[to] = records->statistics[from];
}

bool
esdm__records_append(esdm__records *records, const esdm__records *from)
{
    bool ok = esdm__records_reserve(records, from->count, from->inline_bytes);
    for (uint32_t i = 0; ok && i < from->count; i++)
        ok = esdm__records_copy(records, from, i, NULL);
    return ok;
}

size_t
esdm__records_memory_bytes(const esdm__records *records)
{
    size_t numbers = (size_t) records->rank * (records->strides != NULL ? 3 : 2);
    size_t each = sizeof *records->items + numbers * sizeof *records->bounds;
    each += records->elsewhere != NULL ? sizeof *records->elsewhere : 0;
    each += records->statistics != NULL ? sizeof *records->statistics : 0;
    return (size_t) records->capacity * each + records->inline_capacity;
}

void
esdm__records_fragment(const esdm__records *records, uint32_t index, esdm__fragment *ret_fragment)
{
    const esdm__record *item = &records->items[index];
    bool in_page = item->pack == NULL && !esdm__kind_is_elsewhere(item->kind);
    esdm__bounds_to_box(records->rank, esdm__records_bounds(records, index), &ret_fragment->box);
    ret_fragment->sequence = item->sequence;
    ret_fragment->raw_bytes = item->raw_bytes;
    ret_fragment->stored_bytes = item->stored_bytes;
    ret_fragment->position = in_page ? 0 : item->position;
    ret_fragment->pack = item->pack;
    ret_fragment->inline_data = in_page ? records->inline_data + item->position : NULL;
    ret_fragment->outline = item->pack != NULL && item->outline_bytes > 0
                                ? records->inline_data + item->outline_at
                                : NULL;
    ret_fragment->outline_bytes = ret_fragment->outline != NULL ? item->outline_bytes : 0;
    ret_fragment->kind = item->kind;
    ret_fragment->elsewhere = (esdm__elsewhere){0};
    if (records->elsewhere != NULL)
        ret_fragment->elsewhere = records->elsewhere[index];
    ret_fragment->statistics = (esdm__statistics){0};
    if (records->statistics != NULL)
        ret_fragment->statistics = records->statistics[index];
    ret_fragment->head_bytes = item->head_bytes;
    memcpy(ret_fragment->codec_ids, item->codec_ids, sizeof item->codec_ids);
    const uint64_t *stride = esdm__records_stride(records, index);
    ret_fragment->strided = stride != NULL;
    if (stride != NULL)
        memcpy(ret_fragment->stride, stride, records->rank * sizeof *stride);
}
