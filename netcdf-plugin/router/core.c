/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Loads the dispatcher, which lies beside this library, when it is first needed. */
#include "router/router.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define CORE_FILE "libesdm-netcdf-core.so"

static esdmnc__core core_functions;
static _Atomic(const esdmnc__core *) core_published;

static void *
core_open(void)
{
    Dl_info self;
    char path[PATH_MAX];
    if (!dladdr(&core_functions, &self) || !self.dli_fname) {
        return NULL;
    }
    const char *slash = strrchr(self.dli_fname, '/');
    int folder = slash ? (int) (slash - self.dli_fname + 1) : 0;
    void *handle = NULL;
    static const char *const places[] = {"", "esdm/"};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !handle; i++) {
        int n = snprintf(path, sizeof(path), "%.*s%s" CORE_FILE, folder, self.dli_fname, places[i]);
        if (n > 0 && (size_t) n < sizeof(path)) {
            /* Local: the program must not see libesdm's SQLite or lz4 in place of its own. */
            handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        }
        if (!handle) {
            esdmnc_debug("cannot load the dispatcher: %s", dlerror());
        }
    }
    return handle;
}

const esdmnc__core *
esdmnc__core_if_loaded(void)
{
    return atomic_load_explicit(&core_published, memory_order_acquire);
}

const esdmnc__core *
esdmnc__core_get(void)
{
    const esdmnc__core *core = esdmnc__core_if_loaded();
    if (core) {
        return core;
    }
    int saved = errno;
    void *handle = core_open();
    if (!handle) {
        errno = saved;
        return NULL;
    }
    /* Two threads may come here at once: both find and store the same addresses. A lock would be
     * worse, since a child forked while it is held could never take it. */
    static const char *const names[] = {"esdmnc_dispatch_table", "esdmnc_owns", "esdmnc_delete",
                                        "esdmnc_exists", "esdmnc_rename"};
    void *found[5];
    for (size_t i = 0; i < 5; i++) {
        found[i] = dlsym(handle, names[i]);
        if (!found[i]) {
            esdmnc_debug("the dispatcher has no %s", names[i]);
            errno = saved;
            return NULL;
        }
    }
    esdmnc__core loaded;
    memcpy(&loaded.dispatch_table, &found[0], sizeof(void *));
    memcpy(&loaded.owns, &found[1], sizeof(void *));
    memcpy(&loaded.remove, &found[2], sizeof(void *));
    memcpy(&loaded.exists, &found[3], sizeof(void *));
    memcpy(&loaded.rename, &found[4], sizeof(void *));
    core_functions = loaded;
    atomic_store_explicit(&core_published, &core_functions, memory_order_release);
    errno = saved;
    return &core_functions;
}
