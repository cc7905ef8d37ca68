/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_S3_H
#define ESDM_BACKEND_S3_H

/**
 * @file
 * Data target "s3": a pack is one object `<prefix>packs/<pack>` in a bucket;
 * `<prefix>esdm-mark.json` marks the place. A small pack is one PUT when it is sealed, a larger one
 * a multipart upload whose parts go out while it grows. Nothing is visible under its name before it
 * is complete.
 *
 * An upload without an end is what a pack without a seal is elsewhere: it is listed and removed
 * under the pack's name.
 */

#include <stdatomic.h>

#include "base/mark.h"
#include "client.h"
#include "esdm/sys/data_target.h"

#define S3__PLUGIN "s3"
#define S3__PACKS  "packs/"
/** Longest pack name in bytes. */
#define S3__NAME_MAX 120
/** Longest key with its NUL: prefix, "packs/", name. */
#define S3__KEY_BYTES 512
/** Header that tells who wrote an object: an answer that was lost is then no riddle. */
#define S3__WRITER_HEADER "x-amz-meta-esdm-writer"

typedef struct s3__upload s3__upload;
typedef struct s3__spare s3__spare;

typedef struct s3__target {
    s3__options options;
    s3__credentials credentials;
    _Atomic(s3__client *) client;       /* of this process: s3__target_client() */
    atomic_uint_fast64_t held_bytes;    /* memory of all parts that are not sealed */
    atomic_uint_fast64_t sent_bytes;    /* of parts under way */
    atomic_uint_fast64_t filling_bytes; /* in packs that are still appended to, about */
    atomic_bool unconditional;          /* the server does not know If-None-Match */
    pthread_mutex_t lock;               /* guards what follows; a leaf */
    s3__spare *spares;                  /* buffers for parts to come */
    uint64_t spare_bytes;
    s3__upload *uploads; /* unfinished ones that a listing has shown */
} s3__target;

/* ---- target.c ------------------------------------------------------------------------------- */

/** Reads the configuration and nothing else. @param ret_target owned, s3__close(). */
esdm_status s3__target_new(const esdm_plugin_config *config, s3__target **ret_target,
                           esdm_error *err);
/** NULL: out of memory. A forked child gets connections of its own. */
s3__client *s3__target_client(s3__target *target);
/** Key of a pack. ESDM_EINVAL for what is no pack's name. */
esdm_status s3__pack_key(const s3__target *target, const char *name, char ret_key[S3__KEY_BYTES],
                         esdm_error *err);
/** Name of the pack that has this key; NULL: the object is not ESDM's. Borrowed from `key`. */
const char *s3__pack_of_key(const s3__target *target, const char *key);
/** s3__perform() with the target's client. */
esdm_status s3__send(s3__target *target, s3__request *request, esdm_error *err);

esdm_status s3__open(const esdm_plugin_config *config, void **ret_target, esdm_error *err);
void s3__close(void *target);
esdm_status s3__usage(void *target, esdm_target_usage *ret_usage, esdm_error *err);
void s3__second_requests(void *target, uint64_t *ret_sent, uint64_t *ret_used);

/* ---- mark.c --------------------------------------------------------------------------------- */

/** Reads the mark and compares. ESDM_ENOENT: no mark, or no bucket (`ret_no_bucket`, may be NULL);
 *  otherwise as esdm__mark_verify(). */
esdm_status s3__mark_check(s3__target *target, bool *ret_no_bucket, esdm_error *err);
/** Writes it unless there is one. ESDM_EEXIST: somebody was faster. */
esdm_status s3__mark_write(s3__target *target, esdm_error *err);
esdm_status s3__mark_remove(s3__target *target, esdm_error *err);

/* ---- list.c --------------------------------------------------------------------------------- */

typedef struct s3__object {
    const char *key;       /* borrowed */
    const char *upload_id; /* NULL: a complete object; borrowed */
    uint64_t bytes;
    uint64_t modified_ns;
} s3__object;

/** Return false to stop. May use the target. */
typedef bool (*s3__object_visitor)(const s3__object *object, void *user);

/** Visits objects whose keys begin with `key_prefix`, page by page. */
esdm_status s3__list_objects(s3__target *target, const char *key_prefix, s3__object_visitor visit,
                             void *user, esdm_error *err);
/** The same for unfinished uploads; `bytes` is 0. A server that does not list them, or not for us,
 *  has none. */
esdm_status s3__list_uploads(s3__target *target, const char *key_prefix, s3__object_visitor visit,
                             void *user, esdm_error *err);
esdm_status s3__pack_list(void *target, const char *prefix, esdm_pack_visitor visit, void *user,
                          esdm_error *err);

/* ---- remove.c ------------------------------------------------------------------------------- */

/** Remembers an upload, so that s3__pack_remove() aborts it. False: out of memory. */
bool s3__upload_note(s3__target *target, const char *key, const char *upload_id);
/** Forgets them all. */
void s3__uploads_forget(s3__target *target);
/** Throws the parts of an upload away; one that is gone is ESDM_OK. @param limit_ms 0: the
 *  target's time limit. */
esdm_status s3__upload_abort(s3__target *target, const char *key, const char *upload_id,
                             uint32_t limit_ms, esdm_error *err);
esdm_status s3__pack_remove(void *target, const char *name, esdm_error *err);
/** Deletes objects, many at a time. */
esdm_status s3__delete_objects(s3__target *target, char *const *keys, size_t nkeys,
                               esdm_error *err);

/* ---- admin.c -------------------------------------------------------------------------------- */

/** Id of the site in the mark. */
esdm_status s3__site_id(const esdm_plugin_config *config, char ret_id[ESDM__UUID_BYTES],
                        esdm_error *err);
esdm_status s3__make(const esdm_plugin_config *config, bool dry_run, esdm_plugin_reporter report,
                     void *user, esdm_error *err);
esdm_status s3__check(const esdm_plugin_config *config, esdm_plugin_reporter report, void *user,
                      esdm_error *err);
esdm_status s3__remove(const esdm_plugin_config *config, bool dry_run, esdm_plugin_reporter report,
                       void *user, esdm_error *err);

/* ---- pack.c, read.c ------------------------------------------------------------------------- */

esdm_status s3__pack_create(void *target, const char *name, void **ret_pack, esdm_error *err);
esdm_status s3__pack_append(void *pack, const esdm_iov *iov, size_t niov, uint64_t *ret_position,
                            esdm_error *err);
esdm_status s3__pack_sync(void *pack, esdm_error *err);
esdm_status s3__pack_seal(void *pack, esdm_error *err);
/** At the end of the target. */
void s3__spares_free(s3__target *target);
bool s3__pack_is_full(void *pack);
void s3__pack_begin_seal(void *pack);
bool s3__pack_has_ended(void *pack, double *ret_ended_s);
esdm_status s3__pack_recall(void *pack, uint64_t position, size_t bytes, void *buffer,
                            esdm_error *err);
esdm_status s3__pack_discard(void *pack, esdm_error *err);
esdm_status s3__pack_read(void *target, const char *name, const esdm_range *ranges, size_t nranges,
                          esdm_error *err);
esdm_status s3__open_and_read(const esdm_plugin_config *config, const char *name,
                              const esdm_range *ranges, size_t nranges,
                              const esdm_target_opening *opening, esdm_status *ret_read,
                              esdm_error *err);

#endif
