/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What can be set of a site, and to what. */
#include "esdm-tune/esdm-tune.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

/* What holds where nothing is stated (site-config/README.md). */
typedef struct choice {
    const char *name;
    const char *section; /* of the configuration; TARGETS: each target on S3; POLICIES; OPTIONS */
    const char *key;     /* there */
    const char *otherwise;
    const char *values[TUNE_VALUES];
} choice;

#define TARGETS  "targets"
#define PLUGIN   "s3"       /* whose targets have "connections" and "part" */
#define POLICIES "policies" /* of the site: see space_split.c */
#define OPTIONS  "esdm-run" /* for which sites have no key: options of the command */
#define HINT(name, ...)                                                                            \
    {                                                                                              \
        name, TUNE_HINTS, name, TUNE_HINT_NONE,                                                    \
        {                                                                                          \
            TUNE_HINT_NONE, __VA_ARGS__                                                            \
        }                                                                                          \
    }

static const choice choices[] = {
    {"threads", "engine", "threads", "0", {"1", "2", "4", "8", "16"}},
    {"fragment", "engine", "fragment", "4M", {"256K", "1M", "4M", "16M", "64M"}},
    {"codec", "engine", "codec", "none", {"none", "lz4", "shuffle+lz4", "shuffle+zstd"}},
    {"memory", "engine", "memory", "256M", {"64M", "256M", "1G"}},
    {"pack", "engine", "pack", "1G", {"64M", "256M", "1G"}},
    {"writes", "engine", "writes", "direct", {"direct", "background"}},
    {"chunk-cache", "netcdf", "chunk_cache", "16M", {"16M", "64M", "256M", "1G"}},
    {"chunk-steps", "netcdf", "chunk_steps", "1", {"1", "8", "32", "128"}},
    {"connections", TARGETS, "connections", "16", {"4", "16", "64"}},
    {"part", TARGETS, "part", "32M", {"8M", "32M", "128M"}},
    {"earlier-runs", "engine", "earlier_runs", "prefetch", {"off", "prefetch"}},
    {"gather", "engine", "gather", "fragment", {"fragment", "8M", "16M", "64M"}},
    {"sieve", "engine", "sieve", "model", {"model", "0", "64K", "512K", "4M"}},
    {"split", POLICIES, "targets", TUNE_SPLIT_ALL, {TUNE_SPLIT_ALL, "NAME+NAME"}},
    {"io-ranks", "ranks", "io", "0", {"0", "1", "2", "4"}},
    {"read-ahead", OPTIONS, "--read-ahead", "off", {"off", "on"}},
    {"mpi-hints", OPTIONS, "--mpi-hints", "off", {"off", "on"}},
    HINT("striping_factor", "2", "4", "8", "16"),
    HINT("striping_unit", "1M", "4M", "16M"),
    HINT("cb_nodes", "1", "2", "4", "8"),
    HINT("cb_buffer_size", "4M", "16M", "64M"),
    HINT("romio_cb_read", "enable", "disable"),
    HINT("romio_cb_write", "enable", "disable"),
    HINT("romio_ds_read", "enable", "disable"),
    HINT("romio_ds_write", "enable", "disable"),
};
#define CHOICES      G_N_ELEMENTS(choices)
#define CHUNK_CACHE  "ESDM_NC_CHUNK_CACHE" /* see esdm-run */
#define CHUNK_STEPS  "ESDM_NC_CHUNK_STEPS" /* the same */
#define USUAL        3                     /* the first ones are tried where nobody says which */
#define EARLIER_RUNS "ESDM_EARLIER_RUNS"
/* What hints need: two runs to measure, and two with the first hint (esdm-explain/hints.c). */
#define RUNS_OF_HINTS 4
/* Threads beyond that many for each core gain nothing but on targets that are far away. */
#define THREADS_PER_CORE 8

