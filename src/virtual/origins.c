/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file What members come from: model, member of an ensemble, table, grid. Two that come from
 * different ones are no series, although their times follow each other. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "virtual/parts.h"

/* What an attribute tells. */
typedef enum kind {
    MODEL,       /* another one is another run */
    INSTITUTION, /* another one may have made the scenario of the same model */
    MEMBER,      /* of an ensemble; what has no times is the same for all of them */
    LAYOUT       /* of another one are other variables, but no continuations */
} kind;

/* Of CMIP6, CMIP7, CMIP5, CORDEX and obs4MIPs, in the order in which they are told. Experiments
 * and their parents are none: a scenario continues the historical run. */
static const struct word {
    const char *name;
    kind kind;
} words[] = {
    {"source_id", MODEL},
    {"model_id", MODEL},
    {"institution_id", INSTITUTION},
    {"institute_id", INSTITUTION},
    {"variant_label", MEMBER},
    {"member_id", MEMBER},
    {"realization_index", MEMBER},
    {"initialization_index", MEMBER},
    {"physics_index", MEMBER},
    {"forcing_index", MEMBER},
    {"realization", MEMBER},
    {"initialization_method", MEMBER},
    {"physics_version", MEMBER},
    {"sub_experiment_id", MEMBER},
    {"driving_source_id", MODEL},
    {"driving_model_id", MODEL},
    {"driving_variant_label", MEMBER},
    {"driving_model_ensemble_member", MEMBER},
    {"version_realization", MODEL},
    {"rcm_version_id", MODEL},
    {"domain_id", MODEL},
    {"CORDEX_domain", MODEL},
    {"table_id", LAYOUT},
    {"grid_label", LAYOUT},
};
/* Names up to this length are given in full. */
#define NAME_SHOWN 70u
/* Of more attributes the advice is to let all differ. */
#define LISTED_MOST 4u
#define WORDS       (sizeof words / sizeof *words)
_Static_assert(WORDS == ESDM__ORIGIN_WORDS, "each word has its value");

/* What the site adds to these comes after them: each is as a model. */
static size_t
words_of(const esdm__site *site)
{
    return WORDS + site->nequal;
}

static struct word
word_of(const esdm__site *site, size_t w)
{
    return w < WORDS ? words[w] : (struct word){site->equal[w - WORDS], MODEL};
}

/* ---- one member ----------------------------------------------------------------------------- */

/* Without the blanks around it; of CMIP5 "Table Amon (27 April 2011) a5a1c5" is Amon. */
static void
tidy(const char *name, char *text)
{
    const char *from = text + strspn(text, " \t\n");
    size_t bytes = strlen(from);
    if (strcmp(name, "table_id") == 0 && strncmp(from, "Table ", 6) == 0) {
        from += 6;
        bytes = strcspn(from, " (");
    }
    while (bytes > 0 && strchr(" \t\n", from[bytes - 1]) != NULL)
        bytes--;
    memmove(text, from, bytes);
    text[bytes] = '\0';
}

/* Owned; NULL: it has no such attribute, or an empty one, or several values. */
static char *
value_of(esdm_container *container, const char *name)
{
    esdm_attribute a;
    char text[32];
    double number = 0;
    if (!esdm_attribute_find(esdm_group_attributes(esdm_container_root(container)), name, &a, NULL))
        return NULL;
    char *value = esdm__global_text(container, name);
    if (value == NULL && a.count == 1 && esdm__meaning_is_number(a.type) &&
        esdm_convert(a.type, a.values, ESDM_TYPE_FLOAT64, &number, 1, NULL, NULL) == ESDM_OK) {
        (void) snprintf(text, sizeof text, "%.17g", number);
        value = strdup(text);
    }
    if (value != NULL)
        tidy(name, value);
    if (value != NULL && value[0] == '\0') {
        free(value);
        value = NULL;
    }
    return value;
}

void
esdm__origin_of(esdm_container *container, esdm__origin *ret)
{
    *ret = (esdm__origin){.experiment = value_of(container, "experiment_id"),
                          .frequency = value_of(container, "frequency")};
    const esdm__site *site = container->session->site;
    for (size_t w = 0; w < words_of(site); w++)
        ret->values[w] = value_of(container, word_of(site, w).name);
    if (container->provider != NULL)
        ret->across = esdm__global_text(container, ESDM__ACROSS_ATTRIBUTE);
}

