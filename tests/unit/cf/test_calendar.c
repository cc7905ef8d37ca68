/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Calendars of the CF conventions: dates, days, units of time, and what is no time. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cf/calendar.h"

/* What cftime 1.6.2 says (num2date), times of day in milliseconds. */
static const struct {
    const char *calendar, *units;
    double number;
    int32_t day[3];
    int64_t ms;
} cases[] = {
    {"standard", "minutes since 1-1-1", 12961789.0, {25, 8, 24}, 20940000},
    {"standard", "days since 2000-02-28 12:00", -252.0, {1999, 6, 21}, 43200000},
    {"standard", "hours since 1850-01-01", 4419.0, {1850, 7, 4}, 10800000},
    {"standard", "seconds since 1850-01-01", -62049411.0, {1848, 1, 13}, 72189000},
    {"standard", "seconds since 1850-01-01", -73895557.0, {1847, 8, 29}, 62843000},
    {"standard", "hours since 1970-01-01 00:00:00", -1189901.0, {1834, 4, 4}, 68400000},
    {"standard", "days since 2000-02-28 12:00", 46868.5, {2128, 6, 25}, 0},
    {"standard", "days since 2000-02-28 12:00", 439898.5, {3204, 7, 24}, 0},
    {"standard", "days since 2000-02-28 12:00", 16.333333333333332, {2000, 3, 15}, 72000000},
    {"standard", "minutes since 1582-10-15 06:30:00", 650412080.0, {2819, 6, 7}, 28200000},
    {"standard", "minutes since 1970-01-01 00:00:00", -686004.0, {1968, 9, 11}, 52560000},
    {"standard", "hours since 1850-01-01", -1450623.0, {1684, 7, 6}, 32400000},
    {"standard", "seconds since 1970-01-01 00:00:00", 1477139514.0, {2016, 10, 22}, 45114000},
    {"standard", "days since 1850-01-01", -23132.5, {1786, 8, 31}, 43200000},
    {"standard", "minutes since 1-1-1", 113198790.0, {216, 3, 23}, 23400000},
    {"standard", "days since 1900-03-01 00:00:0.0", 565.25, {1901, 9, 17}, 21600000},
    {"standard", "minutes since 1900-03-01 00:00:0.0", 122650249.0, {2133, 5, 11}, 67740000},
    {"standard", "seconds since 1850-01-01", -13938728.0, {1849, 7, 23}, 58072000},
    {"standard", "minutes since 1900-03-01 00:00:0.0", 618012528.0, {3075, 3, 16}, 31680000},
    {"standard", "minutes since 1900-03-01 00:00:0.0", 42297031.0, {1980, 7, 31}, 81060000},
    {"standard", "days since 1582-10-15 06:30:00", -55948.0, {1429, 8, 1}, 23400000},
    {"standard", "seconds since 1850-01-01", -9243079.0, {1849, 9, 16}, 1721000},
    {"standard", "hours since 1900-03-01 00:00:0.0", 2076.0, {1900, 5, 26}, 43200000},
    {"standard", "seconds since 1582-10-15 06:30:00", -41741391.0, {1581, 6, 9}, 13209000},
    {"standard", "seconds since 1582-10-15 06:30:00", -2382380961.0, {1507, 4, 8}, 36039000},
    {"standard", "seconds since 1970-01-01 00:00:00", 29116794373.0, {2892, 9, 2}, 80773000},
    {"standard", "hours since 1-1-1", 5774.0, {1, 8, 29}, 50400000},
    {"standard", "hours since 1-1-1", 7829459.0, {894, 3, 1}, 39600000},
    {"standard", "days since 1582-10-15 06:30:00", -517599.75, {165, 8, 25}, 45000000},
    {"standard", "minutes since 1850-01-01", 317188.0, {1850, 8, 9}, 23280000},
    {"standard", "minutes since 2000-02-28 12:00", 72426741.0, {2137, 11, 12}, 73260000},
    {"standard", "hours since 1900-03-01 00:00:0.0", 19845947.0, {4164, 3, 5}, 39600000},
    {"standard", "days since 1582-10-15 06:30:00", 773261.3333333334, {3699, 11, 26}, 52200000},
    {"standard", "seconds since 1582-10-15 06:30:00", 4689590316.0, {1731, 5, 24}, 80916000},
    {"standard", "seconds since 1850-01-01", -68321513.0, {1847, 11, 2}, 20887000},
    {"standard", "hours since 1582-10-15 06:30:00", -16796.0, {1580, 11, 4}, 37800000},
    {"standard", "minutes since 2000-02-28 12:00", -1010589.0, {1998, 3, 28}, 60660000},
    {"proleptic_gregorian", "days since 2000-02-28 12:00", 98.0, {2000, 6, 5}, 43200000},
    {"proleptic_gregorian", "minutes since 2000-02-28 12:00", -1145076.0, {1997, 12, 25}, 26640000},
    {"proleptic_gregorian", "hours since 2000-02-28 12:00", -1153869.0, {1868, 7, 11}, 54000000},
    {"proleptic_gregorian",
     "minutes since 1970-01-01 00:00:00",
     268070056.0,
     {2479, 9, 8},
     65760000},
    {"proleptic_gregorian", "seconds since 1850-01-01", 44614770.0, {1851, 6, 1}, 32370000},
    {"proleptic_gregorian",
     "seconds since 1582-10-15 06:30:00",
     -7300604482.0,
     {1351, 6, 10},
     46118000},
    {"proleptic_gregorian", "hours since 1850-01-01", 1393901.0, {2009, 1, 6}, 18000000},
    {"proleptic_gregorian",
     "minutes since 1582-10-15 06:30:00",
     -602626450.0,
     {436, 12, 30},
     58800000},
    {"proleptic_gregorian", "days since 1-1-1", 379324.5, {1039, 7, 23}, 43200000},
    {"proleptic_gregorian", "days since 2000-02-28 12:00", 68536.0, {2187, 10, 21}, 43200000},
    {"proleptic_gregorian",
     "minutes since 2000-02-28 12:00",
     -54319992.0,
     {1896, 11, 17},
     24480000},
    {"proleptic_gregorian", "minutes since 1-1-1", 1163006534.0, {2212, 4, 3}, 36840000},
    {"proleptic_gregorian",
     "minutes since 1900-03-01 00:00:0.0",
     1132065.0,
     {1902, 4, 26},
     13500000},
    {"proleptic_gregorian", "hours since 1-1-1", 951014.0, {109, 6, 29}, 50400000},
    {"proleptic_gregorian", "hours since 2000-02-28 12:00", 582674.0, {2066, 8, 18}, 50400000},
    {"proleptic_gregorian", "days since 1850-01-01", 23794.25, {1915, 2, 24}, 21600000},
    {"proleptic_gregorian", "hours since 1900-03-01 00:00:0.0", 1504301.0, {2071, 10, 9}, 18000000},
    {"proleptic_gregorian",
     "seconds since 1900-03-01 00:00:0.0",
     -7073900795.0,
     {1675, 12, 31},
     12805000},
    {"proleptic_gregorian", "hours since 1850-01-01", 6807.0, {1850, 10, 11}, 54000000},
    {"proleptic_gregorian", "hours since 1970-01-01 00:00:00", 7631.0, {1970, 11, 14}, 82800000},
    {"proleptic_gregorian", "days since 1582-10-15 06:30:00", -178566.0, {1093, 11, 21}, 23400000},
    {"proleptic_gregorian", "days since 1582-10-15 06:30:00", 673158.5, {3425, 10, 31}, 66600000},
    {"proleptic_gregorian", "seconds since 1-1-1", 1428150521.0, {46, 4, 4}, 44921000},
    {"proleptic_gregorian",
     "seconds since 1582-10-15 06:30:00",
     -3662751151.0,
     {1466, 9, 20},
     27449000},
    {"proleptic_gregorian", "hours since 1850-01-01", 14719.0, {1851, 9, 6}, 25200000},
    {"proleptic_gregorian",
     "seconds since 1900-03-01 00:00:0.0",
     77767966.0,
     {1902, 8, 18},
     7966000},
    {"proleptic_gregorian",
     "seconds since 1900-03-01 00:00:0.0",
     -1990164129.0,
     {1837, 2, 4},
     59871000},
    {"proleptic_gregorian", "days since 1850-01-01", 462466.0, {3116, 3, 11}, 0},
    {"proleptic_gregorian", "hours since 1582-10-15 06:30:00", -10170.0, {1581, 8, 17}, 45000000},
    {"proleptic_gregorian", "days since 1970-01-01 00:00:00", -400.5, {1968, 11, 26}, 43200000},
    {"proleptic_gregorian",
     "minutes since 1970-01-01 00:00:00",
     503645190.0,
     {2927, 8, 5},
     52200000},
    {"proleptic_gregorian", "hours since 1850-01-01", 2142043.0, {2094, 5, 12}, 68400000},
    {"proleptic_gregorian",
     "seconds since 1900-03-01 00:00:0.0",
     36128620596.0,
     {3045, 1, 12},
     28596000},
    {"proleptic_gregorian", "hours since 2000-02-28 12:00", 10308.0, {2001, 5, 3}, 0},
    {"proleptic_gregorian", "days since 1582-10-15 06:30:00", 246.0, {1583, 6, 18}, 23400000},
    {"proleptic_gregorian", "hours since 1-1-1", 15515.0, {2, 10, 9}, 39600000},
    {"proleptic_gregorian",
     "days since 2000-02-28 12:00",
     -332.6666666666667,
     {1999, 4, 1},
     72000000},
    {"proleptic_gregorian", "days since 2000-02-28 12:00", -491.5, {1998, 10, 25}, 0},
    {"proleptic_gregorian", "minutes since 1850-01-01", 689506.0, {1851, 4, 24}, 71160000},
    {"proleptic_gregorian",
     "seconds since 2000-02-28 12:00",
     -69389557.0,
     {1997, 12, 17},
     32843000},
    {"julian", "seconds since 1970-01-01 00:00:00", 63859503929.0, {3993, 8, 2}, 54329000},
    {"julian", "hours since 1900-03-01 00:00:0.0", 1394551.0, {2059, 4, 2}, 25200000},
    {"julian", "seconds since 2000-02-28 12:00", 54048021.0, {2001, 11, 15}, 4821000},
    {"julian", "minutes since 2000-02-28 12:00", 437069.0, {2000, 12, 28}, 1740000},
    {"julian", "hours since 1582-10-15 06:30:00", 1713.0, {1582, 12, 25}, 55800000},
    {"julian", "seconds since 1970-01-01 00:00:00", -21804025.0, {1969, 4, 23}, 55175000},
    {"julian", "seconds since 1850-01-01", -5123094.0, {1849, 11, 2}, 60906000},
    {"julian", "days since 1-1-1", 674714.25, {1848, 4, 8}, 21600000},
    {"julian", "hours since 1970-01-01 00:00:00", 6653.0, {1970, 10, 5}, 18000000},
    {"julian", "hours since 1900-03-01 00:00:0.0", 2100.0, {1900, 5, 27}, 43200000},
    {"julian", "seconds since 1-1-1", 33640093717.0, {1066, 12, 28}, 80917000},
    {"julian", "hours since 1900-03-01 00:00:0.0", 1925208.0, {2119, 10, 15}, 0},
    {"julian", "seconds since 1970-01-01 00:00:00", 790651542.0, {1995, 1, 21}, 5142000},
    {"julian", "minutes since 1850-01-01", 275754093.0, {2374, 4, 15}, 77580000},
    {"julian", "days since 1970-01-01 00:00:00", 61902.333333333336, {2139, 6, 25}, 28800000},
    {"julian", "days since 1582-10-15 06:30:00", 35642.25, {1680, 5, 15}, 45000000},
    {"julian", "days since 1850-01-01", 990.0, {1852, 9, 17}, 0},
    {"julian", "days since 1970-01-01 00:00:00", -89622.5, {1724, 8, 17}, 43200000},
    {"julian", "minutes since 1-1-1", 69419829.0, {132, 12, 27}, 18540000},
    {"julian", "seconds since 1-1-1", 72667288291.0, {2303, 9, 9}, 49891000},
    {"julian", "seconds since 1900-03-01 00:00:0.0", 334171843.0, {1910, 10, 2}, 63043000},
    {"julian", "days since 1900-03-01 00:00:0.0", -129.0, {1899, 10, 24}, 0},
    {"julian", "minutes since 1850-01-01", -915612271.0, {109, 2, 28}, 12540000},
    {"julian", "minutes since 1850-01-01", -340764949.0, {1202, 2, 9}, 58260000},
    {"julian", "days since 1970-01-01 00:00:00", -71.0, {1969, 10, 22}, 0},
    {"julian", "minutes since 2000-02-28 12:00", -193894.0, {1999, 10, 16}, 73560000},
    {"julian", "hours since 1850-01-01", -5598820.0, {1211, 4, 21}, 72000000},
    {"julian", "days since 1-1-1", 6603.5, {19, 1, 30}, 43200000},
    {"julian", "hours since 1970-01-01 00:00:00", -1131435.0, {1840, 12, 5}, 75600000},
    {"julian", "hours since 1970-01-01 00:00:00", 1795047.0, {2174, 10, 10}, 54000000},
    {"julian", "hours since 1970-01-01 00:00:00", -2247637.0, {1713, 8, 6}, 39600000},
    {"julian", "minutes since 1850-01-01", -1362683.0, {1847, 5, 30}, 59820000},
    {"julian", "hours since 2000-02-28 12:00", -339091.0, {1961, 6, 23}, 61200000},
    {"julian", "seconds since 1850-01-01", 70394903639.0, {4080, 9, 5}, 71639000},
    {"julian", "seconds since 2000-02-28 12:00", -1391204421.0, {1956, 1, 28}, 51579000},
    {"julian", "hours since 1970-01-01 00:00:00", 22315.0, {1972, 7, 18}, 68400000},
    {"julian", "hours since 1582-10-15 06:30:00", -1943756.0, {1361, 1, 18}, 37800000},
    {"julian", "hours since 1850-01-01", 16989.0, {1851, 12, 9}, 75600000},
    {"julian", "minutes since 1582-10-15 06:30:00", -1207631.0, {1580, 6, 28}, 55140000},
    {"julian", "days since 1900-03-01 00:00:0.0", 32629.25, {1989, 7, 1}, 21600000},
    {"noleap", "hours since 1900-03-01 00:00:0.0", -2020521.0, {1669, 7, 5}, 54000000},
    {"noleap", "seconds since 1-1-1", 36109495.0, {2, 2, 22}, 80695000},
    {"noleap", "seconds since 1850-01-01", -2955465189.0, {1756, 4, 14}, 19611000},
    {"noleap", "days since 1970-01-01 00:00:00", -269.5, {1969, 4, 6}, 43200000},
    {"noleap", "days since 1970-01-01 00:00:00", -78008.66666666667, {1756, 4, 12}, 28800000},
    {"noleap", "minutes since 2000-02-28 12:00", -432797236.0, {1176, 9, 22}, 74640000},
    {"noleap", "hours since 2000-02-28 12:00", -18046.0, {1998, 2, 6}, 50400000},
    {"noleap", "minutes since 1850-01-01", 235671.0, {1850, 6, 13}, 57060000},
    {"noleap", "days since 1582-10-15 06:30:00", -386.75, {1581, 9, 23}, 45000000},
    {"noleap", "hours since 1850-01-01", 13913309.0, {3438, 4, 12}, 18000000},
    {"noleap", "hours since 1900-03-01 00:00:0.0", 18434417.0, {4004, 7, 19}, 61200000},
    {"noleap", "seconds since 1970-01-01 00:00:00", 59613365400.0, {3860, 4, 30}, 43800000},
    {"noleap", "hours since 1970-01-01 00:00:00", 19920735.0, {4244, 1, 21}, 54000000},
    {"noleap", "hours since 1850-01-01", 12825586.0, {3314, 2, 9}, 36000000},
    {"noleap", "seconds since 1900-03-01 00:00:0.0", 63167407163.0, {3903, 3, 10}, 21563000},
    {"noleap", "hours since 2000-02-28 12:00", 16550013.0, {3889, 6, 7}, 32400000},
    {"noleap", "days since 1900-03-01 00:00:0.0", 773458.5, {4019, 3, 24}, 43200000},
    {"noleap", "days since 1850-01-01", -727.75, {1848, 1, 3}, 21600000},
    {"noleap", "days since 1582-10-15 06:30:00", 46414.0, {1709, 12, 13}, 23400000},
    {"noleap", "days since 1900-03-01 00:00:0.0", 527456.5, {3345, 4, 1}, 43200000},
    {"noleap", "seconds since 1970-01-01 00:00:00", 36261185.0, {1971, 2, 24}, 59585000},
    {"noleap", "days since 1900-03-01 00:00:0.0", 222395.0, {2509, 6, 19}, 0},
    {"noleap", "days since 1900-03-01 00:00:0.0", 93753.25, {2157, 1, 8}, 21600000},
    {"noleap", "days since 1970-01-01 00:00:00", 493.5, {1971, 5, 9}, 43200000},
    {"noleap", "hours since 1900-03-01 00:00:0.0", 9292898.0, {2960, 12, 30}, 7200000},
    {"noleap", "seconds since 1582-10-15 06:30:00", 42183311.0, {1584, 2, 15}, 43511000},
    {"noleap", "minutes since 1850-01-01", -444350396.0, {1004, 8, 2}, 29040000},
    {"noleap", "days since 2000-02-28 12:00", -320.75, {1999, 4, 13}, 64800000},
    {"noleap", "minutes since 2000-02-28 12:00", -722875218.0, {624, 10, 29}, 70920000},
    {"noleap", "days since 1582-10-15 06:30:00", -5.75, {1582, 10, 9}, 45000000},
    {"noleap", "days since 1900-03-01 00:00:0.0", 383.3333333333333, {1901, 3, 19}, 28800000},
    {"noleap", "minutes since 1900-03-01 00:00:0.0", -69599839.0, {1767, 9, 28}, 67260000},
    {"noleap", "seconds since 1582-10-15 06:30:00", -5345030946.0, {1413, 4, 19}, 42054000},
    {"noleap", "hours since 1970-01-01 00:00:00", 6994.0, {1970, 10, 19}, 36000000},
    {"noleap", "days since 1970-01-01 00:00:00", -79955.66666666667, {1750, 12, 11}, 28800000},
    {"noleap", "minutes since 1582-10-15 06:30:00", -556224.0, {1581, 9, 24}, 360000},
    {"noleap", "days since 2000-02-28 12:00", -709.75, {1998, 3, 20}, 64800000},
    {"noleap", "minutes since 1-1-1", 1092520182.0, {2079, 8, 13}, 49320000},
    {"noleap", "minutes since 1850-01-01", 272472785.0, {2368, 5, 28}, 18300000},
    {"noleap", "hours since 1582-10-15 06:30:00", 905787.0, {1686, 3, 10}, 34200000},
    {"all_leap", "days since 1-1-1", 972.3333333333334, {3, 8, 28}, 28800000},
    {"all_leap", "seconds since 1582-10-15 06:30:00", -1221806471.0, {1544, 2, 24}, 85729000},
    {"all_leap", "seconds since 1970-01-01 00:00:00", -7282455129.0, {1739, 9, 15}, 28071000},
    {"all_leap", "minutes since 1850-01-01", 37608734.0, {1921, 5, 11}, 15240000},
    {"all_leap", "seconds since 1850-01-01", -83253504.0, {1847, 5, 14}, 36096000},
    {"all_leap", "minutes since 1970-01-01 00:00:00", -109115549.0, {1762, 12, 19}, 27060000},
    {"all_leap", "seconds since 1582-10-15 06:30:00", 21352386297.0, {2258, 1, 7}, 32097000},
    {"all_leap", "seconds since 1970-01-01 00:00:00", -11066889.0, {1969, 8, 25}, 78711000},
    {"all_leap", "days since 1850-01-01", -301004.5, {1027, 8, 1}, 43200000},
    {"all_leap", "hours since 1970-01-01 00:00:00", 1886268.0, {2184, 9, 27}, 43200000},
    {"all_leap", "minutes since 1-1-1", 114822631.0, {218, 11, 11}, 81060000},
    {"all_leap", "days since 1900-03-01 00:00:0.0", 45267.5, {2023, 11, 5}, 43200000},
    {"all_leap", "days since 1850-01-01", -38309.666666666664, {1745, 4, 30}, 28800000},
    {"all_leap", "hours since 1900-03-01 00:00:0.0", 1673299.0, {2090, 8, 28}, 68400000},
    {"all_leap", "days since 2000-02-28 12:00", -650.6666666666666, {1998, 5, 19}, 72000000},
    {"all_leap", "seconds since 1970-01-01 00:00:00", 1228855036.0, {2008, 11, 10}, 74236000},
    {"all_leap", "minutes since 1582-10-15 06:30:00", -270941524.0, {1068, 9, 15}, 37560000},
    {"all_leap", "minutes since 1582-10-15 06:30:00", 397796713.0, {2337, 7, 24}, 85380000},
    {"all_leap", "days since 1-1-1", 169509.0, {464, 2, 21}, 0},
    {"all_leap", "hours since 2000-02-28 12:00", 2216976.0, {2252, 7, 19}, 43200000},
    {"all_leap", "hours since 1582-10-15 06:30:00", 1374541.0, {1739, 4, 8}, 70200000},
    {"all_leap", "seconds since 1-1-1", 30891153269.0, {977, 11, 16}, 42869000},
    {"all_leap", "days since 1-1-1", 72859.0, {200, 1, 26}, 0},
    {"all_leap", "minutes since 1-1-1", 69352330.0, {132, 8, 3}, 29400000},
    {"all_leap", "hours since 1850-01-01", 6101308.0, {2544, 8, 5}, 14400000},
    {"all_leap", "seconds since 1582-10-15 06:30:00", -19674140111.0, {960, 8, 18}, 27289000},
    {"all_leap", "seconds since 1970-01-01 00:00:00", -5409707817.0, {1798, 12, 5}, 55383000},
    {"all_leap", "seconds since 1970-01-01 00:00:00", 25180424374.0, {2766, 4, 14}, 8374000},
    {"all_leap", "hours since 1900-03-01 00:00:0.0", 13915735.0, {3484, 5, 18}, 25200000},
    {"all_leap", "hours since 1850-01-01", -315820.0, {1814, 1, 17}, 72000000},
    {"all_leap", "seconds since 1582-10-15 06:30:00", 40119064202.0, {2851, 6, 24}, 25202000},
    {"all_leap", "minutes since 1850-01-01", -1304761.0, {1847, 7, 10}, 79140000},
    {"all_leap", "seconds since 1900-03-01 00:00:0.0", -6536220363.0, {1693, 6, 20}, 26037000},
    {"all_leap", "days since 1582-10-15 06:30:00", 894035.3333333334, {4025, 7, 4}, 52200000},
    {"all_leap", "seconds since 1-1-1", 30037983.0, {1, 12, 13}, 57183000},
    {"all_leap", "hours since 1-1-1", 3653755.0, {416, 12, 15}, 68400000},
    {"all_leap", "days since 1-1-1", 583.0, {2, 8, 5}, 0},
    {"all_leap", "minutes since 1-1-1", 540723383.0, {1026, 12, 18}, 30180000},
    {"all_leap", "seconds since 1900-03-01 00:00:0.0", -59705493.0, {1898, 4, 10}, 83307000},
    {"360_day", "days since 1970-01-01 00:00:00", 322410.5, {2865, 8, 1}, 43200000},
    {"360_day", "seconds since 1970-01-01 00:00:00", 74946057.0, {1972, 5, 28}, 37257000},
    {"360_day", "days since 1850-01-01", -267664.6666666667, {1106, 6, 26}, 28800000},
    {"360_day", "minutes since 1970-01-01 00:00:00", -255082035.0, {1477, 12, 10}, 60300000},
    {"360_day", "seconds since 2000-02-28 12:00", 60434794.0, {2002, 2, 7}, 84394000},
    {"360_day", "hours since 1850-01-01", 178639.0, {1870, 9, 4}, 25200000},
    {"360_day", "days since 1850-01-01", 20.333333333333332, {1850, 1, 21}, 28800000},
    {"360_day", "days since 1970-01-01 00:00:00", 366.3333333333333, {1971, 1, 7}, 28800000},
    {"360_day", "minutes since 1-1-1", 9152957.0, {18, 8, 27}, 19020000},
    {"360_day", "minutes since 1900-03-01 00:00:0.0", 50519008.0, {1997, 8, 13}, 55680000},
    {"360_day", "seconds since 1-1-1", 39206502.0, {2, 4, 4}, 67302000},
    {"360_day", "days since 1-1-1", 26268.25, {73, 12, 19}, 21600000},
    {"360_day", "hours since 1-1-1", 928798.0, {108, 6, 30}, 79200000},
    {"360_day", "minutes since 1970-01-01 00:00:00", 1175555.0, {1972, 4, 7}, 30900000},
    {"360_day", "seconds since 2000-02-28 12:00", -26451883.0, {1999, 4, 22}, 29717000},
    {"360_day", "seconds since 1582-10-15 06:30:00", -36550638474.0, {407, 9, 5}, 40926000},
    {"360_day", "seconds since 1850-01-01", -80057216.0, {1847, 6, 4}, 35584000},
    {"360_day", "hours since 1582-10-15 06:30:00", 22521.0, {1585, 5, 23}, 55800000},
    {"360_day", "days since 1-1-1", 58935.25, {164, 9, 16}, 21600000},
    {"360_day", "days since 1850-01-01", -325.5, {1849, 2, 5}, 43200000},
    {"360_day", "hours since 1900-03-01 00:00:0.0", 9781167.0, {3032, 3, 29}, 54000000},
    {"360_day", "days since 1970-01-01 00:00:00", 621226.3333333334, {3695, 8, 17}, 28800000},
    {"360_day", "minutes since 1970-01-01 00:00:00", -53128722.0, {1867, 7, 6}, 4680000},
    {"360_day", "days since 1850-01-01", -427.0, {1848, 10, 24}, 0},
    {"360_day", "minutes since 1582-10-15 06:30:00", 913545.0, {1584, 7, 19}, 58500000},
    {"360_day", "hours since 1582-10-15 06:30:00", 189556.0, {1604, 9, 23}, 37800000},
    {"360_day", "seconds since 1850-01-01", 40694539.0, {1851, 4, 22}, 139000},
    {"360_day", "hours since 1970-01-01 00:00:00", 8353873.0, {2936, 11, 19}, 3600000},
    {"360_day", "hours since 1970-01-01 00:00:00", 1580682.0, {2152, 12, 12}, 64800000},
    {"360_day", "days since 1900-03-01 00:00:0.0", -34984.666666666664, {1802, 12, 26}, 28800000},
    {"360_day", "days since 1582-10-15 06:30:00", -50.0, {1582, 8, 25}, 23400000},
    {"360_day", "days since 1970-01-01 00:00:00", 530.0, {1971, 6, 21}, 0},
    {"360_day", "minutes since 1970-01-01 00:00:00", 35836137.0, {2039, 2, 17}, 17820000},
    {"360_day", "days since 1970-01-01 00:00:00", 602894.25, {3644, 9, 15}, 21600000},
    {"360_day", "minutes since 1970-01-01 00:00:00", 1057993.0, {1972, 1, 15}, 61980000},
    {"360_day", "days since 1850-01-01", -780.6666666666666, {1847, 10, 30}, 28800000},
    {"360_day", "seconds since 1582-10-15 06:30:00", 8168543353.0, {1845, 5, 28}, 51553000},
    {"360_day", "seconds since 1-1-1", 785718034.0, {26, 4, 4}, 82834000},
    {"360_day", "minutes since 1900-03-01 00:00:0.0", 1107008.0, {1902, 4, 19}, 65280000},
    {"360_day", "hours since 1970-01-01 00:00:00", 1465312.0, {2139, 8, 5}, 57600000},
};

