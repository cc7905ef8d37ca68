/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file esdm-recipe: how containers are made: recorded, checked, and used in place of their
 * values. */

#include "esdm-recipe/esdm-recipe.h"
#include "cost/cost.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const tool_help help = {
    .name = "esdm-recipe",
    .arguments = "COMMAND [ARGUMENT…]",
    .description =
        "Records how containers are made, so that they can be made again.\n"
        "\n"
        "Commands:\n"
        "  record -- PROGRAM…     run a program (under esdm-run) and record it: the command,\n"
        "                         its folder and environment, the snapshots and files that it\n"
        "                         reads with their digests, and the digest of each container\n"
        "                         that it makes. The container keeps the recipe\n"
        "  show NAME…             show recipes\n"
        "  check NAME…            run the recipe again, apart from everything else, and compare:\n"
        "                         the same data have the same digest\n"
        "  cost NAME…             what keeping, and what computing again costs\n"
        "  propose [NAME…]        which containers of the site, or of folders, are worth to be\n"
        "                         dropped, those that save most first\n"
        "  drop NAME              check, then let the values go and keep the recipe in their\n"
        "                         place: structure, attributes and small variables stay\n"
        "  restore NAME           compute dropped values again\n"
        "\n"
        "A recipe runs with the snapshots that were read then, and sees no other container;\n"
        "what it makes lies below a name of its own until it was compared. Inputs that are\n"
        "not what they were are told, and nothing runs. It is ended when it takes 20 times as\n"
        "long as it did (and a minute). It can write to, make and remove files in the directories\n"
        "of the site, and below $TMPDIR, a folder of its own that goes afterwards, and nowhere "
        "else\n"
        "(by Landlock: Linux 5.13, and 6.2 for all ways to cut files off; a kernel without it is\n"
        "told). It reads what you may read, may use the network, and has the rights of no\n"
        "set-user-ID program: run recipes of people whom you trust.\n"
        "Programs that also write plain files are not run again without --force, which lifts all\n"
        "that. Nothing is dropped that was not computed again, bit for bit\n"
        "(or within --tolerance), in the same call. Attributes that tell when a program ran "
        "(history, date_created,\n"
        "date_modified, creation_date), and those named with --ignore, are not compared.\n"
        "\n"
        "--image IMAGE runs the program in an image, with its libraries: a root file system in a\n"
        "folder (with bubblewrap, else Apptainer), or a .sif file (Apptainer or Singularity). It\n"
        "sees the image, the directories of the site, the working directory, what --visible\n"
        "names, and nothing else; when it runs again it writes to the site and $TMPDIR alone. The\n"
        "recipe has the image's SHA-256 (of a folder: names, rights and contents of all below "
        "it),\n"
        "and an image that is not what it was is refused. ESDM itself comes from the image\n"
        "(esdm-run in /usr/bin, /usr/local/bin or /opt/esdm/bin), or is put into it, which needs\n"
        "a C library as new as this machine's; sites on S3 or PostgreSQL need ESDM in the image.\n"
        "\n"
        "Other machines and libraries may give other last bits. --tolerance says for variables of\n"
        "a name or pattern how much a value may be off, with the quantities of esdm-cp --accuracy\n"
        "that bound single values (abs, rel, finest, digits, bits). check then compares value by\n"
        "value with those that were recorded; all else, and what stands for no number, must be\n"
        "the same bit for bit. What it accepts is noted in the recipe, so that restore takes the\n"
        "same data again, and no others: they could not be compared any more. drop runs a recipe\n"
        "twice whose values differ, as values that change with each run cannot be restored.\n"
        "\n"
        "The snapshots of containers that dropped values are computed from are kept by tags\n"
        "'recipe-…', also when these are removed; esdm-tag --remove lets them go when nobody\n"
        "needs them. Files and queries cannot be kept: drop names them.\n"
        "\n"
        "Reading dropped values is an error that says how to bring them back.\n"
        "\n"
        "cost compares, over --years, keeping the values for --storage-price with computing\n"
        "them for --compute-price each time that they are read: up to how many readings is it\n"
        "cheaper to drop them? propose goes by --readings of each container in all these years\n"
        "(one a year). It never names a container and one that this is computed from, as the\n"
        "values of both would be gone; what clones share counts for each of them.\n"
        "--centre takes prices that are not given from the file of a centre "
        "(see\n"
        "esdm-cost) in the year --from: disks that are bought again when they are worn out,\n"
        "and hours of a node.",
    .statuses = "  0  done; check: the recipe gives the same data, or data within the tolerances\n"
                "  1  the program failed, or check: it gives other data\n"
                "  2  usage\n"
                "  3  there is no such container, or it has no recipe\n"
                "  4  refused: an input is not what it was, or plain files would be written\n"
                "  5  the recipe is damaged\n",
    .examples = "  esdm-recipe record -- ncra esdm://run1.nc esdm://mean.nc\n"
                "  esdm-recipe record --tolerance 'tas: abs=0.01 K' -- cdo timmean esdm://run1.nc "
                "esdm://mean.nc\n"
                "  esdm-recipe record --image /images/nco -- ncra esdm://run1.nc esdm://mean.nc\n"
                "  esdm-recipe check mean.nc\n"
                "  esdm-recipe cost --years 10 mean.nc\n"
                "  esdm-recipe propose --years 5 --readings 3 run1\n"
                "  esdm-recipe drop mean.nc; esdm-recipe restore mean.nc\n",
    .see_also = "esdm-run, esdm-stat --digest, esdm-diff, esdm-seal",
};

