/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Containers of a question, sorted by the value that they have of an attribute. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/session/pool.h"
#include "query/query.h"
#include "virtual/parts.h"

/* Containers that the store is asked about at once. */
#define BATCH 512u

/* What one container has. */
typedef struct label {
    char *text; /* owned; NULL: none */
    double number;
    bool is_number;
    size_t count; /* of values */
    size_t container;
} label;

typedef struct labelling {
    label *labels; /* owned */
    size_t from;   /* the first of those that are asked about */
    bool nomem;
} labelling;

static bool
note_value(size_t container, const esdm_meta_attribute *attribute, void *user)
{
    labelling *all = user;
    label *l = &all->labels[all->from + container];
    if (attribute->dataset != 0 || l->count++ > 0)
        return true;
    l->text = strdup(attribute->text != NULL ? attribute->text : "");
    l->number = attribute->number;
    l->is_number = attribute->has_number;
    all->nomem = l->text == NULL;
    return !all->nomem;
}

static esdm_status
labels_of_newest(esdm_session *session, const esdm__question *question, labelling *all,
                 esdm_error *err)
{
    const char *const asked[] = {question->ensemble};
    esdm_status status = ESDM_OK;
    for (size_t at = 0; at < question->count && status == ESDM_OK && !all->nomem; at += BATCH) {
        size_t n = question->count - at < BATCH ? question->count - at : BATCH;
        all->from = at;
        status = esdm__query_values(session->meta, session->store,
                                    (const char *const *) question->names + at, n, asked, 1, false,
                                    note_value, all, err);
    }
    return status == ESDM_OK && all->nomem ? esdm__error_nomem(err, BATCH, "attributes") : status;
}

/* A container as it was pinned, or as it is now. */
esdm_status
esdm__question_open(esdm_session *session, const esdm__question *question, size_t i,
                    esdm_container **ret, esdm_error *err)
{
    const esdm__pin *pin = question->pins != NULL ? &question->pins[i] : NULL;
    esdm_status status =
        esdm__io_open(session, question->names[i], ESDM_OPEN_READ,
                      pin != NULL ? pin->snapshot : ESDM_SNAPSHOT_LATEST, ret, err);
    bool lost = status == ESDM_ENOENT && pin != NULL;
    if (status == ESDM_OK && pin != NULL && strcmp(pin->uuid, esdm__io_of(*ret)->uuid) != 0) {
        esdm__container_drop(*ret); /* another one has the name */
        *ret = NULL;
        lost = true;
    }
    return lost ? esdm__pin_lost(question->names[i], pin, err) : status;
}

/* A number as the index has it: %.17g tells all. */
static bool
label_of_attribute(const esdm_attribute *a, label *l)
{
    char text[32];
    l->count = (size_t) a->count;
    if (a->type == ESDM_TYPE_CHAR) {
        l->count = 1;
        l->text = malloc((size_t) a->count + 1); /* they have no NUL */
        if (l->text == NULL)
            return false;
        if (a->count > 0)
            memcpy(l->text, a->values, (size_t) a->count);
        l->text[a->count] = '\0';
    } else if (a->type == ESDM_TYPE_STRING) {
        const char *first = a->count > 0 ? *(const char *const *) a->values : NULL;
        l->text = strdup(first != NULL ? first : "");
    } else if (esdm__meaning_is_number(a->type) && a->count > 0 &&
               esdm_convert(a->type, a->values, ESDM_TYPE_FLOAT64, &l->number, 1, NULL, NULL) ==
                   ESDM_OK) {
        l->is_number = true;
        (void) snprintf(text, sizeof text, "%.17g", l->number);
        l->text = strdup(text);
    } else {
        l->count = 0;
        return true;
    }
    return l->text != NULL;
}

/* As the containers were when they were pinned. */
static esdm_status
labels_of_pinned(esdm_session *session, const esdm__question *question, labelling *all,
                 esdm_error *err)
{
    for (size_t i = 0; i < question->count; i++) {
        esdm_container *container = NULL;
        esdm_attribute a;
        esdm_status status = esdm__question_open(session, question, i, &container, err);
        if (status != ESDM_OK)
            return status;
        bool fits = !esdm_attribute_find(esdm_group_attributes(esdm_container_root(container)),
                                         question->ensemble, &a, NULL) ||
                    label_of_attribute(&a, &all->labels[i]);
        esdm__container_drop(container);
        if (!fits)
            return esdm__error_nomem(err, sizeof(label), "attributes");
    }
    return ESDM_OK;
}

