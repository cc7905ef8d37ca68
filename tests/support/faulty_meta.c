/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "faulty_meta.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

extern const esdm_meta_plugin esdm_meta_sqlite_plugin;
static const esdm_meta_plugin *store_plugin = &esdm_meta_sqlite_plugin;
#define inner (*store_plugin)

typedef struct fault {
    uint64_t calls;
    uint64_t first; /* number of the first call that is hit */
    uint64_t count; /* 0: all that follow */
    esdm_faulty_meta_action action;
} fault;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards faults */
static fault faults[ESDM_FAULTY_META_OPS];

static const char *const op_names[] = {"commit", "relocate", "lives", "check", "records",
                                       "remove", "move",     "pin",   "begin", "open",
                                       "ask",    "page",     "names", "put"};
static const char *const action_names[] = {"none", "fail", "refuse", "unknown", "lie", "run"};

/* ---- arming --------------------------------------------------------------------------------- */

void
esdm_faulty_meta_arm(esdm_faulty_meta_op op, uint64_t nth, uint64_t count,
                     esdm_faulty_meta_action action)
{
    (void) pthread_mutex_lock(&mutex);
    faults[op].first = faults[op].calls + nth;
    faults[op].count = count;
    faults[op].action = action;
    (void) pthread_mutex_unlock(&mutex);
}

uint64_t
esdm_faulty_meta_calls(esdm_faulty_meta_op op)
{
    (void) pthread_mutex_lock(&mutex);
    uint64_t calls = faults[op].calls;
    (void) pthread_mutex_unlock(&mutex);
    return calls;
}

static int
index_of(const char *word, const char *const *names, int count)
{
    int i = 0;
    while (i < count && strcmp(word, names[i]) != 0)
        i++;
    return i;
}

static bool environment_is_wrong;

static void
read_environment(void)
{
    const char *text = getenv("ESDM_FAULTY_META");
    while (text != NULL && *text != '\0') {
        char op[16];
        char action[16];
        unsigned long long nth;
        unsigned long long count;
        int used = 0;
        int found = sscanf(text, "%15[a-z]:%llu+%llu:%15[a-z]%n", op, &nth, &count, action, &used);
        int o = found == 4 ? index_of(op, op_names, ESDM_FAULTY_META_OPS) : ESDM_FAULTY_META_OPS;
        int a = found == 4 ? index_of(action, action_names, ESDM_FAULTY_META_RUN + 1) : 0;
        environment_is_wrong = o == ESDM_FAULTY_META_OPS || a > ESDM_FAULTY_META_RUN || nth == 0;
        if (environment_is_wrong)
            return;
        esdm_faulty_meta_arm((esdm_faulty_meta_op) o, nth, count, (esdm_faulty_meta_action) a);
        text += used;
        text += *text == ',';
    }
}

/* Counts a call; what is to happen to it. */
static esdm_faulty_meta_action
next_call(esdm_faulty_meta_op op)
{
    (void) pthread_mutex_lock(&mutex);
    fault *f = &faults[op];
    uint64_t number = ++f->calls;
    bool hit = number >= f->first && (f->count == 0 || number - f->first < f->count);
    esdm_faulty_meta_action action = hit ? f->action : ESDM_FAULTY_META_NONE;
    (void) pthread_mutex_unlock(&mutex);
    return action;
}

static esdm_status
report(esdm_faulty_meta_op op, esdm_faulty_meta_action action, esdm_error *err)
{
    return esdm__error_set(err, action == ESDM_FAULTY_META_REFUSE ? ESDM_ECONFLICT : ESDM_EIO,
                           "faulty: %s: %s, as it was told", op_names[op], action_names[action]);
}

static bool
is_refused(esdm_faulty_meta_action action)
{
    return action == ESDM_FAULTY_META_FAIL || action == ESDM_FAULTY_META_REFUSE;
}

/* What another program does between what the engine looked up and what it does. */
static esdm_status
run_other(esdm_faulty_meta_op op, esdm_faulty_meta_action action, esdm_error *err)
{
    const char *command = getenv("ESDM_FAULTY_META_RUN");
    if (is_refused(action) ||
        (action == ESDM_FAULTY_META_RUN && (command == NULL || system(command) != 0)))
        return report(op, action, err);
    return ESDM_OK;
}

static esdm_status
run_between(esdm_faulty_meta_op op, esdm_error *err)
{
    return run_other(op, next_call(op), err);
}

/* ---- operations ----------------------------------------------------------------------------- */

static esdm_status
faulty_open(const esdm_plugin_config *config, bool read_only, void **ret_store, esdm_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void) pthread_once(&once, read_environment);
    if (environment_is_wrong)
        return esdm__error_set(err, ESDM_EINVAL, "faulty: $ESDM_FAULTY_META is wrong");
    return inner.open(config, read_only, ret_store, err);
}