/* Bytes of "4M", "4 MiB", "4096"; NAN: it is none. */
static double
number_of(const char *text)
{
    char *end = NULL;
    double number = g_ascii_strtod(text, &end);
    const char *units = "KMGT";
    if (end == text || number < 0)
        return NAN;
    while (*end == ' ')
        end++;
    const char *unit = *end != '\0' ? strchr(units, g_ascii_toupper(*end)) : NULL;
    if (unit == NULL)
        return *end == '\0' ? number : NAN;
    if (end[1] != '\0' && strcmp(end + 1, "iB") != 0)
        return NAN;
    return number * pow(1024, (double) (unit - units + 1));
}

static double
cores(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (double) count : 1;
}

static bool
is_threads(const tune_parameter *p)
{
    return g_str_equal(p->name, "threads");
}

/* The number of a value; threads of 0 are the cores. */
static double
x_of(const tune_parameter *p, const char *text)
{
    double x = number_of(text);
    if (p->category)
        return isnan(x) ? 0 : x;
    return is_threads(p) && x == 0 ? cores() : x;
}

/* None, one, and more are different things: its values have no order. */
static bool
is_io_ranks(const char *name)
{
    return g_str_equal(name, "io-ranks");
}

/* Sizes, or a word for what decides where none is stated: its values have no order. */
static bool
is_size_or_word(const char *name)
{
    return g_str_equal(name, "gather") || g_str_equal(name, "sieve") || tune_hint_is_size(name);
}

static bool
is_split(const char *name)
{
    return g_str_equal(name, "split");
}

/* Whether its numbers are no sizes. */
static bool
is_count(const tune_parameter *p)
{
    return is_threads(p) || g_str_equal(p->name, "connections") || is_io_ranks(p->name) ||
           g_str_equal(p->name, "chunk-steps");
}

bool
tune_is_memory(const tune_parameter *p)
{
    return g_str_equal(p->name, "memory") || g_str_equal(p->name, "chunk-cache");
}

static json_t *
json_of(const tune_parameter *p, const char *text)
{
    if (is_count(p))
        return json_integer((json_int_t) number_of(text));
    return p->category ? json_string(text) : json_integer((json_int_t) number_of(text));
}

static bool
is_same(const tune_parameter *p, guint i, const char *text)
{
    bool number = !p->category || (is_size_or_word(p->name) && !isnan(number_of(text)) &&
                                   !isnan(number_of(p->texts[i])));
    return number ? p->x[i] == x_of(p, text) : g_str_equal(p->texts[i], text);
}

/* Where a value stands; it is added when it is new. false: there are too many. */
static bool
find_or_add(tune_parameter *p, const char *text, guint *ret_place)
{
    for (*ret_place = 0; *ret_place < p->count; (*ret_place)++) {
        if (is_same(p, *ret_place, text))
            return true;
    }
    if (p->count == TUNE_VALUES)
        return false;
    p->texts[p->count] = g_strdup(text);
    p->x[p->count] = x_of(p, text);
    p->json[p->count] = json_of(p, text);
    p->count++;
    return true;
}

/* In order of size, so that a value's neighbours are next to it. */
static void
sort_values(tune_parameter *p)
{
    for (guint i = 1; i < p->count && !p->category; i++) {
        for (guint k = i; k > 0 && p->x[k - 1] > p->x[k]; k--) {
            char *text = p->texts[k];
            double x = p->x[k];
            json_t *json = p->json[k];
            p->texts[k] = p->texts[k - 1];
            p->x[k] = p->x[k - 1];
            p->json[k] = p->json[k - 1];
            p->texts[k - 1] = text;
            p->x[k - 1] = x;
            p->json[k - 1] = json;
        }
    }
}

static void
place_values(tune_parameter *p)
{
    double low = log2(fmax(p->x[0], 1));
    double high = log2(fmax(p->x[p->count - 1], 1));
    for (guint i = 0; i < p->count; i++)
        p->position[i] =
            p->category || high <= low ? 0 : 2 * (log2(fmax(p->x[i], 1)) - low) / (high - low) - 1;
}

