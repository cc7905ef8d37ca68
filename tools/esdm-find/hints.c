/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Why an expression that is right found nothing. */

#include <string.h>

#include "esdm-find/find.h"

/* Looking at more matches, or naming more values, would not help anybody. */
#define ROWS_MOST   10000
#define VALUES_MOST 6
/* Hints never cost more than a moment: one question, and all of them. */
#define QUESTION_MOST_MS 300
#define HINTS_MOST_US    (G_USEC_PER_SEC * 4 / 5)

/* Of all hints of a run. */
static bool
is_late(void)
{
    static gint64 begun;
    if (begun == 0)
        begun = g_get_monotonic_time();
    return g_get_monotonic_time() - begun > HINTS_MOST_US;
}

/* ---- names -------------------------------------------------------------------------------- */

static bool
tell_name(const char *text, void *user)
{
    *(bool *) user = true;
    g_autofree char *printable = tool_printable(text);
    tool_error("%s", printable);
    return true;
}

/* ---- parts -------------------------------------------------------------------------------- */

/* Behind a text in quotes. */
static const char *
skip_quoted(const char *at)
{
    const char quote = *at++;
    while (*at != '\0' && *at != quote)
        at += *at == '\\' && at[1] != '\0' ? 2 : 1;
    return *at == quote ? at + 1 : at;
}

static bool
is_word(const char *text, const char *at, const char *word)
{
    size_t bytes = strlen(word);
    return (at == text || strchr(" \t\n)", at[-1]) != NULL) &&
           g_ascii_strncasecmp(at, word, bytes) == 0 && at[bytes] != '\0' &&
           strchr(" \t\n(", at[bytes]) != NULL;
}

/* The text between brackets that stand around all of it; else NULL. Owned. */
static char *
inner(const char *text)
{
    const char *at = text + 1;
    for (int depth = 1; *text == '(' && *at != '\0' && depth > 0;) {
        depth += (*at == '(') - (*at == ')');
        at = *at == '"' || *at == '\'' ? skip_quoted(at) : at + 1;
    }
    size_t bytes = strlen(text);
    return *text == '(' && at == text + bytes && at[-1] == ')' ? g_strndup(text + 1, bytes - 2)
                                                               : NULL;
}

/* Adds the parts that "and" joins. An expression with "or" is one part. */
static void
add_parts(const char *expression, GPtrArray *parts)
{
    g_autofree char *text = g_strstrip(g_strdup(expression));
    g_autofree char *within = inner(text);
    if (within != NULL) {
        add_parts(within, parts);
        return;
    }
    g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func(g_free);
    const char *begin = text;
    int depth = 0;
    for (const char *at = text; *at != '\0';) {
        if (depth == 0 && is_word(text, at, "or")) {
            g_ptr_array_set_size(found, 0);
            begin = text;
            break;
        }
        if (depth == 0 && is_word(text, at, "and")) {
            g_ptr_array_add(found, g_strndup(begin, (gsize) (at - begin)));
            begin = at += 3;
            continue;
        }
        depth += (*at == '(') - (*at == ')');
        at = *at == '"' || *at == '\'' ? skip_quoted(at) : at + 1;
    }
    if (found->len == 0) {
        g_ptr_array_add(parts, g_strdup(text));
        return;
    }
    for (guint i = 0; i < found->len; i++)
        add_parts(g_ptr_array_index(found, i), parts);
    add_parts(begin, parts);
}

/* ---- values ------------------------------------------------------------------------------- */

typedef struct value_search {
    const char *wanted;
    GPtrArray *near, *all; /* owned texts */
    guint rows;
} value_search;

/* Letters and digits alone, as names are written with all kinds of signs between them. Owned. */
static char *
plain(const char *text)
{
    g_autofree char *folded = g_utf8_casefold(text, -1);
    GString *kept = g_string_new(NULL);
    for (const char *at = folded; *at != '\0'; at = g_utf8_next_char(at)) {
        gunichar c = g_utf8_get_char(at);
        if (g_unichar_isalnum(c))
            g_string_append_unichar(kept, c);
    }
    return g_string_free(kept, FALSE);
}

/* How many bytes are to be changed, added or left out. */
static guint
distance(const char *a, const char *b)
{
    guint bytes = (guint) strlen(b);
    g_autofree guint *row = g_new(guint, bytes + 1);
    for (guint j = 0; j <= bytes; j++)
        row[j] = j;
    for (guint i = 1; a[i - 1] != '\0'; i++) {
        guint corner = row[0];
        row[0] = i;
        for (guint j = 1; j <= bytes; j++) {
            guint change = corner + (a[i - 1] != b[j - 1]);
            corner = row[j];
            row[j] = MIN(MIN(row[j], row[j - 1]) + 1, change);
        }
    }
    return row[bytes];
}

