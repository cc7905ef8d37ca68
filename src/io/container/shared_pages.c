/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Index pages that the ranks of a node have in common. */

#include "io/container/shared_pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/error.h"

/* Reading more than that when a container is opened would take too long. */
#define PAGES_MOST ((size_t) 4096)
#define BYTES_MOST ((size_t) 16 << 20)
#define MARK       UINT64_C(0x65736d7061676573)

/* The memory: this, the entries, their boxes, and the pages' bytes. */
typedef struct head {
    uint64_t mark;
    uint64_t bytes; /* of all */
    uint64_t container;
    uint64_t snapshot;
    uint64_t count;
    atomic_uint_fast64_t users;
} head;

typedef struct entry {
    esdm_meta_page page; /* its box follows from `box` */
    uint64_t box;        /* where it lies, from the beginning of the memory */
    uint64_t data;
    uint64_t bytes; /* 0: the page is not there */
} entry;

struct esdm__shared_pages {
    head *memory;
    size_t bytes;
    pid_t process; /* a forked child is no user */
};

/* A pin of a leader whose handle is closed. */
typedef struct kept_pin {
    esdm__kept kept; /* first */
    esdm__shared_pages *shared;
} kept_pin;

static const entry *
entries_of(const esdm__shared_pages *shared)
{
    return (const entry *) (shared->memory + 1);
}

static void *
at(const esdm__shared_pages *shared, uint64_t position)
{
    return (uint8_t *) shared->memory + position;
}

static void
unmap(esdm__shared_pages *shared)
{
    if (shared->memory != NULL)
        (void) munmap(shared->memory, shared->bytes);
    free(shared);
}

/* ---- making ------------------------------------------------------------------------------- */

/* What goes into the memory. */
typedef struct contents {
    entry *entries;
    esdm__buffer bytes; /* boxes and pages */
    size_t count;
} contents;

static esdm_status
add_page(contents *c, const esdm_session *session, const esdm_meta_page *page, size_t base,
         esdm_error *err)
{
    void *data = NULL;
    size_t bytes = 0;
    entry *e = &c->entries[c->count++];
    *e = (entry){.page = *page, .box = base + c->bytes.bytes};
    e->page.box = NULL;
    esdm__buffer_put(&c->bytes, page->box, (size_t) 2 * page->rank * sizeof *page->box);
    esdm_status status = ESDM_OK;
    if (c->bytes.bytes < BYTES_MOST)
        status = session->meta->page_load(session->store, page->page, &data, &bytes, err);
    if (data != NULL && c->bytes.bytes + bytes <= BYTES_MOST) {
        static const uint64_t padding;
        e->data = base + c->bytes.bytes;
        e->bytes = bytes;
        esdm__buffer_put(&c->bytes, data, bytes);
        esdm__buffer_put(&c->bytes, &padding, (8 - bytes % 8) % 8);
    }
    free(data);
    return status;
}

static esdm_status
collect(contents *c, const esdm_session *session, uint64_t container, uint64_t snapshot,
        esdm_error *err)
{
    esdm__page_list list = {0};
    esdm_status status = esdm__page_list_load(session, container, snapshot, 0, &list, err);
    if (status == ESDM_OK && list.count > PAGES_MOST)
        status = esdm__error_set(err, ESDM_ENOTSUP, "too many index pages to share");
    if (status == ESDM_OK) {
        c->entries = calloc(list.count + 1, sizeof *c->entries);
        if (c->entries == NULL)
            status = esdm__error_nomem(err, list.count * sizeof *c->entries, "index pages");
    }
    size_t base = sizeof(head) + list.count * sizeof(entry);
    for (size_t i = 0; i < list.count && status == ESDM_OK; i++) {
        const esdm_meta_page page = esdm__page_list_at(&list, i);
        status = add_page(c, session, &page, base, err);
    }
    esdm__page_list_clear(&list);
    if (status == ESDM_OK && c->bytes.failed)
        status = esdm__error_nomem(err, c->bytes.bytes, "index pages");
    return status;
}

