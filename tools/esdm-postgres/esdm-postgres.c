/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* esdm-postgres: options, and what each asks for. */

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

#include "esdm-postgres/private.h"

static const tool_help help = {
    .name = "esdm-postgres",
    .arguments = "DIRECTORY",
    .description =
        "Looks after the PostgreSQL server of a site's own, which needs no administrator:\n"
        "its data are in DIRECTORY, on a file system that all nodes see. Programs that\n"
        "open the site start it on their node when it runs nowhere; it stops some time\n"
        "after the last of them has ended, and the next one starts it where that runs.\n"
        "So this command is not needed as a rule; esdm-mkfs --private-postgres makes\n"
        "the server and enters it into the site configuration.\n"
        "\n"
        "Never do two servers run on the same data: who wants to run it takes a lease in\n"
        "DIRECTORY, which shows every second that its holder lives. A holder that cannot\n"
        "show it ends the server. When a node dies others wait for the time \"lease\".\n"
        "\n"
        "--run keeps it in the foreground, as a job of its own for a workflow of many\n"
        "jobs; a batch system ends what a job leaves behind, and the next program then\n"
        "starts the server elsewhere, which takes seconds.\n"
        "\n"
        "Settings are in DIRECTORY/esdm-postgres.json: idle, lease, address, port,\n"
        "binaries; a server that runs obeys them when it is started again. Those of\n"
        "PostgreSQL are in DIRECTORY/data/postgresql.conf.\n"
        "\n"
        "Only the user to whom DIRECTORY belongs can run it; root becomes that user.",
    .examples = "  esdm-postgres --status /scratch/me/postgres\n"
                "  esdm-postgres --make --idle 3600 --address ib0.node7 /scratch/me/postgres\n"
                "  esdm-postgres --stop /scratch/me/postgres\n"
                "  sbatch --wrap 'esdm-postgres --run /scratch/me/postgres'\n",
    .see_also = "esdm-mkfs",
};

static gboolean want_status, want_start, want_stop, want_run, want_make, want_remove, dry_run;
static gint64 wait_s = 120, idle_s, lease_s, port, connections;
static char *address, *binaries;

static const GOptionEntry entries[] = {
    {"status", 0, 0, G_OPTION_ARG_NONE, &want_status, "Tell whether and where it runs", NULL},
    {"start", 0, 0, G_OPTION_ARG_NONE, &want_start,
     "Start it here unless it runs, and wait until it is ready", NULL},
    {"stop", 0, 0, G_OPTION_ARG_NONE, &want_stop, "Stop it, wherever it runs", NULL},
    {"run", 0, 0, G_OPTION_ARG_NONE, &want_run, "Run it here, until it is idle or stopped", NULL},
    {"make", 0, 0, G_OPTION_ARG_NONE, &want_make, "Make its data and settings", NULL},
    {"remove", 0, 0, G_OPTION_ARG_NONE, &want_remove, "Stop it, and remove its data for good",
     NULL},
    {"dry-run", 'n', 0, G_OPTION_ARG_NONE, &dry_run, "With --make: only tell whether it could be",
     NULL},
    {"wait", 0, 0, G_OPTION_ARG_INT64, &wait_s,
     "With --start, --run, --stop: for how long at most (120)", "SECONDS"},
    {"idle", 0, 0, G_OPTION_ARG_INT64, &idle_s,
     "With --make: it stops so long after the last connection (300)", "SECONDS"},
    {"lease", 0, 0, G_OPTION_ARG_INT64, &lease_s,
     "With --make: a node counts as dead without a sign for so long (30)", "SECONDS"},
    {"address", 0, 0, G_OPTION_ARG_STRING, &address,
     "With --make: where it listens; else at the node's addresses", "ADDRESS"},
    {"port", 0, 0, G_OPTION_ARG_INT64, &port, "With --make: its port; else one that is free",
     "PORT"},
    {"connections", 0, 0, G_OPTION_ARG_INT64, &connections,
     "With --make: how many processes may use it at once (300)", "NUMBER"},
    {"binaries", 0, 0, G_OPTION_ARG_FILENAME, &binaries,
     "With --make: the folder of initdb and postgres", "FOLDER"},
    {0},
};

/* ---- status --------------------------------------------------------------------------------- */

/* "running", "stopped", or "starting": somebody has the lease, and is not ready, or has died. */
static const char *
state_of(const private_server *server, private_endpoint *endpoint, private_lease *lease)
{
    private_watch watch = {0};
    if (private_lease_is_free(server, lease, &watch))
        return "stopped";
    if (private_endpoint_read(server, endpoint, NULL) == ESDM_OK &&
        endpoint->lease == lease->number) {
        PGconn *connection = private_connect(server, endpoint);
        PQfinish(connection);
        if (connection != NULL)
            return "running";
    }
    return "starting, or its node has died";
}

