/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file esdm-tune: tries settings of a site with a kernel or a program, and keeps what is faster.
 */

#include "esdm-tune/esdm-tune.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BACKUP ".before-esdm-tune"

static const tool_help help = {
    .name = "esdm-tune",
    .arguments = "[-- PROGRAM [ARGUMENT…] | --replay RECORDS] | --learn RECORDS… | --look-back",
    .description =
        "Finds settings of a site with which a program, or a kernel that does what models\n"
        "do, takes less time: the number of threads, the size of fragments, the codec; with\n"
        "--try also others, see below. The program runs again and again (under esdm-run), each\n"
        "time with another configuration, on the storage of the site: it must be one that\n"
        "can be repeated, such as a short run of a model, or an analysis.\n"
        "\n"
        "After each run a model of the time says which setting to try next; it begins with\n"
        "what esdm-mkfs --calibrate has measured. In the end the best setting and the site\n"
        "as it is run in turn, some pairs of them. Only what is faster there, by 3 % at\n"
        "least, is proposed, or kept: --apply changes the configuration and leaves the\n"
        "former one beside it (FILE.before-esdm-tune), --write makes another file.\n"
        "Containers that exist stay as they are and can be read with all settings.\n"
        "\n"
        "--search genetic lets a genetic search run the same before, which knows nothing of\n"
        "what values mean and takes many more runs, and tells how many each took, and how\n"
        "far from each other what they found is. The better of both goes into the test.\n"
        "\n"
        "--compare FILE runs another configuration of the same site in pairs with the one\n"
        "that it has; with --apply the faster one stays. So what was applied is taken back\n"
        "when later runs are slower: --compare site.json.before-esdm-tune --apply.\n"
        "\n"
        "--look-back runs nothing: it compares what programs of all users took before and after\n"
        "--apply, from the runs that the site keeps (\"monitor\": {\"runs\": FOLDER}). Where they\n"
        "are slower since (by 3 % in all, and half of the programs clearly) --apply puts the\n"
        "former configuration back. Other things may have changed, too: --compare proves it.\n"
        "\n"
        "--replay RECORDS takes what a program did when it was recorded (esdm-replay): neither\n"
        "the program nor its input are needed, and containers of that load are made and\n"
        "removed under names of their own. The time that its calls take counts.\n"
        "\n"
        "Kernels: vpic (particles: eight one-dimensional arrays), vorpal (blocks of a field),\n"
        "gcrm (steps of cells and levels). They write a container and read some of it, and\n"
        "remove it. What was just written may be read from memory, as by programs.\n"
        "\n"
        "--learn tells how fast calls are, from records of runs: folders of esdm-run\n"
        "--records, or a trace of \"monitor\": a file of JSON Lines (one line a step), or a\n"
        "database (runs.sqlite, postgresql://HOST/DATABASE; #latest behind it takes the last\n"
        "run, #JOB that one). A tree, many trees, boosted ones, lines and squares of\n"
        "logarithms compete with the mean in predicting the speed of calls that they were not\n"
        "fitted to: those of a run from other runs, where there are four at least. What calls\n"
        "differ by that are alike is told, too: nobody can predict that. Rules of the\n"
        "one tree are printed in words, and up to which hole between two pieces one read that\n"
        "spans both is faster. esdm-run --records notes whether memory had what a read asked\n"
        "for (of quick reads, a sample); reads of which it is not known are left out then. Nothing "
        "is run or\n"
        "changed. With --apply requests to targets in traces (JSON Lines of \"monitor\", or\n"
        "folders of esdm-run --records) teach the site how long requests take by size and\n"
        "how many are under way. Where that predicts requests that were held out better\n"
        "than the calibrated model does, placement, forecasts and --plan go by it until\n"
        "the target is calibrated again; elsewhere what was learned before is dropped.\n"
        "A file that ends in .csv has a head and numbers, the last column is what is\n"
        "predicted. With --choices N the last N columns are what each of N ways took in a case\n"
        "(settings, libraries; one line a case, cases of one system side by side): a tree of\n"
        "--depth splits tells which way to take when, and what it reaches of the best way of\n"
        "each case, beside each way taken always.\n"
        "\n"
        "--try NAME tries the usual values of one parameter, --try NAME=VALUE,… those named:\n"
        "  threads   of the engine; 0 stands for the cores\n"
        "  fragment  bytes of a fragment (256K … 64M)\n"
        "  codec     of data whose accuracy nobody states; all are lossless\n"
        "  memory    of buffers and caches (64M … 1G)\n"
        "  pack      bytes at which a pack ends (64M … 1G)\n"
        "  gather    of small writes of a variable: so many bytes come together before they are\n"
        "            stored, several fragments at once (fragment: one; 8M … 64M)\n"
        "  sieve     a hole between two pieces up to so many bytes is read with them by one\n"
        "            request (model: as the targets are; 0 … 4M)\n"
        "  split     over which targets writes are split: all, or names joined by +; usually\n"
        "            each alone and all but one. What is left out gets nothing new, also when\n"
        "            the others are full; it becomes a policy for all that others do not name\n"
        "  writes    direct, or background: programs do not wait for data to be stored until\n"
        "            they commit\n"
        "  connections, part  of all targets on S3: requests at once, bytes of a part\n"
        "  chunk-cache  of plain netCDF-4 files that a program under esdm-run reads or writes\n"
        "            (16M … 1G for each variable): what is read across chunks, such as time\n"
        "            series of a file that was written step by step, is decompressed again\n"
        "            and again unless all chunks that a read meets find room there\n"
        "  chunk-steps  records in a chunk of variables that a program under esdm-run makes in\n"
        "            plain netCDF-4 files with an unlimited dimension, where it states no chunks\n"
        "            (1, as netCDF; 8 … 128): the program should write and read, as both change\n"
        "  earlier-runs  off, or prefetch: what earlier runs of the program read from targets\n"
        "            on a network is asked for early\n"
        "  io-ranks  of all ranks that share a container so many store (0: each its own; 1, 2,\n"
        "            4). It needs a program with ranks (-- mpirun -n 8 PROGRAM), and pays off\n"
        "            where many ranks make more requests than a store likes\n"
        "  read-ahead  off, or on: esdm-run --read-ahead asks early for what the program reads\n"
        "            next of plain files, in strides or in sequence\n"
        "  mpi-hints  off, or on: esdm-run --mpi-hints gives files that all ranks open by MPI\n"
        "            hints (-- mpirun -n 4 esdm-run PROGRAM)\n"
        "  striping_factor, striping_unit  of files on Lustre that all ranks make by MPI: over\n"
        "            how many servers, in pieces of how many bytes (unset: as the folder has it)\n"
        "  cb_nodes, cb_buffer_size, romio_cb_read, romio_cb_write, romio_ds_read,\n"
        "            romio_ds_write  other hints for such files; mpi:NAME=VALUE,… any other one.\n"
        "            Given where the program states none (-- mpirun -n 4 esdm-run PROGRAM)\n"
        "What acts by records of earlier runs (earlier-runs, read-ahead, mpi-hints) is first run\n"
        "without being measured: once, for hints four times. What stands from read-ahead on\n"
        "are options of esdm-run, for which a site has no key: the command to use is told,\n"
        "--apply changes nothing for it, and keeps what was found with it only if that is faster "
        "alone, too",
    .statuses = "  0  done, whether or not something better was found\n"
                "  1  the program failed with the site as it is, or the configuration cannot be\n"
                "     written\n"
                "  2  usage\n"
                "  3  the site has no configuration file\n",
    .examples = "  esdm-tune --kernel gcrm --size 512M\n"
                "  esdm-tune --try chunk-cache --apply -- python3 series.py tas_day.nc\n"
                "  esdm-tune --try chunk-steps --try chunk-cache -- ./write-and-plot.sh\n"
                "  esdm-tune --try gather --try split --kernel gcrm\n"
                "  esdm-tune --try read-ahead -- ./plot.sh plain.nc\n"
                "  esdm-tune --try striping_factor=4,16 --try striping_unit -- mpirun -n 64 "
                "esdm-run ./model\n"
                "  esdm-tune --try io-ranks=0,1 -- mpirun -n 8 ./model\n"
                "  esdm-tune --try fragment --try threads=1,2,4 --apply -- cdo timmean "
                "esdm://run1.nc esdm://mean.nc\n"
                "  esdm-run --records day/ ./model; esdm-tune --replay day/ --apply\n"
                "  esdm-run --records day/ ncra in.nc out.nc; esdm-tune --learn day/\n"
                "  ESDM_MONITOR=trace:run.jsonl ./model; esdm-tune --learn --apply run.jsonl\n"
                "  esdm-tune --learn --choices 4 took.csv\n"
                "  esdm-tune --look-back\n"
                "  esdm-tune --compare site.json.before-esdm-tune --apply --kernel gcrm\n",
    .see_also = "esdm-replay, esdm-mkfs --calibrate, esdm-explain, esdm-advise",
};

