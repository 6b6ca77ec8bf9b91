(() => {
  "use strict";
  const form = document.getElementById("enter");
  const alert = document.getElementById("alert");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    alert.hidden = true;
    const body = { name: form.elements.name.value };
    if (form.dataset.asks === "yes") body.token = form.elements.token.value;
    try {
      const answer = await fetch("/api/session", {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
      });
      if (answer.ok) { location.reload(); return; }
      alert.textContent = (await answer.json()).detail;
    } catch {
      alert.textContent = "The server does not respond. Is it running?";
    }
    alert.hidden = false;
  });
})();
