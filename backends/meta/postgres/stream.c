/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Pages that come one by one. A transaction that the server cut off is sent again, which a
 *  stream cannot be: so they are all collected before it begins. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "postgres.h"

/* One block: the box, then the data. */
static bool
copy_page(const esdm_meta_new_page *page, esdm_meta_new_page *ret_page)
{
    size_t box_bytes = (size_t) 2 * page->rank * sizeof *page->box;
    uint8_t *block = malloc(box_bytes + page->bytes + 1);
    if (block == NULL)
        return false;
    if (box_bytes > 0)
        memcpy(block, page->box, box_bytes);
    if (page->bytes > 0)
        memcpy(block + box_bytes, page->data, page->bytes);
    *ret_page = *page;
    ret_page->box = (const uint64_t *) (const void *) block;
    ret_page->data = block + box_bytes;
    return true;
}

static bool
add_page(postgres__stream *stream, const esdm_meta_new_page *page)
{
    if (stream->count == stream->capacity) {
        size_t capacity = stream->capacity == 0 ? 64 : 2 * stream->capacity;
        esdm_meta_new_page *pages = realloc(stream->pages, capacity * sizeof *pages);
        if (pages == NULL)
            return false;
        stream->pages = pages;
        stream->capacity = capacity;
    }
    if (stream->count < stream->borrowed)
        stream->pages[stream->count] = *page;
    else if (!copy_page(page, &stream->pages[stream->count]))
        return false;
    stream->count++;
    return true;
}

esdm_status
postgres__stream_collect(const esdm_meta_commit *commit, postgres__stream *ret_stream,
                         esdm_error *err)
{
    bool room = true;
    esdm_status status = ESDM_OK;
    ret_stream->borrowed = commit->npages;
    for (size_t i = 0; i < commit->npages && room; i++)
        room = add_page(ret_stream, &commit->pages[i]);
    while (status == ESDM_OK && room) {
        const esdm_meta_new_page *page = NULL;
        status = commit->next_page(commit->next_page_user, &page, err);
        if (status == ESDM_OK && page == NULL)
            return ESDM_OK;
        if (status == ESDM_OK)
            room = add_page(ret_stream, page);
    }
    return room ? status
                : esdm__error_nomem(err, ret_stream->count * sizeof *ret_stream->pages,
                                    "the pages of a commit");
}

void
postgres__stream_clear(postgres__stream *stream)
{
    for (size_t i = stream->borrowed; i < stream->count; i++)
        free((void *) stream->pages[i].box);
    free(stream->pages);
    *stream = (postgres__stream){0};
}
