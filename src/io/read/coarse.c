/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Reading less accurately than data are stored: what `NAME?accuracy=…` asks for. */

#include "io/read/coarse.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/plain_locale.h"
#include "esdm/accuracy_attributes.h"
#include "io/container/accuracy.h"
#include "io/read/read.h"
#include "model/accuracy.h"
#include "model/attribute.h"
#include "model/container.h"

#define SUFFIX "?accuracy="
/* Fragments of a container whose heads are read when it is opened, at most. */
#define ASKED_MOST 64
/* What follows in an error about what is said. */
#define HOW                                                                                        \
    "say '1%%' (of the range of each variable), '0.5K' (variables in these units), 'tas:0.5' or "  \
    "'tas:0.1%%'; several are separated by ','"

const char *
esdm__coarse_is_said(const char *name, char *ret_name)
{
    const char *at = strstr(name, SUFFIX);
    if (at == NULL || at == name)
        return NULL;
    (void) snprintf(ret_name, ESDM_CONTAINER_NAME_MAX + 1, "%.*s", (int) (at - name), name);
    return at + sizeof SUFFIX - 1;
}

/* ---- one item ----------------------------------------------------------------------------- */

typedef struct item {
    char text[ESDM_NAME_MAX + 64];
    const char *variable; /* NULL: all */
    double number;
    const char *rest; /* behind the number */
} item;

static esdm_status
wrong(const item *it, const char *what, esdm_error *err)
{
    return esdm__error_set(err, ESDM_EINVAL, "accuracy '%s': %s; " HOW, it->text, what);
}

static esdm_status
parse_item(const char *text, size_t bytes, item *it, esdm_error *err)
{
    char *end;
    (void) snprintf(it->text, sizeof it->text, "%.*s", (int) bytes, text);
    it->variable = NULL;
    if (bytes >= sizeof it->text)
        return wrong(it, "it is too long", err);
    char *number = it->text;
    char *colon = strrchr(it->text, ':');
    if (colon != NULL) {
        number = colon + 1;
        it->variable = it->text;
    }
    it->number = strtod(number, &end);
    it->rest = end;
    if (end == number || !(it->number > 0) || !isfinite(it->number))
        return wrong(it, "a number greater than 0 is expected", err);
    if (strcmp(end, "%") == 0 && !(it->number < 100))
        return wrong(it, "less than 100 % is expected", err);
    return ESDM_OK;
}

/* Of what is asked. */
typedef enum reader {
    OF_CONTAINER,
    OF_JOINED, /* a virtual one */
    OF_MEMBER  /* of that */
} reader;

/* ---- datasets ----------------------------------------------------------------------------- */

static bool
is_called(const esdm_dataset *dataset, const item *it)
{
    size_t bytes = (size_t) (strrchr(it->text, ':') - it->text);
    char *path = esdm__dataset_path(dataset);
    bool is = strlen(dataset->name) == bytes && memcmp(dataset->name, it->text, bytes) == 0;
    if (path != NULL) {
        const char *own = path[0] == '/' && it->text[0] != '/' ? path + 1 : path;
        is = is || (strlen(own) == bytes && memcmp(own, it->text, bytes) == 0);
    }
    free(path);
    return is;
}

static void
put_text(esdm__buffer *to, const char *text)
{
    esdm__buffer_put(to, text, strlen(text));
}

/* What readers are told; clears the text. */
static esdm_status
put_told(esdm_dataset *dataset, esdm__buffer *text, esdm_error *err)
{
    bool changed;
    esdm_status status =
        text->failed ? esdm__error_nomem(err, 1, "an attribute")
                     : esdm__attribute_put(&dataset->attributes, ESDM_ACCURACY_STORED_ATTRIBUTE,
                                           ESDM_TYPE_CHAR, text->bytes, text->data, &changed, err);
    esdm__buffer_clear(text);
    return status;
}

/* What is told of stored numbers does not hold for those that are read. */
static const char *const untrue[] = {"quantization_maximum_absolute_error",
                                     "quantization_maximum_relative_error", "quantization_nsd",
                                     "quantization_nsb"};

static void
drop_untrue(esdm_dataset *dataset)
{
    for (size_t i = 0; i < sizeof untrue / sizeof untrue[0]; i++)
        esdm__attribute_drop(&dataset->attributes, untrue[i]);
}

/* "ASKED asked for; stored with STATED" */
static esdm_status
put_stored(esdm_dataset *dataset, const esdm_accuracy *asked, const esdm_accuracy *stated,
           bool known, esdm_error *err)
{
    esdm__buffer text;
    esdm__buffer_init(&text);
    esdm__accuracy_put(&text, asked);
    put_text(&text, " asked for; stored ");
    put_text(&text, stated != NULL ? "with " : "without loss");
    if (stated != NULL)
        esdm__accuracy_put(&text, stated);
    if (!known)
        put_text(&text, ", perhaps less accurately before (esdm-stat --accuracy tells)");
    return put_told(dataset, &text, err);
}

/* The largest bound of all fragments, as they are read, in the units of the dataset; INFINITY: some
 * have no absolute one. false: there are too many to ask while a container is opened. */
static bool
find_bound(esdm_dataset *dataset, double *ret_bound)
{
    esdm_accuracy_report report;
    if (esdm__io_of(dataset->group->container)->fragments > ASKED_MOST ||
        esdm__accuracy_report(dataset, NULL, 0, &report, NULL) != ESDM_OK)
        return false;
    *ret_bound = report.lossy_fragments > 0 ? report.absolute * esdm__accuracy_scale(dataset) : 0;
    return true;
}

