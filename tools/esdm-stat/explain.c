/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* esdm-stat --explain: where the fragments of a variable lie, how long they took, and why there. */
#include <stdio.h>
#include <string.h>

#include "esdm-stat/esdm-stat.h"

/* What a writer said about one of its packs. */
typedef struct pack_story {
    uint64_t fragments;
    uint64_t bytes;
    double predicted_s;
    double observed_s;
    GPtrArray *targets; /* stand */
} pack_story;

/* How a target stood; of one pack, or summed up over the fragments of a variable. */
typedef struct stand {
    char *target;
    GHashTable *whys; /* reason → double *: fragments */
    double seconds;   /* sum over fragments with a prediction */
    double predicted; /* how many these are */
} stand;

/* A variable's fragments on one target. */
typedef struct place {
    char *target;
    uint64_t fragments;
    uint64_t bytes;
    double predicted_s;
    double observed_s;
    uint64_t told; /* fragments whose writer told */
    GHashTable *packs;
    GPtrArray *stands; /* of all targets */
} place;

typedef struct explanation {
    GHashTable *stories; /* pack → pack_story */
    GPtrArray *places;   /* of the variable at hand */
    json_t *list;        /* of its fragments, with --fragments and --json */
    char *only;          /* the site's one target; NULL: it has several */
} explanation;

/* ---- what writers told -------------------------------------------------------------------- */

static void
free_stand(gpointer data)
{
    stand *s = data;
    g_free(s->target);
    g_hash_table_unref(s->whys);
    g_free(s);
}

static stand *
stand_of(GPtrArray *stands, const char *target)
{
    for (guint i = 0; i < stands->len; i++) {
        stand *s = g_ptr_array_index(stands, i);
        if (g_str_equal(s->target, target))
            return s;
    }
    stand *s = g_new0(stand, 1);
    s->target = g_strdup(target);
    s->whys = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_ptr_array_add(stands, s);
    return s;
}

static void
add_why(stand *s, const char *why, double fragments, double seconds)
{
    double *count = g_hash_table_lookup(s->whys, why);
    if (count == NULL) {
        count = g_new0(double, 1);
        g_hash_table_insert(s->whys, g_strdup(why), count);
    }
    *count += fragments;
    s->seconds += seconds * fragments;
    s->predicted += seconds > 0 ? fragments : 0;
}

static const char *
main_why(const stand *s)
{
    GHashTableIter iter;
    gpointer key, value;
    const char *why = "";
    double most = 0;
    g_hash_table_iter_init(&iter, s->whys);
    while (g_hash_table_iter_next(&iter, &key, &value)) {
        double count = *(const double *) value;
        if (count > most || (count == most && strcmp(key, why) < 0)) {
            most = count;
            why = key;
        }
    }
    return why;
}

static void
free_story(gpointer data)
{
    pack_story *story = data;
    g_ptr_array_unref(story->targets);
    g_free(story);
}

static bool
take_story(const esdm_decision_info *info, void *user)
{
    explanation *e = user;
    pack_story *story = g_new0(pack_story, 1);
    *story = (pack_story){.fragments = info->fragments,
                          .bytes = info->bytes,
                          .predicted_s = info->predicted_s,
                          .observed_s = info->observed_s,
                          .targets = g_ptr_array_new_with_free_func(free_stand)};
    for (size_t i = 0; i < info->ntargets; i++) {
        const esdm_decision_target *t = &info->targets[i];
        add_why(stand_of(story->targets, t->target), t->why, 1, t->predicted_s);
    }
    g_hash_table_insert(e->stories, g_strdup(info->pack), story);
    return true;
}

/* ---- a variable --------------------------------------------------------------------------- */

static void
free_place(gpointer data)
{
    place *p = data;
    g_free(p->target);
    g_hash_table_unref(p->packs);
    g_ptr_array_unref(p->stands);
    g_free(p);
}

static place *
place_of(explanation *e, const char *target)
{
    for (guint i = 0; i < e->places->len; i++) {
        place *p = g_ptr_array_index(e->places, i);
        if (g_str_equal(p->target, target))
            return p;
    }
    place *p = g_new0(place, 1);
    p->target = g_strdup(target);
    p->packs = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    p->stands = g_ptr_array_new_with_free_func(free_stand);
    g_ptr_array_add(e->places, p);
    return p;
}