static bool
has_times(esdm_container *container)
{
    for (size_t i = 0; i < container->datasets.count; i++) {
        const esdm_dataset *dataset = container->datasets.items[i];
        esdm__meaning meaning;
        if (esdm__is_coordinate(dataset) && esdm__meaning_of(dataset, &meaning, NULL) == ESDM_OK &&
            meaning.is_time)
            return true;
    }
    return false;
}

void
esdm__origin_of_variables(esdm_container *container, esdm__origin *ret)
{
    bool times = has_times(container);
    esdm__origin_of(container, ret);
    for (size_t w = 0; w < WORDS; w++) { /* those of the site stay */
        if (words[w].kind == LAYOUT || (words[w].kind == MEMBER && !times)) {
            free(ret->values[w]);
            ret->values[w] = NULL;
        }
    }
}

void
esdm__origin_clear(esdm__origin *origin)
{
    for (size_t w = 0; w < WORDS + ESDM__SITE_EQUAL_MOST; w++)
        free(origin->values[w]);
    free(origin->experiment);
    free(origin->frequency);
    free(origin->across);
    *origin = (esdm__origin){0};
}

/* ---- the option ----------------------------------------------------------------------------- */

/* Whether a list "a,b" has a name; "*" has all. */
static bool
is_listed(const char *list, const char *name)
{
    size_t bytes = strlen(name);
    if (list == NULL)
        return false;
    for (const char *at = list; *at != '\0';) {
        size_t n = strcspn(at, ",");
        if ((n == 1 && *at == '*') || (n == bytes && memcmp(at, name, n) == 0))
            return true;
        at += n + (at[n] == ',');
    }
    return false;
}

esdm_status
esdm__across_check(const esdm__site *site, const char *list, esdm_error *err)
{
    for (const char *at = list;;) {
        size_t n = strcspn(at, ",");
        bool known = n == 1 && *at == '*';
        for (size_t w = 0; w < words_of(site) && !known; w++) {
            const char *name = word_of(site, w).name;
            known = strlen(name) == n && memcmp(name, at, n) == 0;
        }
        if (n == 0)
            return esdm__error_set(err, ESDM_EINVAL,
                                   "query: 'across' needs attributes, as in "
                                   "&across=source_id,institution_id, or * for all");
        if (!known)
            return esdm__error_set(err, ESDM_EINVAL,
                                   "query: containers with another '%.*s' join without "
                                   "&across; it is for source_id, variant_label, grid_label and "
                                   "others that an error names",
                                   (int) (n < 60 ? n : 60), at);
        if (at[n] == '\0')
            return ESDM_OK;
        at += n + 1;
    }
}

/* ---- two members ---------------------------------------------------------------------------- */

static bool
differ(const char *a, const char *b)
{
    return a != NULL && b != NULL && strcmp(a, b) != 0;
}

static bool
is_same_model(const esdm__origin *a, const esdm__origin *b)
{
    bool known = false;
    for (size_t w = 0; w < WORDS; w++) {
        bool both =
            strcmp(words[w].name, "source_id") == 0 || strcmp(words[w].name, "model_id") == 0;
        both = both && a->values[w] != NULL && b->values[w] != NULL;
        if (both && strcmp(a->values[w], b->values[w]) != 0)
            return false;
        known = known || both;
    }
    return known;
}

/* Of MPI-ESM1-2-HR one institute made the historical run, and another one its scenarios. */
static bool
disagree(const esdm__origin *a, const esdm__origin *b, size_t w)
{
    return differ(a->values[w], b->values[w]) &&
           !(w < WORDS && words[w].kind == INSTITUTION && differ(a->experiment, b->experiment) &&
             is_same_model(a, b));
}

/* Whether elements of a new dimension may differ in an attribute: models of an ensemble of models
 * have members and grids of their own, but members of an ensemble are one model's. */
static bool
may_differ(const esdm__site *site, const char *ensemble, size_t w)
{
    kind made_of = MEMBER;
    for (size_t k = 0; k < words_of(site); k++) {
        if (strcmp(word_of(site, k).name, ensemble) == 0)
            made_of = word_of(site, k).kind;
    }
    if (strcmp(word_of(site, w).name, ensemble) == 0)
        return true;
    return made_of == MODEL || made_of == INSTITUTION ||
           (made_of == MEMBER && word_of(site, w).kind == MEMBER);
}

static void
put(esdm__buffer *to, const char *text)
{
    esdm__buffer_put(to, text, strlen(text));
}

/* A value as a query says it. */
static void
put_value(esdm__buffer *to, const char *text)
{
    for (; *text != '\0'; text++)
        put(to, *text == '&' ? "%26" : *text == '%' ? "%25" : (char[]){*text, '\0'});
}