/* One is in the other, or a slip away. */
static bool
is_near(const char *text, const char *wanted)
{
    g_autofree char *a = plain(text);
    g_autofree char *b = plain(wanted);
    size_t shorter = MIN(strlen(a), strlen(b));
    return shorter > 0 && (strstr(a, b) != NULL || strstr(b, a) != NULL ||
                           (shorter < 100 && strlen(a) < 2 * shorter && strlen(b) < 2 * shorter &&
                            distance(a, b) <= 1 + shorter / 8));
}

static bool
note_value(const esdm_match *match, const esdm_find_value *values, void *user)
{
    value_search *s = user;
    const char *text = values[0].text;
    (void) match;
    if (text != NULL && g_utf8_validate(text, -1, NULL) &&
        !g_ptr_array_find_with_equal_func(s->all, text, g_str_equal, NULL) && s->all->len < 1000) {
        g_ptr_array_add(s->all, g_strdup(text));
        if (is_near(text, s->wanted))
            g_ptr_array_add(s->near, g_strdup(text));
    }
    return ++s->rows < ROWS_MOST && !is_late();
}

/* The values that there are, if they are few, else those like the one wanted. "" or owned. */
static char *
values_near(esdm_session *session, const char *part)
{
    g_autoptr(GRegex) equals = g_regex_new(
        "^(?:[^\\s:=!<>~]*:)?([^\\s:=!<>~'\"]+)\\s*==?\\s*([\"']?)([^\"']+)\\2$", 0, 0, NULL);
    g_autoptr(GMatchInfo) info = NULL;
    if (equals == NULL || !g_utf8_validate(part, -1, NULL) ||
        !g_regex_match(equals, part, 0, &info))
        return g_strdup("");
    g_autofree char *name = g_match_info_fetch(info, 1);
    g_autofree char *wanted = g_match_info_fetch(info, 3);
    g_autofree char *expression = g_strdup_printf("exists %s", name);
    const char *columns[] = {name};
    value_search s = {.wanted = wanted,
                      .near = g_ptr_array_new_with_free_func(g_free),
                      .all = g_ptr_array_new_with_free_func(g_free)};
    GString *text = g_string_new(NULL);
    esdm_error err = {0};
    const esdm_find_order first = {.limit = ROWS_MOST};
    esdm_status status =
        esdm_find_sorted(session, expression, columns, 1, &first, note_value, &s, &err);
    bool some = s.rows > 0 || status == ESDM_ETIMEDOUT;
    if (status == ESDM_OK || status == ESDM_ETIMEDOUT) {
        const GPtrArray *shown = s.near->len > 0 || s.all->len > VALUES_MOST ? s.near : s.all;
        for (guint i = 0; i < shown->len && i < VALUES_MOST; i++) {
            g_autofree char *value = tool_printable(g_ptr_array_index(shown, i));
            g_string_append_printf(text, "%s%s", i == 0 ? "; there is " : ", ", value);
        }
        if (shown->len > VALUES_MOST)
            g_string_append(text, ", …");
        if (shown->len == 0 && some)
            g_string_append_printf(text, "; esdm-find --facets %s '%s' shows what there is", name,
                                   expression);
    }
    g_ptr_array_unref(s.near);
    g_ptr_array_unref(s.all);
    return g_string_free(text, FALSE);
}

/* ---- ranges that nobody knows --------------------------------------------------------------- */

static bool
count_match(const esdm_match *match, void *user)
{
    (void) match;
    guint *count = user;
    return ++*count < ROWS_MOST;
}

static bool
note_match(const esdm_match *match, void *user)
{
    (void) match;
    *(bool *) user = true;
    return false;
}

/* What esdm-ln has saved has this attribute. */
#define IS_VIRTUAL "exists :esdm_query"

static esdm_status
count_unknown(esdm_session *session, const char *variable, bool virtual, guint *ret_count)
{
    g_autofree char *expression =
        g_strdup_printf("(exists %s:units or exists %s:long_name or exists %s:standard_name) and "
                        "not (max(%s) > -1.7e308) and %s" IS_VIRTUAL,
                        variable, variable, variable, variable, virtual ? "" : "not ");
    esdm_error err = {0};
    return esdm_find(session, expression, count_match, ret_count, &err);
}

