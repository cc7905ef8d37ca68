/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Opening and closing stores; the frame around reads and transactions. */

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own_process.h"
#include "base/shared_file_systems.h"
#include "store.h"

/* The log is copied into the database when it has so many pages, and at close when it is larger
 * than this: whoever opens the store next reads the log first. A shorter one is copied at close
 * when that was not done for some seconds, so that the database alone is nearly the whole store,
 * and many short programs do not wait for the disk one after the other. */
#define CHECKPOINT_PAGES 2048
/* In KiB. The larger one holds the pages of a large index that containers are in which are entered
 * together, up to 50 of each: with fewer these are written one by one, and read again. */
#define WRITER_CACHE          8192
#define WRITER_CACHE_ENTERING 16384
/* In a large catalogue more containers are entered together. For each of them the cache has so many
 * KiB, so that the ends of all values stay there, to which new entries go; and the log so many
 * pages, as one is copied once however often it was changed in between. */
#define CACHE_KIB_EACH         64
#define CHECKPOINT_PAGES_EACH  16
#define CLOSE_CHECKPOINT_BYTES (256 << 10)
#define CLOSE_CHECKPOINT_S     2

/* By statfs(): who serves these may serve other nodes, too. */
#define FUSE        0x65735546u
#define PLAN9       0x01021997u
#define VIRTUAL_BOX 0x786f4256u

bool
sqlite__is_network(int fd)
{
    struct statfs found;
    if (fstatfs(fd, &found) != 0)
        return false;
    uint32_t type = (uint32_t) found.f_type;
    return esdm__file_system_is_shared(type) || type == FUSE || type == PLAN9 ||
           type == VIRTUAL_BOX;
}

/* ---- open ----------------------------------------------------------------------------------- */

/* Whether the failure may come from missing permission to write: then there are other ways. SQLite
 * says "no such file" also when it cannot make the shared memory. */
static bool
may_be_read_only(const sqlite__store *store, const esdm_error *why)
{
    return why->status == ESDM_EACCES || why->status == ESDM_EIO ||
           (why->status == ESDM_ENOENT && why->os_errno != 0 && euidaccess(store->file, F_OK) == 0);
}

static esdm_status
is_wal(sqlite__link *link, bool *ret_wal, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(link->db, "PRAGMA journal_mode", -1, &statement, NULL);
    if (code == SQLITE_OK) {
        code = sqlite3_step(statement);
        *ret_wal = code == SQLITE_ROW && strcmp(sqlite__text(statement, 0), "wal") == 0;
    }
    (void) sqlite3_finalize(statement);
    return code == SQLITE_ROW ? ESDM_OK : sqlite__error(link, code, err);
}

/* Opens the reader through SQLite's own locking. */
static esdm_status
open_live(sqlite__store *store, bool read_only, bool network, esdm_error *err)
{
    sqlite__link *link = &store->reader;
    bool wal = false;
    store->open_flags = read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
    esdm_status status = sqlite__link_open(link, store->file, store->file, store->open_flags, err);
    if (status != ESDM_OK)
        return status;
    store->access = SQLITE__LIVE;
    store->writable = !read_only && sqlite3_db_readonly(link->db, "main") == 0 &&
                      euidaccess(store->directory, W_OK) == 0;
    bool writes = false;
    status = sqlite__schema_check(link, err);
    if (status == ESDM_OK)
        status = sqlite__check_state(link, store->migrating, &writes, err);
    store->writable = store->writable && writes;
    if (status == ESDM_OK)
        status = sqlite__schema_adapt(link, err);
    if (status == ESDM_OK)
        status = is_wal(link, &wal, err);
    if (status == ESDM_OK && wal && network) {
        /* Made on a local file system and reached over the network now: shared memory would not
         * be shared. */
        status = store->writable ? sqlite__exec(link, "PRAGMA journal_mode = TRUNCATE", err)
                                 : esdm__error_set(err, ESDM_EACCES, "needs a copy");
        wal = false;
    }
    store->rollback_journal = !wal;
    link->shares_log = wal;
    if (status != ESDM_OK)
        sqlite__link_close(link);
    else if (wal)
        sqlite__second_allow(store);
    return status;
}

static bool
may_write(const sqlite__store *store)
{
    return euidaccess(store->file, W_OK) == 0 && euidaccess(store->directory, W_OK) == 0;
}

