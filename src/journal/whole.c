/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "journal/whole.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "meta/attribute_index.h"
#include "model/container.h"

static esdm_status
no_memory(size_t bytes, esdm_error *err)
{
    return esdm__error_nomem(err, bytes, "the record of a container");
}

bool
esdm__whole_copy_page(esdm__whole *whole, const esdm_meta_new_page *entry, uint64_t added,
                      uint64_t removed)
{
    uint64_t number = whole->npages > 0 ? whole->pages[whole->npages - 1].number + 1 : 1;
    void *data = malloc(entry->bytes + 1);
    if (data == NULL || !esdm__array_grow(&whole->pages, whole->npages, sizeof *whole->pages)) {
        free((void *) entry->box);
        free(data);
        return false;
    }
    memcpy(data, entry->data, entry->bytes);
    esdm__whole_page *page = &whole->pages[whole->npages++];
    *page = (esdm__whole_page){.number = number,
                               .entry = *entry,
                               .added = added,
                               .removed = removed,
                               .data = data,
                               .bytes = entry->bytes};
    page->entry.data = NULL;
    page->entry.bytes = 0;
    return true;
}

/* ---- out ------------------------------------------------------------------------------------ */

static void
put_snapshot(esdm__buffer *out, const esdm_meta_import_snapshot *one)
{
    const uint64_t numbers[] = {one->snapshot, one->parent, one->structure, one->time_ns};
    for (size_t i = 0; i < 4; i++)
        esdm__buffer_put_varint(out, numbers[i]);
    esdm__journal_put_text(out, one->writer);
    esdm__journal_put_text(out, one->message);
    esdm__buffer_put_u8(out, one->document != NULL);
    if (one->document != NULL)
        esdm__journal_put_blob(out, one->document, one->document_bytes);
    esdm__journal_put_lengths(out, one->lengths, one->nlengths);
}

static esdm_status
put_page(esdm__buffer *out, const esdm__catalogue *from, const esdm__whole_page *page,
         esdm_error *err)
{
    void *loaded = NULL;
    esdm_meta_new_page entry = page->entry;
    entry.data = page->data;
    entry.bytes = page->bytes;
    if (page->data == NULL) {
        esdm_status status =
            from->plugin->page_load(from->store, page->number, &loaded, &entry.bytes, err);
        if (status != ESDM_OK)
            return status;
        entry.data = loaded;
    }
    esdm__journal_put_page(out, &entry, page->added, page->removed);
    free(loaded);
    return ESDM_OK;
}

static void
put_ties(esdm__buffer *out, const esdm__whole *whole)
{
    esdm__buffer_put_varint(out, whole->nshares);
    for (size_t i = 0; i < whole->nshares; i++)
        esdm__journal_put_text(out, whole->shares[i]);
    esdm__buffer_put_varint(out, whole->ntags);
    for (size_t i = 0; i < whole->ntags; i++) {
        const esdm_meta_tag *tag = &whole->tags[i];
        esdm__journal_put_text(out, tag->name);
        esdm__buffer_put_varint(out, tag->snapshot);
        esdm__buffer_put_varint(out, tag->created_ns);
        esdm__journal_put_text(out, tag->author);
    }
}

static esdm_status
put_body(esdm__buffer *out, const esdm__catalogue *from, const esdm__whole *whole, esdm_error *err)
{
    const esdm_meta_container *record = &whole->record;
    const uint64_t numbers[] = {record->snapshot, record->structure, record->created_ns,
                                record->datasets};
    esdm__journal_put_text(out, whole->name);
    for (size_t i = 0; i < 4; i++)
        esdm__buffer_put_varint(out, numbers[i]);
    esdm__buffer_put_varint(out, whole->nsnapshots);
    for (size_t i = 0; i < whole->nsnapshots; i++)
        put_snapshot(out, &whole->snapshots[i]);
    esdm__buffer_put_varint(out, whole->npages);
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < whole->npages && status == ESDM_OK; i++)
        status = put_page(out, from, &whole->pages[i], err);
    put_ties(out, whole);
    return status;
}

static esdm_status
finish(esdm__buffer *out, size_t start, esdm_status status, esdm_error *err)
{
    if (status != ESDM_OK) {
        out->bytes = start;
        return status;
    }
    esdm__journal_finish(out, start);
    return out->failed ? no_memory(out->bytes, err) : ESDM_OK;
}

