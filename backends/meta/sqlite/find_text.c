/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Text of queries over attributes.
 *
 * A dataset meets a condition by its own attribute or, lacking it, by the container's; a condition
 * on the container (variable "") is met by the container's alone. At least one condition must be
 * met by the dataset's own attribute. A container is found when its own attributes meet every
 * condition. Of alternatives one must be met that way (base/meta_tree.h).
 *
 * Extents (names that begin with '@') are rows of the same table, but never wait to be entered. A
 * dataset has its own, or lacking it the container's; none is found by an extent alone.
 *
 * Candidates come from one condition, the *start*, or several (alternatives), that few entries of
 * the index (name, value) meet: the objects of these entries, and the datasets of containers among
 * them that meet another condition by themselves. Where there are none, as a condition that must
 * fail decides, containers come from the list of all. Whatever SQLite knows about the table, it is
 * told which index to take, and the other conditions are asked of one object at a time.
 *
 * The column `value` is a number, or the text when there is none; `text` is what else a number can
 * be written as. Numbers sort before texts in SQLite.
 */

#include <stdio.h>
#include <string.h>

#include "base/meta_tree.h"
#include "find.h"

/* ---- text --------------------------------------------------------------------------------- */

void
sqlite__find_put(sqlite__query *q, const char *text)
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
    sqlite__find_put(q, text);
}

/* Writes a text in which @ stands for the alias and $a $n $t $v $f $u for parameters. */
void
sqlite__find_put_pattern(sqlite__query *q, size_t condition, const char *alias, const char *pattern)
{
    for (; *pattern != '\0'; pattern++) {
        char one[2] = {*pattern, '\0'};
        if (*pattern == '@')
            sqlite__find_put(q, alias);
        else if (*pattern == '$')
            put_parameter(q, condition, parameter_of(*++pattern));
        else
            sqlite__find_put(q, one);
    }
}

bool
sqlite__find_is_extent(const sqlite__query *q, size_t i)
{
    return esdm_meta_is_extent(q->conditions[i].attribute);
}

/* ---- comparisons -------------------------------------------------------------------------- */

static size_t
arms_of_text(esdm_meta_operator op, const char *text, const sqlite__find_range *range,
             sqlite__find_arm arms[SQLITE__FIND_ARMS])
{
    switch (op) {
    case ESDM_META_EQ:
        arms[0] = (sqlite__find_arm){"@.value = $t", NULL};
        arms[1] = (sqlite__find_arm){"@.value BETWEEN $f AND $u", "@.text = $t"};
        return range->kind == SQLITE__FIND_NUMBERS ? 2 : 1;
    case ESDM_META_NE:
        arms[0] = (sqlite__find_arm){NULL, "coalesce(@.text, @.value) <> $t"};
        return 1;
    case ESDM_META_LT:
        arms[0] = (sqlite__find_arm){"@.value < $t AND @.value >= ''", NULL};
        return 1;
    case ESDM_META_LE:
        arms[0] = (sqlite__find_arm){"@.value <= $t AND @.value >= ''", NULL};
        return 1;
    case ESDM_META_GT:
        arms[0] = (sqlite__find_arm){"@.value > $t", NULL};
        return 1;
    case ESDM_META_GE:
        arms[0] = (sqlite__find_arm){"@.value >= $t", NULL};
        return 1;
    case ESDM_META_GLOB:
        if (strcmp(text, "*") == 0) {
            arms[0] = (sqlite__find_arm){"@.value IS NOT NULL", NULL};
            return 1;
        }
        arms[0] = (sqlite__find_arm){
            range->kind == SQLITE__FIND_TEXTS ? "@.value >= $f AND @.value < $u" : "@.value >= ''",
            "@.value GLOB $t"};
        arms[1] = (sqlite__find_arm){"@.value < ''", "coalesce(@.text, @.value) GLOB $t"};
        return 2;
    }
    return 0;
}

