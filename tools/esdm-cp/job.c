/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* One copy. It is written under a temporary name beside its target, verified there, and renamed:
 * the target's name never stands for half a copy or for one that differs. */

#include "esdm-cp/esdm-cp.h"

#include <errno.h>
#include <math.h>
#include <netcdf.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "esdm-cp/zarr.h"
#include "refer/grib.h"
#include "refer/refer.h"
#include "refer/remote.h"

static volatile sig_atomic_t interrupted;
static volatile sig_atomic_t grace_s; /* 0: for ever */

static void
note_interrupt(int signal_number)
{
    (void) signal_number;
    interrupted = 1;
    if (grace_s > 0)
        (void) alarm((unsigned) grace_s);
}

bool
cp_is_interrupted(void)
{
    return interrupted != 0;
}

void
cp_end_after_interrupt(double seconds)
{
    grace_s = (sig_atomic_t) ceil(MIN(seconds, 1e9));
    if (grace_s == 0)
        (void) alarm(0);
    else if (cp_is_interrupted())
        (void) alarm((unsigned) grace_s);
}

void
cp_catch_interrupts(void)
{
    /* The second one ends the process at once. */
    struct sigaction action = {.sa_handler = note_interrupt, .sa_flags = (int) SA_RESETHAND};
    (void) sigemptyset(&action.sa_mask);
    (void) sigaction(SIGINT, &action, NULL);
    (void) sigaction(SIGTERM, &action, NULL);
    (void) sigaction(SIGHUP, &action, NULL);
}

typedef struct copy {
    const cp_job *job;
    esdm_session *session;
    cp_end source;
    cp_end target;         /* under its temporary name */
    cp_model *model;       /* of the source */
    cp_referrer *referrer; /* values stay in the source; NULL: they are copied */
    char *seen;            /* what the source was before it was opened; of references */
    bool replace;          /* what exists */
    uint64_t referred;     /* datasets */
    uint64_t bytes_done;
    uint64_t bytes_total;
    cp_progress progress;
    void *user;
    esdm_error *err;
} copy;

static esdm_status
advance(copy *c, const cp_dataset *dataset, const cp_slab *slab)
{
    c->bytes_done += slab->elements * dataset->type->bytes;
    if (c->progress != NULL)
        c->progress(c->bytes_done, c->bytes_total, c->user);
    if (cp_is_interrupted())
        return tool_error_set(c->err, ESDM_ECANCELED, "%s: interrupted", c->job->source);
    return ESDM_OK;
}

static esdm_status
allocate(copy *c, const cp_dataset *dataset, const cp_slab *slab, void **ret_buffer)
{
    size_t bytes = slab->most_elements * dataset->type->bytes;
    *ret_buffer = calloc(1, MAX(bytes, 1));
    if (*ret_buffer == NULL)
        return tool_error_set(c->err, ESDM_ENOMEM, "%s: no memory for %zu bytes", dataset->path,
                              bytes);
    return ESDM_OK;
}

/* ---- copying ------------------------------------------------------------------------------ */

static esdm_status
copy_dataset(copy *c, const cp_dataset *dataset)
{
    cp_slab slab;
    void *buffer = NULL;
    cp_slab_init(&slab, dataset);
    esdm_status status = allocate(c, dataset, &slab, &buffer);
    while (status == ESDM_OK && cp_slab_next(&slab)) {
        status = cp_read(&c->source, dataset, &slab, buffer, c->err);
        if (status == ESDM_OK)
            status = cp_write(&c->target, dataset, &slab, buffer, c->err);
        cp_values_clear(dataset->type, slab.elements, buffer);
        if (status == ESDM_OK)
            status = advance(c, dataset, &slab);
    }
    free(buffer);
    return status;
}

/* Values that cannot stay in the file are copied. */
static esdm_status
refer_dataset(copy *c, const cp_dataset *dataset)
{
    bool referred = false;
    const char *why = NULL;
    esdm_status status = cp_refer(c->referrer, &c->source, dataset, &referred, &why, c->err);
    if (status != ESDM_OK || referred) {
        c->referred += referred;
        c->bytes_done += cp_dataset_elements(dataset) * dataset->type->bytes;
        return status;
    }
    if (cp_wants.verbose)
        (void) printf("%s: %s is copied: %s\n", c->job->source, dataset->path, why);
    return copy_dataset(c, dataset);
}

