/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Queries over attributes: choosing where to begin, and running them. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/meta_checks.h"
#include "base/meta_tree.h"
#include "find.h"
#include "store.h"

/* Entries of the index that are counted at first, and how much more each time. */
#define COUNT_FIRST  INT64_C(64)
#define COUNT_GROWTH 16
#define COUNT_LAST   (INT64_C(1) << 40)
/* Where each start has so many, equalities are met together: at first with so many steps, as
 * something else may be rarer than all of them; where all are frequent with as many as it takes. */
#define ENTRIES_SOME   INT64_C(1024)
#define ENTRIES_MANY   INT64_C(16384)
#define STEPS_AT_FIRST 100000

static esdm_status
bind_range(sqlite__link *link, sqlite3_stmt *statement, int at, const sqlite__find_range *range,
           esdm_error *err)
{
    int code = SQLITE_OK;
    if (range->kind == SQLITE__FIND_NUMBERS) {
        code = sqlite3_bind_double(statement, at + SQLITE__FIND_FROM, range->from);
        if (code == SQLITE_OK)
            code = sqlite3_bind_double(statement, at + SQLITE__FIND_TO, range->to);
    } else if (range->kind == SQLITE__FIND_TEXTS) {
        code = sqlite3_bind_text(statement, at + SQLITE__FIND_FROM, range->texts[0], -1,
                                 SQLITE_STATIC);
        if (code == SQLITE_OK)
            code = sqlite3_bind_text(statement, at + SQLITE__FIND_TO, range->texts[1], -1,
                                     SQLITE_STATIC);
    }
    return code == SQLITE_OK || code == SQLITE_RANGE ? ESDM_OK : sqlite__error(link, code, err);
}

static esdm_status
bind_condition(sqlite__link *link, sqlite3_stmt *statement, const sqlite__query *q, size_t i,
               esdm_error *err)
{
    const esdm_meta_condition *condition = &q->conditions[i];
    int at = (int) (i * SQLITE__FIND_PARAMETERS);
    /* Not every condition uses every parameter: SQLITE_RANGE is then fine for the last ones. */
    int code = sqlite3_bind_text(statement, at + SQLITE__FIND_ATTRIBUTE, condition->attribute, -1,
                                 SQLITE_STATIC);
    if (code == SQLITE_OK && condition->is_number)
        code = sqlite3_bind_double(statement, at + SQLITE__FIND_NUMBER, condition->number);
    if (code == SQLITE_OK && condition->text != NULL)
        code = sqlite3_bind_text(statement, at + SQLITE__FIND_TEXT, condition->text, -1,
                                 SQLITE_STATIC);
    if ((code == SQLITE_OK || code == SQLITE_RANGE) && sqlite__names_variable(condition)) {
        char *path = sqlite3_mprintf("/%s", condition->variable);
        if (path == NULL)
            return esdm__error_nomem(err, strlen(condition->variable), "a query");
        code = sqlite3_bind_text(statement, at + SQLITE__FIND_VARIABLE, path, -1, sqlite3_free);
    }
    if (code != SQLITE_OK && code != SQLITE_RANGE)
        return sqlite__error(link, code, err);
    return bind_range(link, statement, at, &q->ranges[i], err);
}

static esdm_status
prepare(sqlite__link *link, const sqlite__query *q, sqlite3_stmt **ret, esdm_error *err)
{
    if (q->sql.failed)
        return esdm__error_nomem(err, q->sql.bytes, "a query");
    int code = sqlite3_prepare_v2(link->db, (const char *) q->sql.data, -1, ret, NULL);
    return code == SQLITE_OK ? ESDM_OK : sqlite__error(link, code, err);
}

/* Entries of the index at which condition i has to look, up to a limit. */
static esdm_status
count_entries(sqlite__link *link, sqlite__query *q, size_t i, int64_t limit, int64_t *ret,
              esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    sqlite__query_put_count(q, i);
    esdm_status status = prepare(link, q, &statement, err);
    if (status == ESDM_OK)
        status = bind_condition(link, statement, q, i, err);
    if (status == ESDM_OK) {
        int at = (int) (q->nconditions * SQLITE__FIND_PARAMETERS) + 1;
        int code = sqlite3_bind_int64(statement, at, limit);
        status = code == SQLITE_OK ? ESDM_OK : sqlite__error(link, code, err);
    }
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    if (status == ESDM_OK)
        *ret = row ? sqlite3_column_int64(statement, 0) : 0;
    (void) sqlite3_finalize(statement);
    return status;
}

