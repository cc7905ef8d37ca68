/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file A query in place of a name: its words, and the containers that it finds. */

#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/plain_locale.h"
#include "io/session/former.h"
#include "virtual/parts.h"

#define CONDITIONS_MOST 64u

bool
esdm__virtual_is_said(const char *name)
{
    static const char scheme[] = "esdm://";
    if (strncasecmp(name, scheme, sizeof scheme - 1) == 0)
        name += sizeof scheme - 1;
    name += strspn(name, "/");
    return *name == '?';
}

esdm_status
esdm__virtual_normalise(const char *name, char *buffer, esdm_error *err)
{
    const char *query = strchr(name, '?');
    size_t bytes = strlen(query);
    if (bytes > ESDM_CONTAINER_NAME_MAX)
        return esdm__error_set(err, ESDM_EINVAL, "query '%.40s...' is longer than %d bytes", query,
                               ESDM_CONTAINER_NAME_MAX);
    if (!esdm__utf8_is_valid(query, bytes))
        return esdm__error_set(err, ESDM_EINVAL, "query '%.200s' is not valid UTF-8", query);
    memcpy(buffer, query, bytes + 1);
    return ESDM_OK;
}

/* ---- words -------------------------------------------------------------------------------- */

static int
hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char) (c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "%26" becomes "&", as in addresses; a '%' that no digits follow stays. */
static void
decode(char *text)
{
    char *out = text;
    for (const char *in = text; *in != '\0'; in++) {
        int high = in[0] == '%' ? hex(in[1]) : -1;
        int low = high >= 0 ? hex(in[2]) : -1;
        if (low >= 0 && high * 16 + low != 0) {
            *out++ = (char) (high * 16 + low);
            in += 2;
        } else {
            *out++ = *in;
        }
    }
    *out = '\0';
}

/* A name, or a pattern of names, of what is not wanted, or of what alone is. */
static esdm_status
choose_later(const char *word, const char *value, char ***names, size_t *count, esdm_error *err)
{
    static const char scheme[] = "esdm://";
    if (strncasecmp(value, scheme, sizeof scheme - 1) == 0)
        value += sizeof scheme - 1;
    size_t bytes = strlen(value);
    while (bytes > 0 && value[bytes - 1] == '/')
        bytes--;
    if (bytes == 0)
        return esdm__error_set(
            err, ESDM_EINVAL,
            "query: '%s' needs the name of a container, as in &%s=work/yearly.nc, "
            "or a pattern: &%s=work/*",
            word, word, word);
    if (!esdm__array_grow(names, *count, sizeof **names))
        return esdm__error_nomem(err, sizeof **names, "a query");
    char *copy = strndup(value, bytes);
    if (copy == NULL)
        return esdm__error_nomem(err, bytes, "a query");
    (*names)[(*count)++] = copy;
    return ESDM_OK;
}

static esdm_status
reserved_word(const esdm__site *site, const char *word, const char *value, esdm__question *question,
              bool *ret_taken, esdm_error *err)
{
    static const char *const later[] = {"levels", "units",   "along",  "longitude",
                                        "months", "missing", "static", "pin"};
    *ret_taken = true;
    if (strcmp(word, "overlap") == 0) {
        if (strcmp(value, "first") == 0)
            question->overlap = ESDM__OVERLAP_FIRST;
        else if (strcmp(value, "newest") == 0)
            question->overlap = ESDM__OVERLAP_NEWEST;
        else if (strcmp(value, "equal") != 0)
            return esdm__error_set(err, ESDM_EINVAL,
                                   "query: 'overlap' is equal, first or newest, not '%s'", value);
        return ESDM_OK;
    }
    if (strcmp(word, "gaps") == 0) {
        question->fill_gaps = strcmp(value, "fill") == 0;
        if (!question->fill_gaps && strcmp(value, "report") != 0)
            return esdm__error_set(err, ESDM_EINVAL, "query: 'gaps' is report or fill, not '%s'",
                                   value);
        return ESDM_OK;
    }
    if (strcmp(word, "ensemble") == 0) {
        if (value[0] == '\0' || question->ensemble != NULL)
            return esdm__error_set(err, ESDM_EINVAL,
                                   "query: 'ensemble' needs one attribute, as in "
                                   "&ensemble=variant_label");
        question->ensemble = strdup(value);
        return question->ensemble != NULL ? ESDM_OK
                                          : esdm__error_nomem(err, strlen(value), "a query");
    }
    if (strcmp(word, "accuracy") == 0) {
        if (value[0] == '\0' || question->accuracy != NULL)
            return esdm__error_set(err, ESDM_EINVAL,
                                   "query: 'accuracy' needs one value, as in &accuracy=1%% or "
                                   "&accuracy=tas:0.5,pr:0.1%%");
        question->accuracy = strdup(value);
        return question->accuracy != NULL ? ESDM_OK
                                          : esdm__error_nomem(err, strlen(value), "a query");
    }
    if (strcmp(word, "across") == 0 && question->across != NULL)
        return esdm__error_set(err, ESDM_EINVAL,
                               "query: 'across' is given twice; a list has commas, as in "
                               "&across=source_id,institution_id");
    if (strcmp(word, "across") == 0) {
        esdm_status status = esdm__across_check(site, value, err);
        question->across = status == ESDM_OK ? strdup(value) : NULL;
        return status != ESDM_OK || question->across != NULL
                   ? status
                   : esdm__error_nomem(err, strlen(value), "a query");
    }
    if (strcmp(word, "without") == 0)
        return choose_later(word, value, &question->without, &question->nwithout, err);
    if (strcmp(word, "within") == 0)
        return choose_later(word, value, &question->within, &question->nwithin, err);
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        if (strcmp(word, later[i]) == 0)
            return esdm__error_set(err, ESDM_ENOTSUP,
                                   "query: the option '%s' is not served by this version", word);
    *ret_taken = false;
    return ESDM_OK;
}

/* One "name=value" of the query becomes a condition that points into it. */
static esdm_status
condition_of(const esdm__site *site, char *part, esdm__question *question,
             esdm_meta_condition *conditions, size_t *count, esdm_error *err)
{
    char *equal = strchr(part, '=');
    if (equal == NULL || equal == part)
        return esdm__error_set(err, ESDM_EINVAL,
                               "query: '%s' is not of the form attribute=value; several are joined "
                               "by '&'",
                               part);
    *equal = '\0';
    char *value = equal + 1;
    decode(part);
    decode(value);
    bool taken = false;
    esdm_status status = reserved_word(site, part, value, question, &taken, err);
    if (status != ESDM_OK || taken)
        return status;
    if (*count == CONDITIONS_MOST)
        return esdm__error_set(err, ESDM_EINVAL, "query: more than %u conditions", CONDITIONS_MOST);
    char *end = value;
    esdm_meta_condition *c = &conditions[(*count)++];
    *c =
        (esdm_meta_condition){.variable = "", .attribute = part, .op = ESDM_META_EQ, .text = value};
    if (isdigit((unsigned char) value[0]) || value[0] == '-' || value[0] == '+') {
        c->number = strtod(value, &end);
        c->is_number = end != value && *end == '\0';
    }
    return ESDM_OK;
}

/* ---- the question ------------------------------------------------------------------------- */

static bool
add_match(const char *container, const char *dataset_path, void *user)
{
    esdm__pointers *names = user;
    (void) dataset_path;
    if (esdm__name_is_hidden(container) || names->count > ESDM__MEMBERS_MOST)
        return true;
    char *copy = strdup(container);
    if (copy == NULL || !esdm__pointers_add(names, copy)) {
        free(copy);
        names->count = SIZE_MAX; /* out of memory */
        return false;
    }
    return true;
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *) a, *(char *const *) b);
}