static char **ignored, **variables, **tolerances, **visible;
static char *image_path;
static gboolean force, keep;
static gdouble years = 10, storage_price = NAN, compute_price = NAN, from = 0, readings = NAN;
static char *centre_file;

static const GOptionEntry entries[] = {
    {"ignore", 0, 0, G_OPTION_ARG_STRING_ARRAY, &ignored,
     "record: global attribute that is not compared, beside history and dates", "NAME"},
    {"environment", 'e', 0, G_OPTION_ARG_STRING_ARRAY, &variables,
     "record: variable of the environment that counts, beside the usual ones", "NAME"},
    {"tolerance", 't', 0, G_OPTION_ARG_STRING_ARRAY, &tolerances,
     "record: what values of a variable may be off by when they are computed again",
     "NAME: QUANTITIES"},
    {"image", 0, 0, G_OPTION_ARG_FILENAME, &image_path,
     "record: run the program in this image: a root file system in a folder, or a .sif file",
     "IMAGE"},
    {"visible", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &visible,
     "record: with --image, a file or folder that the program may read there", "PATH"},
    {"force", 'f', 0, G_OPTION_ARG_NONE, &force, "Run also what writes plain files", NULL},
    {"keep", 'k', 0, G_OPTION_ARG_NONE, &keep, "check: keep what was made when it differs", NULL},
    {"years", 0, 0, G_OPTION_ARG_DOUBLE, &years, "cost, propose: how long values are kept (10)",
     "NUMBER"},
    {"readings", 0, 0, G_OPTION_ARG_DOUBLE, &readings,
     "propose: of each container in these years (one a year)", "NUMBER"},
    {"storage-price", 0, 0, G_OPTION_ARG_DOUBLE, &storage_price,
     "cost, propose: of a TB for a year, in any currency (60)", "NUMBER"},
    {"compute-price", 0, 0, G_OPTION_ARG_DOUBLE, &compute_price, "cost, propose: of an hour (0.05)",
     "NUMBER"},
    {"centre", 0, 0, G_OPTION_ARG_FILENAME, &centre_file,
     "cost, propose: prices of a centre (esdm-cost)", "FILE"},
    {"from", 0, 0, G_OPTION_ARG_DOUBLE, &from,
     "cost, propose: year in which keeping begins (this one)", "YEAR"},
    {0},
};

/* ---- commands ------------------------------------------------------------------------------- */

