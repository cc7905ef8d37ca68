/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "esdm-cp/esdm-cp.h"
#include "esdm-cp/zarr.h"

#include <stdio.h>
#include <string.h>

cp_options cp_wants = {
    .verify = TRUE, .jobs = CP_JOBS_DEFAULT, .deflate = CP_LEVEL_NONE, .zstd = CP_LEVEL_NONE};

static gboolean
parse_reflink(const gchar *option, const gchar *value, gpointer data, GError **error)
{
    static const char *const names[] = {"never", "auto", "always"};
    (void) option, (void) data;
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        if (g_str_equal(value, names[i])) {
            cp_wants.reflink = (cp_reflink) i;
            cp_wants.no_reflink = i == CP_REFLINK_NEVER;
            return TRUE;
        }
    }
    g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                "--reflink=%s: it is always, auto or never", value);
    return FALSE;
}

/* GLib would take the first source for the value of an option that may stand alone. */
static void
complete_reflink(int argc, char **argv)
{
    static char always[] = "--reflink=always";
    for (int i = 1; i < argc && !g_str_equal(argv[i], "--"); i++) {
        if (g_str_equal(argv[i], "--reflink"))
            argv[i] = always;
    }
}

static const GOptionEntry entries[] = {
    {"force", 'f', 0, G_OPTION_ARG_NONE, &cp_wants.force, "Replace what exists", NULL},
    {"skip-existing", 's', 0, G_OPTION_ARG_NONE, &cp_wants.skip_existing,
     "Leave targets that exist as they are, without an error", NULL},
    {"recursive", 'r', 0, G_OPTION_ARG_NONE, &cp_wants.recursive,
     "Copy folders and prefixes with all below", NULL},
    {"jobs", 'j', 0, G_OPTION_ARG_INT, &cp_wants.jobs,
     "Copies at the same time (default: number of cores)", "NUMBER"},
    {"timeout", 0, 0, G_OPTION_ARG_DOUBLE, &cp_wants.timeout_s,
     "Give up a source of which nothing is read or stored for so long, and go on with the next one "
     "(default: wait)",
     "SECONDS"},
    {"verify", 0, 0, G_OPTION_ARG_NONE, &cp_wants.verify, "Read back and compare (default)", NULL},
    {"no-verify", 0, G_OPTION_FLAG_REVERSE, G_OPTION_ARG_NONE, &cp_wants.verify,
     "Do not read back and compare", NULL},
    {"format", 0, 0, G_OPTION_ARG_STRING, &cp_wants.format,
     "classic, 64bit-offset, cdf5, netcdf4, netcdf4-classic, zarr or zarr2 instead of the source's",
     "KIND"},
    {"deflate", 0, 0, G_OPTION_ARG_INT, &cp_wants.deflate,
     "Compress NetCDF files with deflate, 1 (fast) to 9 (small); 0: not at all", "LEVEL"},
    {"zstd", 0, 0, G_OPTION_ARG_INT, &cp_wants.zstd,
     "Compress NetCDF files (readers need the filter, too) and Zarr stores with zstd, 1 to 22; "
     "0: not at all",
     "LEVEL"},
    {"keep-codecs", 0, 0, G_OPTION_ARG_NONE, &cp_wants.keep_codecs,
     "Compress NetCDF files as the containers are; readers need ESDM's filter in HDF5_PLUGIN_PATH",
     NULL},
    {"accuracy", 0, 0, G_OPTION_ARG_STRING_ARRAY, &cp_wants.accuracy,
     "How much a variable may be off in a container, beside what its attributes say: 'tas: "
     "abs=0.01 K; mode=archive' (see above); NAME may be a pattern; several are possible",
     "NAME:QUANTITIES"},
#ifndef ESDM_REF
    {"fit", 0, 0, G_OPTION_ARG_STRING, &cp_wants.fit,
     "Choose accuracies of variables so that all copies together take no more than that: 500MB, "
     "2TB, 1.5GiB (see above)",
     "SIZE"},
#endif
    {"reflink", 0, 0, G_OPTION_ARG_CALLBACK, parse_reflink,
     "Clone containers instead of copying their data: always (also without a WHEN), auto (where "
     "that "
     "is possible) or never (default)",
     "WHEN"},
    {"reference", 0, 0, G_OPTION_ARG_NONE, &cp_wants.reference,
     "Containers refer to the NetCDF files, whose values stay where they are (see esdm-ref)", NULL},
    {"members", 0, 0, G_OPTION_ARG_NONE, &cp_wants.members,
     "Members of an ensemble in GRIB files are a dimension, 'realization', in place of variables",
     NULL},
#ifdef ESDM_REF
    {"pin", 0, 0, G_OPTION_ARG_NONE, &cp_wants.pin,
     "Keep what the files have: they are cloned where their blocks can be shared, else their "
     "values "
     "are copied into ESDM",
     NULL},
    {"list", 0, 0, G_OPTION_ARG_FILENAME, &cp_wants.list,
     "Sources that a file names, one a line: paths and URLs; -: the standard input", "FILE"},
    {"update", 'u', 0, G_OPTION_ARG_NONE, &cp_wants.update,
     "Scan again: add what is new, replace what changed, leave what did not", NULL},
    {"delete", 0, 0, G_OPTION_ARG_NONE, &cp_wants.remove_gone,
     "With --update: remove containers whose source is gone", NULL},
    {"moved", 0, 0, G_OPTION_ARG_FILENAME, &cp_wants.moved,
     "As --update, of what lay below the folder OLD before", "OLD"},
#endif
    {"dry-run", 'n', 0, G_OPTION_ARG_NONE, &cp_wants.dry_run, "Tell what would be copied", NULL},
    {"verbose", 'v', 0, G_OPTION_ARG_NONE, &cp_wants.verbose, "One line for each copy", NULL},
    {"quiet", 'q', 0, G_OPTION_ARG_NONE, &cp_wants.quiet, "No progress bar, no summary", NULL},
    {0},
};

