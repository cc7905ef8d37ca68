/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Types of elements and their values in memory. */

#include "esdm-cp/esdm-cp.h"

#include <stdlib.h>
#include <string.h>

/* ---- types -------------------------------------------------------------------------------- */

#define ATOMIC(NUMBER, BYTES)                                                                      \
    [NUMBER] = {.kind = ESDM_CLASS_ATOMIC,                                                         \
                .atomic = (NUMBER),                                                                \
                .to_esdm = (NUMBER),                                                               \
                .to_nc = (NUMBER),                                                                 \
                .bytes = (BYTES),                                                                  \
                .varies = (NUMBER) == ESDM_TYPE_STRING}

static const cp_type atomic_types[] = {
    ATOMIC(ESDM_TYPE_INT8, 1),    ATOMIC(ESDM_TYPE_CHAR, 1),
    ATOMIC(ESDM_TYPE_INT16, 2),   ATOMIC(ESDM_TYPE_INT32, 4),
    ATOMIC(ESDM_TYPE_FLOAT32, 4), ATOMIC(ESDM_TYPE_FLOAT64, 8),
    ATOMIC(ESDM_TYPE_UINT8, 1),   ATOMIC(ESDM_TYPE_UINT16, 2),
    ATOMIC(ESDM_TYPE_UINT32, 4),  ATOMIC(ESDM_TYPE_INT64, 8),
    ATOMIC(ESDM_TYPE_UINT64, 8),  ATOMIC(ESDM_TYPE_STRING, sizeof(char *))};

const cp_type *
cp_type_atomic(esdm_type number)
{
    return number > 0 && (size_t) number < G_N_ELEMENTS(atomic_types) ? &atomic_types[number]
                                                                      : NULL;
}

const char *
cp_type_name(const cp_type *type)
{
    return type->path != NULL ? type->path : esdm_type_name(type->atomic);
}

static void
free_member(gpointer data)
{
    cp_member *member = data;
    g_free(member->name);
    g_free(member);
}

void
cp_type_free(gpointer data)
{
    cp_type *type = data;
    g_ptr_array_unref(type->members);
    g_free(type->name);
    g_free(type->path);
    g_free(type);
}

cp_type *
cp_type_add(cp_model *model, cp_group *group, const char *name, esdm_type_class kind, size_t bytes)
{
    cp_type *type = g_new0(cp_type, 1);
    type->name = g_strdup(name);
    type->path = g_strdup_printf("%s/%s", group->path, name);
    type->kind = kind;
    type->bytes = bytes;
    type->group = group;
    type->varies = kind == ESDM_CLASS_VLEN;
    type->members = g_ptr_array_new_with_free_func(free_member);
    g_ptr_array_add(model->types, type);
    g_ptr_array_add(group->types, type);
    return type;
}

cp_member *
cp_member_add(cp_type *type, const char *name, const cp_type *of, size_t offset)
{
    cp_member *member = g_new0(cp_member, 1);
    member->name = g_strdup(name);
    member->type = of;
    member->offset = offset;
    member->elements = 1;
    type->varies = type->varies || (of != NULL && of->varies);
    g_ptr_array_add(type->members, member);
    return member;
}

void
cp_member_shape(cp_member *member, uint32_t rank, const uint32_t *shape)
{
    member->rank = rank;
    for (uint32_t i = 0; i < rank; i++) {
        member->shape[i] = shape[i];
        member->elements *= shape[i];
    }
}

static bool
members_equal(const cp_type *a, const cp_type *b)
{
    if (a->members->len != b->members->len)
        return false;
    for (guint i = 0; i < a->members->len; i++) {
        const cp_member *x = g_ptr_array_index(a->members, i);
        const cp_member *y = g_ptr_array_index(b->members, i);
        if (!g_str_equal(x->name, y->name) || x->value != y->value || x->rank != y->rank ||
            memcmp(x->shape, y->shape, x->rank * sizeof *x->shape) != 0 ||
            (x->type != NULL && !g_str_equal(cp_type_name(x->type), cp_type_name(y->type))))
            return false;
    }
    return true;
}

bool
cp_type_equal(const cp_type *a, const cp_type *b)
{
    if (a->kind != b->kind || !g_str_equal(cp_type_name(a), cp_type_name(b)) ||
        (a->kind == ESDM_CLASS_OPAQUE && a->bytes != b->bytes) ||
        (a->base != NULL && !g_str_equal(cp_type_name(a->base), cp_type_name(b->base))))
        return false;
    return a->members == NULL || members_equal(a, b);
}