static bool
is_on_s3(const json_t *target)
{
    const char *plugin = json_string_value(json_object_get(target, "plugin"));
    return plugin != NULL && g_str_equal(plugin, PLUGIN);
}

/* Target number `from` or one behind it that is on S3; NULL: there is none. */
static json_t *
target_on_s3(const json_t *config, gsize *from)
{
    const json_t *targets = json_object_get(config, TARGETS);
    for (; *from < json_array_size(targets); (*from)++) {
        json_t *target = json_array_get(targets, *from);
        if (is_on_s3(target))
            return target;
    }
    return NULL;
}

static bool
is_of_targets(const char *section)
{
    return g_str_equal(section, TARGETS);
}

/* What the configuration states, as a text; of targets on S3, what the first one states. */
static char *
stated_text(const json_t *config, const choice *c)
{
    gsize first = 0;
    const json_t *section = is_of_targets(c->section) ? target_on_s3(config, &first)
                                                      : json_object_get(config, c->section);
    const json_t *member = json_object_get(section, c->key);
    if (json_is_string(member))
        return g_strdup(json_string_value(member));
    if (json_is_integer(member))
        return g_strdup_printf("%" JSON_INTEGER_FORMAT, json_integer_value(member));
    return g_strdup(c->otherwise);
}

/* Of esdm-run, on or off. */
static bool
is_switch(const tune_parameter *p)
{
    return g_str_equal(p->section, OPTIONS);
}

static bool
is_option(const tune_parameter *p)
{
    return is_switch(p) || tune_hint_is(p);
}

static bool
is_value(const tune_parameter *p, const json_t *config, const choice *c, const char *text)
{
    if (is_split(c->name))
        return tune_split_is(config, text);
    if (is_size_or_word(c->name) && !isnan(number_of(text)))
        return true;
    if (!p->category || is_io_ranks(c->name))
        return !isnan(number_of(text));
    if (tune_hint_is(p))
        return g_str_equal(text, TUNE_HINT_NONE) ||
               (!tune_hint_is_size(c->name) && tune_hint_is_value(c->key, text));
    bool known = g_str_equal(c->name, "codec"); /* which the site knows, with its plug-ins */
    for (guint i = 0; i < TUNE_VALUES && c->values[i] != NULL; i++)
        known |= g_str_equal(c->values[i], text);
    return known && *text != '\0';
}

/* Why trials would all be alike; or NULL. */
static const char *
environment_of(const choice *c)
{
    bool cache = g_str_equal(c->name, "chunk-cache");
    bool runs = g_str_equal(c->name, "earlier-runs") || g_str_equal(c->name, "mpi-hints");
    bool steps = g_str_equal(c->name, "chunk-steps");
    const char *name = cache ? CHUNK_CACHE : steps ? CHUNK_STEPS : runs ? EARLIER_RUNS : NULL;
    return name != NULL && g_getenv(name) != NULL ? name : NULL;
}

static tool_exit
bad_value(const choice *c, const char *text)
{
    if (c->values[1] == NULL)
        return tool_usage("--try: '%s' is no value of %s; expected mpi:NAME=VALUE of letters, "
                          "digits and " TUNE_HINT_OTHERS ", as esdm-run --mpi-hint takes it",
                          text, c->name);
    return tool_usage("--try: '%s' is no value of %s; expected some such as %s", text, c->name,
                      c->values[1]);
}

