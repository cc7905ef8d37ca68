/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/packs/decisions.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "io/session/models.h"
#include "io/session/session.h"

#define FORMAT 1
/* Packs of one writer that are told apart; what comes after is added to the last one of its
 * target. A record has some 200 bytes for each. */
#define PACKS_MAX 512u
/* Writers that never close tell what they have this often. */
#define STORE_SECONDS 60.0
#define WHYS          (ESDM__PLACE_FORBIDDEN + 1u)

/* How one target stood when fragments of a pack were placed. */
typedef struct standing {
    uint64_t whys[WHYS];
    double predicted_s; /* sum of completions there; of fragments with a model */
    uint64_t predicted; /* how many these are */
} standing;

typedef struct noted {
    char pack[96];
    size_t target;
    uint64_t fragments;
    uint64_t bytes;
    double predicted_s;
    double observed_s;
    standing *standings; /* of each target; owned */
} noted;

struct esdm__decisions {
    pthread_mutex_t lock; /* guards everything below; a leaf lock */
    noted *packs;
    size_t count;
    size_t capacity;
    size_t ntargets;
    double stored_at; /* monotonic */
    bool changed;
    esdm_write_counts told; /* of the last record */
};

esdm__decisions *
esdm__decisions_new(void)
{
    esdm__decisions *d = calloc(1, sizeof *d);
    if (d == NULL)
        return NULL;
    (void) pthread_mutex_init(&d->lock, NULL);
    d->stored_at = esdm__seconds_now();
    return d;
}

void
esdm__decisions_free(esdm__decisions *d)
{
    if (d == NULL)
        return;
    for (size_t i = 0; i < d->count; i++)
        free(d->packs[i].standings);
    free(d->packs);
    (void) pthread_mutex_destroy(&d->lock);
    free(d);
}

/* ---- noting ------------------------------------------------------------------------------- */

/* Seconds that can be added up and written: JSON has no infinity, and one would spoil a sum. */
static double
countable(double seconds)
{
    return isfinite(seconds) && seconds > 0 ? seconds : 0;
}

/* With the lock held; the newest packs are at the end. NULL: not there. */
static noted *
find_pack(const esdm__decisions *d, const char *pack)
{
    for (size_t i = d->count; i > 0; i--) {
        if (strcmp(d->packs[i - 1].pack, pack) == 0)
            return &d->packs[i - 1];
    }
    return NULL;
}

/* With the lock held. NULL: no memory, and nothing is noted. */
static noted *
add_pack(esdm__decisions *d, const char *pack, size_t target, size_t ntargets)
{
    if (d->count == PACKS_MAX) {
        for (size_t i = d->count; i > 0; i--) {
            if (d->packs[i - 1].target == target)
                return &d->packs[i - 1];
        }
        return NULL;
    }
    if (d->count == d->capacity) {
        size_t capacity = d->capacity > 0 ? 2 * d->capacity : 8;
        noted *grown = realloc(d->packs, capacity * sizeof *grown);
        if (grown == NULL)
            return NULL;
        d->packs = grown;
        d->capacity = capacity;
    }
    noted *n = &d->packs[d->count];
    *n = (noted){.target = target, .standings = calloc(ntargets, sizeof(standing))};
    if (n->standings == NULL)
        return NULL;
    (void) snprintf(n->pack, sizeof n->pack, "%s", pack);
    d->ntargets = ntargets;
    d->count++;
    return n;
}

void
esdm__decisions_note(esdm__decisions *d, const esdm__decision *decision)
{
    if (d == NULL)
        return;
    (void) pthread_mutex_lock(&d->lock);
    noted *n = find_pack(d, decision->pack);
    if (n == NULL)
        n = add_pack(d, decision->pack, decision->order[decision->chosen].target, decision->count);
    for (size_t i = 0; n != NULL && i < decision->count; i++) {
        const esdm__place_choice *c = &decision->order[i];
        standing *s = &n->standings[c->target];
        bool took = i == decision->chosen && i > 0; /* those before it refused */
        s->whys[i < decision->chosen ? ESDM__PLACE_FAILED : took ? ESDM__PLACE_SOONEST : c->why]++;
        double seconds = countable(c->completion_s);
        s->predicted_s += seconds;
        s->predicted += seconds > 0;
    }
    if (n != NULL) {
        n->fragments++;
        n->bytes += decision->bytes;
        n->predicted_s += countable(decision->predicted_s);
        n->observed_s += countable(decision->observed_s);
        d->changed = true;
    }
    (void) pthread_mutex_unlock(&d->lock);
}

