/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDMNC_CALLS_H
#define ESDMNC_CALLS_H

/**
 * @file
 * Every function of the dispatch table but create, open and put_vara, as CALL(name, parameters,
 * arguments). The first parameter, the ncid, is left out of both lists.
 */

#define P(...) , __VA_ARGS__
#define NONE

#define ESDMNC_CALLS(CALL)                                                                         \
    CALL(redef, NONE, NONE)                                                                        \
    CALL(_enddef, P(size_t h, size_t v, size_t f, size_t r), P(h, v, f, r))                        \
    CALL(sync, NONE, NONE)                                                                         \
    CALL(abort, NONE, NONE)                                                                        \
    CALL(close, P(void *v), P(v))                                                                  \
    CALL(set_fill, P(int m, int *o), P(m, o))                                                      \
    CALL(inq_format, P(int *f), P(f))                                                              \
    CALL(inq_format_extended, P(int *f, int *m), P(f, m))                                          \
    CALL(inq, P(int *d, int *v, int *a, int *u), P(d, v, a, u))                                    \
    CALL(inq_type, P(nc_type t, char *n, size_t *s), P(t, n, s))                                   \
    CALL(def_dim, P(const char *n, size_t l, int *d), P(n, l, d))                                  \
    CALL(inq_dimid, P(const char *n, int *d), P(n, d))                                             \
    CALL(inq_dim, P(int d, char *n, size_t *l), P(d, n, l))                                        \
    CALL(inq_unlimdim, P(int *d), P(d))                                                            \
    CALL(rename_dim, P(int d, const char *n), P(d, n))                                             \
    CALL(inq_att, P(int v, const char *n, nc_type *t, size_t *l), P(v, n, t, l))                   \
    CALL(inq_attid, P(int v, const char *n, int *i), P(v, n, i))                                   \
    CALL(inq_attname, P(int v, int i, char *n), P(v, i, n))                                        \
    CALL(rename_att, P(int v, const char *n, const char *m), P(v, n, m))                           \
    CALL(del_att, P(int v, const char *n), P(v, n))                                                \
    CALL(get_att, P(int v, const char *n, void *d, nc_type t), P(v, n, d, t))                      \
    CALL(put_att, P(int v, const char *n, nc_type t, size_t l, const void *d, nc_type m),          \
         P(v, n, t, l, d, m))                                                                      \
    CALL(def_var, P(const char *n, nc_type t, int r, const int *d, int *v), P(n, t, r, d, v))      \
    CALL(inq_varid, P(const char *n, int *v), P(n, v))                                             \
    CALL(rename_var, P(int v, const char *n), P(v, n))                                             \
    CALL(get_vara, P(int v, const size_t *s, const size_t *c, void *d, nc_type t),                 \
         P(v, s, c, d, t))                                                                         \
    CALL(get_vars,                                                                                 \
         P(int v, const size_t *s, const size_t *c, const ptrdiff_t *r, void *d, nc_type t),       \
         P(v, s, c, r, d, t))                                                                      \
    CALL(put_vars,                                                                                 \
         P(int v, const size_t *s, const size_t *c, const ptrdiff_t *r, const void *d, nc_type t), \
         P(v, s, c, r, d, t))                                                                      \
    CALL(get_varm,                                                                                 \
         P(int v, const size_t *s, const size_t *c, const ptrdiff_t *r, const ptrdiff_t *m,        \
           void *d, nc_type t),                                                                    \
         P(v, s, c, r, m, d, t))                                                                   \
    CALL(put_varm,                                                                                 \
         P(int v, const size_t *s, const size_t *c, const ptrdiff_t *r, const ptrdiff_t *m,        \
           const void *d, nc_type t),                                                              \
         P(v, s, c, r, m, d, t))                                                                   \
    CALL(inq_var_all,                                                                              \
         P(int v, char *n, nc_type *t, int *nd, int *di, int *na, int *sh, int *de, int *dl,       \
           int *fl, int *st, size_t *cs, int *nf, void *fv, int *en, unsigned *fi, size_t *np,     \
           unsigned *pa),                                                                          \
         P(v, n, t, nd, di, na, sh, de, dl, fl, st, cs, nf, fv, en, fi, np, pa))                   \
    CALL(var_par_access, P(int v, int a), P(v, a))                                                 \
    CALL(def_var_fill, P(int v, int n, const void *f), P(v, n, f))                                 \
    CALL(show_metadata, NONE, NONE)                                                                \
    CALL(inq_unlimdims, P(int *n, int *i), P(n, i))                                                \
    CALL(inq_ncid, P(const char *n, int *g), P(n, g))                                              \
    CALL(inq_grps, P(int *n, int *i), P(n, i))                                                     \
    CALL(inq_grpname, P(char *n), P(n))                                                            \
    CALL(inq_grpname_full, P(size_t *l, char *n), P(l, n))                                         \
    CALL(inq_grp_parent, P(int *p), P(p))                                                          \
    CALL(inq_grp_full_ncid, P(const char *n, int *g), P(n, g))                                     \
    CALL(inq_varids, P(int *n, int *i), P(n, i))                                                   \
    CALL(inq_dimids, P(int *n, int *i, int p), P(n, i, p))                                         \
    CALL(inq_typeids, P(int *n, int *i), P(n, i))                                                  \
    CALL(inq_type_equal, P(nc_type t, int n, nc_type u, int *e), P(t, n, u, e))                    \
    CALL(def_grp, P(const char *n, int *g), P(n, g))                                               \
    CALL(rename_grp, P(const char *n), P(n))                                                       \
    CALL(inq_user_type, P(nc_type t, char *n, size_t *s, nc_type *b, size_t *f, int *c),           \
         P(t, n, s, b, f, c))                                                                      \
    CALL(inq_typeid, P(const char *n, nc_type *t), P(n, t))                                        \
    CALL(def_compound, P(size_t s, const char *n, nc_type *t), P(s, n, t))                         \
    CALL(insert_compound, P(nc_type t, const char *n, size_t o, nc_type f), P(t, n, o, f))         \
    CALL(insert_array_compound,                                                                    \
         P(nc_type t, const char *n, size_t o, nc_type f, int d, const int *s),                    \
         P(t, n, o, f, d, s))                                                                      \
    CALL(inq_compound_field, P(nc_type t, int i, char *n, size_t *o, nc_type *f, int *d, int *s),  \
         P(t, i, n, o, f, d, s))                                                                   \
    CALL(inq_compound_fieldindex, P(nc_type t, const char *n, int *i), P(t, n, i))                 \
    CALL(def_vlen, P(const char *n, nc_type b, nc_type *t), P(n, b, t))                            \
    CALL(put_vlen_element, P(int t, void *v, size_t l, const void *d), P(t, v, l, d))              \
    CALL(get_vlen_element, P(int t, const void *v, size_t *l, void *d), P(t, v, l, d))             \
    CALL(def_enum, P(nc_type b, const char *n, nc_type *t), P(b, n, t))                            \
    CALL(insert_enum, P(nc_type t, const char *n, const void *v), P(t, n, v))                      \
    CALL(inq_enum_member, P(nc_type t, int i, char *n, void *v), P(t, i, n, v))                    \
    CALL(inq_enum_ident, P(nc_type t, long long v, char *n), P(t, v, n))                           \
    CALL(def_opaque, P(size_t s, const char *n, nc_type *t), P(s, n, t))                           \
    CALL(def_var_deflate, P(int v, int s, int d, int l), P(v, s, d, l))                            \
    CALL(def_var_fletcher32, P(int v, int f), P(v, f))                                             \
    CALL(def_var_chunking, P(int v, int s, const size_t *c), P(v, s, c))                           \
    CALL(def_var_endian, P(int v, int e), P(v, e))                                                 \
    CALL(def_var_filter, P(int v, unsigned i, size_t n, const unsigned *p), P(v, i, n, p))         \
    CALL(set_var_chunk_cache, P(int v, size_t s, size_t n, float p), P(v, s, n, p))                \
    CALL(get_var_chunk_cache, P(int v, size_t *s, size_t *n, float *p), P(v, s, n, p))             \
    CALL(inq_var_filter_ids, P(int v, size_t *n, unsigned *i), P(v, n, i))                         \
    CALL(inq_var_filter_info, P(int v, unsigned i, size_t *n, unsigned *p), P(v, i, n, p))         \
    CALL(def_var_quantize, P(int v, int m, int n), P(v, m, n))                                     \
    CALL(inq_var_quantize, P(int v, int *m, int *n), P(v, m, n))                                   \
    CALL(inq_filter_avail, P(unsigned i), P(i))

/* What the files of this folder implement. */
#define DECLARE(name, parameters, arguments) int esdmnc_##name(esdmnc_id id parameters);
ESDMNC_CALLS(DECLARE)
#undef DECLARE
int esdmnc_put_vara(esdmnc_id id, int varid, const size_t *start, const size_t *count,
                    const void *data, nc_type memory_type);

/** @param stub_number the number of the stub that is made for it; 0: none. @param stub what else is
 *  known of it, not looked at without a number. @param ranks of a parallel call, borrowed; else
 *  NULL. */
int esdmnc_create(esdmnc_id id, const char *container, int mode, uint64_t stub_number,
                  const esdmnc_new_stub *stub, esdmnc_ranks *ranks);
/** nc_put_vara() of the records after the last ones, which are nothing but copied. false: nothing
 * was done. */
bool esdmnc_put_next(esdmnc_id id, int varid, const size_t *start, const size_t *count,
                     const void *data, nc_type memory_type);
int esdmnc_open(esdmnc_id id, const char *container, int mode, esdmnc_ranks *ranks);

#endif
