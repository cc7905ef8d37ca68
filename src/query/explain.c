/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Why a query finds nothing: names that nothing has, and what was perhaps meant. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/hidden_names.h"
#include "base/json.h"
#include "query/query.h"
#include "site/site.h"

/* Containers whose attributes are looked through for names like the one that was said. */
#define CONTAINERS_MOST 200
/* Where questions have a limit: whether there is anything is seen at once, or much is there. */
#define LOOK_MOST_MS 100
/* Containers that are looked at before such a question is asked: most names are those of all. */
#define SAMPLE_MOST 8
/* So many of the names that come first are looked through for them. */
#define SAMPLE_NAMES_MOST 200

typedef struct name_list {
    esdm__buffer bytes; /* one name after the other, each with its NUL */
    size_t count;
    size_t skip; /* bytes of a name that all have */
} name_list;

typedef struct record_list {
    uint64_t records[CONTAINERS_MOST];
    size_t count;
} record_list;

static bool
note_extent(const char *name, void *user)
{
    name_list *list = user;
    const char *end = strchr(name, '\t');
    size_t bytes = end != NULL ? (size_t) (end - name) : strlen(name);
    esdm__buffer_put(&list->bytes, name + list->skip, bytes - list->skip);
    esdm__buffer_put_u8(&list->bytes, 0);
    list->count++;
    return true;
}

static bool
note_attribute(const esdm_meta_attribute *attribute, void *user)
{
    name_list *list = user;
    if (attribute->name[0] == '@')
        return true;
    esdm__buffer_put(&list->bytes, attribute->name, strlen(attribute->name) + 1);
    list->count++;
    return true;
}

static bool
note_record(const char *name, const esdm_meta_container *record, void *user)
{
    record_list *list = user;
    if (name[0] != '/')
        list->records[list->count++] = record->container;
    return list->count < CONTAINERS_MOST;
}

/* The nearest of the names; "" when none is near. */
static void
nearest(const name_list *list, const char *name, char *text, size_t bytes)
{
    const char **known = calloc(list->count + 1, sizeof *known);
    const char *at = (const char *) list->bytes.data;
    text[0] = '\0';
    for (size_t i = 0; known != NULL && !list->bytes.failed && i < list->count; i++) {
        known[i] = at;
        at += strlen(at) + 1;
    }
    const char *found =
        known != NULL && !list->bytes.failed ? esdm__nearest_word(name, known) : NULL;
    if (found != NULL)
        (void) snprintf(text, bytes, "%s", found);
    free(known);
}

static void
nearest_attribute(const esdm_meta_plugin *meta, void *store, const char *name, char *text,
                  size_t bytes)
{
    record_list records = {.count = 0};
    name_list names = {.count = 0};
    esdm__buffer_init(&names.bytes);
    (void) !meta->container_list(store, NULL, note_record, &records, NULL);
    for (size_t i = 0; i < records.count; i++)
        (void) !meta->attributes(store, records.records[i], note_attribute, &names, NULL);
    nearest(&names, name, text, bytes);
    esdm__buffer_clear(&names.bytes);
}

/* Of "@max:tas" the part behind the colon is what may be misspelt. */
static void
nearest_extent(const esdm_meta_plugin *meta, void *store, const char *name, size_t bytes_of_name,
               char *text, size_t bytes)
{
    char prefix[16], said[ESDM_META_EXTENT_NAME_MAX + 1];
    const char *colon = memchr(name, ':', bytes_of_name);
    name_list names = {.count = 0};
    text[0] = '\0';
    if (colon == NULL || (size_t) (colon - name) + 2 > sizeof prefix || meta->extent_names == NULL)
        return;
    names.skip = (size_t) (colon - name) + 1;
    (void) snprintf(prefix, sizeof prefix, "%.*s", (int) names.skip, name);
    (void) snprintf(said, sizeof said, "%.*s", (int) (bytes_of_name - names.skip), colon + 1);
    esdm__buffer_init(&names.bytes);
    (void) !meta->extent_names(store, prefix, note_extent, &names, NULL);
    nearest(&names, said, text, bytes);
    esdm__buffer_clear(&names.bytes);
}

