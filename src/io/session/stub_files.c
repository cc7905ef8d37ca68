/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/session/stub_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/error.h"
#include "base/ids.h"
#include "base/shared_file_systems.h"
#include "io/session/fact_name.h"

#define SECOND_NS UINT64_C(1000000000)

/* ---- where a file lies ---------------------------------------------------------------------- */

#define AFS 0x5346414fu /* by statfs() */

/* Whether all nodes see it which have mounted it. Of FUSE that is not known. */
static bool
is_shared(uint32_t type)
{
    return esdm__file_system_is_shared(type) || type == AFS;
}

void
esdm__stub_file_place(const esdm_session *session, const char *folder, char *ret_place)
{
    struct statfs found;
    unsigned id[2];
    ret_place[0] = '\0';
    char *path = folder[0] == '/' ? strdup(folder) : NULL;
    int failed = path == NULL ? -1 : statfs(path, &found);
    while (path != NULL && failed != 0 && (errno == ENOENT || errno == ENOTDIR) &&
           path[1] != '\0') {
        char *slash = strrchr(path, '/');
        slash[slash == path] = '\0';
        failed = statfs(path, &found);
    }
    free(path);
    if (failed != 0)
        return;
    _Static_assert(sizeof id == sizeof found.f_fsid, "two numbers");
    memcpy(id, &found.f_fsid, sizeof id);
    bool shared = is_shared((uint32_t) found.f_type);
    (void) snprintf(ret_place, ESDM__STUB_PLACE_BYTES, "%s@%x:%08x%08x",
                    shared ? "" : session->node, (unsigned) found.f_type, id[0], id[1]);
    for (char *c = ret_place; *c != '\0'; c++) /* a node may be called anything */
        *c = (char) ((unsigned char) *c <= ' ' ? '_' : *c);
}

/* 0: no file of that path is there, or it cannot be told. @param ret_missing whether the first. */
static uint64_t
inode_of(const char *path, bool *ret_missing)
{
    /* A program may be started with a library that shows the container in place of the file. */
    struct statx found;
    bool there = syscall(SYS_statx, AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_INO, &found) == 0;
    *ret_missing = !there && (errno == ENOENT || errno == ENOTDIR);
    return there ? found.stx_ino : 0;
}

/* ---- what is noted -------------------------------------------------------------------------- */

#define FACT "file"

/* "SINCE INODE PLACE PATH" */
typedef struct note {
    char *text;          /* owned; NULL: there is none */
    uint64_t missing_ns; /* nobody has found it since then; 0: it was there */
    uint64_t inode;      /* 0: no place is known where it may be */
    const char *place;   /* of its folder, ended by a blank */
    size_t place_bytes;
    const char *path;
} note;

static note
read_note(const esdm_session *session, const char *uuid)
{
    note n = {.text = NULL};
    int at = 0, end = 0;
    if (session->meta->fact_get == NULL ||
        session->meta->fact_get(session->store, esdm__fact_of(uuid, FACT).text, &n.text, NULL) !=
            ESDM_OK)
        return (note){.text = NULL};
    if (sscanf(n.text, "%20" SCNu64 " %20" SCNu64 " %n%*s%n", &n.missing_ns, &n.inode, &at, &end) !=
            2 ||
        end == 0 || n.text[end] != ' ') {
        free(n.text);
        return (note){.text = NULL};
    }
    n.place = n.text + at;
    n.place_bytes = (size_t) (end - at);
    n.path = n.text + end + 1;
    return n;
}

static esdm_status
write_note(const esdm_session *session, const char *uuid, uint64_t missing_ns, uint64_t inode,
           const char *place, size_t place_bytes, const char *path, esdm_error *err)
{
    size_t room = place_bytes + strlen(path) + 64;
    char *text = malloc(room);
    if (text == NULL)
        return esdm__error_nomem(err, room, "where the file of a container lies");
    (void) snprintf(text, room, "%" PRIu64 " %" PRIu64 " %.*s %s", missing_ns, inode,
                    (int) place_bytes, place, path);
    esdm_status status =
        session->meta->fact_put(session->store, esdm__fact_of(uuid, FACT).text, text, err);
    free(text);
    return status;
}

esdm_status
esdm__stub_file_missing(const esdm_session *session, const char *uuid, esdm_error *err)
{
    return write_note(session, uuid, esdm__now_ns(), 0, "-", 1, "", err);
}

/* Whether what was noted is there still. @param ret_missing whether it surely is not. */
static bool
is_there(const esdm_session *session, const note *n, bool *ret_missing)
{
    char place[ESDM__STUB_PLACE_BYTES];
    *ret_missing = n->inode == 0;
    if (*ret_missing)
        return false;
    if (inode_of(n->path, ret_missing) == n->inode)
        return true;
    /* Another file has the path, or none: here, and not where the folder lies elsewhere. */
    esdm__stub_file_place(session, n->path, place);
    *ret_missing = strlen(place) == n->place_bytes && memcmp(place, n->place, n->place_bytes) == 0;
    return false;
}

esdm_status
esdm__stub_file_seen(const esdm_session *session, const char *uuid, const char *path,
                     esdm_error *err)
{
    char place[ESDM__STUB_PLACE_BYTES];
    bool missing;
    note n = read_note(session, uuid);
    bool known = n.text != NULL && n.missing_ns == 0 && is_there(session, &n, &missing);
    free(n.text);
    if (known) /* one is enough */
        return ESDM_OK;
    uint64_t inode = inode_of(path, &missing);
    esdm__stub_file_place(session, path, place);
    if (inode == 0 || place[0] == '\0')
        return esdm__error_set(err, ESDM_ENOENT, "'%.300s' cannot be looked at", path);
    return write_note(session, uuid, 0, inode, place, strlen(place), path, err);
}

uint64_t
esdm__stub_file_until(const esdm_session *session, const char *uuid, bool settle)
{
    note n = read_note(session, uuid);
    uint64_t until_ns = 0;
    bool missing = false;
    if (n.text == NULL)
        return 0;
    if (n.inode != 0 && (is_there(session, &n, &missing) || !missing)) {
        until_ns = UINT64_MAX;
    } else {
        uint64_t since_ns = n.missing_ns != 0 ? n.missing_ns : esdm__now_ns();
        until_ns = since_ns + session->site->replaced.keep_moved_s * SECOND_NS;
        if (settle && n.missing_ns == 0) /* it was moved again, or removed: from now on time runs */
            (void) !write_note(session, uuid, since_ns, n.inode, n.place, n.place_bytes, n.path,
                               NULL);
    }
    free(n.text);
    return until_ns;
}
