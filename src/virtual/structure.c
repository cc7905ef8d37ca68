/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The joined container in memory: the first member's structure, with what the others make of it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "base/error.h"
#include "virtual/parts.h"

/* What is told of bounds that not all members have. */
#define LEFT_OUT "left out, not all have it"

/* ---- what the values are -------------------------------------------------------------------- */

static bool
same_marks(const esdm__meaning *a, const esdm__meaning *b)
{
    return a->nmarks == b->nmarks &&
           (a->nmarks == 0 || memcmp(a->marks, b->marks, a->nmarks * sizeof *a->marks) == 0);
}

static bool
same_packing(const esdm__meaning *a, const esdm__meaning *b)
{
    return a->packed == b->packed && a->scale == b->scale && a->offset == b->offset;
}

/* What the joined dataset is, from the meanings of all members. */
static esdm_status
meaning_of_all(const esdm__meaning *all, size_t count, size_t first, const char *name,
               bool *ret_unpack, esdm__meaning *ret, esdm_error *err)
{
    esdm__meaning whole = all[first];
    bool unpack = false;
    bool times = false;
    for (size_t i = 0; i < count; i++) {
        unpack = unpack || !same_packing(&all[i], &whole);
        times = times || (whole.is_time && strcmp(all[i].time_text, whole.time_text) != 0);
    }
    esdm_type type = unpack ? whole.unpacked : whole.type;
    bool mapped = unpack || times;
    for (size_t i = 0; i < count && type != ESDM_TYPE_NONE; i++) {
        type = esdm__type_of_both(type, unpack ? all[i].unpacked : all[i].type);
        mapped = mapped || !same_marks(&all[i], &whole);
        if (whole.nmarks == 0 && all[i].nmarks > 0 && !whole.has_fill) {
            whole.fill = all[i].fill;
            whole.has_fill = true;
        }
    }
    if (times || (whole.is_time && type != whole.type))
        type = ESDM_TYPE_FLOAT64;
    if (type == ESDM_TYPE_NONE)
        return esdm__error_set(err, ESDM_EINVAL,
                               "no type holds the values of variable '%s' of all "
                               "members",
                               name);
    if (mapped && (type == ESDM_TYPE_INT64 || type == ESDM_TYPE_UINT64))
        return esdm__error_set(
            err, ESDM_ENOTSUP,
            "variable '%s' has 64-bit integers and differs in packing or missing "
            "values between members: this is not joined by this version",
            name);
    whole.type = type;
    if (unpack)
        whole.packed = false;
    *ret_unpack = unpack;
    *ret = whole;
    return ESDM_OK;
}

static esdm_status
make_maps(esdm__joined *joined, const esdm__meaning *all, size_t count, bool unpack,
          esdm_error *err)
{
    const esdm__meaning *whole = &joined->whole;
    joined->maps = calloc(count, sizeof(esdm__map *));
    if (joined->maps == NULL)
        return esdm__error_nomem(err, count * sizeof(esdm__map *), "a virtual container");
    for (size_t i = 0; i < count; i++) {
        esdm__map map = {.from = all[i]};
        map.unpack = unpack && all[i].packed;
        map.times = whole->is_time && strcmp(all[i].time_text, whole->time_text) != 0;
        map.marks = map.unpack || !same_marks(&all[i], whole);
        if (!map.unpack && !map.times && !map.marks)
            continue;
        joined->maps[i] = malloc(sizeof map);
        if (joined->maps[i] == NULL)
            return esdm__error_nomem(err, sizeof map, "a virtual container");
        *joined->maps[i] = map;
    }
    return ESDM_OK;
}

/* ---- the dataset says so ----------------------------------------------------------------------
 */

static esdm_status
set_number(esdm_dataset *dataset, const char *name, double value, esdm_error *err)
{
    uint64_t room = 0;
    esdm_status status =
        esdm_convert(ESDM_TYPE_FLOAT64, &value, dataset->type, &room, 1, NULL, err);
    if (status == ESDM_OK)
        status = esdm_attribute_set(&dataset->attributes, name, dataset->type, 1, &room, err);
    return status;
}

