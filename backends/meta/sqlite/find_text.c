/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Text of queries over attributes.
 *
 * A dataset meets a condition by its own attribute or, lacking it, by the container's; a condition
 * on the container (variable "") is met by the container's alone. At least one condition must be
 * met by the dataset's own attribute. A container is found when its own attributes meet every
 * condition.
 *
 * Extents (names that begin with '@') are rows of the same table, but never wait to be entered. A
 * dataset has its own, or lacking it the container's; none is found by an extent alone.
 *
 * Candidates come from one condition, the *start*, that few entries of the index (name, value)
 * meet: the objects of these entries, and the datasets of containers among them that meet another
 * condition by themselves. Whatever SQLite knows about the table, it is told which index to take,
 * and the other conditions are asked of one object at a time.
 *
 * The column `value` is a number, or the text when there is none; `text` is what else a number can
 * be written as. Numbers sort before texts in SQLite.
 */

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "find.h"

/* A part of the index (name, value) and what is to be asked there; NULL: nothing. */
typedef struct arm {
    const char *range;
    const char *rest;
} arm;

enum { ARMS = 2 };

/* ---- text --------------------------------------------------------------------------------- */

static void
put(sqlite__query *q, const char *text)
{
    esdm__buffer_put(&q->sql, text, strlen(text));
}

static int
parameter_of(char letter)
{
    switch (letter) {
    case 'a':
        return SQLITE__FIND_ATTRIBUTE;
    case 'n':
        return SQLITE__FIND_NUMBER;
    case 't':
        return SQLITE__FIND_TEXT;
    case 'f':
        return SQLITE__FIND_FROM;
    case 'u':
        return SQLITE__FIND_TO;
    default:
        return SQLITE__FIND_VARIABLE;
    }
}

static void
put_parameter(sqlite__query *q, size_t condition, int which)
{
    char text[32];
    (void) snprintf(text, sizeof text, "?%zu",
                    condition * SQLITE__FIND_PARAMETERS + (size_t) which);
    put(q, text);
}

/* Writes a text in which @ stands for the alias and $a $n $t $v $f $u for parameters. */
static void
put_pattern(sqlite__query *q, size_t condition, const char *alias, const char *pattern)
{
    for (; *pattern != '\0'; pattern++) {
        char one[2] = {*pattern, '\0'};
        if (*pattern == '@')
            put(q, alias);
        else if (*pattern == '$')
            put_parameter(q, condition, parameter_of(*++pattern));
        else
            put(q, one);
    }
}

static bool
is_extent(const sqlite__query *q, size_t i)
{
    return esdm_meta_is_extent(q->conditions[i].attribute);
}

/* ---- comparisons -------------------------------------------------------------------------- */

static size_t
arms_of_text(esdm_meta_operator op, const sqlite__find_range *range, arm arms[ARMS])
{
    switch (op) {
    case ESDM_META_EQ:
        arms[0] = (arm){"@.value = $t", NULL};
        arms[1] = (arm){"@.value BETWEEN $f AND $u", "@.text = $t"};
        return range->kind == SQLITE__FIND_NUMBERS ? 2 : 1;
    case ESDM_META_NE:
        arms[0] = (arm){NULL, "coalesce(@.text, @.value) <> $t"};
        return 1;
    case ESDM_META_LT:
        arms[0] = (arm){"@.value < $t AND @.value >= ''", NULL};
        return 1;
    case ESDM_META_LE:
        arms[0] = (arm){"@.value <= $t AND @.value >= ''", NULL};
        return 1;
    case ESDM_META_GT:
        arms[0] = (arm){"@.value > $t", NULL};
        return 1;
    case ESDM_META_GE:
        arms[0] = (arm){"@.value >= $t", NULL};
        return 1;
    case ESDM_META_GLOB:
        arms[0] = (arm){range->kind == SQLITE__FIND_TEXTS ? "@.value >= $f AND @.value < $u"
                                                          : "@.value >= ''",
                        "@.value GLOB $t"};
        arms[1] = (arm){"@.value < ''", "coalesce(@.text, @.value) GLOB $t"};
        return 2;
    }
    return 0;
}