/* What others depend on goes first: coordinates, then all but those that have regions. */
static int
turn_of(const cp_dataset *dataset)
{
    esdm_accuracy accuracy;
    if (esdm_dataset_is_auxiliary(dataset->to.dataset, NULL))
        return 0;
    return esdm_dataset_accuracy_in_force(dataset->to.dataset, &accuracy) &&
                   (accuracy.stated & ESDM_ACCURACY_REGIONS) != 0
               ? 2
               : 1;
}

/* @param turn < 0: all in the order of the source. */
static esdm_status
copy_datasets(copy *c, int turn)
{
    esdm_status status = ESDM_OK;
    for (guint i = 0; i < c->model->datasets->len && status == ESDM_OK; i++) {
        const cp_dataset *dataset = g_ptr_array_index(c->model->datasets, i);
        if (turn >= 0 && turn_of(dataset) != turn)
            continue;
        status = c->referrer != NULL ? refer_dataset(c, dataset) : copy_dataset(c, dataset);
    }
    return status;
}

static esdm_status
copy_all(copy *c)
{
    g_autofree char *message = g_strdup_printf(
        "%s %s", c->referrer != NULL ? "esdm-ref to" : "esdm-cp from", c->job->source);
    if (c->source.is_container)
        cp_accuracy_document(c->model);
    int zarr = cp_zarr_format(c->job);
    esdm_status status = cp_wants.keep_codecs ? cp_keep_codecs(c->model, c->err) : ESDM_OK;
    if (status != ESDM_OK)
        return status;
    status = c->target.is_container ? cp_container_create(&c->target, c->model, c->err)
             : zarr != 0            ? cp_zarr_create(&c->target, c->model, zarr, c->err)
                                    : cp_netcdf_create(&c->target, c->model, c->err);
    bool states = c->target.is_container && c->referrer == NULL;
    if (status == ESDM_OK && states)
        status = cp_accuracy_state(c->model, &c->source, c->err);
    for (int turn = states ? 0 : -1; turn < 3 && status == ESDM_OK; turn = states ? turn + 1 : 3)
        status = copy_datasets(c, turn);
    if (status == ESDM_OK && states)
        status = cp_accuracy_restate(c->model, c->err);
    if (status == ESDM_OK && c->referrer != NULL)
        status = cp_referrer_check(c->referrer, c->err);
    if (status == ESDM_OK && c->referrer != NULL)
        status =
            esdm_container_set_hint(c->target.container, ESDM_REFERENCE_SOURCE, c->seen, c->err);
    c->target.stated = c->model;
    c->target.committed = states ? cp_accuracy_tell_regions : NULL;
    return status == ESDM_OK ? cp_complete(&c->target, message, c->err) : status;
}

/* ---- verifying ---------------------------------------------------------------------------- */

static esdm_status
difference(copy *c, const cp_dataset *dataset, const cp_slab *slab, uint64_t index)
{
    g_autoptr(GString) where = g_string_new(NULL);
    uint64_t position[ESDM_MAX_RANK] = {0};
    for (uint32_t i = slab->rank; i-- > 0;) {
        position[i] = slab->offset[i] + index % slab->size[i];
        index /= slab->size[i];
    }
    for (uint32_t i = 0; i < slab->rank; i++)
        g_string_append_printf(where, "%s%" G_GUINT64_FORMAT, i > 0 ? "," : "",
                               (guint64) position[i]);
    return tool_error_set(c->err, ESDM_ECORRUPT, "%s: the copy differs: dataset %s at [%s]",
                          c->job->source, dataset->path, where->str);
}

/* Whether the copy may differ within an accuracy. */
static bool
is_accurate(const cp_end *written, const cp_dataset *dataset)
{
    esdm_accuracy accuracy;
    return written->is_container &&
           esdm_dataset_accuracy_in_force(dataset->from.dataset, &accuracy);
}

