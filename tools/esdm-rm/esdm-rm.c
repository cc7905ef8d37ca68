/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file esdm-rm: removes containers. */

#include <stdio.h>
#include <string.h>

#include "common/common.h"
#include "esdm/virtual.h"

static const tool_help help = {
    .name = "esdm-rm",
    .arguments = "CONTAINER…",
    .description =
        "Removes containers. Each is gone for everybody at once; programs that have it\n"
        "open go on reading. It is kept for a while, one day unless the site says otherwise:\n"
        "esdm-restore brings it back. With --for-good it is not kept, nor is anything else\n"
        "that had its name before; its storage is freed when nobody reads it any more. What\n"
        "has a tag (esdm-tag) is refused: the tags have to go first.\n"
        "\n"
        "With --recursive each argument also stands for everything below it: \"esdm-rm -r\n"
        "exp\" removes exp and exp/run1.nc, but not experiment.nc; esdm:// is the whole site.\n"
        "It asks before it removes more than five; without a terminal it does so for the\n"
        "whole site only with --yes.\n"
        "\n"
        "The first failure does not keep the others from being removed.",
    .examples = "  esdm-rm experiment/run1.nc\n"
                "  esdm-rm -r -n experiment      tell what -r would remove\n"
                "  esdm-rm -f maybe.nc           no error when it does not exist\n"
                "  esdm-rm --for-good huge.nc    free the space now\n",
    .see_also = "esdm-restore, esdm-ls --replaced, esdm-mkfs --remove",
};

/* So many are removed without a question. */
#define A_FEW 5

static gboolean recursive, force, dry_run, verbose, quiet, for_good, yes, sealed;

