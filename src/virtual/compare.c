/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What must be equal in all members, but for the joined dimension. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "virtual/parts.h"

/* Two members that are compared. */
typedef struct pair {
    const esdm__axis *axis;
    const char *one; /* names */
    const char *other;
    esdm_container *a;
    esdm_container *b;
} pair;

static esdm_status
check_kind(esdm_container *container, const char *name, esdm_error *err)
{
    if (esdm_container_group_count(container) > 1)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "'%s' has groups: containers with groups are not joined by this "
                               "version",
                               name);
    if (container->types.count > 0)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "'%s' has user-defined types: containers with these are not joined "
                               "by this version",
                               name);
    return ESDM_OK;
}

static esdm_status
check_dimensions(const pair *p, const esdm_dataset *x, const esdm_dataset *y, esdm_error *err)
{
    bool same = x->rank == y->rank;
    for (uint32_t i = 0; same && i < x->rank; i++)
        same = strcmp(x->dimensions[i]->name, y->dimensions[i]->name) == 0;
    if (!same)
        return esdm__error_set(err, ESDM_EINVAL,
                               "variable '%s' has other dimensions, or in another order, in '%s' "
                               "than in '%s'",
                               x->name, p->other, p->one);
    for (uint32_t i = 0; i < x->rank; i++) {
        const char *name = x->dimensions[i]->name;
        uint64_t n = esdm_dimension_length(x->dimensions[i]);
        uint64_t m = esdm_dimension_length(y->dimensions[i]);
        if (n != m && strcmp(name, p->axis->name) != 0)
            return esdm__error_set(err, ESDM_EINVAL,
                                   "dimension '%s' of variable '%s' has length %" PRIu64
                                   " in '%s' and %" PRIu64 " in '%s'",
                                   name, x->name, n, p->one, m, p->other);
    }
    return ESDM_OK;
}

static esdm_status
check_type(const pair *p, const esdm_dataset *x, const esdm_dataset *y, esdm_error *err)
{
    if (esdm__type_of_both(x->type, y->type) != ESDM_TYPE_NONE)
        return ESDM_OK;
    return esdm__error_set(err, ESDM_EINVAL,
                           "no type holds the values of variable '%s' of both '%s' and '%s'",
                           x->name, p->one, p->other);
}

/* Texts that say what the numbers are. */
static esdm_status
check_attributes(const pair *p, const esdm_dataset *x, const esdm_dataset *y, esdm_error *err)
{
    static const char *const names[] = {"units",    "standard_name", "cell_methods",
                                        "positive", "grid_mapping",  "formula_terms"};
    char one[300];
    char other[300];
    esdm__meaning mx;
    esdm__meaning my;
    esdm_status status = esdm__meaning_of(x, &mx, err);
    if (status == ESDM_OK)
        status = esdm__meaning_of(y, &my, err);
    if (status != ESDM_OK)
        return status;
    for (size_t i = mx.is_time && my.is_time ? 1 : 0; i < sizeof names / sizeof *names; i++) {
        esdm__attribute_text(x, names[i], one, sizeof one);
        esdm__attribute_text(y, names[i], other, sizeof other);
        if (strcmp(one, other) != 0)
            return esdm__error_set(err, ESDM_EINVAL,
                                   "variable '%s' has %s '%s' in '%s' and '%s' in '%s'", x->name,
                                   names[i], one, p->one, other, p->other);
    }
    return ESDM_OK;
}

static esdm_status
differ_at(const pair *p, const esdm_dataset *x, uint64_t at, double one, double other,
          esdm_error *err)
{
    return esdm__error_set(err, ESDM_EINVAL,
                           "variable '%s', which does not depend on '%s', is %.9g in '%s' and %.9g "
                           "in '%s' (element %" PRIu64 ")",
                           x->name, p->axis->name, one, p->one, other, p->other, at);
}

static esdm_status
check_numbers(const pair *p, esdm_dataset *x, esdm_dataset *y, esdm_error *err)
{
    double *one = NULL;
    double *other = NULL;
    uint64_t count = 0;
    uint64_t same = 0;
    esdm_status status = esdm__values_all(x, &one, &count, err);
    if (status == ESDM_OK)
        status = esdm__values_all(y, &other, &count, err);
    bool coordinate = x->rank == 1 && strcmp(x->dimensions[0]->name, x->name) == 0;
    double spacing = status == ESDM_OK && coordinate ? esdm__coordinate_spacing(one, count) : 0;
    while (status == ESDM_OK && same < count &&
           esdm__coordinate_same(one[same], other[same], spacing))
        same++;
    if (status == ESDM_OK && same < count)
        status = differ_at(p, x, same, one[same], other[same], err);
    free(one);
    free(other);
    return status;
}

