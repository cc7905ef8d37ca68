/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Where the regions of an accuracy lie: found from the coordinates of a dataset, as they are when
 * it is written. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/regions.h"
#include "base/arguments.h"
#include "base/error.h"
#include "esdm/accuracy.h"
#include "io/container/accuracy.h"
#include "io/container/behind.h"
#include "io/io.h"
#include "meta/coordinates.h"
#include "model/accuracy_units.h"

/* Coordinates that are read at once, about. */
#define VALUES 65536u
/* Coordinates are mostly 32-bit numbers: what differs by their rounding is inside. */
#define DEGREES_OFF   5e-5
#define LEVELS_OFF    1e-6
#define NOT_THERE_YET "its coordinates or masks have no values yet"

/* ---- coordinates ---------------------------------------------------------------------------- */

/* The coordinates of one dataset; NULL: there is none. */
typedef struct sources {
    esdm__cf_source list[3];
    const esdm__cf_source *latitude, *longitude, *levels;
    bool flat; /* all dimensions are known, and none is vertical */
    esdm__cf_source masks[ESDM_ACCURACY_REGIONS_MAX]; /* of each region; without a dataset: none */
} sources;

static const esdm__cf_variable *
find_variable(const esdm__cf *cf, const esdm_dataset *dataset)
{
    for (size_t i = 0; i < cf->nvariables; i++)
        if (cf->variables[i].dataset == dataset)
            return &cf->variables[i];
    return NULL;
}

static const esdm__cf_source *
take(sources *s, size_t at, const esdm__cf *cf, const esdm__cf_variable *v, esdm__cf_kind kind)
{
    size_t number = esdm__cf_place_of(cf, v)->sources[kind];
    if (number == SIZE_MAX)
        return NULL;
    s->list[at] = cf->sources[number];
    return &s->list[at];
}

/* Whether a coordinate of known kind says what that dimension is. */
static bool
is_explained(const esdm__cf *cf, const esdm__cf_variable *v, const esdm_dimension *dimension)
{
    for (size_t k = 0; k < ESDM__CF_KINDS; k++) {
        size_t number = esdm__cf_place_of(cf, v)->sources[k];
        if (number == SIZE_MAX)
            continue;
        const esdm_dataset *source = cf->sources[number].dataset;
        for (uint32_t d = 0; d < source->rank; d++)
            if (source->dimensions[d] == dimension)
                return true;
    }
    return false;
}

/* What a level in the region's units is in those of the axis. */
static bool
factor_of(const char *unit, const char *of_axis, double *ret_factor)
{
    static const char *const millibars[] = {"mbar", "millibar", "millibars", "mb"};
    char why[200];
    for (size_t i = 0; i < sizeof millibars / sizeof *millibars; i++) {
        unit = strcmp(unit, millibars[i]) == 0 ? "hPa" : unit;
        of_axis = strcmp(of_axis, millibars[i]) == 0 ? "hPa" : of_axis;
    }
    return esdm__units_factor(unit, of_axis[0] != '\0' ? of_axis : NULL, false, ret_factor, why,
                              sizeof why);
}

/* A dimension with units of pressure is one of levels, whatever else its coordinate says or not (CF
 * conventions 1.11, 4.3.1). */
static const esdm__cf_source *
take_pressure(sources *s, const esdm__cf *cf, const esdm_dataset *dataset)
{
    double factor = 1;
    for (size_t i = 0; i < cf->nvalues; i++) {
        esdm_dataset *axis = cf->values[i];
        bool is_axis = axis->rank == 1 && strcmp(axis->name, axis->dimensions[0]->name) == 0;
        for (uint32_t d = 0; d < dataset->rank && is_axis; d++) {
            const esdm__cf_packing packing = esdm__cf_packing_of(axis);
            if (axis->dimensions[0] != dataset->dimensions[d] ||
                !factor_of("hPa", packing.unit, &factor))
                continue;
            s->list[2] =
                (esdm__cf_source){.kind = ESDM__CF_VERTICAL, .dataset = axis, .packing = packing};
            return &s->list[2];
        }
    }
    return NULL;
}

