/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Which libnetcdf is calling? A process can hold several (Debian's and the one in the netCDF4
 * wheel), each loaded RTLD_LOCAL by Python, so neither RTLD_NEXT nor a symbol's name tells. The
 * return address does: it lies in the library itself or in a module that depends on one.
 *
 * Symbols are looked up by functions that the router does not override, so that the router never
 * finds itself.
 */
#include "router/router.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/** Every libnetcdf has it and the router does not override it. */
#define MARKER "nc_inq_libvers"

const char *const esdmnc__function_names[ESDMNC_FN_COUNT] = {
#define X(name) #name,
    ESDMNC_REAL_FUNCTIONS(X)
#undef X
};

static _Atomic(esdmnc__library *) libraries[ESDMNC_INSTANCES_MAX];

/** Remembers which copy a module (a program, a Python extension) calls. */
typedef struct caller {
    const struct link_map *map;
    const void *dynamic; /**< with the base: tells a module from a later one at the same place */
    uintptr_t base;
    esdmnc__library *library;
} caller;

#define CALLERS 16
static _Atomic(caller *) callers[CALLERS];

esdmnc__library *
esdmnc__library_at(int instance)
{
    if (instance < 0 || instance >= ESDMNC_INSTANCES_MAX) {
        return NULL;
    }
    return atomic_load_explicit(&libraries[instance], memory_order_acquire);
}

const esdmnc_library *
esdmnc_library_get(int instance)
{
    const esdmnc__library *library = esdmnc__library_at(instance);
    return library ? &library->api : NULL;
}

void *
esdmnc__real(const esdmnc__library *library, esdmnc__function function)
{
    return library ? library->real[function] : dlsym(RTLD_NEXT, esdmnc__function_names[function]);
}

struct link_map *
esdmnc__map_of(const void *address)
{
#ifdef DLFO_STRUCT_HAS_EH_DBASE /* glibc 2.35: finds the object without looking for a symbol */
    struct dl_find_object found;
    if (_dl_find_object((void *) (uintptr_t) address, &found) == 0) {
        return found.dlfo_link_map;
    }
#endif
    Dl_info info;
    struct link_map *map = NULL;
    if (!dladdr1(address, &info, (void **) &map, RTLD_DL_LINKMAP)) {
        return NULL;
    }
    return map;
}

/** Search for the end of the object loaded at `base`. */
typedef struct extent {
    uintptr_t base;
    const void *dynamic;
    uintptr_t start;
    uintptr_t end;
} extent;

static int
extent_of_object(struct dl_phdr_info *info, size_t size, void *user)
{
    (void) size;
    extent *wanted = user;
    if (info->dlpi_addr != wanted->base) {
        return 0;
    }
    uintptr_t start = UINTPTR_MAX;
    uintptr_t end = 0;
    bool same = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_DYNAMIC) {
            same = (uintptr_t) wanted->dynamic == at;
        } else if (header->p_type == PT_LOAD) {
            start = at < start ? at : start;
            end = at + header->p_memsz > end ? at + header->p_memsz : end;
        }
    }
    if (!same) {
        return 0;
    }
    wanted->start = start;
    wanted->end = end;
    return 1;
}

/** Objects that the program started with; they never go. 0 until constructors run. */
static size_t started_with;

static bool
is_from_the_start(const struct link_map *wanted)
{
    const struct link_map *map = _r_debug.r_map;
    for (size_t i = 0; map && i < started_with; i++, map = map->l_next) {
        if (map == wanted) {
            return true;
        }
    }
    return false;
}

/** What is looked for beside the functions that have wrappers. */
static const char *const other_names[] = {"nc_strerror", "nc_inq_libvers", "nc_get_default_format",
                                          "nc_get_chunk_cache", "nc_utf8_normalize"};
#define OTHERS (sizeof(other_names) / sizeof(other_names[0]))

/** @param handle from dlopen(), or RTLD_NEXT.
 *  @return whether all that was found is the copy's own, and its marker is. */
static bool
library_bind(esdmnc__library *library, void *handle)
{
    void *others[OTHERS];
    bool own = true;
    for (size_t i = 0; i < ESDMNC_FN_COUNT + OTHERS; i++) {
        bool other = i >= ESDMNC_FN_COUNT;
        void *found =
            dlsym(handle, other ? other_names[i - ESDMNC_FN_COUNT] : esdmnc__function_names[i]);
        uintptr_t at = (uintptr_t) found;
        own = own && (found == NULL || (at >= library->start && at < library->end));
        *(other ? &others[i - ESDMNC_FN_COUNT] : &library->real[i]) = found;
    }
    memcpy(&library->api.strerror, &others[0], sizeof(void *));
    memcpy(&library->api.inq_libvers, &others[1], sizeof(void *));
    memcpy(&library->api.get_default_format, &others[2], sizeof(void *));
    memcpy(&library->api.get_chunk_cache, &others[3], sizeof(void *));
    memcpy(&library->api.utf8_normalize, &others[4], sizeof(void *));
    return own && others[1] != NULL;
}