static tool_exit
init_parameter(tune_parameter *p, const json_t *config, const choice *c, const char *wished)
{
    g_autofree char *stated = is_split(c->name) ? NULL : stated_text(config, c);
    g_auto(GStrv) list = wished != NULL ? g_strsplit(wished, ",", -1) : NULL;
    if (stated == NULL) {
        tool_exit result = tune_split_stated(config, &stated);
        if (result != TOOL_OK)
            return result;
        list = list != NULL ? list : tune_split_values(config);
    }
    guint place = 0;
    gsize first = 0;
    *p = (tune_parameter){.name = c->name,
                          .section = c->section,
                          .key = c->key,
                          .category = isnan(number_of(c->otherwise)) || is_io_ranks(c->name)};
    if (is_of_targets(c->section) && target_on_s3(config, &first) == NULL)
        return tool_usage("--try: %s is one of targets on S3, of which this site has none",
                          c->name);
    const char *environment = environment_of(c);
    if (environment != NULL)
        return tool_usage("--try: %s is in the environment, and counts more than %s of trials: "
                          "unset it",
                          environment, c->name);
    for (guint i = 0; list != NULL && list[i] != NULL; i++) {
        const char *text = g_strstrip(list[i]);
        if (!is_value(p, config, c, text))
            return bad_value(c, text);
        if (!find_or_add(p, text, &place))
            return tool_usage("--try: more than %u values of %s", TUNE_VALUES, c->name);
    }
    for (guint i = 0; list == NULL && i < TUNE_VALUES && c->values[i] != NULL; i++)
        if (!is_threads(p) || x_of(p, c->values[i]) <= cores() * THREADS_PER_CORE)
            (void) find_or_add(p, c->values[i], &place);
    if (isnan(x_of(p, stated)) || !find_or_add(p, stated, &place)) {
        tool_error("the site states %s = %s, which is not understood", c->name, stated);
        return TOOL_FAILED;
    }
    sort_values(p);
    for (p->current = 0; !is_same(p, p->current, stated);)
        p->current++;
    place_values(p);
    return TOOL_OK;
}

static const choice *
choice_named(const char *name, gsize bytes)
{
    for (gsize i = 0; i < CHOICES; i++) {
        if (strlen(choices[i].name) == bytes && strncmp(choices[i].name, name, bytes) == 0)
            return &choices[i];
    }
    return NULL;
}

/* Bytes of memory: the most that is tried, or what the site states. */
static double
most_memory(const tune_space *space)
{
    double most = space->memory_bytes;
    for (guint i = 0; i < space->count; i++) {
        const tune_parameter *p = &space->parameters[i];
        if (g_str_equal(p->name, "memory"))
            most = fmax(most, p->x[p->count - 1]);
    }
    return most;
}

/* What no setting of the space allows is said, not left out. */
static tool_exit
check_gather(const tune_space *space, char **wishes)
{
    for (guint i = 0; wishes != NULL && i < space->count; i++) {
        const tune_parameter *p = &space->parameters[i];
        bool stated = g_str_equal(p->name, "gather") && strchr(wishes[i], '=') != NULL;
        for (guint k = 0; stated && k < p->count; k++)
            if (p->x[k] > most_memory(space) / 4)
                return tool_usage("--try: gather of %s is more than a quarter of memory; try more "
                                  "of that, too: --try memory",
                                  p->texts[k]);
    }
    return TOOL_OK;
}

/* Of a hint "mpi:NAME", whose values have to be stated; stays until the end. One that has a name
 * here is that one. NULL: it is none. */
static const choice *
choice_of_hint(const char *wish, gsize bytes)
{
    g_autofree char *name = g_strndup(wish, bytes);
    if (!g_str_has_prefix(name, TUNE_HINT_ANY) || wish[bytes] != '=' ||
        !tune_hint_is_name(name + strlen(TUNE_HINT_ANY)))
        return NULL;
    const char *key = name + strlen(TUNE_HINT_ANY);
    const choice *known = choice_named(key, strlen(key));
    if (known != NULL && g_str_equal(known->section, TUNE_HINTS))
        return known;
    choice *c = g_new0(choice, 1);
    c->name = g_steal_pointer(&name);
    *c = (choice) HINT(c->name, NULL);
    c->key = c->name + strlen(TUNE_HINT_ANY);
    return c;
}

