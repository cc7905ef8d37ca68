/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Queries over attributes, translated to SQL.
 *
 * A dataset meets a condition by its own attribute or, lacking it, by the container's; a condition
 * on the container (variable "") is met by the container's alone. At least one condition must be
 * met by the dataset's own attribute. A container is found when its own attributes meet every
 * condition. Of alternatives one must be met that way (base/meta_tree.h).
 *
 * The search begins in the index over `attributes`. For several conditions that is in the
 * containers of which some object meets a *start*, the condition, or alternatives, that the fewest
 * objects can meet: whatever the server knows of the table, it would else read the datasets of all
 * conditions.
 *
 * Extents (names that begin with '@') are rows of a table of their own. A dataset has its own, or
 * lacking it the container's; none is found by an extent alone.
 *
 * An object's attributes are {"n": [names], "s": {name: [texts]}, "d": {name: [numbers]},
 * "f": {name: [the same numbers as texts]}}; see README.md.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/meta_tree.h"
#include "find.h"
#include "postgres.h"

typedef postgres__find_query query;
typedef postgres__find_bound bound;

/* Reading so many entries of the index costs as much as looking at an object. */
#define OFTEN 100

/* ---- text ----------------------------------------------------------------------------------- */

void
postgres__find_put(query *q, const char *text)
{
    esdm__buffer_put(&q->sql, text, strlen(text));
}

/* Writes a text in which @ stands for the alias and # for the number of a parameter. */
void
postgres__find_put_pattern(query *q, const char *pattern, const char *alias, int parameter)
{
    for (; *pattern != '\0'; pattern++) {
        char one[16] = {*pattern, '\0'};
        if (*pattern == '#')
            (void) snprintf(one, sizeof one, "$%d", parameter);
        postgres__find_put(q, *pattern == '@' ? alias : one);
    }
}

/* Some value of the attribute, of a kind, meets a comparison. */
static void
put_any(query *q, const bound *b, const char *alias, char kind, const char *comparison,
        int parameter)
{
    char head[96];
    (void) snprintf(head, sizeof head,
                    "EXISTS(SELECT FROM jsonb_array_elements_text(@.attributes->'%c'->#) AS v "
                    "WHERE ",
                    kind);
    postgres__find_put_pattern(q, head, alias, b->attribute);
    postgres__find_put_pattern(q, comparison, alias, parameter);
    postgres__find_put(q, ")");
}

static const char *
operator_of(esdm_meta_operator op)
{
    switch (op) {
    case ESDM_META_NE:
        return "<>";
    case ESDM_META_LT:
        return "<";
    case ESDM_META_LE:
        return "<=";
    case ESDM_META_GT:
        return ">";
    case ESDM_META_GE:
        return ">=";
    case ESDM_META_GLOB:
        return "~";
    case ESDM_META_EQ:
        break;
    }
    return "=";
}

void
postgres__find_put_equal(query *q, const bound *b, const char *alias)
{
    const int kinds[] = {b->numbers, b->texts, b->forms};
    const char *joint = "(";
    for (size_t i = 0; i < 3; i++) {
        if (kinds[i] == 0)
            continue;
        postgres__find_put(q, joint);
        postgres__find_put_pattern(q, "@.attributes \x01> #::jsonb", alias, kinds[i]);
        joint = " OR ";
    }
    postgres__find_put(q, joint[0] == '(' ? "false" : ")");
}

bool
postgres__find_is_together(const query *q, size_t i)
{
    for (size_t k = 0; k < q->ntogether; k++) {
        if (q->together[k] == i)
            return true;
    }
    return false;
}

void
postgres__find_put_listed(query *q, const bound *b, const char *alias)
{
    const int paths[] = {b->values, b->value_forms};
    const char *joint = "(";
    for (size_t k = 0; k < 2; k++) {
        if (paths[k] == 0)
            continue;
        postgres__find_put(q, joint);
        postgres__find_put_pattern(q, "@.attributes \x01? #::jsonpath", alias, paths[k]);
        joint = " OR ";
    }
    postgres__find_put(q, joint[0] == '(' ? "false" : ")");
}

