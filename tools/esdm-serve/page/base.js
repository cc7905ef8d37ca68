// SPDX-License-Identifier: LGPL-3.0-or-later
// What the other scripts use. Names and values of the site are put into the page as text alone, never as HTML.
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
