/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "esdm-advise/apart.h"
#include "esdm-advise/propose.h"

#include "cost/cost.h"

#include <stdio.h>
#include <string.h>

static const tool_help help = {
    .name = "esdm-advise",
    .arguments = "[SOURCE…]",
    .description =
        "Tells what ESDM would make of data that exist: for each variable and each accuracy\n"
        "how much smaller it becomes, how fast it is written and read by one thread, and\n"
        "how far numbers are off; and what all of it would take, and cost. Nothing is\n"
        "changed: blocks of the data are stored in memory, read back and compared.\n"
        "\n"
        "SOURCE is a NetCDF file, a folder (all NetCDF files below it), or containers:\n"
        "esdm:NAME stands for NAME and everything below it, esdm: for all.\n"
        "\n"
        "Blocks are drawn at random, with a probability that follows the bytes of their\n"
        "file; each is stored where it lies in its variable, as it will be. Smaller blocks\n"
        "(--block) take less time, and make intervals wider: they are less like what will be\n"
        "stored. Their number is Cochran's for the wanted --confidence and --error of a\n"
        "share, and for the number of blocks that there are: each file is opened to count\n"
        "them, and those that cannot be read are named and left out. Where there are few\n"
        "blocks all of them are measured. Intervals behind estimates are those of that\n"
        "confidence. The same --seed draws the same blocks. A damaged file that crashes the\n"
        "NetCDF library is left out, too, and with --timeout one that keeps it busy for ever.\n"
        "\n"
        "--accuracy takes what esdm-cp --accuracy takes: 'abs=0.01 K', 'digits=3',\n"
        "'mode=archive', or 'NAME: abs=0.01 K' for variables of that name or pattern; others\n"
        "are kept without loss then, and so are coordinates, their bounds, times and flags\n"
        "that it does not name. Without it: lossless in the modes speed, balanced and\n"
        "archive, and 5 and 3 significant digits.\n"
        "\n"
        "--site tells instead which defaults would be best for all of a site: of the codecs\n"
        "without loss for what is sampled, and of how data are cut for what jobs did with\n"
        "variables, whose records (esdm-run --records) lie in the folders of --jobs. Reads and\n"
        "writes are done again with each way to cut, in a temporary folder; requests take what\n"
        "the measured model of the site says (esdm-mkfs --calibrate), or --latency and\n"
        "--bandwidth. Choices are compared by how near they come to the best one of each\n"
        "variable: arithmetic and harmonic mean. Reading and writing are weighed as runs of all\n"
        "users did, where the site keeps these (\"monitor\": {\"runs\": FOLDER}), else as the "
        "jobs\n"
        "did. The lines for the site's configuration are\n"
        "printed, and nothing is changed. --jobs alone does the same without the site's model.\n"
        "\n"
        "--fit SIZE proposes an accuracy for each variable with which all of it takes no more\n"
        "than that (500MB, 2TB, 1.5GiB): the same share of its range for each, in mode\n"
        "archive; what describes others is kept without loss. esdm-cp --fit makes copies that\n"
        "fit.\n"
        "\n"
        "--propose proposes an accuracy for each variable of floating-point numbers, with its\n"
        "evidence. Information: how much each bit of a number tells of the same bit of its\n"
        "neighbour along the fastest axis (mutual information, Kloewer et al. 2021; what\n"
        "chance gives in one of a hundred cases counts as none); bits are kept that have\n"
        "--share of it, and none are proposed where that is less than 0.1 bits a number.\n"
        "Ensembles: a tenth of the spread of the members, which nine of ten points exceed;\n"
        "they lie along a dimension called realization, member, ensemble,\n"
        "number or as --members-along says, or --members: each source is one. Up to 8 blocks\n"
        "of each variable are stored so and read again: sizes, means, extremes, gradients,\n"
        "spectra and DSSIM (Baker et al. 2023) before and after. --page FILE draws them.\n"
        "\n"
        "--price tells what storing costs; --centre takes the price of a TB on disk from the\n"
        "file of a centre (see esdm-cost), beginning with the year --from.",
    .examples = "  esdm-advise /data/cmip6\n"
                "  esdm-advise -a 'digits=4' -a 'abs=0.01; mode=archive' tas.nc\n"
                "  esdm-advise --propose --page tas.html tas.nc\n"
                "  esdm-advise --site --jobs /var/esdm/records /data/cmip6\n"
                "  esdm-advise --price 25 --years 10 --plot share.svg esdm:experiment\n",
    .see_also = "esdm-cp, esdm-stat, esdm-cost",
};

