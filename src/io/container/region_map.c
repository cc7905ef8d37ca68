/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/container/region_map.h"

#include <stdlib.h>
#include <string.h>

/* Cells of a table, about: a coarser one counts points near a region as inside. */
#define CELLS_MOST (UINT64_C(1) << 20)

/* ---- parts ---------------------------------------------------------------------------------- */

static uint64_t
cells_of(uint64_t length, uint64_t step)
{
    return length / step + (length % step != 0);
}

bool
esdm__region_part_init(esdm__region_part *part, uint32_t ndims, const uint32_t *dims,
                       const uint64_t *lengths)
{
    memset(part, 0, sizeof *part);
    part->ndims = ndims;
    part->lengths[1] = 1;
    for (uint32_t i = 0; i < ndims; i++) {
        part->dims[i] = dims[i];
        part->lengths[i] = lengths[i];
    }
    for (part->step = 1;; part->step *= 2) {
        part->cells[0] = cells_of(part->lengths[0], part->step);
        part->cells[1] = cells_of(part->lengths[1], ndims > 1 ? part->step : 1);
        if (part->cells[0] <= CELLS_MOST && part->cells[1] <= CELLS_MOST &&
            part->cells[0] * part->cells[1] <= CELLS_MOST)
            break;
    }
    part->sums = calloc((size_t) ((part->cells[0] + 1) * (part->cells[1] + 1)), sizeof *part->sums);
    return part->sums != NULL;
}

void
esdm__region_part_mark(esdm__region_part *part, uint64_t row, uint64_t column)
{
    uint64_t i = row / part->step;
    uint64_t j = part->ndims > 1 ? column / part->step : 0;
    part->sums[(i + 1) * (part->cells[1] + 1) + j + 1] = 1;
}

bool
esdm__region_part_sum(esdm__region_part *part)
{
    const uint64_t width = part->cells[1] + 1;
    for (uint64_t i = 1; i <= part->cells[0]; i++) {
        uint32_t *row = part->sums + i * width;
        uint32_t sum = 0;
        for (uint64_t j = 1; j < width; j++) {
            sum += row[j];
            row[j] = sum + row[j - width];
        }
    }
    return part->sums[part->cells[0] * width + part->cells[1]] > 0;
}

void
esdm__region_part_clear(esdm__region_part *part)
{
    free(part->sums);
    memset(part, 0, sizeof *part);
}

/* Cells that are inside, of those in the rows and columns of `lo` up to, not including, `hi`. */
static uint32_t
count_cells(const esdm__region_part *part, const uint64_t lo[2], const uint64_t hi[2])
{
    const uint64_t width = part->cells[1] + 1;
    return part->sums[hi[0] * width + hi[1]] - part->sums[lo[0] * width + hi[1]] -
           part->sums[hi[0] * width + lo[1]] + part->sums[lo[0] * width + lo[1]];
}

/* What of a dimension of the box the table has, in cells. false: some of it lies beyond. */
static bool
cells_of_box(const esdm__region_part *part, const esdm__box *box, uint64_t lo[2], uint64_t hi[2])
{
    bool has_all = true;
    lo[1] = 0;
    hi[1] = 1;
    for (uint32_t i = 0; i < part->ndims; i++) {
        const uint64_t from = box->lo[part->dims[i]];
        const uint64_t to = from + box->n[part->dims[i]];
        has_all = has_all && to <= part->lengths[i];
        lo[i] = from / part->step < part->cells[i] ? from / part->step : part->cells[i];
        hi[i] =
            cells_of(to, part->step) < part->cells[i] ? cells_of(to, part->step) : part->cells[i];
    }
    return has_all;
}

static bool
part_touches(const esdm__region_part *part, const esdm__box *box)
{
    uint64_t lo[2], hi[2];
    return !cells_of_box(part, box, lo, hi) || count_cells(part, lo, hi) > 0;
}

/* ---- maps ----------------------------------------------------------------------------------- */

void
esdm__region_map_free(esdm__region_map *map)
{
    for (uint32_t i = 0; map != NULL && i < map->count; i++)
        for (uint32_t k = 0; k < map->places[i].count; k++)
            esdm__region_part_clear(&map->places[i].parts[k]);
    free(map);
}

bool
esdm__region_map_is_of(const esdm__region_map *map, const esdm_accuracy *accuracy)
{
    return map != NULL && map->count == accuracy->region_count &&
           memcmp(map->regions, accuracy->regions, map->count * sizeof *map->regions) == 0;
}

