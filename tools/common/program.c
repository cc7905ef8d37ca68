/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Programs that tools start. */

#include <unistd.h>

#include "common/common.h"

char *
tool_beside(const char *name)
{
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    g_autofree char *folder = g_path_get_dirname(self != NULL ? self : ".");
    char *path = g_build_filename(folder, name, NULL);
    if (self != NULL && g_file_test(path, G_FILE_TEST_IS_EXECUTABLE))
        return path;
    g_free(path);
    return g_strdup(name);
}

char *
tool_tail(int fd, gsize most)
{
    char *text = g_malloc0(most + 1);
    off_t end = lseek(fd, 0, SEEK_END);
    ssize_t n = pread(fd, text, most, end > (off_t) most ? end - (off_t) most : 0);
    text[n > 0 ? n : 0] = '\0';
    return text;
}