static esdm_status
show_status(const private_server *server, esdm_error *err)
{
    g_auto(private_lease) lease = {0};
    g_auto(private_endpoint) endpoint = {0};
    esdm_status status = private_lease_newest(server, &lease, err);
    if (status != ESDM_OK)
        return status;
    const char *state = state_of(server, &endpoint, &lease);
    bool runs = g_str_equal(state, "running");
    if (tool.json) {
        json_t *root = json_object();
        tool_json_set(root, "state",
                      json_string(runs || g_str_equal(state, "stopped") ? state : "unknown"));
        tool_json_set(root, "postgres", json_string(server->version));
        tool_json_set(root, "node",
                      !g_str_equal(state, "stopped") ? tool_json_text(lease.host) : json_null());
        tool_json_set(root, "addresses", runs ? tool_json_text(endpoint.addresses) : json_null());
        tool_json_set(root, "port", runs ? json_integer(endpoint.port) : json_null());
        tool_json_set(root, "process", runs ? json_integer(lease.pid) : json_null());
        tool_json_set(root, "idle", json_integer(server->idle_s));
        tool_json_set(root, "lease", json_integer(server->lease_s));
        tool_json_print(root);
        return ESDM_OK;
    }
    (void) printf("PostgreSQL %s is %s", server->version, state);
    if (runs)
        (void) printf(" on node %s (process %d), %s port %d", lease.host, (int) lease.pid,
                      endpoint.addresses, (int) endpoint.port);
    else if (!g_str_equal(state, "stopped"))
        (void) printf(" (node %s, process %d)", lease.host, (int) lease.pid);
    (void) printf("\n");
    return ESDM_OK;
}

/* ---- actions -------------------------------------------------------------------------------- */

static void
take_options(private_server *server)
{
    server->binaries = g_strdup(binaries);
    server->address = g_strdup(address);
    server->port = port;
    server->idle_s = idle_s > 0 ? idle_s : 300;
    server->lease_s = lease_s > 0 ? lease_s : 30;
    server->connections = connections > 0 ? connections : 300;
}

static esdm_status
act(private_server *server, esdm_error *err)
{
    esdm_status status = private_become_owner(server, want_make, err);
    if (status != ESDM_OK)
        return status;
    if (want_make) {
        take_options(server);
        return private_make(server, dry_run, err);
    }
    status = private_load(server, err);
    if (status != ESDM_OK)
        return status;
    if (want_start || want_run)
        return private_ensure(server, wait_s, want_run, err);
    if (want_stop || want_remove)
        status = private_stop(server, wait_s, err);
    if (status == ESDM_OK && want_remove)
        return private_remove(server, err);
    return want_stop ? status : show_status(server, err);
}

static bool
has_making_options(void)
{
    return dry_run || idle_s != 0 || lease_s != 0 || address != NULL || port != 0 ||
           connections != 0 || binaries != NULL;
}

/* TOOL_OK: the numbers are within their limits. */
static tool_exit
check_numbers(void)
{
    if (wait_s < 1 || wait_s > 86400)
        return tool_usage("--wait must be 1 ... 86400");
    if (idle_s < 0 || idle_s > INT64_C(31536000))
        return tool_usage("--idle must be 1 ... 31536000");
    if (lease_s != 0 && (lease_s < 3 || lease_s > 3600))
        return tool_usage("--lease must be 3 ... 3600");
    if (port < 0 || port > 65535)
        return tool_usage("--port must be 1 ... 65535");
    if (connections != 0 && (connections < 10 || connections > 10000))
        return tool_usage("--connections must be 10 ... 10000");
    return TOOL_OK;
}

int
main(int argc, char **argv)
{
    g_auto(private_server) server = {0};
    esdm_error err = {0};
    tool_parse(&help, entries, &argc, &argv);
    if (argc != 2)
        return tool_usage("in which folder is the server?");
    if (want_status + want_start + want_stop + want_run + want_make + want_remove != 1)
        return tool_usage("one of --status, --start, --stop, --run, --make and --remove is needed");
    if (!want_make && has_making_options())
        return tool_usage("settings belong to --make; later they are in %s/" PRIVATE_MARK, argv[1]);
    tool_exit fits = check_numbers();
    if (fits != TOOL_OK)
        return fits;
    server.folder = g_canonicalize_filename(argv[1], NULL);
    esdm_status status = act(&server, &err);
    return tool_finish(status == ESDM_OK ? TOOL_OK : tool_fail(status, &err));
}