static void
put_compared(query *q, size_t i, const char *alias)
{
    const esdm_meta_condition *condition = &q->conditions[i];
    const bound *b = &q->bound[i];
    if (b->listed) {
        postgres__find_put_listed(q, b, alias);
        return;
    }
    bool not_equal = condition->op == ESDM_META_NE;
    char number[40], text[40];
    const char *joint = "";
    (void) snprintf(number, sizeof number, "v::numeric %s #::numeric", operator_of(condition->op));
    (void) snprintf(text, sizeof text, "v COLLATE \"C\" %s #", operator_of(condition->op));
    postgres__find_put_pattern(q, "(@.attributes \x01> #::jsonb AND (", alias, b->named);
    if (condition->is_number && b->number != 0) {
        put_any(q, b, alias, 'd', number, b->number);
        joint = " OR ";
    }
    if (b->begins != 0) {
        postgres__find_put_pattern(q, "jsonb_path_exists(@.attributes, #::jsonpath)", alias,
                                   b->begins);
        if (b->begins_form != 0)
            postgres__find_put_pattern(q, " OR jsonb_path_exists(@.attributes, #::jsonpath)", alias,
                                       b->begins_form);
        postgres__find_put(q, "))");
        return;
    }
    if (b->text != 0 && (!condition->is_number || (not_equal && b->number != 0))) {
        postgres__find_put(q, joint);
        put_any(q, b, alias, 's', text, b->text);
        joint = " OR ";
    }
    if (b->text != 0 && !condition->is_number && (not_equal || condition->op == ESDM_META_GLOB)) {
        postgres__find_put(q, joint);
        put_any(q, b, alias, 'f', text, b->text);
        joint = " OR ";
    }
    postgres__find_put(q, joint[0] == '\0' ? "false))" : "))");
}

/* The row x of `extent` meets condition i. */
void
postgres__find_put_extent(query *q, size_t i)
{
    const bound *b = &q->bound[i];
    char text[64];
    bool number = q->conditions[i].is_number;
    int parameter = number ? b->number : b->text;
    postgres__find_put_pattern(q, "x.name = #", "", b->attribute);
    (void) snprintf(text, sizeof text,
                    number ? " AND x.value %s #::float8"
                           : " AND x.value IS NULL AND x.text <> '' AND x.text %s #",
                    operator_of(q->conditions[i].op));
    postgres__find_put_pattern(q, parameter != 0 ? text : " AND false", "", parameter);
}

/* Whether an object has an extent that meets condition i (or has any of that name). */
static void
put_has_extent(query *q, size_t i, const char *object, bool any)
{
    postgres__find_put(q, "EXISTS(SELECT FROM {S}.extent x WHERE ");
    postgres__find_put(q, object);
    if (any)
        postgres__find_put_pattern(q, " AND x.name = #", "", q->bound[i].attribute);
    else
        postgres__find_put(q, " AND ");
    if (!any)
        postgres__find_put_extent(q, i);
    /* OFFSET keeps the server from reading all of them beforehand instead of one at a time. */
    postgres__find_put(q, " OFFSET 0)");
}

#define OWN_EXTENT    "x.container = o.container AND x.dataset = o.dataset"
#define GLOBAL_EXTENT "x.container = c.container AND x.dataset = 0"

/* Whether the object's own attribute meets condition i. */
static void
put_own(query *q, size_t i, const char *alias)
{
    if (q->conditions[i].op == ESDM_META_EQ)
        postgres__find_put_equal(q, &q->bound[i], alias);
    else
        put_compared(q, i, alias);
}

