/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Parts of a query that are expressions of esdm-find: "?source_id=X&time overlaps 1990". */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "io/session/former.h"
#include "query/query.h"
#include "query/words.h"
#include "virtual/parts.h"

/* A question that looks for reasons may take that long, and so many values are compared. */
#define WHY_MOST_MS 300
#define VALUES_MOST 2000u

bool
esdm__part_is_expression(const char *part)
{
    const char *equal = strchr(part, '=');
    size_t bytes = equal != NULL ? (size_t) (equal - part) : strlen(part);
    if (equal == NULL || equal[1] == '=' || equal[1] == '~')
        return strcspn(part, "<>!~( ") < strlen(part) || equal != NULL;
    if (equal > part && equal[-1] == ' ')
        return true; /* no name ends so: "title = 3" is written as for esdm-find */
    const esdm_meta_condition grid = {.attribute = "grid", .op = ESDM_META_EQ};
    if (strncmp(part, "grid=", 5) == 0 && esdm__query_is_grid(&grid, equal + 1))
        return true;
    return strcspn(part, "<>!~(") < bytes;
}

typedef struct found {
    esdm__pointers names; /* owned */
    bool nomem;
} found;

static bool
note_match(const char *container, const char *dataset, void *user)
{
    found *all = user;
    (void) dataset;
    if (esdm__name_is_hidden(container) ||
        (all->names.count > 0 && strcmp(all->names.items[all->names.count - 1], container) == 0))
        return true; /* matches come by name */
    char *copy = strdup(container);
    all->nomem = copy == NULL || !esdm__pointers_add(&all->names, copy);
    if (all->nomem)
        free(copy);
    return !all->nomem;
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *) a, *(char *const *) b);
}

/* Sorted, each once. */
static void
sort_names(esdm__pointers *names)
{
    size_t kept = 0;
    if (names->count > 1)
        qsort(names->items, names->count, sizeof *names->items, by_name);
    for (size_t i = 0; i < names->count; i++) {
        if (kept > 0 && strcmp(names->items[kept - 1], names->items[i]) == 0)
            free(names->items[i]);
        else
            names->items[kept++] = names->items[i];
    }
    names->count = kept;
}

/* Names of the question that are not among those found are left out. */
static void
keep_found(esdm__question *question, const esdm__pointers *names)
{
    size_t kept = 0;
    for (size_t i = 0; i < question->count; i++) {
        if (names->count > 0 && bsearch(&question->names[i], names->items, names->count,
                                        sizeof *names->items, by_name) != NULL)
            question->names[kept++] = question->names[i];
        else
            free(question->names[i]);
    }
    question->count = kept;
}

esdm_status
esdm__question_narrow(esdm_session *session, const char *expression, bool first,
                      esdm__question *question, esdm_error *err)
{
    esdm__query query = {0};
    found all = {0};
    esdm_status some = ESDM_ENOTSUP;
    esdm_status status = esdm__query_parse(expression, &query, err);
    if (status != ESDM_OK)
        return status;
    status = esdm__query_resolve(session->meta, session->store, &query, err);
    if (status == ESDM_OK && question->among != NULL)
        some = esdm__query_find_among(session->meta, session->store, &query, question->among,
                                      question->namong, note_match, &all, NULL);
    if (status == ESDM_OK && some == ESDM_ENOTSUP)
        status = esdm__query_find(session->meta, session->store, &query, note_match, &all, err);
    else if (status == ESDM_OK)
        status = some;
    esdm__query_clear(&query);
    if (status == ESDM_OK && all.nomem)
        status = esdm__error_nomem(err, sizeof(char *), "what a query found");
    sort_names(&all.names);
    if (status == ESDM_OK && first) {
        question->names = (char **) all.names.items;
        question->count = all.names.count;
        return ESDM_OK;
    }
    if (status == ESDM_OK)
        keep_found(question, &all.names);
    for (size_t i = 0; i < all.names.count; i++)
        free(all.names.items[i]);
    free(all.names.items);
    return status;
}

/* ---- why nothing is found ------------------------------------------------------------------ */

typedef struct reason {
    char *text;
    size_t bytes;
} reason;

static bool
note_any(const char *container, const char *dataset, void *user)
{
    (void) container, (void) dataset;
    *(bool *) user = true;
    return false;
}

static bool
note_reason(const char *text, void *user)
{
    const reason *r = user;
    (void) snprintf(r->text, r->bytes, "%s", text);
    return false;
}