static char *kernel, *phase = NULL, *size_text, *write_path, *compare_path, *run_kernel;
static char **wishes, **records;
static char *search_name;
static gint choices, depth, trials = 12, pairs = 3, seed = 1, genetic_trials = 60;
static gdouble minutes;
static gboolean learn, look_back, apply, exhaustive, quiet;

static const GOptionEntry entries[] = {
    {"kernel", 'k', 0, G_OPTION_ARG_STRING, &kernel, "Tune for this kernel, see above", "KERNEL"},
    {"size", 's', 0, G_OPTION_ARG_STRING, &size_text, "Bytes of values of the kernel (256M)",
     "BYTES"},
    {"replay", 'r', 0, G_OPTION_ARG_FILENAME_ARRAY, &records,
     "Tune for what a recorded program did; can be repeated", "RECORDS"},
    {"phase", 0, 0, G_OPTION_ARG_STRING, &phase, "Of the kernel: write, read or both (both)",
     "PHASE"},
    {"try", 't', 0, G_OPTION_ARG_STRING_ARRAY, &wishes,
     "Try this parameter, see above; can be repeated", "NAME[=VALUE,…]"},
    {"trials", 'n', 0, G_OPTION_ARG_INT, &trials, "Runs of the search at most (12)", "NUMBER"},
    {"pairs", 0, 0, G_OPTION_ARG_INT, &pairs, "Pairs of runs of the test at the end (3)", "NUMBER"},
    {"minutes", 0, 0, G_OPTION_ARG_DOUBLE, &minutes, "Begin no further trial after that time",
     "NUMBER"},
    {"search", 0, 0, G_OPTION_ARG_STRING, &search_name,
     "model, or genetic: a genetic search in front, to compare with (model)", "NAME"},
    {"genetic-trials", 0, 0, G_OPTION_ARG_INT, &genetic_trials,
     "Runs of the genetic search at most (60)", "NUMBER"},
    {"seed", 0, 0, G_OPTION_ARG_INT, &seed, "Of the genetic search (1)", "NUMBER"},
    {"exhaustive", 0, 0, G_OPTION_ARG_NONE, &exhaustive, "Run all settings", NULL},
    {"learn", 'l', 0, G_OPTION_ARG_NONE, &learn, "Learn from records instead, see above", NULL},
    {"choices", 0, 0, G_OPTION_ARG_INT, &choices,
     "With --learn: so many columns at the end are what ways took, see above", "NUMBER"},
    {"depth", 0, 0, G_OPTION_ARG_INT, &depth, "Splits of the tree of ways (4)", "NUMBER"},
    {"look-back", 0, 0, G_OPTION_ARG_NONE, &look_back,
     "Tell whether the site's programs are slower since its configuration was changed", NULL},
    {"compare", 0, 0, G_OPTION_ARG_FILENAME, &compare_path,
     "Compare this configuration with that of the site", "FILE"},
    {"apply", 0, 0, G_OPTION_ARG_NONE, &apply, "Change the site's configuration when it helps",
     NULL},
    {"write", 'w', 0, G_OPTION_ARG_FILENAME, &write_path,
     "Write the better configuration to a file", "FILE"},
    {"quiet", 'q', 0, G_OPTION_ARG_NONE, &quiet, "Do not tell each trial", NULL},
    {"run-kernel", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_STRING, &run_kernel, NULL, NULL},
    {0},
};