tool_exit
tune_space_init(tune_space *space, json_t *config, char **wishes)
{
    g_autofree char *memory = stated_text(config, choice_named("memory", strlen("memory")));
    *space = (tune_space){.config = config, .memory_bytes = number_of(memory)};
    tool_exit result = TOOL_OK;
    for (gsize i = 0; wishes == NULL && i < USUAL && result == TOOL_OK; i++)
        result = init_parameter(&space->parameters[space->count++], config, &choices[i], NULL);
    for (guint i = 0; wishes != NULL && wishes[i] != NULL && result == TOOL_OK; i++) {
        const char *equals = strchr(wishes[i], '=');
        gsize bytes = equals != NULL ? (gsize) (equals - wishes[i]) : strlen(wishes[i]);
        const choice *c = choice_named(wishes[i], bytes);
        c = c != NULL ? c : choice_of_hint(wishes[i], bytes);
        if (i >= TUNE_PARAMETERS)
            return tool_usage("--try: more than %u parameters", TUNE_PARAMETERS);
        if (c == NULL)
            return tool_usage("--try: there is no parameter '%.*s'; known are threads, fragment, "
                              "codec, memory, pack, gather, sieve, split, writes, chunk-cache, "
                              "chunk-steps, connections, part, earlier-runs, io-ranks, read-ahead, "
                              "mpi-hints, striping_factor, striping_unit, cb_nodes, "
                              "cb_buffer_size, romio_cb_read, romio_cb_write, romio_ds_read, "
                              "romio_ds_write, mpi:HINT=VALUES",
                              (int) bytes, wishes[i]);
        for (guint k = 0; k < space->count; k++)
            if (g_str_equal(space->parameters[k].name, c->name))
                return tool_usage("--try: %s is stated twice", c->name);
        result = init_parameter(&space->parameters[space->count++], config, c,
                                equals != NULL ? equals + 1 : NULL);
    }
    return result == TOOL_OK ? check_gather(space, wishes) : result;
}

tool_exit
tune_space_fits(const tune_space *space, const tune_workload *workload)
{
    for (guint i = 0; i < space->count; i++) {
        const tune_parameter *p = &space->parameters[i];
        bool program = workload->kernel == NULL && workload->records == NULL;
        if (is_io_ranks(p->name) && !program)
            return tool_usage("--try: io-ranks is of programs with ranks, of which kernels and "
                              "replays have none: name one, such as -- mpirun -n 4 PROGRAM");
        if (!is_option(p))
            continue;
        if (!program)
            return tool_usage("--try: %s is an option of esdm-run: name a program behind '--'",
                              p->name);
        const char *option = tune_hint_is(p) ? "--mpi-hint" : p->key;
        for (char **argument = workload->program; *argument != NULL; argument++)
            if (g_str_equal(*argument, option) ||
                (tune_hint_is(p) && g_str_has_prefix(*argument, "--mpi-hint=")))
                return tool_usage("--try: %s: leave %s out of the command; trials add it", p->name,
                                  option);
        bool of_ranks = tune_hint_is(p) || g_str_equal(p->name, "mpi-hints");
        if (of_ranks && tune_run_inside(workload) == 0)
            return tool_usage("--try: %s: esdm-run has to start each rank: name the program "
                              "so: -- mpirun -n 4 esdm-run PROGRAM",
                              p->name);
    }
    return tune_hints_fit(space);
}

guint
tune_space_runs_before(tune_space *space, const tune_setting *setting)
{
    guint runs = 0;
    for (guint i = 0; i < space->count; i++) {
        tune_parameter *p = &space->parameters[i];
        bool earlier = g_str_equal(p->name, "earlier-runs");
        if ((!earlier && !is_switch(p)) || g_str_equal(p->texts[setting->value[i]], "off"))
            continue;
        if (!p->has_record)
            runs = MAX(runs, g_str_equal(p->name, "mpi-hints") ? RUNS_OF_HINTS : 1u);
        p->has_record = true;
    }
    return runs;
}

/* Of a setting; what is not tried is as the site states it. NAN: no number. */
static double
number_or_stated(const tune_space *space, const tune_setting *setting, const char *name)
{
    double number = tune_space_number(space, setting, name);
    g_autofree char *stated =
        isnan(number) ? stated_text(space->config, choice_named(name, strlen(name))) : NULL;
    return stated != NULL ? number_of(stated) : number;
}