esdm_status
esdm__journal_put_whole(esdm__buffer *out, const esdm__catalogue *from, const esdm__whole *whole,
                        esdm_error *err)
{
    const esdm_meta_container *record = &whole->record;
    size_t start = esdm__journal_start(out, ESDM__JOURNAL_WHOLE, record->modified_ns, record->uuid);
    return finish(out, start, put_body(out, from, whole, err), err);
}

esdm_status
esdm__journal_put_clone(esdm__buffer *out, const esdm__catalogue *from, const esdm__whole *whole,
                        const esdm_meta_clone *clone, const esdm_meta_committed *made,
                        esdm_error *err)
{
    size_t start = esdm__journal_start(out, ESDM__JOURNAL_CLONE, made->time_ns, clone->uuid);
    esdm__buffer_put_varint(out, made->snapshot);
    esdm__journal_put_text(out, clone->name);
    esdm__buffer_put_u8(out, clone->replace);
    esdm__journal_put_text(out, clone->replace ? clone->keep_as : NULL);
    return finish(out, start, put_body(out, from, whole, err), err);
}

/* ---- in ------------------------------------------------------------------------------------- */

static bool
take_snapshot(esdm__cursor *body, esdm__whole *whole)
{
    if (!esdm__array_grow(&whole->snapshots, whole->nsnapshots, sizeof *whole->snapshots))
        return false;
    esdm_meta_import_snapshot *one = &whole->snapshots[whole->nsnapshots++];
    *one = (esdm_meta_import_snapshot){.snapshot = esdm__cursor_varint(body)};
    one->parent = esdm__cursor_varint(body);
    one->structure = esdm__cursor_varint(body);
    one->time_ns = esdm__cursor_varint(body);
    one->writer = esdm__journal_text(body);
    one->message = esdm__journal_text(body);
    if (esdm__cursor_u8(body) != 0) {
        one->document = esdm__journal_text(body);
        one->document_bytes = one->document != NULL ? strlen(one->document) : 0;
    }
    esdm_meta_length *lengths = NULL;
    bool good = esdm__journal_lengths(body, &lengths, &one->nlengths);
    one->lengths = lengths;
    return good && !body->failed;
}

static bool
take_page(esdm__cursor *body, esdm__whole *whole)
{
    esdm__journal_page page;
    return esdm__journal_page_take(body, &page) &&
           esdm__whole_copy_page(whole, &page.page, page.added, page.removed);
}

/* Older records end behind the pages. */
static bool
take_ties(esdm__cursor *body, esdm__whole *whole)
{
    bool good = true;
    uint64_t count = esdm__cursor_left(body) > 0 ? esdm__cursor_varint(body) : 0;
    for (uint64_t i = 0; i < count && good; i++) {
        char *uuid = esdm__journal_text(body);
        good = uuid != NULL && esdm__whole_share(whole, uuid);
        free(uuid);
    }
    count = good && esdm__cursor_left(body) > 0 ? esdm__cursor_varint(body) : 0;
    for (uint64_t i = 0; i < count && good; i++) {
        char *name = esdm__journal_text(body);
        esdm_meta_tag tag = {.name = name, .snapshot = esdm__cursor_varint(body)};
        tag.created_ns = esdm__cursor_varint(body);
        char *author = esdm__journal_text(body);
        tag.author = author;
        good = !body->failed && esdm__whole_tag(whole, &tag);
        free(name);
        free(author);
    }
    return good;
}

static esdm_status
take_body(const esdm__journal_record *record, esdm__cursor *body, esdm__whole *ret_whole,
          esdm_error *err)
{
    esdm__whole whole = {.name = esdm__journal_text(body)};
    memcpy(whole.record.uuid, record->uuid, sizeof whole.record.uuid);
    whole.record.modified_ns = record->time_ns;
    whole.record.snapshot = esdm__cursor_varint(body);
    whole.record.structure = esdm__cursor_varint(body);
    whole.record.created_ns = esdm__cursor_varint(body);
    whole.record.datasets = (uint32_t) esdm__cursor_varint(body);
    bool good = !body->failed;
    uint64_t count = good ? esdm__cursor_varint(body) : 0;
    for (uint64_t i = 0; i < count && good; i++)
        good = take_snapshot(body, &whole);
    count = good ? esdm__cursor_varint(body) : 0;
    for (uint64_t i = 0; i < count && good; i++)
        good = take_page(body, &whole);
    good = good && take_ties(body, &whole);
    if (!good || body->failed) {
        esdm__whole_clear(&whole);
        return esdm__error_set(err, ESDM_ECORRUPT, "the record of a container is damaged");
    }
    *ret_whole = whole;
    return ESDM_OK;
}

