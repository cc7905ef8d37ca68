/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Comparisons with ends of times and boxes, answered by one index over both ends (reach.sql). Such
 * a comparison says how far an object must reach at least on one side; what must hold beside it
 * says more. Together they are a box that the object's own overlaps; what is said of the container
 * whatever the object has (":time") is another one, of the container's row. Rows that do are looked
 * at again.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "find.h"

typedef postgres__find_query query;

/* Rows of `reach` go no farther, and lie beyond it on an axis on which they have no end. */
#define FARTHEST 1e9
#define ANYWHERE 3e9

typedef enum axis { TIMES, LATITUDES, LONGITUDES, AXES } axis;

typedef struct area {
    double low[AXES], high[AXES];
} area;

/* What must hold: of the object, and of its container whatever the object has. */
typedef enum scope { OBJECT, CONTAINER, SCOPES } scope;
typedef struct around {
    area of[SCOPES];
} around;

typedef struct making {
    query *q;
    area *areas; /* of each condition; owned */
    size_t *met; /* in how many places each is to hold; owned */
} making;

static double
lesser(double a, double b)
{
    return a < b ? a : b;
}

static double
greater(double a, double b)
{
    return a > b ? a : b;
}

static scope
scope_of(const esdm_meta_condition *c)
{
    return postgres__find_is_for_container(c) ? CONTAINER : OBJECT;
}

/* What a condition says of the area of its scope. @return false: nothing. */
static bool
narrow(around *all, const esdm_meta_condition *c)
{
    static const char *const names[AXES][2] = {
        {"@time_min", "@time_max"}, {"@lat_min", "@lat_max"}, {"@lon_min", "@lon_max"}};
    esdm_meta_operator op = c->op;
    if (!c->is_number || isnan(c->number))
        return false;
    double number = greater(lesser(c->number, FARTHEST), -FARTHEST);
    area *a = &all->of[scope_of(c)];
    for (size_t i = 0; i < AXES; i++) {
        bool lower = strcmp(c->attribute, names[i][0]) == 0 &&
                     (op == ESDM_META_LT || op == ESDM_META_LE || op == ESDM_META_EQ);
        bool upper = strcmp(c->attribute, names[i][1]) == 0 &&
                     (op == ESDM_META_GT || op == ESDM_META_GE || op == ESDM_META_EQ);
        if (!lower && !upper)
            continue;
        a->low[i] = greater(a->low[i], upper ? number : -FARTHEST);
        a->high[i] = lesser(a->high[i], lower ? number : FARTHEST);
        return true;
    }
    return false;
}

static around
everywhere(void)
{
    const area all = {.low = {-ANYWHERE, -ANYWHERE, -ANYWHERE},
                      .high = {ANYWHERE, ANYWHERE, ANYWHERE}};
    return (around){.of = {all, all}};
}

/* Gives the conditions below a node their areas. @param beside what must hold beside it. */
static void
spread(making *m, size_t node, around beside)
{
    const esdm_meta_node *nodes = m->q->expression.nodes, *n = &nodes[node];
    size_t end = node + n->size;
    if (n->kind == ESDM_META_HOLDS) {
        size_t i = n->condition;
        if (m->met[i]++ > 0) /* here, or there */
            beside = everywhere();
        if (narrow(&beside, &m->q->conditions[i]))
            m->areas[i] = beside.of[scope_of(&m->q->conditions[i])];
        return;
    }
    if (n->kind == ESDM_META_FAILS)
        return;
    for (size_t at = node + 1; n->kind == ESDM_META_ALL && at < end; at += nodes[at].size) {
        if (nodes[at].kind == ESDM_META_HOLDS)
            (void) narrow(&beside, &m->q->conditions[nodes[at].condition]);
    }
    for (size_t at = node + 1; at < end; at += nodes[at].size)
        spread(m, at, beside);
}

/* "(a,b),(c,d)", as the server reads a box. */
static int
put_box(query *q, double a, double b, double c, double d)
{
    const double numbers[] = {a, b, c, d};
    static const char *const before[] = {"(", ",", "),(", ","};
    esdm__buffer text;
    esdm__buffer_init(&text);
    for (size_t i = 0; i < 4; i++) {
        esdm__buffer_put(&text, before[i], strlen(before[i]));
        postgres__put_number(&text, numbers[i]);
    }
    esdm__buffer_put(&text, ")", 2);
    q->params.memory.failed |= text.failed;
    postgres__put_string(&q->params, text.failed ? "" : (const char *) text.data);
    esdm__buffer_clear(&text);
    return q->params.count;
}

