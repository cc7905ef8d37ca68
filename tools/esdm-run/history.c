/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Where it is noted what the last run of a program read of plain files (watch/history.h), and which
 * hints its files by MPI are to have (watch/hints.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "esdm-run/esdm-run.h"

static const char *
base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* Programs that run what their first argument names: without it all scripts were one. */
static const char *
script_of(const char *program, char *const *arguments)
{
    static const char *const names[] = {"python",  "julia", "Rscript", "perl", "ncl",  "octave",
                                        "ipython", "idl",   "gdl",     "sh",   "bash", NULL};
    const char *name = base_name(program);
    for (const char *const *one = names; *one != NULL; one++) {
        if (strncmp(name, *one, strlen(*one)) != 0)
            continue;
        for (char *const *at = arguments + 1; *at != NULL; at++) {
            if ((*at)[0] != '-' && (*at)[0] != '\0')
                return *at;
        }
    }
    return "";
}

static uint64_t
add_to_hash(uint64_t hash, const char *text)
{
    do
        hash = (hash ^ (unsigned char) *text) * UINT64_C(1099511628211);
    while (*text++ != '\0');
    return hash;
}

bool
history_place(const char *program, char *const *arguments, const char *end, char *ret, size_t room)
{
    const char *stated = getenv("ESDM_EARLIER_RUNS");
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    const char *script = script_of(program, arguments);
    bool with_cache = cache != NULL && cache[0] == '/';
    char name[33];
    if ((stated != NULL && strcmp(stated, "off") == 0) ||
        (!with_cache && (home == NULL || home[0] != '/')))
        return false;
    (void) snprintf(name, sizeof name, "%s", base_name(script[0] != '\0' ? script : program));
    for (char *c = name; *c != '\0'; c++) {
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                     (*c >= '0' && *c <= '9') || (*c == '.' && c != name) || *c == '_';
        *c = plain ? *c : '-';
    }
    uint64_t hash = add_to_hash(add_to_hash(UINT64_C(14695981039346656037), program), script);
    int n = snprintf(ret, room, "%s%s/esdm/runs/plain/%s-%016llx.%s", with_cache ? cache : home,
                     with_cache ? "" : "/.cache", name, (unsigned long long) hash, end);
    return n > 0 && (size_t) n < room;
}
