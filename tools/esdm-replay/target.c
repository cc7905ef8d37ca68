/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* --target: a configuration of its own, in which what the replay writes goes to one target. */
#include "esdm-replay/esdm-replay.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Owned, links followed; NULL: told. */
static char *
config_file(void)
{
    esdm_error err = {0};
    char *found = NULL;
    esdm_status st = tool.config != NULL ? ESDM_OK : esdm_site_find(&found, &err);
    const char *path = tool.config != NULL ? tool.config : found;
    char *real = path != NULL ? realpath(path, NULL) : NULL;
    char *copy = g_strdup(real);
    if (st != ESDM_OK)
        (void) tool_fail(st, &err);
    else if (path == NULL)
        tool_error("--target: the default site has one target and no configuration file");
    else if (real == NULL)
        tool_error("%s: %s", path, g_strerror(errno));
    free(real);
    free(found);
    return copy;
}

static bool
has_target(const json_t *config, const char *target)
{
    g_autoptr(GString) known = g_string_new(NULL);
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(config, "targets"), i, one)
    {
        const char *name = json_string_value(json_object_get(one, "name"));
        if (name != NULL && g_str_equal(name, target))
            return true;
        g_string_append_printf(known, "%s%s", known->len > 0 ? ", " : "",
                               name != NULL ? name : "?");
    }
    (void) tool_usage("--target: the site has no target '%s'; known are %s", target, known->str);
    return false;
}

/* The first policy that matches decides. */
static void
add_policy(json_t *config, const char *target, const char *prefix)
{
    json_t *policies = json_object_get(config, "policies");
    if (policies == NULL) {
        policies = json_array();
        tool_json_set(config, "policies", json_incref(policies));
        json_decref(policies);
    }
    g_autofree char *pattern = g_strconcat(prefix, "/*", NULL);
    json_t *policy =
        json_pack("{s:s,s:[s],s:i}", "container", pattern, "targets", target, "copies", 1);
    if (policy == NULL || json_array_insert_new(policies, 0, policy) != 0)
        g_error("out of memory");
}

static bool
write_file(const json_t *config, const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    bool good = file != NULL && json_dumpf(config, file, JSON_INDENT(2)) == 0;
    int why = errno;
    if (file != NULL && fclose(file) != 0)
        good = false;
    if (!good)
        tool_error("%s: %s. It is written beside the site's configuration, as folders may be "
                   "relative to it: copy that to a folder of your own, with absolute paths, and "
                   "name it with --config",
                   path, g_strerror(why));
    if (!good && fd >= 0)
        (void) g_unlink(path);
    return good;
}

tool_exit
replay_use_target(const char *target, const char *prefix, char **ret_path)
{
    json_error_t why;
    g_autofree char *path = config_file();
    if (path == NULL)
        return TOOL_NOT_FOUND;
    json_t *config = tool_json_load(path, &why);
    if (!json_is_object(config)) {
        tool_error("%s: line %d: %s", path, why.line, config == NULL ? why.text : "no object");
        json_decref(config);
        return TOOL_FAILED;
    }
    if (!has_target(config, target)) {
        json_decref(config);
        return TOOL_USAGE;
    }
    add_policy(config, target, prefix);
    g_autofree char *folder = g_path_get_dirname(path);
    char *own = g_strdup_printf("%s/.esdm-replay.%d.json", folder, (int) getpid());
    bool good = write_file(config, own);
    json_decref(config);
    if (!good) {
        g_free(own);
        return TOOL_FAILED;
    }
    tool.config = own;
    *ret_path = own;
    return TOOL_OK;
}