/* As shm_open() has it, which older systems keep in a library of its own. */
static void
path_of(const char *name, char *path, size_t bytes)
{
    (void) snprintf(path, bytes, "/dev/shm%s", name);
}

/* @param make whether it is made; else joined. @param bytes of what is made. */
static esdm_status
map(const char *name, bool make, size_t bytes, esdm__shared_pages **ret_shared, esdm_error *err)
{
    struct stat found;
    void *memory = MAP_FAILED;
    esdm__shared_pages *shared = calloc(1, sizeof *shared);
    if (shared == NULL)
        return esdm__error_nomem(err, sizeof *shared, "index pages");
    char path[128];
    path_of(name, path, sizeof path);
    int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | (make ? O_CREAT | O_EXCL : 0);
    int fd = open(path, flags, S_IRUSR | S_IWUSR);
    int failure = fd >= 0 ? 0 : errno;
    if (fd >= 0 && make)
        failure = posix_fallocate(fd, 0, (off_t) bytes); /* writing to it cannot fail then */
    if (failure == 0 && !make) {
        failure = fstat(fd, &found) == 0 ? 0 : errno;
        if (failure == 0 &&
            (!S_ISREG(found.st_mode) || found.st_uid != geteuid() || (found.st_mode & 077) != 0))
            failure = EACCES; /* another user's, who was told or has guessed the name */
        bytes = failure == 0 ? (size_t) found.st_size : 0;
        if (failure == 0 && bytes < sizeof(head))
            failure = EINVAL;
    }
    if (failure == 0)
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (failure == 0 && memory == MAP_FAILED)
        failure = errno;
    if (fd >= 0)
        (void) close(fd);
    if (failure != 0) {
        if (fd >= 0 && make)
            (void) unlink(path);
        free(shared);
        return esdm__error_set_errno(err, failure, "shared memory for index pages");
    }
    *shared = (esdm__shared_pages){.memory = memory, .bytes = bytes, .process = getpid()};
    *ret_shared = shared;
    return ESDM_OK;
}

esdm_status
esdm__shared_pages_make(const esdm_session *session, uint64_t container, uint64_t snapshot,
                        const char *name, esdm__shared_pages **ret_shared, esdm_error *err)
{
    contents c = {0};
    esdm__buffer_init(&c.bytes);
    esdm_status status = collect(&c, session, container, snapshot, err);
    size_t entries = c.count * sizeof *c.entries;
    size_t bytes = sizeof(head) + entries + c.bytes.bytes;
    if (status == ESDM_OK)
        status = map(name, true, bytes, ret_shared, err);
    if (status == ESDM_OK) {
        head *h = (*ret_shared)->memory;
        h->mark = MARK;
        h->bytes = bytes;
        h->container = container;
        h->snapshot = snapshot;
        h->count = c.count;
        atomic_store(&h->users, 1u);
        memcpy(h + 1, c.entries, entries);
        if (c.bytes.bytes > 0)
            memcpy((uint8_t *) (h + 1) + entries, c.bytes.data, c.bytes.bytes);
    }
    free(c.entries);
    esdm__buffer_clear(&c.bytes);
    return status;
}

/* Whether all lies in the memory. */
static bool
is_sound(const esdm__shared_pages *shared)
{
    const head *h = shared->memory;
    if (h->mark != MARK || h->bytes != shared->bytes || h->count > PAGES_MOST ||
        shared->bytes < sizeof *h + h->count * sizeof(entry))
        return false;
    for (uint64_t i = 0; i < h->count; i++) {
        const entry *e = &entries_of(shared)[i];
        uint64_t box_bytes = UINT64_C(2) * e->page.rank * sizeof *e->page.box;
        if (e->page.rank > ESDM_MAX_RANK || e->box % 8 != 0 || e->box > h->bytes ||
            box_bytes > h->bytes - e->box || e->data > h->bytes || e->bytes > h->bytes - e->data)
            return false;
    }
    return true;
}

