/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file What $ESDM_NC_ROUTE calls the containers of a folder. */

#include "esdm-gc/search.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* What follows a name of which `above` is the beginning; NULL: it is not. */
const char *
gc_below(const char *name, const char *above)
{
    size_t bytes = strlen(above);
    while (bytes > 0 && above[bytes - 1] == '/')
        bytes--;
    if (strncmp(name, above, bytes) != 0)
        return NULL;
    return bytes == 0 || name[bytes] == '\0' ? name + bytes
           : name[bytes] == '/'              ? name + bytes + 1
                                             : NULL;
}

/* What a route calls the containers of a folder: NAME for what lies in the routed one, NAME/… below
 * it. NULL: the route is that of another folder. Owned. */
static char *
name_by_route(const char *routed, const char *name, const char *folder)
{
    char *real = realpath(routed, NULL);
    const char *rest = real != NULL ? gc_below(folder, real) : NULL;
    free(real);
    if (rest == NULL)
        return NULL;
    rest += strspn(rest, "/"); /* below the root */
    if (name[0] == '\0')
        return g_strdup(rest);
    return *rest != '\0' ? g_strdup_printf("%s/%s", name, rest) : g_strdup(name);
}

/* Splits the FOLDER of an entry where its first component with a wildcard begins; NULL: it has
 * none, or is a folder that is there. Owned. "*" alone stands for the whole file system. */
static char *
split_pattern(const char *entry, const char **ret_pattern)
{
    size_t length = strcspn(entry, "=");
    size_t fixed = strcspn(entry, "*?[");
    g_autofree char *folder = g_strndup(entry, length);
    if (fixed >= length || (strcmp(folder, "*") != 0 && g_file_test(folder, G_FILE_TEST_EXISTS)))
        return NULL;
    while (fixed > 0 && entry[fixed - 1] != '/')
        fixed--;
    *ret_pattern = entry + fixed;
    return strcmp(folder, "*") == 0 ? g_strdup("/")
           : fixed == 0             ? g_strdup(".")
                                    : g_strndup(entry, fixed);
}

/* Names go on from what lies before the first wildcard, so that a pattern is as good as that folder
 * (netcdf-plugin/router/routes.c). Takes and gives an owned FOLDER or FOLDER=NAME. */
static char *
without_pattern(char *entry)
{
    const char *pattern = NULL;
    g_autofree char *fixed = split_pattern(entry, &pattern);
    if (fixed == NULL)
        return entry;
    char *plain = g_strconcat(fixed, strchr(entry, '='), NULL);
    g_free(entry);
    return plain;
}

/* Whether files in a real folder may be routed by an entry. */
static bool
may_fit(const char *entry, const char *folder)
{
    const char *pattern = NULL;
    g_autofree char *fixed = split_pattern(entry, &pattern);
    if (fixed == NULL || strcspn(pattern, "=") == strspn(pattern, "*"))
        return true; /* "*" routes everything */
    char *real = realpath(fixed, NULL);
    const char *rest = real != NULL ? gc_below(folder, real) : NULL;
    bool fits = rest != NULL && *rest == '\0'; /* it may be files that fit */
    free(real);
    g_autofree char *wanted = g_strndup(pattern, strcspn(pattern, "="));
    for (size_t bytes = strlen(wanted); bytes > 0 && wanted[bytes - 1] == '/'; bytes--)
        wanted[bytes - 1] = '\0';
    g_autofree char *part = g_strdup(rest != NULL ? rest : "");
    for (char *end = part + strlen(part); !fits && end != NULL && end > part;
         end = strrchr(part, '/')) {
        *end = '\0';
        fits = fnmatch(wanted, part, FNM_PATHNAME) == 0;
    }
    return fits;
}

static GStrv
stated_routes(void)
{
    const char *stated = g_getenv("ESDM_NC_ROUTE");
    return g_strsplit(stated != NULL ? stated : "", ":", -1);
}

/* The entries of $ESDM_NC_ROUTE: FOLDER=NAME, or FOLDER alone. Owned. */
GStrv
gc_routes(void)
{
    GStrv entries = stated_routes();
    for (char **entry = entries; *entry != NULL; entry++)
        *entry = without_pattern(*entry);
    return entries;
}

/* What a route calls its containers; the entry is cut behind its folder. NULL: the folder's own
 * path would be their name, and it is not there. Owned. */
char *
gc_route_name(char *entry)
{
    char *name = strchr(entry, '=');
    if (name != NULL) {
        *name++ = '\0';
        return g_strdup(name + strspn(name, "/"));
    }
    char *real = realpath(entry, NULL);
    char *own = real != NULL ? g_strdup(real + 1) : NULL;
    free(real);
    return own;
}

/* By $ESDM_NC_ROUTE, whose first entry for the folder counts, else by the folder's own path. */
static char *
name_of(const char *folder)
{
    g_auto(GStrv) stated = stated_routes();
    g_auto(GStrv) entries = gc_routes();
    for (size_t i = 0; entries[i] != NULL; i++) {
        char **entry = &entries[i];
        if (!may_fit(stated[i], folder))
            continue;
        g_autofree char *name = gc_route_name(*entry);
        char *found = name != NULL ? name_by_route(*entry, name, folder) : NULL;
        if (found != NULL)
            return found;
    }
    return g_strdup(folder + 1);
}

/* The folder as routes see it, and the name of its containers. A folder that is there has no name
 * behind it, whatever it is called. NULL: no such folder. Both owned. */
char *
gc_split(const char *argument, char **ret_prefix)
{
    g_autofree char *copy = g_strdup(argument);
    char *name = g_file_test(argument, G_FILE_TEST_IS_DIR) ? NULL : strchr(copy, '=');
    if (name != NULL)
        *name++ = '\0';
    char *folder = realpath(copy, NULL);
    if (folder == NULL || !g_file_test(folder, G_FILE_TEST_IS_DIR)) {
        tool_error("there is no folder '%s'", copy);
        free(folder);
        return NULL;
    }
    *ret_prefix = name != NULL ? g_strdup(name + strspn(name, "/")) : name_of(folder);
    return folder;
}