static esdm_status
find_names(esdm_session *session, const esdm_meta_condition *conditions, size_t count,
           esdm__question *question, esdm_error *err)
{
    esdm__pointers names = {0};
    const esdm_meta_expression all = {.conditions = conditions, .nconditions = count};
    esdm_status status =
        question->among != NULL && session->meta->find_among != NULL
            ? session->meta->find_among(session->store, &all, question->among, question->namong,
                                        add_match, &names, err)
            : session->meta->find(session->store, conditions, count, add_match, &names, err);
    if (names.count == SIZE_MAX) {
        free(names.items);
        return esdm__error_nomem(err, sizeof(char *), "what a query found");
    }
    question->names = (char **) names.items;
    question->count = names.count;
    if (names.count > 1)
        qsort(question->names, names.count, sizeof *question->names, by_name);
    return status;
}

esdm_status
esdm__question_saved(esdm_session *session, esdm__question *ret, esdm_error *err)
{
    const esdm_meta_condition has = {
        .variable = "", .attribute = ESDM__SAVED_ATTRIBUTE, .op = ESDM_META_GLOB, .text = "*"};
    return find_names(session, &has, 1, ret, err);
}

/* Saved queries are no members: what they find is. */
static esdm_status
leave_out_saved(esdm_session *session, esdm__question *question, esdm_error *err)
{
    esdm__question saved = {0};
    size_t n = 0;
    esdm_status status = esdm__question_saved(session, &saved, err);
    for (size_t i = 0; i < question->count; i++) {
        if (status == ESDM_OK && saved.count > 0 &&
            bsearch(&question->names[i], saved.names, saved.count, sizeof *saved.names, by_name))
            free(question->names[i]);
        else
            question->names[n++] = question->names[i];
    }
    question->count = n;
    esdm__question_clear(&saved);
    return status;
}

static bool
is_one_of(const char *name, char *const *chosen, size_t count, bool folders)
{
    for (size_t i = 0; i < count; i++) {
        size_t bytes = strlen(chosen[i]);
        if (strcmp(name, chosen[i]) == 0 || fnmatch(chosen[i], name, 0) == 0 ||
            (folders && strncmp(name, chosen[i], bytes) == 0 && name[bytes] == '/'))
            return true;
    }
    return false;
}

