/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Plain files that a recorded program opened. */
#include "esdm-recipe/esdm-recipe.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#ifdef RECIPE_WATCH
#include "esdm-explain/esdm-explain.h"
#endif

/* Files of the system: they change with its packages, which nobody can keep. */
static const char *const system_folders[] = {"/usr/", "/lib",  "/etc/", "/proc/", "/sys/",
                                             "/dev/", "/run/", "/var/", NULL};

static bool
is_of_system(const char *path)
{
    for (const char *const *folder = system_folders; *folder != NULL; folder++) {
        if (g_str_has_prefix(path, *folder))
            return true;
    }
    return strstr(path, "/site-packages/") != NULL || strstr(path, "/__pycache__/") != NULL;
}

/* A folder of the site: the engine's own files are not the program's. */
static bool
is_of_site(const char *path)
{
    g_autofree char *folder = g_path_get_dirname(path);
    while (strlen(folder) > 1) {
        g_autofree char *mark = g_build_filename(folder, "esdm-mark.json", NULL);
        if (g_file_test(mark, G_FILE_TEST_EXISTS))
            return true;
        char *parent = g_path_get_dirname(folder);
        g_free(folder);
        folder = parent;
    }
    return false;
}

/* Where the site is written down: what programs compute does not depend on it. */
static bool
is_config(const char *path)
{
    char *found = NULL;
    if (tool.config == NULL && esdm_site_find(&found, NULL) != ESDM_OK)
        return false;
    char *real = realpath(tool.config != NULL ? tool.config : found != NULL ? found : "", NULL);
    bool same = real != NULL && strcmp(real, path) == 0;
    free(real);
    free(found);
    return same;
}

/* What the program found open, such as its output, is not opened by it again. */
static bool
is_inherited(const char *path)
{
    struct stat file;
    struct stat own;
    if (stat(path, &file) != 0)
        return false;
    for (int fd = 0; fd <= 2; fd++)
        if (fstat(fd, &own) == 0 && own.st_dev == file.st_dev && own.st_ino == file.st_ino)
            return true;
    return false;
}

/* What the clock of a file system may be behind. */
#define COARSE_US 10000

static bool
is_regular(const char *path, gint64 *ret_modified_us)
{
    struct stat st;
    if (path[0] != '/' || stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    *ret_modified_us = (gint64) st.st_mtim.tv_sec * 1000000 + st.st_mtim.tv_nsec / 1000;
    return true;
}

/* NCO writes "out.nc.pid1.ncks.tmp" and renames it. Owned. */
static char *
final_name(const char *path)
{
    const char *pid = strstr(path, ".pid");
    bool is_temporary = pid != NULL && g_ascii_isdigit(pid[4]) && g_str_has_suffix(pid, ".tmp");
    return is_temporary ? g_strndup(path, (gsize) (pid - path)) : g_strdup(path);
}

tool_exit
recipe_add_file(json_t *inputs, const char *path)
{
    json_t *entry = recipe_file(path, NULL);
    if (entry == NULL)
        return TOOL_FAILED;
    tool_json_append(inputs, entry);
    return TOOL_OK;
}

#ifdef RECIPE_WATCH
static bool
is_listed(const json_t *list, const char *path)
{
    size_t i;
    const json_t *one;
    json_array_foreach(list, i, one)
    {
        if (g_strcmp0(json_string_value(one), path) == 0)
            return true;
    }
    return false;
}

/* Of a file that the program opened. One that became another one meanwhile was made by it. */
static tool_exit
sort_file(const object *o, const recipe_run *of, json_t *inputs, json_t *written)
{
    gint64 modified_us = 0;
    bool writes = (o->entry.flags & O_ACCMODE) != O_RDONLY || o->entry.write.calls > 0;
    g_autofree char *path = final_name(o->name);
    if (o->kind != WATCH_FILE || !is_regular(path, &modified_us) || is_of_system(path) ||
        is_of_site(path) || is_config(path) || is_inherited(path) ||
        g_str_has_prefix(path, of->folder) || is_listed(written, path))
        return TOOL_OK;
    if (!writes && modified_us < of->started_us - COARSE_US)
        return recipe_add_file(inputs, path);
    tool_json_append(written, tool_json_text(path));
    return TOOL_OK;
}

tool_exit
recipe_add_files(const recipe_run *of, json_t *inputs, json_t *written)
{
    run r;
    tool_exit result = run_load(of->folder, &r);
    for (guint i = 0; result == TOOL_OK && i < r.objects->len; i++)
        result = sort_file(r.objects->pdata[i], of, inputs, written);
    return result;
}
#else
tool_exit
recipe_add_files(const recipe_run *of, json_t *inputs, json_t *written)
{
    (void) of;
    (void) inputs;
    (void) written;
    tool_error("plain files that the program reads are not noted: this ESDM was built without "
               "libesdm-watch");
    return TOOL_OK;
}
#endif