/* Conditions that say the same share the parameters. */
static void
bind_area(making *m, size_t i)
{
    query *q = m->q;
    const area *a = &m->areas[i];
    for (size_t k = 0; k < i; k++) {
        if (q->bound[k].span != 0 && q->bound[k].alike == k &&
            scope_of(&q->conditions[k]) == scope_of(&q->conditions[i]) &&
            memcmp(&m->areas[k], a, sizeof *a) == 0) {
            q->bound[i].alike = k;
            q->bound[i].span = q->bound[k].span;
            q->bound[i].lon = q->bound[k].lon;
            return;
        }
    }
    q->bound[i].span =
        put_box(q, a->low[TIMES], a->low[LATITUDES], a->high[TIMES], a->high[LATITUDES]);
    q->bound[i].lon = put_box(q, a->low[LONGITUDES], 0, a->high[LONGITUDES], 0);
}

esdm_status
postgres__find_bind_reach(query *q, esdm_error *err)
{
    making m = {.q = q,
                .areas = calloc(q->nconditions, sizeof *m.areas),
                .met = calloc(q->nconditions, sizeof *m.met)};
    bool nomem = m.areas == NULL || m.met == NULL;
    if (!nomem)
        spread(&m, 0, everywhere());
    for (size_t i = 0; i < q->nconditions && !nomem; i++) {
        around own = everywhere();
        if (m.met[i] > 0 && narrow(&own, &q->conditions[i]))
            bind_area(&m, i);
    }
    free(m.areas);
    free(m.met);
    return nomem ? esdm__error_nomem(err, q->nconditions * sizeof *m.areas, "a query") : ESDM_OK;
}

void
postgres__find_put_reach(query *q, size_t i)
{
    postgres__find_put_pattern(q, "x.span && #::box", "", q->bound[i].span);
    postgres__find_put_pattern(q, " AND x.lon && #::box", "", q->bound[i].lon);
}

/* Which of both ends is which a row does not tell, as the server puts them in order; one that is
 * not there lies at the farthest. */
bool
postgres__find_put_sure(query *q, size_t i)
{
    static const char *const names[AXES] = {"@time_", "@lat_", "@lon_"};
    static const char *const ends[AXES][2] = {{"(e.span[1])[0]", "(e.span[0])[0]"},
                                              {"(e.span[1])[1]", "(e.span[0])[1]"},
                                              {"(e.lon[1])[0]", "(e.lon[0])[0]"}};
    const esdm_meta_condition *c = &q->conditions[i];
    bool below = c->op == ESDM_META_LT || c->op == ESDM_META_LE;
    bool above = c->op == ESDM_META_GT || c->op == ESDM_META_GE;
    size_t at = 0;
    while (at < AXES && strncmp(c->attribute, names[at], strlen(names[at])) != 0)
        at++;
    if (at == AXES || !(below || above) || q->bound[i].number == 0)
        return false;
    const char *own = c->attribute + strlen(names[at]);
    if (strcmp(own, "min") != 0 && strcmp(own, "max") != 0)
        return false;
    char text[160];
    (void) snprintf(text, sizeof text, "%s %s #::float8 AND %s > -1e9 AND %s < 1e9",
                    ends[at][below ? 1 : 0],
                    c->op == ESDM_META_LT   ? "<"
                    : c->op == ESDM_META_LE ? "<="
                    : c->op == ESDM_META_GT ? ">"
                                            : ">=",
                    ends[at][0], ends[at][1]);
    postgres__find_put_pattern(q, text, "", q->bound[i].number);
    return true;
}

postgres__find_table
postgres__find_table_of(const query *q, size_t i)
{
    if (!postgres__find_is_extent(&q->conditions[i]))
        return POSTGRES__FIND_OBJECT;
    return q->bound[i].span != 0 ? POSTGRES__FIND_REACH : POSTGRES__FIND_EXTENT;
}

void
postgres__find_put_ranges(query *q, size_t i)
{
    bool reach = q->bound[i].span != 0;
    postgres__find_put(q, reach ? "{S}.reach x WHERE " : "{S}.extent x WHERE ");
    if (reach)
        postgres__find_put_reach(q, i);
    else
        postgres__find_put_extent(q, i);
}
