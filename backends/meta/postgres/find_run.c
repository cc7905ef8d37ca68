/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Queries over attributes: choosing where to begin, and running them. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/meta_checks.h"
#include "base/meta_tree.h"
#include "find.h"

typedef postgres__find_query query;
typedef postgres__find_bound bound;

#define COUNT_GROWTH POSTGRES__COUNT_GROWTH
/* When it does not matter any more. */
#define COUNT_LAST (UINT64_C(1) << 32)
/* Objects of a sample that say how many there are. */
#define SAMPLE_LEAST 3

/* ---- running it ----------------------------------------------------------------------------- */

/* Those that follow; 0: as long as the server lets any. Under the mutex. */
static esdm_status
limit_statements(postgres__store *store, uint32_t most_ms, esdm_error *err)
{
    char sql[64] = "RESET statement_timeout";
    PGresult *result = NULL;
    if (most_ms > 0)
        (void) snprintf(sql, sizeof sql, "SET statement_timeout = %" PRIu32,
                        most_ms < INT32_MAX ? most_ms : INT32_MAX);
    esdm_status status = postgres__query(store, sql, NULL, &result, err);
    PQclear(result);
    return status;
}

esdm_status
postgres__find_ask(postgres__store *store, query *q, PGresult **ret_result, esdm_error *err)
{
    if (q->sql.failed)
        return esdm__error_nomem(err, q->sql.bytes, "a query");
    esdm_status status = postgres__enter(store, err);
    if (status != ESDM_OK)
        return status;
    if (q->expression.most_ms > 0)
        status = limit_statements(store, q->expression.most_ms, err);
    if (status == ESDM_OK)
        status = postgres__query(store, (const char *) q->sql.data, &q->params, ret_result, err);
    if (q->expression.most_ms > 0)
        (void) !limit_statements(store, 0, NULL);
    postgres__leave(store);
    return status;
}

/* Looking one container up costs as much as so many entries of two lists that are met. */
#define LOOK_UP 8
/* And reading an object that has an attribute as much as so many rows with marks. */
#define MARKED 4
/* So few are looked up. */
#define FEW 64
/* A list that is longer would take too much of the server's memory. */
#define NEAR_MOST 65536

/* At most so many containers, as far as is known. @param sums what was counted, up to a limit. */
static uint64_t
most_of(const query *q, const uint64_t *sums, size_t i)
{
    uint64_t count = q->counts[2 * i];
    uint64_t unseen = q->guesses[2 * i] + SAMPLE_LEAST * q->per_seen;
    if (count != POSTGRES__COUNT_UNKNOWN)
        return count;
    return unseen > sums[i] ? unseen : sums[i];
}

/* The equality that all must meet of which the fewest have the text, as far as views count them,
 * and marks tell. SIZE_MAX: none. */
static size_t
rarest_marked(const query *q)
{
    const esdm_meta_node *nodes = q->expression.nodes;
    size_t rarest = SIZE_MAX;
    for (size_t at = 1; nodes[0].kind == ESDM_META_ALL && at < nodes[0].size;
         at += nodes[at].size) {
        size_t i = nodes[at].condition;
        if (nodes[at].kind != ESDM_META_HOLDS || q->bound[i].pair == 0 ||
            q->counts[2 * i] == POSTGRES__COUNT_UNKNOWN)
            continue;
        if (rarest == SIZE_MAX || q->counts[2 * i] < q->counts[2 * rarest])
            rarest = i;
    }
    return rarest;
}

/* A box into which at most so many reach that all of them are passed by sooner than those with an
 * attribute are read is not counted: the answer reads the same rows. */
static void
leave_uncounted(query *q, uint64_t per_seen)
{
    size_t attribute = q->has_marks && q->to_begin ? rarest_marked(q) : SIZE_MAX;
    for (size_t i = 0; i < q->nconditions && attribute != SIZE_MAX; i++) {
        uint64_t most = q->guesses[2 * i] + SAMPLE_LEAST * per_seen;
        if (q->bound[i].span != 0 && q->counts[2 * i] == POSTGRES__COUNT_UNKNOWN &&
            most / MARKED <= q->counts[2 * attribute]) {
            q->counts[2 * i] = most;
            q->counts[2 * i + 1] = 0;
        }
    }
}

