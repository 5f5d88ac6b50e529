"use strict";
// Names and messages are hostile input: everything is set as text, never as markup. The server's headers enforce it.

const POLL_MS = 5000, RETRY_MS = 2000, ANSWER_MS = 12000;
const SHOWN = 300;  // lines of the table before "show all"
const TRIES = 6;  // at once, where a replica answers that does not lead: behind a Service the next answer may be another's
const STATES = { stalled: "needs you", problem: "has a problem", waiting: "not ready", works: "works", idle: "paused or done" };
const RANK = Object.keys(STATES);
const STYLE = { stalled: "bad", problem: "bad", waiting: "warn", works: "good", idle: "soft" };
const byId = id => document.getElementById(id);

// ---- text

const number = value => value === null || value === undefined ? "-" : Math.round(value).toLocaleString("en");
const percent = value => value === null || value === undefined ? "-" : value + " %";
const clock = seconds => new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ") + " UTC";

function span(seconds) {
  if (seconds === null || seconds === undefined) return "-";
  let left = Math.max(0, Math.floor(seconds));
  const units = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];
  for (let place = 0; place < units.length; place++) {
    const [unit, size] = units[place];
    if (left < size && size > 1) continue;
    const rest = size > 1 ? Math.floor(left % size / units[place + 1][1]) : 0;
    return Math.floor(left / size) + unit + (rest ? rest + units[place + 1][0] : "");
  }
  return "0s";
}

// ---- elements

function make(tag, text, name) {
  const node = document.createElement(tag);
  if (text !== undefined && text !== null) node.textContent = text;
  if (name) node.className = name;
  return node;
}