static esdm__time_units
units_of(const char *text, const char *calendar_name)
{
    esdm__calendar calendar;
    esdm__time_units units;
    esdm_error err = {0};
    assert_int_equal(esdm__calendar_parse(calendar_name, &calendar, &err), ESDM_OK);
    assert_int_equal(esdm__time_units_parse(text, calendar, &units, &err), ESDM_OK);
    return units;
}

static void
test_decode__dates_are_those_of_cftime(void **state)
{
    (void) state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        esdm__time_units units = units_of(cases[i].units, cases[i].calendar);
        esdm__instant instant;
        esdm__date date;
        double back = 0;
        assert_true(esdm__time_decode(&units, cases[i].number, &instant));
        assert_true(esdm__time_encode(&units, instant, &back));
        assert_true(fabs(back - cases[i].number) * (double) units.unit_ns <= 0.5 + 1e-9 ||
                    fabs(back - cases[i].number) <= 2 * fabs(back) * 0x1p-53);
        assert_true(esdm__instant_date(units.calendar, esdm__instant_round(instant), &date));
        assert_int_equal(date.year, cases[i].day[0]);
        assert_int_equal(date.month, cases[i].day[1]);
        assert_int_equal(date.day, cases[i].day[2]);
        assert_true(llabs(date.day_ns / 1000000 - cases[i].ms) <= 1);
    }
}

