/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What /proc and /sys tell of the node: CPU, memory, network, block devices, energy. */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "monitor/parts.h"

#define SECTOR 512.0 /* of /proc/diskstats, whatever the device has */

static void
read_cpu(esdm__node_sample *s)
{
    unsigned long long v[8] = {0};
    FILE *file = fopen("/proc/stat", "re");
    double tick = 1.0 / (double) sysconf(_SC_CLK_TCK);
    if (file == NULL)
        return;
    if (fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2], &v[3],
               &v[4], &v[5], &v[6], &v[7]) == 8) {
        double all = 0;
        for (int i = 0; i < 8; i++)
            all += (double) v[i] * tick;
        s->cpu_wait_s = (double) v[4] * tick;
        s->cpu_all_s = all;
        s->cpu_busy_s = all - (double) (v[3] + v[4]) * tick;
    }
    (void) fclose(file);
}

static void
read_memory(esdm__node_sample *s)
{
    char line[256];
    FILE *file = fopen("/proc/meminfo", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        unsigned long long kib = 0;
        if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
            s->memory_bytes = (double) kib * 1024;
        else if (sscanf(line, "Dirty: %llu", &kib) == 1)
            s->dirty_bytes = (double) kib * 1024;
    }
    if (file != NULL)
        (void) fclose(file);
}

/* All interfaces but the loopback. */
static void
read_network(esdm__node_sample *s)
{
    char line[512];
    FILE *file = fopen("/proc/net/dev", "re");
    if (file == NULL)
        return;
    s->net_in_bytes = 0;
    s->net_out_bytes = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        char name[64];
        unsigned long long in = 0;
        unsigned long long out = 0;
        if (sscanf(line, " %63[^:]: %llu %*u %*u %*u %*u %*u %*u %*u %llu", name, &in, &out) != 3 ||
            strcmp(name, "lo") == 0)
            continue;
        s->net_in_bytes += (double) in;
        s->net_out_bytes += (double) out;
    }
    (void) fclose(file);
}

/* Devices as a whole, not their partitions, nor what lies on others (dm, loop, md). */
static bool
is_whole_device(const char *name)
{
    char path[128];
    if (strncmp(name, "dm-", 3) == 0 || strncmp(name, "loop", 4) == 0 ||
        strncmp(name, "ram", 3) == 0 || strncmp(name, "md", 2) == 0 || strlen(name) > 63)
        return false;
    (void) snprintf(path, sizeof path, "/sys/block/%s", name);
    return access(path, F_OK) == 0;
}

static void
read_disks(esdm__node_sample *s)
{
    char line[512];
    FILE *file = fopen("/proc/diskstats", "re");
    if (file == NULL)
        return;
    s->disk_read_bytes = 0;
    s->disk_write_bytes = 0;
    s->disk_busy_s = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        char name[64];
        unsigned long long in = 0;
        unsigned long long out = 0;
        unsigned long long busy_ms = 0;
        if (sscanf(line, "%*u %*u %63s %*u %*u %llu %*u %*u %*u %llu %*u %*u %llu", name, &in, &out,
                   &busy_ms) != 4 ||
            !is_whole_device(name))
            continue;
        s->disk_read_bytes += (double) in * SECTOR;
        s->disk_write_bytes += (double) out * SECTOR;
        s->disk_busy_s += (double) busy_ms / 1000;
    }
    (void) fclose(file);
}

static bool
read_number(const char *path, double *ret_value)
{
    FILE *file = fopen(path, "re");
    bool found = file != NULL && fscanf(file, "%lf", ret_value) == 1;
    if (file != NULL)
        (void) fclose(file);
    return found;
}

/* Whether a zone is a package: the machine as a whole (psys) includes these, parts of them
 * (intel-rapl:N:M) and what is seen a second way (intel-rapl-mmio:N) would count twice. */
