/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Containers that a question is not about: --without. */

#include <fnmatch.h>
#include <string.h>

#include "esdm-find/find.h"

const char *
find_name_of(const char *argument)
{
    static const char scheme[] = "esdm://";
    return g_ascii_strncasecmp(argument, scheme, sizeof scheme - 1) == 0
               ? argument + sizeof scheme - 1
               : tool_container(argument);
}

bool
find_is_left_out(const find_options *options, const char *container)
{
    for (char **name = options->without; name != NULL && *name != NULL; name++) {
        const char *pattern = find_name_of(*name);
        if (strcmp(container, pattern) == 0 || fnmatch(pattern, container, 0) == 0)
            return true;
    }
    return false;
}

/* ---- counts
 * -------------------------------------------------------------------------------
 */

typedef struct tally {
    char *value; /* owned */
    uint64_t count;
    uint64_t container; /* number of the one that was counted last */
} tally;

typedef struct counting {
    const find_options *options;
    GHashTable **tables; /* of each name: values */
    size_t nnames;
    char *last; /* container; owned */
    uint64_t container;
} counting;

static void
tally_free(gpointer one)
{
    g_free(((tally *) one)->value);
    g_free(one);
}

static void
count_value(counting *c, size_t name, const char *value)
{
    tally *one = g_hash_table_lookup(c->tables[name], value);
    if (one == NULL) {
        one = g_new0(tally, 1);
        one->value = g_strdup(value);
        (void) g_hash_table_insert(c->tables[name], one->value, one);
    }
    one->count += one->container != c->container;
    one->container = c->container;
}

/* They come by name: a container counts once for a value. */
static bool
visit_row(const esdm_match *match, const esdm_find_value *values, void *user)
{
    counting *c = user;
    if (find_is_left_out(c->options, match->container))
        return true;
    if (g_strcmp0(c->last, match->container) != 0) {
        g_free(c->last);
        c->last = g_strdup(match->container);
        c->container++;
    }
    for (size_t i = 0; i < c->nnames; i++) {
        if (values[i].text != NULL)
            count_value(c, i, values[i].text);
    }
    return true;
}

/* The most frequent first. */
static int
compare(gconstpointer a, gconstpointer b)
{
    const tally *x = a, *y = b;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return strcmp(x->value, y->value);
}

esdm_status
find_count_values(esdm_session *session, const char *expression, const find_options *options,
                  const char *const *names, size_t nnames, find_value_visitor visit, void *user,
                  esdm_error *err)
{
    bool more = true;
    if (options->without == NULL)
        return esdm_find_facets(session, expression, names, nnames, visit, user, err);
    counting c = {.options = options, .tables = g_new0(GHashTable *, nnames + 1), .nnames = nnames};
    for (size_t i = 0; i < nnames; i++)
        c.tables[i] = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, tally_free);
    esdm_status status = esdm_find_rows(session, expression, names, nnames, visit_row, &c, err);
    for (size_t i = 0; i < nnames; i++) {
        GList *sorted = g_list_sort(g_hash_table_get_values(c.tables[i]), compare);
        for (GList *at = sorted; at != NULL && more && status == ESDM_OK; at = at->next) {
            const tally *one = at->data;
            more = visit(i, one->value, one->count, user);
        }
        g_list_free(sorted);
        g_hash_table_unref(c.tables[i]);
    }
    g_free(c.tables);
    g_free(c.last);
    return status;
}
