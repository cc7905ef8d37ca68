/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Of all containers that have a recipe: which ones are cheaper computed again than kept. */
#include "esdm-recipe/esdm-recipe.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cost/cost.h"

/* A container that has a recipe. */
typedef struct candidate {
    char *name;
    json_t *recipe;
    guint64 bytes;
    double keeping, once; /* what it costs to have it, and to compute it one time */
    double saves; /* when it is dropped, and read as often as is expected; < 0: that costs more */
    bool dropped;
    const char *why_not; /* NULL: it is proposed */
} candidate;

typedef struct search {
    esdm_session *session;
    const recipe_prices *prices;
    GPtrArray *found; /* candidate */
    GPtrArray *names; /* of what is looked at */
    tool_exit result;
    guint looked_at;
} search;

static void
candidate_free(gpointer data)
{
    candidate *c = data;
    g_free(c->name);
    json_decref(c->recipe);
    g_free(c);
}

/* NULL: it has none, or one of a newer ESDM. A new reference. */
static json_t *
recipe_quietly(const esdm_container *container)
{
    const char *text = esdm_container_hint(container, RECIPE_HINT);
    json_t *recipe = text != NULL ? tool_json_read(text, -1, 0, NULL) : NULL;
    bool good = json_integer_value(json_object_get(recipe, "version")) == 1 &&
                json_is_string(json_object_get(recipe, "digest"));
    if (!good)
        g_clear_pointer(&recipe, json_decref);
    return recipe;
}

static void
look_at(search *s, const char *name)
{
    esdm_error err = {0};
    esdm_container *container = NULL;
    esdm_container_info info = {0};
    esdm_status st = esdm_container_open(s->session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST,
                                         &container, &err);
    s->looked_at++;
    if (st == ESDM_ENOENT) /* it was removed meanwhile */
        return;
    if (st != ESDM_OK) {
        (void) tool_fail(st, &err);
        s->result = TOOL_FAILED;
        return;
    }
    json_t *recipe = recipe_quietly(container);
    bool dropped = esdm_container_hint(container, "recipe-dropped") != NULL;
    esdm_container_discard(container);
    if (recipe == NULL)
        return;
    if (esdm_container_stat(s->session, name, &info, &err) != ESDM_OK) {
        json_decref(recipe);
        return;
    }
    candidate *c = g_new0(candidate, 1);
    c->name = g_strdup(name);
    c->recipe = recipe;
    c->dropped = dropped;
    c->bytes = info.stored_bytes;
    c->keeping = recipe_keeping(s->prices, c->bytes);
    c->once = recipe_computing(s->prices, recipe);
    c->saves = c->keeping - c->once * s->prices->readings;
    g_ptr_array_add(s->found, c);
}

/* What saves most comes first. */
static gint
by_saving(gconstpointer a, gconstpointer b)
{
    const candidate *one = *(const candidate *const *) a;
    const candidate *other = *(const candidate *const *) b;
    if (one->saves != other->saves)
        return one->saves > other->saves ? -1 : 1;
    return strcmp(one->name, other->name);
}

static bool
reads(const candidate *c, const char *name)
{
    size_t i;
    const json_t *input;
    json_array_foreach(json_object_get(c->recipe, "inputs"), i, input)
    {
        if (g_strcmp0(json_string_value(json_object_get(input, "container")), name) == 0)
            return true;
    }
    return false;
}

/* Values whose inputs are dropped, too, could not be computed from them at once. */
static void
decide(const GPtrArray *found, guint number)
{
    candidate *c = found->pdata[number];
    if (c->dropped)
        c->why_not = "dropped already";
    else if (c->saves <= 0)
        c->why_not = "cheaper to keep";
    else if (json_array_size(json_object_get(c->recipe, "files_written")) > 0)
        c->why_not = "its program also writes plain files";
    for (guint i = 0; i < found->len && c->why_not == NULL; i++) {
        const candidate *other = found->pdata[i];
        bool goes = other->dropped || (i < number && other->why_not == NULL);
        if (!goes)
            continue;
        if (reads(c, other->name))
            c->why_not = "computed from one that goes";
        else if (reads(other, c->name))
            c->why_not = "one that goes is computed from it";
    }
}

