/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file What was found out about the members of a query is kept as a fact of the site: as long as
 * the query finds the same snapshots, nothing of them is opened before data are read, and overlaps
 * are not compared again. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "base/error.h"
#include "virtual/parts.h"

#define PREFIX  "joined:"
#define VERSION 6u
/** Of fewer members nothing is kept. */
#define MEMBERS_LEAST 16u
/** Bytes of a fact. */
#define BYTES_MOST (4u << 20)
/** Queries that are kept. */
#define FACTS_MOST 32u

static bool
is_kept(const esdm__question *question)
{
    return question->count >= MEMBERS_LEAST && question->pins == NULL;
}

static void
fact_of(const esdm__site *site, const esdm__question *question, char ret[64])
{
    uint64_t digest = (uint64_t) question->overlap * 2 + question->fill_gaps;
    if (question->across != NULL)
        digest ^= esdm__checksum(question->across, strlen(question->across));
    for (size_t i = 0; i < site->nequal; i++) /* what was not looked at before */
        digest += esdm__checksum(site->equal[i], strlen(site->equal[i]));
    for (size_t i = 0; i < question->count; i++) {
        const char *name = question->names[i];
        uint64_t parts[2] = {digest, esdm__checksum(name, strlen(name))};
        digest = esdm__checksum(parts, sizeof parts);
    }
    (void) snprintf(ret, 64, PREFIX "%016llx", (unsigned long long) digest);
}

/* Which snapshots they are. */
static uint64_t
digest_of(const esdm__members *members)
{
    uint64_t digest = members->count;
    for (size_t i = 0; i < members->count; i++) {
        const esdm__virtual_member *m = &members->items[i];
        uint64_t parts[4] = {digest, m->record, m->snapshot,
                             esdm__checksum(m->uuid, strlen(m->uuid))};
        digest = esdm__checksum(parts, sizeof parts);
    }
    return digest;
}

/* ---- writing -------------------------------------------------------------------------------- */

static void
put_double(esdm__buffer *to, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    esdm__buffer_put_u64(to, bits);
}

static void
put_text(esdm__buffer *to, const char *text)
{
    esdm__buffer_put_varint(to, strlen(text));
    esdm__buffer_put(to, text, strlen(text));
}

static void
put_meaning(esdm__buffer *to, const esdm__meaning *m)
{
    esdm__buffer_put_varint(to, (uint64_t) m->type);
    esdm__buffer_put_varint(to, (uint64_t) m->unpacked);
    esdm__buffer_put_u8(to, (uint8_t) (m->packed | m->has_fill << 1 | m->is_time << 2));
    put_double(to, m->scale);
    put_double(to, m->offset);
    put_double(to, m->fill);
    esdm__buffer_put_varint(to, m->nmarks);
    for (uint32_t i = 0; i < m->nmarks; i++)
        put_double(to, m->marks[i]);
    if (!m->is_time)
        return;
    esdm__buffer_put_varint(to, (uint64_t) m->time.calendar);
    esdm__buffer_put_svarint(to, m->time.unit_ns);
    esdm__buffer_put_svarint(to, m->time.unit_months);
    esdm__buffer_put_svarint(to, m->time.epoch.day);
    esdm__buffer_put_svarint(to, m->time.epoch.day_ns);
    put_text(to, m->time_text);
}

static void
put_dataset(esdm__buffer *to, const esdm__joined *joined, size_t members)
{
    esdm__buffer_put_svarint(to, joined->axis);
    esdm__buffer_put_varint(to, joined->source);
    esdm__buffer_put_varint(to, joined->maps != NULL ? joined->nmeanings : 0);
    if (joined->maps == NULL) /* no numbers along the axis: bits pass */
        return;
    put_meaning(to, &joined->whole);
    for (size_t k = 0; k < joined->nmeanings; k++) {
        const esdm__map *map = joined->maps[k];
        put_meaning(to, &joined->meanings[k]);
        esdm__buffer_put_u8(to, map == NULL
                                    ? 0
                                    : (uint8_t) (1u | (map->times ? 2u : 0u) |
                                                 (map->unpack ? 4u : 0u) | (map->marks ? 8u : 0u)));
    }
    for (size_t i = 0; joined->nmeanings > 1 && i < members; i++)
        esdm__buffer_put_varint(to, joined->which[i]);
}

