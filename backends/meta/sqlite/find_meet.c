/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Containers that meet several comparisons of which none is rare. An equality is a list in the
 * index (name, value): numbers of containers in their order. The lists are walked together: who
 * is behind goes on to where another one is, step by step when that is near, else by a search. So
 * the entries between are not looked at, and none costs a search in all other lists.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "find.h"
#include "store.h"

/* Lists that are walked together, those with the fewest entries; parts of one, alternatives. */
#define LISTS_MOST 8
#define PARTS_MOST 32
/* A search costs as much as so many steps. */
#define STEPS_NEAR 8
#define AT_END     UINT64_MAX

typedef struct part {
    sqlite3_stmt *statement; /* owned */
    uint64_t at;
} part;

/* The containers of all its parts, in order. */
typedef struct list {
    part *parts; /* owned */
    size_t nparts;
    size_t condition;        /* SIZE_MAX: alternatives, or a tree */
    const uint64_t *numbers; /* of a tree, in order, AT_END behind them; borrowed */
    size_t at;
} list;

typedef struct lists {
    sqlite__link *link;
    sqlite__query *q;
    list items[LISTS_MOST + 2];
    size_t count;
    uint64_t left; /* steps that it may take */
} lists;

/* ---- walking -------------------------------------------------------------------------------- */

static esdm_status
next_of_part(lists *l, part *p, uint64_t steps, esdm_error *err)
{
    bool row = false;
    l->left -= steps < l->left ? steps : l->left;
    esdm_status status = sqlite__step(l->link, p->statement, &row, err);
    p->at = status == ESDM_OK && row ? sqlite__u64(p->statement, 0) : AT_END;
    return status;
}

/* To the first container of at least that number. */
static esdm_status
seek_part(lists *l, part *p, uint64_t number, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (int k = 0; k < STEPS_NEAR && p->at < number && p->at != 0 && status == ESDM_OK; k++)
        status = next_of_part(l, p, 1, err);
    if (status != ESDM_OK || p->at >= number)
        return status;
    (void) sqlite3_reset(p->statement);
    int code = sqlite3_bind_int64(p->statement, 3, (sqlite3_int64) number);
    return code == SQLITE_OK ? next_of_part(l, p, STEPS_NEAR, err)
                             : sqlite__error(l->link, code, err);
}

static esdm_status
seek(lists *l, list *of, uint64_t number, uint64_t *ret_at, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    *ret_at = AT_END;
    if (of->numbers != NULL) {
        while (of->numbers[of->at] < number)
            of->at++;
        *ret_at = of->numbers[of->at];
        return ESDM_OK;
    }
    for (size_t i = 0; i < of->nparts && status == ESDM_OK; i++) {
        part *p = &of->parts[i];
        if (p->at < number)
            status = seek_part(l, p, number, err);
        if (p->at < *ret_at)
            *ret_at = p->at;
    }
    return status;
}

static void
put_number(sqlite__query *q, uint64_t number)
{
    char text[32];
    int bytes = snprintf(text, sizeof text, "%s%llu", q->met.bytes > 0 ? "," : "[",
                         (unsigned long long) number);
    esdm__buffer_put(&q->met, text, (size_t) bytes);
}

static esdm_status
walk(lists *l, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    uint64_t number = 1;
    while (status == ESDM_OK && number != AT_END && l->left > 0) {
        uint64_t at = number;
        for (size_t i = 0; i < l->count && at == number && status == ESDM_OK; i++)
            status = seek(l, &l->items[i], number, &at, err);
        if (status == ESDM_OK && at == number)
            put_number(l->q, number++);
        else
            number = at;
    }
    esdm__buffer_put(&l->q->met, l->q->met.bytes > 0 ? "]" : "[]", l->q->met.bytes > 0 ? 2 : 3);
    return status == ESDM_OK && l->q->met.failed
               ? esdm__error_nomem(err, l->q->met.bytes, "a query")
               : status;
}