static void
test_days__every_day_is_the_one_after_the_last(void **state)
{
    (void) state;
    for (int c = ESDM__CALENDAR_STANDARD; c <= ESDM__CALENDAR_360_DAY; c++) {
        esdm__calendar calendar = (esdm__calendar) c;
        esdm__date date = {-5, 1, 1, 0};
        esdm__instant instant = esdm__date_instant(calendar, &date);
        double key = esdm__date_key(&date) - 1;
        for (; date.year < 2405; instant.day++) {
            assert_true(esdm__instant_date(calendar, instant, &date));
            assert_true(esdm__date_exists(calendar, &date));
            assert_int_equal(esdm__date_instant(calendar, &date).day, instant.day);
            assert_true(esdm__date_key(&date) > key);
            key = esdm__date_key(&date);
        }
    }
}

static void
test_days__ten_days_are_missing_in_the_standard_calendar(void **state)
{
    (void) state;
    esdm__date last = {1582, 10, 4, 0}, first = {1582, 10, 15, 0}, none = {1582, 10, 10, 0};
    assert_false(esdm__date_exists(ESDM__CALENDAR_STANDARD, &none));
    assert_true(esdm__date_exists(ESDM__CALENDAR_PROLEPTIC, &none));
    assert_int_equal(esdm__date_instant(ESDM__CALENDAR_STANDARD, &last).day + 1,
                     esdm__date_instant(ESDM__CALENDAR_STANDARD, &first).day);
    assert_int_equal(esdm__date_instant(ESDM__CALENDAR_PROLEPTIC, &first).day,
                     esdm__date_instant(ESDM__CALENDAR_STANDARD, &first).day);
    /* The epoch 0001-01-01 differs by two days: numbers are not to be compared. */
    esdm__time_units a = units_of("days since 0001-01-01", "standard");
    esdm__time_units b = units_of("days since 0001-01-01", "proleptic_gregorian");
    assert_int_equal(b.epoch.day - a.epoch.day, 2);
}