static json_t *
candidate_json(const candidate *c, const recipe_prices *prices)
{
    json_t *object = json_object();
    double up_to = cost_readings(c->keeping, c->once);
    tool_json_set(object, "name", tool_json_text(c->name));
    tool_json_set(object, "stored_bytes", tool_json_u64(c->bytes));
    tool_json_set(object, "seconds",
                  json_real(json_number_value(json_object_get(c->recipe, "seconds"))));
    tool_json_set(object, "keeping", json_real(c->keeping));
    tool_json_set(object, "computing", json_real(c->once * prices->readings));
    tool_json_set(object, "readings", isfinite(up_to) ? json_real(up_to) : json_null());
    tool_json_set(object, "saves", json_real(c->saves));
    tool_json_set(object, "proposed", json_boolean(c->why_not == NULL));
    if (c->why_not != NULL)
        tool_json_set(object, "why_not", tool_json_text(c->why_not));
    return object;
}

static void
print_json(const search *s, guint64 bytes, double saves)
{
    json_t *root = json_object();
    json_t *list = json_array();
    for (guint i = 0; i < s->found->len; i++)
        tool_json_append(list, candidate_json(s->found->pdata[i], s->prices));
    tool_json_set(root, "containers", json_integer(s->looked_at));
    tool_json_set(root, "years", json_real(s->prices->years));
    tool_json_set(root, "expected_readings", json_real(s->prices->readings));
    tool_json_set(root, "stored_bytes", tool_json_u64(bytes));
    tool_json_set(root, "saves", json_real(saves));
    tool_json_set(root, "recipes", list);
    tool_json_print(root);
}

static void
print_table(const search *s, guint goes, guint64 bytes, double saves)
{
    g_autofree char *all = tool_bytes(bytes);
    (void) printf("%12s %10s %11s %11s %11s  %s\n", "STORED", "TIME", "KEEPING", "COMPUTING",
                  "SAVES", "NAME");
    for (guint i = 0; i < s->found->len; i++) {
        const candidate *c = s->found->pdata[i];
        g_autofree char *size = tool_bytes(c->bytes);
        (void) printf("%12s %8.1f s %11.4g %11.4g ", size,
                      json_number_value(json_object_get(c->recipe, "seconds")), c->keeping,
                      c->once * s->prices->readings);
        if (c->why_not == NULL)
            (void) printf("%11.4g  %s\n", c->saves, c->name);
        else
            (void) printf("%11s  %s (%s)\n", "-", c->name, c->why_not);
    }
    if (goes == 0)
        (void) printf(
            "nothing is worth to be dropped: keeping is cheaper than %.4g readings in %.4g years\n",
            s->prices->readings, s->prices->years);
    else
        (void) printf(
            "%u of %u would go, %s, which saves %.4g in %.4g years with %.4g readings of each.\n"
            "'esdm-recipe drop NAME…' computes each again before it goes.\n",
            goes, s->found->len, all, saves, s->prices->years, s->prices->readings);
}

static tool_exit
list_names(search *s, GPtrArray *wanted)
{
    esdm_error err = {0};
    guint most = wanted->len > 0 ? wanted->len : 1;
    for (guint i = 0; i < most; i++) {
        const char *name = wanted->len > 0 ? wanted->pdata[i] : NULL;
        guint before = s->names->len;
        esdm_status st = esdm_container_list(s->session, name, recipe_take_name, s->names, &err);
        if (st != ESDM_OK)
            return tool_fail(st, &err);
        if (s->names->len == before && name != NULL)
            return tool_absent(s->session, name);
    }
    return TOOL_OK;
}

tool_exit
recipe_propose(esdm_session *session, GPtrArray *wanted, const recipe_prices *prices)
{
    tool_progress progress;
    guint goes = 0;
    guint64 bytes = 0;
    double saves = 0;
    g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func(candidate_free);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    search s = {.session = session, .prices = prices, .found = found, .names = names};
    tool_exit result = list_names(&s, wanted);
    if (result != TOOL_OK)
        return result;
    tool_progress_start(&progress, true);
    for (guint i = 0; i < names->len; i++) {
        look_at(&s, names->pdata[i]);
        tool_progress_show(&progress, (double) (i + 1) / (double) names->len,
                           "looking for recipes");
    }
    tool_progress_end(&progress);
    g_ptr_array_sort(found, by_saving);
    for (guint i = 0; i < found->len; i++) {
        candidate *c = found->pdata[i];
        decide(found, i);
        goes += c->why_not == NULL;
        bytes += c->why_not == NULL ? c->bytes : 0;
        saves += c->why_not == NULL ? c->saves : 0;
    }
    if (tool.json)
        print_json(&s, bytes, saves);
    else if (found->len == 0)
        (void) printf(
            "none of %u containers has a recipe: 'esdm-recipe record -- PROGRAM …' makes one\n",
            s.looked_at);
    else
        print_table(&s, goes, bytes, saves);
    return s.result;
}
