/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_POSIX_H
#define ESDM_BACKEND_POSIX_H

/**
 * @file
 * Data target "posix": packs are files `ab/<pack>` in a marked directory, where `ab` are the first
 * two digits of the pack's name. The 256 folders are made by mkfs; a missing one is made again when
 * a pack needs it. Files that are held lie in `files`.
 */

#include <pthread.h>
#include <stdatomic.h>

#include "base/place.h"
#include "esdm/sys/data_target.h"

#define POSIX__SHARDS 256

/** Longest pack name in bytes. */
#define POSIX__NAME_MAX 120
/** `ab/<name>` and NUL. */
#define POSIX__FILE_BYTES (POSIX__NAME_MAX + 4)

typedef struct posix__cache posix__cache;

typedef struct posix__target {
    char *directory;
    char *name;
    int fd; /* of the directory */
    posix__cache *cache;
    atomic_bool shard_synced[POSIX__SHARDS]; /* its entry in the directory is on stable storage */
} posix__target;

/** Whether it is a pack's name: digits 0-9a-f and '-', at least 32 digits first. */
bool posix__is_pack_name(const char *name);
/** Writes `ab/<name>`; ESDM_EINVAL for what is no pack name. */
esdm_status posix__file_name(const char *name, char ret_file[POSIX__FILE_BYTES], esdm_error *err);
/** Visits the pack files below an open directory (admin.c). */
esdm_status posix__visit_packs(int fd, const char *directory, const char *prefix,
                               esdm_pack_visitor visit, void *user, esdm_error *err);

/* ---- cache.c: open files for reading -------------------------------------------------------- */

/** A few open files, kept for the next read. Locked inside. NULL: out of memory. */
posix__cache *posix__cache_new(void);
/** No file may be in use. NULL is accepted. */
void posix__cache_free(posix__cache *cache);
/**
 * Opens a pack for reading, or finds it open. Its removal meanwhile is harmless: packs never come
 * back under the same name with other bytes.
 * @param ret_slot to be passed to posix__cache_release().
 */
esdm_status posix__cache_acquire(posix__cache *cache, const posix__target *target, const char *name,
                                 int *ret_fd, int *ret_slot, esdm_error *err);
void posix__cache_release(posix__cache *cache, int fd, int slot);
/** Closes the file when its last user is done. */
void posix__cache_drop(posix__cache *cache, const char *name);

/* ---- operations ----------------------------------------------------------------------------- */

/* admin.c */
esdm_status posix__site_id(const esdm_plugin_config *config, char ret_id[ESDM__UUID_BYTES],
                           esdm_error *err);
esdm_status posix__make(const esdm_plugin_config *config, bool dry_run, esdm_plugin_reporter report,
                        void *user, esdm_error *err);
esdm_status posix__check(const esdm_plugin_config *config, esdm_plugin_reporter report, void *user,
                         esdm_error *err);
esdm_status posix__remove(const esdm_plugin_config *config, bool dry_run,
                          esdm_plugin_reporter report, void *user, esdm_error *err);
/* target.c */
esdm_status posix__open(const esdm_plugin_config *config, void **ret_target, esdm_error *err);
void posix__close(void *target);
esdm_status posix__space(void *target, esdm_target_usage *ret_usage, esdm_error *err);
esdm_status posix__usage(void *target, esdm_target_usage *ret_usage, esdm_error *err);
esdm_status posix__pack_remove(void *target, const char *name, esdm_error *err);
esdm_status posix__pack_list(void *target, const char *prefix, esdm_pack_visitor visit, void *user,
                             esdm_error *err);
/* pack.c */
esdm_status posix__pack_create(void *target, const char *name, void **ret_pack, esdm_error *err);
esdm_status posix__pack_append(void *pack, const esdm_iov *iov, size_t niov, uint64_t *ret_position,
                               esdm_error *err);
esdm_status posix__pack_sync(void *pack, esdm_error *err);
esdm_status posix__pack_seal(void *pack, esdm_error *err);
/* read.c */
esdm_status posix__pack_read(void *target, const char *name, const esdm_range *ranges,
                             size_t nranges, esdm_error *err);
/* evict.c */
esdm_status posix__pack_evict(void *target, const char *name, esdm_error *err);
/* files.c: files that are held */
esdm_status posix__file_hold(void *target, const char *name, int fd, esdm_error *err);
esdm_status posix__file_open(void *target, const char *name, int *ret_fd, esdm_error *err);
esdm_status posix__file_list(void *target, esdm_pack_visitor visit, void *user, esdm_error *err);
esdm_status posix__file_remove(void *target, const char *name, esdm_error *err);
esdm_status posix__visit_files(int fd, const char *directory, esdm_pack_visitor visit, void *user,
                               esdm_error *err);
/** With the folder. @param fd of the target's directory. */
esdm_status posix__remove_files(int fd, const char *directory, bool dry_run, uint64_t *ret_files,
                                esdm_error *err);

#endif
