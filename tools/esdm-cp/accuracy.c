/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Attributes and --accuracy 'NAME: QUANTITIES': what the copies of variables may be off by. */

#include "esdm-cp/esdm-cp.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "esdm/accuracy_attributes.h"

/* One option: a pattern of names and what is stated of them. */
typedef struct wish {
    char *pattern;
    const char *text; /* borrowed from the option */
} wish;

/* What copies in all processes found out about one option. */
typedef struct found {
    atomic_bool any;    /* a variable matches */
    atomic_uint near;   /* 0: no name; 1: one is being written; 2: `name` is there */
    atomic_uint tries;  /* copies that had no such variable */
    atomic_bool spared; /* it was told of those that it does not round */
    char name[128];     /* a variable that looks like what was asked for */
} found;
/* One for each option, and one for the warning of global attributes, in memory that processes
 * share. */
static found *found_out;

static bool
split(const char *option, wish *ret)
{
    return tool_wish_split(option, &ret->pattern, &ret->text);
}

static bool
matches(const char *pattern, const cp_dataset *dataset)
{
    return g_pattern_match_simple(pattern, dataset->name) ||
           g_pattern_match_simple(pattern, dataset->path);
}

const char *
cp_accuracy_wrong(void)
{
    for (char **option = cp_wants.accuracy; option != NULL && *option != NULL; option++) {
        wish w;
        if (!split(*option, &w))
            return *option;
        g_free(w.pattern);
    }
    return NULL;
}

bool
cp_accuracy_check(esdm_error *err)
{
    for (char **option = cp_wants.accuracy; option != NULL && *option != NULL; option++) {
        wish w;
        esdm_error why = {0};
        if (!split(*option, &w))
            continue; /* cp_accuracy_wrong() */
        esdm_status status = esdm_accuracy_check_text(w.text, &why);
        g_free(w.pattern);
        if (status == ESDM_OK)
            continue;
        (void) tool_error_set(err, status, "--accuracy '%s': %s", *option, why.message);
        return false;
    }
    return true;
}

bool
cp_accuracy_begin(void)
{
    size_t count = cp_wants.accuracy != NULL ? g_strv_length(cp_wants.accuracy) : 0;
    void *memory = mmap(NULL, (count + 1) * sizeof(found), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        tool_error("no memory for what --accuracy finds: %s", g_strerror(errno));
        return false;
    }
    found_out = memory;
    return true;
}

tool_exit
cp_accuracy_end(void)
{
    tool_exit result = TOOL_OK;
    for (char **option = cp_wants.accuracy; option != NULL && *option != NULL; option++) {
        found *f = &found_out[option - cp_wants.accuracy];
        bool near = atomic_load(&f->near) == 2;
        unsigned tries = atomic_load(&f->tries);
        if (atomic_load(&f->any) || tries == 0)
            continue;
        tool_error("--accuracy '%s': none of %u copies has such a variable%s%s%s; they are there, "
                   "without it",
                   *option, tries, near ? " (did you mean '" : "", near ? f->name : "",
                   near ? "'?)" : "");
        result = TOOL_FAILED;
    }
    return result;
}

static bool
is_number(const cp_dataset *dataset)
{
    esdm_type type = dataset->type->atomic;
    return type >= ESDM_TYPE_INT8 && type <= ESDM_TYPE_UINT64 && type != ESDM_TYPE_CHAR;
}

/* The attribute `units` of a dataset; owned; NULL when there is none. */
static char *
units_of(const cp_dataset *dataset)
{
    const cp_attribute *units = cp_attribute_find(dataset->attributes, "units");
    if (units != NULL && units->type == cp_type_atomic(ESDM_TYPE_CHAR))
        return g_strndup(units->values, units->count);
    if (units != NULL && units->type == cp_type_atomic(ESDM_TYPE_STRING) && units->count == 1)
        return g_strdup(*(char *const *) units->values);
    return NULL;
}

static esdm_status
set_accuracy(const cp_dataset *dataset, const esdm_accuracy *accuracy, esdm_error *err)
{
    esdm_status status = esdm_dataset_set_codec(dataset->to.dataset, NULL, err);
    return status == ESDM_OK ? esdm_dataset_set_accuracy(dataset->to.dataset, accuracy, err)
                             : status;
}

/* ---- what the source states ----------------------------------------------------------------- */

/* Whether the numbers were rounded when the source was written: by what is stated of it, by a rule
 * of its site, or in a container that was copied to this file. */
