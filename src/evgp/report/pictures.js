
/* What a page with pictures adds: the gallery, the portrait, and a look at any point of the map.
   Pool rows come from one sheet of tiles; where they lie is read from the map itself. */
const pictures = (data, el) => {
  "use strict";
  const LARGE = 152;
  const ENOUGH = 110; // a card so wide needs no larger picture next to it
  const map = el("map-plot");
  const frame = el("frame");
  const cards = [...el("gallery").children];
  const images = cards.map((card) => card.querySelector("img"));
  const tiny = document.body.classList.contains("tiny");
  const layers = [...map.querySelectorAll("path.pool")];
  const places = [];
  if (data.sheet) {
    layers.forEach((layer, first) => {
      [...layer.getAttribute("d").matchAll(/M(-?[\d.]+),(-?[\d.]+)/g)].forEach((at, j) => {
        places[first + layers.length * j] = [at[1] / 10, at[2] / 10];
      });
    });
  }
  const ring = map.querySelector(".focus circle").cloneNode();
  ring.setAttribute("class", "spot");
  ring.setAttribute("r", 6);
  map.append(ring);
  let on = -1;

  const fit = (node, width, height) => {
    const scale = LARGE / Math.max(width, height);
    node.width = Math.max(1, Math.round(width * scale));
    node.height = Math.max(1, Math.round(height * scale));
    return node;
  };

  function pick(i) {
    const from = images[i];
    const copy = Object.assign(document.createElement("img"), { src: from.src, alt: "" });
    return fit(copy, +from.getAttribute("width"), +from.getAttribute("height"));
  }

  function point(j) {
    const { cell, columns, sizes } = data.sheet;
    const [width, height] = sizes[sizes.length > 1 ? j : 0];
    const canvas = fit(document.createElement("canvas"), width, height);
    const context = canvas.getContext("2d");
    context.imageSmoothingEnabled = !tiny;
    context.imageSmoothingQuality = "high";
    context.drawImage(el("sheet"), cell * (j % columns), cell * Math.floor(j / columns), width, height, 0, 0, canvas.width, canvas.height);
    return canvas;
  }

  function spot(j) {
    ring.classList.toggle("seen", j >= 0);
    if (j < 0) return;
    ring.setAttribute("cx", places[j][0] + "%");
    ring.setAttribute("cy", places[j][1] + "%");
  }

  function light(i, from) {
    if (on >= 0) cards[on].classList.remove("on");
    on = i;
    cards[i].classList.add("on");
    const portrait = el("which-picture");
    portrait.src = images[i].src;
    portrait.alt = data.ids[i];
    portrait.width = images[i].getAttribute("width");
    portrait.height = images[i].getAttribute("height");
    if (from === "gallery" || frame.scrollHeight <= frame.clientHeight) return;
    const top = cards[i].offsetTop;
    if (top < frame.scrollTop || top + cards[i].offsetHeight > frame.scrollTop + frame.clientHeight) {
      frame.scrollTop = top - frame.clientHeight / 3;
    }
  }

  function listen(choose, showTip, hideTip) {
    const tell = (i) => {
      const box = cards[i].getBoundingClientRect();
      showTip(choose(i), box.right - 12, box.top + 4, box.width < ENOUGH ? pick(i) : null);
    };
    frame.addEventListener("pointerover", (event) => {
      const card = event.target.closest("li");
      if (card) tell(cards.indexOf(card)); else hideTip();
    });
    frame.addEventListener("pointerleave", hideTip);
    frame.addEventListener("scroll", () => { if (frame.matches(":hover")) hideTip(); });
    frame.addEventListener("blur", hideTip);
    frame.addEventListener("keydown", (event) => {
      const row = cards.filter((card) => card.offsetTop === cards[0].offsetTop).length;
      const moves = { ArrowRight: on + 1, ArrowLeft: on - 1, ArrowDown: on + row, ArrowUp: on - row, Home: 0, End: cards.length - 1 };
      if (event.key === "Escape") hideTip();
      if (!(event.key in moves)) return;
      event.preventDefault();
      const i = Math.min(cards.length - 1, Math.max(0, moves[event.key]));
      cards[i].scrollIntoView({ block: "nearest" });
      tell(i);
    });
  }

  return { places, pick, point, spot, light, listen };
};
