/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "esdm-mkfs/esdm-mkfs.h"

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
        "that holds anything else, or belongs to another site, is never touched. A target\n"
        "that is not there, as when its disk is not mounted, is not made again while\n"
        "containers have packs on it: with --yes it is, and what was on it is lost. Nor is\n"
        "an empty catalogue made beside targets with packs when that of the site is gone.\n"
        "\n"
        "--check reads marks, versions, permissions, free space and the catalogue of\n"
        "containers, compares which packs there should be with those that are there, but\n"
        "for targets that each node has for itself, reports every problem, and writes\n"
        "nothing. What packs contain is looked at by esdm-fsck alone.\n"
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
        "site goes on with CONFIG; an interrupted migration is completed by another call.\n"
        "\n"
        "--restore brings a lost or damaged catalogue back from what lies on the targets:\n"
        "the newest whole backup that programs have left there, and the journals of what\n"
        "was committed since, or the journals alone. A sound catalogue is kept, and gets\n"
        "what it lacks; so is catalogue.sqlite of an own backup that was put back into its\n"
        "directory. No other program may use the site. It tells what is missing; then the\n"
        "exit status is 5. Packs are not touched, and esdm-gc leaves those alone that came\n"
        "after the backup. With --dry-run it tells what there is.\n"
        "\n"
        "--calibrate measures the targets of a site that is made: requests of 4 KiB to\n"
        "256 MiB, one and several at once, written and read through the plug-ins, and\n"
        "removed again. From them come latency, bandwidth of one stream and of all, and\n"
        "where a target is saturated; the metadata store keeps them with the measurements\n"
        "and the error of the prediction for measurements that it has not seen. Fragments\n"
        "are placed by this model from then on, and it follows what programs meet. It\n"
        "writes at most 4 GiB and takes about a minute for each target (--calibrate=quick:\n"
        "256 MiB, some seconds). Others that use a target at the same time disturb. One\n"
        "that cannot be measured is told, and gives the exit status; the others are kept.\n"
        "\n"
        "--plot draws the measurements (dots) and the model (lines) as SVG, after a\n"
        "calibration or alone: seconds of a request over its bytes, a colour for each\n"
        "number of requests at once.\n"
        "\n"
        "--reindex makes the index of times, boxes, levels and values, by which esdm-find\n"
        "finds containers, anew from the data: of sites of versions that had none, and\n"
        "exactly where data were written again (until then such ranges can\n"
        "be too wide). It counts anew what views show, also of views that are new in the\n"
        "configuration. Programs go on meanwhile. --restore does it for what lacks it.\n"
        "\n"
        "--private-postgres FOLDER makes the site with its catalogue in a PostgreSQL\n"
        "server of its own, which needs no administrator: its data are in FOLDER, on a\n"
        "file system that all nodes see. It is entered into CONFIG. Programs that open the\n"
        "site start the server on their node when it runs nowhere, and it stops when nobody\n"
        "has used it for some minutes; esdm-postgres --help tells more. PostgreSQL must be\n"
        "installed on the nodes, and does not run as root.\n"
        "\n"
        "--plan FILE predicts for a planned output, whose header FILE has as ncdump -h\n"
        "prints it, on which targets each variable would lie and how long it takes to\n"
        "store: variables with an unlimited dimension step by step, in as many steps as\n"
        "the header says or --steps does, the others at once. All copies count that the\n"
        "site asks for. Nothing is written. Compression, and what else the program does, are left "
        "out.",
    .examples = "  esdm-mkfs site.json              make the site of site.json\n"
                "  esdm-mkfs --dry-run site.json    tell what that would do\n"
                "  esdm-mkfs --check                check the site that programs here would use\n"
                "  esdm-mkfs --remove --yes site.json\n"
                "  esdm-mkfs --migrate sqlite.json postgres.json\n"
                "  esdm-mkfs --private-postgres /scratch/me/postgres site.json\n"
                "  esdm-mkfs --restore site.json    after the catalogue was lost\n"
                "  esdm-mkfs --reindex site.json    after an update from a version without index\n"
                "  esdm-mkfs --calibrate site.json\n"
                "  esdm-mkfs --plan header.cdl --steps 8760\n"
                "  esdm-mkfs --calibrate=quick --target scratch --plot model.svg site.json\n",
    .see_also = "esdm-ls, esdm-stat, esdm-cp, esdm-postgres",
};

static gboolean want_check, want_remove, want_validate, want_migrate, want_calibrate, want_restore,
    want_reindex;
static esdm_restore_result restored;
static esdm_reindex_result reindexed;
static gboolean dry_run, yes;
static esdm_calibrate_options calibrate;
static char *only_target, *plot_file, *plan_file, *private_folder;
static gint64 plan_steps;

