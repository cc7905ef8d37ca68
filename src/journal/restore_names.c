/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file What the containers of a catalogue that is brought back are called. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "base/error.h"
#include "journal/commit.h"
#include "journal/restore_work.h"

/* The time from which the interrupted call looked at names. */
void
esdm__restore_resume_time(work *w)
{
    const esdm__catalogue *to = &w->r->catalogue;
    char *text = NULL;
    if (to->store == NULL || to->plugin->fact_get == NULL ||
        to->plugin->fact_get(to->store, FACT_FROM, &text, NULL) != ESDM_OK)
        return;
    uint64_t from_ns = strtoull(text, NULL, 10);
    w->from_ns = from_ns < w->from_ns ? from_ns : w->from_ns;
    free(text);
}

bool
esdm__restore_is_wanted(const work *w, const known *one)
{
    return one->nrefs > 0 && (one->base_name != NULL || one->first_ns >= w->from_ns);
}

void
esdm__restore_free_naming(naming *one)
{
    free(one->name);
    free(one->keep_as);
    free(one->from);
    free(one->replaced);
    one->name = one->keep_as = one->from = one->replaced = NULL;
}

/* Takes the texts over; "" becomes NULL. */
static bool
add_naming(work *w, const esdm__journal_ref *ref, naming *one)
{
    char **texts[] = {&one->name, &one->keep_as, &one->from, &one->replaced};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (*texts[i] != NULL && (*texts[i])[0] == '\0') {
            free(*texts[i]);
            *texts[i] = NULL;
        }
    }
    if (!esdm__array_grow(&w->names, w->nnames, sizeof *w->names)) {
        esdm__restore_free_naming(one);
        return false;
    }
    one->time_ns = ref->time_ns;
    memcpy(one->uuid, ref->uuid, sizeof one->uuid);
    w->names[w->nnames++] = *one;
    return true;
}

/* Who had the name makes a step of its own. Takes the texts over. */
static bool
add_replaced(work *w, const esdm__journal_ref *ref, naming *step)
{
    esdm__journal_ref other = *ref;
    naming one = {.name = step->keep_as, .from = strdup(step->name), .precise = true};
    bool good = one.from != NULL && strlen(step->replaced) < sizeof other.uuid;
    step->keep_as = NULL;
    if (good)
        (void) snprintf(other.uuid, sizeof other.uuid, "%s", step->replaced);
    if (good)
        return add_naming(w, &other, &one);
    esdm__restore_free_naming(&one);
    return false;
}

/* Older records end behind the second text. */
static bool
take_name(work *w, const esdm__journal_ref *ref, esdm__cursor *body)
{
    naming one = {.name = esdm__journal_text(body)};
    one.keep_as = esdm__journal_text(body);
    if (!body->failed && esdm__cursor_left(body) > 0) {
        one.from = esdm__journal_text(body);
        one.replaced = esdm__journal_text(body);
        one.precise = true;
    }
    bool good = !body->failed;
    if (good && one.precise && one.name[0] != '\0' && one.replaced[0] != '\0')
        good = add_replaced(w, ref, &one);
    if (good)
        return add_naming(w, ref, &one);
    esdm__restore_free_naming(&one);
    if (body->failed) {
        esdm__say(w->r->say,
                  "a record of the journal about the name of container %s is damaged and left out",
                  ref->uuid);
        return true;
    }
    return false;
}

/* A clone is new, as what a commit made. */
static esdm_status
take_clone_name(work *w, const esdm__journal_ref *ref, const esdm__journal_record *record,
                esdm_error *err)
{
    esdm__journal_cloned clone = {0};
    esdm_status status = esdm__journal_take_clone(record, &clone, NULL, err);
    if (status != ESDM_OK)
        return status;
    naming one = {.name = clone.name, .keep_as = clone.keep_as, .made = !clone.replaces};
    return add_naming(w, ref, &one) ? ESDM_OK : ESDM_ENOMEM;
}

/* What a record says about the name of its container. */
static esdm_status
read_naming(work *w, const esdm__journal_ref *ref, esdm_error *err)
{
    esdm__journal_record record;
    esdm__journal_commit commit;
    esdm__cursor pages;
    uint8_t *data = NULL;
    bool good = true;
    esdm_error why = {0};
    esdm_status status = esdm__scan_load(&w->r->scan, ref, &record, &data, &why);
    if (status == ESDM_OK && ref->kind == ESDM__JOURNAL_NAME) {
        good = take_name(w, ref, &record.body);
    } else if (status == ESDM_OK && ref->kind == ESDM__JOURNAL_CLONE) {
        status = take_clone_name(w, ref, &record, &why);
    } else if (status == ESDM_OK) {
        status = esdm__journal_take_commit(&record, &commit, &pages, &why);
        if (status == ESDM_OK) {
            naming one = {.name = commit.name,
                          .keep_as = commit.keep_as,
                          .made = commit.kind == ESDM_META_CREATE};
            bool names = commit.kind != ESDM_META_UPDATE;
            if (names)
                commit.name = commit.keep_as = NULL;
            good = !names || add_naming(w, ref, &one);
            esdm__journal_commit_clear(&commit);
        }
    }
    free(data);
    if (!good || status == ESDM_ENOMEM)
        return esdm__restore_no_memory(err);
    return ESDM_OK; /* replaying counts what is damaged */
}

