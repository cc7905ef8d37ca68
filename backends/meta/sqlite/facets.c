/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * How many of the containers that a query finds have each value of some attributes. What is found
 * becomes a set of bits; then the part of the index (name, value) that has an attribute is gone
 * through once, whatever is found, and kept (facet_columns.c). Where all that have an attribute are
 * asked for, its own part says who they are.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hidden_names.h"
#include "base/meta_checks.h"
#include "base/meta_tree.h"
#include "facet_columns.h"
#include "find.h"
#include "store.h"

/* Numbers of containers. */
typedef struct number_set {
    uint64_t *words; /* owned */
    size_t nwords;
} number_set;

static bool
has(const number_set *set, uint64_t number)
{
    size_t word = (size_t) (number / 64);
    return word < set->nwords && (set->words[word] >> (number % 64) & 1) != 0;
}

/* false: out of memory. */
static bool
add(number_set *set, uint64_t number)
{
    size_t word = (size_t) (number / 64);
    if (word >= set->nwords) {
        size_t nwords = word + word / 2 + 64;
        uint64_t *words = realloc(set->words, nwords * sizeof *words);
        if (words == NULL)
            return false;
        memset(words + set->nwords, 0, (nwords - set->nwords) * sizeof *words);
        set->words = words;
        set->nwords = nwords;
    }
    set->words[word] |= UINT64_C(1) << (number % 64);
    return true;
}

typedef struct counting {
    sqlite__link *link;
    const char *const *names; /* attributes that are counted */
    size_t nnames;
    number_set found;
    uint64_t nfound;
    number_set hidden; /* containers that queries pass by */
    number_set seen;   /* of those that are found, those that have the attribute */
    bool all;          /* every one that has the attribute is found, by counting it */
    bool datasets;     /* some are found as well */
    bool several;      /* a container has several values */
    bool nomem;
    uint64_t last; /* container */
    size_t name;
    esdm_meta_facet_visitor visit;
    void *user;
    bool more;
} counting;

static bool
note_found(sqlite3_stmt *row, void *user)
{
    counting *c = user;
    uint64_t container = sqlite__u64(row, 0);
    if (has(&c->hidden, container))
        return true;
    c->datasets |= sqlite3_column_int64(row, 1) != 0;
    c->nfound += !has(&c->found, container);
    c->nomem |= !add(&c->found, container);
    return !c->datasets && !c->nomem;
}

static bool
counts(counting *c, uint64_t container)
{
    if (c->all ? has(&c->hidden, container) : !has(&c->found, container))
        return false;
    c->several |= has(&c->seen, container);
    c->nomem |= !add(&c->seen, container);
    return true;
}

/* What a container has, as text: of a number it may be another one than
 * SQLite's. */
static esdm_status
tell_value(counting *c, const char *name, uint64_t container, uint64_t count, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    esdm_status status =
        sqlite__prepare(c->link, SQLITE__VALUES_GLOBAL, &statement, err, "it", container, name);
    if (status == ESDM_OK)
        status = sqlite__step(c->link, statement, &row, err);
    if (!row)
        return status;
    int column = sqlite3_column_type(statement, 3) == SQLITE_NULL ? 2 : 3;
    c->more = c->visit(c->name, sqlite__text(statement, column), count, c->user);
    (void) sqlite3_reset(statement);
    return ESDM_OK;
}

/* Values that follow each other in the index, and have one text. */
typedef struct group {
    esdm__buffer text; /* with its NUL */
    bool is_number;
    double number;
    uint64_t container; /* one that has it; 0: the group is empty */
    uint64_t count;
} group;

static bool
is_in(const group *g, sqlite3_stmt *row)
{
    if (g->container == 0)
        return false;
    if (sqlite3_column_type(row, 0) != SQLITE_TEXT) {
        double number = sqlite3_column_double(row, 0);
        return g->is_number && number == g->number && !signbit(number) == !signbit(g->number) &&
               sqlite__has_one_text(row);
    }
    /* Asking for a text would copy it, to put a NUL behind. */
    const void *text = sqlite3_column_blob(row, 0);
    size_t bytes = (size_t) sqlite3_column_bytes(row, 0);
    return !g->is_number && bytes + 1 == g->text.bytes &&
           (bytes == 0 || memcmp(text, g->text.data, bytes) == 0);
}