static size_t
arms_of_number(esdm_meta_operator op, arm arms[ARMS])
{
    switch (op) {
    case ESDM_META_EQ:
        arms[0] = (arm){"@.value IN ($n, $t)", NULL};
        return 1;
    case ESDM_META_NE:
        arms[0] = (arm){NULL, "@.value <> $n AND @.value IS NOT $t"};
        return 1;
    case ESDM_META_LT:
        arms[0] = (arm){"@.value < $n", NULL};
        return 1;
    case ESDM_META_LE:
        arms[0] = (arm){"@.value <= $n", NULL};
        return 1;
    case ESDM_META_GT:
        arms[0] = (arm){"@.value > $n AND @.value < ''", NULL};
        return 1;
    case ESDM_META_GE:
        arms[0] = (arm){"@.value >= $n AND @.value < ''", NULL};
        return 1;
    case ESDM_META_GLOB:
        break;
    }
    return arms_of_text(op, &(sqlite__find_range){.kind = SQLITE__FIND_NO_RANGE}, arms);
}

/* The values of an attribute that meet the condition are those of all arms together. */
static size_t
arms_of(const sqlite__query *q, size_t i, arm arms[ARMS])
{
    const esdm_meta_condition *condition = &q->conditions[i];
    return condition->is_number ? arms_of_number(condition->op, arms)
                                : arms_of_text(condition->op, &q->ranges[i], arms);
}

/* " AND range AND rest" */
static void
put_arm(sqlite__query *q, size_t i, const char *alias, const arm *one, bool with_rest)
{
    const char *const parts[] = {one->range, with_rest ? one->rest : NULL};
    for (size_t k = 0; k < 2; k++) {
        if (parts[k] == NULL)
            continue;
        put(q, " AND ");
        put_pattern(q, i, alias, parts[k]);
    }
    if (with_rest && is_extent(q, i)) /* "" says that there is none */
        put_pattern(q, i, alias, " AND @.value <> ''");
}

/* " AND (value meets condition i)". The unary + keeps SQLite from searching all objects by value.
 */
static void
put_value(sqlite__query *q, size_t i, const char *alias)
{
    arm arms[ARMS];
    size_t count = arms_of(q, i, arms);
    put(q, " AND (");
    for (size_t k = 0; k < count; k++) {
        put(q, k > 0 ? " OR (1" : "(1");
        put_arm(q, i, alias, &arms[k], true);
        put(q, ")");
    }
    put(q, count > 0 ? ")" : "0)");
}

/* ---- parts of a query --------------------------------------------------------------------- */

static bool
is_for_container(const esdm_meta_condition *condition)
{
    return condition->variable != NULL && condition->variable[0] == '\0';
}

/* Whether a dataset that meets the condition by itself may be found by that. */
static bool
finds_datasets(const sqlite__query *q, size_t i)
{
    bool none = q->ranges[i].no_datasets && strcmp(q->table, "main.attribute") == 0;
    return !is_for_container(&q->conditions[i]) && !is_extent(q, i) && !none;
}

/* The table that has the rows of condition i. */
static const char *
table_of(const sqlite__query *q, size_t i)
{
    return is_extent(q, i) ? "main.attribute" : q->table;
}

static void
put_from(sqlite__query *q, size_t i, const char *before, const char *alias)
{
    put(q, before);
    put(q, " FROM ");
    put(q, table_of(q, i));
    put(q, " ");
    put(q, alias);
}

/* The temporary table has few rows, and no index over values. */
static void
put_by_value(sqlite__query *q, size_t i)
{
    if (strcmp(table_of(q, i), "main.attribute") == 0)
        put(q, " INDEXED BY attribute_value");
}

/* Whether the entry of an object that meets condition i has one place in the index (name, value),
 * which follows that of the object before: attributes of an object lie on pages of their own. */
static bool
is_one_value(const sqlite__query *q, size_t i)
{
    arm arms[ARMS];
    return q->conditions[i].op == ESDM_META_EQ && arms_of(q, i, arms) == 1 &&
           strcmp(table_of(q, i), "main.attribute") == 0;
}

/* EXISTS over one object's attributes: `of` restricts to the object. */
static void
put_exists(sqlite__query *q, size_t i, const char *of, bool with_value)
{
    bool one = with_value && is_one_value(q, i);
    put_from(q, i, "EXISTS(SELECT 1", "a");
    put(q, one ? " INDEXED BY attribute_value" : "");
    put(q, " WHERE ");
    put(q, of);
    put_pattern(q, i, "a", " AND @.name = $a");
    if (with_value)
        put_value(q, i, one ? "a" : "+a");
    put(q, ")");
}

#define OWN    "a.container = o.container AND a.dataset = o.dataset"
#define GLOBAL "a.container = o.container AND a.dataset = 0"

static void
put_variable(sqlite__query *q, size_t i, const char *alias)
{
    if (sqlite__names_variable(&q->conditions[i]))
        put_pattern(q, i, alias, " AND substr(@.path, -length($v)) = $v");
}