void
esdm__decisions_spent(esdm__decisions *d, const char *pack, double seconds)
{
    if (d == NULL)
        return;
    (void) pthread_mutex_lock(&d->lock);
    noted *n = find_pack(d, pack);
    if (n != NULL)
        n->observed_s += countable(seconds);
    (void) pthread_mutex_unlock(&d->lock);
}

/* ---- the fact ----------------------------------------------------------------------------- */

/* Of each target but the pack's own: [number, reason, mean seconds]. */
static json_t *
put_standings(const noted *n, size_t ntargets)
{
    json_t *list = json_array();
    for (size_t t = 0; t < ntargets && list != NULL; t++) {
        const standing *s = &n->standings[t];
        uint64_t most = 0;
        int why = 0;
        for (unsigned k = 0; k < WHYS; k++) {
            if (s->whys[k] > most) {
                most = s->whys[k];
                why = (int) k;
            }
        }
        double seconds = s->predicted > 0 ? s->predicted_s / (double) s->predicted : 0;
        (void) json_array_append_new(list,
                                     json_pack("[i, f]", most > 0 ? why : -1, countable(seconds)));
    }
    return list;
}

static json_t *
put_all(const esdm__decisions *d, const esdm_session *session, const esdm_write_counts *counts)
{
    json_t *targets = json_array();
    json_t *packs = json_array();
    for (size_t i = 0; i < d->ntargets && targets != NULL; i++)
        (void) json_array_append_new(targets, json_string(session->targets[i].name));
    for (size_t i = 0; i < d->count && packs != NULL; i++) {
        const noted *n = &d->packs[i];
        (void) json_array_append_new(
            packs,
            json_pack("[s, I, I, I, f, f, o?]", n->pack, (json_int_t) n->target,
                      (json_int_t) n->fragments, (json_int_t) n->bytes, countable(n->predicted_s),
                      countable(n->observed_s), put_standings(n, d->ntargets)));
    }
    return json_pack("{s:i, s:[I, I, I], s:o?, s:o?}", "format", FORMAT, "writes",
                     (json_int_t) counts->fragments, (json_int_t) counts->elsewhere,
                     (json_int_t) counts->fewer_copies, "targets", targets, "packs", packs);
}

/* With the lock held. Writes that went as planned are worth a record only beside decisions: sites
 * without a choice have none. */
static bool
has_news(const esdm__decisions *d, const esdm_write_counts *counts)
{
    return d->changed || counts->elsewhere != d->told.elsewhere ||
           counts->fewer_copies != d->told.fewer_copies;
}

void
esdm__decisions_store(esdm__decisions *d, const esdm__pack_owner *owner,
                      const esdm_write_counts *counts, bool rarely)
{
    esdm_session *session = owner->session;
    char name[ESDM_META_FACT_NAME_MAX + 1];
    char *text = NULL;
    double now = esdm__seconds_now();
    if (d == NULL)
        return;
    (void) pthread_mutex_lock(&d->lock);
    if (has_news(d, counts) && (!rarely || now - d->stored_at >= STORE_SECONDS)) {
        json_t *root = put_all(d, session, counts);
        text = root != NULL ? json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;
        json_decref(root);
        d->changed = false;
        d->told = *counts;
        d->stored_at = now;
    }
    (void) pthread_mutex_unlock(&d->lock);
    if (text == NULL)
        return;
    int bytes = snprintf(name, sizeof name, "%s/place/%.16s", owner->uuid, owner->writer);
    if (owner->rank > 0)
        (void) snprintf(name + bytes, sizeof name - (size_t) bytes, "-%x", (unsigned) owner->rank);
    if (session->meta->fact_put(session->store, name, text, NULL) != ESDM_OK) {
        (void) pthread_mutex_lock(&d->lock);
        d->changed = true; /* the next record has it */
        (void) pthread_mutex_unlock(&d->lock);
    }
    free(text);
}