cp_options cp_wants; /* of the parts of esdm-cp that read */

static char **accuracies;
static char *confidence_text, *error_text, *price_text, *years_text, *currency, *plot;
static char *centre_file, *from_text, *weigh_text, *latency_text, *bandwidth_text, *block_text;
static char **job_folders;
static gboolean for_site; /* --jobs implies it */
static bool model_wanted; /* --site itself was given */
static gint samples_wanted = G_MININT, seed = 1;
static gboolean quiet;
static char *fit_text, *share_text, *member_dimension, *page;
static gboolean proposes, members;
static uint64_t fit_bytes; /* 0: --fit was not given */

static const GOptionEntry entries[] = {
    {"accuracy", 'a', 0, G_OPTION_ARG_STRING_ARRAY, &accuracies, "See above; can be repeated",
     "ACCURACY"},
    {"samples", 'n', 0, G_OPTION_ARG_INT, &samples_wanted, "So many, whatever the error", "COUNT"},
    {"confidence", 0, 0, G_OPTION_ARG_STRING, &confidence_text, "Of intervals (0.95)", "SHARE"},
    {"error", 0, 0, G_OPTION_ARG_STRING, &error_text,
     "Largest error of a share that the number of samples is made for (0.05)", "SHARE"},
    {"block", 0, 0, G_OPTION_ARG_STRING, &block_text,
     "MiB of a variable that are stored at once, 4 to 64 (16)", "NUMBER"},
    {"seed", 0, 0, G_OPTION_ARG_INT, &seed, "Draws other blocks (1)", "NUMBER"},
    {"fit", 0, 0, G_OPTION_ARG_STRING, &fit_text, "Propose accuracies with which all takes so much",
     "SIZE"},
    {"propose", 0, 0, G_OPTION_ARG_NONE, &proposes, "An accuracy for each variable, with evidence",
     NULL},
    {"share", 0, 0, G_OPTION_ARG_STRING, &share_text, "Of the information that is kept (0.99)",
     "SHARE"},
    {"members", 0, 0, G_OPTION_ARG_NONE, &members, "Sources are members of one ensemble", NULL},
    {"members-along", 0, 0, G_OPTION_ARG_STRING, &member_dimension, "Dimension of the members",
     "NAME"},
    {"page", 0, 0, G_OPTION_ARG_FILENAME, &page, "Write proposals as a page of HTML", "FILE"},
    {"price", 0, 0, G_OPTION_ARG_STRING, &price_text, "Of 10^12 bytes for a year", "NUMBER"},
    {"years", 0, 0, G_OPTION_ARG_STRING, &years_text, "That data are kept (10)", "NUMBER"},
    {"currency", 0, 0, G_OPTION_ARG_STRING, &currency, "Of the price (EUR)", "TEXT"},
    {"centre", 0, 0, G_OPTION_ARG_FILENAME, &centre_file, "Prices of a centre (esdm-cost)", "FILE"},
    {"from", 0, 0, G_OPTION_ARG_STRING, &from_text, "Year in which storing begins (this one)",
     "YEAR"},
    {"site", 0, 0, G_OPTION_ARG_NONE, &for_site, "Defaults for a whole site", NULL},
    {"jobs", 'j', 0, G_OPTION_ARG_FILENAME_ARRAY, &job_folders,
     "Records of one or more jobs; can be repeated", "FOLDER"},
    {"weigh", 0, 0, G_OPTION_ARG_STRING, &weigh_text,
     "What counts for codecs: time, space or both (both)", "TEXT"},
    {"latency", 0, 0, G_OPTION_ARG_STRING, &latency_text, "Of a request, milliseconds", "NUMBER"},
    {"bandwidth", 0, 0, G_OPTION_ARG_STRING, &bandwidth_text, "Of requests, MiB a second",
     "NUMBER"},
    {"timeout", 0, 0, G_OPTION_ARG_DOUBLE, &advise_timeout_s,
     "Leave a source out of which nothing is read for so long (default: wait)", "SECONDS"},
    {"plot", 0, 0, G_OPTION_ARG_FILENAME, &plot, "Draw the shares as SVG", "FILE"},
    {"quiet", 'q', 0, G_OPTION_ARG_NONE, &quiet, "No progress bar", NULL},
    {0},
};

