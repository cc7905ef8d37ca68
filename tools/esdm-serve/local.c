/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Whose program is at the other end of a connection within this machine, and whether that user
 * could read the site: every user of a login node reaches the ports of all others. */
#include "esdm-serve/esdm-serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define MOST_GROUPS 1024
/* As which Linux shows users that it cannot show, if nothing else is set. */
#define UNMAPPED_ID 65534

/* ---- who it is ---------------------------------------------------------------------------- */

/* An end of a connection as /proc/net/tcp6 writes it: four words as the machine has them. */
typedef struct place {
    uint32_t words[4];
    unsigned port;
    bool known;
} place;

static place
place_of(const struct sockaddr_storage *address)
{
    place p = {.known = true};
    if (address->ss_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *) address;
        p.words[2] = htonl(0xffff);
        p.words[3] = four->sin_addr.s_addr;
        p.port = ntohs(four->sin_port);
    } else if (address->ss_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *) address;
        memcpy(p.words, &six->sin6_addr, sizeof p.words);
        p.port = ntohs(six->sin6_port);
    } else {
        p.known = false;
    }
    return p;
}

/* "0100007F:1F90", or with 32 digits. */
static bool
parse_place(const char *text, place *ret)
{
    uint32_t w[4];
    place p = {.known = true};
    if (strcspn(text, ":") == 8) {
        if (sscanf(text, "%8" SCNx32 ":%x", &p.words[3], &p.port) != 2)
            return false;
        p.words[2] = htonl(0xffff);
    } else {
        if (sscanf(text, "%8" SCNx32 "%8" SCNx32 "%8" SCNx32 "%8" SCNx32 ":%x", &w[0], &w[1], &w[2],
                   &w[3], &p.port) != 5)
            return false;
        memcpy(p.words, w, sizeof w);
    }
    *ret = p;
    return true;
}

static bool
same_place(const place *a, const place *b)
{
    return a->port == b->port && memcmp(a->words, b->words, sizeof a->words) == 0;
}

/* Looks for the socket of the other end; its state must be one in which somebody has it. */
static bool
find_in_table(const char *table, const place *theirs, const place *ours, uid_t *ret_user)
{
    char line[512];
    bool found = false;
    FILE *file = fopen(table, "re");
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        char local[64], remote[64];
        unsigned state, user;
        place at, to;
        if (sscanf(line, " %*[^:]: %63s %63s %x %*s %*s %*s %u", local, remote, &state, &user) !=
                4 ||
            !parse_place(local, &at) || !parse_place(remote, &to))
            continue;
        bool held = state == 1 || state == 4 || state == 5; /* established, or half closed */
        found = held && same_place(&at, theirs) && same_place(&to, ours);
        if (found)
            *ret_user = (uid_t) user;
    }
    if (file != NULL)
        (void) fclose(file);
    return found;
}

/* The tables are read in pieces, while sockets come and go, and a read may pass over one: what was
 * not found is looked for once more. */
static bool
find_owner(const place *theirs, const place *ours, uid_t *ret_user)
{
    for (int round = 0; round < 2; round++) {
        if (find_in_table("/proc/net/tcp", theirs, ours, ret_user) ||
            find_in_table("/proc/net/tcp6", theirs, ours, ret_user))
            return true;
    }
    return false;
}

/* Number as which the kernel shows users, or groups, that the namespace of this process does not
 * know: all of them alike. */
static unsigned
unmapped_id(const char *setting)
{
    unsigned id = UNMAPPED_ID;
    FILE *file = fopen(setting, "re");
    if (file == NULL || fscanf(file, "%u", &id) != 1)
        id = UNMAPPED_ID;
    if (file != NULL)
        (void) fclose(file);
    return id;
}

/* ---- what that user may read ---------------------------------------------------------------- */