static bool
was_rounded(const cp_dataset *dataset, bool is_container)
{
    esdm_accuracy accuracy;
    return cp_attribute_find(dataset->attributes, ESDM_ACCURACY_STORED_ATTRIBUTE) != NULL ||
           (is_container && esdm_dataset_accuracy_in_force(dataset->from.dataset, &accuracy) &&
            esdm_accuracy_is_lossy(&accuracy));
}

/* Of NAME?accuracy=1%: its attribute says what was asked for, and what is stored. */
static bool
is_read_coarsely(const cp_dataset *dataset)
{
    const cp_attribute *said =
        cp_attribute_find(dataset->attributes, ESDM_ACCURACY_STORED_ATTRIBUTE);
    g_autofree char *text = said != NULL && said->type == cp_type_atomic(ESDM_TYPE_CHAR)
                                ? g_strndup(said->values, said->count)
                                : NULL;
    return text != NULL && strstr(text, " asked for; stored ") != NULL;
}

/* Numbers that were rounded are not rounded again, by a rule of the target's site neither: twice is
 * more than what is stated. */
static esdm_status
keep(cp_dataset *dataset, bool is_container, esdm_error *err)
{
    esdm_accuracy exact;
    esdm_accuracy_init(&dataset->accuracy);
    /* Numbers that were read less accurately are not what is stated of those that are stored. */
    if (is_container && !is_read_coarsely(dataset))
        (void) esdm_dataset_accuracy(dataset->from.dataset, &dataset->accuracy);
    if (!is_number(dataset) || !was_rounded(dataset, is_container))
        return ESDM_OK;
    dataset->as_it_is = true;
    esdm_accuracy_init(&exact);
    exact.stated = ESDM_ACCURACY_ABSOLUTE_TOLERANCE |
                   (dataset->accuracy.stated & (uint32_t) ESDM_ACCURACY_MODE);
    exact.mode = dataset->accuracy.mode;
    return esdm_dataset_set_accuracy(dataset->to.dataset, &exact, err);
}

/* As NetCDF's interface does when such a variable is written through it. */
static esdm_status
state_attributes(cp_dataset *dataset, esdm_error *err)
{
    esdm_dataset *to = dataset->to.dataset;
    esdm_accuracy accuracy;
    const char *name = NULL;
    esdm_accuracy_init(&accuracy);
    (void) esdm_dataset_accuracy(to, &accuracy);
    esdm_status status = esdm_dataset_accuracy_attributes(to, &accuracy, &name, err);
    if (name == NULL)
        return status == ESDM_OK ? keep(dataset, false, err) : status;
    g_autofree char *attribute = g_strdup(name);
    if (status == ESDM_OK)
        status = esdm_accuracy_check(&accuracy, err);
    if (status == ESDM_OK)
        status = set_accuracy(dataset, &accuracy, err);
    dataset->doubted = status == ESDM_OK;
    if (status == ESDM_OK)
        return esdm_dataset_remove_accuracy_attributes(to, err);
    g_autofree char *why = g_strdup(err->message);
    return tool_error_set(err, status, "attribute '%s' of variable '%s': %s", attribute,
                          dataset->path, why);
}

void
cp_accuracy_tell_regions(const cp_end *target)
{
    const cp_model *model = target->stated;
    const size_t options = cp_wants.accuracy != NULL ? g_strv_length(cp_wants.accuracy) : 0;
    g_autoptr(GString) names = g_string_new(NULL);
    const char *why = NULL;
    for (guint i = 0; i < model->datasets->len; i++) {
        const cp_dataset *dataset = g_ptr_array_index(model->datasets, i);
        const char *doubt = esdm_dataset_region_doubt(dataset->to.dataset);
        if (doubt != NULL)
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", dataset->name);
        why = why != NULL ? why : doubt;
    }
    if (why != NULL && !atomic_exchange(&found_out[options].spared, true))
        tool_error("numbers of %s keep the strictest accuracy of all regions wherever they lie, "
                   "as %s",
                   names->str, why);
}

esdm_status
cp_accuracy_restate(const cp_model *model, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (guint i = 0; i < model->datasets->len && status == ESDM_OK; i++) {
        const cp_dataset *dataset = g_ptr_array_index(model->datasets, i);
        if (dataset->as_it_is)
            status = esdm_dataset_set_accuracy(dataset->to.dataset, &dataset->accuracy, err);
    }
    return status;
}

