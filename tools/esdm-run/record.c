/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file esdm-run --record: the run is one of esdm-recipe, which lies beside. */

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "esdm-run/esdm-run.h"

#define TOOL "esdm-recipe"

int
record_run(int argc, char **argv, const char *image)
{
    int n_words = 0;
    char path[PATH_MAX + sizeof TOOL];
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    char **arguments = calloc((size_t) argc + 6, sizeof *arguments);
    if (arguments == NULL)
        return ENOMEM;
    arguments[n_words++] = (char *) TOOL;
    if (image != NULL) {
        arguments[n_words++] = (char *) "--image";
        arguments[n_words++] = (char *) image;
    }
    arguments[n_words++] = (char *) "record";
    arguments[n_words++] = (char *) "--";
    memcpy(arguments + n_words, argv, (size_t) argc * sizeof *arguments);
    if (n > 0) {
        path[n] = '\0';
        char *slash = strrchr(path, '/');
        memcpy(slash != NULL ? slash + 1 : path, TOOL, sizeof TOOL);
        (void) execv(path, arguments);
    }
    (void) execvp(TOOL, arguments);
    int error = errno;
    free(arguments);
    return error;
}