/* ---- lists ---------------------------------------------------------------------------------- */

/* An equality whose entries have one place in the index, or two when a number may be a text. */
static bool
is_list(const sqlite__query *q, size_t i)
{
    sqlite__find_arm arms[SQLITE__FIND_ARMS];
    return q->conditions[i].op == ESDM_META_EQ && !sqlite__find_is_extent(q, i) &&
           sqlite__find_arms_of(q, i, arms) == 1;
}

static size_t
parts_of(const sqlite__query *q, size_t i)
{
    return q->conditions[i].is_number && q->conditions[i].text != NULL ? 2 : 1;
}

/* One place in the index of condition i. */
static esdm_status
open_part(lists *l, list *of, size_t i, bool as_number, esdm_error *err)
{
    static const char *const text[] = {
        "SELECT container FROM main.attribute INDEXED BY attribute_value WHERE name = ?1 "
        "AND value = ?2 AND container >= ?3 ORDER BY container",
        "SELECT container FROM main.attribute INDEXED BY attribute_value WHERE name = ?1 "
        "AND value = ?2 AND container >= ?3 AND dataset = 0 ORDER BY container"};
    const esdm_meta_condition *condition = &l->q->conditions[i];
    part *p = &of->parts[of->nparts++];
    bool of_container = !sqlite__find_finds_datasets(l->q, i);
    int code = sqlite3_prepare_v2(l->link->db, text[of_container], -1, &p->statement, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_bind_text(p->statement, 1, condition->attribute, -1, SQLITE_STATIC);
    if (code == SQLITE_OK)
        code = as_number ? sqlite3_bind_double(p->statement, 2, condition->number)
                         : sqlite3_bind_text(p->statement, 2, condition->text, -1, SQLITE_STATIC);
    return code == SQLITE_OK ? ESDM_OK : sqlite__error(l->link, code, err);
}

static esdm_status
open_list(lists *l, list *of, size_t node, esdm_error *err)
{
    const esdm_meta_node *nodes = l->q->expression.nodes;
    bool one = nodes[node].kind == ESDM_META_HOLDS;
    esdm_status status = ESDM_OK;
    of->parts = calloc(PARTS_MOST, sizeof *of->parts);
    if (of->parts == NULL)
        return esdm__error_nomem(err, PARTS_MOST * sizeof *of->parts, "a query");
    for (size_t at = one ? node : node + 1; at < node + nodes[node].size && status == ESDM_OK;
         at++) {
        size_t i = nodes[at].condition;
        if (l->q->conditions[i].is_number)
            status = open_part(l, of, i, true, err);
        if (status == ESDM_OK && l->q->conditions[i].text != NULL)
            status = open_part(l, of, i, false, err);
    }
    return status;
}

/* Whether a part of what must hold together is a list. @param ret_entries of it. */
static bool
find_list(const sqlite__query *q, size_t node, const uint64_t *counts, uint64_t *ret_entries)
{
    const esdm_meta_node *nodes = q->expression.nodes;
    size_t parts = 0;
    *ret_entries = 0;
    if (nodes[node].kind == ESDM_META_HOLDS) {
        *ret_entries = counts[nodes[node].condition];
        return is_list(q, nodes[node].condition);
    }
    if (nodes[node].kind != ESDM_META_ANY)
        return false;
    for (size_t at = node + 1; at < node + nodes[node].size; at++) {
        size_t i = nodes[at].condition;
        if (nodes[at].kind != ESDM_META_HOLDS || !is_list(q, i))
            return false;
        parts += parts_of(q, i);
        *ret_entries += counts[i];
    }
    return parts > 0 && parts <= PARTS_MOST;
}

/* Those of trees come first, the shorter one before: they are short, and at hand. */
static esdm_status
take_trees(lists *l, esdm_error *err)
{
    const sqlite__tree_list *trees = l->q->trees;
    esdm_status status = sqlite__find_in_trees(l->link, l->q, err);
    size_t first = trees[0].count < trees[1].count ? 0 : 1;
    for (size_t k = 0; k < 2 && status == ESDM_OK; k++) {
        const sqlite__tree_list *tree = &trees[k == 0 ? first : 1 - first];
        if (tree->numbers != NULL)
            l->items[l->count++] = (list){.condition = SIZE_MAX, .numbers = tree->numbers};
    }
    return status;
}

/* Chooses the lists with the fewest entries, and opens them. */
static esdm_status
open_lists(lists *l, const uint64_t *counts, esdm_error *err)
{
    const esdm_meta_expression *e = &l->q->expression;
    size_t chosen[LISTS_MOST], count = 0;
    uint64_t entries[LISTS_MOST], of = 0;
    esdm_status status = ESDM_OK;
    for (size_t at = 1; at < e->nnodes; at += e->nodes[at].size) {
        if (!find_list(l->q, at, counts, &of) ||
            (count == LISTS_MOST && of >= entries[LISTS_MOST - 1]))
            continue;
        size_t k = count < LISTS_MOST ? count++ : LISTS_MOST - 1;
        for (; k > 0 && entries[k - 1] > of; k--) {
            chosen[k] = chosen[k - 1];
            entries[k] = entries[k - 1];
        }
        chosen[k] = at;
        entries[k] = of;
    }
    if (l->count == 0 && count < 2)
        return ESDM_OK;
    for (size_t k = 0; k < count && status == ESDM_OK; k++) {
        list *one = &l->items[l->count++];
        const esdm_meta_node *node = &e->nodes[chosen[k]];
        one->condition = node->kind == ESDM_META_HOLDS ? node->condition : SIZE_MAX;
        status = open_list(l, one, chosen[k], err);
    }
    return status;
}

static void
close_lists(lists *l)
{
    for (size_t i = 0; i < l->count; i++) {
        for (size_t k = 0; k < l->items[i].nparts; k++)
            (void) sqlite3_finalize(l->items[i].parts[k].statement);
        free(l->items[i].parts);
    }
}

bool
sqlite__takes_sets(sqlite__link *link)
{
    sqlite3_stmt *statement = NULL;
    if (link->sets != SQLITE__SETS_UNKNOWN)
        return link->sets == SQLITE__SETS_TAKEN;
    int code =
        sqlite3_prepare_v2(link->db, "SELECT value FROM json_each('[]')", -1, &statement, NULL);
    (void) sqlite3_finalize(statement);
    if (code == SQLITE_OK)
        link->sets = SQLITE__SETS_TAKEN;
    else if (code == SQLITE_ERROR) /* there is no such table; else it may have been busy */
        link->sets = SQLITE__SETS_REFUSED;
    return code == SQLITE_OK;
}

esdm_status
sqlite__find_meet(sqlite__link *link, sqlite__query *q, const uint64_t *counts, uint64_t steps,
                  esdm_error *err)
{
    lists l = {.link = link, .q = q, .left = steps};
    if (!q->covered || q->expression.nodes[0].kind != ESDM_META_ALL || !sqlite__takes_sets(link))
        return ESDM_OK;
    q->table = "main.attribute";
    q->met.bytes = 0;
    esdm_status status = take_trees(&l, err);
    if (status == ESDM_OK)
        status = open_lists(&l, counts, err);
    if (status == ESDM_OK && l.count > 0)
        status = walk(&l, err);
    q->narrowed = status == ESDM_OK && l.count > 0 && l.left > 0;
    for (size_t i = 0; i < l.count && q->narrowed; i++) {
        size_t condition = l.items[i].condition;
        if (condition != SIZE_MAX && !sqlite__find_finds_datasets(q, condition))
            q->is_met[condition] = true;
    }
    close_lists(&l);
    return status;
}