/* ---- what is said --------------------------------------------------------------------------- */

/* Names of some containers. */
typedef struct sample {
    char *names[SAMPLE_MOST]; /* owned */
    size_t count;
    size_t seen; /* names, also those that queries pass by */
    bool taken;
} sample;

typedef struct telling {
    const esdm_meta_plugin *meta;
    void *store;
    bool (*visit)(const char *text, void *user);
    void *user;
    uint32_t most_ms; /* of a question; 0: no limit */
    sample *sample;   /* taken when it is wanted first */
} telling;

static bool
note_name(const char *name, const esdm_meta_container *record, void *user)
{
    sample *s = user;
    (void) record;
    if (!esdm__name_is_hidden(name) && (s->names[s->count] = strdup(name)) != NULL)
        s->count++;
    return s->count < SAMPLE_MOST && ++s->seen < SAMPLE_NAMES_MOST;
}

typedef struct looking {
    const char *variable; /* as of a condition */
    bool any;
} looking;

static bool
note_value(size_t container, const esdm_meta_attribute *attribute, void *user)
{
    looking *l = user;
    (void) container;
    l->any = l->variable == NULL || (l->variable[0] == '\0' && attribute->dataset == 0) ||
             (attribute->dataset_path != NULL && attribute->dataset_path[0] == '/' &&
              strcmp(attribute->dataset_path + 1, l->variable) == 0);
    return !l->any;
}

/* Whether one of some containers has the attribute: no index finds faster what all have. */
static bool
some_have(const telling *t, const esdm_meta_condition *condition)
{
    sample *s = t->sample;
    looking l = {.variable = condition->variable};
    if (s == NULL || t->meta->values == NULL)
        return false;
    if (!s->taken)
        (void) !t->meta->container_list(t->store, NULL, note_name, s, NULL);
    s->taken = true;
    if (s->count == 0)
        return false;
    bool datasets = l.variable == NULL || l.variable[0] != '\0';
    (void) !t->meta->values(t->store, (const char *const *) s->names, s->count,
                            &condition->attribute, 1, datasets, note_value, &l, NULL);
    return l.any;
}

static bool
note_any(const char *container, const char *dataset, void *user)
{
    (void) container;
    (void) dataset;
    *(bool *) user = true;
    return false;
}

/* Whether something meets the condition. @param ret_late nothing yet, and there is much to look
 * at; set where questions have a limit. */
static esdm_status
find_any(const telling *t, const esdm_meta_condition *condition, bool *ret_any, bool *ret_late,
         esdm_error *err)
{
    const esdm_meta_expression one = {
        .conditions = condition, .nconditions = 1, .most_ms = LOOK_MOST_MS};
    if (t->most_ms == 0 || t->meta->find_expression == NULL)
        return t->meta->find(t->store, condition, 1, note_any, ret_any, err);
    esdm_status status = t->meta->find_expression(t->store, &one, note_any, ret_any, err);
    *ret_late |= status == ESDM_ETIMEDOUT && !*ret_any;
    return status == ESDM_ETIMEDOUT ? ESDM_OK : status;
}

/* Of "@max:tas": whether a variable is called so, though nobody knows its range. */
static bool
is_variable(const telling *t, const char *prefix, bool *ret_late)
{
    static const char *const usual[] = {"units", "long_name", "standard_name"};
    char name[ESDM_META_EXTENT_NAME_MAX + 1];
    bool any = false;
    if (strncmp(prefix, "@max:", 5) != 0 && strncmp(prefix, "@min:", 5) != 0)
        return false;
    (void) snprintf(name, sizeof name, "%.*s", (int) strcspn(prefix + 5, "\t"), prefix + 5);
    for (size_t i = 0; i < sizeof usual / sizeof *usual && !any && !*ret_late; i++) {
        esdm_meta_condition has = {
            .variable = name, .attribute = usual[i], .op = ESDM_META_GLOB, .text = "*"};
        (void) !find_any(t, &has, &any, ret_late, NULL);
    }
    return any;
}

