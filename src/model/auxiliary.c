/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Datasets that describe others: coordinates, bounds, grid mappings, cell measures, flags (CF
 * conventions 1.11, chapters 3.5, 4, 5, 7; UGRID 1.0), and whole numbers that count or number
 * something. Rounded, a date becomes another day, and a grid another grid. */

#include <stdio.h>
#include <string.h>
#include <strings.h>

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
mark_words(const esdm_group *group, text t, uint32_t mark)
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
                atomic_store(&found->named_at, mark);
        }
        at += bytes + 1;
    }
}

static void
mark_list(const esdm_group *group, const esdm_attributes *list, uint32_t mark)
{
    esdm_attribute attribute;
    for (size_t i = 0; esdm_attribute_at(list, i, &attribute); i++)
        if (is_naming(attribute.name))
            mark_words(group, text_of(list, attribute.name), mark);
}

/* Whether another dataset names it. All are marked at once, after each change of the structure;
 * threads that do it at the same time write the same. */
static bool
is_named(const esdm_dataset *dataset)
{
    esdm_container *container = dataset->group->container;
    const uint64_t changes = atomic_load(&container->changes);
    /* Behind 2^32 changes an old mark may count: then a dataset is stored exactly in vain. */
    const uint32_t mark = (uint32_t) changes;
    if (atomic_load(&container->named_at) != changes) {
        for (size_t i = 0; i < container->datasets.count; i++) {
            const esdm_dataset *other = container->datasets.items[i];
            mark_list(other->group, &other->attributes, mark);
            if (other->rank <= 1) /* levels, by cdo: "hyam hybm (mlev=hyam+hybm*aps)" */
                mark_words(other->group, text_of(&other->attributes, "formula"), mark);
        }
        for (size_t i = 0; i < container->groups.count; i++) {
            const esdm_group *group = container->groups.items[i];
            /* Of global ones that alone: others are prose ("native atmosphere grid"). */
            mark_words(group, text_of(&group->attributes, "coordinates"), mark);
        }
        atomic_store(&container->named_at, changes);
    }
    return atomic_load(&dataset->named_at) == mark;
}

/* ---- what tells by itself ----------------------------------------------------------------- */

static bool
is_coordinate(const esdm_dataset *dataset)
{
    static const char *const attributes[] = {"axis",    "calendar",        "_CoordinateAxisType",
                                             "cf_role", "_CoordinateAxes", NULL};
    /* Fields of three dimensions that have these were made by programs that copy attributes. */
    static const char *const of_few[] = {"bounds", "climatology", "formula_terms", NULL};
    static const char *const standard_names[] = {"latitude",
                                                 "longitude",
                                                 "time",
                                                 "forecast_reference_time",
                                                 "forecast_period",
                                                 "grid_latitude",
                                                 "grid_longitude",
                                                 "projection_x_coordinate",
                                                 "projection_y_coordinate",
                                                 "cell_area", /* a measure that stands alone */
                                                 NULL};
    for (uint32_t i = 0; i < dataset->rank; i++)
        if (strcmp(dataset->dimensions[i]->name, dataset->name) == 0)
            return true;
    /* Fluxes have `positive` too: "up". */
    return has_any(dataset, attributes) || (dataset->rank <= 2 && has_any(dataset, of_few)) ||
           (dataset->rank <= 1 && has(dataset, "positive")) ||
           is_one_of(text_of(&dataset->attributes, "standard_name"), standard_names);
}

static bool
begins(const char *name, const char *word)
{
    return strncasecmp(name, word, strlen(word)) == 0;
}

static bool
ends(const char *name, const char *word)
{
    const size_t bytes = strlen(name), end = strlen(word);
    return bytes > end && strcasecmp(name + bytes - end, word) == 0;
}

/* Angles in radians are coordinates where their name says so: "latCell" (MPAS), "clon" (ICON). */
static bool
is_horizontal(const char *name, text units)
{
    static const char *const degrees[] = {
        "degrees_north", "degree_north", "degrees_N",   "degree_N",  "degreesN",
        "degreeN",       "degrees_east", "degree_east", "degrees_E", "degree_E",
        "degreesE",      "degreeE",      NULL};
    static const char *const radians[] = {"radian", "radians", "rad", NULL};
    return is_one_of(units, degrees) ||
           (is_one_of(units, radians) &&
            (begins(name, "lat") || begins(name, "lon") || ends(name, "lat") || ends(name, "lon")));
}

