/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* In which attributes members differ, and what the whole says of them: esdm_differs, esdm_members,
 * esdm_gaps, and how accurate it is. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "base/error.h"
#include "esdm/accuracy_attributes.h"
#include "model/accuracy.h"
#include "virtual/parts.h"

void
esdm__virtual_forget(esdm_dataset *dataset, const char *name)
{
    if (esdm_attribute_find(&dataset->attributes, name, NULL, NULL))
        (void) !esdm_attribute_remove(&dataset->attributes, name, NULL);
}

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
        "missing_value", "esdm_members",  "esdm_differs", "esdm_gaps",  ESDM__ACROSS_ATTRIBUTE};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static bool
is_noted(const char *entry, esdm__buffer *text)
{
    esdm__buffer_put(text, "", 1); /* so that the search ends */
    if (text->failed)
        return false;
    const char *all = (const char *) text->data, *found = strstr(all, entry);
    while (found != NULL && found != all && found[-1] != '\n')
        found = strstr(found + 1, entry);
    text->bytes--;
    return found != NULL;
}

static void
note_attribute(const char *owner, const char *name, esdm__buffer *text)
{
    char entry[2 * ESDM_NAME_MAX + 8];
    int n = snprintf(entry, sizeof entry, "%s%s%s\n", owner, owner[0] != '\0' ? ":" : "", name);
    if (!is_noted(entry, text) && !text->failed)
        esdm__buffer_put(text, entry, (size_t) n);
}

void
esdm__note_left_out(const char *name, esdm__buffer *text)
{
    note_attribute(name, "left out, not all have it", text);
}

static const char *const valid_names[] = {"valid_range", "valid_min", "valid_max"};

/* What is valid in one member hides values of another: it stays where all say the same. */
static void
note_valid(const esdm_attributes *first, const esdm_attributes *other, const char *owner,
           esdm__buffer *text)
{
    for (size_t i = 0; i < sizeof valid_names / sizeof *valid_names; i++) {
        esdm_attribute a, b;
        bool has = esdm_attribute_find(first, valid_names[i], &a, NULL);
        if (has != esdm_attribute_find(other, valid_names[i], &b, NULL) ||
            (has && !same_attribute(&a, &b)))
            note_attribute(owner, valid_names[i], text);
    }
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
        a.type != ESDM_TYPE_CHAR || a.count == 0)
        return;
    char *copy = esdm__global_text(member, "esdm_differs");
    char *rest = NULL;
    text->failed = text->failed || copy == NULL;
    for (char *line = copy != NULL ? strtok_r(copy, "\n", &rest) : NULL; line != NULL;
         line = strtok_r(NULL, "\n", &rest))
        note_attribute("", line, text);
    free(copy);
}

/* ---- accuracy ------------------------------------------------------------------------------- */

/* Bounds that readers are told: the loosest of all members is true of the whole, where each member
 * that has lost something says one. */
static const struct {
    const char *name;
    bool least; /* the least is the loosest */
} bounds[] = {{"quantization_maximum_absolute_error", false},
              {"quantization_maximum_relative_error", false},
              {"quantization_nsd", true},
              {"quantization_nsb", true}};

#define NBOUNDS (sizeof bounds / sizeof *bounds)

/* Lines that begin so are for put_bounds() alone. */
#define OF_BOUNDS '\x01'

/* Of whatever type of numbers: other programs write other ones than ESDM does. */
static bool
has_bound(const esdm_attributes *list, size_t k, double *ret)
{
    esdm_attribute a;
    *ret = 0;
    return esdm_attribute_find(list, bounds[k].name, &a, NULL) && a.count == 1 &&
           esdm__meaning_is_number(a.type) &&
           esdm_convert(a.type, a.values, ESDM_TYPE_FLOAT64, ret, 1, NULL, NULL) == ESDM_OK &&
           isfinite(*ret) && (!bounds[k].least || fabs(*ret) <= INT32_MAX);
}

/* What is no bound that can be compared says all the same that something was lost. */
static bool
has_lost(const esdm_attributes *list)
{
    bool lost = esdm_attribute_find(list, ESDM_ACCURACY_STORED_ATTRIBUTE, NULL, NULL);
    for (size_t k = 0; k < NBOUNDS && !lost; k++)
        lost = esdm_attribute_find(list, bounds[k].name, NULL, NULL);
    return lost;
}

