/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Text of queries over attributes: candidates, and what an expression asks of them. */

#include <stdio.h>
#include <string.h>

#include "base/meta_tree.h"
#include "find.h"

/* SQLite allows 500 parts of a list: every so many stand in a list of their own. */
#define PARTS_TOGETHER 200

/* Numbers that are told twice do no harm, and sorting out a million of them takes half a second. */
static void
begin_part(sqlite__query *q)
{
    bool first = q->parts == 0, nests = q->parts % PARTS_TOGETHER == 0;
    q->parts++;
    sqlite__find_put(q, nests && !first ? ")" : "");
    sqlite__find_put(q, first ? "" : q->numbers ? " UNION ALL " : " UNION ");
    sqlite__find_put(q, nests ? "SELECT * FROM (" : "");
}

/* Ends the list; says whether it has anything. */
static bool
end_parts(sqlite__query *q)
{
    bool any = q->parts > 0;
    sqlite__find_put(q, any ? ")" : "");
    q->parts = 0;
    return any;
}

/* The set of containers that meet several lists together, or all that wait to be entered. */
static void
put_met(sqlite__query *q)
{
    char text[100];
    bool pending = strcmp(q->table, "main.attribute") != 0;
    pending = pending && !q->among;
    (void) snprintf(text, sizeof text,
                    pending ? "SELECT container FROM main.container WHERE container > ?%zu"
                            : "SELECT value AS container FROM json_each(?%zu)",
                    q->nconditions * SQLITE__FIND_PARAMETERS + (pending ? 1 : 2));
    begin_part(q);
    sqlite__find_put(q, text);
}

/* Containers that meet a start, or a dataset of which has an extent that does. */
static void
put_start_containers(sqlite__query *q)
{
    sqlite__find_arm arms[SQLITE__FIND_ARMS];
    if (q->narrowed)
        put_met(q);
    for (size_t i = 0; i < q->nstarts && !q->narrowed; i++) {
        size_t count = sqlite__find_arms_of(q, q->starts[i], arms);
        for (size_t k = 0; k < count; k++) {
            begin_part(q);
            sqlite__find_put_start(q, "SELECT DISTINCT a.container", q->starts[i], &arms[k],
                                   sqlite__find_is_extent(q, q->starts[i]) ? ""
                                                                           : " AND a.dataset = 0");
        }
    }
    if (!end_parts(q))
        sqlite__find_put(q, "SELECT 0 WHERE 0");
}

/* Datasets that meet condition j by themselves, in containers that meet a start. Equality finds
 * them in the index, other comparisons among the attributes of the container. */
static void
put_inherited(sqlite__query *q, size_t j)
{
    sqlite__find_arm arms[SQLITE__FIND_ARMS];
    bool equal = q->conditions[j].op == ESDM_META_EQ;
    bool pending = strcmp(sqlite__find_table_of(q, j), "main.attribute") != 0;
    size_t count = equal ? sqlite__find_arms_of(q, j, arms) : 1;
    for (size_t k = 0; k < count; k++) {
        begin_part(q);
        sqlite__find_put(q, "SELECT b.container, b.dataset, b.path FROM s CROSS JOIN ");
        sqlite__find_put(q, sqlite__find_table_of(q, j));
        sqlite__find_put(q, " b");
        if (equal)
            sqlite__find_put_by_value(q, j);
        /* Without the + SQLite goes through all that wait, for each of them. */
        sqlite__find_put(q, pending ? " WHERE b.container = +s.container"
                                    : " WHERE b.container = s.container");
        sqlite__find_put(q, " AND b.dataset <> 0");
        sqlite__find_put_pattern(q, j, equal || pending ? "b" : "+b", " AND @.name = $a");
        if (equal)
            sqlite__find_put_arm(q, j, "b", &arms[k], true);
        else
            sqlite__find_put_value(q, j, "+b");
        sqlite__find_put_variable(q, j, "b");
    }
}

static bool
is_start(const sqlite__query *q, size_t condition)
{
    for (size_t i = 0; i < q->nstarts; i++) {
        if (q->starts[i] == condition)
            return true;
    }
    return false;
}

