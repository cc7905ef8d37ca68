/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdio.h>

#include "common.h"

static const tool_help help = {
    .name = "esdm-mkfs",
    .arguments = "[CONFIG]\n  esdm-mkfs --migrate [OPTION…] [CONFIG] NEW-CONFIG",
    .description =
        "Makes, checks or removes an ESDM site: the data targets and the metadata store\n"
        "that the site configuration CONFIG describes.\n"
        "\n"
        "Without an option the site is made: each directory is created and marked with\n"
        "the id of the site, which is a random one and kept by the metadata store: a site\n"
        "is its metadata store. Making a site that exists changes nothing. A directory\n"
        "that holds anything else, or belongs to another site, is never touched.\n"
        "\n"
        "--check reads marks, versions, permissions, free space and the catalogue of\n"
        "containers, reports every problem, and writes nothing.\n"
        "\n"
        "--remove deletes what ESDM made and wrote in the directories of the site, with\n"
        "all containers, and nothing else. When containers or packs exist it asks on a\n"
        "terminal; elsewhere it refuses unless --yes is given.\n"
        "\n"
        "--migrate copies the catalogue of the site of CONFIG to the metadata store of\n"
        "NEW-CONFIG, which describes the same data targets, verifies the copy, and hands\n"
        "the site over: NEW-CONFIG is its configuration from then on, and the old store\n"
        "refuses to be opened. Data stay where they are. Programs that have the site open\n"
        "must be ended before; commits are refused while this lasts. After a failure the\n"
        "site goes on with CONFIG; an interrupted migration is completed by another call.",
    .examples = "  esdm-mkfs site.json              make the site of site.json\n"
                "  esdm-mkfs --dry-run site.json    tell what that would do\n"
                "  esdm-mkfs --check                check the site that programs here would use\n"
                "  esdm-mkfs --remove --yes site.json\n"
                "  esdm-mkfs --migrate sqlite.json postgres.json\n",
    .see_also = "esdm-ls, esdm-stat, esdm-cp",
};

static gboolean want_check, want_remove, want_validate, want_migrate, dry_run, yes;

static const GOptionEntry entries[] = {
    {"check", 'c', 0, G_OPTION_ARG_NONE, &want_check, "Check the site and change nothing", NULL},
    {"remove", 'r', 0, G_OPTION_ARG_NONE, &want_remove, "Remove the site and its data", NULL},
    {"validate", 0, 0, G_OPTION_ARG_NONE, &want_validate,
     "Check the text of the configuration alone", NULL},
    {"migrate", 'm', 0, G_OPTION_ARG_NONE, &want_migrate,
     "Move the catalogue to another metadata store", NULL},
    {"dry-run", 'n', 0, G_OPTION_ARG_NONE, &dry_run, "Tell what would be done, do nothing", NULL},
    {"yes", 'y', 0, G_OPTION_ARG_NONE, &yes, "Remove data without asking", NULL},
    {0},
};

static const char *new_config; /* with --migrate */
static json_t *steps;          /* with --json */

static void
report(const char *line, void *user)
{
    (void) user;
    if (tool.json) {
        tool_json_append(steps, tool_json_text(line));
    } else {
        g_autofree char *printable = tool_printable(line);
        (void) printf("%s\n", printable);
    }
}

/* Whether the containers may go. TOOL_OK: yes, or there are none. */
static tool_exit
ask_for_data(esdm_site_options *options)
{
    uint64_t containers = 0, bytes = 0;
    esdm_error err = {0};
    esdm_status status = esdm_site_contents(options, &containers, &bytes, &err);
    if (yes) {
        options->remove_data = true;
        return TOOL_OK;
    }
    if (status != ESDM_OK)
        return status == ESDM_ENOENT ? TOOL_OK : tool_fail(status, &err);
    if (containers == 0 && bytes == 0)
        return TOOL_OK;
    g_autofree char *size = tool_bytes(bytes);
    g_autofree char *count =
        containers > 0 ? g_strdup_printf("%" G_GUINT64_FORMAT " container%s (%s)",
                                         (guint64) containers, containers == 1 ? "" : "s", size)
                       : g_strdup_printf("packs (%s, though no container)", size);
    if (!tool_can_ask()) {
        tool_error("the site holds %s; --yes removes the data, too", count);
        return TOOL_REFUSED;
    }
    g_autofree char *question = g_strdup_printf("Remove the site and its %s for good?", count);
    if (!tool_confirm(question)) {
        tool_error("nothing was removed");
        return TOOL_REFUSED;
    }
    options->remove_data = true;
    return TOOL_OK;
}

static esdm_status
act(const esdm_site_options *options, esdm_error *err)
{
    if (want_validate)
        return esdm_site_validate(options, err);
    if (want_check)
        return esdm_site_check(options, err);
    if (want_remove)
        return esdm_site_remove(options, err);
    if (want_migrate) {
        const esdm_site_options to = {.config_path = new_config};
        return esdm_site_migrate(options, &to, err);
    }
    return esdm_site_create(options, err);
}

static const char *
action_name(void)
{
    return want_validate  ? "validate"
           : want_check   ? "check"
           : want_remove  ? "remove"
           : want_migrate ? "migrate"
                          : "create";
}

static const char *
closing_line(void)
{
    if (want_validate)
        return "the configuration is good";
    if (want_check)
        return "the site is good";
    if (dry_run)
        return "dry run: nothing was changed";
    if (want_migrate)
        return "the site is migrated";
    return want_remove ? "the site is removed" : "the site is ready";
}

static void
print_result(const esdm_site_options *options, esdm_status status, const esdm_error *err)
{
    json_t *root = json_object();
    tool_json_set(root, "action", json_string(action_name()));
    tool_json_set(root, "dry_run", json_boolean(dry_run));
    tool_json_set(root, "config",
                  options->config_path != NULL ? tool_json_text(options->config_path)
                                               : json_null());
    tool_json_set(root, "steps", json_incref(steps));
    tool_json_set(root, "status",
                  json_string(status == ESDM_OK ? "ok" : esdm_status_string(status)));
    if (status != ESDM_OK)
        tool_json_set(root, "message", tool_json_text(err->message));
    tool_json_print(root);
}

int
main(int argc, char **argv)
{
    tool_parse(&help, entries, &argc, &argv);
    if (want_migrate && (argc < 2 || argc > 3))
        return tool_usage("--migrate needs the new configuration, and at most the old one before");
    if (want_migrate)
        new_config = argv[--argc];
    if (argc > 2)
        return tool_usage("one configuration at a time");
    if (want_check + want_remove + want_validate + want_migrate > 1)
        return tool_usage("--check, --remove, --validate and --migrate exclude each other");
    if (argc == 2 && tool.config != NULL)
        return tool_usage("CONFIG and --config name the same thing; give one");
    esdm_site_options options = {
        .config_path = argc == 2 ? argv[1] : tool.config,
        .dry_run = dry_run,
        .lasting = true,
        .report = report,
    };
    if (want_remove && !dry_run) {
        tool_exit refused = ask_for_data(&options);
        if (refused != TOOL_OK)
            return refused;
    }
    steps = json_array();
    esdm_error err = {0};
    esdm_status status = act(&options, &err);
    tool_exit result = status == ESDM_OK ? TOOL_OK : tool_fail(status, &err);
    if (tool.json)
        print_result(&options, status, &err);
    else if (status == ESDM_OK)
        (void) printf("%s\n", closing_line());
    json_decref(steps);
    return tool_finish(result);
}
