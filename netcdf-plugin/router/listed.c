/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Attributes `esdm_…` that the program got by listing the attributes of a file. A program that
 * knows nothing of them copies them that way, together with all others, to whatever it computes;
 * one that states an accuracy itself names them.
 */
#include "router/overrides.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "esdm_"
/** What an attribute that states something can hold, and how many values are remembered. */
#define NUMBERS_MOST 16
#define BYTES_MOST   400
#define LISTED_MOST  4096

/** Entries are added in front and never freed: readers need no lock. */
typedef struct listed {
    struct listed *next;
    bool in_container;
    size_t bytes;
    const char *value; /**< behind the name */
    char name[];
} listed;

static _Atomic(listed *) all;
static atomic_int count;

static const listed *
find(const char *name, const void *value, size_t bytes, bool in_container)
{
    const listed *l = atomic_load_explicit(&all, memory_order_acquire);
    while (l && (l->in_container != in_container || l->bytes != bytes ||
                 strcmp(l->name, name) != 0 || memcmp(l->value, value, bytes) != 0)) {
        l = l->next;
    }
    return l;
}

static void
note(const char *name, const void *value, size_t bytes, bool in_container)
{
    size_t name_bytes = strlen(name) + 1;
    if (find(name, value, bytes, in_container) || atomic_fetch_add(&count, 1) >= LISTED_MOST) {
        return;
    }
    listed *l = malloc(sizeof(*l) + name_bytes + bytes);
    if (!l) {
        return; /* it then counts as the program's own */
    }
    l->in_container = in_container;
    l->bytes = bytes;
    memcpy(l->name, name, name_bytes);
    memcpy(l->name + name_bytes, value, bytes);
    l->value = l->name + name_bytes;
    l->next = atomic_load_explicit(&all, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&all, &l->next, l, memory_order_release,
                                                  memory_order_relaxed)) {
    }
}

esdmnc_origin
esdmnc_attribute_origin(const char *name, const void *value, size_t bytes)
{
    if (find(name, value, bytes, true)) {
        return ESDMNC_FROM_CONTAINER;
    }
    return find(name, value, bytes, false) ? ESDMNC_FROM_FILE : ESDMNC_FROM_PROGRAM;
}

/* ---- reading the value ----------------------------------------------------------------------- */

/** One text, or several, which state nothing. */
static void
note_string(const esdmnc__library *library, int ncid, int varid, const char *name)
{
    char *text = NULL;
    if (CALL_REAL(library, nc_get_att, ncid, varid, name, (void *) &text) != NC_NOERR || !text) {
        return;
    }
    note(name, text, strlen(text), owns(library, ncid));
    (void) CALL_REAL(library, nc_free_string, 1, &text);
}

static void
note_attribute(const esdmnc__library *library, int ncid, int varid, const char *name)
{
    nc_type type = NC_NAT;
    size_t length = 0;
    char text[BYTES_MOST];
    double numbers[NUMBERS_MOST];
    if (CALL_REAL(library, nc_inq_att, ncid, varid, name, &type, &length) != NC_NOERR ||
        length == 0) {
        return;
    }
    if (type == NC_CHAR) {
        if (length <= sizeof(text) &&
            CALL_REAL(library, nc_get_att, ncid, varid, name, (void *) text) == NC_NOERR) {
            while (length > 0 && text[length - 1] == '\0') {
                length--;
            }
            note(name, text, length, owns(library, ncid));
        }
    } else if (type == NC_STRING) {
        if (length == 1) {
            note_string(library, ncid, varid, name);
        }
    } else if (type < NC_STRING && length <= NUMBERS_MOST &&
               CALL_REAL(library, nc_get_att_double, ncid, varid, name, numbers) == NC_NOERR) {
        note(name, numbers, length * sizeof(*numbers), owns(library, ncid));
    }
}

ESDMNC_EXPORT int
nc_inq_attname(int ncid, int varid, int number, char *name)
{
    esdmnc__library *library = CALLER();
    int status = CALL_REAL(library, nc_inq_attname, ncid, varid, number, name);
    if (status == NC_NOERR && name && varid != NC_GLOBAL &&
        strncmp(name, PREFIX, sizeof(PREFIX) - 1) == 0) {
        note_attribute(library, ncid, varid, name);
    }
    return status;
}