static esdm_status
faulty_commit(void *store, const esdm_meta_commit *commit, esdm_meta_committed *ret_committed,
              esdm_error *err)
{
    esdm_faulty_meta_action action = next_call(ESDM_FAULTY_COMMIT);
    esdm_meta_committed unheard;
    if (is_refused(action))
        return report(ESDM_FAULTY_COMMIT, action, err);
    if (action != ESDM_FAULTY_META_UNKNOWN) {
        esdm_status done = inner.commit(store, commit, ret_committed, err);
        return done == ESDM_OK ? run_other(ESDM_FAULTY_COMMIT, action, err) : done;
    }
    esdm_status status = inner.commit(store, commit, &unheard, err);
    return status != ESDM_OK ? status : report(ESDM_FAULTY_COMMIT, action, err);
}

static esdm_status
faulty_pin(void *store, uint64_t container, uint64_t snapshot, esdm_error *err)
{
    esdm_status status = run_between(ESDM_FAULTY_PIN, err);
    return status == ESDM_OK ? inner.pin(store, container, snapshot, err) : status;
}

static esdm_status
faulty_relocate(void *store, uint64_t container, esdm_meta_relocation *pages, size_t npages,
                bool durable, esdm_error *err)
{
    esdm_faulty_meta_action action = next_call(ESDM_FAULTY_RELOCATE);
    esdm_status status = run_other(ESDM_FAULTY_RELOCATE, action, err);
    if (status == ESDM_OK)
        status = inner.relocate(store, container, pages, npages, durable, err);
    if (status == ESDM_OK && action == ESDM_FAULTY_META_UNKNOWN)
        return report(ESDM_FAULTY_RELOCATE, action, err);
    return status;
}

static esdm_status
faulty_writer_lives(void *store, const char *writer, bool *ret_lives, esdm_error *err)
{
    esdm_faulty_meta_action action = next_call(ESDM_FAULTY_LIVES);
    if (is_refused(action))
        return report(ESDM_FAULTY_LIVES, action, err);
    esdm_status status = inner.writer_lives(store, writer, ret_lives, err);
    if (status == ESDM_OK && action == ESDM_FAULTY_META_LIE)
        *ret_lives = false;
    return status == ESDM_OK ? run_other(ESDM_FAULTY_LIVES, action, err) : status;
}

static esdm_status
faulty_writer_begin(void *store, const char *writer, esdm_error *err)
{
    esdm_status status = run_between(ESDM_FAULTY_BEGIN, err);
    return status == ESDM_OK ? inner.writer_begin(store, writer, err) : status;
}

static esdm_status
faulty_snapshot_open(void *store, const char *name, uint64_t snapshot, uint64_t known_container,
                     uint64_t known_structure, esdm_meta_snapshot *ret_snapshot, esdm_error *err)
{
    esdm_status status = run_between(ESDM_FAULTY_SNAPSHOT, err);
    if (status == ESDM_OK)
        status = run_between(ESDM_FAULTY_ASK, err);
    return status == ESDM_OK ? inner.snapshot_open(store, name, snapshot, known_container,
                                                   known_structure, ret_snapshot, err)
                             : status;
}

static esdm_status
faulty_container_find(void *store, const char *name, esdm_meta_container *ret_record,
                      esdm_error *err)
{
    esdm_status status = run_between(ESDM_FAULTY_ASK, err);
    return status == ESDM_OK ? inner.container_find(store, name, ret_record, err) : status;
}

static esdm_status
faulty_container_list(void *store, const char *prefix, esdm_meta_container_visitor visit,
                      void *user, esdm_error *err)
{
    esdm_faulty_meta_action action = next_call(ESDM_FAULTY_NAMES);
    if (is_refused(action))
        return report(ESDM_FAULTY_NAMES, action, err);
    esdm_status status = run_between(ESDM_FAULTY_ASK, err);
    return status == ESDM_OK ? inner.container_list(store, prefix, visit, user, err) : status;
}

static esdm_status
faulty_tag_list(void *store, uint64_t container, esdm_meta_tag_visitor visit, void *user,
                esdm_error *err)
{
    esdm_status status = run_between(ESDM_FAULTY_ASK, err);
    return status == ESDM_OK ? inner.tag_list(store, container, visit, user, err) : status;
}

static esdm_status
faulty_tag_set(void *store, uint64_t container, const esdm_meta_tag *tag, bool replace,
               esdm_error *err)
{
    esdm_status status = run_between(ESDM_FAULTY_ASK, err);
    return status == ESDM_OK ? inner.tag_set(store, container, tag, replace, err) : status;
}