static esdm_status
open_reader(sqlite__store *store, bool read_only, bool network, esdm_error *err)
{
    esdm_error why = {0};
    esdm_status status = open_live(store, read_only, network, &why);
    if (status != ESDM_OK && may_be_read_only(store, &why)) {
        esdm_error first = why;
        first.status = status;
        status = sqlite__open_frozen(store, &why);
        if (status == ESDM_OK && !read_only && first.status == ESDM_EIO && may_write(store))
            store->refused = first;
    }
    if (status == ESDM_ENOENT && euidaccess(store->file, F_OK) != 0 && errno == ENOENT)
        status = esdm__error_set(
            &why, ESDM_ENOENT,
            "metadata store '%.200s' is not there: esdm-mkfs --restore brings it back from a "
            "backup if the site was in use, else run esdm-mkfs again",
            store->file);
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}

static esdm_status
new_store(esdm__place *place, sqlite__store **ret_store, esdm_error *err)
{
    sqlite__store *store = calloc(1, sizeof *store);
    if (store == NULL)
        return esdm__error_nomem(err, sizeof *store, "a metadata store");
    store->pid = esdm__own_pid();
    store->directory = place->directory;
    place->directory = NULL;
    if (asprintf(&store->file, "%s/%s", store->directory, SQLITE__FILE) < 0)
        store->file = NULL;
    if (store->file == NULL || pthread_mutex_init(&store->read_mutex, NULL) != 0 ||
        pthread_mutex_init(&store->second_mutex, NULL) != 0 ||
        pthread_mutex_init(&store->write_mutex, NULL) != 0 ||
        sqlite__pins_init(&store->pins, store->directory, err) != ESDM_OK) {
        free(store->directory);
        free(store->file);
        free(store);
        return esdm__error_nomem(err, sizeof *store, "a metadata store");
    }
    *ret_store = store;
    return ESDM_OK;
}

/* No site was made yet, or its catalogue is lost: which one it is nobody knows here. */
void
sqlite__tell_restore(esdm_error *err)
{
    size_t n = err != NULL ? strlen(err->message) : 0;
    if (n > 0)
        (void) snprintf(err->message + n, sizeof err->message - n,
                        "; \"esdm-mkfs --restore\" brings back a catalogue that is lost");
}

esdm_status
sqlite__open(const esdm_plugin_config *config, bool read_only, void **ret_store, esdm_error *err)
{
    esdm__place place = {0};
    sqlite__store *store = NULL;
    bool network = false;
    int fd = -1;
    sqlite__abandon_inherited();
    esdm_status status = esdm__place_init(&place, "sqlite", config, err);
    if (status == ESDM_OK)
        status = esdm__place_open(&place, &fd, err);
    if (status == ESDM_ENOENT)
        sqlite__tell_restore(err);
    if (status == ESDM_OK) {
        network = sqlite__is_network(fd);
        (void) close(fd);
        status = new_store(&place, &store, err);
    }
    esdm__place_clear(&place);
    if (status != ESDM_OK)
        return status;
    store->migrating = config->migrating;
    store->flushes = config->durable;
    sqlite__enter_list(store);
    status = open_reader(store, read_only, network, err);
    if (status != ESDM_OK) {
        sqlite__close(store);
        return status;
    }
    store->pins.optional = store->access != SQLITE__LIVE;
    *ret_store = store;
    return ESDM_OK;
}

/* ---- close ---------------------------------------------------------------------------------- */

/* Whether nothing was copied into the database for some seconds. */
static bool
is_settled(const sqlite__store *store)
{
    struct stat found;
    struct timespec now;
    return stat(store->file, &found) == 0 && clock_gettime(CLOCK_REALTIME, &now) == 0 &&
           now.tv_sec - found.st_mtim.tv_sec >= CLOSE_CHECKPOINT_S;
}

/* Keeps the log short for those who open next. Nobody is waited for. */
static void
shorten_log(sqlite__store *store)
{
    char path[PATH_MAX];
    struct stat found;
    if (store->writer.db == NULL || store->rollback_journal)
        return;
    (void) snprintf(path, sizeof path, "%s-wal", store->file);
    if (stat(path, &found) != 0 || found.st_size == 0)
        return;
    if (found.st_size <= CLOSE_CHECKPOINT_BYTES && !is_settled(store))
        return;
    sqlite__link_wait(&store->writer, false);
    (void) sqlite3_wal_checkpoint_v2(store->writer.db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL,
                                     NULL);
    sqlite__link_wait(&store->writer, true);
}

void
sqlite__settle(void *self)
{
    sqlite__store *store = self;
    if (store->pid != esdm__own_pid() || pthread_mutex_trylock(&store->write_mutex) != 0)
        return; /* exit() may have been called in a signal handler */
    shorten_log(store);
    (void) pthread_mutex_unlock(&store->write_mutex);
}

