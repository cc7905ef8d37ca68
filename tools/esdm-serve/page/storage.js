// SPDX-License-Identifier: LGPL-3.0-or-later
// Where a variable lies: bytes by target and codec, what is stated of its accuracy, and a map of its fragments.
"use strict";

// Of 8 targets; from there on colours come again (Okabe and Ito's, told apart by all eyes).
const TARGET_COLOURS = ["#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#0072b2", "#d55e00", "#999999"];

const times = (raw, stored) => Number(stored) > 0 ? `${(Number(raw) / Number(stored)).toPrecision(3)} times smaller` : "no bytes at all";

// The two dimensions along which most is cut: rows and columns of the map.
function cutDimensions(variable, fragments) {
  const cuts = variable.dimensions.map((_, i) => new Set(fragments.map(f => f.offset[i])).size);
  const order = cuts.map((_, i) => i).sort((a, b) => cuts[b] - cuts[a] || b - a).slice(0, 2).sort((a, b) => a - b);
  return order.length === 2 ? order : order.length === 1 ? [undefined, order[0]] : [undefined, undefined];
}

function drawFragments(variable, fragments, targets) {
  const canvas = $("fragments"), context = canvas.getContext("2d"), [y, x] = cutDimensions(variable, fragments);
  const length = i => i === undefined ? 1 : Math.max(1, Number(variable.dimensions[i].length));
  const from = (f, i) => i === undefined ? 0 : Number(f.offset[i]), size = (f, i) => i === undefined ? 1 : Number(f.size[i]);
  const across = (canvas.width - 2) / length(x), down = (canvas.height - 2) / length(y);
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.lineWidth = 1;
  for (const f of fragments) {
    const box = [1 + from(f, x) * across, 1 + from(f, y) * down, Math.max(size(f, x) * across, 1), Math.max(size(f, y) * down, 1)];
    context.fillStyle = TARGET_COLOURS[Math.max(targets.indexOf(f.target), 0) % TARGET_COLOURS.length];
    context.fillRect(...box);
    context.strokeStyle = "#0006";
    if (box[2] > 2 && box[3] > 2) context.strokeRect(...box);
  }
  const name = i => i === undefined ? "" : variable.dimensions[i].name;
  $("fragments-axes").textContent = y === undefined ? name(x) : `${name(y)} downwards, ${name(x)} to the right`;
}

function addRows(table, head, shares, colours) {
  const top = make("tr", undefined, table);
  for (const text of [head, "fragments", "stored", "as numbers"]) make("th", text, top);
  Object.entries(shares).forEach(([name, s], i) => {
    const row = make("tr", undefined, table), first = make("td", undefined, row);
    if (colours) make("span", "", first).style.background = TARGET_COLOURS[i % TARGET_COLOURS.length];
    first.append(name || "none");
    make("td", String(s.fragments), row);
    make("td", bytes(s.stored_bytes), row);
    make("td", bytes(s.raw_bytes), row);
  });
}

async function showStorage(container, variable) {
  const query = new URLSearchParams({variable: variable.path, snapshot: container.snapshot});
  const found = await ask(`/api/fragments/${encodeName(container.name)}?${query}`);
  $("storage-caption").textContent = `${variable.path}: where it is stored`;
  $("storage-facts").textContent = !Number(container.snapshot) ? "Its values lie in the containers that are joined." :
    !Number(found.count) ? "Nothing is stored yet." :
    `${bytes(found.stored_bytes)} for ${bytes(found.raw_bytes)} of numbers (${times(found.raw_bytes, found.stored_bytes)}). ` +
    `Accuracy: ${found.accuracy || "nothing is lost, or what its source had lost"}.` +
    (found.more ? ` The map has the first ${found.fragments.length} of ${found.count} fragments.` : "");
  $("storage-table").replaceChildren();
  addRows($("storage-table"), "target", found.targets, true);
  addRows($("storage-table"), "codec", found.codecs, false);
  drawFragments(variable, found.fragments, Object.keys(found.targets));
  $("storage").hidden = false;
  document.body.dataset.storage = variable.path;
}