static esdm_status
verify_dataset(copy *c, const cp_end *written, const cp_dataset *a, const cp_dataset *b)
{
    cp_slab slab;
    void *left = NULL, *right = NULL;
    uint64_t index = 0;
    cp_slab_init(&slab, a);
    esdm_status status = allocate(c, a, &slab, &left);
    if (status == ESDM_OK)
        status = allocate(c, b, &slab, &right);
    while (status == ESDM_OK && cp_slab_next(&slab)) {
        status = cp_read(&c->source, a, &slab, left, c->err);
        if (written->ops != NULL)
            cp_zarr_texts(a, slab.elements, left);
        if (status == ESDM_OK)
            status = cp_read(written, b, &slab, right, c->err);
        if (status == ESDM_OK &&
            !cp_values_equal(a->type, b->type, slab.elements, left, right, &index) &&
            (a->as_it_is || !is_accurate(written, b) ||
             !esdm_dataset_accuracy_holds(b->from.dataset, left, right, slab.elements, &index)))
            status = difference(c, a, &slab, index);
        cp_values_clear(a->type, slab.elements, left);
        cp_values_clear(b->type, slab.elements, right);
        if (status == ESDM_OK)
            status = advance(c, a, &slab);
    }
    free(left);
    free(right);
    return status;
}

static esdm_status
open_end(cp_end *end, cp_model **ret_model, esdm_error *err)
{
    if (!end->is_container && zarr_is_store(end->name))
        return cp_zarr_open(end, ret_model, err);
    if (!end->is_container && esdm_location_is_remote(end->name))
        return cp_remote_open(end, ret_model, err);
    if (!end->is_container && gribs_is_file(end->name))
        return cp_grib_open(end, ret_model, err);
    return end->is_container ? cp_container_open(end, ret_model, err)
                             : cp_netcdf_open(end, ret_model, err);
}

static esdm_status
verify_all(copy *c)
{
    cp_end written = {.is_container = c->target.is_container,
                      .name = c->target.name,
                      .session = c->session,
                      .ncid = -1};
    g_autoptr(cp_model) model = NULL;
    esdm_status status = open_end(&written, &model, c->err);
    g_autoptr(GPtrArray) found = g_ptr_array_new();
    if (status == ESDM_OK && written.ops != NULL)
        status = cp_zarr_match(c->model, model, found, c->err);
    else if (status == ESDM_OK)
        status = cp_compare_models(c->model, model, c->err);
    for (guint i = 0; status == ESDM_OK && i < c->model->datasets->len; i++)
        status =
            verify_dataset(c, &written, g_ptr_array_index(c->model->datasets, i),
                           g_ptr_array_index(written.ops != NULL ? found : model->datasets, i));
    cp_close(&written);
    return status;
}

/* ---- names -------------------------------------------------------------------------------- */

/* A name beside `name` that nobody else uses. Of a branch it begins with its whole name: nothing
 * else has a name of a branch that nobody made. */
static char *
temporary_name(const char *name)
{
    g_autofree char *uuid = g_uuid_string_random();
    if (strstr(name, "@branch:") != NULL)
        return g_strdup_printf("%s.pid%ld.%.8s.esdm-cp.tmp", name, (long) getpid(), uuid);
    const char *slash = strrchr(name, '/');
    int folder = slash != NULL ? (int) (slash - name) + 1 : 0;
    return g_strdup_printf("%.*s" CP_TEMPORARY "%s", folder, name, uuid);
}

esdm_status
cp_job_exists(const cp_job *job, esdm_session *session, bool *ret_exists, esdm_error *err)
{
    esdm_error why = {0};
    esdm_container_info info;
    if (!job->to_container) {
        *ret_exists = access(job->target, F_OK) == 0;
        return ESDM_OK;
    }
    esdm_status status = esdm_container_stat(session, job->target, &info, &why);
    if (status != ESDM_OK && status != ESDM_ENOENT) {
        *err = why;
        return status;
    }
    *ret_exists = status == ESDM_OK;
    return ESDM_OK;
}

