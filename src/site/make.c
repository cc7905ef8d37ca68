/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Making, checking and removing what a site configuration describes (esdm-mkfs). */

#include "site/site.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/error.h"
#include "plugin/registry.h"
#include "site/parts.h"

/* ---- the parts of a site: its targets, then its metadata store ----------------------------- */

typedef struct part {
    const esdm__site_target *target;
    const esdm_data_plugin *data; /* one of the two is set */
    const esdm_meta_plugin *meta;
    esdm_plugin_config config;
} part;

typedef struct report_to {
    esdm_plugin_reporter report; /* never NULL: plug-ins need not check */
    void *user;
} report_to;

static void
report_nothing(const char *line, void *user)
{
    (void) line;
    (void) user;
}

static report_to
reporter(esdm_site_reporter report, void *user)
{
    return (report_to){.report = report != NULL ? report : report_nothing, .user = user};
}

static void say(const report_to *to, const char *format, ...) ESDM_PRINTF(2, 3);

static void
say(const report_to *to, const char *format, ...)
{
    char line[ESDM_ERROR_MESSAGE_BYTES + 256];
    va_list args;
    va_start(args, format);
    (void) vsnprintf(line, sizeof line, format, args);
    va_end(args);
    to->report(line, to->user);
}

/* Index ntargets is the metadata store. */
static esdm_status
part_at(const esdm__site *site, size_t index, part *ret_part, esdm_error *err)
{
    bool is_meta = index == site->ntargets;
    const esdm__site_target *target = is_meta ? &site->metadata : &site->targets[index];
    const esdm_plugin *plugin = NULL;
    esdm_status status = esdm__plugin_find(is_meta ? ESDM_PLUGIN_META : ESDM_PLUGIN_DATA,
                                           target->plugin, &plugin, err);
    if (status != ESDM_OK) {
        (void) esdm__error_prefix(err, status, "%s", target->path);
        return status;
    }
    *ret_part = (part){.target = target};
    if (is_meta)
        ret_part->meta = (const esdm_meta_plugin *) plugin;
    else
        ret_part->data = (const esdm_data_plugin *) plugin;
    esdm__site_plugin_config(site, target, &ret_part->config);
    return ESDM_OK;
}

static esdm_status
part_make(const part *p, bool dry_run, const report_to *to, esdm_error *err)
{
    return p->meta != NULL ? p->meta->make(&p->config, dry_run, to->report, to->user, err)
                           : p->data->make(&p->config, dry_run, to->report, to->user, err);
}

static esdm_status
part_check(const part *p, const report_to *to, esdm_error *err)
{
    return p->meta != NULL ? p->meta->check(&p->config, to->report, to->user, err)
                           : p->data->check(&p->config, to->report, to->user, err);
}

static esdm_status
part_remove(const part *p, bool dry_run, const report_to *to, esdm_error *err)
{
    return p->meta != NULL ? p->meta->remove(&p->config, dry_run, to->report, to->user, err)
                           : p->data->remove(&p->config, dry_run, to->report, to->user, err);
}

/* ---- make --------------------------------------------------------------------------------- */

static esdm_status
make_parts(const esdm__site *site, bool dry_run, const report_to *to, esdm_error *err)
{
    for (size_t i = 0; i <= site->ntargets; i++) {
        part p;
        esdm_status status = part_at(site, i, &p, err);
        if (status == ESDM_OK)
            status = part_make(&p, dry_run, to, err);
        if (status != ESDM_OK)
            return status;
    }
    return ESDM_OK;
}

/* The default site is made by whoever comes first: a lock on its folder lets the others wait.
 * Some network file systems cannot lock a folder; there the plug-ins' own care must do. */
static esdm_status
make_embedded(const esdm__site *site, const report_to *to, esdm_error *err)
{
    char *base = NULL;
    esdm_status status = esdm__site_data_folder(&base, err);
    if (status == ESDM_OK)
        status = esdm__site_make_folders(base, err);
    if (status != ESDM_OK) {
        free(base);
        return esdm__error_prefix(err, status, "the default site cannot be made");
    }
    int fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        status = esdm__error_set_errno(err, errno, "cannot open the folder '%s'", base);
        free(base);
        return status;
    }
    free(base);
    while (flock(fd, LOCK_EX) != 0 && errno == EINTR)
        continue;
    status = make_parts(site, false, to, err);
    (void) close(fd); /* gives up the lock */
    return status;
}

esdm_status
esdm__site_make(const esdm__site *site, bool dry_run, esdm_plugin_reporter report, void *user,
                esdm_error *err)
{
    const report_to to = reporter(report, user);
    if (site->embedded && !dry_run)
        return make_embedded(site, &to, err);
    /* Nothing is touched unless every part can be made. */
    const report_to silent = reporter(NULL, NULL);
    esdm_status status = dry_run ? ESDM_OK : make_parts(site, true, &silent, err);
    return status == ESDM_OK ? make_parts(site, dry_run, &to, err) : status;
}

