/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Queries over attributes, translated to SQL.
 *
 * A dataset meets a condition by its own attribute or, lacking it, by the container's; a condition
 * on the container (variable "") is met by the container's alone. At least one condition must be
 * met by the dataset's own attribute. A container is found when its own attributes meet every
 * condition.
 *
 * The search begins in the index over `attributes`. For several conditions that is in the
 * containers of which some object meets the *start*, the condition that the fewest objects can
 * meet: whatever the server knows of the table, it would else read the datasets of all conditions.
 *
 * Extents (names that begin with '@') are rows of a table of their own. A dataset has its own, or
 * lacking it the container's; none is found by an extent alone.
 *
 * An object's attributes are {"n": [names], "s": {name: [texts]}, "d": {name: [numbers]},
 * "f": {name: [the same numbers as texts]}}; see README.md.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/meta_checks.h"
#include "glob.h"
#include "postgres.h"

/* Numbers of the parameters of a condition; 0: not made yet. */
typedef struct bound {
    int attribute; /* its name */
    int named;     /* {"n": [name]} */
    int texts;     /* {"s": {name: [text]}} */
    int numbers;   /* {"d": {name: [number]}} */
    int forms;     /* {"f": {name: [text]}} */
    int number;
    int text; /* or the regular expression of a pattern */
    int variable;
} bound;

typedef struct query {
    esdm__buffer sql;
    postgres__params params;
    const esdm_meta_condition *conditions;
    size_t nconditions;
    bound bound[ESDM__CONDITIONS_MAX];
} query;

/* Objects that are counted at first for each condition, how much more each time, and when it does
 * not matter any more. */
#define COUNT_FIRST  UINT64_C(256)
#define COUNT_GROWTH 64u
#define COUNT_LAST   (UINT64_C(1) << 32)

/* ---- parameters ----------------------------------------------------------------------------- */

static int
put_buffer(query *q, esdm__buffer *buffer)
{
    esdm__buffer_put_u8(buffer, 0);
    q->params.memory.failed |= buffer->failed;
    postgres__put_string(&q->params, buffer->failed ? "" : (const char *) buffer->data);
    esdm__buffer_clear(buffer);
    return q->params.count;
}

static void
put_literal(esdm__buffer *buffer, const char *text)
{
    esdm__buffer_put(buffer, text, strlen(text));
}

/* {"kind": {"name": [value]}} */
static int
put_contained(query *q, char kind, const esdm_meta_condition *condition)
{
    char head[8];
    esdm__buffer buffer;
    esdm__buffer_init(&buffer);
    (void) snprintf(head, sizeof head, "{\"%c\":", kind);
    put_literal(&buffer, head);
    if (kind != 'n') {
        put_literal(&buffer, "{");
        postgres__put_json(&buffer, condition->attribute);
        put_literal(&buffer, ":");
    }
    put_literal(&buffer, "[");
    if (kind == 'n')
        postgres__put_json(&buffer, condition->attribute);
    else if (kind == 'd')
        postgres__put_number(&buffer, condition->number);
    else
        postgres__put_json(&buffer, condition->text);
    put_literal(&buffer, kind == 'n' ? "]}" : "]}}");
    return put_buffer(q, &buffer);
}

static int
put_value(query *q, const esdm_meta_condition *condition, bool as_number)
{
    esdm__buffer buffer;
    esdm__buffer_init(&buffer);
    if (as_number)
        postgres__put_number(&buffer, condition->number);
    else if (condition->op == ESDM_META_GLOB)
        postgres__put_glob(&buffer, condition->text);
    else
        postgres__put_text(&buffer, condition->text);
    return put_buffer(q, &buffer);
}

static bool
is_extent(const esdm_meta_condition *condition)
{
    return esdm_meta_is_extent(condition->attribute);
}