void
postgres__find_put_together(query *q, const char *alias)
{
    for (size_t k = 0; k < q->ntogether; k++) {
        postgres__find_put(q, k == 0 ? "(" : " AND ");
        put_own(q, q->together[k], alias);
    }
    postgres__find_put(q, ")");
}

/* Whether a dataset that meets the condition by itself may be found by that. */
static bool
finds_datasets(const query *q, size_t i)
{
    return !postgres__find_is_for_container(&q->conditions[i]) &&
           !postgres__find_is_extent(&q->conditions[i]);
}

static void
put_variable(query *q, size_t i)
{
    if (q->bound[i].variable != 0)
        postgres__find_put_pattern(q, "right(o.path, length(#)) = # AND ", "",
                                   q->bound[i].variable);
}

/* Condition i for the dataset o of the container whose own attributes are r. */
static void
put_holds(query *q, size_t i)
{
    if (postgres__find_is_extent(&q->conditions[i])) {
        bool container = postgres__find_is_for_container(&q->conditions[i]);
        postgres__find_put(q, "(");
        put_variable(q, i);
        postgres__find_put(q, "(");
        if (!container) {
            put_has_extent(q, i, OWN_EXTENT, false);
            postgres__find_put(q, " OR (NOT ");
            put_has_extent(q, i, OWN_EXTENT, true);
            postgres__find_put(q, " AND ");
        }
        put_has_extent(q, i, GLOBAL_EXTENT, false);
        postgres__find_put(q, container ? "))" : ")))");
        return;
    }
    if (postgres__find_is_for_container(&q->conditions[i])) {
        put_own(q, i, "r");
        return;
    }
    postgres__find_put(q, "(");
    put_variable(q, i);
    postgres__find_put(q, "(");
    put_own(q, i, "o");
    postgres__find_put_pattern(q, " OR (NOT @.attributes \x01> #::jsonb AND ", "o",
                               q->bound[i].named);
    put_own(q, i, "r");
    postgres__find_put(q, ")))");
}

/* ---- what must hold ------------------------------------------------------------------------- */

static void
put_text(const char *text, void *user)
{
    postgres__find_put(user, text);
}

/* An object without attributes has no row: nothing is true of it. */
static void
put_of_dataset(size_t i, bool holds, void *user)
{
    postgres__find_put(user, "(");
    put_holds(user, i);
    postgres__find_put(user, holds ? ")" : ") IS NOT TRUE");
}

static void
put_by_itself(size_t i, bool holds, void *user)
{
    (void) holds;
    postgres__find_put(user, "(");
    put_variable(user, i);
    put_own(user, i, "o");
    postgres__find_put(user, ")");
}

static bool
can_be_by_itself(size_t i, bool holds, void *user)
{
    const query *q = user;
    return holds && finds_datasets(q, i) && (q->counts == NULL || q->counts[2 * i + 1] > 0);
}

/* Whether the search begins by condition i, which the index is asked for then. */
static bool
is_start(const query *q, size_t i)
{
    bool together = postgres__find_is_together(q, i);
    for (size_t k = 0; k < q->nstarts; k++) {
        if (q->starts[k] == i || (together && postgres__find_is_together(q, q->starts[k])))
            return true;
    }
    return false;
}

static void
put_of_container(size_t i, bool holds, void *user)
{
    const query *q = user;
    if (q->bound[i].variable != 0) { /* a container is none */
        postgres__find_put(user, holds ? "false" : "true");
        return;
    }
    if (i == q->proven || q->bound[i].proven) {
        postgres__find_put(user, holds ? "true" : "false");
        return;
    }
    postgres__find_put(user, "(");
    if (postgres__find_is_extent(&q->conditions[i])) {
        if (q->has_ends && postgres__find_put_sure(user, i))
            postgres__find_put(user, " OR ");
        put_has_extent(user, i, GLOBAL_EXTENT, false);
    } else {
        put_own(user, i, "o");
    }
    /* IS TRUE keeps the server from asking the index for what many objects meet. */
    bool frequent = q->counts != NULL && q->counts[2 * i] / OFTEN > q->least && !is_start(q, i);
    postgres__find_put(user, !holds ? ") IS NOT TRUE" : frequent ? ") IS TRUE" : ")");
}