/* What many objects meet is seen in a sample: the index would have to be read to the end for it. */
static esdm_status
look_at_sample(postgres__store *store, query *q, postgres__find_table table, esdm_error *err)
{
    PGresult *result = NULL;
    postgres__find_put_sample(q, table);
    esdm_status status = postgres__find_ask(store, q, &result, err);
    for (size_t k = 0; k < 2 * q->nconditions && status == ESDM_OK; k++) {
        size_t column = 2 * q->bound[k / 2].alike + k % 2;
        uint64_t seen = q->holds[k / 2] ? postgres__u64(result, 0, (int) column + 1) : 0;
        uint64_t all = seen * postgres__u64(result, 0, 0);
        q->guesses[k] += all;
        if (table == POSTGRES__FIND_OBJECT)
            q->per_seen = postgres__u64(result, 0, 0);
        if (seen >= SAMPLE_LEAST)
            q->counts[k] = all;
    }
    for (size_t i = 0; i < q->nconditions && status == ESDM_OK && table == POSTGRES__FIND_OBJECT;
         i++) {
        uint64_t kept = postgres__u64(result, 0, (int) (1 + 2 * q->nconditions + i));
        if (kept >= POSTGRES__COUNT_FIRST)
            q->counts[2 * i] = kept;
    }
    if (status == ESDM_OK && table == POSTGRES__FIND_REACH)
        leave_uncounted(q, postgres__u64(result, 0, 0));
    PQclear(result);
    return status;
}

static esdm_status
look_at_samples(postgres__store *store, query *q, esdm_error *err)
{
    bool has[POSTGRES__FIND_TABLES] = {false};
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < q->nconditions; i++) {
        q->counts[2 * i] = q->counts[2 * i + 1] = POSTGRES__COUNT_UNKNOWN;
        has[postgres__find_table_of(q, i)] |= q->holds[i];
    }
    for (int table = 0; table < POSTGRES__FIND_TABLES && status == ESDM_OK; table++) {
        if (has[table])
            status = look_at_sample(store, q, (postgres__find_table) table, err);
    }
    return status;
}

/* ---- what is asked for together ------------------------------------------------------------- */

static bool
can_be_together(const query *q, size_t i)
{
    const postgres__find_bound *b = &q->bound[i];
    uint64_t datasets = q->counts[2 * i + 1];
    bool equal = q->conditions[i].op == ESDM_META_EQ &&
                 (b->texts != 0) + (b->numbers != 0) + (b->forms != 0) == 1;
    bool listed = b->listed && (b->values != 0) + (b->value_forms != 0) == 1;
    return (equal || listed) && !postgres__find_is_extent(&q->conditions[i]) && b->variable == 0 &&
           (datasets == 0 || datasets == POSTGRES__COUNT_UNKNOWN);
}

/* Several equalities, or patterns whose values are listed, that must hold: the index goes from what
 * has the rarest to what has the others, and reads no other list to its end. */
static void
choose_together(query *q)
{
    const esdm_meta_node *nodes = q->expression.nodes;
    q->ntogether = 0;
    for (size_t at = 1; nodes[0].kind == ESDM_META_ALL && at < nodes[0].size;
         at += nodes[at].size) {
        size_t i = nodes[at].condition;
        if (nodes[at].kind != ESDM_META_HOLDS || !can_be_together(q, i) ||
            postgres__find_is_together(q, i))
            continue;
        q->together[q->ntogether++] = i;
    }
    if (q->ntogether < 2)
        q->ntogether = 0;
    for (size_t k = 0; k < q->ntogether; k++)
        q->counts[2 * q->together[k]] = POSTGRES__COUNT_UNKNOWN;
}

/* Whether no dataset meets any of them by itself, as they were counted. */
static bool
are_together(const query *q)
{
    for (size_t k = 0; k < q->ntogether; k++) {
        if (q->counts[2 * q->together[k] + 1] != 0)
            return false;
    }
    return true;
}

/* ---- counts in the index -------------------------------------------------------------------- */

/* How many things are not known yet. */
static size_t
count_unknown(const query *q)
{
    size_t unknown = 0;
    for (size_t i = 0; i < q->nconditions; i++) {
        bool again =
            (postgres__find_is_together(q, i) && q->together[0] != i) || q->bound[i].alike != i;
        unknown += q->holds[i] && !again &&
                   (q->counts[2 * i] == POSTGRES__COUNT_UNKNOWN ||
                    q->counts[2 * i + 1] == POSTGRES__COUNT_UNKNOWN);
    }
    return unknown;
}

