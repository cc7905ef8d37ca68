/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/packs/taker.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/own_process.h"
#include "base/thread.h"
#include "esdm/float_env.h"
#include "io/packs/handover_wire.h"

/* Who does not take an answer for so long loses the connection. */
#define SEND_TIMEOUT_S 30

typedef struct connection {
    int socket;
    esdm__window window;
} connection;

/* What the thread has is its own until it has ended. */
struct esdm__taker {
    esdm__pack_set *packs;
    int listening;
    int stop; /* eventfd */
    pthread_t thread;
    bool started;
    pid_t process;
    connection *connections;
    struct pollfd *polled; /* `stop`, `listening`, and one for each connection */
    size_t count;
    size_t room;
};

/* ---- answers ------------------------------------------------------------------------------- */

/* false: the other end is gone, or wants no answers. */
static bool
answer(const connection *c, const esdm__handover_answer *a, const char *pack, const char *place)
{
    char texts[ESDM__HANDOVER_MESSAGE_BYTES];
    size_t pack_bytes = strlen(pack) + 1;
    size_t place_bytes = strlen(place) + 1;
    if (pack_bytes + place_bytes > sizeof texts - 1) /* the other end adds a NUL */
        return false;
    memcpy(texts, pack, pack_bytes);
    memcpy(texts + pack_bytes, place, place_bytes);
    return esdm__handover_send(c->socket, a, offsetof(esdm__handover_answer, texts), texts,
                               pack_bytes + place_bytes, -1);
}

static bool
end(const connection *c, esdm_status status, const esdm_error *why)
{
    esdm__handover_answer a = {.kind = ESDM__HANDOVER_END};
    if (status != ESDM_OK)
        a.error = *why;
    a.error.status = status;
    return answer(c, &a, "", "");
}

/* What has become of packs, then the end. */
static bool
end_with_news(const esdm__taker *t, const connection *c, esdm_status status, bool moved,
              const esdm_error *why)
{
    esdm__buffer texts;
    bool sent = true;
    esdm__buffer_init(&texts);
    esdm__pack_set_news(t->packs, &texts);
    sent = !texts.failed;
    for (size_t at = 0; at < texts.bytes && sent;) {
        const char *pack = (const char *) texts.data + at;
        const char *place = pack + strlen(pack) + 1;
        const esdm__handover_answer a = {.kind = ESDM__HANDOVER_NEWS, .lost = place[0] == '\0'};
        sent = answer(c, &a, pack, place);
        at += strlen(pack) + 1 + strlen(place) + 1;
    }
    esdm__buffer_clear(&texts);
    esdm__handover_answer a = {.kind = ESDM__HANDOVER_END, .moved = moved};
    if (status != ESDM_OK)
        a.error = *why;
    a.error.status = status;
    return sent && answer(c, &a, "", "");
}

/* ---- requests ------------------------------------------------------------------------------ */

static bool
append(const esdm__taker *t, const connection *c, const esdm__handover_request *r)
{
    bool allowed[ESDM__SITE_TARGETS_MAX];
    esdm_error why = {0};
    esdm__place place = {0};
    const esdm_iov iov = {c->window.data, (size_t) r->bytes};
    for (size_t i = 0; i < r->targets; i++)
        allowed[i] = esdm__target_set_has(&r->allowed, i);
    const esdm__pack_hint hint = {.behind_bytes = r->behind_bytes,
                                  .allowed = r->restricted ? allowed : NULL,
                                  .cheap = r->cheap,
                                  .copies = r->copies,
                                  .global = r->global};
    esdm_status status = esdm__pack_set_append_for(t->packs, &hint, &iov, 1, &place, &why);
    if (status != ESDM_OK)
        return end(c, status, &why);
    const esdm__handover_answer a = {.kind = ESDM__HANDOVER_END, .position = place.position};
    return answer(c, &a, esdm__place_pack_name(&place), esdm__place_target_name(&place));
}