/* "days since 1850-01-01" */
static bool
is_time(text units)
{
    static const char since[] = " since ";
    return units.at != NULL && memmem(units.at, units.bytes, since, sizeof since - 1) != NULL;
}

/* Upper and lower case are the same. */
static bool
contains(text t, const char *words)
{
    const size_t bytes = strlen(words);
    for (size_t at = 0; t.at != NULL && at + bytes <= t.bytes; at++)
        if (strncasecmp(t.at + at, words, bytes) == 0)
            return true;
    return false;
}

/* What models write beside their levels and grids, and no attribute of CF tells: coefficients of
 * hybrid levels (ECHAM, IFS, CAM, WRF, ROMS), weights of Gaussian latitudes. By a name that has
 * been a convention for decades, where it has one dimension; or by what the long name says. */
static bool
is_by_convention(const esdm_dataset *dataset)
{
    static const char *const names[] = {
        "hyam",   "hybm",  "hyai",  "hybi",          "hya",     "hyb",         "hyax",
        "hybx",   "ap",    "p0",    "ptop",          "p_top",   "ak",          "bk",
        "vct",    "vct_a", "vct_b", "sigma",         "znu",     "znw",         "s_rho",
        "s_w",    "Cs_r",  "Cs_w",  "gauss_weights", "weights", "lat_weights", "gw",
        "w_stag", NULL};
    static const char *const phrases[] = {"formula term",
                                          "hybrid a coef",
                                          "hybrid b coef",
                                          "gauss weights",
                                          "gaussian weights",
                                          "latitude weights",
                                          NULL};
    const text long_name = text_of(&dataset->attributes, "long_name");
    for (size_t i = 0; dataset->rank <= 1 && names[i] != NULL; i++)
        if (strcasecmp(dataset->name, names[i]) == 0)
            return true;
    for (size_t i = 0; dataset->rank <= 2 && phrases[i] != NULL; i++)
        if (contains(long_name, phrases[i]))
            return true;
    return false;
}

/* "lat_bnds", "bounds_lon" and the like where the attribute that names them is gone: bounds of a
 * dataset, or of what has the name of a dimension. */
static bool
is_bounds_by_name(const esdm_dataset *dataset)
{
    static const char *const tails[] = {"_bnds", "_bounds", "_vertices", "_bnd", "_edges", NULL};
    static const char head[] = "bounds_";
    char of[ESDM_NAME_MAX + 1];
    of[0] = '\0';
    if (dataset->rank == 0)
        return false;
    for (const char *const *tail = tails; *tail != NULL && of[0] == '\0'; tail++)
        if (ends(dataset->name, *tail))
            (void) snprintf(of, sizeof of, "%.*s", (int) (strlen(dataset->name) - strlen(*tail)),
                            dataset->name);
    if (of[0] == '\0' && begins(dataset->name, head))
        (void) snprintf(of, sizeof of, "%s", dataset->name + sizeof head - 1);
    if (of[0] == '\0')
        return false;
    const esdm_dataset *named = find(dataset->group, of);
    for (uint32_t i = 0; i < dataset->rank; i++)
        if (strcmp(dataset->dimensions[i]->name, of) == 0)
            return true;
    return named != NULL && named != dataset && named->rank < dataset->rank &&
           esdm_dataset_is_auxiliary(named, NULL);
}

static bool
ends_in(text t, const char *words)
{
    const size_t bytes = strlen(words);
    return t.bytes >= bytes && memcmp(t.at + t.bytes - bytes, words, bytes) == 0;
}

/* Codes and counts, also where they are stored as floats and no attribute lists the codes: the
 * standard name says so (CF conventions, 3.3 and appendix C). */
static bool
is_code(text standard_name)
{
    static const char *const names[] = {"region", "area_type", "soil_type", "cloud_type", NULL};
    static const char *const last[] = {"status_flag", "quality_flag", "binary_mask",
                                       "number_of_observations", NULL};
    bool code = is_one_of(standard_name, names);
    for (const char *const *end = last; *end != NULL && !code; end++)
        code = ends_in(standard_name, *end);
    return code;
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
    else if (is_coordinate(dataset) || is_horizontal(dataset->name, units) ||
             is_by_convention(dataset))
        kind = "a coordinate";
    else if (has_any(dataset, mapping))
        kind = "a grid mapping";
    else if (has_any(dataset, flags) || is_code(text_of(&dataset->attributes, "standard_name")))
        kind = "flags";
    else if (dataset->rank == 0)
        kind = "a scalar";
    else if (is_bounds_by_name(dataset))
        kind = "bounds";
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
