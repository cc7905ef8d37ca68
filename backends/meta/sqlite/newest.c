/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * What a connection has read last, for who asks again while nobody has committed anything. Programs
 * ask whether a file is there, look at its bytes, and open it: that is one container, asked for
 * three times. SQLite counts the states of the database that a connection has met; to meet the
 * present one, a statement has to read something, which locks the log.
 *
 * Without a lock, and without a system call, the head of the log's index tells it (the -shm file,
 * of which SQLite's documentation of the format says what is where): it has a count of commits, the
 * end of the log and a checksum of all that is in it, and lies there twice, as whoever writes it
 * may be interrupted. What was read while it stayed the same is of the state that it stands for. A
 * store with a rollback journal has none, and one that was copied neither: there a statement tells.
 */

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store.h"

/* ---- the state of the log ------------------------------------------------------------------- */

#define REGION_BYTES 32768 /* as SQLite maps the shared memory */
#define COUNT_WORD   2     /* of commits */
#define INIT_WORD    3     /* which is not 0 once the index was made */
#define END_WORD     4     /* of the log: its last frame */
#define SALT_WORD    8     /* and the next one: other ones in each log */

/* SQLite writes by memcpy() what this reads: equal copies are whole. */
__attribute__((no_sanitize("thread"))) static bool
copy_state(const volatile uint32_t *memory, sqlite__log_state *ret_state)
{
    const size_t n = sizeof ret_state->words / sizeof *ret_state->words;
    for (size_t i = 0; i < n; i++)
        ret_state->words[i] = memory[i];
    atomic_thread_fence(memory_order_acquire);
    bool same = true;
    for (size_t i = 0; i < n; i++)
        same = same && ret_state->words[i] == memory[n + i];
    return same && (ret_state->words[INIT_WORD] & 0xffff) != 0;
}

/* SQLite maps the first region when it opens the log, and keeps it until the connection is closed.
 * To ask for it locks what all connections of the process to this log share. */
