/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Names that were perhaps meant, and 'NAME: QUANTITIES'. */

#include <string.h>

#include "common/common.h"

/* How many letters have to be changed, put in or left out. */
static guint
edit_distance(const char *a, const char *b)
{
    size_t n = strlen(b);
    g_autofree guint *row = g_new(guint, n + 1);
    for (size_t j = 0; j <= n; j++)
        row[j] = (guint) j;
    for (guint i = 0; a[i] != '\0'; i++) {
        guint diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 1; j <= n; j++) {
            guint same = diagonal + (g_ascii_tolower(a[i]) != g_ascii_tolower(b[j - 1]));
            diagonal = row[j];
            row[j] = MIN(same, MIN(row[j], row[j - 1]) + 1);
        }
    }
    return row[n];
}

guint
tool_likeness(const char *word, const char *known)
{
    size_t letters = strlen(known);
    if (letters > 256 || strlen(word) > 256)
        return 0;
    guint distance = edit_distance(word, known);
    /* Half of the letters must be right, or one is only guessing. */
    return distance <= letters / 2 ? G_MAXUINT - distance : 0;
}

bool
tool_wish_split(const char *option, char **ret_pattern, const char **ret_text)
{
    const char *colon = strchr(option, ':');
    if (colon == NULL)
        return false;
    const char *text = colon + 1 + strspn(colon + 1, " \t\n;,");
    g_autofree char *pattern = g_strstrip(g_strndup(option, (gsize) (colon - option)));
    if (pattern[0] == '\0' || text[0] == '\0')
        return false;
    *ret_pattern = g_steal_pointer(&pattern);
    *ret_text = text;
    return true;
}