/* Whether a condition must hold whatever else does. */
static bool
is_needed(const sqlite__query *q, size_t condition)
{
    const esdm_meta_expression *e = &q->expression;
    for (size_t at = 1; at < e->nnodes && e->nodes[0].kind == ESDM_META_ALL;
         at += e->nodes[at].size) {
        if (e->nodes[at].kind == ESDM_META_HOLDS && e->nodes[at].condition == condition)
            return true;
    }
    return false;
}

/* One round of counting, of extents or of the others. None is counted further than one that must
 * hold anyhow: it cannot be a start then. @param last limit of the round before. */
static esdm_status
count_round(sqlite__link *link, sqlite__query *q, bool extents, int64_t last, int64_t limit,
            uint64_t *counts, bool *ret_more, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < q->nconditions && status == ESDM_OK; i++) {
        int64_t count = (int64_t) counts[i];
        if (!q->holds[i] || sqlite__find_is_extent(q, i) != extents || count < last) /* is known */
            continue;
        status = count_entries(link, q, i, limit, &count, err);
        counts[i] = (uint64_t) count;
        *ret_more |= count >= limit;
        if (count < limit && is_needed(q, i))
            limit = count + 1;
    }
    return status;
}

/* The conditions that look at the fewest entries. All are counted as far as the smallest goes, so
 * that finding it costs no more than a few times what it saves; extents, of which the fewest seldom
 * are, after the others. */
static esdm_status
count_all(sqlite__link *link, sqlite__query *q, int64_t last_limit, uint64_t *counts,
          uint64_t *ret_sum, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    uint64_t sum = 0;
    int64_t limit = COUNT_FIRST, last = 0;
    bool apart = false, some = false;
    for (size_t i = 0; i < q->nconditions; i++) {
        bool extent = sqlite__find_is_extent(q, i);
        apart |= !extent && is_needed(q, i);
        some |= extent && q->holds[i];
    }
    for (bool more = true; limit <= last_limit && more && status == ESDM_OK;
         limit *= COUNT_GROWTH) {
        more = false;
        status = count_round(link, q, false, last, limit, counts, &more, err);
        if (status == ESDM_OK && (!apart || last == 0))
            status = count_round(link, q, true, last, limit, counts, &more, err);
        last = limit;
        for (size_t i = 0; i < q->nconditions && apart; i++) { /* not counted further yet */
            if (sqlite__find_is_extent(q, i) && counts[i] >= COUNT_FIRST)
                counts[i] = INT64_MAX;
        }
        sqlite__query_begin(q, counts, &sum);
        more &= sum >= (uint64_t) limit;
    }
    if (status == ESDM_OK && apart && some && sum >= COUNT_FIRST) {
        bool more = false;
        limit = sum < (uint64_t) COUNT_LAST ? (int64_t) sum + 1 : COUNT_LAST;
        status = count_round(link, q, true, COUNT_FIRST, limit, counts, &more, err);
        sqlite__query_begin(q, counts, &sum);
    }
    *ret_sum = sum;
    return status;
}

/* Of what must hold together what few objects meet is asked first of each candidate. */
static esdm_status
sort_checks(sqlite__query *q, const uint64_t *counts, esdm_error *err)
{
    esdm_meta_expression *e = &q->expression;
    size_t parts = 0, put = 1;
    if (e->nodes[0].kind != ESDM_META_ALL)
        return ESDM_OK;
    esdm_meta_node *nodes = calloc(e->nnodes, sizeof *nodes);
    size_t *order = calloc(e->nnodes, sizeof *order);
    uint64_t *weights = calloc(e->nnodes, sizeof *weights);
    if (nodes == NULL || order == NULL || weights == NULL) {
        free(nodes);
        free(order);
        free(weights);
        return esdm__error_nomem(err, e->nnodes * sizeof *nodes, "a query");
    }
    for (size_t at = 1; at < e->nnodes; at += e->nodes[at].size) {
        const esdm_meta_expression part = {e->conditions, e->nconditions, e->nodes + at,
                                           e->nodes[at].size, 0};
        size_t none = 0, k = parts++;
        (void) esdm__tree_cover(&part, counts, NULL, &none, &weights[at]);
        for (; k > 0 && weights[order[k - 1]] > weights[at]; k--)
            order[k] = order[k - 1];
        order[k] = at;
    }
    nodes[0] = e->nodes[0];
    for (size_t k = 0; k < parts; k++) {
        size_t size = e->nodes[order[k]].size;
        memcpy(nodes + put, e->nodes + order[k], size * sizeof *nodes);
        put += size;
    }
    free(order);
    free(weights);
    free(q->nodes);
    q->nodes = nodes;
    e->nodes = nodes;
    return ESDM_OK;
}