static const volatile uint32_t *
map_log(sqlite__link *link)
{
    sqlite3_file *file = NULL;
    volatile void *memory = NULL;
    if (link->log_memory != NULL || !link->shares_log)
        return link->log_memory;
    if (sqlite3_file_control(link->db, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK ||
        file == NULL || file->pMethods == NULL || file->pMethods->iVersion < 2 ||
        file->pMethods->xShmMap(file, 0, REGION_BYTES, 0, &memory) != SQLITE_OK)
        return NULL;
    link->log_memory = memory;
    return link->log_memory;
}

static void
read_state(sqlite__link *link, sqlite__log_state *ret_state)
{
    const volatile uint32_t *memory = map_log(link);
    ret_state->is_known = memory != NULL && copy_state(memory, ret_state);
}

/* Whether somebody has committed since, if that can be told. Within a transaction another state may
 * be seen than there is. */
static bool
compare_state(sqlite__link *link, const sqlite__log_state *then, bool *ret_same)
{
    sqlite__log_state now;
    if (!then->is_known || sqlite3_get_autocommit(link->db) == 0)
        return false;
    read_state(link, &now);
    *ret_same = now.is_known && memcmp(now.words, then->words, sizeof now.words) == 0;
    return now.is_known;
}

bool
sqlite__state_is(sqlite__link *link, const sqlite__log_state *then)
{
    bool same = false;
    return compare_state(link, then, &same) && same;
}

void
sqlite__newest_begin(sqlite__link *link)
{
    link->began.is_known = false;
    if (sqlite3_get_autocommit(link->db) != 0)
        read_state(link, &link->began);
}

void
sqlite__state_keep(sqlite__link *link, sqlite__log_state *ret_state)
{
    read_state(link, ret_state);
    ret_state->is_known =
        ret_state->is_known && link->began.is_known &&
        memcmp(ret_state->words, link->began.words, sizeof link->began.words) == 0;
}

/* ---- what is kept --------------------------------------------------------------------------- */

/* Within a reading: which state of the database it sees. */
static bool
find_version(const sqlite__link *link, unsigned *ret_version)
{
    return sqlite3_file_control(link->db, "main", SQLITE_FCNTL_DATA_VERSION, ret_version) ==
           SQLITE_OK;
}

void
sqlite__newest_keep(sqlite__link *link, const char *name, const esdm_meta_snapshot *loaded,
                    bool snapshot)
{
    sqlite__newest *kept = &link->newest;
    size_t bytes = strlen(name) + 1;
    kept->is_there = bytes <= sizeof kept->name && find_version(link, &kept->version);
    if (!kept->is_there)
        return;
    memcpy(kept->name, name, bytes);
    sqlite__state_keep(link, &kept->state);
    kept->has_snapshot = snapshot && loaded->snapshot == loaded->record.snapshot &&
                         loaded->nlengths <= sizeof kept->lengths / sizeof *kept->lengths;
    kept->loaded = *loaded;
    kept->loaded.document = NULL;
    kept->loaded.document_bytes = 0;
    kept->loaded.lengths = NULL;
    if (kept->has_snapshot && loaded->nlengths > 0)
        memcpy(kept->lengths, loaded->lengths, loaded->nlengths * sizeof *kept->lengths);
}

esdm_status
sqlite__newest_is(sqlite__link *link, const char *name, bool *ret_is, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    unsigned version = 0;
    *ret_is = false;
    if (!link->newest.is_there || strcmp(name, link->newest.name) != 0)
        return ESDM_OK;
    if (compare_state(link, &link->newest.state, ret_is))
        return ESDM_OK;
    sqlite__newest_begin(link);
    esdm_status status = sqlite__prepare(link, SQLITE__FORMAT_GET, &statement, err, "");
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    if (row) {
        *ret_is = find_version(link, &version) && version == link->newest.version;
        if (*ret_is)
            sqlite__state_keep(link, &link->newest.state);
        (void) sqlite3_reset(statement);
    }
    return status;
}

esdm_status
sqlite__newest_load(sqlite__link *link, const char *name, uint64_t known_container,
                    uint64_t known_structure, esdm_meta_snapshot *ret_snapshot, bool *ret_found,
                    esdm_error *err)
{
    const sqlite__newest *kept = &link->newest;
    *ret_found = false;
    if (!kept->has_snapshot || known_container != kept->loaded.record.container ||
        known_structure != kept->loaded.structure)
        return ESDM_OK;
    esdm_status status = sqlite__newest_is(link, name, ret_found, err);
    if (status != ESDM_OK || !*ret_found)
        return status;
    *ret_snapshot = kept->loaded;
    if (kept->loaded.nlengths == 0)
        return ESDM_OK;
    size_t bytes = kept->loaded.nlengths * sizeof *kept->lengths;
    ret_snapshot->lengths = malloc(bytes);
    if (ret_snapshot->lengths == NULL)
        return esdm__error_nomem(err, bytes, "lengths");
    memcpy(ret_snapshot->lengths, kept->lengths, bytes);
    return ESDM_OK;
}

bool
sqlite__newest_has(sqlite__link *link, uint64_t container, uint64_t snapshot)
{
    const sqlite__newest *kept = &link->newest;
    return kept->is_there && kept->has_snapshot && kept->loaded.record.container == container &&
           kept->loaded.snapshot == snapshot && sqlite__state_is(link, &kept->state);
}

/* ---- names that are free -------------------------------------------------------------------- */

static bool
same_state(const sqlite__log_state *a, const sqlite__log_state *b)
{
    return a->is_known && b->is_known && memcmp(a->words, b->words, sizeof a->words) == 0;
}

/* @return SQLITE__ABSENT_NAMES when it is none of them. */
static size_t
find_absent(const sqlite__absent *absent, const char *name)
{
    size_t i = 0;
    while (i < SQLITE__ABSENT_NAMES && strcmp(absent->names[i], name) != 0)
        i++;
    return i;
}

void
sqlite__absent_keep(sqlite__link *link, const char *name)
{
    sqlite__absent *absent = &link->absent;
    sqlite__log_state state;
    size_t bytes = strlen(name) + 1;
    sqlite__state_keep(link, &state);
    if (!state.is_known || bytes > sizeof absent->names[0] || bytes == 1)
        return;
    if (!same_state(&absent->state, &state)) {
        memset(absent->names, 0, sizeof absent->names);
        absent->state = state;
    }
    if (find_absent(absent, name) < SQLITE__ABSENT_NAMES)
        return;
    size_t at = find_absent(absent, "");
    if (at == SQLITE__ABSENT_NAMES) {
        at = absent->next;
        absent->next = (at + 1) % SQLITE__ABSENT_NAMES;
    }
    memcpy(absent->names[at], name, bytes);
}

bool
sqlite__absent_is(sqlite__link *link, const char *name)
{
    const sqlite__absent *absent = &link->absent;
    return absent->state.is_known && name[0] != '\0' &&
           find_absent(absent, name) < SQLITE__ABSENT_NAMES &&
           sqlite__state_is(link, &absent->state);
}

static bool
is_taken(sqlite__link *writer, const char *name)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    writer->waited_ns = 0;
    if (sqlite__prepare(writer, SQLITE__CONTAINER_TAKEN, &statement, NULL, "t", name) != ESDM_OK ||
        sqlite__step(writer, statement, &row, NULL) != ESDM_OK || !row)
        return true;
    bool taken = sqlite3_column_int(statement, 0) != 0;
    (void) sqlite3_reset(statement);
    return taken;
}