static void
test_encode__the_same_hours_in_days_and_hours_are_equal_instants(void **state)
{
    (void) state;
    esdm__time_units days = units_of("days since 1850-01-01", "standard");
    esdm__time_units hours = units_of("hours since 1900-01-01", "gregorian");
    for (int64_t i = 0; i < 20000; i++) {
        esdm__instant exact, other;
        double number = 0;
        assert_true(esdm__time_decode(&hours, (double) i, &exact));
        assert_true(esdm__time_encode(&days, exact, &number));
        /* 18262 days lie between the epochs: one rounding of the exact quotient. */
        assert_true(number == (double) (18262 * 24 + i) / 24.0);
        assert_true(esdm__time_decode(&days, number, &other));
        assert_int_equal(
            esdm__instant_compare(esdm__instant_round(exact), esdm__instant_round(other)), 0);
    }
}

static void
test_units__zones_and_forms_of_dates(void **state)
{
    (void) state;
    static const char *const same[] = {"hours since 2000-01-01 01:30:00 +01:30",
                                       "hours since 2000-01-01T00:00:00Z", "hour since 2000-1-1",
                                       "h since 1999-12-31 19:00:00.0 -5",
                                       "hrs since 2000-01-01 00:00 UTC"};
    esdm__time_units first = units_of(same[0], NULL);
    for (size_t i = 1; i < sizeof same / sizeof same[0]; i++)
        assert_int_equal(esdm__instant_compare(units_of(same[i], "").epoch, first.epoch), 0);
    static const char *const wrong[] = {"degrees",
                                        "fortnights since 2000-01-01",
                                        "days since",
                                        "days since 2000-13-01",
                                        "days since 2000-02-30",
                                        "days after 2000-01-01",
                                        "days since 2000-01-01 25:00",
                                        "days since 2000-01-01 junk",
                                        "days since 99999999-01-01",
                                        ""};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        esdm_error err = {0};
        esdm__time_units untouched;
        assert_int_equal(
            esdm__time_units_parse(wrong[i], ESDM__CALENDAR_STANDARD, &untouched, &err),
            ESDM_EINVAL);
        assert_true(err.message[0] != '\0');
    }
}