/* What the index says of those that are not known, up to a limit. */
static esdm_status
count_up_to(postgres__store *store, query *q, uint64_t limit, uint64_t *sums, bool *ret_more,
            esdm_error *err)
{
    PGresult *result = NULL;
    postgres__find_put_counts(q, limit);
    esdm_status status = postgres__find_ask(store, q, &result, err);
    *ret_more = false;
    for (size_t i = 0; i < q->nconditions && status == ESDM_OK; i++) {
        uint64_t most = postgres__find_most_counted(q, i, limit);
        sums[i] = 0;
        for (size_t k = 2 * i; k < 2 * i + 2; k++) {
            bool together = k == 2 * i && postgres__find_is_together(q, i);
            size_t column = together ? 2 * q->together[0] : 2 * q->bound[i].alike + k % 2;
            bool unknown = q->counts[k] == POSTGRES__COUNT_UNKNOWN;
            bool seen = postgres__find_is_guessed(q, column, limit);
            uint64_t count = !unknown ? q->counts[k]
                             : seen   ? most
                                      : postgres__u64(result, 0, (int) column);
            if (unknown && count < most)
                q->counts[k] = count;
            *ret_more |= unknown && count >= most;
            bool guessed = unknown && count >= most && !together && q->guesses[k] > count;
            sums[i] += guessed ? q->guesses[k] : count;
        }
    }
    PQclear(result);
    return status;
}

/* The first counts: where datasets meet what was to be asked for together, each by itself. */
static esdm_status
count_first(postgres__store *store, query *q, uint64_t *sums, bool *ret_more, esdm_error *err)
{
    size_t bytes = 2 * q->nconditions * sizeof *q->counts;
    uint64_t *sampled = malloc(bytes);
    if (sampled == NULL)
        return esdm__error_nomem(err, bytes, "a query");
    memcpy(sampled, q->counts, bytes);
    choose_together(q);
    esdm_status status = count_up_to(store, q, POSTGRES__COUNT_FIRST, sums, ret_more, err);
    if (status == ESDM_OK && !are_together(q)) {
        q->ntogether = 0;
        memcpy(q->counts, sampled, bytes);
        status = count_up_to(store, q, POSTGRES__COUNT_FIRST, sums, ret_more, err);
    }
    free(sampled);
    return status;
}

/* What is not known is more than could be counted next: to count so many costs as much as to begin
 * with that many of what is known. */
static void
expect_more(const query *q, uint64_t next, uint64_t *sums)
{
    for (size_t i = 0; i < q->nconditions; i++) {
        bool unknown = q->counts[2 * i] == POSTGRES__COUNT_UNKNOWN ||
                       q->counts[2 * i + 1] == POSTGRES__COUNT_UNKNOWN;
        if (unknown && sums[i] > 0 && sums[i] < next)
            sums[i] = next;
    }
}

/* Where one thing alone is not known, what the sample says of it decides: to count it to its end
 * costs as much as to begin with it. */
static esdm_status
count_all(postgres__store *store, query *q, uint64_t *sums, esdm_error *err)
{
    q->counts = calloc(2 * q->nconditions, sizeof *q->counts);
    q->guesses = calloc(2 * q->nconditions, sizeof *q->guesses);
    q->together = calloc(q->nconditions, sizeof *q->together);
    if (q->counts == NULL || q->guesses == NULL || q->together == NULL)
        return esdm__error_nomem(err, q->nconditions * sizeof *q->counts, "a query");
    esdm_status status = postgres__find_list_values(store, q, err);
    if (status == ESDM_OK)
        status = look_at_samples(store, q, err);
    if (status == ESDM_OK)
        status = postgres__find_confirm_lists(store, q, err);
    bool more = true;
    for (uint64_t limit = POSTGRES__COUNT_FIRST; limit < COUNT_LAST && more && status == ESDM_OK;
         limit *= COUNT_GROWTH) {
        status = limit == POSTGRES__COUNT_FIRST ? count_first(store, q, sums, &more, err)
                                                : count_up_to(store, q, limit, sums, &more, err);
        expect_more(q, limit * COUNT_GROWTH, sums);
        (void) esdm__tree_cover(&q->expression, sums, NULL, &q->nstarts, &q->least);
        more &= status == ESDM_OK && q->least >= limit * COUNT_GROWTH && count_unknown(q) > 1;
    }
    return status;
}

/* Whether all that must hold is one box: where to begin needs no counts. */
static bool
is_one_box(const query *q)
{
    const esdm_meta_node *nodes = q->expression.nodes;
    for (size_t at = 1; at < nodes[0].size; at += nodes[at].size) {
        const bound *one = &q->bound[nodes[at].condition];
        if (nodes[at].kind != ESDM_META_HOLDS || one->span == 0 ||
            one->alike != q->bound[nodes[1].condition].alike)
            return false;
    }
    return nodes[0].kind == ESDM_META_ALL;
}

/* Where an attribute and a box must hold together, what the index says of the one meets what it
 * says of the other before any container is looked up; or the rows of the box say which of them
 * can have the attribute. */
