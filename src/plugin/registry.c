/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "plugin/registry.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/beside.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "builtin_plugins.h"

#define LOADED_MAX      64
#define PLUGIN_NAME_MAX 64

/* Plug-ins that came from shared objects: append-only, so that readers need no lock. An entry is
 * written before `loaded_count` is raised. */
static const esdm_plugin *loaded[LOADED_MAX];
static atomic_size_t loaded_count;
/* Serialises loading; guards writes to the two above. Innermost rank. */
static pthread_mutex_t load_mutex = PTHREAD_MUTEX_INITIALIZER;

static const char *const kind_names[] = {"", "data", "meta", "codec", "source"};

/* Functions that a plug-in of each kind must have. */
typedef struct operation {
    const char *name;
    size_t offset;
} operation;

#define OPERATION(table, member)                                                                   \
    {                                                                                              \
#member, offsetof(table, member)                                                           \
    }

static const operation data_operations[] = {
    OPERATION(esdm_data_plugin, make),        OPERATION(esdm_data_plugin, check),
    OPERATION(esdm_data_plugin, remove),      OPERATION(esdm_data_plugin, open),
    OPERATION(esdm_data_plugin, close),       OPERATION(esdm_data_plugin, usage),
    OPERATION(esdm_data_plugin, pack_create), OPERATION(esdm_data_plugin, pack_append),
    OPERATION(esdm_data_plugin, pack_sync),   OPERATION(esdm_data_plugin, pack_seal),
    OPERATION(esdm_data_plugin, pack_read),   OPERATION(esdm_data_plugin, pack_remove),
    OPERATION(esdm_data_plugin, pack_list),   {NULL, 0},
};

static const operation meta_operations[] = {
    OPERATION(esdm_meta_plugin, make),
    OPERATION(esdm_meta_plugin, check),
    OPERATION(esdm_meta_plugin, remove),
    OPERATION(esdm_meta_plugin, site_id),
    OPERATION(esdm_meta_plugin, open),
    OPERATION(esdm_meta_plugin, close),
    OPERATION(esdm_meta_plugin, is_writable),
    OPERATION(esdm_meta_plugin, container_find),
    OPERATION(esdm_meta_plugin, container_list),
    OPERATION(esdm_meta_plugin, container_remove),
    OPERATION(esdm_meta_plugin, container_move),
    OPERATION(esdm_meta_plugin, snapshot_open),
    OPERATION(esdm_meta_plugin, pin),
    OPERATION(esdm_meta_plugin, unpin),
    OPERATION(esdm_meta_plugin, snapshot_list),
    OPERATION(esdm_meta_plugin, page_list),
    OPERATION(esdm_meta_plugin, page_load),
    OPERATION(esdm_meta_plugin, commit),
    OPERATION(esdm_meta_plugin, find),
    OPERATION(esdm_meta_plugin, garbage),
    OPERATION(esdm_meta_plugin, forget),
    OPERATION(esdm_meta_plugin, state),
    OPERATION(esdm_meta_plugin, set_state),
    OPERATION(esdm_meta_plugin, attributes),
    OPERATION(esdm_meta_plugin, import),
    OPERATION(esdm_meta_plugin, record_list),
    OPERATION(esdm_meta_plugin, writer_begin),
    OPERATION(esdm_meta_plugin, writer_end),
    OPERATION(esdm_meta_plugin, writer_lives),
    OPERATION(esdm_meta_plugin, relocate),
    OPERATION(esdm_meta_plugin, prune),
    {NULL, 0},
};

static const operation codec_operations[] = {
    OPERATION(esdm_codec_plugin, bound),
    OPERATION(esdm_codec_plugin, encode),
    OPERATION(esdm_codec_plugin, decode),
    {NULL, 0},
};

static const operation source_operations[] = {
    OPERATION(esdm_source_plugin, open), OPERATION(esdm_source_plugin, close),
    OPERATION(esdm_source_plugin, stat), OPERATION(esdm_source_plugin, read),
    OPERATION(esdm_source_plugin, load), {NULL, 0},
};

/* Bytes of an ops table as this ESDM knows it. */
static const size_t table_bytes[] = {
    [ESDM_PLUGIN_DATA] = sizeof(esdm_data_plugin),
    [ESDM_PLUGIN_META] = sizeof(esdm_meta_plugin),
    [ESDM_PLUGIN_CODEC] = sizeof(esdm_codec_plugin),
    [ESDM_PLUGIN_SOURCE] = sizeof(esdm_source_plugin),
};

static const operation *
operations_of(esdm_plugin_kind kind)
{
    switch (kind) {
    case ESDM_PLUGIN_DATA:
        return data_operations;
    case ESDM_PLUGIN_META:
        return meta_operations;
    case ESDM_PLUGIN_CODEC:
        return codec_operations;
    case ESDM_PLUGIN_SOURCE:
        return source_operations;
    }
    return NULL;
}

