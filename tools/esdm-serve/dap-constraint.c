/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Constraint expressions: which variables, and which part of them. */

#include "esdm-serve/dap.h"

#include <string.h>

/* A name may be said as it is in the DDS, or with its escapes taken out. */
static bool
is_called(const char *said, const char *name)
{
    if (g_str_equal(said, name))
        return true;
    g_autofree char *escaped = dap_escape(said, "");
    return g_str_equal(escaped, name);
}

static dap_variable *
find_variable(const dap_set *set, const char *said)
{
    for (guint i = 0; i < set->variables->len; i++) {
        dap_variable *v = g_ptr_array_index(set->variables, i);
        if (is_called(said, v->name))
            return v;
    }
    return NULL;
}

/* ---- hyperslabs --------------------------------------------------------------------------- */

static bool
take_number(const char **at, uint64_t *ret)
{
    size_t digits = strspn(*at, "0123456789");
    if (digits == 0 || digits > 18)
        return false;
    *ret = g_ascii_strtoull(*at, NULL, 10);
    *at += digits;
    return true;
}

/* "[3]", "[0:9]" or "[0:2:9]". The end is included. */
static bool
take_slice(const char **at, uint64_t length, dap_slice *ret)
{
    uint64_t number[3], count = 0;
    if (*(*at)++ != '[')
        return false;
    do {
        if (count == G_N_ELEMENTS(number) || !take_number(at, &number[count++]))
            return false;
    } while (*(*at)++ == ':');
    if ((*at)[-1] != ']')
        return false;
    uint64_t first = number[0], step = count == 3 ? number[1] : 1, last = number[count - 1];
    if (step == 0 || last < first || last >= length)
        return false;
    *ret = (dap_slice){.start = first, .stride = step, .count = (last - first) / step + 1};
    return true;
}

/* One for each dimension, or none at all. */
static char *
take_slices(const dap_variable *v, const char *text, dap_slice *ret)
{
    const char *at = text;
    if (*at == '\0') {
        for (uint32_t i = 0; i < v->rank; i++)
            ret[i] = (dap_slice){.stride = 1, .count = v->dataset->dimensions[i]->length};
        return NULL;
    }
    for (uint32_t i = 0; i < v->rank; i++) {
        if (!take_slice(&at, v->dataset->dimensions[i]->length, &ret[i]))
            return g_strdup_printf("'%s' is no part of %s: [FIRST:STEP:LAST] for each of its %u "
                                   "dimensions, within them",
                                   text, v->name, v->rank);
    }
    return *at == '\0' ? NULL : g_strdup_printf("%s has %u dimensions, not more", v->name, v->rank);
}

/* ---- names -------------------------------------------------------------------------------- */

static char *
ask_whole(dap_variable *v, const char *slices)
{
    char *wrong = take_slices(v, slices, v->slices);
    for (uint32_t i = 0; i < v->rank; i++)
        v->map_slices[i] = v->slices[i];
    v->whole = true;
    return wrong;
}

/* The array or a map of a Grid: "v.v[0:9]", "v.time[3]". */
static char *
ask_member(dap_variable *v, const char *member, const char *slices)
{
    if (is_called(member, v->name)) {
        v->array = true;
        return take_slices(v, slices, v->slices);
    }
    for (uint32_t i = 0; i < v->rank; i++) {
        if (!is_called(member, v->maps[i]->name))
            continue;
        v->map[i] = true;
        return take_slices(v->maps[i], slices, &v->map_slices[i]);
    }
    return g_strdup_printf("%s has no '%s'", v->name, member);
}

static char *
ask(dap_set *set, const char *projection)
{
    size_t length = strcspn(projection, "[");
    const char *slices = projection + length;
    g_autofree char *name = g_strndup(projection, length);
    dap_variable *v = find_variable(set, name);
    if (v != NULL)
        return ask_whole(v, slices);
    for (char *dot = strchr(name, '.'); dot != NULL; dot = strchr(dot + 1, '.')) {
        *dot = '\0';
        v = find_variable(set, name);
        if (v != NULL && v->is_grid)
            return ask_member(v, dot + 1, slices);
        *dot = '.';
    }
    return g_strdup_printf("there is no variable '%s'", name);
}

char *
dap_constrain(dap_set *set, const char *expression)
{
    char *wrong = NULL;
    if (expression == NULL || expression[0] == '\0') {
        for (guint i = 0; i < set->variables->len; i++)
            ((dap_variable *) g_ptr_array_index(set->variables, i))->whole = true;
        return NULL;
    }
    if (strpbrk(expression, "&<>=(){}") != NULL)
        return g_strdup("only variables and hyperslabs can be asked for: no functions, and no "
                        "selections, for there are no sequences");
    g_auto(GStrv) projections = g_strsplit(expression, ",", -1);
    for (char **one = projections; *one != NULL && wrong == NULL; one++)
        wrong = ask(set, *one);
    return wrong;
}
