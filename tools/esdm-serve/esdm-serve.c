/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* The site in a browser, and its containers over HTTP. */

#include "esdm-serve/esdm-serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static const tool_help help = {
    .name = "esdm-serve",
    .arguments = "",
    .description =
        "Shows the site in a browser: containers, search, variables and attributes, and\n"
        "pictures of the data. The same address gives containers as NetCDF files whose\n"
        "bytes are made when they are read, and all that the page shows as JSON. Nothing\n"
        "can be changed.\n"
        "\n"
        "  /                          the page\n"
        "  /files/NAME                a container as a NetCDF file, with ranges and ETag;\n"
        "                             ?snapshot=NUMBER, ?format=classic, ?accuracy=1%25\n"
        "  /zarr/NAME                 a container as a store of Zarr 3; a path for programs\n"
        "                             that read Zarr over HTTP\n"
        "  /dap/NAME                  a container for clients of OPeNDAP (DAP 2): the netCDF\n"
        "                             libraries, ncview, Panoply, pydap\n"
        "  /api/list?prefix=NAME      containers (?after=NAME goes on)\n"
        "  /api/find?q=EXPRESSION     as esdm-find\n"
        "  /api/facets?names=A,B      how many containers have which values of attributes\n"
        "                             (&q=EXPRESSION: of those that are found)\n"
        "  /api/views/PLACE           views of the site, a level of one (cmip6:/CMIP6), or\n"
        "                             the containers at its last level\n"
        "  /api/container/NAME        dimensions, variables, attributes\n"
        "  /api/snapshots/NAME, /api/fragments/NAME?variable=/PATH\n"
        "  /api/values/NAME?variable=/PATH&start=0,0&count=10,10&stride=1,1\n"
        "                             numbers as 32-bit floats, little-endian; &type=double:\n"
        "                             as 64-bit ones\n"
        "\n"
        "It listens on this machine alone, and there answers you, root, and who can read the\n"
        "directories of the site by modes and groups (of those with an access list: the owner\n"
        "alone). Nobody else reads where the site keeps or reads something elsewhere with\n"
        "rights of yours (S3, a database server), nor do users of other namespaces, who all\n"
        "have the number of the user nobody. --all-users lets every user of the machine read,\n"
        "as where a proxy of another user asks. For other machines, say --address,\n"
        "--token-file and --certificate: the token's file, which only you can read, has a\n"
        "password that every request must have (Authorization: Bearer TOKEN), and what goes\n"
        "over the network is encrypted (TLS). --plain instead of a certificate is for a proxy\n"
        "that encrypts.\n"
        "Wherever NAME stands, NAME@SNAPSHOT names one snapshot, which never changes.\n"
        "Pages of other places that a browser shows cannot read anything, unless\n"
        "--allow-origin names them.\n"
        "\n"
        "128 connections have a place at a time. When others wait, the slowest one that has\n"
        "been answered for 10 seconds or more is ended, one a second.\n"
        "\n"
        "It stays in the foreground; Ctrl-C or SIGTERM ends it.",
    .examples =
        "  esdm-serve                       then open http://localhost:8680/\n"
        "  ncdump -h 'http://localhost:8680/files/run1/ocean.nc#mode=bytes'\n"
        "  python3 -c \"import xarray; "
        "print(xarray.open_zarr('http://localhost:8680/zarr/x.nc'))\"\n"
        "  ncdump -h http://localhost:8680/dap/run1/ocean.nc\n"
        "  curl 'http://localhost:8680/api/find?q=units=K'\n"
        "  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 \\\n"
        "      -subj /CN=$(hostname -f) -addext subjectAltName=DNS:$(hostname -f) \\\n"
        "      -keyout ~/.esdm-key.pem -out ~/.esdm-certificate.pem\n"
        "  esdm-serve --address 0.0.0.0 --token-file ~/.esdm-token \\\n"
        "      --certificate ~/.esdm-certificate.pem --key ~/.esdm-key.pem\n",
    .see_also = "esdm-mount, esdm-find, esdm-stat, esdm-cp",
};

