/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Counts of the values of each attribute that views name, among all containers.
 *
 * A row of `facet` is a name, a part and a number of containers: "" has the attribute, "=value"
 * has this value alone, "+" has several, or one without a text. The name "" with the part "" is of
 * all containers; where it lacks, the counts cannot be relied on. As in views, containers count
 * that are entered and whose names programs can say. What waits to be entered, and what queries
 * pass by, is for who asks (facets.c).
 *
 * Versions that do not know the table leave it as it is when they change what is counted; triggers,
 * which their writers run, then take away that row, and the next esdm-mkfs counts anew.
 */

#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "base/error.h"
#include "views.h"

#define GIVE_UP "BEGIN DELETE FROM facet WHERE name = '' AND part = ''; END;"
/* Extents, whose names begin with '@', are no attributes. */
#define OWN(row) row ".dataset = 0 AND (" row ".name < '@' OR " row ".name >= 'A') "
/* Programs cannot say it. */
#define NOT_SAID(name) "(coalesce(substr(" name ", 1, 1), '/') = '/')"

static const char tables[] =
    "CREATE TABLE IF NOT EXISTS facet(name TEXT NOT NULL, part TEXT NOT NULL, n INTEGER NOT NULL,"
    " PRIMARY KEY(name, part)) WITHOUT ROWID;"
    "CREATE TRIGGER IF NOT EXISTS facet_entered AFTER INSERT ON attribute "
    "WHEN " OWN("NEW") GIVE_UP "CREATE TRIGGER IF NOT EXISTS facet_left AFTER DELETE ON attribute "
                               "WHEN " OWN("OLD") GIVE_UP
    "CREATE TRIGGER IF NOT EXISTS facet_named AFTER UPDATE OF name ON container "
    "WHEN " NOT_SAID("OLD.name") " <> " NOT_SAID("NEW.name") GIVE_UP
    "CREATE TRIGGER IF NOT EXISTS facet_views AFTER INSERT ON view_node "
    "WHEN NEW.parent = 0 " GIVE_UP;

/* So many counts are noted before they are added. */
#define NOTED_MOST 8192

/* ---- what is noted -------------------------------------------------------------------------- */

static sqlite__facet *
slot_of(const sqlite__counts *f, const char *name, const char *part)
{
    uint64_t hash = esdm__checksum(name, strlen(name)) * 31 + esdm__checksum(part, strlen(part));
    size_t i = (size_t) hash & (f->capacity - 1);
    while (f->items[i].part != NULL &&
           (strcmp(f->items[i].part, part) != 0 || strcmp(f->items[i].name, name) != 0))
        i = (i + 1) & (f->capacity - 1);
    return &f->items[i];
}

static bool
grow(sqlite__counts *f)
{
    sqlite__counts larger = *f;
    if (4 * (f->count + 1) <= 3 * f->capacity)
        return true;
    larger.capacity = f->capacity > 0 ? 2 * f->capacity : 64;
    larger.items = calloc(larger.capacity, sizeof *larger.items);
    if (larger.items == NULL)
        return false;
    for (size_t i = 0; i < f->capacity; i++) {
        if (f->items[i].part != NULL)
            *slot_of(&larger, f->items[i].name, f->items[i].part) = f->items[i];
    }
    free(f->items);
    *f = larger;
    return true;
}

static esdm_status
note(sqlite__counts *f, const char *name, const char *part, int64_t n, esdm_error *err)
{
    if (!grow(f))
        return esdm__error_nomem(err, 2 * f->capacity * sizeof *f->items, "counts of values");
    sqlite__facet *one = slot_of(f, name, part);
    if (one->part == NULL) {
        char *own = strdup(part);
        if (own == NULL)
            return esdm__error_nomem(err, strlen(part), "counts of values");
        *one = (sqlite__facet){.name = name, .part = own};
        f->count++;
    }
    one->n += n;
    return ESDM_OK;
}

/* A container has the attribute. @param value NULL: several. */
static esdm_status
note_value(sqlite__counts *f, const char *name, const char *value, int64_t n, esdm_error *err)
{
    esdm__buffer part;
    esdm__buffer_init(&part);
    esdm__buffer_put(&part, value != NULL ? "=" : "+", 1);
    esdm__buffer_put(&part, value != NULL ? value : "", value != NULL ? strlen(value) : 0);
    esdm__buffer_put_u8(&part, 0);
    esdm_status status =
        part.failed ? esdm__error_nomem(err, part.bytes, "a value") : note(f, name, "", n, err);
    if (status == ESDM_OK)
        status = note(f, name, (const char *) part.data, n, err);
    esdm__buffer_clear(&part);
    return status;
}

static void
forget(sqlite__counts *f)
{
    for (size_t i = 0; i < f->capacity; i++)
        free(f->items[i].part);
    free(f->items);
    f->items = NULL;
    f->capacity = f->count = 0;
}

void
sqlite__facets_clear(sqlite__counts *facets)
{
    forget(facets);
    free(facets->names);
    *facets = (sqlite__counts){0};
}

