/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TESTS_INTEGRATION_USERTYPES_H
#define TESTS_INTEGRATION_USERTYPES_H

/** @file User-defined types of every class, whose values follow from a number. */

#include "testing.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct plain { /* no gaps: stored as it lies */
    int32_t a;
    float b[3];
} plain;
typedef struct padded {
    int8_t a;
    double b;
    plain c[2];
    uint16_t d;
} padded;
typedef struct mixed {
    char letter;
    char *name;
    esdm_vlen rows; /* of padded */
    esdm_vlen names;
} mixed;

typedef struct types {
    esdm_type plain, padded, mixed, opaque, flag, numbers, names, rows;
} types;

enum { OPAQUE_BYTES = 11 };

#define ADD(compound, kind, member, type, rank, shape)                                             \
    ok(esdm_compound_add(container, (compound), #member, offsetof(kind, member), (type), (rank),   \
                         (shape), ERR))

static inline void
define_types(esdm_group *group, types *t)
{
    static const uint32_t three = 3, two = 2;
    esdm_container *container = esdm_group_container(group);
    ok(esdm_compound_create(group, "plain", sizeof(plain), &t->plain, ERR));
    ADD(t->plain, plain, a, ESDM_TYPE_INT32, 0, NULL);
    ADD(t->plain, plain, b, ESDM_TYPE_FLOAT32, 1, &three);
    ok(esdm_compound_create(group, "padded", sizeof(padded), &t->padded, ERR));
    ADD(t->padded, padded, a, ESDM_TYPE_INT8, 0, NULL);
    ADD(t->padded, padded, b, ESDM_TYPE_FLOAT64, 0, NULL);
    ADD(t->padded, padded, c, t->plain, 1, &two);
    ADD(t->padded, padded, d, ESDM_TYPE_UINT16, 0, NULL);
    ok(esdm_opaque_create(group, "opaque", OPAQUE_BYTES, &t->opaque, ERR));
    ok(esdm_enum_create(group, "flag", ESDM_TYPE_UINT16, &t->flag, ERR));
    ok(esdm_enum_add(container, t->flag, "off", &(uint16_t){0}, ERR));
    ok(esdm_enum_add(container, t->flag, "on", &(uint16_t){60000}, ERR));
    ok(esdm_vlen_create(group, "numbers", ESDM_TYPE_FLOAT64, &t->numbers, ERR));
    ok(esdm_vlen_create(group, "names", ESDM_TYPE_STRING, &t->names, ERR));
    ok(esdm_vlen_create(group, "rows", t->padded, &t->rows, ERR));
    ok(esdm_compound_create(group, "mixed", sizeof(mixed), &t->mixed, ERR));
    ADD(t->mixed, mixed, letter, ESDM_TYPE_CHAR, 0, NULL);
    ADD(t->mixed, mixed, name, ESDM_TYPE_STRING, 0, NULL);
    ADD(t->mixed, mixed, rows, t->rows, 0, NULL);
    ADD(t->mixed, mixed, names, t->names, 0, NULL);
}

static plain
make_plain(uint32_t key)
{
    return (plain){(int32_t) key, {(float) key, -1.5f, (float) (key % 7)}};
}

static padded
make_padded(uint32_t key)
{
    padded value;
    memset(&value, (int) key, sizeof value); /* what lies in the gaps is nobody's business */
    value.a = (int8_t) key;
    value.b = (double) key / 3;
    value.c[0] = make_plain(key + 1);
    value.c[1] = make_plain(key + 2);
    value.d = (uint16_t) key;
    return value;
}

static char *
make_text(uint32_t key)
{
    char *text = NULL;
    if (key % 5 == 0)
        return NULL;
    check(asprintf(&text, "%*u", (int) (key % 50), key) >= 0);
    return text;
}

static esdm_vlen
make_numbers(uint32_t key)
{
    esdm_vlen vlen = {key % 4, NULL};
    if (vlen.count > 0) {
        double *numbers = malloc(vlen.count * sizeof *numbers);
        for (size_t i = 0; i < vlen.count; i++)
            numbers[i] = key + (double) i;
        vlen.values = numbers;
    }
    return vlen;
}

static esdm_vlen
make_names(uint32_t key)
{
    esdm_vlen vlen = {key % 3, NULL};
    if (vlen.count > 0) {
        char **names = malloc(vlen.count * sizeof *names);
        for (uint32_t i = 0; i < vlen.count; i++)
            names[i] = make_text(key + i);
        vlen.values = names;
    }
    return vlen;
}

static esdm_vlen
make_rows(uint32_t key)
{
    esdm_vlen vlen = {key % 3, NULL};
    if (vlen.count > 0) {
        padded *rows = malloc(vlen.count * sizeof *rows);
        for (uint32_t i = 0; i < vlen.count; i++)
            rows[i] = make_padded(key + i);
        vlen.values = rows;
    }
    return vlen;
}

/* One value of the type; what it holds is the caller's. */
static void
make_value(const types *t, esdm_type type, uint32_t key, void *to)
{
    if (type == t->plain) {
        *(plain *) to = make_plain(key);
    } else if (type == t->padded) {
        *(padded *) to = make_padded(key);
    } else if (type == t->opaque) {
        memset(to, (int) (key * 31 % 251), OPAQUE_BYTES);
    } else if (type == t->flag) {
        *(uint16_t *) to = (uint16_t) key;
    } else if (type == t->numbers) {
        *(esdm_vlen *) to = make_numbers(key);
    } else if (type == t->names) {
        *(esdm_vlen *) to = make_names(key);
    } else {
        mixed value;
        memset(&value, 0x5A, sizeof value);
        value.letter = (char) ('a' + key % 26);
        value.name = make_text(key);
        value.rows = make_rows(key);
        value.names = make_names(key + 1);
        memcpy(to, &value, sizeof value);
    }
}

static inline bool
is_value(esdm_container *container, const types *t, esdm_type type, uint32_t key, const void *value)
{
    max_align_t wanted[16];
    make_value(t, type, key, wanted);
    bool same = esdm_values_equal(container, type, 1, value, wanted);
    esdm_values_clear(container, type, 1, wanted);
    return same;
}

#endif
