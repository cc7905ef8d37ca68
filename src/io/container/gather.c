/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/container/gather.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "io/encode/elements.h"
#include "model/copy.h"

/* Many datasets gather one value each; what malloc() has least. */
#define FIRST_CAPACITY_BYTES 24u
#define TEXT_OVERHEAD_BYTES  16u /* of an allocation, about */
#define CONTINUED_BYTES      4096u

void
esdm__gather_init(esdm__gather *gather, esdm_type type, size_t element_bytes, uint64_t limit_bytes)
{
    memset(gather, 0, sizeof *gather);
    gather->type = type;
    gather->element_bytes = element_bytes;
    gather->limit_bytes = limit_bytes;
}

static size_t
box_bytes(const esdm__gather *gather, const esdm__box *box)
{
    return (size_t) esdm__box_elements(box) * gather->element_bytes;
}

static esdm__box *
box_of(const esdm__gather *gather, const esdm__gather_level *level, esdm__box *box)
{
    esdm__box_set(box, gather->rank, level->lo, level->n);
    return box;
}

static uint64_t
elements_of(const esdm__gather *gather, const esdm__gather_level *level)
{
    uint64_t elements = 1;
    for (uint32_t i = 0; i < gather->rank; i++)
        elements *= level->n[i];
    return elements;
}

/* The levels and the places of their boxes are one piece of memory. */
static size_t
levels_bytes(size_t count, size_t rank)
{
    return count * (sizeof(esdm__gather_level) + 2 * rank * sizeof(uint64_t));
}

/* Most datasets of very many need no more than one: the others are made when it is to be pushed
 * up. false: out of memory, and all is as it was. */
static bool
make_levels(esdm__gather *gather, uint32_t rank, uint16_t count)
{
    esdm__gather_level *levels = calloc(1, levels_bytes(count, rank));
    if (levels == NULL)
        return false;
    uint64_t *numbers = (uint64_t *) (void *) &levels[count];
    for (size_t i = 0; i < count; i++) {
        levels[i].lo = numbers + 2 * i * rank;
        levels[i].n = levels[i].lo + rank;
    }
    for (size_t i = 0; i < gather->nlevels; i++) {
        const esdm__gather_level *from = &gather->levels[i];
        memcpy(levels[i].lo, from->lo, 2 * rank * sizeof *from->lo); /* `n` follows */
        levels[i].used = from->used;
        levels[i].data = from->data;
        levels[i].capacity_bytes = from->capacity_bytes;
        levels[i].text_bytes = from->text_bytes;
    }
    free(gather->levels);
    gather->levels = levels;
    gather->nlevels = count;
    gather->rank = (uint16_t) rank;
    return true;
}

/* Whether elements are pointers to memory of their own. */
static bool
has_texts(esdm_type type)
{
    return type == ESDM_TYPE_STRING || type == ESDM__TYPE_BLOB;
}

static void
free_texts(const esdm__gather *gather, const esdm__gather_level *level)
{
    if (!has_texts(gather->type) || !level->used)
        return;
    void **texts = (void **) (void *) level->data;
    for (uint64_t i = 0; i < elements_of(gather, level); i++)
        free(texts[i]);
}

static void
clear_level(esdm__gather *gather, esdm__gather_level *level)
{
    free_texts(gather, level);
    free(level->data);
    *level = (esdm__gather_level){.lo = level->lo, .n = level->n};
}

void
esdm__gather_clear(esdm__gather *gather)
{
    for (size_t i = 0; i < gather->nlevels; i++)
        clear_level(gather, &gather->levels[i]);
    free(gather->levels);
    gather->levels = NULL;
    gather->nlevels = 0;
}

bool
esdm__gather_is_empty(const esdm__gather *gather)
{
    for (size_t i = 0; i < gather->nlevels; i++) {
        if (gather->levels[i].used)
            return false;
    }
    return true;
}

uint64_t
esdm__gather_bytes(const esdm__gather *gather)
{
    if (gather->levels == NULL)
        return 0;
    uint64_t bytes = levels_bytes(gather->nlevels, gather->rank);
    for (size_t i = 0; i < gather->nlevels; i++)
        bytes += gather->levels[i].capacity_bytes + gather->levels[i].text_bytes;
    return bytes;
}

/* A copy of a text or blob. */
static void *
dup_text(esdm_type type, const void *text)
{
    return type == ESDM__TYPE_BLOB ? (void *) esdm__blob_dup(text) : strdup(text);
}

/* Copies elements; texts are duplicated unless `move`. false: out of memory, nothing taken. */
static bool
copy_elements(esdm_type type, void *to, const void *from, size_t bytes, bool move)
{
    if (!has_texts(type) || move) {
        memcpy(to, from, bytes);
        return true;
    }
    void **target = to;
    const void *const *source = from;
    size_t n = bytes / sizeof *target;
    for (size_t i = 0; i < n; i++) {
        target[i] = source[i] != NULL ? dup_text(type, source[i]) : NULL;
        if (target[i] == NULL && source[i] != NULL) {
            while (i > 0)
                free(target[--i]);
            return false;
        }
    }
    return true;
}

