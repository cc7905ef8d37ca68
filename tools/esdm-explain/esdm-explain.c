/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* esdm-explain: says what a run did, why it took so long, and what would help. */
#include "esdm-explain/esdm-explain.h"

#include "esdm/monitor.h"

static const tool_help help = {
    .name = "esdm-explain",
    .arguments = "FOLDER | DATABASE[#RUN] | TRACE.jsonl | --site",
    .description =
        "Tells what a program did with files and NetCDF variables, where its time went, why\n"
        "calls took as long as they did, and the three things that would help most. FOLDER\n"
        "holds the records of the run, as 'esdm-run --records FOLDER PROGRAM …' leaves them;\n"
        "'esdm-run --report PROGRAM …' records, explains and removes them in one go.\n"
        "DATABASE is where programs' sessions were recorded (\"monitor\", ESDM_MONITOR): a file\n"
        "in .sqlite, .sqlite3 or .db, or postgresql://HOST/DATABASE; #RUN takes one run by its\n"
        "name, #latest the last one. Such records tell of containers, and of requests to\n"
        "targets in place of files; times of calls are explained where they have a trace.\n"
        "TRACE.jsonl is such a trace in a file (trace:FILE), also one that began by itself when\n"
        "requests were unusually slow (\"monitor\": {\"rules\": …}); the report of the run and\n"
        "--site tell when, why, and where it lies.\n"
        "\n"
        "Where the site keeps runs (\"monitor\": {\"runs\": FOLDER}) a run is compared with the\n"
        "earlier ones of the same program by all users whose records may be read. --site tells\n"
        "what the site's programs moved, and how fast its targets were in the last 24 hours and\n"
        "before. UNUSUAL is what is far from most of at least 5 runs, and by half or more.\n"
        "\n"
        "Times of reads and writes are parted into classes where their density has minima.\n"
        "The cause of each - page cache, read-ahead, device, network, contention, write-back -\n"
        "follows from sizes, rates and order; it is likely, not certain.",
    .statuses = "  0  everything was done\n"
                "  1  something failed; a message on standard error says what\n"
                "  2  the command line is wrong\n"
                "  3  the folder, database or trace does not exist, or holds no records\n",
    .examples = "  esdm-run --report ncra in_*.nc mean.nc\n"
                "  esdm-run --records /scratch/r python3 model.py\n"
                "  esdm-explain --page report.html /scratch/r\n"
                "  esdm-explain runs.sqlite#latest\n"
                "  esdm-explain esdm-trace.node1.4711.jsonl\n"
                "  esdm-explain --site\n"
                "  esdm-explain --quiet --trace run.otf2 /scratch/r; vampir run.otf2\n",
    .see_also = "esdm-run",
};

static char *history;
static char *hints;
static gboolean quiet, note, of_site, looks;
static char *page;
static char *trace;

static const GOptionEntry entries[] = {
    {"page", 'p', 0, G_OPTION_ARG_FILENAME, &page, "Write a page with pictures (HTML), too",
     "FILE"},
    {"trace", 't', 0, G_OPTION_ARG_FILENAME, &trace,
     "Write all calls: JSON Lines or trace events for Perfetto (FILE.json), with their causes; an\n"
     "                              archive for Vampir or Scalasca (FILE.otf2)",
     "FILE"},
    {"history", 0, 0, G_OPTION_ARG_FILENAME, &history,
     "Note what files were read, for the next run of the program; esdm-run --read-ahead does",
     "FILE"},
    {"mpi-hints", 0, 0, G_OPTION_ARG_FILENAME, &hints,
     "Note which hints files by MPI are to have in the next run; esdm-run --mpi-hints does",
     "FILE"},
    {"site", 's', 0, G_OPTION_ARG_NONE, &of_site,
     "What runs of all users did, which the site keeps, and how fast its targets are", NULL},
    {"look", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_NONE, &looks, NULL, NULL},
    {"note-run", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_NONE, &note, NULL, NULL},
    {"quiet", 'q', 0, G_OPTION_ARG_NONE, &quiet, "No report", NULL},
    {0},
};

static run r; /* whose memory the end of the process frees */

int
main(int argc, char **argv)
{
    tool_parse(&help, entries, &argc, &argv);
    if (of_site && argc == 1 && history == NULL && hints == NULL && page == NULL && trace == NULL)
        return tool_finish(earlier_site());
    if (of_site)
        return tool_usage("--site goes without a folder, a database, and options of runs");
    if (looks && argc == 1)
        return look_wanted();
    if (argc != 2)
        return tool_usage(
            "which folder with the records of a run, or which database or trace (one)?");
    if (looks)
        return look_run(argv[1], !quiet);
    bool database =
        esdm_records_are_in_database(argv[1]) ||
        (g_str_has_suffix(argv[1], ".jsonl") && !g_file_test(argv[1], G_FILE_TEST_IS_DIR));
    tool_exit status = database ? spans_load(argv[1], &r) : run_load(argv[1], &r);
    if (status != TOOL_OK)
        return status;
    /* Where ESDM's counters of the same programs are (esdm-run); URLs may have passwords, which
     * arguments would show to everybody. */
    const char *beside = g_getenv("ESDM_EXPLAIN_STATISTICS");
    if (beside != NULL && !database && esdm_records_are_in_database(beside))
        (void) spans_add(beside, &r); /* the report is good without */
    if ((history != NULL || hints != NULL) && database)
        return tool_usage(
            "a database or a trace does not tell what calls of files did: no --history, no "
            "--mpi-hints");
    if (history != NULL)
        status = history_write(&r, history);
    if (quiet && page == NULL && trace == NULL && hints == NULL && !note)
        return status;
    run_sum(&r);
    if (hints != NULL) {
        tool_exit written = hints_write(&r, hints);
        status = status != TOOL_OK ? status : written;
    }
    run_classes(&r);
    run_advise(&r);
    if (tool.json && !quiet)
        tool_json_print(report_json(&r));
    else if (!quiet)
        print_report(&r);
    if (page != NULL && status == TOOL_OK)
        status = write_page(&r, page);
    if (trace != NULL && status == TOOL_OK)
        status = write_trace(&r, trace);
    if (note)
        earlier_note(&r);
    return tool_finish(status);
}