static gboolean
parse_calibrate(const char *option, const char *value, gpointer data, GError **error)
{
    (void) option;
    (void) data;
    want_calibrate = TRUE;
    calibrate.quick = value != NULL && g_str_equal(value, "quick");
    if (value == NULL || calibrate.quick)
        return TRUE;
    g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                "--calibrate takes nothing or \"quick\", not \"%s\"", value);
    return FALSE;
}

static const GOptionEntry entries[] = {
    {"check", 'c', 0, G_OPTION_ARG_NONE, &want_check, "Check the site and change nothing", NULL},
    {"remove", 'r', 0, G_OPTION_ARG_NONE, &want_remove, "Remove the site and its data", NULL},
    {"validate", 0, 0, G_OPTION_ARG_NONE, &want_validate,
     "Check the text of the configuration alone", NULL},
    {"migrate", 'm', 0, G_OPTION_ARG_NONE, &want_migrate,
     "Move the catalogue to another metadata store", NULL},
    {"restore", 0, 0, G_OPTION_ARG_NONE, &want_restore,
     "Bring the catalogue back from what lies on the targets", NULL},
    {"reindex", 0, 0, G_OPTION_ARG_NONE, &want_reindex,
     "Make the index of times, boxes and values of all containers anew", NULL},
    {"calibrate", 0, G_OPTION_FLAG_OPTIONAL_ARG, G_OPTION_ARG_CALLBACK, (gpointer) parse_calibrate,
     "Measure the targets, for the placement of fragments", "quick"},
    {"target", 't', 0, G_OPTION_ARG_STRING, &only_target, "With --calibrate: this target alone",
     "NAME"},
    {"seconds", 0, 0, G_OPTION_ARG_DOUBLE, &calibrate.seconds,
     "With --calibrate: time for each target, about", "SECONDS"},
    {"plot", 0, 0, G_OPTION_ARG_FILENAME, &plot_file, "Draw measurements and model as SVG", "FILE"},
    {"plan", 0, 0, G_OPTION_ARG_FILENAME, &plan_file,
     "Predict where the output with this header would go", "FILE"},
    {"steps", 0, 0, G_OPTION_ARG_INT64, &plan_steps, "With --plan: length of unlimited dimensions",
     "NUMBER"},
    {"private-postgres", 0, 0, G_OPTION_ARG_FILENAME, &private_folder,
     "Make the site with a PostgreSQL server of its own in this folder", "FOLDER"},
    {"dry-run", 'n', 0, G_OPTION_ARG_NONE, &dry_run, "Tell what would be done, do nothing", NULL},
    {"yes", 'y', 0, G_OPTION_ARG_NONE, &yes,
     "Remove data without asking; make a target or the catalogue anew though packs are lost", NULL},
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
ask_for_data(esdm_site_options *options, esdm_error *err)
{
    uint64_t containers = 0, bytes = 0;
    esdm_status status = esdm_site_contents(options, &containers, &bytes, err);
    if (yes) {
        options->remove_data = true;
        return TOOL_OK;
    }
    if (status != ESDM_OK)
        return status == ESDM_ENOENT ? TOOL_OK : tool_fail(status, err);
    if (containers == 0 && bytes == 0)
        return TOOL_OK;
    g_autofree char *size = tool_bytes(bytes);
    g_autofree char *count =
        containers > 0 ? g_strdup_printf("%" G_GUINT64_FORMAT " container%s (%s)",
                                         (guint64) containers, containers == 1 ? "" : "s", size)
                       : g_strdup_printf("packs (%s, though no container)", size);
    if (!tool_can_ask()) {
        status = tool_error_set(err, ESDM_EEXIST, "the site holds %s; --yes removes the data, too",
                                count);
        (void) tool_fail(status, err);
        return TOOL_REFUSED;
    }
    g_autofree char *question = g_strdup_printf("Remove the site and its %s for good?", count);
    if (!tool_confirm(question)) {
        (void) tool_fail(tool_error_set(err, ESDM_ECANCELED, "nothing was removed"), err);
        return TOOL_REFUSED;
    }
    options->remove_data = true;
    return TOOL_OK;
}

static void
report_container(const esdm_finding *finding, void *user)
{
    g_autofree char *line = g_strdup_printf("%s: %s", finding->container, finding->what);
    report(line, user);
}

/* @param only_missing only of containers that have none. */
static esdm_status
reindex(const esdm_site_options *options, bool only_missing, esdm_error *err)
{
    const esdm_session_options open = {.config_path = options->config_path, .read_only = dry_run};
    const esdm_reindex_options what = {.report = report_container, .only_missing = only_missing};
    esdm_session *session = NULL;
    esdm_status status = esdm_session_open(&open, &session, err);
    if (status == ESDM_OK && !dry_run)
        status = esdm_reindex(session, &what, &reindexed, err);
    esdm_session_close(session);
    return status;
}

/* What came from journals is not in the index of times, boxes and values: they have none. */
static esdm_status
restore(const esdm_site_options *options, esdm_error *err)
{
    esdm_error why = {0};
    esdm_status status = esdm_site_restore(options, &restored, err);
    if (status != ESDM_OK || dry_run)
        return status;
    if (reindex(options, true, &why) != ESDM_OK)
        tool_error("the catalogue is back, but not all of what esdm-find answers from: %s; "
                   "esdm-mkfs --reindex makes it",
                   why.message);
    reindexed = (esdm_reindex_result){0}; /* what cannot be read was told */
    return ESDM_OK;
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
    if (want_restore)
        return restore(options, err);
    if (want_reindex)
        return reindex(options, false, err);
    if (want_calibrate)
        return mkfs_calibrate(options, &calibrate, err);
    if (private_folder != NULL)
        return mkfs_private_postgres(options, private_folder, err);
    return plot_file != NULL ? ESDM_OK : esdm_site_create(options, err);
}

/* Writes the plot, and the models as JSON. */
static esdm_status
show_models(const esdm_site_options *options, json_t **ret_models, esdm_error *err)
{
    g_autoptr(GPtrArray) models = NULL;
    esdm_status status = mkfs_models(options, &models, err);
    if (status != ESDM_OK)
        return status;
    if (tool.json)
        *ret_models = mkfs_models_json(models);
    if (plot_file == NULL)
        return ESDM_OK;
    if (models->len == 0)
        return tool_error_set(err, ESDM_ENOENT,
                              "no target of the site was measured; do it with --calibrate");
    return mkfs_plot(models, plot_file, err);
}

static const char *
action_name(void)
{
    return want_validate       ? "validate"
           : want_check        ? "check"
           : want_remove       ? "remove"
           : want_migrate      ? "migrate"
           : want_restore      ? "restore"
           : want_reindex      ? "reindex"
           : want_calibrate    ? "calibrate"
           : plot_file != NULL ? "plot"
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
    if (want_restore)
        return mkfs_restored_all(&restored) ? "the catalogue is back"
                                            : "the catalogue is back, but not all of it";
    if (want_reindex)
        return reindexed.failed == 0 ? "the index is whole" : "the index lacks these containers";
    if (want_calibrate)
        return "the metadata store keeps the model of the site";
    if (plot_file != NULL)
        return "the plot is written";
    return want_remove ? "the site is removed" : "the site is ready";
}

/* What --check says about the models: as far as there are some. */
static void
report_models(const esdm_site_options *options)
{
    g_autoptr(GPtrArray) models = NULL;
    esdm_error err = {0};
    if (mkfs_models(options, &models, &err) != ESDM_OK) {
        report(err.message, NULL);
        return;
    }
    for (guint i = 0; i < models->len; i++) {
        const esdm_model_info *m = g_ptr_array_index(models, i);
        g_autofree char *measured = tool_time(m->measured_ns);
        g_autofree char *line = g_strdup_printf(
            "target '%s' was measured %s, %s: 4 MiB in %.3g s; by what programs met since, latency "
            "%.2f and bandwidth %.2f times as long%s",
            m->target, measured, m->reading ? "read" : "write",
            esdm_model_seconds(m, 4 * 1024 * 1024, 1), m->latency_drift, m->bandwidth_drift,
            m->past_memory ? ""
                           : "; the memory of the machine had a part in the measurement, or an "
                             "older ESDM made it: --calibrate measures again");
        report(line, NULL);
    }
}

static void
print_result(const esdm_site_options *options, json_t *models, esdm_status status,
             const esdm_error *err)
{
    json_t *root = json_object();
    char *found = NULL; /* NULL: the embedded default */
    esdm_error why = {0};
    if (options->config_path == NULL && esdm_site_find(&found, &why) != ESDM_OK)
        found = NULL;
    const char *config = options->config_path != NULL ? options->config_path : found;
    tool_json_set(root, "action", json_string(action_name()));
    tool_json_set(root, "dry_run", json_boolean(dry_run));
    tool_json_set(root, "config", config != NULL ? tool_json_text(config) : json_null());
    free(found);
    tool_json_set(root, "steps", json_incref(steps));
    if (models != NULL)
        tool_json_set(root, "models", models);
    if (want_check)
        tool_json_set(root, "health", mkfs_health_json(options));
    if (want_reindex) {
        json_t *counts = json_object();
        tool_json_set(counts, "containers", json_integer((json_int_t) reindexed.containers));
        tool_json_set(counts, "failed", json_integer((json_int_t) reindexed.failed));
        tool_json_set(root, "result", counts);
    }
    if (want_restore)
        tool_json_set(root, "result", mkfs_restore_json(&restored));
    tool_json_set(root, "status",
                  json_string(status == ESDM_OK ? "ok" : esdm_status_string(status)));
    if (status != ESDM_OK)
        tool_json_set(root, "message", tool_json_text(err->message));
    tool_json_print(root);
}

/* Whether the options fit together; else the exit status. */
static tool_exit
check_measuring_options(void)
{
    if (only_target != NULL && !want_calibrate)
        return tool_usage("--target belongs to --calibrate");
    if (calibrate.seconds != 0 && !want_calibrate)
        return tool_usage("--seconds belongs to --calibrate");
    if (calibrate.seconds < 0 || !isfinite(calibrate.seconds))
        return tool_usage("--seconds must be more than 0");
    if (plot_file != NULL &&
        (want_check || want_remove || want_validate || want_migrate || want_restore))
        return tool_usage("--plot goes with --calibrate or alone");
    if (plot_file != NULL && dry_run)
        return tool_usage("--plot writes a file; --dry-run does nothing");
    if (private_folder != NULL && (plot_file != NULL || plan_file != NULL))
        return tool_usage("--private-postgres makes a site; --plot and --plan come later");
    if (plan_file != NULL && (want_check || want_remove || want_validate || want_migrate ||
                              want_restore || want_calibrate || plot_file != NULL || dry_run))
        return tool_usage("--plan goes alone: it changes nothing");
    if (plan_steps != 0 && plan_file == NULL)
        return tool_usage("--steps belongs to --plan");
    if (plan_steps < 0)
        return tool_usage("--steps must be at least 1");
    return TOOL_OK;
}

static tool_exit
plan(const esdm_site_options *options)
{
    esdm_error err = {0};
    json_t *root = json_object();
    esdm_status status = mkfs_plan(options, plan_file, (guint64) plan_steps, root, &err);
    if (status == ESDM_OK && tool.json)
        tool_json_print(root);
    else
        json_decref(root);
    return tool_finish(status == ESDM_OK ? TOOL_OK : tool_fail(status, &err));
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
    if (want_check + want_remove + want_validate + want_migrate + want_calibrate + want_restore +
            want_reindex + (private_folder != NULL) >
        1)
        return tool_usage("--check, --remove, --validate, --migrate, --restore, --reindex, "
                          "--private-postgres and --calibrate exclude each other");
    tool_exit fits = check_measuring_options();
    if (fits != TOOL_OK)
        return fits;
    calibrate.target = only_target;
    if (argc == 2 && tool.config != NULL)
        return tool_usage("CONFIG and --config name the same thing; give one");
    esdm_site_options options = {
        .config_path = argc == 2 ? argv[1] : tool.config,
        .dry_run = dry_run,
        .lasting = true,
        .anew = yes && !want_remove,
        .report = report,
        .part = tool.json && want_check ? mkfs_health_part : NULL,
    };
    if (plan_file != NULL)
        return plan(&options);
    steps = json_array();
    esdm_error err = {0};
    json_t *models = NULL;
    tool_exit refused = want_remove && !dry_run ? ask_for_data(&options, &err) : TOOL_OK;
    if (refused != TOOL_OK) {
        if (tool.json)
            print_result(&options, models, err.status, &err);
        json_decref(steps);
        return tool_finish(refused);
    }
    err = (esdm_error){0};
    esdm_status status = act(&options, &err);
    if (status == ESDM_OK && want_check)
        report_models(&options);
    if (status != ESDM_ECANCELED && !dry_run && (want_calibrate || plot_file != NULL)) {
        esdm_error why = {0}; /* what could be measured is shown in any case */
        esdm_status shown = show_models(&options, &models, &why);
        if (status == ESDM_OK) {
            status = shown;
            err = why;
        }
    }
    tool_exit result = status == ESDM_OK ? TOOL_OK : tool_fail(status, &err);
    if (status == ESDM_OK && want_restore && !mkfs_restored_all(&restored))
        result = TOOL_DAMAGED;
    if (status == ESDM_OK && reindexed.failed > 0)
        result = TOOL_DAMAGED;
    if (status == ESDM_OK && want_restore && !tool.json)
        mkfs_restore_report(&restored, dry_run);
    if (tool.json)
        print_result(&options, models, status, &err);
    else if (status == ESDM_OK)
        (void) printf("%s\n", closing_line());
    json_decref(steps);
    return tool_finish(result);
}