/* The variable that a name means, of the group or the nearest above. */
static void
take_mask(const esdm__cf *cf, const esdm_dataset *dataset, const char *name, esdm__cf_source *ret)
{
    const esdm_dataset *found = NULL;
    for (const esdm_group *g = dataset->group; g != NULL && found == NULL; g = g->parent)
        found = esdm_group_dataset_find(g, name);
    for (size_t i = 0; i < cf->nvalues; i++)
        if (cf->values[i] == found && found != dataset)
            *ret = (esdm__cf_source){.dataset = cf->values[i],
                                     .packing = esdm__cf_packing_of(cf->values[i])};
}

static esdm_status
find_sources(esdm_dataset *dataset, const esdm_accuracy *accuracy, sources *ret, esdm_error *err)
{
    esdm__cf cf;
    memset(ret, 0, sizeof *ret);
    esdm_status status = esdm__cf_make(dataset->group->container, &cf, err);
    if (status != ESDM_OK)
        return status;
    const esdm__cf_variable *v = find_variable(&cf, dataset);
    if (v != NULL && !esdm_dataset_is_auxiliary(dataset, NULL)) {
        ret->latitude = take(ret, 0, &cf, v, ESDM__CF_LATITUDE);
        ret->longitude = take(ret, 1, &cf, v, ESDM__CF_LONGITUDE);
        ret->levels = take(ret, 2, &cf, v, ESDM__CF_VERTICAL);
        if (ret->levels == NULL)
            ret->levels = take_pressure(ret, &cf, dataset);
        ret->flat = ret->levels == NULL;
        for (uint32_t d = 0; d < dataset->rank; d++)
            ret->flat = ret->flat && is_explained(&cf, v, dataset->dimensions[d]);
    }
    for (uint32_t i = 0; i < accuracy->region_count; i++)
        if ((accuracy->regions[i].within & ESDM_REGION_MASK) != 0)
            take_mask(&cf, dataset, accuracy->regions[i].mask, &ret->masks[i]);
    esdm__cf_clear(&cf);
    return ESDM_OK;
}

/* Where a dimension of the coordinate is in the dataset; false: it is not. */
static bool
dimensions_of(const esdm_dataset *dataset, const esdm_dataset *coordinate, uint32_t dims[2],
              uint64_t lengths[2])
{
    for (uint32_t i = 0; i < coordinate->rank && i < 2; i++) {
        uint32_t d = 0;
        while (d < dataset->rank && dataset->dimensions[d] != coordinate->dimensions[i])
            d++;
        if (d == dataset->rank)
            return false;
        dims[i] = d;
        lengths[i] = esdm_dimension_length(coordinate->dimensions[i]);
    }
    return coordinate->rank <= 2;
}

/* Values in the unit of the source. *ret_missing becomes false when one is there; missing ones are
 * NAN. @param rows of `columns` each; a coordinate of fewer dimensions has one. */
static bool
read_values(const esdm__cf_source *s, uint64_t row, uint64_t rows, uint64_t columns, double *values,
            bool *ret_missing)
{
    const uint64_t offset[2] = {row, 0};
    const uint64_t size[2] = {rows, columns};
    esdm_dataspace space;
    esdm_error err;
    double fill = 0;
    bool has_fill = esdm_convert(s->dataset->type, esdm_dataset_fill(s->dataset, NULL),
                                 ESDM_TYPE_FLOAT64, &fill, 1, NULL, NULL) == ESDM_OK;
    if (esdm_dataspace_init(&space, s->dataset->rank, offset, size, &err) != ESDM_OK ||
        esdm__io_read(s->dataset, &space, ESDM_TYPE_FLOAT64, values, NULL, &err) != ESDM_OK)
        return false;
    for (uint64_t i = 0; i < rows * columns; i++) {
        bool missing = !isfinite(values[i]) || (has_fill && values[i] == fill);
        values[i] = missing ? (double) NAN : values[i] * s->packing.scale + s->packing.offset;
        *ret_missing = *ret_missing && missing;
    }
    return true;
}

/* ---- points --------------------------------------------------------------------------------- */

/* What a point is asked for; a coordinate that is NAN may be anywhere. */
typedef struct range {
    bool circle;
    double low, high;
    double off; /* what counts as inside beyond both ends */
} range;