static void
bind_variable(query *q, bound *b, const esdm_meta_condition *condition)
{
    if (condition->variable == NULL || condition->variable[0] == '\0')
        return;
    esdm__buffer buffer;
    esdm__buffer_init(&buffer);
    put_literal(&buffer, "/");
    postgres__put_text(&buffer, condition->variable);
    b->variable = put_buffer(q, &buffer);
}

static void
bind_condition(query *q, size_t i)
{
    const esdm_meta_condition *condition = &q->conditions[i];
    bound *b = &q->bound[i];
    bool equal = condition->op == ESDM_META_EQ;
    bool number = condition->is_number && !isnan(condition->number);
    postgres__put_string(&q->params, condition->attribute);
    b->attribute = q->params.count;
    if (is_extent(condition)) {
        b->number = number ? put_value(q, condition, true) : 0;
        b->text = condition->is_number ? 0 : put_value(q, condition, false);
        bind_variable(q, b, condition);
        return;
    }
    b->named = put_contained(q, 'n', condition);
    if (equal && number)
        b->numbers = put_contained(q, 'd', condition);
    if (equal && condition->text != NULL)
        b->texts = put_contained(q, 's', condition);
    if (equal && !condition->is_number)
        b->forms = put_contained(q, 'f', condition);
    if (!equal && number)
        b->number = put_value(q, condition, true);
    if (!equal && condition->text != NULL)
        b->text = put_value(q, condition, false);
    bind_variable(q, b, condition);
}

/* ---- text ----------------------------------------------------------------------------------- */

static void
put(query *q, const char *text)
{
    put_literal(&q->sql, text);
}