/* Names of the first function that is not there; NULL when all are. */
static const char *
missing_operation(const esdm_plugin *plugin)
{
    for (const operation *op = operations_of(plugin->kind); op->name != NULL; op++) {
        void (*function)(void) = NULL;
        if (op->offset + sizeof function <= plugin->table_bytes)
            memcpy(&function, (const char *) plugin + op->offset, sizeof function);
        if (function == NULL)
            return op->name;
    }
    return NULL;
}

static esdm_status
check_plugin(const esdm_plugin *plugin, esdm_plugin_kind kind, const char *name, const char *file,
             esdm_error *err)
{
    if (plugin == NULL)
        return esdm__error_set(err, ESDM_ENOTSUP, "plug-in '%.200s': its entry returns nothing",
                               file);
    if (plugin->abi < ESDM_PLUGIN_ABI_OLDEST || plugin->abi > ESDM_PLUGIN_ABI)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "plug-in '%.200s' was built for plug-in interface %u, this ESDM has "
                               "%u and takes those from %u on; %s",
                               file, (unsigned) plugin->abi, (unsigned) ESDM_PLUGIN_ABI,
                               (unsigned) ESDM_PLUGIN_ABI_OLDEST,
                               plugin->abi > ESDM_PLUGIN_ABI ? "install the ESDM that it is for"
                                                             : "rebuild it");
    if (plugin->kind != kind)
        return esdm__error_set(err, ESDM_ENOTSUP, "plug-in '%.200s' is not of kind '%s'", file,
                               kind_names[kind]);
    if (plugin->table_bytes < sizeof *plugin || plugin->table_bytes > table_bytes[kind])
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "plug-in '%.200s': its table has %zu bytes, that of interface %u at "
                               "most %zu (.table_bytes is to be sizeof(esdm_%s_plugin))",
                               file, plugin->table_bytes, (unsigned) ESDM_PLUGIN_ABI,
                               table_bytes[kind], kind_names[kind]);
    if (plugin->name == NULL || plugin->summary == NULL)
        return esdm__error_set(err, ESDM_ENOTSUP, "plug-in '%.200s' has no name or no summary",
                               file);
    if (strcmp(plugin->name, name) != 0)
        return esdm__error_set(err, ESDM_ENOTSUP, "plug-in '%.200s' calls itself '%.64s'", file,
                               plugin->name);
    const char *missing = missing_operation(plugin);
    if (missing != NULL)
        return esdm__error_set(err, ESDM_ENOTSUP, "plug-in '%.200s' lacks the function '%s'", file,
                               missing);
    return ESDM_OK;
}

static const esdm_plugin *
find_known(esdm_plugin_kind kind, const char *name)
{
    const esdm_plugin *plugin = NULL;
    for (size_t i = 0; (plugin = esdm__plugin_at(kind, i)) != NULL; i++) {
        if (strcmp(plugin->name, name) == 0)
            return plugin;
    }
    return NULL;
}

const esdm_plugin *
esdm__plugin_at(esdm_plugin_kind kind, size_t index)
{
    for (const esdm_plugin *const *at = esdm__builtin_plugins; *at != NULL; at++) {
        if ((*at)->kind == kind && index-- == 0)
            return *at;
    }
    size_t count = atomic_load_explicit(&loaded_count, memory_order_acquire);
    for (size_t i = 0; i < count; i++) {
        if (loaded[i]->kind == kind && index-- == 0)
            return loaded[i];
    }
    return NULL;
}

/* ---- shared objects ------------------------------------------------------------------------- */

/* Calls `visit` for each plug-in folder until it returns true. secure_getenv: a setuid program must
 * not load what its caller names. */
static bool
visit_folders(bool (*visit)(const char *folder, void *user), void *user)
{
    const char *paths = secure_getenv("ESDM_PLUGIN_PATH");
    while (paths != NULL && *paths != '\0') {
        size_t bytes = strcspn(paths, ":");
        char folder[PATH_MAX];
        if (bytes > 0 && bytes < sizeof folder) {
            memcpy(folder, paths, bytes);
            folder[bytes] = '\0';
            if (visit(folder, user))
                return true;
        }
        paths += bytes + (paths[bytes] == ':');
    }
    char beside[PATH_MAX];
    return (esdm__beside_library("", beside) && visit(beside, user)) ||
           visit(ESDM_PLUGIN_FOLDER, user);
}

typedef struct search {
    esdm_plugin_kind kind;
    const char *name;
    char file[PATH_MAX];
} search;