/* A JSON array. */
static void
put_among(sqlite__query *q, const uint64_t *containers, size_t ncontainers)
{
    char text[32];
    for (size_t i = 0; i < ncontainers; i++) {
        int bytes = snprintf(text, sizeof text, "%s%llu", i > 0 ? "," : "[",
                             (unsigned long long) containers[i]);
        esdm__buffer_put(&q->met, text, (size_t) bytes);
    }
    esdm__buffer_put(&q->met, ncontainers > 0 ? "]" : "[]", ncontainers > 0 ? 2 : 3);
    q->among = q->narrowed = q->covered = true;
}

/* Entries that are counted of each condition, to tell about how many containers are looked at. */
#define ENTRIES_TOLD INT64_C(16384)

static uint64_t
count_met(const sqlite__query *q)
{
    uint64_t count = q->met.data[1] != ']';
    for (size_t i = 0; i < q->met.bytes; i++)
        count += q->met.data[i] == ',';
    return count;
}

static esdm_status
tell_count(sqlite__link *link, sqlite__query *q, uint64_t *ret_containers, esdm_error *err)
{
    uint64_t counts[ESDM_META_EXPRESSION_CONDITIONS_MAX] = {0};
    esdm_status status = count_all(link, q, ENTRIES_TOLD, counts, ret_containers, err);
    if (status == ESDM_OK && *ret_containers >= (uint64_t) ENTRIES_SOME)
        status = sqlite__find_meet(link, q, counts, STEPS_AT_FIRST, err);
    if (status == ESDM_OK && q->narrowed && !q->met.failed)
        *ret_containers = count_met(q);
    return status;
}

static esdm_status
choose_starts(sqlite__link *link, sqlite__query *q, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    uint64_t sum = 0;
    uint64_t *counts = calloc(q->nconditions, sizeof *counts);
    if (counts == NULL)
        return esdm__error_nomem(err, q->nconditions * sizeof *counts, "a query");
    if (!esdm__tree_has_choice(&q->expression)) {
        sqlite__query_begin(q, counts, &sum);
        free(counts);
        return ESDM_OK;
    }
    status = count_all(link, q, ENTRIES_SOME, counts, &sum, err);
    if (status == ESDM_OK && sum >= ENTRIES_SOME)
        status = sqlite__find_meet(link, q, counts, STEPS_AT_FIRST, err);
    if (status == ESDM_OK && sum >= ENTRIES_SOME && !q->narrowed) {
        memset(counts, 0, q->nconditions * sizeof *counts);
        status = count_all(link, q, COUNT_LAST, counts, &sum, err);
        if (status == ESDM_OK && sum >= ENTRIES_MANY)
            status = sqlite__find_meet(link, q, counts, UINT64_MAX, err);
    }
    if (status == ESDM_OK)
        status = sort_checks(q, counts, err);
    free(counts);
    return status;
}

static esdm_status
run_query(sqlite__link *link, const sqlite__query *q, uint64_t indexed, sqlite__row_visitor visit,
          void *user, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    esdm_status status = prepare(link, q, &statement, err);
    for (size_t i = 0; i < q->nconditions && status == ESDM_OK; i++)
        status = bind_condition(link, statement, q, i, err);
    if (status == ESDM_OK) {
        int at = (int) (q->nconditions * SQLITE__FIND_PARAMETERS) + 1;
        int code = sqlite3_bind_int64(statement, at, (sqlite3_int64) indexed);
        if (code == SQLITE_OK && q->narrowed)
            code =
                sqlite3_bind_text(statement, at + 1, (const char *) q->met.data, -1, SQLITE_STATIC);
        if (code != SQLITE_OK && code != SQLITE_RANGE) /* nothing may ask for it */
            status = sqlite__error(link, code, err);
    }
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    while (status == ESDM_OK && row && visit(statement, user))
        status = sqlite__step(link, statement, &row, err);
    (void) sqlite3_finalize(statement);
    return status;
}