esdm_status
sqlite__facets_flush(sqlite__link *link, sqlite__counts *facets, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < facets->capacity && status == ESDM_OK; i++) {
        const sqlite__facet *one = &facets->items[i];
        if (one->part == NULL || one->n == 0)
            continue;
        status = sqlite__run(link, SQLITE__FACETS_ADD, err, "tti", one->name, one->part,
                             (uint64_t) one->n);
        if (status == ESDM_OK && one->n < 0 && one->part[0] != '\0')
            status = sqlite__run(link, SQLITE__FACETS_DROP, err, "tt", one->name, one->part);
    }
    forget(facets);
    return status;
}

/* ---- which are kept ------------------------------------------------------------------------- */

/* A count. @param ret_there false: there is none. */
static esdm_status
count_of(sqlite__link *link, const char *name, const char *part, int64_t *ret_n, bool *ret_there,
         esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    *ret_there = false;
    esdm_status status =
        sqlite__prepare(link, SQLITE__FACETS_KEPT, &statement, err, "tt", name, part);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, ret_there, err);
    if (*ret_there) {
        *ret_n = sqlite3_column_int64(statement, 0);
        (void) sqlite3_reset(statement);
    }
    return status;
}

esdm_status
sqlite__facets_are_kept(sqlite__link *link, bool *ret_kept, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    int64_t n = 0;
    *ret_kept = false;
    esdm_status status = sqlite__prepare(link, SQLITE__FACETS_TABLE, &statement, err, "");
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, ret_kept, err);
    if (!*ret_kept)
        return status;
    (void) sqlite3_reset(statement);
    return count_of(link, "", "", &n, ret_kept, err);
}

static bool
is_among(const sqlite__counts *f, const char *name)
{
    for (size_t i = 0; i < f->nnames; i++) {
        if (strcmp(f->names[i], name) == 0)
            return true;
    }
    return false;
}

esdm_status
sqlite__facets_load(sqlite__link *link, sqlite__views *views, esdm_error *err)
{
    sqlite__counts *f = &views->facets;
    esdm_status status = sqlite__facets_are_kept(link, &f->kept, err);
    if (status != ESDM_OK || !f->kept || views->count == 0)
        return status;
    f->names = malloc(views->count * SQLITE__VIEW_LEVELS * sizeof *f->names);
    if (f->names == NULL)
        return esdm__error_nomem(err, views->count * sizeof *f->names, "names of views");
    for (size_t i = 0; i < views->count; i++) {
        const sqlite__view *view = &views->items[i];
        for (size_t k = 0; k < view->nlevels; k++) {
            if (!is_among(f, view->attributes[k]))
                f->names[f->nnames++] = view->attributes[k];
        }
    }
    return ESDM_OK;
}

esdm_status
sqlite__facets_make(sqlite__link *link, bool any, esdm_error *err)
{
    sqlite__views views;
    esdm_status status = sqlite__exec(link, tables, err);
    if (status == ESDM_OK)
        status = sqlite__exec(link, "DELETE FROM facet", err);
    if (status != ESDM_OK || !any)
        return status;
    status = sqlite__run(link, SQLITE__FACETS_ADD, err, "tti", "", "", UINT64_C(0));
    if (status == ESDM_OK)
        status = sqlite__views_load(link, &views, err);
    if (status != ESDM_OK)
        return status;
    for (size_t i = 0; i < views.facets.nnames && status == ESDM_OK; i++)
        status = sqlite__run(link, SQLITE__FACETS_ADD, err, "tti", views.facets.names[i], "",
                             UINT64_C(0));
    sqlite__views_clear(&views);
    return status;
}

/* ---- entering and leaving ------------------------------------------------------------------- */

/* Values of a container that enters. */
typedef struct entry {
    const sqlite__counts *facets;
    const char **values; /* of each name: the last one without a fault; owned */
    unsigned *counts;    /* owned; 2: several, or none that has a text */
} entry;

static bool
take_value(const esdm_meta_attribute *attribute, void *user)
{
    entry *e = user;
    if (attribute->dataset != 0)
        return true;
    for (size_t i = 0; i < e->facets->nnames; i++) {
        const char *name = e->facets->names[i];
        if (attribute->name[0] != name[0] || strcmp(attribute->name, name) != 0)
            continue;
        e->counts[i] += attribute->text != NULL ? 1 : 2;
        e->values[i] = attribute->text;
    }
    return true;
}

esdm_status
sqlite__facets_enter(sqlite__link *link, sqlite__counts *facets, uint64_t container,
                     const void *attributes, size_t bytes, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    if (!facets->kept)
        return ESDM_OK;
    entry e = {facets, calloc(facets->nnames + 1, sizeof *e.values),
               calloc(facets->nnames + 1, sizeof *e.counts)};
    if (e.values == NULL || e.counts == NULL)
        status = esdm__error_nomem(err, facets->nnames * sizeof *e.values, "values");
    if (status == ESDM_OK && attributes != NULL)
        status = sqlite__attributes_visit(link, container, attributes, bytes, take_value, &e, err);
    if (status == ESDM_OK)
        status = note(facets, "", "", 1, err);
    for (size_t i = 0; i < facets->nnames && status == ESDM_OK; i++) {
        if (e.counts[i] > 0)
            status =
                note_value(facets, facets->names[i], e.counts[i] == 1 ? e.values[i] : NULL, 1, err);
    }
    free(e.values);
    free(e.counts);
    return status == ESDM_OK && facets->count > NOTED_MOST ? sqlite__facets_flush(link, facets, err)
                                                           : status;
}

