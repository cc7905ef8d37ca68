/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/packs/handover.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/own_process.h"
#include "io/packs/handover_wire.h"
#include "io/session/pool.h"

/* One fills memory while the other one's is stored. */
#define CHANNELS 2u
/* Memory grows by such steps. */
#define STEP_BYTES (UINT64_C(1) << 20)
/* How often a silent process is looked for. */
#define LOOK_MS 1000

/* A connection. */
typedef struct channel {
    struct channel *next;
    int socket; /* -1: broken */
    pid_t peer;
    esdm__window window;
} channel;

/* Where something was handed over to: stays as long as its esdm__handover. */
typedef struct handed {
    struct handed *next;
    const char *place; /* in `pack`, behind its NUL */
    char pack[];
} handed;

struct esdm__handover {
    const esdm__pack_owner *owner;
    char name[ESDM__HANDOVER_NAME_BYTES];
    int rank;
    unsigned timeout_s;
    pid_t process;
    atomic_bool gone;              /* nobody stores for this rank any more */
    atomic_uint_fast64_t appended; /* blobs */
    atomic_uint_fast64_t asked;    /* of these, before the last publishing that went well */
    atomic_uint_fast64_t done;     /* of these, committed */
    pthread_mutex_t lock;          /* guards what follows; a leaf lock */
    pthread_cond_t returned;       /* a channel was given back */
    channel *idle;
    unsigned channels; /* idle ones, and those in use */
    handed *packs;
    handed *lost; /* what is lost of them, and maybe of others */
};

/* ---- failures ------------------------------------------------------------------------------ */

static esdm_status
fail_gone(esdm__handover *h, esdm_error *err)
{
    atomic_store(&h->gone, true);
    return esdm__error_set(err, ESDM_EIO,
                           "rank %d, which stores for this one (\"ranks\" of the site), has ended "
                           "or closed the container: what it had and was not committed is to be "
                           "written again",
                           h->rank);
}

static esdm_status
fail_late(const esdm__handover *h, esdm_error *err)
{
    return esdm__error_set(err, ESDM_ETIMEDOUT,
                           "rank %d, which stores for this one, has not answered for %u s "
                           "(\"timeout\" in \"ranks\" of the site)",
                           h->rank, h->timeout_s);
}

static esdm_status
fail_errno(esdm__handover *h, const char *what, esdm_error *err)
{
    int why = errno;
    if (why == EPIPE || why == ECONNRESET || why == ECONNREFUSED || why == ENOENT)
        return fail_gone(h, err);
    if (why == EAGAIN || why == ETIMEDOUT)
        return fail_late(h, err);
    return esdm__error_set_errno(err, why, "%s rank %d, which stores for this one", what, h->rank);
}

/* ---- messages ------------------------------------------------------------------------------ */

/* Until something has arrived. Sockets of a process that ends are closed, unless a child of it has
 * them. */
static esdm_status
wait_for_message(esdm__handover *h, const channel *c, esdm_error *err)
{
    for (unsigned waited = 0; waited < h->timeout_s; waited++) {
        struct pollfd of = {.fd = c->socket, .events = POLLIN};
        int ready = poll(&of, 1, LOOK_MS);
        if (ready > 0)
            return ESDM_OK;
        if (ready == 0 && c->peer > 0 && kill(c->peer, 0) != 0 && errno == ESRCH)
            return fail_gone(h, err);
        if (ready < 0 && errno == EINTR)
            waited -= waited > 0;
        else if (ready < 0)
            return fail_errno(h, "waiting for", err);
    }
    return fail_late(h, err);
}

static esdm_status
receive(esdm__handover *h, const channel *c, esdm__handover_answer *answer, esdm_error *err)
{
    const size_t least = offsetof(esdm__handover_answer, texts);
    int fd = -1;
    esdm_status status = wait_for_message(h, c, err);
    if (status != ESDM_OK)
        return status;
    ptrdiff_t bytes = esdm__handover_receive(c->socket, answer, sizeof *answer - 1, &fd);
    if (fd >= 0)
        (void) close(fd);
    if (bytes < 0)
        return fail_errno(h, "hearing from", err);
    if (bytes == 0)
        return fail_gone(h, err);
    if ((size_t) bytes < least)
        return esdm__error_set(err, ESDM_EIO,
                               "rank %d, which stores for this one, sends what "
                               "cannot be understood",
                               h->rank);
    memset((char *) answer + bytes, 0, sizeof *answer - (size_t) bytes); /* texts end */
    return ESDM_OK;
}

