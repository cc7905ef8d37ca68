/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The part of a page that tells where values come from which are in no pack. */
#include <stdlib.h>

#include "base/error.h"
#include "layout/page_parts.h"

/* Shorter than the shortest description with its head. */
#define DESCRIPTION_BYTES_MIN 2u

/* Encoding */

bool
esdm__page_has_kinds(const esdm__page_encoder *e)
{
    for (uint32_t i = 0; i < e->count; i++) {
        if (esdm__page_item(e, i)->kind != ESDM__KIND_STORED)
            return true;
    }
    return false;
}

bool
esdm__page_number_sources(esdm__page_encoder *e)
{
    const esdm__elsewhere *elsewhere = e->records->elsewhere;
    size_t n = 2 * (size_t) e->count;
    const void **pointers = calloc(n, sizeof *pointers);
    e->sources = malloc(n * sizeof(esdm__source *));
    e->source_of = malloc(n * sizeof *e->source_of);
    bool ok = pointers != NULL && e->sources != NULL && e->source_of != NULL;
    for (uint32_t i = 0; ok && elsewhere != NULL && i < e->count; i++) {
        pointers[i] = elsewhere[e->order[i]].source;
        pointers[e->count + i] = elsewhere[e->order[i]].decoding;
    }
    ok = ok && esdm__page_number(pointers, (uint32_t) n, e->source_of, (const void **) e->sources,
                                 &e->nsources);
    free(pointers);
    return ok;
}

static void
put_numbers(esdm__page_encoder *e, const uint32_t *number)
{
    for (uint32_t i = 0; i < e->count; i++)
        e->values[i] = number[i];
    esdm__page_put_column(e);
}

static void
put_checks(esdm__page_encoder *e)
{
    const esdm__elsewhere *elsewhere = e->records->elsewhere;
    for (uint32_t i = 0; i < e->count; i++)
        e->values[i] = elsewhere[e->order[i]].filter_mask;
    esdm__page_put_column(e);
    for (uint32_t i = 0; i < e->count; i++)
        e->values[i] = elsewhere[e->order[i]].check_kind;
    esdm__page_put_column(e);
    for (uint32_t i = 0; i < e->count; i++)
        e->values[i] = elsewhere[e->order[i]].check;
    esdm__page_put_column(e);
}

void
esdm__page_put_kinds(esdm__page_encoder *e)
{
    esdm__buffer_put_varint(&e->body, e->nsources);
    for (uint32_t i = 0; i < e->nsources; i++) {
        esdm__buffer_put_varint(&e->body, e->sources[i]->role);
        esdm__buffer_put_varint(&e->body, e->sources[i]->bytes);
        esdm__buffer_put(&e->body, e->sources[i]->data, e->sources[i]->bytes);
    }
    for (uint32_t i = 0; i < e->count; i++)
        e->values[i] = esdm__page_item(e, i)->kind;
    esdm__page_put_column(e);
    if (e->nsources > 0) {
        put_numbers(e, e->source_of);
        put_numbers(e, e->source_of + e->count);
        put_checks(e);
    }
}

/* Decoding */

static esdm_status
take_sources(esdm__page_decoder *d, esdm_error *err)
{
    esdm__page *page = d->page;
    uint64_t count = esdm__cursor_varint(&d->body);
    size_t left = esdm__cursor_left(&d->body);
    if (d->body.failed || count > 2 * (uint64_t) d->entry->records ||
        count > left / DESCRIPTION_BYTES_MIN)
        return esdm__page_corrupt(d->entry, err, "its number of descriptions is out of range");
    if (count == 0)
        return ESDM_OK;
    page->sources = malloc((size_t) count * sizeof *page->sources);
    page->source_data = malloc(left);
    if (page->sources == NULL || page->source_data == NULL)
        return esdm__error_nomem(err, left, "an index page");
    uint8_t *to = page->source_data;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t role = esdm__cursor_varint(&d->body);
        uint64_t bytes = esdm__cursor_varint(&d->body);
        if (d->body.failed || role > UINT32_MAX || bytes > ESDM__SOURCE_BYTES_MAX)
            return esdm__page_corrupt(d->entry, err, "a description is out of range");
        const uint8_t *from = esdm__cursor_take(&d->body, (size_t) bytes);
        if (from == NULL)
            return esdm__page_corrupt(d->entry, err, "a description is cut off");
        memcpy(to, from, (size_t) bytes);
        page->sources[i] = (esdm__source){(uint32_t) role, (uint32_t) bytes, to};
        to += bytes;
    }
    page->nsources = (uint32_t) count;
    return ESDM_OK;
}