static bool
is_inside(const range *r, double value)
{
    if (isnan(value))
        return true;
    if (!r->circle)
        return value >= r->low - r->off && value <= r->high + r->off;
    double east = fmod(value - r->low, 360);
    if (east < 0)
        east += 360;
    return east <= r->high - r->low + r->off || east >= 360 - r->off;
}

/* Marks where all of `n` coordinates of the same dimensions are in their ranges. */
static bool
mark_points(esdm__region_part *part, const esdm__cf_source *const *s, const range *ranges, size_t n,
            bool *ret_missing)
{
    const uint64_t columns = part->lengths[1];
    uint64_t rows = columns < VALUES ? VALUES / columns : 1;
    rows = rows < part->lengths[0] ? rows : part->lengths[0];
    double *values = malloc((size_t) (rows * columns * n) * sizeof *values);
    bool right = values != NULL;
    for (uint64_t row = 0; row < part->lengths[0] && right; row += rows) {
        uint64_t count = rows < part->lengths[0] - row ? rows : part->lengths[0] - row;
        for (size_t k = 0; k < n && right; k++)
            right = read_values(s[k], row, count, columns, values + k * rows * columns,
                                &ret_missing[k]);
        for (uint64_t i = 0; i < count * columns && right; i++) {
            bool inside = true;
            for (size_t k = 0; k < n && inside; k++)
                inside = is_inside(&ranges[k], values[k * rows * columns + i]);
            if (inside)
                esdm__region_part_mark(part, row + i / columns, i % columns);
        }
    }
    free(values);
    return right;
}

/* ---- places --------------------------------------------------------------------------------- */

/* Adds what coordinates of the same dimensions say to the place. @return why it is not known. */
static const char *
add_part(const esdm_dataset *dataset, esdm__region_place *place, const esdm__cf_source *const *s,
         const range *ranges, size_t n)
{
    uint32_t dims[2] = {0};
    uint64_t lengths[2] = {1, 1};
    bool missing[2] = {true, true};
    esdm__region_part *part = &place->parts[place->count];
    for (size_t k = 0; k < n; k++)
        if (!atomic_load(&s[k]->dataset->has_data))
            return NOT_THERE_YET;
    if (!dimensions_of(dataset, s[0]->dataset, dims, lengths))
        return "its coordinates vary along dimensions that it does not have, or more than two";
    if (lengths[0] == 0 || lengths[1] == 0)
        return NOT_THERE_YET;
    const uint32_t rank = s[0]->dataset->rank;
    if (!esdm__region_part_init(part, rank > 0 ? rank : 1, dims, lengths))
        return "there is no memory to look";
    place->count++;
    if (!mark_points(part, s, ranges, n, missing))
        return "its coordinates cannot be read";
    for (size_t k = 0; k < n; k++)
        if (missing[k])
            return NOT_THERE_YET;
    bool any = esdm__region_part_sum(part);
    if (rank == 0 || !any) { /* one point for all, or none at all */
        esdm__region_part_clear(part);
        place->count--;
        place->nowhere = place->nowhere || !any;
    }
    return NULL;
}

static bool
have_same_dimensions(const esdm_dataset *a, const esdm_dataset *b)
{
    return a->rank == b->rank &&
           (a->rank == 0 || memcmp(a->dimensions, b->dimensions, a->rank * sizeof(void *)) == 0);
}

static const char *
add_box(const esdm_dataset *dataset, const sources *found, const esdm_accuracy_region *region,
        esdm__region_place *place)
{
    const esdm__cf_source *const both[] = {found->latitude, found->longitude};
    const range ranges[] = {
        {.low = region->south, .high = region->north, .off = DEGREES_OFF},
        {.circle = true, .low = region->west, .high = region->east, .off = DEGREES_OFF}};
    if (both[0] == NULL || both[1] == NULL)
        return "it has no latitudes and longitudes";
    if (have_same_dimensions(both[0]->dataset, both[1]->dataset))
        return add_part(dataset, place, both, ranges, 2);
    if (both[0]->dataset->rank > 1 || both[1]->dataset->rank > 1)
        return "its latitudes and longitudes have different dimensions";
    const char *why = add_part(dataset, place, &both[0], &ranges[0], 1);
    return why != NULL ? why : add_part(dataset, place, &both[1], &ranges[1], 1);
}

