/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "faulty_data.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

extern const esdm_data_plugin esdm_data_posix_plugin;
#define inner esdm_data_posix_plugin

typedef struct fault {
    uint64_t calls;
    uint64_t first; /* number of the first call that is hit */
    uint64_t count; /* 0: all that follow */
    esdm_faulty_action action;
    esdm_status status;
} fault;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards faults */
static fault faults[ESDM_FAULTY_OPS];

static const char *const op_names[] = {"open", "create", "append", "sync",
                                       "seal", "read",   "remove", "list"};
static const char *const action_names[] = {"none", "fail", "short", "flip"};
static const char *const status_names[] = {
    "OK",     "EINVAL", "ENOENT", "EEXIST",    "ECONFLICT", "ENOTSUP",  "ENOMEM",
    "ENOSPC", "EACCES", "EIO",    "ETIMEDOUT", "ECORRUPT",  "ECANCELED"};

/* ---- arming --------------------------------------------------------------------------------- */

void
esdm_faulty_arm(esdm_faulty_op op, uint64_t nth, uint64_t count, esdm_faulty_action action,
                esdm_status status)
{
    (void) pthread_mutex_lock(&mutex);
    faults[op].first = faults[op].calls + nth;
    faults[op].count = count;
    faults[op].action = action;
    faults[op].status = status;
    (void) pthread_mutex_unlock(&mutex);
}

void
esdm_faulty_disarm(void)
{
    for (int op = 0; op < ESDM_FAULTY_OPS; op++)
        esdm_faulty_arm((esdm_faulty_op) op, 1, 0, ESDM_FAULTY_NONE, ESDM_OK);
}

uint64_t
esdm_faulty_calls(esdm_faulty_op op)
{
    (void) pthread_mutex_lock(&mutex);
    uint64_t calls = faults[op].calls;
    (void) pthread_mutex_unlock(&mutex);
    return calls;
}

static int
index_of(const char *word, size_t bytes, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(names[i]) == bytes && strncmp(names[i], word, bytes) == 0)
            return (int) i;
    }
    return -1;
}

#define INDEX_OF(word, bytes, names)                                                               \
    index_of(word, bytes, names, sizeof(names) / sizeof((names)[0]))

/* One fault up to a comma; NULL when it is wrong, else what follows. */
static const char *
parse_one(const char *text, bool arm)
{
    size_t bytes = strcspn(text, ":,");
    int op = INDEX_OF(text, bytes, op_names);
    text += bytes;
    if (op < 0 || *text++ != ':')
        return NULL;
    char *end = NULL;
    uint64_t nth = strtoull(text, &end, 10);
    uint64_t count = 1;
    if (end == text || nth == 0)
        return NULL;
    if (*end == '+')
        count = strtoull(end + 1, &end, 10);
    if (*end != ':')
        return NULL;
    text = end + 1;
    bytes = strcspn(text, ":,");
    int action = INDEX_OF(text, bytes, action_names);
    int status = ESDM_EIO;
    text += bytes;
    if (*text == ':') {
        text++;
        bytes = strcspn(text, ",");
        status = INDEX_OF(text, bytes, status_names);
        text += bytes;
    }
    if (action < 0 || status < 0)
        return NULL;
    if (arm)
        esdm_faulty_arm((esdm_faulty_op) op, nth, count, (esdm_faulty_action) action,
                        (esdm_status) status);
    return text;
}

bool
esdm_faulty_parse(const char *text)
{
    for (int arm = 0; arm < 2; arm++) {
        for (const char *at = text; *at != '\0';) {
            at = parse_one(at, arm != 0);
            if (at == NULL)
                return false;
            at += *at == ',';
        }
    }
    return true;
}

static bool environment_is_wrong;

static void
read_environment(void)
{
    const char *text = getenv("ESDM_FAULTY");
    environment_is_wrong = text != NULL && !esdm_faulty_parse(text);
}