static bool
can_be_of_container(size_t i, bool holds, void *user)
{
    const query *q = user;
    return !holds || q->bound[i].variable == 0;
}

static void
put_expression(query *q, bool datasets)
{
    const esdm_meta_expression *e = &q->expression;
    const esdm__tree_writer writer = {put_text, datasets ? put_of_dataset : put_of_container, q};
    const esdm__tree_writer own = {put_text, put_by_itself, q};
    if (datasets)
        esdm__tree_put_own(e, 0, &writer, &own, can_be_by_itself);
    else
        esdm__tree_put(e, 0, &writer);
}

/* ---- candidates ----------------------------------------------------------------------------- */

/* Alternatives for the object `alias`: it meets a start by itself. @param global it is a
 * container's. @return whether there are any that are no extents. */
static bool
put_starts(query *q, const char *before, const char *alias, bool containers, bool global)
{
    const char *joint = before;
    for (size_t i = 0; i < q->nstarts; i++) {
        size_t start = q->starts[i];
        if (postgres__find_is_extent(&q->conditions[start]) ||
            (containers && q->bound[start].variable != 0))
            continue;
        postgres__find_put(q, joint);
        if (global && postgres__find_is_together(q, start))
            postgres__find_put_together(q, alias);
        else
            put_own(q, start, alias);
        joint = " OR ";
    }
    if (joint != before)
        postgres__find_put(q, ")");
    return joint != before;
}

/* Containers that meet a start, and those of which a dataset does unless `containers`. */
static void
put_start_containers(query *q, bool containers)
{
    if (q->among != 0) {
        postgres__find_put_pattern(q, "SELECT unnest(#::bigint[]) AS container", "", q->among);
        return;
    }
    bool any = put_starts(q, "SELECT a.container FROM {S}.object a WHERE a.dataset = 0 AND (", "a",
                          containers, true);
    if (any && !containers)
        (void) put_starts(q,
                          " UNION SELECT a.container FROM {S}.object a WHERE a.dataset <> 0 AND (",
                          "a", false, false);
    for (size_t i = 0; i < q->nstarts; i++) {
        size_t start = q->starts[i];
        if (!postgres__find_is_extent(&q->conditions[start]) ||
            (containers && q->bound[start].variable != 0))
            continue;
        postgres__find_put(q, any ? " UNION " : "");
        postgres__find_put(q, q->has_ends ? "SELECT x.container, x.span, x.lon FROM "
                                          : "SELECT DISTINCT x.container FROM ");
        postgres__find_put_ranges(q, start);
        postgres__find_put(q, containers ? " AND x.dataset = 0" : "");
        if (containers && q->bound[start].span != 0)
            postgres__find_put_marks(q);
        any = true;
    }
    if (!any)
        postgres__find_put(q, "SELECT 0::bigint AS container WHERE false");
}

static void
put_columns(query *q, const char *path)
{
    postgres__find_put(q, "SELECT c.name AS name, ");
    postgres__find_put(q, q->what == POSTGRES__FIND_CONTAINERS ? "o.attributes" : path);
    postgres__find_put(q, q->what == POSTGRES__FIND_CONTAINERS ? " AS attributes" : " AS path");
}

/* A container's own attributes. LIMIT says to a server that knows nothing of its tables that there
 * is one row: it would collect a bitmap of them, which takes half as long again. */
#define ONE_OBJECT_OF(container)                                                                   \
    "SELECT * FROM {S}.object x WHERE x.container = " container " AND x.dataset = 0 LIMIT 1"