/* Whether datasets may be found by a condition in containers that meet a start. */
static bool
is_inherited(const sqlite__query *q, size_t j)
{
    return q->covered && q->holds[j] && sqlite__find_finds_datasets(q, j) &&
           (q->narrowed || !is_start(q, j));
}

/* Datasets among which all are that can be found. */
static void
put_dataset_candidates(sqlite__query *q)
{
    sqlite__find_arm arms[SQLITE__FIND_ARMS];
    bool inherited = false;
    for (size_t j = 0; j < q->nconditions; j++)
        inherited |= is_inherited(q, j);
    if (inherited) {
        sqlite__find_put(q, "WITH s(container) AS (");
        put_start_containers(q);
        sqlite__find_put(q, ") ");
    }
    /* An empty list to begin with: a container's condition has no datasets of its own. */
    begin_part(q);
    sqlite__find_put(q, "SELECT 0 AS container, 0 AS dataset, NULL AS path WHERE 0");
    for (size_t i = 0; i < q->nstarts && !q->narrowed; i++) {
        size_t start = q->starts[i];
        size_t count =
            sqlite__find_finds_datasets(q, start) ? sqlite__find_arms_of(q, start, arms) : 0;
        for (size_t k = 0; k < count; k++) {
            begin_part(q);
            sqlite__find_put_start(q, "SELECT a.container, a.dataset, a.path", start, &arms[k],
                                   " AND a.dataset <> 0");
            sqlite__find_put_variable(q, start, "a");
        }
    }
    for (size_t j = 0; j < q->nconditions; j++) {
        if (is_inherited(q, j))
            put_inherited(q, j);
    }
    (void) end_parts(q);
}

/* ---- what must hold ----------------------------------------------------------------------- */

static void
put_text(const char *text, void *user)
{
    sqlite__find_put(user, text);
}

static void
put_of_dataset(size_t i, bool holds, void *user)
{
    sqlite__find_put(user, holds ? "(1" : "NOT (1");
    sqlite__find_put_holds(user, i);
    sqlite__find_put(user, ")");
}

static void
put_by_itself(size_t i, bool holds, void *user)
{
    (void) holds;
    sqlite__find_put(user, "(1");
    sqlite__find_put_variable(user, i, "o");
    sqlite__find_put(user, " AND ");
    sqlite__find_put_exists(user, i, SQLITE__FIND_OWN, true);
    sqlite__find_put(user, ")");
}

static bool
can_be_by_itself(size_t i, bool holds, void *user)
{
    return holds && sqlite__find_finds_datasets(user, i);
}

static void
put_of_container(size_t i, bool holds, void *user)
{
    const sqlite__query *q = user;
    bool met = i == q->proven || (q->is_met[i] && strcmp(q->table, "main.attribute") == 0);
    if (met || sqlite__names_variable(&q->conditions[i])) {
        sqlite__find_put(user, met == holds ? "1" : "0");
        return;
    }
    sqlite__find_put(user, holds ? "" : "NOT ");
    sqlite__find_put_exists(user, i, SQLITE__FIND_GLOBAL, true);
}

/* A container is no variable. */
static bool
can_be_of_container(size_t i, bool holds, void *user)
{
    const sqlite__query *q = user;
    return !holds || !sqlite__names_variable(&q->conditions[i]);
}

/* " AND ...": what is left to ask of a candidate. */
static void
put_checks(sqlite__query *q, bool datasets)
{
    const esdm_meta_expression *e = &q->expression;
    esdm__tree_writer writer = {put_text, datasets ? put_of_dataset : put_of_container, q};
    esdm__tree_writer own = {put_text, put_by_itself, q};
    bool flat = esdm__tree_is_flat(e, false);
    bool holds = e->nodes[e->nnodes - 1].kind == ESDM_META_HOLDS; /* the last of a flat one */
    bool alone = flat && e->nnodes <= 2 && holds && !q->narrowed;
    bool found_by_it = esdm__tree_is_flat(e, true) || alone;
    if (found_by_it && (datasets || !q->among))
        return;
    bool one = flat && !datasets && q->nstarts == 1 && !q->narrowed;
    q->proven = one ? q->starts[0] : SIZE_MAX;
    sqlite__find_put(q, " AND ");
    if (flat || !datasets) /* all that may be met by itself belongs to the one alternative */
        esdm__tree_put(e, 0, &writer);
    else
        esdm__tree_put_own(e, 0, &writer, &own, can_be_by_itself);
    q->proven = SIZE_MAX;
}