esdm_status
esdm__journal_take_whole(const esdm__journal_record *record, esdm__whole *ret_whole,
                         esdm_error *err)
{
    esdm__cursor body = record->body;
    return take_body(record, &body, ret_whole, err);
}

void
esdm__journal_cloned_clear(esdm__journal_cloned *clone)
{
    free(clone->name);
    free(clone->keep_as);
    *clone = (esdm__journal_cloned){0};
}

esdm_status
esdm__journal_take_clone(const esdm__journal_record *record, esdm__journal_cloned *ret_clone,
                         esdm__whole *ret_whole, esdm_error *err)
{
    esdm__cursor body = record->body;
    esdm__journal_cloned clone = {.snapshot = esdm__cursor_varint(&body)};
    clone.name = esdm__journal_text(&body);
    clone.replaces = esdm__cursor_u8(&body) != 0;
    clone.keep_as = esdm__journal_text(&body);
    esdm_status status = ESDM_OK;
    if (body.failed || clone.name == NULL || clone.keep_as == NULL)
        status = esdm__error_set(err, ESDM_ECORRUPT, "the record of a clone is damaged");
    if (status == ESDM_OK && ret_whole != NULL)
        status = take_body(record, &body, ret_whole, err);
    if (status != ESDM_OK)
        esdm__journal_cloned_clear(&clone);
    else
        *ret_clone = clone;
    return status;
}

/* ---- the attribute index -------------------------------------------------------------------- */

static bool
copy_attribute(esdm__whole *whole, const esdm_meta_attribute *from)
{
    if (!esdm__array_grow(&whole->attributes, whole->nattributes, sizeof *whole->attributes))
        return false;
    esdm_meta_attribute *to = &whole->attributes[whole->nattributes++];
    *to = *from;
    to->name = strdup(from->name);
    to->dataset_path = from->dataset_path != NULL ? strdup(from->dataset_path) : NULL;
    to->text = from->text != NULL ? strdup(from->text) : NULL;
    return to->name != NULL && (to->dataset_path != NULL) == (from->dataset_path != NULL) &&
           (to->text != NULL) == (from->text != NULL);
}

static void
clear_attributes(esdm__whole *whole)
{
    for (size_t i = 0; i < whole->nattributes; i++) {
        free((void *) whole->attributes[i].name);
        free((void *) whole->attributes[i].dataset_path);
        free((void *) whole->attributes[i].text);
    }
    free(whole->attributes);
    whole->attributes = NULL;
    whole->nattributes = 0;
}

esdm_status
esdm__whole_index(esdm__whole *whole, esdm_error *err)
{
    const esdm_meta_import_snapshot *with = NULL;
    for (size_t i = 0; i < whole->nsnapshots; i++) {
        if (whole->snapshots[i].document != NULL)
            with = &whole->snapshots[i];
    }
    clear_attributes(whole);
    if (with == NULL)
        return esdm__error_set(err, ESDM_ECORRUPT, "its structure is missing");
    esdm_container *model = esdm__container_new(whole->name);
    if (model == NULL)
        return no_memory(sizeof *model, err);
    esdm__attribute_index index = {0};
    esdm_status status = esdm__document_read(with->document, with->document_bytes, model, err);
    if (status == ESDM_OK)
        status = esdm__attribute_index_make(model, &index, err);
    bool good = true;
    for (size_t i = 0; i < index.count && status == ESDM_OK && good; i++)
        good = copy_attribute(whole, &index.entries[i]);
    if (!good)
        status = no_memory(index.count * sizeof *whole->attributes, err);
    esdm__attribute_index_clear(&index);
    esdm__container_free(model);
    return status;
}
