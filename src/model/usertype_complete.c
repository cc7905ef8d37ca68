/* SPDX-License-Identifier: LGPL-3.0-or-later */
/** @file Checking a type, and what follows from its definition: sizes, steps, layout, equality. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arguments.h"
#include "base/checked.h"
#include "base/error.h"
#include "model/copy.h"
#include "model/usertype.h"

/* A compound with at most so many steps is taken apart within another one. */
#define INLINE_STEPS 8

static esdm_status complete_locked(esdm__usertype *type, uint32_t level, esdm_error *err);

/* ---- parts --------------------------------------------------------------------------------- */

/* A type that `user` is made of: atomic, or defined before it, so that there are no cycles. */
static esdm_status
resolve_part(const esdm__usertype *user, esdm_type part, uint32_t level, esdm__typeref *ret,
             esdm_error *err)
{
    *ret = (esdm__typeref){part, NULL};
    if (esdm_type_size(part) > 0)
        return ESDM_OK;
    esdm__usertype *found = esdm__usertype_at(user->group->container, part);
    if (found == NULL || part >= user->type)
        return esdm__error_set(err, ESDM_EINVAL,
                               "type '%s' is made of type %d, which was not defined before it",
                               user->name, (int) part);
    ret->user = found;
    return complete_locked(found, level + 1, err);
}

static esdm_status
set_depth(esdm__usertype *type, esdm__typeref part, esdm_error *err)
{
    uint32_t depth = 1 + (part.user != NULL ? part.user->depth : 0);
    type->depth = depth > type->depth ? depth : type->depth;
    if (type->depth > ESDM__TYPE_DEPTH_MAX)
        return esdm__error_set(err, ESDM_EINVAL, "type '%s' is nested deeper than %d", type->name,
                               ESDM__TYPE_DEPTH_MAX);
    return ESDM_OK;
}

/* Number of elements of a member; they and their bytes fit the compound. */
static esdm_status
count_elements(const esdm__usertype *type, const esdm__member *member, size_t element_bytes,
               uint64_t *ret_count, esdm_error *err)
{
    uint64_t count = 1;
    uint64_t bytes;
    for (uint32_t i = 0; i < member->rank; i++) {
        if (member->shape[i] == 0 || !esdm__mul_u64(count, member->shape[i], &count) ||
            count > ESDM__TYPE_BYTES_MAX)
            return esdm__error_set(err, ESDM_EINVAL,
                                   "member '%s.%s': size %" PRIu32 " of axis %" PRIu32
                                   " is 0 or too large",
                                   type->name, member->name, member->shape[i], i);
    }
    if (!esdm__mul_u64(count, element_bytes, &bytes) || bytes > type->memory_bytes ||
        member->offset > type->memory_bytes - bytes)
        return esdm__error_set(err, ESDM_EINVAL,
                               "member '%s.%s' lies beyond the %zu bytes of its type", type->name,
                               member->name, type->memory_bytes);
    *ret_count = count;
    return ESDM_OK;
}

/* ---- compounds ----------------------------------------------------------------------------- */

/* Adds a step; a run of bytes joins the one before it. Room for it was allocated. */
static void
add_step(esdm__usertype *type, const esdm__step *step)
{
    esdm__step *last = type->step_count > 0 ? &type->steps[type->step_count - 1] : NULL;
    if (last != NULL && last->bytes > 0 && step->bytes > 0 &&
        last->offset + last->bytes == step->offset)
        last->bytes += step->bytes;
    else
        type->steps[type->step_count++] = *step; /* NOLINT: the analyzer forgets that it was made */
}

static void
add_member_steps(esdm__usertype *type, const esdm__member *member, esdm__typeref of, uint64_t count)
{
    bool variable = esdm__typeref_is_variable(of);
    bool plain = !variable && (of.user == NULL || of.user->plain);
    if (plain) {
        size_t bytes = (size_t) count * esdm__typeref_bytes(of);
        add_step(type, &(esdm__step){.offset = member->offset, .bytes = bytes});
    } else if (count == 1 && of.user != NULL && of.user->kind == ESDM_CLASS_COMPOUND &&
               of.user->step_count <= INLINE_STEPS) {
        for (size_t i = 0; i < of.user->step_count; i++) {
            esdm__step step = of.user->steps[i];
            step.offset += member->offset;
            add_step(type, &step);
        }
    } else {
        add_step(type, &(esdm__step){.offset = member->offset, .of = of, .count = count});
    }
}

static int
by_name(const void *a, const void *b)
{
    return strcmp((*(const esdm__member *const *) a)->name,
                  (*(const esdm__member *const *) b)->name);
}