/* ---- what the options state ----------------------------------------------------------------- */

/* The strictest of it and of what was stated before counts. */
static esdm_status
state(cp_dataset *dataset, const wish *w, esdm_error *err)
{
    esdm_accuracy accuracy;
    g_autofree char *units = units_of(dataset);
    esdm_accuracy_init(&accuracy);
    if (dataset->as_it_is)
        accuracy = dataset->accuracy;
    else
        (void) esdm_dataset_accuracy(dataset->to.dataset, &accuracy);
    dataset->as_it_is = false;
    /* Who names a variable means it; '*' may be about others. */
    dataset->doubted = !esdm_accuracy_pattern_is_literal(w->pattern);
    esdm_status status = esdm_accuracy_parse(&accuracy, w->text, units, err);
    if (status == ESDM_OK)
        status = set_accuracy(dataset, &accuracy, err);
    if (status == ESDM_OK)
        return ESDM_OK;
    g_autofree char *why = g_strdup(err->message);
    return tool_error_set(err, status, "--accuracy for %s: %s", dataset->path, why);
}

/* The variable whose name is nearest to a pattern; NULL when none is near. Borrowed. */
static const char *
nearest(const cp_model *model, const char *pattern)
{
    const char *name = NULL;
    guint most = 0;
    for (guint i = 0; i < model->datasets->len; i++) {
        const cp_dataset *dataset = g_ptr_array_index(model->datasets, i);
        guint likeness = tool_likeness(pattern, dataset->name);
        name = likeness > most ? dataset->name : name;
        most = MAX(most, likeness);
    }
    return name;
}

/* "; did you mean 'tas'?", or the first variables that there are; owned. */
static char *
instead(const cp_model *model, const char *pattern)
{
    const char *name = nearest(model, pattern);
    if (name != NULL)
        return g_strdup_printf("; did you mean '%s'?", name);
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < model->datasets->len && i < 8; i++)
        g_string_append_printf(text, "%s%s", i == 0 ? "; it has " : ", ",
                               ((cp_dataset *) g_ptr_array_index(model->datasets, i))->name);
    g_string_append(text, model->datasets->len > 8 ? ", …" : "");
    return g_strdup(text->str);
}

static esdm_status
no_variable(found *f, const cp_model *model, const char *source, const wish *w, esdm_error *err)
{
    unsigned none = 0;
    if (!cp_wants.recursive && cp_wants.fit == NULL) {
        g_autofree char *hint = instead(model, w->pattern);
        return tool_error_set(err, ESDM_EINVAL, "--accuracy: %s has no variable '%s'%s", source,
                              w->pattern, hint);
    }
    const char *name = nearest(model, w->pattern);
    atomic_fetch_add(&f->tries, 1);
    if (name != NULL && atomic_compare_exchange_strong(&f->near, &none, 1)) {
        g_strlcpy(f->name, name, sizeof f->name);
        atomic_store(&f->near, 2);
    }
    return ESDM_OK;
}

/* Whether an option that does not name the variable would round what describes others: then all of
 * it is left as it is. */
static bool
spares(const wish *w, const cp_dataset *dataset)
{
    esdm_accuracy accuracy;
    g_autofree char *units = units_of(dataset);
    esdm_accuracy_init(&accuracy);
    if (esdm_accuracy_pattern_is_literal(w->pattern) ||
        !esdm_dataset_is_auxiliary(dataset->to.dataset, NULL))
        return false;
    /* Units that do not fit are no reason to fail then. */
    return esdm_accuracy_parse(&accuracy, w->text, units, NULL) != ESDM_OK ||
           esdm_accuracy_is_lossy(&accuracy);
}

/* Said once for all copies. */
static void
tell_spared(found *f, const char *source, const char *option, const GString *names)
{
    if (names->len > 0 && !atomic_exchange(&f->spared, true))
        tool_error(
            "%s: --accuracy '%s' does not round %s: coordinates, flags, integers and the like are "
            "rounded only where their names are given",
            source, option, names->str);
}