/* ---- configurations ------------------------------------------------------------------------- */

/* The file of the site, links followed. Owned; NULL: told. */
static char *
config_file(tool_exit *ret_exit)
{
    esdm_error err = {0};
    char *found = NULL;
    *ret_exit = TOOL_NOT_FOUND;
    esdm_status st = tool.config != NULL ? ESDM_OK : esdm_site_find(&found, &err);
    if (st != ESDM_OK) {
        *ret_exit = tool_fail(st, &err);
        return NULL;
    }
    const char *path = tool.config != NULL ? tool.config : found;
    char *real = path != NULL ? realpath(path, NULL) : NULL;
    if (path == NULL)
        tool_error("the default site has no configuration file whose settings could be tried; "
                   "esdm-mkfs FILE makes a site with one");
    else if (real == NULL)
        tool_error("%s: %s", path, g_strerror(errno));
    char *copy = g_strdup(real);
    free(real);
    free(found);
    return copy;
}

static json_t *
load_config(const char *path)
{
    json_error_t why;
    json_t *config = tool_json_load(path, &why);
    if (config == NULL || !json_is_object(config)) {
        tool_error("%s: line %d: %s", path, why.line, config == NULL ? why.text : "no object");
        json_decref(config);
        return NULL;
    }
    return config;
}