/* ---- contents ----------------------------------------------------------------------------- */

typedef struct contents {
    uint64_t containers;
    uint64_t packs;
    uint64_t used_bytes;
    uint64_t free_bytes;
} contents;

static bool
count_container(const char *name, const esdm_meta_container *record, void *user)
{
    (void) name;
    (void) record;
    ((contents *) user)->containers++;
    return true;
}

static esdm_status
meta_contents(const part *p, contents *sum, esdm_error *err)
{
    void *store = NULL;
    esdm_status status = p->meta->open(&p->config, true, &store, err);
    if (status != ESDM_OK)
        return status;
    status = p->meta->container_list(store, NULL, count_container, sum, err);
    p->meta->close(store);
    return status;
}

static esdm_status
data_contents(const part *p, contents *sum, esdm_error *err)
{
    void *target = NULL;
    esdm_target_usage usage = {0};
    esdm_status status = p->data->open(&p->config, &target, err);
    if (status != ESDM_OK)
        return status;
    status = p->data->usage(target, &usage, err);
    p->data->close(target);
    sum->packs += usage.packs;
    sum->used_bytes += usage.used_bytes;
    sum->free_bytes += usage.free_bytes;
    return status;
}

static esdm_status
part_contents(const part *p, contents *sum, esdm_error *err)
{
    return p->meta != NULL ? meta_contents(p, sum, err) : data_contents(p, sum, err);
}

/* Sums up all parts; one that was never made counts as empty. */
static esdm_status
site_contents(const esdm__site *site, contents *ret_sum, size_t *ret_made, esdm_error *err)
{
    contents sum = {0};
    *ret_made = 0;
    for (size_t i = 0; i <= site->ntargets; i++) {
        part p;
        esdm_status status = part_at(site, i, &p, err);
        if (status == ESDM_OK) {
            esdm_error absent;
            status = part_contents(&p, &sum, &absent);
            *ret_made += status == ESDM_OK;
            if (status == ESDM_ENOENT)
                continue;
            if (status != ESDM_OK && err != NULL)
                *err = absent;
        }
        if (status != ESDM_OK)
            return status;
    }
    *ret_sum = sum;
    return ESDM_OK;
}

/* ---- check -------------------------------------------------------------------------------- */

