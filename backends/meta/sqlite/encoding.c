/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Small binary columns: lengths, boxes, attribute lists. */

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "store.h"

static esdm_status
damaged(const char *what, esdm_error *err)
{
    return esdm__error_set(err, ESDM_ECORRUPT, "metadata store: damaged %s", what);
}

/* Gives the buffer's memory away, or reports that there was none. */
static esdm_status
finish(esdm__buffer *buffer, const char *what, void **ret_data, size_t *ret_bytes, esdm_error *err)
{
    if (buffer->failed) {
        esdm__buffer_clear(buffer);
        return esdm__error_nomem(err, buffer->bytes, what);
    }
    *ret_data = esdm__buffer_steal(buffer, ret_bytes);
    return ESDM_OK;
}

/* ---- lengths -------------------------------------------------------------------------------- */

static int
by_dimension(const void *a, const void *b)
{
    const esdm_meta_length *x = a;
    const esdm_meta_length *y = b;
    return (x->dimension > y->dimension) - (x->dimension < y->dimension);
}

esdm_status
sqlite__lengths_decode(const void *data, size_t bytes, esdm_meta_length **ret_lengths,
                       size_t *ret_count, esdm_error *err)
{
    *ret_lengths = NULL;
    *ret_count = 0;
    if (bytes == 0)
        return ESDM_OK;
    esdm_meta_length *lengths = malloc((bytes / 2 + 1) * sizeof *lengths); /* ≥ 2 bytes a pair */
    if (lengths == NULL)
        return esdm__error_nomem(err, bytes * sizeof *lengths, "lengths of dimensions");
    esdm__cursor cursor;
    size_t count = 0;
    bool good = true;
    esdm__cursor_init(&cursor, data, bytes);
    while (good && esdm__cursor_left(&cursor) > 0) {
        uint64_t dimension = esdm__cursor_varint(&cursor);
        uint64_t length = esdm__cursor_varint(&cursor);
        good = !cursor.failed && dimension <= UINT32_MAX;
        if (good)
            lengths[count++] =
                (esdm_meta_length){.dimension = (uint32_t) dimension, .length = length};
    }
    if (!good) {
        free(lengths);
        return damaged("lengths of dimensions", err);
    }
    *ret_lengths = lengths;
    *ret_count = count;
    return ESDM_OK;
}

esdm_status
sqlite__lengths_merge(const void *head, size_t head_bytes, const esdm_meta_length *lengths,
                      size_t nlengths, void **ret_data, size_t *ret_bytes, esdm_error *err)
{
    esdm_meta_length *old = NULL;
    size_t nold = 0;
    esdm_status status = sqlite__lengths_decode(head, head_bytes, &old, &nold, err);
    if (status != ESDM_OK)
        return status;
    esdm_meta_length *all = malloc((nold + nlengths + 1) * sizeof *all);
    if (all == NULL) {
        free(old);
        return esdm__error_nomem(err, (nold + nlengths) * sizeof *all, "lengths of dimensions");
    }
    if (nold > 0)
        memcpy(all, old, nold * sizeof *all);
    if (nlengths > 0)
        memcpy(all + nold, lengths, nlengths * sizeof *all);
    qsort(all, nold + nlengths, sizeof *all, by_dimension);

    esdm__buffer buffer;
    esdm__buffer_init(&buffer);
    for (size_t i = 0; i < nold + nlengths;) {
        uint64_t length = 0;
        uint32_t dimension = all[i].dimension;
        for (; i < nold + nlengths && all[i].dimension == dimension; i++)
            length = all[i].length > length ? all[i].length : length;
        esdm__buffer_put_varint(&buffer, dimension);
        esdm__buffer_put_varint(&buffer, length);
    }
    free(old);
    free(all);
    return finish(&buffer, "lengths of dimensions", ret_data, ret_bytes, err);
}

/* ---- boxes ---------------------------------------------------------------------------------- */

esdm_status
sqlite__box_encode(uint32_t rank, const uint64_t *box, void **ret_data, size_t *ret_bytes,
                   esdm_error *err)
{
    esdm__buffer buffer;
    if (rank > ESDM_MAX_RANK)
        return esdm__error_set(err, ESDM_EINVAL, "metadata store: a page of rank %u", rank);
    esdm__buffer_init(&buffer);
    esdm__buffer_put_varint(&buffer, rank);
    for (uint32_t i = 0; i < 2 * rank; i++)
        esdm__buffer_put_varint(&buffer, box[i]);
    return finish(&buffer, "the box of a page", ret_data, ret_bytes, err);
}

esdm_status
sqlite__box_decode(const void *data, size_t bytes, uint32_t *ret_rank, uint64_t *ret_box,
                   esdm_error *err)
{
    esdm__cursor cursor;
    esdm__cursor_init(&cursor, data, bytes);
    uint64_t rank = esdm__cursor_varint(&cursor);
    if (cursor.failed || rank > ESDM_MAX_RANK)
        return damaged("box of a page", err);
    for (uint64_t i = 0; i < 2 * rank; i++)
        ret_box[i] = esdm__cursor_varint(&cursor);
    if (cursor.failed || esdm__cursor_left(&cursor) > 0)
        return damaged("box of a page", err);
    *ret_rank = (uint32_t) rank;
    return ESDM_OK;
}

/* ---- attributes ----------------------------------------------------------------------------- */

/* Length plus one, then the bytes and a NUL, so that texts can be used in place; 0 for NULL. */
static void
put_text(esdm__buffer *buffer, const char *text)
{
    if (text == NULL) {
        esdm__buffer_put_varint(buffer, 0);
        return;
    }
    size_t bytes = strlen(text) + 1;
    esdm__buffer_put_varint(buffer, bytes);
    esdm__buffer_put(buffer, text, bytes);
}

/* Of one list entry: dataset, path, name, text, whether there is a number, the number. */
esdm_status
sqlite__attributes_encode(const esdm_meta_attribute *attributes, size_t count, void **ret_data,
                          size_t *ret_bytes, esdm_error *err)
{
    esdm__buffer buffer;
    esdm__buffer_init(&buffer);
    for (size_t i = 0; i < count; i++) {
        const esdm_meta_attribute *attribute = &attributes[i];
        bool repeated = i > 0 && attribute->dataset == attributes[i - 1].dataset;
        uint64_t bits = 0;
        memcpy(&bits, &attribute->number, sizeof bits);
        esdm__buffer_put_varint(&buffer, attribute->dataset);
        put_text(&buffer, repeated ? NULL : attribute->dataset_path); /* as the one before */
        put_text(&buffer, attribute->name);
        put_text(&buffer, attribute->text);
        esdm__buffer_put_u8(&buffer, attribute->has_number);
        if (attribute->has_number)
            esdm__buffer_put_u64(&buffer, bits);
    }
    return finish(&buffer, "attributes", ret_data, ret_bytes, err);
}