/* ---- values ------------------------------------------------------------------------------- */

static char *
text_at(const void *value)
{
    char *text;
    memcpy(&text, value, sizeof text);
    return text;
}

static esdm_vlen
vlen_at(const void *value)
{
    esdm_vlen vlen;
    memcpy(&vlen, value, sizeof vlen);
    return vlen;
}

static void
clear_value(const cp_type *type, char *value)
{
    if (type->kind == ESDM_CLASS_ATOMIC) {
        free(text_at(value));
    } else if (type->kind == ESDM_CLASS_VLEN) {
        esdm_vlen vlen = vlen_at(value);
        cp_values_clear(type->base, vlen.count, vlen.values);
        free(vlen.values);
    } else {
        for (guint i = 0; i < type->members->len; i++) {
            const cp_member *member = g_ptr_array_index(type->members, i);
            cp_values_clear(member->type, member->elements, value + member->offset);
        }
        return;
    }
    memset(value, 0, type->bytes);
}

void
cp_values_clear(const cp_type *type, uint64_t count, void *values)
{
    char *at = values;
    for (uint64_t i = 0; type->varies && at != NULL && i < count; i++, at += type->bytes)
        clear_value(type, at);
}

/* Gives a value whose bytes were copied memory of its own. */
static void own_values(const cp_type *type, uint64_t count, char *values);

static void
own_value(const cp_type *type, char *value)
{
    if (type->kind == ESDM_CLASS_ATOMIC) {
        char *copy = g_strdup(text_at(value));
        memcpy(value, &copy, sizeof copy);
    } else if (type->kind == ESDM_CLASS_VLEN) {
        esdm_vlen vlen = vlen_at(value);
        vlen.values = cp_values_copy(type->base, vlen.count, vlen.values);
        memcpy(value, &vlen, sizeof vlen);
    } else {
        for (guint i = 0; i < type->members->len; i++) {
            const cp_member *member = g_ptr_array_index(type->members, i);
            own_values(member->type, member->elements, value + member->offset);
        }
    }
}

static void
own_values(const cp_type *type, uint64_t count, char *values)
{
    for (uint64_t i = 0; type->varies && i < count; i++, values += type->bytes)
        own_value(type, values);
}

void *
cp_values_copy(const cp_type *type, uint64_t count, const void *values)
{
    size_t bytes = count * type->bytes;
    void *copy = g_malloc0(MAX(bytes, 1));
    if (bytes > 0)
        memcpy(copy, values, bytes);
    own_values(type, count, copy);
    return copy;
}

static bool values_equal(const cp_type *a, const cp_type *b, uint64_t count, const char *x,
                         const char *y, uint64_t *ret_index);

static bool
value_equal(const cp_type *a, const cp_type *b, const char *x, const char *y)
{
    uint64_t index;
    if (a->kind == ESDM_CLASS_ATOMIC && a->varies)
        return g_strcmp0(text_at(x), text_at(y)) == 0;
    if (a->kind == ESDM_CLASS_VLEN) {
        esdm_vlen left = vlen_at(x), right = vlen_at(y);
        return left.count == right.count &&
               values_equal(a->base, b->base, left.count, left.values, right.values, &index);
    }
    if (a->kind != ESDM_CLASS_COMPOUND)
        return memcmp(x, y, a->bytes) == 0;
    for (guint i = 0; i < a->members->len; i++) {
        const cp_member *m = g_ptr_array_index(a->members, i);
        const cp_member *n = g_ptr_array_index(b->members, i);
        if (!values_equal(m->type, n->type, m->elements, x + m->offset, y + n->offset, &index))
            return false;
    }
    return true;
}

static bool
values_equal(const cp_type *a, const cp_type *b, uint64_t count, const char *x, const char *y,
             uint64_t *ret_index)
{
    bool plain = !a->varies && a->kind != ESDM_CLASS_COMPOUND;
    if (count == 0 || (plain && memcmp(x, y, count * a->bytes) == 0))
        return true;
    for (uint64_t i = 0; i < count; i++) {
        if (!value_equal(a, b, x + i * a->bytes, y + i * b->bytes)) {
            *ret_index = i;
            return false;
        }
    }
    return true;
}

bool
cp_values_equal(const cp_type *a, const cp_type *b, uint64_t count, const void *x, const void *y,
                uint64_t *ret_index)
{
    return values_equal(a, b, count, x, y, ret_index);
}