static tool_exit
show(const char *name, const json_t *recipe)
{
    size_t i;
    const json_t *one;
    if (tool.json) {
        tool_json_print(json_deep_copy(recipe));
        return TOOL_OK;
    }
    (void) printf("%s\n  made by ", name);
    json_array_foreach(json_object_get(recipe, "program"), i, one)
    {
        g_autofree char *word = g_shell_quote(json_string_value(one));
        bool plain = strpbrk(json_string_value(one), " '\"\\$&|;<>()*?[]") == NULL;
        (void) printf(" %s", plain ? json_string_value(one) : word);
    }
    if (json_object_get(recipe, "image") != NULL)
        (void) printf(
            "\n  image    %s  sha256:%s", recipe_image_path(json_object_get(recipe, "image")),
            json_string_value(json_object_get(json_object_get(recipe, "image"), "sha256")));
    (void) printf("\n  in       %s\n  recorded %s, %.1f s\n",
                  json_string_value(json_object_get(recipe, "directory")),
                  json_string_value(json_object_get(recipe, "recorded")),
                  json_number_value(json_object_get(recipe, "seconds")));
    json_array_foreach(json_object_get(recipe, "inputs"), i, one)
    {
        const char *container = json_string_value(json_object_get(one, "container"));
        if (container != NULL)
            (void) printf("  reads    %s  %s\n", json_string_value(json_object_get(one, "as")),
                          json_string_value(json_object_get(one, "digest")));
        else
            (void) printf("  reads    %s  sha256:%s\n",
                          json_string_value(json_object_get(one, "file")),
                          json_string_value(json_object_get(one, "sha256")));
    }
    (void) printf("  gives    %s\n", json_string_value(json_object_get(recipe, "digest")));
    json_array_foreach(json_object_get(recipe, "tolerances"), i, one)(void)
        printf("  within   %s\n", json_string_value(one));
    json_array_foreach(json_object_get(recipe, "accepted"), i, one)(void) printf(
        "  or       %s  (compared on %s, %s)\n", json_string_value(json_object_get(one, "digest")),
        json_string_value(json_object_get(one, "machine")),
        json_string_value(json_object_get(one, "when")));
    return TOOL_OK;
}

static void
tell_differences(const json_t *differences)
{
    size_t i;
    const json_t *one;
    json_array_foreach(differences, i, one)
    {
        const json_t *largest = json_object_get(one, "largest");
        const char *path = json_string_value(json_object_get(one, "variable"));
        if (json_object_get(one, "made") != NULL)
            (void) printf("  %s: it has another shape or type, or was not made\n", path);
        else if (json_is_null(largest))
            (void) printf("  %s: %lld values differ, some are numbers in one of both alone\n", path,
                          (long long) json_integer_value(json_object_get(one, "different")));
        else
            (void) printf("  %s: %lld values differ, by up to %.6g; %lld by more than they may\n",
                          path, (long long) json_integer_value(json_object_get(one, "different")),
                          json_number_value(largest),
                          (long long) json_integer_value(json_object_get(one, "beyond")));
    }
}

static void
tell_check_json(const char *name, const recipe_replay *r)
{
    json_t *object = json_object();
    tool_json_set(object, "name", tool_json_text(name));
    tool_json_set(object, "same", json_boolean(r->same));
    tool_json_set(object, "accepted", json_boolean(recipe_is_right(r)));
    tool_json_set(object, "seconds", json_real(r->seconds));
    tool_json_set(object, "digest", tool_json_text(r->digest));
    if (r->differences != NULL)
        tool_json_set(object, "differences", json_incref(r->differences));
    tool_json_print(object);
}