static bool
is_format(const char *name)
{
    static const char *const names[] = {"classic",         "64bit-offset", "cdf5", "netcdf4",
                                        "netcdf4-classic", "zarr",         "zarr2"};
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        if (g_str_equal(names[i], name))
            return true;
    }
    return false;
}

static char *
shown_name(bool is_container, const char *name)
{
    g_autofree char *whole = g_strconcat(is_container ? "esdm://" : "", name, NULL);
    return tool_printable(whole);
}

static void
print_job(const cp_job *job)
{
    g_autofree char *source = shown_name(job->from_container, job->source);
    g_autofree char *target = shown_name(job->to_container, job->target);
    if (job->pin_only)
        (void) printf("%s\n", target);
    else
        (void) printf("%s -> %s\n", source, target);
}

/* ---- results ------------------------------------------------------------------------------ */

typedef struct totals {
    guint copied;
    guint cloned; /* of them */
    guint skipped;
    guint failed;
    uint64_t bytes;
    tool_exit result; /* of the first failure */
} totals;

/* As programs are told when they close a container. */
static void
warn_of_writes(const cp_job *job, const esdm_write_counts *writes)
{
    if (writes->elsewhere > 0)
        tool_error("copy '%s': a target was full, failed or was not reached: %" G_GUINT64_FORMAT
                   " of %" G_GUINT64_FORMAT
                   " fragments are on another one than planned (esdm-mkfs --check tells "
                   "what is wrong with which)",
                   job->target, (guint64) writes->elsewhere, (guint64) writes->fragments);
    if (writes->fewer_copies > 0)
        tool_error("copy '%s': %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
                   " fragments have fewer copies than asked for: esdm-fsck --repair makes the "
                   "others",
                   job->target, (guint64) writes->fewer_copies, (guint64) writes->fragments);
}

static void
warn_of_left_out(const cp_job *job, const cp_left_out *left_out)
{
    if (left_out->datasets > 0)
        tool_error("copy '%s': %" G_GUINT64_FORMAT " variable%s stored without %s, which the "
                   "source has and %s; --deflate LEVEL compresses",
                   job->target, (guint64) left_out->datasets,
                   left_out->datasets == 1 ? " is" : "s are", left_out->names,
                   cp_wants.format != NULL && !g_str_has_prefix(cp_wants.format, "netcdf4")
                       ? "the classic formats do not have"
                       : "this libnetcdf does not (HDF5_PLUGIN_PATH)");
}