/* ---- reading ------------------------------------------------------------------------------ */

typedef struct visit_packs {
    esdm_decision_visitor visit;
    void *user;
    bool stopped;
    esdm_decision_target targets[256];
} visit_packs;

static const char *
name_at(const json_t *targets, size_t i)
{
    const char *name = json_string_value(json_array_get(targets, i));
    return name != NULL ? name : "?";
}

static void
visit_pack(visit_packs *v, const json_t *names, const json_t *pack)
{
    const json_t *standings = json_array_get(pack, 6);
    esdm_decision_info info = {
        .pack = json_string_value(json_array_get(pack, 0)),
        .target = name_at(names, (size_t) json_integer_value(json_array_get(pack, 1))),
        .fragments = (uint64_t) json_integer_value(json_array_get(pack, 2)),
        .bytes = (uint64_t) json_integer_value(json_array_get(pack, 3)),
        .predicted_s = json_number_value(json_array_get(pack, 4)),
        .observed_s = json_number_value(json_array_get(pack, 5)),
        .targets = v->targets,
    };
    for (size_t t = 0; t < json_array_size(standings) && t < 256; t++) {
        const json_t *s = json_array_get(standings, t);
        json_int_t why = json_integer_value(json_array_get(s, 0));
        if (why < 0 || why >= (json_int_t) WHYS)
            continue;
        v->targets[info.ntargets++] = (esdm_decision_target){
            .target = name_at(names, t),
            .why = esdm__place_why_text((esdm__place_why) why),
            .predicted_s = json_number_value(json_array_get(s, 1)),
        };
    }
    if (info.pack != NULL && !v->visit(&info, v->user))
        v->stopped = true;
}

static bool
visit_fact(const char *name, const char *text, void *user)
{
    visit_packs *v = user;
    json_t *root = esdm__json_read(text);
    const json_t *packs = json_object_get(root, "packs");
    (void) name;
    if (json_integer_value(json_object_get(root, "format")) == FORMAT) {
        for (size_t i = 0; i < json_array_size(packs) && !v->stopped; i++)
            visit_pack(v, json_object_get(root, "targets"), json_array_get(packs, i));
    }
    json_decref(root);
    return !v->stopped;
}

esdm_status
esdm__decisions_visit(esdm_session *session, const char *uuid, esdm_decision_visitor visit,
                      void *user, esdm_error *err)
{
    char prefix[ESDM_META_FACT_NAME_MAX + 1];
    visit_packs *v = calloc(1, sizeof *v);
    if (v == NULL)
        return esdm__error_nomem(err, sizeof *v, "decisions");
    v->visit = visit;
    v->user = user;
    (void) snprintf(prefix, sizeof prefix, "%s/place/", uuid);
    esdm_status status = session->meta->fact_list(session->store, prefix, visit_fact, v, err);
    free(v);
    return status;
}

static bool
add_counts(const char *name, const char *text, void *user)
{
    esdm_write_counts *sum = user;
    json_t *root = esdm__json_read(text);
    const json_t *writes = json_object_get(root, "writes");
    (void) name;
    if (json_integer_value(json_object_get(root, "format")) == FORMAT) {
        sum->fragments += (uint64_t) json_integer_value(json_array_get(writes, 0));
        sum->elsewhere += (uint64_t) json_integer_value(json_array_get(writes, 1));
        sum->fewer_copies += (uint64_t) json_integer_value(json_array_get(writes, 2));
    }
    json_decref(root);
    return true;
}

esdm_status
esdm__decisions_history(esdm_session *session, const char *uuid, esdm_write_counts *ret_counts,
                        esdm_error *err)
{
    char prefix[ESDM_META_FACT_NAME_MAX + 1];
    esdm_write_counts sum = {0};
    (void) snprintf(prefix, sizeof prefix, "%s/place/", uuid);
    esdm_status status = session->meta->fact_list(session->store, prefix, add_counts, &sum, err);
    if (status == ESDM_OK)
        *ret_counts = sum;
    return status;
}
