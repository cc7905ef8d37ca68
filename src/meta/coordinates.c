/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "meta/coordinates.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "base/error.h"

/* What other datasets say of one. */
enum { IS_BOUNDS = 1, IS_AUXILIARY = 2 };

/* Longest list of names in an attribute. */
#define LIST_BYTES 4096
/* Places that a new one is compared with. */
#define PLACES_LOOKED_AT 8u

typedef struct maker {
    const esdm_container *container;
    uint8_t *marks; /* of each dataset */
    esdm__cf cf;
    bool nomem;
} maker;

/* ---- datasets by name ----------------------------------------------------------------------- */

static bool
is_number(esdm_type type)
{
    return type >= ESDM_TYPE_INT8 && type <= ESDM_TYPE_UINT64 && type != ESDM_TYPE_CHAR;
}

/* The dataset that a name means to this one: of its group, or the nearest above. */
static esdm_dataset *
look_up(const esdm_dataset *from, const char *name)
{
    esdm_dataset *found = NULL;
    for (const esdm_group *g = from->group; g != NULL && found == NULL; g = g->parent)
        found = esdm_group_dataset_find(g, name);
    return found;
}

/* Number of a dataset in its container; they are in the order of their ids. */
static size_t
number_of(const maker *m, const esdm_dataset *dataset)
{
    esdm_dataset *const *all = (esdm_dataset *const *) m->container->datasets.items;
    size_t low = 0, high = m->container->datasets.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (all[middle]->id < dataset->id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Calls `each` with the datasets that the attribute names, in order. "key: name" counts too. */
static void
each_named(maker *m, const esdm_dataset *dataset, const char *attribute,
           void (*each)(maker *m, esdm_dataset *named, void *user), void *user)
{
    char list[LIST_BYTES];
    char *rest = NULL;
    esdm__attribute_text(dataset, attribute, list, sizeof list);
    for (char *word = strtok_r(list, " \t\n", &rest); word != NULL;
         word = strtok_r(NULL, " \t\n", &rest)) {
        size_t bytes = strlen(word);
        if (word[bytes - 1] == ':')
            word[bytes - 1] = '\0';
        esdm_dataset *named = word[0] != '\0' ? look_up(dataset, word) : NULL;
        if (named != NULL && named != dataset)
            each(m, named, user);
    }
}

static void
mark(maker *m, esdm_dataset *named, void *user)
{
    m->marks[number_of(m, named)] |= *(const uint8_t *) user;
}

static void
mark_all(maker *m)
{
    static const struct {
        const char *attribute;
        uint8_t mark;
    } lists[] = {{"bounds", IS_BOUNDS | IS_AUXILIARY}, {"climatology", IS_BOUNDS | IS_AUXILIARY},
                 {"coordinates", IS_AUXILIARY},        {"grid_mapping", IS_AUXILIARY},
                 {"cell_measures", IS_AUXILIARY},      {"formula_terms", IS_AUXILIARY},
                 {"ancillary_variables", IS_AUXILIARY}};
    for (size_t i = 0; i < m->container->datasets.count; i++) {
        const esdm_dataset *dataset = m->container->datasets.items[i];
        for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
            uint8_t what = lists[k].mark;
            each_named(m, dataset, lists[k].attribute, mark, &what);
        }
    }
}

/* ---- kinds ---------------------------------------------------------------------------------- */

static bool
is_one_of(const char *text, const char *const *words)
{
    for (size_t i = 0; words[i] != NULL; i++) {
        if (strcasecmp(text, words[i]) == 0)
            return true;
    }
    return false;
}

static bool
says_since(const char *units)
{
    for (const char *at = units; (at = strchr(at, ' ')) != NULL; at++) {
        if (strncasecmp(at, " since ", 7) == 0)
            return true;
    }
    return false;
}

static bool
is_vertical(const esdm_dataset *dataset, const char *standard_name)
{
    static const char *const names[] = {"air_pressure",
                                        "height",
                                        "altitude",
                                        "depth",
                                        "geopotential_height",
                                        "height_above_reference_ellipsoid",
                                        "height_above_mean_sea_level",
                                        "height_above_geopotential_datum",
                                        "model_level_number",
                                        "air_potential_temperature",
                                        "sea_floor_depth_below_sea_surface",
                                        "depth_below_geoid",
                                        NULL};
    char text[64];
    esdm__attribute_text(dataset, "positive", text, sizeof text);
    if (strcasecmp(text, "up") == 0 || strcasecmp(text, "down") == 0)
        return true;
    esdm__attribute_text(dataset, "axis", text, sizeof text);
    size_t bytes = strlen(standard_name);
    return strcasecmp(text, "Z") == 0 || is_one_of(standard_name, names) ||
           (bytes > 11 && strncmp(standard_name, "atmosphere_", 11) == 0 &&
            strstr(standard_name, "_coordinate") != NULL) ||
           (bytes > 6 && strncmp(standard_name, "ocean_", 6) == 0 &&
            strstr(standard_name, "_coordinate") != NULL);
}

/* What a coordinate says, by its units and standard name. */
static esdm__cf_kind
kind_of(const esdm_dataset *dataset)
{
    static const char *const north[] = {"degrees_north", "degree_north", "degree_N", "degrees_N",
                                        "degreeN",       "degreesN",     NULL};
    static const char *const east[] = {"degrees_east", "degree_east", "degree_E", "degrees_E",
                                       "degreeE",      "degreesE",    NULL};
    char units[ESDM__CF_UNIT_BYTES], name[ESDM__CF_UNIT_BYTES];
    if (!is_number(dataset->type))
        return ESDM__CF_KINDS;
    esdm__attribute_text(dataset, "units", units, sizeof units);
    esdm__attribute_text(dataset, "standard_name", name, sizeof name);
    if (says_since(units))
        return strcmp(name, "forecast_reference_time") == 0 ? ESDM__CF_KINDS : ESDM__CF_TIME;
    if (strcmp(name, "latitude") == 0 || is_one_of(units, north))
        return ESDM__CF_LATITUDE;
    if (strcmp(name, "longitude") == 0 || is_one_of(units, east))
        return ESDM__CF_LONGITUDE;
    return is_vertical(dataset, name) ? ESDM__CF_VERTICAL : ESDM__CF_KINDS;
}

/* ---- numbers -------------------------------------------------------------------------------- */

static double
number_attribute(const esdm_dataset *dataset, const char *name, double otherwise)
{
    esdm_attribute a;
    double number = otherwise;
    if (!esdm_attribute_find(&dataset->attributes, name, &a, NULL) || a.count != 1 ||
        !is_number(a.type) ||
        esdm_convert(a.type, a.values, ESDM_TYPE_FLOAT64, &number, 1, NULL, NULL) != ESDM_OK)
        return otherwise;
    return number;
}

esdm__cf_packing
esdm__cf_packing_of(const esdm_dataset *dataset)
{
    esdm__cf_packing p = {.scale = number_attribute(dataset, "scale_factor", 1),
                          .offset = number_attribute(dataset, "add_offset", 0)};
    esdm__attribute_text(dataset, "units", p.unit, sizeof p.unit);
    return p;
}

/* ---- coordinates ---------------------------------------------------------------------------- */

static void
take_first(maker *m, esdm_dataset *named, void *user)
{
    esdm_dataset **first = user;
    (void) m;
    if (*first == NULL)
        *first = named;
}

/* False: its times cannot be understood. */
static bool
describe(maker *m, esdm_dataset *dataset, esdm__cf_kind kind, esdm__cf_source *ret)
{
    esdm__cf_source s = {.kind = kind, .dataset = dataset, .packing = esdm__cf_packing_of(dataset)};
    each_named(m, dataset, "bounds", take_first, &s.bounds);
    each_named(m, dataset, "climatology", take_first, &s.bounds);
    if (s.bounds != NULL && (!is_number(s.bounds->type) || s.bounds->rank != dataset->rank + 1))
        s.bounds = NULL;
    if (kind == ESDM__CF_TIME) {
        char name[32];
        esdm__calendar calendar;
        esdm__attribute_text(dataset, "calendar", name, sizeof name);
        if (esdm__calendar_parse(name, &calendar, NULL) != ESDM_OK ||
            esdm__time_units_parse(s.packing.unit, calendar, &s.time, NULL) != ESDM_OK)
            return false;
    } else if (kind != ESDM__CF_VERTICAL && strncasecmp(s.packing.unit, "radian", 6) == 0) {
        s.packing.scale *= 57.29577951308232;
        s.packing.offset *= 57.29577951308232;
    }
    *ret = s;
    return true;
}

/* The number of the source, made at first use; SIZE_MAX: it is none. */
static size_t
source_of(maker *m, esdm_dataset *dataset, esdm__cf_kind kind)
{
    esdm__cf *cf = &m->cf;
    for (size_t i = 0; i < cf->nsources; i++) {
        if (cf->sources[i].dataset == dataset)
            return i;
    }
    if (!esdm__array_grow(&cf->sources, cf->nsources, sizeof *cf->sources)) {
        m->nomem = true;
        return SIZE_MAX;
    }
    return describe(m, dataset, kind, &cf->sources[cf->nsources]) ? cf->nsources++ : SIZE_MAX;
}

static void
offer(maker *m, esdm_dataset *coordinate, void *user)
{
    esdm__cf_place *p = user;
    esdm__cf_kind kind = ESDM__CF_KINDS;
    for (size_t i = 0; i < m->cf.nsources && kind == ESDM__CF_KINDS; i++) {
        if (m->cf.sources[i].dataset == coordinate)
            kind = m->cf.sources[i].kind;
    }
    if (kind == ESDM__CF_KINDS)
        kind = kind_of(coordinate);
    if (kind < ESDM__CF_KINDS && p->sources[kind] == SIZE_MAX)
        p->sources[kind] = source_of(m, coordinate, kind);
}

static const char *
grid_of(const maker *m, const esdm_dataset *dataset, const esdm__cf_place *p)
{
    if (p->sources[ESDM__CF_LATITUDE] == SIZE_MAX || p->sources[ESDM__CF_LONGITUDE] == SIZE_MAX)
        return esdm_attribute_find(&dataset->attributes, "mesh", NULL, NULL) ? "unstructured"
                                                                             : NULL;
    const esdm_dataset *lat = m->cf.sources[p->sources[ESDM__CF_LATITUDE]].dataset;
    const esdm_dataset *lon = m->cf.sources[p->sources[ESDM__CF_LONGITUDE]].dataset;
    if (lat->rank >= 2 && lon->rank >= 2)
        return "curvilinear";
    if (lat->rank == 0 && lon->rank == 0)
        return "point";
    if (lat->rank == 1 && lon->rank == 1 && lat->dimensions[0] == lon->dimensions[0])
        return "unstructured";
    return "regular";
}

/* The number of the place: one of the last ones, as neighbours mostly are alike, or a new one. */
static size_t
place_of(maker *m, const esdm__cf_place *place)
{
    esdm__cf *cf = &m->cf;
    for (size_t i = cf->nplaces; i > 0 && i + PLACES_LOOKED_AT > cf->nplaces; i--) {
        if (cf->places[i - 1].grid == place->grid &&
            memcmp(cf->places[i - 1].sources, place->sources, sizeof place->sources) == 0)
            return i - 1;
    }
    if (!esdm__array_grow(&cf->places, cf->nplaces, sizeof *cf->places)) {
        m->nomem = true;
        return 0;
    }
    cf->places[cf->nplaces] = *place;
    return cf->nplaces++;
}

static void
add_variable(maker *m, esdm_dataset *dataset, bool alone)
{
    esdm__cf_place place = {.grid = NULL};
    for (size_t k = 0; k < ESDM__CF_KINDS; k++)
        place.sources[k] = SIZE_MAX;
    if (alone)
        offer(m, dataset, &place);
    for (uint32_t d = 0; d < dataset->rank && !alone; d++) {
        esdm_dataset *coordinate = look_up(dataset, dataset->dimensions[d]->name);
        if (coordinate != NULL && coordinate != dataset && coordinate->rank == 1 &&
            coordinate->dimensions[0] == dataset->dimensions[d])
            offer(m, coordinate, &place);
    }
    if (!alone) {
        each_named(m, dataset, "coordinates", offer, &place);
        place.grid = grid_of(m, dataset, &place);
    }
    m->cf.variables[m->cf.nvariables++] = (esdm__cf_variable){dataset, place_of(m, &place)};
}

static bool
is_coordinate_variable(const esdm_dataset *dataset)
{
    return dataset->rank == 1 && strcmp(dataset->dimensions[0]->name, dataset->name) == 0;
}

static bool
holds_data(const maker *m, size_t i)
{
    const esdm_dataset *dataset = m->container->datasets.items[i];
    return m->marks[i] == 0 && is_number(dataset->type) && !is_coordinate_variable(dataset) &&
           !esdm_attribute_find(&dataset->attributes, "grid_mapping_name", NULL, NULL) &&
           !esdm_attribute_find(&dataset->attributes, "cf_role", NULL, NULL);
}

static void
add_all(maker *m)
{
    size_t count = m->container->datasets.count;
    for (size_t i = 0; i < count && !m->nomem; i++) {
        esdm_dataset *dataset = m->container->datasets.items[i];
        if (holds_data(m, i))
            add_variable(m, dataset, false);
        if ((m->marks[i] & IS_BOUNDS) == 0 && is_number(dataset->type))
            m->cf.values[m->cf.nvalues++] = dataset;
    }
    for (size_t i = 0; i < count && m->cf.nvariables == 0 && !m->nomem; i++) {
        esdm_dataset *dataset = m->container->datasets.items[i];
        if ((m->marks[i] & IS_BOUNDS) == 0 && kind_of(dataset) < ESDM__CF_KINDS)
            add_variable(m, dataset, true);
    }
}

esdm_status
esdm__cf_make(const esdm_container *container, esdm__cf *ret_cf, esdm_error *err)
{
    size_t count = container->datasets.count;
    maker m = {.container = container,
               .marks = calloc(count + 1, 1),
               .cf = {.variables = calloc(count + 1, sizeof(esdm__cf_variable)),
                      .values = calloc(count + 1, sizeof(esdm_dataset *))}};
    m.nomem = m.marks == NULL || m.cf.variables == NULL || m.cf.values == NULL;
    if (!m.nomem) {
        mark_all(&m);
        add_all(&m);
    }
    free(m.marks);
    if (m.nomem) {
        esdm__cf_clear(&m.cf);
        return esdm__error_nomem(err, count * sizeof(esdm__cf_variable), "coordinates");
    }
    *ret_cf = m.cf;
    return ESDM_OK;
}

void
esdm__cf_clear(esdm__cf *cf)
{
    free(cf->sources);
    free(cf->variables);
    free(cf->places);
    free(cf->values);
    *cf = (esdm__cf){0};
}
