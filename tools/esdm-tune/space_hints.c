/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Hints for files by MPI: striping of new files on Lustre, who writes for whom, through how much
 * memory. What a library does not know it leaves out. */
#include "esdm-tune/esdm-tune.h"

#include <string.h>

#include "watch/hints.h"

#define OPTION "--mpi-hint"

bool
tune_hint_is(const tune_parameter *p)
{
    return g_str_equal(p->section, TUNE_HINTS);
}

bool
tune_hint_is_size(const char *name)
{
    return g_str_equal(name, "striping_unit") || g_str_equal(name, "cb_buffer_size");
}

static bool
is_of_hint(const char *text)
{
    static const char others[] = TUNE_HINT_OTHERS;
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++)
        if (!g_ascii_isalnum(*text) && strchr(others, *text) == NULL)
            return false;
    return true;
}

bool
tune_hint_is_name(const char *text)
{
    return strlen(text) <= WATCH_HINT_KEY && is_of_hint(text);
}

bool
tune_hint_is_value(const char *name, const char *text)
{
    return strlen(name) + 1 + strlen(text) <= WATCH_HINT_BYTES && is_of_hint(text);
}

char *
tune_hint_option(const tune_parameter *p, guint value)
{
    if (tune_hint_is_size(p->key))
        return g_strdup_printf(OPTION "=%s=%.0f", p->key, p->x[value]);
    return g_strdup_printf(OPTION "=%s=%s", p->key, p->texts[value]);
}

/* Bytes of the longest line KEY=VALUE that a parameter can become. */
static gsize
longest_line(const tune_parameter *p)
{
    gsize most = 0;
    for (guint i = 0; i < p->count; i++) {
        g_autofree char *option = tune_hint_option(p, i);
        if (i != p->current)
            most = MAX(most, strlen(option) - strlen(OPTION "=") + 1);
    }
    return most;
}

tool_exit
tune_hints_fit(const tune_space *space)
{
    gsize bytes = 0;
    for (guint i = 0; i < space->count; i++)
        if (tune_hint_is(&space->parameters[i]))
            bytes += longest_line(&space->parameters[i]);
    if (bytes < WATCH_HINTS_TEXT)
        return TOOL_OK;
    return tool_usage("--try: a run takes %u bytes of hints, as lines KEY=VALUE; those of one "
                      "setting would be %zu: try fewer of them at once",
                      WATCH_HINTS_TEXT - 1, bytes);
}