typedef struct reader {
    uid_t user;
    gid_t groups[MOST_GROUPS];
    int ngroups;
    gid_t unmapped;       /* group that stands for all that are not known here */
    unsigned directories; /* that were looked at */
    bool all;             /* of them can be read */
} reader;

static bool
in_group(const reader *r, gid_t group)
{
    for (int i = 0; i < r->ngroups; i++) {
        if (r->groups[i] == group)
            return true;
    }
    return false;
}

/* Also if that cannot be told. */
static bool
has_access_list(const char *path)
{
    return getxattr(path, "system.posix_acl_access", NULL, 0) >= 0 ||
           (errno != ENODATA && errno != ENOTSUP);
}

/* By the modes, as the kernel does. Where there is an access list they tell of the owner alone: the
 * bits of the group are its mask, and it may exclude users. */
static bool
has_rights(const reader *r, const char *path, unsigned wanted)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return false;
    unsigned mode = (unsigned) info.st_mode;
    if (info.st_uid == r->user)
        return (mode >> 6 & wanted) == wanted;
    if (has_access_list(path))
        return false;
    if (info.st_gid == r->unmapped) /* the user may be in it, or not */
        return (mode & mode >> 3 & wanted) == wanted;
    return (mode >> (in_group(r, info.st_gid) ? 3 : 0) & wanted) == wanted;
}

static bool
may_pass_parents(const reader *r, const char *directory)
{
    bool may = has_rights(r, "/", 1);
    g_autofree char *path = g_strdup(directory);
    for (char *slash = strrchr(path, '/'); may && slash != NULL && slash != path;
         slash = strrchr(path, '/')) {
        *slash = '\0';
        may = has_rights(r, path, 1);
    }
    return may;
}

/* The way to a directory is the one that is stated, and the one that links in it lead. */
static bool
look_at_directory(const char *directory, void *user)
{
    reader *r = user;
    char *real = directory != NULL ? realpath(directory, NULL) : NULL; /* NULL: not to be judged */
    r->directories++;
    r->all = r->all && real != NULL && has_rights(r, real, 5) && may_pass_parents(r, real) &&
             may_pass_parents(r, directory);
    free(real);
    return r->all;
}

/* Whether the directories of the site let that user read. What lies on a network, or elsewhere, is
 * read with the rights of the server's user: then nobody else may. */
static bool
may_read_site(uid_t user)
{
    reader r = {.user = user, .ngroups = MOST_GROUPS, .all = true};
    r.unmapped = (gid_t) unmapped_id("/proc/sys/kernel/overflowgid");
    struct passwd entry, *found = NULL;
    char text[4096];
    if (getpwuid_r(user, &entry, text, sizeof text, &found) != 0 || found == NULL)
        r.ngroups = 0;
    else if (getgrouplist(found->pw_name, found->pw_gid, r.groups, &r.ngroups) < 0)
        return false;
    const esdm_site_options options = {.config_path = tool.config};
    esdm_error ignored;
    return esdm_site_directories(&options, look_at_directory, &r, &ignored) == ESDM_OK && r.all &&
           r.directories > 0;
}

/* ---- all ---------------------------------------------------------------------------------- */

bool
serve_is_stranger(int socket)
{
    struct sockaddr_storage theirs, ours;
    socklen_t theirs_bytes = sizeof theirs, ours_bytes = sizeof ours;
    uid_t user = 0;
    if (getpeername(socket, (struct sockaddr *) &theirs, &theirs_bytes) != 0 ||
        getsockname(socket, (struct sockaddr *) &ours, &ours_bytes) != 0)
        return true;
    const place from = place_of(&theirs), to = place_of(&ours);
    if (!from.known || !to.known || !find_owner(&from, &to, &user))
        return true;
    /* Anybody of another namespace, also where the server's own user has no other number. */
    if (user == (uid_t) unmapped_id("/proc/sys/kernel/overflowuid"))
        return true;
    return user != geteuid() && user != 0 && !may_read_site(user);
}