/* Counts a call; what is to happen to it. */
static fault
next_call(esdm_faulty_op op)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void) pthread_once(&once, read_environment);
    (void) pthread_mutex_lock(&mutex);
    fault now = faults[op];
    now.calls = ++faults[op].calls;
    if (now.calls < now.first || (now.count > 0 && now.calls - now.first >= now.count))
        now.action = ESDM_FAULTY_NONE;
    (void) pthread_mutex_unlock(&mutex);
    return now;
}

static esdm_status
report(const fault *now, esdm_faulty_op op, esdm_error *err)
{
    return esdm__error_set(err, now->status, "faulty: %s number %llu fails as it was told",
                           op_names[op], (unsigned long long) now->calls);
}

/* ---- operations ----------------------------------------------------------------------------- */

static esdm_status
faulty_open(const esdm_plugin_config *config, void **ret_target, esdm_error *err)
{
    fault now = next_call(ESDM_FAULTY_OPEN);
    if (environment_is_wrong)
        return esdm__error_set(err, ESDM_EINVAL, "faulty: $ESDM_FAULTY is wrong");
    if (now.action == ESDM_FAULTY_FAIL)
        return report(&now, ESDM_FAULTY_OPEN, err);
    return inner.open(config, ret_target, err);
}

static esdm_status
faulty_pack_create(void *target, const char *name, void **ret_pack, esdm_error *err)
{
    fault now = next_call(ESDM_FAULTY_CREATE);
    if (now.action == ESDM_FAULTY_FAIL)
        return report(&now, ESDM_FAULTY_CREATE, err);
    return inner.pack_create(target, name, ret_pack, err);
}

static size_t
total_bytes(const esdm_iov *iov, size_t niov)
{
    size_t bytes = 0;
    for (size_t i = 0; i < niov; i++)
        bytes += iov[i].bytes;
    return bytes;
}

/* Appends a copy of the pieces with one bit wrong. */
static esdm_status
append_flipped(void *pack, const esdm_iov *iov, size_t niov, uint64_t *ret_position,
               esdm_error *err)
{
    size_t bytes = total_bytes(iov, niov);
    size_t used = 0;
    uint8_t *copy = malloc(bytes + 1);
    if (copy == NULL)
        return esdm__error_nomem(err, bytes, "a damaged copy");
    for (size_t i = 0; i < niov; i++) {
        if (iov[i].bytes > 0)
            memcpy(copy + used, iov[i].data, iov[i].bytes);
        used += iov[i].bytes;
    }
    if (bytes > 0)
        copy[bytes / 2] ^= 0x10;
    esdm_iov whole = {.data = copy, .bytes = bytes};
    esdm_status status = inner.pack_append(pack, &whole, 1, ret_position, err);
    free(copy);
    return status;
}

static esdm_status
faulty_pack_append(void *pack, const esdm_iov *iov, size_t niov, uint64_t *ret_position,
                   esdm_error *err)
{
    fault now = next_call(ESDM_FAULTY_APPEND);
    if (now.action == ESDM_FAULTY_FLIP)
        return append_flipped(pack, iov, niov, ret_position, err);
    if (now.action != ESDM_FAULTY_NONE) /* taken back: as if nothing had been written */
        return report(&now, ESDM_FAULTY_APPEND, err);
    return inner.pack_append(pack, iov, niov, ret_position, err);
}

static esdm_status
faulty_pack_sync(void *pack, esdm_error *err)
{
    fault now = next_call(ESDM_FAULTY_SYNC);
    if (now.action == ESDM_FAULTY_FAIL)
        return report(&now, ESDM_FAULTY_SYNC, err);
    return inner.pack_sync(pack, err);
}

static esdm_status
faulty_pack_seal(void *pack, esdm_error *err)
{
    if (pack == NULL)
        return ESDM_OK;
    fault now = next_call(ESDM_FAULTY_SEAL);
    esdm_status status = inner.pack_seal(pack, err);
    if (now.action == ESDM_FAULTY_FAIL)
        return report(&now, ESDM_FAULTY_SEAL, err);
    return status;
}