static bool
publish(const esdm__taker *t, const connection *c, const esdm__handover_request *r)
{
    esdm_error why = {0};
    esdm_status status = esdm__pack_set_publish_for(t->packs, r->durable, &why);
    if (status != ESDM_OK)
        (void) esdm__pack_set_give_up_lost(t->packs);
    return end_with_news(t, c, status, false, &why);
}

/* Pairs of texts as names, which point into them. NULL: no memory, or they are cut off. */
static esdm__pack_name *
names_in(char *texts, size_t bytes, size_t *ret_count)
{
    size_t ends = 0;
    for (size_t i = 0; i < bytes; i++)
        ends += texts[i] == '\0';
    if (bytes == 0 || texts[bytes - 1] != '\0' || ends % 2 != 0)
        return NULL;
    esdm__pack_name *names = malloc(ends / 2 * sizeof *names);
    for (size_t i = 0; names != NULL && i < ends / 2; i++) {
        names[i].target = texts;
        names[i].pack = texts + strlen(texts) + 1;
        texts = (char *) (uintptr_t) names[i].pack + strlen(names[i].pack) + 1;
    }
    *ret_count = ends / 2;
    return names;
}

static bool
make_readable(const esdm__taker *t, const connection *c, const esdm__handover_request *r)
{
    esdm_error why = {0};
    bool moved = false;
    size_t count = 0;
    size_t bytes = (size_t) r->bytes;
    char *texts = malloc(bytes + 1); /* of our own: the other end could change them */
    if (texts != NULL && bytes > 0)
        memcpy(texts, c->window.data, bytes);
    esdm__pack_name *names = texts != NULL ? names_in(texts, bytes, &count) : NULL;
    const esdm__pack_name **list = malloc((count + 1) * sizeof *list);
    for (size_t i = 0; list != NULL && i < count; i++)
        list[i] = &names[i];
    if (texts == NULL || list == NULL || (bytes > 0 && names == NULL))
        why.status = esdm__error_nomem(&why, bytes, "names of packs");
    else
        why.status = esdm__pack_set_make_readable_for(t->packs, bytes > 0 ? list : NULL, count,
                                                      &moved, &why);
    free(list);
    free(names);
    free(texts);
    return end_with_news(t, c, why.status, moved, &why);
}

static bool
greet(const esdm__taker *t, const connection *c, const esdm__handover_request *r)
{
    esdm_error why = {0};
    if (r->targets != esdm__pack_set_owner(t->packs)->session->ntargets)
        why.status = esdm__error_set(&why, ESDM_EINVAL,
                                     "the ranks have different targets: let all of them have the "
                                     "same configuration");
    return end(c, why.status, &why);
}

