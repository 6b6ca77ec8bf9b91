(() => {
  "use strict";
  const el = (id) => document.getElementById(id);
  const meta = (name) => document.querySelector(`meta[name=${name}]`).content;
  const csrf = meta("csrf"), person = meta("person"), campaign = meta("campaign");
  const form = el("answer"), number = el("number");
  // One outbox per campaign: another one may be served at this address later, and must not get these answers.
  const store = `evgp outbox ${campaign} ${person}`;
  const WANT = 3;            // rows held: the one on the screen and the next two; the server gives no more

  let items = [];            // rows held; the first is on the screen
  const answered = new Set(); // rows answered on this page, even if the server does not know yet
  let outbox = JSON.parse(sessionStorage.getItem(store) || "[]"); // not yet acknowledged
  for (const entry of outbox) if (entry.body.row !== undefined) answered.add(entry.body.row);
  let sending = false, fetching = false, asked = false, undoing = outbox.some((entry) => entry.path === "/api/undo");
  let over = null;           // why there are no rows
  let gone = false;          // the page is in the back/forward cache
  let progress = null, zoom = 0, wait = 0, retry = 0, leaving = false;

  async function call(path, body, method = "POST") {
    const answer = await fetch(path, {
      method, headers: { "Content-Type": "application/json", "X-CSRF-Token": csrf },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    if (answer.status === 401 && !leaving) { // only once, even if several requests are rejected together
      leaving = true;
      setTimeout(() => { leaving = false; }, 5000);
      location.reload();
    }
    return answer;
  }
  const sentence = async (answer) => (await answer.json().catch(() => ({}))).detail || `error ${answer.status}`;
  const elsewhere = (answer) => answer.status === 409 && answer.headers.has("X-Evgp-Campaign");
  const say = (text) => { el("status").textContent = text; };
  const warn = (text) => { el("alert").hidden = !text; el("alert").textContent = text || ""; };
  function newKey() { // crypto.randomUUID needs TLS
    return Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
  }
  function later(seconds) { clearTimeout(wait); wait = setTimeout(flush, 1000 * seconds); }

  /* An answer goes to the outbox first. It is sent in order, repeatedly and with the same key, until
     the server confirms that it is on disk. It survives a reload of the page. */
  function post(path, body, about) {
    outbox.push({ path, body: { ...body, campaign }, about });
    keep();
    flush();
  }
  function keep() { sessionStorage.setItem(store, JSON.stringify(outbox)); }

  async function flush() {
    if (sending || !outbox.length) return;
    sending = true;
    while (outbox.length) {
      const entry = outbox[0];
      let answer, response;
      try {
        answer = await call(entry.path, entry.body);
        if (answer.ok) response = await answer.json(); // the server may die within its response
      } catch {
        warn(`The server does not respond. ${waiting()} kept in this tab and will be sent when it does; leave the tab open.`);
        later(1);
        break;
      }
      if (answer.status >= 500 || [401, 403, 408, 429].includes(answer.status)) {
        warn(`${await sentence(answer)} ${waiting()} kept in this tab and will be sent again; leave the tab open.`);
        later(1);
        break;
      }
      if (elsewhere(answer)) {
        warn(`The server now serves another campaign. ${waiting()} kept in this tab and will be sent when it serves this one; leave the tab open.`);
        later(5);
        break;
      }
      outbox.shift();
      keep();
      if (answer.ok) {
        warn("");
        saved(entry, response);
      } else {
        rejected(entry, await sentence(answer));
      }
    }
    sending = false;
    fetchItems();
  }
  const waiting = () => (outbox.length === 1 ? "One answer is" : `${outbox.length} answers are`);

  function saved(entry, response) {
    if (entry.path === "/api/undo") {
      undoing = false;
      answered.delete(response.item.row);
      items = [response.item, ...items.filter((item) => item.row !== response.item.row)].slice(0, WANT);
      const what = { skip: "skipped", unsure: "cannot tell" }[response.kind] ?? response.value;
      say(`Undone: ${response.item.name} was ${what}`);
      if (progress) {
        progress.mine--;
        progress.waiting++;
        progress[response.kind === "label" ? "labelled" : "passed"]--;
        count();
      }
      show();
      return;
    }
    say(`Saved: ${entry.about}`);
    document.body.dataset.saved = String(Number(document.body.dataset.saved || 0) + 1);
    if (progress && !response.repeated) {
      progress.mine++;
      progress.waiting = Math.max(0, progress.waiting - 1);
      progress[entry.body.kind === "label" ? "labelled" : "passed"]++;
      count();
    }
  }
  function rejected(entry, why) {
    warn(`Not saved: ${why}`);
    if (entry.path === "/api/undo") { undoing = false; show(); return; }
    answered.delete(entry.body.row);
    fetchItems(true);
  }

  async function fetchItems(always = false) {
    asked = fetching; // what is on its way may not know of the latest answer: then request again
    if (gone || fetching || (!always && items.length >= WANT)) return;
    fetching = true;
    let again = 0;
    try {
      const answer = await call("/api/next", { campaign, count: WANT, holding: items.map((item) => item.row) });
      if (answer.ok) {
        const next = await answer.json();
        // Drop rows that others have by now, but never the one on the screen.
        items = items.filter((item) => item === shown || !next.lost.includes(item.row));
        const known = new Set(items.map((item) => item.row));
        for (const item of next.items) {
          if (known.has(item.row) || answered.has(item.row)) continue;
          items.push(item);
          if (item.image) new Image().src = picture(item);
        }
        progress = next.progress;
        count();
        over = next.done ? "done" : next.problem ? "problem" : next.picking ? "picking" : "held";
        if (over === "problem" && !items.length) warn(`The next batch could not be picked: ${next.problem}`);
        if (!items.length) again = over === "done" ? 5 : 1;
      } else if (!outbox.length) {
        warn(elsewhere(answer) ? "The server now serves another campaign; reload this page to see it." : await sentence(answer));
        again = 3;
      }
    } catch {
      if (!outbox.length) warn("The server does not respond; this page will try again.");
      again = 1;
    }
    fetching = false;
    if (!again && !outbox.length && el("alert").textContent.startsWith("The server")) warn("");
    clearTimeout(retry); // only one retry, however many requests failed
    if (again) retry = setTimeout(() => fetchItems(true), 1000 * again);
    else if (asked) fetchItems();
    show();
  }

  let shown = null;
  const picture = (item) => `/api/images/${item.row}`;
  function show() {
    const item = items[0];
    document.body.dataset.held = items.length;
    form.classList.toggle("waiting", !item || undoing);
    if (item === shown && item !== undefined) return;
    shown = item;
    el("card").hidden = !item;
    el("empty").hidden = Boolean(item);
    if (!item) {
      el("empty").textContent = over === "done"
        ? "All rows are answered. Thank you."
        : over === "held" ? "Other people have the last rows; this page is waiting for them."
          : over === "picking" ? "The next rows are being picked …" : "Loading rows …";
      return;
    }
    el("rank").textContent = item.rank ? `#${item.rank}` : "";
    el("row-name").textContent = item.name;
    el("card").classList.toggle("pictured", item.image);
    el("picture").hidden = !item.image;
    if (item.image) {
      enlarge(0);
      el("image").classList.remove("tiny");
      el("image").alt = `Image ${item.name}`;
      el("image").src = picture(item);
    }
    el("cells").replaceChildren(...item.cells.map(field));
    el("card").scrollTop = 0;
    document.body.dataset.row = item.row;
    if (number) { number.value = ""; number.focus({ preventScroll: true }); }
  }
  function field(cell) {
    const box = document.createElement("div"), name = document.createElement("dt"), text = document.createElement("dd");
    box.className = cell.kind;
    name.textContent = cell.name;
    text.textContent = cell.kind === "missing" ? "missing" : cell.text;
    text.dir = "auto";
    box.append(name, text);
    return box;
  }
  function count() {
    const picked = progress.labelled + progress.passed + progress.waiting;
    el("bar").max = Math.max(1, picked);
    el("bar").value = progress.labelled + progress.passed;
    el("count").textContent = `${progress.labelled} labelled, ${progress.waiting} waiting · ${progress.mine} by you`;
  }
  function enlarge(to) {
    zoom = to;
    el("view").className = ["view", "view twice", "view fourfold"][zoom];
    el("zoom").setAttribute("aria-pressed", String(zoom > 0));
    el("zoom-says").textContent = ["Enlarge", "2×", "4×"][zoom];
    if (zoom) { // keep the centre in view
      const view = el("view");
      view.scrollLeft = (view.scrollWidth - view.clientWidth) / 2;
      view.scrollTop = (view.scrollHeight - view.clientHeight) / 2;
    }
  }
  el("image").addEventListener("load", () => {
    const image = el("image");
    image.classList.toggle("tiny", Math.max(image.naturalWidth, image.naturalHeight) <= 64);
  });

  function answer(kind, value) {
    const item = items[0];
    if (!item || undoing) return;
    items.shift();
    answered.add(item.row);
    const body = { row: item.row, kind, key: newKey() };
    if (kind === "label") body.value = value;
    const said = kind === "label" ? String(value) : kind === "skip" ? "skipped" : "cannot tell";
    show();
    fetchItems();
    post("/api/answers", body, `${item.name} ${said}`);
  }
  function undo() {
    if (undoing) return;
    undoing = true;
    show();
    form.classList.add("waiting");
    post("/api/undo", { key: newKey() });
  }
  const ambiguous = (text) => /^[+-]?[\d.,]+(e[+-]?\d+)?$/i.test(text)
    && (/,\d{3}(?!\d)/.test(text) || text.replace(/[^.,]/g, "").length > 1);
  function submitNumber() {
    const typed = number.value.trim(), text = typed.replace(",", ".");
    const valid = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) && Number.isFinite(Number(text));
    if (!valid || ambiguous(typed)) {
      warn(ambiguous(typed)
        ? `${typed} is ambiguous; use a decimal point and no thousands separator, for example 1500 or 1.5.`
        : "Enter a number, for example 2.5.");
      number.setAttribute("aria-invalid", "true");
      return;
    }
    warn("");
    number.removeAttribute("aria-invalid");
    answer("label", Number(text));
  }

  form.addEventListener("submit", (event) => { event.preventDefault(); if (number) submitNumber(); });
  form.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.value !== undefined) answer("label", button.dataset.value);
    else if (button.dataset.kind) answer(button.dataset.kind);
    else if (button.id === "undo") undo();
  });
  el("zoom").addEventListener("click", () => enlarge((zoom + 1) % 3));
  el("image").addEventListener("click", () => enlarge((zoom + 1) % 3));
  el("leave").addEventListener("click", async () => {
    if (outbox.length) { warn("Some answers are not saved yet; wait until they are saved."); return; }
    await call("/api/session", undefined, "DELETE").catch(() => {});
    location.assign("/");
  });
  el("keys").addEventListener("change", () => form.classList.toggle("keyless", !el("keys").checked));

  const byKey = new Map();
  for (const button of form.querySelectorAll("button[data-key]")) {
    if (button.dataset.key) byKey.set(button.dataset.key, button.dataset.value);
  }
  document.addEventListener("keydown", (event) => {
    if (!el("keys").checked || event.repeat || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const typing = event.target instanceof HTMLInputElement && event.target.type !== "checkbox";
    const key = event.key.toLowerCase();
    if (!typing && byKey.has(key)) { event.preventDefault(); answer("label", byKey.get(key)); return; }
    const command = { u: undo, s: () => answer("skip"), c: () => answer("unsure"), z: () => enlarge((zoom + 1) % 3) }[key];
    if (command && (key !== "z" || !el("picture").hidden)) { event.preventDefault(); command(); }
  });
  window.addEventListener("beforeunload", (event) => { if (outbox.length) event.preventDefault(); });
  window.addEventListener("pagehide", () => { // release the rows, so that others need not wait until the leases expire
    gone = true;
    const rows = items.map((item) => item.row);
    items = [];
    over = null;
    show();
    if (rows.length) {
      fetch("/api/release", {
        method: "POST", keepalive: true, headers: { "Content-Type": "application/json", "X-CSRF-Token": csrf },
        body: JSON.stringify({ campaign, rows }),
      }).catch(() => {});
    }
  });
  window.addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    gone = false;
    flush();
    fetchItems(true);
  });
  setInterval(() => { if (!document.hidden) fetchItems(true); }, 60000); // renews the leases

  const others = Object.keys(sessionStorage).filter((key) => key.startsWith("evgp outbox ") && key !== store);
  const kept = others.reduce((sum, key) => sum + JSON.parse(sessionStorage.getItem(key)).length, 0);
  if (kept) warn(`This tab holds ${kept} unsent ${kept === 1 ? "answer" : "answers"} for another campaign or person. Leave it open, and sign in there again to send ${kept === 1 ? "it" : "them"}.`);

  flush();
  fetchItems(true);
})();
