/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Reading less accurately than data are stored: what `NAME?accuracy=…` asks for. */

#include "api/coarse.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/plain_locale.h"
#include "esdm/accuracy_attributes.h"
#include "io/container/accuracy.h"
#include "model/accuracy.h"
#include "model/attribute.h"
#include "model/container.h"

#define SUFFIX "?accuracy="
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

/* "ASKED asked for; stored with STATED" */
static esdm_status
put_stored(esdm_dataset *dataset, const esdm_accuracy *asked, const esdm_accuracy *stated,
           esdm_error *err)
{
    bool changed;
    esdm__buffer text;
    esdm__buffer_init(&text);
    esdm__accuracy_put(&text, asked);
    put_text(&text, " asked for; stored ");
    put_text(&text, stated != NULL ? "with " : "without loss");
    if (stated != NULL)
        esdm__accuracy_put(&text, stated);
    esdm_status status =
        text.failed ? esdm__error_nomem(err, 1, "an attribute")
                    : esdm__attribute_put(&dataset->attributes, ESDM_ACCURACY_STORED_ATTRIBUTE,
                                          ESDM_TYPE_CHAR, text.bytes, text.data, &changed, err);
    esdm__buffer_clear(&text);
    return status;
}

/* What is told of stored numbers does not hold for those that are read. */
static esdm_status
tell(esdm_dataset *dataset, const esdm_accuracy *asked, esdm_error *err)
{
    static const char *const untrue[] = {"quantization_maximum_absolute_error",
                                         "quantization_maximum_relative_error", "quantization_nsd",
                                         "quantization_nsb"};
    esdm_accuracy stated;
    bool lossy = esdm__accuracy_in_force(dataset, &stated) && esdm_accuracy_is_lossy(&stated);
    double bound = asked->absolute_tolerance;
    bool changed;
    for (size_t i = 0; i < sizeof untrue / sizeof untrue[0]; i++)
        esdm__attribute_drop(&dataset->attributes, untrue[i]);
    esdm_status status = put_stored(dataset, asked, lossy ? &stated : NULL, err);
    if (lossy && (stated.stated & ESDM_ACCURACY_ABSOLUTE_TOLERANCE) != 0)
        bound = fmax(bound, stated.absolute_tolerance);
    else if (lossy)
        bound = 0; /* not known in these units */
    if (status == ESDM_OK && bound > 0 && (asked->stated & ESDM_ACCURACY_ABSOLUTE_TOLERANCE) != 0)
        status = esdm__attribute_put(&dataset->attributes, untrue[0], ESDM_TYPE_FLOAT64, 1, &bound,
                                     &changed, err);
    return status;
}

/* *ret_fits false: the dataset has other units, or none. */
static esdm_status
apply_item(esdm_dataset *dataset, const item *it, bool *ret_fits, esdm_error *err)
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
        if (status == ESDM_EINVAL && it->variable == NULL)
            return ESDM_OK;
        if (status != ESDM_OK)
            return esdm__error_set(err, status, "accuracy '%s': %s", it->text, why.message);
        stated->coarse = (esdm__coarse){.absolute = stored};
    }
    *ret_fits = true;
    return tell(dataset, &asked, err);
}

static esdm_status
apply(esdm_container *container, const item *it, esdm_error *err)
{
    bool any = false;
    if (it->variable == NULL && it->rest[0] == '\0')
        return wrong(it, "of which variable, or in which units, is not said", err);
    for (size_t i = 0; i < container->datasets.count; i++) {
        esdm_dataset *dataset = container->datasets.items[i];
        bool fits = false;
        if (it->variable != NULL && !is_called(dataset, it))
            continue;
        if (!esdm__accuracy_has_type(dataset->type)) {
            if (it->variable != NULL)
                return wrong(it, "the variable has no numbers", err);
            continue;
        }
        esdm_status status = apply_item(dataset, it, &fits, err);
        if (status != ESDM_OK)
            return status;
        any = any || fits;
    }
    return any ? ESDM_OK
               : wrong(it,
                       it->variable != NULL ? "there is no such variable"
                                            : "there is no variable with such units",
                       err);
}

esdm_status
esdm__coarse_apply(esdm_container *container, const char *text, esdm_error *err)
{
    esdm__plain_locale locale;
    esdm_status status = ESDM_OK;
    if (container->provider != NULL)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "'%s' is put together from several containers, which are read as "
                               "they are stored: ask for an accuracy of its members",
                               container->name);
    status = esdm__plain_locale_enter(&locale, err);
    if (status != ESDM_OK)
        return status;
    for (const char *at = text; status == ESDM_OK;) {
        item it;
        size_t bytes = strcspn(at, ",;");
        status = parse_item(at, bytes, &it, err);
        if (status == ESDM_OK)
            status = apply(container, &it, err);
        if (at[bytes] == '\0')
            break;
        at += bytes + 1;
    }
    esdm__plain_locale_leave(&locale);
    container->coarse = status == ESDM_OK;
    return status;
}
