/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Marks of attributes in the rows of `reach` (marks.sql): which of the containers that have a time,
 * or lie in a box, cannot have the attributes that are asked for, too, is seen in the index of
 * times and boxes itself. The others are looked up and compared. How many containers have such a
 * pair is known where views count them (views.sql).
 */

#include <stdio.h>
#include <string.h>

#include "find.h"

typedef postgres__find_query query;
typedef postgres__find_bound bound;

/* "name\ntext", of which marks.sql makes the marks. */
static int
put_pair(query *q, const esdm_meta_condition *condition)
{
    esdm__buffer pair;
    esdm__buffer_init(&pair);
    postgres__put_text(&pair, condition->attribute);
    esdm__buffer_put(&pair, "\n", 1);
    postgres__put_text(&pair, condition->text);
    esdm__buffer_put_u8(&pair, 0);
    q->params.memory.failed |= pair.failed;
    postgres__put_string(&q->params, pair.failed ? "" : (const char *) pair.data);
    esdm__buffer_clear(&pair);
    return q->params.count;
}

/* An equality with a text that is no number. */
static bool
has_pair(const query *q, size_t i)
{
    const bound *b = &q->bound[i];
    return q->conditions[i].op == ESDM_META_EQ && b->texts != 0 && b->numbers == 0 &&
           b->forms == 0 && b->variable == 0;
}

void
postgres__find_bind_pairs(query *q)
{
    bool extents = false;
    for (size_t i = 0; i < q->nconditions; i++)
        extents |= postgres__find_is_extent(&q->conditions[i]);
    q->has_marks &= extents;
    for (size_t i = 0; i < q->nconditions && (q->has_marks || q->has_counts); i++) {
        if (has_pair(q, i))
            q->bound[i].pair = put_pair(q, &q->conditions[i]);
    }
}

/* Whether below the node there are alternatives alone that have marks, or one of these. */
static bool
is_marked(const query *q, size_t node)
{
    const esdm_meta_node *nodes = q->expression.nodes;
    size_t end = node + nodes[node].size;
    if (nodes[node].kind == ESDM_META_HOLDS)
        return q->bound[nodes[node].condition].pair != 0;
    bool all = nodes[node].kind == ESDM_META_ANY;
    for (size_t at = node + 1; all && at < end; at += nodes[at].size)
        all = nodes[at].kind == ESDM_META_HOLDS && q->bound[nodes[at].condition].pair != 0;
    return all;
}

/* All marks of a pair are there. The server makes their numbers once. */
static void
put_marks_of(query *q, size_t i)
{
    static const char *const marks[] = {
        "(get_bit(x.marks, (hashtextextended(# COLLATE \"C\", 0) & 511)::int) = 1",
        " AND get_bit(x.marks, (hashtextextended(# COLLATE \"C\", 0) >> 9 & 511)::int) = 1)"};
    for (size_t k = 0; k < sizeof marks / sizeof *marks; k++)
        postgres__find_put_pattern(q, marks[k], "", q->bound[i].pair);
}

/* @param before what stands before the first. */
static void
put_all_marks(query *q, const char *before, const char *after)
{
    const esdm_meta_node *nodes = q->expression.nodes;
    bool some = false;
    if (!q->has_marks || nodes[0].kind != ESDM_META_ALL)
        return;
    for (size_t node = 1; node < nodes[0].size; node += nodes[node].size) {
        bool any = nodes[node].kind == ESDM_META_ANY;
        if (!is_marked(q, node))
            continue;
        postgres__find_put(q, some ? " AND (" : before);
        some = true;
        for (size_t at = any ? node + 1 : node; at < node + nodes[node].size;
             at += nodes[at].size) {
            postgres__find_put(q, any && at > node + 1 ? " OR " : "");
            put_marks_of(q, nodes[at].condition);
        }
        postgres__find_put(q, ") IS NOT FALSE"); /* NULL: nothing is known */
    }
    if (some)
        postgres__find_put(q, after);
}

void
postgres__find_put_marks(query *q)
{
    put_all_marks(q, " AND (", "");
}

/* A row that says no is looked for, as not all containers have one; it is short, where the object
 * is not. */
void
postgres__find_put_marks_of_start(query *q)
{
    put_all_marks(q, " WHERE coalesce((SELECT (",
                  " FROM {S}.reach x WHERE x.container = u.container AND x.dataset = 0 "
                  "LIMIT 1), true)");
}

void
postgres__find_put_kept_count(query *q, size_t i)
{
    const bound *b = &q->bound[i];
    if (b->pair == 0 || !q->has_counts) {
        postgres__find_put(q, ", 0::bigint");
        return;
    }
    postgres__find_put_pattern(q, ", coalesce((SELECT f.n FROM {S}.facet f WHERE f.name = #", "",
                               b->attribute);
    postgres__find_put_pattern(q, " AND md5(f.part) = md5('=' || substr(#", "", b->pair);
    postgres__find_put_pattern(q, ", length(#) + 2))), 0)", "", b->attribute);
}