void
sqlite__close(void *self)
{
    sqlite__store *store = self;
    if (store == NULL)
        return;
    sqlite__leave_list(store);
    if (store->pid != esdm__own_pid()) {
        if (!sqlite__abandon(store))
            return; /* a thread of the parent was inside: its memory is lost to this child */
    } else {
        shorten_log(store);
        sqlite__link_close(&store->writer);
        sqlite__link_close(&store->reader);
        sqlite__link_close(&store->second);
    }
    sqlite__pins_clear(&store->pins);
    (void) pthread_mutex_destroy(&store->read_mutex);
    (void) pthread_mutex_destroy(&store->second_mutex);
    (void) pthread_mutex_destroy(&store->write_mutex);
    free(store->file);
    free(store->directory);
    free(store);
}

/* ---- reads ---------------------------------------------------------------------------------- */

static esdm_status
after_fork(const sqlite__store *store, esdm_error *err)
{
    return esdm__error_set(err, ESDM_EINVAL,
                           "metadata store '%.200s' was opened before fork(); open it again in the "
                           "child",
                           store->file);
}

bool
sqlite__holds(sqlite__store *store)
{
    return atomic_load(&store->holder) == (uintptr_t) pthread_self();
}

esdm_status
sqlite__begin_read(sqlite__store *store, esdm_error *err)
{
    if (store->pid != esdm__own_pid())
        return after_fork(store, err);
    if (sqlite__holds(store))
        return ESDM_OK;
    (void) pthread_mutex_lock(&store->read_mutex);
    store->reader.waited_ns = 0;
    esdm_status status = ESDM_OK;
    if (store->access != SQLITE__LIVE &&
        (store->reader.db == NULL || sqlite__frozen_changed(store))) {
        sqlite__link_close(&store->reader);
        status = sqlite__open_frozen(store, err);
    }
    if (status != ESDM_OK)
        (void) pthread_mutex_unlock(&store->read_mutex);
    return status;
}

void
sqlite__end_read(sqlite__store *store)
{
    if (!sqlite__holds(store))
        (void) pthread_mutex_unlock(&store->read_mutex);
}

/* ---- questions ------------------------------------------------------------------------------ */

esdm_status
sqlite__begin_question(sqlite__store *store, esdm_error *err)
{
    return sqlite__holds(store) ? ESDM_OK : sqlite__run(&store->reader, SQLITE__BEGIN, err, "");
}

void
sqlite__end_question(sqlite__store *store, esdm_status status)
{
    sqlite__link *link = &store->reader;
    if (sqlite__holds(store)) {
        link->kept.is_there &= status == ESDM_OK;
        return;
    }
    if (status == ESDM_OK)
        status = sqlite__run(link, SQLITE__COMMIT, NULL, "");
    if (status == ESDM_OK)
        return;
    link->kept.is_there = false;
    (void) !sqlite__run(link, SQLITE__ROLLBACK, NULL, "");
}

esdm_status
sqlite__hold(void *self, esdm_error *err)
{
    sqlite__store *store = self;
    esdm_status status = sqlite__begin_read(store, err);
    if (status != ESDM_OK)
        return status;
    status = sqlite__begin_question(store, err);
    if (status == ESDM_OK)
        atomic_store(&store->holder, (uintptr_t) pthread_self());
    else
        sqlite__end_read(store);
    return status;
}

bool
sqlite__release(void *self)
{
    sqlite__store *store = self;
    /* A question that was interrupted while it brought temp.pending up to date ended it. */
    bool whole = sqlite3_get_autocommit(store->reader.db) == 0;
    atomic_store(&store->holder, 0);
    sqlite__end_question(store, whole ? ESDM_OK : ESDM_EIO);
    sqlite__end_read(store);
    return whole;
}

/* ---- transactions --------------------------------------------------------------------------- */

static esdm_status
set_cache(sqlite__link *link, uint32_t kib, esdm_error *err)
{
    char text[48];
    (void) snprintf(text, sizeof text, "PRAGMA cache_size = -%u", kib);
    return sqlite__exec(link, text, err);
}

static uint32_t
larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* In KiB. */
static uint32_t
cache_of(const sqlite__link *link)
{
    return larger(WRITER_CACHE, link->together * CACHE_KIB_EACH);
}