static bool
tell_extent(const telling *t, const char *prefix, size_t column)
{
    char text[900], near[300];
    bool late = false;
    bool unknown = is_variable(t, prefix, &late);
    static const struct {
        const char *prefix, *what, *said;
    } kinds[] = {{"@max:", "no variable with a known range is called", "max(%s)"},
                 {"@min:", "no variable with a known range is called", "min(%s)"},
                 {"@length:", "no dimension is called", "length(%s)"},
                 {"@word:", "no title, long name or comment has", "%s"},
                 {"@level_", "no container has", "a vertical axis"},
                 {"@time_", "no container has", "times"},
                 {"@lat_", "no container has", "latitudes"},
                 {"@lon_", "no container has", "longitudes"},
                 {"@grid", "no container has", "a grid that is known"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t skip = strlen(kinds[i].prefix);
        if (strncmp(prefix, kinds[i].prefix, skip) != 0)
            continue;
        bool named = kinds[i].prefix[skip - 1] == ':';
        size_t bytes = strcspn(prefix, "\t");
        near[0] = '\0';
        if (!unknown)
            nearest_extent(t->meta, t->store, prefix, bytes, near, sizeof near);
        int used = snprintf(text, sizeof text, "query, column %zu: %s %s%.*s%s", column,
                            unknown || late ? "nobody knows the range of" : kinds[i].what,
                            named ? "'" : kinds[i].said, named ? (int) (bytes - skip) : 0,
                            prefix + skip, named ? "'" : "");
        if (near[0] != '\0' && used > 0 && (size_t) used < sizeof text)
            (void) snprintf(text + used, sizeof text - (size_t) used, "; did you mean '%s'?", near);
        return t->visit(text, t->user);
    }
    return true;
}

/* What is no attribute, but asked for in another way; NULL: nothing like it. */
static const char *
asked_otherwise(const char *attribute)
{
    static const struct {
        const char *names[8], *how;
    } others[] = {
        {{"time", "date", "year", "month", "day", "period"}, "time overlaps 1990-01 .. 2000-12"},
        {{"lat", "lon", "latitude", "longitude", "bbox", "region", "area"},
         "box overlaps WEST,SOUTH,EAST,NORTH"},
        {{"lev", "level", "plev", "pressure", "depth", "height", "altitude"},
         "level overlaps 500 .. 850 hPa"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        for (size_t k = 0; k < 8 && others[i].names[k] != NULL; k++) {
            if (strcmp(attribute, others[i].names[k]) == 0)
                return others[i].how;
        }
    }
    return NULL;
}

static bool
tell_attribute(const telling *t, const esdm_meta_condition *condition, size_t column)
{
    char text[900], near[300];
    const char *variable = condition->variable;
    const char *how = variable == NULL ? asked_otherwise(condition->attribute) : NULL;
    near[0] = '\0';
    if (how == NULL)
        nearest_attribute(t->meta, t->store, condition->attribute, near, sizeof near);
    int used =
        variable != NULL && variable[0] != '\0'
            ? snprintf(text, sizeof text,
                       "query, column %zu: no variable '%.150s' has an attribute '%.300s'", column,
                       variable, condition->attribute)
            : snprintf(text, sizeof text, "query, column %zu: %s has an attribute '%.300s'", column,
                       variable != NULL ? "no container" : "nothing", condition->attribute);
    if (how != NULL && used > 0 && (size_t) used < sizeof text)
        (void) snprintf(text + used, sizeof text - (size_t) used, "; did you mean '%s'?", how);
    if (near[0] != '\0' && used > 0 && (size_t) used < sizeof text)
        (void) snprintf(text + used, sizeof text - (size_t) used,
                        strcmp(near, condition->attribute) == 0 ? "; others have it"
                                                                : "; did you mean '%s'?",
                        near);
    return t->visit(text, t->user);
}

static bool
same_name(const esdm_meta_condition *a, const esdm_meta_condition *b)
{
    if (strcmp(a->attribute, b->attribute) != 0 || (a->variable == NULL) != (b->variable == NULL))
        return false;
    return a->variable == NULL || strcmp(a->variable, b->variable) == 0;
}

static bool
name_equals(const char *name, void *user)
{
    const char **wanted = user;
    if (strcmp(name, *wanted) == 0)
        *wanted = NULL;
    return *wanted != NULL;
}

/* Whether some container, or some variable, has the name of a condition. */
static esdm_status
is_known(const telling *t, const esdm_meta_condition *condition, bool *ret_known, esdm_error *err)
{
    esdm_meta_condition any = {.variable = condition->variable,
                               .attribute = condition->attribute,
                               .op = ESDM_META_GLOB,
                               .text = "*"};
    const char *wanted = condition->attribute;
    esdm_status status = ESDM_OK;
    bool late = false;
    *ret_known = false;
    if (!esdm_meta_is_extent(wanted))
        *ret_known = some_have(t, &any);
    if (!esdm_meta_is_extent(wanted) && !*ret_known)
        status = find_any(t, &any, ret_known, &late, err);
    *ret_known |= late;
    if (!esdm_meta_is_extent(wanted))
        return status;
    status = t->meta->extent_names(t->store, wanted, name_equals, (void *) &wanted, err);
    *ret_known = wanted == NULL;
    return status;
}

static esdm_status
tell_unknown(const telling *t, const esdm__query *query,
             bool (*visit)(const esdm_meta_condition *condition, size_t column, void *user),
             void *user, esdm_error *err)
{
    for (size_t i = 0; i < query->nconditions; i++) {
        bool before = false, known = false;
        const esdm_meta_condition *condition = &query->conditions[i];
        for (size_t j = 0; j < i && !before; j++)
            before = same_name(&query->conditions[j], condition);
        /* Places of views ask for it, whether or not there are saved queries. */
        if (before || strcmp(condition->attribute, ESDM__SAVED_ATTRIBUTE) == 0)
            continue;
        esdm_status status = is_known(t, condition, &known, err);
        if (status != ESDM_OK)
            return status;
        if (!known && !visit(condition, query->columns[i], user))
            break;
    }
    return ESDM_OK;
}

esdm_status
esdm__query_unknown(const esdm_meta_plugin *meta, void *store, const esdm__query *query,
                    bool (*visit)(const esdm_meta_condition *condition, size_t column, void *user),
                    void *user, esdm_error *err)
{
    const telling t = {.meta = meta, .store = store, .most_ms = query->most_ms};
    return tell_unknown(&t, query, visit, user, err);
}

static bool
tell_condition(const esdm_meta_condition *condition, size_t column, void *user)
{
    const telling *t = user;
    return esdm_meta_is_extent(condition->attribute) ? tell_extent(t, condition->attribute, column)
                                                     : tell_attribute(t, condition, column);
}

esdm_status
esdm__query_explain(const esdm_meta_plugin *meta, void *store, const esdm__query *query,
                    bool (*visit)(const char *text, void *user), void *user, esdm_error *err)
{
    /* A hint is not worth the time of a question: what takes long is there. */
    sample s = {.count = 0};
    telling t = {meta, store, visit, user, LOOK_MOST_MS, &s};
    bool more = true;
    for (size_t i = 0; i < query->nopens && more; i++) {
        if (!query->opens[i].found)
            more = tell_extent(&t, query->opens[i].prefix, query->opens[i].name_column);
    }
    esdm_status status = more ? tell_unknown(&t, query, tell_condition, &t, err) : ESDM_OK;
    for (size_t i = 0; i < s.count; i++)
        free(s.names[i]);
    return status;
}