static esdm_status
take_references(esdm__page_decoder *d, bool decodings, esdm_error *err)
{
    esdm__page *page = d->page;
    esdm__records *r = &page->records;
    esdm__column_get(&d->body, d->values, r->count);
    for (uint32_t i = 0; i < r->count; i++) {
        if (d->values[i] > page->nsources)
            return esdm__page_corrupt(d->entry, err, "a record names a description that is absent");
        const esdm__source *source = d->values[i] > 0 ? &page->sources[d->values[i] - 1] : NULL;
        if (decodings)
            r->elsewhere[i].decoding = source;
        else
            r->elsewhere[i].source = source;
    }
    return ESDM_OK;
}

static esdm_status
take_checks(esdm__page_decoder *d, esdm_error *err)
{
    esdm__records *r = &d->page->records;
    bool fits = true;
    esdm__column_get(&d->body, d->values, r->count);
    for (uint32_t i = 0; i < r->count; i++) {
        fits = fits && d->values[i] <= UINT32_MAX;
        r->elsewhere[i].filter_mask = (uint32_t) d->values[i];
    }
    esdm__column_get(&d->body, d->values, r->count);
    for (uint32_t i = 0; i < r->count; i++) {
        fits = fits && d->values[i] <= UINT32_MAX;
        r->elsewhere[i].check_kind = (uint32_t) d->values[i];
    }
    esdm__column_get(&d->body, d->values, r->count);
    for (uint32_t i = 0; i < r->count; i++)
        r->elsewhere[i].check = d->values[i];
    return fits ? ESDM_OK
                : esdm__page_corrupt(d->entry, err, "a filter mask or check is out of range");
}

static bool
has_role(const esdm__source *source, uint32_t role)
{
    return source != NULL && source->role == role;
}

/* Whether a record has what its kind needs. */
static bool
is_complete(uint8_t kind, const esdm__elsewhere *e)
{
    if (!esdm__kind_is_elsewhere(kind))
        return e->source == NULL && e->decoding == NULL;
    if (kind > ESDM__KIND_LINK)
        return true;
    bool foreign = kind == ESDM__KIND_FOREIGN;
    return has_role(e->source, foreign ? ESDM__ROLE_FOREIGN : ESDM__ROLE_LINK) &&
           (e->decoding == NULL ||
            has_role(e->decoding, foreign ? ESDM__ROLE_DECODING : ESDM__ROLE_MAP));
}

esdm_status
esdm__page_take_kinds(esdm__page_decoder *d, esdm_error *err)
{
    static const esdm__elsewhere none;
    esdm__records *r = &d->page->records;
    esdm_status st = take_sources(d, err);
    if (st != ESDM_OK)
        return st;
    esdm__column_get(&d->body, d->values, r->count);
    for (uint32_t i = 0; i < r->count; i++) {
        if (d->values[i] > UINT8_MAX)
            return esdm__page_corrupt(d->entry, err, "the kind of a record is out of range");
        r->items[i].kind = (uint8_t) d->values[i];
    }
    if (d->page->nsources > 0) {
        if (!esdm__records_need_elsewhere(r))
            return esdm__error_nomem(err, r->count * sizeof *r->elsewhere, "an index page");
        st = take_references(d, false, err);
        if (st == ESDM_OK)
            st = take_references(d, true, err);
        if (st == ESDM_OK)
            st = take_checks(d, err);
    }
    for (uint32_t i = 0; i < r->count && st == ESDM_OK; i++) {
        if (!is_complete(r->items[i].kind, r->elsewhere != NULL ? &r->elsewhere[i] : &none))
            st = esdm__page_corrupt(d->entry, err, "a record lacks what its kind needs");
    }
    return st;
}