/* Whether both say the same bound of a kind, or none. */
static bool
same_bound(const esdm_attributes *first, const esdm_attributes *other, size_t k)
{
    esdm_attribute a;
    esdm_attribute b;
    double x;
    double y;
    bool has = esdm_attribute_find(first, bounds[k].name, &a, NULL);
    if (has != esdm_attribute_find(other, bounds[k].name, &b, NULL))
        return false;
    return !has || same_attribute(&a, &b) ||
           (has_bound(first, k, &x) && has_bound(other, k, &y) && x == y);
}

static void
note_bounds_of(const esdm_attributes *list, const char *owner, esdm__buffer *text)
{
    char line[2 * ESDM_NAME_MAX + 48];
    double value;
    for (size_t k = 0; k < NBOUNDS && has_lost(list); k++) {
        bool has = has_bound(list, k, &value);
        (void) snprintf(line, sizeof line, "%c%zu%c%.17g:%s", OF_BOUNDS, k, has ? '=' : '-',
                        has ? value : 0.0, owner);
        note_attribute("", line, text);
    }
}

/* One that says nothing has lost nothing: of the whole that says nothing. */
static void
note_accuracy(const esdm_attributes *first, const esdm_attributes *other, const char *owner,
              esdm__buffer *text)
{
    bool same = has_lost(first) == has_lost(other);
    for (size_t k = 0; k < NBOUNDS && same; k++)
        same = same_bound(first, other, k);
    if (same)
        return;
    note_attribute(owner, ESDM_ACCURACY_STORED_ATTRIBUTE, text);
    note_bounds_of(first, owner, text);
    note_bounds_of(other, owner, text);
}

/* The loosest of the bounds in lines of `owner`. @return whether there are such lines; *ret_bound
 * is NAN when some member that has lost something says no bound of this kind. */
static bool
loosest(const char *text, size_t kind, const char *owner, double *ret_bound)
{
    bool any = false;
    *ret_bound = NAN;
    for (const char *line = text; line != NULL && *line != '\0';
         line = strchr(line, '\n'), line += line != NULL) {
        if (line[0] != OF_BOUNDS || (size_t) (line[1] - '0') != kind)
            continue;
        char *end = NULL;
        double value = line[2] == '=' ? strtod(line + 3, &end) : NAN;
        const char *name = strchr(line, ':') + 1;
        size_t length = strcspn(name, "\n");
        if (strlen(owner) != length || strncmp(name, owner, length) != 0)
            continue;
        if (line[2] != '=') {
            *ret_bound = NAN;
            return true;
        }
        if (!any || (bounds[kind].least ? value < *ret_bound : value > *ret_bound))
            *ret_bound = value;
        any = true;
    }
    return any;
}

/* What was stated of the first member was not stated of the whole: neither readers nor copies are
 * told so. */
static esdm_status
put_bounds(const char *text, esdm_dataset *dataset, esdm_error *err)
{
    static const char differs[] = "differs between containers; no number is further off than the "
                                  "attributes quantization_... say, where there are any";
    double value[NBOUNDS];
    bool any = false;
    for (size_t k = 0; k < NBOUNDS; k++)
        any = loosest(text, k, dataset->name, &value[k]) || any;
    if (!any)
        return ESDM_OK;
    esdm_status status = esdm__dataset_put_accuracy(dataset, NULL, NULL, err);
    for (size_t k = 0; k < NBOUNDS && status == ESDM_OK; k++) {
        int32_t whole = isnan(value[k]) ? 0 : (int32_t) value[k];
        esdm__virtual_forget(dataset, bounds[k].name);
        if (!isnan(value[k]))
            status = esdm_attribute_set(&dataset->attributes, bounds[k].name,
                                        bounds[k].least ? ESDM_TYPE_INT32 : ESDM_TYPE_FLOAT64, 1,
                                        bounds[k].least ? (void *) &whole : &value[k], err);
    }
    return status == ESDM_OK
               ? esdm_attribute_set(&dataset->attributes, ESDM_ACCURACY_STORED_ATTRIBUTE,
                                    ESDM_TYPE_CHAR, sizeof differs - 1, differs, err)
               : status;
}