/* All of it or nothing takes the place of a file. */
static tool_exit
store_config(const json_t *config, const char *path, mode_t mode)
{
    g_autofree char *temporary = g_strdup_printf("%s.%d.new", path, (int) getpid());
    g_autofree char *text = json_dumps(config, JSON_INDENT(2));
    FILE *file = text != NULL ? fopen(temporary, "wxe") : NULL;
    bool good = file != NULL && fchmod(fileno(file), mode) == 0 && fputs(text, file) >= 0 &&
                fputs("\n", file) >= 0 && fflush(file) == 0 && fsync(fileno(file)) == 0;
    int why = errno;
    if (file != NULL && fclose(file) != 0)
        good = false;
    if (good && g_rename(temporary, path) == 0)
        return TOOL_OK;
    why = good ? errno : why;
    if (file != NULL)
        (void) g_unlink(temporary);
    tool_error("%s: %s", path, g_strerror(why));
    return TOOL_FAILED;
}

/* Keeps the former configuration beside the new one. */
static tool_exit
apply_config(const json_t *config, const json_t *former, const char *path)
{
    struct stat st;
    g_autofree char *backup = g_strconcat(path, BACKUP, NULL);
    mode_t mode = stat(path, &st) == 0 ? st.st_mode & 0777 : 0600;
    tool_exit result = store_config(former, backup, mode);
    if (result == TOOL_OK)
        result = store_config(config, path, mode);
    if (result == TOOL_OK && !tool.json)
        (void) printf("%s was changed; %s is as it was.\n", path, backup);
    return result;
}

static tool_exit
keep(const json_t *config, const json_t *former, const char *path)
{
    tool_exit result = TOOL_OK;
    if (write_path != NULL)
        result = store_config(config, write_path, 0600);
    if (result == TOOL_OK && apply)
        result = apply_config(config, former, path);
    if (result == TOOL_OK && !apply && write_path == NULL && !tool.json)
        (void) printf("Nothing was changed: --apply keeps it, --write FILE writes it.\n");
    return result;
}

/* ---- the two things it does ------------------------------------------------------------------ */

static tool_exit
compare(tune_workload *workload, json_t *config)
{
    double ratio = NAN;
    bool better = false;
    json_t *other = load_config(compare_path);
    if (other == NULL)
        return TOOL_FAILED;
    tune_way ways[2] = {{.config = config}, {.config = other}};
    g_autoptr(GArray) one = g_array_new(FALSE, FALSE, sizeof(double));
    g_autoptr(GArray) two = g_array_new(FALSE, FALSE, sizeof(double));
    tool_exit result = tune_compare(workload, &ways[0], &ways[1], (guint) MAX(pairs, 1),
                                    quiet || tool.json, one, two, &ratio, &better);
    better = better && !tune_stopped();
    if (result == TOOL_OK && tool.json) {
        json_t *object = json_object();
        tool_json_set(object, "pairs", json_integer(two->len));
        tool_json_set(object, "ratio", isfinite(ratio) ? json_real(ratio) : json_null());
        tool_json_set(object, "better", json_boolean(better));
        tool_json_print(object);
    } else if (result == TOOL_OK) {
        (void) printf(
            "With %s it takes %.2f of the time that the site takes as it is, in %u pairs: "
            "%s.\n",
            compare_path, ratio, two->len, better ? "that is faster" : "the site stays as it is");
    }
    if (result == TOOL_OK && better)
        result = keep(other, config, workload->config_path);
    json_decref(other);
    return result;
}