/* They have the ranges of their members, unless one of these has none. */
static void
tell_virtual(esdm_session *session, const char *variable)
{
    guint count = 0;
    g_autofree char *name = tool_printable(variable);
    if (count_unknown(session, variable, true, &count) != ESDM_OK || count == 0)
        return;
    tool_error("%s%u virtual container%s (esdm-ln) %s '%s', but the range of some member is not "
               "known, so %s "
               "not found (what was saved before such ranges were noted has some after "
               "esdm-mkfs --reindex, or when it was opened)",
               count == ROWS_MOST ? "more than " : "", count, count == 1 ? "" : "s",
               count == 1 ? "has" : "have", name, count == 1 ? "it is" : "they are");
}

/* Of those that were saved before there were ranges of members the index has none at all. */
static void
tell_virtual_places(esdm_session *session)
{
    static const char unknown[] =
        IS_VIRTUAL " and not (time overlaps 0001-01-01 .. 9999-12-31) and not (box overlaps "
                   "-180,-90,180,90)";
    guint count = 0;
    esdm_error err = {0};
    if (esdm_find(session, unknown, count_match, &count, &err) == ESDM_OK && count > 0)
        tool_error("%s%u virtual container%s (esdm-ln) %s no known time and no known place, so %s "
                   "not found by them (what was saved before these were noted has some after "
                   "esdm-mkfs --reindex, or when it was opened)",
                   count == ROWS_MOST ? "more than " : "", count, count == 1 ? "" : "s",
                   count == 1 ? "has" : "have", count == 1 ? "it is" : "they are");
}

static void
tell_unknown_range(esdm_session *session, const char *variable, bool nothing)
{
    guint count = 0;
    g_autofree char *name = tool_printable(variable);
    esdm_status status = count_unknown(session, variable, false, &count);
    if (status == ESDM_OK)
        tell_virtual(session, variable);
    if (status == ESDM_ETIMEDOUT && nothing)
        tool_error("containers whose '%s' has no known range are not found, if there are any: its "
                   "values lie in files (esdm-ref), or all of them are missing",
                   name);
    if (status != ESDM_OK || count == 0)
        return;
    tool_error("%s%u container%s '%s', but nobody knows its range, so %s not found: its values lie "
               "in files (esdm-ref), or all of them are missing",
               count == ROWS_MOST ? "more than " : "", count, count == 1 ? " has" : "s have", name,
               count == 1 ? "it is" : "they are");
}

/* What the index does not know the times of, and meets the rest of the expression: calendars and
 * units that are none of the CF conventions', times that all are missing, or no coordinate. What is
 * said of a variable is met by no other one, so the dimension stands for the coordinate. Owned. */
static char *
with_unknown_times(const char *expression)
{
    static const char unknown[] = "(length(time) >= 1 and not (time overlaps -1000000 .. 1000000))";
    static const char date[] = "[-+]?\\d{4,7}(?:-\\d+)*(?:[T ]\\d+(?::\\d+)*Z?)?";
    g_autofree char *pattern = g_strdup_printf(
        "(?<![\\w:])(?:[\\w.+-]+:)?time\\s+overlaps\\s+%s(?:\\s*\\.\\.\\s*%s)?", date, date);
    g_autoptr(GRegex) asks = g_regex_new(pattern, 0, 0, NULL);
    g_autoptr(GRegex) without = g_regex_new("(?<![\\w:])not\\b.*\\soverlaps\\s", 0, 0, NULL);
    if (asks == NULL || without == NULL || !g_regex_match(asks, expression, 0, NULL) ||
        g_regex_match(without, expression, 0, NULL))
        return NULL;
    return g_regex_replace_literal(asks, expression, -1, 0, unknown, 0, NULL);
}

static bool
note_container(const esdm_match *match, void *user)
{
    (void) g_hash_table_add(user, g_strdup(match->container));
    return g_hash_table_size(user) < ROWS_MOST;
}

static void
tell_unknown_times(esdm_session *session, const char *expression)
{
    g_autofree char *unknown = with_unknown_times(expression);
    g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    esdm_error err = {0};
    if (unknown == NULL || esdm_find(session, unknown, note_container, names, &err) != ESDM_OK)
        return;
    guint count = g_hash_table_size(names);
    if (count > 0)
        tool_error("%s%u container%s a dimension 'time', but nobody knows the dates, so %s not "
                   "found by them: units or calendar are none that the CF conventions have "
                   "(ncdump -h shows them), all times are missing, or there is no coordinate",
                   count == ROWS_MOST ? "more than " : "", count, count == 1 ? " has" : "s have",
                   count == 1 ? "it is" : "they are");
}

