/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Queries over attributes: the ranges of values in which texts are looked for. */

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/meta_tree.h"
#include "find.h"

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

static esdm_status
find_ranges(sqlite__query *q, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    locale_t plain =
        newlocale(LC_ALL_MASK, "C", (locale_t) 0); /* that of the program may have ',' */
    if (plain == (locale_t) 0)
        return esdm__error_nomem(err, sizeof plain, "a query");
    for (size_t i = 0; i < q->nconditions && status == ESDM_OK; i++) {
        const esdm_meta_condition *condition = &q->conditions[i];
        if (condition->is_number)
            continue;
        if (condition->op == ESDM_META_EQ)
            find_numbers(condition->text, plain, &q->ranges[i]);
        else if (condition->op == ESDM_META_GLOB)
            status = find_texts(condition->text, &q->ranges[i], err);
    }
    freelocale(plain);
    return status;
}

esdm_status
sqlite__query_init(sqlite__query *q, const esdm_meta_expression *expression, esdm_error *err)
{
    size_t count = expression->nconditions;
    *q = (sqlite__query){.conditions = expression->conditions,
                         .nconditions = count,
                         .expression = *expression,
                         .proven = SIZE_MAX};
    esdm__buffer_init(&q->sql);
    esdm__buffer_init(&q->met);
    q->ranges = calloc(count, sizeof *q->ranges);
    q->holds = calloc(count, sizeof *q->holds);
    q->starts = calloc(count, sizeof *q->starts);
    q->is_met = calloc(count, sizeof *q->is_met);
    if (q->ranges == NULL || q->holds == NULL || q->starts == NULL || q->is_met == NULL)
        return esdm__error_nomem(err, count * sizeof *q->ranges, "a query");
    esdm_status status = esdm__tree_prepare(&q->expression, &q->nodes, q->holds, err);
    return status == ESDM_OK ? find_ranges(q, err) : status;
}

void
sqlite__query_begin(sqlite__query *q, const uint64_t *counts, uint64_t *ret_sum)
{
    q->covered =
        esdm__tree_starts(&q->expression, q->holds, counts, q->starts, &q->nstarts, ret_sum);
}

void
sqlite__query_clear(sqlite__query *q)
{
    for (size_t i = 0; q->ranges != NULL && i < q->nconditions; i++) {
        free(q->ranges[i].texts[0]);
        free(q->ranges[i].texts[1]);
    }
    free(q->trees[0].numbers);
    free(q->trees[1].numbers);
    free(q->ranges);
    free(q->holds);
    free(q->starts);
    free(q->is_met);
    free(q->nodes);
    esdm__buffer_clear(&q->met);
    esdm__buffer_clear(&q->sql);
    *q = (sqlite__query){.proven = SIZE_MAX};
}
