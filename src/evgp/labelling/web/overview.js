(() => {
  "use strict";
  const csrf = document.querySelector("meta[name=csrf]").content;
  const live = document.getElementById("live");
  document.getElementById("leave").addEventListener("click", async () => {
    await fetch("/api/session", { method: "DELETE", headers: { "X-CSRF-Token": csrf } }).catch(() => {});
    location.assign("/");
  });
  /* The server renders the live part again, with everything in it escaped; it replaces the old one. */
  async function refresh() {
    if (document.hidden) return;
    try {
      const answer = await fetch("/overview?part=live");
      if (answer.status === 401) { location.assign("/"); return; }
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const scrolled = live.querySelector(".scroll")?.scrollLeft ?? 0;
      const focused = live.contains(document.activeElement);
      live.replaceChildren(...[...page.body.childNodes].map((node) => document.importNode(node, true)));
      const table = live.querySelector(".scroll");
      if (table) { table.scrollLeft = scrolled; if (focused) table.focus({ preventScroll: true }); }
    } catch { /* the server is away: try again next time */ }
  }
  setInterval(refresh, 3000);
  document.addEventListener("visibilitychange", refresh);
})();
