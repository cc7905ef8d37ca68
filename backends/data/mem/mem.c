/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Data target "mem": packs in the memory of this process, for tests.
 *
 * A place is known by site and target name and lives from make to remove, beyond the handles that
 * open it; it goes with the process. Everything is guarded by one lock: simple, not fast.
 */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/place.h"
#include "esdm/sys/data_target.h"

typedef struct mem_pack {
    struct mem_pack *next;
    char *name;
    uint8_t *data;
    size_t bytes;
    size_t capacity;
    uint64_t modified_ns;
    uint32_t users; /* writer handle, and 1 while it is listed */
} mem_pack;

typedef struct mem_place {
    struct mem_place *next;
    char *site_id;
    char *name;
    uint64_t capacity_bytes; /* 0: no limit */
    uint64_t used_bytes;
    mem_pack *packs;
    uint32_t users; /* handles, and 1 while it is made */
    bool made;
} mem_place;

typedef struct mem_writer {
    mem_place *place;
    mem_pack *pack;
} mem_writer;

/* Guards the list and everything that hangs on it. */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static mem_place *places;

/* ---- under the lock ------------------------------------------------------------------------- */

static mem_place *
find_place(const esdm_plugin_config *config)
{
    for (mem_place *place = places; place != NULL; place = place->next) {
        if (place->made && strcmp(place->site_id, config->site_id) == 0 &&
            strcmp(place->name, config->name) == 0)
            return place;
    }
    return NULL;
}

static mem_pack *
find_pack(const mem_place *place, const char *name)
{
    for (mem_pack *pack = place->packs; pack != NULL; pack = pack->next) {
        if (strcmp(pack->name, name) == 0)
            return pack;
    }
    return NULL;
}

static void
release_pack(mem_place *place, mem_pack *pack)
{
    if (--pack->users > 0)
        return;
    place->used_bytes -= pack->bytes;
    free(pack->data);
    free(pack->name);
    free(pack);
}

static void
unlist_pack(mem_place *place, mem_pack *pack)
{
    for (mem_pack **at = &place->packs; *at != NULL; at = &(*at)->next) {
        if (*at == pack) {
            *at = pack->next;
            release_pack(place, pack);
            return;
        }
    }
}

static void
release_place(mem_place *place)
{
    if (--place->users > 0)
        return;
    for (mem_place **at = &places; *at != NULL; at = &(*at)->next) {
        if (*at == place) {
            *at = place->next;
            break;
        }
    }
    while (place->packs != NULL)
        unlist_pack(place, place->packs);
    free(place->site_id);
    free(place->name);
    free(place);
}

/* ---- place ---------------------------------------------------------------------------------- */

static esdm_status
read_config(const esdm_plugin_config *config, uint64_t *ret_capacity, esdm_error *err)
{
    json_t *options = NULL;
    if (config->json == NULL || config->name == NULL || config->site_id == NULL)
        return esdm__error_set(err, ESDM_EINVAL,
                               "mem: a target needs a name, an object and a site");
    const char *path = config->path != NULL ? config->path : config->name;
    esdm_status status = esdm__json_parse(config->json, strlen(config->json), path, &options, err);
    if (status != ESDM_OK)
        return status;
    esdm__json_node root = esdm__json_root(options, path);
    esdm__json_node node;
    *ret_capacity = 0;
    status = esdm__json_is_object(&root, err);
    if (status == ESDM_OK && esdm__json_member(&root, "capacity_bytes", &node))
        status = esdm__json_size(&node, 0, INT64_MAX, ret_capacity, err);
    json_decref(options);
    return status;
}

static esdm_status
new_place(const esdm_plugin_config *config, uint64_t capacity_bytes, esdm_error *err)
{
    mem_place *place = calloc(1, sizeof *place);
    char *site_id = strdup(config->site_id);
    char *name = strdup(config->name);
    if (place == NULL || site_id == NULL || name == NULL) {
        free(place);
        free(site_id);
        free(name);
        return esdm__error_nomem(err, sizeof *place, "a target in memory");
    }
    *place = (mem_place){.next = places,
                         .site_id = site_id,
                         .name = name,
                         .capacity_bytes = capacity_bytes,
                         .users = 1,
                         .made = true};
    places = place;
    return ESDM_OK;
}

