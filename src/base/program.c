/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "base/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Programs that run what their first argument names. */
static bool
is_interpreter(const char *name)
{
    static const char *const names[] = {"python", "julia",   "Rscript", "perl", "ncl",
                                        "octave", "ipython", "idl",     "gdl",  NULL};
    for (const char *const *one = names; *one != NULL; one++) {
        if (strncmp(name, *one, strlen(*one)) == 0)
            return true;
    }
    return false;
}

static const char *
base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* The first argument that is no option. @param text room. NULL: there is none. */
static const char *
script_of(char *text, size_t room, bool with_code)
{
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, room - 1) : 0;
    if (fd >= 0)
        (void) close(fd);
    if (n <= 0)
        return NULL;
    text[n] = '\0';
    for (const char *at = text + strlen(text) + 1; at < text + n; at += strlen(at) + 1) {
        if (!with_code && (strcmp(at, "-c") == 0 || strcmp(at, "-e") == 0))
            return NULL;
        if (at[0] != '-' && at[0] != '\0')
            return base_name(at);
    }
    return NULL;
}

char *
esdm__program_name(bool with_code)
{
    char arguments[4096];
    char *text = NULL;
    const char *name = program_invocation_short_name;
    const char *script =
        is_interpreter(name) ? script_of(arguments, sizeof arguments, with_code) : NULL;
    if (script == NULL)
        return strdup(name);
    return asprintf(&text, "%s %s", name, script) >= 0 ? text : NULL;
}
