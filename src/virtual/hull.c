/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file What the index knows of a saved query: times, box, levels and values of all its members
 * together. They change with each commit to a member, so what they were made of is noted beside
 * them. */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "base/error.h"
#include "cf/circle.h"
#include "io/commit/extents.h"
#include "query/query.h"
#include "virtual/parts.h"

/* Of the saved query: which members these ranges are of. Stores know by it that there are any. */
#define MADE_OF ESDM_META_EXTENT_FOLLOWS
/* Members whose variables are asked for at once. */
#define BATCH 512u

/* An end that some members have. */
typedef struct end {
    char *name; /* owned */
    double number;
    size_t members; /* that have it */
    double stored;  /* NAN: it is not */
    bool unknown;   /* a member has the variable, and not this */
    bool of_whole;  /* the saved query has the variable */
} end;

typedef struct hull {
    esdm_session *session;
    const esdm__virtual_member **members; /* borrowed; the array is owned */
    size_t nmembers;
    end *ends; /* owned */
    size_t nends;
    size_t at; /* behind the one that was found last: members have theirs in the same order */
    esdm__circle circle;
    double west; /* of the member that is looked at; NAN: not seen */
    bool has_longitudes;
    esdm_meta_extent *rows; /* that are stored; owned, with names and texts */
    size_t nrows;
    bool pinned;  /* members may be at older snapshots */
    bool changed; /* what is stored is not of these members */
    char made_of[64];
    double stored_west, stored_east; /* NAN: not stored */
    bool nomem;
} hull;

/* ---- members -------------------------------------------------------------------------------- */

static bool
note_member(const esdm__virtual_member *m, void *user)
{
    hull *h = user;
    h->nomem = !esdm__array_grow(&h->members, h->nmembers, sizeof *h->members);
    if (!h->nomem)
        h->members[h->nmembers++] = m;
    return !h->nomem;
}

static void
write_made_of(hull *h)
{
    uint64_t digest = 0;
    for (size_t i = 0; i < h->nmembers; i++) {
        const esdm__virtual_member *m = h->members[i];
        uint64_t parts[2] = {esdm__checksum(m->uuid, strlen(m->uuid)), m->snapshot};
        digest += esdm__checksum(parts, sizeof parts);
    }
    (void) snprintf(h->made_of, sizeof h->made_of, "%zu %016" PRIx64, h->nmembers, digest);
}

/* ---- what is stored ------------------------------------------------------------------------- */

static bool
begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

/* Takes over a row, with copies of its texts. */
static bool
add_row(hull *h, const esdm_meta_extent *row)
{
    esdm_meta_extent copy = *row;
    h->nomem = !esdm__array_grow(&h->rows, h->nrows, sizeof *h->rows);
    if (h->nomem)
        return false;
    copy.how = ESDM_META_EXTENT_SET;
    copy.name = strdup(row->name);
    copy.text = row->text != NULL ? strdup(row->text) : NULL;
    h->rows[h->nrows++] = copy;
    h->nomem = copy.name == NULL || (row->text != NULL && copy.text == NULL);
    return !h->nomem;
}

/* What its own structure says stays: grid, lengths, words. */
static bool
note_stored(const esdm_meta_extent *row, void *user)
{
    hull *h = user;
    if (strcmp(row->name, MADE_OF) == 0 && row->text != NULL)
        h->changed = strcmp(row->text, h->made_of) != 0;
    bool own =
        begins(row->name, "@grid") || begins(row->name, "@length:") || begins(row->name, "@word:");
    return !own || add_row(h, row);
}

/* ---- ranges --------------------------------------------------------------------------------- */

/* @return NULL: no memory. */
static end *
end_of(hull *h, const char *name)
{
    for (size_t i = 0; i < h->nends; i++) {
        size_t k = (h->at + i) % h->nends;
        if (strcmp(h->ends[k].name, name) == 0) {
            h->at = k + 1;
            return &h->ends[k];
        }
    }
    if (!esdm__array_grow(&h->ends, h->nends, sizeof *h->ends))
        return NULL;
    end *e = &h->ends[h->nends];
    *e = (end){.name = strdup(name), .number = NAN, .stored = NAN};
    if (e->name == NULL)
        return NULL;
    h->at = ++h->nends;
    return e;
}

static bool
is_lower(const char *name)
{
    return begins(name, "@time_min") || begins(name, "@lat_min") || begins(name, "@level_min") ||
           begins(name, "@min:");
}

static bool
is_upper(const char *name)
{
    return begins(name, "@time_max") || begins(name, "@lat_max") || begins(name, "@level_max") ||
           begins(name, "@max:");
}

