/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Stubs whose containers are gone for good. */

#include "esdm-gc/search.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "esdm/history.h"

/* ---- what a file says --------------------------------------------------------------------- */

typedef struct reader {
    const unsigned char *at;
    size_t left;
    bool bad;
} reader;

static uint32_t
take_number(reader *r)
{
    r->bad = r->bad || r->left < 4;
    if (r->bad)
        return 0;
    const unsigned char *b = r->at;
    r->at += 4;
    r->left -= 4;
    return (uint32_t) b[0] << 24 | (uint32_t) b[1] << 16 | (uint32_t) b[2] << 8 | b[3];
}

/* Counted, padded to four bytes. Owned. */
static char *
take_text(reader *r)
{
    size_t bytes = take_number(r);
    size_t padded = (bytes + 3) & ~(size_t) 3;
    r->bad = r->bad || padded > r->left || memchr(r->at, '\0', bytes) != NULL;
    if (r->bad)
        return NULL;
    char *text = g_strndup((const char *) r->at, bytes);
    r->at += padded;
    r->left -= padded;
    return text;
}

/* false: no stub has such an attribute. */
static bool
take_attribute(reader *r, gc_stub *stub, bool *ret_noticed)
{
    g_autofree char *name = take_text(r);
    if (take_number(r) != 2) /* NC_CHAR */
        return false;
    g_autofree char *text = take_text(r);
    if (name == NULL || text == NULL)
        return false;
    if (strcmp(name, "esdm_container") == 0 && stub->container == NULL)
        stub->container = g_steal_pointer(&text);
    else if (strcmp(name, "esdm_number") == 0)
        stub->number = g_ascii_strtoull(text, NULL, 16);
    else if (strcmp(name, "esdm_site") == 0 && stub->site == NULL)
        stub->site = g_steal_pointer(&text);
    else if (strcmp(name, "esdm_notice") == 0)
        *ret_noticed = true;
    else
        return strcmp(name, "esdm_inode") == 0 || strcmp(name, "esdm_path") == 0 ||
               strcmp(name, "esdm_version") == 0;
    return true;
}

/* As netcdf-plugin/router/stub.c writes them, and nothing besides: what somebody has added to is
 * his. */
static bool
parse(const unsigned char *bytes, size_t size, gc_stub *ret)
{
    static const unsigned char begin[20] = "CDF\001ESDM\0\0\0\0\0\0\0\0\0\0\0\014";
    bool noticed = false;
    if (size < sizeof begin || memcmp(bytes, begin, sizeof begin) != 0)
        return false;
    reader r = {.at = bytes + sizeof begin, .left = size - sizeof begin};
    uint32_t count = take_number(&r);
    for (uint32_t i = 0; i < count && !r.bad; i++)
        r.bad = !take_attribute(&r, ret, &noticed) || r.bad;
    bool ends = take_number(&r) == 0 && take_number(&r) == 0 && r.left == 0;
    return !r.bad && ends && noticed && ret->container != NULL && ret->number != 0;
}

void
gc_stub_free(gpointer item)
{
    gc_stub *stub = item;
    g_free(stub->path);
    g_free(stub->container);
    g_free(stub->site);
    g_free(stub);
}

static gc_stub *
copy_of(const gc_stub *stub)
{
    gc_stub *copy = g_new(gc_stub, 1);
    *copy = *stub;
    copy->path = g_strdup(stub->path);
    copy->container = g_strdup(stub->container);
    copy->site = g_strdup(stub->site);
    return copy;
}

static guint64
time_of(const struct stat *is)
{
    return (guint64) is->st_mtim.tv_sec * G_GUINT64_CONSTANT(1000000000) +
           (guint64) is->st_mtim.tv_nsec;
}