#define DEFAULT_PORT   8680
#define THREADS        4u
#define CONNECTIONS    128u
#define SECONDS_IDLE   30u
#define MEMORY_EACH    (64u << 10) /* of a connection, for its headers */
#define IDLE_FILES     16u
#define IDLE_MODELS    32u
#define SHORTEST_TOKEN 16u
#define SECONDS_TO_END 3 /* that answers under way have when the server is told to end */

static char *address_text, *token_file, *certificate_file, *key_file;
static char **origins;
static gboolean plain, all_users;
static gint port = DEFAULT_PORT;

static const GOptionEntry entries[] = {
    {"address", 'a', 0, G_OPTION_ARG_STRING, &address_text, "Listen there; 127.0.0.1", "ADDRESS"},
    {"port", 'p', 0, G_OPTION_ARG_INT, &port, "Port; 8680. 0: any, which is printed", "NUMBER"},
    {"token-file", 't', 0, G_OPTION_ARG_FILENAME, &token_file,
     "Ask every request for the password in this file", "FILE"},
    {"certificate", 'c', 0, G_OPTION_ARG_FILENAME, &certificate_file,
     "Encrypt (HTTPS) with the certificate in this file (PEM; its chain may follow)", "FILE"},
    {"key", 'k', 0, G_OPTION_ARG_FILENAME, &key_file,
     "The certificate's private key (PEM); without it, the certificate's file has both", "FILE"},
    {"plain", 0, 0, G_OPTION_ARG_NONE, &plain,
     "Do not encrypt though others can reach the address: a proxy does", NULL},
    {"all-users", 0, 0, G_OPTION_ARG_NONE, &all_users,
     "Let all users of this machine read, also those who cannot read the site's directories", NULL},
    {"allow-origin", 'o', 0, G_OPTION_ARG_STRING_ARRAY, &origins,
     "Let pages of ORIGIN (https://viewer.example, or * for all) read with a browser", "ORIGIN"},
    {0},
};

/* ---- options ------------------------------------------------------------------------------ */

typedef union address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
} address;

static bool
parse_address(address *ret, bool *ret_local)
{
    const char *text = address_text != NULL ? address_text : "127.0.0.1";
    memset(ret, 0, sizeof *ret);
    if (inet_pton(AF_INET, text, &ret->four.sin_addr) == 1) {
        ret->four.sin_family = AF_INET;
        ret->four.sin_port = htons((uint16_t) port);
        *ret_local = (ntohl(ret->four.sin_addr.s_addr) >> 24) == 127;
        return true;
    }
    if (inet_pton(AF_INET6, text, &ret->six.sin6_addr) != 1)
        return false;
    ret->six.sin6_family = AF_INET6;
    ret->six.sin6_port = htons((uint16_t) port);
    *ret_local = IN6_IS_ADDR_LOOPBACK(&ret->six.sin6_addr);
    return true;
}

static tool_exit
read_token(char **ret_token)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;
    if (!g_file_get_contents(token_file, &text, NULL, &error)) {
        tool_error("cannot read the token: %s", error->message);
        return TOOL_FAILED;
    }
    g_strstrip(text);
    if (strlen(text) < SHORTEST_TOKEN) {
        tool_error("'%s': a token has %u letters or more: head -c 18 /dev/urandom | base64 > %s",
                   token_file, SHORTEST_TOKEN, token_file);
        return TOOL_FAILED;
    }
    *ret_token = g_steal_pointer(&text);
    return TOOL_OK;
}

/* ---- encryption --------------------------------------------------------------------------- */

/* A certificate and its key as PEM; NULL where nothing is encrypted. */
typedef struct tls_files {
    char *certificate, *key;
} tls_files;

static void
tls_files_free(tls_files *tls)
{
    g_free(tls->certificate);
    if (tls->key != NULL)
        explicit_bzero(tls->key, strlen(tls->key));
    g_free(tls->key);
}