static bool
place_touches(const esdm__region_place *place, const esdm__box *box)
{
    bool touches = !place->nowhere;
    for (uint32_t k = 0; k < place->count && touches && !place->everywhere; k++)
        touches = part_touches(&place->parts[k], box);
    return touches;
}

uint32_t
esdm__region_map_touched(const esdm__region_map *map, const esdm__box *box)
{
    uint32_t touched = 0;
    for (uint32_t i = 0; i < map->count; i++)
        if (place_touches(&map->places[i], box))
            touched |= UINT32_C(1) << i;
    return touched;
}

/* A coarse cell may have points that are outside. */
static bool
part_holds(const esdm__region_part *part, const esdm__box *box)
{
    uint64_t lo[2], hi[2];
    return part->step == 1 && cells_of_box(part, box, lo, hi) &&
           count_cells(part, lo, hi) == (hi[0] - lo[0]) * (hi[1] - lo[1]);
}

uint32_t
esdm__region_map_holds(const esdm__region_map *map, const esdm__box *box)
{
    uint32_t holding = 0;
    for (uint32_t i = 0; i < map->count; i++) {
        const esdm__region_place *place = &map->places[i];
        bool holds = !place->everywhere && !place->nowhere;
        for (uint32_t k = 0; k < place->count && holds; k++)
            holds = part_holds(&place->parts[k], box);
        holding |= (uint32_t) holds << i;
    }
    return holding;
}

/* ---- cuts ----------------------------------------------------------------------------------- */

static uint64_t
least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t
most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Where the box is cut so that indices from `first` up to `last`, which are outside, come to stand
 * alone as far as margins allow; 0: that leaves fewer than a margin. */
static uint64_t
edge_of_run(uint64_t from, uint64_t to, uint64_t first, uint64_t last, uint64_t margin)
{
    const uint64_t begin = first > from ? most(first, from + margin) : from;
    const uint64_t end = last < to ? least(last, to - margin) : to;
    if (begin >= end || end - begin < margin)
        return 0;
    return begin > from ? begin : end < to ? end : 0;
}

/* An index of a dimension of the part at which the box is cut, not nearer than `margin` to its
 * ends; 0: nothing is outside, or too little. */
static uint64_t
find_edge(const esdm__region_part *part, const esdm__box *box, uint32_t i, uint64_t margin)
{
    uint64_t lo[2], hi[2];
    const uint64_t from = box->lo[part->dims[i]];
    const uint64_t to = from + box->n[part->dims[i]];
    if (!cells_of_box(part, box, lo, hi) || margin > (to - from) / 2)
        return 0;
    const uint64_t end = hi[i];
    uint64_t first = UINT64_MAX; /* of a run that is outside */
    for (uint64_t cell = lo[i], edge = 0; cell <= end; cell++) {
        lo[i] = cell;
        hi[i] = cell + 1;
        const uint64_t at = most(cell * part->step, from);
        const bool outside = cell < end && count_cells(part, lo, hi) == 0;
        if (outside && first == UINT64_MAX)
            first = at;
        if (outside || first == UINT64_MAX)
            continue;
        edge = edge_of_run(from, to, first, least(at, to), margin);
        if (edge != 0)
            return edge;
        first = UINT64_MAX;
    }
    return 0;
}

static bool
cut_part(const esdm__region_part *part, const esdm__box *box, uint64_t least, esdm__box *ret_first,
         esdm__box *ret_second)
{
    const uint64_t elements = esdm__box_elements(box);
    for (uint32_t i = 0; i < part->ndims; i++) {
        const uint32_t d = part->dims[i];
        const uint64_t slab = elements / box->n[d];
        const uint64_t margin = least / slab + (least % slab != 0);
        const uint64_t at = find_edge(part, box, i, margin > 0 ? margin : 1);
        if (at == 0)
            continue;
        esdm__box_copy(ret_first, box);
        esdm__box_copy(ret_second, box);
        ret_first->n[d] = at - box->lo[d];
        ret_second->lo[d] = at;
        ret_second->n[d] = box->n[d] - ret_first->n[d];
        return true;
    }
    return false;
}

bool
esdm__region_map_cut(const esdm__region_map *map, const esdm__box *box, uint64_t least,
                     esdm__box *ret_first, esdm__box *ret_second)
{
    for (uint32_t i = 0; i < map->count && !esdm__box_is_empty(box); i++) {
        const esdm__region_place *place = &map->places[i];
        if (place->everywhere || !place_touches(place, box))
            continue;
        for (uint32_t k = 0; k < place->count; k++)
            if (cut_part(&place->parts[k], box, least, ret_first, ret_second))
                return true;
    }
    return false;
}
