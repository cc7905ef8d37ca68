// SPDX-License-Identifier: LGPL-3.0-or-later
// The left side of the page: names, matches of a query, views of the site, and counts that narrow a query.
"use strict";

// Attributes that are counted, by the CMIP and CORDEX archives, ACDD and what models write.
const FACETS = ["mip_era", "project_id", "activity_id", "institution_id", "source_id", "model_id", "experiment_id", "variant_label", "member_id",
                "table_id", "frequency", "realm", "variable_id", "grid_label", "domain_id", "driving_source_id", "institution", "source", "Conventions"];

// A container's address in this page. "#@…" are places of views.
const linkTo = (name, path) => `#${encodeURIComponent(name)}${path ? "/" + encodeURIComponent(path) : ""}`;
const linkToPlace = place => `#@${encodeURIComponent(place)}`;

function addLink(text, fact, href) {
  const link = make("a", text, $("list"));
  link.href = href;
  if (fact) { link.append(" "); make("small", fact, link); }
  return link;
}

function addContainers(containers) {
  for (const c of containers) addLink(c.name, `${bytes(c.raw_bytes)}, ${c.modified.slice(0, 10)}`, linkTo(c.name));
}

// A button that goes on behind the last name that was shown.
function addMore(isMore, next) {
  if (!isMore) return;
  const button = make("button", "more", $("list"));
  button.onclick = guard(async () => { button.disabled = true; await next(); button.remove(); });
}

function emptyList() {
  $("list").replaceChildren();
  $("place").replaceChildren();
}

// ---- names and matches

async function showList(part, after) {
  const found = await ask(`/api/list?${new URLSearchParams(after ? {after} : {})}`);
  $("site").textContent = found.site;
  if (!after) emptyList();
  addContainers(found.containers.filter(c => !part || c.name.includes(part)));
  if (found.more) addMore(true, () => showList(part, found.containers[found.containers.length - 1].name));
  else if (!$("list").children.length) make("p", "nothing found", $("list"));
}

async function showMatches(query) {
  const found = await ask(`/api/find?${new URLSearchParams({q: query})}`);
  emptyList();
  $("site").textContent = found.site;
  for (const m of found.matches) addLink(m.container, m.dataset, linkTo(m.container, m.dataset));
  const question = asQuestion(query);
  if (question && found.matches.length > 1 && found.matches.every(m => !m.dataset)) addLink("all of these as one dataset", undefined, linkTo(question));
  if (found.more) make("p", "There are more: narrow the search.", $("list"));
  if (!found.matches.length) make("p", "nothing found", $("list"));
  for (const reason of found.why || []) make("p", reason, $("list"));
}

const isExpression = text => /[=<>~]|\b(exists|overlaps|in)\b/.test(text);

// "a = x and b = y" as the name "?a=x&b=y" that opens what is found as one; undefined: it says more than such a name can.
function asQuestion(query) {
  const parts = query.split(/\s+and\s+/), said = parts.map(p => /^:?([A-Za-z_][\w.]*)\s*=\s*(?:"([^"&=?#@%+]+)"|([\w.+-]+))$/.exec(p.trim()));
  return said.every(Boolean) ? "?" + said.map(s => `${s[1]}=${s[2] || s[3]}`).join("&") : undefined;
}

const search = guard(async () => {
  const text = $("search").value.trim();
  if ($("facets").open) showFacets();
  await (isExpression(text) ? showMatches(text) : showList(text));
});

// ---- counts

// A value as the query language has it; undefined: it cannot be written.
function quoted(value) {
  if (value !== "" && Number.isFinite(Number(value))) return value;
  if (/[\x00-\x1f]/.test(value)) return undefined;
  return !value.includes('"') ? `"${value}"` : !value.includes("'") ? `'${value}'` : undefined;
}

function narrow(name, value) {
  const text = $("search").value.trim(), before = !isExpression(text) ? "" : /\bor\b/.test(text) ? `(${text}) and ` : `${text} and `;
  $("search").value = `${before}:${name} = ${value}`;
  if (location.hash.startsWith("#@")) history.replaceState(null, "", "#");
  search();
}

let facetTurn = 0;
const showFacets = guard(async () => {
  const turn = ++facetTurn, text = $("search").value.trim();
  const found = await ask(`/api/facets?${new URLSearchParams({names: FACETS.join(","), q: isExpression(text) ? text : ""})}`);
  if (turn !== facetTurn) return;
  $("facet-list").replaceChildren();
  for (const facet of found.facets) {
    const told = facet.values.filter(v => quoted(v.value) !== undefined);
    if (told.length < (isExpression(text) ? 2 : 1)) continue; // one value narrows nothing
    const box = make("div", undefined, $("facet-list"));
    make("b", facet.name, box);
    for (const v of told) {
      const button = make("button", v.value, box);
      make("small", ` ${v.containers}`, button);
      button.dataset.facet = facet.name;
      button.onclick = () => narrow(facet.name, quoted(v.value));
    }
    if (facet.more) make("small", "and others", box);
  }
  if (!$("facet-list").children.length) make("p", "The usual attributes of archives are the same in all that is found.", $("facet-list"));
  document.body.dataset.facets = "shown";
});

// ---- views

async function showViews() {
  const found = await ask("/api/views/");
  $("site").textContent = found.site;
  $("views").replaceChildren();
  const all = make("a", "all names", $("views"));
  all.href = "#";
  for (const v of found.views) {
    const link = make("a", `${v.name}:`, $("views"));
    link.href = linkToPlace(`${v.name}:`);
    link.title = v.template;
  }
}

// "cmip6:/CMIP6/CMIP" with a link for each level. Levels are escaped as in addresses.
function showWay(place) {
  const parts = place.split("/");
  parts.forEach((part, i) => {
    if (i) $("place").append(" / ");
    const link = make("a", readable(part), $("place"));
    link.href = linkToPlace(parts.slice(0, i + 1).join("/"));
  });
}

function readable(level) {
  try { return decodeURIComponent(level); } catch { return level; }
}

async function showPlace(place, after) {
  const found = await ask(`/api/views/${encodeName(place)}?${new URLSearchParams(after ? {after} : {})}`);
  if (!after) {
    emptyList();
    showWay(place);
    $("facets").open = false;
    $("container").hidden = true;
  }
  if (found.places) {
    for (const p of found.places) addLink(readable(p.name), `${p.containers}`, linkToPlace(`${place}/${p.name}`));
    addMore(found.more, () => showPlace(place, found.places[found.places.length - 1].name));
  } else {
    if (!after && found.containers.length > 1) addLink("all as one dataset", `${found.containers.length} containers`, linkTo(place));
    addContainers(found.containers);
    addMore(found.more, () => showPlace(place, found.containers[found.containers.length - 1].name));
    if (!found.containers.length) make("p", "No container has what this view asks for.", $("list"));
  }
}

addEventListener("DOMContentLoaded", () => { $("facets").ontoggle = () => { if ($("facets").open) showFacets(); }; });