static totals
sum_up(const GPtrArray *jobs, cp_result *results, const GPtrArray *trees)
{
    totals sum = {0};
    if (trees != NULL)
        cp_moved_tell(jobs, results, trees);
    for (guint i = 0; i < jobs->len; i++) {
        if (results[i].status == ESDM_OK && results[i].skipped) {
            sum.skipped++;
            continue;
        }
        if (results[i].status == ESDM_OK &&
            (results[i].change >= CP_CHANGE_NONE || cp_wants.dry_run))
            continue;
        if (results[i].status == ESDM_OK) {
            sum.copied++;
            sum.cloned += results[i].cloned;
            sum.bytes += results[i].bytes;
            warn_of_writes(g_ptr_array_index(jobs, i), &results[i].writes);
            warn_of_left_out(g_ptr_array_index(jobs, i), &results[i].left_out);
            continue;
        }
        sum.failed++;
        const cp_job *job = g_ptr_array_index(jobs, i);
        esdm_error err = {.status = results[i].status};
        /* The library's messages need not name the copy. */
        if (strstr(results[i].message, job->source) != NULL ||
            strstr(results[i].message, job->target) != NULL)
            g_strlcpy(err.message, results[i].message, sizeof err.message);
        else
            (void) g_snprintf(err.message, sizeof err.message, "%s: %s", job->source,
                              results[i].message);
        tool_exit one = results[i].told ? TOOL_REFUSED : tool_fail(results[i].status, &err);
        sum.result = sum.result == TOOL_OK ? one : sum.result;
    }
    return sum;
}

static json_t *
job_json(const cp_job *job, const cp_result *result)
{
    json_t *object = json_object();
    g_autofree char *source = g_strconcat(job->from_container ? "esdm://" : "", job->source, NULL);
    g_autofree char *target = g_strconcat(job->to_container ? "esdm://" : "", job->target, NULL);
    tool_json_set(object, "source", tool_json_text(source));
    tool_json_set(object, "target", tool_json_text(target));
    if (result == NULL)
        return object;
    tool_json_set(object, "status",
                  json_string(result->status != ESDM_OK ? esdm_status_string(result->status)
                              : result->skipped         ? "skipped"
                                                        : "ok"));
    if (result->status != ESDM_OK)
        tool_json_set(object, "message", tool_json_text(result->message));
    if (result->change != CP_CHANGE_UNKNOWN)
        tool_json_set(object, "change", json_string(cp_change_name(result->change)));
    if (result->pinned)
        tool_json_set(object, "pinned", cp_pin_json(result));
    tool_json_set(object, "bytes", tool_json_u64(result->bytes));
    tool_json_set(object, "datasets", tool_json_u64(result->datasets));
    tool_json_set(object, "cloned", json_boolean(result->cloned));
    if (cp_wants.reference)
        tool_json_set(object, "referred", tool_json_u64(result->referred));
    tool_json_set(object, "seconds", json_real(result->seconds));
    if (result->left_out.datasets > 0) {
        tool_json_set(object, "without_filters", json_string(result->left_out.names));
        tool_json_set(object, "datasets_without_filters", tool_json_u64(result->left_out.datasets));
    }
    if (job->to_container && result->status == ESDM_OK && !result->skipped) {
        json_t *writes = json_object();
        tool_json_set(writes, "fragments", tool_json_u64(result->writes.fragments));
        tool_json_set(writes, "elsewhere", tool_json_u64(result->writes.elsewhere));
        tool_json_set(writes, "fewer_copies", tool_json_u64(result->writes.fewer_copies));
        tool_json_set(object, "writes", writes);
    }
    return object;
}

