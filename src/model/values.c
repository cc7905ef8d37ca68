/* SPDX-License-Identifier: LGPL-3.0-or-later */
/** @file Values in memory: freeing, copying, comparing; values_stored.c has their stored form. */

#include "model/values.h"

#include <stdlib.h>
#include <string.h>

#include "base/arguments.h"
#include "base/checked.h"
#include "base/error.h"

/* Pointers and arrays within compounds may lie anywhere. */
static char *
text_at(const void *at)
{
    char *text;
    memcpy(&text, at, sizeof text);
    return text;
}

static esdm_vlen
vlen_at(const void *at)
{
    esdm_vlen vlen;
    memcpy(&vlen, at, sizeof vlen);
    return vlen;
}

/* ---- freeing ------------------------------------------------------------------------------- */

static void
clear_one(esdm__typeref of, char *value)
{
    if (of.user == NULL) { /* a string: nothing else of an atomic type comes here */
        free(text_at(value));
        memcpy(value, &(char *){NULL}, sizeof(char *));
        return;
    }
    if (of.user->kind == ESDM_CLASS_VLEN) {
        esdm_vlen vlen = vlen_at(value);
        if (vlen.values != NULL)
            esdm__values_clear(of.user->base_of, vlen.count, vlen.values);
        free(vlen.values);
        memset(value, 0, sizeof vlen);
        return;
    }
    for (size_t i = 0; i < of.user->step_count; i++) {
        const esdm__step *step = &of.user->steps[i];
        if (step->bytes == 0)
            esdm__values_clear(step->of, step->count, value + step->offset);
    }
}

void
esdm__values_clear(esdm__typeref of, uint64_t count, void *values)
{
    if (!esdm__typeref_is_variable(of))
        return;
    char *at = values;
    for (uint64_t i = 0; i < count; i++, at += esdm__typeref_bytes(of))
        clear_one(of, at);
}

/* ---- copying ------------------------------------------------------------------------------- */

/* Gives `values`, whose bytes were copied from others, texts and arrays of their own. Those that
 * have none yet are NULL after a failure: all can be cleared. */
static esdm_status own_values(esdm__typeref of, uint64_t count, char *values, esdm_error *err);

/* Bytes of an array; false when there are none to be had. */
static esdm_status
check_array(esdm__typeref base, const esdm_vlen *vlen, size_t *ret_bytes, esdm_error *err)
{
    if (vlen->count > 0 && vlen->values == NULL)
        return esdm__error_set(err, ESDM_EINVAL, "an array of %zu elements has no memory (NULL)",
                               vlen->count);
    if (!esdm__mul_size(vlen->count, esdm__typeref_bytes(base), ret_bytes) ||
        *ret_bytes > PTRDIFF_MAX)
        return esdm__error_set(err, ESDM_EINVAL, "an array of %zu elements is too long",
                               vlen->count);
    return ESDM_OK;
}

static esdm_status
own_text(char *value, esdm_error *err)
{
    const char *text = text_at(value);
    char *copy = NULL;
    esdm_status st = ESDM_OK;
    if (text != NULL) {
        copy = strdup(text);
        st = copy != NULL ? ESDM_OK : esdm__error_nomem(err, strlen(text), "a text");
    }
    memcpy(value, &copy, sizeof copy);
    return st;
}

static esdm_status
own_array(esdm__typeref base, char *value, esdm_error *err)
{
    esdm_vlen vlen = vlen_at(value);
    esdm_vlen copy = {0, NULL};
    size_t bytes = 0;
    memset(value, 0, sizeof vlen);
    esdm_status st = check_array(base, &vlen, &bytes, err);
    if (st != ESDM_OK || bytes == 0)
        return st;
    copy.values = malloc(bytes);
    if (copy.values == NULL)
        return esdm__error_nomem(err, bytes, "an array");
    copy.count = vlen.count;
    memcpy(copy.values, vlen.values, bytes);
    memcpy(value, &copy, sizeof copy);
    return own_values(base, copy.count, copy.values, err);
}

/* Sets what `value` has from another one to NULL, without freeing it. */
static void
disown_one(esdm__typeref of, char *value)
{
    if (of.user == NULL || of.user->kind == ESDM_CLASS_VLEN) {
        memset(value, 0, esdm__typeref_bytes(of));
        return;
    }
    for (size_t i = 0; i < of.user->step_count; i++) {
        const esdm__step *step = &of.user->steps[i];
        for (uint64_t k = 0;
             step->bytes == 0 && esdm__typeref_is_variable(step->of) && k < step->count; k++)
            disown_one(step->of, value + step->offset + k * esdm__typeref_bytes(step->of));
    }
}

static esdm_status
own_one(esdm__typeref of, char *value, esdm_error *err)
{
    if (of.user == NULL)
        return own_text(value, err);
    if (of.user->kind == ESDM_CLASS_VLEN)
        return own_array(of.user->base_of, value, err);
    esdm_status st = ESDM_OK;
    for (size_t i = 0; i < of.user->step_count; i++) {
        const esdm__step *step = &of.user->steps[i];
        if (step->bytes > 0 || !esdm__typeref_is_variable(step->of))
            continue;
        char *at = value + step->offset;
        if (st == ESDM_OK)
            st = own_values(step->of, step->count, at, err);
        else
            for (uint64_t k = 0; k < step->count; k++)
                disown_one(step->of, at + k * esdm__typeref_bytes(step->of));
    }
    return st;
}

