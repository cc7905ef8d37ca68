/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Branches that take what other processes write, for as long as one process runs. */

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "api/catalogue.h"
#include "base/arguments.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/hidden_names.h"
#include "base/ids.h"
#include "base/process_place.h"
#include "esdm/branch.h"
#include "esdm/container.h"
#include "model/names.h"

#define MARK      "gather-"
#define KEPT      "kept: " /* how the message of the commit begins that keeps a branch */
#define KEPT_ATTR "_esdm_gather_kept"
#define SECOND_NS UINT64_C(1000000000)
/* After that long without a commit a process elsewhere counts as gone. */
#define WEEK_NS (7 * 24 * 3600 * SECOND_NS)

void
esdm_gather_name(char *ret_branch)
{
    static atomic_uint count;
    char node[41] = "";
    if (ret_branch == NULL)
        return;
    if (gethostname(node, sizeof node - 1) != 0 || node[0] == '\0')
        (void) snprintf(node, sizeof node, "node");
    for (char *c = node; *c != '\0'; c++) {
        if ((unsigned char) *c <= ' ' || (unsigned char) *c >= 127 || strchr("/@?:", *c) != NULL)
            *c = '-';
    }
    (void) snprintf(ret_branch, ESDM_GATHER_NAME_BYTES, MARK "%s-%ld-%08" PRIx32 "%" PRIx64 ".%x",
                    node, (long) getpid(), esdm__process_place(), esdm__now_ns(),
                    atomic_fetch_add(&count, 1));
}

/* Whether the branch has such a name, and the process that gave it runs no more, or elsewhere. */
static bool
is_left(const char *branch, bool *ret_elsewhere)
{
    static const char *const hex = "0123456789abcdef";
    if (strncmp(branch, MARK, sizeof MARK - 1) != 0)
        return false;
    /* A node's name may have '-', too: what is looked for stands at the end. */
    const char *place = strrchr(branch, '-');
    const char *end = place + 1 + strspn(place + 1, hex);
    if (end - place <= 1 + 8 || end[0] != '.' || strspn(end + 1, hex) != strlen(end + 1))
        return false;
    const char *number = place;
    while (number > branch && number[-1] >= '0' && number[-1] <= '9')
        number--;
    errno = 0;
    long pid = strtol(number, NULL, 10);
    if (number == place || number[-1] != '-' || errno != 0 || pid <= 0 || pid > INT32_MAX)
        return false;
    char where[9];
    (void) snprintf(where, sizeof where, "%s", place + 1);
    *ret_elsewhere = strtoul(where, NULL, 16) != esdm__process_place();
    return *ret_elsewhere || (kill((pid_t) pid, 0) != 0 && errno == ESRCH);
}

/* ---- keeping ------------------------------------------------------------------------------- */

esdm_status
esdm_gather_keep(esdm_session *session, const char *name, const char *why, esdm_error *err)
{
    esdm_container *container = NULL;
    char message[256];
    ESDM__NEED(err, session);
    ESDM__NEED(err, name);
    ESDM__NEED(err, why);
    esdm_status status =
        esdm_container_open(session, name, ESDM_OPEN_WRITE, ESDM_SNAPSHOT_LATEST, &container, err);
    if (status != ESDM_OK)
        return status;
    (void) snprintf(message, sizeof message, KEPT "%s", why);
    /* A commit in which nothing is different. */
    esdm_attributes *attributes = esdm_group_attributes(esdm_container_root(container));
    status = esdm_attribute_set(attributes, KEPT_ATTR, ESDM_TYPE_CHAR, 1, "", err);
    if (status == ESDM_OK)
        status = esdm_attribute_remove(attributes, KEPT_ATTR, err);
    if (status == ESDM_OK)
        status = esdm_container_commit(container, message, err);
    esdm_container_discard(container);
    return status;
}

static bool
note_kept(const esdm_snapshot_info *info, void *user)
{
    bool *kept = user;
    *kept = info->message != NULL && strncmp(info->message, KEPT, sizeof KEPT - 1) == 0;
    return !*kept;
}

/* ---- what is left -------------------------------------------------------------------------- */

typedef struct leftovers {
    const char *base; /* NULL: of all containers */
    uint64_t now_ns, age_ns;
    char **names; /* owned, as their texts are */
    size_t count;
    bool failed;
} leftovers;

static bool
is_older(const leftovers *all, uint64_t modified_ns, uint64_t age_ns)
{
    return all->now_ns >= age_ns && modified_ns <= all->now_ns - age_ns;
}

static bool
note_left(const esdm_container_info *info, void *user)
{
    leftovers *all = user;
    size_t bytes = 0;
    bool elsewhere = false;
    const char *branch = esdm__name_branch(info->name, &bytes);
    if (branch == NULL || !is_left(branch, &elsewhere) ||
        !is_older(all, info->modified_ns,
                  elsewhere && all->age_ns < WEEK_NS ? WEEK_NS : all->age_ns))
        return true;
    if (all->base != NULL &&
        (strlen(all->base) != bytes || memcmp(all->base, info->name, bytes) != 0))
        return true;
    char *copy = strdup(info->name);
    if (copy == NULL || !esdm__array_grow(&all->names, all->count, sizeof *all->names)) {
        free(copy);
        all->failed = true;
        return false;
    }
    all->names[all->count++] = copy;
    return true;
}

static esdm_status
list(esdm_session *session, leftovers *all, esdm_error *err)
{
    /* Branches lie beside their container, in its folder. */
    const char *slash = all->base != NULL ? strrchr(all->base, '/') : NULL;
    char folder[ESDM_CONTAINER_NAME_MAX + 1] = "";
    if (slash != NULL)
        (void) snprintf(folder, sizeof folder, "%.*s", (int) (slash - all->base), all->base);
    esdm_status status =
        esdm_container_list(session, slash != NULL ? folder : NULL, note_left, all, err);
    if (status == ESDM_OK && all->failed)
        status = esdm__error_nomem(err, (all->count + 1) * sizeof *all->names, "branches");
    return status;
}

esdm_status
esdm_gather_left(esdm_session *session, const char *name, uint64_t age_s, esdm_gather_visitor visit,
                 void *user, esdm_error *err)
{
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    leftovers all = {.now_ns = esdm__now_ns(),
                     .age_ns = age_s < UINT64_MAX / SECOND_NS ? age_s * SECOND_NS : UINT64_MAX};
    esdm_status status = ESDM_OK;
    ESDM__NEED(err, session);
    ESDM__NEED(err, visit);
    if (name != NULL) {
        size_t bytes;
        status = esdm__name_normalise(name, normal, err);
        if (status != ESDM_OK)
            return status;
        if (esdm__name_branch(normal, &bytes) != NULL) /* all have their names beside each other */
            normal[bytes] = '\0';
        all.base = normal;
    }
    status = list(session, &all, err);
    bool more = true;
    for (size_t i = 0; i < all.count && status == ESDM_OK && more; i++) {
        bool kept = false;
        esdm_error why = {0};
        esdm_status one = esdm_container_snapshots(session, all.names[i], note_kept, &kept, &why);
        if (one == ESDM_ENOENT) /* another one was quicker */
            continue;
        if (one != ESDM_OK)
            status = esdm__error_set(err, one, "%s", why.message);
        else if (!kept)
            more = visit(all.names[i], user);
    }
    for (size_t i = 0; i < all.count; i++)
        free(all.names[i]);
    free(all.names);
    return status;
}
