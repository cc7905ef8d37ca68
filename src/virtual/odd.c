/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Which of two members that do not fit is the odd one out, and how a query leaves it out. */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "io/session/session.h"
#include "query/view.h"
#include "virtual/parts.h"

/** Shorter histories say too little to tell what was made of what. */
#define HISTORY_LEAST 10u
/** Names up to this length are given in full. */
#define NAME_SHOWN 100u

char *
esdm__global_text(esdm_container *container, const char *name)
{
    esdm_attribute a;
    if (!esdm_attribute_find(esdm_group_attributes(esdm_container_root(container)), name, &a,
                             NULL) ||
        a.count == 0)
        return NULL;
    if (a.type == ESDM_TYPE_CHAR) { /* no NUL ends it */
        char *copy = calloc((size_t) a.count + 1, 1);
        return copy != NULL ? memcpy(copy, a.values, (size_t) a.count) : NULL;
    }
    const char *text =
        a.type == ESDM_TYPE_STRING && a.count == 1 ? *(const char *const *) a.values : NULL;
    return text != NULL ? strdup(text) : NULL;
}

bool
esdm__same_frequency(const char *one, const char *other)
{
    one += strspn(one, " ");
    other += strspn(other, " ");
    size_t n = strcspn(one, " ");
    return n == strcspn(other, " ") && strncasecmp(one, other, n) == 0;
}

/* ---- what was made of what ------------------------------------------------------------------ */

static bool
is_part_of_name(char c)
{
    return isalnum((unsigned char) c) || c == '_' || c == '-' || c == '.' || c == '/';
}

static bool
mentions(const char *history, const char *name)
{
    const char *found = NULL;
    size_t bytes = strlen(name);
    if (bytes < 3)
        return false;
    for (const char *at = history; (found = strstr(at, name)) != NULL; at = found + 1) {
        bool begins = found == history || !is_part_of_name(found[-1]) ||
                      (found - history >= 7 && strncmp(found - 7, "esdm://", 7) == 0);
        if (begins && !is_part_of_name(found[bytes]))
            return true;
    }
    return false;
}

/* Most programs put their line before the history of what they read, some behind it. */
static bool
continues(const char *history, const char *former)
{
    size_t n = strlen(history);
    size_t m = strlen(former);
    if (m < HISTORY_LEAST || n <= m + 1)
        return false;
    return (history[n - m - 1] == '\n' && strcmp(history + n - m, former) == 0) ||
           (history[m] == '\n' && strncmp(history, former, m) == 0);
}

typedef struct side {
    const esdm__virtual_member *member;
    char *history;   /* owned; NULL: none */
    char *frequency; /* owned; NULL: none */
} side;

static bool
is_made_of(const side *result, const side *source, const char *said)
{
    const char *mine = result->history;
    const char *other = source->history != NULL ? source->history : "";
    if (mine == NULL)
        return false;
    if (continues(mine, other))
        return true;
    return (mentions(mine, said) && !mentions(other, said)) ||
           (mentions(mine, source->member->name) && !mentions(other, result->member->name));
}

static esdm_status
look_at_side(esdm__virtual *whole, size_t i, side *ret, esdm_error *err)
{
    esdm_container *container = NULL;
    *ret = (side){.member = &whole->members.items[i]};
    esdm_status status = esdm__member_use(&whole->members, i, &container, err);
    if (status != ESDM_OK)
        return status;
    ret->history = esdm__global_text(container, "history");
    ret->frequency = esdm__global_text(container, "frequency");
    esdm__member_release(&whole->members, i);
    return ESDM_OK;
}

static void
side_clear(side *s)
{
    free(s->history);
    free(s->frequency);
}

bool
esdm__member_is_made_of(esdm__virtual *whole, size_t result, size_t source)
{
    side a = {0};
    side b = {0};
    esdm_error unused = {0};
    bool made = look_at_side(whole, result, &a, &unused) == ESDM_OK &&
                look_at_side(whole, source, &b, &unused) == ESDM_OK &&
                is_made_of(&a, &b, whole->said);
    side_clear(&a);
    side_clear(&b);
    return made;
}

/* ---- how it is left out --------------------------------------------------------------------- */

/* A value as a query says it. */
static void
put_encoded(esdm__buffer *out, const char *text, const char *special)
{
    char code[8];
    for (; *text != '\0'; text++) {
        bool plain = *text != '&' && *text != '%';
        int n = plain
                    ? snprintf(code, sizeof code, "%s%c", strchr(special, *text) ? "\\" : "", *text)
                    : snprintf(code, sizeof code, "%%%02X", (unsigned) *text);
        esdm__buffer_put(out, code, (size_t) n);
    }
}

static void
put(esdm__buffer *out, const char *text)
{
    esdm__buffer_put(out, text, strlen(text));
}