/* What cdo 2.1.1 shows of these numbers (showtimestamp). */
static void
test_decode__months_and_years_of_the_calendar(void **state)
{
    (void) state;
    static const struct {
        const char *units, *calendar;
        double number;
        const char *date;
    } numbers[] = {{"months since 2000-01-01", NULL, 12, "2001-01-01"},
                   {"months since 2000-01-01", NULL, 0.5, "2000-01-16T12:00:00"},
                   {"months since 2000-01-01", NULL, 1.5, "2000-02-15T12:00:00"},
                   {"months since 1960-01-01", "360_day", -0.5, "1959-12-16"},
                   {"months since 2000-01-31", NULL, 1, "2000-02-29"},
                   {"months since 2000-01-31", "noleap", 1, "2000-02-28"},
                   {"months since 2000-03-15 06:00", NULL, -27, "1997-12-15T06:00:00"},
                   {"years since 0001-01-01", "noleap", 1999, "2000-01-01"},
                   {"years since 2000-01-01", NULL, -2001, "-0001-01-01"}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        esdm__time_units units = units_of(numbers[i].units, numbers[i].calendar);
        esdm__instant instant;
        esdm__date date;
        char text[40];
        double back;
        assert_int_equal(units.unit_ns, 0);
        assert_true(esdm__time_decode(&units, numbers[i].number, &instant));
        assert_true(esdm__instant_date(units.calendar, instant, &date));
        esdm__date_format(&date, text);
        assert_string_equal(text, numbers[i].date);
        assert_false(esdm__time_encode(&units, instant, &back));
    }
    static const double wrong[] = {NAN, INFINITY, 1e300, 12.0 * ESDM__YEAR_MAX};
    esdm__time_units months = units_of("months since 2000-01-01", NULL);
    esdm__instant untouched;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(esdm__time_decode(&months, wrong[i], &untouched));
    esdm__time_units ns = units_of("nanoseconds since 1970-01-01", NULL);
    assert_true(esdm__time_decode(&ns, 1e18, &untouched));
    assert_int_equal(untouched.day - ns.epoch.day, 11574);
}