static void
remove_attribute(esdm_dataset *dataset, const char *name)
{
    if (esdm_attribute_find(&dataset->attributes, name, NULL, NULL))
        (void) !esdm_attribute_remove(&dataset->attributes, name, NULL);
}

esdm_status
esdm__joined_retype(esdm_dataset *dataset, const esdm__meaning *whole, bool unpack, esdm_error *err)
{
    uint64_t room = 0;
    bool had_missing = esdm_attribute_find(&dataset->attributes, "missing_value", NULL, NULL);
    if (unpack) {
        static const char *const packed[] = {"scale_factor", "add_offset", "valid_range",
                                             "valid_min", "valid_max"};
        for (size_t i = 0; i < sizeof packed / sizeof *packed; i++)
            remove_attribute(dataset, packed[i]);
    }
    esdm_status status = ESDM_OK;
    if (dataset->type != whole->type) {
        status = esdm_dataset_set_fill(dataset, NULL, err);
        if (status == ESDM_OK)
            status = esdm__dataset_set_codec_text(dataset, NULL, err);
        dataset->type = whole->type;
    }
    if (status == ESDM_OK && (whole->has_fill || (unpack && whole->nmarks > 0))) {
        status = esdm_convert(ESDM_TYPE_FLOAT64, &whole->fill, dataset->type, &room, 1, NULL, err);
        if (status == ESDM_OK)
            status = esdm_dataset_set_fill(dataset, &room, err);
        if (status == ESDM_OK)
            status = set_number(dataset, "_FillValue", whole->fill, err);
    }
    if (status == ESDM_OK && had_missing)
        status = set_number(dataset, "missing_value", whole->fill, err);
    return status;
}

static esdm_status
join_dataset(const esdm__virtual *whole, esdm_dataset *dataset, esdm__joined *joined,
             esdm_error *err)
{
    bool unpack = false;
    if (joined->values != NULL)
        return ESDM_OK;
    joined->axis = esdm__dataset_axis(dataset, whole->axis.name);
    joined->source = whole->axis.first;
    joined->cross =
        whole->cross.name[0] != '\0' ? esdm__dataset_axis(dataset, whole->cross.name) : -1;
    if ((joined->axis < 0 && joined->cross < 0) || !esdm__meaning_is_number(dataset->type))
        return ESDM_OK;
    const esdm__meaning *of_first = &joined->meanings[joined->which[whole->axis.first]];
    esdm_status status =
        meaning_of_all(joined->meanings, joined->nmeanings, joined->which[whole->axis.first],
                       dataset->name, &unpack, &joined->whole, err);
    if (status == ESDM_OK)
        status = make_maps(joined, joined->meanings, joined->nmeanings, unpack, err);
    bool changed = unpack || joined->whole.type != dataset->type ||
                   joined->whole.has_fill != of_first->has_fill;
    if (status == ESDM_OK && changed)
        status = esdm__joined_retype(dataset, &joined->whole, unpack, err);
    bool holes = whole->has_holes && joined->axis >= 0 && joined->cross >= 0;
    if (status == ESDM_OK && (holes || (whole->axis.nfilled > 0 && joined->axis >= 0)))
        status = esdm__filled_prepare(whole, dataset, joined, err);
    return status;
}

/* ---- attributes of the whole ----------------------------------------------------------------- */

static bool
same_attribute(const esdm_attribute *a, const esdm_attribute *b)
{
    if (a->type != b->type || a->count != b->count)
        return false;
    if (a->type != ESDM_TYPE_STRING)
        return a->count == 0 ||
               memcmp(a->values, b->values, (size_t) a->count * esdm_type_size(a->type)) == 0;
    for (uint64_t i = 0; i < a->count; i++) {
        const char *x = ((const char *const *) a->values)[i];
        const char *y = ((const char *const *) b->values)[i];
        if ((x == NULL) != (y == NULL) || (x != NULL && strcmp(x, y) != 0))
            return false;
    }
    return true;
}

