/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file A new dimension with one element for each member, and its coordinate: the values of an
 * attribute. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "virtual/parts.h"

esdm_status
esdm__stack_axis(esdm__virtual *whole, const char *attribute, esdm_container *first,
                 esdm_error *err)
{
    esdm__axis *axis = &whole->axis;
    esdm_group *root = esdm_container_root(first);
    if (strlen(attribute) > ESDM_NAME_MAX)
        return esdm__error_set(err, ESDM_EINVAL, "'%.40s...' is too long for a dimension",
                               attribute);
    if (esdm_group_dimension_find(root, attribute) != NULL ||
        esdm_group_dataset_find(root, attribute) != NULL)
        return esdm__error_set(err, ESDM_EINVAL,
                               "'%s' has a dimension or a variable '%s' already: none can be made "
                               "of the attribute",
                               whole->members.items[0].name, attribute);
    memcpy(axis->name, attribute, strlen(attribute) + 1);
    axis->length = axis->nruns = whole->members.count;
    axis->runs = calloc(axis->nruns, sizeof *axis->runs);
    if (axis->runs == NULL)
        return esdm__error_nomem(err, axis->nruns * sizeof *axis->runs, "coordinates");
    for (size_t i = 0; i < axis->nruns; i++)
        axis->runs[i] = (esdm__run){.start = i, .count = 1, .member = i};
    return ESDM_OK;
}

/* ---- what gets the dimension ---------------------------------------------------------------- */

/* Whether a word of a text is that name; `a: x b: y` and `x y` alike. */
static bool
names_it(const esdm_dataset *dataset, const char *attribute, const char *name)
{
    char text[1024];
    char *rest = NULL;
    esdm__attribute_text(dataset, attribute, text, sizeof text);
    for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        if (strcmp(word, name) == 0)
            return true;
    return false;
}

/* Fields of a formula, as a surface pressure is, belong to the data. */
static bool
is_described_by(const esdm_dataset *other, const esdm_dataset *x)
{
    static const char *const names[] = {"bounds",       "climatology",   "coordinates",
                                        "grid_mapping", "cell_measures", "mesh"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names_it(other, names[i], x->name))
            return true;
    return x->rank < 2 && names_it(other, "formula_terms", x->name);
}

bool
esdm__is_data(const esdm_dataset *x)
{
    const esdm_group *group = x->group;
    if (x->rank == 1 && strcmp(x->dimensions[0]->name, x->name) == 0)
        return false;
    for (size_t i = 0; i < esdm_group_dataset_count(group); i++)
        if (is_described_by(esdm_group_dataset_at(group, i), x))
            return false;
    return true;
}

void
esdm__stack_choose(esdm__virtual *whole, esdm_container *first)
{
    for (size_t i = 0; i < whole->ndatasets; i++)
        whole->datasets[i].stacked =
            esdm__is_data(first->datasets.items[i]) &&
            ((const esdm_dataset *) first->datasets.items[i])->rank < ESDM_MAX_RANK;
}

/* ---- structure ------------------------------------------------------------------------------ */

/* Behind the time, which programs want to be first. */
static uint32_t
place_in(const esdm_dataset *dataset)
{
    esdm__meaning meaning;
    if (dataset->rank == 0)
        return 0;
    const esdm_dimension *outer = dataset->dimensions[0];
    const esdm_dataset *coordinate = esdm_group_dataset_find(outer->group, outer->name);
    bool time = coordinate != NULL && esdm__is_coordinate(coordinate) &&
                esdm__meaning_of(coordinate, &meaning, NULL) == ESDM_OK && meaning.is_time;
    return outer->unlimited || time ? 1 : 0;
}

static esdm_status
add_axis(esdm_dataset *dataset, esdm_dimension *dimension, esdm_error *err)
{
    uint32_t at = place_in(dataset);
    uint32_t rank = dataset->rank;
    esdm_dimension **dimensions = malloc((rank + 1) * sizeof *dimensions);
    uint64_t *chunk = dataset->stated->chunk != NULL ? malloc((rank + 1) * sizeof *chunk) : NULL;
    if (dimensions == NULL || (dataset->stated->chunk != NULL && chunk == NULL)) {
        free(dimensions);
        free(chunk);
        return esdm__error_nomem(err, (rank + 1) * sizeof *chunk, "a variable");
    }
    for (uint32_t i = 0; i <= rank; i++) {
        uint32_t from = i > at ? i - 1 : i;
        dimensions[i] = i == at ? dimension : dataset->dimensions[from];
        if (chunk != NULL)
            chunk[i] = i == at ? 1 : dataset->stated->chunk[from];
    }
    esdm__dataset_put_dimensions(dataset, rank + 1, dimensions, chunk);
    return ESDM_OK;
}

