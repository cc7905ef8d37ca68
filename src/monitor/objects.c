/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What spans are about, and the counters of each. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "esdm/text.h"
#include "monitor/parts.h"

/* A text with quotes, as JSON has it. What is no UTF-8 is written with escapes. NULL: no memory. */
static char *
quoted(const char *text)
{
    char printable[1024];
    json_t *value = json_string(text);
    if (value == NULL && esdm_text_printable(text, printable, sizeof printable) > 0)
        value = json_string(printable);
    char *result = value != NULL
                       ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII)
                       : NULL;
    json_decref(value);
    return result;
}

const esdm__span_kind esdm__request_kinds[ESDM__REQUEST_KINDS] = {
    ESDM__SPAN_FETCH, ESDM__SPAN_APPEND, ESDM__SPAN_SYNC, ESDM__SPAN_SEAL, ESDM__SPAN_CATALOG};

int
esdm__request_index(int kind)
{
    switch (kind) {
    case ESDM__SPAN_FETCH:
        return 0;
    case ESDM__SPAN_APPEND:
        return 1;
    case ESDM__SPAN_SYNC:
        return 2;
    case ESDM__SPAN_SEAL:
        return 3;
    case ESDM__SPAN_CATALOG:
        return 4;
    default:
        return -1;
    }
}

static void
object_free(esdm__object *object)
{
    if (object == NULL)
        return;
    free(object->container);
    free(object->dataset);
    free(object->target);
    for (size_t i = 0; i < 3; i++)
        free(object->plain[i]);
    free(object->members);
    free(object->key);
    free(object);
}

/* As people read it. */
static char *
unquoted(const char *json)
{
    json_t *value = esdm__json_read_any(json);
    char *text = json_is_string(value) ? strdup(json_string_value(value)) : NULL;
    json_decref(value);
    return text;
}

static bool
name_part(const char *text, char **ret_quoted, char **ret_plain)
{
    if (text == NULL)
        return true;
    *ret_quoted = quoted(text);
    *ret_plain = *ret_quoted != NULL ? unquoted(*ret_quoted) : NULL;
    return *ret_plain != NULL;
}

static bool
join_members(esdm__object *o)
{
    int n =
        asprintf(&o->members, ",\"container\":%s,\"dataset\":%s,\"target\":%s",
                 o->container != NULL ? o->container : "null",
                 o->dataset != NULL ? o->dataset : "null", o->target != NULL ? o->target : "null");
    if (n < 0)
        o->members = NULL;
    o->member_bytes = n < 0 ? 0 : (size_t) n;
    return n >= 0;
}

static esdm__object *
object_new(const char *key, const char *container, const char *dataset, const char *target)
{
    esdm__object *object = calloc(1, sizeof *object);
    if (object == NULL)
        return NULL;
    object->key = strdup(key);
    if (object->key != NULL && name_part(container, &object->container, &object->plain[0]) &&
        name_part(dataset, &object->dataset, &object->plain[1]) &&
        name_part(target, &object->target, &object->plain[2]) && join_members(object))
        return object;
    object_free(object);
    return NULL;
}

bool
esdm__objects_init(esdm__objects *objects)
{
    (void) pthread_mutex_init(&objects->lock, NULL);
    esdm__object *others = object_new("", NULL, NULL, NULL);
    atomic_init(&objects->list[1], others);
    atomic_init(&objects->count, 2);
    atomic_init(&objects->ntargets, 1);
    return others != NULL;
}

void
esdm__objects_clear(esdm__objects *objects)
{
    unsigned count = atomic_load(&objects->count);
    for (unsigned i = 1; i < count; i++)
        object_free(atomic_load(&objects->list[i]));
    (void) pthread_mutex_destroy(&objects->lock);
}

const esdm__object *
esdm__objects_get(const esdm__objects *objects, uint32_t number)
{
    unsigned count = atomic_load_explicit(&objects->count, memory_order_acquire);
    return atomic_load_explicit(&objects->list[number > 0 && number < count ? number : 1],
                                memory_order_acquire);
}

