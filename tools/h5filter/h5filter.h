/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_H5FILTER_H
#define ESDM_TOOLS_H5FILTER_H

/** @file The number of ESDM's filter in HDF5 files. It is not registered with the HDF Group: of the
 *  numbers that it gives to nobody (256 to 511, for development and for those who exchange files
 *  among themselves). A registered one becomes a second number that is read alike. */

#define ESDM_H5FILTER 317

#endif