/* OFFSET keeps the server from joining in another order than this one: a container at a time. */
static const char from_start[] =
    " FROM s "
    "CROSS JOIN LATERAL (SELECT * FROM {S}.container x WHERE x.container = s.container OFFSET 0) c "
    "CROSS JOIN LATERAL (SELECT * FROM {S}.object x WHERE x.container = s.container OFFSET 0) o "
    "LEFT JOIN LATERAL (" ONE_OBJECT_OF(
        "s.container") ") r ON true "
                       "WHERE c.name IS NOT NULL AND o.dataset <> 0 AND ";

/* Datasets that meet some condition by themselves, and what it stands with. */
static void
put_datasets(query *q)
{
    postgres__find_put(q, "WITH s AS MATERIALIZED (");
    put_start_containers(q, false);
    postgres__find_put(q, ") ");
    put_columns(q, "o.path");
    postgres__find_put(q, from_start);
    put_expression(q, true);
}

/* Objects, each with its container: names are looked up one by one, as a server that knows nothing
 * of its tables would read all of them; counts may be about all. */
static void
put_objects(query *q)
{
    postgres__find_put(q, q->what == POSTGRES__FIND_CONTAINERS
                              ? " FROM {S}.object o JOIN {S}.container c "
                                "ON c.container = o.container WHERE "
                              : " FROM {S}.object o CROSS JOIN LATERAL (SELECT * FROM "
                                "{S}.container y WHERE y.container = o.container OFFSET 0) c "
                                "WHERE ");
    postgres__find_put(q, "c.name IS NOT NULL AND ");
}

/* Datasets that meet one of some alternatives by themselves. */
static void
put_own_datasets(query *q)
{
    put_columns(q, "o.path");
    put_objects(q);
    postgres__find_put(q, "o.dataset <> 0 AND ");
    put_expression(q, true);
}

/* Whether a condition is about an attribute of containers. */
static bool
is_attribute(const query *q, size_t i)
{
    return !postgres__find_is_extent(&q->conditions[i]) && q->bound[i].variable == 0;
}

/* "… AND" for the object y: attributes that a container must have. @return whether there are any.
 */
static bool
put_needed(query *q)
{
    const esdm_meta_node *nodes = q->expression.nodes;
    bool any = false, all = nodes[0].kind == ESDM_META_ALL;
    for (size_t at = all ? 1 : 0; at < nodes[0].size; at += nodes[at].size) {
        if (nodes[at].kind != ESDM_META_HOLDS || !is_attribute(q, nodes[at].condition))
            continue;
        postgres__find_put(q, !any ? " CROSS JOIN LATERAL (SELECT * FROM (" ONE_OBJECT_OF(
                                         "e.container") ") y WHERE "
                                   : " AND ");
        put_own(q, nodes[at].condition, "y");
        q->bound[nodes[at].condition].proven = true;
        any = true;
    }
    postgres__find_put(q, any ? " OFFSET 0) o" : "");
    return any;
}

/* Containers that meet a start, one at a time: what is rarest looked at, first. */
static void
put_from_start(query *q)
{
    bool attributes = q->what == POSTGRES__FIND_CONTAINERS;
    for (size_t i = 0; i < q->nconditions; i++)
        attributes |= is_attribute(q, i);
    const bound *first = q->nstarts > 0 ? &q->bound[q->starts[0]] : NULL;
    bool one = q->nstarts == 1 && q->among == 0 && first->variable == 0;
    bool box = one && first->span != 0;
    q->has_ends = box; /* a container has one row */
    postgres__find_put(q, box ? "(SELECT u.* FROM (" : "(SELECT DISTINCT u.container FROM (");
    put_start_containers(q, true);
    postgres__find_put(q, ") u");
    if (one && !box && postgres__find_is_extent(&q->conditions[q->starts[0]]))
        postgres__find_put_marks_of_start(q);
    postgres__find_put(q, box ? " ORDER BY u.container OFFSET 0) e" : " OFFSET 0) e");
    bool needed = put_needed(q);
    postgres__find_put(q, " CROSS JOIN LATERAL (SELECT * FROM {S}.container y "
                          "WHERE y.container = e.container OFFSET 0) c");
    if (attributes && !needed)
        postgres__find_put(q, " LEFT JOIN LATERAL (" ONE_OBJECT_OF("e.container") ") o ON true");
}