static void
tell_check(const char *name, const json_t *recipe, const recipe_replay *r)
{
    if (tool.json) {
        tell_check_json(name, r);
    } else if (r->same) {
        (void) printf("%s: the recipe gives the same data, in %.1f s\n", name, r->seconds);
    } else if (r->accepted) {
        (void) printf("%s: the recipe gives data that were compared before, and are within the "
                      "tolerances, in %.1f s\n",
                      name, r->seconds);
    } else if (r->within) {
        (void) printf("%s: the recipe gives data within the tolerances, in %.1f s\n", name,
                      r->seconds);
        tell_differences(r->differences);
    } else {
        (void) printf("%s: the recipe gives other data: %s instead of %s\n", name, r->digest,
                      json_string_value(json_object_get(recipe, "digest")));
        tell_differences(r->differences);
        if (r->others_differ)
            (void) printf("  something that has no tolerance is not the same\n");
        if (keep)
            (void) printf("  esdm-diff %s %s tells in what\n", name, r->made);
        else
            (void) printf("  --keep keeps them, so that esdm-diff can tell in what\n");
    }
}

static tool_exit
check(esdm_session *session, const char *name, json_t *recipe)
{
    recipe_replay r;
    tool_exit result = recipe_run_again(session, name, recipe, force, &r);
    bool other = result == TOOL_OK && !recipe_is_right(&r);
    if (other && keep)
        result = recipe_replay_keep(session, &r);
    if (result == TOOL_OK) {
        tell_check(name, recipe, &r);
        result = other ? TOOL_FAILED : TOOL_OK;
    }
    if (result == TOOL_OK && r.within)
        result = recipe_accept(session, name, recipe, &r);
    if (!keep || !other || r.made == NULL)
        recipe_replay_clear(session, &r);
    return result;
}

static tool_exit
not_the_same(const char *name, const json_t *recipe)
{
    bool lenient = json_array_size(json_object_get(recipe, "tolerances")) > 0;
    tool_error("%s: the recipe gives other data than it gave%s: nothing was changed "
               "(esdm-recipe check --keep %s)",
               name,
               lenient ? ", and than those that were compared and found within the tolerances" : "",
               name);
    return TOOL_FAILED;
}

/* Values that are not what was recorded come back only when they are the same in each run. */
static tool_exit
verify_again(esdm_session *session, const char *name, json_t *recipe, const recipe_replay *first)
{
    recipe_replay r = {.same = false};
    tool_exit result = recipe_run_again(session, name, recipe, force, &r);
    if (result == TOOL_OK && !g_str_equal(r.digest, first->digest)) {
        tool_error("%s: the recipe gives data within the tolerances, but others in each run: once "
                   "dropped they could not be compared; nothing was changed",
                   name);
        result = TOOL_FAILED;
    }
    recipe_replay_clear(session, &r);
    return result == TOOL_OK ? recipe_accept(session, name, recipe, first) : result;
}

static tool_exit
drop(esdm_session *session, const char *name, json_t *recipe)
{
    recipe_replay r = {.same = false};
    guint64 bytes = 0;
    bool some = false;
    char digest[ESDM_DIGEST_BYTES];
    if (recipe_is_dropped(session, name)) {
        tool_error("%s: its values were dropped already", name);
        return TOOL_REFUSED;
    }
    tool_exit result = recipe_digest(session, name, digest);
    if (result == TOOL_OK && !recipe_knows(recipe, digest)) {
        tool_error("%s was changed since its recipe was recorded: it would be lost", name);
        return TOOL_REFUSED;
    }
    if (result == TOOL_OK)
        result = recipe_find_droppable(session, name, &some);
    if (result != TOOL_OK || !some) {
        if (result == TOOL_OK && !tool.json)
            (void) printf(
                "%s: nothing was dropped: variables of up to 64 KiB, and texts, stay, and "
                "it has no others\n",
                name);
        return result;
    }
    result = recipe_run_again(session, name, recipe, force, &r);
    if (result == TOOL_OK && !recipe_is_right(&r))
        result = not_the_same(name, recipe);
    if (result == TOOL_OK && r.within)
        result = verify_again(session, name, recipe, &r);
    recipe_replay_clear(session, &r);
    if (result == TOOL_OK)
        result = recipe_hold_inputs(session, recipe);
    if (result == TOOL_OK)
        result = recipe_drop_values(session, name, &bytes);
    if (result == TOOL_OK && !tool.json) {
        g_autofree char *text = tool_bytes(bytes);
        (void) printf("%s: %s of values were dropped; 'esdm-recipe restore %s' computes them "
                      "again\n",
                      name, text, name);
    }
    return result;
}

