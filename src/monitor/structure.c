/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What a replay of a trace needs to know beside times and bytes: which part of which dataset a call
 * was about, through which handle, and what the datasets are (tools/esdm-replay).
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/parts.h"
#include "monitor/text.h"

/* ---- details of spans ------------------------------------------------------------------------ */

static char *
put_list(char *at, const char *head, uint32_t count, const uint64_t *numbers)
{
    at = esdm__put_text(at, head);
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0)
            *at++ = ',';
        at = esdm__put_number(at, numbers[i]);
    }
    *at++ = ']';
    return at;
}

static bool
has_steps(uint32_t rank, const uint64_t *stride)
{
    for (uint32_t i = 0; i < rank; i++) {
        if (stride[i] != 1)
            return true;
    }
    return false;
}

/* Called for each transfer that is observed: without printf(). */
char *
esdm__detail_selection(uint64_t handle, const char *memory, uint32_t rank, const uint64_t *offset,
                       const uint64_t *size, const uint64_t *stride)
{
    static const char head[] =
        ",\"handle\":,\"memory\":\"\",\"offset\":[],\"size\":[],\"stride\":[]";
    const char *type = memory != NULL ? memory : "user";
    char *text = malloc(sizeof head + strlen(type) + (size_t) (3 * rank + 1) * ESDM__NUMBER_BYTES);
    if (text == NULL)
        return NULL;
    char *at = esdm__put_text(text, ",\"handle\":");
    at = esdm__put_number(at, handle);
    at = esdm__put_text(at, ",\"memory\":\"");
    at = esdm__put_text(at, type);
    at = put_list(at, "\",\"offset\":[", rank, offset);
    at = put_list(at, ",\"size\":[", rank, size);
    if (has_steps(rank, stride))
        at = put_list(at, ",\"stride\":[", rank, stride);
    *at = '\0';
    return text;
}

char *
esdm__detail_opening(uint64_t handle, const char *mode, int ranks, int rank)
{
    char *text = NULL;
    return asprintf(&text, ",\"handle\":%" PRIu64 ",\"mode\":\"%s\",\"ranks\":%d,\"rank\":%d",
                    handle, mode, ranks, rank) >= 0
               ? text
               : NULL;
}

char *
esdm__detail_meeting(uint64_t handle, bool writing, char *selection)
{
    char *text = NULL;
    char own[sizeof ",\"handle\":" + ESDM__NUMBER_BYTES];
    (void) snprintf(own, sizeof own, ",\"handle\":%" PRIu64, handle);
    int n = asprintf(&text, "%s,\"writing\":%s", selection != NULL ? selection : own,
                     writing ? "true" : "false");
    free(selection);
    return n >= 0 ? text : NULL;
}

char *
esdm__detail_handle(uint64_t handle)
{
    char *text = NULL;
    return asprintf(&text, ",\"handle\":%" PRIu64, handle) >= 0 ? text : NULL;
}

/* ---- what a dataset is ----------------------------------------------------------------------- */

bool
esdm__monitor_is_new(esdm__monitor *monitor, uint32_t object)
{
    esdm__object *found = (esdm__object *) esdm__objects_get(&monitor->objects, object);
    return !atomic_exchange(&found->described, true);
}

static json_t *
dimensions_json(const esdm__dataset_facts *f)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < f->rank; i++) {
        const esdm__dimension_facts *d = &f->dimensions[i];
        (void) json_array_append_new(list, json_pack("{s:i,s:s,s:I,s:b}", "id", (int) d->id, "name",
                                                     d->name, "length", (json_int_t) d->length,
                                                     "unlimited", (int) d->unlimited));
    }
    return list;
}

static json_t *
chunk_json(const esdm__dataset_facts *f)
{
    if (f->chunk == NULL)
        return json_null();
    json_t *list = json_array();
    for (uint32_t i = 0; i < f->rank; i++)
        (void) json_array_append_new(list, json_integer((json_int_t) f->chunk[i]));
    return list;
}

/* Names are there as JSON already. */
static char *
line_of(const esdm__monitor *m, const esdm__dataset_facts *f)
{
    const esdm__object *object = esdm__objects_get(&m->objects, f->object);
    char *line = NULL;
    json_t *what = json_pack("{s:i,s:s?,s:o,s:o,s:s?,s:s?}", "id", (int) f->id, "type", f->type,
                             "dimensions", dimensions_json(f), "chunk", chunk_json(f), "codec",
                             f->codec, "accuracy", f->accuracy);
    char *text = what != NULL ? json_dumps(what, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
    if (text != NULL && asprintf(&line,
                                 "{\"what\":\"dataset\",\"pid\":%d,\"handle\":%" PRIu64
                                 ",\"container\":%s,\"dataset\":%s,%s\n",
                                 (int) m->who.pid, f->handle,
                                 object->container != NULL ? object->container : "null",
                                 object->dataset != NULL ? object->dataset : "null", text + 1) < 0)
        line = NULL;
    free(text);
    json_decref(what);
    return line;
}

void
esdm__monitor_dataset(esdm__monitor *monitor, const esdm__dataset_facts *facts)
{
    if (!esdm__monitor_traces(monitor))
        return;
    char *line = line_of(monitor, facts);
    if (line == NULL)
        return; /* no memory: a replay does without the dataset, and says so */
    const esdm__record record = {.kind = ESDM__SPAN_KINDS, .object = 1, .detail = line};
    esdm__monitor_put(monitor, &record);
}
