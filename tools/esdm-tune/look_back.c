/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* esdm-tune --look-back: whether the site's programs became slower since its configuration changed.
 */
#include "esdm-tune/esdm-tune.h"

#include <math.h>
#include <stdio.h>

#define EACH_LEAST 3u /* runs of a program before the change, and after it */
#define WORSE      1.03
#define COST_LEAST 1e-6 /* seconds for a GB; what is outside was invented */
#define COST_MOST  1e9
#define NS_PER_S   INT64_C(1000000000)

typedef struct looked {
    const char *program; /* borrowed */
    uint64_t user;
    GArray *before; /* double; seconds for a GB */
    GArray *after;
    tool_usual was, is;
} looked;

/* All users have one vote each, so that nobody decides by programs or runs that were invented. */
typedef struct verdict {
    guint users, slower; /* that have programs with enough runs; to whom the site is slower */
    double ratio;        /* the middle one of the users' */
    bool worse;
} verdict;

/* What reading, writing and committing took for each GB; NAN: too little was moved. */
static double
seconds_for_gb(const tool_run *run)
{
    tool_moved in = tool_run_moved(run, "read", NULL), out = tool_run_moved(run, "write", NULL);
    tool_moved commits = tool_run_moved(run, "commit", NULL);
    double bytes = in.bytes + out.bytes;
    double seconds = in.seconds + out.seconds + commits.seconds;
    double cost = bytes >= 1e5 ? seconds / bytes * 1e9 : NAN;
    return cost >= COST_LEAST && cost <= COST_MOST ? cost : NAN;
}

static looked *
looked_of(GPtrArray *list, const tool_run *run)
{
    for (guint i = 0; i < list->len; i++) {
        looked *one = list->pdata[i];
        if (one->user == run->user && g_str_equal(one->program, run->program))
            return one;
    }
    looked *new = g_new0(looked, 1);
    new->program = run->program;
    new->user = run->user;
    new->before = g_array_new(FALSE, FALSE, sizeof(double));
    new->after = g_array_new(FALSE, FALSE, sizeof(double));
    g_ptr_array_add(list, new);
    return new;
}

static void
free_looked(gpointer data)
{
    looked *one = data;
    g_array_unref(one->before);
    g_array_unref(one->after);
    g_free(one);
}

/* Programs of users, with enough runs on both sides. */
static GPtrArray *
look(const GPtrArray *runs, gint64 changed_ns)
{
    GPtrArray *list = g_ptr_array_new_with_free_func(free_looked);
    for (guint i = 0; i < runs->len; i++) {
        const tool_run *run = runs->pdata[i];
        double cost = seconds_for_gb(run);
        looked *one = isnan(cost) ? NULL : looked_of(list, run);
        if (one != NULL)
            g_array_append_val(run->started_ns < changed_ns ? one->before : one->after, cost);
    }
    for (guint i = list->len; i-- > 0;) {
        looked *one = list->pdata[i];
        if (one->before->len < EACH_LEAST || one->after->len < EACH_LEAST) {
            g_ptr_array_remove_index(list, i);
            continue;
        }
        one->was = tool_usual_of(one->before);
        one->is = tool_usual_of(one->after);
    }
    return list;
}

static bool
is_slower(const looked *one)
{
    return one->is.middle > WORSE * one->was.middle && one->is.middle > one->was.high;
}

static void
print_looked(const GPtrArray *list, gint64 changed_ns, const verdict *v)
{
    g_autofree char *when = tool_time((uint64_t) changed_ns);
    (void) printf("Since the configuration changed (%s), seconds for each GB that was read or "
                  "written:\n%-32s %8s %6s %10s %6s %10s %6s\n",
                  when, "program", "user", "before", "usually", "after", "usually", "times");
    for (guint i = 0; i < list->len; i++) {
        const looked *one = list->pdata[i];
        g_autofree char *name = tool_printable(one->program);
        (void) printf("%-32s %8llu %6u %10.3g %6u %10.3g %6.2f%s\n", name,
                      (unsigned long long) one->user, one->was.count, one->was.middle,
                      one->is.count, one->is.middle, one->is.middle / one->was.middle,
                      is_slower(one) ? "  slower" : "");
    }
    (void) printf("%u of %u user%s slower; in the middle %.2f times as long%s.\n", v->slower,
                  v->users, v->users == 1 ? " is" : "s are", v->ratio,
                  v->worse ? ", so the site is slower than it was" : "; the site stays as it is");
}

static json_t *
looked_json(const GPtrArray *list, gint64 changed_ns, const verdict *v)
{
    json_t *programs = json_array();
    for (guint i = 0; i < list->len; i++) {
        const looked *one = list->pdata[i];
        tool_json_append(
            programs,
            json_pack("{s:o,s:I,s:i,s:f,s:i,s:f,s:b}", "program", tool_json_text(one->program),
                      "user", (json_int_t) one->user, "runs_before", (int) one->was.count,
                      "s_per_GB_before", one->was.middle, "runs_after", (int) one->is.count,
                      "s_per_GB_after", one->is.middle, "slower", (int) is_slower(one)));
    }
    return json_pack("{s:I,s:o,s:i,s:i,s:f,s:b}", "changed_ns", (json_int_t) changed_ns, "programs",
                     programs, "users", (int) v->users, "users_slower", (int) v->slower, "ratio",
                     v->ratio, "slower", (int) v->worse);
}

static gint
by_user(gconstpointer a, gconstpointer b)
{
    const looked *x = *(const looked *const *) a, *y = *(const looked *const *) b;
    return x->user < y->user ? -1 : x->user > y->user;
}

/* @param list sorted by user. */
static verdict
judge(GPtrArray *list)
{
    verdict v = {0};
    g_autoptr(GArray) ratios = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint first = 0, next; first < list->len; first = next) {
        const looked *of = list->pdata[first];
        double sum = 0;
        guint slower = 0;
        for (next = first; next < list->len; next++) {
            const looked *one = list->pdata[next];
            if (one->user != of->user)
                break;
            sum += log(one->is.middle / one->was.middle);
            slower += is_slower(one);
        }
        double ratio = exp(sum / (next - first));
        g_array_append_val(ratios, ratio);
        v.users++;
        v.slower += ratio > WORSE && 2 * slower >= next - first;
    }
    v.ratio = tool_usual_of(ratios).middle;
    v.worse = v.ratio > WORSE && 2 * v.slower > v.users;
    return v;
}

tool_exit
tune_look_back(gint64 changed_ns, bool *ret_slower)
{
    tool_exit result = TOOL_OK;
    g_autoptr(GPtrArray) runs = tool_runs(NULL, &result);
    if (runs == NULL)
        return result;
    g_autoptr(GPtrArray) list = look(runs, changed_ns);
    if (list->len == 0) {
        g_autofree char *when = tool_time((uint64_t) (changed_ns / NS_PER_S) * NS_PER_S);
        tool_error("no program has %u runs of one user before the change of %s and %u after it "
                   "(of %u that the site has kept and you may read)",
                   EACH_LEAST, when, EACH_LEAST, runs->len);
        return TOOL_NOT_FOUND;
    }
    g_ptr_array_sort(list, by_user);
    const verdict v = judge(list);
    *ret_slower = v.worse;
    if (tool.json)
        tool_json_print(looked_json(list, changed_ns, &v));
    else
        print_looked(list, changed_ns, &v);
    return TOOL_OK;
}