static tool_exit
read_pem(const char *file, const char *what, const char *begins, char **ret)
{
    g_autoptr(GError) error = NULL;
    if (!g_file_get_contents(file, ret, NULL, &error)) {
        tool_error("cannot read the %s: %s", what, error->message);
        return TOOL_FAILED;
    }
    if (strstr(*ret, begins) == NULL) {
        tool_error("'%s' is no %s as PEM: a line '-----BEGIN …%s' is missing", file, what, begins);
        return TOOL_FAILED;
    }
    return TOOL_OK;
}

static tool_exit
read_tls(tls_files *ret)
{
    const char *of_key = key_file != NULL ? key_file : certificate_file;
    struct stat info;
    if (MHD_is_feature_supported(MHD_FEATURE_SSL) != MHD_YES) {
        tool_error("not supported: this libmicrohttpd was built without TLS; put a proxy that "
                   "encrypts before the server and say --plain");
        return TOOL_FAILED;
    }
    tool_exit result =
        read_pem(certificate_file, "certificate", "CERTIFICATE-----", &ret->certificate);
    if (result == TOOL_OK)
        result = read_pem(of_key, "private key", "PRIVATE KEY-----", &ret->key);
    if (result == TOOL_OK && stat(of_key, &info) == 0 && (info.st_mode & (S_IRGRP | S_IROTH)) != 0)
        (void) fprintf(stderr, "esdm-serve: others can read the private key: chmod 600 '%s'\n",
                       of_key);
    return result;
}

/* ---- serving ------------------------------------------------------------------------------ */

static void
print_place(struct MHD_Daemon *daemon)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
    unsigned bound = info != NULL && info->port != 0 ? info->port : (unsigned) port;
    const char *host = address_text != NULL ? address_text : "localhost";
    const char *open = strchr(host, ':') != NULL ? "[" : "", *close = *open != '\0' ? "]" : "";
    (void) printf("%s://%s%s%s:%u/\n", certificate_file != NULL ? "https" : "http", open, host,
                  close, bound);
    (void) fflush(stdout);
}

/* The last message of libmicrohttpd before the server has started; later ones are of single
 * clients. */
static char why_not[256];
static atomic_bool started;

static void
remember_why(void *unused, const char *format, va_list arguments)
{
    (void) unused;
    if (!atomic_load(&started))
        (void) g_vsnprintf(why_not, sizeof why_not, format, arguments);
}

static struct MHD_Daemon *
start(serve_state *state, const address *at, const tls_files *tls)
{
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO | MHD_USE_ITC;
    if (at->any.sa_family == AF_INET6)
        flags |= MHD_USE_IPv6;
    struct MHD_OptionItem encrypted[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, tls->certificate},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, tls->key},
        {MHD_OPTION_END, 0, NULL},
    };
    if (tls->certificate != NULL)
        flags |= MHD_USE_TLS;
    else
        encrypted[0].option = MHD_OPTION_END;
    return MHD_start_daemon(flags | MHD_USE_ERROR_LOG, (uint16_t) port, NULL, NULL, serve_handle,
                            state, MHD_OPTION_EXTERNAL_LOGGER, remember_why, NULL,
                            MHD_OPTION_SOCK_ADDR, &at->any, MHD_OPTION_THREAD_POOL_SIZE, THREADS,
                            MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
                            SECONDS_IDLE, MHD_OPTION_NOTIFY_CONNECTION, serve_guard_connection,
                            state->guard, MHD_OPTION_NOTIFY_COMPLETED, serve_guard_done,
                            state->guard, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t) MEMORY_EACH,
                            MHD_OPTION_ARRAY, encrypted, MHD_OPTION_END);
}