static void
show_fragment(explanation *e, const esdm_fragment_info *info, const pack_story *story, double share)
{
    g_autofree char *size = stat_shape_text(info->size, info->rank);
    g_autofree char *first = stat_shape_text(info->offset, info->rank);
    if (tool.json) {
        json_t *entry = json_object();
        tool_json_set(entry, "first", json_string(first));
        tool_json_set(entry, "size", json_string(size));
        tool_json_set(entry, "target", tool_json_text(info->target));
        tool_json_set(entry, "pack", tool_json_text(info->pack));
        tool_json_set(entry, "bytes", tool_json_u64(info->stored_bytes));
        if (story != NULL) {
            tool_json_set(entry, "predicted_s", json_real(story->predicted_s * share));
            tool_json_set(entry, "observed_s", json_real(story->observed_s * share));
        }
        tool_json_append(e->list, entry);
        return;
    }
    g_autofree char *bytes = tool_bytes(info->stored_bytes);
    g_autofree char *target = tool_printable(info->target);
    (void) printf("    [%s] at [%s]: %s on %s", size, first, bytes, target);
    if (story != NULL && story->predicted_s > 0)
        (void) printf(", predicted %.3g s", story->predicted_s * share);
    if (story != NULL)
        (void) printf(", observed %.3g s", story->observed_s * share);
    (void) printf("\n");
}

/* A fragment has the part of its pack's seconds that it has of its bytes. */
static bool
take_fragment(const esdm_fragment_info *info, void *user)
{
    explanation *e = user;
    place *p = place_of(e, info->target);
    const pack_story *story = g_hash_table_lookup(e->stories, info->pack);
    double share =
        story != NULL && story->bytes > 0 ? (double) info->stored_bytes / (double) story->bytes : 0;
    p->fragments++;
    p->bytes += info->stored_bytes;
    if (info->pack[0] != '\0')
        g_hash_table_add(p->packs, g_strdup(info->pack));
    if (story != NULL) {
        p->told++;
        p->predicted_s += story->predicted_s * share;
        p->observed_s += story->observed_s * share;
        for (guint i = 0; i < story->targets->len; i++) {
            const stand *s = g_ptr_array_index(story->targets, i);
            add_why(stand_of(p->stands, s->target), main_why(s), 1, s->seconds);
        }
    }
    if (stat_wants.fragments)
        show_fragment(e, info, story, share);
    return true;
}

static gint
by_bytes(gconstpointer a, gconstpointer b)
{
    const place *x = *(place *const *) a;
    const place *y = *(place *const *) b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : strcmp(x->target, y->target);
}

static double
mean_seconds(const stand *s)
{
    return s->predicted > 0 ? s->seconds / s->predicted : 0;
}

/* The targets of a place: fragments with copies lie on several, TARGET[@NODE]{,TARGET[@NODE]}.
 * @return owned: g_strfreev(). */
static char **
targets_of(const place *p)
{
    char **names = g_strsplit(p->target, ",", -1);
    for (guint i = 0; names[i] != NULL; i++) {
        char *node = strchr(names[i], '@');
        if (node != NULL)
            *node = '\0';
    }
    return names;
}

/* How the target stood that was chosen: the first one that its writer told of; the others have
 * copies. */
static const stand *
own_stand(const place *p, char **own)
{
    for (guint k = 0; own[k] != NULL; k++)
        for (guint i = 0; i < p->stands->len; i++) {
            const stand *s = g_ptr_array_index(p->stands, i);
            if (g_str_equal(s->target, own[k]))
                return s;
        }
    return NULL;
}

/* ---- text --------------------------------------------------------------------------------- */

static void
print_alternatives(const place *p, const stand *own, char **targets)
{
    for (guint i = 0; i < p->stands->len; i++) {
        const stand *s = g_ptr_array_index(p->stands, i);
        if (g_strv_contains((const char *const *) targets, s->target))
            continue;
        g_autofree char *target = tool_printable(s->target);
        (void) printf("      not %s: %s", target, main_why(s));
        if (s->predicted > 0 && own->predicted > 0)
            (void) printf(" (%.3g s for a fragment, %.3g s here)", mean_seconds(s),
                          mean_seconds(own));
        (void) printf("\n");
    }
}

/* Writers tell nothing then. */
static bool
had_no_choice(const explanation *e, const place *p, char **targets)
{
    return p->told == 0 && e->only != NULL && g_str_equal(e->only, targets[0]);
}