/* ---- options ------------------------------------------------------------------------------ */

static bool
read_number(const char *text, double lowest, double highest, double *value)
{
    if (text == NULL)
        return true;
    char *end = NULL;
    *value = g_ascii_strtod(text, &end);
    return end != text && *end == '\0' && *value > lowest && *value < highest;
}

static void
add_candidate(advise_study *study, const char *label, const char *pattern, const char *text)
{
    advise_candidate candidate = {
        .label = g_strdup(label), .pattern = g_strdup(pattern), .text = g_strdup(text)};
    g_array_append_val(study->candidates, candidate);
}

/* Whether a colon stands before the first quantity. */
static bool
has_name(const char *text)
{
    const char *colon = strchr(text, ':');
    const char *equals = strchr(text, '=');
    return colon != NULL && (equals == NULL || colon < equals);
}

static tool_exit
read_candidates(advise_study *study)
{
    if (for_site) {
        advise_site_candidates(study);
        return TOOL_OK;
    }
    if (fit_bytes > 0) {
        advise_fit_candidates(study);
        return TOOL_OK;
    }
    add_candidate(study, "lossless", NULL, "mode=balanced");
    if (accuracies == NULL) {
        add_candidate(study, "lossless, speed", NULL, "mode=speed");
        add_candidate(study, "lossless, archive", NULL, "mode=archive");
        add_candidate(study, "digits=5", NULL, "digits=5");
        add_candidate(study, "digits=3", NULL, "digits=3");
    }
    for (char **text = accuracies; text != NULL && *text != NULL; text++) {
        esdm_error err = {0};
        g_autofree char *pattern = NULL;
        const char *quantities = *text;
        if (has_name(*text) && !tool_wish_split(*text, &pattern, &quantities))
            return tool_usage("--accuracy '%s' is neither QUANTITIES nor NAME: QUANTITIES", *text);
        if (strchr(quantities, '=') == NULL)
            return tool_usage("--accuracy '%s' is no NAME=VALUE, such as abs=0.01 or mode=archive",
                              *text);
        if (esdm_accuracy_check_text(quantities, &err) != ESDM_OK)
            return tool_usage("%s", err.message);
        if (study->candidates->len == ADVISE_CANDIDATES_MAX)
            return tool_usage("at most %d accuracies at once", ADVISE_CANDIDATES_MAX - 1);
        add_candidate(study, *text, pattern, quantities);
    }
    return TOOL_OK;
}

/* What a TB costs a centre for a year, on average over the years. */
static tool_exit
take_prices(advise_price *price)
{
    g_autoptr(cost_centre) centre = NULL;
    esdm_error err = {0};
    double from = cost_year_now();
    if (!read_number(from_text, 1900, 3000, &from))
        return tool_usage("--from is '%s'; it takes a year such as 2025", from_text);
    if (centre_file == NULL)
        return TOOL_OK;
    if (price_text != NULL || currency != NULL)
        return tool_usage(
            "--centre states price and currency: --price and --currency are too many");
    esdm_status status = cost_centre_read(centre_file, &centre, &err);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    price->per_tb_year =
        cost_of_keeping(centre, &centre->storage, 1, from, price->years) / price->years;
    currency = g_strdup(centre->currency);
    price->currency = currency;
    return TOOL_OK;
}