/* Differ by their nature, or are seen to elsewhere. */
static bool
is_expected(const char *name)
{
    static const char *const names[] = {
        "tracking_id",   "creation_date", "history",      "uuid",       "date_created",
        "timeStamp",     "date_modified", "scale_factor", "add_offset", "_FillValue",
        "missing_value", "valid_range",   "valid_min",    "valid_max",  "esdm_members",
        "esdm_differs",  "esdm_gaps"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static void
note_attribute(const char *owner, const char *name, esdm__buffer *text)
{
    char entry[2 * ESDM_NAME_MAX + 8];
    int n = snprintf(entry, sizeof entry, "%s%s%s\n", owner, owner[0] != '\0' ? ":" : "", name);
    esdm__buffer_put(text, "", 1); /* so that the search ends */
    if (text->failed)
        return;
    const char *found = strstr((const char *) text->data, entry);
    bool known = found != NULL && (found == (const char *) text->data || found[-1] == '\n');
    text->bytes--;
    if (!known)
        esdm__buffer_put(text, entry, (size_t) n);
}

static void
differences_of(const esdm_attributes *first, const esdm_attributes *other, const char *owner,
               esdm__buffer *text)
{
    for (size_t i = 0; i < first->count; i++) {
        esdm_attribute a;
        esdm_attribute b;
        bool of_time = false; /* units of others must be equal */
        if (esdm_attribute_at(first, i, &a))
            of_time = owner[0] != '\0' &&
                      (strcmp(a.name, "units") == 0 || strcmp(a.name, "calendar") == 0);
        else
            continue;
        if (!of_time && !is_expected(a.name) && esdm_attribute_find(other, a.name, &b, NULL) &&
            !same_attribute(&a, &b))
            note_attribute(owner, a.name, text);
    }
}

/* What a member that is several in one says of these. */
static void
differences_within(esdm_container *member, esdm__buffer *text)
{
    esdm_attribute a;
    if (member->provider == NULL ||
        !esdm_attribute_find(esdm_group_attributes(esdm_container_root(member)), "esdm_differs", &a,
                             NULL) ||
        a.type != ESDM_TYPE_CHAR)
        return;
    char *copy = strndup(a.values, (size_t) a.count);
    char *rest = NULL;
    text->failed = text->failed || copy == NULL;
    for (char *line = copy != NULL ? strtok_r(copy, "\n", &rest) : NULL; line != NULL;
         line = strtok_r(NULL, "\n", &rest))
        note_attribute("", line, text);
    free(copy);
}

void
esdm__note_differences(esdm_container *first, esdm_container *other, esdm__buffer *text)
{
    differences_within(first, text);
    differences_within(other, text);
    differences_of(esdm_group_attributes(esdm_container_root(first)),
                   esdm_group_attributes(esdm_container_root(other)), "", text);
    for (size_t k = 0; k < first->datasets.count; k++) {
        const esdm_dataset *x = first->datasets.items[k];
        const esdm_dataset *y = esdm__member_same(other, x);
        if (y != NULL)
            differences_of(&x->attributes, &y->attributes, x->name, text);
    }
    for (size_t k = 0; k < other->datasets.count; k++) {
        const esdm_dataset *y = other->datasets.items[k];
        if (esdm__member_same(first, y) == NULL && esdm__is_bounds(y))
            note_attribute(y->name, LEFT_OUT, text);
    }
}

typedef struct summary {
    uint64_t digest;
    size_t count;
} summary;

static bool
add_member(const esdm__virtual_member *m, void *user)
{
    summary *sum = user;
    uint64_t parts[3] = {sum->digest, esdm__checksum(m->name, strlen(m->name)), m->snapshot};
    sum->digest = esdm__checksum(parts, sizeof parts);
    sum->count++;
    return true;
}

static esdm_status
note_members(const esdm__virtual *whole, esdm_container *container, esdm_error *err)
{
    char text[96];
    summary sum = {0};
    (void) esdm__members_visit(&whole->members, add_member, &sum);
    int n =
        snprintf(text, sizeof text, "%zu containers, digest %016" PRIx64, sum.count, sum.digest);
    return esdm_attribute_set(esdm_group_attributes(esdm_container_root(container)), "esdm_members",
                              ESDM_TYPE_CHAR, (uint64_t) n, text, err);
}

static int
by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *) a, *(char *const *) b);
}

