/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "layout/records.h"

#include <stdlib.h>

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
    free(records->inline_data);
    esdm__records_init(records, records->rank);
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
    esdm__record *items = realloc(records->items, (size_t) (capacity + 1) * sizeof *items);
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
    if (bounds == NULL || items == NULL)
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
esdm__records_reserve(esdm__records *records, uint32_t more, size_t more_inline)
{
    return reserve_items(records, more) && reserve_inline(records, more_inline);
}

bool
esdm__records_add(esdm__records *records, const uint64_t *bounds, const uint64_t *stride,
                  const esdm__record *item, const uint8_t *inline_data)
{
    size_t bytes = item->pack == NULL ? (size_t) item->stored_bytes : 0;
    if (!esdm__records_reserve(records, 1, bytes) ||
        (stride != NULL && !esdm__records_need_strides(records)))
        return false;
    uint32_t index = records->count++;
    for (uint32_t d = 0; records->strides != NULL && d < records->rank; d++)
        records->strides[(size_t) index * records->rank + d] = stride != NULL ? stride[d] : 1;
    esdm__bounds_copy(records->rank, records->bounds + (size_t) index * 2 * records->rank, bounds);
    records->items[index] = *item;
    if (item->pack == NULL) {
        records->items[index].position = records->inline_bytes;
        memcpy(records->inline_data + records->inline_bytes, inline_data, bytes);
        records->inline_bytes += bytes;
    }
    return true;
}

bool
esdm__records_append(esdm__records *records, const esdm__records *from)
{
    bool ok = esdm__records_reserve(records, from->count, from->inline_bytes);
    for (uint32_t i = 0; ok && i < from->count; i++) {
        const esdm__record *item = &from->items[i];
        const uint8_t *data = item->pack == NULL ? from->inline_data + item->position : NULL;
        ok = esdm__records_add(records, esdm__records_bounds(from, i),
                               esdm__records_stride(from, i), item, data);
    }
    return ok;
}

size_t
esdm__records_memory_bytes(const esdm__records *records)
{
    size_t numbers = (size_t) records->rank * (records->strides != NULL ? 3 : 2);
    return (size_t) records->capacity *
               (sizeof *records->items + numbers * sizeof *records->bounds) +
           records->inline_capacity;
}

void
esdm__records_fragment(const esdm__records *records, uint32_t index, esdm__fragment *ret_fragment)
{
    const esdm__record *item = &records->items[index];
    bool in_page = item->pack == NULL;
    esdm__bounds_to_box(records->rank, esdm__records_bounds(records, index), &ret_fragment->box);
    ret_fragment->sequence = item->sequence;
    ret_fragment->raw_bytes = item->raw_bytes;
    ret_fragment->stored_bytes = item->stored_bytes;
    ret_fragment->position = in_page ? 0 : item->position;
    ret_fragment->pack = item->pack;
    ret_fragment->inline_data = in_page ? records->inline_data + item->position : NULL;
    ret_fragment->head_bytes = item->head_bytes;
    memcpy(ret_fragment->codec_ids, item->codec_ids, sizeof item->codec_ids);
    const uint64_t *stride = esdm__records_stride(records, index);
    ret_fragment->strided = stride != NULL;
    if (stride != NULL)
        memcpy(ret_fragment->stride, stride, records->rank * sizeof *stride);
}