/* Memory that texts take besides their pointers. */
static size_t
text_bytes_of(esdm_type type, const void *data, size_t bytes)
{
    const void *const *texts = data;
    size_t sum = 0;
    for (size_t i = 0; has_texts(type) && i < bytes / sizeof *texts; i++) {
        size_t length = 0;
        if (type == ESDM__TYPE_BLOB)
            length = esdm__blob_bytes(texts[i]);
        else if (texts[i] != NULL)
            length = strlen(texts[i]);
        sum += length + TEXT_OVERHEAD_BYTES;
    }
    return sum;
}

static bool
reserve(esdm__gather_level *level, size_t bytes)
{
    if (bytes <= level->capacity_bytes)
        return true;
    size_t capacity = level->capacity_bytes > 0 ? level->capacity_bytes : FIRST_CAPACITY_BYTES;
    while (capacity < bytes)
        capacity *= 2;
    uint8_t *data = realloc(level->data, capacity);
    if (data == NULL)
        return false;
    level->data = data;
    level->capacity_bytes = capacity;
    return true;
}

/* The axis along which `next` continues the level with a plain append in C order, or -1. */
static int
continued_axis(const esdm__gather_level *level, const esdm__box *next)
{
    int axis = -1;
    for (uint32_t i = 0; i < next->rank; i++) {
        if (level->lo[i] == next->lo[i] && level->n[i] == next->n[i])
            continue;
        if (axis >= 0 || next->lo[i] != level->lo[i] + level->n[i])
            return -1;
        axis = (int) i;
    }
    for (int i = 0; i < axis; i++) { /* slower axes must be single, or the append interleaves */
        if (level->n[i] != 1)
            return -1;
    }
    return axis;
}

/* Overwrites part of level 0 in place. */
static bool
overwrite(esdm__gather *gather, esdm__gather_level *level, const esdm__box *box, const void *data)
{
    if (has_texts(gather->type))
        return false;
    int64_t to_stride[ESDM_MAX_RANK];
    int64_t from_stride[ESDM_MAX_RANK];
    esdm__dense_strides(box->rank, level->n, to_stride);
    esdm__dense_strides(box->rank, box->n, from_stride);
    uint64_t at = 0;
    for (uint32_t i = 0; i < box->rank; i++)
        at += (box->lo[i] - level->lo[i]) * (uint64_t) to_stride[i];
    esdm__copy_bytes_nd(box->rank, box->n, gather->element_bytes, data, from_stride,
                        level->data + at * gather->element_bytes, to_stride);
    return true;
}

/* Tries to append to (or overwrite in) a level. Texts move when `move`. */
static bool
append_level(esdm__gather *gather, esdm__gather_level *level, const esdm__box *box,
             const void *data, bool move)
{
    esdm__box there;
    int axis = continued_axis(level, box);
    if (axis < 0)
        return !move && esdm__box_contains(box_of(gather, level, &there), box) &&
               overwrite(gather, level, box, data);
    size_t have = (size_t) elements_of(gather, level) * gather->element_bytes;
    size_t more = box_bytes(gather, box);
    size_t texts = text_bytes_of(gather->type, data, more);
    if (have + more + level->text_bytes + texts > gather->limit_bytes ||
        !reserve(level, have + more))
        return false;
    if (!copy_elements(gather->type, level->data + have, data, more, move))
        return false;
    level->text_bytes += texts;
    level->n[axis] += box->n[axis];
    return true;
}

bool
esdm__gather_append(esdm__gather *gather, const esdm__box *box, const void *data)
{
    esdm__gather_level *level = gather->levels;
    return level != NULL && level->used && append_level(gather, level, box, data, false);
}

bool
esdm__gather_continue(esdm__gather *gather, const uint64_t *lo, const uint64_t *n, const void *data)
{
    esdm__gather_level *level = gather->levels;
    if (level == NULL || !level->used || has_texts(gather->type) || gather->rank == 0 ||
        n[0] == 0 || n[0] > CONTINUED_BYTES || lo[0] > INT64_MAX - CONTINUED_BYTES ||
        lo[0] != level->lo[0] + level->n[0])
        return false;
    size_t record = gather->element_bytes;
    for (uint32_t i = 1; i < gather->rank; i++) {
        if (lo[i] != level->lo[i] || n[i] != level->n[i])
            return false;
        record *= (size_t) n[i]; /* what is gathered has as many */
    }
    size_t have = (size_t) level->n[0] * record;
    size_t more = (size_t) n[0] * record;
    if (record > CONTINUED_BYTES || more > CONTINUED_BYTES || have + more > level->capacity_bytes ||
        have + more > gather->limit_bytes)
        return false;
    if (more == sizeof(uint64_t))
        memcpy(level->data + have, data, sizeof(uint64_t)); /* one instruction */
    else
        memcpy(level->data + have, data, more);
    level->n[0] += n[0];
    return true;
}