static esdm_status
mem_make(const esdm_plugin_config *config, bool dry_run, esdm_plugin_reporter report, void *user,
         esdm_error *err)
{
    uint64_t capacity_bytes = 0;
    esdm_status status = read_config(config, &capacity_bytes, err);
    if (status != ESDM_OK)
        return status;
    (void) pthread_rwlock_wrlock(&lock);
    bool there = find_place(config) != NULL;
    if (!there && !dry_run)
        status = new_place(config, capacity_bytes, err);
    (void) pthread_rwlock_unlock(&lock);
    if (!there && status == ESDM_OK)
        esdm__report(report, user, "make target '%s' in memory", config->name);
    return status;
}

static esdm_status
not_made(const esdm_plugin_config *config, esdm_status status, esdm_error *err)
{
    return esdm__error_set(err, status, "%s: target '%.100s' was not made in this process",
                           config->path != NULL ? config->path : "mem", config->name);
}

static esdm_status
mem_check(const esdm_plugin_config *config, esdm_plugin_reporter report, void *user,
          esdm_error *err)
{
    uint64_t capacity_bytes = 0;
    esdm_error problem = {0};
    esdm_status status = read_config(config, &capacity_bytes, &problem);
    if (status == ESDM_OK) {
        (void) pthread_rwlock_rdlock(&lock);
        if (find_place(config) == NULL)
            status = not_made(config, ESDM_ENOENT, &problem);
        (void) pthread_rwlock_unlock(&lock);
    }
    if (status != ESDM_OK) {
        esdm__report(report, user, "%s", problem.message);
        if (err != NULL)
            *err = problem;
    }
    return status;
}

static esdm_status
mem_remove(const esdm_plugin_config *config, bool dry_run, esdm_plugin_reporter report, void *user,
           esdm_error *err)
{
    uint64_t capacity_bytes = 0;
    esdm_status status = read_config(config, &capacity_bytes, err);
    if (status != ESDM_OK)
        return status;
    (void) pthread_rwlock_wrlock(&lock);
    mem_place *place = find_place(config);
    if (place == NULL) {
        status = not_made(config, ESDM_ENOENT, err);
    } else if (!dry_run) {
        place->made = false;
        release_place(place);
    }
    (void) pthread_rwlock_unlock(&lock);
    if (status == ESDM_OK)
        esdm__report(report, user, "remove target '%s' from memory", config->name);
    return status;
}

static esdm_status
mem_open(const esdm_plugin_config *config, void **ret_target, esdm_error *err)
{
    uint64_t capacity_bytes = 0;
    esdm_status status = read_config(config, &capacity_bytes, err);
    if (status != ESDM_OK)
        return status;
    (void) pthread_rwlock_wrlock(&lock);
    mem_place *place = find_place(config);
    if (place != NULL)
        place->users++;
    (void) pthread_rwlock_unlock(&lock);
    if (place == NULL)
        return not_made(config, ESDM_ENOENT, err);
    *ret_target = place;
    return ESDM_OK;
}

static void
mem_close(void *self)
{
    if (self == NULL)
        return;
    (void) pthread_rwlock_wrlock(&lock);
    release_place(self);
    (void) pthread_rwlock_unlock(&lock);
}

static esdm_status
mem_usage(void *self, esdm_target_usage *ret_usage, esdm_error *err)
{
    const mem_place *place = self;
    (void) err;
    (void) pthread_rwlock_rdlock(&lock);
    esdm_target_usage usage = {.total_bytes = place->capacity_bytes,
                               .used_bytes = place->used_bytes};
    for (const mem_pack *pack = place->packs; pack != NULL; pack = pack->next)
        usage.packs++;
    if (place->capacity_bytes > place->used_bytes)
        usage.free_bytes = place->capacity_bytes - place->used_bytes;
    (void) pthread_rwlock_unlock(&lock);
    *ret_usage = usage;
    return ESDM_OK;
}

/* ---- packs ---------------------------------------------------------------------------------- */

static esdm_status
check_name(const char *name, esdm_error *err)
{
    size_t digits = strspn(name, "0123456789abcdef");
    size_t bytes = strspn(name, "0123456789abcdef-");
    if (digits < 32 || name[bytes] != '\0')
        return esdm__error_set(err, ESDM_EINVAL, "mem: '%.120s' is not the name of a pack", name);
    return ESDM_OK;
}