static esdm_status
own_values(esdm__typeref of, uint64_t count, char *values, esdm_error *err)
{
    esdm_status st = ESDM_OK;
    if (!esdm__typeref_is_variable(of))
        return ESDM_OK;
    for (uint64_t i = 0; i < count; i++, values += esdm__typeref_bytes(of)) {
        if (st == ESDM_OK)
            st = own_one(of, values, err);
        else
            disown_one(of, values);
    }
    return st;
}

esdm_status
esdm__values_copy(esdm__typeref of, uint64_t count, const void *from, void *to, esdm_error *err)
{
    if (count == 0)
        return ESDM_OK;
    memcpy(to, from, (size_t) count * esdm__typeref_bytes(of));
    esdm_status st = own_values(of, count, to, err);
    if (st != ESDM_OK)
        esdm__values_clear(of, count, to);
    return st;
}

/* In one allocation; NULL stays NULL. */
static esdm_status
new_text(const char *text, void **ret_value, esdm_error *err)
{
    size_t length = text != NULL ? strlen(text) : 0;
    char **copy = malloc(sizeof *copy + length + 1);
    if (copy == NULL)
        return esdm__error_nomem(err, length, "a text");
    copy[0] = text != NULL ? memcpy(copy + 1, text, length + 1) : NULL;
    *ret_value = copy;
    return ESDM_OK;
}

esdm_status
esdm__value_new(esdm__typeref of, const void *value, void **ret_value, esdm_error *err)
{
    if (of.user == NULL && of.type == ESDM_TYPE_STRING)
        return new_text(text_at(value), ret_value, err);
    void *copy = malloc(esdm__typeref_bytes(of));
    if (copy == NULL)
        return esdm__error_nomem(err, esdm__typeref_bytes(of), "a value");
    esdm_status st = esdm__values_copy(of, 1, value, copy, err);
    if (st != ESDM_OK) {
        free(copy);
        return st;
    }
    *ret_value = copy;
    return ESDM_OK;
}

void
esdm__value_free(esdm__typeref of, void *value)
{
    if (value != NULL && of.user != NULL)
        esdm__values_clear(of, 1, value);
    free(value);
}

/* ---- comparing ----------------------------------------------------------------------------- */

static bool
texts_equal(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool
equal_one(esdm__typeref of, const char *a, const char *b)
{
    if (of.user == NULL)
        return texts_equal(text_at(a), text_at(b));
    if (of.user->kind == ESDM_CLASS_VLEN) {
        esdm_vlen x = vlen_at(a);
        esdm_vlen y = vlen_at(b);
        return x.count == y.count && (x.count == 0 || (x.values != NULL && y.values != NULL)) &&
               esdm__values_equal(of.user->base_of, x.count, x.values, y.values);
    }
    for (size_t i = 0; i < of.user->step_count; i++) {
        const esdm__step *step = &of.user->steps[i];
        const char *x = a + step->offset;
        const char *y = b + step->offset;
        if (step->bytes > 0 ? memcmp(x, y, step->bytes) != 0
                            : !esdm__values_equal(step->of, step->count, x, y))
            return false;
    }
    return true;
}

bool
esdm__values_equal(esdm__typeref of, uint64_t count, const void *a, const void *b)
{
    size_t bytes = esdm__typeref_bytes(of);
    if (count == 0)
        return true;
    if (!esdm__typeref_is_variable(of) && (of.user == NULL || of.user->plain))
        return memcmp(a, b, (size_t) count * bytes) == 0;
    const char *x = a;
    const char *y = b;
    for (uint64_t i = 0; i < count; i++, x += bytes, y += bytes) {
        if (!equal_one(of, x, y))
            return false;
    }
    return true;
}

/* ---- public -------------------------------------------------------------------------------- */

void
esdm_values_clear(const esdm_container *container, esdm_type type, uint64_t count, void *values)
{
    esdm__typeref of;
    if (count > 0 && values != NULL && esdm__type_resolve(container, type, &of, NULL) == ESDM_OK)
        esdm__values_clear(of, count, values);
}

esdm_status
esdm_values_copy(const esdm_container *container, esdm_type type, uint64_t count, const void *from,
                 void *to, esdm_error *err)
{
    esdm__typeref of;
    size_t bytes;
    esdm_status st = esdm__type_resolve(container, type, &of, err);
    if (st != ESDM_OK || count == 0)
        return st;
    ESDM__NEED(err, from);
    ESDM__NEED(err, to);
    if (!esdm__mul_size(count, esdm__typeref_bytes(of), &bytes))
        return esdm__error_set(err, ESDM_EINVAL, "esdm_values_copy: no memory for the elements");
    return esdm__values_copy(of, count, from, to, err);
}

bool
esdm_values_equal(const esdm_container *container, esdm_type type, uint64_t count, const void *a,
                  const void *b)
{
    if (count > 0 && (a == NULL || b == NULL))
        return false;
    esdm__typeref of;
    return esdm__type_resolve(container, type, &of, NULL) == ESDM_OK &&
           esdm__values_equal(of, count, a, b);
}