static bool
is_package(const char *zone)
{
    char path[512];
    char name[16] = "";
    if (strncmp(zone, "intel-rapl:", 11) != 0 || strchr(zone + 11, ':') != NULL)
        return false;
    (void) snprintf(path, sizeof path, "/sys/class/powercap/%s/name", zone);
    FILE *file = fopen(path, "re");
    bool read = file != NULL && fgets(name, sizeof name, file) != NULL;
    if (file != NULL)
        (void) fclose(file);
    return read && strncmp(name, "package", 7) == 0;
}

/* RAPL: the packages, in microjoules. They wrap around after some hours. */
static void
read_energy(esdm__node_sample *s)
{
    DIR *folder = opendir("/sys/class/powercap");
    const struct dirent *entry;
    double sum = 0;
    bool found = false;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        char path[512];
        double value = 0;
        if (!is_package(entry->d_name))
            continue;
        (void) snprintf(path, sizeof path, "/sys/class/powercap/%s/energy_uj", entry->d_name);
        if (!read_number(path, &value))
            continue;
        sum += value / 1e6;
        found = true;
    }
    if (folder != NULL)
        (void) closedir(folder);
    if (found)
        s->energy_j = sum;
}

static void
read_self(esdm__node_sample *s)
{
    char line[128];
    FILE *file = fopen("/proc/self/io", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        unsigned long long value = 0;
        if (sscanf(line, "read_bytes: %llu", &value) == 1)
            s->self_read_bytes = (double) value;
        else if (sscanf(line, "write_bytes: %llu", &value) == 1)
            s->self_write_bytes = (double) value;
    }
    if (file != NULL)
        (void) fclose(file);
}

void
esdm__node_read(esdm__node_sample *ret_sample)
{
    *ret_sample = (esdm__node_sample){
        .at_ns = esdm__monitor_now_ns(),
        .cpu_busy_s = -1,
        .cpu_wait_s = -1,
        .cpu_all_s = -1,
        .memory_bytes = -1,
        .dirty_bytes = -1,
        .net_in_bytes = -1,
        .net_out_bytes = -1,
        .disk_read_bytes = -1,
        .disk_write_bytes = -1,
        .disk_busy_s = -1,
        .energy_j = -1,
        .self_read_bytes = -1,
        .self_write_bytes = -1,
    };
    read_cpu(ret_sample);
    read_memory(ret_sample);
    read_network(ret_sample);
    read_disks(ret_sample);
    read_energy(ret_sample);
    read_self(ret_sample);
}

const char *const esdm__node_total_names[ESDM__NODE_TOTALS] = {
    "seconds",      "cpu_busy_s",         "cpu_wait_s",          "cpu_all_s",
    "net_in_bytes", "net_out_bytes",      "disk_read_bytes",     "disk_write_bytes",
    "disk_busy_s",  "process_read_bytes", "process_write_bytes", "energy_j"};

static double
difference(double before, double now)
{
    return before < 0 || now < before ? -1 : now - before;
}

void
esdm__node_totals(const esdm__node_sample *before, const esdm__node_sample *now,
                  double ret_totals[ESDM__NODE_TOTALS])
{
    const double totals[ESDM__NODE_TOTALS] = {
        (double) (now->at_ns - before->at_ns) / 1e9,
        difference(before->cpu_busy_s, now->cpu_busy_s),
        difference(before->cpu_wait_s, now->cpu_wait_s),
        difference(before->cpu_all_s, now->cpu_all_s),
        difference(before->net_in_bytes, now->net_in_bytes),
        difference(before->net_out_bytes, now->net_out_bytes),
        difference(before->disk_read_bytes, now->disk_read_bytes),
        difference(before->disk_write_bytes, now->disk_write_bytes),
        difference(before->disk_busy_s, now->disk_busy_s),
        difference(before->self_read_bytes, now->self_read_bytes),
        difference(before->self_write_bytes, now->self_write_bytes),
        difference(before->energy_j, now->energy_j),
    };
    memcpy(ret_totals, totals, sizeof totals);
}