static void
print_json(const GPtrArray *jobs, const cp_result *results, const totals *sum,
           const cp_swept *swept, double seconds)
{
    json_t *root = json_object(), *list = json_array();
    for (guint i = 0; i < jobs->len; i++)
        tool_json_append(
            list, job_json(g_ptr_array_index(jobs, i), results != NULL ? &results[i] : NULL));
    tool_json_set(root, "dry_run", json_boolean(cp_wants.dry_run));
    tool_json_set(root, "verified", json_boolean(cp_wants.verify && results != NULL));
    tool_json_set(root, "copied", tool_json_u64(sum->copied));
    tool_json_set(root, "cloned", tool_json_u64(sum->cloned));
    tool_json_set(root, "skipped", tool_json_u64(sum->skipped));
    tool_json_set(root, "failed", tool_json_u64(sum->failed));
    tool_json_set(root, "bytes", tool_json_u64(sum->bytes));
    tool_json_set(root, "seconds", json_real(seconds));
    tool_json_set(root, "copies", list);
    if (swept != NULL) {
        cp_counts counts = cp_update_counts(jobs, results, swept);
        cp_update_json(root, &counts, swept);
    }
    tool_json_print(root);
}

static void
print_text(const GPtrArray *jobs, const cp_result *results, const totals *sum, double seconds)
{
    for (guint i = 0; i < jobs->len; i++)
        cp_pin_print(g_ptr_array_index(jobs, i), &results[i]);
    if (cp_wants.keep_codecs && !cp_wants.quiet && sum->result == TOOL_OK)
        cp_keep_tell();
    for (guint i = 0; i < jobs->len && cp_wants.verbose && !cp_wants.pin; i++) {
        if (results[i].status == ESDM_OK && !results[i].skipped)
            print_job(g_ptr_array_index(jobs, i));
    }
    if (cp_wants.quiet || (jobs->len == 1 && !cp_wants.verbose))
        return;
    g_autofree char *size = tool_bytes(sum->bytes);
    if (sum->cloned > 0)
        (void) printf("%u cloned, ", sum->cloned);
    if (sum->cloned == 0 || sum->copied > sum->cloned)
        (void) printf("%u %s%s, ", sum->copied - sum->cloned,
                      cp_wants.reference ? "referred to" : "copied",
                      cp_wants.verify && !cp_wants.reference ? " and verified" : "");
    if (cp_wants.skip_existing)
        (void) printf("%u skipped, ", sum->skipped);
    (void) printf("%u failed, %s in %.1f s\n", sum->failed, size, seconds);
}

static tool_exit
update(const GPtrArray *jobs, const GPtrArray *trees)
{
    cp_result *results = NULL;
    cp_swept swept = {0};
    gint64 started_us = g_get_monotonic_time();
    if (jobs->len > 0)
        cp_run(jobs, &results);
    tool_exit result = cp_update_sweep(jobs, trees, &swept);
    double seconds = (double) (g_get_monotonic_time() - started_us) / 1e6;
    totals sum = sum_up(jobs, results, trees);
    for (guint i = 0; i < jobs->len && !tool.json; i++)
        cp_pin_print(g_ptr_array_index(jobs, i), &results[i]);
    if (tool.json)
        print_json(jobs, results, &sum, &swept, seconds);
    else
        cp_update_print(jobs, results, &swept, seconds);
    g_ptr_array_unref(swept.gone);
    return sum.result == TOOL_OK ? result : sum.result;
}

static tool_exit
run(const GPtrArray *jobs)
{
    totals sum = {0};
    if (cp_wants.dry_run) {
        if (tool.json)
            print_json(jobs, NULL, &sum, NULL, 0);
        for (guint i = 0; i < jobs->len && !tool.json; i++)
            print_job(g_ptr_array_index(jobs, i));
        return TOOL_OK;
    }
    cp_result *results = NULL;
    gint64 started_us = g_get_monotonic_time();
    if (!cp_accuracy_begin())
        return TOOL_FAILED;
    cp_run(jobs, &results);
    double seconds = (double) (g_get_monotonic_time() - started_us) / 1e6;
    sum = sum_up(jobs, results, NULL);
    if (cp_wants.fit == NULL && tool.json) /* else cp_fit() tells */
        print_json(jobs, results, &sum, NULL, seconds);
    else if (cp_wants.fit == NULL)
        print_text(jobs, results, &sum, seconds);
    tool_exit stated = cp_accuracy_end();
    return sum.result == TOOL_OK ? stated : sum.result;
}

