/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What earlier runs did, by all users of the site, and what is usual. */

#include "common/common.h"
#include "esdm/monitor.h"

#include <math.h>
#include <string.h>

#define RUNS_MOST 20000u
#define EACH_MOST 2000u /* of one user; fewer where there are very many users */
#define ASIDE_S   5.0   /* what is told beside something else waits no longer */
#define ASKED_S   10.0  /* and what was asked for no longer after the last line */
#define FASTEST   1e15  /* bytes in a second: no storage is like that */

static bool silent;

static void
free_run(gpointer data)
{
    tool_run *run = data;
    json_decref(run->line);
    g_free(run);
}

/* Runs while they are read. One user's lines come one after the other. */
typedef struct reading {
    char *program; /* owned; NULL: of all */
    GPtrArray *list;
    guint each;    /* of one user, at most */
    guint of_last; /* of the last one in the list, since it was thinned */
    uint64_t last;
    atomic_uint lines; /* read so far */
    esdm_status status;
    esdm_error err;
} reading;

static gint
by_user(gconstpointer a, gconstpointer b)
{
    const tool_run *x = *(const tool_run *const *) a, *y = *(const tool_run *const *) b;
    if (x->user != y->user)
        return x->user < y->user ? -1 : 1;
    return x->started_ns > y->started_ns ? -1 : x->started_ns < y->started_ns;
}

/* Each user's last runs stay, so that nobody hides the others by many lines. */
static void
thin(reading *r)
{
    GPtrArray *kept = g_ptr_array_new_with_free_func(free_run);
    guint count = 0;
    g_ptr_array_sort(r->list, by_user);
    for (guint i = 0; i < r->list->len; i++) {
        tool_run *run = r->list->pdata[i];
        count = i > 0 && ((tool_run *) r->list->pdata[i - 1])->user == run->user ? count + 1 : 1;
        if (count <= r->each)
            g_ptr_array_add(kept, run);
    }
    for (guint i = 0, k = 0; i < r->list->len; i++) {
        if (k < kept->len && kept->pdata[k] == r->list->pdata[i])
            k++;
        else
            free_run(r->list->pdata[i]);
    }
    g_ptr_array_set_free_func(r->list, NULL);
    g_ptr_array_unref(r->list);
    r->list = kept;
    r->of_last = 0;
}

static bool
take_run(void *context, uint64_t user, const char *text)
{
    reading *r = context;
    (void) atomic_fetch_add(&r->lines, 1);
    json_t *line = tool_json_read(text, -1, 0, NULL); /* of a file that its user may have changed */
    const char *program = json_string_value(json_object_get(line, "program"));
    double seconds = json_number_value(json_object_get(line, "seconds"));
    json_int_t started = json_integer_value(json_object_get(line, "started_ns"));
    if (program == NULL || !(seconds >= 0 && seconds < 1e9) || started <= 0 ||
        !json_is_array(json_object_get(line, "spans"))) {
        json_decref(line);
        return true;
    }
    tool_run *run = g_new0(tool_run, 1);
    *run = (tool_run){
        .user = user, .started_ns = started, .seconds = seconds, .program = program, .line = line};
    g_ptr_array_add(r->list, run);
    r->of_last = user == r->last ? r->of_last + 1 : 1;
    r->last = user;
    if (r->of_last > EACH_MOST)
        thin(r);
    while (r->list->len >= RUNS_MOST && r->each > 1) {
        r->each /= 2;
        thin(r);
    }
    return r->list->len < RUNS_MOST;
}

static gint
by_start(gconstpointer a, gconstpointer b)
{
    const tool_run *x = *(const tool_run *const *) a, *y = *(const tool_run *const *) b;
    return x->started_ns < y->started_ns ? -1 : x->started_ns > y->started_ns;
}

static void
read_runs(void *data)
{
    reading *r = data;
    r->status = esdm_runs_read(tool.config, r->program, take_run, r, &r->err);
    thin(r);
    g_ptr_array_sort(r->list, by_start);
}