static esdm_status
mem_pack_create(void *self, const char *name, void **ret_pack, esdm_error *err)
{
    mem_place *place = self;
    esdm_status status = check_name(name, err);
    if (status != ESDM_OK)
        return status;
    mem_writer *writer = malloc(sizeof *writer);
    mem_pack *pack = calloc(1, sizeof *pack);
    char *copy = strdup(name);
    if (writer == NULL || pack == NULL || copy == NULL)
        status = esdm__error_nomem(err, sizeof *pack, "a pack");
    if (status == ESDM_OK) {
        *writer = (mem_writer){.place = place, .pack = pack};
        (void) pthread_rwlock_wrlock(&lock);
        if (find_pack(place, name) != NULL) {
            status = esdm__error_set(err, ESDM_EEXIST, "mem: pack '%s' exists", name);
        } else {
            *pack = (mem_pack){
                .next = place->packs, .name = copy, .modified_ns = esdm__now_ns(), .users = 2};
            place->packs = pack;
            place->users++;
        }
        (void) pthread_rwlock_unlock(&lock);
    }
    if (status != ESDM_OK) {
        free(writer);
        free(pack);
        free(copy);
        return status;
    }
    *ret_pack = writer;
    return ESDM_OK;
}

/* Under the lock: room for `bytes` more. */
static esdm_status
reserve(const mem_place *place, mem_pack *pack, uint64_t bytes, esdm_error *err)
{
    if (place->capacity_bytes > 0 && bytes > place->capacity_bytes - place->used_bytes)
        return esdm__error_set(err, ESDM_ENOSPC, "mem: target '%.100s' is full (%llu bytes)",
                               place->name, (unsigned long long) place->capacity_bytes);
    if (bytes <= pack->capacity - pack->bytes)
        return ESDM_OK;
    size_t wanted = pack->bytes + (size_t) bytes;
    size_t capacity = pack->capacity > SIZE_MAX / 2 ? wanted : 2 * pack->capacity;
    capacity = capacity < wanted ? wanted : capacity;
    uint8_t *grown = realloc(pack->data, capacity);
    if (grown == NULL)
        return esdm__error_nomem(err, capacity, "a pack");
    pack->data = grown;
    pack->capacity = capacity;
    return ESDM_OK;
}

static esdm_status
mem_pack_append(void *self, const esdm_iov *iov, size_t niov, uint64_t *ret_position,
                esdm_error *err)
{
    const mem_writer *writer = self;
    mem_pack *pack = writer->pack;
    uint64_t bytes = 0;
    uint64_t end = 0;
    bool fits = true;
    for (size_t i = 0; i < niov && fits; i++)
        fits = esdm__add_u64(bytes, iov[i].bytes, &bytes);
    (void) pthread_rwlock_wrlock(&lock);
    esdm_status status = ESDM_OK;
    if (!fits || !esdm__add_u64(pack->bytes, bytes, &end) || end > SIZE_MAX / 2)
        status = esdm__error_set(err, ESDM_EINVAL, "mem: pack '%s' would be too long", pack->name);
    else
        status = reserve(writer->place, pack, bytes, err);
    if (status == ESDM_OK) {
        *ret_position = pack->bytes;
        for (size_t i = 0; i < niov; i++) {
            if (iov[i].bytes > 0)
                memcpy(pack->data + pack->bytes, iov[i].data, iov[i].bytes);
            pack->bytes += iov[i].bytes;
        }
        writer->place->used_bytes += bytes;
        pack->modified_ns = esdm__now_ns();
    }
    (void) pthread_rwlock_unlock(&lock);
    return status;
}

/* Memory survives no power loss; a site that asks for it learns so. */
static esdm_status
mem_pack_sync(void *self, esdm_error *err)
{
    const mem_writer *writer = self;
    return esdm__error_set(err, ESDM_ENOTSUP, "mem: target '%.100s' cannot make data durable",
                           writer->place->name);
}

static esdm_status
mem_pack_seal(void *self, esdm_error *err)
{
    mem_writer *writer = self;
    (void) err;
    if (writer == NULL)
        return ESDM_OK;
    (void) pthread_rwlock_wrlock(&lock);
    release_pack(writer->place, writer->pack);
    release_place(writer->place);
    (void) pthread_rwlock_unlock(&lock);
    free(writer);
    return ESDM_OK;
}