static void
choose_near(query *q, const uint64_t *sums)
{
    const esdm_meta_node *nodes = q->expression.nodes;
    size_t box = SIZE_MAX, attribute = SIZE_MAX;
    if (q->counts == NULL || !q->covered || q->nstarts != 1 || nodes[0].kind != ESDM_META_ALL)
        return;
    for (size_t at = 1; at < nodes[0].size; at += nodes[at].size) {
        size_t i = nodes[at].condition;
        bool equal = nodes[at].kind == ESDM_META_HOLDS && q->conditions[i].op == ESDM_META_EQ &&
                     !postgres__find_is_extent(&q->conditions[i]) && q->bound[i].variable == 0;
        if (nodes[at].kind == ESDM_META_HOLDS && q->bound[i].span != 0 && box == SIZE_MAX)
            box = i;
        if (equal && (attribute == SIZE_MAX || most_of(q, sums, i) < most_of(q, sums, attribute)))
            attribute = i;
    }
    if (box == SIZE_MAX || attribute == SIZE_MAX || q->counts[2 * attribute + 1] != 0)
        return; /* datasets are looked for, too */
    uint64_t reaching = most_of(q, sums, q->bound[box].alike), having = most_of(q, sums, attribute);
    bool begins_there = postgres__find_is_extent(&q->conditions[q->starts[0]]);
    if (q->has_marks && q->bound[attribute].pair != 0 &&
        (begins_there || reaching / MARKED <= having)) {
        q->starts[0] = box; /* its rows have marks of the attribute */
        return;
    }
    if (reaching > NEAR_MOST ||
        (begins_there ? having / LOOK_UP > reaching : having < FEW || reaching / LOOK_UP > having))
        return;
    q->near = box;
    q->starts[0] = begins_there ? attribute : q->starts[0];
}

/* Conditions by which to begin: those that the fewest objects can meet. */
static esdm_status
choose_starts(postgres__store *store, query *q, esdm_error *err)
{
    uint64_t *sums = calloc(q->nconditions, sizeof *sums);
    if (sums == NULL)
        return esdm__error_nomem(err, q->nconditions * sizeof *sums, "a query");
    bool choice = esdm__tree_has_choice(&q->expression) && !is_one_box(q);
    q->to_begin = true;
    esdm_status status =
        choice ? count_all(store, q, sums, err) : postgres__find_list_values(store, q, err);
    if (status == ESDM_OK && !choice)
        status = postgres__find_confirm_lists(store, q, err);
    q->covered =
        esdm__tree_starts(&q->expression, q->holds, sums, q->starts, &q->nstarts, &q->least);
    if (status == ESDM_OK)
        choose_near(q, sums);
    free(sums);
    return status;
}

static esdm_status
bind_all(postgres__store *store, query *q, esdm_error *err)
{
    esdm_status status = esdm__tree_prepare(&q->expression, &q->nodes, q->holds, err);
    if (status == ESDM_OK && q->nodes != NULL && q->nconditions == 1) { /* it stands for itself */
        q->expression.nodes = q->nodes + 1;
        q->expression.nnodes = 1;
    }
    for (size_t i = 0; i < q->nconditions && status == ESDM_OK; i++) {
        postgres__find_bind(q, i);
        if (postgres__find_is_extent(&q->conditions[i]))
            status = postgres__need_extents(store, err);
        q->bound[i].alike = i;
    }
    if (status == ESDM_OK && store->has_reach)
        status = postgres__find_bind_reach(q, err);
    q->has_marks = store->has_marks;
    q->has_counts = store->has_facets;
    if (status == ESDM_OK)
        postgres__find_bind_pairs(q);
    return status;
}

void
postgres__find_end(query *q)
{
    if (q == NULL)
        return;
    esdm__buffer_clear(&q->sql);
    postgres__params_clear(&q->params);
    free(q->nodes);
    free(q->holds);
    free(q->starts);
    free(q->counts);
    free(q->guesses);
    free(q->together);
    free(q->bound);
    free(q);
}

