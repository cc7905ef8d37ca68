/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Chance and the clock of emulated back ends. */
#include "emulated.h"

#include <math.h>

/* ---- chance --------------------------------------------------------------------------------- */

static guint64 chance;
back_end site;
bool quiet_air;

double
uniform(double from, double to)
{
    chance = chance * 6364136223846793005u + 1442695040888963407u;
    guint64 x = (chance >> 33) ^ (chance >> 17);
    return from + (to - from) * (double) (x & 0xffffffu) / (double) 0x1000000u;
}

double
log_uniform(double from, double to)
{
    return from * pow(to / from, uniform(0, 1));
}

double
noisy(double deviation)
{
    double normal = 0;
    for (int i = 0; i < 12; i++)
        normal += uniform(0, 1);
    return quiet_air ? 1 : exp(deviation * (normal - 6));
}

void
chance_begin(guint64 seed)
{
    chance = seed * 0x9e3779b97f4a7c15u + 1;
    for (int i = 0; i < 16; i++)
        (void) uniform(0, 1);
}

void
draw_site(guint64 seed)
{
    static const double encodes[] = {INFINITY, 1.5e9, 1.3e9, 6e8};
    static const double decodes[] = {INFINITY, 6e9, 4.5e9, 2.2e9};
    static const double left[] = {1, 0.9, 0.7, 0.6};
    chance_begin(seed);
    site = (back_end){.latency_s = log_uniform(20e-6, 30e-3), .stream = log_uniform(20e6, 2e9)};
    site.shared = site.stream * log_uniform(1, 16);
    site.service_s = fmin(log_uniform(5e-6, 2e-3), site.latency_s);
    site.places = (unsigned) log_uniform(1, PLACES);
    site.cache = uniform(0, 1) < 0.5 ? 0 : log_uniform(16e6, 128e6);
    site.cached = uniform(0, 1) < 0.5 ? 0 : uniform(0, 0.8);
    site.request_noise = uniform(0.01, 0.2);
    site.run_noise = uniform(0.005, 0.05);
    for (unsigned c = 0; c < CODECS; c++) {
        site.encodes[c] = encodes[c] * noisy(0.25);
        site.decodes[c] = decodes[c] * noisy(0.25);
        site.left[c] = c == 0 ? 1 : fmin(left[c] * uniform(0.8, 1.2), 1);
    }
}

/* ---- the clock ------------------------------------------------------------------------------ */

unsigned
earliest(const double *times, unsigned count)
{
    unsigned first = 0;
    for (unsigned i = 1; i < count; i++)
        first = times[i] < times[first] ? i : first;
    return first;
}

double
compute(clocks *c, double at, double seconds)
{
    unsigned core = earliest(c->core, CORES);
    double end = fmax(at, c->core[core]) + seconds;
    c->core[core] = end;
    return end;
}

double
request(clocks *c, const back_end *on, double at, double bytes)
{
    unsigned place = earliest(c->place, on->places);
    double begin = fmax(at, c->place[place]);
    double noise = noisy(on->request_noise);
    c->server = fmax(c->server, begin) + on->service_s + bytes / on->shared;
    double end = fmax(c->server, begin + (on->latency_s + bytes / on->stream) * noise);
    c->place[place] = end;
    return end;
}

double
store(clocks *c, const back_end *on, double at, double bytes)
{
    if (c->cache < bytes)
        return request(c, on, at, bytes);
    c->cache -= bytes;
    (void) request(c, on, at, bytes);
    return at + 5e-6 + bytes / 4e9;
}

double
latest(const clocks *c, const back_end *on, unsigned threads)
{
    double end = c->server;
    for (unsigned i = 0; i < threads; i++)
        end = fmax(end, c->worker[i]);
    for (unsigned i = 0; i < on->places; i++)
        end = fmax(end, c->place[i]);
    return end;
}

esdm_model_info
measured_of(const back_end *of, bool reading)
{
    return (esdm_model_info){
        .reading = reading,
        .latency_s = of->latency_s * noisy(0.1),
        .stream_bytes_per_s = of->stream * noisy(0.1),
        .service_s = fmax(of->service_s, of->latency_s / (double) of->places) * noisy(0.1),
        .shared_bytes_per_s = fmin(of->shared, of->stream * (double) of->places) * noisy(0.1),
        .latency_drift = 1,
        .bandwidth_drift = 1};
}