static void
leave_out_named(esdm__question *question)
{
    size_t n = 0;
    for (size_t i = 0; i < question->count; i++) {
        char *name = question->names[i];
        bool elsewhere =
            question->nwithin > 0 && !is_one_of(name, question->within, question->nwithin, true);
        bool out = elsewhere || is_one_of(name, question->without, question->nwithout, false);
        question->nelsewhere += elsewhere;
        if (out)
            free(name);
        else
            question->names[n++] = name;
    }
    question->count = n;
}

static esdm_status
find(esdm_session *session, const esdm_meta_condition *conditions, size_t count,
     const char *const *expressions, size_t nexpressions, esdm__question *question, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    if (count > 0)
        status = find_names(session, conditions, count, question, err);
    for (size_t i = 0; i < nexpressions && status == ESDM_OK; i++) {
        status =
            esdm__question_narrow(session, expressions[i], count == 0 && i == 0, question, err);
        if (status == ESDM_EINVAL && count + nexpressions > 1) /* columns are those of a part */
            status = esdm__error_prefix(err, status, "in '%.200s'", expressions[i]);
    }
    leave_out_named(question);
    return status == ESDM_OK && question->among == NULL ? leave_out_saved(session, question, err)
                                                        : status;
}

/* @param among NULL: all. */
static esdm_status
ask(esdm_session *session, const char *query, const char *pins, const uint64_t *among,
    size_t namong, esdm__question *ret, esdm_error *err)
{
    esdm_meta_condition conditions[CONDITIONS_MOST];
    const char *expressions[CONDITIONS_MOST];
    size_t count = 0, nexpressions = 0;
    esdm__question question = {.among = among, .namong = namong};
    esdm_status status = ESDM_OK;
    char *text = strdup(query + 1);
    if (text == NULL)
        return esdm__error_nomem(err, strlen(query), "a query");
    char *rest = NULL;
    esdm__plain_locale locale;
    status = esdm__plain_locale_enter(&locale, err);
    bool entered = status == ESDM_OK;
    for (char *part = strtok_r(text, "&", &rest); part != NULL && status == ESDM_OK;
         part = strtok_r(NULL, "&", &rest)) {
        char *whole = strchr(part, '%') != NULL ? strdup(part) : NULL;
        if (whole != NULL)
            decode(whole);
        bool expression = esdm__part_is_expression(whole != NULL ? whole : part);
        free(whole);
        if (expression && nexpressions < CONDITIONS_MOST) {
            decode(part);
            expressions[nexpressions++] = part;
        } else {
            status = condition_of(session->site, part, &question, conditions, &count, err);
        }
    }
    if (entered)
        esdm__plain_locale_leave(&locale);
    if (status == ESDM_OK && count + nexpressions == 0)
        status = esdm__error_set(err, ESDM_EINVAL,
                                 "query '%s' has no condition: ?source_id=MPI-ESM1-2-LR&table_id="
                                 "Amon has two",
                                 query);
    if (status == ESDM_OK && pins != NULL)
        status = esdm__pins_read(pins, &question, err);
    else if (status == ESDM_OK)
        status = find(session, conditions, count, expressions, nexpressions, &question, err);
    if (status == ESDM_OK && question.count == 0 && among == NULL) {
        char why[ESDM_ERROR_MESSAGE_BYTES];
        esdm__question_why(session, text, conditions, count, expressions, nexpressions, why,
                           sizeof why);
        if (why[0] == '\0' && question.nelsewhere > 0)
            (void) snprintf(why, sizeof why, "%zu elsewhere have it, none within '%.200s'",
                            question.nelsewhere, question.within[0]);
        status = esdm__error_set(err, ESDM_ENOENT, "no container has what '%.200s' asks for%s%s",
                                 query, why[0] != '\0' ? ": " : "", why);
    }
    free(text);
    if (status == ESDM_OK && question.count > ESDM__MEMBERS_MOST)
        status = esdm__error_set(err, ESDM_ENOTSUP,
                                 "'%s' finds more than %u containers, too many to open as one",
                                 query, ESDM__MEMBERS_MOST);
    question.among = NULL;
    if (status != ESDM_OK)
        esdm__question_clear(&question);
    else
        *ret = question;
    return status;
}

esdm_status
esdm__question_ask(esdm_session *session, const char *query, const char *pins, esdm__question *ret,
                   esdm_error *err)
{
    return ask(session, query, pins, NULL, 0, ret, err);
}

esdm_status
esdm__question_ask_among(esdm_session *session, const char *query, const uint64_t *among,
                         size_t namong, esdm__question *ret, esdm_error *err)
{
    return ask(session, query, NULL, among, namong, ret, err);
}

void
esdm__question_clear(esdm__question *question)
{
    for (size_t i = 0; i < question->count; i++)
        free(question->names[i]);
    free(question->names);
    free(question->pins);
    free(question->ensemble);
    free(question->accuracy);
    free(question->across);
    for (size_t i = 0; i < question->nwithout; i++)
        free(question->without[i]);
    free(question->without);
    for (size_t i = 0; i < question->nwithin; i++)
        free(question->within[i]);
    free(question->within);
    *question = (esdm__question){0};
}