static void
begin_group(group *g, sqlite3_stmt *row)
{
    g->is_number = sqlite3_column_type(row, 0) != SQLITE_TEXT;
    g->number = g->is_number ? sqlite3_column_double(row, 0) : 0;
    g->text.bytes = 0;
    g->count = 0;
    g->container = sqlite__u64(row, 1);
    if (g->is_number)
        return;
    size_t bytes = (size_t) sqlite3_column_bytes(row, 0);
    if (bytes > 0) /* else the blob is NULL */
        esdm__buffer_put(&g->text, sqlite3_column_blob(row, 0), bytes);
    esdm__buffer_put_u8(&g->text, 0);
}

static esdm_status
tell_group(counting *c, const char *name, const group *g, esdm_error *err)
{
    if (g->count == 0 || c->several)
        return ESDM_OK;
    if (g->text.failed)
        return esdm__error_nomem(err, g->text.bytes, "a value");
    if (g->is_number)
        return tell_value(c, name, g->container, g->count, err);
    c->more = c->visit(c->name, (const char *) g->text.data, g->count, c->user);
    return ESDM_OK;
}

/* An entry of the index. */
static esdm_status
count_entry(counting *c, const char *name, group *g, sqlite3_stmt *row, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    uint64_t container = sqlite__u64(row, 1);
    if (!is_in(g, row)) {
        status = tell_group(c, name, g, err);
        begin_group(g, row);
    }
    if (status != ESDM_OK || !counts(c, container))
        return status;
    g->container = container;
    if (!g->is_number || sqlite__has_one_text(row))
        g->count++;
    else if (!c->several)
        status = tell_value(c, name, container, 1, err);
    return status;
}

static esdm_status
count_indexed(counting *c, const char *name, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    group g = {.container = 0};
    bool row = false;
    esdm__buffer_init(&g.text);
    esdm_status status = sqlite__prepare(c->link, SQLITE__FACET, &statement, err, "t", name);
    if (status == ESDM_OK)
        status = sqlite__step(c->link, statement, &row, err);
    while (status == ESDM_OK && row && c->more && !c->several && !c->nomem) {
        status = count_entry(c, name, &g, statement, err);
        if (status == ESDM_OK)
            status = sqlite__step(c->link, statement, &row, err);
    }
    if (row)
        (void) sqlite3_reset(statement);
    if (status == ESDM_OK && c->more)
        status = tell_group(c, name, &g, err);
    esdm__buffer_clear(&g.text);
    return status;
}

/* Of containers that wait to be entered, in the temporary table of sqlite__find_rows(). */
static esdm_status
count_pending(counting *c, const char *name, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    int code = sqlite3_prepare_v2(c->link->db,
                                  "SELECT coalesce(text, value), container FROM temp.pending "
                                  "WHERE name = ?1 AND dataset = 0",
                                  -1, &statement, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
    esdm_status status = code == SQLITE_OK ? ESDM_OK : sqlite__error(c->link, code, err);
    if (status == ESDM_OK)
        status = sqlite__step(c->link, statement, &row, err);
    while (status == ESDM_OK && row && c->more && !c->nomem) {
        if (counts(c, sqlite__u64(statement, 1)) && !c->several)
            c->more = c->visit(c->name, sqlite__text(statement, 0), 1, c->user);
        status = sqlite__step(c->link, statement, &row, err);
    }
    (void) sqlite3_finalize(statement);
    return status;
}

/* Those that have no name, or one that queries pass by. */
static esdm_status
note_hidden(counting *c, esdm_error *err)
{
    static const sqlite__statement_id statements[] = {SQLITE__UNNAMED, SQLITE__OWN_NAMED,
                                                      SQLITE__HIDDEN_NAMED};
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < 3 && status == ESDM_OK; i++) {
        sqlite3_stmt *statement = NULL;
        bool row = false;
        status = sqlite__prepare(c->link, statements[i], &statement, err, "");
        if (status == ESDM_OK)
            status = sqlite__step(c->link, statement, &row, err);
        while (status == ESDM_OK && row) {
            if (i < 2 || esdm__name_is_hidden(sqlite__text(statement, 1)))
                c->nomem |= !add(&c->hidden, sqlite__u64(statement, 0));
            status = sqlite__step(c->link, statement, &row, err);
        }
    }
    return status;
}