static tool_exit
read_options(advise_study *study, advise_price *price)
{
    if (!read_number(confidence_text, 0, 1, &study->confidence))
        return tool_usage("--confidence is '%s'; it takes a share between 0 and 1",
                          confidence_text);
    if (!read_number(error_text, 0, 1, &study->error))
        return tool_usage("--error is '%s'; it takes a share between 0 and 1", error_text);
    if (!read_number(price_text, 0, 1e300, &price->per_tb_year))
        return tool_usage("--price is '%s'; it takes a number above 0", price_text);
    if (!read_number(years_text, 0, 1000, &price->years))
        return tool_usage("--years is '%s'; it takes a number above 0 and below 1000", years_text);
    double block_mib = (double) ADVISE_BLOCK_BYTES / 0x1p20;
    if (!read_number(block_text, 0, 1e9, &block_mib) || block_mib < 4 || block_mib > 64)
        return tool_usage("--block is '%s'; it takes MiB from 4 to 64", block_text);
    study->block_bytes = (uint64_t) (block_mib * 0x1p20);
    if (samples_wanted != G_MININT && (samples_wanted < 1 || samples_wanted > 1000000))
        return tool_usage("--samples takes a number from 1 to 1000000");
    if (fit_text != NULL && !tool_parse_bytes(fit_text, &fit_bytes))
        return tool_usage("--fit is '%s'; it takes a size such as 500MB, 2 TB or 1.5GiB", fit_text);
    if (fit_text != NULL &&
        (accuracies != NULL || plot != NULL || price_text != NULL || centre_file != NULL))
        return tool_usage("--fit chooses accuracies: it goes without --accuracy, --price, --centre "
                          "and --plot");
    price->currency = currency != NULL ? currency : "EUR";
    study->seed = (uint64_t) seed;
    tool_exit result = take_prices(price);
    return result == TOOL_OK ? read_candidates(study) : result;
}

/* What --site and --jobs take. */
typedef struct site_options {
    advise_weigh weigh;
    double latency_s, bytes_per_s; /* 0: not stated */
} site_options;

static tool_exit
read_site_options(site_options *options)
{
    static const char *const names[] = {"both", "time", "space"};
    double latency_ms = 0, mib_per_s = 0;
    bool stated = weigh_text != NULL || latency_text != NULL || bandwidth_text != NULL;
    for_site = for_site || job_folders != NULL;
    if (stated && !for_site)
        return tool_usage("--weigh, --latency and --bandwidth are for --site and --jobs");
    if (for_site && fit_text != NULL)
        return tool_usage("--site and --jobs go without --fit");
    if (for_site &&
        (accuracies != NULL || price_text != NULL || centre_file != NULL || plot != NULL))
        return tool_usage("--site and --jobs look for defaults without loss: they go without "
                          "--accuracy, --price, --centre and --plot");
    if (!read_number(latency_text, 0, 1e6, &latency_ms))
        return tool_usage("--latency is '%s'; it takes milliseconds above 0", latency_text);
    if (!read_number(bandwidth_text, 0, 1e9, &mib_per_s))
        return tool_usage("--bandwidth is '%s'; it takes MiB a second above 0", bandwidth_text);
    *options = (site_options){.latency_s = latency_ms / 1e3, .bytes_per_s = mib_per_s * 0x1p20};
    guint i = 0;
    while (weigh_text != NULL && i < G_N_ELEMENTS(names) && !g_str_equal(names[i], weigh_text))
        i++;
    if (i == G_N_ELEMENTS(names))
        return tool_usage("--weigh is '%s'; it takes time, space or both", weigh_text);
    options->weigh = (advise_weigh) i;
    return TOOL_OK;
}