/* ---- the coordinate ------------------------------------------------------------------------- */

static esdm_type
type_of_labels(const esdm__bundles *bundles)
{
    double most = 0;
    bool whole = true;
    for (size_t i = 0; i < bundles->count; i++) {
        if (!bundles->items[i].is_number)
            return ESDM_TYPE_STRING;
        whole = whole && nearbyint(bundles->items[i].number) == bundles->items[i].number;
        most = fmax(most, fabs(bundles->items[i].number));
    }
    if (!whole || most > 9e15)
        return ESDM_TYPE_FLOAT64;
    return most < 2147483648. ? ESDM_TYPE_INT32 : ESDM_TYPE_INT64;
}

/* Texts are those of the bundles, in one block of memory. */
static void *
values_of_labels(const esdm__bundles *bundles, esdm_type type)
{
    size_t bytes = bundles->count * sizeof(double);
    for (size_t i = 0; i < bundles->count; i++)
        bytes += strlen(bundles->items[i].label) + 1;
    void *values = malloc(bytes);
    if (values == NULL)
        return NULL;
    char *text = (char *) values + bundles->count * sizeof(char *);
    for (size_t i = 0; i < bundles->count; i++) {
        const esdm__bundle *b = &bundles->items[i];
        if (type == ESDM_TYPE_STRING) {
            ((char **) values)[i] = text;
            text = stpcpy(text, b->label) + 1;
        } else {
            (void) !esdm_convert(ESDM_TYPE_FLOAT64, &b->number, type,
                                 (uint8_t *) values + i * esdm_type_size(type), 1, NULL, NULL);
        }
    }
    return values;
}

static esdm_status
set_text(esdm_dataset *dataset, const char *name, const char *text, esdm_error *err)
{
    return esdm_attribute_set(&dataset->attributes, name, ESDM_TYPE_CHAR, strlen(text), text, err);
}

static esdm_status
add_coordinate(esdm__virtual *whole, const esdm__bundles *bundles, esdm_container *container,
               esdm_dimension *dimension, esdm_error *err)
{
    esdm_dataset *coordinate = NULL;
    char said[ESDM_NAME_MAX + 32];
    esdm_type type = type_of_labels(bundles);
    esdm_status status = esdm_dataset_create(esdm_container_root(container), whole->axis.name, type,
                                             1, &dimension, &coordinate, err);
    (void) snprintf(said, sizeof said, "%s of the members", whole->axis.name);
    if (status == ESDM_OK)
        status = set_text(coordinate, "standard_name", "realization", err);
    if (status == ESDM_OK)
        status = set_text(coordinate, "long_name", said, err);
    if (status != ESDM_OK)
        return status;
    esdm__joined *joined = &whole->datasets[whole->ndatasets]; /* there is room for one more */
    *joined = (esdm__joined){.axis = -1, .cross = -1, .values = values_of_labels(bundles, type)};
    if (joined->values == NULL)
        return esdm__error_nomem(err, bundles->count * sizeof(double), "a coordinate");
    whole->ndatasets++;
    return ESDM_OK;
}

esdm_status
esdm__stack_build(esdm__virtual *whole, const esdm__bundles *bundles, esdm_container *container,
                  esdm_error *err)
{
    esdm_dimension *dimension = NULL;
    esdm_group *root = esdm_container_root(container);
    esdm_attributes *attributes = esdm_group_attributes(root);
    esdm_status status =
        esdm_dimension_create(root, whole->axis.name, whole->axis.length, &dimension, err);
    for (size_t i = 0; i < whole->ndatasets && status == ESDM_OK; i++)
        if (whole->datasets[i].stacked)
            status = add_axis(container->datasets.items[i], dimension, err);
    if (status == ESDM_OK)
        status = add_coordinate(whole, bundles, container, dimension, err);
    if (status == ESDM_OK && esdm_attribute_find(attributes, whole->axis.name, NULL, NULL))
        status = esdm_attribute_remove(attributes, whole->axis.name, err);
    if (status == ESDM_OK && esdm_container_hint(container, "netcdf.format") != NULL)
        status = esdm_container_set_hint(container, "netcdf.format", "netcdf4", err);
    return status;
}