/* All but where to begin. */
static esdm_status
begin(postgres__store *store, const esdm_meta_expression *expression, query **ret_query,
      esdm_error *err)
{
    size_t count = expression->nconditions;
    *ret_query = NULL;
    esdm_status status = esdm__check_expression(expression, err);
    if (status != ESDM_OK)
        return status;
    query *q = calloc(1, sizeof *q);
    if (q == NULL)
        return esdm__error_nomem(err, sizeof *q, "a query");
    *ret_query = q;
    q->conditions = expression->conditions;
    q->nconditions = count;
    q->expression = *expression;
    q->has_paths = store->has_paths;
    q->has_places = store->has_places;
    q->proven = q->near = SIZE_MAX;
    q->holds = calloc(count, sizeof *q->holds);
    q->starts = calloc(count, sizeof *q->starts);
    q->bound = calloc(count, sizeof *q->bound);
    esdm__buffer_init(&q->sql);
    if (q->holds == NULL || q->starts == NULL || q->bound == NULL)
        return esdm__error_nomem(err, count * sizeof *q->bound, "a query");
    return bind_all(store, q, err);
}

esdm_status
postgres__find_begin(postgres__store *store, const esdm_meta_expression *expression,
                     query **ret_query, esdm_error *err)
{
    esdm_status status = begin(store, expression, ret_query, err);
    return status == ESDM_OK ? choose_starts(store, *ret_query, err) : status;
}

esdm_status
postgres__find_begin_among(postgres__store *store, const esdm_meta_expression *expression,
                           const uint64_t *containers, size_t ncontainers, query **ret_query,
                           esdm_error *err)
{
    esdm_status status = begin(store, expression, ret_query, err);
    query *q = *ret_query;
    if (status != ESDM_OK)
        return status;
    postgres__array_begin(&q->params, POSTGRES__INTS);
    for (size_t i = 0; i < ncontainers; i++)
        postgres__array_int(&q->params, containers[i]);
    postgres__array_end(&q->params);
    q->among = q->params.count;
    q->covered = true;
    return ESDM_OK;
}

/* Counting further costs too much for what it is for. */
#define ESTIMATE_MOST UINT64_C(16384)

esdm_status
postgres__find_estimate(void *self, const esdm_meta_expression *expression,
                        uint64_t *ret_containers, esdm_error *err)
{
    postgres__store *store = self;
    query *q = NULL;
    uint64_t sums[ESDM_META_EXPRESSION_CONDITIONS_MAX] = {0};
    bool more = true;
    *ret_containers = 0;
    esdm_status status = begin(store, expression, &q, err);
    if (status == ESDM_OK)
        status = count_all(store, q, sums, err);
    for (uint64_t limit = POSTGRES__COUNT_FIRST * COUNT_GROWTH;
         status == ESDM_OK && q->least >= limit / COUNT_GROWTH && limit <= ESTIMATE_MOST &&
         count_unknown(q) > 0;
         limit *= COUNT_GROWTH) {
        status = count_up_to(store, q, limit, sums, &more, err);
        (void) esdm__tree_cover(&q->expression, sums, NULL, &q->nstarts, &q->least);
    }
    if (status == ESDM_OK)
        *ret_containers = q->least;
    postgres__find_end(q);
    return status;
}

static void
write_query(query *q, const void *user)
{
    (void) user;
    postgres__find_put_query(q);
    postgres__find_end_text(q);
}

/* Runs a query that was begun, and ends it. @param status of that. */
static esdm_status
run(postgres__store *store, query *q, esdm_meta_match_visitor visit, void *user, esdm_status status,
    esdm_error *err)
{
    PGresult *result = NULL;
    if (status == ESDM_OK)
        status = postgres__find_answer(store, q, write_query, NULL, &result, err);
    postgres__find_end(q);
    for (int row = 0; status == ESDM_OK && row < PQntuples(result); row++) {
        const char *path = PQgetisnull(result, row, 1) ? NULL : postgres__text(result, row, 1);
        if (!visit(postgres__text(result, row, 0), path, user))
            break;
    }
    PQclear(result);
    return status;
}

esdm_status
postgres__find_expression(void *self, const esdm_meta_expression *expression,
                          esdm_meta_match_visitor visit, void *user, esdm_error *err)
{
    query *q = NULL;
    esdm_status status = postgres__find_begin(self, expression, &q, err);
    return run(self, q, visit, user, status, err);
}

esdm_status
postgres__find_among(void *self, const esdm_meta_expression *expression, const uint64_t *containers,
                     size_t ncontainers, esdm_meta_match_visitor visit, void *user, esdm_error *err)
{
    query *q = NULL;
    esdm_status status =
        postgres__find_begin_among(self, expression, containers, ncontainers, &q, err);
    return run(self, q, visit, user, status, err);
}

esdm_status
postgres__find(void *self, const esdm_meta_condition *conditions, size_t nconditions,
               esdm_meta_match_visitor visit, void *user, esdm_error *err)
{
    const esdm_meta_expression all = {.conditions = conditions, .nconditions = nconditions};
    return postgres__find_expression(self, &all, visit, user, err);
}
