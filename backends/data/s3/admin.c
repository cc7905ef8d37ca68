/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file mkfs, check and removal of the place. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/place.h"
#include "s3.h"

/* A clock that differs by more is worth a line; from 15 minutes on servers refuse. */
#define SKEW_NOTE_S 60
/* Keys that a removal collects before it deletes them. */
#define DELETE_BATCH 512

/* ---- mkfs ----------------------------------------------------------------------------------- */

static esdm_status
make_bucket(s3__target *target, bool dry_run, esdm_plugin_reporter report, void *user,
            esdm_error *err)
{
    char body[256];
    const s3__options *options = &target->options;
    esdm__report(report, user, "make bucket %s at %s", options->bucket, options->endpoint);
    if (dry_run)
        return ESDM_OK;
    int n = snprintf(body, sizeof body,
                     "<CreateBucketConfiguration><LocationConstraint>%s</LocationConstraint>"
                     "</CreateBucketConfiguration>",
                     options->region);
    bool standard = strcmp(options->region, "us-east-1") == 0; /* must not be named */
    s3__request request = {.doing = "make",
                           .method = "PUT",
                           .body = standard ? NULL : body,
                           .body_bytes = standard ? 0 : (size_t) n};
    esdm_status status = s3__send(target, &request, err);
    /* Another process may be as fast. */
    if (status != ESDM_OK && strcmp(request.code, "BucketAlreadyOwnedByYou") == 0)
        status = ESDM_OK;
    s3__request_clear(&request);
    return status == ESDM_OK ? ESDM_OK : esdm__error_prefix(err, status, "%s", options->path);
}

typedef struct foreign {
    char key[200];
    bool found;
} foreign;

static bool
note_foreign(const s3__object *object, void *user)
{
    foreign *first = user;
    (void) snprintf(first->key, sizeof first->key, "%s", object->key);
    first->found = true;
    return false;
}

/* The mark as make() sees it: somebody else's is ESDM_EEXIST. */
static esdm_status
look_at_mark(s3__target *target, bool *ret_no_bucket, esdm_error *err)
{
    esdm_status status = s3__mark_check(target, ret_no_bucket, err);
    if (status != ESDM_EINVAL)
        return status;
    if (err != NULL)
        err->status = ESDM_EEXIST;
    return ESDM_EEXIST;
}

static esdm_status
refuse_foreign(s3__target *target, esdm_error *err)
{
    foreign first = {.found = false};
    esdm_status status =
        s3__list_objects(target, target->options.prefix, note_foreign, &first, err);
    if (status != ESDM_OK)
        return esdm__error_prefix(err, status, "%s", target->options.path);
    if (!first.found)
        return ESDM_OK;
    /* Another process may have marked it, and filled it, since we looked. */
    status = look_at_mark(target, NULL, err);
    if (status != ESDM_ENOENT)
        return status;
    return esdm__error_set(err, ESDM_EEXIST,
                           "%s: %s is not empty (it holds '%.150s') and not marked as ESDM's; "
                           "choose an empty or a new \"prefix\" or bucket",
                           target->options.path, target->options.place, first.key);
}

static esdm_status
make_place(s3__target *target, bool dry_run, esdm_plugin_reporter report, void *user,
           esdm_error *err)
{
    esdm_error why = {0};
    bool no_bucket = false;
    esdm_status status = look_at_mark(target, &no_bucket, &why);
    if (status == ESDM_ENOENT && no_bucket && target->options.create_bucket)
        status = make_bucket(target, dry_run, report, user, &why);
    else if (status == ESDM_ENOENT && !no_bucket)
        status = refuse_foreign(target, &why);
    else if (status == ESDM_OK)
        return ESDM_OK;
    if (status == ESDM_OK && !dry_run) {
        status = s3__mark_write(target, &why);
        if (status == ESDM_EEXIST) /* somebody was faster: for the same site? */
            return look_at_mark(target, NULL, err);
    }
    if (status == ESDM_OK)
        esdm__report(report, user, "mark %s for s3 target '%s'", target->options.place,
                     target->options.name);
    else if (err != NULL)
        *err = why;
    return status;
}

esdm_status
s3__make(const esdm_plugin_config *config, bool dry_run, esdm_plugin_reporter report, void *user,
         esdm_error *err)
{
    s3__target *target = NULL;
    esdm_status status = s3__target_new(config, &target, err);
    if (status == ESDM_OK)
        status = make_place(target, dry_run, report, user, err);
    s3__close(target);
    return status;
}

/* ---- check ---------------------------------------------------------------------------------- */

static bool
count_upload(const s3__object *object, void *user)
{
    (void) object;
    ++*(uint64_t *) user;
    return true;
}

