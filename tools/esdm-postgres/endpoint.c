/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Where the server listens, and connecting to it. */

#include "esdm-postgres/private.h"

#include <ifaddrs.h>
#include <libpq-fe.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

/* A node that does not answer costs who connects some seconds for each address. */
#define MOST_ADDRESSES 3

void
private_endpoint_clear(private_endpoint *endpoint)
{
    g_free(endpoint->host);
    g_free(endpoint->addresses);
    *endpoint = (private_endpoint){0};
}

esdm_status
private_endpoint_read(const private_server *server, private_endpoint *ret_endpoint, esdm_error *err)
{
    g_autofree char *path = private_path(server, "endpoint.json");
    g_autofree char *text = NULL;
    private_endpoint_clear(ret_endpoint);
    esdm_status status = private_read(path, &text, err);
    if (status != ESDM_OK)
        return status;
    json_t *root = tool_json_read(text, -1, 0, NULL);
    const char *host = json_string_value(json_object_get(root, "host"));
    const char *addresses = json_string_value(json_object_get(root, "addresses"));
    ret_endpoint->lease = (guint64) json_integer_value(json_object_get(root, "lease"));
    ret_endpoint->port = json_integer_value(json_object_get(root, "port"));
    ret_endpoint->host = g_strdup(host != NULL ? host : "");
    ret_endpoint->addresses = g_strdup(addresses != NULL ? addresses : "");
    bool whole = host != NULL && addresses != NULL && ret_endpoint->port > 0;
    json_decref(root);
    return whole ? ESDM_OK : tool_error_set(err, ESDM_ENOENT, "'%s' is not whole", path);
}

esdm_status
private_endpoint_write(const private_server *server, const private_endpoint *endpoint,
                       esdm_error *err)
{
    g_autofree char *path = private_path(server, "endpoint.json");
    json_t *root = json_object();
    tool_json_set(root, "lease", json_integer((json_int_t) endpoint->lease));
    tool_json_set(root, "host", tool_json_text(endpoint->host));
    tool_json_set(root, "addresses", tool_json_text(endpoint->addresses));
    tool_json_set(root, "port", json_integer(endpoint->port));
    char *text = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    g_autofree char *line = g_strconcat(text, "\n", NULL);
    free(text);
    return private_write(path, line, 0600, err);
}

/* ---- addresses ------------------------------------------------------------------------------ */

static char *
numeric(const struct sockaddr *address)
{
    char text[NI_MAXHOST];
    socklen_t bytes =
        address->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    if (getnameinfo(address, bytes, text, sizeof text, NULL, 0, NI_NUMERICHOST) != 0)
        return NULL;
    return g_strdup(text);
}

/* Whether others can connect to it: no loopback, none that needs the name of an interface. */
static bool
is_for_others(const struct ifaddrs *at)
{
    if (at->ifa_addr == NULL || (at->ifa_flags & IFF_UP) == 0 ||
        (at->ifa_flags & IFF_LOOPBACK) != 0)
        return false;
    if (at->ifa_addr->sa_family == AF_INET)
        return true;
    const struct sockaddr_in6 *six = (const void *) at->ifa_addr;
    return at->ifa_addr->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr);
}

/* Addresses that the node's name stands for come first. */
static bool
is_of_name(const char *address, const struct addrinfo *of_name)
{
    for (; of_name != NULL; of_name = of_name->ai_next) {
        g_autofree char *text = numeric(of_name->ai_addr);
        if (text != NULL && g_str_equal(text, address))
            return true;
    }
    return false;
}

char *
private_addresses(const private_server *server)
{
    if (server->address != NULL)
        return g_strdup(server->address);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *of_name = NULL;
    struct ifaddrs *all = NULL;
    if (getaddrinfo(g_get_host_name(), NULL, &hints, &of_name) != 0)
        of_name = NULL;
    if (getifaddrs(&all) != 0)
        all = NULL;
    GString *list = g_string_new(NULL);
    int count = 0;
    for (int round = 0; round < 2; round++) {
        for (const struct ifaddrs *at = all; at != NULL && count < MOST_ADDRESSES;
             at = at->ifa_next) {
            g_autofree char *text = is_for_others(at) ? numeric(at->ifa_addr) : NULL;
            if (text == NULL || is_of_name(text, of_name) != (round == 0))
                continue;
            g_string_append_printf(list, "%s%s", list->len > 0 ? "," : "", text);
            count++;
        }
    }
    if (of_name != NULL)
        freeaddrinfo(of_name);
    if (all != NULL)
        freeifaddrs(all);
    if (list->len == 0)
        g_string_append(list, "127.0.0.1");
    return g_string_free(list, FALSE);
}

/* ---- connecting ----------------------------------------------------------------------------- */

static void
ignore_notice(void *user, const char *message)
{
    (void) user;
    (void) message;
}

void *
private_connect(const private_server *server, const private_endpoint *endpoint)
{
    g_autofree char *password_file = private_path(server, "admin-password");
    g_autofree char *certificate = private_path(server, "server.crt");
    g_autofree char *password = NULL;
    g_autofree char *port = g_strdup_printf("%d", (int) endpoint->port);
    if (private_read(password_file, &password, NULL) != ESDM_OK)
        return NULL;
    const char *keywords[] = {"host",
                              "port",
                              "dbname",
                              "user",
                              "password",
                              "sslmode",
                              "sslrootcert",
                              "channel_binding",
                              "gssencmode",
                              "connect_timeout",
                              "application_name",
                              NULL};
    const char *values[] = {endpoint->addresses, port,        "postgres", "postgres", password,
                            "verify-ca",         certificate, "require",  "disable",  "3",
                            "esdm-postgres",     NULL};
    PGconn *connection = PQconnectdbParams(keywords, values, 0);
    if (connection != NULL && PQstatus(connection) == CONNECTION_OK) {
        (void) PQsetNoticeProcessor(connection, ignore_notice, NULL);
        return connection;
    }
    PQfinish(connection);
    return NULL;
}
