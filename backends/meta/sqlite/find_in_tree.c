/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Containers whose ranges can meet what a query asks of times and boxes, from the trees of
 *  extent_trees.c: a list for find_meet.c. */

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "find.h"
#include "store.h"

/* More of them are no help. */
#define FOUND_MOST 50000
#define SIDES_MOST 16

typedef struct side {
    const char *column;
    bool at_most;
    double number;
} side;

/* What a list is made from: the sides that must hold, and alternatives to them. */
typedef struct box {
    side sides[SIDES_MOST];
    size_t nsides;
    uint64_t *numbers; /* owned */
    size_t count;
} box;

typedef struct axis {
    const char *names[2]; /* of extents */
    const char *columns[2];
} axis;

static const axis time_axis = {{"@time_min", "@time_max"}, {"low", "high"}};
static const axis lat_axis = {{"@lat_min", "@lat_max"}, {"south", "north"}};
static const axis lon_axis = {{"@lon_min", "@lon_max"}, {"west", "east"}};

/* A condition on either end of a range: that of a container has both ends of all its ranges. */
static bool
add_side(const sqlite__query *q, size_t node, const axis *of, box *to)
{
    const esdm_meta_node *n = &q->expression.nodes[node];
    if (n->kind != ESDM_META_HOLDS || to->nsides == SIDES_MOST)
        return false;
    const esdm_meta_condition *c = &q->conditions[n->condition];
    bool known = strcmp(c->attribute, of->names[0]) == 0 || strcmp(c->attribute, of->names[1]) == 0;
    bool at_most = c->op == ESDM_META_LT || c->op == ESDM_META_LE;
    if (!known || !c->is_number || (!at_most && c->op != ESDM_META_GT && c->op != ESDM_META_GE))
        return false;
    to->sides[to->nsides++] = (side){of->columns[!at_most], at_most, c->number};
    return true;
}

static int
compare_numbers(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;
    return x < y ? -1 : x > y;
}

static bool
append(box *to, uint64_t number)
{
    if (!esdm__array_grow(&to->numbers, to->count, sizeof *to->numbers))
        return false;
    to->numbers[to->count++] = number;
    return true;
}

/* Appends what a statement finds. */
static esdm_status
take(sqlite__link *link, sqlite3_stmt *statement, box *to, esdm_error *err)
{
    bool row = true;
    esdm_status status = ESDM_OK;
    while (status == ESDM_OK && row && to->count <= FOUND_MOST) {
        status = sqlite__step(link, statement, &row, err);
        if (status == ESDM_OK && row && !append(to, sqlite__u64(statement, 0)))
            status = esdm__error_nomem(err, to->count * sizeof *to->numbers, "a query");
    }
    return status;
}

/* The number that finds at least what this one does. Trees have 32-bit numbers, which SQLite rounds
 * away from the middle of a range by a part of them: not where they are too large for that, or so
 * small that they have fewer digits. */
static double
widened(const side *s)
{
    double number = s->at_most ? s->number : -s->number;
    if (number >= FLT_MAX)
        number = INFINITY;
    else if (fabs(number) < FLT_MIN)
        number = FLT_MIN;
    return s->at_most ? number : -number;
}

static esdm_status
search(sqlite__link *link, const char *tree, box *to, esdm_error *err)
{
    char sql[64 + 32 * SIDES_MOST];
    sqlite3_stmt *statement = NULL;
    int bytes = snprintf(sql, sizeof sql, "SELECT container FROM main.%s WHERE 1", tree);
    for (size_t i = 0; i < to->nsides; i++)
        bytes += snprintf(sql + bytes, sizeof sql - (size_t) bytes, " AND %s %s ?%zu",
                          to->sides[i].column, to->sides[i].at_most ? "<=" : ">=", i + 1);
    int code = sqlite3_prepare_v2(link->db, sql, -1, &statement, NULL);
    for (size_t i = 0; i < to->nsides && code == SQLITE_OK; i++)
        code = sqlite3_bind_double(statement, (int) i + 1, widened(&to->sides[i]));
    esdm_status status =
        code == SQLITE_OK ? take(link, statement, to, err) : sqlite__error(link, code, err);
    (void) sqlite3_finalize(statement);
    return status;
}