/* The object o, a container, must be one of those that reach into a box. IS TRUE keeps the server,
 * which may know nothing of its tables, from making a loop of it. */
static void
put_near(query *q)
{
    if (q->near == SIZE_MAX)
        return;
    postgres__find_put(q, " AND (o.container IN (SELECT x.container FROM {S}.reach x WHERE ");
    postgres__find_put_reach(q, q->near);
    postgres__find_put(q, " AND x.dataset = 0)) IS TRUE");
}

/* Containers whose own attributes meet the expression. */
static void
put_containers(query *q)
{
    bool extents = q->among != 0;
    for (size_t i = 0; i < q->nstarts; i++)
        extents |= postgres__find_is_extent(&q->conditions[q->starts[i]]);
    if (extents || !q->covered) {
        /* A container without attributes has no row in `object`. */
        put_columns(q, "NULL::text COLLATE \"C\"");
        postgres__find_put(q, " FROM ");
        if (q->covered)
            put_from_start(q);
        else
            postgres__find_put(q, "{S}.container c LEFT JOIN {S}.object o "
                                  "ON o.container = c.container AND o.dataset = 0");
        postgres__find_put(q, " WHERE c.name IS NOT NULL");
    } else {
        put_columns(q, "o.path");
        put_objects(q);
        postgres__find_put(q, "o.dataset = 0");
        put_near(q);
        /* What the index is to be asked, where it stands deeper in the expression. */
        if (!esdm__tree_is_flat(&q->expression, false) && !esdm__tree_is_flat(&q->expression, true))
            (void) put_starts(q, " AND (", "o", true, true);
    }
    postgres__find_put(q, " AND ");
    /* Boxes find what can meet it alone. */
    if (extents && q->covered && q->nstarts == 1 && q->bound[q->starts[0]].span == 0)
        q->proven = q->starts[0];
    put_expression(q, false);
    q->proven = SIZE_MAX;
    q->has_ends = false;
    for (size_t i = 0; i < q->nconditions; i++)
        q->bound[i].proven = false;
}

/* The operator's own sign is the placeholder of postgres__find_put_pattern(). */
void
postgres__find_end_text(query *q)
{
    for (size_t i = 0; i < q->sql.bytes; i++) {
        if (q->sql.data[i] == '\x01')
            q->sql.data[i] = '@';
    }
    esdm__buffer_put_u8(&q->sql, 0);
}

void
postgres__find_put_query(query *q)
{
    bool datasets = q->what != POSTGRES__FIND_CONTAINERS &&
                    esdm__tree_is(&q->expression, 0, true, can_be_by_itself, q);
    bool containers = q->what != POSTGRES__FIND_DATASETS &&
                      esdm__tree_is(&q->expression, 0, false, can_be_of_container, q);
    bool alternatives = q->among == 0 && esdm__tree_is_flat(&q->expression, true);
    q->sql.bytes = 0;
    if (datasets && !alternatives)
        put_datasets(q);
    else if (datasets)
        put_own_datasets(q);
    if (datasets && containers)
        postgres__find_put(q, " UNION ALL ");
    if (containers)
        put_containers(q);
    else if (!datasets) /* ranges of a variable alone */
        postgres__find_put(q, q->what == POSTGRES__FIND_CONTAINERS
                                  ? "SELECT NULL::text AS name, NULL::jsonb AS attributes "
                                    "WHERE false"
                                  : "SELECT NULL::text AS name, NULL::text AS path WHERE false");
    if (q->what == POSTGRES__FIND_NAMES)
        postgres__find_put(q, " ORDER BY name, path NULLS FIRST");
}