/* Of a container as a whole; a variable's own range is part of that. */
static bool
widen(const esdm_meta_extent *row, void *user)
{
    hull *h = user;
    bool lower = is_lower(row->name);
    bool upper = is_upper(row->name);
    if (row->dataset != 0 || !row->has_number)
        return true;
    if (strcmp(row->name, "@lon_max") == 0 || strcmp(row->name, "@lon_min") == 0) {
        /* the greater end comes first, by name */
        bool west = row->name[6] == 'i';
        if (west && !isnan(h->west))
            esdm__circle_add(&h->circle, row->number, h->west);
        h->has_longitudes = h->has_longitudes || west;
        h->west = west ? NAN : row->number;
        return true;
    }
    if (!lower && !upper)
        return true;
    end *e = end_of(h, row->name);
    h->nomem = e == NULL;
    if (e == NULL)
        return false;
    e->number = lower ? fmin(e->number, row->number) : fmax(e->number, row->number);
    e->members++;
    return true;
}

/* The index knows newest snapshots alone. */
static esdm_status
look_at_snapshot(hull *h, const esdm__virtual_member *m, esdm_error *err)
{
    esdm_container *container = NULL;
    esdm__extents made = {0};
    esdm_status status =
        esdm__io_open(h->session, m->name, ESDM_OPEN_READ, m->snapshot, &container, err);
    if (status == ESDM_OK)
        status = esdm__extents_make(container, NULL, true, true, &made, err);
    for (int upper = 1; upper >= 0; upper--) { /* as the index has them: by name */
        for (size_t k = 0; k < made.count; k++) {
            bool east = strcmp(made.items[k].name, "@lon_max") == 0;
            if (east == (upper == 1))
                (void) widen(&made.items[k], h);
        }
    }
    esdm__extents_clear(&made);
    esdm__container_drop(container);
    return status;
}

/* Whether a pinned member is not at its newest snapshot. */
static bool
is_behind(const hull *h, const esdm__virtual_member *m)
{
    esdm_meta_container record;
    return h->pinned &&
           h->session->meta->container_find(h->session->store, m->name, &record, NULL) == ESDM_OK &&
           record.snapshot != m->snapshot;
}

static esdm_status
look_at_members(hull *h, esdm_error *err)
{
    const esdm_session *session = h->session;
    esdm_status status = esdm__circle_init(&h->circle, err);
    for (size_t i = 0; i < h->nmembers && status == ESDM_OK; i++) {
        h->west = NAN;
        h->at = 0;
        if (is_behind(h, h->members[i])) {
            status = look_at_snapshot(h, h->members[i], err);
            continue;
        }
        status = session->meta->extent_list(session->store, h->members[i]->record, widen, h, err);
        if (status == ESDM_OK && h->nomem)
            status = esdm__error_nomem(err, sizeof *h->ends, "the index of a container");
    }
    return status;
}

/* ---- values that nobody knows ---------------------------------------------------------------- */

/* The variable of "@min:NAME" or "@min:NAME\tUNITS" is the last part of the path. */
static bool
is_of(const char *end_name, const char *path)
{
    const char *name = strrchr(path, '/');
    name = name != NULL ? name + 1 : path;
    size_t bytes = strlen(name);
    return strncmp(end_name + 5, name, bytes) == 0 &&
           (end_name[5 + bytes] == '\0' || end_name[5 + bytes] == '\t');
}

typedef struct counting {
    hull *h;
    size_t *having; /* of each end: members that have the variable */
    size_t *last;   /* the last of these, so that groups with the same names count once */
    size_t first;   /* of the batch */
} counting;

static bool
is_of_values(const char *end_name, const char *path)
{
    return path != NULL && (begins(end_name, "@min:") || begins(end_name, "@max:")) &&
           is_of(end_name, path);
}

static bool
count_variable(size_t container, const esdm_meta_attribute *type, void *user)
{
    const counting *c = user;
    for (size_t i = 0; type->dataset_path != NULL && i < c->h->nends; i++) {
        const char *name = c->h->ends[i].name;
        size_t member = c->first + container + 1;
        if (c->last[i] == member || !is_of_values(name, type->dataset_path))
            continue;
        c->having[i]++;
        c->last[i] = member;
    }
    return true;
}

static bool
note_of_whole(size_t container, const esdm_meta_attribute *type, void *user)
{
    hull *h = user;
    (void) container;
    for (size_t i = 0; i < h->nends; i++)
        h->ends[i].of_whole |= is_of_values(h->ends[i].name, type->dataset_path);
    return true;
}