/* Fragments of an earlier statement may be further off than what is stated now: what they tell
 * counts. */
static esdm_status
tell(esdm_dataset *dataset, const esdm_accuracy *asked, esdm_error *err)
{
    esdm_accuracy stated;
    bool lossy = esdm__accuracy_in_force(dataset, &stated) && esdm_accuracy_is_lossy(&stated);
    double bound = 0;
    bool changed;
    const bool known = find_bound(dataset, &bound);
    drop_untrue(dataset);
    esdm_status status = put_stored(dataset, asked, lossy ? &stated : NULL, known, err);
    if (status == ESDM_OK && known && bound > 0 && isfinite(bound))
        status = esdm__attribute_put(&dataset->attributes, untrue[0], ESDM_TYPE_FLOAT64, 1, &bound,
                                     &changed, err);
    return status;
}

/* What is told of a dataset whose numbers lie in several containers. */
static esdm_status
tell_joined(esdm_dataset *dataset, const esdm_accuracy *asked, esdm_error *err)
{
    esdm__buffer text;
    drop_untrue(dataset);
    esdm__buffer_init(&text);
    esdm__accuracy_put(&text, asked);
    put_text(&text, " asked for; each container as it is stored, or in the layers that this needs");
    return put_told(dataset, &text, err);
}

/* *ret_fits false: the dataset has other units, or none. */
static esdm_status
apply_item(esdm_dataset *dataset, const item *it, reader how, bool *ret_fits, esdm_error *err)
{
    esdm_accuracy asked;
    esdm_error why = {0};
    char value[64 + ESDM_NAME_MAX];
    esdm_accuracy_init(&asked);
    *ret_fits = false;
    esdm__stated *stated = esdm__dataset_stated(dataset, err);
    if (stated == NULL)
        return ESDM_ENOMEM;
    if (strcmp(it->rest, "%") == 0) {
        asked.stated = ESDM_ACCURACY_RANGE_TOLERANCE;
        asked.range_tolerance = it->number / 100;
        stated->coarse = (esdm__coarse){.share = asked.range_tolerance};
    } else {
        double stored = 0;
        (void) snprintf(value, sizeof value, "%.17g %s", it->number, it->rest);
        esdm_status status = esdm__accuracy_tolerance(dataset, value, &asked, &stored, &why);
        if (status == ESDM_EINVAL && (it->variable == NULL || how == OF_MEMBER))
            return ESDM_OK;
        if (status != ESDM_OK)
            return esdm__error_set(err, status, "accuracy '%s': %s", it->text, why.message);
        stated->coarse = (esdm__coarse){.absolute = stored};
    }
    *ret_fits = true;
    if (how == OF_MEMBER)
        return ESDM_OK;
    return how == OF_JOINED ? tell_joined(dataset, &asked, err) : tell(dataset, &asked, err);
}

/* Why its numbers are read as they are stored; NULL: they need not be. */
static const char *
why_not(const esdm_dataset *dataset, reader how)
{
    if (!esdm__accuracy_has_type(dataset->type))
        return "the variable has no numbers";
    if (how != OF_CONTAINER && esdm_dataset_is_auxiliary(dataset, NULL))
        return "of what is put together of several containers, coordinates and what else describes "
               "variables is read as it is stored";
    return NULL;
}

static esdm_status
apply(esdm_container *container, const item *it, reader how, esdm_error *err)
{
    bool any = false;
    if (it->variable == NULL && it->rest[0] == '\0')
        return wrong(it, "of which variable, or in which units, is not said", err);
    for (size_t i = 0; i < container->datasets.count; i++) {
        esdm_dataset *dataset = container->datasets.items[i];
        bool fits = false;
        if (it->variable != NULL && !is_called(dataset, it))
            continue;
        const char *why = why_not(dataset, how);
        if (why != NULL && it->variable != NULL && how != OF_MEMBER)
            return wrong(it, why, err);
        if (why != NULL)
            continue;
        esdm_status status = apply_item(dataset, it, how, &fits, err);
        if (status != ESDM_OK)
            return status;
        any = any || fits;
    }
    return any || how == OF_MEMBER
               ? ESDM_OK
               : wrong(it,
                       it->variable != NULL ? "there is no such variable"
                                            : "there is no variable with such units",
                       err);
}

static esdm_status
apply_all(esdm_container *container, const char *text, reader how, esdm_error *err)
{
    esdm__plain_locale locale;
    esdm_status status = esdm__plain_locale_enter(&locale, err);
    if (status != ESDM_OK)
        return status;
    for (const char *at = text; status == ESDM_OK;) {
        item it;
        size_t bytes = strcspn(at, ",;");
        status = parse_item(at, bytes, &it, err);
        if (status == ESDM_OK)
            status = apply(container, &it, how, err);
        if (at[bytes] == '\0')
            break;
        at += bytes + 1;
    }
    esdm__plain_locale_leave(&locale);
    container->coarse = status == ESDM_OK;
    return status;
}

esdm_status
esdm__coarse_apply(esdm_container *container, const char *text, esdm_error *err)
{
    return apply_all(container, text, container->provider != NULL ? OF_JOINED : OF_CONTAINER, err);
}

esdm_status
esdm__coarse_apply_to_member(esdm_container *member, const char *text, esdm_error *err)
{
    return apply_all(member, text, OF_MEMBER, err);
}