/* A container that is looked at by itself costs as much as so many entries that are gone through.
 */
#define LOOK_COSTS 8

static uint64_t
word_of(const number_set *set, size_t word)
{
    return word < set->nwords ? set->words[word] : 0;
}

/* Counts what is kept of 64 containers. @param tallies of no text, of each one, and of several. */
static void
count_word(counting *c, const sqlite__column *column, size_t word, uint64_t *tallies)
{
    uint64_t asked = c->all ? ~word_of(&c->hidden, word) : word_of(&c->found, word), had = 0;
    const uint16_t *codes = column->codes + 64 * word;
    size_t left = column->ncodes - 64 * word, end = left < 64 ? left : 64;
    for (size_t i = 0; i < end && asked != 0; i++) {
        if ((asked >> i & 1) == 0)
            continue;
        had |= (uint64_t) (codes[i] != 0) << i;
        tallies[codes[i] <= column->ntexts ? codes[i] : column->ntexts + 1]++;
    }
    c->several |= (word_of(&c->seen, word) & had) != 0;
    if (had == 0)
        return;
    if (word < c->seen.nwords)
        c->seen.words[word] |= had;
    else if (add(&c->seen, 64 * (uint64_t) word + (uint64_t) __builtin_ctzll(had)))
        c->seen.words[word] = had;
    else
        c->nomem = true;
}

/* What is kept of an attribute: the containers that are found, or all. */
static esdm_status
count_kept(counting *c, const sqlite__column *column, esdm_error *err)
{
    uint64_t *tallies = calloc(column->ntexts + 2, sizeof *tallies);
    if (tallies == NULL)
        return esdm__error_nomem(err, column->ntexts * sizeof *tallies, "facets");
    for (size_t word = 0; 64 * word < column->ncodes && !c->nomem; word++)
        count_word(c, column, word, tallies);
    c->several |= tallies[column->ntexts + 1] > 0;
    for (size_t i = 0; i < column->ntexts && c->more && !c->several; i++) {
        if (tallies[i + 1] > 0)
            c->more = c->visit(c->name, column->texts[i], tallies[i + 1], c->user);
    }
    free(tallies);
    return ESDM_OK;
}

/* Values of few containers, one after the other. */
static esdm_status
count_each(counting *c, const char *name, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (uint64_t n = 0; n < 64 * c->found.nwords && status == ESDM_OK && c->more; n++) {
        sqlite3_stmt *statement = NULL;
        bool row = false;
        if (!has(&c->found, n))
            continue;
        status = sqlite__prepare(c->link, SQLITE__VALUES_GLOBAL, &statement, err, "it", n, name);
        if (status == ESDM_OK)
            status = sqlite__step(c->link, statement, &row, err);
        if (status != ESDM_OK || !row)
            continue;
        int column = sqlite3_column_type(statement, 3) == SQLITE_NULL ? 2 : 3;
        c->more = c->visit(c->name, sqlite__text(statement, column), 1, c->user);
        status = sqlite__step(c->link, statement, &row, err);
        c->several |= row;
        if (row)
            (void) sqlite3_reset(statement);
    }
    return status;
}

static esdm_status
count_name(counting *c, const char *const *names, size_t name, bool few, esdm_error *err)
{
    c->name = name;
    const sqlite__column *column = NULL;
    if (c->seen.words != NULL)
        memset(c->seen.words, 0, c->seen.nwords * sizeof *c->seen.words);
    esdm_status status = sqlite__column_get(c->link, names[name], c->last, !few, &column, err);
    if (status == ESDM_OK)
        status = column != NULL ? count_kept(c, column, err)
                 : few          ? count_each(c, names[name], err)
                                : count_indexed(c, names[name], err);
    return status == ESDM_OK && c->more ? count_pending(c, names[name], err) : status;
}