/* Values of files that are referred to are not known: then neither are those of the whole. */
static esdm_status
leave_out_unknown(hull *h, esdm_error *err)
{
    static const char *const type[] = {"@type"};
    const char *names[BATCH];
    counting c = {.h = h,
                  .having = calloc(h->nends + 1, sizeof *c.having),
                  .last = calloc(h->nends + 1, sizeof *c.last)};
    esdm_status status = c.having == NULL || c.last == NULL
                             ? esdm__error_nomem(err, h->nends * sizeof *c.last, "an index")
                             : ESDM_OK;
    for (c.first = 0; c.first < h->nmembers && status == ESDM_OK; c.first += BATCH) {
        size_t n = h->nmembers - c.first < BATCH ? h->nmembers - c.first : BATCH;
        for (size_t i = 0; i < n; i++)
            names[i] = h->members[c.first + i]->name;
        status = esdm__query_values(h->session->meta, h->session->store, names, n, type, 1, true,
                                    count_variable, &c, err);
    }
    for (size_t i = 0; i < h->nends && status == ESDM_OK; i++)
        if (c.having[i] > h->ends[i].members) {
            h->ends[i].number = NAN;
            h->ends[i].unknown = true;
        }
    free(c.having);
    free(c.last);
    return status;
}

/* ---- storing it ----------------------------------------------------------------------------- */

static bool
add_number(hull *h, const char *name, double number)
{
    return add_row(h, &(esdm_meta_extent){.name = name, .has_number = true, .number = number});
}

static esdm_status
store_rows(hull *h, uint64_t record, uint64_t snapshot, esdm_error *err)
{
    double west, east;
    bool fits = add_row(h, &(esdm_meta_extent){.name = MADE_OF, .text = h->made_of});
    for (size_t i = 0; i < h->nends && fits; i++)
        fits = isnan(h->ends[i].number) || add_number(h, h->ends[i].name, h->ends[i].number);
    if (fits && h->has_longitudes && esdm__circle_range(&h->circle, &west, &east))
        fits = add_number(h, "@lon_min", west) && add_number(h, "@lon_max", east);
    if (!fits)
        return esdm__error_nomem(err, h->nrows * sizeof *h->rows, "the index of a container");
    return h->session->meta->extent_put(h->session->store, record, snapshot, h->rows, h->nrows,
                                        err);
}

static void
hull_clear(hull *h)
{
    for (size_t i = 0; i < h->nends; i++)
        free(h->ends[i].name);
    for (size_t i = 0; i < h->nrows; i++) {
        free((char *) h->rows[i].name);
        free((char *) h->rows[i].text);
    }
    free(h->ends);
    free(h->rows);
    free(h->members);
    esdm__circle_clear(&h->circle);
}

/* Of what one query found: it may be a single container. */
static void
note_members(hull *h, const esdm_container *whole, esdm__virtual_member *single)
{
    const esdm__virtual *provided = whole->provided;
    if (provided != NULL) {
        (void) esdm__members_visit(&provided->members, note_member, h);
        return;
    }
    *single = (esdm__virtual_member){.name = whole->name};
    memcpy(single->uuid, esdm__io_of(whole)->uuid, sizeof single->uuid);
    esdm__container_position(whole, &single->record, &single->snapshot);
    (void) note_member(single, h);
}

/* ---- widening it ---------------------------------------------------------------------------- */

/* What is stored of the saved query: its ends. */
static bool
note_ends(const esdm_meta_extent *row, void *user)
{
    hull *h = user;
    if (strcmp(row->name, MADE_OF) == 0 && row->text != NULL)
        h->changed = strcmp(row->text, h->made_of) != 0;
    if (row->dataset != 0 || !row->has_number)
        return true;
    if (strcmp(row->name, "@lon_max") == 0)
        h->stored_east = row->number;
    if (strcmp(row->name, "@lon_min") == 0)
        h->stored_west = row->number;
    if (!is_lower(row->name) && !is_upper(row->name))
        return true;
    end *e = end_of(h, row->name);
    h->nomem = e == NULL;
    if (e != NULL)
        e->stored = row->number;
    return e != NULL;
}

/* Whether all members have to be looked at: these have ends that the whole has not, or do not say
 * what it says. Where the whole has a variable without ends, some member does not tell them. */
static bool
needs_all(const hull *h)
{
    bool all = h->has_longitudes && (isnan(h->stored_west) || isnan(h->stored_east));
    for (size_t i = 0; i < h->nends && !all; i++) {
        const end *e = &h->ends[i];
        all = isnan(e->stored) ? e->members > 0 && !e->of_whole : e->unknown;
    }
    return all;
}

