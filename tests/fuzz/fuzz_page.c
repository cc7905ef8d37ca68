/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Fuzzes index pages: as they are, and with the checksum put right. */

#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "codec/outline.h"
#include "codec/raw_blocks.h"
#include "layout/page.h"
#include "layout/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t
u32_at(const uint8_t *data, size_t at)
{
    uint32_t value;
    memcpy(&value, data + at, sizeof value);
    return value;
}

static void
touch_source(const esdm__fragment *fragment)
{
    const esdm__elsewhere *e = &fragment->elsewhere;
    esdm__foreign foreign;
    esdm__decoding decoding;
    esdm__link link;
    esdm__link_map map;
    if (esdm__foreign_get(e->source, &foreign, NULL) == ESDM_OK)
        (void) strlen(foreign.location);
    if (esdm__link_get(e->source, &link, NULL) == ESDM_OK)
        (void) (strlen(link.container) + strlen(link.dataset));
    if (esdm__decoding_get(e->decoding, &decoding, NULL) == ESDM_OK && decoding.nfilters > 0)
        (void) strlen(decoding.filters[decoding.nfilters - 1].codec);
    (void) !esdm__link_map_get(e->decoding, &map, NULL);
}

/* As who reads a part of the fragment by it. */
static void
touch_outline(const esdm__fragment *fragment, volatile uint8_t *sink)
{
    static const uint8_t data[1 << 20];
    esdm__blocks blocks;
    if (fragment->outline == NULL)
        return;
    *sink = (uint8_t) (fragment->outline[0] + fragment->outline[fragment->outline_bytes - 1]);
    if (fragment->raw_bytes > sizeof data ||
        esdm__raw_blocks_init(fragment->raw_bytes, fragment->head_bytes, &blocks, NULL) !=
            ESDM_OK ||
        !esdm__outline_fits(&blocks, fragment->outline_bytes))
        return;
    (void) !esdm__outline_verify(&blocks, 0, blocks.blocks, fragment->outline, data, NULL);
}

static bool
touch(const esdm__fragment *fragment, void *user)
{
    volatile uint8_t *sink = user;
    if (fragment->pack != NULL)
        *sink = (uint8_t) (strlen(fragment->pack->target) + strlen(fragment->pack->pack));
    else if (esdm__kind_is_elsewhere(fragment->kind))
        touch_source(fragment);
    else if (fragment->stored_bytes > 0)
        *sink = (uint8_t) (fragment->inline_data[0] +
                           fragment->inline_data[fragment->stored_bytes - 1]);
    touch_outline(fragment, sink);
    if (esdm__box_is_empty(&fragment->box))
        abort();
    return true;
}

static void
decode(const uint8_t *data, size_t size, const uint64_t *box, uint64_t raw, uint64_t stored)
{
    uint8_t sink;
    esdm__page *page;
    const esdm_meta_page entry = {
        .page = 1,
        .dataset = 1,
        .records = size >= ESDM__PAGE_HEADER_BYTES ? u32_at(data, 24) : 1,
        .added = 1,
        .absolute = size >= ESDM__PAGE_HEADER_BYTES && (data[18] & 1) != 0,
        .raw_bytes = raw,
        .stored_bytes = stored,
        .rank = size >= ESDM__PAGE_HEADER_BYTES ? u32_at(data, 20) : 1,
        .box = box,
    };
    if (esdm__page_decode(&entry, data, size, &page, NULL) != ESDM_OK)
        return;
    (void) esdm__page_visit(page, touch, &sink);
    esdm__page_unref(page);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* What the directory says comes first, then the page. */
    uint64_t box[2 * ESDM_MAX_RANK] = {0};
    uint64_t sums[2];
    if (size < sizeof sums + 8 * sizeof *box)
        return 0;
    memcpy(sums, data, sizeof sums);
    memcpy(box, data + sizeof sums, 8 * sizeof *box);
    data += sizeof sums + 8 * sizeof *box;
    size -= sizeof sums + 8 * sizeof *box;

    decode(data, size, box, sums[0], sums[1]);
    if (size < ESDM__PAGE_HEADER_BYTES)
        return 0;
    uint8_t *copy = malloc(size);
    if (copy == NULL)
        return 0;
    memcpy(copy, data, size);
    memcpy(copy, "ESDMPAGE", 8);
    uint64_t checksum = esdm__checksum(copy + 16, size - 16);
    memcpy(copy + 8, &checksum, sizeof checksum);
    decode(copy, size, box, sums[0], sums[1]);
    free(copy);
    return 0;
}