void
find_tell_ranges(esdm_session *session, const char *expression, bool nothing)
{
    esdm_error err = {0};
    g_autoptr(GRegex) asks = g_regex_new(
        "(?:^|[\\s(])(?:max|min)\\s*\\(\\s*([A-Za-z_][A-Za-z0-9_.+-]*)\\s*\\)", 0, 0, NULL);
    g_autoptr(GRegex) places = g_regex_new("(?:^|[\\s(:])(?:time|box)\\s+overlaps\\s", 0, 0, NULL);
    g_autoptr(GMatchInfo) info = NULL;
    g_autoptr(GHashTable) told = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    if (asks == NULL || !g_utf8_validate(expression, -1, NULL))
        return;
    if (esdm_find_limit(session, QUESTION_MOST_MS, &err) != ESDM_OK)
        return;
    if (places != NULL && g_regex_match(places, expression, 0, NULL))
        tell_virtual_places(session);
    tell_unknown_times(session, expression);
    (void) g_regex_match(asks, expression, 0, &info);
    for (; g_match_info_matches(info) && !is_late(); (void) g_match_info_next(info, NULL)) {
        char *variable = g_match_info_fetch(info, 1);
        if (!g_hash_table_contains(told, variable))
            tell_unknown_range(session, variable, nothing);
        (void) g_hash_table_add(told, variable);
    }
}

/* ---- columns, keys and facets --------------------------------------------------------------- */

/* Of the question that stands for one name: neither its column nor a comparison is anybody's. */
static bool
tell_attribute(const char *text, void *user)
{
    const char *behind = g_str_has_prefix(text, "query, column ") ? strstr(text, ": ") : NULL;
    g_autofree char *printable = tool_printable(behind != NULL ? behind + 2 : text);
    char *meant = strstr(printable, "; did you mean '");
    if (meant != NULL && strstr(meant, " overlaps ") != NULL)
        *meant = '\0';
    tool_error("--%s: %s", (const char *) user, printable);
    return true;
}

void
find_tell_names(esdm_session *session, const find_options *options)
{
    char *const lists[] = {options->columns, options->sort, options->facets};
    char option[][8] = {"columns", "sort", "facets"};
    g_autoptr(GHashTable) asked = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    esdm_error err = {0};
    if (esdm_find_limit(session, QUESTION_MOST_MS, &err) != ESDM_OK)
        return;
    for (gsize i = 0; i < G_N_ELEMENTS(lists); i++) {
        g_auto(GStrv) names = g_strsplit(lists[i] != NULL ? lists[i] : "", ",", -1);
        for (guint k = 0; names[k] != NULL && !is_late(); k++) {
            const char *name = names[k] + (lists[i] == options->sort && names[k][0] == '-');
            g_autofree char *expression = g_strdup_printf("exists %s", name);
            if (g_hash_table_add(asked, g_strdup(name)) &&
                esdm_find_explain(session, expression, tell_attribute, option[i], &err) != ESDM_OK)
                return; /* a hint is not worth an error */
        }
    }
}

/* ---- all ---------------------------------------------------------------------------------- */

void
find_tell_why(esdm_session *session, const char *expression)
{
    esdm_error err = {0};
    bool told = false;
    if (is_late() || esdm_find_limit(session, QUESTION_MOST_MS, &err) != ESDM_OK)
        return;
    if (esdm_find_explain(session, expression, tell_name, &told, &err) != ESDM_OK || told)
        return;
    g_autoptr(GPtrArray) parts = g_ptr_array_new_with_free_func(g_free);
    add_parts(expression, parts);
    for (guint i = 0; i < parts->len; i++) {
        const char *part = g_ptr_array_index(parts, i);
        bool found = false;
        if (is_late())
            return;
        esdm_status status = esdm_find(session, part, note_match, &found, &err);
        found |= status == ESDM_ETIMEDOUT; /* so long with what many meet */
        if (status != ESDM_OK && status != ESDM_ETIMEDOUT)
            return; /* it was taken apart wrongly */
        if (found)
            continue;
        g_autofree char *values = values_near(session, part);
        g_autofree char *printable = tool_printable(part);
        tool_error("nothing has %s%s", printable, values);
        told = true;
    }
    if (!told && parts->len > 1)
        tool_error("each of the %u conditions is met by something, but nothing meets all of them",
                   parts->len);
}