/* With the lock held. ESDM__TARGETS_MAX: there are too many. */
static uint32_t
target_number(esdm__objects *objects, const esdm__object *object)
{
    const char *target = object->plain[2];
    unsigned count = atomic_load(&objects->ntargets);
    for (unsigned i = 1; i < count && target != NULL; i++) {
        if (strcmp(objects->targets[i], target) == 0)
            return i;
    }
    if (target == NULL || count == ESDM__TARGETS_MAX)
        return target == NULL ? 0 : ESDM__TARGETS_MAX;
    objects->targets[count] = target;
    atomic_store_explicit(&objects->ntargets, count + 1, memory_order_release);
    return count;
}

/* With the lock held. */
static uint32_t
find_or_add(esdm__objects *objects, const char *key, const char *container, const char *dataset,
            const char *target)
{
    unsigned count = atomic_load(&objects->count);
    for (unsigned i = 2; i < count; i++) {
        if (strcmp(atomic_load(&objects->list[i])->key, key) == 0)
            return i;
    }
    if (count == ESDM__OBJECTS_MAX)
        return 1;
    esdm__object *object = object_new(key, container, dataset, target);
    if (object == NULL)
        return 1;
    object->target_number = target_number(objects, object);
    atomic_store_explicit(&objects->list[count], object, memory_order_release);
    atomic_store_explicit(&objects->count, count + 1, memory_order_release);
    return count;
}

uint32_t
esdm__objects_find(esdm__objects *objects, const char *container, const char *dataset,
                   const char *target)
{
    char *key = NULL;
    if (asprintf(&key, "%s\001%s\001%s", container != NULL ? container : "",
                 dataset != NULL ? dataset : "", target != NULL ? target : "") < 0)
        return 1;
    (void) pthread_mutex_lock(&objects->lock);
    uint32_t number = find_or_add(objects, key, container, dataset, target);
    (void) pthread_mutex_unlock(&objects->lock);
    free(key);
    return number;
}

static unsigned
size_class(uint64_t bytes)
{
    unsigned class = 0;
    for (uint64_t below = 1024; class < ESDM__SPAN_SIZES - 1 && bytes >= below; below *= 4)
        class ++;
    return class;
}

static void
add(atomic_uint_fast64_t *counter, uint64_t more)
{
    if (more > 0)
        (void) atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

void
esdm__objects_add(esdm__objects *objects, const esdm__record *record)
{
    const esdm__object *found = esdm__objects_get(objects, record->object);
    esdm__counts *c = (esdm__counts *) &found->counts[record->kind];
    add(&c->failed, record->status != ESDM_OK);
    add(&c->more_pieces, record->pieces - 1);
    add(&c->bytes, record->bytes);
    add(&c->stored_bytes, record->stored_bytes);
    add(&c->ns, record->ns);
    add(&c->sizes[size_class(record->bytes)], 1);
    uint64_t longest = atomic_load_explicit(&c->longest_ns, memory_order_relaxed);
    while (record->ns > longest &&
           !atomic_compare_exchange_weak_explicit(&c->longest_ns, &longest, record->ns,
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
}

void
esdm__objects_add_total(esdm__objects *objects, const esdm__record *record, int request)
{
    uint32_t number = esdm__objects_get(objects, record->object)->target_number;
    if (number >= ESDM__TARGETS_MAX)
        return;
    esdm__total *t = &objects->totals[number][request];
    add(&t->count, 1);
    add(&t->bytes, record->bytes);
    add(&t->ns, record->ns);
}

void
esdm__counts_read(const esdm__counts *counts, esdm__span_counts *ret_counts)
{
    *ret_counts = (esdm__span_counts){
        .failed = atomic_load(&counts->failed),
        .bytes = atomic_load(&counts->bytes),
        .stored_bytes = atomic_load(&counts->stored_bytes),
        .ns = atomic_load(&counts->ns),
        .longest_ns = atomic_load(&counts->longest_ns),
    };
    for (size_t i = 0; i < ESDM__SPAN_SIZES; i++) {
        ret_counts->sizes[i] = atomic_load(&counts->sizes[i]);
        ret_counts->count += ret_counts->sizes[i];
    }
    ret_counts->pieces = ret_counts->count + atomic_load(&counts->more_pieces);
}