static const GOptionEntry entries[] = {
    {"recursive", 'r', 0, G_OPTION_ARG_NONE, &recursive, "Remove what lies below, too", NULL},
    {"force", 'f', 0, G_OPTION_ARG_NONE, &force, "No error for what does not exist", NULL},
    {"for-good", 'g', 0, G_OPTION_ARG_NONE, &for_good,
     "Keep nothing: neither these nor what had their names before", NULL},
    {"yes", 'y', 0, G_OPTION_ARG_NONE, &yes, "Ask no question", NULL},
    {"dry-run", 'n', 0, G_OPTION_ARG_NONE, &dry_run, "Print the names, remove nothing", NULL},
    {"sealed", 0, 0, G_OPTION_ARG_NONE, &sealed, "Remove what is sealed (esdm-seal), too", NULL},
    {"quiet", 'q', 0, G_OPTION_ARG_NONE, &quiet, "Print problems alone", NULL},
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
    g_autofree char *copied = tool_stub_copy(argument);
    if (copied != NULL) {
        tool_error("'%s' is a copy of a file that stands for container '%s'; nothing was removed. "
                   "To remove the copy alone: rm '%s'; the container, which others may use: "
                   "esdm-rm 'esdm://%s'",
                   argument, copied, argument, copied);
        return TOOL_NOT_FOUND;
    }
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

static bool
is_whole_site(const char *argument)
{
    return g_str_equal(argument, "esdm:") || g_str_equal(argument, "esdm://");
}

/* Former containers count with --for-good alone; several of one name count once. */
static bool
collect_former(const esdm_former_info *info, void *user)
{
    GPtrArray *names = user;
    for (guint i = names->len; i-- > 0;) {
        if (g_str_equal(g_ptr_array_index(names, i), info->container.name))
            return true;
    }
    return collect(&info->container, user);
}

static tool_exit
expand_below(esdm_session *session, const char *argument, const char *name, GPtrArray *names)
{
    esdm_error err = {0};
    guint before = names->len;
    esdm_status status = esdm_container_list(session, name, collect, names, &err);
    if (status == ESDM_OK && for_good)
        status = esdm_former_list(session, name, collect_former, names, &err);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    if (names->len == before && !force && name != NULL)
        return absent(session, argument, name);
    return TOOL_OK;
}

static tool_exit
expand_one(esdm_session *session, const char *argument, const char *name, GPtrArray *names)
{
    esdm_error err = {0};
    esdm_container_info info;
    g_autoptr(GPtrArray) former = g_ptr_array_new_with_free_func(g_free);
    esdm_status status = esdm_container_stat(session, name, &info, &err);
    if (status == ESDM_ENOENT && for_good &&
        esdm_former_list(session, name, collect_former, former, &err) == ESDM_OK) {
        for (guint i = 0; i < former->len; i++)
            status = g_str_equal(g_ptr_array_index(former, i), name) ? ESDM_OK : status;
    }
    if (status == ESDM_OK)
        g_ptr_array_add(names, g_strdup(name));
    if (status == ESDM_ENOENT)
        return force ? TOOL_OK : absent(session, argument, name);
    return status == ESDM_OK ? TOOL_OK : tool_fail(status, &err);
}

/* Names that an argument stands for. */
static tool_exit
expand(esdm_session *session, const char *argument, GPtrArray *names)
{
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_error err = {0};
    if (recursive && is_whole_site(argument))
        return expand_below(session, argument, NULL, names);
    if (is_whole_site(argument))
        return tool_usage("'%s' is the whole site: esdm-rm -r '%s' removes all its containers",
                          argument, argument);
    esdm_status status = tool_normalise(argument, name, &err);
    if (status != ESDM_OK) {
        g_autofree char *stub = tool_stub(argument);
        return stub != NULL ? absent(session, argument, argument) : tool_fail(status, &err);
    }
    return recursive ? expand_below(session, argument, name, names)
                     : expand_one(session, argument, name, names);
}

/* TOOL_OK: go on. */
static tool_exit
ask(const char *argument, guint count)
{
    bool whole = is_whole_site(argument);
    if (dry_run || yes || !recursive || count == 0 || (!whole && (force || count <= A_FEW)))
        return TOOL_OK;
    g_autofree char *printable = tool_printable(argument);
    g_autofree char *question =
        g_strdup_printf("Remove %u container%s of %s%s%s?", count, count == 1 ? "" : "s",
                        whole ? "the whole site" : "'", whole ? "" : printable, whole ? "" : "'");
    if (tool_can_ask() ? tool_confirm(question) : !whole)
        return TOOL_OK;
    tool_error(tool_can_ask() ? "nothing was removed"
                              : "that would remove the whole site; say --yes to do so");
    return TOOL_REFUSED;
}

/* What would not be kept is told before, and asked about where somebody sits. TOOL_OK: go on. */
static tool_exit
ask_unkept(esdm_session *session, const GPtrArray *names)
{
    guint unkept = 0;
    const char *first = NULL;
    if (for_good)
        return TOOL_OK;
    for (guint i = 0; i < names->len; i++) {
        const char *name = g_ptr_array_index(names, i);
        if (!esdm_former_would_be_kept(session, name) && unkept++ == 0)
            first = name;
    }
    if (unkept == 0)
        return TOOL_OK;
    g_autofree char *more = unkept > 1 ? g_strdup_printf(" and %u more", unkept - 1) : g_strdup("");
    g_autofree char *line = g_strdup_printf(
        "'%s'%s will not be kept for esdm-restore: the site keeps nothing, or a share of the free "
        "space (\"replaced\" in its configuration), which is too little for that",
        first, more);
    g_autofree char *printable = tool_printable(line);
    tool_error("%s", printable);
    if (dry_run || yes || force || !tool_can_ask() || tool_confirm("Remove for good?"))
        return TOOL_OK;
    tool_error("nothing was removed");
    return TOOL_REFUSED;
}

/* ---- who uses it -------------------------------------------------------------------------- */

static GHashTable *users; /* member -> names of the virtual containers that have it */

static bool
note_user(const char *name, const char *member, bool pinned, void *unused)
{
    (void) unused;
    const char *before = g_hash_table_lookup(users, member);
    g_hash_table_insert(users, g_strdup(member),
                        g_strdup_printf("%s%s'%s'%s", before != NULL ? before : "",
                                        before != NULL ? ", " : "", name,
                                        pinned ? " (pinned)" : ""));
    return true;
}

static void
load_users(esdm_session *session)
{
    esdm_error err = {0};
    users = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    if (esdm_virtual_members(session, note_user, NULL, &err) != ESDM_OK)
        tool_error("which virtual containers have it as a member is not known: %s", err.message);
}

/* Virtual containers lose members: said, as nobody sees it otherwise. */
static void
tell_users(const char *name)
{
    const char *who = g_hash_table_lookup(users, name);
    if (who == NULL || quiet)
        return;
    g_autofree char *line =
        g_strdup_printf("note: '%s' %s a member of the virtual container %s (esdm-ln lists them)",
                        name, dry_run ? "is" : "was", who);
    g_autofree char *printable = tool_printable(line);
    tool_error("%s", printable);
}

static tool_exit
remove_one(esdm_session *session, const char *name)
{
    esdm_error err = {0};
    esdm_status status = ESDM_OK;
    if (users == NULL) /* before the first one is gone */
        load_users(session);
    if (!dry_run)
        status = for_good && !sealed ? esdm_container_erase(session, name, &err)
                                     : (sealed ? esdm_container_remove_sealed(session, name, &err)
                                               : esdm_container_remove(session, name, &err));
    if (status == ESDM_OK && for_good && sealed && !dry_run)
        status = esdm_container_erase(session, name, &err); /* what it is now: a former one */
    if (status == ESDM_ENOENT && force)                     /* somebody else was faster */
        return TOOL_OK;
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    tell_users(name);
    g_autofree char *printable = tool_printable(name);
    if (tool.json)
        tool_json_append(removed, tool_json_text(name));
    else if (dry_run || (verbose && !quiet))
        (void) printf("%s%s\n", dry_run ? "would remove " : "removed ", printable);
    return TOOL_OK;
}

static tool_exit
remove_argument(esdm_session *session, const char *argument)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    tool_exit result = expand(session, argument, names);
    tool_exit agreed = ask(argument, names->len);
    if (agreed == TOOL_OK)
        agreed = ask_unkept(session, names);
    if (agreed != TOOL_OK)
        return agreed;
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
    tool_exit result = tool_session_made(dry_run, &session);
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
    g_clear_pointer(&users, g_hash_table_unref);
    esdm_session_close(session);
    return tool_finish(result);
}