/* ---- the query ---------------------------------------------------------------------------- */

/* Who asks for numbers knows which containers have no name. */
static void
put_named(sqlite__query *q)
{
    sqlite__find_put(q, q->numbers ? ") o WHERE 1"
                                   : ") o CROSS JOIN main.container c ON c.container = o.container "
                                     "WHERE c.name IS NOT NULL");
}

/* Datasets that meet some condition by themselves, and what it stands with. */
static void
put_datasets(sqlite__query *q)
{
    sqlite__find_put(q, q->numbers ? "SELECT o.container, o.dataset" : "SELECT c.name, o.path");
    sqlite__find_put(q, " FROM (");
    put_dataset_candidates(q);
    put_named(q);
}

/* Containers whose own attributes meet the expression. */
static void
put_containers(sqlite__query *q)
{
    sqlite__find_arm arms[SQLITE__FIND_ARMS];
    size_t parts = 0;
    sqlite__find_put(q, q->numbers ? "SELECT o.container, 0" : "SELECT c.name, NULL");
    sqlite__find_put(q, " FROM (");
    if (q->narrowed)
        put_met(q);
    for (size_t i = 0; i < q->nstarts && q->covered && !q->narrowed; i++) {
        size_t count = sqlite__names_variable(&q->conditions[q->starts[i]])
                           ? 0
                           : sqlite__find_arms_of(q, q->starts[i], arms);
        for (size_t k = 0; k < count; k++, parts++) {
            begin_part(q);
            sqlite__find_put_start(q, "SELECT a.container", q->starts[i], &arms[k],
                                   " AND a.dataset = 0");
            /* One part alone would name a container once for each value. */
            bool alone = q->nstarts == 1 && count == 1 && !q->numbers;
            sqlite__find_put(q, alone ? " GROUP BY 1" : "");
        }
    }
    if (!end_parts(q))
        sqlite__find_put(q, q->covered ? "SELECT 0 AS container WHERE 0"
                                       : "SELECT l.container FROM main.container l");
    put_named(q);
}

/* Of the containers in the index, or of those that are not. */
static void
put_indexed(sqlite__query *q, bool pending)
{
    char text[64];
    (void) snprintf(text, sizeof text, " AND o.container %s ?%zu",
                    pending ? ">" : "<=", q->nconditions * SQLITE__FIND_PARAMETERS + 1);
    sqlite__find_put(q, text);
}

void
sqlite__query_put(sqlite__query *q, bool with_pending)
{
    static const char *const tables[] = {"main.attribute", "temp.pending"};
    bool first = true, attributes = false;
    for (size_t i = 0; i < q->nconditions; i++)
        attributes |= !sqlite__find_is_extent(q, i);
    with_pending &= attributes;
    bool containers = esdm__tree_is(&q->expression, 0, false, can_be_of_container, q);
    q->sql.bytes = 0;
    for (int t = 0; t < 1 + with_pending; t++) {
        q->table = tables[t];
        bool datasets = esdm__tree_is(&q->expression, 0, true, can_be_by_itself, q);
        for (int part = 0; part < 2; part++) {
            if (!(part == 0 ? datasets : containers))
                continue;
            sqlite__find_put(q, first ? "" : " UNION ALL ");
            first = false;
            if (part == 0)
                put_datasets(q);
            else
                put_containers(q);
            if (with_pending)
                put_indexed(q, t != 0);
            put_checks(q, part == 0);
        }
    }
    if (first) /* datasets alone could be meant, and no comparison finds any */
        sqlite__find_put(q, "SELECT NULL, NULL WHERE 0");
    sqlite__find_put(q, q->numbers ? "" : " ORDER BY 1, 2");
    esdm__buffer_put_u8(&q->sql, 0);
}