/* Under write_mutex. */
static esdm_status
open_writer(sqlite__store *store, esdm_error *err)
{
    sqlite__link *link = &store->writer;
    if (link->db != NULL)
        return ESDM_OK;
    esdm_status status =
        sqlite__link_open(link, store->file, store->file, SQLITE_OPEN_READWRITE, err);
    if (status == ESDM_OK && store->rollback_journal)
        status = sqlite__exec(link, "PRAGMA journal_mode = TRUNCATE", err);
    if (status == ESDM_OK)
        status = sqlite__exec(link, "PRAGMA synchronous = NORMAL", err);
    if (status == ESDM_OK)
        status = set_cache(link, WRITER_CACHE, err);
    if (status != ESDM_OK) {
        sqlite__link_close(link);
        return status;
    }
    (void) sqlite3_wal_autocheckpoint(link->db, CHECKPOINT_PAGES);
    /* Those of the store do for older versions what this one does itself, or keep these out; a
     * frame is made for each row that one looks at. */
    (void) sqlite3_db_config(link->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    link->shares_log = !store->rollback_journal;
    store->durable = false;
    return ESDM_OK;
}

/* Under write_mutex. The pragma takes effect while it is prepared, so it cannot be kept. */
static esdm_status
set_durable(sqlite__store *store, bool durable, esdm_error *err)
{
    if (store->durable == durable)
        return ESDM_OK;
    esdm_status status = sqlite__exec(
        &store->writer, durable ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL", err);
    if (status == ESDM_OK)
        store->durable = durable;
    return status;
}

/* Within the transaction: a migration may have begun since the store was opened. */
static esdm_status
check_serves(sqlite__store *store, esdm_error *err)
{
    bool writes = false;
    esdm_status status = sqlite__check_state(&store->writer, store->migrating, &writes, err);
    if (status == ESDM_ENOTSUP || (status == ESDM_OK && !writes))
        return esdm__error_set(err, ESDM_EACCES,
                               "metadata store '%.200s' is migrated to another place: it is not "
                               "written to any more",
                               store->file);
    return status;
}

esdm_status
sqlite__begin_note(sqlite__store *store, bool durable, esdm_error *err)
{
    if (store->pid != esdm__own_pid())
        return after_fork(store, err);
    if (store->refused.status != ESDM_OK) {
        if (err != NULL)
            *err = store->refused;
        return store->refused.status;
    }
    if (!store->writable)
        return esdm__error_set(err, ESDM_EACCES, "metadata store '%.200s' is open for reading only",
                               store->file);
    (void) pthread_mutex_lock(&store->write_mutex);
    store->writer.waited_ns = 0;
    esdm_status status = open_writer(store, err);
    if (status == ESDM_OK)
        status = set_durable(store, durable, err);
    if (status == ESDM_OK)
        status = sqlite__run(&store->writer, SQLITE__BEGIN_WRITE, err, "");
    if (status != ESDM_OK) {
        (void) pthread_mutex_unlock(&store->write_mutex);
        return status;
    }
    status = check_serves(store, err);
    return status == ESDM_OK ? ESDM_OK : sqlite__end_write(store, status, err);
}

esdm_status
sqlite__begin_write(sqlite__store *store, bool durable, esdm_error *err)
{
    esdm_status status = sqlite__begin_note(store, durable, err);
    if (status != ESDM_OK || store->current)
        return status;
    status = sqlite__schema_upgrade(&store->writer, &store->current, err);
    return status == ESDM_OK ? ESDM_OK : sqlite__end_write(store, status, err);
}

esdm_status
sqlite__writer_fit(sqlite__link *link, uint32_t together, esdm_error *err)
{
    uint32_t before = cache_of(link);
    if (link->together == together)
        return ESDM_OK;
    link->together = together;
    (void) sqlite3_wal_autocheckpoint(
        link->db, (int) larger(CHECKPOINT_PAGES, together * CHECKPOINT_PAGES_EACH));
    return cache_of(link) == before ? ESDM_OK : set_cache(link, cache_of(link), err);
}

esdm_status
sqlite__cache_enlarge(sqlite__link *link, esdm_error *err)
{
    if (link->is_large || cache_of(link) >= WRITER_CACHE_ENTERING)
        return ESDM_OK;
    link->is_large = true;
    return set_cache(link, WRITER_CACHE_ENTERING, err);
}

esdm_status
sqlite__end_write(sqlite__store *store, esdm_status status, esdm_error *err)
{
    sqlite__link *link = &store->writer;
    if (status == ESDM_OK)
        status = sqlite__run(link, SQLITE__COMMIT, err, "");
    if (sqlite3_get_autocommit(link->db) == 0)
        (void) !sqlite__run(link, SQLITE__ROLLBACK, NULL, "");
    if (link->is_large) /* gives back what is more than the smaller one */
        (void) !set_cache(link, cache_of(link), NULL);
    link->is_large = false;
    sqlite__pins_release(&store->pins);
    (void) pthread_mutex_unlock(&store->write_mutex);
    return status;
}