/* A dry run does not look at targets otherwise. */
static tool_exit
leave_out_existing(GPtrArray *jobs)
{
    esdm_session *session = NULL;
    tool_exit result = TOOL_OK;
    for (guint i = 0; i < jobs->len && result == TOOL_OK;) {
        const cp_job *job = g_ptr_array_index(jobs, i);
        bool exists = false;
        esdm_error err = {0};
        if (job->to_container && session == NULL)
            result = tool_session(true, &session);
        if (result != TOOL_OK)
            break;
        esdm_status status = cp_job_exists(job, session, &exists, &err);
        if (status != ESDM_OK)
            result = tool_fail(status, &err);
        else if (exists)
            (void) g_ptr_array_remove_index(jobs, i);
        else
            i++;
    }
    esdm_session_close(session);
    return result;
}

/* NULL, or what is wrong with --deflate and --zstd. */
static const char *
wrong_level(const GPtrArray *jobs)
{
    bool deflate = cp_wants.deflate != CP_LEVEL_NONE, zstd = cp_wants.zstd != CP_LEVEL_NONE;
    if (deflate && zstd)
        return "--deflate and --zstd exclude each other";
    if (deflate && (cp_wants.deflate < 0 || cp_wants.deflate > 9))
        return "--deflate needs a level from 0 to 9";
    if (zstd && (cp_wants.zstd < 0 || cp_wants.zstd > 22))
        return "--zstd needs a level from 0 to 22";
    for (guint i = 0; deflate && i < jobs->len; i++) {
        if (cp_zarr_format(g_ptr_array_index(jobs, i)) != 0)
            return "Zarr stores are compressed by --zstd LEVEL";
    }
    if ((deflate || zstd) && cp_wants.format != NULL &&
        !g_str_has_prefix(cp_wants.format, "netcdf4") && !g_str_has_prefix(cp_wants.format, "zarr"))
        return "the classic formats have no compression: --format netcdf4-classic has";
    for (guint i = 0; (deflate || zstd) && i < jobs->len; i++) {
        if (((const cp_job *) g_ptr_array_index(jobs, i))->to_container)
            return "--deflate and --zstd are for NetCDF files; what a container is stored with, "
                   "--accuracy and the site's engine.codec say";
    }
    return NULL;
}

/* NULL, or what is wrong with --keep-codecs. */
static const char *
wrong_keep(const GPtrArray *jobs)
{
    if (!cp_wants.keep_codecs)
        return NULL;
    if (cp_wants.deflate != CP_LEVEL_NONE || cp_wants.zstd != CP_LEVEL_NONE)
        return "--keep-codecs, --deflate and --zstd exclude each other";
    bool good = cp_wants.format == NULL || g_str_has_prefix(cp_wants.format, "netcdf4");
    for (guint i = 0; good && i < jobs->len; i++) {
        const cp_job *job = g_ptr_array_index(jobs, i);
        good = job->from_container && !job->to_container && cp_zarr_format(job) == 0;
    }
    return good ? NULL : "--keep-codecs makes netCDF-4 files of containers";
}

/* NULL, or what is wrong with --format zarr. */
static const char *
wrong_zarr(const GPtrArray *jobs)
{
    bool wanted = cp_wants.format != NULL && g_str_has_prefix(cp_wants.format, "zarr");
    for (guint i = 0; wanted && i < jobs->len; i++) {
        if (((const cp_job *) g_ptr_array_index(jobs, i))->to_container)
            return "a Zarr store is a folder, no container (esdm://NAME)";
    }
    return NULL;
}

/* NULL, or what is wrong with --reflink. */
static const char *
wrong_reflink(const GPtrArray *jobs)
{
    if (cp_wants.reflink != CP_REFLINK_ALWAYS)
        return NULL;
    if (cp_wants.accuracy != NULL || cp_wants.format != NULL)
        return "--accuracy and --format say how values are stored; a clone has them as they are "
               "(--reflink=auto copies then)";
    for (guint i = 0; i < jobs->len; i++) {
        const cp_job *job = g_ptr_array_index(jobs, i);
        if (!job->from_container || !job->to_container)
            return "--reflink makes containers (esdm://NAME) of containers (--reflink=auto copies "
                   "what else there is)";
    }
    return NULL;
}

