
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const el = (id) => document.getElementById(id);
  const k = data.ids.length;
  const tip = el("tip");
  const looks = typeof pictures === "undefined" ? null : pictures(data, el);

  const number = (v, digits = 4) => {
    if (v === null || v === undefined) return "–";
    const size = Math.abs(v);
    if (size === 0) return "0";
    if (size < 1e-4 || size >= 1e7) return v.toExponential(digits - 1).replace(/\.?0+e/, "e").replace("e+", "e");
    const places = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
    return v.toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places });
  };
  const down = (share) => (Math.floor(1000 * share + 1e-9) / 10).toFixed(1).replace(/\.0$/, "");
  const percent = (v) => v + "%";

  function showTip(text, x, y, picture) {
    tip.replaceChildren(...(picture ? [picture] : []), text);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const room = document.documentElement.clientWidth;
    const left = x + 16 + box.width > room ? x - 16 - box.width : x + 16;
    tip.style.left = Math.max(8, left) + "px";
    tip.style.top = Math.max(8, y - box.height - 12) + "px";
  }

  /* A figure that is read along its x axis: pointer, touch and arrow keys find the step, `draw`
     marks it and returns what the tip says. */
  function along(svg, last, draw, nearest) {
    let step = last;
    const show = (to, x, y) => {
      step = Math.min(last, Math.max(0, to));
      svg.classList.add("live");
      const said = draw(step);
      const box = svg.getBoundingClientRect();
      showTip(said.text, x ?? box.left + (box.width * said.x) / 100, y ?? box.top + (box.height * said.y) / 100);
    };
    const hide = () => { svg.classList.remove("live"); tip.hidden = true; };
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      show(nearest((event.clientX - box.left) / box.width), undefined, event.clientY);
    });
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("blur", hide);
    svg.addEventListener("keydown", (event) => {
      const moves = { ArrowRight: step + 1, ArrowLeft: step - 1, Home: 0, End: last };
      if (event.key === "Escape") hide();
      if (!(event.key in moves)) return;
      event.preventDefault();
      show(moves[event.key]);
    });
  }

  const budget = el("budget-plot");
  if (budget) {
    const [hair] = budget.querySelectorAll(".hair");
    const [ours] = budget.querySelectorAll(".ours-dot");
    const [floor] = budget.querySelectorAll(".floor-dot");
    if (!data.floor) floor.remove();
    const place = (dot, x, v) => {
      dot.setAttribute("cx", percent(x));
      dot.setAttribute("cy", percent(100 - (100 * v) / data.high));
    };
    along(budget, k, (j) => {
      const x = (100 * j) / k;
      const left = j ? data.left[j - 1] : data.start;
      const lines = [`${j} ${j === 1 ? "label" : "labels"}`, `variance left ${number(left, 5)}`];
      hair.setAttribute("x1", percent(x));
      hair.setAttribute("x2", percent(x));
      place(ours, x, left);
      if (data.floor) {
        const best = j ? data.floor[j - 1] : data.start;
        place(floor, x, best);
        if (j) lines.push(`no choice below ${number(best, 5)}`);
        if (j && data.share[j - 1] !== null) lines.push(`at least ${down(data.share[j - 1])} % of the best possible`);
      }
      if (j) lines.push(`pick ${j}: ${data.ids[j - 1]}`);
      return { text: lines.join("\n"), x, y: 100 - (100 * left) / data.high };
    }, (at) => Math.round(at * k));
  }

  const spread = el("spread-plot");
  if (spread) {
    const { edges, before, after } = data.histogram;
    const bin = spread.querySelector(".bin");
    const bins = before.length;
    along(spread, bins - 1, (i) => {
      bin.setAttribute("x", percent((100 * i) / bins));
      bin.setAttribute("width", percent(100 / bins));
      const text = `variance ${number(edges[i], 3)} to ${number(edges[i + 1], 3)}\nbefore: ${before[i]}\nafter: ${after[i]}`;
      return { text, x: (100 * (i + 1)) / bins, y: 40 };
    }, (at) => Math.floor(at * bins));
  }

  /* one pick in the light at a time, on the map, in the table and in the inspector */
  const map = el("map-plot");
  const table = el("picks");
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const scroll = el("scroll");
  let current = -1;

  function light(i, from) {
    if (i < 0 || i === current) return;
    if (current >= 0) rows[current].classList.remove("on");
    current = i;
    rows[i].classList.add("on");
    const [x, y] = data.at[i];
    const [circle, text] = map.querySelector(".focus").children;
    circle.setAttribute("cx", percent(x));
    circle.setAttribute("cy", percent(y));
    circle.setAttribute("r", i < 999 ? 13 : 17);
    text.setAttribute("x", percent(x));
    text.setAttribute("y", percent(y));
    text.textContent = i + 1;
    map.classList.add("live");
    inspect(i);
    if (looks) looks.light(i, from);
    if (from === "table") return;
    const head = table.tHead.offsetHeight;
    const top = rows[i].offsetTop;
    if (top < scroll.scrollTop + head || top + rows[i].offsetHeight > scroll.scrollTop + scroll.clientHeight) {
      scroll.scrollTop = top - head - scroll.clientHeight / 3;
    }
  }

  function inspect(i) {
    el("which-rank").textContent = i + 1;
    el("which-id").textContent = data.ids[i];
    el("which-gain").textContent = number(data.gains[i]);
    if (el("which-left")) el("which-left").textContent = number(data.left[i]);
    if (el("which-cost")) el("which-cost").textContent = (+data.costs[i].toPrecision(6)).toLocaleString("en", { maximumFractionDigits: 9 });
    if (!el("which-cells")) return;
    [...el("which-cells").children].forEach((line, c) => { line.lastElementChild.textContent = data.cells[i][c]; });
  }

  const clipped = (text) => (text.length > 120 ? `${text.slice(0, 119)}…` : text);

  function tipFor(i) {
    const box = map.getBoundingClientRect();
    const few = data.shown.slice(0, 3).map((c) => `${data.columns[c]}: ${clipped(data.cells[i][c])}`);
    const text = [`${i + 1} · ${data.ids[i]}`, `gain ${number(data.gains[i])}`, ...few].join("\n");
    showTip(text, box.left + (box.width * data.at[i][0]) / 100, box.top + (box.height * data.at[i][1]) / 100 - 6, looks && looks.pick(i));
  }

  function nearest(event, places, within) {
    const box = map.getBoundingClientRect();
    const found = { at: -1, reach: within ** 2 };
    places.forEach(([x, y], i) => {
      const dx = event.clientX - box.left - (box.width * x) / 100;
      const dy = event.clientY - box.top - (box.height * y) / 100;
      const reach = dx * dx + dy * dy;
      if (reach < found.reach) Object.assign(found, { at: i, reach });
    });
    return found;
  }

  /* with pictures the pool answers too, where no pick is nearer */
  function point(event, pick) {
    const found = nearest(event, looks.places, pick.at < 0 ? 14 : Math.max(0, Math.sqrt(pick.reach) - 8));
    looks.spot(found.at);
    if (found.at < 0) return false;
    showTip(`${data.sheet.names[found.at]}\nin the pool, not picked`, event.clientX, event.clientY - 6, looks.point(found.at));
    return true;
  }

  if (k) {
    map.querySelectorAll("title").forEach((title) => title.remove());
    map.addEventListener("pointermove", (event) => {
      const pick = nearest(event, data.at, 24);
      if (looks && point(event, pick)) return;
      light(pick.at, "map");
      if (pick.at < 0) tip.hidden = true; else tipFor(pick.at);
    });
    map.addEventListener("pointerleave", () => { tip.hidden = true; if (looks) looks.spot(-1); });
    map.addEventListener("blur", () => { tip.hidden = true; });
    map.addEventListener("keydown", (event) => {
      const moves = { ArrowRight: current + 1, ArrowDown: current + 1, ArrowLeft: current - 1, ArrowUp: current - 1, Home: 0, End: k - 1 };
      if (event.key === "Escape") tip.hidden = true;
      if (!(event.key in moves)) return;
      event.preventDefault();
      light(Math.min(k - 1, Math.max(0, moves[event.key])), "map");
      tipFor(current);
    });
    if (looks) looks.listen((i) => {
      light(i, "gallery");
      return [`${i + 1} · ${data.ids[i]}`, `gain ${number(data.gains[i])}`].join("\n");
    }, showTip, () => { tip.hidden = true; });
    body.addEventListener("pointerover", (event) => {
      const row = event.target.closest("tr");
      if (row) light(rows.indexOf(row), "table");
    });
  }

  /* the table: numbers to the right, a click on a head sorts, and the columns that were left out */
  const cell = {
    rank: (i) => i, id: (i) => data.ids[i], gain: (i) => data.gains[i],
    left: (i) => data.left[i], cost: (i) => data.costs[i],
  };
  const read = (key) => cell[key] || ((i) => data.cells[i][key]);
  const values = (key) => {
    const found = rows.map((_, i) => read(key)(i));
    const numbers = found.map((v) => (v === "" || v === null ? NaN : Number(v)));
    return found.every((v, i) => v === "" || v === null || !Number.isNaN(numbers[i])) ? numbers : found;
  };

  function sort(head) {
    const up = head.getAttribute("aria-sort") !== "ascending";
    const by = values(head.dataset.key);
    const order = rows.map((_, i) => i).sort((a, b) => {
      if (by[a] === by[b]) return a - b;
      if (typeof by[a] === "number") {
        if (Number.isNaN(by[a]) || Number.isNaN(by[b])) return Number.isNaN(by[a]) - Number.isNaN(by[b]) || a - b;
        return up ? by[a] - by[b] : by[b] - by[a];
      }
      return (up ? 1 : -1) * by[a].localeCompare(by[b], undefined, { numeric: true });
    });
    table.querySelectorAll("th[aria-sort]").forEach((th) => th.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    body.append(...order.map((i) => rows[i]));
    scroll.scrollTop = 0;
  }

  function arm(head) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(head));
    head.append(button);
    if (head.dataset.key === "id" || typeof values(head.dataset.key)[0] !== "number") return;
    const at = head.cellIndex;
    head.classList.add("number");
    rows.forEach((row) => row.cells[at].classList.add("number"));
  }
  if (k) table.tHead.querySelectorAll("th[data-key]").forEach(arm);

  const more = el("more");
  if (more) more.addEventListener("click", () => {
    const on = more.getAttribute("aria-pressed") !== "true";
    more.setAttribute("aria-pressed", on);
    if (!on) return table.querySelectorAll(".extra").forEach((extra) => extra.remove());
    const rest = data.columns.map((_, c) => c).filter((c) => !data.shown.includes(c));
    const make = (name, text) => Object.assign(document.createElement(name), { className: "extra", textContent: text });
    rows.forEach((row, i) => row.append(...rest.map((c) => make("td", data.cells[i][c]))));
    rest.forEach((c) => {
      const head = make("th", data.columns[c]);
      head.scope = "col";
      head.dataset.key = c;
      table.tHead.rows[0].append(head);
      arm(head);
    });
  });

  /* taking it with you */
  async function copy(text, button) {
    const said = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = Object.assign(document.createElement("textarea"), { value: text });
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = said; }, 1500);
  }

  function csv() {
    /* text that a spreadsheet would run as a formula gets a single quote in front, numbers do not */
    const tame = (v) => (/^[=+\-@\t\r]/.test(v) && !/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(v) ? `'${v}` : v);
    const quote = (v) => (/[",\r\n]/.test(v) ? `"${v.replaceAll('"', '""')}"` : v);
    const base = ["rank", data.id, "gain", "variance_left", ...(data.costs ? ["cost"] : [])];
    const lines = data.ids.map((id, i) => [
      i + 1, id, data.gains[i], data.left[i] ?? "", ...(data.costs ? [data.costs[i]] : []), ...data.cells[i],
    ]);
    return [[...base, ...data.columns], ...lines].map((line) => line.map((v) => quote(tame(String(v)))).join(",")).join("\r\n") + "\r\n";
  }

  document.querySelector(".tools").hidden = false;
  el("copy-ids").addEventListener("click", (event) => copy(data.ids.join("\n"), event.currentTarget));
  el("save").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
    link.download = "picks.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  const again = el("copy-command");
  if (again) {
    again.hidden = false;
    again.addEventListener("click", () => copy(el("command").textContent, again));
  }
})();