static esdm_status
check_labels(const esdm__question *question, const labelling *all, esdm_error *err)
{
    for (size_t i = 0; i < question->count; i++) {
        const label *l = &all->labels[i];
        if (l->text == NULL)
            return esdm__error_set(err, ESDM_EINVAL,
                                   "'%s' has no attribute '%s', of which the query makes a "
                                   "dimension: '&%s=*' in the query leaves such containers out",
                                   question->names[i], question->ensemble, question->ensemble);
        if (l->count > 1)
            return esdm__error_set(err, ESDM_EINVAL,
                                   "the attribute '%s' of '%s' has %zu values, and a dimension is "
                                   "made of one",
                                   question->ensemble, question->names[i], l->count);
    }
    return ESDM_OK;
}

/* Numbers first; r2i1 before r10i1. */
static int
compare_labels(const label *a, const label *b)
{
    if (a->is_number != b->is_number)
        return a->is_number ? -1 : 1;
    if (a->is_number)
        return a->number < b->number ? -1 : a->number > b->number;
    int natural = strverscmp(a->text, b->text);
    return natural != 0 ? natural : strcmp(a->text, b->text);
}

static int
by_label(const void *a, const void *b)
{
    const label *x = a;
    const label *y = b;
    int order = compare_labels(x, y);
    return order != 0 ? order : x->container < y->container ? -1 : x->container > y->container;
}

esdm_status
esdm__question_part(const esdm__question *question, const size_t *chosen, size_t count,
                    esdm__question *to, esdm_error *err)
{
    to->overlap = question->overlap;
    to->fill_gaps = question->fill_gaps;
    to->parted = question->parted || question->ensemble != NULL;
    to->across = question->across != NULL ? strdup(question->across) : NULL;
    if (question->across != NULL && to->across == NULL)
        return esdm__error_nomem(err, strlen(question->across), "a query");
    to->names = calloc(count, sizeof *to->names);
    to->pins = question->pins != NULL ? calloc(count, sizeof *to->pins) : NULL;
    if (to->names == NULL || (question->pins != NULL && to->pins == NULL))
        return esdm__error_nomem(err, count * sizeof *to->names, "members");
    for (to->count = 0; to->count < count; to->count++) {
        size_t from = chosen[to->count];
        to->names[to->count] = strdup(question->names[from]);
        if (to->names[to->count] == NULL)
            return esdm__error_nomem(err, strlen(question->names[from]), "members");
        if (to->pins != NULL)
            to->pins[to->count] = question->pins[from];
    }
    return ESDM_OK;
}

/* Takes the text of the label. */
static esdm_status
make_bundle(esdm__bundle *bundle, const esdm__question *question, label *labels, size_t count,
            esdm_error *err)
{
    bundle->label = labels[0].text;
    labels[0].text = NULL;
    bundle->number = labels[0].number;
    bundle->is_number = labels[0].is_number;
    size_t *chosen = calloc(count, sizeof *chosen);
    if (chosen == NULL)
        return esdm__error_nomem(err, count * sizeof *chosen, "members");
    for (size_t i = 0; i < count; i++)
        chosen[i] = labels[i].container;
    esdm_status status = esdm__question_part(question, chosen, count, &bundle->question, err);
    free(chosen);
    return status;
}

static esdm_status
bundle_labels(const esdm__question *question, label *labels, esdm__bundles *ret, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    ret->items = calloc(question->count, sizeof *ret->items);
    if (ret->items == NULL)
        return esdm__error_nomem(err, question->count * sizeof *ret->items, "members");
    for (size_t i = 0; i < question->count; i++)
        labels[i].container = i;
    qsort(labels, question->count, sizeof *labels, by_label);
    for (size_t at = 0; at < question->count && status == ESDM_OK;) {
        size_t end = at + 1;
        while (end < question->count && compare_labels(&labels[at], &labels[end]) == 0)
            end++;
        status = make_bundle(&ret->items[ret->count++], question, &labels[at], end - at, err);
        at = end;
    }
    return status;
}