/* ---- order ---------------------------------------------------------------------------------- */

static int
by_time(const void *a, const void *b)
{
    const naming *x = a;
    const naming *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return strcmp(x->uuid, y->uuid);
}

/* Places in the list of the steps of one container; the list is by time. */
typedef struct place {
    const char *uuid;
    size_t at;
} place;

static int
by_container(const void *a, const void *b)
{
    const place *x = a;
    const place *y = b;
    int order = strcmp(x->uuid, y->uuid);
    return order != 0 ? order : (x->at > y->at) - (x->at < y->at);
}

/* Moves steps[from] to steps[to], which is before it. */
static void
bring_forward(naming *steps, size_t from, size_t to)
{
    naming one = steps[from];
    memmove(&steps[to + 1], &steps[to], (from - to) * sizeof *steps);
    steps[to] = one;
}

/* The order of the steps of one container, whatever the clocks said: it is made first; each rename
 * begins with the name that the one before gave; a removal is the end, as no container comes back.
 */
static void
order_steps(const work *w, naming *steps, size_t count)
{
    size_t end = count;
    for (size_t i = count; i-- > 0;) {
        if (steps[i].name != NULL)
            continue;
        naming last = steps[i];
        memmove(&steps[i], &steps[i + 1], (end - i - 1) * sizeof *steps);
        steps[--end] = last;
    }
    size_t first = 0;
    for (size_t i = 0; i < end; i++) {
        if (!steps[i].precise)
            bring_forward(steps, i, first++); /* made, or of an older version: by time */
    }
    const known *one = esdm__restore_find(w, steps[0].uuid);
    /* Its name in the catalogue, also when an interrupted call has moved it to one of its own. */
    const char *name = first > 0 ? steps[first - 1].name : one != NULL ? one->name : NULL;
    size_t placed = first;
    while (placed < end && name != NULL) {
        size_t next = placed;
        while (next < end && (steps[next].from == NULL || strcmp(steps[next].from, name) != 0))
            next++;
        if (next == end)
            break;
        bring_forward(steps, next, placed);
        name = steps[placed++].name;
    }
    /* What does not fit was before all that does: the catalogue has it. */
    for (size_t i = placed; i < end; i++)
        bring_forward(steps, i, first++);
}

static bool
order_names(work *w)
{
    place *places = malloc((w->nnames + 1) * sizeof *places);
    naming *steps = malloc((w->nnames + 1) * sizeof *steps);
    for (size_t i = 0; places != NULL && i < w->nnames; i++)
        places[i] = (place){.uuid = w->names[i].uuid, .at = i};
    if (places != NULL && steps != NULL && w->nnames > 0)
        qsort(places, w->nnames, sizeof *places, by_container);
    for (size_t i = 0; places != NULL && steps != NULL && i < w->nnames;) {
        size_t end = i;
        for (; end < w->nnames && strcmp(places[end].uuid, places[i].uuid) == 0; end++)
            steps[end] = w->names[places[end].at];
        if (end - i > 1)
            order_steps(w, &steps[i], end - i);
        i = end;
    }
    /* The container's places in time stay what they are. */
    bool good = places != NULL && steps != NULL;
    for (size_t i = 0; good && i < w->nnames; i++)
        w->names[places[i].at] = steps[i];
    free(places);
    free(steps);
    return good;
}

/* ---- names ---------------------------------------------------------------------------------- */

/* Slot of who had the name last, in a table with room; another one may be in it that has lost the
 * name since. */
static known **
holder(const work *w, const char *name)
{
    size_t at = (size_t) esdm__checksum(name, strlen(name)) & (w->slots - 1);
    while (w->holders[at] != NULL &&
           (w->holders[at]->name == NULL || strcmp(w->holders[at]->name, name) != 0))
        at = (at + 1) & (w->slots - 1);
    return &w->holders[at];
}

static bool
list_holders(work *w)
{
    w->slots = 64;
    while (w->slots < 4 * (w->count + 2 * w->nnames))
        w->slots *= 2;
    w->holders = calloc(w->slots, sizeof(known *));
    for (size_t i = 0; w->holders != NULL && i < w->count; i++) {
        if (w->all[i].name != NULL)
            *holder(w, w->all[i].name) = &w->all[i];
    }
    return w->holders != NULL;
}

