/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file How many objects meet the conditions of a query: a sample of the table sees what many
 * meet, for which the index would have to be read to the end; it says the rest. */

#include <stdio.h>
#include <string.h>

#include "find.h"

typedef postgres__find_query query;

/* Pages of a sample: what every twentieth container has is seen. */
#define SAMPLE_PAGES 32
/* Rows of extents are short. */
#define SAMPLE_EXTENT_PAGES 16

/* An object that can meet condition i, as far as the index says. */
static void
put_can_meet(query *q, size_t i, bool dataset)
{
    if (q->conditions[i].op == ESDM_META_EQ)
        postgres__find_put_equal(q, &q->bound[i], "a");
    else if (q->bound[i].listed && !dataset)
        postgres__find_put_listed(q, &q->bound[i], "a");
    else
        postgres__find_put_pattern(q, "@.attributes \x01> #::jsonb", "a", q->bound[i].named);
}

static const char *const of_objects[] = {"a.dataset = 0 AND ", "a.dataset <> 0 AND "};

/* Each object that is counted is read, so what a sample saw at all is counted up to the first limit
 * only, in case it was rare and seen by chance. */
bool
postgres__find_is_guessed(const query *q, size_t k, uint64_t limit)
{
    return limit > POSTGRES__COUNT_FIRST && q->guesses[k] >= limit &&
           !(k % 2 == 0 && postgres__find_is_together(q, k / 2));
}

void
postgres__find_put_counts(query *q, uint64_t limit)
{
    char end[80];
    /* A list that is planned as a whole, in the index, and ended early all the same. */
    q->sql.bytes = 0;
    for (size_t k = 0; k < 2 * q->nconditions; k++) {
        size_t i = k / 2;
        postgres__find_put(q, k == 0 ? "SELECT " : ", ");
        bool extent = postgres__find_is_extent(&q->conditions[i]); /* has one count */
        bool together = k % 2 == 0 && postgres__find_is_together(q, i);
        if ((together && q->together[0] != i) || q->bound[i].alike != i || !q->holds[i] ||
            q->counts[k] != POSTGRES__COUNT_UNKNOWN || (extent && k % 2 != 0) ||
            postgres__find_is_guessed(q, k, limit)) {
            postgres__find_put(q, "0::bigint");
            continue;
        }
        if (extent) {
            postgres__find_put(q, "(WITH n AS MATERIALIZED (SELECT FROM ");
            postgres__find_put_ranges(q, i);
            (void) snprintf(end, sizeof end, "%s LIMIT %llu) SELECT count(*) FROM n)",
                            q->bound[i].span != 0 ? "" : " ORDER BY x.name, x.value",
                            (unsigned long long) postgres__find_most_counted(q, i, limit));
            postgres__find_put(q, end);
            continue;
        }
        (void) snprintf(end, sizeof end, ") SELECT count(*) FROM (SELECT FROM n LIMIT %llu) AS x)",
                        (unsigned long long) limit);
        postgres__find_put(q, "(WITH n AS MATERIALIZED (SELECT FROM {S}.object a WHERE ");
        postgres__find_put(q, of_objects[k % 2]);
        if (together)
            postgres__find_put_together(q, "a");
        else
            put_can_meet(q, i, k % 2 != 0);
        postgres__find_put(q, end);
    }
    postgres__find_end_text(q);
}

static int
pages_of(const char *table)
{
    return strcmp(table, "extent") == 0 ? SAMPLE_EXTENT_PAGES : SAMPLE_PAGES;
}

/* A list of counts in a sample, after one of how many pages of the table each page of it stands
 * for. */
static void
begin_sample(query *q, const char *table)
{
    char text[400];
    (void) snprintf(text, sizeof text,
                    "(WITH p AS (SELECT greatest(1, pg_relation_size('{S}.%s') / "
                    "current_setting('block_size')::float8 / %d) AS pages) "
                    "SELECT (SELECT ceil(p.pages)::bigint FROM p)",
                    table, pages_of(table));
    postgres__find_put(q, text);
}

/* TABLESAMPLE looks at the number of every page of the table, which takes longer than what is read
 * of a large one. */
static void
end_sample(query *q, const char *table, const char *alias)
{
    char text[400];
    if (!q->has_places)
        (void) snprintf(text, sizeof text,
                        " FROM {S}.%s %s TABLESAMPLE SYSTEM ((SELECT 100 / p.pages FROM p)))",
                        table, alias);
    else
        (void) snprintf(
            text, sizeof text,
            " FROM (SELECT floor((g.k + random()) * p.pages)::bigint AS n FROM p "
            "CROSS JOIN generate_series(0, %d) AS g(k) OFFSET 0) AS n CROSS JOIN "
            "LATERAL (SELECT * FROM {S}.%s y WHERE y.ctid >= ('(' || n.n || ',0)')::tid "
            "AND y.ctid < ('(' || n.n + 1 || ',0)')::tid OFFSET 0) AS %s)",
            pages_of(table) - 1, table, alias);
    postgres__find_put(q, text);
}

void
postgres__find_put_sample(query *q, postgres__find_table table)
{
    static const char *const names[][2] = {{"object", "a"}, {"extent", "x"}, {"reach", "x"}};
    bool extent = table != POSTGRES__FIND_OBJECT;
    q->sql.bytes = 0;
    postgres__find_put(q, "SELECT s.*");
    for (size_t i = 0; i < q->nconditions && table == POSTGRES__FIND_OBJECT; i++)
        postgres__find_put_kept_count(q, i);
    postgres__find_put(q, " FROM ");
    begin_sample(q, names[table][0]);
    for (size_t k = 0; k < 2 * q->nconditions; k++) {
        size_t i = k / 2;
        bool asked = q->holds[i] && postgres__find_table_of(q, i) == table &&
                     (!extent || k % 2 == 0) && q->bound[i].alike == i;
        postgres__find_put(q, asked ? ", count(*) FILTER (WHERE " : ", 0::bigint");
        if (!asked)
            continue;
        if (table == POSTGRES__FIND_REACH) {
            postgres__find_put_reach(q, i);
        } else if (extent) {
            postgres__find_put_extent(q, i);
        } else {
            postgres__find_put(q, of_objects[k % 2]);
            put_can_meet(q, i, k % 2 != 0);
        }
        postgres__find_put(q, ")");
    }
    end_sample(q, names[table][0], names[table][1]);
    postgres__find_put(q, " AS s");
    postgres__find_end_text(q);
}

/* What many have is seen in a sample; the list in the index is short then. */
void
postgres__find_put_dataset_has(query *q, size_t i, bool sampled)
{
    int named = q->bound[i].named;
    q->sql.bytes = 0;
    postgres__find_put(q, "SELECT ");
    if (!sampled) {
        postgres__find_put(q, "CASE WHEN (SELECT s.n FROM ");
        begin_sample(q, "object");
        postgres__find_put_pattern(q,
                                   ", count(*) FILTER (WHERE a.dataset <> 0 AND "
                                   "@.attributes \x01> #::jsonb) AS n",
                                   "a", named);
        end_sample(q, "object", "a");
        postgres__find_put(q, " AS s) > 0 THEN true ELSE ");
    }
    postgres__find_put_pattern(q,
                               "(WITH n AS MATERIALIZED (SELECT FROM {S}.object a WHERE "
                               "a.dataset <> 0 AND @.attributes \x01> #::jsonb) "
                               "SELECT count(*) FROM (SELECT FROM n LIMIT 1) AS x) > 0",
                               "a", named);
    postgres__find_put(q, sampled ? "" : " END");
    postgres__find_end_text(q);
}