/* Which conditions no dataset of the index can meet by itself. */
static esdm_status
look_for_datasets(sqlite__link *link, sqlite__query *q, esdm_error *err)
{
    bool known = false, row = false;
    sqlite3_stmt *statement = NULL;
    esdm_status status = sqlite__prepare(link, SQLITE__DATASET_NAMES, &statement, err, "");
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &known, err);
    if (known)
        (void) sqlite3_reset(statement);
    for (size_t i = 0; i < q->nconditions && known && status == ESDM_OK; i++) {
        status = sqlite__prepare(link, SQLITE__DATASET_NAME, &statement, err, "t",
                                 q->conditions[i].attribute);
        if (status == ESDM_OK)
            status = sqlite__step(link, statement, &row, err);
        q->ranges[i].no_datasets = !row;
        if (row)
            (void) sqlite3_reset(statement);
    }
    return status;
}

static esdm_status
begin_query(sqlite__link *link, const esdm_meta_expression *expression, sqlite__query *q,
            esdm_error *err)
{
    esdm_status status = sqlite__query_init(q, expression, err);
    if (status == ESDM_OK)
        status = sqlite__find_keep_pending(link, err);
    return status == ESDM_OK ? look_for_datasets(link, q, err) : status;
}

esdm_status
sqlite__find_rows_among(sqlite__link *link, const esdm_meta_expression *expression,
                        const uint64_t *containers, size_t ncontainers, sqlite__row_visitor visit,
                        void *user, esdm_error *err)
{
    sqlite__query q;
    bool pending = false;
    esdm_status status = begin_query(link, expression, &q, err);
    for (size_t i = 0; i < ncontainers && !pending; i++)
        pending = containers[i] > link->kept.indexed;
    if (status == ESDM_OK) {
        put_among(&q, containers, ncontainers);
        sqlite__query_put(&q, link->kept.any && pending);
        q.sql.failed |= q.met.failed;
        status = run_query(link, &q, link->kept.indexed, visit, user, err);
    }
    sqlite__query_clear(&q);
    return status;
}

esdm_status
sqlite__find_count(sqlite__link *link, const esdm_meta_expression *expression,
                   uint64_t *ret_containers, esdm_error *err)
{
    sqlite__query q;
    esdm_status status = begin_query(link, expression, &q, err);
    *ret_containers = 0;
    if (status == ESDM_OK)
        status = tell_count(link, &q, ret_containers, err);
    sqlite__query_clear(&q);
    return status;
}

esdm_status
sqlite__find_rows(sqlite__link *link, const esdm_meta_expression *expression, bool numbers,
                  sqlite__row_visitor visit, void *user, esdm_error *err)
{
    sqlite__query q;
    esdm_status status = begin_query(link, expression, &q, err);
    q.numbers = numbers;
    if (status == ESDM_OK)
        status = choose_starts(link, &q, err);
    if (status == ESDM_OK) {
        sqlite__query_put(&q, link->kept.any);
        status = run_query(link, &q, link->kept.indexed, visit, user, err);
    }
    sqlite__query_clear(&q);
    return status;
}

esdm_status
sqlite__ask(sqlite__store *store, const esdm_meta_expression *expression, sqlite__question question,
            void *user, esdm_error *err)
{
    sqlite__link *link = &store->reader;
    esdm_status status = esdm__check_expression(expression, err);
    if (status == ESDM_OK)
        status = sqlite__begin_read(store, err);
    if (status != ESDM_OK)
        return status;
    status = sqlite__begin_question(store, err);
    if (status == ESDM_OK) {
        if (expression->most_ms > 0)
            sqlite__link_limit(link, expression->most_ms);
        status = question(link, expression, user, err);
        if (expression->most_ms > 0)
            sqlite__link_limit(link, 0);
        sqlite__end_question(store, status);
    }
    sqlite__end_read(store);
    return status;
}

bool
sqlite__visit_match(sqlite3_stmt *row, void *user)
{
    const sqlite__matching *m = user;
    return m->visit(sqlite__text(row, 0), (const char *) sqlite3_column_text(row, 1), m->user);
}

static esdm_status
ask_rows(sqlite__link *link, const esdm_meta_expression *expression, void *user, esdm_error *err)
{
    return sqlite__find_rows(link, expression, false, sqlite__visit_match, user, err);
}

esdm_status
sqlite__find_expression(void *self, const esdm_meta_expression *expression,
                        esdm_meta_match_visitor visit, void *user, esdm_error *err)
{
    sqlite__matching m = {visit, user};
    return sqlite__ask(self, expression, ask_rows, &m, err);
}

esdm_status
sqlite__find(void *self, const esdm_meta_condition *conditions, size_t nconditions,
             esdm_meta_match_visitor visit, void *user, esdm_error *err)
{
    const esdm_meta_expression all = {.conditions = conditions, .nconditions = nconditions};
    return sqlite__find_expression(self, &all, visit, user, err);
}