/* The query that finds what is at a place of a view. @return false: there is none. */
static bool
put_query_of_view(const esdm__site *site, const char *said, esdm__buffer *out)
{
    esdm__view_path path;
    esdm_error unused = {0};
    bool complete = true;
    if (!esdm__view_is_said(site, said) ||
        esdm__view_path_parse(site, said, &path, &unused) != ESDM_OK)
        return false;
    for (size_t i = 0; i < path.depth && complete; i++) {
        char *value = NULL;
        complete = esdm__view_value(path.components[i], &value) && value != NULL;
        if (!complete)
            break;
        put(out, i == 0 ? "esdm://?" : "&");
        put(out, path.view->levels[i].attribute);
        put(out, "=");
        put_encoded(out, value, "");
        free(value);
    }
    esdm__view_path_clear(&path);
    return complete && !out->failed;
}

static void
put_condition(const side *kept, const side *odd, esdm__buffer *out)
{
    const char *name = odd->member->name;
    const char *file = strrchr(name, '/');
    if (kept->frequency != NULL && odd->frequency != NULL &&
        !esdm__same_frequency(kept->frequency, odd->frequency)) {
        put(out, "&frequency=");
        put_encoded(out, kept->frequency, "");
        return;
    }
    put(out, "&without=");
    if (strlen(name) > NAME_SHOWN && file != NULL) {
        put(out, "*");
        name = file;
    }
    put_encoded(out, name, "*?[\\");
}

/* Who has computed much finds all of it in the way, one after the other: where one folder has what
 * is wanted it can be said at once. */
static void
put_folder(const char *kept, const char *odd, esdm__buffer *out)
{
    size_t n = strcspn(kept, "/");
    char folder[NAME_SHOWN + 1];
    if (kept[n] == '\0' || n > NAME_SHOWN || strncmp(kept, odd, n + 1) == 0)
        return;
    (void) snprintf(folder, sizeof folder, "%.*s", (int) n, kept);
    put(out, "; &within=");
    put_encoded(out, folder, "*?[\\");
    put(out, " takes only what lies there");
}

static void
put_advice(const esdm__virtual *whole, const side *kept, const side *odd, bool made,
           esdm__buffer *out)
{
    const char *name = odd->member->name;
    const char *file = strrchr(name, '/');
    esdm__buffer query = {0};
    if (whole->said[0] == '?') {
        put(out, "; add ");
    } else if (put_query_of_view(whole->members.session->site, whole->said, &query)) {
        put(out, "; open ");
        esdm__buffer_put(out, query.data, query.bytes);
    } else {
        put(out, "; open a query with ");
    }
    esdm__buffer_clear(&query);
    put_condition(kept, odd, out);
    put(out, " to leave '");
    put(out, strlen(name) > NAME_SHOWN && file != NULL ? file + 1 : name);
    put(out, made ? "' out: its history says that it was made of the others" : "' out");
    if (whole->said[0] == '?' && strstr(whole->said, "within=") == NULL)
        put_folder(kept->member->name, name, out);
}

/* The end of the message must not be cut when names are put before it. */
void
esdm__error_advise(esdm_error *err, const char *said, const char *advice, size_t bytes)
{
    size_t before = said == NULL ? 0 : strlen(said) < 300 ? strlen(said) + 5 : 305;
    if (err == NULL)
        return;
    size_t most = sizeof err->message - 1;
    if (bytes + before + 40 > most)
        return;
    size_t n = strlen(err->message);
    if (n + bytes + before > most) {
        n = most - bytes - before - 3;
        while (n > 0 && ((unsigned char) err->message[n] & 0xc0u) == 0x80u)
            n--;
        memcpy(err->message + n, "...", 3);
        n += 3;
    }
    memcpy(err->message + n, advice, bytes);
    err->message[n + bytes] = '\0';
}

esdm_status
esdm__odd_one_out(esdm__virtual *whole, size_t one, size_t other, esdm_error *err)
{
    side a = {0};
    side b = {0};
    esdm_error unused = {0};
    esdm__buffer advice = {0};
    if (whole->said == NULL || whole->members.items[one].joined ||
        whole->members.items[other].joined)
        return ESDM_EINVAL;
    if (look_at_side(whole, one, &a, &unused) == ESDM_OK &&
        look_at_side(whole, other, &b, &unused) == ESDM_OK) {
        bool second = is_made_of(&b, &a, whole->said);
        bool first = !second && is_made_of(&a, &b, whole->said);
        if (first || second)
            __atomic_store_n(&whole->results, true, __ATOMIC_RELAXED);
        if (first || (!second && a.member->modified_ns > b.member->modified_ns))
            put_advice(whole, &b, &a, first, &advice);
        else
            put_advice(whole, &a, &b, second, &advice);
        if (!advice.failed)
            esdm__error_advise(err, whole->said, (const char *) advice.data, advice.bytes);
    }
    esdm__buffer_clear(&advice);
    side_clear(&a);
    side_clear(&b);
    return ESDM_EINVAL;
}