static tool_exit
restore(esdm_session *session, const char *name, json_t *recipe)
{
    esdm_error err = {0};
    recipe_replay r = {.same = false};
    if (!recipe_is_dropped(session, name)) {
        tool_error("%s: its values are there", name);
        return TOOL_REFUSED;
    }
    tool_exit result = recipe_run_again(session, name, recipe, force, &r);
    bool same = r.same;
    if (result == TOOL_OK && !recipe_is_right(&r))
        result = not_the_same(name, recipe);
    if (result == TOOL_OK && same)
        (void) json_object_del(recipe, "restored");
    else if (result == TOOL_OK)
        tool_json_set(recipe, "restored", json_deep_copy(recipe_accepted(recipe, r.digest)));
    if (result == TOOL_OK)
        result = recipe_keep(session, r.made, recipe);
    if (result == TOOL_OK) {
        esdm_status st = esdm_container_clone(session, r.made, name, true, &err);
        result = st == ESDM_OK ? TOOL_OK : tool_fail(st, &err);
    }
    recipe_replay_clear(session, &r);
    if (result == TOOL_OK && !tool.json)
        (void) printf("%s: its values were computed again, %s, in %.1f s\n", name,
                      same ? "bit for bit" : "within the tolerances", r.seconds);
    return result;
}

static recipe_prices
prices_of(void)
{
    return (recipe_prices){years, storage_price, compute_price, isnan(readings) ? years : readings};
}

static tool_exit
cost(esdm_session *session, const char *name, json_t *recipe)
{
    esdm_error err = {0};
    esdm_container_info info = {0};
    esdm_status st = esdm_container_stat(session, name, &info, &err);
    if (st != ESDM_OK)
        return tool_fail(st, &err);
    const recipe_prices prices = prices_of();
    double seconds = json_number_value(json_object_get(recipe, "seconds"));
    double stored = recipe_keeping(&prices, info.stored_bytes);
    double once = recipe_computing(&prices, recipe);
    double up_to = cost_readings(stored, once);
    if (tool.json) {
        json_t *object = json_object();
        tool_json_set(object, "name", tool_json_text(name));
        tool_json_set(object, "stored_bytes", tool_json_u64(info.stored_bytes));
        tool_json_set(object, "seconds", json_real(seconds));
        tool_json_set(object, "keeping", json_real(stored));
        tool_json_set(object, "computing_once", json_real(once));
        tool_json_set(object, "readings", isfinite(up_to) ? json_real(up_to) : json_null());
        tool_json_print(object);
        return TOOL_OK;
    }
    g_autofree char *bytes = tool_bytes(info.stored_bytes);
    (void) printf("%s: keeping %s for %.3g years costs %.4g, computing it again (%.1f s) %.4g: it "
                  "is cheaper to drop it when it is read up to %.0f times in all\n",
                  name, bytes, years, stored, seconds, once, up_to);
    return TOOL_OK;
}

/* Prices that no option states: those of a centre's file, or what is usual. */
static tool_exit
take_prices(void)
{
    g_autoptr(cost_centre) centre = NULL;
    esdm_error err = {0};
    if (centre_file == NULL) {
        storage_price = isnan(storage_price) ? 60 : storage_price;
        compute_price = isnan(compute_price) ? 0.05 : compute_price;
        return TOOL_OK;
    }
    esdm_status st = cost_centre_read(centre_file, &centre, &err);
    if (st != ESDM_OK)
        return tool_fail(st, &err);
    if (centre->node.points == NULL) {
        tool_error("%s: computing.node is missing: recipes ran on a node", centre_file);
        return TOOL_FAILED;
    }
    double start = from > 0 ? from : cost_year_now();
    if (isnan(storage_price))
        storage_price = cost_of_keeping(centre, &centre->storage, 1, start, years) / years;
    if (isnan(compute_price))
        compute_price = cost_of_node_hour(centre, start);
    return TOOL_OK;
}