static esdm_status
state_option(const cp_model *model, const wish *w, GString *spared, bool *ret_any, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (guint i = 0; i < model->datasets->len && status == ESDM_OK; i++) {
        cp_dataset *dataset = g_ptr_array_index(model->datasets, i);
        if (!matches(w->pattern, dataset))
            continue;
        *ret_any = true;
        if (!is_number(dataset) && !esdm_accuracy_pattern_is_literal(w->pattern))
            continue;
        if (spares(w, dataset))
            g_string_append_printf(spared, "%s%s", spared->len > 0 ? ", " : "", dataset->name);
        else
            status = state(dataset, w, err);
    }
    return status;
}

static esdm_status
state_options(const cp_model *model, const char *source, esdm_error *err)
{
    for (char **option = cp_wants.accuracy; option != NULL && *option != NULL; option++) {
        wish w;
        bool any = false;
        g_autoptr(GString) spared = g_string_new(NULL);
        if (!split(*option, &w))
            continue; /* refused before */
        esdm_status status = state_option(model, &w, spared, &any, err);
        found *f = &found_out[option - cp_wants.accuracy];
        tell_spared(f, source, *option, spared);
        if (any)
            atomic_store(&f->any, true);
        else if (status == ESDM_OK)
            status = no_variable(f, model, source, &w, err);
        g_free(w.pattern);
        if (status != ESDM_OK)
            return status;
    }
    return ESDM_OK;
}

/* ---- readers -------------------------------------------------------------------------------- */

static bool
tells_readers(const esdm_attribute *attribute)
{
    if (g_str_equal(attribute->name, ESDM_ACCURACY_STORED_ATTRIBUTE))
        return attribute->type == ESDM_TYPE_CHAR;
    return g_str_has_prefix(attribute->name, "quantization_") && attribute->count == 1 &&
           (attribute->type == ESDM_TYPE_FLOAT64 || attribute->type == ESDM_TYPE_INT32);
}

/* The model becomes what the target has: attributes for readers came, others may have gone. */
static esdm_status
tell(cp_dataset *dataset, esdm_error *err)
{
    esdm_attributes *list = esdm_dataset_attributes(dataset->to.dataset);
    GPtrArray *known = dataset->attributes;
    esdm_attribute attribute;
    esdm_status status =
        dataset->as_it_is ? ESDM_OK : esdm_dataset_tell_accuracy(dataset->to.dataset, err);
    for (guint i = known->len; status == ESDM_OK && i-- > 0;) {
        const char *name = ((const cp_attribute *) g_ptr_array_index(known, i))->name;
        if (esdm_accuracy_is_attribute(name) && !esdm_attribute_find(list, name, &attribute, NULL))
            (void) g_ptr_array_remove_index(known, i);
    }
    for (size_t i = 0; status == ESDM_OK && esdm_attribute_at(list, i, &attribute); i++) {
        const cp_type *type = cp_type_atomic(attribute.type);
        if (tells_readers(&attribute))
            cp_attribute_set(known, attribute.name, type, attribute.count,
                             cp_values_copy(type, attribute.count, attribute.values));
    }
    return status;
}

/* Said once for all copies. They state nothing: only those of variables do. */
static void
warn_of_globals(const cp_group *group, const char *source)
{
    size_t options = cp_wants.accuracy != NULL ? g_strv_length(cp_wants.accuracy) : 0;
    for (guint i = 0; i < group->attributes->len; i++) {
        const cp_attribute *attribute = g_ptr_array_index(group->attributes, i);
        if (esdm_accuracy_is_attribute(attribute->name) &&
            !atomic_exchange(&found_out[options].any, true))
            tool_error(
                "%s: the global attribute '%s' states nothing: give it to the variables that "
                "it is meant for, or say --accuracy '*: …'",
                source, attribute->name);
    }
    for (guint i = 0; i < group->groups->len; i++)
        warn_of_globals(g_ptr_array_index(group->groups, i), source);
}

esdm_status
cp_accuracy_state(const cp_model *model, const cp_end *source, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (guint i = 0; i < model->datasets->len && status == ESDM_OK; i++) {
        cp_dataset *dataset = g_ptr_array_index(model->datasets, i);
        status = source->is_container ? keep(dataset, true, err) : state_attributes(dataset, err);
    }
    if (status == ESDM_OK && !source->is_container)
        warn_of_globals(model->root, source->name);
    if (status == ESDM_OK)
        status = state_options(model, source->name, err);
    if (status == ESDM_OK)
        status = cp_accuracy_doubt(model, source, err);
    for (guint i = 0; i < model->datasets->len && status == ESDM_OK; i++)
        status = tell(g_ptr_array_index(model->datasets, i), err);
    return status;
}
