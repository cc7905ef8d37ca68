/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Parameters of queries over attributes: what each condition is compared with. */

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "find.h"
#include "glob.h"
#include "postgres.h"

typedef postgres__find_query query;
typedef postgres__find_bound bound;

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

/* Whether a number may be written so. Of other texts the index is asked for texts alone: then it
 * is asked for all equalities at once, which it is not where one of them has alternatives. */
static bool
can_be_number(const char *text)
{
    char *end = NULL;
    locale_t plain =
        newlocale(LC_ALL_MASK, "C", (locale_t) 0); /* that of the program may have ',' */
    if (plain == (locale_t) 0)
        return true;
    (void) strtod_l(text, &end, plain);
    freelocale(plain);
    return end != text && *end == '\0';
}

/* How all texts begin that a glob matches which says nothing else; else 0 bytes. */
static size_t
beginning_of(const char *glob)
{
    size_t bytes = strcspn(glob, "*?[");
    return glob[bytes] == '*' && glob[bytes + 1] == '\0' ? bytes : 0;
}

/* $."kind"."name"[*] ? (@ starts with "beginning"): the server compares it where it lies, in a
 * tenth of the time that it takes to hand out the texts and match them. */
static int
put_path(query *q, char kind, const char *name, const char *beginning)
{
    char head[16];
    esdm__buffer buffer;
    esdm__buffer_init(&buffer);
    (void) snprintf(head, sizeof head, "$.\"%c\".", kind);
    put_literal(&buffer, head);
    postgres__put_json(&buffer, name);
    put_literal(&buffer, "[*] ? (@ starts with ");
    postgres__put_json(&buffer, beginning);
    put_literal(&buffer, ")");
    return put_buffer(q, &buffer);
}

static void
bind_beginning(query *q, bound *b, const esdm_meta_condition *condition)
{
    size_t bytes = condition->op == ESDM_META_GLOB && condition->text != NULL
                       ? beginning_of(condition->text)
                       : 0;
    char *beginning = bytes > 0 ? strndup(condition->text, bytes) : NULL;
    if (beginning == NULL) /* without memory it is a pattern */
        return;
    b->begins = put_path(q, 's', condition->attribute, beginning);
    if (strchr("0123456789+-.iInN", beginning[0]) != NULL)
        b->begins_form = put_path(q, 'f', condition->attribute, beginning);
    free(beginning);
}

void
postgres__find_bind(query *q, size_t i)
{
    const esdm_meta_condition *condition = &q->conditions[i];
    bound *b = &q->bound[i];
    bool equal = condition->op == ESDM_META_EQ;
    bool number = condition->is_number && !isnan(condition->number);
    postgres__put_string(&q->params, condition->attribute);
    b->attribute = q->params.count;
    if (postgres__find_is_extent(condition)) {
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
    if (equal && !condition->is_number && can_be_number(condition->text))
        b->forms = put_contained(q, 'f', condition);
    if (!equal && number)
        b->number = put_value(q, condition, true);
    if (!equal && condition->text != NULL)
        b->text = put_value(q, condition, false);
    bind_variable(q, b, condition);
    if (q->has_paths)
        bind_beginning(q, b, condition);
}