static bool
find_file(const char *folder, void *user)
{
    search *wanted = user;
    int n = snprintf(wanted->file, sizeof wanted->file, "%s/esdm-%s-%s.so", folder,
                     kind_names[wanted->kind], wanted->name);
    return n > 0 && (size_t) n < sizeof wanted->file && access(wanted->file, F_OK) == 0;
}

/* The plug-in with a table of our length: a longer one, filled with zeros, in place of that of an
 * older interface. It is never freed, as plug-ins are never unloaded. */
static esdm_status
widen(const esdm_plugin *plugin, const esdm_plugin **ret_plugin, esdm_error *err)
{
    *ret_plugin = plugin;
    if (plugin->table_bytes == table_bytes[plugin->kind])
        return ESDM_OK;
    void *table = calloc(1, table_bytes[plugin->kind]);
    if (table == NULL)
        return esdm__error_set(err, ESDM_ENOMEM, "no memory for plug-in '%.200s'", plugin->name);
    memcpy(table, plugin, plugin->table_bytes);
    *ret_plugin = table;
    return ESDM_OK;
}

/* A plug-in that keeps descriptors open has a copy of base/descriptor.c. */
static void
share_descriptors(void *object)
{
    void *symbol = dlsym(object, ESDM__DESCRIPTORS_ENTRY);
    void (*share)(esdm__descriptors *) = NULL;
    memcpy(&share, &symbol, sizeof share);
    if (share != NULL)
        share(esdm__descriptors_own());
}

/* Under load_mutex. A refused object is closed again. */
static esdm_status
load_file(esdm_plugin_kind kind, const char *name, const char *file, const esdm_plugin **ret_plugin,
          esdm_error *err)
{
    size_t count = atomic_load_explicit(&loaded_count, memory_order_relaxed);
    if (count == LOADED_MAX)
        return esdm__error_set(err, ESDM_ENOTSUP, "more than %d loaded plug-ins", LOADED_MAX);
    void *object = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL) {
        const char *why = dlerror();
        return esdm__error_set(err, ESDM_ENOTSUP, "cannot load plug-in: %s",
                               why != NULL ? why : file);
    }
    void *symbol = dlsym(object, ESDM_PLUGIN_ENTRY);
    esdm_plugin_entry_fn entry = NULL;
    memcpy(&entry, &symbol, sizeof entry); /* POSIX: a dlsym() result is a function's address */
    const esdm_plugin *plugin = entry == NULL ? NULL : entry();
    esdm_status status = ESDM_OK;
    if (entry == NULL)
        status = esdm__error_set(err, ESDM_ENOTSUP, "plug-in '%.200s' does not export '%s'", file,
                                 ESDM_PLUGIN_ENTRY);
    else
        status = check_plugin(plugin, kind, name, file, err);
    if (status == ESDM_OK)
        status = widen(plugin, &plugin, err);
    if (status != ESDM_OK) {
        (void) dlclose(object);
        return status;
    }
    share_descriptors(object);
    loaded[count] = plugin;
    atomic_store_explicit(&loaded_count, count + 1, memory_order_release);
    *ret_plugin = plugin;
    return ESDM_OK;
}

static bool
is_name(const char *name)
{
    size_t bytes = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-");
    return bytes > 0 && bytes <= PLUGIN_NAME_MAX && name[bytes] == '\0';
}

/* What it needs, when ESDM brings it along as a shared object, though not everywhere; else NULL. */
static const char *
needs_of(esdm_plugin_kind kind, const char *name)
{
    char entry[PLUGIN_NAME_MAX + 16];
    int bytes = snprintf(entry, sizeof entry, "%s/%s=", kind_names[kind], name);
    for (const char *const *at = esdm__optional_plugins; *at != NULL; at++) {
        if (strncmp(*at, entry, (size_t) bytes) == 0)
            return *at + bytes;
    }
    return NULL;
}

/* Names with commas between them, as far as there is room. */
typedef struct name_list {
    esdm_plugin_kind kind;
    char text[300];
} name_list;

static void
add_name(name_list *list, const char *name, size_t bytes)
{
    size_t used = strlen(list->text);
    for (const char *at = list->text; used > 0 && at != NULL; at = strchr(at, ' ')) {
        at += at[0] == ' ';
        if (strncmp(at, name, bytes) == 0 && (at[bytes] == ',' || at[bytes] == '\0'))
            return;
    }
    if (used + bytes + 3 <= sizeof list->text)
        (void) snprintf(list->text + used, sizeof list->text - used, "%s%.*s", used > 0 ? ", " : "",
                        (int) bytes, name);
}

