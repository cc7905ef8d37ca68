/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_KV_H
#define ESDM_BACKEND_KV_H

/**
 * @file
 * Data target "kv": packs as records of Kyoto Cabinet hash databases in a marked directory. See
 * README.md for the files.
 *
 * A pack is cut into chunks of KV__CHUNK_BYTES, each a record, so that a range is read without the
 * rest. Small packs are kept in memory until they are sealed and then put into the shard of their
 * writer, which is open for that moment only: whoever writes a database shuts out all other
 * processes. A pack that grows beyond KV__SMALL_BYTES gets a database of its own.
 */

#include <kclangc.h>
#include <pthread.h>

#include "base/place.h"
#include "esdm/sys/data_target.h"

#define KV__CHUNK_BYTES ((size_t) 64 << 10)
#define KV__SMALL_BYTES ((size_t) 1 << 20)
/** An empty database, and the log of a transaction, have less. */
#define KV__EMPTY_BYTES (UINT64_C(64) << 10)
/** Small packs of a writer that share a shard: by their number divided by this. */
#define KV__SHARD_PACKS 256
/** Names that are listed at once: numbers that differ in their last hexadecimal digit. */
#define KV__LISTED_AHEAD 16

/** Longest pack name in bytes; longest name of a file, with its NUL. */
#define KV__NAME_MAX   120
#define KV__FILE_BYTES (KV__NAME_MAX + 16)

#define KV__LOCK_FILE "lock"

/** Databases are not mapped into memory: on a full disk a mapping ends the program by SIGBUS. Few
 *  buckets: a shard has some thousand records, and empty ones shall be small. Few free blocks are
 *  remembered: they are read whenever it is opened, and there are none but of the list. */
#define KV__TUNING "#msiz=0#bnum=8191#opts=l#fpow=4"

/** Longest waits for a database, in milliseconds. Writers that find no way into a shard give their
 *  pack a database of its own. */
#define KV__READ_WAIT_MS   10000
#define KV__WRITE_WAIT_MS  500
#define KV__REMOVE_WAIT_MS 5000

/** A shard that this process has made, and so knows: see made.c. */
typedef struct kv__made {
    char file[KV__FILE_BYTES];         /* "": none */
    uint8_t used[KV__SHARD_PACKS / 8]; /* numbers of packs, a bit each */
    uint32_t listed;                   /* groups of KV__LISTED_AHEAD numbers, a bit each, … */
    char container[KV__NAME_MAX + 1];  /* … of this one */
} kv__made;

#define KV__MADE 32

typedef struct kv__target {
    char *directory;
    int fd;                    /* of the directory */
    bool durable;              /* the site wants all that is written to survive a loss of power */
    pthread_mutex_t made_lock; /* guards `made` */
    kv__made made[KV__MADE];
    uint64_t stored_ns; /* when a small pack was stored; as the next one, of shard.c */
    uint64_t rest_ns;   /* until then shards are closed at once */
    esdm_error failure; /* of closing one that was held open; as the above */
} kv__target;

/* ---- names.c -------------------------------------------------------------------------------- */

/** ESDM_EINVAL for what is no pack name: digits 0-9a-f and '-', at least 32 digits first. */
esdm_status kv__check_name(const char *name, esdm_error *err);
/** Name of the database that is the pack's own. */
void kv__own_file(const char *name, char ret_file[KV__FILE_BYTES]);
/** Name of the shard that it lies in when it is small. */
void kv__shard_file(const char *name, char ret_file[KV__FILE_BYTES]);
/**
 * What a shard is called while it is made: as the database of a pack of no container, so that it is
 * listed and removed like one when it is left.
 */
void kv__unfinished_file(const char *shard, char ret_file[KV__FILE_BYTES]);
/** The pack's number in its shard. */
unsigned kv__shard_number(const char *name);
/** <container>-<writer>-<n>, n without leading zeros: shard, container and number are the name. */
bool kv__is_numbered(const char *name);
/** The pack that a file of its own is for; NULL for other files. Borrowed. @param ret_bytes. */
const char *kv__pack_of(const char *file, size_t *ret_bytes);
bool kv__is_shard(const char *file);
bool kv__is_database(const char *file); /* or its log */

/* ---- shard.c: databases of this process ----------------------------------------------------- */

/** KV__CHANGE: a shard that is there; one that was never made is deleted. */
typedef enum kv__mode { KV__READ, KV__WRITE, KV__CHANGE } kv__mode;

typedef struct kv__handle kv__handle;

