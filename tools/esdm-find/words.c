/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Words where an expression is to be, as in "esdm-find temperature": which expressions find
 * something by them. */

#include <stdio.h>
#include <string.h>

#include "esdm-find/find.h"

/* Each question, in all of which a person does not wait. */
#define QUESTION_MOST_MS 200
#define COUNT_MOST       10000
#define NAMES_MOST       4

/* Attributes that say in one word what data are. */
static const char *const usual[] = {
    "variable_id", "standard_name",  "source_id",     "experiment_id", "table_id",   "frequency",
    "realm",       "institution_id", "variant_label", "activity_id",   "project_id", "domain_id",
    "model_id",    "experiment",     "model",         "grid_label"};

/* Of these a part of the value may be said. */
static const char *const parts[] = {"source_id", "experiment_id", "institution_id", "model",
                                    "experiment"};

typedef struct telling {
    esdm_session *session;
    unsigned told;
} telling;

static bool
is_words(const char *text)
{
    static const char *const others[] = {"and", "or", "not", "exists", "in", "overlaps"};
    if (strpbrk(text, "=!<>~(),:*?[]{}") != NULL)
        return false;
    g_auto(GStrv) words = g_strsplit_set(text, " \t\n", -1);
    for (guint i = 0; words[i] != NULL; i++) {
        for (guint k = 0; k < G_N_ELEMENTS(others); k++) {
            if (g_ascii_strcasecmp(words[i], others[k]) == 0)
                return false;
        }
    }
    return true;
}

bool
find_are_words(char **arguments)
{
    for (; *arguments != NULL; arguments++) {
        if (!is_words(*arguments))
            return false;
    }
    return true;
}

typedef struct counting {
    char *last; /* owned */
    guint count;
} counting;

static bool
count_container(const esdm_match *match, void *user)
{
    counting *c = user;
    if (g_strcmp0(c->last, match->container) == 0)
        return true;
    g_free(c->last);
    c->last = g_strdup(match->container);
    return ++c->count < COUNT_MOST;
}

/* Tells an expression if it finds something. */
static void
tell(telling *t, const char *expression, const char *about)
{
    counting c = {0};
    esdm_error err = {0};
    esdm_status status = esdm_find(t->session, expression, count_container, &c, &err);
    g_free(c.last);
    if (c.count == 0 || (status != ESDM_OK && status != ESDM_ETIMEDOUT))
        return;
    g_autofree char *shown = tool_printable(expression);
    bool more = c.count == COUNT_MOST || status == ESDM_ETIMEDOUT;
    if (t->told++ == 0)
        (void) fprintf(stderr, "These find something:\n");
    (void) fprintf(stderr, "  esdm-find -c '%s'   # %s%u container%s: %s\n", shown,
                   more ? "more than " : "", c.count, c.count == 1 ? "" : "s", about);
}

static bool
tell_standard_name(size_t name, const char *value, uint64_t containers, void *user)
{
    telling *t = user;
    g_autofree char *expression = g_strdup_printf("standard_name = %s", value);
    (void) name, (void) containers;
    tell(t, expression, "a standard name");
    return t->told < NAMES_MOST;
}

/* By the names of quantities, of which a word is a part. */
static void
tell_standard_names(telling *t, const char *word)
{
    static const char *const names[] = {"standard_name"};
    g_autofree char *part = g_ascii_strdown(word, -1);
    g_autofree char *expression =
        g_strdup_printf("standard_name ~ \"*%s*\"", g_strdelimit(part, " -", '_'));
    esdm_error err = {0};
    (void) !esdm_find_facets(t->session, expression, names, 1, tell_standard_name, t, &err);
}

/* What is said in words about times, places and levels, has a form of its own. */
static const char *
example_of(const char *words)
{
    static const char *const forms[][2] = {
        {"time", "time overlaps 1990-01 .. 2000-12"},
        {"year", "time overlaps 1990-01 .. 2000-12"},
        {"box", "box overlaps -10,35,40,70"},
        {"level", "level overlaps 500 .. 850 hPa"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(forms); i++)
        if (g_ascii_strncasecmp(words, forms[i][0], strlen(forms[i][0])) == 0)
            return forms[i][1];
    return "standard_name = air_temperature";
}

tool_exit
find_tell_words(esdm_session *session, const char *said)
{
    telling t = {.session = session};
    esdm_error err = {0};
    g_autofree char *text = g_strdelimit(g_strdup(said), "'\"\\", ' ');
    const char *words = g_strstrip(text);
    g_autofree char *shown = tool_printable(words);
    tool_error("'%s' compares nothing: an expression is like %s", shown, example_of(words));
    if (*words == '\0' || esdm_find_limit(session, QUESTION_MOST_MS, &err) != ESDM_OK)
        return TOOL_USAGE;
    bool one = strpbrk(words, " \t\n") == NULL;
    for (guint i = 0; i < G_N_ELEMENTS(usual); i++) {
        g_autofree char *expression =
            g_strdup_printf(one ? "%s = %s" : "%s = \"%s\"", usual[i], words);
        tell(&t, expression, "by that value");
    }
    for (guint i = 0; i < G_N_ELEMENTS(parts) && one && t.told == 0; i++) {
        g_autofree char *expression = g_strdup_printf("%s ~ *%s*", parts[i], words);
        tell(&t, expression, "it is in that value");
    }
    tell_standard_names(&t, words);
    g_autofree char *texts = g_strdup_printf("text ~ \"%s\"", words);
    tell(&t, texts, "in a title, a long name or a comment");
    g_autofree char *variable = g_strdup_printf("exists %s:units", words);
    g_autofree char *attribute = g_strdup_printf("exists %s", words);
    if (one) {
        tell(&t, variable, "a variable has that name");
        tell(&t, attribute, "an attribute has that name; --facets NAME counts its values");
    }
    if (t.told == 0)
        (void) fprintf(
            stderr,
            "Nothing has it as a value of %s, …, in a title, a long name or a comment, nor as "
            "the name of a variable or an attribute.\nesdm-find --facets "
            "source_id,experiment_id,variable_id "
            "'exists Conventions' shows what there is.\n",
            usual[0]);
    (void) fprintf(stderr, "Try 'esdm-find --help'.\n");
    return TOOL_USAGE;
}