static esdm_status
mem_pack_read(void *self, const char *name, const esdm_range *ranges, size_t nranges,
              esdm_error *err)
{
    const mem_place *place = self;
    esdm_status status = check_name(name, err);
    if (status != ESDM_OK)
        return status;
    (void) pthread_rwlock_rdlock(&lock);
    const mem_pack *pack = find_pack(place, name);
    if (pack == NULL)
        status = esdm__error_set(err, ESDM_ENOENT, "mem: there is no pack '%s'", name);
    for (size_t i = 0; i < nranges && status == ESDM_OK; i++) {
        if (ranges[i].position > pack->bytes || ranges[i].bytes > pack->bytes - ranges[i].position)
            status = esdm__error_set(err, ESDM_ECORRUPT,
                                     "mem: pack '%s' is shorter than the bytes asked for", name);
        else if (ranges[i].bytes > 0)
            memcpy(ranges[i].buffer, pack->data + ranges[i].position, (size_t) ranges[i].bytes);
    }
    (void) pthread_rwlock_unlock(&lock);
    return status;
}

static esdm_status
mem_pack_remove(void *self, const char *name, esdm_error *err)
{
    mem_place *place = self;
    esdm_status status = check_name(name, err);
    if (status != ESDM_OK)
        return status;
    (void) pthread_rwlock_wrlock(&lock);
    mem_pack *pack = find_pack(place, name);
    if (pack != NULL)
        unlist_pack(place, pack);
    (void) pthread_rwlock_unlock(&lock);
    return ESDM_OK;
}

/* What a visitor is told, taken under the lock so that it may call the target. */
typedef struct listed {
    char *name;
    uint64_t bytes;
    uint64_t modified_ns;
} listed;

static esdm_status
collect(const mem_place *place, const char *prefix, listed **ret_list, size_t *ret_count,
        esdm_error *err)
{
    size_t count = 0;
    for (const mem_pack *pack = place->packs; pack != NULL; pack = pack->next)
        count++;
    listed *list = calloc(count + 1, sizeof *list);
    if (list == NULL)
        return esdm__error_nomem(err, (count + 1) * sizeof *list, "a list of packs");
    *ret_list = list;
    *ret_count = 0;
    for (const mem_pack *pack = place->packs; pack != NULL; pack = pack->next) {
        if (strncmp(pack->name, prefix, strlen(prefix)) != 0)
            continue;
        listed *entry = &list[*ret_count];
        *entry = (listed){
            .name = strdup(pack->name), .bytes = pack->bytes, .modified_ns = pack->modified_ns};
        if (entry->name == NULL)
            return esdm__error_nomem(err, strlen(pack->name), "a list of packs");
        ++*ret_count;
    }
    return ESDM_OK;
}

static esdm_status
mem_pack_list(void *self, const char *prefix, esdm_pack_visitor visit, void *user, esdm_error *err)
{
    const mem_place *place = self;
    listed *list = NULL;
    size_t count = 0;
    (void) pthread_rwlock_rdlock(&lock);
    esdm_status status = collect(place, prefix != NULL ? prefix : "", &list, &count, err);
    (void) pthread_rwlock_unlock(&lock);
    bool go_on = status == ESDM_OK;
    for (size_t i = 0; i < count; i++) {
        go_on = go_on && visit(list[i].name, list[i].bytes, list[i].modified_ns, user);
        free(list[i].name);
    }
    free(list);
    return status;
}

extern const esdm_data_plugin esdm_data_mem_plugin;
const esdm_data_plugin esdm_data_mem_plugin = {
    .base = {.abi = ESDM_PLUGIN_ABI,
             .table_bytes = sizeof(esdm_data_plugin),
             .kind = ESDM_PLUGIN_DATA,
             .name = "mem",
             .summary = "packs in this process's memory (for tests)"},
    .flags = ESDM_DATA_READ_UNSEALED | ESDM_DATA_VOLATILE,
    .make = mem_make,
    .check = mem_check,
    .remove = mem_remove,
    .open = mem_open,
    .close = mem_close,
    .usage = mem_usage,
    .pack_create = mem_pack_create,
    .pack_append = mem_pack_append,
    .pack_sync = mem_pack_sync,
    .pack_seal = mem_pack_seal,
    .pack_read = mem_pack_read,
    .pack_remove = mem_pack_remove,
    .pack_list = mem_pack_list,
    .space = mem_usage,
};

#ifdef ESDM_PLUGIN_LOADABLE
ESDM_API const esdm_plugin *esdm_plugin_entry(void);

const esdm_plugin *
esdm_plugin_entry(void)
{
    return &esdm_data_mem_plugin.base;
}
#endif