static int
by_offset(const void *a, const void *b)
{
    size_t x = (*(const esdm__member *const *) a)->offset;
    size_t y = (*(const esdm__member *const *) b)->offset;
    return x < y ? -1 : x > y;
}

/* Member names are unique. @param sorted room for all members. */
static esdm_status
check_names(const esdm__usertype *type, const esdm__member **sorted, esdm_error *err)
{
    for (size_t i = 0; i < type->count; i++)
        sorted[i] = &type->members[i];
    qsort(sorted, type->count, sizeof *sorted, by_name);
    for (size_t i = 1; i < type->count; i++) {
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            return esdm__error_set(err, ESDM_EINVAL, "type '%s' has two members named '%s'",
                                   type->name, sorted[i]->name);
    }
    return ESDM_OK;
}

/* @param ends of the members in memory, by their position. */
static esdm_status
check_overlaps(const esdm__usertype *type, const esdm__member **sorted, const size_t *ends,
               esdm_error *err)
{
    qsort(sorted, type->count, sizeof *sorted, by_offset);
    for (size_t i = 1; i < type->count; i++) {
        if (ends[sorted[i - 1] - type->members] > sorted[i]->offset)
            return esdm__error_set(err, ESDM_EINVAL, "members '%s' and '%s' of type '%s' overlap",
                                   sorted[i - 1]->name, sorted[i]->name, type->name);
    }
    return ESDM_OK;
}

/* Most steps that a compound's members can become. */
static size_t
most_steps(const esdm__usertype *type)
{
    return type->count * INLINE_STEPS;
}

static esdm_status
complete_members(esdm__usertype *type, uint32_t level, size_t *ends, esdm_error *err)
{
    bool in_order = true;
    type->step_count = 0;
    type->stored_bytes = 0;
    type->depth = 0;
    type->variable = false;
    for (size_t i = 0; i < type->count; i++) {
        const esdm__member *member = &type->members[i];
        esdm__typeref of;
        uint64_t count = 0;
        esdm_status st = resolve_part(type, member->type, level, &of, err);
        if (st == ESDM_OK)
            st = set_depth(type, of, err);
        if (st == ESDM_OK)
            st = count_elements(type, member, esdm__typeref_bytes(of), &count, err);
        if (st != ESDM_OK)
            return st;
        ends[i] = member->offset + (size_t) count * esdm__typeref_bytes(of);
        bool plain = of.user != NULL ? of.user->plain : of.type != ESDM_TYPE_STRING;
        in_order = in_order && plain && member->offset == type->stored_bytes;
        /* Fits: the elements fit in memory, and stored ones are not larger. */
        uint64_t stored = of.user != NULL               ? of.user->stored_bytes
                          : of.type == ESDM_TYPE_STRING ? 1
                                                        : esdm_type_size(of.type);
        type->stored_bytes += count * stored;
        type->variable = type->variable || esdm__typeref_is_variable(of);
        add_member_steps(type, member, of, count);
    }
    type->plain = in_order && type->stored_bytes == type->memory_bytes;
    return ESDM_OK;
}

static esdm_status
complete_compound(esdm__usertype *type, uint32_t level, esdm_error *err)
{
    if (type->count == 0)
        return esdm__error_set(err, ESDM_EINVAL, "compound type '%s' has no members", type->name);
    free(type->steps);
    type->steps = calloc(most_steps(type), sizeof *type->steps);
    size_t *ends = calloc(type->count, sizeof *ends);
    const esdm__member **sorted = calloc(type->count, sizeof *sorted);
    esdm_status st = ESDM_OK;
    if (type->steps == NULL || ends == NULL || sorted == NULL) {
        (void) esdm__error_nomem(err, most_steps(type) * sizeof *type->steps, "a type");
        st = ESDM_ENOMEM;
    }
    if (st == ESDM_OK)
        st = complete_members(type, level, ends, err);
    if (st == ESDM_OK)
        st = check_names(type, sorted, err);
    if (st == ESDM_OK)
        st = check_overlaps(type, sorted, ends, err);
    free(sorted);
    free(ends);
    return st;
}

/* ---- the other classes --------------------------------------------------------------------- */

static int
by_text(const void *a, const void *b)
{
    return strcmp((*(const esdm__enumerator *const *) a)->name,
                  (*(const esdm__enumerator *const *) b)->name);
}

static int
by_value(const void *a, const void *b)
{
    uint64_t x = (*(const esdm__enumerator *const *) a)->value;
    uint64_t y = (*(const esdm__enumerator *const *) b)->value;
    return x < y ? -1 : x > y;
}

