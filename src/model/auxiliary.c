/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Datasets that describe others: coordinates, bounds, grid mappings, cell measures, flags (CF
 * conventions 1.11, chapters 3.5, 4, 5, 7; UGRID 1.0), and whole numbers that count or number
 * something. Rounded, a date becomes another day, and a grid another grid. */

#include <string.h>

#include "esdm/accuracy.h"
#include "model/container.h"

/* ---- attributes --------------------------------------------------------------------------- */

typedef struct text {
    const char *at; /* NULL: none */
    size_t bytes;
} text;

static text
text_of(const esdm_attributes *list, const char *name)
{
    esdm_attribute attribute;
    if (!esdm_attribute_find(list, name, &attribute, NULL))
        return (text){NULL, 0};
    if (attribute.type == ESDM_TYPE_CHAR)
        return (text){attribute.values, (size_t) attribute.count};
    const char *const *texts = attribute.values;
    if (attribute.type != ESDM_TYPE_STRING || attribute.count != 1 || texts[0] == NULL)
        return (text){NULL, 0};
    return (text){texts[0], strlen(texts[0])};
}

static bool
has(const esdm_dataset *dataset, const char *name)
{
    return esdm_attribute_find(&dataset->attributes, name, NULL, NULL);
}

static bool
has_any(const esdm_dataset *dataset, const char *const *names)
{
    while (*names != NULL && !has(dataset, *names))
        names++;
    return *names != NULL;
}

static bool
is_one_of(text t, const char *const *list)
{
    while (*list != NULL && (t.bytes != strlen(*list) || memcmp(t.at, *list, t.bytes) != 0))
        list++;
    return *list != NULL;
}

/* ---- what is named by others -------------------------------------------------------------- */

/* Attributes whose values are names of datasets that describe the one that has them. Flags among
 * `ancillary_variables` tell by themselves; others there are data. */
static const char *const naming[] = {
    "bounds",   "climatology", "coordinates",     "grid_mapping",  "cell_measures", "formula_terms",
    "geometry", "node_count",  "part_node_count", "interior_ring", "borders",       NULL};
/* Of meshes: `face_node_connectivity`, `edge_coordinates`. */
static const char *const naming_ends[] = {"_connectivity", "_coordinates", NULL};

static bool
is_naming(const char *attribute)
{
    size_t bytes = strlen(attribute);
    if (is_one_of((text){attribute, bytes}, naming))
        return true;
    for (const char *const *end = naming_ends; *end != NULL; end++)
        if (bytes > strlen(*end) && strcmp(attribute + bytes - strlen(*end), *end) == 0)
            return true;
    return false;
}

/* Searched as CF says: in the group, then in those above; of a path the last part counts. */
static esdm_dataset *
find(const esdm_group *group, const char *name)
{
    esdm_dataset *found = NULL;
    const char *slash = strrchr(name, '/');
    name = slash != NULL ? slash + 1 : name;
    for (; group != NULL && found == NULL; group = esdm_group_parent(group))
        found = esdm_group_dataset_find(group, name);
    return found;
}

/* Words that end with ':' are not names ("area: areacella"). */
static void
mark_words(const esdm_group *group, text t, uint64_t changes)
{
    static const char blanks[] = " \t\r\n";
    char name[ESDM_NAME_MAX + 1];
    for (size_t at = 0; at < t.bytes;) {
        size_t bytes = 0;
        while (at + bytes < t.bytes && t.at[at + bytes] != '\0' &&
               strchr(blanks, t.at[at + bytes]) == NULL)
            bytes++;
        if (bytes > 0 && bytes < sizeof name && t.at[at + bytes - 1] != ':') {
            memcpy(name, t.at + at, bytes);
            name[bytes] = '\0';
            esdm_dataset *found = find(group, name);
            if (found != NULL)
                atomic_store(&found->named_at, changes);
        }
        at += bytes + 1;
    }
}

static void
mark_list(const esdm_group *group, const esdm_attributes *list, uint64_t changes)
{
    esdm_attribute attribute;
    for (size_t i = 0; esdm_attribute_at(list, i, &attribute); i++)
        if (is_naming(attribute.name))
            mark_words(group, text_of(list, attribute.name), changes);
}

/* Whether another dataset names it. All are marked at once, after each change of the structure;
 * threads that do it at the same time write the same. */