/* Writes a text in which @ stands for the alias and # for the number of a parameter. */
static void
put_pattern(query *q, const char *pattern, const char *alias, int parameter)
{
    for (; *pattern != '\0'; pattern++) {
        char one[16] = {*pattern, '\0'};
        if (*pattern == '#')
            (void) snprintf(one, sizeof one, "$%d", parameter);
        put(q, *pattern == '@' ? alias : one);
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
    put_pattern(q, head, alias, b->attribute);
    put_pattern(q, comparison, alias, parameter);
    put(q, ")");
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

static void
put_equal(query *q, const bound *b, const char *alias)
{
    const int kinds[] = {b->numbers, b->texts, b->forms};
    const char *joint = "(";
    for (size_t i = 0; i < 3; i++) {
        if (kinds[i] == 0)
            continue;
        put(q, joint);
        put_pattern(q, "@.attributes \x01> #::jsonb", alias, kinds[i]);
        joint = " OR ";
    }
    put(q, joint[0] == '(' ? "false" : ")");
}

static void
put_compared(query *q, size_t i, const char *alias)
{
    const esdm_meta_condition *condition = &q->conditions[i];
    const bound *b = &q->bound[i];
    bool not_equal = condition->op == ESDM_META_NE;
    char number[40], text[40];
    const char *joint = "";
    (void) snprintf(number, sizeof number, "v::numeric %s #::numeric", operator_of(condition->op));
    (void) snprintf(text, sizeof text, "v COLLATE \"C\" %s #", operator_of(condition->op));
    put_pattern(q, "(@.attributes \x01> #::jsonb AND (", alias, b->named);
    if (condition->is_number && b->number != 0) {
        put_any(q, b, alias, 'd', number, b->number);
        joint = " OR ";
    }
    if (b->text != 0 && (!condition->is_number || (not_equal && b->number != 0))) {
        put(q, joint);
        put_any(q, b, alias, 's', text, b->text);
        joint = " OR ";
    }
    if (b->text != 0 && !condition->is_number && (not_equal || condition->op == ESDM_META_GLOB)) {
        put(q, joint);
        put_any(q, b, alias, 'f', text, b->text);
        joint = " OR ";
    }
    put(q, joint[0] == '\0' ? "false))" : "))");
}

/* The row x of `extent` meets condition i. */
static void
put_extent(query *q, size_t i)
{
    const bound *b = &q->bound[i];
    char text[64];
    bool number = q->conditions[i].is_number;
    int parameter = number ? b->number : b->text;
    put_pattern(q, "x.name = #", "", b->attribute);
    (void) snprintf(text, sizeof text,
                    number ? " AND x.value %s #::float8"
                           : " AND x.value IS NULL AND x.text <> '' AND x.text %s #",
                    operator_of(q->conditions[i].op));
    put_pattern(q, parameter != 0 ? text : " AND false", "", parameter);
}

/* Whether an object has an extent that meets condition i (or has any of that name). */
static void
put_has_extent(query *q, size_t i, const char *object, bool any)
{
    put(q, "EXISTS(SELECT FROM {S}.extent x WHERE ");
    put(q, object);
    if (any)
        put_pattern(q, " AND x.name = #", "", q->bound[i].attribute);
    else
        put(q, " AND ");
    if (!any)
        put_extent(q, i);
    put(q, ")");
}

#define OWN_EXTENT    "x.container = o.container AND x.dataset = o.dataset"
#define GLOBAL_EXTENT "x.container = c.container AND x.dataset = 0"

/* Whether the object's own attribute meets condition i. */
static void
put_own(query *q, size_t i, const char *alias)
{
    if (q->conditions[i].op == ESDM_META_EQ)
        put_equal(q, &q->bound[i], alias);
    else
        put_compared(q, i, alias);
}

static bool
is_for_container(const esdm_meta_condition *condition)
{
    return condition->variable != NULL && condition->variable[0] == '\0';
}

/* Whether a dataset that meets the condition by itself may be found by that. */
static bool
finds_datasets(const query *q, size_t i)
{
    return !is_for_container(&q->conditions[i]) && !is_extent(&q->conditions[i]);
}

static void
put_variable(query *q, size_t i)
{
    if (q->bound[i].variable != 0)
        put_pattern(q, "right(o.path, length(#)) = # AND ", "", q->bound[i].variable);
}

/* Whether condition i holds for the dataset o of the container whose own attributes are r. */
static void
put_holds(query *q, size_t i)
{
    put(q, " AND ");
    if (is_extent(&q->conditions[i])) {
        bool container = is_for_container(&q->conditions[i]);
        put(q, "(");
        put_variable(q, i);
        put(q, "(");
        if (!container) {
            put_has_extent(q, i, OWN_EXTENT, false);
            put(q, " OR (NOT ");
            put_has_extent(q, i, OWN_EXTENT, true);
            put(q, " AND ");
        }
        put_has_extent(q, i, GLOBAL_EXTENT, false);
        put(q, container ? "))" : ")))");
        return;
    }
    if (is_for_container(&q->conditions[i])) {
        put_own(q, i, "r");
        return;
    }
    put(q, "(");
    put_variable(q, i);
    put(q, "(");
    put_own(q, i, "o");
    put_pattern(q, " OR (NOT @.attributes \x01> #::jsonb AND ", "o", q->bound[i].named);
    put_own(q, i, "r");
    put(q, ")))");
}

/* Containers of which some object meets the start. */
static void
put_start(query *q, size_t start)
{
    put(q, "WITH s AS MATERIALIZED (SELECT DISTINCT ");
    if (is_extent(&q->conditions[start])) {
        put(q, "x.container FROM {S}.extent x WHERE ");
        put_extent(q, start);
    } else {
        put(q, "a.container FROM {S}.object a WHERE ");
        put_own(q, start, "a");
    }
    put(q, ") ");
}

/* OFFSET keeps the server from joining in another order than this one: a container at a time. */
static const char from_start[] =
    "SELECT c.name AS name, o.path AS path FROM s "
    "CROSS JOIN LATERAL (SELECT * FROM {S}.container x WHERE x.container = s.container OFFSET 0) c "
    "CROSS JOIN LATERAL (SELECT * FROM {S}.object x WHERE x.container = s.container OFFSET 0) o "
    "LEFT JOIN LATERAL (SELECT * FROM {S}.object x WHERE x.container = s.container "
    "AND x.dataset = 0 OFFSET 0) r ON true WHERE c.name IS NOT NULL AND o.dataset <> 0 AND (";

/* Datasets that meet some condition by themselves, and all conditions. */
static void
put_datasets(query *q)
{
    const char *joint = "";
    put(q, from_start);
    for (size_t i = 0; i < q->nconditions; i++) {
        if (!finds_datasets(q, i))
            continue;
        put(q, joint);
        put_own(q, i, "o");
        joint = " OR ";
    }
    put(q, ")");
    for (size_t i = 0; i < q->nconditions; i++)
        put_holds(q, i);
}

/* Datasets that meet the one condition by themselves. */
static void
put_own_datasets(query *q)
{
    put(q, "SELECT c.name AS name, o.path AS path FROM {S}.object o JOIN {S}.container c "
           "ON c.container = o.container WHERE c.name IS NOT NULL AND o.dataset <> 0 AND ");
    put_variable(q, 0);
    put_own(q, 0, "o");
}

/* Containers whose own attributes meet all conditions. */
static void
put_containers(query *q, size_t start)
{
    bool by_extent = is_extent(&q->conditions[start]);
    if (by_extent) {
        /* A container without attributes has no row in `object`. */
        put(q, "SELECT c.name AS name, NULL::text COLLATE \"C\" AS path FROM (SELECT DISTINCT "
               "x.container FROM {S}.extent x WHERE x.dataset = 0 AND ");
        put_extent(q, start);
        put(q, " OFFSET 0) e CROSS JOIN LATERAL (SELECT * FROM {S}.container y "
               "WHERE y.container = e.container OFFSET 0) c "
               "LEFT JOIN LATERAL (SELECT * FROM {S}.object y WHERE y.container = e.container "
               "AND y.dataset = 0 OFFSET 0) o ON true WHERE c.name IS NOT NULL");
    } else {
        put(q, "SELECT c.name AS name, o.path AS path FROM {S}.object o JOIN {S}.container c "
               "ON c.container = o.container WHERE c.name IS NOT NULL AND o.dataset = 0");
    }
    for (size_t i = 0; i < q->nconditions; i++) {
        if (by_extent && i == start)
            continue;
        put(q, " AND ");
        if (is_extent(&q->conditions[i]))
            put_has_extent(q, i, GLOBAL_EXTENT, false);
        else
            put_own(q, i, "o");
    }
}

/* The operator's own sign is the placeholder of put_pattern(). */
static void
end_text(query *q)
{
    for (size_t i = 0; i < q->sql.bytes; i++) {
        if (q->sql.data[i] == '\x01')
            q->sql.data[i] = '@';
    }
    esdm__buffer_put_u8(&q->sql, 0);
}

static void
put_query(query *q, size_t start)
{
    bool datasets = false;
    bool containers = true;
    q->sql.bytes = 0;
    for (size_t i = 0; i < q->nconditions; i++) {
        datasets |= finds_datasets(q, i);
        containers &= q->bound[i].variable == 0;
    }
    if (datasets && q->nconditions > 1) {
        put_start(q, start);
        put_datasets(q);
    } else if (datasets) {
        put_own_datasets(q);
    }
    if (datasets && containers)
        put(q, " UNION ALL ");
    if (containers)
        put_containers(q, start);
    else if (!datasets) /* ranges of a variable alone */
        put(q, "SELECT NULL::text AS name, NULL::text AS path WHERE false");
    put(q, " ORDER BY name, path NULLS FIRST");
    end_text(q);
}

/* How many objects can meet each condition, up to a limit: what the index says. */
static void
put_counts(query *q, uint64_t limit)
{
    char end[80];
    /* A list that is planned as a whole, in the index, and ended early all the same. */
    q->sql.bytes = 0;
    for (size_t i = 0; i < q->nconditions; i++) {
        put(q, i == 0 ? "SELECT " : ", ");
        if (is_extent(&q->conditions[i])) {
            put(q, "(WITH n AS MATERIALIZED (SELECT FROM {S}.extent x WHERE ");
            put_extent(q, i);
            (void) snprintf(end, sizeof end, " LIMIT %llu) SELECT count(*) FROM n)",
                            (unsigned long long) limit);
            put(q, end);
            continue;
        }
        (void) snprintf(end, sizeof end, ") SELECT count(*) FROM (SELECT FROM n LIMIT %llu) AS x)",
                        (unsigned long long) limit);
        put(q, "(WITH n AS MATERIALIZED (SELECT FROM {S}.object a WHERE ");
        if (q->conditions[i].op == ESDM_META_EQ)
            put_equal(q, &q->bound[i], "a");
        else
            put_pattern(q, "@.attributes \x01> #::jsonb", "a", q->bound[i].named);
        put(q, end);
    }
    end_text(q);
}

/* ---- running it ----------------------------------------------------------------------------- */

static esdm_status
ask(postgres__store *store, query *q, PGresult **ret_result, esdm_error *err)
{
    if (q->sql.failed)
        return esdm__error_nomem(err, q->sql.bytes, "a query");
    esdm_status status = postgres__enter(store, err);
    if (status != ESDM_OK)
        return status;
    status = postgres__query(store, (const char *) q->sql.data, &q->params, ret_result, err);
    postgres__leave(store);
    return status;
}

static esdm_status
choose_start(postgres__store *store, query *q, size_t *ret_start, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    *ret_start = 0;
    for (uint64_t limit = COUNT_FIRST; limit < COUNT_LAST; limit *= COUNT_GROWTH) {
        uint64_t least = limit;
        PGresult *result = NULL;
        put_counts(q, limit);
        status = ask(store, q, &result, err);
        for (size_t i = 0; i < q->nconditions && status == ESDM_OK; i++) {
            uint64_t count = postgres__u64(result, 0, (int) i);
            if (count < least) {
                least = count;
                *ret_start = i;
            }
        }
        PQclear(result);
        if (status != ESDM_OK || least < limit)
            break;
    }
    return status;
}

esdm_status
postgres__find(void *self, const esdm_meta_condition *conditions, size_t nconditions,
               esdm_meta_match_visitor visit, void *user, esdm_error *err)
{
    postgres__store *store = self;
    PGresult *result = NULL;
    size_t start = 0;
    esdm_status status = esdm__check_conditions(conditions, nconditions, err);
    query *q = status == ESDM_OK ? calloc(1, sizeof *q) : NULL;
    if (status != ESDM_OK)
        return status;
    if (q == NULL)
        return esdm__error_nomem(err, sizeof *q, "a query");
    q->conditions = conditions;
    q->nconditions = nconditions;
    esdm__buffer_init(&q->sql);
    for (size_t i = 0; i < nconditions; i++) {
        bind_condition(q, i);
        if (is_extent(&conditions[i]) && status == ESDM_OK)
            status = postgres__need_extents(store, err);
    }
    if (nconditions > 1 && status == ESDM_OK)
        status = choose_start(store, q, &start, err);
    if (status == ESDM_OK) {
        put_query(q, start);
        status = ask(store, q, &result, err);
    }
    esdm__buffer_clear(&q->sql);
    postgres__params_clear(&q->params);
    free(q);
    for (int row = 0; status == ESDM_OK && row < PQntuples(result); row++) {
        const char *path = PQgetisnull(result, row, 1) ? NULL : postgres__text(result, row, 1);
        if (!visit(postgres__text(result, row, 0), path, user))
            break;
    }
    PQclear(result);
    return status;
}
