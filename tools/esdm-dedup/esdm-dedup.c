/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* esdm-dedup: fragments that are stored several times. */
#include <stdio.h>
#include <string.h>

#include "common/common.h"
#include "esdm/upkeep.h"

static const tool_help help = {
    .name = "esdm-dedup",
    .arguments = "[PREFIX…]",
    .description =
        "Lets containers refer to one place where they have stored equal fragments: copies,\n"
        "restart files of which little changes, fields that do not depend on time. A PREFIX\n"
        "selects the container of that name and all below PREFIX/; without one all of the site.\n"
        "Only fragments of the containers that are selected are compared with each other.\n"
        "\n"
        "Begin with --dry-run: it reads the heads of fragments that may be equal, and tells what\n"
        "would be saved and what that takes. Most archives save little. Without it, fragments are\n"
        "compared byte by byte before anything changes. Packs of which a fifth or more is not\n"
        "needed any more are emptied: what else is in them is stored anew, and they go. The "
        "others\n"
        "go when the rest of them is not needed any more, either.\n"
        "\n"
        "No snapshot changes, programs go on reading and writing, and removing or overwriting one\n"
        "container never harms another.",
    .examples = "  esdm-dedup --dry-run restart\n"
                "  esdm-dedup restart\n"
                "  esdm-dedup --json --dry-run\n",
    .see_also = "esdm-cp --reflink, esdm-compact, esdm-gc, esdm-stat",
};

static gboolean dry_run, verbose;

static const GOptionEntry entries[] = {
    {"dry-run", 'n', 0, G_OPTION_ARG_NONE, &dry_run, "Tell what would be saved, change nothing",
     NULL},
    {"verbose", 'v', 0, G_OPTION_ARG_NONE, &verbose, "Tell each container that was done", NULL},
    {0},
};

static void
progress(double share, const char *container, void *user)
{
    (void) user;
    if (!verbose || tool.json)
        return;
    g_autofree char *printable = tool_printable(container);
    (void) printf("%3.0f %%  %s\n", 100 * share, printable);
}

static void
tell_json(const esdm_dedup_result *r)
{
    json_t *object = json_object();
    tool_json_set(object, "dry_run", json_boolean(dry_run));
    tool_json_set(object, "containers", tool_json_u64(r->containers));
    tool_json_set(object, "fragments", tool_json_u64(r->fragments));
    tool_json_set(object, "bytes", tool_json_u64(r->bytes));
    tool_json_set(object, "duplicates", tool_json_u64(r->duplicates));
    tool_json_set(object, "duplicate_bytes", tool_json_u64(r->duplicate_bytes));
    tool_json_set(object, "freed_bytes", tool_json_u64(r->freed_bytes));
    tool_json_set(object, "moved_bytes", tool_json_u64(r->moved_bytes));
    tool_json_set(object, "pages", tool_json_u64(r->pages));
    tool_json_set(object, "head_bytes", tool_json_u64(r->head_bytes));
    tool_json_set(object, "table_bytes", tool_json_u64(r->table_bytes));
    tool_json_print(object);
}

static void
tell_text(const esdm_dedup_result *r)
{
    g_autofree char *bytes = tool_bytes(r->bytes);
    g_autofree char *equal = tool_bytes(r->duplicate_bytes);
    g_autofree char *freed = tool_bytes(r->freed_bytes);
    g_autofree char *moved = tool_bytes(r->moved_bytes);
    g_autofree char *heads = tool_bytes(r->head_bytes);
    g_autofree char *table = tool_bytes(r->table_bytes);
    double share = r->bytes > 0 ? 100.0 * (double) r->duplicate_bytes / (double) r->bytes : 0;
    (void) printf("%" G_GUINT64_FORMAT " containers have %" G_GUINT64_FORMAT
                  " fragments, %s. %" G_GUINT64_FORMAT " of these (%s, %.1f %%) %s others.\n",
                  (guint64) r->containers, (guint64) r->fragments, bytes, (guint64) r->duplicates,
                  equal, share, r->duplicates == 1 ? "equals" : "equal");
    (void) printf("%s %s %s, by packs that go as a whole; %s in them %s stored anew for it.\n",
                  freed, r->freed_bytes == 1 ? "is" : "are", dry_run ? "would be saved" : "saved",
                  moved, dry_run ? "would be" : "were");
    (void) printf("To find them took %s of heads, and %s of memory for the table.\n", heads, table);
    if (share < 5)
        (void) printf("That is little: it is not worth its time.\n");
}

int
main(int argc, char **argv)
{
    tool_parse(&help, entries, &argc, &argv);
    if (tool_no_site())
        return TOOL_OK;
    esdm_session *session = NULL;
    tool_exit result = tool_session(dry_run, &session);
    if (result != TOOL_OK)
        return result;
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    esdm_dedup_result told = {0};
    esdm_error err = {0};
    esdm_status status = ESDM_OK;
    for (int i = 1; i < argc && status == ESDM_OK; i++) {
        char name[ESDM_CONTAINER_NAME_MAX + 1];
        status = tool_container_name(session, argv[i], name, &err);
        if (status == ESDM_OK)
            g_ptr_array_add(names, g_strdup(name));
    }
    const esdm_dedup_options options = {.containers =
                                            argc > 1 ? (const char *const *) names->pdata : NULL,
                                        .ncontainers = names->len,
                                        .dry_run = dry_run,
                                        .progress = progress};
    if (status == ESDM_OK)
        status = esdm_dedup(session, &options, &told, &err);
    if (status != ESDM_OK)
        result = tool_fail(status, &err);
    else if (tool.json)
        tell_json(&told);
    else
        tell_text(&told);
    esdm_session_close(session);
    return tool_finish(result);
}