/* @param ret_skip whether that is all. */
static esdm_status
look_at_target(const copy *c, bool *ret_skip)
{
    const char *target = c->job->target;
    bool exists = false;
    if (c->replace)
        return ESDM_OK;
    esdm_status status = cp_job_exists(c->job, c->session, &exists, c->err);
    *ret_skip = exists && cp_wants.skip_existing;
    if (status != ESDM_OK || !exists || *ret_skip)
        return status;
    return tool_error_set(c->err, ESDM_EEXIST,
                          "'%s' exists; --force replaces it, --skip-existing leaves it as it is",
                          target);
}

/* NCO copies so what it appends to, and has the copy renamed to the source: which must not have
 * changed by then. */
static esdm_status
note_source(const copy *c)
{
    const char *target = c->job->target;
    const char *mark = strstr(target, ".pid");
    if (!c->job->from_container || c->source.container == NULL || mark == NULL ||
        !g_str_has_suffix(mark, ".tmp"))
        return ESDM_OK;
    return esdm_container_note_seen(c->session, c->target.name,
                                    esdm_container_name(c->source.container),
                                    esdm_container_uuid(c->source.container),
                                    esdm_container_snapshot(c->source.container), c->err);
}

static esdm_status
publish(copy *c)
{
    const char *target = c->job->target;
    esdm_status status = c->target.is_container ? note_source(c) : ESDM_OK;
    if (status != ESDM_OK)
        return status;
    if (c->target.is_container)
        return esdm_container_move(c->session, c->target.name, target, c->replace, c->err);
    if (cp_zarr_format(c->job) != 0)
        return cp_zarr_publish(c->target.name, target, c->err);
    /* Unlike rename(), link() does not replace what somebody else made meanwhile. */
    int failed = cp_wants.force ? rename(c->target.name, target) : link(c->target.name, target);
    if (failed != 0 && !cp_wants.force && errno != EEXIST)
        failed = rename(c->target.name, target); /* a file system without links */
    else if (failed == 0 && !cp_wants.force)
        (void) unlink(c->target.name);
    if (failed == 0)
        return ESDM_OK;
    return tool_error_set(c->err, errno == EEXIST ? ESDM_EEXIST : ESDM_EIO,
                          "cannot give the copy its name '%s': %s", target, g_strerror(errno));
}

static void
remove_temporary(copy *c)
{
    esdm_error err = {0};
    cp_close(&c->target);
    if (cp_zarr_format(c->job) != 0) {
        cp_zarr_remove(c->target.name);
        return;
    }
    if (!c->target.is_container) {
        (void) unlink(c->target.name);
        return;
    }
    esdm_container_info info;
    if (esdm_container_stat(c->session, c->target.name, &info, NULL) == ESDM_ENOENT)
        return; /* it failed before its first commit */
    esdm_status status = esdm_container_erase(c->session, c->target.name, &err);
    if (status != ESDM_OK && status != ESDM_ENOENT)
        tool_error("cannot remove the unfinished copy '%s': %s", c->target.name, err.message);
}

/* ---- clones ------------------------------------------------------------------------------- */

/* What is said about how values are stored needs a copy. */
static bool
wants_clone(const cp_job *job)
{
    return cp_wants.reflink != CP_REFLINK_NEVER && job->from_container && job->to_container &&
           cp_wants.accuracy == NULL && cp_wants.format == NULL;
}

/* @param ret_cloned false, with ESDM_OK: it has to be copied. */
static esdm_status
make_clone(const copy *c, cp_result *result, bool *ret_cloned)
{
    const cp_job *job = c->job;
    esdm_container_info info = {0};
    esdm_error why = {0};
    esdm_status status =
        esdm_container_clone(c->session, job->source, job->target, cp_wants.force != 0, &why);
    if (status == ESDM_ENOTSUP && cp_wants.reflink == CP_REFLINK_AUTO)
        return ESDM_OK;
    if (status != ESDM_OK) {
        *c->err = why;
        return status;
    }
    *ret_cloned = result->cloned = true;
    if (esdm_container_stat(c->session, job->target, &info, NULL) == ESDM_OK) {
        result->bytes = info.raw_bytes;
        result->datasets = info.datasets;
        result->writes.fragments = info.fragments;
    }
    return ESDM_OK;
}

