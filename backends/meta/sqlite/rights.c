/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Why this process may not write to the database: whose it is, and whom to ask. */

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store.h"

#define NAMES_BYTES 4096

static void
name_owner(uid_t uid, char *text, size_t bytes)
{
    char memory[NAMES_BYTES];
    struct passwd user;
    struct passwd *found = NULL;
    if (getpwuid_r(uid, &user, memory, sizeof memory, &found) == 0 && found != NULL)
        (void) snprintf(text, bytes, "user '%.60s'", user.pw_name);
    else
        (void) snprintf(text, bytes, "user %lu", (unsigned long) uid);
}

static void
name_group(gid_t gid, char *text, size_t bytes)
{
    char memory[NAMES_BYTES];
    struct group group;
    struct group *found = NULL;
    if (getgrgid_r(gid, &group, memory, sizeof memory, &found) == 0 && found != NULL)
        (void) snprintf(text, bytes, "group '%.60s'", group.gr_name);
    else
        (void) snprintf(text, bytes, "group %lu", (unsigned long) gid);
}

static void
tell(const char *path, const struct stat *st, char *text, size_t bytes)
{
    char owner[80], group[80], ask[200];
    name_owner(st->st_uid, owner, sizeof owner);
    name_group(st->st_gid, group, sizeof group);
    if (st->st_uid == geteuid())
        (void) snprintf(ask, sizeof ask, "allow it (chmod u+w)");
    else if ((st->st_mode & S_IWGRP) != 0)
        (void) snprintf(ask, sizeof ask, "ask to be made a member of %s", group);
    else
        (void) snprintf(ask, sizeof ask, "ask %s for the right to write", owner);
    (void) snprintf(text, bytes,
                    "'%.150s' belongs to %s and %s (mode %03o); %s, or make a site of your own "
                    "(esdm-mkfs) and name it in $ESDM_CONFIG",
                    path, owner, group, (unsigned) st->st_mode & 07777u, ask);
}

void
sqlite__why_read_only(void *self, char *text, size_t bytes)
{
    const sqlite__store *store = self;
    const char *const paths[] = {store->file, store->directory};
    text[0] = '\0';
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct stat st;
        if (euidaccess(paths[i], W_OK) == 0)
            continue;
        if (errno == EROFS)
            (void) snprintf(text, bytes,
                            "'%.150s' lies on a file system that is mounted for reading alone",
                            paths[i]);
        else if (stat(paths[i], &st) == 0)
            tell(paths[i], &st, text, bytes);
        return;
    }
}
