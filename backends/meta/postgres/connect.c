/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Making a connection to the first of the configured hosts that is a primary. libpq goes from host
 * to host by itself, but not on from one that takes the connection and then closes it or hangs:
 * only its blocking functions see to "connect_timeout", and those do not tell the code of an error.
 */

#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/descriptor.h"
#include "base/ids.h"
#include "failure.h"
#include "link.h"

#define SECOND_NS UINT64_C(1000000000)
/* Longest time for one host where "connect_timeout" says "for ever". */
#define HOST_NS (30 * SECOND_NS)
/* libpq's own lower limit of "connect_timeout", in seconds. */
#define MIN_TIMEOUT       2
#define ENDPOINT_KEYWORDS 9

/* ---- lists of hosts ------------------------------------------------------------------------- */

/* What libpq has made of all sources: keys, environment, service file. NULL: not set, or empty. */
static const char *
setting(const PQconninfoOption *all, const char *keyword)
{
    for (; all != NULL && all->keyword != NULL; all++) {
        if (strcmp(all->keyword, keyword) == 0)
            return all->val != NULL && all->val[0] != '\0' ? all->val : NULL;
    }
    return NULL;
}

/* What follows the next comma; NULL: this is the last element. */
static const char *
next_element(const char *list)
{
    const char *comma = list != NULL ? strchr(list, ',') : NULL;
    return comma != NULL ? comma + 1 : NULL;
}

static bool
element_is(const char *list, const char *text)
{
    size_t bytes = strcspn(list, ",");
    return bytes == strlen(text) && memcmp(list, text, bytes) == 0;
}

typedef struct hosts {
    const char *host, *hostaddr, *port; /* lists; NULL: not set. One port is that of all hosts. */
} hosts;

/* Those behind the host that `conn` is at; false: there are none. */
static bool
hosts_behind(const PGconn *conn, hosts at, hosts *ret_rest)
{
    bool found = false;
    while (at.host != NULL || at.hostaddr != NULL) {
        const char *name = at.host != NULL && !element_is(at.host, "") ? at.host : at.hostaddr;
        bool here =
            name != NULL && element_is(name, PQhost(conn)) &&
            (at.port == NULL || element_is(at.port, "") || element_is(at.port, PQport(conn)));
        at.host = next_element(at.host);
        at.hostaddr = next_element(at.hostaddr);
        if (next_element(at.port) != NULL)
            at.port = next_element(at.port);
        if (here) { /* the last one that fits: it always goes forward */
            found = at.host != NULL || at.hostaddr != NULL;
            *ret_rest = at;
        }
    }
    return found;
}

/* ---- waiting -------------------------------------------------------------------------------- */

static uint64_t
host_limit_ns(const PQconninfoOption *all)
{
    const char *text = setting(all, "connect_timeout");
    long seconds = text != NULL ? strtol(text, NULL, 10) : 0;
    if (seconds <= 0 || (uint64_t) seconds > HOST_NS / SECOND_NS)
        return HOST_NS;
    return (uint64_t) (seconds < MIN_TIMEOUT ? MIN_TIMEOUT : seconds) * SECOND_NS;
}

/* Where libpq is: another place has its own time. */
typedef struct place {
    char host[256], address[64], port[16];
} place;

static void
copy_text(char *to, size_t bytes, const char *from)
{
    to[0] = '\0';
    strncat(to, from != NULL ? from : "", bytes - 1);
}

static place
place_of(const PGconn *conn)
{
    place now;
    memset(&now, 0, sizeof now);
    copy_text(now.host, sizeof now.host, PQhost(conn));
    copy_text(now.address, sizeof now.address, PQhostaddr(conn));
    copy_text(now.port, sizeof now.port, PQport(conn));
    return now;
}

static bool
same_place(const place *a, const place *b)
{
    return strcmp(a->host, b->host) == 0 && strcmp(a->address, b->address) == 0 &&
           strcmp(a->port, b->port) == 0;
}

/* Goes on with the connection until it stands or has failed. false: a host is out of time. */
static bool
poll_connection(PGconn *conn, uint64_t limit_ns)
{
    uint64_t until_ns = esdm__now_ns() + limit_ns;
    place before = place_of(conn);
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;
    while (state != PGRES_POLLING_OK && state != PGRES_POLLING_FAILED) {
        struct pollfd wanted = {.fd = PQsocket(conn),
                                .events = state == PGRES_POLLING_READING ? POLLIN : POLLOUT};
        int n = poll(&wanted, 1, 250);
        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0)
            state = PQconnectPoll(conn);
        place now = place_of(conn);
        if (!same_place(&now, &before))
            until_ns = esdm__now_ns() + limit_ns;
        else if (n <= 0 && esdm__now_ns() > until_ns)
            return false;
        before = now;
    }
    return true;
}