static void
format_bytes(uint64_t bytes, char ret_text[24])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double) bytes;
    size_t unit = 0;
    for (; value >= 1024 && unit + 1 < sizeof units / sizeof units[0]; unit++)
        value /= 1024;
    (void) snprintf(ret_text, 24, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

static void
report_healthy(const part *p, const contents *sum, const report_to *to)
{
    if (p->meta != NULL) {
        say(to, "metadata (%s): good, %" PRIu64 " container%s", p->target->plugin, sum->containers,
            sum->containers == 1 ? "" : "s");
        return;
    }
    char used[24], left[24];
    format_bytes(sum->used_bytes, used);
    format_bytes(sum->free_bytes, left);
    say(to, "target \"%s\" (%s): good, %s in %" PRIu64 " pack%s, %s free", p->target->name,
        p->target->plugin, used, sum->packs, sum->packs == 1 ? "" : "s",
        sum->free_bytes > 0 ? left : "an unknown amount");
}

static esdm_status
check_part(const esdm__site *site, size_t index, const report_to *to, esdm_error *err)
{
    part p;
    contents sum = {0};
    esdm_status status = part_at(site, index, &p, err);
    if (status != ESDM_OK) {
        say(to, "%s", err->message);
        return status;
    }
    status = part_check(&p, to, err); /* reports what it finds itself */
    if (status != ESDM_OK)
        return status;
    status = part_contents(&p, &sum, err);
    if (status != ESDM_OK)
        say(to, "%s", err->message);
    else
        report_healthy(&p, &sum, to);
    return status;
}

static esdm_status
check_site(const esdm__site *site, const report_to *to, esdm_error *err)
{
    esdm_status first = ESDM_OK;
    for (size_t i = 0; i <= site->ntargets; i++) {
        esdm_error problem;
        esdm_status status = check_part(site, i, to, &problem);
        if (status != ESDM_OK && first == ESDM_OK) {
            first = status;
            if (err != NULL)
                *err = problem;
        }
    }
    return first;
}

/* ---- remove ------------------------------------------------------------------------------- */

/* ESDM_ENOENT of a part means that it is gone already: an interrupted removal can be repeated. A
 * site of which nothing is there is ESDM_ENOENT itself. */
static esdm_status
remove_parts(const esdm__site *site, bool dry_run, const report_to *to, esdm_error *err)
{
    size_t absent = 0;
    for (size_t i = 0; i <= site->ntargets; i++) {
        part p;
        esdm_error problem;
        esdm_status status = part_at(site, i, &p, err);
        if (status != ESDM_OK)
            return status;
        status = part_remove(&p, dry_run, to, &problem);
        if (status == ESDM_ENOENT) {
            say(to, "%s: nothing to remove (%s)", p.target->path, problem.message);
            absent++;
        } else if (status != ESDM_OK) {
            if (err != NULL)
                *err = problem;
            return status;
        }
    }
    if (absent <= site->ntargets)
        return ESDM_OK;
    return esdm__error_set(err, ESDM_ENOENT, "nothing of the site \"%s\" of %s is there",
                           site->name, site->source);
}

static esdm_status
refuse_data(const esdm__site *site, esdm_error *err)
{
    contents sum = {0};
    size_t made = 0;
    esdm_status status = site_contents(site, &sum, &made, err);
    if (status != ESDM_OK)
        return esdm__error_prefix(err, status, "cannot tell whether the site holds data");
    if (sum.containers > 0)
        return esdm__error_set(err, ESDM_EEXIST,
                               "the site \"%s\" holds %" PRIu64
                               " container%s; removing it destroys "
                               "them, which must be asked for",
                               site->name, sum.containers, sum.containers == 1 ? "" : "s");
    return ESDM_OK;
}

static void
remove_embedded_folder(const esdm__site *site)
{
    char *base = NULL;
    if (site->embedded && esdm__site_data_folder(&base, NULL) == ESDM_OK)
        (void) rmdir(base); /* only when empty; anything else in it is not ours */
    free(base);
}

static esdm_status
remove_site(const esdm__site *site, const esdm_site_options *options, const report_to *to,
            esdm_error *err)
{
    if (!options->remove_data && !options->dry_run) {
        esdm_status status = refuse_data(site, err);
        if (status != ESDM_OK)
            return status;
    }
    /* Nothing is removed unless every part may be. */
    const report_to silent = reporter(NULL, NULL);
    const report_to *listing = options->dry_run ? to : &silent;
    esdm_status status = remove_parts(site, true, listing, err);
    if (status != ESDM_OK || options->dry_run)
        return status;
    status = remove_parts(site, false, to, err);
    if (status == ESDM_OK)
        remove_embedded_folder(site);
    return status;
}

/* ---- public functions --------------------------------------------------------------------- */

static const esdm_site_options no_options = {0};

static esdm_status
load(const esdm_site_options **options, esdm__site **ret_site, esdm_error *err)
{
    if (*options == NULL)
        *options = &no_options;
    return esdm__site_load((*options)->config_json, (*options)->config_path, ret_site, err);
}

esdm_status
esdm_site_validate(const esdm_site_options *options, esdm_error *err)
{
    esdm__site *site = NULL;
    esdm_status status = load(&options, &site, err);
    esdm__site_free(site);
    return status;
}

esdm_status
esdm_site_create(const esdm_site_options *options, esdm_error *err)
{
    esdm__site *site = NULL;
    esdm_status status = load(&options, &site, err);
    if (status == ESDM_OK)
        status = esdm__site_make(site, options->dry_run, options->report, options->user, err);
    esdm__site_free(site);
    return status;
}

esdm_status
esdm_site_check(const esdm_site_options *options, esdm_error *err)
{
    esdm__site *site = NULL;
    esdm_status status = load(&options, &site, err);
    if (status == ESDM_OK) {
        const report_to to = reporter(options->report, options->user);
        status = check_site(site, &to, err);
    }
    esdm__site_free(site);
    return status;
}

esdm_status
esdm_site_remove(const esdm_site_options *options, esdm_error *err)
{
    esdm__site *site = NULL;
    esdm_status status = load(&options, &site, err);
    if (status == ESDM_OK) {
        const report_to to = reporter(options->report, options->user);
        status = remove_site(site, options, &to, err);
    }
    esdm__site_free(site);
    return status;
}

esdm_status
esdm_site_contents(const esdm_site_options *options, uint64_t *ret_containers, uint64_t *ret_bytes,
                   esdm_error *err)
{
    esdm__site *site = NULL;
    contents sum = {0};
    size_t made = 0;
    esdm_status status = load(&options, &site, err);
    if (status == ESDM_OK)
        status = site_contents(site, &sum, &made, err);
    if (status == ESDM_OK && made == 0)
        status = esdm__error_set(err, ESDM_ENOENT,
                                 "the site \"%s\" of %s was not made yet; run "
                                 "esdm-mkfs",
                                 site->name, site->source);
    esdm__site_free(site);
    if (status == ESDM_OK) {
        *ret_containers = sum.containers;
        *ret_bytes = sum.used_bytes;
    }
    return status;
}
