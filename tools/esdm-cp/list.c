/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* esdm-ref --list: sources that a file names, one a line. What they share of their folders is left
 * out of the names of their containers. */

#include "esdm-cp/esdm-cp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* @param ret_lines owned texts. false: told. */
static bool
read_lines(FILE *file, const char *name, GPtrArray *lines)
{
    char *line = NULL;
    size_t room = 0;
    bool good = true;
    for (unsigned number = 1; good; number++) {
        ssize_t n = getline(&line, &room, file);
        if (n < 0)
            break;
        while (n > 0 && g_ascii_isspace(line[n - 1]))
            line[--n] = '\0';
        good = strlen(line) == (size_t) n;
        if (!good)
            tool_error("%s: line %u is no name: it has a zero byte", name, number);
        else if (n > 0 && line[0] != '#')
            g_ptr_array_add(lines, g_strdup(line));
    }
    if (good && ferror(file) != 0) {
        tool_error("%s: cannot be read: %s", name, g_strerror(errno));
        good = false;
    }
    free(line);
    return good;
}

/* How many bytes all begin with, up to the last '/' of these. */
static size_t
shared_folder(const GPtrArray *lines)
{
    const char *first = g_ptr_array_index(lines, 0);
    const char *slash = strrchr(first, '/');
    size_t bytes = slash != NULL ? (size_t) (slash - first) + 1 : 0;
    for (guint i = 1; i < lines->len; i++) {
        const char *line = g_ptr_array_index(lines, i);
        while (bytes > 0 && (strncmp(line, first, bytes) != 0 || first[bytes - 1] != '/'))
            bytes--;
    }
    return bytes;
}

tool_exit
cp_list_read(const char *name, GPtrArray *ret_sources, size_t *ret_shared)
{
    bool standard = g_str_equal(name, "-");
    FILE *file = standard ? stdin : fopen(name, "re");
    if (file == NULL) {
        tool_error("%s: %s", name, g_strerror(errno));
        return errno == ENOENT ? TOOL_NOT_FOUND : TOOL_FAILED;
    }
    bool good = read_lines(file, standard ? "the standard input" : name, ret_sources);
    if (!standard)
        (void) fclose(file);
    if (good && ret_sources->len == 0) {
        tool_error("%s: it names no source", name);
        return TOOL_NOT_FOUND;
    }
    *ret_shared = good ? shared_folder(ret_sources) : 0;
    return good ? TOOL_OK : TOOL_FAILED;
}