/* Takes no more connections and waits for those that there are; returns how many are left. */
static unsigned
end_connections(struct MHD_Daemon *daemon)
{
    gint64 until = g_get_monotonic_time() + SECONDS_TO_END * G_USEC_PER_SEC;
    MHD_socket listened = MHD_quiesce_daemon(daemon);
    unsigned left = 0;
    if (listened != MHD_INVALID_SOCKET)
        (void) close(listened);
    do {
        const union MHD_DaemonInfo *info =
            MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
        left = info != NULL ? info->num_connections : 0;
        if (left != 0)
            g_usleep(20000);
    } while (left != 0 && g_get_monotonic_time() < until);
    return left;
}

static tool_exit
serve(serve_state *state, const address *at, const tls_files *tls)
{
    sigset_t ends;
    int which = 0;
    (void) sigemptyset(&ends);
    (void) sigaddset(&ends, SIGINT);
    (void) sigaddset(&ends, SIGTERM);
    (void) sigaddset(&ends, SIGHUP);
    (void) pthread_sigmask(SIG_BLOCK, &ends, NULL); /* of all threads */
    state->guard = serve_guard_new(CONNECTIONS);
    if (state->guard == NULL) {
        tool_error("cannot start a thread: %s", g_strerror(errno));
        return TOOL_FAILED;
    }
    struct MHD_Daemon *daemon = start(state, at, tls);
    if (daemon == NULL) {
        g_strstrip(why_not);
        tool_error("cannot listen on port %d: %s; --port takes another one", port,
                   why_not[0] != '\0' ? why_not : g_strerror(errno));
        serve_guard_free(state->guard);
        return TOOL_FAILED;
    }
    atomic_store(&started, true);
    const union MHD_DaemonInfo *listens = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_LISTEN_FD);
    serve_guard_listens(state->guard, listens != NULL ? listens->listen_fd : -1);
    print_place(daemon);
    (void) sigwait(&ends, &which);
    serve_guard_listens(state->guard, -1);
    if (end_connections(daemon) != 0) {
        /* Slow clients hold theirs. libmicrohttpd 0.9.75 can crash in MHD_stop_daemon() over them;
         * nothing that a server read is to be kept, so the process just ends. */
        _exit(TOOL_OK);
    }
    MHD_stop_daemon(daemon);
    serve_guard_free(state->guard);
    return TOOL_OK;
}

int
main(int argc, char **argv)
{
    address at;
    bool local = true;
    serve_state state = {.origins = NULL};
    tls_files tls = {.certificate = NULL};
    tool_parse(&help, entries, &argc, &argv);
    if (argc != 1)
        return tool_usage("no arguments are needed");
    if (port < 0 || port > 65535)
        return tool_usage("--port is a number up to 65535");
    if (!parse_address(&at, &local))
        return tool_usage("--address is an address as 127.0.0.1 or ::1, not '%s'", address_text);
    state.origins = origins;
    state.any_user = all_users || token_file != NULL || !local;
    if (!local && token_file == NULL)
        return tool_usage("others can reach %s: say --token-file", address_text);
    if (key_file != NULL && certificate_file == NULL)
        return tool_usage("--key needs --certificate");
    if (plain && certificate_file != NULL)
        return tool_usage("--plain does not encrypt, --certificate does: say one of them");
    if (!local && certificate_file == NULL && !plain)
        return tool_usage("others could read what goes to %s, the token too: say --certificate, or "
                          "--plain where a proxy encrypts",
                          address_text);
    tool_exit result = token_file != NULL ? read_token(&state.token) : TOOL_OK;
    if (result == TOOL_OK && certificate_file != NULL)
        result = read_tls(&tls);
    if (result == TOOL_OK)
        result = tool_session(true, &state.session);
    if (result == TOOL_OK) {
        esdm_session_serve_others(state.session);
        state.files = vfile_pool_new(state.session, IDLE_FILES);
        state.models = serve_models_new(state.session, IDLE_MODELS);
        result = serve(&state, &at, &tls);
        vfile_pool_free(state.files);
        tool_pool_free(state.models);
        esdm_session_close(state.session);
    }
    g_free(state.token);
    tls_files_free(&tls);
    return tool_finish(result);
}