/* What the index has of an attribute of a container that leaves. */
static esdm_status
leave_name(sqlite__link *link, sqlite__counts *facets, uint64_t container, const char *name,
           esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    char *value = NULL;
    bool row = false, any = false, several = false;
    esdm_status status =
        sqlite__prepare(link, SQLITE__VALUES_GLOBAL, &statement, err, "it", container, name);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    if (status == ESDM_OK && row) {
        int column = sqlite3_column_type(statement, 2) == SQLITE_TEXT ? 2 : 3;
        const char *text = (const char *) sqlite3_column_text(statement, column);
        any = true;
        several = text == NULL;
        value = text != NULL ? strdup(text) : NULL;
        if (text != NULL && value == NULL)
            status = esdm__error_nomem(err, strlen(text), "a value");
        if (status == ESDM_OK)
            status = sqlite__step(link, statement, &row, err);
        several |= row;
    }
    if (row)
        (void) sqlite3_reset(statement);
    if (status == ESDM_OK && any)
        status = note_value(facets, name, several ? NULL : value, -1, err);
    free(value);
    return status;
}

esdm_status
sqlite__facets_leave(sqlite__link *link, sqlite__counts *facets, uint64_t container,
                     esdm_error *err)
{
    if (!facets->kept)
        return ESDM_OK;
    esdm_status status = note(facets, "", "", -1, err);
    for (size_t i = 0; i < facets->nnames && status == ESDM_OK; i++)
        status = leave_name(link, facets, container, facets->names[i], err);
    return status;
}

/* ---- telling -------------------------------------------------------------------------------- */

static int64_t
noted(const sqlite__counts *f, const char *name, const char *part)
{
    const sqlite__facet *one = f->capacity > 0 ? slot_of(f, name, part) : NULL;
    return one != NULL && one->part != NULL ? one->n : 0;
}

/* A count without what is taken away. @param io_known made false where it is not kept. */
static esdm_status
rest_of(sqlite__link *link, const sqlite__counts *without, const char *name, const char *part,
        int64_t *ret_n, bool *io_known, esdm_error *err)
{
    bool there = false;
    *ret_n = 0;
    esdm_status status = count_of(link, name, part, ret_n, &there, err);
    *io_known &= there;
    *ret_n += noted(without, name, part);
    return status;
}

/* Whether the counts say it: all names are counted, no container has several values, and all have
 * the attribute that is asked for, unless its own values are counted. */
static esdm_status
answer(sqlite__link *link, const sqlite__counts *without, const char *asked,
       const char *const *names, size_t nnames, bool *ret_answer, esdm_error *err)
{
    bool own = true, known = true, one = true, ignored = true;
    int64_t all = 0, having = 0, n = 0;
    *ret_answer = false;
    esdm_status status = rest_of(link, without, "", "", &all, &known, err);
    if (status == ESDM_OK)
        status = rest_of(link, without, asked, "", &having, &known, err);
    for (size_t i = 0; i < nnames && status == ESDM_OK && known && one; i++) {
        own &= strcmp(names[i], asked) == 0;
        status = rest_of(link, without, names[i], "", &n, &known, err);
        if (status == ESDM_OK)
            status = rest_of(link, without, names[i], "+", &n, &ignored, err);
        one = n == 0;
    }
    *ret_answer = status == ESDM_OK && known && one && (own || all == having);
    return status;
}

esdm_status
sqlite__facets_tell(sqlite__link *link, const sqlite__counts *without, const char *asked,
                    const char *const *names, size_t nnames, esdm_meta_facet_visitor visit,
                    void *user, bool *ret_told, esdm_error *err)
{
    bool more = true;
    *ret_told = false;
    esdm_status status = sqlite__facets_are_kept(link, ret_told, err);
    if (status == ESDM_OK && *ret_told)
        status = answer(link, without, asked, names, nnames, ret_told, err);
    for (size_t i = 0; i < nnames && status == ESDM_OK && *ret_told && more; i++) {
        sqlite3_stmt *statement = NULL;
        bool row = false;
        status = sqlite__prepare(link, SQLITE__FACETS_OF, &statement, err, "t", names[i]);
        if (status == ESDM_OK)
            status = sqlite__step(link, statement, &row, err);
        while (status == ESDM_OK && row && more) {
            const char *part = sqlite__text(statement, 0);
            int64_t n = sqlite3_column_int64(statement, 1) + noted(without, names[i], part);
            if (part[0] == '=' && n > 0)
                more = visit(i, part + 1, (uint64_t) n, user);
            if (more)
                status = sqlite__step(link, statement, &row, err);
        }
        if (row)
            (void) sqlite3_reset(statement);
    }
    return status;
}