bool
tune_space_can_be(const tune_space *space, const tune_setting *setting)
{
    double fragment = number_or_stated(space, setting, "fragment");
    double gather = number_or_stated(space, setting, "gather");
    double memory = number_or_stated(space, setting, "memory");
    return !(fragment > memory) && !(gather > memory / 4);
}

guint64
tune_space_size(const tune_space *space)
{
    guint64 size = 1;
    for (guint i = 0; i < space->count; i++)
        size *= space->parameters[i].count;
    return size;
}

tune_setting
tune_space_at(const tune_space *space, guint64 number)
{
    tune_setting setting = {{0}};
    for (guint i = 0; i < space->count; i++) {
        setting.value[i] = (guint8) (number % space->parameters[i].count);
        number /= space->parameters[i].count;
    }
    return setting;
}

tune_setting
tune_space_current(const tune_space *space)
{
    tune_setting setting = {{0}};
    for (guint i = 0; i < space->count; i++)
        setting.value[i] = (guint8) space->parameters[i].current;
    return setting;
}

bool
tune_setting_equal(const tune_space *space, const tune_setting *a, const tune_setting *b)
{
    return memcmp(a->value, b->value, space->count) == 0;
}

static void
set_member(json_t *config, const tune_parameter *p, json_t *value)
{
    json_t *target;
    if (is_of_targets(p->section)) {
        for (gsize i = 0; (target = target_on_s3(config, &i)) != NULL; i++)
            tool_json_set(target, p->key, json_incref(value));
        return;
    }
    json_t *section = json_object_get(config, p->section);
    if (section == NULL) {
        section = json_object();
        tool_json_set(config, p->section, section);
    }
    tool_json_set(section, p->key, json_incref(value));
}

json_t *
tune_space_config(const tune_space *space, const tune_setting *setting)
{
    json_t *config = json_deep_copy(space->config);
    for (guint i = 0; i < space->count; i++) {
        const tune_parameter *p = &space->parameters[i];
        if (setting->value[i] != p->current && is_split(p->name))
            tune_split_set(config, p->texts[setting->value[i]]);
        else if (setting->value[i] != p->current && !is_option(p))
            set_member(config, p, p->json[setting->value[i]]);
    }
    return config;
}

tune_way
tune_space_way(const tune_space *space, const tune_setting *setting)
{
    tune_way way = {.config = tune_space_config(space, setting)};
    guint count = 0;
    for (guint i = 0; i < space->count; i++) {
        const tune_parameter *p = &space->parameters[i];
        if (is_option(p) && setting->value[i] != p->current)
            way.options[count++] =
                tune_hint_is(p) ? tune_hint_option(p, setting->value[i]) : g_strdup(p->key);
    }
    return way;
}

void
tune_way_clear(tune_way *way)
{
    json_decref(way->config);
    for (guint i = 0; way->options[i] != NULL; i++)
        g_free(way->options[i]);
    *way = (tune_way){.config = NULL};
}

double
tune_space_number(const tune_space *space, const tune_setting *setting, const char *name)
{
    for (guint i = 0; i < space->count; i++) {
        if (g_str_equal(space->parameters[i].name, name))
            return space->parameters[i].x[setting->value[i]];
    }
    return NAN;
}

const char *
tune_space_text(const tune_space *space, const tune_setting *setting, const char *name)
{
    for (guint i = 0; i < space->count; i++) {
        if (g_str_equal(space->parameters[i].name, name))
            return space->parameters[i].texts[setting->value[i]];
    }
    return NULL;
}

char *
tune_setting_text(const tune_space *space, const tune_setting *setting)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < space->count; i++) {
        const tune_parameter *p = &space->parameters[i];
        if (setting->value[i] != p->current)
            g_string_append_printf(text, "%s%s %s", text->len > 0 ? ", " : "", p->name,
                                   p->texts[setting->value[i]]);
    }
    if (text->len == 0)
        g_string_append(text, "as it is");
    return g_string_free(text, FALSE);
}