/* Whether condition i holds for the dataset o. */
static void
put_holds(sqlite__query *q, size_t i)
{
    if (is_for_container(&q->conditions[i])) {
        put(q, " AND ");
        put_exists(q, i, GLOBAL, true);
        return;
    }
    put_variable(q, i, "o");
    put(q, " AND (");
    put_exists(q, i, OWN, true);
    put(q, " OR (NOT ");
    put_exists(q, i, OWN, false);
    put(q, " AND ");
    put_exists(q, i, GLOBAL, true);
    put(q, "))");
}

/* Entries of the index that meet the start. */
static void
put_start(sqlite__query *q, const char *before, size_t start, const arm *one, const char *which)
{
    put_from(q, start, before, "a");
    put_by_value(q, start);
    put_pattern(q, start, "a", " WHERE @.name = $a");
    put_arm(q, start, "a", one, true);
    put(q, which);
}

/* Datasets that meet condition j by themselves, in containers that meet the start. Equality finds
 * them in the index, other comparisons among the attributes of the container. */
static void
put_inherited(sqlite__query *q, size_t start, const arm *one, size_t j)
{
    arm arms[ARMS];
    bool equal = q->conditions[j].op == ESDM_META_EQ;
    size_t count = equal ? arms_of(q, j, arms) : 1;
    for (size_t k = 0; k < count; k++) {
        put_start(q,
                  " UNION SELECT b.container, b.dataset, b.path FROM (SELECT DISTINCT a.container",
                  start, one,
                  is_extent(q, start) ? ") s CROSS JOIN " : " AND a.dataset = 0) s CROSS JOIN ");
        put(q, table_of(q, j));
        put(q, " b");
        if (equal)
            put_by_value(q, j);
        put(q, " WHERE b.container = s.container AND b.dataset <> 0");
        put_pattern(q, j, equal ? "b" : "+b", " AND @.name = $a");
        if (equal)
            put_arm(q, j, "b", &arms[k], true);
        else
            put_value(q, j, "+b");
        put_variable(q, j, "b");
    }
}

/* Datasets that meet some condition by themselves, and all conditions. */
static void
put_datasets(sqlite__query *q, size_t start)
{
    arm arms[ARMS];
    size_t count = arms_of(q, start, arms);
    /* An empty list to begin with: a container's condition has no datasets of its own. */
    put(q, q->numbers ? "SELECT o.container, o.dataset" : "SELECT c.name, o.path");
    put(q, " FROM (SELECT 0 AS container, 0 AS dataset, NULL AS path WHERE 0");
    for (size_t k = 0; k < count; k++) {
        if (finds_datasets(q, start)) {
            put_start(q, " UNION SELECT a.container, a.dataset, a.path", start, &arms[k],
                      " AND a.dataset <> 0");
            put_variable(q, start, "a");
        }
        for (size_t j = 0; j < q->nconditions; j++) {
            if (j != start && finds_datasets(q, j))
                put_inherited(q, start, &arms[k], j);
        }
    }
    put(q, ") o CROSS JOIN main.container c ON c.container = o.container "
           "WHERE c.name IS NOT NULL");
    put(q, q->numbers ? " AND substr(c.name, 1, 1) <> '/'" : "");
    for (size_t i = 0; i < q->nconditions && q->nconditions > 1; i++)
        put_holds(q, i);
}

/* Containers whose own attributes meet all conditions. */
static void
put_containers(sqlite__query *q, size_t start)
{
    arm arms[ARMS];
    size_t count = arms_of(q, start, arms);
    put(q, q->numbers ? "SELECT o.container, 0" : "SELECT c.name, NULL");
    for (size_t k = 0; k < count; k++)
        put_start(q, k == 0 ? " FROM (SELECT a.container" : " UNION SELECT a.container", start,
                  &arms[k], " AND a.dataset = 0");
    /* One arm alone would name a container once for each value. */
    put(q, count == 1 ? " GROUP BY 1" : "");
    put(q, ") o CROSS JOIN main.container c ON c.container = o.container "
           "WHERE c.name IS NOT NULL");
    put(q, q->numbers ? " AND substr(c.name, 1, 1) <> '/'" : "");
    for (size_t i = 0; i < q->nconditions; i++) {
        if (i == start)
            continue;
        put(q, " AND ");
        put_exists(q, i, GLOBAL, true);
    }
}