/* --page implies --propose. */
static tool_exit
read_propose_options(propose_options *options)
{
    bool stated = share_text != NULL || members || member_dimension != NULL;
    proposes = proposes || page != NULL;
    *options = (propose_options){.dimension = member_dimension,
                                 .members = members,
                                 .share = 0.99,
                                 .page = page,
                                 .progress = !quiet && !tool.json};
    if (stated && !proposes)
        return tool_usage("--share, --members and --members-along are for --propose");
    if (proposes && (for_site || fit_text != NULL || accuracies != NULL || price_text != NULL ||
                     centre_file != NULL || plot != NULL || samples_wanted != G_MININT))
        return tool_usage("--propose chooses accuracies and blocks: it goes without --accuracy, "
                          "--fit, --site, --jobs, --price, --centre, --plot and --samples");
    if (members && member_dimension != NULL)
        return tool_usage("--members: each source is a member, --members-along: they lie along a "
                          "dimension; one of both");
    if (!read_number(share_text, 0, 1, &options->share))
        return tool_usage("--share is '%s'; it takes a share between 0 and 1", share_text);
    return TOOL_OK;
}

/* ---- freeing ------------------------------------------------------------------------------ */

static void
free_source(gpointer data)
{
    advise_source *source = data;
    g_free(source->name);
    g_free(source);
}

static void
free_sample(gpointer data)
{
    advise_sample *sample = data;
    g_free(sample->variable);
    g_free(sample);
}

static void
clear_candidate(gpointer data)
{
    advise_candidate *candidate = data;
    g_free(candidate->label);
    g_free(candidate->pattern);
    g_free(candidate->text);
}

/* ---- the study ---------------------------------------------------------------------------- */

/* Those with a NAME that no variable has, as far as they were drawn. */
static void
tell_unused(const advise_study *study)
{
    for (guint i = 0; i < study->candidates->len; i++) {
        const advise_candidate *candidate = &g_array_index(study->candidates, advise_candidate, i);
        guint refused = 0;
        for (guint k = 0; k < study->samples->len; k++)
            refused += ((advise_sample *) g_ptr_array_index(study->samples, k))->results[i].refused;
        if (candidate->pattern != NULL && refused == study->samples->len)
            tool_error("--accuracy '%s' fits none of the variables that were drawn",
                       candidate->label);
    }
}

/* Variables that were drawn and are rounded only by name. */
static void
tell_spared(const advise_study *study)
{
    bool any = false;
    g_autoptr(GString) names = g_string_new(NULL);
    g_autoptr(GHashTable) told = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < study->candidates->len; i++)
        any = any || advise_spares(&g_array_index(study->candidates, advise_candidate, i));
    for (guint i = 0; any && i < study->samples->len; i++) {
        const advise_sample *sample = g_ptr_array_index(study->samples, i);
        if (sample->auxiliary && g_hash_table_add(told, sample->variable))
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", sample->variable);
    }
    if (names->len > 0)
        tool_error("coordinates, flags, integers and the like are kept without loss, unless "
                   "--accuracy gives "
                   "their names: %s",
                   names->str);
}

static tool_exit
report(const advise_study *study, const advise_price *price)
{
    esdm_error err = {0};
    if (study->samples->len == 0) {
        tool_error("there are no numbers to sample");
        return TOOL_FAILED;
    }
    if (fit_bytes > 0)
        return advise_fit_report(study, fit_bytes);
    if (tool.json)
        advise_print_json(study, price);
    else
        advise_print(study, price);
    tell_unused(study);
    tell_spared(study);
    if (study->unreadable > 0)
        tool_error("%u of the files, folders and containers cannot be read and were left out",
                   study->unreadable);
    if (study->missed > 0)
        tool_error("%u draws hit what could not be read, or has no numbers", study->missed);
    esdm_status status = plot != NULL ? advise_plot(study, plot, &err) : ESDM_OK;
    return status == ESDM_OK ? TOOL_OK : tool_fail(status, &err);
}

/* Few blocks of each variable are enough to begin with: esdm-cp --fit looks at what comes out. */
static guint
sample_count(const advise_study *study)
{
    guint count = advise_sample_count(study);
    guint few = MAX(24, 6 * g_hash_table_size(study->raw_bytes));
    return fit_bytes > 0 ? MIN(count, few) : count;
}