static void
test_decode__what_is_no_time_is_refused(void **state)
{
    (void) state;
    esdm__time_units units = units_of("seconds since 1970-01-01", NULL);
    static const double wrong[] = {NAN, INFINITY, -INFINITY, 1e300, 9.969209968386869e36};
    esdm__instant instant;
    esdm__date date;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_true(!esdm__time_decode(&units, wrong[i], &instant) ||
                    !esdm__instant_date(units.calendar, instant, &date));
    assert_true(esdm__time_decode(&units, 5e-324, &instant));
    assert_true(esdm__time_decode(&units, -0.5, &instant));
    assert_int_equal(instant.day_ns, ESDM__DAY_NS - 500000000);
    assert_true(esdm__time_decode(&units, 1e-9 * 1.5, &instant));
    assert_in_range(instant.day_ns, 1, 2);
}

static void
test_date_parse__texts_name_periods(void **state)
{
    (void) state;
    esdm__date date;
    double key, next, after;
    assert_true(esdm__date_parse("1990-12", &date, &key, &next));
    assert_true(esdm__date_parse("1991", &date, &after, &key));
    assert_true(next == after);
    assert_true(esdm__date_parse("1990-01-31T12:30", &date, &key, &next));
    assert_int_equal(date.day_ns, INT64_C(45000000000000));
    assert_false(esdm__date_parse("1990-13", &date, &key, &next));
    assert_false(esdm__date_parse("90", &date, &key, &next));
    assert_false(esdm__date_parse("1990-01-", &date, &key, &next));
    assert_false(esdm__date_parse("historical", &date, &key, &next));
    char text[40];
    esdm__date_format(&(esdm__date){-5, 3, 1, 0}, text);
    assert_string_equal(text, "-0005-03-01");
    esdm__date_format(&(esdm__date){1850, 1, 16, INT64_C(43200000000000)}, text);
    assert_string_equal(text, "1850-01-16T12:00:00");
}