/* A stub of what a file has; without a path. NULL: it is none. */
static gc_stub *
make_stub(const unsigned char *bytes, size_t size, const struct stat *is)
{
    gc_stub *stub = g_new0(gc_stub, 1);
    stub->modified_ns = time_of(is);
    stub->device = is->st_dev;
    stub->inode = is->st_ino;
    if (!parse(bytes, size, stub))
        g_clear_pointer(&stub, gc_stub_free);
    return stub;
}

/* What a file is at this moment. NULL: no stub. */
static gc_stub *
read_at(int folder, const char *name)
{
    unsigned char bytes[TOOL_STUB_BYTES + 1];
    struct stat is;
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t size = fd >= 0 && fstat(fd, &is) == 0 && S_ISREG(is.st_mode)
                       ? pread(fd, bytes, sizeof bytes, 0)
                       : -1;
    if (fd >= 0)
        (void) close(fd);
    return size > 0 ? make_stub(bytes, (size_t) size, &is) : NULL;
}

void
gc_note_stub(gc_search *s, const char *path, const unsigned char *bytes, size_t size,
             const struct stat *is)
{
    gc_stub *stub = make_stub(bytes, size, is);
    if (stub == NULL)
        return;
    stub->path = g_strdup(path);
    g_ptr_array_add(s->stubs, stub);
}

/* ---- what the site has -------------------------------------------------------------------- */

static bool
note_any(const esdm_former_info *info, void *user)
{
    (void) info;
    *(bool *) user = true;
    return false;
}

/* Whether a former container has the name, or one that was renamed so got. What is not known may
 * be. */
static bool
is_former(esdm_session *session, const char *name)
{
    g_autoptr(GHashTable) asked = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    char now[ESDM_CONTAINER_NAME_MAX + 1];
    char next[ESDM_CONTAINER_NAME_MAX + 1];
    bool kept = false;
    esdm_status status = ESDM_OK;
    (void) g_strlcpy(now, name, sizeof now);
    while (status == ESDM_OK && !kept && g_hash_table_add(asked, g_strdup(now))) {
        status = esdm_former_list(session, now, note_any, &kept, NULL);
        if (status != ESDM_OK)
            return true;
        status = esdm_container_renamed_to(session, now, next, NULL);
        (void) g_strlcpy(now, status == ESDM_OK ? next : "", sizeof now);
    }
    return kept || (status != ESDM_OK && status != ESDM_ENOENT);
}

/* Whether nothing of this site can ever be read by the stub again. Former containers may come back,
 * and who renamed one may do it again. */
static bool
is_gone(const gc_search *s, esdm_session *session, const gc_stub *stub)
{
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    char now[ESDM_CONTAINER_NAME_MAX + 1];
    g_autofree char *number = gc_number(stub->number);
    return !g_hash_table_contains(s->held, number) &&
           esdm_container_normalise(stub->container, name, NULL) == ESDM_OK &&
           !is_former(session, name) &&
           esdm_container_renamed(session, name, now, NULL, NULL) == ESDM_ENOENT;
}

/* Whether another container has the name by now, or none. @param ret_none none has it. */
static bool
lacks_own(const gc_search *s, esdm_session *session, const gc_stub *stub, bool *ret_none)
{
    esdm_container *container;
    *ret_none = !g_hash_table_contains(s->living, stub->container);
    if (*ret_none)
        return true;
    if (esdm_container_open(session, stub->container, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST,
                            &container, NULL) != ESDM_OK)
        return false;
    guint64 number = esdm_container_stub(container, NULL);
    esdm_container_discard(container);
    if (number != 0)
        g_hash_table_add(s->held, gc_number(number));
    return number != 0 && number != stub->number;
}

/* What a catalogue that was brought back does not know may be found yet. */
static bool
is_restored(esdm_session *session)
{
    esdm_restoration restoration;
    return esdm_restoration_end(session, false, &restoration, NULL) != ESDM_ENOENT;
}