/* Adds those that lie in a folder; whether they can be loaded is not known. */
static bool
list_folder(const char *folder, void *user)
{
    name_list *list = user;
    char prefix[32];
    size_t before = (size_t) snprintf(prefix, sizeof prefix, "esdm-%s-", kind_names[list->kind]);
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return false;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        const char *file = entry->d_name;
        size_t bytes = strlen(file);
        if (bytes > before + 3 && strncmp(file, prefix, before) == 0 &&
            strcmp(file + bytes - 3, ".so") == 0)
            add_name(list, file + before, bytes - before - 3);
    }
    (void) closedir(dir);
    return false;
}

static esdm_status
unknown_plugin(esdm_plugin_kind kind, const char *name, esdm_error *err)
{
    name_list known = {.kind = kind};
    const esdm_plugin *plugin = NULL;
    for (size_t i = 0; (plugin = esdm__plugin_at(kind, i)) != NULL; i++)
        add_name(&known, plugin->name, strlen(plugin->name));
    (void) visit_folders(list_folder, &known);
    const char *needs = needs_of(kind, name);
    if (needs != NULL)
        return esdm__error_set(err, ESDM_ENOENT,
                               "the %s plug-in '%s' is not there: install esdm-%s-%s.so, or build "
                               "ESDM where %s is installed",
                               kind_names[kind], name, kind_names[kind], name, needs);
    return esdm__error_set(err, ESDM_ENOENT,
                           "there is no %s plug-in '%.64s' (known: %s); others are looked for in "
                           "$ESDM_PLUGIN_PATH",
                           kind_names[kind], name, known.text[0] != '\0' ? known.text : "none");
}

esdm_status
esdm__plugin_find(esdm_plugin_kind kind, const char *name, const esdm_plugin **ret_plugin,
                  esdm_error *err)
{
    if (operations_of(kind) == NULL)
        return esdm__error_set(err, ESDM_EINVAL, "%d is not a kind of plug-in", (int) kind);
    const esdm_plugin *plugin = find_known(kind, name);
    if (plugin != NULL) {
        *ret_plugin = plugin;
        return ESDM_OK;
    }
    if (!is_name(name)) /* also keeps slashes out of the file name */
        return unknown_plugin(kind, name, err);

    search wanted = {.kind = kind, .name = name};
    esdm_status status = ESDM_OK;
    (void) pthread_mutex_lock(&load_mutex);
    plugin = find_known(kind, name);
    if (plugin == NULL) {
        if (visit_folders(find_file, &wanted))
            status = load_file(kind, name, wanted.file, &plugin, err);
        else
            status = unknown_plugin(kind, name, err);
    }
    (void) pthread_mutex_unlock(&load_mutex);
    if (status == ESDM_OK)
        *ret_plugin = plugin;
    return status;
}

/* ---- codecs by id --------------------------------------------------------------------------- */

static const esdm_codec_plugin *
known_codec(uint8_t id)
{
    const esdm_plugin *plugin = NULL;
    for (size_t i = 0; (plugin = esdm__plugin_at(ESDM_PLUGIN_CODEC, i)) != NULL; i++) {
        const esdm_codec_plugin *codec = (const esdm_codec_plugin *) plugin;
        if (codec->id == id)
            return codec;
    }
    return NULL;
}

/* Loads every codec of a folder until one has the id. */
static bool
load_codecs(const char *folder, void *user)
{
    static const char prefix[] = "esdm-codec-";
    const uint8_t *id = user;
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return false;
    bool found = false;
    for (struct dirent *entry = readdir(dir); entry != NULL && !found; entry = readdir(dir)) {
        char name[NAME_MAX + 1];
        const char *file = entry->d_name;
        size_t bytes = strlen(file);
        if (bytes < sizeof prefix + 3 || strncmp(file, prefix, sizeof prefix - 1) != 0 ||
            strcmp(file + bytes - 3, ".so") != 0)
            continue;
        (void) snprintf(name, sizeof name, "%.*s", (int) (bytes - 3 - (sizeof prefix - 1)),
                        file + sizeof prefix - 1);
        const esdm_plugin *plugin = NULL;
        if (is_name(name))
            (void) !esdm__plugin_find(ESDM_PLUGIN_CODEC, name, &plugin, NULL);
        found = plugin != NULL && ((const esdm_codec_plugin *) plugin)->id == *id;
    }
    (void) closedir(dir);
    return found;
}

const char *
esdm__plugin_codec_name(uint8_t id)
{
    static const char *const names[] = {[6] = "zfp", [7] = "fpzip", [8] = "szip", [10] = "deflate"};
    return id < sizeof names / sizeof names[0] ? names[id] : NULL;
}

const esdm_codec_plugin *
esdm__plugin_codec_by_id(uint8_t id)
{
    const esdm_codec_plugin *codec = known_codec(id);
    if (codec != NULL)
        return codec;
    (void) visit_folders(load_codecs, &id);
    return known_codec(id);
}