/* Both values and what can be done must fit into a message, so of a long name the last part. */
static const char *
short_name(const esdm__virtual *whole, size_t i)
{
    const char *name = whole->members.items[i].name;
    const char *file = strrchr(name, '/');
    return strlen(name) > NAME_SHOWN && file != NULL ? file + 1 : name;
}

/* Whether an attribute must be listed for two members to join. */
static bool
counts(const esdm__site *site, const esdm__question *question, const esdm__origin *a,
       const esdm__origin *b, size_t k)
{
    bool may = question->ensemble != NULL && may_differ(site, question->ensemble, k);
    return (disagree(a, b, k) && !may) || is_listed(question->across, word_of(site, k).name);
}

static esdm_status
refuse(const esdm__virtual *whole, const esdm__question *question, const esdm__origin *origins,
       const size_t two[2], size_t w, esdm_error *err)
{
    const esdm__origin *a = &origins[two[0]];
    const esdm__origin *b = &origins[two[1]];
    const esdm__site *site = whole->members.session->site;
    const struct word word = word_of(site, w);
    esdm__buffer advice = {0};
    size_t listed = 0;
    bool parted = question->parted || question->ensemble != NULL;
    put(&advice, question->ensemble != NULL ? ": they are no ensemble. Say"
                                            : ": they are no series. Say which one is wanted (");
    if (strlen(a->values[w]) < 60) {
        put(&advice, "&");
        put(&advice, word.name);
        put(&advice, "=");
        put_value(&advice, a->values[w]);
    } else {
        put(&advice, word.name);
    }
    put(&advice, " in the query)");
    if (word.kind != LAYOUT && !parted) {
        put(&advice, ", make a dimension of it (&ensemble=");
        put(&advice, word.name);
        put(&advice, ")");
    }
    put(&advice, ", or join them all the same (&across=");
    for (size_t k = 0; k < words_of(site); k++)
        listed += counts(site, question, a, b, k);
    bool all = listed > LISTED_MOST;
    for (size_t k = 0, n = 0; k < words_of(site) && !all; k++)
        if (counts(site, question, a, b, k)) {
            put(&advice, n++ > 0 ? "," : "");
            put(&advice, word_of(site, k).name);
        }
    put(&advice, all ? "*" : "");
    put(&advice, ")");
    (void) !esdm__error_set(err, ESDM_EINVAL, "'%s' has the %s '%.60s' and '%s' '%.60s'",
                            short_name(whole, two[0]), word.name, a->values[w],
                            short_name(whole, two[1]), b->values[w]);
    if (!advice.failed)
        esdm__error_advise(err, whole->said, (const char *) advice.data, advice.bytes);
    esdm__buffer_clear(&advice);
    return ESDM_EINVAL;
}

/* ---- all members ---------------------------------------------------------------------------- */

#define WORDS_MOST (WORDS + ESDM__SITE_EQUAL_MOST)

static void
note_across(esdm__virtual *whole, const bool across[WORDS_MOST])
{
    const esdm__site *site = whole->members.session->site;
    whole->across[0] = '\0';
    for (size_t w = 0; w < words_of(site); w++) {
        if (!across[w] || is_listed(whole->across, word_of(site, w).name))
            continue;
        if (whole->across[0] != '\0')
            strcat(whole->across, ",");
        strcat(whole->across, word_of(site, w).name);
    }
}

esdm_status
esdm__origins_check(esdm__virtual *whole, const esdm__question *question,
                    const esdm__origin *origins, esdm_error *err)
{
    const esdm__site *site = whole->members.session->site;
    size_t first[WORDS_MOST]; /* that has each */
    bool across[WORDS_MOST] = {false};
    for (size_t w = 0; w < WORDS_MOST; w++)
        first[w] = SIZE_MAX;
    for (size_t i = 0; i < whole->members.count; i++) {
        for (size_t w = 0; w < words_of(site); w++) {
            if (is_listed(origins[i].across, word_of(site, w).name))
                across[w] = true;
            if (origins[i].values[w] == NULL)
                continue;
            if (first[w] == SIZE_MAX)
                first[w] = i;
            if ((whole->stacks && question->ensemble != NULL &&
                 may_differ(site, question->ensemble, w)) ||
                !disagree(&origins[first[w]], &origins[i], w))
                continue;
            if (!is_listed(question->across, word_of(site, w).name))
                return refuse(whole, question, origins, (size_t[]){first[w], i}, w, err);
            across[w] = true;
        }
    }
    note_across(whole, across);
    return ESDM_OK;
}
