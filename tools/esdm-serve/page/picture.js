// SPDX-License-Identifier: LGPL-3.0-or-later
// Pictures of a variable: a map of its last two dimensions, sliders for the others, and the series at a point.
"use strict";

// Viridis at 9 places (matplotlib, CC0); between them colours are linear.
const COLOURS = [[68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129],
                 [92, 200, 99], [170, 220, 50], [253, 231, 37]];
const MOST_COLUMNS = 1000, MOST_ROWS = 700, MOST_STEPS = 4000;

function colour(share) {
  const at = Math.min(Math.max(share, 0), 1) * (COLOURS.length - 1), i = Math.min(Math.floor(at), COLOURS.length - 2);
  return COLOURS[i].map((c, k) => c + (COLOURS[i + 1][k] - c) * (at - i));
}

function short(value) {
  return Number.isFinite(value) ? String(Number(value.toPrecision(5))) : "none";
}

async function numbers(container, snapshot, path, start, count, stride, type = "float") {
  const query = new URLSearchParams({variable: path, start: start.join(","), count: count.join(","), snapshot, type});
  if (stride) query.set("stride", stride.join(","));
  const reply = await fetch(`/api/values/${encodeName(container)}?${query}`);
  if (!reply.ok) throw new Error((await reply.json()).error);
  const body = await reply.arrayBuffer();
  return type === "double" ? new Float64Array(body) : new Float32Array(body);
}

// A function from a coordinate to its place among values that grow or fall: 1.5 lies between the second and the
// third. It gives undefined beyond half a step outside. undefined: the values do neither.
function inverse(values) {
  const rises = values[values.length - 1] > values[0], before = (a, b) => rises ? a < b : a > b;
  for (let i = 1; i < values.length; i++) if (!before(values[i - 1], values[i])) return undefined;
  return value => {
    let low = 0, high = values.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (before(value, values[middle])) high = middle; else low = middle;
    }
    const at = low + (value - values[low]) / (values[high] - values[low]);
    return at < -0.5 || at > values.length - 0.5 ? undefined : at;
  };
}

class Picture {
  constructor(container, variable, coordinates) {
    this.container = container;
    this.variable = variable;
    this.coordinates = coordinates; // by name of the dimension: values, kind, write()
    this.lengths = variable.dimensions.map(d => d.length);
    this.rank = this.lengths.length;
    this.index = this.lengths.map(() => 0);
    const [rows, columns] = this.axes().map(a => a < 0 ? 1 : this.lengths[a]);
    this.step = [Math.ceil(rows / MOST_ROWS), Math.ceil(columns / MOST_COLUMNS)];
    this.rows = Math.ceil(rows / this.step[0]);
    this.columns = Math.ceil(columns / this.step[1]);
    this.turn = 0;
  }

  axes() { return [this.rank - 2, this.rank - 1]; }

  // North is up: rows are drawn from below, unless their coordinate falls.
  upwards() {
    const rows = this.rank > 1 ? this.coordinates[this.variable.dimensions[this.rank - 2].name] : null;
    return !rows || rows.values.length < 2 || rows.values[rows.values.length - 1] > rows.values[0];
  }

  async draw() {
    const turn = ++this.turn; // a slider moves faster than pictures come
    const [y, x] = this.axes();
    const count = this.lengths.map((_, i) => i === y ? this.rows : i === x ? this.columns : 1);
    const stride = this.lengths.map((_, i) => i === y ? this.step[0] : i === x ? this.step[1] : 1);
    const values = await numbers(this.container.name, this.container.snapshot, this.variable.path, this.index, count, stride);
    if (turn !== this.turn) return;
    let low = Infinity, high = -Infinity;
    for (const v of values) if (Number.isFinite(v)) { if (v < low) low = v; if (v > high) high = v; }
    this.values = values;
    this.paint(low, high);
    this.bar(low, high);
    this.coast();
  }

  paint(low, high) {
    const canvas = document.getElementById("map");
    canvas.width = this.columns;
    canvas.height = this.rows;
    this.scale = Math.max(1, Math.min(Math.floor(720 / this.columns), Math.floor(400 / this.rows)));
    canvas.style.width = `${this.columns * this.scale}px`;
    const context = canvas.getContext("2d"), image = context.createImageData(this.columns, this.rows);
    const up = this.upwards();
    for (let r = 0; r < this.rows; r++) {
      for (let c = 0; c < this.columns; c++) {
        const value = this.values[(up ? this.rows - 1 - r : r) * this.columns + c], at = 4 * (r * this.columns + c);
        if (!Number.isFinite(value)) continue; // missing: nothing is drawn
        const rgb = colour(high > low ? (value - low) / (high - low) : 0.5);
        image.data.set([rgb[0], rgb[1], rgb[2], 255], at);
      }
    }
    context.putImageData(image, 0, 0);
  }