esdm__shared_pages *
esdm__shared_pages_join(const char *name)
{
    esdm__shared_pages *shared = NULL;
    if (map(name, false, 0, &shared, NULL) != ESDM_OK)
        return NULL;
    head *h = shared->memory;
    if (!is_sound(shared)) {
        unmap(shared);
        return NULL;
    }
    atomic_fetch_add(&h->users, 1u);
    return shared;
}

void
esdm__shared_pages_hide(const char *name)
{
    char path[128];
    path_of(name, path, sizeof path);
    (void) unlink(path);
}

/* ---- reading ------------------------------------------------------------------------------ */

bool
esdm__shared_pages_are_of(const esdm__shared_pages *shared, uint64_t container, uint64_t snapshot)
{
    return shared->memory->container == container && shared->memory->snapshot == snapshot;
}

bool
esdm__shared_pages_list(const esdm__shared_pages *shared, uint64_t container, uint64_t snapshot,
                        uint32_t dataset, esdm__page_list *ret_list)
{
    if (!esdm__shared_pages_are_of(shared, container, snapshot))
        return false;
    for (uint64_t i = 0; i < shared->memory->count; i++) {
        esdm_meta_page page = entries_of(shared)[i].page;
        page.box = at(shared, entries_of(shared)[i].box);
        if ((dataset == 0 || page.dataset == dataset) && !esdm__page_list_add(ret_list, &page)) {
            esdm__page_list_clear(ret_list);
            return false;
        }
    }
    return true;
}

bool
esdm__shared_pages_load(const esdm__shared_pages *shared, uint64_t page, void **ret_data,
                        size_t *ret_bytes)
{
    for (uint64_t i = 0; i < shared->memory->count; i++) {
        const entry *e = &entries_of(shared)[i];
        if (e->page.page != page)
            continue;
        void *data = e->bytes > 0 ? malloc((size_t) e->bytes) : NULL;
        if (data == NULL)
            return false;
        memcpy(data, at(shared, e->data), (size_t) e->bytes);
        *ret_data = data;
        *ret_bytes = (size_t) e->bytes;
        return true;
    }
    return false;
}

/* ---- the end ------------------------------------------------------------------------------ */

static void
end_pin(esdm_session *session, esdm__kept *kept)
{
    kept_pin *pin = (kept_pin *) kept;
    const head *h = pin->shared->memory;
    session->meta->unpin(session->store, h->container, h->snapshot);
    unmap(pin->shared);
    free(pin);
}

static bool
is_used(const esdm__kept *kept)
{
    const kept_pin *pin = (const kept_pin *) kept;
    return atomic_load(&pin->shared->memory->users) > 0;
}

/* Takes those off the list that nobody needs any more, and gives them up. */
static void
sweep(esdm_session *session)
{
    esdm__kept *over = NULL;
    (void) pthread_mutex_lock(&session->writer_lock);
    for (esdm__kept **link = &session->kept; *link != NULL;) {
        esdm__kept *kept = *link;
        if (is_used(kept)) {
            link = &kept->next;
            continue;
        }
        *link = kept->next;
        kept->next = over;
        over = kept;
    }
    (void) pthread_mutex_unlock(&session->writer_lock);
    while (over != NULL) {
        esdm__kept *kept = over;
        over = kept->next;
        kept->end(session, kept);
    }
}

void
esdm__shared_pages_end(esdm__shared_pages *shared, esdm_session *session, bool pinned)
{
    if (shared->process != getpid()) {
        unmap(shared);
        return;
    }
    uint64_t container = shared->memory->container;
    uint64_t snapshot = shared->memory->snapshot;
    bool others = atomic_fetch_sub(&shared->memory->users, 1u) > 1;
    kept_pin *pin = pinned && others ? calloc(1, sizeof *pin) : NULL;
    if (pin != NULL) {
        pin->kept.end = end_pin;
        pin->shared = shared;
        (void) pthread_mutex_lock(&session->writer_lock);
        pin->kept.next = session->kept;
        session->kept = &pin->kept;
        (void) pthread_mutex_unlock(&session->writer_lock);
    } else {
        unmap(shared);
        if (pinned)
            session->meta->unpin(session->store, container, snapshot);
    }
    sweep(session);
}