static esdm_status
faulty_page_load(void *store, uint64_t page, void **ret_data, size_t *ret_bytes, esdm_error *err)
{
    esdm_status status = run_between(ESDM_FAULTY_PAGE, err);
    return status == ESDM_OK ? inner.page_load(store, page, ret_data, ret_bytes, err) : status;
}

static esdm_status
faulty_extent_put(void *store, uint64_t container, uint64_t snapshot,
                  const esdm_meta_extent *extents, size_t nextents, esdm_error *err)
{
    esdm_status status = run_between(ESDM_FAULTY_PUT, err);
    return status == ESDM_OK ? inner.extent_put(store, container, snapshot, extents, nextents, err)
                             : status;
}

static esdm_status
faulty_writer_check(void *store, const char *writer, bool *ret_lost, esdm_error *err)
{
    esdm_faulty_meta_action action = next_call(ESDM_FAULTY_CHECK);
    (void) store, (void) writer;
    if (is_refused(action))
        return report(ESDM_FAULTY_CHECK, action, err);
    *ret_lost = action == ESDM_FAULTY_META_LIE;
    return ESDM_OK;
}

static esdm_status
faulty_record_list(void *store, esdm_meta_record_visitor visit, void *user, esdm_error *err)
{
    esdm_faulty_meta_action action = next_call(ESDM_FAULTY_RECORDS);
    if (is_refused(action))
        return report(ESDM_FAULTY_RECORDS, action, err);
    return inner.record_list(store, visit, user, err);
}

static esdm_status
faulty_container_remove(void *store, const char *name, uint64_t *ret_container, esdm_error *err)
{
    esdm_status status = run_between(ESDM_FAULTY_NAME_REMOVE, err);
    return status == ESDM_OK ? inner.container_remove(store, name, ret_container, err) : status;
}

static esdm_status
faulty_container_move(void *store, const char *from, const char *to, bool replace,
                      const char *keep_as, uint64_t *ret_replaced, esdm_error *err)
{
    esdm_status status = run_between(ESDM_FAULTY_NAME_MOVE, err);
    return status == ESDM_OK
               ? inner.container_move(store, from, to, replace, keep_as, ret_replaced, err)
               : status;
}

static esdm_status
faulty_container_move_seen(void *store, const char *from, const char *to, const char *keep_as,
                           const esdm_meta_seen *seen, uint64_t *ret_replaced, esdm_error *err)
{
    esdm_status status = run_between(ESDM_FAULTY_NAME_MOVE, err);
    return status == ESDM_OK
               ? inner.container_move_seen(store, from, to, keep_as, seen, ret_replaced, err)
               : status;
}

ESDM_API const esdm_plugin *esdm_plugin_entry(void);

/* Of the plug-in of the build that $ESDM_FAULTY_META_STORE names. NULL: it cannot be loaded. */
static const esdm_meta_plugin *
other_plugin(const char *name)
{
    Dl_info own;
    char path[4096];
    if (dladdr((const void *) (uintptr_t) esdm_plugin_entry, &own) == 0)
        return NULL;
    const char *slash = strrchr(own.dli_fname, '/');
    (void) snprintf(path, sizeof path, "%.*s../esdm/esdm-meta-%s.so",
                    slash != NULL ? (int) (slash + 1 - own.dli_fname) : 0, own.dli_fname, name);
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const esdm_plugin *(*entry)(void);
    void *symbol = object != NULL ? dlsym(object, "esdm_plugin_entry") : NULL;
    memcpy(&entry, &symbol, sizeof entry);
    return symbol != NULL ? (const esdm_meta_plugin *) (const void *) entry() : NULL;
}

const esdm_plugin *
esdm_plugin_entry(void)
{
    static esdm_meta_plugin plugin;
    const char *store = getenv("ESDM_FAULTY_META_STORE");
    if (store != NULL)
        store_plugin = other_plugin(store);
    if (store_plugin == NULL)
        return NULL;
    plugin = inner;
    plugin.base.name = "faulty";
    plugin.base.summary = "another store with faults (tests)";
    plugin.open = faulty_open;
    plugin.commit = faulty_commit;
    plugin.container_find = faulty_container_find;
    plugin.container_list = faulty_container_list;
    plugin.tag_list = faulty_tag_list;
    plugin.tag_set = faulty_tag_set;
    plugin.snapshot_open = faulty_snapshot_open;
    plugin.pin = faulty_pin;
    plugin.page_load = faulty_page_load;
    plugin.extent_put = faulty_extent_put;
    plugin.relocate = faulty_relocate;
    plugin.writer_begin = faulty_writer_begin;
    plugin.writer_lives = faulty_writer_lives;
    plugin.writer_check = faulty_writer_check;
    plugin.record_list = faulty_record_list;
    plugin.container_remove = faulty_container_remove;
    plugin.container_move = faulty_container_move;
    plugin.container_move_seen = faulty_container_move_seen;
    return &plugin.base;
}