/* ---- what is known of packs ---------------------------------------------------------------- */

static handed *
find(handed *list, const char *pack, const char *place)
{
    while (list != NULL &&
           (strcmp(list->pack, pack) != 0 || (place != NULL && strcmp(list->place, place) != 0)))
        list = list->next;
    return list;
}

/* NULL: no memory. */
static const handed *
enter(esdm__handover *h, handed **list, const char *pack, const char *place)
{
    size_t pack_bytes = strlen(pack) + 1;
    size_t place_bytes = strlen(place) + 1;
    (void) pthread_mutex_lock(&h->lock);
    handed *one = find(*list, pack, place);
    if (one == NULL && (one = malloc(sizeof *one + pack_bytes + place_bytes)) != NULL) {
        memcpy(one->pack, pack, pack_bytes);
        memcpy(one->pack + pack_bytes, place, place_bytes);
        one->place = one->pack + pack_bytes;
        one->next = *list;
        *list = one;
    }
    (void) pthread_mutex_unlock(&h->lock);
    return one;
}

static bool
is_in(esdm__handover *h, handed *const *list, const char *pack)
{
    (void) pthread_mutex_lock(&h->lock);
    bool found = find(*list, pack, NULL) != NULL;
    (void) pthread_mutex_unlock(&h->lock);
    return found;
}

static void
free_list(handed *list)
{
    while (list != NULL) {
        handed *one = list;
        list = one->next;
        free(one);
    }
}

/* ---- one request --------------------------------------------------------------------------- */

static void
break_channel(channel *c)
{
    if (c->socket >= 0)
        (void) esdm__descriptor_close(c->socket);
    c->socket = -1;
}

/* What is said about a pack beside the answer. @param why why something that is needed is lost. */
static esdm_status
hear_news(esdm__handover *h, const esdm__handover_answer *news, esdm_error *why, esdm_error *err)
{
    const esdm__pack_owner *owner = h->owner;
    const char *place = news->texts + strlen(news->texts) + 1;
    if (!is_in(h, &h->packs, news->texts))
        return ESDM_OK;
    if (!news->lost)
        return esdm__pack_tell_moved(owner, news->texts, place, err);
    if (enter(h, &h->lost, news->texts, "") == NULL)
        return esdm__error_nomem(err, sizeof(handed), "what is lost");
    if (owner->needed == NULL || owner->needed(owner->user, news->texts))
        why->status = esdm__error_set(
            why, ESDM_EIO, "a pack in which rank %d stored for this one is lost", h->rank);
    return ESDM_OK;
}

/* @param fd memory that goes along, and is closed; -1: none.
 * @return failures of the connection, which is broken then, and of what was asked. */
static esdm_status
ask(esdm__handover *h, channel *c, const esdm__handover_request *request, int fd,
    esdm__handover_answer *answer, esdm_error *err)
{
    esdm_error lost = {0};
    esdm_status news = ESDM_OK;
    bool sent = esdm__handover_send(c->socket, request, sizeof *request, NULL, 0, fd);
    esdm_status status = sent ? ESDM_OK : fail_errno(h, "asking", err);
    if (fd >= 0)
        (void) close(fd);
    do {
        if (status == ESDM_OK)
            status = receive(h, c, answer, err);
        if (status == ESDM_OK && answer->kind == ESDM__HANDOVER_NEWS && news == ESDM_OK)
            news = hear_news(h, answer, &lost, err);
    } while (status == ESDM_OK && answer->kind != ESDM__HANDOVER_END);
    if (status != ESDM_OK) {
        break_channel(c);
        return status;
    }
    if (news != ESDM_OK)
        return news;
    if (answer->error.status == ESDM_OK)
        answer->error = lost;
    if (answer->error.status != ESDM_OK && err != NULL)
        *err = answer->error;
    return answer->error.status == ESDM_OK || lost.status != ESDM_OK
               ? answer->error.status
               : esdm__error_prefix(err, answer->error.status, "rank %d, which stores for this one",
                                    h->rank);
}