esdm_status
esdm__bundles_by_label(esdm_session *session, const esdm__question *question, esdm__bundles *ret,
                       esdm_error *err)
{
    labelling all = {.labels = calloc(question->count, sizeof *all.labels)};
    if (all.labels == NULL)
        return esdm__error_nomem(err, question->count * sizeof *all.labels, "attributes");
    esdm_status status = question->pins != NULL ? labels_of_pinned(session, question, &all, err)
                                                : labels_of_newest(session, question, &all, err);
    if (status == ESDM_OK)
        status = check_labels(question, &all, err);
    if (status == ESDM_OK)
        status = bundle_labels(question, all.labels, ret, err);
    for (size_t i = 0; i < question->count; i++)
        free(all.labels[i].text);
    free(all.labels);
    return status;
}

/* ---- variables ------------------------------------------------------------------------------ */

typedef struct opening {
    esdm_session *session;
    const esdm__question *question;
    label *labels;
} opening;

static int
by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *) a, *(char *const *) b);
}

/* Names of its data variables, in order, joined by ", ". */
static char *
variables_of(const esdm_container *container)
{
    esdm__buffer text = {0};
    size_t n = 0;
    const char **names = malloc((container->datasets.count + 1) * sizeof *names);
    for (size_t i = 0; names != NULL && i < container->datasets.count; i++)
        if (esdm__is_data(container->datasets.items[i]))
            names[n++] = ((const esdm_dataset *) container->datasets.items[i])->name;
    if (n > 1)
        qsort(names, n, sizeof *names, by_text);
    for (size_t i = 0; i < n; i++) {
        esdm__buffer_put(&text, ", ", i > 0 ? 2 : 0);
        esdm__buffer_put(&text, names[i], strlen(names[i]));
    }
    esdm__buffer_put(&text, "", 1);
    bool failed = names == NULL || text.failed;
    free(names);
    if (!failed)
        return (char *) esdm__buffer_steal(&text, &n);
    esdm__buffer_clear(&text);
    return NULL;
}

static esdm_status
note_variables(void *context, size_t i, esdm_error *err)
{
    const opening *o = context;
    esdm_container *container = NULL;
    esdm_status status = esdm__question_open(o->session, o->question, i, &container, err);
    if (status != ESDM_OK)
        return status;
    o->labels[i].text = variables_of(container);
    esdm__container_drop(container);
    return o->labels[i].text != NULL ? ESDM_OK : esdm__error_nomem(err, sizeof(label), "variables");
}

/* Whether two lists have a name in common. */
static bool
share_a_name(const char *a, const char *b)
{
    for (const char *at = a; *at != '\0'; at += strspn(at, ", ")) {
        size_t n = strcspn(at, ",");
        for (const char *to = b; *to != '\0'; to += strspn(to, ", ")) {
            size_t m = strcspn(to, ",");
            if (n == m && memcmp(at, to, n) == 0)
                return true;
            to += m;
        }
        at += n;
    }
    return false;
}

static bool
are_disjoint(const esdm__bundles *bundles)
{
    for (size_t i = 0; i < bundles->count; i++)
        for (size_t k = 0; k < i; k++)
            if (share_a_name(bundles->items[i].label, bundles->items[k].label))
                return false;
    return true;
}

esdm_status
esdm__bundles_by_variable(esdm_session *session, const esdm__question *question, esdm__bundles *ret,
                          esdm_error *err)
{
    esdm__bundles bundles = {0};
    opening o = {session, question, calloc(question->count, sizeof *o.labels)};
    if (o.labels == NULL)
        return esdm__error_nomem(err, question->count * sizeof *o.labels, "variables");
    esdm_status status = esdm__pool_run(session->pool, question->count, note_variables, &o, err);
    if (status == ESDM_OK)
        status = bundle_labels(question, o.labels, &bundles, err);
    for (size_t i = 0; i < question->count; i++)
        free(o.labels[i].text);
    free(o.labels);
    if (status == ESDM_OK && bundles.count > 1 && are_disjoint(&bundles))
        *ret = bundles;
    else
        esdm__bundles_clear(&bundles);
    return status;
}

void
esdm__bundles_clear(esdm__bundles *bundles)
{
    for (size_t i = 0; i < bundles->count; i++) {
        free(bundles->items[i].label);
        esdm__question_clear(&bundles->items[i].question);
    }
    free(bundles->items);
    *bundles = (esdm__bundles){0};
}