/* Whether what --apply has made is good in the runs since. */
static tool_exit
check_change(void)
{
    tool_exit result = TOOL_OK;
    bool slower = false;
    struct stat st;
    g_autofree char *path = config_file(&result); /* of realpath(), which is free()'s as well */
    if (path == NULL)
        return result;
    g_autofree char *backup = g_strconcat(path, BACKUP, NULL);
    if (stat(backup, &st) != 0) {
        tool_error("%s: %s: esdm-tune --apply has not changed this site", backup,
                   g_strerror(errno));
        return TOOL_NOT_FOUND;
    }
    result = tune_look_back((gint64) st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec, &slower);
    if (result != TOOL_OK || !slower)
        return result;
    json_t *config = load_config(path), *former = load_config(backup);
    result = config != NULL && former != NULL ? keep(former, config, path) : TOOL_FAILED;
    json_decref(config);
    json_decref(former);
    return result;
}

static bool
is_genetic(void)
{
    return search_name != NULL && g_str_equal(search_name, "genetic");
}

static void
print_command(const tune_workload *workload, const tune_way *best, FILE *out)
{
    g_autoptr(GPtrArray) words = tune_command(workload, best->options);
    bool two = best->options[1] != NULL;
    (void) fprintf(out, "%s of it, which a site cannot state. Start the program so:\n ",
                   two ? "Two options of esdm-run are part" : "An option of esdm-run is part");
    for (guint i = 0; i < words->len; i++) {
        const char *word = g_ptr_array_index(words, i);
        g_autofree char *quoted = g_shell_quote(word);
        bool plain = *word != '\0' && strpbrk(word, " \t\n'\"\\$`*?[]{}()<>|&;#~!") == NULL;
        (void) fprintf(out, " %s", plain ? word : quoted);
    }
    (void) fprintf(out, "\n");
}

/* What a site states holds for all programs: is it faster without the options, too? */
static tool_exit
test_without_options(const tune_search *s, json_t *former, json_t *config, bool *ret_better)
{
    tune_way ways[2] = {{.config = former}, {.config = config}};
    double ratio = NAN;
    g_autoptr(GArray) one = g_array_new(FALSE, FALSE, sizeof(double));
    g_autoptr(GArray) two = g_array_new(FALSE, FALSE, sizeof(double));
    tool_exit result = tune_compare(s->workload, &ways[0], &ways[1], s->pairs, s->quiet, one, two,
                                    &ratio, ret_better);
    *ret_better = *ret_better && !tune_stopped();
    return result;
}

/* Sites have no key for options of esdm-run: these are told, whatever is kept of the rest. */
static tool_exit
keep_best(const tune_search *s, json_t *former)
{
    tool_exit result = TOOL_OK;
    FILE *out = tool.json ? stderr : stdout; /* JSON has it as "command" */
    bool keeps = apply || write_path != NULL;
    tune_way best = tune_space_way(s->space, &s->best);
    bool has_options = best.options[0] != NULL;
    bool changes = !json_equal(best.config, former);
    const char *rest = "The site's configuration has nothing to change.";
    if (has_options && (!tool.json || keeps))
        print_command(s->workload, &best, out);
    if (has_options && changes && keeps) {
        result = test_without_options(s, former, best.config, &changes);
        rest = changes ? "What the site can state is faster without that, too."
                       : "What the site can state is not faster without that: it stays as it is.";
    } else if (changes) {
        rest = "What the site can state was tested together with that.";
    }
    if (has_options && (!tool.json || keeps))
        (void) fprintf(out, "%s\n", rest);
    if (changes && result == TOOL_OK)
        result = keep(best.config, former, s->workload->config_path);
    tune_way_clear(&best);
    return result;
}