static void
explain_expression(const esdm_session *session, const char *expression, reason *r)
{
    esdm__query query = {0};
    if (esdm__query_parse(expression, &query, NULL) != ESDM_OK)
        return;
    query.most_ms = WHY_MOST_MS;
    if (esdm__query_resolve(session->meta, session->store, &query, NULL) == ESDM_OK)
        (void) !esdm__query_explain(session->meta, session->store, &query, note_reason, r, NULL);
    esdm__query_clear(&query);
}

/* Values of an attribute, and the one wanted. */
typedef struct values {
    const char *wanted;
    char *alike;  /* but for upper and lower case; owned; NULL: none */
    char **known; /* owned, each too */
    size_t count;
} values;

static bool
note_value(size_t name, const char *value, uint64_t containers, void *user)
{
    values *v = user;
    char *copy = v->count < VALUES_MOST ? strdup(value) : NULL;
    (void) name, (void) containers;
    if (v->alike == NULL && strcasecmp(value, v->wanted) == 0)
        v->alike = strdup(value);
    if (copy != NULL && esdm__array_grow(&v->known, v->count + 1, sizeof *v->known)) {
        v->known[v->count++] = copy;
        v->known[v->count] = NULL;
    } else {
        free(copy);
    }
    return v->alike == NULL;
}

/* What is like the value of a condition. */
static void
put_near(const esdm_session *session, const esdm_meta_condition *condition, const reason *r)
{
    values v = {.wanted = condition->text};
    esdm_meta_condition any = *condition;
    const esdm_meta_node holds = {.kind = ESDM_META_HOLDS, .size = 1};
    const esdm_meta_expression all = {&any, 1, &holds, 1, WHY_MOST_MS};
    any.op = ESDM_META_GLOB;
    any.text = "*";
    any.is_number = false;
    if (session->meta->facets == NULL || session->meta->facets(session->store, &all, &any.attribute,
                                                               1, note_value, &v, NULL) != ESDM_OK)
        v.count = v.alike != NULL ? v.count : 0;
    const char *near = v.alike != NULL ? v.alike
                       : v.count > 0
                           ? esdm__nearest_word(condition->text, (const char *const *) v.known)
                           : NULL;
    size_t used = strlen(r->text);
    if (near != NULL)
        (void) snprintf(r->text + used, r->bytes - used, "; did you mean '%.100s'?", near);
    for (size_t i = 0; i < v.count; i++)
        free(v.known[i]);
    free(v.known);
    free(v.alike);
}

/* Says so when no container meets the condition by itself. @return whether some do; false also
 * where it takes long to tell. */
static bool
explain_value(const esdm_session *session, const esdm_meta_condition *condition, reason *r)
{
    bool any = false;
    const esdm_meta_node holds = {.kind = ESDM_META_HOLDS, .size = 1};
    const esdm_meta_expression one = {condition, 1, &holds, 1, WHY_MOST_MS};
    if (session->meta->find_expression == NULL ||
        session->meta->find_expression(session->store, &one, note_any, &any, NULL) != ESDM_OK ||
        any)
        return any;
    (void) snprintf(r->text, r->bytes, "nothing has %.80s=%.120s", condition->attribute,
                    condition->text);
    size_t used = strlen(r->text);
    if (strchr(condition->text, ',') != NULL)
        (void) snprintf(r->text + used, r->bytes - used, "; several values are '%.60s in (A, B)'",
                        condition->attribute);
    else
        put_near(session, condition, r);
    return false;
}

void
esdm__question_why(const esdm_session *session, const char *text,
                   const esdm_meta_condition *conditions, size_t count,
                   const char *const *expressions, size_t nexpressions, char *ret_text,
                   size_t bytes)
{
    reason r = {ret_text, bytes};
    ret_text[0] = '\0';
    for (size_t i = 0; i < count && ret_text[0] == '\0'; i++) {
        esdm_meta_condition condition = conditions[i];
        size_t column = (size_t) (condition.attribute - text) + 1;
        const esdm__query query = {
            .conditions = &condition, .columns = &column, .nconditions = 1, .most_ms = WHY_MOST_MS};
        (void) !esdm__query_explain(session->meta, session->store, &query, note_reason, &r, NULL);
    }
    for (size_t i = 0; i < nexpressions && ret_text[0] == '\0'; i++)
        explain_expression(session, expressions[i], &r);
    size_t met = 0;
    for (size_t i = 0; i < count && ret_text[0] == '\0'; i++)
        met += explain_value(session, &conditions[i], &r);
    if (ret_text[0] == '\0' && count > 1 && met == count && nexpressions == 0)
        (void) snprintf(ret_text, bytes,
                        "each condition is met by something, but nothing meets all");
}