static esdm__handover_request
request_of(const esdm__handover *h, esdm__handover_kind kind)
{
    return (esdm__handover_request){
        .kind = kind, .form = esdm__handover_form(), .targets = h->owner->session->ntargets};
}

/* ---- connections --------------------------------------------------------------------------- */

static esdm_status
connect_channel(esdm__handover *h, channel *c, esdm_error *err)
{
    esdm__handover_answer answer;
    const esdm__handover_request hello = request_of(h, ESDM__HANDOVER_HELLO);
    c->socket = esdm__handover_connect(h->name, h->timeout_s);
    if (c->socket < 0)
        return fail_errno(h, "connecting to", err);
    if (!esdm__handover_peer(c->socket, &c->peer)) {
        break_channel(c);
        return esdm__error_set(err, ESDM_EACCES,
                               "the process that answers as rank %d is another user's", h->rank);
    }
    return ask(h, c, &hello, -1, &answer, err);
}

/* A channel of one's own. */
static esdm_status
take(esdm__handover *h, channel **ret_channel, esdm_error *err)
{
    (void) pthread_mutex_lock(&h->lock);
    while (h->idle == NULL && h->channels == CHANNELS)
        (void) pthread_cond_wait(&h->returned, &h->lock);
    channel *c = h->idle;
    if (c != NULL)
        h->idle = c->next;
    else
        h->channels++;
    (void) pthread_mutex_unlock(&h->lock);
    if (c == NULL && (c = calloc(1, sizeof *c)) != NULL)
        c->socket = -1;
    *ret_channel = c;
    if (c == NULL)
        return esdm__error_nomem(err, sizeof *c, "a connection to another rank");
    return c->socket >= 0 ? ESDM_OK : connect_channel(h, c, err);
}

/* A broken one goes. NULL: there was no memory for it. */
static void
give_back(esdm__handover *h, channel *c)
{
    bool broken = c == NULL || c->socket < 0;
    if (broken && c != NULL) {
        esdm__window_clear(&c->window);
        free(c);
    }
    (void) pthread_mutex_lock(&h->lock);
    if (broken) {
        h->channels--;
    } else {
        c->next = h->idle;
        h->idle = c;
    }
    (void) pthread_cond_signal(&h->returned);
    (void) pthread_mutex_unlock(&h->lock);
}

