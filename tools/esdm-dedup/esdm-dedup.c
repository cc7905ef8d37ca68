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
        "--dry-run --as POLICY tells instead what \"dedup\": POLICY in the site's configuration "
        "would\n"
        "have saved, which is done while programs write: \"write\" refers to equal fragments of\n"
        "earlier containers in the same folder, \"content\" also cuts lists where their values "
        "say\n"
        "so. All values are read, cut and encoded, and nothing is stored: it takes as long as a\n"
        "copy.\n"
        "\n"
        "No snapshot changes, programs go on reading and writing, and removing or overwriting one\n"
        "container never harms another.",
    .examples = "  esdm-dedup --dry-run restart\n"
                "  esdm-dedup --dry-run --as content restart\n"
                "  esdm-dedup restart\n"
                "  esdm-dedup --json --dry-run\n",
    .see_also = "esdm-cp --reflink, esdm-compact, esdm-gc, esdm-stat",
};

static gboolean dry_run, verbose;
static char *policy;

static const GOptionEntry entries[] = {
    {"dry-run", 'n', 0, G_OPTION_ARG_NONE, &dry_run, "Tell what would be saved, change nothing",
     NULL},
    {"as", 0, 0, G_OPTION_ARG_STRING, &policy,
     "With --dry-run: what would be saved while programs write", "write|content"},
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

/* ---- while programs write -------------------------------------------------------------------- */

static void
tell_forecast_json(const esdm_dedup_forecast *f)
{
    json_t *object = json_object();
    tool_json_set(object, "dry_run", json_boolean(true));
    tool_json_set(object, "as", tool_json_text(policy));
    tool_json_set(object, "containers", tool_json_u64(f->containers));
    tool_json_set(object, "now_bytes", tool_json_u64(f->now_bytes));
    tool_json_set(object, "fragments", tool_json_u64(f->fragments));
    tool_json_set(object, "bytes", tool_json_u64(f->bytes));
    tool_json_set(object, "duplicates", tool_json_u64(f->equals));
    tool_json_set(object, "duplicate_bytes", tool_json_u64(f->equal_bytes));
    tool_json_set(object, "head_bytes", tool_json_u64(f->head_bytes));
    tool_json_set(object, "table_bytes", tool_json_u64(f->table_bytes));
    tool_json_print(object);
}

static void
tell_forecast_text(const esdm_dedup_forecast *f)
{
    g_autofree char *now = tool_bytes(f->now_bytes);
    g_autofree char *bytes = tool_bytes(f->bytes);
    g_autofree char *equal = tool_bytes(f->equal_bytes);
    g_autofree char *heads = tool_bytes(f->head_bytes);
    g_autofree char *table = tool_bytes(f->table_bytes);
    double share = f->bytes > 0 ? 100.0 * (double) f->equal_bytes / (double) f->bytes : 0;
    (void) printf("%" G_GUINT64_FORMAT
                  " containers take %s. Written with \"dedup\": \"%s\" they have "
                  "%" G_GUINT64_FORMAT " fragments, %s.\n",
                  (guint64) f->containers, now, policy, (guint64) f->fragments, bytes);
    (void) printf("%" G_GUINT64_FORMAT " of these (%s, %.1f %%) are there already and would not be "
                  "stored.\n",
                  (guint64) f->equals, equal, share);
    (void) printf(
        "To find them writers read %s of heads in all, and each takes up to %s of memory for "
        "the table.\n",
        heads, table);
    if (share < 5)
        (void) printf("That is little: it is not worth its time.\n");
}

static esdm_status
foretell(esdm_session *session, const esdm_dedup_options *options, esdm_error *err)
{
    esdm_dedup_forecast forecast;
    esdm_status status =
        esdm_dedup_foretell(session, options, strcmp(policy, "content") == 0, &forecast, err);
    if (status == ESDM_OK && tool.json)
        tell_forecast_json(&forecast);
    else if (status == ESDM_OK)
        tell_forecast_text(&forecast);
    return status;
}

static esdm_status
share(esdm_session *session, const esdm_dedup_options *options, esdm_error *err)
{
    esdm_dedup_result told = {0};
    esdm_status status = esdm_dedup(session, options, &told, err);
    if (status == ESDM_OK && tool.json)
        tell_json(&told);
    else if (status == ESDM_OK)
        tell_text(&told);
    return status;
}

int
main(int argc, char **argv)
{
    tool_parse(&help, entries, &argc, &argv);
    if (policy != NULL && strcmp(policy, "write") != 0 && strcmp(policy, "content") != 0)
        return tool_usage("--as: expected write or content, not '%s'", policy);
    if (policy != NULL && !dry_run)
        return tool_usage(
            "--as only tells: with --dry-run. The site's configuration switches it on "
            "(\"dedup\": \"%s\")",
            policy);
    if (tool_no_site())
        return TOOL_OK;
    esdm_session *session = NULL;
    tool_exit result = tool_session(dry_run, &session);
    if (result != TOOL_OK)
        return result;
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
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
        status =
            policy != NULL ? foretell(session, &options, &err) : share(session, &options, &err);
    if (status != ESDM_OK)
        result = tool_fail(status, &err);
    esdm_session_close(session);
    return tool_finish(result);
}
