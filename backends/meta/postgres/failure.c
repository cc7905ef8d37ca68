/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "failure.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* ---- texts ---------------------------------------------------------------------------------- */

/* One line of what libpq says, which may have several. */
static void
copy_line(const char *from, char *to, size_t bytes)
{
    size_t used = 0;
    bool space = true; /* none at the start */
    for (; from != NULL && *from != '\0' && used + 1 < bytes; from++) {
        bool is_space = isspace((unsigned char) *from) != 0;
        if (!is_space || !space)
            to[used++] = is_space ? ' ' : *from;
        space = is_space;
    }
    while (used > 0 && to[used - 1] == ' ')
        used--;
    to[used] = '\0';
}

/* The verbose form of a server's refusal is "FATAL:  28P01: why" and "LOCATION:  where in its
 * source", the two words in the server's language. Takes out the code, and what is behind the first
 * line. */
static bool
take_code(char *text, char ret_code[6])
{
    for (char *at = strstr(text, ":  "); at != NULL; at = strstr(at + 1, ":  ")) {
        const char *code = at + 3;
        size_t length = strspn(code, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        if (length != 5 || code[5] != ':' || code[6] != ' ')
            continue;
        memcpy(ret_code, code, 5);
        ret_code[5] = '\0';
        memmove(at + 2, code + 7, strlen(code + 7) + 1);
        char *line_end = strchr(at, '\n');
        if (line_end != NULL)
            *line_end = '\0';
        return true;
    }
    return false;
}

void
postgres__ignore_notice(void *user, const char *message)
{
    (void) user;
    (void) message;
}

/* ---- codes ---------------------------------------------------------------------------------- */

#define NO_TABLES                                                                                  \
    "esdm-mkfs --restore brings the catalogue back if the site was in use, else run esdm-mkfs"

/* By the longest beginning of the SQLSTATE (appendix "PostgreSQL Error Codes"). */
typedef struct meaning {
    const char *code;
    esdm_status status;
    postgres__failure failure;
    const char *advice;
} meaning;

static const meaning meanings[] = {
    {"08", ESDM_EIO, POSTGRES__LOST, NULL},
    {"22", ESDM_EINVAL, POSTGRES__REFUSED, NULL},
    {"2200H", ESDM_ENOTSUP, POSTGRES__REFUSED, "all numbers for containers are used up"},
    {"25006", ESDM_EACCES, POSTGRES__REFUSED, "the server is read-only"},
    {"25P03", ESDM_ETIMEDOUT, POSTGRES__LOST, NULL},
    {"28", ESDM_EACCES, POSTGRES__REFUSED,
     "check user and password; passwords are read from \"password\", $PGPASSWORD or ~/.pgpass"},
    {"3D000", ESDM_EINVAL, POSTGRES__REFUSED,
     "name another \"database\", or make this one with createdb"},
    {"3F000", ESDM_ENOENT, POSTGRES__REFUSED, NO_TABLES},
    {"40", ESDM_ETIMEDOUT, POSTGRES__RETRY, NULL},
    {"42", ESDM_EINVAL, POSTGRES__REFUSED, NULL},
    {"42501", ESDM_EACCES, POSTGRES__REFUSED, NULL},
    {"42883", ESDM_ENOENT, POSTGRES__REFUSED, NO_TABLES},
    {"42P01", ESDM_ENOENT, POSTGRES__REFUSED, NO_TABLES},
    {"53", ESDM_EIO, POSTGRES__REFUSED, NULL},
    {"53100", ESDM_ENOSPC, POSTGRES__REFUSED, NULL},
    {"53200", ESDM_ENOMEM, POSTGRES__REFUSED,
     "if its lock table is full: raise max_locks_per_transaction"},
    {"53300", ESDM_ETIMEDOUT, POSTGRES__LOST, "raise max_connections of the server"},
    {"53400", ESDM_EIO, POSTGRES__REFUSED, NULL},
    {"54", ESDM_EINVAL, POSTGRES__REFUSED, NULL},
    {"55P03", ESDM_ETIMEDOUT, POSTGRES__REFUSED, "another writer holds its lock for too long"},
    {"57014", ESDM_ETIMEDOUT, POSTGRES__REFUSED, NULL},
    {"57P", ESDM_EIO, POSTGRES__LOST, NULL},
    {"58", ESDM_EIO, POSTGRES__REFUSED, NULL},
    {"XX001", ESDM_ECORRUPT, POSTGRES__REFUSED, NULL},
    {"XX002", ESDM_ECORRUPT, POSTGRES__REFUSED, NULL},
};

static meaning
meaning_of(const char *code)
{
    meaning best = {"", ESDM_EIO, POSTGRES__REFUSED, NULL};
    if (strncmp(code, "ESD", 3) == 0) { /* raised by our own functions */
        best.status = (esdm_status) atoi(code + 3);
        if (best.status <= ESDM_OK || best.status > ESDM_ECANCELED)
            best.status = ESDM_EIO;
        return best;
    }
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
        size_t bytes = strlen(meanings[i].code);
        if (strncmp(meanings[i].code, code, bytes) == 0 && bytes > strlen(best.code))
            best = meanings[i];
    }
    return best;
}