void
sqlite__query_put(sqlite__query *q, size_t start, bool with_pending)
{
    static const char *const tables[] = {"main.attribute", "temp.pending"};
    bool datasets = false;
    bool containers = true;
    bool first = true;
    bool attributes = false;
    for (size_t i = 0; i < q->nconditions; i++) {
        attributes |= !is_extent(q, i);
        containers &= !sqlite__names_variable(&q->conditions[i]);
    }
    q->sql.bytes = 0;
    for (int t = 0; t < 1 + (with_pending && attributes); t++) {
        q->table = tables[t];
        datasets = false;
        for (size_t i = 0; i < q->nconditions; i++)
            datasets |= finds_datasets(q, i);
        for (int part = 0; part < 2; part++) {
            if (!(part == 0 ? datasets : containers))
                continue;
            put(q, first ? "" : " UNION ALL ");
            first = false;
            if (part == 0)
                put_datasets(q, start);
            else
                put_containers(q, start);
        }
    }
    if (first) /* datasets alone could be meant, and no comparison finds any */
        put(q, "SELECT NULL, NULL WHERE 0");
    put(q, q->numbers ? "" : " ORDER BY 1, 2");
    esdm__buffer_put_u8(&q->sql, 0);
}

void
sqlite__query_put_count(sqlite__query *q, size_t i)
{
    arm arms[ARMS];
    char limit[32];
    size_t count = arms_of(q, i, arms);
    (void) snprintf(limit, sizeof limit, " LIMIT ?%zu)",
                    q->nconditions * SQLITE__FIND_PARAMETERS + 1);
    q->table = "main.attribute";
    q->sql.bytes = 0;
    put(q, "SELECT 0");
    for (size_t k = 0; k < count; k++) {
        put_from(q, i, " + (SELECT count(*) FROM (SELECT 1", "a");
        put_by_value(q, i);
        put_pattern(q, i, "a", " WHERE @.name = $a");
        put_arm(q, i, "a", &arms[k], false);
        put(q, limit);
        put(q, ")");
    }
    esdm__buffer_put_u8(&q->sql, 0);
}

/* ---- ranges ------------------------------------------------------------------------------- */

/* Numbers that are written as this text. It may have fewer digits than the number. */
static void
find_numbers(const char *text, locale_t plain, sqlite__find_range *ret)
{
    char *end = NULL;
    double number = strtod_l(text, &end, plain);
    if (end == text || *end != '\0' || isnan(number))
        return;
    double width = isinf(number) ? 0 : fabs(number) * 1e-6;
    *ret = (sqlite__find_range){
        .kind = SQLITE__FIND_NUMBERS, .from = number - width, .to = number + width};
}

/* Texts that begin as the pattern does: from its literal beginning to that with a larger last
 * byte. Only ASCII: of other bytes GLOB takes some for others. */
static esdm_status
find_texts(const char *pattern, sqlite__find_range *ret, esdm_error *err)
{
    size_t bytes = 0;
    while (pattern[bytes] > 0 && pattern[bytes] < 0x7f && strchr("*?[", pattern[bytes]) == NULL)
        bytes++;
    if (bytes == 0)
        return ESDM_OK;
    for (int k = 0; k < 2; k++) {
        ret->texts[k] = strndup(pattern, bytes);
        if (ret->texts[k] == NULL)
            return esdm__error_nomem(err, bytes, "a query");
    }
    ret->texts[1][bytes - 1]++;
    ret->kind = SQLITE__FIND_TEXTS;
    return ESDM_OK;
}

esdm_status
sqlite__query_init(sqlite__query *q, const esdm_meta_condition *conditions, size_t nconditions,
                   esdm_error *err)
{
    esdm_status status = ESDM_OK;
    *q = (sqlite__query){.conditions = conditions, .nconditions = nconditions};
    esdm__buffer_init(&q->sql);
    q->ranges = calloc(nconditions, sizeof *q->ranges);
    locale_t plain =
        newlocale(LC_ALL_MASK, "C", (locale_t) 0); /* that of the program may have ',' */
    if (q->ranges == NULL || plain == (locale_t) 0)
        status = esdm__error_nomem(err, nconditions * sizeof *q->ranges, "a query");
    for (size_t i = 0; i < nconditions && status == ESDM_OK; i++) {
        if (conditions[i].is_number)
            continue;
        if (conditions[i].op == ESDM_META_EQ)
            find_numbers(conditions[i].text, plain, &q->ranges[i]);
        else if (conditions[i].op == ESDM_META_GLOB)
            status = find_texts(conditions[i].text, &q->ranges[i], err);
    }
    if (plain != (locale_t) 0)
        freelocale(plain);
    return status;
}

void
sqlite__query_clear(sqlite__query *q)
{
    for (size_t i = 0; q->ranges != NULL && i < q->nconditions; i++) {
        free(q->ranges[i].texts[0]);
        free(q->ranges[i].texts[1]);
    }
    free(q->ranges);
    esdm__buffer_clear(&q->sql);
    q->ranges = NULL;
}
