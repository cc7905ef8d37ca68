/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TESTS_NETCDF_ROUTER_SUPPORT_H
#define ESDM_TESTS_NETCDF_ROUTER_SUPPORT_H

/** @file A folder per test, the store and the log of fake_core.c. Include after <cmocka.h>. */

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[128];

/** CMocka setup: an empty current folder, store and log. */
static int
enter_folder(void **state)
{
    char path[256];
    (void) state;
    strcpy(folder, "/tmp/esdm-router-XXXXXX");
    if (!mkdtemp(folder) || chdir(folder) != 0 || mkdir("store", 0777) != 0) {
        return -1;
    }
    (void) snprintf(path, sizeof(path), "%s/store", folder);
    (void) setenv("FAKE_CORE_STORE", path, 1);
    (void) snprintf(path, sizeof(path), "%s/log", folder);
    (void) setenv("FAKE_CORE_LOG", path, 1);
    (void) unsetenv("ESDM_NC_ROUTE");
    return 0;
}

/** CMocka teardown. */
static int
leave_folder(void **state)
{
    char command[256];
    (void) state;
    if (chdir("/") != 0) {
        return -1;
    }
    (void) snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

/** Whether the dispatcher was called with a line that contains `text`. */
static inline bool
logged(const char *text)
{
    char line[1024];
    bool found = false;
    FILE *file = fopen(getenv("FAKE_CORE_LOG"), "r");
    while (file && fgets(line, sizeof(line), file)) {
        found = found || strstr(line, text);
    }
    if (file) {
        (void) fclose(file);
    }
    return found;
}

static inline void
touch(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0666);
    assert_true(fd >= 0);
    (void) close(fd);
}

static inline bool
is_there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static inline void
copy_file(const char *from, const char *to)
{
    char bytes[65536];
    int in = open(from, O_RDONLY);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    assert_true(in >= 0 && out >= 0);
    for (ssize_t n; (n = read(in, bytes, sizeof(bytes))) > 0;) {
        assert_int_equal(write(out, bytes, (size_t) n), n);
    }
    (void) close(in);
    (void) close(out);
}

#endif