/* Longitudes of an alternative. */
static bool
add_longitudes(const sqlite__query *q, size_t node, box *to)
{
    const esdm_meta_node *nodes = q->expression.nodes;
    bool any = false;
    if (nodes[node].kind != ESDM_META_ALL)
        return add_side(q, node, &lon_axis, to);
    for (size_t at = node + 1; at < node + nodes[node].size; at += nodes[at].size)
        any |= add_side(q, at, &lon_axis, to);
    return any;
}

/* The part of what must hold together that has alternatives of longitudes, each of which asks
 * something of them; 0: there is none. */
static size_t
find_alternatives(const sqlite__query *q)
{
    const esdm_meta_expression *e = &q->expression;
    for (size_t at = 1; at < e->nnodes; at += e->nodes[at].size) {
        bool all = e->nodes[at].kind == ESDM_META_ANY && e->nodes[at].size > 1;
        for (size_t part = at + 1; all && part < at + e->nodes[at].size;
             part += e->nodes[part].size)
            all = add_longitudes(q, part, &(box){.nsides = 0});
        if (all)
            return at;
    }
    return 0;
}

static esdm_status
search_boxes(sqlite__link *link, const sqlite__query *q, box *to, bool *ret_is, esdm_error *err)
{
    const esdm_meta_expression *e = &q->expression;
    bool lat = false, lon = false;
    esdm_status status = ESDM_OK;
    for (size_t at = 1; at < e->nnodes; at += e->nodes[at].size) {
        lat |= add_side(q, at, &lat_axis, to);
        lon |= add_side(q, at, &lon_axis, to);
    }
    size_t alternatives = lon ? 0 : find_alternatives(q), sides = to->nsides;
    *ret_is = lat && (lon || alternatives != 0); /* the tree has what has both */
    if (*ret_is && lon)
        return search(link, "extent_box", to, err);
    for (size_t at = alternatives + 1;
         *ret_is && status == ESDM_OK && at < alternatives + e->nodes[alternatives].size;
         at += e->nodes[at].size) {
        to->nsides = sides;
        *ret_is = add_longitudes(q, at, to); /* else it has too many sides */
        if (*ret_is)
            status = search(link, "extent_box", to, err);
    }
    return status;
}

static esdm_status
search_times(sqlite__link *link, const sqlite__query *q, box *to, bool *ret_is, esdm_error *err)
{
    const esdm_meta_expression *e = &q->expression;
    for (size_t at = 1; at < e->nnodes; at += e->nodes[at].size)
        (void) add_side(q, at, &time_axis, to);
    *ret_is = to->nsides > 0;
    return *ret_is ? search(link, "extent_time", to, err) : ESDM_OK;
}

static esdm_status
find_in_tree(sqlite__link *link, const sqlite__query *q, bool boxes, sqlite__tree_list *ret,
             esdm_error *err)
{
    box found = {.nsides = 0};
    bool is = false;
    sqlite3_stmt *changed = NULL;
    esdm_status status =
        boxes ? search_boxes(link, q, &found, &is, err) : search_times(link, q, &found, &is, err);
    is &= found.count <= FOUND_MOST;
    if (status == ESDM_OK && is)
        status = sqlite__prepare(link, SQLITE__TREE_ALL_CHANGED, &changed, err, "");
    if (status == ESDM_OK && is) {
        status = take(link, changed, &found, err);
        (void) sqlite3_reset(changed);
    }
    is &= status == ESDM_OK && found.count <= FOUND_MOST && append(&found, UINT64_MAX);
    if (!is) {
        free(found.numbers);
        return status;
    }
    qsort(found.numbers, found.count, sizeof *found.numbers, compare_numbers);
    *ret = (sqlite__tree_list){found.numbers, found.count};
    return ESDM_OK;
}

esdm_status
sqlite__find_in_trees(sqlite__link *link, sqlite__query *q, esdm_error *err)
{
    bool has = false;
    if (q->trees_searched)
        return ESDM_OK;
    esdm_status status = sqlite__trees_has(link, &has, err);
    for (int boxes = 0; boxes < 2 && has && status == ESDM_OK; boxes++)
        status = find_in_tree(link, q, boxes != 0, &q->trees[boxes], err);
    q->trees_searched = status == ESDM_OK;
    return status;
}