/* ---- */

typedef struct command {
    const char *name;
    bool writes;
    tool_exit (*run)(esdm_session *session, const char *name, json_t *recipe);
} command;

static tool_exit
show_one(esdm_session *session, const char *name, json_t *recipe)
{
    (void) session;
    return show(name, recipe);
}

static const command commands[] = {{"show", false, show_one},
                                   {"check", true, check},
                                   {"cost", false, cost},
                                   {"drop", true, drop},
                                   {"restore", true, restore}};

static tool_exit
run_command(const command *c, int argc, char **argv)
{
    esdm_session *session = NULL;
    tool_exit result = TOOL_OK;
    g_autoptr(GPtrArray) names = tool_names(argc, argv, &result);
    if (names != NULL)
        result = tool_session(!c->writes, &session);
    for (guint i = 0; names != NULL && i < names->len && result == TOOL_OK; i++) {
        json_t *recipe = recipe_of(session, names->pdata[i], &result);
        if (recipe != NULL)
            result = c->run(session, names->pdata[i], recipe);
        json_decref(recipe);
    }
    esdm_session_close(session);
    return result;
}

static tool_exit
propose(int argc, char **argv)
{
    esdm_session *session = NULL;
    tool_exit result = TOOL_OK;
    const recipe_prices prices = prices_of();
    g_autoptr(GPtrArray) names = tool_names(argc, argv, &result);
    if (names != NULL)
        result = tool_session(true, &session);
    if (names != NULL && result == TOOL_OK)
        result = recipe_propose(session, names, &prices);
    esdm_session_close(session);
    return result;
}

int
main(int argc, char **argv)
{
    tool_parse(&help, entries, &argc, &argv);
    bool proposes = argc > 1 && g_str_equal(argv[1], "propose");
    if (argc < 3 && !proposes)
        return tool_usage("expected a command and what it is about: record, show, check, cost, "
                          "propose, drop or restore");
    if (!isnan(readings) && !(proposes && readings >= 0 && isfinite(readings)))
        return tool_usage("--readings goes with propose: expected a number from 0 on");
    if (from != 0 && !(from > 1900 && from < 3000))
        return tool_usage("--from: expected a year such as 2025");
    if (!(years > 0 && years <= 1000 && !(storage_price < 0) && !(compute_price < 0)))
        return tool_usage(
            "--years, --storage-price and --compute-price: expected positive numbers, and at most "
            "1000 years");
    tool_exit prices = take_prices();
    if (prices != TOOL_OK)
        return prices;
    if (g_str_equal(argv[1], "record")) {
        char **program = argv + 2 + (g_str_equal(argv[2], "--") ? 1 : 0);
        const recipe_wishes wishes = {ignored, variables, tolerances, visible, image_path};
        if (*program == NULL)
            return tool_usage("record: name the program");
        if (visible != NULL && image_path == NULL)
            return tool_usage("--visible goes with --image: other programs see all files");
        return tool_finish(recipe_tolerances_wrong(tolerances) ? TOOL_USAGE
                                                               : recipe_record(program, &wishes));
    }
    if (tolerances != NULL || image_path != NULL || visible != NULL)
        return tool_usage("--%s goes with record", tolerances != NULL   ? "tolerance"
                                                   : image_path != NULL ? "image"
                                                                        : "visible");
    if (proposes)
        return tool_finish(propose(argc - 1, argv + 1));
    for (gsize i = 0; i < G_N_ELEMENTS(commands); i++)
        if (g_str_equal(commands[i].name, argv[1]))
            return tool_finish(run_command(&commands[i], argc - 2 + 1, argv + 1));
    return tool_usage("there is no command '%s'; known are record, show, check, cost, propose, "
                      "drop and restore",
                      argv[1]);
}