/* ---- connecting ----------------------------------------------------------------------------- */

/* Encrypted, and with the certificate in the site's folder alone: another program may listen where
 * the server was. */
static size_t
add_endpoint(const postgres__endpoint *endpoint, const char **keywords, const char **values)
{
    const char *const pairs[ENDPOINT_KEYWORDS][2] = {{"host", endpoint->addresses},
                                                     {"port", endpoint->port},
                                                     {"dbname", "esdm"},
                                                     {"user", "esdm"},
                                                     {"password", endpoint->password},
                                                     {"sslmode", "verify-ca"},
                                                     {"sslrootcert", endpoint->certificate},
                                                     {"channel_binding", "require"},
                                                     {"gssencmode", "disable"}};
    for (size_t i = 0; i < ENDPOINT_KEYWORDS; i++) {
        keywords[i] = pairs[i][0];
        values[i] = pairs[i][1];
    }
    return ENDPOINT_KEYWORDS;
}

static PGconn *
start(const postgres__config *config, const postgres__endpoint *endpoint, const hosts *only)
{
    const char *keywords[POSTGRES__KEYWORDS + ENDPOINT_KEYWORDS + 4];
    const char *values[POSTGRES__KEYWORDS + ENDPOINT_KEYWORDS + 4];
    size_t n = config->nkeywords;
    memcpy(keywords, config->keywords, n * sizeof *keywords);
    memcpy(values, config->values, n * sizeof *values);
    if (endpoint != NULL)
        n += add_endpoint(endpoint, keywords + n, values + n);
    if (only != NULL) { /* later ones override */
        keywords[n] = "host";
        values[n++] = only->host != NULL ? only->host : "";
        keywords[n] = "hostaddr";
        values[n++] = only->hostaddr != NULL ? only->hostaddr : "";
        keywords[n] = "port";
        values[n++] = only->port != NULL ? only->port : "";
    }
    keywords[n] = NULL;
    values[n] = NULL;
    PGconn *conn = PQconnectStartParams(keywords, values, 1);
    if (conn != NULL) /* errors with their codes, which the server's language does not change */
        (void) PQsetErrorVerbosity(conn, PQERRORS_VERBOSE);
    return conn;
}

/* Whether libpq has given up at a host of which no server has said why: one that hangs, or
 * something in front of a dead server that takes connections and closes them. */
static bool
gave_up(const PGconn *conn, bool in_time)
{
    return !in_time || (PQstatus(conn) == CONNECTION_BAD && !postgres__has_code(conn));
}

static PGconn *
connect_in_english(const postgres__config *config, const postgres__endpoint *endpoint,
                   bool *ret_in_time)
{
    PGconn *conn = start(config, endpoint, NULL);
    bool more = conn != NULL;
    *ret_in_time = true;
    while (more) {
        PQconninfoOption *all = PQconninfo(conn);
        const hosts listed = {setting(all, "host"), setting(all, "hostaddr"), setting(all, "port")};
        hosts rest = {NULL, NULL, NULL};
        *ret_in_time =
            PQstatus(conn) == CONNECTION_BAD || poll_connection(conn, host_limit_ns(all));
        more = gave_up(conn, *ret_in_time) && hosts_behind(conn, listed, &rest);
        if (more) {
            PQfinish(conn);
            conn = start(config, endpoint, &rest);
            more = conn != NULL;
        }
        PQconninfoFree(all);
    }
    return conn;
}

PGconn *
postgres__connect_any(const postgres__config *config, const postgres__endpoint *endpoint,
                      bool *ret_in_time)
{
    /* libpq would speak the program's language; its texts are looked at, and stand in ours. */
    locale_t english = newlocale(LC_MESSAGES_MASK, "C", (locale_t) 0);
    locale_t before = english != (locale_t) 0 ? uselocale(english) : (locale_t) 0;
    esdm__descriptors_moving(true);
    PGconn *conn = connect_in_english(config, endpoint, ret_in_time);
    esdm__descriptors_moving(false);
    if (english != (locale_t) 0) {
        (void) uselocale(before);
        freelocale(english);
    }
    return conn;
}
