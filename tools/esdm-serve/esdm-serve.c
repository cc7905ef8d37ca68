/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* The site in a browser, and its containers over HTTP. */

#include "esdm-serve/esdm-serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
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
        "It listens on this machine alone. For others, say --address and --token-file: a\n"
        "file that only you can read, with a password that every request must have. It does\n"
        "not encrypt: put a proxy with TLS before it where the network is not yours.\n"
        "Wherever NAME stands, NAME@SNAPSHOT names one snapshot, which never changes.\n"
        "Pages of other places that a browser shows cannot read anything, unless\n"
        "--allow-origin names them.\n"
        "\n"
        "It stays in the foreground; Ctrl-C or SIGTERM ends it.",
    .examples = "  esdm-serve                       then open http://localhost:8680/\n"
                "  ncdump -h 'http://localhost:8680/files/run1/ocean.nc#mode=bytes'\n"
                "  python3 -c \"import xarray; "
                "print(xarray.open_zarr('http://localhost:8680/zarr/x.nc'))\"\n"
                "  ncdump -h http://localhost:8680/dap/run1/ocean.nc\n"
                "  curl 'http://localhost:8680/api/find?q=units=K'\n"
                "  esdm-serve --address 0.0.0.0 --token-file ~/.esdm-token\n",
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

static char *address_text, *token_file;
static char **origins;
static gint port = DEFAULT_PORT;

static const GOptionEntry entries[] = {
    {"address", 'a', 0, G_OPTION_ARG_STRING, &address_text, "Listen there; 127.0.0.1", "ADDRESS"},
    {"port", 'p', 0, G_OPTION_ARG_INT, &port, "Port; 8680. 0: any, which is printed", "NUMBER"},
    {"token-file", 't', 0, G_OPTION_ARG_FILENAME, &token_file,
     "Ask every request for the password in this file", "FILE"},
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

/* ---- serving ------------------------------------------------------------------------------ */

static void
print_place(struct MHD_Daemon *daemon)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
    unsigned bound = info != NULL && info->port != 0 ? info->port : (unsigned) port;
    const char *host = address_text != NULL ? address_text : "localhost";
    const char *open = strchr(host, ':') != NULL ? "[" : "", *close = *open != '\0' ? "]" : "";
    (void) printf("http://%s%s%s:%u/\n", open, host, close, bound);
    (void) fflush(stdout);
}

static tool_exit
serve(serve_state *state, const address *at)
{
    sigset_t ends;
    int which = 0;
    (void) sigemptyset(&ends);
    (void) sigaddset(&ends, SIGINT);
    (void) sigaddset(&ends, SIGTERM);
    (void) sigaddset(&ends, SIGHUP);
    (void) pthread_sigmask(SIG_BLOCK, &ends, NULL); /* of all threads */
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO;
    if (at->any.sa_family == AF_INET6)
        flags |= MHD_USE_IPv6;
    struct MHD_Daemon *daemon = MHD_start_daemon(
        flags, (uint16_t) port, NULL, NULL, serve_handle, state, MHD_OPTION_SOCK_ADDR, &at->any,
        MHD_OPTION_THREAD_POOL_SIZE, THREADS, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS,
        MHD_OPTION_CONNECTION_TIMEOUT, SECONDS_IDLE, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t) MEMORY_EACH, MHD_OPTION_END);
    if (daemon == NULL) {
        tool_error("cannot listen on port %d: %s; --port takes another one", port,
                   g_strerror(errno));
        return TOOL_FAILED;
    }
    print_place(daemon);
    (void) sigwait(&ends, &which);
    MHD_stop_daemon(daemon);
    return TOOL_OK;
}

int
main(int argc, char **argv)
{
    address at;
    bool local = true;
    serve_state state = {.origins = NULL};
    tool_parse(&help, entries, &argc, &argv);
    if (argc != 1)
        return tool_usage("no arguments are needed");
    if (port < 0 || port > 65535)
        return tool_usage("--port is a number up to 65535");
    if (!parse_address(&at, &local))
        return tool_usage("--address is an address as 127.0.0.1 or ::1, not '%s'", address_text);
    state.origins = origins;
    if (!local && token_file == NULL)
        return tool_usage("others can reach %s: say --token-file", address_text);
    tool_exit result = token_file != NULL ? read_token(&state.token) : TOOL_OK;
    if (result == TOOL_OK)
        result = tool_session(true, &state.session);
    if (result == TOOL_OK) {
        esdm_session_serve_others(state.session);
        state.files = vfile_pool_new(state.session, IDLE_FILES);
        state.models = serve_models_new(state.session, IDLE_MODELS);
        result = serve(&state, &at);
        vfile_pool_free(state.files);
        tool_pool_free(state.models);
        esdm_session_close(state.session);
    }
    g_free(state.token);
    return tool_finish(result);
}