/**
 * Opens a database. Several readers of one process share it; a writer has it alone. Waits, at most
 * `wait_ms`, for those who have it open, in this process or another.
 * @param ret_handle owned, kv__release(). ESDM_ENOENT: not there (KV__WRITE makes it);
 *        ESDM_ETIMEDOUT names the process that has it.
 */
esdm_status kv__acquire(const kv__target *target, const char *file, kv__mode mode, unsigned wait_ms,
                        kv__handle **ret_handle, esdm_error *err);
/** Closes the database when its last user is done. ESDM_EIO: a writer's records may be lost. */
esdm_status kv__release(kv__handle *handle, esdm_error *err);
/**
 * The same for a shard to which another pack may be added at once: in a burst it stays open for
 * some milliseconds, after which it is closed. All of its transactions have ended.
 */
esdm_status kv__release_soon(kv__target *target, kv__handle *handle, esdm_error *err);
/** Closes what the above left open, and waits for what is being closed. */
void kv__release_all(const kv__target *target);
/** Once what went wrong when a shard was closed that had stayed open: packs that were stored before
 *  may be lost. */
esdm_status kv__held_failure(kv__target *target, esdm_error *err);
KCDB *kv__database(const kv__handle *handle);
/** Of a writer's file, for space alone: closing it would give up the lock. -1: none. */
int kv__descriptor(const kv__handle *handle);
/** Once before the first database is opened. */
void kv__prepare_forks(void);

/* ---- database.c ----------------------------------------------------------------------------- */

/**
 * Opens a file as a database; while another process has it, tries again until `until_ns`
 * (esdm__now_ns()). For kv__acquire() alone, which knows what this process has open.
 * @param wait_ms for the message of ESDM_ETIMEDOUT. @param ret_fd see kv__descriptor().
 */
esdm_status kv__open_database(const kv__target *target, const char *file, const char *path,
                              kv__mode mode, uint64_t until_ns, unsigned wait_ms, KCDB **ret_db,
                              int *ret_fd, esdm_error *err);
/** ESDM_ETIMEDOUT. @param holder the process that has the file; 0: not known. */
esdm_status kv__locked_error(const kv__target *target, const char *file, pid_t holder,
                             unsigned wait_ms, esdm_error *err);
void kv__nap(uint64_t ns);
/** Whether a file of that name can be looked at; false: it is not there. */
bool kv__is_there(const kv__target *target, const char *file);
/** Deletes a shard without packs, which the caller has open for writing and then releases. Best
 *  effort. */
void kv__delete_empty(const kv__target *target, const char *file);
/** Deletes a pack's own database: nobody opens it for writing again. */
esdm_status kv__delete(const kv__target *target, const char *file, esdm_error *err);
/**
 * Takes the lock file away from those who cannot write to the directory: who can open a file can
 * lock it, and all writers would wait. They need no lock. Best effort: its owner alone can.
 */
void kv__hide_lock(int directory_fd, int lock_fd);

/* ---- shard_new.c ----------------------------------------------------------------------------- */

/**
 * Makes a shard without records, which is flushed and gets its name then: after a loss of power it
 * is there as a whole or not at all. By who has locked the directory, shared.
 * ESDM_OK: it is there. ESDM_ECANCELED: somebody makes it at this moment; try again.
 */
esdm_status kv__make_shard(const kv__target *target, const char *file, esdm_error *err);

/* ---- descriptors.c -------------------------------------------------------------------------- */

/** kcdbopen() and kcdbclose(), with the files out of the program's way. */
bool kv__start(const kv__target *target, const char *file, KCDB *db, const char *path,
               uint32_t flags);
bool kv__finish(KCDB *db);
/**
 * A transaction. Where power may be lost (`durable`, or the site wants it) the folder knows of its
 * log before anything is written, and all it wrote is flushed before the log ends: Kyoto Cabinet
 * alone clears the log first.
 */
bool kv__begin(const kv__target *target, KCDB *db, bool durable);
/** @param good whether to keep what it wrote. @return whether it is kept. */
bool kv__end(const kv__target *target, KCDB *db, bool durable, bool good);

/* ---- space.c -------------------------------------------------------------------------------- */

/**
 * Before something is put into a database that is open for writing: room for so many bytes in so
 * many records, and for what ends a pack. A write that failed for want of space would leave the
 * whole database in need of repair, which needs space itself.
 */
esdm_status kv__reserve(const kv__target *target, const kv__handle *handle, uint64_t bytes,
                        uint64_t records, esdm_error *err);