static esdm_status
set_error(const postgres__config *config, meaning what, const char *why, esdm_error *err)
{
    return esdm__error_set(err, what.status, "metadata store '%.150s': %.250s%s%s", config->label,
                           why, what.advice != NULL ? "; " : "",
                           what.advice != NULL ? what.advice : "");
}

/* Who is asked for a primary and is none is turned away by libpq, in its own words. */
static bool
is_read_only(const char *text)
{
    return strstr(text, "server is in hot standby mode") != NULL ||
           strstr(text, "session is read-only") != NULL;
}

/* ---- failures ------------------------------------------------------------------------------- */

bool
postgres__has_code(const PGconn *conn)
{
    char code[6];
    char *text = strdup(PQerrorMessage(conn));
    bool has = text != NULL && take_code(text, code);
    free(text);
    return has;
}

esdm_status
postgres__connect_error(const postgres__config *config, PGconn *conn, bool in_time,
                        postgres__failure *ret_failure, esdm_error *err)
{
    char code[6] = "";
    char line[400];
    *ret_failure = POSTGRES__LOST;
    if (!in_time)
        return esdm__error_set(err, ESDM_ETIMEDOUT,
                               "metadata store '%.200s': the server does not answer",
                               config->label);
    char *text = strdup(PQerrorMessage(conn));
    if (text == NULL)
        return esdm__error_nomem(err, 1, "a message");
    meaning what = {"", ESDM_EIO, POSTGRES__LOST, NULL};
    bool read_only = is_read_only(text);
    if (take_code(text, code))
        what = meaning_of(code);
    else if (PQconnectionNeedsPassword(conn))
        what = meaning_of("28P01");
    copy_line(text, line, sizeof line);
    free(text);
    *ret_failure = what.failure;
    if (read_only && what.failure != POSTGRES__REFUSED) /* it may be made the primary soon */
        return esdm__error_set(err, ESDM_EIO,
                               "metadata store '%.150s': no primary answers, only a standby, which "
                               "is read-only; start the primary or promote the standby (%.200s)",
                               config->label, line);
    esdm_status status = set_error(config, what, line, err);
    if (code[0] == '\0' && err != NULL)
        err->os_errno = ENOTCONN; /* no server has answered */
    return status;
}

esdm_status
postgres__result_error(const postgres__config *config, const PGresult *result,
                       postgres__failure *ret_failure, esdm_error *err)
{
    char line[400];
    const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    meaning what = meaning_of(code != NULL ? code : "08");
    copy_line(text != NULL ? text : PQresultErrorMessage(result), line, sizeof line);
    *ret_failure = what.failure;
    if (code != NULL && strncmp(code, "ESD", 3) == 0)
        return esdm__error_set(err, what.status, "%s", line);
    return set_error(config, what, line, err);
}

esdm_status
postgres__lost_error(const postgres__config *config, const PGconn *conn,
                     postgres__failure *ret_failure, esdm_error *err)
{
    char line[400];
    copy_line(PQerrorMessage(conn), line, sizeof line);
    *ret_failure = POSTGRES__LOST;
    return set_error(config, (meaning){"", ESDM_EIO, POSTGRES__LOST, NULL},
                     line[0] != '\0' ? line : "the connection was lost", err);
}
