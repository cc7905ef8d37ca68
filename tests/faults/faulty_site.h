/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TESTS_FAULTS_FAULTY_SITE_H
#define TESTS_FAULTS_FAULTY_SITE_H

/** @file A site with the stores and targets of tests/support/faulty_{meta,data}.h, for C tests:
 *  a node-local target "burst", where the variable "a" goes, and a "disk" that fails. */

#include <dlfcn.h>
#include <ftw.h>

#include "integration/testing.h"
#include "support/faulty_data.h"
#include "support/faulty_meta.h"

static char config[2048];
static void (*arm_meta)(esdm_faulty_meta_op op, uint64_t nth, uint64_t count,
                        esdm_faulty_meta_action action);
static void (*arm_data)(esdm_faulty_op op, uint64_t nth, uint64_t count, esdm_faulty_action action,
                        esdm_status status);
static uint64_t (*count_data)(esdm_faulty_op op);

static inline void *
function(const char *file, const char *name)
{
    char path[512];
    const char *build = getenv("ESDM_BUILD");
    snprintf(path, sizeof path, "%s/plugins/%s", build != NULL ? build : "build", file);
    void *object = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (object == NULL)
        die("not loaded: %s", dlerror());
    void *found = dlsym(object, name);
    check(found != NULL);
    return found;
}

/* Operations of that kind so far. */
static inline uint64_t
count_meta(esdm_faulty_meta_op op)
{
    uint64_t (*calls)(esdm_faulty_meta_op op);
    *(void **) &calls = function("esdm-meta-faulty.so", "esdm_faulty_meta_calls");
    return calls(op);
}

static inline esdm_session *
open_here(void)
{
    esdm_session *session;
    const esdm_session_options options = {.config_json = config};
    ok(esdm_session_open(&options, &session, ERR));
    return session;
}

static inline void
describe_site(void)
{
    const char *tmp = getenv("TMPDIR");
    const char *build = getenv("ESDM_BUILD");
    char path[512];
    snprintf(path, sizeof path, "%s/plugins", build != NULL ? build : "build");
    setenv("ESDM_PLUGIN_PATH", path, 1);
    snprintf(test_folder, sizeof test_folder, "%s/esdm-test.XXXXXX", tmp ? tmp : "/tmp");
    check(mkdtemp(test_folder) != NULL);
    test_owner = getpid();
    atexit(remove_test_folder);
    snprintf(config, sizeof config,
             "{\"targets\": [{\"name\": \"burst\", \"plugin\": \"posix\", \"accessibility\": "
             "\"local\", \"directory\": \"%s/burst\"}, {\"name\": \"disk\", \"plugin\": "
             "\"faulty\", \"directory\": \"%s/disk\"}], \"policies\": [{\"variable\": \"a\", "
             "\"targets\": [\"burst\"]}], \"metadata\": {\"plugin\": \"faulty\", \"directory\": "
             "\"%s/meta\"}, \"engine\": {\"pack\": \"64KiB\", \"memory\": \"64MiB\"}, "
             "\"backup\": {\"journal\": false, \"every\": 0}}", /* packs are counted */
             test_folder, test_folder, test_folder);
    esdm_site_options options = {.config_json = config};
    ok(esdm_site_create(&options, ERR));
    esdm_session_close(open_here());
    *(void **) &arm_meta = function("esdm-meta-faulty.so", "esdm_faulty_meta_arm");
    *(void **) &arm_data = function("esdm-data-faulty.so", "esdm_faulty_arm");
    *(void **) &count_data = function("esdm-data-faulty.so", "esdm_faulty_calls");
}

/* All data go to the disk that fails, and nowhere else. */
static inline void
use_disk_alone(void)
{
    static const char from[] = "\"variable\": \"a\", \"targets\": [\"burst\"]";
    static const char to[] = "\"variable\": \"*\", \"targets\": [\"disk\"]";
    char *at = strstr(config, from);
    _Static_assert(sizeof to <= sizeof from, "it must fit");
    check(at != NULL);
    memset(at, ' ', sizeof from - 1);
    memcpy(at, to, sizeof to - 1);
}

/* Commits flush packs. */
static inline void
use_durability_system(void)
{
    static const char key[] = "\"durability\": \"system\", ";
    char *at = strstr(config, "\"engine\"");
    size_t bytes = sizeof key - 1;
    check(at != NULL && strlen(config) + bytes < sizeof config);
    memmove(at + bytes, at, strlen(at) + 1);
    memcpy(at, key, bytes);
}

static int packs_found;
static bool packs_removed;

static inline int
see_file(const char *path, const struct stat *info, int type, struct FTW *at)
{
    (void) info;
    int dashes = 0;
    for (const char *c = path + at->base; *c != '\0'; c++)
        dashes += *c == '-';
    packs_found += type == FTW_F && dashes >= 2;
    if (type == FTW_F && dashes >= 2 && packs_removed)
        check(unlink(path) == 0);
    return 0;
}

static inline int
walk(const char *target, bool remove)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", test_folder, target);
    packs_found = 0;
    packs_removed = remove;
    check(nftw(path, see_file, 16, FTW_PHYS) == 0);
    return packs_found;
}

static inline int
count_packs(const char *target)
{
    return walk(target, false);
}

static inline void
remove_packs(const char *target)
{
    check(walk(target, true) > 0);
}

#endif