static void
put_axis(esdm__buffer *to, const esdm__axis *axis)
{
    put_text(to, axis->name);
    esdm__buffer_put_varint(to, axis->first);
    esdm__buffer_put_varint(to, axis->nruns);
    for (size_t r = 0; r < axis->nruns; r++) {
        const esdm__run *run = &axis->runs[r];
        esdm__buffer_put_varint(to, run->count);
        esdm__buffer_put_varint(to, run->member == ESDM__NO_MEMBER ? 0 : run->member + 1);
        esdm__buffer_put_varint(to, run->first);
    }
    put_text(to, axis->bounds_name);
    esdm__buffer_put_varint(to, axis->nfilled);
    for (size_t i = 0; i < axis->nfilled; i++) {
        put_double(to, axis->filled[i]);
        put_double(to, axis->bounds[2 * i]);
        put_double(to, axis->bounds[2 * i + 1]);
    }
}

static void
put_structure(esdm__buffer *to, const esdm_container *container)
{
    char *text = NULL;
    size_t bytes = 0;
    if (esdm__document_write(container, &text, &bytes, NULL) != ESDM_OK) {
        to->failed = true;
        return;
    }
    put_text(to, text);
    free(text);
    for (size_t i = 0; i < container->dimensions.count; i++)
        esdm__buffer_put_varint(to, esdm_dimension_length(container->dimensions.items[i]));
}

static void
put_all(esdm__buffer *to, const esdm__virtual *whole, const esdm_container *container)
{
    bool flips = false;
    for (size_t i = 0; i < whole->members.count; i++)
        flips = flips || whole->flips[i] != 0;
    esdm__buffer_put_varint(to, VERSION);
    esdm__buffer_put_u64(to, digest_of(&whole->members));
    put_structure(to, container);
    put_axis(to, &whole->axis);
    esdm__buffer_put_varint(to, whole->ndatasets);
    for (size_t k = 0; k < whole->ndatasets; k++)
        put_dataset(to, &whole->datasets[k], whole->members.count);
    esdm__buffer_put_u8(to, flips);
    for (size_t i = 0; flips && i < whole->members.count; i++)
        esdm__buffer_put_varint(to, whole->flips[i]);
    uint64_t checksum = esdm__checksum(to->data, to->bytes);
    esdm__buffer_put_u64(to, checksum);
}

/* Bytes as text: two letters from 'a' to 'p' each. */
static char *
text_of(const esdm__buffer *bytes)
{
    char *text = malloc(2 * bytes->bytes + 1);
    for (size_t i = 0; text != NULL && i < bytes->bytes; i++) {
        text[2 * i] = (char) ('a' + (bytes->data[i] >> 4));
        text[2 * i + 1] = (char) ('a' + (bytes->data[i] & 15));
    }
    if (text != NULL)
        text[2 * bytes->bytes] = '\0';
    return text;
}

typedef struct counting {
    size_t count;
    char first[ESDM_META_FACT_NAME_MAX + 1];
} counting;

static bool
count_fact(const char *name, const char *text, void *user)
{
    counting *c = user;
    (void) text;
    if (c->count++ == 0)
        (void) snprintf(c->first, sizeof c->first, "%s", name);
    return true;
}