function draw(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const tell = (node, text) => { if (node.textContent !== text) node.textContent = text; };
const aim = (node, href) => { if (node.getAttribute("href") !== href) node.setAttribute("href", href); };
const names = (...found) => found.filter(Boolean).join(" ");

// Changes `old` until it shows what `made` shows, and keeps every node that can stay: with it stay the focus of the
// keyboard and a selection.
function settle(old, made) {
  if (old.nodeName !== made.nodeName) { old.replaceWith(made); return; }
  if (old.nodeType === Node.TEXT_NODE) { if (old.data !== made.data) old.data = made.data; return; }
  for (const { name } of [...old.attributes]) if (!made.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of [...made.attributes]) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  const before = [...old.childNodes], after = [...made.childNodes];
  after.forEach((next, place) => { if (before[place]) settle(before[place], next); else old.append(next); });
  before.slice(after.length).forEach(node => node.remove());
}

// ---- what is shown: the fragment of the address has it, so that a link or a reload shows the same

const place = () => new URLSearchParams(location.hash.slice(1));
let last = null;  // the last document
let came = 0;  // when it came, by this machine's clock that never jumps
let failure = "";  // why the last look failed
let version = "", timer = 0, asked = 0, showAll = false, seenObject = "", backFrom = "";
const now = () => last.time + (performance.now() - came) / 1000;

function change(values) {
  const next = place();
  for (const [name, value] of Object.entries(values)) if (value) next.set(name, value); else next.delete(name);
  history.replaceState(null, "", "#" + next);
  show();
}

function link(name, namespace) {
  const next = place();
  next.set("object", namespace + "/" + name);
  return "#" + next;
}

// ---- the fleet

const trouble = row => RANK.indexOf(row.state) * 1e12 - (row.lag || 0);
const COLUMNS = [
  ["Name", "name", row => row.name, row => row.name],
  ["Namespace", "namespace", row => row.namespace, row => row.namespace],
  ["State", "state", trouble, row => STATES[row.state], row => STYLE[row.state]],
  ["Phase", "phase", row => row.phase, row => row.phase || "-"],
  ["#Workers", "workers", row => row.readyWorkers, row => number(row.readyWorkers) + " of " + row.wantedWorkers,
    row => row.readyWorkers !== null && row.readyWorkers < row.wantedWorkers ? "warn" : ""],
  ["#Channels", "channels", row => row.open, row => number(row.open) + (row.unowned ? ", " + row.unowned + " unowned" : ""),
    row => row.unowned ? "warn" : ""],
  ["#Lag", "lag", row => row.lag, row => span(row.lag), row => row.lagStyle],
  ["#Base", "base", row => row.base, row => percent(row.base)],
  ["#Rows/s", "rate", row => row.rate, row => number(row.rate)],
  ["#Retention", "retention", row => row.retention, row => percent(row.retention), row => row.retentionStyle],
  ["#Looked at", "observed", row => row.observed, age, row => isOld(row) ? "bad" : "soft"],
  ["Why", "why", row => row.why, row => row.why + (row.elsewhere ? " (served by the operator of Lease " + row.elsewhere + ")" : "")],
];

const KIND = { Name: "text", Namespace: "text", Why: "text", State: "brief" };  // how cells of a column break

function age(row) {
  const text = row.observed === null ? "never" : span(now() - row.observed) + " ago";
  return row.looked || row.elsewhere ? text : "not yet; status: " + text;
}

// an operator that has just begun to lead looks at its objects one after the other
function isOld(row) {
  const since = row.looked ? row.observed : last.historySince;
  return !row.elsewhere && !row.isDeleting && now() - since > last.oldSeconds;
}

function sorted(rows, chosen) {
  const [, key, value] = COLUMNS.find(column => column[1] === (chosen.get("sort") || "state")) || COLUMNS[2];
  const sign = chosen.get("down") ? -1 : 1;
  const keyed = rows.map(row => [value(row), row]);
  const compare = new Intl.Collator("en").compare;
  keyed.sort(([a, left], [b, right]) => {
    const aEmpty = a === null || a === undefined || a === "", bEmpty = b === null || b === undefined || b === "";
    if (aEmpty !== bEmpty) return aEmpty ? 1 : -1;  // what is unknown is last, in whichever order
    const order = aEmpty ? 0 : typeof a === "number" ? a - b : compare(a, b);
    return sign * order || compare(left.namespace, right.namespace) || compare(left.name, right.name);
  });
  return keyed.map(pair => pair[1]);
}

function chosenRows(rows, chosen) {
  const text = (chosen.get("text") || "").toLowerCase(), namespace = chosen.get("namespace"), state = chosen.get("state");
  return rows.filter(row => (!namespace || row.namespace === namespace)
    && (!state || row.state === state || state === "trouble" && (row.state === "stalled" || row.state === "problem"))
    && (!text || (row.namespace + "/" + row.name + " " + row.why).toLowerCase().includes(text)));
}

const lines = new Map();  // namespace/name -> its line of the table

function lineOf(row) {
  const key = row.namespace + "/" + row.name;
  let line = lines.get(key);
  if (!line) {
    line = make("tr");
    for (const [title] of COLUMNS) {
      const cell = make("td");
      cell.dataset.title = title.replace("#", "");
      line.append(cell);
    }
    line.cells[0].append(make("a", row.name));
    lines.set(key, line);
  }
  COLUMNS.forEach(([title, , , text, style], index) => {
    const cell = line.cells[index], shown = text(row);
    if (index === 0) aim(cell.firstChild, link(row.name, row.namespace));
    else tell(cell, shown);
    const name = names(KIND[title] || title.startsWith("#") && "number", style && style(row), !shown && "empty");
    if (cell.className !== name) cell.className = name;
  });
  return line;
}

function showFleet() {
  const chosen = place(), rows = last.objects || [];
  fillFilters(rows, chosen);
  const found = sorted(chosenRows(rows, chosen), chosen);
  const shown = showAll ? found : found.slice(0, SHOWN);
  const body = byId("objects").tBodies[0];
  const wanted = shown.map(lineOf), there = [...body.rows], focused = document.activeElement;
  if (wanted.length !== there.length || wanted.some((line, index) => line !== there[index])) {
    body.replaceChildren(...wanted);
    if (focused !== document.activeElement && body.contains(focused)) focused.focus({ preventScroll: true });
  }
  const known = new Set(rows.map(row => row.namespace + "/" + row.name));
  for (const key of lines.keys()) if (!known.has(key)) lines.delete(key);
  const counted = RANK.map(state => [rows.filter(row => row.state === state).length, STATES[state]]);
  const parts = counted.filter(pair => pair[0]).map(([count, text]) => text + " " + number(count));
  const some = found.length < rows.length ? ". " + number(found.length) + " match" : "";
  tell(byId("count"), rows.length ? number(rows.length) + (rows.length === 1 ? " object: " : " objects: ") + parts.join(", ") + some
    : last.leads ? "No objects." : "");
  byId("more").hidden = shown.length === found.length;
  tell(byId("more"), "Show all " + number(found.length) + ", not only the first " + SHOWN);
  byId("objects").hidden = !rows.length;
  for (const head of byId("objects").tHead.rows[0].cells) {
    const isSorted = head.dataset.key === (chosen.get("sort") || "state");
    head.setAttribute("aria-sort", !isSorted ? "none" : chosen.get("down") ? "descending" : "ascending");
  }
}

function options(select, pairs, value) {
  const wanted = JSON.stringify(pairs);
  if (select.dataset.shown !== wanted) {
    select.dataset.shown = wanted;
    select.replaceChildren(...pairs.map(([key, text]) => { const option = make("option", text); option.value = key; return option; }));
  }
  if (select.value !== value) select.value = value;
}

function fillFilters(rows, chosen) {
  const found = new Set(rows.map(row => row.namespace));
  if (chosen.get("namespace")) found.add(chosen.get("namespace"));
  options(byId("namespace"), [["", "all"], ...[...found].sort().map(name => [name, name])], chosen.get("namespace") || "");
  options(byId("state"), [["", "all"], ["trouble", "in trouble"], ...Object.entries(STATES)], chosen.get("state") || "");
  options(byId("order"), COLUMNS.map(column => [column[1], column[0].replace("#", "")]), chosen.get("sort") || "state");
  const box = byId("text"), text = chosen.get("text") || "";
  if (document.activeElement !== box && box.value !== text) box.value = text;
}

// ---- one object

function list(texts) {
  const found = make("ul");
  found.append(...texts.map(text => make("li", text)));
  return found;
}

function steps(found) {
  const box = make("div", undefined, "steps");
  for (const step of found) {
    box.append(make("p", step.text));
    for (const command of step.commands) { const line = make("code", command); line.tabIndex = 0; box.append(line); }
  }
  return box;
}

function grid(titles, rows) {
  const table = make("table"), head = table.createTHead().insertRow(), body = table.createTBody();
  for (const title of titles) {
    const cell = make("th", title.replace("#", ""), title.startsWith("#") ? "number" : "");
    cell.scope = "col";
    head.append(cell);
  }
  for (const row of rows) {
    const line = body.insertRow();
    row.forEach((content, index) => {
      const [inner, name] = Array.isArray(content) ? content : [content, ""];
      const isEmpty = inner === "" || inner === null;
      const kind = titles[index].startsWith("#") ? "number" : index === row.length - 1 ? "text" : "brief";
      const cell = make("td", undefined, names(kind, name, isEmpty && "empty"));
      if (!isEmpty) cell.append(inner);  // a text becomes a text node
      cell.dataset.title = titles[index].replace("#", "");
      line.append(cell);
    });
  }
  return table;
}

function bar(lag, full, style) {
  if (lag === null) return "";
  const width = lag ? Math.max(1, Math.min(100, 100 * lag / full)) : 0;
  return draw("svg", { class: "bar " + style, viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    draw("rect", { width: String(width), height: "10" }));
}

function memory() {
  const kept = Math.max(0, now() - last.historySince);
  if (kept >= last.historySeconds) return "This operator keeps the last " + span(last.historySeconds) + ", in memory only.";
  return "This operator keeps it in memory only, since it began to lead " + span(kept) + " ago: older figures are not known.";
}

function sparkline(found) {
  const lags = found.lags, known = lags.filter(lag => lag !== null), box = make("div");
  if (!known.length) {
    box.append(make("p", "No lag is known yet. " + memory(), "soft"));
    return box;
  }
  const most = Math.max(...known), limit = found.lagLimit && found.lagLimit <= 2 * most ? found.lagLimit : 0;
  const top = Math.max(1, most, limit), present = span(lags[lags.length - 1]), length = span(lags.length * found.lagSeconds);
  const x = index => (lags.length > 1 ? 240 * index / (lags.length - 1) : 240).toFixed(1), y = lag => (58 - 54 * lag / top).toFixed(1);
  const label = "Lag of the last " + length + ": now " + present + ", at most " + span(most);
  const picture = draw("svg", { class: "spark", viewBox: "0 0 240 60", preserveAspectRatio: "none", role: "img", "aria-label": label });
  let run = [];
  const end = () => {
    if (run.length > 1) picture.append(draw("polyline", { points: run.map(([index, lag]) => x(index) + "," + y(lag)).join(" ") }));
    if (run.length === 1) picture.append(draw("circle", { cx: x(run[0][0]), cy: y(run[0][1]), r: "1.5" }));
    run = [];
  };
  lags.forEach((lag, index) => { if (lag === null) end(); else run.push([index, lag]); });
  end();
  if (limit) picture.append(draw("line", { x1: "0", x2: "240", y1: y(limit), y2: y(limit) }));
  const words = ["Now " + present + ", at most " + span(most) + " in " + length + "."];
  if (limit) words.push("The broken line is the limit, " + span(limit) + ".");
  if (known.length < lags.length) words.push("Gaps are times in which it was not known.");
  box.append(picture, make("p", [...words, memory()].join(" "), "soft"));
  return box;
}

// What one worker reads at a time: a channel of a tunnel, or a shard of a stream.
function counted(count, part) {
  return count + " " + part + (count === 1 ? "" : "s");
}

function capital(part) {
  return part[0].toUpperCase() + part.slice(1);
}

function holder(found, channels) {
  const box = make("div", undefined, "holder");
  const head = make("h4", (found.isForeign ? "client " : "") + found.name);
  const facts = [counted(found.total, channels.part)];
  if (found.rate !== null) facts.push(number(found.rate) + " rows/s");
  if (found.busy !== null) facts.push("busy " + found.busy + " %");
  if (found.ready === false) facts.push("not ready");
  if (found.isForeign) facts.push("no worker that the status names: a former one, or a foreign client");
  else if (found.reported === null) {
    facts.push("gave no answer: by " + (channels.part === "shard" ? "its leases" : "the service's description"));
  }
  else facts.push("answered " + span(now() - found.reported) + " ago");
  box.append(head, make("p", facts.join("; "), found.reported === null ? "warn" : "soft"));
  if (found.error) box.append(make("p", found.error, "bad"));
  if (found.channels.length) {
    box.append(grid([capital(channels.part), "Type", "State", "#Lag", "", "#Rows", "Error"], found.channels.map(each => {
      const id = make("span", each.id.slice(0, channels.idWidth), "id");
      id.title = each.id;
      return [id, each.type || "-", [each.state, each.state === "OPEN" ? "" : "warn"], [span(each.lag), each.lagStyle],
        bar(each.lag, channels.full, each.lagStyle), number(each.rows), [each.error, "bad"]];
    })));
  }
  return box;
}

function channelsOf(channels) {
  const box = make("div"), counts = channels.counts;
  if (counts.total === null) box.append(make("p", "The status has no " + channels.part + "s.", "soft"));
  else {
    const parts = ["open", "closing", "terminated", "unowned"].filter(kind => counts[kind]).map(kind => counts[kind] + " " + kind);
    const total = counted(counts.total, channels.part);
    box.append(make("p", [total, parts.join(", ")].filter(Boolean).join(": ") + ".", counts.unowned ? "warn" : ""));
  }
  box.append(...channels.holders.map(found => holder(found, channels)));
  const rest = channels.hidden ? " " + number(channels.hidden) + " " + channels.part + "s with less lag are not listed." : "";
  if (channels.holders.length) box.append(make("p", "A full bar is " + span(channels.full) + " of lag." + rest, "soft"));
  return box;
}

function conditionsOf(conditions) {
  return grid(["Condition", "Status", "Reason", "For", "Message and way out"], conditions.map(each => {
    const words = make("div");
    if (each.message) words.append(make("p", each.message));
    if (each.steps.length) words.append(steps(each.steps), make("p", each.page + " explains it.", "soft"));
    const since = each.since === null ? "-" : span(now() - each.since);
    return [each.type, [each.status, each.style], each.reason, since, words.childNodes.length ? words : ""];
  }));
}

function showObject(name) {
  byId("back").setAttribute("href", (() => { const next = place(); next.delete("object"); return "#" + next; })());
  tell(byId("object-title"), name);
  const made = make("div"), found = last.object;
  made.id = "detail";
  if (found) {
    const { line } = found;
    const state = make("p"), time = line.observed === null ? "" : " (" + clock(line.observed) + ")";
    const looked = line.elsewhere ? "served by the operator of Lease " + line.elsewhere + ", whose console has its figures; status: "
      : "looked at: ";
    state.append(make("strong", STATES[line.state], STYLE[line.state]), " " + (line.phase || "no phase") + "; ",
      make("span", looked + age(line) + time, isOld(line) ? "bad" : "soft"));
    made.append(make("p", found.title), state);
    const part = (title, ...content) => made.append(make("h3", title), ...content);
    part("Now", list(found.now));
    part("Waits for", list(found.waits));
    part("Next", steps(found.next));
    part("Lag", sparkline(found));
    part(capital(found.channels.part) + "s over workers", channelsOf(found.channels));
    part("Conditions", conditionsOf(found.conditions));
    const decisions = found.decisions.map(each => [span(now() - each.time), each.reason, each.text]);
    part("Last decisions", decisions.length ? grid(["Ago", "Decision", "With its numbers"], decisions) : make("p", "None is known."));
  } else if (last.leads && last.object === null) {
    made.append(make("p", "This operator knows no such object: it was deleted, or never was."));
  }
  settle(byId("detail"), made);
}

// ---- the process, and what is wrong with what is shown

function alarm() {
  const parts = [];
  if (failure) {
    const since = last ? "since " + clock(last.time) + ", and what is shown is as old as that" : "yet";
    parts.push("No answer from the operator " + since + " (" + failure + "). It is asked again.");
  } else if (last && !last.leads && !last.state.startsWith("standing by")) {
    parts.push("This operator starts or ends, and knows no objects now.");
  } else if (last && !last.leads) {
    const where = last.namespace ? " -n " + last.namespace : "";
    parts.push("This replica, " + last.pod + ", is " + last.state + ": it knows no objects. Open the page of the one that leads"
      + (last.holder ? ": kubectl" + where + " port-forward pod/" + last.holder + " " + last.port : "."));
  } else if (last && last.stale) parts.push("The API server does not answer this operator (" + last.stale + "): what is shown may be old.");
  else if (last && last.objects) {
    const old = last.objects.filter(isOld).length;
    const many = old === 1 ? "1 object has" : number(old) + " objects have";
    if (old) parts.push(many + " not been looked at for " + span(last.oldSeconds) + ", so the figures are old: see the column Looked at.");
  }
  const text = parts.join(" ");
  byId("alarm").hidden = !text;
  tell(byId("alarm-text"), text);
  // not read out: it changes every second
  tell(byId("alarm-age"), failure && last ? "The last answer came " + span((performance.now() - came) / 1000) + " ago." : "");
  document.body.classList.toggle("old", Boolean(failure || last && last.stale));
}

function show() {
  alarm();
  if (!last) return;
  tell(byId("process"), last.pod + ", " + last.state + ", version " + last.version + "; as of " + clock(last.time));
  const name = place().get("object");
  byId("fleet").hidden = Boolean(name);
  byId("object").hidden = !name;
  document.title = (failure ? "no answer: " : "") + (name ? name + " - ots-tunnel" : "ots-tunnel");
  if (name) { if (last.object !== undefined && last.asked === name) showObject(name); else tell(byId("object-title"), name); }
  else if (last.objects !== undefined) {
    showFleet();
    if (backFrom) focusOn(backFrom);
    backFrom = "";
  } else {
    // the lines that are there are older than the last answer, which was about one object
    byId("objects").hidden = byId("more").hidden = true;
    tell(byId("count"), "asking the operator");
  }
}

async function look() {
  clearTimeout(timer);
  const name = place().get("object") || "", mine = ++asked;
  let pause = POLL_MS;
  try {
    let answer, found;
    for (let left = TRIES; left > 0; left--) {
      const signal = AbortSignal.timeout(ANSWER_MS);
      answer = await fetch(name ? "state?object=" + encodeURIComponent(name) : "state", { signal, credentials: "omit" });
      found = await answer.json();
      if (mine !== asked) return;  // another place was asked for meanwhile
      if (!answer.ok || found.leads || !found.state.startsWith("standing by")) break;
    }
    if (!answer.ok) throw new Error(found.failure || "status " + answer.status);
    if (version && version !== found.version) { location.reload(); return; }
    version = found.version;
    last = Object.assign(found, { asked: name });
    came = performance.now();
    failure = "";
  } catch (error) {
    if (mine !== asked) return;
    failure = error.name === "TimeoutError" ? "nothing within " + ANSWER_MS / 1000 + " s" : error.message;
    pause = RETRY_MS;
  }
  show();
  timer = setTimeout(look, document.hidden ? 60000 : pause);
}

function moved() {
  const name = place().get("object") || "";
  if (last && last.asked !== name) {
    // what is there is of another place: nothing of it may pass for this one
    byId("detail").replaceChildren(make("p", "asking the operator", "soft"));
  }
  if (!name) backFrom = seenObject;
  seenObject = name;
  show();
  if (name) byId("object-title").focus();
  look();
}

function focusOn(name) {
  const line = lines.get(name);
  if (line && line.isConnected) line.querySelector("a").focus(); else byId("text").focus();
}

// ---- what a reader does

for (const [title, key] of COLUMNS) {
  const cell = make("th", undefined, title.startsWith("#") ? "number" : ""), button = make("button", title.replace("#", ""));
  cell.scope = "col";
  cell.dataset.key = key;
  button.type = "button";
  button.addEventListener("click", () => {
    const isSame = (place().get("sort") || "state") === key;
    change({ sort: key, down: isSame && !place().get("down") ? "1" : "" });
  });
  cell.append(button);
  byId("objects").tHead.rows[0].append(cell);
}
byId("filters").addEventListener("submit", event => event.preventDefault());
byId("text").addEventListener("input", () => change({ text: byId("text").value }));
byId("namespace").addEventListener("change", () => change({ namespace: byId("namespace").value }));
byId("state").addEventListener("change", () => change({ state: byId("state").value }));
byId("order").addEventListener("change", () => change({ sort: byId("order").value, down: "" }));
byId("more").addEventListener("click", () => { showAll = true; show(); });
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key === "/" && !isTyping && !byId("fleet").hidden) { event.preventDefault(); byId("text").focus(); }
  if (event.key === "Escape" && !byId("object").hidden) location.hash = byId("back").getAttribute("href");
  else if (event.key === "Escape" && event.target === byId("text")) { byId("text").value = ""; change({ text: "" }); }
});
addEventListener("hashchange", moved);
document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
// ages go on between two answers, and without one
setInterval(() => { if (!document.hidden) show(); }, 1000);
moved();