/** Whether a small pack of so many bytes could be stored now. */
esdm_status kv__expect_room(const kv__target *target, uint64_t bytes, esdm_error *err);
/** What Kyoto Cabinet says about the last failure, with the disk's state. */
esdm_status kv__error(const kv__target *target, const char *file, KCDB *db, const char *what,
                      esdm_error *err);

/* ---- made.c: shards of this process --------------------------------------------------------- */

/** The shard of a pack that is about to be made is not there: who makes it knows all that is in
 *  it. */
void kv__made_note(kv__target *target, const char *shard);
/** Takes the pack's number in its shard. false: there may be a pack of that name already. */
bool kv__made_take(kv__target *target, const char *shard, const char *name);
/** Whether this process has listed the pack's group; an empty shard has no list. */
bool kv__made_is_listed(kv__target *target, const char *shard, const char *name, bool empty);
/** It has now. */
void kv__made_list(kv__target *target, const char *shard, const char *name);

/* ---- records.c ------------------------------------------------------------------------------ */

/** Key of a chunk, or of the head of a pack. @return its length. */
size_t kv__chunk_key(const char *name, uint64_t chunk, char ret_key[KV__FILE_BYTES + 24]);
/** Length of a pack in an open database. ESDM_ENOENT. */
esdm_status kv__read_length(const kv__handle *handle, const char *name, uint64_t *ret_bytes,
                            uint64_t *ret_modified_ns);
bool kv__write_length(const kv__handle *handle, const char *name, uint64_t bytes);
/** Copies a part of a chunk. false: it is not there or too short. */
bool kv__read_chunk(const kv__handle *handle, const char *name, uint64_t chunk, size_t from,
                    size_t bytes, void *to);

/** Lists a pack of a shard: "name\n". The list is long, and rewritten whole: the others of the
 *  name's group are listed along, whether they will come or not.
 *  @param ret_group all of the group are listed now. */
bool kv__list_add(const kv__handle *handle, const char *name, bool *ret_group);
/** Whether there are any in the shard. Those that were removed stay listed as long. */
bool kv__has_packs(const kv__handle *handle);
/** @param ret_list owned, kcfree(); NULL: no packs. */
void kv__list_read(const kv__handle *handle, char **ret_list, size_t *ret_bytes);

/* ---- operations ----------------------------------------------------------------------------- */

/* admin.c */
esdm_status kv__site_id(const esdm_plugin_config *config, char ret_id[ESDM__UUID_BYTES],
                        esdm_error *err);
esdm_status kv__make(const esdm_plugin_config *config, bool dry_run, esdm_plugin_reporter report,
                     void *user, esdm_error *err);
esdm_status kv__check(const esdm_plugin_config *config, esdm_plugin_reporter report, void *user,
                      esdm_error *err);
esdm_status kv__remove(const esdm_plugin_config *config, bool dry_run, esdm_plugin_reporter report,
                       void *user, esdm_error *err);
/* target.c */
esdm_status kv__open(const esdm_plugin_config *config, void **ret_target, esdm_error *err);
void kv__close(void *target);
esdm_status kv__space(void *target, esdm_target_usage *ret_usage, esdm_error *err);
esdm_status kv__usage(void *target, esdm_target_usage *ret_usage, esdm_error *err);
esdm_status kv__pack_remove(void *target, const char *name, esdm_error *err);
esdm_status kv__pack_list(void *target, const char *prefix, esdm_pack_visitor visit, void *user,
                          esdm_error *err);
esdm_status kv__pack_read(void *target, const char *name, const esdm_range *ranges, size_t nranges,
                          esdm_error *err);
/** ESDM_OK when the pack is there, in either place. ESDM_ENOENT. */
esdm_status kv__find_pack(const kv__target *target, const char *name, kv__handle **ret_handle,
                          esdm_error *err);
/* pack.c */
esdm_status kv__pack_create(void *target, const char *name, void **ret_pack, esdm_error *err);
esdm_status kv__pack_append(void *pack, const esdm_iov *iov, size_t niov, uint64_t *ret_position,
                            esdm_error *err);
esdm_status kv__pack_sync(void *pack, esdm_error *err);
esdm_status kv__pack_seal(void *pack, esdm_error *err);
esdm_status kv__pack_discard(void *pack, esdm_error *err);
esdm_status kv__pack_recall(void *pack, uint64_t position, size_t bytes, void *buffer,
                            esdm_error *err);
/** The list of packs that are being written, around a fork(): before the databases. */
void kv__lock_packs(void);
void kv__unlock_packs(void);

#endif