void
esdm__remembered_keep(const esdm__virtual *whole, const esdm__question *question,
                      const esdm_container *container)
{
    const esdm_session *session = whole->members.session;
    esdm__buffer bytes = {0};
    counting kept = {0};
    char fact[64];
    if (!is_kept(question) || !session->meta->is_writable(session->store))
        return;
    put_all(&bytes, whole, container);
    char *text = bytes.failed || bytes.bytes > BYTES_MOST ? NULL : text_of(&bytes);
    esdm__buffer_clear(&bytes);
    if (text == NULL)
        return;
    fact_of(session->site, question, fact);
    (void) !session->meta->fact_list(session->store, PREFIX, count_fact, &kept, NULL);
    if (kept.count >= FACTS_MOST)
        (void) !session->meta->fact_put(session->store, kept.first, NULL, NULL);
    (void) !session->meta->fact_put(session->store, fact, text, NULL);
    free(text);
}

/* ---- reading -------------------------------------------------------------------------------- */

typedef struct reader {
    esdm__cursor at;
    esdm__virtual *whole;
    esdm_container *container;
} reader;

static double
get_double(esdm__cursor *from)
{
    double value;
    uint64_t bits = esdm__cursor_u64(from);
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A number below a bound; else the cursor has failed. */
static uint64_t
get_below(esdm__cursor *from, uint64_t bound)
{
    uint64_t value = esdm__cursor_varint(from);
    from->failed = from->failed || value >= bound;
    return from->failed ? 0 : value;
}

static void
get_text(esdm__cursor *from, char *text, size_t room)
{
    size_t bytes = (size_t) get_below(from, room);
    const uint8_t *data = esdm__cursor_take(from, bytes);
    if (data != NULL)
        memcpy(text, data, bytes);
    text[data != NULL ? bytes : 0] = '\0';
}

static esdm_type
get_type(esdm__cursor *from)
{
    esdm_type type = (esdm_type) esdm__cursor_varint(from);
    from->failed = from->failed || !esdm__meaning_is_number(type);
    return type;
}

static void
get_meaning(esdm__cursor *from, esdm__meaning *m)
{
    *m = (esdm__meaning){.type = get_type(from)};
    m->unpacked = get_type(from);
    uint8_t flags = esdm__cursor_u8(from);
    m->packed = (flags & 1u) != 0;
    m->has_fill = (flags & 2u) != 0;
    m->is_time = (flags & 4u) != 0;
    m->scale = get_double(from);
    m->offset = get_double(from);
    m->fill = get_double(from);
    m->nmarks = (uint32_t) get_below(from, ESDM__MARKS_MOST + 1);
    for (uint32_t i = 0; i < m->nmarks; i++)
        m->marks[i] = get_double(from);
    if (!m->is_time)
        return;
    m->time.calendar = (esdm__calendar) get_below(from, ESDM__CALENDAR_360_DAY + 1);
    m->time.unit_ns = esdm__cursor_svarint(from);
    m->time.unit_months = (int32_t) esdm__cursor_svarint(from);
    m->time.epoch.day = esdm__cursor_svarint(from);
    m->time.epoch.day_ns = esdm__cursor_svarint(from);
    get_text(from, m->time_text, sizeof m->time_text);
}

/* false: no memory. */
static bool
get_maps(reader *r, esdm__joined *joined)
{
    joined->meanings = calloc(joined->nmeanings, sizeof *joined->meanings);
    joined->maps = calloc(joined->nmeanings, sizeof(esdm__map *));
    if (joined->meanings == NULL || joined->maps == NULL)
        return false;
    for (size_t k = 0; k < joined->nmeanings; k++) {
        get_meaning(&r->at, &joined->meanings[k]);
        uint8_t flags = esdm__cursor_u8(&r->at);
        if (flags == 0)
            continue;
        joined->maps[k] = malloc(sizeof **joined->maps);
        if (joined->maps[k] == NULL)
            return false;
        *joined->maps[k] = (esdm__map){.from = joined->meanings[k],
                                       .times = (flags & 2u) != 0,
                                       .unpack = (flags & 4u) != 0,
                                       .marks = (flags & 8u) != 0};
    }
    return true;
}

static bool
get_dataset(reader *r, size_t k)
{
    esdm__joined *joined = &r->whole->datasets[k];
    const esdm_dataset *dataset = r->container->datasets.items[k];
    size_t members = r->whole->members.count;
    int64_t axis = esdm__cursor_svarint(&r->at);
    r->at.failed = r->at.failed || axis < -1 || axis >= (int64_t) dataset->rank;
    joined->axis = r->at.failed ? -1 : (int) axis;
    joined->cross = -1;
    joined->source = (size_t) get_below(&r->at, members);
    joined->which = calloc(members, sizeof *joined->which);
    joined->nmeanings = (size_t) get_below(&r->at, members + 1);
    if (joined->which == NULL)
        return false;
    if (joined->nmeanings == 0 || r->at.failed) {
        joined->nmeanings = 0;
        return true;
    }
    get_meaning(&r->at, &joined->whole);
    if (!get_maps(r, joined))
        return false;
    for (size_t i = 0; joined->nmeanings > 1 && i < members; i++)
        joined->which[i] = (uint32_t) get_below(&r->at, joined->nmeanings);
    return true;
}

static bool
get_axis(reader *r)
{
    esdm__axis *axis = &r->whole->axis;
    size_t members = r->whole->members.count;
    get_text(&r->at, axis->name, sizeof axis->name);
    axis->first = (size_t) get_below(&r->at, members);
    axis->nruns = (size_t) get_below(&r->at, esdm__cursor_left(&r->at) + 1);
    axis->runs = calloc(axis->nruns + 1, sizeof *axis->runs);
    if (axis->runs == NULL)
        return false;
    for (size_t i = 0; i < axis->nruns; i++) {
        uint64_t count = esdm__cursor_varint(&r->at);
        uint64_t member = get_below(&r->at, members + 1);
        uint64_t first = esdm__cursor_varint(&r->at);
        axis->runs[i] = (esdm__run){axis->length, count,
                                    member == 0 ? ESDM__NO_MEMBER : (size_t) member - 1, first};
        r->at.failed = r->at.failed || __builtin_add_overflow(axis->length, count, &axis->length);
    }
    get_text(&r->at, axis->bounds_name, sizeof axis->bounds_name);
    axis->nfilled = (size_t) get_below(&r->at, ESDM__FILLED_MOST + 1u);
    r->at.failed = r->at.failed || axis->nfilled > esdm__cursor_left(&r->at) / 24;
    if (r->at.failed)
        axis->nfilled = 0;
    axis->filled = malloc((axis->nfilled + 1) * 3 * sizeof *axis->filled);
    if (axis->filled == NULL)
        return false;
    axis->bounds = axis->filled + axis->nfilled + 1;
    for (size_t i = 0; i < axis->nfilled; i++) {
        axis->filled[i] = get_double(&r->at);
        axis->bounds[2 * i] = get_double(&r->at);
        axis->bounds[2 * i + 1] = get_double(&r->at);
    }
    for (size_t i = 0; i < axis->nruns; i++)
        if (axis->runs[i].member == ESDM__NO_MEMBER &&
            (axis->runs[i].first > axis->nfilled ||
             axis->runs[i].count > axis->nfilled - axis->runs[i].first))
            r->at.failed = true;
    return true;
}

static bool
get_structure(reader *r)
{
    size_t bytes = (size_t) get_below(&r->at, esdm__cursor_left(&r->at) + 1);
    const uint8_t *text = esdm__cursor_take(&r->at, bytes);
    if (text == NULL)
        return true;
    if (esdm__document_read((const char *) text, bytes, r->container, NULL) != ESDM_OK)
        return false;
    for (size_t i = 0; i < r->container->dimensions.count; i++) {
        esdm_dimension *d = r->container->dimensions.items[i];
        uint64_t length = esdm__cursor_varint(&r->at);
        if (d->unlimited)
            (void) esdm__dimension_grow(d, length);
    }
    for (size_t i = 0; i < r->container->datasets.count; i++)
        atomic_store(&((esdm_dataset *) r->container->datasets.items[i])->has_data, true);
    return true;
}

/* What was read fits together. */
static bool
is_sound(const reader *r)
{
    const esdm__axis *axis = &r->whole->axis;
    const esdm_dimension *along =
        esdm_group_dimension_find(esdm_container_root(r->container), axis->name);
    if (r->at.failed || axis->nruns == 0 || along == NULL ||
        esdm_dimension_length(along) != axis->length)
        return false;
    for (size_t k = 0; k < r->whole->ndatasets; k++) {
        const esdm_dataset *dataset = r->container->datasets.items[k];
        int at = r->whole->datasets[k].axis;
        if (at >= 0 && dataset->dimensions[at] != along)
            return false;
    }
    return true;
}

static bool
get_all(reader *r)
{
    esdm__virtual *whole = r->whole;
    whole->flips = calloc(whole->members.count, sizeof *whole->flips);
    if (whole->flips == NULL || !get_structure(r) || !get_axis(r) ||
        get_below(&r->at, UINT32_MAX) != r->container->datasets.count || r->at.failed)
        return false;
    whole->datasets = calloc(r->container->datasets.count + 1, sizeof *whole->datasets);
    for (size_t k = 0; whole->datasets != NULL && k < r->container->datasets.count; k++) {
        whole->ndatasets = k + 1;
        if (!get_dataset(r, k))
            return false;
    }
    bool flips = esdm__cursor_u8(&r->at) != 0;
    for (size_t i = 0; flips && i < whole->members.count; i++)
        whole->flips[i] = esdm__cursor_varint(&r->at);
    return whole->datasets != NULL && is_sound(r);
}

/* In place; false: that is no such text. */
static bool
bytes_of(char *text, size_t *ret_bytes)
{
    size_t n = strlen(text) / 2;
    uint8_t *to = (uint8_t *) text;
    for (size_t i = 0; i < n; i++) {
        unsigned high = (unsigned) text[2 * i] - 'a';
        unsigned low = (unsigned) text[2 * i + 1] - 'a';
        if (high > 15 || low > 15)
            return false;
        to[i] = (uint8_t) (high << 4 | low);
    }
    *ret_bytes = n;
    return true;
}

static bool
open_text(esdm__virtual *whole, char *text, esdm_container *container)
{
    reader r = {.whole = whole, .container = container};
    size_t bytes = 0;
    uint64_t checksum = 0;
    if (!bytes_of(text, &bytes) || bytes < sizeof checksum)
        return false;
    bytes -= sizeof checksum;
    esdm__cursor_init(&r.at, (const uint8_t *) text + bytes, sizeof checksum);
    checksum = esdm__cursor_u64(&r.at);
    esdm__cursor_init(&r.at, text, bytes);
    if (checksum != esdm__checksum(text, bytes) || esdm__cursor_varint(&r.at) != VERSION ||
        esdm__cursor_u64(&r.at) != digest_of(&whole->members))
        return false;
    container->writable = true;
    bool fits = get_all(&r);
    container->writable = false;
    container->structure_dirty = false;
    return fits;
}

bool
esdm__remembered_open(esdm__virtual *whole, const esdm__question *question,
                      esdm_container *container)
{
    esdm_session *session = esdm_container_session(container);
    char fact[64];
    char *text = NULL;
    if (!is_kept(question))
        return false;
    fact_of(session->site, question, fact);
    if (session->meta->fact_get(session->store, fact, &text, NULL) != ESDM_OK)
        return false;
    bool open = esdm__members_expect(&whole->members, session, question, NULL) == ESDM_OK &&
                open_text(whole, text, container);
    free(text);
    if (!open && container->datasets.count > 0)
        (void) !session->meta->fact_put(session->store, fact, NULL, NULL);
    if (!open)
        esdm__virtual_clear(whole);
    return open;
}