static esdm_status
check_enumerators(const esdm__usertype *type, const esdm__enumerator **sorted, esdm_error *err)
{
    for (size_t i = 0; i < type->count; i++)
        sorted[i] = &type->enumerators[i];
    qsort(sorted, type->count, sizeof *sorted, by_text);
    for (size_t i = 1; i < type->count; i++) {
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            return esdm__error_set(err, ESDM_EINVAL, "enumeration '%s' has two members named '%s'",
                                   type->name, sorted[i]->name);
    }
    qsort(sorted, type->count, sizeof *sorted, by_value);
    for (size_t i = 1; i < type->count; i++) {
        if (sorted[i - 1]->value == sorted[i]->value)
            return esdm__error_set(err, ESDM_EINVAL,
                                   "members '%s' and '%s' of enumeration '%s' have the same value",
                                   sorted[i - 1]->name, sorted[i]->name, type->name);
    }
    return ESDM_OK;
}

static esdm_status
complete_enum(esdm__usertype *type, esdm_error *err)
{
    if (!esdm__type_is_numeric(type->base) || type->base == ESDM_TYPE_FLOAT32 ||
        type->base == ESDM_TYPE_FLOAT64)
        return esdm__error_set(err, ESDM_EINVAL, "enumeration '%s': its base type is no integer",
                               type->name);
    if (type->count == 0)
        return esdm__error_set(err, ESDM_EINVAL, "enumeration '%s' has no members", type->name);
    const esdm__enumerator **sorted = calloc(type->count, sizeof *sorted);
    if (sorted == NULL)
        return esdm__error_nomem(err, type->count * sizeof *sorted, "an enumeration");
    esdm_status st = check_enumerators(type, sorted, err);
    free(sorted);
    type->plain = true;
    type->stored_bytes = type->memory_bytes;
    type->depth = 1;
    return st;
}

static esdm_status
complete_vlen(esdm__usertype *type, uint32_t level, esdm_error *err)
{
    esdm_status st = resolve_part(type, type->base, level, &type->base_of, err);
    type->variable = true;
    type->stored_bytes = 1;
    return st == ESDM_OK ? set_depth(type, type->base_of, err) : st;
}

/* With the container's lock held. */
static esdm_status
complete_locked(esdm__usertype *type, uint32_t level, esdm_error *err)
{
    esdm_status st = ESDM_OK;
    if (atomic_load_explicit(&type->complete, memory_order_relaxed))
        return ESDM_OK;
    if (level > ESDM__TYPE_DEPTH_MAX)
        return esdm__error_set(err, ESDM_EINVAL, "type '%s' is nested deeper than %d", type->name,
                               ESDM__TYPE_DEPTH_MAX);
    switch (type->kind) {
    case ESDM_CLASS_COMPOUND:
        st = complete_compound(type, level, err);
        break;
    case ESDM_CLASS_ENUM:
        st = complete_enum(type, err);
        break;
    case ESDM_CLASS_VLEN:
        st = complete_vlen(type, level, err);
        break;
    default: /* ESDM_CLASS_OPAQUE */
        type->plain = true;
        type->stored_bytes = type->memory_bytes;
        type->depth = 1;
        break;
    }
    if (st == ESDM_OK)
        atomic_store_explicit(&type->complete, true, memory_order_release);
    return st;
}

esdm_status
esdm__usertype_complete(const esdm__usertype *type, esdm_error *err)
{
    if (atomic_load_explicit(&type->complete, memory_order_acquire))
        return ESDM_OK;
    esdm_container *container = type->group->container;
    (void) pthread_mutex_lock(&container->types_lock);
    esdm_status st =
        complete_locked(container->types.items[type->type - ESDM_TYPE_FIRST_USER], 1, err);
    (void) pthread_mutex_unlock(&container->types_lock);
    return st;
}

esdm_status
esdm__usertypes_complete(const esdm_container *container, esdm_error *err)
{
    esdm_status st = ESDM_OK;
    for (size_t i = 0; i < container->types.count && st == ESDM_OK; i++)
        st = esdm__usertype_complete(container->types.items[i], err);
    return st;
}

esdm_status
esdm_type_complete(esdm_container *container, esdm_type type, esdm_error *err)
{
    ESDM__NEED(err, container);
    esdm__typeref ref;
    return esdm__type_resolve(container, type, &ref, err);
}

/* ---- layout -------------------------------------------------------------------------------- */

static size_t
alignment_of(const esdm_container *container, esdm_type type)
{
    const esdm__usertype *user = esdm__usertype_at(container, type);
    if (user == NULL)
        return esdm_type_size(type); /* on every 64-bit system */
    if (user->kind == ESDM_CLASS_VLEN)
        return _Alignof(esdm_vlen);
    if (user->kind == ESDM_CLASS_OPAQUE)
        return 1;
    return user->kind == ESDM_CLASS_ENUM ? esdm_type_size(user->base) : user->alignment;
}