static void
print_place(const explanation *e, const place *p)
{
    g_autofree char *bytes = tool_bytes(p->bytes);
    g_autofree char *target = tool_printable(p->target);
    guint packs = g_hash_table_size(p->packs);
    (void) printf("    %s: %s in %" G_GUINT64_FORMAT " fragment%s", target, bytes,
                  (guint64) p->fragments, p->fragments == 1 ? "" : "s");
    if (packs == 0) {
        (void) printf("; so small that they stay in the metadata store\n");
        return;
    }
    (void) printf(", %u pack%s", packs, packs == 1 ? "" : "s");
    g_auto(GStrv) targets = targets_of(p);
    if (targets[0] != NULL && targets[1] != NULL)
        (void) printf(", each on %u targets", g_strv_length(targets));
    const stand *own = own_stand(p, targets);
    if (p->told == 0 || own == NULL) {
        (void) printf("; %s\n", had_no_choice(e, p, targets)
                                    ? "there was no choice: the site has no other target"
                                    : "nobody told why: its writer had no choice, was killed, or "
                                      "was older");
        return;
    }
    if (p->predicted_s > 0)
        (void) printf("; predicted %.3g s", p->predicted_s);
    (void) printf("; observed %.3g s; %s\n", p->observed_s, main_why(own));
    print_alternatives(p, own, targets);
}

/* ---- JSON --------------------------------------------------------------------------------- */

static json_t *
place_json(const explanation *e, const place *p)
{
    json_t *entry = json_object();
    json_t *others = json_array();
    g_auto(GStrv) targets = targets_of(p);
    const stand *own = own_stand(p, targets);
    tool_json_set(entry, "target", tool_json_text(p->target));
    tool_json_set(entry, "fragments", tool_json_u64(p->fragments));
    tool_json_set(entry, "bytes", tool_json_u64(p->bytes));
    tool_json_set(entry, "packs", tool_json_u64(g_hash_table_size(p->packs)));
    tool_json_set(entry, "predicted_s",
                  p->predicted_s > 0 ? json_real(p->predicted_s) : json_null());
    tool_json_set(entry, "observed_s", p->told > 0 ? json_real(p->observed_s) : json_null());
    tool_json_set(entry, "why",
                  own != NULL                    ? json_string(main_why(own))
                  : had_no_choice(e, p, targets) ? json_string("no other target")
                                                 : json_null());
    for (guint i = 0; i < p->stands->len; i++) {
        const stand *s = g_ptr_array_index(p->stands, i);
        if (g_strv_contains((const char *const *) targets, s->target))
            continue;
        json_t *other = json_object();
        tool_json_set(other, "target", tool_json_text(s->target));
        tool_json_set(other, "why", json_string(main_why(s)));
        tool_json_set(other, "predicted_s",
                      s->predicted > 0 ? json_real(mean_seconds(s)) : json_null());
        tool_json_append(others, other);
    }
    tool_json_set(entry, "alternatives", others);
    return entry;
}

/* ---- containers --------------------------------------------------------------------------- */

static esdm_status
explain_dataset(explanation *e, esdm_dataset *dataset, const char *path, json_t *list,
                esdm_error *err)
{
    e->places = g_ptr_array_new_with_free_func(free_place);
    e->list = tool.json && stat_wants.fragments ? json_array() : NULL;
    g_autofree char *printable = tool_printable(path);
    const char *shape = esdm_dataset_hint(dataset, "esdm.shape");
    if (!tool.json)
        (void) printf("  %s\n", printable);
    if (!tool.json && shape != NULL) {
        g_autofree char *why = tool_printable(shape);
        (void) printf("    large writes were %s\n", why);
    }
    esdm_status status = esdm_dataset_fragments(dataset, take_fragment, e, err);
    g_ptr_array_sort(e->places, by_bytes);
    json_t *places = json_array();
    for (guint i = 0; i < e->places->len && status == ESDM_OK; i++) {
        const place *p = g_ptr_array_index(e->places, i);
        if (tool.json)
            tool_json_append(places, place_json(e, p));
        else
            print_place(e, p);
    }
    if (!tool.json && e->places->len == 0)
        (void) printf("    no data\n");
    if (tool.json) {
        json_t *entry = json_object();
        tool_json_set(entry, "path", tool_json_text(path));
        tool_json_set(entry, "targets", json_incref(places));
        if (shape != NULL)
            tool_json_set(entry, "shape", tool_json_text(shape));
        if (e->list != NULL)
            tool_json_set(entry, "fragments", e->list);
        tool_json_append(list, entry);
    }
    json_decref(places);
    g_ptr_array_unref(e->places);
    return status;
}

/* Datasets of a group and those below; with `wanted` that one alone. */
static esdm_status
explain_group(explanation *e, esdm_group *group, const char *path, const char *wanted,
              gboolean *found, json_t *list, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < esdm_group_dataset_count(group) && status == ESDM_OK; i++) {
        esdm_dataset *dataset = esdm_group_dataset_at(group, i);
        g_autofree char *full = g_strconcat(path, esdm_dataset_name(dataset), NULL);
        if (wanted != NULL && !g_str_equal(wanted, full))
            continue;
        *found = TRUE;
        status = explain_dataset(e, dataset, full, list, err);
    }
    for (size_t i = 0; i < esdm_group_count(group) && status == ESDM_OK; i++) {
        esdm_group *child = esdm_group_at(group, i);
        g_autofree char *below = g_strconcat(path, esdm_group_name(child), "/", NULL);
        status = explain_group(e, child, below, wanted, found, list, err);
    }
    return status;
}