/* Counts blocks. */
static tool_exit
survey(advise_study *study)
{
    if (study->sources->len == 0) {
        tool_error("there are no NetCDF files in what was named");
        return TOOL_NOT_FOUND;
    }
    advise_survey(study, !quiet && !tool.json);
    if (study->sources->len == 0) {
        tool_error("nothing of what was named can be read");
        return TOOL_FAILED;
    }
    return TOOL_OK;
}

/* Counts blocks, draws and measures them. */
static tool_exit
sample(advise_study *study)
{
    bool progress = !quiet && !tool.json;
    tool_exit result = survey(study);
    if (result != TOOL_OK)
        return result;
    guint count = samples_wanted > 0 ? (guint) samples_wanted : sample_count(study);
    /* Draws hit some blocks twice: to measure so few once each takes no longer, and tells more. */
    if (samples_wanted <= 0 && study->blocks <= count)
        advise_measure_all(study, progress);
    else
        advise_draw(study, count, progress);
    return TOOL_OK;
}

static tool_exit
advise_for_site(const advise_study *study, esdm_session **session, const site_options *options)
{
    advise_jobs jobs = {.uses = g_ptr_array_new(), .aheads = g_ptr_array_new()};
    tool_exit result = TOOL_OK;
    if (for_site && job_folders == NULL && study->samples->len == 0)
        return tool_usage("--site: of which files, folders, containers or --jobs?");
    if (job_folders != NULL)
        advise_jobs_clear(&jobs);
    for (char **folder = job_folders; folder != NULL && *folder != NULL; folder++)
        result = result == TOOL_OK ? advise_load_jobs(&jobs, *folder) : result;
    if (result == TOOL_OK && model_wanted)
        advise_load_runs(&jobs);
    if (result == TOOL_OK && model_wanted && *session == NULL)
        result = tool_session_if_made(session);
    if (result == TOOL_OK)
        result = advise_site(study, &jobs, *session, options->weigh, options->latency_s,
                             options->bytes_per_s);
    advise_jobs_clear(&jobs);
    return result;
}

int
main(int argc, char **argv)
{
    advise_study study = {.confidence = 0.95, .error = 0.05};
    advise_price price = {.years = 10};
    site_options options = {0};
    propose_options proposed;
    esdm_session *session = NULL;
    tool_parse(&help, entries, &argc, &argv);
    model_wanted = for_site;
    tool_exit result = read_site_options(&options);
    if (result == TOOL_OK)
        result = read_propose_options(&proposed);
    if (result != TOOL_OK)
        return result;
    if (argc < 2 && !for_site)
        return tool_usage("of which files, folders or containers?");
    study.sources = g_ptr_array_new_with_free_func(free_source);
    study.samples = g_ptr_array_new_with_free_func(free_sample);
    study.raw_bytes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    study.candidates = g_array_new(FALSE, FALSE, sizeof(advise_candidate));
    g_array_set_clear_func(study.candidates, clear_candidate);
    study.blocks_of = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    result = read_options(&study, &price);
    if (result == TOOL_OK && !(advise_timeout_s >= 0))
        result = tool_usage("--timeout takes seconds, 0 or more");
    cp_tell_crashes(TOOL_FAILED);
    for (int i = 1; i < argc && result == TOOL_OK; i++)
        result = advise_add_source(&study, &session, argv[i]);
    if (result == TOOL_OK && argc > 1)
        result = proposes ? survey(&study) : sample(&study);
    if (result == TOOL_OK && proposes)
        result = advise_propose(&study, &proposed);
    else if (result == TOOL_OK && for_site)
        result = advise_for_site(&study, &session, &options);
    else if (result == TOOL_OK)
        result = report(&study, &price);
    g_ptr_array_unref(study.samples);
    g_ptr_array_unref(study.sources);
    g_array_unref(study.candidates);
    g_hash_table_unref(study.blocks_of);
    g_hash_table_unref(study.raw_bytes);
    esdm_session_close(session);
    return tool_finish(result);
}