static tool_exit
search(tune_workload *workload, json_t *config)
{
    tune_space space;
    esdm_session *session = NULL;
    tune_search s = {.space = &space,
                     .workload = workload,
                     .trials_most = (guint) trials,
                     .pairs = (guint) pairs,
                     .minutes = minutes,
                     .exhaustive = exhaustive,
                     .genetic_most = is_genetic() ? (guint) genetic_trials : 0,
                     .seed = (guint64) seed,
                     .quiet = quiet || tool.json};
    tool_exit result = tune_space_init(&space, config, wishes);
    if (result == TOOL_OK)
        result = tune_space_fits(&space, workload);
    if (result == TOOL_OK)
        result = tool_session(true, &session);
    if (result != TOOL_OK)
        return result;
    bool both = workload->kernel == NULL || g_str_equal(workload->phase, "both");
    tune_theory *theory = tune_theory_new(session, (double) workload->kernel_bytes,
                                          both || g_str_equal(workload->phase, "write"),
                                          both || g_str_equal(workload->phase, "read"));
    esdm_session_close(session);
    s.expectation = tune_expect(&space, theory);
    result = tune_search_run(&s);
    if (result == TOOL_OK && s.trials->len > 0) {
        if (tool.json)
            tool_json_print(tune_report_json(&s));
        else
            tune_report(&s);
        if (s.better)
            result = keep_best(&s, config);
    }
    return result;
}

static tool_exit
read_options(int argc, char **argv, tune_workload *ret)
{
    uint64_t bytes = UINT64_C(256000000);
    if (size_text != NULL &&
        (!tool_parse_bytes(size_text, &bytes) || bytes < 4096 || bytes > UINT64_C(10000000000000)))
        return tool_usage("--size: expected 4 kB to 10 TB, such as 256M or 1GiB, not '%s'",
                          size_text);
    if (phase == NULL)
        phase = g_strdup("both");
    if (!g_str_equal(phase, "both") && !g_str_equal(phase, "write") && !g_str_equal(phase, "read"))
        return tool_usage("--phase: expected write, read or both, not '%s'", phase);
    const char *name = run_kernel != NULL ? run_kernel : kernel;
    if (name != NULL && !kernel_is_known(name))
        return tool_usage("there is no kernel '%s'; known are %s", name, kernel_names());
    if (trials < 1 || trials > 10000 || pairs < 0 || pairs > 1000)
        return tool_usage("--trials and --pairs: expected a number from 1, and from 0");
    if (search_name != NULL && !is_genetic() && !g_str_equal(search_name, "model"))
        return tool_usage("--search: expected model or genetic, not '%s'", search_name);
    if (genetic_trials < 1 || genetic_trials > 10000 || seed < 0)
        return tool_usage("--genetic-trials and --seed: expected a number from 1, and from 0");
    int first = argc > 1 && g_str_equal(argv[1], "--") ? 2 : 1;
    int loads = (kernel != NULL) + (records != NULL) + (first < argc);
    if (run_kernel == NULL && loads != 1)
        return tool_usage("which one: --kernel, a program behind '--', or --replay?");
    *ret = (tune_workload){.kernel = kernel,
                           .kernel_bytes = name != NULL ? bytes : 0,
                           .phase = phase,
                           .program = argv + first,
                           .records = records};
    return TOOL_OK;
}

int
main(int argc, char **argv)
{
    tune_workload workload;
    tool_parse(&help, entries, &argc, &argv);
    if (learn && argc < 2)
        return tool_usage("--learn: name the records");
    if (choices == 0 && depth != 0)
        return tool_usage("--depth is that of the tree of --choices");
    depth = depth != 0 ? depth : 4;
    if (choices != 0 &&
        (!learn || argc != 2 || choices < 2 || choices > 32 || depth < 1 || depth > 16))
        return tool_usage("--choices: 2 to 32 ways, with --learn and one table; --depth 1 to 16");
    if (choices != 0)
        return tool_finish(tune_learn_choices(argv[1], (guint) choices, (guint) depth));
    if (learn)
        return tool_finish(apply ? tune_learn_site(argv + 1) : tune_learn(argv + 1));
    if (look_back && (argc > 1 || kernel != NULL || records != NULL || compare_path != NULL))
        return tool_usage("--look-back runs nothing: it goes without programs, kernels, records "
                          "and --compare");
    if (look_back)
        return tool_finish(check_change());
    tool_exit result = read_options(argc, argv, &workload);
    if (result != TOOL_OK)
        return result;
    if (run_kernel != NULL)
        return kernel_run(run_kernel, phase, workload.kernel_bytes);
    char *path = config_file(&result);
    json_t *config = path != NULL ? load_config(path) : NULL;
    if (config == NULL)
        return path != NULL ? TOOL_FAILED : result;
    workload.config_path = path;
    tune_catch_signals();
    result = compare_path != NULL ? compare(&workload, config) : search(&workload, config);
    tune_workload_clear(&workload);
    json_decref(config);
    return tool_finish(result);
}