  // Coastlines, where rows are latitudes and columns longitudes that only grow or only fall.
  coast() {
    const canvas = document.getElementById("coast"), last = this.variable.dimensions.slice(-2).map(d => this.coordinates[d.name]);
    const has = this.rank > 1 && last.every(c => c && c.values.length > 1) && last[0].kind === "latitude" && last[1].kind === "longitude";
    const row = has && inverse(last[0].values), column = has && inverse(last[1].values);
    canvas.hidden = !row || !column;
    if (canvas.hidden) return;
    canvas.width = this.columns * this.scale;
    canvas.height = this.rows * this.scale;
    const context = canvas.getContext("2d"), up = this.upwards();
    const y = at => { const r = ((at + 0.5) / last[0].values.length) * canvas.height; return up ? canvas.height - r : r; };
    const x = at => ((at + 0.5) / last[1].values.length) * canvas.width;
    context.strokeStyle = "#fffc";
    context.lineWidth = 2.4;
    for (let pass = 0; pass < 2; pass++) { // dark upon light is seen on all colours
      context.beginPath();
      for (const turn of [-360, 0, 360]) {
        for (const line of COAST) {
          let open = false;
          for (const [lon, lat] of line) {
            const r = row(lat), c = column(lon + turn), inside = r !== undefined && c !== undefined;
            if (inside && open) context.lineTo(x(c), y(r)); else if (inside) context.moveTo(x(c), y(r));
            open = inside;
          }
        }
      }
      context.stroke();
      context.strokeStyle = "#000";
      context.lineWidth = 1;
    }
  }

  bar(low, high) {
    const canvas = document.getElementById("bar"), context = canvas.getContext("2d");
    canvas.height = Math.max(160, document.getElementById("map").clientHeight + 2); // as high as the map
    const height = canvas.height - 20;
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.fillStyle = getComputedStyle(document.body).color;
    context.font = "12px sans-serif";
    if (!(high >= low)) { context.fillText("no values", 0, 20); return; }
    for (let i = 0; i <= 5; i++)
      context.fillText(short(low + (high - low) * i / 5), 24, 14 + height * (1 - i / 5));
    for (let i = 0; i < height; i++) {
      context.fillStyle = `rgb(${colour(1 - i / height).map(Math.round).join(",")})`;
      context.fillRect(0, 10 + i, 18, 1);
    }
  }

  // The element that a click means.
  place(event) {
    const canvas = document.getElementById("map"), box = canvas.getBoundingClientRect();
    const c = Math.min(this.columns - 1, Math.floor((event.clientX - box.left) / box.width * this.columns));
    let r = Math.min(this.rows - 1, Math.floor((event.clientY - box.top) / box.height * this.rows));
    if (this.upwards()) r = this.rows - 1 - r;
    return [Math.max(r, 0), Math.max(c, 0)];
  }

  async series(event) {
    const [r, c] = this.place(event), [y, x] = this.axes(), at = this.index.slice();
    if (y >= 0) at[y] = r * this.step[0];
    at[x] = c * this.step[1];
    const where = this.variable.dimensions.map((d, i) => {
      const found = this.coordinates[d.name];
      return `${d.name} = ${found ? found.write(found.values[at[i]]) : at[i]}`;
    });
    where.push(...await auxiliaryAt(this.container, this.variable, at));
    const told = short(this.values[r * this.columns + c]);
    document.getElementById("value").textContent = `${told}${this.units && told !== "none" ? ` ${this.units}` : ""} at ${where.join(", ")}`;
    const canvas = document.getElementById("series");
    canvas.hidden = this.rank < 3;
    if (this.rank < 3) return;
    const step = Math.ceil(this.lengths[0] / MOST_STEPS), count = at.map(() => 1), stride = at.map(() => 1);
    at[0] = 0;
    count[0] = Math.ceil(this.lengths[0] / step);
    stride[0] = step;
    const values = await numbers(this.container.name, this.container.snapshot, this.variable.path, at, count, stride);
    canvas.hidden = !values.some(Number.isFinite); // a point on land has none
    if (!canvas.hidden) this.line(canvas, values);
  }

  line(canvas, values) {
    const context = canvas.getContext("2d"), left = 60, bottom = canvas.height - 22, top = 10, gap = 6;
    const real = values.filter(Number.isFinite), low = Math.min(...real), high = Math.max(...real);
    const x = i => left + (canvas.width - left - 10) * (values.length > 1 ? i / (values.length - 1) : 0.5);
    const y = v => high > low ? bottom - gap - (bottom - top - 2 * gap) * (v - low) / (high - low) : (top + bottom) / 2;
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.fillStyle = context.strokeStyle = getComputedStyle(document.body).color;
    context.font = "12px sans-serif";
    context.fillText(short(high), 0, top + gap + 4);
    context.fillText(short(low), 0, bottom - gap + 4);
    if (this.units) context.fillText(this.units, 0, (top + bottom) / 2 + 4, left - 4);
    const first = this.variable.dimensions[0], along = this.coordinates[first.name];
    const begin = along ? along.write(along.values[0]) : "", end = along ? along.write(along.values[along.values.length - 1]) : "";
    context.fillText(`${first.name} ${begin}`, left, canvas.height - 6);
    context.fillText(end, canvas.width - 10 - context.measureText(end).width, canvas.height - 6);
    context.globalAlpha = 0.4;
    context.strokeRect(left, top, canvas.width - left - 10, bottom - top);
    context.globalAlpha = 1;
    context.lineWidth = 1.5;
    context.strokeStyle = "#1769aa";
    context.beginPath();
    let open = false;
    values.forEach((v, i) => {
      if (!Number.isFinite(v)) { open = false; return; }
      if (open) context.lineTo(x(i), y(v)); else context.moveTo(x(i), y(v));
      open = true;
    });
    context.stroke();
    if (real.length === 1) context.strokeRect(x(values.findIndex(Number.isFinite)) - 2, y(low) - 2, 4, 4);
  }
}