/** A reference to the copy for dlsym(), which is never given back: addresses of it are kept. */
static void *
library_open(esdmnc__library *library)
{
    void *handle = atomic_load_explicit(&library->handle, memory_order_acquire);
    if (handle == NULL) {
        const char *path = library->api.path;
        handle = dlopen(path[0] ? path : NULL, RTLD_LAZY | RTLD_NOLOAD);
        void *other = NULL;
        if (handle && !atomic_compare_exchange_strong(&library->handle, &other, handle)) {
            dlclose(handle);
            handle = other;
        }
    }
    return handle;
}

void *
esdmnc_library_symbol(int instance, const char *name)
{
    int saved = errno;
    esdmnc__library *library = esdmnc__library_at(instance);
    void *handle = library ? library_open(library) : NULL;
    void *found = handle ? dlsym(handle, name) : NULL;
    errno = saved;
    return found;
}

static void
library_free(esdmnc__library *library)
{
    if (library) {
        void *handle = atomic_load(&library->handle);
        free((char *) library->api.path);
        if (handle) {
            dlclose(handle);
        }
        free(library);
    }
}

/** The copy that lies where `marker` (the address of MARKER in it) points; new ones are entered. */
static esdmnc__library *
library_enter(void *marker)
{
    uintptr_t at = (uintptr_t) marker;
    for (int i = 0; i < ESDMNC_INSTANCES_MAX; i++) {
        esdmnc__library *known = esdmnc__library_at(i);
        if (known && at >= known->start && at < known->end) {
            return known;
        }
    }
    struct link_map *map = esdmnc__map_of(marker);
    if (!map) {
        return NULL;
    }
    extent where = {.base = map->l_addr, .dynamic = map->l_ld};
    esdmnc__library *library = calloc(1, sizeof(*library));
    if (!library || !dl_iterate_phdr(extent_of_object, &where)) {
        free(library);
        return NULL;
    }
    library->start = where.start;
    library->end = where.end;
    library->api.path = strdup(map->l_name);
    /* What the program started with never goes, and mostly stands behind this library at once. With
     * a reference the dynamic linker collects all libraries below it first: 0.1 ms. */
    bool bound = library->api.path && is_from_the_start(map) && library_bind(library, RTLD_NEXT);
    if (!bound && (!library->api.path || !library_open(library))) {
        library_free(library);
        return NULL;
    }
    if (!bound) {
        (void) library_bind(library, library_open(library));
    }
    for (int i = 0; i < ESDMNC_INSTANCES_MAX; i++) {
        esdmnc__library *other = NULL;
        library->api.instance = i;
        if (atomic_compare_exchange_strong(&libraries[i], &other, library)) {
            esdmnc_debug("libnetcdf %d: %s", i, library->api.path);
            esdmnc__chunk_cache_set(library);
            return library;
        }
        if (other->start == library->start) { /* another thread was faster */
            library_free(library);
            return other;
        }
    }
    esdmnc_debug("more than %d copies of libnetcdf; %s is not served", ESDMNC_INSTANCES_MAX,
                 library->api.path);
    library_free(library);
    return NULL;
}

static void *
marker_seen_by(const struct link_map *map)
{
    void *handle = dlopen(map->l_name[0] ? map->l_name : NULL, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) {
        return NULL;
    }
    void *marker = dlsym(handle, MARKER);
    dlclose(handle);
    return marker;
}

/** Names of the loaded objects; collected first because dlopen() must not run in the callback. */
typedef struct object_list {
    char **names;
    size_t count;
} object_list;

static int
object_collect(struct dl_phdr_info *info, size_t size, void *user)
{
    (void) size;
    object_list *list = user;
    if (!info->dlpi_name || !info->dlpi_name[0]) {
        return 0;
    }
    char **grown = realloc(list->names, (list->count + 1) * sizeof(*grown));
    if (!grown) {
        return 1;
    }
    list->names = grown;
    grown[list->count] = strdup(info->dlpi_name);
    list->count += grown[list->count] != NULL;
    return 0;
}

/** Looks through everything that is loaded; the first copy wins. */
static void *
marker_anywhere(void)
{
    object_list list = {0};
    dl_iterate_phdr(object_collect, &list);
    void *marker = NULL;
    for (size_t i = 0; i < list.count; i++) {
        void *handle = marker ? NULL : dlopen(list.names[i], RTLD_LAZY | RTLD_NOLOAD);
        if (handle) {
            marker = dlsym(handle, MARKER);
            dlclose(handle);
        }
        free(list.names[i]);
    }
    free(list.names);
    return marker;
}

static void
caller_remember(const struct link_map *map, esdmnc__library *library)
{
    caller *entry = malloc(sizeof(*entry));
    if (!entry) {
        return;
    }
    *entry = (caller){map, map->l_ld, map->l_addr, library};
    for (size_t i = 0; i < CALLERS; i++) {
        caller *other = NULL;
        if (atomic_compare_exchange_strong(&callers[i], &other, entry)) {
            return;
        }
    }
    free(entry); /* many callers: the others look their copy up each time */
}