static bool
note_last(const esdm_former_info *info, void *user)
{
    gc_search *s = user;
    s->last_ns = MAX(s->last_ns, MAX(info->container.modified_ns, info->time_ns));
    return true;
}

/* A stub has the time of the last commit. One that is younger than all that the catalogue knows may
 * be of a container that an older catalogue, which somebody has copied back by hand, lacks. */
static bool
is_past(const gc_search *s, const gc_stub *stub)
{
    return stub->modified_ns <= s->last_ns;
}

/* Of those that are gone. */
static void
take_gone(gc_search *s, esdm_session *session, const GPtrArray *suspects)
{
    guint beyond = 0;
    const char *first = NULL;
    if (suspects->len > 0 && esdm_former_list(session, NULL, note_last, s, NULL) != ESDM_OK)
        return;
    for (guint i = 0; i < suspects->len; i++) {
        gc_stub *stub = g_ptr_array_index(suspects, i);
        if (!is_gone(s, session, stub))
            continue;
        if (stub->modified_ns > s->newest_ns) {
            s->result->stubs_young++;
        } else if (is_past(s, stub)) {
            g_ptr_array_add(s->result->stubs, copy_of(stub));
        } else if (beyond++ == 0) {
            first = stub->path;
        }
    }
    if (beyond == 0)
        return;
    g_autofree char *printable = tool_printable(first);
    tool_error(
        "%u stub%s without container left, such as '%s', younger than all that the catalogue "
        "knows: if somebody has copied an older catalogue back, esdm-mkfs --restore finds what it "
        "lacks",
        beyond, beyond == 1 ? "" : "s", printable);
}

void
gc_find_gone(gc_search *s, esdm_session *session)
{
    const char *site = esdm_session_site_id(session);
    g_autoptr(GPtrArray) suspects = g_ptr_array_new();
    for (guint i = 0; i < s->stubs->len; i++) {
        gc_stub *stub = g_ptr_array_index(s->stubs, i);
        bool none;
        bool ours = stub->site != NULL && strcmp(stub->site, site) == 0;
        if (!lacks_own(s, session, stub, &none))
            continue;
        if (ours)
            g_ptr_array_add(suspects, stub);
        else
            s->result->stubs_left += none;
    }
    bool unsure = suspects->len > 0 && (s->blind || is_restored(session));
    if (unsure)
        tool_error("stubs without container are left, as %s",
                   s->blind ? "not all containers could be looked at"
                            : "the catalogue was brought back, and may lack containers "
                              "(--restoration-complete)");
    if (!unsure)
        take_gone(s, session, suspects);
}

/* ---- removing ----------------------------------------------------------------------------- */

/* The folder of a path without links, as it was when it was walked: nobody can lead elsewhere.
 * -1: it is not there any more. */
static int
open_folder(const char *path, const char **ret_name)
{
    int folder = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const char *part = path + strspn(path, "/");
    for (const char *slash; folder >= 0 && (slash = strchr(part, '/')) != NULL;
         part = slash + strspn(slash, "/")) {
        g_autofree char *name = g_strndup(part, (gsize) (slash - part));
        int next = openat(folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int why = errno;
        (void) close(folder);
        folder = next;
        errno = why;
    }
    *ret_name = part;
    return folder;
}

int
gc_remove_stub(const gc_stub *stub)
{
    const char *name;
    int folder = open_folder(stub->path, &name);
    if (folder < 0)
        return errno == ENOENT ? 0 : errno;
    gc_stub *now = read_at(folder, name);
    bool same = now != NULL && now->device == stub->device && now->inode == stub->inode &&
                now->modified_ns == stub->modified_ns && now->number == stub->number &&
                strcmp(now->container, stub->container) == 0 &&
                g_strcmp0(now->site, stub->site) == 0;
    int why = same && unlinkat(folder, name, 0) != 0 ? errno : 0;
    if (now != NULL)
        gc_stub_free(now);
    (void) close(folder);
    return same ? why : ESTALE;
}
