/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Whether a copy of a container in another metadata store is what was copied. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "site/catalogue.h"

static bool
same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool
same_record(const esdm_meta_container *a, const esdm_meta_container *b)
{
    return strcmp(a->uuid, b->uuid) == 0 && a->snapshot == b->snapshot &&
           a->structure == b->structure && a->created_ns == b->created_ns &&
           a->modified_ns == b->modified_ns && a->raw_bytes == b->raw_bytes &&
           a->stored_bytes == b->stored_bytes && a->fragments == b->fragments &&
           a->datasets == b->datasets;
}

static bool
same_snapshot(const esdm_meta_import_snapshot *a, const esdm_meta_import_snapshot *b)
{
    if (a->snapshot != b->snapshot || a->parent != b->parent || a->structure != b->structure ||
        a->time_ns != b->time_ns || strcmp(a->writer, b->writer) != 0 ||
        strcmp(a->message, b->message) != 0 || a->nlengths != b->nlengths ||
        (a->document == NULL) != (b->document == NULL) || a->document_bytes != b->document_bytes)
        return false;
    for (size_t i = 0; i < a->nlengths; i++) {
        if (a->lengths[i].dimension != b->lengths[i].dimension ||
            a->lengths[i].length != b->lengths[i].length)
            return false;
    }
    return a->document == NULL || memcmp(a->document, b->document, a->document_bytes) == 0;
}

static bool
same_entry(const esdm__whole_page *a, const esdm__whole_page *b)
{
    const esdm_meta_new_page *x = &a->entry;
    const esdm_meta_new_page *y = &b->entry;
    return x->dataset == y->dataset && x->records == y->records && x->level == y->level &&
           x->absolute == y->absolute && x->raw_bytes == y->raw_bytes &&
           x->stored_bytes == y->stored_bytes && x->rank == y->rank && a->added == b->added &&
           a->removed == b->removed &&
           memcmp(x->box, y->box, 2 * (size_t) x->rank * sizeof *x->box) == 0;
}

/* A number that is none is the same as another such. */
static bool
same_attribute(const esdm_meta_attribute *a, const esdm_meta_attribute *b)
{
    bool none = a->number != a->number && b->number != b->number;
    return a->dataset == b->dataset && same_text(a->dataset_path, b->dataset_path) &&
           same_text(a->name, b->name) && same_text(a->text, b->text) &&
           a->has_number == b->has_number && (!a->has_number || none || a->number == b->number);
}

static bool
same_extents(const esdm__whole *a, const esdm__whole *b)
{
    bool same = a->nextents == b->nextents;
    for (size_t i = 0; same && i < a->nextents; i++) {
        const esdm_meta_extent *x = &a->extents[i], *y = &b->extents[i];
        same = x->dataset == y->dataset && strcmp(x->name, y->name) == 0 &&
               x->has_number == y->has_number &&
               (x->has_number ? x->number == y->number : strcmp(x->text, y->text) == 0);
    }
    return same;
}

static bool
same_ties(const esdm__whole *a, const esdm__whole *b)
{
    bool same = a->nshares == b->nshares && a->ntags == b->ntags;
    for (size_t i = 0; i < a->nshares && same; i++)
        same = strcmp(a->shares[i], b->shares[i]) == 0;
    for (size_t i = 0; i < a->ntags && same; i++)
        same = strcmp(a->tags[i].name, b->tags[i].name) == 0 &&
               strcmp(a->tags[i].author, b->tags[i].author) == 0 &&
               a->tags[i].snapshot == b->tags[i].snapshot &&
               a->tags[i].created_ns == b->tags[i].created_ns;
    return same;
}

static esdm_status
compare_bytes(const esdm__catalogue *from, uint64_t a, const esdm__catalogue *to, uint64_t b,
              bool *ret_same, esdm_error *err)
{
    void *data[2] = {NULL, NULL};
    size_t bytes[2] = {0, 0};
    esdm_status status = from->plugin->page_load(from->store, a, &data[0], &bytes[0], err);
    if (status == ESDM_OK)
        status = to->plugin->page_load(to->store, b, &data[1], &bytes[1], err);
    *ret_same =
        status == ESDM_OK && bytes[0] == bytes[1] && memcmp(data[0], data[1], bytes[0]) == 0;
    free(data[0]);
    free(data[1]);
    return status;
}

static esdm_status
differs(const esdm__whole *whole, const char *what, esdm_error *err)
{
    return esdm__error_set(err, ESDM_ECORRUPT, "the copy of container '%.200s' differs: %s",
                           whole->name, what);
}

esdm_status
esdm__whole_compare(const esdm__whole *a, const esdm__catalogue *from, const esdm__whole *b,
                    const esdm__catalogue *to, esdm_error *err)
{
    if (!same_record(&a->record, &b->record))
        return differs(a, "its record", err);
    bool same = a->nsnapshots == b->nsnapshots;
    for (size_t i = 0; same && i < a->nsnapshots; i++)
        same = same_snapshot(&a->snapshots[i], &b->snapshots[i]);
    if (!same)
        return differs(a, "a snapshot", err);
    same = a->nattributes == b->nattributes;
    for (size_t i = 0; same && i < a->nattributes; i++)
        same = same_attribute(&a->attributes[i], &b->attributes[i]);
    if (!same)
        return differs(a, "the index of its attributes", err);
    if (a->has_extents && b->has_extents && !same_extents(a, b))
        return differs(a, "the index of its times, boxes and values", err);
    if (!same_ties(a, b))
        return differs(a, "what it shares, or the names of its snapshots", err);
    same = a->npages == b->npages;
    for (size_t i = 0; same && i < a->npages; i++)
        same = same_entry(&a->pages[i], &b->pages[i]);
    for (size_t i = 0; same && i < a->npages; i++) {
        esdm_status status =
            compare_bytes(from, a->pages[i].number, to, b->pages[i].number, &same, err);
        if (status != ESDM_OK)
            return status;
    }
    return same ? ESDM_OK : differs(a, "an index page", err);
}