/* In any order with what others do at the same time: never too narrow. */
static bool
add_wider(hull *h)
{
    double west, east;
    bool fits = true;
    for (size_t i = 0; i < h->nends && fits; i++) {
        const end *e = &h->ends[i];
        bool lower = is_lower(e->name);
        if (isnan(e->stored) || isnan(e->number) ||
            (lower ? e->number >= e->stored : e->number <= e->stored))
            continue;
        fits = add_number(h, e->name, e->number);
        if (fits)
            h->rows[h->nrows - 1].how = lower ? ESDM_META_EXTENT_LOWER : ESDM_META_EXTENT_UPPER;
    }
    if (!fits || !h->has_longitudes)
        return fits;
    esdm__circle_add(&h->circle, h->stored_west, h->stored_east);
    if (!esdm__circle_range(&h->circle, &west, &east) ||
        (west >= h->stored_west && east <= h->stored_east))
        return true;
    if (west > h->stored_west || east < h->stored_east) { /* it begins elsewhere */
        west = -180;
        east = fmax(180, h->stored_east);
    }
    fits = add_number(h, "@lon_min", west) && add_number(h, "@lon_max", east);
    if (fits) {
        h->rows[h->nrows - 2].how = ESDM_META_EXTENT_LOWER;
        h->rows[h->nrows - 1].how = ESDM_META_EXTENT_UPPER;
    }
    return fits;
}

esdm_status
esdm__hull_widen(esdm_session *session, const char *name, const esdm_meta_container *saved,
                 const esdm__virtual_member *members, size_t nmembers, bool *ret_all,
                 esdm_error *err)
{
    static const char *const type[] = {"@type"};
    const esdm_meta_plugin *meta = session->meta;
    hull h = {.session = session, .changed = true, .stored_west = NAN, .stored_east = NAN};
    *ret_all = false;
    for (size_t i = 0; i < nmembers && !h.nomem; i++)
        (void) note_member(&members[i], &h);
    write_made_of(&h);
    esdm_status status = meta->extent_list(session->store, saved->container, note_ends, &h, err);
    if (status == ESDM_OK && !h.nomem && !h.changed) { /* it is of these */
        hull_clear(&h);
        return ESDM_OK;
    }
    if (status == ESDM_OK && !h.nomem)
        status = look_at_members(&h, err);
    if (status == ESDM_OK && !h.nomem)
        status = leave_out_unknown(&h, err);
    if (status == ESDM_OK && !h.nomem)
        status = esdm__query_values(meta, session->store, &name, 1, type, 1, true, note_of_whole,
                                    &h, err);
    *ret_all = status == ESDM_OK && !h.nomem && needs_all(&h);
    if (status == ESDM_OK && !h.nomem && !*ret_all && add_wider(&h) && h.nrows > 0) {
        char uuid[ESDM__UUID_BYTES]; /* no digest: the next opening looks at all members */
        esdm__uuid_new(uuid);
        (void) snprintf(h.made_of, sizeof h.made_of, "~%s", uuid);
        if (add_row(&h, &(esdm_meta_extent){.name = MADE_OF, .text = h.made_of}))
            status = meta->extent_merge(session->store, saved->container, saved->snapshot, h.rows,
                                        h.nrows, err);
    }
    if (status == ESDM_OK && h.nomem)
        status = esdm__error_nomem(err, sizeof *h.rows, "the index of a container");
    hull_clear(&h);
    return status;
}

/* ---- keeping it ----------------------------------------------------------------------------- */

esdm_status
esdm__hull_keep(const esdm_container *whole, uint64_t record, uint64_t snapshot, bool pinned,
                bool again, bool *ret_stored, esdm_error *err)
{
    esdm_session *session = whole->session;
    const esdm_meta_plugin *meta = session->meta;
    esdm__virtual_member single;
    hull h = {.session = session, .pinned = pinned, .changed = true};
    *ret_stored = false;
    if (meta->extent_put == NULL || !meta->is_writable(session->store))
        return ESDM_OK;
    note_members(&h, whole, &single);
    write_made_of(&h);
    esdm_status status = meta->extent_list(session->store, record, note_stored, &h, err);
    if (status == ESDM_OK && !h.nomem && (h.changed || again)) {
        status = look_at_members(&h, err);
        if (status == ESDM_OK)
            status = leave_out_unknown(&h, err);
        if (status == ESDM_OK)
            status = store_rows(&h, record, snapshot, err);
        *ret_stored = status == ESDM_OK;
    } else if (status == ESDM_OK && h.nomem)
        status = esdm__error_nomem(err, h.nmembers * sizeof *h.members, "members");
    hull_clear(&h);
    return status;
}
