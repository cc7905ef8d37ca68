/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The part of a page that holds statistics. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "layout/page_parts.h"

/* Encoding */

static const esdm__statistics *
statistics_of(const esdm__page_encoder *e, uint32_t i)
{
    return &e->records->statistics[e->order[i]];
}

bool
esdm__page_has_statistics(const esdm__page_encoder *e)
{
    for (uint32_t i = 0; e->records->statistics != NULL && i < e->count; i++) {
        if (statistics_of(e, i)->class != ESDM__CLASS_NONE)
            return true;
    }
    return false;
}

/* Minima, maxima or sums one after the other. */
static void
put_numbers(esdm__page_encoder *e, int part)
{
    uint8_t *to = esdm__buffer_reserve(&e->body, (size_t) e->count * sizeof(esdm__number));
    uint8_t *at = to;
    if (to == NULL)
        return;
    for (uint32_t i = 0; i < e->count; i++) {
        const esdm__statistics *s = statistics_of(e, i);
        const esdm__number *number = part == 0 ? &s->min : &s->max;
        if (s->class == ESDM__CLASS_NONE)
            continue;
        if (part < 2 && s->class == ESDM__CLASS_FLOAT) {
            const float single = (float) number->f;
            memcpy(at, &single, sizeof single);
            at += sizeof single;
        } else {
            memcpy(at, part < 2 ? (const void *) number : &s->sum, sizeof *number);
            at += sizeof *number;
        }
    }
    e->body.bytes += (size_t) (at - to);
}

void
esdm__page_put_statistics(esdm__page_encoder *e)
{
    for (uint32_t i = 0; i < e->count; i++)
        e->values[i] = statistics_of(e, i)->class;
    esdm__page_put_column(e);
    for (uint32_t i = 0; i < e->count; i++)
        e->values[i] = statistics_of(e, i)->valid;
    esdm__page_put_column(e);
    for (uint32_t i = 0; i < e->count; i++)
        e->values[i] = statistics_of(e, i)->rule;
    esdm__page_put_column(e);
    for (int part = 0; part < 3; part++)
        put_numbers(e, part);
}

/* Decoding */

/* How a number is stored in a part: 4 bytes or 8, or none. */
static size_t
number_bytes(const esdm__statistics *s, int part)
{
    if (s->class == ESDM__CLASS_NONE)
        return 0;
    return part < 2 && s->class == ESDM__CLASS_FLOAT ? sizeof(float) : sizeof(esdm__number);
}

static void
take_numbers(esdm__page_decoder *d, int part)
{
    esdm__records *r = &d->page->records;
    size_t all = 0;
    for (uint32_t i = 0; i < r->count; i++)
        all += number_bytes(&r->statistics[i], part);
    const uint8_t *from = esdm__cursor_take(&d->body, all);
    for (uint32_t i = 0; from != NULL && i < r->count; i++) {
        esdm__statistics *s = &r->statistics[i];
        esdm__number *number = part == 0 ? &s->min : &s->max;
        size_t bytes = number_bytes(s, part);
        float single;
        if (bytes == sizeof single) {
            memcpy(&single, from, sizeof single);
            number->f = (double) single;
        } else if (bytes > 0) {
            memcpy(part < 2 ? (void *) number : &s->sum, from, bytes);
        }
        from += bytes;
    }
}

/* Minimum and maximum the right way round: else it would say of values that they cannot be. */
static bool
is_sound(const esdm__statistics *s)
{
    if (s->class == ESDM__CLASS_NONE || s->valid == 0)
        return true;
    if (s->class == ESDM__CLASS_SIGNED)
        return s->min.i <= s->max.i;
    return s->class == ESDM__CLASS_UNSIGNED ? s->min.u <= s->max.u : s->min.f <= s->max.f;
}

esdm_status
esdm__page_take_statistics(esdm__page_decoder *d, esdm_error *err)
{
    esdm__records *r = &d->page->records;
    if (!esdm__records_need_statistics(r))
        return esdm__error_nomem(err, r->count * sizeof *r->statistics, "an index page");
    esdm__column_get(&d->body, d->values, r->count);
    for (uint32_t i = 0; i < r->count; i++) {
        if (d->values[i] > ESDM__CLASS_DOUBLE)
            return esdm__page_corrupt(d->entry, err, "statistics are of an unknown class");
        r->statistics[i].class = (uint8_t) d->values[i];
    }
    esdm__column_get(&d->body, d->values, r->count);
    for (uint32_t i = 0; i < r->count; i++)
        r->statistics[i].valid = d->values[i];
    esdm__column_get(&d->body, d->values, r->count);
    for (uint32_t i = 0; i < r->count; i++) {
        if (d->values[i] > UINT32_MAX)
            return esdm__page_corrupt(d->entry, err, "a rule of statistics is out of range");
        r->statistics[i].rule = (uint32_t) d->values[i];
    }
    for (int part = 0; part < 3; part++)
        take_numbers(d, part);
    for (uint32_t i = 0; i < r->count && !d->body.failed; i++) {
        if (!is_sound(&r->statistics[i]))
            return esdm__page_corrupt(d->entry, err, "a minimum is above its maximum");
    }
    return d->body.failed ? esdm__page_corrupt(d->entry, err, "its statistics are cut off")
                          : ESDM_OK;
}