bool
sqlite__absent_below(sqlite__store *store, const char *name)
{
    sqlite__link *link = &store->reader;
    bool absent = false;
    if (sqlite__begin_read(store, NULL) != ESDM_OK)
        return false;
    if (sqlite__state_is(link, &link->absent.own) &&
        pthread_mutex_trylock(&store->write_mutex) == 0) {
        sqlite__newest_begin(link);
        absent = store->writer.db != NULL && !is_taken(&store->writer, name);
        (void) pthread_mutex_unlock(&store->write_mutex);
        if (absent)
            sqlite__absent_keep(link, name);
    }
    sqlite__end_read(store);
    return absent;
}

void
sqlite__state_followed(sqlite__link *writer, sqlite__log_state *ret_state)
{
    read_state(writer, ret_state);
}

/* Each commit is counted. The log that it went to has the same salt, unless somebody began it anew.
 */
static bool
is_next(const sqlite__log_state *now, const sqlite__log_state *then)
{
    return now->is_known && now->words[COUNT_WORD] == then->words[COUNT_WORD] + 1 &&
           now->words[SALT_WORD] == then->words[SALT_WORD] &&
           now->words[SALT_WORD + 1] == then->words[SALT_WORD + 1] &&
           now->words[END_WORD] > then->words[END_WORD];
}

static void
forget_absent(sqlite__absent *absent, const char *name)
{
    size_t at = name != NULL && name[0] != '\0' ? find_absent(absent, name) : SQLITE__ABSENT_NAMES;
    if (at < SQLITE__ABSENT_NAMES)
        absent->names[at][0] = '\0';
}

bool
sqlite__absent_at(sqlite__store *store, const sqlite__log_state *state, const char *name)
{
    const sqlite__absent *absent = &store->reader.absent;
    if (name[0] == '\0' || pthread_mutex_trylock(&store->read_mutex) != 0)
        return false;
    bool is = same_state(&absent->state, state) && find_absent(absent, name) < SQLITE__ABSENT_NAMES;
    (void) pthread_mutex_unlock(&store->read_mutex);
    return is;
}

void
sqlite__absent_follow(sqlite__store *store, const sqlite__log_state *followed, const char *name,
                      const char *other)
{
    sqlite__link *link = &store->reader;
    sqlite__log_state now;
    /* Who commits while it reads has it itself. */
    if (!followed->is_known || pthread_mutex_trylock(&store->read_mutex) != 0)
        return;
    read_state(link, &now);
    link->absent.own.is_known = false;
    if (is_next(&now, followed))
        link->absent.own = now;
    if (link->absent.own.is_known && same_state(&link->absent.state, followed)) {
        forget_absent(&link->absent, name);
        forget_absent(&link->absent, other);
        link->absent.state = now;
    }
    (void) pthread_mutex_unlock(&store->read_mutex);
}