static void
rename_known(work *w, known *one, char *name)
{
    free(one->name);
    one->name = name;
    if (name != NULL)
        *holder(w, name) = one;
}

/* Who had the name loses it, or is kept under another one. */
static void
apply_naming(work *w, naming *step)
{
    known *one = esdm__restore_find(w, step->uuid);
    known *before = NULL;
    if (step->name != NULL && !step->precise && !step->made) /* the name of a new one was free */
        before = *holder(w, step->name);
    if (before != NULL && before != one) {
        rename_known(w, before, step->keep_as);
        step->keep_as = NULL;
    }
    if (one != NULL && (one->base_name != NULL || esdm__restore_is_wanted(w, one))) {
        rename_known(w, one, step->name);
        one->nameless = false;
        step->name = NULL;
    }
}

static esdm_status
name_by_uuid(work *w, known *one, esdm_error *err)
{
    char name[sizeof UNNAMED + ESDM__UUID_BYTES];
    (void) snprintf(name, sizeof name, UNNAMED "%s", one->uuid);
    char *copy = strdup(name);
    if (copy == NULL)
        return esdm__restore_no_memory(err);
    rename_known(w, one, copy);
    return ESDM_OK;
}

/* Nobody knows what it was called: it gets a name that people see. */
static esdm_status
name_unnamed(work *w, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < w->count && status == ESDM_OK; i++) {
        known *one = &w->all[i];
        if (!one->nameless)
            continue;
        status = name_by_uuid(w, one, err);
        if (status == ESDM_OK)
            esdm__say(w->r->say,
                      "what container %s was called is not known any more: it is now '%s'",
                      one->uuid, one->name);
    }
    return status;
}

static uint64_t
last_told(const work *w, const known *one)
{
    uint64_t told = one->nrefs > 0 ? w->r->scan.refs[one->first + one->nrefs - 1].time_ns : 0;
    return one->base_name != NULL && one->base.modified_ns > told ? one->base.modified_ns : told;
}

/* Records that are missing may leave a name to two containers: both stay. */
static esdm_status
part_namesakes(work *w, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    memset(w->holders, 0, w->slots * sizeof(known *));
    for (size_t i = 0; i < w->count && status == ESDM_OK; i++) {
        known *one = &w->all[i];
        if (one->name == NULL || (one->base_name == NULL && !esdm__restore_is_wanted(w, one)))
            continue;
        known **slot = holder(w, one->name);
        known *other = *slot;
        if (other == NULL || last_told(w, one) > last_told(w, other))
            *slot = one;
        if (other == NULL)
            continue;
        known *loser = *slot == one ? other : one;
        char *had = loser->name;
        loser->name = NULL;
        status = name_by_uuid(w, loser, err);
        if (status == ESDM_OK)
            esdm__say(w->r->say,
                      "two containers are called '%s', by what is known: the older one is now '%s'",
                      had, loser->name);
        free(had);
    }
    return status;
}

/* Whether a record may name a container. Those that are older than the catalogue are in it, but a
 * clock that is slow may say so of a newer one: what was made later counts whatever its time. */
static bool
names_container(const work *w, const esdm__journal_ref *ref)
{
    const known *one = esdm__restore_find(w, ref->uuid);
    if (ref->kind != ESDM__JOURNAL_NAME && ref->kind != ESDM__JOURNAL_CLONE &&
        (ref->kind != ESDM__JOURNAL_COMMIT || ref->snapshot != 1))
        return false;
    return ref->time_ns >= w->from_ns ||
           (one != NULL && one->base_name == NULL && one->nrefs > 0 && one->first_ns >= w->from_ns);
}

/* The catalogue has the names of its time; what came later is done once more, in its order. */
esdm_status
esdm__restore_settle_names(work *w, esdm_error *err)
{
    const esdm__restoration *r = w->r;
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < r->scan.nrefs && status == ESDM_OK; i++) {
        const esdm__journal_ref *ref = &r->scan.refs[i];
        if (names_container(w, ref))
            status = read_naming(w, ref, err);
    }
    if (w->nnames > 0)
        qsort(w->names, w->nnames, sizeof *w->names, by_time);
    if (status == ESDM_OK && (!order_names(w) || !list_holders(w)))
        status = esdm__restore_no_memory(err);
    for (size_t i = 0; i < w->nnames && status == ESDM_OK; i++)
        apply_naming(w, &w->names[i]);
    if (status == ESDM_OK)
        status = part_namesakes(w, err);
    return status == ESDM_OK ? name_unnamed(w, err) : status;
}