static const char *
add_levels(const esdm_dataset *dataset, const sources *found, const esdm_accuracy_region *region,
           esdm__region_place *place)
{
    double factor = 1;
    if (found->levels == NULL && found->flat) {
        place->nowhere = true;
        return NULL;
    }
    if (found->levels == NULL)
        return "it has no levels, or a dimension without a coordinate";
    if (!factor_of(region->level_units, found->levels->packing.unit, &factor))
        return "the units of its levels are others than those of the region";
    const double low = region->level_low * factor, high = region->level_high * factor;
    const range levels = {
        .low = low, .high = high, .off = LEVELS_OFF * fmax(fabs(low), fabs(high))};
    return add_part(dataset, place, &found->levels, &levels, 1);
}

static const char *
add_mask(const esdm_dataset *dataset, const esdm__cf_source *mask,
         const esdm_accuracy_region *region, esdm__region_place *place)
{
    const range values = {.low = region->mask_low, .high = region->mask_high};
    if (mask->dataset == NULL)
        return "there is no other variable of numbers with the name of its mask";
    return add_part(dataset, place, &mask, &values, 1);
}

/* What is not known holds everywhere. */
static const char *
find_place(const esdm_dataset *dataset, const sources *found, const esdm__cf_source *mask,
           const esdm_accuracy_region *region, esdm__region_place *place)
{
    const char *why = NULL;
    if ((region->within & ESDM_REGION_LEVELS) != 0)
        why = add_levels(dataset, found, region, place);
    if (why == NULL && (region->within & ESDM_REGION_BOX) != 0 && !place->nowhere)
        why = add_box(dataset, found, region, place);
    if (why == NULL && (region->within & ESDM_REGION_MASK) != 0 && !place->nowhere)
        why = add_mask(dataset, mask, region, place);
    place->everywhere = why != NULL;
    return why;
}

static esdm__region_map *
make_map(const esdm_dataset *dataset, const sources *found, const esdm_accuracy *accuracy)
{
    esdm__region_map *map = calloc(1, sizeof *map);
    if (map == NULL)
        return NULL;
    map->count = accuracy->region_count;
    memcpy(map->regions, accuracy->regions, map->count * sizeof *map->regions);
    for (uint32_t i = 0; i < map->count; i++) {
        const char *why =
            find_place(dataset, found, &found->masks[i], &map->regions[i], &map->places[i]);
        map->doubt = map->doubt != NULL ? map->doubt : why;
    }
    return map;
}

/* ---- when it is looked for ------------------------------------------------------------------ */

/* Grows with each write of a coordinate, and with each snapshot. */
static uint64_t
state_of(const esdm_dataset *dataset, const esdm_dataset *const *coordinates)
{
    uint64_t record = 0;
    uint64_t state = 0;
    esdm__container_position(dataset->group->container, &record, &state);
    for (size_t i = 0; i < ESDM__REGION_SOURCES; i++) {
        esdm__dataset_io *io =
            coordinates[i] != NULL ? esdm__dataset_io_find(coordinates[i]) : NULL;
        if (io == NULL)
            continue;
        state += atomic_load(&io->writes);
        esdm__dataset_io_put(coordinates[i]);
    }
    return state + atomic_load(&esdm__io_of(dataset->group->container)->writes) + 1;
}

static bool
is_made(const esdm_dataset *dataset, esdm__dataset_io *io)
{
    (void) pthread_mutex_lock(&io->write_lock);
    const esdm__region_map *map = io->regions.map;
    bool made = map != NULL && map->made_at == state_of(dataset, map->sources);
    (void) pthread_mutex_unlock(&io->write_lock);
    return made;
}