static esdm_status
put_all_bounds(esdm__virtual *whole, esdm_container *container, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    if (whole->differs.bytes == 0)
        return ESDM_OK;
    esdm__buffer_put(&whole->differs, "", 1);
    if (whole->differs.failed)
        return esdm__error_nomem(err, whole->differs.bytes, "attributes");
    for (size_t i = 0; i < container->datasets.count && status == ESDM_OK; i++)
        status = put_bounds((const char *) whole->differs.data, container->datasets.items[i], err);
    whole->differs.bytes--;
    return status;
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
        if (y == NULL)
            continue;
        differences_of(&x->attributes, &y->attributes, x->name, text);
        note_valid(&x->attributes, &y->attributes, x->name, text);
        note_accuracy(&x->attributes, &y->attributes, x->name, text);
    }
    for (size_t k = 0; k < other->datasets.count; k++) {
        const esdm_dataset *y = other->datasets.items[k];
        if (esdm__member_same(first, y) == NULL && esdm__is_bounds(y))
            esdm__note_left_out(y->name, text);
    }
}

typedef struct summary {
    uint64_t digest;
    size_t count;
} summary;

/* Whatever they are called, and in whatever order: a container that is replaced begins at the same
 * snapshot again, but is another one. */
static bool
add_member(const esdm__virtual_member *m, void *user)
{
    summary *sum = user;
    uint64_t parts[2] = {esdm__checksum(m->uuid, strlen(m->uuid)), m->snapshot};
    sum->digest += esdm__checksum(parts, sizeof parts);
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
        if (line[0] != OF_BOUNDS)
            lines[n++] = line;
    qsort(lines, n, sizeof *lines, by_text);
    for (size_t i = 0; i < n; i++)
        at += (size_t) sprintf((char *) text->data + at, "%s\n", lines[i]);
    text->bytes = at;
    free(copy);
    free(lines);
    return ESDM_OK;
}

static void
remove_invalid(esdm__virtual *whole, esdm_container *container)
{
    char entry[2 * ESDM_NAME_MAX + 8];
    for (size_t i = 0; i < container->datasets.count && whole->differs.bytes > 0; i++) {
        esdm_dataset *dataset = container->datasets.items[i];
        for (size_t k = 0; k < sizeof valid_names / sizeof *valid_names; k++) {
            (void) snprintf(entry, sizeof entry, "%s:%s\n", dataset->name, valid_names[k]);
            if (is_noted(entry, &whole->differs))
                esdm__virtual_forget(dataset, valid_names[k]);
        }
    }
}

esdm_status
esdm__virtual_note(esdm__virtual *whole, esdm_container *container, esdm_error *err)
{
    esdm_attributes *root = esdm_group_attributes(esdm_container_root(container));
    if (whole->differs.failed)
        return esdm__error_nomem(err, whole->differs.bytes, "attributes");
    remove_invalid(whole, container);
    esdm_status status = put_all_bounds(whole, container, err);
    if (status == ESDM_OK && whole->differs.bytes > 0) {
        status = sort_lines(&whole->differs, err);
        if (status == ESDM_OK && whole->differs.bytes > 0)
            status = esdm_attribute_set(root, "esdm_differs", ESDM_TYPE_CHAR,
                                        whole->differs.bytes - 1, whole->differs.data, err);
    }
    if (status == ESDM_OK && whole->across[0] != '\0')
        status = esdm_attribute_set(root, ESDM__ACROSS_ATTRIBUTE, ESDM_TYPE_CHAR,
                                    strlen(whole->across), whole->across, err);
    if (whole->axis.told.failed)
        return esdm__error_nomem(err, whole->axis.told.bytes, "attributes");
    if (status == ESDM_OK && whole->axis.told.bytes > 0)
        status = esdm_attribute_set(root, "esdm_gaps", ESDM_TYPE_CHAR, whole->axis.told.bytes - 1,
                                    whole->axis.told.data, err);
    return status == ESDM_OK ? note_members(whole, container, err) : status;
}
