/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file esdm-grib PLUGIN: runs ecCodes for the process whose codec "grib" has started it, over the
 *  socket that is its input, until that ends. All that it does is in the plug-in, which finds its
 *  libraries wherever it is installed. */

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../grib.h"

/* What the other process had open, and others wait to see closed. */
static void
close_all(void)
{
    DIR *all = opendir("/proc/self/fd");
    if (all == NULL)
        return;
    for (struct dirent *entry = readdir(all); entry != NULL; entry = readdir(all)) {
        int fd = atoi(entry->d_name);
        if (fd > STDERR_FILENO && fd != dirfd(all))
            (void) close(fd);
    }
    (void) closedir(all);
}

int
main(int argc, char **argv)
{
    int (*serve)(int) = NULL;
    if (argc != 2) {
        fprintf(stderr, "esdm-grib decodes messages for ESDM, which starts it\n");
        return 2;
    }
    close_all();
    void *plugin = dlopen(argv[1], RTLD_NOW);
    void *function = plugin != NULL ? dlsym(plugin, GRIB_SERVE) : NULL;
    if (function == NULL)
        return 1;
    memcpy(&serve, &function, sizeof serve);
    pid_t child = fork();
    if (child != 0)
        _exit(child < 0);
    (void) setsid(); /* signals of a terminal are for the other process */
    _exit(serve(STDIN_FILENO));
}