/* What is no problem, but good to know. */
static void
report_notes(s3__target *target, esdm_plugin_reporter report, void *user)
{
    const s3__options *options = &target->options;
    uint64_t uploads = 0;
    int64_t skew = s3__client_skew_s(s3__target_client(target));
    if (skew > SKEW_NOTE_S || skew < -SKEW_NOTE_S)
        esdm__report(report, user,
                     "%s: note: the clock of this machine is %lld seconds %s the server's; set it, "
                     "with NTP best",
                     options->path, (long long) (skew > 0 ? skew : -skew),
                     skew > 0 ? "behind" : "ahead of");
    if (s3__list_uploads(target, options->prefix, count_upload, &uploads, NULL) == ESDM_OK &&
        uploads > 0)
        esdm__report(report, user,
                     "%s: note: %llu upload%s in %s under way, or left behind by a killed program",
                     options->path, (unsigned long long) uploads, uploads == 1 ? " is" : "s are",
                     options->place);
    if (!options->tls)
        esdm__report(report, user,
                     "%s: note: data goes over the network as it is; https would encrypt it",
                     options->path);
}

esdm_status
s3__check(const esdm_plugin_config *config, esdm_plugin_reporter report, void *user,
          esdm_error *err)
{
    s3__target *target = NULL;
    esdm_error problem = {0};
    esdm__findings all = {.report = report, .user = user, .status = ESDM_OK};
    esdm_status status = s3__target_new(config, &target, &problem);
    if (status == ESDM_OK)
        status = s3__mark_check(target, NULL, &problem);
    if (status == ESDM_OK) {
        report_notes(target, report, user);
    } else {
        problem.status = status;
        esdm__findings_add(&all, &problem);
    }
    s3__close(target);
    if (all.status != ESDM_OK && err != NULL)
        *err = all.first;
    return all.status;
}

/* ---- remove --------------------------------------------------------------------------------- */

typedef struct removal {
    s3__target *target;
    bool dry_run;
    uint64_t packs;
    uint64_t bytes;
    uint64_t uploads;
    uint64_t kept;
    char *keys[DELETE_BATCH];
    size_t nkeys;
    esdm_status status;
    esdm_error why;
} removal;

static bool
delete_collected(removal *all)
{
    if (all->status == ESDM_OK)
        all->status = s3__delete_objects(all->target, all->keys, all->nkeys, &all->why);
    for (size_t i = 0; i < all->nkeys; i++)
        free(all->keys[i]);
    all->nkeys = 0;
    return all->status == ESDM_OK;
}

static bool
remove_object(const s3__object *object, void *user)
{
    removal *all = user;
    size_t prefix = strlen(all->target->options.prefix);
    if (s3__pack_of_key(all->target, object->key) == NULL) {
        all->kept += strcmp(object->key + prefix, ESDM__MARK_FILE) != 0;
        return true;
    }
    all->packs++;
    all->bytes += object->bytes;
    if (all->dry_run)
        return true;
    all->keys[all->nkeys] = strdup(object->key);
    if (all->keys[all->nkeys] == NULL) {
        all->status = esdm__error_nomem(&all->why, strlen(object->key), "a key");
        return false;
    }
    return ++all->nkeys < DELETE_BATCH || delete_collected(all);
}

static bool
remove_upload(const s3__object *object, void *user)
{
    removal *all = user;
    if (s3__pack_of_key(all->target, object->key) == NULL)
        return true;
    all->uploads++;
    if (!all->dry_run)
        all->status = s3__upload_abort(all->target, object->key, object->upload_id, 0, &all->why);
    return all->status == ESDM_OK;
}

static esdm_status
remove_contents(removal *all, esdm_error *err)
{
    const char *prefix = all->target->options.prefix;
    esdm_status status = s3__list_objects(all->target, prefix, remove_object, all, err);
    bool deleted = delete_collected(all);
    if (status == ESDM_OK && deleted)
        status = s3__list_uploads(all->target, prefix, remove_upload, all, err);
    if (status == ESDM_OK && all->status != ESDM_OK) {
        status = all->status;
        if (err != NULL)
            *err = all->why;
    }
    return status == ESDM_OK ? ESDM_OK
                             : esdm__error_prefix(err, status, "%s", all->target->options.path);
}

static void
report_removal(const removal *all, esdm_plugin_reporter report, void *user)
{
    const char *place = all->target->options.place;
    esdm__report(report, user, "remove %llu packs (%llu bytes) in %s",
                 (unsigned long long) all->packs, (unsigned long long) all->bytes, place);
    if (all->uploads > 0)
        esdm__report(report, user, "remove %llu unfinished uploads in %s",
                     (unsigned long long) all->uploads, place);
    if (all->kept > 0)
        esdm__report(report, user, "keep %llu objects in %s that are not ESDM's",
                     (unsigned long long) all->kept, place);
    esdm__report(report, user, "remove the mark of %s", place);
}

esdm_status
s3__remove(const esdm_plugin_config *config, bool dry_run, esdm_plugin_reporter report, void *user,
           esdm_error *err)
{
    s3__target *target = NULL;
    esdm_status status = s3__target_new(config, &target, err);
    removal *all = calloc(1, sizeof *all);
    if (status == ESDM_OK && all == NULL)
        status = esdm__error_nomem(err, sizeof *all, "a removal");
    if (status == ESDM_OK)
        status = s3__mark_check(target, NULL, err);
    if (status == ESDM_OK) {
        all->target = target;
        all->dry_run = dry_run;
        status = remove_contents(all, err);
    }
    if (status == ESDM_OK) {
        report_removal(all, report, user);
        if (!dry_run)
            status = s3__mark_remove(target, err);
    }
    free(all);
    s3__close(target);
    return status;
}