/* ---- the whole job ------------------------------------------------------------------------ */

static esdm_status
make_copy(copy *c, cp_result *result)
{
    bool cloned = false;
    c->replace = cp_wants.force != 0;
    esdm_status status = ESDM_OK;
    if (cp_wants.reference)
        status = cp_seen_take(c->job->source, &c->seen, c->err);
    if (status == ESDM_OK && cp_wants.update) {
        status = cp_update_look(c->job, c->session, c->seen, result, c->err);
        if (status == ESDM_OK && (result->change >= CP_CHANGE_NONE || cp_wants.dry_run))
            return result->change == CP_CHANGE_NONE && cp_wants.pin && !cp_wants.dry_run
                       ? cp_pin(c->session, c->job->target, result, c->err)
                       : ESDM_OK;
        c->replace = result->change == CP_CHANGE_CHANGED;
    }
    if (status == ESDM_OK)
        status = look_at_target(c, &result->skipped);
    if (result->skipped)
        return ESDM_OK;
    if (status == ESDM_OK && wants_clone(c->job))
        status = make_clone(c, result, &cloned);
    if (cloned)
        return ESDM_OK;
    if (status == ESDM_OK && cp_wants.reference)
        status = cp_referrer_new(c->job->source, &c->referrer, c->err);
    if (status == ESDM_OK)
        status = open_end(&c->source, &c->model, c->err);
    if (status != ESDM_OK)
        return status;
    c->bytes_total = cp_model_bytes(c->model) * (cp_wants.verify ? 2 : 1);
    status = copy_all(c);
    if (status == ESDM_OK && cp_wants.pin)
        status = cp_pin(c->session, c->target.name, result, c->err);
    if (status == ESDM_OK && cp_wants.verify)
        status = verify_all(c);
    if (status == ESDM_OK)
        status = publish(c);
    if (status != ESDM_OK)
        remove_temporary(c);
    return status;
}

/* Puts the target's name for the temporary one, which nobody typed. */
static void
name_target(const char *temporary, const char *target, esdm_error *err)
{
    const char *from = strrchr(temporary, '/');
    const char *to = strrchr(target, '/');
    g_autoptr(GString) text = g_string_new(err->message);
    g_string_replace(text, from != NULL ? from + 1 : temporary, to != NULL ? to + 1 : target, 0);
    g_strlcpy(err->message, text->str, sizeof err->message);
}

esdm_status
cp_job_run(const cp_job *job, esdm_session *session, cp_progress progress, void *user,
           cp_result *result, esdm_error *err)
{
    g_autofree char *temporary = temporary_name(job->target);
    copy c = {.job = job,
              .session = session,
              .source = {.is_container = job->from_container,
                         .name = job->source,
                         .session = session,
                         .ncid = -1},
              .target = {.is_container = job->to_container,
                         .name = temporary,
                         .session = session,
                         .ncid = -1},
              .progress = progress,
              .user = user,
              .err = err};
    gint64 started_us = g_get_monotonic_time();
    esdm_status status =
        job->pin_only ? cp_pin(session, job->target, result, err) : make_copy(&c, result);
    if (c.model != NULL && status == ESDM_OK) {
        result->bytes = cp_model_bytes(c.model);
        result->datasets = c.model->datasets->len;
        result->referred = c.referred;
        result->writes = c.target.writes;
        result->left_out = c.target.left_out;
    }
    if (status != ESDM_OK && err != NULL && remote_failure() != NULL) {
        *err = *remote_failure(); /* what the parsers say is less */
        status = err->status;
    }
    if (status != ESDM_OK && err != NULL)
        name_target(temporary, job->target, err);
    result->seconds = (double) (g_get_monotonic_time() - started_us) / 1e6;
    cp_close(&c.source);
    cp_model_free(c.model);
    cp_referrer_free(c.referrer);
    hdf5_stand_for(NULL, NULL);
    remote_end();
    g_free(c.seen);
    return status;
}
