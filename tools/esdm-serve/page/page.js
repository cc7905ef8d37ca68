// SPDX-License-Identifier: LGPL-3.0-or-later
// Names and values of the site are put into the page as text alone, never as HTML.
"use strict";

const $ = id => document.getElementById(id);
const encodeName = name => name.split("/").map(encodeURIComponent).join("/");
const make = (tag, text, parent) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (parent) parent.append(element);
  return element;
};

async function ask(path) {
  const reply = await fetch(path), body = await reply.json();
  if (!reply.ok) throw new Error(body.error);
  return body;
}

function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let i = 0;
  for (n = Number(n); n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return `${i ? n.toFixed(1) : n} ${units[i]}`;
}

// What goes wrong is told above.
const guard = action => async (...given) => {
  $("message").textContent = "";
  try { await action(...given); } catch (problem) { $("message").textContent = problem.message; }
};

// ---- the list

function addLink(name, fact, path) {
  const link = make("a", name, $("list"));
  link.href = `#${encodeURIComponent(name)}${path ? "/" + encodeURIComponent(path) : ""}`;
  if (fact) { link.append(" "); make("small", fact, link); }
}

async function showList(part) {
  const found = await ask("/api/list");
  $("site").textContent = found.site;
  $("list").replaceChildren();
  for (const c of found.containers)
    if (!part || c.name.includes(part)) addLink(c.name, bytes(c.raw_bytes));
  if (found.more) make("p", "There are more: search for them.", $("list"));
  if (!$("list").children.length) make("p", "nothing found", $("list"));
}

async function showMatches(query) {
  const found = await ask(`/api/find?${new URLSearchParams({q: query})}`);
  $("list").replaceChildren();
  for (const m of found.matches) addLink(m.container, m.dataset, m.dataset);
  if (!found.matches.length) make("p", "nothing found", $("list"));
}

const search = guard(async () => {
  const text = $("search").value.trim();
  await (/[=<>~]/.test(text) ? showMatches(text) : showList(text));
});

// ---- a container, as ncdump shows it

function attributeText(a) {
  const values = a.values;
  if (values === undefined) return `… (${a.count} of type ${a.type})`;
  if (typeof values === "string") return JSON.stringify(values);
  const more = a.count > values.length ? ", …" : "";
  return values.map(v => typeof v === "string" && a.type === "string" ? JSON.stringify(v) : String(v)).join(", ") + more;
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

async function showContainer(name, path, snapshot) {
  const query = snapshot ? `?snapshot=${snapshot}` : "";
  const container = await ask(`/api/container/${encodeName(name)}${query}`);
  const history = await ask(`/api/snapshots/${encodeName(name)}`);
  $("container").hidden = false;
  $("picture").hidden = true;
  $("name").textContent = container.name;
  $("facts").textContent = "snapshot ";
  const choice = make("select", undefined, $("facts"));
  choice.id = "snapshot";
  for (const s of history.snapshots.reverse()) {
    const option = make("option", `${s.snapshot}: ${s.time.slice(0, 19)} ${s.writer}`, choice);
    option.value = s.snapshot;
    option.selected = String(s.snapshot) === String(container.snapshot);
  }
  choice.onchange = guard(() => showContainer(name, path, choice.value));
  $("facts").append(" ");
  const file = make("a", "as a NetCDF file", $("facts"));
  file.href = `/files/${encodeName(name)}?snapshot=${container.snapshot}`;
  $("structure").replaceChildren();
  showGroup(container, "", container, $("structure"));
  for (const link of $("list").querySelectorAll("a"))
    link.classList.toggle("chosen", link.firstChild.textContent === name);
  const variable = path && allDatasets(container).find(v => v.path === path);
  if (variable && variable.is_number && variable.dimensions.length) await showPicture(container, variable);
}

// ---- pictures

async function coordinatesOf(container, variable) {
  const found = {}, all = allDatasets(container);
  for (const d of variable.dimensions) {
    const v = all.find(one => one.name === d.name && one.is_number && one.dimensions.length === 1 && one.dimensions[0].length === d.length);
    if (v && d.length && d.length <= 1e5) found[d.name] = await numbers(container.name, container.snapshot, v.path, [0], [d.length]);
  }
  return found;
}

async function showPicture(container, variable) {
  const picture = new Picture(container, variable, await coordinatesOf(container, variable));
  const units = variable.attributes.find(a => a.name === "units");
  $("caption").textContent = `${variable.path}${units ? ` [${units.values}]` : ""}`;
  $("sliders").replaceChildren();
  $("series").hidden = true;
  variable.dimensions.slice(0, -2).forEach((d, i) => {
    const label = make("label", d.name, $("sliders")), slider = make("input", undefined, label), told = make("output", "", label);
    slider.type = "range";
    slider.min = 0;
    slider.max = d.length - 1;
    slider.value = 0;
    const tell = () => {
      const values = picture.coordinates[d.name];
      told.textContent = `${Number(slider.value) + 1} of ${d.length}${values ? `: ${short(values[slider.value])}` : ""}`;
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

const follow = guard(async () => {
  const [name, path] = location.hash.slice(1).split("/").map(decodeURIComponent);
  if (name) await showContainer(name, path);
  else $("container").hidden = true;
});

let waiting;
$("search").oninput = () => { clearTimeout(waiting); waiting = setTimeout(search, 300); };
addEventListener("hashchange", follow);
search().then(follow);