static bool
note_target(const esdm_forecast_share *share, void *user)
{
    g_ptr_array_add(user, g_strdup(share->target));
    return true;
}

/* The site's target when it has but one: owned, else NULL. A forecast names all of them. */
static char *
only_target(esdm_session *session, const char *container)
{
    g_autoptr(GPtrArray) targets = g_ptr_array_new_with_free_func(g_free);
    const esdm_forecast_request request = {
        .container = container, .path = "/", .element_bytes = 1 << 30, .writes = 1};
    double seconds = 0;
    esdm_error err;
    esdm_status status =
        esdm_forecast_write(session, &request, note_target, targets, &seconds, &err);
    return status == ESDM_OK && targets->len == 1 ? g_strdup(g_ptr_array_index(targets, 0)) : NULL;
}

static esdm_status
explain_container(esdm_session *session, esdm_container *container, const char *name,
                  const char *wanted, json_t *list, esdm_error *err)
{
    g_autofree char *only = only_target(session, name);
    explanation e = {.stories = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_story),
                     .only = only};
    gboolean found = wanted == NULL;
    json_t *datasets = json_array();
    g_autofree char *printable = tool_printable(name);
    esdm_status status = esdm_container_decisions(container, take_story, &e, err);
    if (!tool.json)
        (void) printf("%s\n", printable);
    if (status == ESDM_OK)
        status =
            explain_group(&e, esdm_container_root(container), "", wanted, &found, datasets, err);
    if (status == ESDM_OK && !found)
        status =
            tool_error_set(err, ESDM_ENOENT, "container '%s' has no variable '%s'", name, wanted);
    if (status == ESDM_OK && !tool.json)
        tool_models_tell(session, NULL);
    if (tool.json) {
        json_t *entry = json_object();
        tool_json_set(entry, "name", tool_json_text(name));
        tool_json_set(entry, "datasets", json_incref(datasets));
        tool_models_tell(session, entry);
        tool_json_append(list, entry);
    }
    json_decref(datasets);
    g_hash_table_unref(e.stories);
    return status;
}

/* Explains the container that a file stands for; false: it is no such file. */
static bool
follow_stub(esdm_session *session, const char *argument, uint64_t snapshot, json_t *list,
            tool_exit *ret_result)
{
    g_autofree char *stub = NULL;
    esdm_error err = {0};
    esdm_status status = tool_stub_container(session, argument, &stub, &err);
    if (status == ESDM_OK && stub == NULL)
        return false;
    g_autofree char *target =
        stub != NULL ? g_strconcat("esdm://", stub, NULL) : NULL; /* no path */
    *ret_result =
        status == ESDM_OK ? stat_explain(session, target, snapshot, list) : tool_fail(status, &err);
    return true;
}

tool_exit
stat_explain(esdm_session *session, const char *argument, uint64_t snapshot, json_t *list)
{
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_error err = {0};
    esdm_container *container = NULL;
    tool_exit result = TOOL_OK;
    if (argument[0] == '/' && follow_stub(session, argument, snapshot, list, &result))
        return result; /* though a container may be called as the path */
    esdm_status status = esdm_container_normalise(tool_container(argument), name, &err);
    if (status != ESDM_OK)
        return follow_stub(session, argument, snapshot, list, &result) ? result
                                                                       : tool_fail(status, &err);
    /* The longest name that is a container; the rest is the path of a variable. */
    g_autofree char *whole = g_strdup(name);
    const char *variable = NULL;
    for (;;) {
        status = esdm_container_open(session, name, ESDM_OPEN_READ, snapshot, &container, &err);
        char *slash = strrchr(name, '/');
        if (status != ESDM_ENOENT || slash == NULL)
            break;
        *slash = '\0';
        variable = whole + (slash - name) + 1;
    }
    if (container == NULL && follow_stub(session, argument, snapshot, list, &result))
        return result;
    if (status == ESDM_ENOENT)
        return snapshot == 0 ? tool_absent(session, whole) : stat_no_snapshot(session, whole, &err);
    if (status == ESDM_OK)
        status = explain_container(session, container, name, variable, list, &err);
    esdm_container_discard(container);
    return status == ESDM_OK ? TOOL_OK : tool_fail(status, &err);
}
