/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Members that are stated stand one after the other, in the order of esdm__quantities. */
#include "model/accuracy_kept.h"

#include <stdlib.h>
#include <string.h>

#include "model/accuracy_quantities.h"

/* Bytes of a member that are kept; of lists, as many as it has. */
static size_t
bytes_of(const esdm__quantity *q, const esdm_accuracy *a)
{
    switch (q->kind) {
    case ESDM__COUNT:
        return sizeof(uint32_t);
    case ESDM__SPEED:
        return sizeof(esdm_speed);
    case ESDM__MODE:
        return sizeof a->mode;
    case ESDM__NUMBERS:
        return a->exact_count * sizeof *a->exact_values;
    case ESDM__REGIONS:
        return a->region_count * sizeof *a->regions;
    default:
        return sizeof(double);
    }
}

/* Where a list has its length; NULL: it is none. */
static uint32_t *
length_of(const esdm__quantity *q, esdm_accuracy *a)
{
    if (q->kind == ESDM__NUMBERS)
        return &a->exact_count;
    return q->kind == ESDM__REGIONS ? &a->region_count : NULL;
}

esdm__kept_accuracy *
esdm__accuracy_keep(const esdm_accuracy *accuracy)
{
    esdm_accuracy from = *accuracy;
    size_t bytes = 0;
    for (size_t i = 0; i < ESDM__QUANTITIES; i++)
        if ((from.stated & esdm__quantities[i].flag) != 0)
            bytes += bytes_of(&esdm__quantities[i], &from) + sizeof(uint32_t);
    esdm__kept_accuracy *kept = malloc(sizeof *kept + bytes);
    if (kept == NULL)
        return NULL;
    kept->stated = from.stated;
    unsigned char *at = kept->members;
    for (size_t i = 0; i < ESDM__QUANTITIES; i++) {
        const esdm__quantity *q = &esdm__quantities[i];
        const uint32_t *length = length_of(q, &from);
        if ((from.stated & q->flag) == 0)
            continue;
        if (length != NULL) {
            memcpy(at, length, sizeof *length);
            at += sizeof *length;
        }
        memcpy(at, (const char *) &from + q->offset, bytes_of(q, &from));
        at += bytes_of(q, &from);
    }
    return kept;
}

void
esdm__accuracy_of_kept(const esdm__kept_accuracy *kept, esdm_accuracy *ret)
{
    esdm_accuracy_init(ret);
    if (kept == NULL)
        return;
    ret->stated = kept->stated;
    const unsigned char *at = kept->members;
    for (size_t i = 0; i < ESDM__QUANTITIES; i++) {
        const esdm__quantity *q = &esdm__quantities[i];
        uint32_t *length = length_of(q, ret);
        if ((kept->stated & q->flag) == 0)
            continue;
        if (length != NULL) {
            memcpy(length, at, sizeof *length);
            at += sizeof *length;
        }
        memcpy((char *) ret + q->offset, at, bytes_of(q, ret));
        at += bytes_of(q, ret);
    }
}
