/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Loads the dispatcher, which lies beside this library, when it is first needed. */
#include "router/router.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CORE_FILE "libesdm-netcdf-core.so"

static _Atomic(esdmnc__core *) core_published;

static void *
core_open(void)
{
    Dl_info self;
    char path[PATH_MAX];
    if (!dladdr(&core_published, &self) || !self.dli_fname) {
        return NULL;
    }
    const char *slash = strrchr(self.dli_fname, '/');
    int folder = slash ? (int) (slash - self.dli_fname + 1) : 0;
    void *handle = NULL;
    static const char *const places[] = {"", "esdm/"};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !handle; i++) {
        int n = snprintf(path, sizeof(path), "%.*s%s" CORE_FILE, folder, self.dli_fname, places[i]);
        if (n > 0 && (size_t) n < sizeof(path)) {
            /* Local: the program must not see libesdm's SQLite or lz4 in place of its own. Lazy:
             * short programs call few of their functions. */
            handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
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

/** Looks the functions up. @param ret is half filled on failure. */
static bool
core_bind(void *handle, esdmnc__core *ret)
{
    const struct {
        const char *name;
        void *place;
    } wanted[] = {{"esdmnc_dispatch_table", &ret->dispatch_table},
                  {"esdmnc_owns", &ret->owns},
                  {"esdmnc_delete", &ret->remove},
                  {"esdmnc_exists", &ret->exists},
                  {"esdmnc_format", &ret->format},
                  {"esdmnc_is_folder", &ret->is_folder},
                  {"esdmnc_rename", &ret->rename},
                  {"esdmnc_may_rename", &ret->may_rename},
                  {"esdmnc_stub_number", &ret->stub_number},
                  {"esdmnc_site", &ret->site},
                  {"esdmnc_numbered", &ret->numbered},
                  {"esdmnc_stub_file", &ret->stub_file},
                  {"esdmnc_route", &ret->route},
                  {"esdmnc_values_size", &ret->values_size},
                  {"esdmnc_values_reclaim", &ret->values_reclaim},
                  {"esdmnc_values_copy", &ret->values_copy},
                  {"esdmnc_ranks_open", &ret->ranks_open},
                  {"esdmnc_ranks_number", &ret->ranks_number},
                  {"esdmnc_ranks_agree", &ret->ranks_agree},
                  {"esdmnc_ranks_share", &ret->ranks_share},
                  {"esdmnc_ranks_close", &ret->ranks_close},
                  {"esdmnc_recipe_copy", &ret->recipe_copy},
                  {"esdmnc_descriptor_is_kept", &ret->descriptor_is_kept},
                  {"esdmnc_descriptor_opened", &ret->descriptor_opened},
                  {"esdmnc_descriptor_limit", &ret->descriptor_limit},
                  {"esdmnc_records_write", &ret->records_write}};
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        void *found = dlsym(handle, wanted[i].name);
        if (!found) {
            esdmnc_debug("the dispatcher has no %s", wanted[i].name);
            return false;
        }
        memcpy(wanted[i].place, &found, sizeof(found));
    }
    return true;
}

const esdmnc__core *
esdmnc__core_get(void)
{
    const esdmnc__core *known = esdmnc__core_if_loaded();
    if (known) {
        return known;
    }
    int saved = errno;
    void *handle = core_open();
    esdmnc__core *core = handle ? calloc(1, sizeof(*core)) : NULL;
    if (core && !core_bind(handle, core)) {
        free(core);
        core = NULL;
    }
    /* No lock, since a child that is forked while it is held could never take it: of two threads
     * that come here at once, the first one's result stays. */
    esdmnc__core *other = NULL;
    if (core && !atomic_compare_exchange_strong(&core_published, &other, core)) {
        free(core);
        core = other;
    }
    errno = saved;
    return core;
}