static size_t
arms_of_number(esdm_meta_operator op, sqlite__find_arm arms[SQLITE__FIND_ARMS])
{
    switch (op) {
    case ESDM_META_EQ:
        arms[0] = (sqlite__find_arm){"@.value IN ($n, $t)", NULL};
        return 1;
    case ESDM_META_NE:
        arms[0] = (sqlite__find_arm){NULL, "@.value <> $n AND @.value IS NOT $t"};
        return 1;
    case ESDM_META_LT:
        arms[0] = (sqlite__find_arm){"@.value < $n", NULL};
        return 1;
    case ESDM_META_LE:
        arms[0] = (sqlite__find_arm){"@.value <= $n", NULL};
        return 1;
    case ESDM_META_GT:
        arms[0] = (sqlite__find_arm){"@.value > $n AND @.value < ''", NULL};
        return 1;
    case ESDM_META_GE:
        arms[0] = (sqlite__find_arm){"@.value >= $n AND @.value < ''", NULL};
        return 1;
    case ESDM_META_GLOB:
        break;
    }
    return arms_of_text(op, "", &(sqlite__find_range){.kind = SQLITE__FIND_NO_RANGE}, arms);
}

/* The values of an attribute that meet the condition are those of all arms together. */
size_t
sqlite__find_arms_of(const sqlite__query *q, size_t i, sqlite__find_arm arms[SQLITE__FIND_ARMS])
{
    const esdm_meta_condition *condition = &q->conditions[i];
    return condition->is_number ? arms_of_number(condition->op, arms)
                                : arms_of_text(condition->op, condition->text, &q->ranges[i], arms);
}

/* " AND range AND rest" */
void
sqlite__find_put_arm(sqlite__query *q, size_t i, const char *alias, const sqlite__find_arm *one,
                     bool with_rest)
{
    const char *const parts[] = {one->range, with_rest ? one->rest : NULL};
    for (size_t k = 0; k < 2; k++) {
        if (parts[k] == NULL)
            continue;
        sqlite__find_put(q, " AND ");
        sqlite__find_put_pattern(q, i, alias, parts[k]);
    }
    if (with_rest && sqlite__find_is_extent(q, i)) /* "" says that there is none */
        sqlite__find_put_pattern(q, i, alias, " AND @.value <> ''");
}

/* " AND (value meets condition i)". The unary + keeps SQLite from searching all objects by value.
 */
void
sqlite__find_put_value(sqlite__query *q, size_t i, const char *alias)
{
    sqlite__find_arm arms[SQLITE__FIND_ARMS];
    size_t count = sqlite__find_arms_of(q, i, arms);
    sqlite__find_put(q, " AND (");
    for (size_t k = 0; k < count; k++) {
        sqlite__find_put(q, k > 0 ? " OR (1" : "(1");
        sqlite__find_put_arm(q, i, alias, &arms[k], true);
        sqlite__find_put(q, ")");
    }
    sqlite__find_put(q, count > 0 ? ")" : "0)");
}

/* ---- parts of a query --------------------------------------------------------------------- */

static bool
is_for_container(const esdm_meta_condition *condition)
{
    return condition->variable != NULL && condition->variable[0] == '\0';
}

/* Whether a dataset that meets the condition by itself may be found by that. */
bool
sqlite__find_finds_datasets(const sqlite__query *q, size_t i)
{
    bool none = q->ranges[i].no_datasets && strcmp(q->table, "main.attribute") == 0;
    return !is_for_container(&q->conditions[i]) && !sqlite__find_is_extent(q, i) && !none;
}

/* The table that has the rows of condition i. */
const char *
sqlite__find_table_of(const sqlite__query *q, size_t i)
{
    return sqlite__find_is_extent(q, i) ? "main.attribute" : q->table;
}

static void
put_from(sqlite__query *q, size_t i, const char *before, const char *alias)
{
    sqlite__find_put(q, before);
    sqlite__find_put(q, " FROM ");
    sqlite__find_put(q, sqlite__find_table_of(q, i));
    sqlite__find_put(q, " ");
    sqlite__find_put(q, alias);
}