static bool
make(esdm_dataset *dataset, esdm__dataset_io *io, const esdm_accuracy *accuracy)
{
    sources found;
    if (find_sources(dataset, accuracy, &found, NULL) != ESDM_OK)
        return false;
    const esdm_dataset *coordinates[ESDM__REGION_SOURCES] = {NULL};
    const esdm__cf_source *const list[] = {found.latitude, found.longitude, found.levels};
    for (size_t i = 0; i < 3; i++)
        coordinates[i] = list[i] != NULL ? list[i]->dataset : NULL;
    for (size_t i = 0; i < ESDM_ACCURACY_REGIONS_MAX; i++)
        coordinates[3 + i] = found.masks[i].dataset;
    uint64_t made_at = state_of(dataset, coordinates);
    esdm__region_map *map = make_map(dataset, &found, accuracy);
    if (map == NULL)
        return false;
    map->made_at = made_at;
    memcpy(map->sources, coordinates, sizeof coordinates);
    (void) pthread_mutex_lock(&io->write_lock);
    esdm__dataset_wait(dataset, io); /* they are stored by the former one */
    esdm__region_map *former = io->regions.map;
    io->regions.map = map;
    (void) pthread_mutex_unlock(&io->write_lock);
    esdm__region_map_free(former);
    return true;
}

static void
look(esdm_dataset *dataset, esdm__dataset_io *io)
{
    const uint64_t changes = atomic_load(&dataset->group->container->changes);
    esdm_accuracy accuracy;
    const bool is_new = atomic_load(&io->regions.looked_at) != changes;
    if (!is_new && (!atomic_load(&io->regions.any) || is_made(dataset, io)))
        return;
    bool any = esdm__accuracy_in_force(dataset, &accuracy) &&
               (accuracy.stated & ESDM_ACCURACY_REGIONS) != 0;
    if (any && !make(dataset, io, &accuracy))
        return;
    atomic_store(&io->regions.any, any);
    atomic_store(&io->regions.looked_at, changes);
    if (!any)
        atomic_store(&dataset->unregioned_at, esdm__changes_mark(changes));
}

void
esdm__regions_look(esdm_dataset *dataset)
{
    esdm__dataset_io *io = NULL;
    if (atomic_load(&dataset->unregioned_at) == atomic_load(&dataset->group->container->changes) ||
        esdm__dataset_io_get(dataset, &io, NULL) != ESDM_OK)
        return;
    look(dataset, io);
    esdm__dataset_io_put(dataset);
}

void
esdm__regions_look_all(esdm_container *container)
{
    if (esdm__container_check_process(container, NULL) != ESDM_OK)
        return;
    for (size_t i = 0; i < container->datasets.count; i++) {
        esdm_dataset *dataset = container->datasets.items[i];
        esdm__dataset_io *io = esdm__dataset_io_find(dataset);
        if (io == NULL)
            continue;
        if (atomic_load(&io->gathered) && atomic_load(&io->regions.any))
            look(dataset, io);
        esdm__dataset_io_put(dataset);
    }
}

esdm_status
esdm_dataset_region_report(esdm_dataset *dataset, uint32_t region, esdm_accuracy_report *ret_report,
                           esdm_error *err)
{
    ESDM__NEED(err, dataset);
    ESDM__NEED(err, ret_report);
    esdm_accuracy accuracy;
    sources found;
    if (!esdm__accuracy_in_force(dataset, &accuracy) ||
        (accuracy.stated & ESDM_ACCURACY_REGIONS) == 0 || region >= accuracy.region_count)
        return esdm__error_set(err, ESDM_EINVAL, "dataset '%s' has no region %u", dataset->name,
                               region);
    esdm_status status = find_sources(dataset, &accuracy, &found, err);
    if (status != ESDM_OK)
        return status;
    esdm__region_map *map = make_map(dataset, &found, &accuracy);
    if (map == NULL)
        return esdm__error_nomem(err, sizeof *map, "the regions of an accuracy");
    if (map->places[region].everywhere)
        status =
            esdm__error_set(err, ESDM_ENOTSUP, "it is not known where it lies, as %s", map->doubt);
    else
        status = esdm__accuracy_report(dataset, map, region, ret_report, err);
    esdm__region_map_free(map);
    return status;
}

const char *
esdm_dataset_region_doubt(const esdm_dataset *dataset)
{
    esdm__dataset_io *io = dataset != NULL ? esdm__dataset_io_find(dataset) : NULL;
    if (io == NULL)
        return NULL;
    const char *doubt = atomic_load(&io->regions.doubt);
    esdm__dataset_io_put(dataset);
    return doubt;
}