static bool
is_named(const esdm_dataset *dataset)
{
    esdm_container *container = dataset->group->container;
    const uint64_t changes = atomic_load(&container->changes);
    if (atomic_load(&container->named_at) != changes) {
        for (size_t i = 0; i < container->datasets.count; i++) {
            const esdm_dataset *other = container->datasets.items[i];
            mark_list(other->group, &other->attributes, changes);
            if (other->rank <= 1) /* levels, by cdo: "hyam hybm (mlev=hyam+hybm*aps)" */
                mark_words(other->group, text_of(&other->attributes, "formula"), changes);
        }
        for (size_t i = 0; i < container->groups.count; i++) {
            const esdm_group *group = container->groups.items[i];
            /* Of global ones that alone: others are prose ("native atmosphere grid"). */
            mark_words(group, text_of(&group->attributes, "coordinates"), changes);
        }
        atomic_store(&container->named_at, changes);
    }
    return atomic_load(&dataset->named_at) == changes;
}

/* ---- what tells by itself ----------------------------------------------------------------- */

static bool
is_coordinate(const esdm_dataset *dataset)
{
    static const char *const attributes[] = {"axis",    "calendar",        "_CoordinateAxisType",
                                             "cf_role", "_CoordinateAxes", NULL};
    static const char *const standard_names[] = {"latitude",
                                                 "longitude",
                                                 "time",
                                                 "forecast_reference_time",
                                                 "forecast_period",
                                                 "grid_latitude",
                                                 "grid_longitude",
                                                 "projection_x_coordinate",
                                                 "projection_y_coordinate",
                                                 NULL};
    for (uint32_t i = 0; i < dataset->rank; i++)
        if (strcmp(dataset->dimensions[i]->name, dataset->name) == 0)
            return true;
    /* Fluxes have `positive` too: "up". */
    return has_any(dataset, attributes) || (dataset->rank <= 1 && has(dataset, "positive")) ||
           is_one_of(text_of(&dataset->attributes, "standard_name"), standard_names);
}

static bool
is_horizontal(text units)
{
    static const char *const all[] = {
        "degrees_north", "degree_north", "degrees_N",   "degree_N",  "degreesN",
        "degreeN",       "degrees_east", "degree_east", "degrees_E", "degree_E",
        "degreesE",      "degreeE",      NULL};
    return is_one_of(units, all);
}

/* "days since 1850-01-01" */
static bool
is_time(text units)
{
    static const char since[] = " since ";
    return units.at != NULL && memmem(units.at, units.bytes, since, sizeof since - 1) != NULL;
}

/* Dates (20010131), numbers of cells and stations, counts, masks without attributes. Packed ones
 * stand for real numbers. */
static bool
is_whole(const esdm_dataset *dataset)
{
    static const char *const packing[] = {"scale_factor", "add_offset", NULL};
    switch (dataset->type) {
    case ESDM_TYPE_INT8:
    case ESDM_TYPE_INT16:
    case ESDM_TYPE_INT32:
    case ESDM_TYPE_INT64:
    case ESDM_TYPE_UINT8:
    case ESDM_TYPE_UINT16:
    case ESDM_TYPE_UINT32:
    case ESDM_TYPE_UINT64:
        return !has_any(dataset, packing);
    default:
        return false;
    }
}

bool
esdm_dataset_is_auxiliary(const esdm_dataset *dataset, const char **ret_kind)
{
    static const char *const mapping[] = {"grid_mapping_name", "_CoordinateTransformType",
                                          "crs_wkt", NULL};
    static const char *const flags[] = {"flag_values", "flag_masks", "flag_meanings", NULL};
    const char *kind = NULL;
    if (dataset == NULL)
        return false;
    const text units = text_of(&dataset->attributes, "units");
    if (is_time(units))
        kind = "a time";
    else if (is_coordinate(dataset) || is_horizontal(units))
        kind = "a coordinate";
    else if (has_any(dataset, mapping))
        kind = "a grid mapping";
    else if (has_any(dataset, flags))
        kind = "flags";
    else if (dataset->rank == 0)
        kind = "a scalar";
    else if (is_whole(dataset))
        kind = "of integers that are not packed";
    else if (is_named(dataset))
        kind = "named by another variable as its coordinates, bounds or the like";
    if (kind != NULL && ret_kind != NULL)
        *ret_kind = kind;
    return kind != NULL;
}

bool
esdm_accuracy_pattern_is_literal(const char *pattern)
{
    return pattern != NULL && strpbrk(pattern, "*?[") == NULL;
}