static void
test_calendar__names(void **state)
{
    (void) state;
    esdm__calendar calendar = ESDM__CALENDAR_JULIAN;
    esdm_error err = {0};
    assert_int_equal(esdm__calendar_parse("365_DAY", &calendar, &err), ESDM_OK);
    assert_int_equal(calendar, ESDM__CALENDAR_NOLEAP);
    assert_string_equal(esdm__calendar_name(calendar), "noleap");
    assert_int_equal(esdm__calendar_parse("martian", &calendar, &err), ESDM_EINVAL);
    assert_int_equal(calendar, ESDM__CALENDAR_NOLEAP);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode__dates_are_those_of_cftime),
        cmocka_unit_test(test_days__every_day_is_the_one_after_the_last),
        cmocka_unit_test(test_days__ten_days_are_missing_in_the_standard_calendar),
        cmocka_unit_test(test_encode__the_same_hours_in_days_and_hours_are_equal_instants),
        cmocka_unit_test(test_units__zones_and_forms_of_dates),
        cmocka_unit_test(test_decode__months_and_years_of_the_calendar),
        cmocka_unit_test(test_decode__what_is_no_time_is_refused),
        cmocka_unit_test(test_date_parse__texts_name_periods),
        cmocka_unit_test(test_calendar__names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