/* false: the connection is to be closed. */
static bool
serve_one(const esdm__taker *t, connection *c)
{
    esdm__handover_request r;
    int fd = -1;
    ptrdiff_t bytes = esdm__handover_receive(c->socket, &r, sizeof r, &fd);
    bool sound = bytes == (ptrdiff_t) sizeof r && r.form == esdm__handover_form();
    if (bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return true;
    if (fd >= 0)
        sound = esdm__window_take(&c->window, sound ? r.window_bytes : 0, fd) && sound;
    if (!sound || r.bytes > c->window.bytes ||
        (r.kind != ESDM__HANDOVER_HELLO &&
         r.targets != esdm__pack_set_owner(t->packs)->session->ntargets))
        return false;
    switch (r.kind) {
    case ESDM__HANDOVER_HELLO:
        return greet(t, c, &r);
    case ESDM__HANDOVER_APPEND:
        return append(t, c, &r);
    case ESDM__HANDOVER_PUBLISH:
        return publish(t, c, &r);
    case ESDM__HANDOVER_READABLE:
        return make_readable(t, c, &r);
    default:
        return false;
    }
}

/* ---- connections --------------------------------------------------------------------------- */

static bool
make_place(esdm__taker *t)
{
    size_t room = t->room > 0 ? 2 * t->room : 16;
    if (t->count < t->room)
        return true;
    connection *connections = realloc(t->connections, room * sizeof *connections);
    if (connections != NULL)
        t->connections = connections;
    struct pollfd *polled = realloc(t->polled, (room + 2) * sizeof *polled);
    if (polled != NULL)
        t->polled = polled;
    if (connections == NULL || polled == NULL)
        return false;
    t->room = room;
    return true;
}

static void
welcome(esdm__taker *t)
{
    const struct timeval timeout = {.tv_sec = SEND_TIMEOUT_S};
    pid_t peer;
    int fd = esdm__descriptor_keep(accept4(t->listening, NULL, NULL, SOCK_CLOEXEC));
    if (fd < 0) {
        (void) poll(NULL, 0, 10); /* no descriptors are left: not at full speed */
        return;
    }
    if (!esdm__handover_peer(fd, &peer) || !make_place(t)) {
        (void) esdm__descriptor_close(fd);
        return;
    }
    (void) setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
    t->connections[t->count] = (connection){.socket = fd};
    t->polled[t->count + 2] = (struct pollfd){.fd = fd, .events = POLLIN};
    t->count++;
}

static void
drop(esdm__taker *t, size_t i)
{
    (void) esdm__descriptor_close(t->connections[i].socket);
    esdm__window_clear(&t->connections[i].window);
    t->count--;
    t->connections[i] = t->connections[t->count];
    t->polled[i + 2] = t->polled[t->count + 2];
}

static void *
serve(void *argument)
{
    ESDM_FLOAT_ENV_OWN;
    esdm__taker *t = argument;
    for (;;) {
        if (poll(t->polled, (nfds_t) t->count + 2, -1) < 0)
            continue;
        if (t->polled[0].revents != 0)
            return NULL;
        for (size_t i = t->count; i > 0; i--) {
            if (t->polled[i + 1].revents != 0 && !serve_one(t, &t->connections[i - 1]))
                drop(t, i - 1);
        }
        if (t->polled[1].revents != 0)
            welcome(t);
    }
}

esdm_status
esdm__taker_new(const char *name, esdm__pack_set *packs, esdm__taker **ret_taker, esdm_error *err)
{
    esdm__taker *t = calloc(1, sizeof *t);
    if (t == NULL)
        return esdm__error_nomem(err, sizeof *t, "storing for other ranks");
    t->packs = packs;
    t->process = esdm__own_pid();
    t->listening = esdm__handover_listen(name);
    int why = errno;
    t->stop = esdm__descriptor_keep(eventfd(0, EFD_CLOEXEC));
    bool there = make_place(t);
    if (there) {
        t->polled[0] = (struct pollfd){.fd = t->stop, .events = POLLIN};
        t->polled[1] = (struct pollfd){.fd = t->listening, .events = POLLIN};
        esdm__pack_set_serve(packs);
        t->started =
            t->listening >= 0 && t->stop >= 0 && esdm__thread_start(&t->thread, NULL, serve, t);
    }
    if (t->started) {
        *ret_taker = t;
        return ESDM_OK;
    }
    esdm_status status =
        t->listening < 0 ? esdm__error_set_errno(err, why, "listening for other ranks")
                         : esdm__error_set(err, ESDM_ENOMEM,
                                           "no thread can be started that stores for other ranks");
    esdm__taker_free(t);
    return status;
}

void
esdm__taker_free(esdm__taker *t)
{
    const uint64_t one = 1;
    if (t == NULL)
        return;
    if (t->process != esdm__own_pid()) { /* the rest may be half changed */
        (void) esdm__descriptor_close(t->listening);
        (void) esdm__descriptor_close(t->stop);
        free(t);
        return;
    }
    if (t->started) {
        while (write(t->stop, &one, sizeof one) < 0 && errno == EINTR)
            ;
        (void) pthread_join(t->thread, NULL);
    }
    while (t->count > 0)
        drop(t, t->count - 1);
    if (t->listening >= 0)
        (void) esdm__descriptor_close(t->listening);
    if (t->stop >= 0)
        (void) esdm__descriptor_close(t->stop);
    free(t->connections);
    free(t->polled);
    free(t);
}
