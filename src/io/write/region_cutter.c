/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/write/region_cutter.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* Bytes of a piece at least: smaller fragments cost more by their heads and records than loose
 * tolerances save. */
#define LEAST_BYTES 2048u
/* Pieces of one box that wait for being cut: one for each edge of a region, and more. */
#define PIECES 128u

esdm_status
esdm__region_cutter_init(esdm__region_cutter *cutter, const esdm__layout *layout,
                         const esdm__box *box, const esdm__region_map *map,
                         const esdm__transfer *content, esdm_error *err)
{
    const uint64_t each = layout->element_bytes > 0 ? layout->element_bytes : 1;
    memset(cutter, 0, sizeof *cutter);
    esdm__cutter_init(&cutter->cutter, layout, box);
    cutter->map = map;
    cutter->least = LEAST_BYTES / each + 1;
    if (content != NULL) {
        cutter->content = malloc(sizeof *cutter->content);
        return cutter->content != NULL
                   ? esdm__content_cutter_init(cutter->content, content, box, err)
                   : esdm__error_nomem(err, sizeof *cutter->content, "a write");
    }
    if (map == NULL)
        return ESDM_OK;
    cutter->pieces = malloc(PIECES * sizeof *cutter->pieces);
    return cutter->pieces != NULL
               ? ESDM_OK
               : esdm__error_nomem(err, PIECES * sizeof *cutter->pieces, "a write");
}

bool
esdm__region_cutter_next(esdm__region_cutter *cutter, esdm__box *ret_fragment)
{
    if (cutter->content != NULL)
        return esdm__content_cutter_next(cutter->content, ret_fragment);
    if (cutter->npieces == 0 && !esdm__cutter_next(&cutter->cutter, ret_fragment))
        return false;
    if (cutter->map == NULL)
        return true;
    if (cutter->npieces > 0)
        esdm__box_copy(ret_fragment, &cutter->pieces[--cutter->npieces]);
    esdm__box first, rest;
    while (cutter->npieces < PIECES &&
           esdm__region_map_cut(cutter->map, ret_fragment, cutter->least, &first, &rest)) {
        esdm__box_copy(&cutter->pieces[cutter->npieces++], &rest);
        esdm__box_copy(ret_fragment, &first);
    }
    return true;
}

void
esdm__region_cutter_clear(esdm__region_cutter *cutter)
{
    if (cutter->content != NULL)
        esdm__content_cutter_clear(cutter->content);
    free(cutter->content);
    cutter->content = NULL;
    free(cutter->pieces);
    cutter->pieces = NULL;
}
