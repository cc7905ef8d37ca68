/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_POSTGRES_PRIVATE_H
#define ESDM_TOOLS_POSTGRES_PRIVATE_H

/**
 * @file
 * A PostgreSQL server of a site's own, in a folder that all nodes see.
 *
 * The folder has `esdm-postgres.json` (settings; who has it is made), `data` (of PostgreSQL),
 * `log`, `password` and `admin-password`, `server.crt` and `server.key`, `endpoint.json` (where the
 * server listens) and two guards that keep a second server off:
 *
 * - leases, files `lease.NUMBER`. The one with the highest number counts. Who wants to run the
 *   server makes the next number, which only one can, when the holder has given it up, or its
 *   process is gone (same node), or its heartbeat has stopped for the time `lease` (other nodes).
 *   Nobody needs a clock that agrees with others: who waits watches a counter. A holder that cannot
 *   write its heartbeat kills the server before others may count it as dead.
 * - `lock`, locked with flock(), which all processes of the server inherit: it is free when the
 * last of them has ended. File systems that lock for one node only have this guard on each node.
 */

#include "common/common.h"

#include <sys/types.h>

#define PRIVATE_MARK "esdm-postgres.json"

/** The settings of a server, and where it is. */
typedef struct private_server {
    char *folder;   /**< absolute; owned */
    char *version;  /**< major version of `data`: "15"; owned, NULL: not made */
    char *binaries; /**< folder of initdb and postgres; owned, NULL: search */
    char *address;  /**< where it listens; owned, NULL: all addresses of the node */
    gint64 port;    /**< 0: one that is free */
    gint64 idle_s;  /**< stops when nobody is connected for so long */
    gint64 lease_s; /**< counts as dead without heartbeat for so long */
    gint64 connections;
} private_server;

void private_server_clear(private_server *server);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(private_server, private_server_clear)

/** A path in the folder; owned. */
char *private_path(const private_server *server, const char *name);
/** Nanoseconds that also pass while the machine sleeps. */
gint64 private_now_us(void);

/* ---- settings.c ----------------------------------------------------------------------------- */

/** Reads the settings. ESDM_ENOENT: the folder has no server. */
esdm_status private_load(private_server *server, esdm_error *err);
esdm_status private_save(const private_server *server, esdm_error *err);
/** Becomes the owner of the folder: root cannot run PostgreSQL, and others may not touch the data.
 *  @param making the folder may not be there. */
esdm_status private_become_owner(const private_server *server, bool making, esdm_error *err);
/** Writes a file as a whole. @param mode 0600. */
esdm_status private_write(const char *path, const char *text, mode_t mode, esdm_error *err);
/** A short text of a file, without the end of its line; owned. */
esdm_status private_read(const char *path, char **ret_text, esdm_error *err);

/* ---- make.c --------------------------------------------------------------------------------- */

/** The folder with the programs of PostgreSQL; `server->version` NULL: newest. @param ret_version
 *  its major version; both owned. */
esdm_status private_find_binaries(const private_server *server, char **ret_folder,
                                  char **ret_version, esdm_error *err);
/** Makes the server's folder and data. @param dry_run only looks whether it could. */
esdm_status private_make(private_server *server, bool dry_run, esdm_error *err);
/** Removes all that ESDM made in the folder. No server runs on it. */
esdm_status private_remove(const private_server *server, esdm_error *err);

/* ---- certificate.c -------------------------------------------------------------------------- */

/** A key and a certificate that vouches for itself: `server.key`, `server.crt`. */
esdm_status private_make_certificate(const private_server *server, esdm_error *err);
/** Random digits; owned. */
char *private_secret(void);

/* ---- lease.c -------------------------------------------------------------------------------- */

typedef struct private_lease {
    guint64 number;            /**< 0: there was never one */
    char *host, *boot, *space; /**< node, boot of its kernel, namespace of process numbers; owned */
    gint64 pid;
    guint64 started; /**< when the process began, in ticks since the boot */
    guint64 beat;
    bool released;
} private_lease;

void private_lease_clear(private_lease *lease);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(private_lease, private_lease_clear)

/** What a process knows of a lease of another node that it watches. Zero-initialise. */
typedef struct private_watch {
    guint64 number, beat;
    gint64 since_us;
} private_watch;

/** The newest lease. */
esdm_status private_lease_newest(const private_server *server, private_lease *ret_lease,
                                 esdm_error *err);
/** Whether it is this node's. */
bool private_lease_is_here(const private_lease *lease);
/** Node, boot and namespace of its holder, for comparisons; owned. */
char *private_lease_place(const private_lease *lease);
/** Whether nobody holds it any more, as far as this process has seen. */
bool private_lease_is_free(const private_server *server, const private_lease *lease,
                           private_watch *watch);
/** Takes the lease that follows `after`. ESDM_EEXIST: somebody was faster. */
esdm_status private_lease_take(const private_server *server, guint64 after,
                               private_lease *ret_lease, esdm_error *err);
/** Writes the next heartbeat. ESDM_ECONFLICT: another one has taken over. */
esdm_status private_lease_beat(const private_server *server, private_lease *lease, esdm_error *err);
/** Gives it up. */
void private_lease_release(const private_server *server, private_lease *lease);

/* ---- endpoint.c ----------------------------------------------------------------------------- */

typedef struct private_endpoint {
    guint64 lease;
    char *host;      /**< name of the node; owned */
    char *addresses; /**< separated by commas; owned */
    gint64 port;
} private_endpoint;

void private_endpoint_clear(private_endpoint *endpoint);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(private_endpoint, private_endpoint_clear)

/** ESDM_ENOENT: there is none. */
esdm_status private_endpoint_read(const private_server *server, private_endpoint *ret_endpoint,
                                  esdm_error *err);
esdm_status private_endpoint_write(const private_server *server, const private_endpoint *endpoint,
                                   esdm_error *err);
/** Addresses that other nodes can connect to; owned. */
char *private_addresses(const private_server *server);
/** Connects as the superuser. @return PGconn, owned; NULL: not connected. */
void *private_connect(const private_server *server, const private_endpoint *endpoint);

/* ---- keeper.c ------------------------------------------------------------------------------- */

/** Takes the lease after `after`, runs the server, and ends with it: when it is idle, on SIGTERM,
 *  or when the lease is lost. @param ready told once: NULL text when the server is ready, else
 *  why not; ESDM_EEXIST: somebody was faster. */
tool_exit private_keep(private_server *server, guint64 after,
                       void (*ready)(esdm_status status, const char *text, void *user), void *user);

/* ---- ensure.c ------------------------------------------------------------------------------- */

/** Waits until the server is ready; starts it in the background when nobody runs it.
 *  @param foreground runs it in this process instead, until it ends. */
esdm_status private_ensure(private_server *server, gint64 wait_s, bool foreground, esdm_error *err);
/** Ends the server, wherever it runs, and waits for it. */
esdm_status private_stop(const private_server *server, gint64 wait_s, esdm_error *err);

#endif
