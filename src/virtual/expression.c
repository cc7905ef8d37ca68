/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Parts of a query that are expressions of esdm-find: "?source_id=X&time overlaps 1990". */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/session/former.h"
#include "query/query.h"
#include "query/words.h"
#include "virtual/parts.h"

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
    esdm_status status = esdm__query_parse(expression, &query, err);
    if (status != ESDM_OK)
        return status;
    status = esdm__query_resolve(session->meta, session->store, &query, err);
    if (status == ESDM_OK)
        status = esdm__query_find(session->meta, session->store, &query, note_match, &all, err);
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
    if (esdm__query_resolve(session->meta, session->store, &query, NULL) == ESDM_OK)
        (void) !esdm__query_explain(session->meta, session->store, &query, note_reason, r, NULL);
    esdm__query_clear(&query);
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
        const esdm__query query = {.conditions = &condition, .columns = &column, .nconditions = 1};
        (void) !esdm__query_explain(session->meta, session->store, &query, note_reason, &r, NULL);
    }
    for (size_t i = 0; i < nexpressions && ret_text[0] == '\0'; i++)
        explain_expression(session, expressions[i], &r);
}