static void
flip_middle(const esdm_range *ranges, size_t nranges)
{
    const esdm_range *range = &ranges[nranges / 2];
    if (nranges > 0 && range->bytes > 0)
        ((uint8_t *) range->buffer)[range->bytes / 2] ^= 0x10;
}

static esdm_status
faulty_pack_read(void *target, const char *name, const esdm_range *ranges, size_t nranges,
                 esdm_error *err)
{
    fault now = next_call(ESDM_FAULTY_READ);
    if (now.action == ESDM_FAULTY_FAIL)
        return report(&now, ESDM_FAULTY_READ, err);
    size_t wanted = now.action == ESDM_FAULTY_SHORT ? nranges / 2 : nranges;
    esdm_status status = inner.pack_read(target, name, ranges, wanted, err);
    if (status != ESDM_OK)
        return status;
    if (now.action == ESDM_FAULTY_SHORT)
        return report(&now, ESDM_FAULTY_READ, err);
    if (now.action == ESDM_FAULTY_FLIP)
        flip_middle(ranges, nranges);
    return ESDM_OK;
}

static esdm_status
faulty_pack_remove(void *target, const char *name, esdm_error *err)
{
    fault now = next_call(ESDM_FAULTY_REMOVE);
    if (now.action == ESDM_FAULTY_FAIL)
        return report(&now, ESDM_FAULTY_REMOVE, err);
    return inner.pack_remove(target, name, err);
}

static esdm_status
faulty_pack_list(void *target, const char *prefix, esdm_pack_visitor visit, void *user,
                 esdm_error *err)
{
    fault now = next_call(ESDM_FAULTY_LIST);
    if (now.action == ESDM_FAULTY_FAIL)
        return report(&now, ESDM_FAULTY_LIST, err);
    return inner.pack_list(target, prefix, visit, user, err);
}

static esdm_status
faulty_make(const esdm_plugin_config *config, bool dry_run, esdm_plugin_reporter reporter,
            void *user, esdm_error *err)
{
    return inner.make(config, dry_run, reporter, user, err);
}

static esdm_status
faulty_check(const esdm_plugin_config *config, esdm_plugin_reporter reporter, void *user,
             esdm_error *err)
{
    return inner.check(config, reporter, user, err);
}

static esdm_status
faulty_remove(const esdm_plugin_config *config, bool dry_run, esdm_plugin_reporter reporter,
              void *user, esdm_error *err)
{
    return inner.remove(config, dry_run, reporter, user, err);
}

static void
faulty_close(void *target)
{
    inner.close(target);
}

static esdm_status
faulty_usage(void *target, esdm_target_usage *ret_usage, esdm_error *err)
{
    return inner.usage(target, ret_usage, err);
}

const esdm_data_plugin esdm_data_faulty_plugin = {
    .base = {.abi = ESDM_PLUGIN_ABI,
             .table_bytes = sizeof(esdm_data_plugin),
             .kind = ESDM_PLUGIN_DATA,
             .name = "faulty",
             .summary = "posix with faults (tests)"},
    .flags = ESDM_DATA_READ_UNSEALED,
    .make = faulty_make,
    .check = faulty_check,
    .remove = faulty_remove,
    .open = faulty_open,
    .close = faulty_close,
    .usage = faulty_usage,
    .pack_create = faulty_pack_create,
    .pack_append = faulty_pack_append,
    .pack_sync = faulty_pack_sync,
    .pack_seal = faulty_pack_seal,
    .pack_read = faulty_pack_read,
    .pack_remove = faulty_pack_remove,
    .pack_list = faulty_pack_list,
};

#ifdef ESDM_PLUGIN_LOADABLE
ESDM_API const esdm_plugin *esdm_plugin_entry(void);

const esdm_plugin *
esdm_plugin_entry(void)
{
    return &esdm_data_faulty_plugin.base;
}
#endif
