/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/packs/page_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

bool
esdm__page_list_add(esdm__page_list *list, const esdm_meta_page *page)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity > 0 ? 2 * list->capacity : 16;
        void *entries = realloc(list->entries, capacity * sizeof *list->entries);
        if (entries != NULL)
            list->entries = entries;
        void *boxes = realloc(list->boxes, capacity * sizeof *list->boxes);
        if (boxes != NULL)
            list->boxes = boxes;
        list->failed = entries == NULL || boxes == NULL;
        if (list->failed)
            return false;
        list->capacity = capacity;
    }
    uint32_t rank = page->rank <= ESDM_MAX_RANK ? page->rank : 0; /* decoding refuses others */
    list->entries[list->count] = *page;
    memcpy(list->boxes[list->count], page->box, (size_t) 2 * rank * sizeof(uint64_t));
    list->count++;
    return true;
}

static bool
note_page(const esdm_meta_page *page, void *user)
{
    return esdm__page_list_add(user, page);
}

esdm_status
esdm__page_list_load(const esdm_session *session, uint64_t container, uint64_t snapshot,
                     uint32_t dataset, esdm__page_list *ret_list, esdm_error *err)
{
    esdm_status status = session->meta->page_list(session->store, container, snapshot, dataset,
                                                  note_page, ret_list, err);
    if (status == ESDM_OK && ret_list->failed)
        status =
            esdm__error_nomem(err, ret_list->count * sizeof *ret_list->boxes, "the index pages");
    return status;
}

esdm__page_sums
esdm__page_list_sums(const esdm__page_list *list)
{
    esdm__page_sums sums = {0};
    for (size_t i = 0; i < list->count; i++) {
        sums.fragments += list->entries[i].records;
        sums.raw_bytes += list->entries[i].raw_bytes;
        sums.stored_bytes += list->entries[i].stored_bytes;
    }
    return sums;
}

bool
esdm__page_sums_agree(const esdm__page_sums *sums, const esdm_meta_container *record)
{
    return sums->fragments == record->fragments && sums->raw_bytes == record->raw_bytes &&
           sums->stored_bytes == record->stored_bytes;
}

void
esdm__page_list_clear(esdm__page_list *list)
{
    free(list->entries);
    free(list->boxes);
    *list = (esdm__page_list){0};
}

esdm_meta_page
esdm__page_list_at(const esdm__page_list *list, size_t i)
{
    esdm_meta_page entry = list->entries[i];
    entry.box = list->boxes[i];
    return entry;
}

esdm_status
esdm__page_fetch(esdm_session *session, const esdm_meta_page *entry, esdm__page **ret_page,
                 esdm_error *err)
{
    void *data = NULL;
    size_t bytes = 0;
    esdm_status status = session->meta->page_load(session->store, entry->page, &data, &bytes, err);
    if (status == ESDM_OK)
        status = esdm__page_decode(entry, data, bytes, ret_page, err);
    free(data);
    return status;
}

/* @param ret_passed the page is none that is visited: the walk goes on. */
static esdm_status
fetch_next(esdm_session *session, esdm__page_walk *walk, const esdm_meta_page *entry,
           esdm__page **ret_page, bool *ret_passed, esdm_error *err)
{
    esdm_error why = {0};
    *ret_passed = entry->added <= walk->after && walk->after > 0;
    if (*ret_passed)
        return ESDM_OK;
    esdm_status status = esdm__page_fetch(session, entry, ret_page, &why);
    *ret_passed =
        status != ESDM_OK && (status == ESDM_ENOENT ? walk->pass_gone : walk->pass_unread);
    walk->gone |= *ret_passed && status == ESDM_ENOENT;
    if (*ret_passed)
        return ESDM_OK;
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}

esdm_status
esdm__pages_walk(esdm_session *session, esdm__page_walk *walk, esdm_error *err)
{
    esdm__page_list pages = {0};
    walk->gone = false;
    esdm_status status =
        esdm__page_list_load(session, walk->container, walk->snapshot, walk->dataset, &pages, err);
    for (size_t i = 0; i < pages.count && status == ESDM_OK; i++) {
        const esdm_meta_page entry = esdm__page_list_at(&pages, i);
        esdm__page *page = NULL;
        bool passed = false;
        status = fetch_next(session, walk, &entry, &page, &passed, err);
        if (status == ESDM_OK && !passed)
            status = walk->visit(walk->user, &entry, page, err);
        esdm__page_unref(page);
    }
    esdm__page_list_clear(&pages);
    return status;
}

void
esdm__pack_writer(const char *name, char ret_writer[ESDM__UUID_BYTES])
{
    ret_writer[0] = '\0';
    if (strlen(name) <= ESDM__UUID_DIGITS || name[ESDM__UUID_DIGITS] != '-')
        return;
    const char *writer = name + ESDM__UUID_BYTES;
    size_t digits = strspn(writer, "0123456789abcdef");
    if (digits < 8 || digits >= ESDM__UUID_BYTES)
        return;
    memcpy(ret_writer, writer, digits);
    ret_writer[digits] = '\0';
}
