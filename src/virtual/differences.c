/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* In which attributes members differ, and what the whole says of them: esdm_differs, esdm_members,
 * esdm_gaps. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "base/error.h"
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
        lines[n++] = line;
    qsort(lines, n, sizeof *lines, by_text);
    for (size_t i = 0; i < n; i++)
        at += (size_t) sprintf((char *) text->data + at, "%s\n", lines[i]);
    text->bytes--;
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
    esdm_status status = ESDM_OK;
    remove_invalid(whole, container);
    if (whole->differs.bytes > 0) {
        status = sort_lines(&whole->differs, err);
        if (status == ESDM_OK)
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
