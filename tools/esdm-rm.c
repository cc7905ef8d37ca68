/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdio.h>
#include <string.h>

#include "common.h"

static const tool_help help = {
    .name = "esdm-rm",
    .arguments = "CONTAINER…",
    .description =
        "Removes containers. Each is gone for everybody at once; programs that have it\n"
        "open go on reading, and its storage is freed when the last of them closes it.\n"
        "\n"
        "With --recursive each argument also stands for everything below it: \"esdm-rm -r\n"
        "exp\" removes exp and exp/run1.nc, but not experiment.nc.\n"
        "\n"
        "The first failure does not keep the others from being removed.",
    .examples = "  esdm-rm experiment/run1.nc\n"
                "  esdm-rm -r -n experiment      tell what -r would remove\n"
                "  esdm-rm -f maybe.nc           no error when it does not exist\n",
    .see_also = "esdm-ls, esdm-mkfs --remove",
};

static gboolean recursive, force, dry_run, verbose;

static const GOptionEntry entries[] = {
    {"recursive", 'r', 0, G_OPTION_ARG_NONE, &recursive, "Remove what lies below, too", NULL},
    {"force", 'f', 0, G_OPTION_ARG_NONE, &force, "No error for what does not exist", NULL},
    {"dry-run", 'n', 0, G_OPTION_ARG_NONE, &dry_run, "Print the names, remove nothing", NULL},
    {"verbose", 'v', 0, G_OPTION_ARG_NONE, &verbose, "Print the name of each removed one", NULL},
    {0},
};

static json_t *removed; /* with --json */

static bool
collect(const esdm_container_info *info, void *user)
{
    g_ptr_array_add(user, g_strdup(info->name));
    return true;
}

/* There is no such container; what was perhaps meant. */
static tool_exit
absent(esdm_session *session, const char *argument, const char *name)
{
    g_autofree char *stub = tool_stub(argument);
    if (stub != NULL) {
        tool_error("'%s' is a file that stands for container '%s'; to remove both: esdm-rm '%s' "
                   "&& rm '%s'",
                   argument, stub, stub, argument);
        return TOOL_NOT_FOUND;
    }
    tool_exit result = tool_absent(session, name);
    if (strpbrk(name, "*?[") != NULL)
        tool_error("patterns are not expanded here; to remove many: esdm-rm -r PREFIX, or "
                   "esdm-ls -0 PREFIX | grep -z PATTERN | xargs -0 esdm-rm (-n tells what it would "
                   "remove)");
    return result;
}

/* Names that an argument stands for. */
static tool_exit
expand(esdm_session *session, const char *argument, GPtrArray *names)
{
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_error err = {0};
    esdm_container_info info;
    esdm_status status = esdm_container_normalise(tool_container(argument), name, &err);
    if (status != ESDM_OK) {
        g_autofree char *stub = tool_stub(argument);
        return stub != NULL ? absent(session, argument, argument) : tool_fail(status, &err);
    }
    guint before = names->len;
    if (recursive) {
        status = esdm_container_list(session, name, collect, names, &err);
        if (status == ESDM_OK && names->len == before && !force) {
            return absent(session, argument, name);
        }
    } else {
        status = esdm_container_stat(session, name, &info, &err);
        if (status == ESDM_OK)
            g_ptr_array_add(names, g_strdup(name));
        if (status == ESDM_ENOENT)
            return force ? TOOL_OK : absent(session, argument, name);
    }
    return status == ESDM_OK ? TOOL_OK : tool_fail(status, &err);
}

static tool_exit
remove_one(esdm_session *session, const char *name)
{
    esdm_error err = {0};
    esdm_status status = dry_run ? ESDM_OK : esdm_container_remove(session, name, &err);
    if (status == ESDM_ENOENT && force) /* somebody else was faster */
        return TOOL_OK;
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    g_autofree char *printable = tool_printable(name);
    if (tool.json)
        tool_json_append(removed, tool_json_text(name));
    else if (dry_run || verbose)
        (void) printf("%s%s\n", dry_run ? "would remove " : "removed ", printable);
    return TOOL_OK;
}

static tool_exit
remove_argument(esdm_session *session, const char *argument)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    tool_exit result = expand(session, argument, names);
    for (guint i = 0; i < names->len; i++) {
        tool_exit one = remove_one(session, g_ptr_array_index(names, i));
        result = result == TOOL_OK ? one : result;
    }
    return result;
}

int
main(int argc, char **argv)
{
    tool_parse(&help, entries, &argc, &argv);
    if (argc < 2)
        return tool_usage("which containers?");
    esdm_session *session = NULL;
    tool_exit result = tool_session(dry_run, &session);
    if (result != TOOL_OK)
        return result;
    removed = json_array();
    for (int i = 1; i < argc; i++) {
        tool_exit one = remove_argument(session, argv[i]);
        result = result == TOOL_OK ? one : result;
    }
    if (tool.json) {
        json_t *root = json_object();
        tool_json_set(root, "dry_run", json_boolean(dry_run));
        tool_json_set(root, "removed", removed);
        tool_json_print(root);
    } else {
        json_decref(removed);
    }
    esdm_session_close(session);
    return tool_finish(result);
}
