/* a click on the head of a column sorts its table */
document.querySelectorAll("table.sortable").forEach((table) => {
  const body = table.tBodies[0];
  const value = (row, at) => {
    const cell = row.cells[at], text = cell.dataset.value ?? cell.textContent.trim();
    const number = Number(text);
    return text === "" || Number.isNaN(number) ? text : number;
  };
  table.tHead.querySelectorAll("th").forEach((head) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending", at = head.cellIndex;
      const rows = [...body.rows].sort((a, b) => {
        const x = value(a, at), y = value(b, at);
        const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
        return up ? order : -order;
      });
      table.querySelectorAll("th[aria-sort]").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      body.append(...rows);
    });
  });
});