/* Lines in an order that does not depend on which member was looked at first. */
static esdm_status
sort_lines(esdm__buffer *text, esdm_error *err)
{
    size_t n = 0;
    size_t at = 0;
    esdm__buffer_put(text, "", 1);
    char *copy = text->failed ? NULL : strdup((const char *) text->data);
    char **lines = malloc((text->bytes + 1) * sizeof *lines);
    if (copy == NULL || lines == NULL) {
        free(copy);
        free(lines);
        return esdm__error_nomem(err, text->bytes, "attributes");
    }
    char *rest = NULL;
    for (char *line = strtok_r(copy, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        lines[n++] = line;
    qsort(lines, n, sizeof *lines, by_text);
    for (size_t i = 0; i < n; i++)
        at += (size_t) sprintf((char *) text->data + at, "%s\n", lines[i]);
    text->bytes--;
    free(copy);
    free(lines);
    return ESDM_OK;
}

esdm_status
esdm__virtual_note(esdm__virtual *whole, esdm_container *container, esdm_error *err)
{
    esdm_attributes *root = esdm_group_attributes(esdm_container_root(container));
    if (whole->differs.failed)
        return esdm__error_nomem(err, whole->differs.bytes, "attributes");
    esdm_status status = ESDM_OK;
    if (whole->differs.bytes > 0) {
        status = sort_lines(&whole->differs, err);
        if (status == ESDM_OK)
            status = esdm_attribute_set(root, "esdm_differs", ESDM_TYPE_CHAR,
                                        whole->differs.bytes - 1, whole->differs.data, err);
    }
    if (whole->axis.told.failed)
        return esdm__error_nomem(err, whole->axis.told.bytes, "attributes");
    if (status == ESDM_OK && whole->axis.told.bytes > 0)
        status = esdm_attribute_set(root, "esdm_gaps", ESDM_TYPE_CHAR, whole->axis.told.bytes - 1,
                                    whole->axis.told.data, err);
    return status == ESDM_OK ? note_members(whole, container, err) : status;
}

/* ---- the container -------------------------------------------------------------------------- */

esdm_status
esdm__virtual_copy_structure(esdm_container *from, esdm_container *to, esdm_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    esdm_status status = esdm__document_write(from, &text, &bytes, err);
    if (status == ESDM_OK)
        status = esdm__document_read(text, bytes, to, err);
    free(text);
    for (size_t i = 0; status == ESDM_OK && i < to->dimensions.count; i++) {
        esdm_dimension *d = to->dimensions.items[i];
        if (d->unlimited)
            (void) esdm__dimension_grow(d, esdm_dimension_length(from->dimensions.items[i]));
    }
    return status;
}

/* In the classic formats only the first dimension of a variable can be unlimited, and one. */
static bool
may_be_unlimited(const esdm_container *container, const esdm_dimension *dimension)
{
    const char *format = esdm_container_hint(container, "netcdf.format");
    if (format == NULL || strcmp(format, "netcdf4") == 0)
        return true;
    for (size_t i = 0; i < container->dimensions.count; i++) {
        const esdm_dimension *other = container->dimensions.items[i];
        if (other != dimension && other->unlimited)
            return false;
    }
    for (size_t i = 0; i < container->datasets.count; i++)
        if (esdm__dataset_axis(container->datasets.items[i], dimension->name) > 0)
            return false;
    return true;
}

/* Bounds that not all members have, told of and left out. */
static void
forget_left_out(esdm__virtual *whole, esdm_container *first)
{
    size_t n = 0;
    for (size_t i = 0; i < whole->ndatasets; i++) {
        const esdm_dataset *dataset = first->datasets.items[i];
        if (whole->datasets[i].left_out) {
            note_attribute(dataset->name, LEFT_OUT, &whole->differs);
            free(whole->datasets[i].meanings);
            free(whole->datasets[i].which);
        } else {
            whole->datasets[n++] = whole->datasets[i];
        }
    }
    whole->ndatasets = n;
}

/* Attributes that name what is left out. */
static void
forget_names(esdm_container *to)
{
    static const char *const names[] = {"bounds", "climatology"};
    char text[ESDM_NAME_MAX + 1];
    for (size_t i = 0; i < to->datasets.count; i++) {
        esdm_dataset *dataset = to->datasets.items[i];
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            esdm__attribute_text(dataset, names[k], text, sizeof text);
            if (text[0] != '\0' && esdm_group_dataset_find(dataset->group, text) == NULL)
                remove_attribute(dataset, names[k]);
        }
    }
}

static esdm_status
copy_all_but_left_out(esdm__virtual *whole, esdm_container *first, esdm_container *to,
                      esdm_error *err)
{
    bool all = true;
    for (size_t i = 0; i < whole->ndatasets; i++)
        all = all && !whole->datasets[i].left_out;
    if (all)
        return esdm__virtual_copy_structure(first, to, err);
    if (first->groups.count > 1)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "'%s' has bounds that other members lack, and groups: these are not "
                               "joined by this version",
                               first->name);
    bool changed = false;
    esdm_status status = esdm__attributes_copy(esdm_group_attributes(esdm_container_root(first)),
                                               esdm_group_attributes(esdm_container_root(to)), err);
    for (size_t i = 0; i < first->hints.count && status == ESDM_OK; i++)
        status = esdm__hints_set(&to->hints, first->hints.items[i].key, first->hints.items[i].value,
                                 &changed, err);
    if (status == ESDM_OK)
        status = esdm__virtual_add_variables(first, whole->datasets, to, err);
    if (status != ESDM_OK)
        return status;
    forget_left_out(whole, first);
    forget_names(to);
    return ESDM_OK;
}