static bool
round_up(uint64_t value, size_t alignment, uint64_t *ret)
{
    uint64_t over;
    if (!esdm__add_u64(value, alignment - 1, &over))
        return false;
    *ret = over / alignment * alignment;
    return true;
}

/* Offset of a member behind `*at`, which moves to its end. */
static bool
place_member(const esdm_container *container, esdm__member *member, uint64_t *at)
{
    uint64_t bytes = esdm_container_type_size(container, member->type);
    bool fits = round_up(*at, alignment_of(container, member->type), at);
    member->offset = (size_t) *at;
    for (uint32_t i = 0; i < member->rank; i++)
        fits = fits && esdm__mul_u64(bytes, member->shape[i], &bytes);
    return fits && esdm__add_u64(*at, bytes, at) && *at <= ESDM__TYPE_BYTES_MAX;
}

esdm_status
esdm__usertype_align(esdm__usertype *type, esdm_error *err)
{
    const esdm_container *container = type->group->container;
    uint64_t at = 0;
    bool fits = true;
    type->alignment = 1;
    for (size_t i = 0; i < type->count && fits; i++) {
        size_t alignment = alignment_of(container, type->members[i].type);
        type->alignment = alignment > type->alignment ? alignment : type->alignment;
        fits = place_member(container, &type->members[i], &at);
    }
    if (!fits || !round_up(at, type->alignment, &at) || at > ESDM__TYPE_BYTES_MAX)
        return esdm__error_set(err, ESDM_EINVAL, "type '%s' has more than %zu bytes", type->name,
                               ESDM__TYPE_BYTES_MAX);
    type->memory_bytes = at > 0 ? (size_t) at : 1; /* without members: refused later */
    return ESDM_OK;
}

/* ---- equality ------------------------------------------------------------------------------ */

static const esdm__enumerator *
find_enumerator(const esdm__usertype *type, const char *name)
{
    for (size_t i = 0; i < type->count; i++) {
        if (strcmp(type->enumerators[i].name, name) == 0)
            return &type->enumerators[i];
    }
    return NULL;
}

static bool parts_equal(const esdm__usertype *a, esdm_type part_a, const esdm__usertype *b,
                        esdm_type part_b);

/* The order of members counts: values are stored in it. */
static bool
members_equal(const esdm__usertype *a, const esdm__usertype *b)
{
    for (size_t i = 0; i < a->count; i++) {
        const esdm__member *x = &a->members[i];
        const esdm__member *y = &b->members[i];
        if (strcmp(x->name, y->name) != 0 || x->rank != y->rank ||
            (x->rank > 0 && memcmp(x->shape, y->shape, x->rank * sizeof *x->shape) != 0) ||
            !parts_equal(a, x->type, b, y->type))
            return false;
    }
    return true;
}

/* Their order does not count. */
static bool
enumerators_equal(const esdm__usertype *a, const esdm__usertype *b)
{
    for (size_t i = 0; i < a->count; i++) {
        const esdm__enumerator *other = find_enumerator(b, a->enumerators[i].name);
        if (other == NULL || other->value != a->enumerators[i].value)
            return false;
    }
    return true;
}

static bool
types_equal(const esdm__usertype *a, const esdm__usertype *b)
{
    if (a == b)
        return true;
    if (a->kind != b->kind || a->count != b->count)
        return false;
    switch (a->kind) {
    case ESDM_CLASS_COMPOUND:
        return members_equal(a, b);
    case ESDM_CLASS_ENUM:
        return a->base == b->base && enumerators_equal(a, b);
    case ESDM_CLASS_VLEN:
        return parts_equal(a, a->base, b, b->base);
    default:
        return a->memory_bytes == b->memory_bytes;
    }
}

static bool
parts_equal(const esdm__usertype *a, esdm_type part_a, const esdm__usertype *b, esdm_type part_b)
{
    const esdm__usertype *x = esdm__usertype_at(a->group->container, part_a);
    const esdm__usertype *y = esdm__usertype_at(b->group->container, part_b);
    return x != NULL && y != NULL ? types_equal(x, y) : x == y && part_a == part_b;
}

bool
esdm_type_equal(const esdm_container *container, esdm_type type,
                const esdm_container *other_container, esdm_type other)
{
    esdm__typeref a;
    esdm__typeref b;
    if (esdm__type_resolve(container, type, &a, NULL) != ESDM_OK ||
        esdm__type_resolve(other_container, other, &b, NULL) != ESDM_OK)
        return false;
    return a.user != NULL && b.user != NULL ? types_equal(a.user, b.user)
                                            : a.user == b.user && a.type == b.type;
}