/* NULL, or what is wrong with --reference. */
static const char *
wrong_reference(const GPtrArray *jobs)
{
    if (!cp_wants.reference)
        return NULL;
    if (cp_wants.accuracy != NULL)
        return "--accuracy says how values are stored; with --reference they stay as they are";
    for (guint i = 0; i < jobs->len; i++) {
        const cp_job *job = g_ptr_array_index(jobs, i);
        if (!job->pin_only && (job->from_container || !job->to_container))
            return "--reference makes containers (esdm://NAME) of NetCDF files";
    }
    return NULL;
}

int
main(int argc, char **argv)
{
    esdm_error err = {0};
#ifdef ESDM_REF
    cp_wants.reference = cp_wants.recursive = TRUE;
    cp_wants.verify = FALSE;
#endif
    complete_reflink(argc, argv);
    tool_parse(&cp_help, entries, &argc, &argv);
    cp_wants.update |= cp_wants.moved != NULL;
    bool pin_only = cp_pin_only(argv + 1, argc - 1);
    if (cp_wants.list != NULL)
        pin_only = false;
    if (argc < (cp_wants.list != NULL ? 2 : 3) && !pin_only)
        return tool_usage("which source, which target?");
    if (pin_only && (cp_wants.update || cp_wants.skip_existing || cp_wants.force))
        return tool_usage("--update, --skip-existing and --force are about sources: name them");
    if (cp_wants.pin && cp_wants.reflink == CP_REFLINK_ALWAYS)
        return tool_usage("--pin clones files where it can; it goes with --reflink=never, which "
                          "copies all");
    if (cp_wants.jobs < 1 && cp_wants.jobs != CP_JOBS_DEFAULT)
        return tool_usage("--jobs needs a number from 1");
    if (!(cp_wants.timeout_s >= 0))
        return tool_usage("--timeout takes seconds, 0 or more");
    if (cp_wants.force && cp_wants.skip_existing)
        return tool_usage("--force and --skip-existing exclude each other");
    if (cp_wants.remove_gone && !cp_wants.update)
        return tool_usage("--delete goes with --update");
    if (cp_wants.update && cp_wants.skip_existing)
        return tool_usage("--update and --skip-existing exclude each other");
    if (cp_wants.format != NULL && !is_format(cp_wants.format))
        return tool_usage("there is no format '%s'", cp_wants.format);
    if (cp_accuracy_wrong() != NULL)
        return tool_usage("--accuracy '%s' is not NAME: QUANTITIES, such as 'tas: abs=0.01 K'",
                          cp_accuracy_wrong());
    if (!cp_accuracy_check(&err))
        return tool_usage("%s", err.message);
    GPtrArray *jobs = NULL, *trees = NULL;
    tool_exit result = TOOL_OK;
    if (pin_only) {
        jobs = g_ptr_array_new_with_free_func(cp_job_free);
        trees = g_ptr_array_new();
        result = cp_pin_plan(argv + 1, argc - 1, jobs);
    } else {
        result = cp_plan(argv + 1, argc - 1, &jobs, &trees);
    }
    if (result == TOOL_OK && wrong_keep(jobs) != NULL)
        result = tool_usage("%s", wrong_keep(jobs));
    if (result == TOOL_OK && wrong_zarr(jobs) != NULL)
        result = tool_usage("%s", wrong_zarr(jobs));
    if (result == TOOL_OK && wrong_level(jobs) != NULL)
        result = tool_usage("%s", wrong_level(jobs));
    if (result == TOOL_OK && wrong_reflink(jobs) != NULL)
        result = tool_usage("%s", wrong_reflink(jobs));
    if (result == TOOL_OK && cp_fit_wrong(jobs) != NULL)
        result = tool_usage("%s", cp_fit_wrong(jobs));
    if (result == TOOL_OK && wrong_reference(jobs) != NULL)
        result = tool_usage("%s", wrong_reference(jobs));
    if (result == TOOL_OK && cp_wants.dry_run && cp_wants.skip_existing)
        result = leave_out_existing(jobs);
    if (result == TOOL_OK)
        result = cp_wants.update        ? update(jobs, trees)
                 : cp_wants.fit != NULL ? cp_fit(argv + 1, argc - 2, jobs, run)
                                        : run(jobs);
    g_ptr_array_unref(jobs);
    g_ptr_array_unref(trees);
    return tool_finish(result);
}
