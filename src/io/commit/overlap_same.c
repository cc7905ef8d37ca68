/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Whether two fragments have the same elements where they overlap. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/commit/overlap.h"
#include "io/encode/strings.h"
#include "io/read/fetch.h"

/* Of larger fragments the answer would cost too much. */
#define MOST_BYTES (UINT64_C(16) << 20)

typedef struct side {
    const esdm__fragment *fragment;
    const uint8_t *raw;
    uint8_t *owned;
    esdm__strings_view texts; /* unless elements are of one size */
} side;

/* From the first target that gives it. */
static bool
load(esdm_session *session, side *s)
{
    const esdm__fragment *fragment = s->fragment;
    esdm__sources sources;
    s->raw = fragment->inline_data;
    if (esdm__kind_is_elsewhere(fragment->kind))
        return false; /* rare enough: they count as different */
    if (fragment->pack == NULL)
        return s->raw != NULL;
    if (fragment->raw_bytes > MOST_BYTES || fragment->raw_bytes == 0 ||
        esdm__sources_of(session, fragment->pack, &sources, NULL) != ESDM_OK)
        return false;
    s->raw = s->owned = malloc((size_t) fragment->raw_bytes);
    if (s->owned == NULL)
        return false;
    for (size_t i = 0;; i++) {
        esdm_error why = {0};
        esdm_status status = esdm__fetch_direct(session, fragment, sources.targets[i], NULL, 0,
                                                fragment->raw_bytes, s->owned, &why);
        if (!esdm__sources_go_on(&sources, i, status))
            return status == ESDM_OK;
    }
}

/* Loads and looks whether it holds what it should. @param element 0: texts. */
static bool
prepare(esdm_session *session, side *s, size_t element)
{
    uint64_t n = esdm__fragment_elements(s->fragment);
    if (s->fragment->strided || (element > 0 && n != s->fragment->raw_bytes / element))
        return false;
    return load(session, s) &&
           (element > 0 || esdm__strings_open(s->raw, (size_t) s->fragment->raw_bytes, n, &s->texts,
                                              NULL) == ESDM_OK);
}

static bool
same_texts(const side *a, uint64_t i, const side *b, uint64_t j)
{
    uint64_t bytes = a->texts.offsets[i + 1] - a->texts.offsets[i];
    return memcmp(a->raw + 4 * i, b->raw + 4 * j, 4) == 0 && /* lengths; one stands for NULL */
           bytes == b->texts.offsets[j + 1] - b->texts.offsets[j] &&
           memcmp(a->raw + a->texts.offsets[i], b->raw + b->texts.offsets[j], (size_t) bytes) == 0;
}

/* Number of an element within a fragment. */
static uint64_t
place_of(const side *s, const uint64_t *at)
{
    const esdm__box *box = &s->fragment->box;
    uint64_t place = 0;
    if (s->fragment->kind == ESDM__KIND_CONSTANT)
        return 0;
    for (uint32_t d = 0; d < box->rank; d++)
        place = place * box->n[d] + (at[d] - box->lo[d]);
    return place;
}

static bool
same_elements(const side *a, const side *b, size_t element, const uint64_t *common)
{
    uint32_t rank = a->fragment->box.rank;
    uint64_t at[ESDM_MAX_RANK];
    memcpy(at, common, rank * sizeof *at);
    for (;;) {
        uint64_t i = place_of(a, at);
        uint64_t j = place_of(b, at);
        bool same = element > 0 ? memcmp(a->raw + i * element, b->raw + j * element, element) == 0
                                : same_texts(a, i, b, j);
        if (!same)
            return false;
        uint32_t axis = rank;
        while (axis > 0 && ++at[axis - 1] == common[rank + axis - 1]) {
            at[axis - 1] = common[axis - 1];
            axis--;
        }
        if (axis == 0)
            return true;
    }
}

bool
esdm__overlap_is_same(esdm_session *session, esdm_type type, const esdm__fragment *ours,
                      const esdm__fragment *theirs, const uint64_t *common)
{
    side a = {.fragment = ours};
    side b = {.fragment = theirs};
    size_t element = type == ESDM_TYPE_STRING ? 0 : esdm_type_size(type);
    bool same = (element > 0 || type == ESDM_TYPE_STRING) && prepare(session, &a, element) &&
                prepare(session, &b, element) && same_elements(&a, &b, element, common);
    esdm__strings_close(&a.texts);
    esdm__strings_close(&b.texts);
    free(a.owned);
    free(b.owned);
    return same;
}