static esdm_status
emit(esdm__gather *gather, esdm__gather_level *level, esdm__gather_sink sink, void *user,
     esdm_error *err)
{
    esdm__box box;
    if (!level->used)
        return ESDM_OK;
    esdm_status status = sink(user, box_of(gather, level, &box), level->data, err);
    if (status != ESDM_OK)
        return status;
    free_texts(gather, level);
    level->used = false;
    level->text_bytes = 0;
    return status;
}

/* Makes room in level k by pushing its box up, or out when the box above does not take it. */
static esdm_status
push_up(esdm__gather *gather, size_t k, esdm__gather_sink sink, void *user, esdm_error *err)
{
    esdm__gather_level *level = &gather->levels[k];
    if (!level->used)
        return ESDM_OK;
    if (k + 1 == ESDM__GATHER_LEVELS)
        return emit(gather, level, sink, user, err);
    esdm__gather_level *above = &gather->levels[k + 1];
    esdm__box box;
    if (above->used &&
        append_level(gather, above, box_of(gather, level, &box), level->data, true)) {
        level->used = false;
        level->text_bytes = 0;
        return ESDM_OK;
    }
    esdm_status status = push_up(gather, k + 1, sink, user, err);
    if (status != ESDM_OK)
        return status;
    esdm__gather_level empty = *above; /* the buffers change places */
    *above = *level;
    *level = empty;
    level->used = false;
    level->text_bytes = 0;
    return ESDM_OK;
}

esdm_status
esdm__gather_add(esdm__gather *gather, const esdm__box *box, const void *data,
                 esdm__gather_sink sink, void *user, esdm_error *err)
{
    if (esdm__gather_append(gather, box, data))
        return ESDM_OK;
    bool first = gather->levels == NULL;
    bool more = !first && gather->nlevels < ESDM__GATHER_LEVELS && gather->levels[0].used;
    if ((first && !make_levels(gather, box->rank, 1)) ||
        (more && !make_levels(gather, box->rank, ESDM__GATHER_LEVELS)))
        return esdm__error_nomem(err, levels_bytes(ESDM__GATHER_LEVELS, box->rank),
                                 "gathering a write");
    esdm_status status = push_up(gather, 0, sink, user, err);
    if (status != ESDM_OK)
        return status;
    esdm__gather_level *level = &gather->levels[0];
    size_t bytes = box_bytes(gather, box);
    if (!reserve(level, bytes))
        return esdm__error_nomem(err, bytes, "gathering a write");
    if (!copy_elements(gather->type, level->data, data, bytes, false))
        return esdm__error_nomem(err, bytes, "gathering texts");
    memcpy(level->lo, box->lo, box->rank * sizeof *level->lo);
    memcpy(level->n, box->n, box->rank * sizeof *level->n);
    level->used = true;
    level->text_bytes = text_bytes_of(gather->type, data, bytes);
    return ESDM_OK;
}

esdm_status
esdm__gather_flush(esdm__gather *gather, esdm__gather_sink sink, void *user, esdm_error *err)
{
    /* Neighbouring levels join where they can: one fragment instead of up to three. */
    esdm_status status = ESDM_OK;
    if (gather->levels == NULL)
        return ESDM_OK;
    for (size_t k = gather->nlevels - 1u; k-- > 0;) {
        esdm__gather_level *level = &gather->levels[k];
        esdm__gather_level *above = &gather->levels[k + 1];
        esdm__box box;
        if (level->used && above->used &&
            append_level(gather, above, box_of(gather, level, &box), level->data, true)) {
            esdm__gather_level joined = *above;
            *above = *level;
            above->used = false;
            above->text_bytes = 0;
            *level = joined;
        }
    }
    for (size_t k = gather->nlevels; k-- > 0 && status == ESDM_OK;) {
        status = emit(gather, &gather->levels[k], sink, user, err);
        if (status == ESDM_OK)
            clear_level(gather, &gather->levels[k]);
    }
    if (status == ESDM_OK)
        esdm__gather_clear(gather);
    return status;
}

void
esdm__gather_give_up(esdm__gather *gather, void (*lost)(void *user, const esdm__box *box),
                     void *user)
{
    for (size_t k = 0; k < gather->nlevels; k++) {
        esdm__box box;
        if (gather->levels[k].used)
            lost(user, box_of(gather, &gather->levels[k], &box));
    }
    esdm__gather_clear(gather);
}

const esdm__gather_level *
esdm__gather_find(const esdm__gather *gather, const esdm__box *box)
{
    const esdm__gather_level *level = gather->levels;
    esdm__box there;
    if (level == NULL || has_texts(gather->type) || !level->used ||
        !esdm__box_contains(box_of(gather, level, &there), box))
        return NULL;
    return level;
}
