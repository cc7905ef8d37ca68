// SPDX-License-Identifier: LGPL-3.0-or-later
// A container as ncdump shows it, and what the address of the page means.
"use strict";

// ---- a container, as ncdump shows it

// With no more digits than tell it from its neighbours: 1e+20 and not 100000002004087730000.
function float32Text(value) {
  for (let digits = 6; digits < 9; digits++) {
    const told = Number(value.toPrecision(digits));
    if (Math.fround(told) === Math.fround(value)) return told >= 1e15 || told <= -1e15 ? told.toExponential() : String(told);
  }
  return String(value);
}

function attributeText(a) {
  const values = a.values;
  if (values === undefined) return `… (${a.count} of type ${a.type})`;
  if (typeof values === "string") return JSON.stringify(values);
  const more = a.count > values.length ? ", …" : "";
  const write = v => typeof v === "string" ? (a.type === "string" ? JSON.stringify(v) : v) : a.type === "float32" && Number.isFinite(v) ? float32Text(v) : String(v);
  return values.map(write).join(", ") + more;
}

function showGroup(group, indent, container, parent) {
  const lines = text => make("pre", text.map(l => indent + l).join("\n"), parent);
  if (group.dimensions.length)
    lines(["dimensions:", ...group.dimensions.map(d => `    ${d.name} = ${d.unlimited ? `UNLIMITED ; // (${d.length} currently)` : `${d.length} ;`}`)]);
  if (group.datasets.length) lines(["variables:"]);
  for (const v of group.datasets) {
    const line = make("pre", `${indent}    ${v.type} ${v.name}(${v.dimensions.map(d => d.name).join(", ")}) ; `, parent);
    if (v.is_number && v.dimensions.length && v.dimensions.every(d => d.length)) {
      const button = make("button", "picture", line);
      button.dataset.path = v.path;
      button.onclick = guard(() => showPicture(container, v));
    }
    const storage = make("button", "storage", line);
    storage.dataset.storage = v.path;
    storage.onclick = guard(() => showStorage(container, v));
    if (v.attributes.length) lines(v.attributes.map(a => `        ${v.name}:${a.name} = ${attributeText(a)} ;`));
  }
  if (group.attributes.length) lines([indent ? "// group attributes:" : "// global attributes:", ...group.attributes.map(a => `    :${a.name} = ${attributeText(a)} ;`)]);
  for (const g of group.groups) {
    lines([`group: ${g.name} {`]);
    showGroup(g, indent + "    ", container, parent);
    lines(["}"]);
  }
}

function allDatasets(group) {
  return group.datasets.concat(...group.groups.map(allDatasets));
}

// What a query or a place of a view joins has no snapshots of its own: its number is 0.
async function showSnapshots(container, path) {
  if (!Number(container.snapshot)) {
    $("facts").textContent = "joined from what is found now ";
    return;
  }
  const found = await ask(`/api/snapshots/${encodeName(container.name)}`);
  $("facts").textContent = "snapshot ";
  const choice = make("select", undefined, $("facts"));
  choice.id = "snapshot";
  for (const s of found.snapshots.reverse()) {
    const option = make("option", `${s.snapshot}: ${s.time.slice(0, 19)} ${s.writer}`, choice);
    option.value = s.snapshot;
    option.selected = String(s.snapshot) === String(container.snapshot);
  }
  choice.onchange = guard(() => showContainer(container.name, path, choice.value));
  $("facts").append(" ");
}

async function showContainer(name, path, snapshot) {
  const container = await ask(`/api/container/${encodeName(name)}${snapshot ? `?snapshot=${snapshot}` : ""}`);
  await showSnapshots(container, path);
  $("container").hidden = false;
  $("hint").hidden = true;
  $("picture").hidden = $("storage").hidden = true;
  $("name").textContent = container.name;
  const file = make("a", "as a NetCDF file", $("facts"));
  file.href = `/files/${encodeName(container.name)}?snapshot=${container.snapshot}`;
  $("structure").replaceChildren();
  showGroup(container, "", container, $("structure"));
  for (const link of $("list").querySelectorAll("a"))
    link.classList.toggle("chosen", link.firstChild.textContent === container.name);
  const variable = path && allDatasets(container).find(v => v.path === path);
  if (variable && variable.is_number && variable.dimensions.length) await showPicture(container, variable);
}

// ---- pictures

async function showPicture(container, variable) {
  const picture = new Picture(container, variable, await coordinatesOf(container, variable));
  const said = name => { const found = variable.attributes.find(a => a.name === name); return typeof found?.values === "string" ? found.values : ""; };
  picture.units = said("units");
  $("caption").textContent = [variable.path, said("long_name") || said("standard_name"), picture.units && `[${picture.units}]`].filter(Boolean).join(" ");
  $("value").textContent = "Click into the picture for the series at a point.";
  $("sliders").replaceChildren();
  $("series").hidden = true;
  variable.dimensions.slice(0, -2).forEach((d, i) => {
    const label = make("label", d.name, $("sliders")), slider = make("input", undefined, label), told = make("output", "", label);
    slider.type = "range";
    slider.min = 0;
    slider.max = d.length - 1;
    slider.value = 0;
    const tell = () => {
      const found = picture.coordinates[d.name];
      told.textContent = `${Number(slider.value) + 1} of ${d.length}${found ? `: ${found.write(found.values[slider.value])}` : ""}`;
    };
    tell();
    slider.oninput = guard(async () => { picture.index[i] = Number(slider.value); tell(); await picture.draw(); });
  });
  $("map").onclick = guard(event => picture.series(event));
  $("picture").hidden = false;
  await picture.draw();
  document.body.dataset.drawn = variable.path;
}

// ---- the whole

const start = guard(async () => {
  await showViews();
  if (location.hash.length > 1 && !location.hash.startsWith("#@")) await search(); // else follow() does
});

const follow = guard(async () => {
  const [name, path] = location.hash.slice(1).split("/").map(decodeURIComponent);
  if (name.startsWith("@")) await showPlace(name.slice(1));
  else if (name) await showContainer(name, path);
  else { $("container").hidden = true; $("hint").hidden = false; await search(); }
});

let waiting;
$("search").oninput = () => { clearTimeout(waiting); waiting = setTimeout(search, 300); };
addEventListener("hashchange", follow);
start().then(follow);