/* Memory for so many bytes. @param ret_fd what the other end must get; -1: nothing. */
static bool
make_room(channel *c, uint64_t bytes, esdm__handover_request *request, int *ret_fd)
{
    *ret_fd = -1;
    if (c->window.bytes >= bytes)
        return true;
    uint64_t room = (bytes + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;
    if (!esdm__window_make(&c->window, room, ret_fd))
        return false;
    request->window_bytes = room;
    return true;
}

esdm_status
esdm__handover_new(const esdm__handover_to *to, const esdm__pack_owner *owner,
                   esdm__handover **ret_handover, esdm_error *err)
{
    esdm__handover *h = calloc(1, sizeof *h);
    channel *c = NULL;
    if (h == NULL)
        return esdm__error_nomem(err, sizeof *h, "a connection to another rank");
    h->owner = owner;
    h->rank = to->rank;
    h->timeout_s = to->timeout_s;
    h->process = esdm__own_pid();
    memcpy(h->name, to->name, strlen(to->name) + 1);
    (void) pthread_mutex_init(&h->lock, NULL);
    (void) pthread_cond_init(&h->returned, NULL);
    esdm_status status = take(h, &c, err);
    give_back(h, c);
    if (status == ESDM_OK)
        *ret_handover = h;
    else
        esdm__handover_free(h);
    return status;
}

void
esdm__handover_free(esdm__handover *h)
{
    if (h == NULL)
        return;
    while (h->idle != NULL) {
        channel *c = h->idle;
        h->idle = c->next;
        break_channel(c);
        esdm__window_clear(&c->window);
        free(c);
    }
    free_list(h->packs);
    free_list(h->lost);
    if (h->process == esdm__own_pid()) {
        (void) pthread_cond_destroy(&h->returned);
        (void) pthread_mutex_destroy(&h->lock);
    }
    free(h);
}

/* ---- appending ----------------------------------------------------------------------------- */

static esdm__handover_request
append_request(const esdm__handover *h, const esdm__pack_hint *hint, uint64_t bytes)
{
    esdm__handover_request request = request_of(h, ESDM__HANDOVER_APPEND);
    request.bytes = bytes;
    request.behind_bytes = hint->behind_bytes;
    request.copies = hint->copies;
    request.cheap = hint->cheap;
    request.global = hint->global;
    request.restricted = hint->allowed != NULL;
    for (size_t i = 0; hint->allowed != NULL && i < request.targets; i++) {
        if (hint->allowed[i])
            esdm__target_set_add(&request.allowed, i);
    }
    return request;
}

static esdm_status
append_by(esdm__handover *h, channel *c, esdm__handover_request *request, const esdm_iov *iov,
          size_t niov, bool *ret_taken, esdm__place *ret_place, esdm_error *err)
{
    esdm__handover_answer answer;
    int fd = -1;
    uint8_t *at;
    if (!make_room(c, request->bytes, request, &fd))
        return ESDM_OK;
    at = c->window.data;
    for (size_t i = 0; i < niov; i++) {
        if (iov[i].bytes > 0)
            memcpy(at, iov[i].data, iov[i].bytes);
        at += iov[i].bytes;
    }
    *ret_taken = true;
    /* Before it can be stored: whoever publishes asks for it. */
    (void) atomic_fetch_add(&h->appended, 1u);
    esdm_status status = ask(h, c, request, fd, &answer, err);
    if (status != ESDM_OK)
        return status;
    const handed *where =
        enter(h, &h->packs, answer.texts, answer.texts + strlen(answer.texts) + 1);
    if (where == NULL)
        return esdm__error_nomem(err, sizeof *where, "where a fragment lies");
    *ret_place =
        (esdm__place){.places = where->place, .handed = where->pack, .position = answer.position};
    return ESDM_OK;
}

esdm_status
esdm__handover_append(esdm__handover *h, const esdm__pack_hint *hint, const esdm_iov *iov,
                      size_t niov, bool *ret_taken, esdm__place *ret_place, esdm_error *err)
{
    uint64_t bytes = 0;
    *ret_taken = false;
    for (size_t i = 0; i < niov; i++)
        bytes += iov[i].bytes;
    if (atomic_load(&h->gone) || bytes == 0 || bytes > ESDM__HANDOVER_WINDOW_MOST)
        return ESDM_OK;
    channel *c = NULL;
    esdm_error why = {0};
    esdm__handover_request request = append_request(h, hint, bytes);
    esdm__pool_wait_begin(h->owner->session->pool);
    why.status = take(h, &c, &why);
    if (why.status == ESDM_OK)
        why.status = append_by(h, c, &request, iov, niov, ret_taken, ret_place, &why);
    else
        *ret_taken = why.status != ESDM_ENOMEM;
    give_back(h, c);
    esdm__pool_wait_end(h->owner->session->pool);
    if (why.status != ESDM_OK && atomic_load(&h->gone)) /* it cannot be lost once more */
        *ret_taken = false;
    if (!*ret_taken)
        return ESDM_OK;
    if (why.status != ESDM_OK && err != NULL)
        *err = why;
    return why.status;
}

/* Whether something that is to be committed was handed over to a rank that does not store any
 * more. */
static bool
needs_what_is_gone(esdm__handover *h)
{
    const esdm__pack_owner *owner = h->owner;
    (void) pthread_mutex_lock(&h->lock);
    const handed *one = h->packs; /* more come before it, and none goes */
    (void) pthread_mutex_unlock(&h->lock);
    while (one != NULL && owner->needed != NULL && !owner->needed(owner->user, one->pack))
        one = one->next;
    return one != NULL;
}

/* ---- publishing ---------------------------------------------------------------------------- */

/* @param names of `names_bytes` go along; NULL: none. */
static esdm_status
ask_for_all(esdm__handover *h, esdm__handover_request *request, const void *names, bool *ret_moved,
            esdm_error *err)
{
    channel *c = NULL;
    int fd = -1;
    esdm__handover_answer answer = {0};
    *ret_moved = false;
    if (h->process != esdm__own_pid())
        return esdm__error_set(
            err, ESDM_EINVAL, "the container was opened before fork(): open it again in the child");
    if (atomic_load(&h->gone))
        return needs_what_is_gone(h) ? fail_gone(h, err) : ESDM_OK;
    esdm__pool_wait_begin(h->owner->session->pool);
    esdm_status status = take(h, &c, err);
    if (status == ESDM_OK && request->bytes > 0 && !make_room(c, request->bytes, request, &fd))
        status = esdm__error_nomem(err, (size_t) request->bytes, "names of packs");
    if (status == ESDM_OK) {
        if (request->bytes > 0)
            memcpy(c->window.data, names, (size_t) request->bytes);
        status = ask(h, c, request, fd, &answer, err);
    }
    give_back(h, c);
    esdm__pool_wait_end(h->owner->session->pool);
    *ret_moved = answer.moved;
    return status;
}

esdm_status
esdm__handover_publish(esdm__handover *h, bool durable, esdm_error *err)
{
    bool moved;
    uint64_t appended = atomic_load(&h->appended);
    esdm__handover_request request = request_of(h, ESDM__HANDOVER_PUBLISH);
    request.durable = durable;
    if (appended == atomic_load(&h->done))
        return ESDM_OK;
    esdm_status status = ask_for_all(h, &request, NULL, &moved, err);
    if (status == ESDM_OK)
        atomic_store(&h->asked, appended);
    return status;
}

void
esdm__handover_committed(esdm__handover *h)
{
    atomic_store(&h->done, atomic_load(&h->asked));
}

esdm_status
esdm__handover_make_readable(esdm__handover *h, esdm_error *err)
{
    bool moved;
    esdm__handover_request request = request_of(h, ESDM__HANDOVER_READABLE);
    if (atomic_load(&h->appended) == atomic_load(&h->done))
        return ESDM_OK;
    return ask_for_all(h, &request, NULL, &moved, err);
}

esdm_status
esdm__handover_make_named_readable(esdm__handover *h, const esdm__pack_name *const *names,
                                   size_t count, bool *ret_moved, esdm_error *err)
{
    esdm__buffer texts;
    esdm__handover_request request = request_of(h, ESDM__HANDOVER_READABLE);
    esdm_status status = ESDM_OK;
    *ret_moved = false;
    esdm__buffer_init(&texts);
    for (size_t i = 0; i < count; i++) {
        if (!is_in(h, &h->packs, names[i]->pack))
            continue;
        esdm__buffer_put(&texts, names[i]->target, strlen(names[i]->target) + 1);
        esdm__buffer_put(&texts, names[i]->pack, strlen(names[i]->pack) + 1);
    }
    request.bytes = texts.bytes;
    if (texts.failed || texts.bytes > ESDM__HANDOVER_WINDOW_MOST)
        status = esdm__error_nomem(err, texts.bytes, "names of packs");
    else if (texts.bytes > 0)
        status = ask_for_all(h, &request, texts.data, ret_moved, err);
    esdm__buffer_clear(&texts);
    return status;
}

/* ---- losses -------------------------------------------------------------------------------- */

bool
esdm__handover_has_lost(esdm__handover *h)
{
    (void) pthread_mutex_lock(&h->lock);
    bool any = h->lost != NULL || (atomic_load(&h->gone) && h->packs != NULL);
    (void) pthread_mutex_unlock(&h->lock);
    return any;
}

bool
esdm__handover_is_lost(esdm__handover *h, const char *pack)
{
    return is_in(h, &h->lost, pack) || (atomic_load(&h->gone) && is_in(h, &h->packs, pack));
}