/* Counts the values of the attribute that all are to have, which finds them. */
static esdm_status
find_by_counting(counting *c, const char *const *names, size_t name, esdm_error *err)
{
    esdm_status status = sqlite__find_keep_pending(c->link, err);
    c->all = true;
    if (status == ESDM_OK)
        status = count_name(c, names, name, false, err);
    c->all = false;
    free(c->found.words);
    c->found = c->seen;
    c->seen = (number_set){0};
    for (size_t i = 0; i < c->found.nwords; i++)
        c->nfound += (uint64_t) __builtin_popcountll(c->found.words[i]);
    return status;
}

static bool
tell_nobody(size_t name, const char *value, uint64_t containers, void *user)
{
    (void) name;
    (void) value;
    (void) containers;
    (void) user;
    return true;
}

/* Finds what has an attribute whose values are not counted. @param ret_found false: its values are
 * not kept, so that it has to be asked for. */
static esdm_status
find_by_kept(counting *c, const char *asked, bool *ret_found, esdm_error *err)
{
    const sqlite__column *column = NULL;
    esdm_meta_facet_visitor visit = c->visit;
    esdm_status status = sqlite__find_keep_pending(c->link, err);
    if (status == ESDM_OK)
        status = sqlite__column_get(c->link, asked, c->last, true, &column, err);
    *ret_found = status == ESDM_OK && column != NULL;
    if (!*ret_found)
        return status;
    c->visit = tell_nobody;
    status = find_by_counting(c, &asked, 0, err);
    c->visit = visit;
    c->several = false;
    return status;
}

/* @param first name whose values are counted, and which all are to have; nnames: none. */
static esdm_status
find_all(counting *c, const esdm_meta_expression *expression, const char *asked, size_t first,
         esdm_error *err)
{
    bool found = false;
    if (first < c->nnames)
        return find_by_counting(c, c->names, first, err);
    esdm_status status = asked != NULL ? find_by_kept(c, asked, &found, err) : ESDM_OK;
    return status == ESDM_OK && !found
               ? sqlite__find_rows(c->link, expression, true, note_found, c, err)
               : status;
}

static esdm_status
ask_facets(sqlite__link *link, const esdm_meta_expression *expression, void *user, esdm_error *err)
{
    counting *c = user;
    const char *const *names = c->names;
    size_t nnames = c->nnames;
    const char *asked = esdm__tree_attribute_of_all(expression);
    size_t first = 0;
    int64_t last = 0;
    while (first < nnames && (asked == NULL || strcmp(names[first], asked) != 0))
        first++;
    esdm_status status = note_hidden(c, err);
    if (status == ESDM_OK)
        status = sqlite__query_number(link, "SELECT coalesce(max(container), 0) FROM container",
                                      &last, err);
    c->last = (uint64_t) last;
    if (status == ESDM_OK)
        status = find_all(c, expression, asked, first, err);
    bool few = c->nfound < c->last / LOOK_COSTS;
    for (size_t i = 0; i < nnames && status == ESDM_OK && !c->datasets && !c->several && c->more;
         i++) {
        if (i != first)
            status = count_name(c, names, i, few, err);
    }
    if (status == ESDM_OK && c->nomem)
        status = esdm__error_nomem(err, c->found.nwords * sizeof *c->found.words, "a set");
    if (status == ESDM_OK && (c->datasets || c->several))
        status =
            esdm__error_set(err, ESDM_ENOTSUP, "datasets, or several values, are to be counted");
    return status;
}

esdm_status
sqlite__facets(void *self, const esdm_meta_expression *expression, const char *const *names,
               size_t nnames, esdm_meta_facet_visitor visit, void *user, esdm_error *err)
{
    sqlite__store *store = self;
    counting c = {.link = &store->reader,
                  .names = names,
                  .nnames = nnames,
                  .visit = visit,
                  .user = user,
                  .more = true};
    esdm_status status = sqlite__ask(store, expression, ask_facets, &c, err);
    free(c.found.words);
    free(c.hidden.words);
    free(c.seen.words);
    return status;
}
