/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What a recipe that runs again may write to: the directories of the site, and a folder of its own.
 * By Landlock of the Linux kernel (5.13 and later; its documentation is
 * Documentation/userspace-api/landlock.rst), which needs no rights and holds for all that the
 * program starts. */
#include "esdm-recipe/esdm-recipe.h"

#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if __has_include(<linux/landlock.h>) && defined(__NR_landlock_create_ruleset)
#include <linux/landlock.h>
#define HAS_LANDLOCK 1
#endif

/* Of versions of the kernel's interface that the header may be too old for. */
#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

/* Devices that programs write to as a matter of course, and memory that processes share. */
static const char *const always[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/shm"};

static bool
take_directory(const char *directory, void *user)
{
    if (directory != NULL)
        g_ptr_array_add(user, g_strdup(directory));
    return true;
}

tool_exit
recipe_sandbox(const recipe_run *run, GPtrArray **ret_folders)
{
    esdm_error err = {0};
    const esdm_site_options options = {.config_path = tool.config};
    g_autoptr(GPtrArray) folders = g_ptr_array_new_with_free_func(g_free);
    *ret_folders = NULL;
    esdm_status st = esdm_site_directories(&options, take_directory, folders, &err);
    if (st != ESDM_OK)
        return tool_fail(st, &err);
    g_ptr_array_add(folders, g_strdup(run->folder));
    for (gsize i = 0; i < G_N_ELEMENTS(always); i++)
        g_ptr_array_add(folders, g_strdup(always[i]));
    *ret_folders = g_steal_pointer(&folders);
    return TOOL_OK;
}

#ifdef HAS_LANDLOCK

#define OF_FILES (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE)
#define OF_FOLDERS                                                                                 \
    (LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |                              \
     LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |    \
     LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK | \
     LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER)

static long
interface_version(void)
{
    return syscall(__NR_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

/* What is not there cannot be written to either. */
static bool
allow(int rules, const char *path, __u64 handled)
{
    struct stat st;
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return true;
    struct landlock_path_beneath_attr rule = {.allowed_access = handled, .parent_fd = fd};
    if (fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode))
        rule.allowed_access &= OF_FILES;
    bool done = syscall(__NR_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
    (void) close(fd);
    return done;
}

bool
recipe_sandbox_exists(void)
{
    return interface_version() > 0;
}

bool
recipe_sandbox_enter(const GPtrArray *folders)
{
    long version = interface_version();
    struct landlock_ruleset_attr attr = {.handled_access_fs = OF_FILES | OF_FOLDERS};
    if (version <= 0)
        return true;
    if (version < 2)
        attr.handled_access_fs &= ~LANDLOCK_ACCESS_FS_REFER;
    if (version < 3)
        attr.handled_access_fs &= ~LANDLOCK_ACCESS_FS_TRUNCATE;
    int rules =
        (int) syscall(__NR_landlock_create_ruleset, &attr, sizeof attr.handled_access_fs, 0);
    bool done = rules >= 0;
    for (guint i = 0; done && i < folders->len; i++)
        done = allow(rules, folders->pdata[i], attr.handled_access_fs);
    done = done && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(__NR_landlock_restrict_self, rules, 0) == 0;
    if (rules >= 0)
        (void) close(rules);
    return done;
}

#else

bool
recipe_sandbox_exists(void)
{
    return false;
}

bool
recipe_sandbox_enter(const GPtrArray *folders)
{
    (void) folders;
    return true;
}

#endif
