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

static bool
add_naming(work *w, const esdm__journal_ref *ref, const char *name, const char *keep_as)
{
    if (!esdm__array_grow(&w->names, w->nnames, sizeof *w->names))
        return false;
    bool named = name != NULL && name[0] != '\0';
    bool keeps = keep_as != NULL && keep_as[0] != '\0';
    naming *one = &w->names[w->nnames++];
    *one = (naming){.time_ns = ref->time_ns,
                    .name = named ? strdup(name) : NULL,
                    .keep_as = keeps ? strdup(keep_as) : NULL};
    memcpy(one->uuid, ref->uuid, sizeof one->uuid);
    return (one->name != NULL) == named && (one->keep_as != NULL) == keeps;
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
        char *name = esdm__journal_text(&record.body);
        char *keep_as = esdm__journal_text(&record.body);
        good = name != NULL && add_naming(w, ref, name, keep_as);
        free(name);
        free(keep_as);
    } else if (status == ESDM_OK) {
        status = esdm__journal_take_commit(&record, &commit, &pages, &why);
        if (status == ESDM_OK) {
            good =
                commit.kind == ESDM_META_UPDATE || add_naming(w, ref, commit.name, commit.keep_as);
            esdm__journal_commit_clear(&commit);
        }
    }
    free(data);
    if (!good || status == ESDM_ENOMEM)
        return esdm__restore_no_memory(err);
    return ESDM_OK; /* replaying counts what is damaged */
}

static int
by_time(const void *a, const void *b)
{
    const naming *x = a;
    const naming *y = b;
    return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

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
    known *before = step->name != NULL ? *holder(w, step->name) : NULL;
    if (before != NULL && before != one) {
        rename_known(w, before, step->keep_as);
        step->keep_as = NULL;
    }
    if (one != NULL) {
        rename_known(w, one, step->name);
        one->nameless = false;
        step->name = NULL;
    }
}

/* Nobody knows what it was called: it gets a name that people see. */
static esdm_status
name_unnamed(work *w, esdm_error *err)
{
    for (size_t i = 0; i < w->count; i++) {
        known *one = &w->all[i];
        char name[sizeof UNNAMED + ESDM__UUID_BYTES];
        if (!one->nameless)
            continue;
        (void) snprintf(name, sizeof name, UNNAMED "%s", one->uuid);
        one->name = strdup(name);
        if (one->name == NULL)
            return esdm__restore_no_memory(err);
        esdm__say(w->r->say, "what container %s was called is not known any more: it is now '%s'",
                  one->uuid, name);
    }
    return ESDM_OK;
}

/* The catalogue has the names of its time; what came later is done once more, in its order. */
esdm_status
esdm__restore_settle_names(work *w, esdm_error *err)
{
    const esdm__restoration *r = w->r;
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < r->scan.nrefs && status == ESDM_OK; i++) {
        const esdm__journal_ref *ref = &r->scan.refs[i];
        bool names = ref->kind == ESDM__JOURNAL_NAME ||
                     (ref->kind == ESDM__JOURNAL_COMMIT && ref->snapshot == 1);
        if (names && ref->time_ns >= w->from_ns)
            status = read_naming(w, ref, err);
    }
    if (w->nnames > 0)
        qsort(w->names, w->nnames, sizeof *w->names, by_time);
    if (status == ESDM_OK && !list_holders(w))
        status = esdm__restore_no_memory(err);
    for (size_t i = 0; i < w->nnames && status == ESDM_OK; i++)
        apply_naming(w, &w->names[i]);
    return status == ESDM_OK ? name_unnamed(w, err) : status;
}