static esdm_status
build_from(esdm__virtual *whole, const esdm__bundles *bundles, esdm_container *first,
           esdm_container *container, esdm_error *err)
{
    esdm_status status = copy_all_but_left_out(whole, first, container, err);
    if (status == ESDM_OK && whole->stacks)
        status = esdm__stack_build(whole, bundles, container, err);
    if (status != ESDM_OK)
        return status;
    if (whole->cross.name[0] != '\0')
        atomic_store(
            &esdm_group_dimension_find(esdm_container_root(container), whole->cross.name)->length,
            whole->cross.length);
    if (!whole->stacks) {
        esdm_dimension *joined =
            esdm_group_dimension_find(esdm_container_root(container), whole->axis.name);
        joined->unlimited = may_be_unlimited(container, joined);
        atomic_store(&joined->length, whole->axis.length);
    }
    for (size_t i = 0; i < whole->ndatasets && status == ESDM_OK; i++)
        status = join_dataset(whole, container->datasets.items[i], &whole->datasets[i], err);
    for (size_t i = 0; i < container->datasets.count && status == ESDM_OK; i++)
        atomic_store(&((esdm_dataset *) container->datasets.items[i])->has_data, true);
    return status == ESDM_OK ? esdm__virtual_note(whole, container, err) : status;
}

esdm_status
esdm__virtual_build(esdm__virtual *whole, const esdm__bundles *bundles, esdm_container *container,
                    esdm_error *err)
{
    esdm_container *first = NULL;
    esdm_status status = esdm__member_use(&whole->members, whole->axis.first, &first, err);
    if (status != ESDM_OK)
        return status;
    container->writable = true; /* while it is filled */
    status = build_from(whole, bundles, first, container, err);
    container->writable = false;
    container->structure_dirty = false;
    esdm__member_release(&whole->members, whole->axis.first);
    return status;
}

void
esdm__joined_clear(esdm__virtual *whole)
{
    for (size_t i = 0; i < whole->ndatasets; i++) {
        esdm__joined *joined = &whole->datasets[i];
        free(joined->values);
        for (size_t k = 0; joined->maps != NULL && k < joined->nmeanings; k++)
            free(joined->maps[k]);
        free(joined->maps);
        free(joined->meanings);
        free(joined->which);
    }
    free(whole->datasets);
    whole->datasets = NULL;
    whole->ndatasets = 0;
}

void
esdm__virtual_clear(esdm__virtual *whole)
{
    esdm__joined_clear(whole);
    free(whole->flips);
    esdm__buffer_clear(&whole->differs);
    esdm__axis_clear(&whole->axis);
    esdm__cross_clear(whole);
    esdm__members_clear(&whole->members);
    *whole = (esdm__virtual){0};
}

void
esdm__virtual_free(void *provided)
{
    esdm__virtual_clear(provided);
    free(provided);
}
