// SPDX-License-Identifier: LGPL-3.0-or-later
// What coordinates mean, by the CF conventions: longitudes, latitudes and dates.
"use strict";

function attributeOf(variable, name) {
  const found = variable.attributes.find(a => a.name === name);
  return found === undefined ? undefined : typeof found.values === "string" ? found.values : found.values && found.values[0];
}

// "longitude", "latitude", "date" or undefined. CF 4.1, 4.2 and 4.4.
function kindOf(variable) {
  const units = String(attributeOf(variable, "units") || ""), name = attributeOf(variable, "standard_name");
  if (name === "longitude" || /^degrees?_?(east|E)$/.test(units)) return "longitude";
  if (name === "latitude" || /^degrees?_?(north|N)$/.test(units)) return "latitude";
  return /\bsince\b/.test(units) ? "date" : undefined;
}

const SECONDS = {second: 1, sec: 1, s: 1, minute: 60, min: 60, hour: 3600, hr: 3600, h: 3600, day: 86400, d: 86400};
const MONTHS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

// Calendars of a fixed year: the day of a date and back. The others are days of the Gregorian or the Julian one.
const FIXED = {
  "360_day": {year: 360, months: Array(12).fill(30)},
  "noleap": {year: 365, months: MONTHS}, "365_day": {year: 365, months: MONTHS},
  "all_leap": {year: 366, months: MONTHS.map((n, i) => i === 1 ? 29 : n)}, "366_day": {year: 366, months: MONTHS.map((n, i) => i === 1 ? 29 : n)},
};
// Before this day "standard" means the Julian calendar.
const GREGORIAN = Date.UTC(1582, 9, 15) / 864e5;

function gregorianDay(year, month, day) {
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  return date.getTime() / 864e5;
}

// Days since 1970-01-01 of a date in the Julian calendar, and back. A year begins in March here, so that leap days end it.
function julianDay(year, month, day) {
  const y = month < 3 ? year - 1 : year, m = (month + 9) % 12;
  return Math.floor(1461 * y / 4) + Math.floor((153 * m + 2) / 5) + day - 719471;
}

function julianDate(days) {
  const since = days + 719470, y = Math.floor((4 * since + 3) / 1461), rest = since - Math.floor(1461 * y / 4);
  const m = Math.floor((5 * rest + 2) / 153);
  return [m > 9 ? y + 1 : y, (m + 2) % 12, rest - Math.floor((153 * m + 2) / 5) + 1];
}

// A function that writes values as dates; undefined: it would have to guess.
function dateWriter(variable) {
  const calendar = String(attributeOf(variable, "calendar") || "standard").toLowerCase(), fixed = FIXED[calendar];
  const said = /^\s*([A-Za-z]+?)s?\s+since\s+(\d{1,4})-(\d{1,2})-(\d{1,2})(?:[T ]+(\d{1,2}):(\d{1,2})(?::(\d{1,2}(?:\.\d*)?))?)?\s*(?:Z|UTC|0?0:?00|\+0?0:?00|GMT)?\s*$/.exec(attributeOf(variable, "units"));
  const unit = said && (SECONDS[said[1].toLowerCase()] || SECONDS[`${said[1].toLowerCase()}s`]);
  if (!unit || !fixed && !["standard", "gregorian", "proleptic_gregorian", "julian"].includes(calendar)) return undefined;
  const isJulian = days => calendar === "julian" || calendar !== "proleptic_gregorian" && days < GREGORIAN;
  const [year, month, day, hour, minute, second] = said.slice(2).map(n => Number(n || 0));
  if (month < 1 || month > 12) return undefined;
  const start = (fixed ? year * fixed.year + fixed.months.slice(0, month - 1).reduce((a, b) => a + b, 0) + day - 1
    : isJulian(gregorianDay(year, month, day)) ? julianDay(year, month, day) : gregorianDay(year, month, day)) * 86400 + hour * 3600 + minute * 60 + second;
  const two = n => String(n).padStart(2, "0");
  return value => {
    if (!Number.isFinite(value)) return "none";
    const minutes = Math.round((start + value * unit) / 60);
    let rest = Math.floor(minutes / 1440), y, m = 0;
    if (fixed) {
      y = Math.floor(rest / fixed.year);
      for (rest -= y * fixed.year; rest >= fixed.months[m]; m++) rest -= fixed.months[m];
      rest++;
    } else if (isJulian(rest)) {
      [y, m, rest] = julianDate(rest);
    } else {
      const date = new Date(rest * 864e5);
      [y, m, rest] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()];
    }
    const clock = ((minutes % 1440) + 1440) % 1440, time = clock ? ` ${two(Math.floor(clock / 60))}:${two(clock % 60)}` : "";
    return `${String(y).padStart(4, "0")}-${two(m + 1)}-${two(rest)}${time}`;
  };
}

// The coordinates of a variable's dimensions: {name: {values, kind, write}}.
async function coordinatesOf(container, variable) {
  const found = {}, all = allDatasets(container);
  for (const d of variable.dimensions) {
    const v = all.find(one => one.name === d.name && one.is_number && one.dimensions.length === 1 && one.dimensions[0].length === d.length);
    if (!v || !d.length || d.length > 1e5) continue;
    const kind = kindOf(v), units = attributeOf(v, "units"), date = kind === "date" && dateWriter(v);
    found[d.name] = {
      values: await numbers(container.name, container.snapshot, v.path, [0], [d.length], undefined, "double"), kind,
      write: date || (value => `${short(value)}${units && units !== "1" ? ` ${units}` : ""}`),
    };
  }
  return found;
}

// What auxiliary coordinates (CF 5.2: of grids with two-dimensional latitudes) say of an element, as texts.
async function auxiliaryAt(container, variable, index) {
  const names = String(attributeOf(variable, "coordinates") || "").split(/\s+/).slice(0, 4), all = allDatasets(container);
  const place = d => variable.dimensions.findIndex(mine => mine.name === d.name && mine.length === d.length);
  const found = all.filter(v => names.includes(v.name) && v.is_number && v.dimensions.length && v.dimensions.every(d => place(d) >= 0));
  return Promise.all(found.map(async v => {
    const [value] = await numbers(container.name, container.snapshot, v.path, v.dimensions.map(d => index[place(d)]),
                                  v.dimensions.map(() => 1), undefined, "double");
    return `${v.name} = ${short(value)} ${attributeOf(v, "units") || ""}`.trim();
  }));
}