static void
free_reading(void *data)
{
    reading *r = data;
    g_free(r->program);
    g_ptr_array_unref(r->list);
    g_free(r);
}

bool
tool_runs_are_silent(void)
{
    return silent;
}

GPtrArray *
tool_runs(const char *program, tool_exit *ret_exit)
{
    reading *r = g_new0(reading, 1);
    r->program = g_strdup(program);
    r->list = g_ptr_array_new_with_free_func(free_run);
    r->each = EACH_MOST;
    if (ret_exit != NULL) {
        if (!tool_in_time(read_runs, r, free_reading, ASKED_S, &r->lines)) {
            tool_error(
                "the folder of the site's runs (\"monitor.runs\") has not answered for %.0f s: "
                "its file server may be away; nothing is told of any run",
                ASKED_S);
            *ret_exit = TOOL_FAILED;
            return NULL;
        }
    } else if (silent || !tool_in_time(read_runs, r, free_reading, ASIDE_S, NULL)) {
        if (silent)
            free_reading(r);
        else
            tool_error("earlier runs are left out: the folder of the site's runs does not answer");
        silent = true;
        return NULL;
    }
    GPtrArray *list = r->status == ESDM_OK ? g_ptr_array_ref(r->list) : NULL;
    if (list == NULL && ret_exit != NULL)
        *ret_exit = tool_fail(r->status, &r->err);
    free_reading(r);
    return list;
}

tool_moved
tool_run_moved(const tool_run *run, const char *kind, const char *target)
{
    tool_moved sum = {0};
    size_t i;
    const json_t *s;
    json_array_foreach(json_object_get(run->line, "spans"), i, s)
    {
        if (g_strcmp0(json_string_value(json_object_get(s, "kind")), kind) != 0 ||
            (target != NULL &&
             g_strcmp0(json_string_value(json_object_get(s, "target")), target) != 0))
            continue;
        double bytes = json_number_value(json_object_get(s, "bytes"));
        double seconds = json_number_value(json_object_get(s, "seconds"));
        /* What cannot be was invented. */
        if (bytes > 0 && bytes < 1e18 && seconds >= 0 && seconds < 1e9 &&
            bytes <= FASTEST * seconds) {
            sum.bytes += bytes;
            sum.seconds += seconds;
            sum.count += CLAMP(json_number_value(json_object_get(s, "count")), 0, 1e15);
        }
    }
    sum.bytes = MIN(sum.bytes, 1e18);
    sum.seconds = MIN(sum.seconds, 1e9);
    return sum;
}

guint
tool_run_users(const GPtrArray *runs)
{
    g_autoptr(GHashTable) users = g_hash_table_new(g_int64_hash, g_int64_equal);
    for (guint i = 0; i < runs->len; i++)
        (void) g_hash_table_add(users, &((tool_run *) runs->pdata[i])->user);
    return g_hash_table_size(users);
}

static gint
by_value(gconstpointer a, gconstpointer b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return x < y ? -1 : x > y;
}

static double
quantile(const GArray *sorted, double share)
{
    double at = share * (double) (sorted->len - 1);
    guint low = (guint) at;
    guint high = MIN(low + 1, sorted->len - 1);
    double a = g_array_index(sorted, double, low), b = g_array_index(sorted, double, high);
    return a + (at - low) * (b - a);
}

tool_usual
tool_usual_of(GArray *values)
{
    if (values->len == 0)
        return (tool_usual){.middle = NAN, .low = NAN, .high = NAN};
    g_array_sort(values, by_value);
    return (tool_usual){.count = values->len,
                        .middle = quantile(values, 0.5),
                        .low = quantile(values, 0.25),
                        .high = quantile(values, 0.75)};
}

bool
tool_is_unusual(const tool_usual *usual, double value)
{
    double spread = usual->high - usual->low;
    return usual->count >= TOOL_RUNS_LEAST && usual->middle > 0 &&
           (value > usual->high + 1.5 * spread || value < usual->low - 1.5 * spread) &&
           (value > 1.5 * usual->middle || value < usual->middle / 1.5);
}