static esdmnc__library *
caller_recall(const struct link_map *map)
{
    for (size_t i = 0; i < CALLERS; i++) {
        const caller *entry = atomic_load_explicit(&callers[i], memory_order_acquire);
        if (!entry) {
            return NULL;
        }
        if (entry->map == map && entry->dynamic == map->l_ld && entry->base == map->l_addr) {
            return entry->library;
        }
    }
    return NULL;
}

/* ---- copies in front of others --------------------------------------------------------------- */

/** What a caller reaches that depends on the copy with `marker`: the first one, when the program
 *  started with several (a parallel one preloaded for a program that links the serial one). */
static void *
marker_in_front(void *marker)
{
    void *first = dlsym(RTLD_NEXT, MARKER);
    return first && first != marker && is_from_the_start(esdmnc__map_of(marker)) ? first : marker;
}

/** libesdm-watch.so, when it observes NetCDF calls, stands between callers and this library: whom
 * it calls for. Any other address as it is. */
__attribute__((weak)) const void *esdm_watch_caller(const void *address);

esdmnc__library *
esdmnc__library_for(const void *address)
{
    if (esdm_watch_caller) {
        address = esdm_watch_caller(address);
    }
    uintptr_t at = (uintptr_t) address;
    for (int i = 0; i < ESDMNC_INSTANCES_MAX; i++) {
        esdmnc__library *known = esdmnc__library_at(i);
        if (!known) {
            break;
        }
        if (at >= known->start && at < known->end) {
            return known;
        }
    }
    int saved = errno;
    struct link_map *map = esdmnc__map_of(address);
    esdmnc__library *library = map ? caller_recall(map) : NULL;
    if (!library) {
        void *marker = map ? marker_seen_by(map) : NULL;
        bool sure = marker != NULL;
        if (marker) {
            marker = marker_in_front(marker);
        } else {
            marker = dlsym(RTLD_DEFAULT, MARKER);
        }
        if (!marker) {
            marker = marker_anywhere();
        }
        library = marker ? library_enter(marker) : NULL;
        if (library && sure) {
            caller_remember(map, library);
        }
    }
    errno = saved;
    return library;
}

/* ---- registration --------------------------------------------------------------------------- */

/** Guards the registration fields of all libraries; held while a table is registered, that is, for
 *  a call or two into libnetcdf that do no I/O. */
static pthread_mutex_t serve_lock = PTHREAD_MUTEX_INITIALIZER;

static int
library_register(esdmnc__library *library)
{
    __typeof__(&nc_inq_user_format) inquire = library->real[ESDMNC_FN_nc_inq_user_format];
    __typeof__(&nc_def_user_format) define = library->real[ESDMNC_FN_nc_def_user_format];
    if (!inquire || !define) {
        esdmnc_debug("%s has no user-defined formats (older than 4.7)", library->api.path);
        return NC_ENOTBUILT;
    }
    static const int flags[] = {NC_UDF0, NC_UDF1};
    static const int models[] = {NC_FORMATX_UDF0, NC_FORMATX_UDF1};
    for (int i = 0; i < 2; i++) {
        NC_Dispatch *present = NULL;
        if (inquire(flags[i], &present, NULL) == NC_NOERR && present) {
            continue; /* the program's own */
        }
        library->table.model = models[i];
        char magic[] = ESDMNC_STUB_MAGIC;
        int status = define(flags[i], &library->table, magic);
        if (status == NC_NOERR) {
            library->mode_flag = flags[i];
        } else {
            esdmnc_debug("%s refuses the dispatch table: %d", library->api.path, status);
        }
        return status;
    }
    esdmnc_debug("the program uses both user-defined formats of %s", library->api.path);
    return NC_ENOTBUILT;
}

int
esdmnc__library_serve(esdmnc__library *library)
{
    if (!library) {
        return NC_ENOTBUILT;
    }
    pthread_mutex_lock(&serve_lock);
    int status = NC_NOERR;
    if (library->mode_flag == 0) {
        const esdmnc__core *core = esdmnc__core_get();
        library->core_table = core ? core->dispatch_table(library->api.instance) : NULL;
        if (!library->core_table) {
            status = NC_ENOTBUILT;
        } else {
            esdmnc__table_wrap(library);
            status = library_register(library);
        }
    }
    pthread_mutex_unlock(&serve_lock);
    return status;
}

static void
serve_unlock_in_child(void)
{
    esdmnc__memory_forked();
    esdmnc__creations_forked();
    esdmnc__filelist_forked();
    esdmnc__living_forked();
    esdmnc__room_forked();
    serve_lock = (pthread_mutex_t) PTHREAD_MUTEX_INITIALIZER;
}

__attribute__((constructor)) static void
libraries_start(void)
{
    for (const struct link_map *map = _r_debug.r_map; map; map = map->l_next) {
        started_with++;
    }
    (void) pthread_atfork(NULL, NULL, serve_unlock_in_child);
}
