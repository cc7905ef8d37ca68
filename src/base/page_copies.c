/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "base/page_copies.h"

#include <stdlib.h>
#include <string.h>

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

bool
esdm__page_copies_add(esdm__page_copies *copies, const esdm_meta_new_page *page)
{
    if (copies->count == copies->capacity) {
        size_t capacity = copies->capacity == 0 ? 64 : 2 * copies->capacity;
        esdm_meta_new_page *pages = realloc(copies->pages, capacity * sizeof *pages);
        if (pages == NULL)
            return false;
        copies->pages = pages;
        copies->capacity = capacity;
    }
    if (copies->count < copies->borrowed)
        copies->pages[copies->count] = *page;
    else if (!copy_page(page, &copies->pages[copies->count]))
        return false;
    copies->count++;
    return true;
}

void
esdm__page_copies_clear(esdm__page_copies *copies)
{
    for (size_t i = copies->borrowed; i < copies->count; i++)
        free((void *) copies->pages[i].box);
    free(copies->pages);
    *copies = (esdm__page_copies){0};
}