/* The temporary table has few rows, and no index over values. */
void
sqlite__find_put_by_value(sqlite__query *q, size_t i)
{
    if (strcmp(sqlite__find_table_of(q, i), "main.attribute") == 0)
        sqlite__find_put(q, " INDEXED BY attribute_value");
}

/* Whether the entry of an object that meets condition i has one place in the index (name, value),
 * which follows that of the object before: attributes of an object lie on pages of their own. */
static bool
is_one_value(const sqlite__query *q, size_t i)
{
    sqlite__find_arm arms[SQLITE__FIND_ARMS];
    return q->conditions[i].op == ESDM_META_EQ && sqlite__find_arms_of(q, i, arms) == 1 &&
           strcmp(sqlite__find_table_of(q, i), "main.attribute") == 0;
}

/* EXISTS over one object's attributes: `of` restricts to the object. */
void
sqlite__find_put_exists(sqlite__query *q, size_t i, const char *of, bool with_value)
{
    bool one = with_value && is_one_value(q, i);
    put_from(q, i, "EXISTS(SELECT 1", "a");
    sqlite__find_put(q, one ? " INDEXED BY attribute_value" : "");
    sqlite__find_put(q, " WHERE ");
    sqlite__find_put(q, of);
    sqlite__find_put_pattern(q, i, "a", " AND @.name = $a");
    if (with_value)
        sqlite__find_put_value(q, i, one ? "a" : "+a");
    sqlite__find_put(q, ")");
}

void
sqlite__find_put_variable(sqlite__query *q, size_t i, const char *alias)
{
    if (sqlite__names_variable(&q->conditions[i]))
        sqlite__find_put_pattern(q, i, alias, " AND substr(@.path, -length($v)) = $v");
}

/* Whether condition i holds for the dataset o. */
void
sqlite__find_put_holds(sqlite__query *q, size_t i)
{
    if (is_for_container(&q->conditions[i])) {
        sqlite__find_put(q, " AND ");
        sqlite__find_put_exists(q, i, SQLITE__FIND_GLOBAL, true);
        return;
    }
    sqlite__find_put_variable(q, i, "o");
    sqlite__find_put(q, " AND (");
    sqlite__find_put_exists(q, i, SQLITE__FIND_OWN, true);
    sqlite__find_put(q, " OR (NOT ");
    sqlite__find_put_exists(q, i, SQLITE__FIND_OWN, false);
    sqlite__find_put(q, " AND ");
    sqlite__find_put_exists(q, i, SQLITE__FIND_GLOBAL, true);
    sqlite__find_put(q, "))");
}

/* Entries of the index that meet the start. */
void
sqlite__find_put_start(sqlite__query *q, const char *before, size_t start,
                       const sqlite__find_arm *one, const char *which)
{
    put_from(q, start, before, "a");
    sqlite__find_put_by_value(q, start);
    sqlite__find_put_pattern(q, start, "a", " WHERE @.name = $a");
    sqlite__find_put_arm(q, start, "a", one, true);
    sqlite__find_put(q, which);
}

void
sqlite__query_put_count(sqlite__query *q, size_t i)
{
    sqlite__find_arm arms[SQLITE__FIND_ARMS];
    char limit[32];
    size_t count = sqlite__find_arms_of(q, i, arms);
    (void) snprintf(limit, sizeof limit, " LIMIT ?%zu)",
                    q->nconditions * SQLITE__FIND_PARAMETERS + 1);
    q->table = "main.attribute";
    q->sql.bytes = 0;
    sqlite__find_put(q, "SELECT 0");
    for (size_t k = 0; k < count; k++) {
        put_from(q, i, " + (SELECT count(*) FROM (SELECT 1", "a");
        sqlite__find_put_by_value(q, i);
        sqlite__find_put_pattern(q, i, "a", " WHERE @.name = $a");
        sqlite__find_put_arm(q, i, "a", &arms[k], false);
        sqlite__find_put(q, limit);
        sqlite__find_put(q, ")");
    }
    esdm__buffer_put_u8(&q->sql, 0);
}