static esdm_status
read_bytes(esdm_dataset *dataset, char **ret, uint64_t *ret_count, esdm_error *err)
{
    esdm_dataspace space;
    esdm_status status = esdm__space_of_all(dataset, &space, err);
    if (status != ESDM_OK)
        return status;
    *ret_count = esdm_dataspace_elements(&space);
    *ret = malloc((size_t) *ret_count + 1);
    if (*ret == NULL)
        return esdm__error_nomem(err, (size_t) *ret_count, "a variable");
    return esdm__io_read(dataset, &space, ESDM_TYPE_CHAR, *ret, NULL, err);
}

static esdm_status
check_bytes(const pair *p, esdm_dataset *x, esdm_dataset *y, esdm_error *err)
{
    char *one = NULL;
    char *other = NULL;
    uint64_t count = 0;
    esdm_status status = read_bytes(x, &one, &count, err);
    if (status == ESDM_OK)
        status = read_bytes(y, &other, &count, err);
    if (status == ESDM_OK && memcmp(one, other, (size_t) count) != 0)
        status = esdm__error_set(err, ESDM_EINVAL,
                                 "variable '%s', which does not depend on '%s', has another text "
                                 "in '%s' than in '%s'",
                                 x->name, p->axis->name, p->other, p->one);
    free(one);
    free(other);
    return status;
}

/* Of what does not depend on the joined dimension the values must be equal. */
static esdm_status
check_values(const pair *p, esdm_dataset *x, esdm_dataset *y, esdm_error *err)
{
    if (x->type == ESDM_TYPE_STRING)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "variable '%s' has strings and does not depend on '%s': such are "
                               "not joined by this version",
                               x->name, p->axis->name);
    return x->type == ESDM_TYPE_CHAR ? check_bytes(p, x, y, err) : check_numbers(p, x, y, err);
}

static esdm_status
lacks(const char *who, const char *what, const char *other, esdm_error *err)
{
    return esdm__error_set(err, ESDM_EINVAL, "'%s' has no variable '%s', which '%s' has", who, what,
                           other);
}

static esdm_status
check_dataset(const pair *p, esdm_dataset *x, esdm_error *err)
{
    esdm_dataset *y = esdm__member_dataset(p->b, x->name);
    if (y == NULL)
        return lacks(p->other, x->name, p->one, err);
    esdm_status status = check_dimensions(p, x, y, err);
    if (status == ESDM_OK)
        status = check_type(p, x, y, err);
    if (status == ESDM_OK)
        status = check_attributes(p, x, y, err);
    if (status == ESDM_OK && esdm__dataset_axis(x, p->axis->name) < 0)
        status = check_values(p, x, y, err);
    return status;
}

static esdm_status
check_pair(const pair *p, esdm_error *err)
{
    esdm_status status = check_kind(p->a, p->one, err);
    if (status == ESDM_OK)
        status = check_kind(p->b, p->other, err);
    for (size_t i = 0; i < p->a->datasets.count && status == ESDM_OK; i++)
        status = check_dataset(p, p->a->datasets.items[i], err);
    for (size_t i = 0; i < p->b->datasets.count && status == ESDM_OK; i++) {
        const esdm_dataset *y = p->b->datasets.items[i];
        if (esdm__member_dataset(p->a, y->name) == NULL)
            status = lacks(p->one, y->name, p->other, err);
    }
    return status;
}

esdm_status
esdm__members_compare(esdm__members *members, const esdm__axis *axis, esdm_error *err)
{
    pair p = {.axis = axis, .one = members->items[axis->first].name};
    esdm_status status = esdm__member_use(members, axis->first, &p.a, err);
    if (status != ESDM_OK)
        return status;
    for (size_t i = 0; i < members->count && status == ESDM_OK; i++) {
        if (i == axis->first)
            continue;
        p.other = members->items[i].name;
        status = esdm__member_use(members, i, &p.b, err);
        if (status != ESDM_OK)
            break;
        status = check_pair(&p, err);
        esdm__member_release(members, i);
    }
    esdm__member_release(members, axis->first);
    return status;
}
