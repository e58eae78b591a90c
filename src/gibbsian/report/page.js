"use strict";
(() => {
  const net = document.getElementById("net");
  if (!net) return;
  const get = (id) => document.getElementById(id);
  const said = get("said"), slider = get("strongest"), search = get("search"), threshold = get("threshold");
  // in the page the strongest lie on top, hence last
  const nodes = [...net.querySelectorAll(".node")].sort((a, b) => a.dataset.k - b.dataset.k);
  const edges = [...net.querySelectorAll(".edge")].reverse();
  const byStrength = [...nodes].sort((a, b) => b.dataset.strong - a.dataset.strong);
  const members = new Map(edges.map((edge) => [edge, edge.dataset.of.split(" ").map((k) => nodes[k])]));
  const edgesOf = new Map(nodes.map((node) => [node, []]));
  for (const edge of edges) for (const node of members.get(edge)) edgesOf.get(node).push(edge);
  const text = (element) => element.querySelector("title").textContent;
  const shown = (edge) => !edge.classList.contains("off");
  let layout = "force";

  const place = (node) => node.dataset[layout].split(" ").map(Number);

  function thin() {
    const n = Number(slider.value);
    edges.forEach((edge, rank) => edge.classList.toggle("off", rank >= n));
    const least = n ? edges[n - 1].dataset.size : "";
    threshold.textContent = `${n} of ${edges.length}` + (n ? `, from ${least} up` : "");
    slider.setAttribute("aria-valuetext", threshold.textContent);
    for (const node of nodes) node.classList.toggle("alone", !edgesOf.get(node).some(shown));
    label();
  }

  function lay() {
    for (const node of nodes) {
      const [x, y] = place(node);
      node.setAttribute("transform", `translate(${x} ${y})`);
      turn(node.querySelector("text"), x, y);
    }
    for (const edge of edges) {
      const points = members.get(edge).map((node) => place(node).join(" "));
      edge.setAttribute("d", "M" + points.join(" L") + (points.length > 2 ? "Z" : ""));
    }
    label();
  }

  // on the circle names point outwards
  function turn(name, x, y) {
    if (layout === "force") {
      name.setAttribute("transform", "");
      name.setAttribute("text-anchor", "middle");
      name.setAttribute("y", 20);
      return;
    }
    const { width, height } = net.viewBox.baseVal;
    const left = x < width / 2 - 1;
    const angle = (Math.atan2(y - height / 2, x - width / 2) * 180) / Math.PI + (left ? 180 : 0);
    name.setAttribute("transform", `rotate(${angle}) translate(${left ? -12 : 12} 4)`);
    name.setAttribute("text-anchor", left ? "end" : "start");
    name.setAttribute("y", 0);
  }

  // names that would lie on those of stronger nodes are left out, unless they were found or pointed at
  function label() {
    const taken = [], most = nodes.length > 100 ? 50 : nodes.length;
    const wanted = (node) => node.classList.contains("found") || node.classList.contains("chosen");
    const order = [...byStrength].sort((a, b) => wanted(b) - wanted(a));
    for (const node of order) {
      const name = node.querySelector("text");
      name.classList.remove("off");
      const box = layout === "force" ? name.getBoundingClientRect() : around(node);
      const meets = (other) =>
        box.left < other.right && other.left < box.right && box.top < other.bottom && other.top < box.bottom;
      if (!wanted(node) && (taken.length >= most || taken.some(meets))) name.classList.add("off");
      else taken.push(box);
    }
  }

  // on the circle names are side by side where their nodes are far enough apart
  function around(node) {
    const [x, y] = place(node);
    return { left: x - 6, right: x + 6, top: y - 6, bottom: y + 6 };
  }

  function find() {
    const wanted = search.value.trim().toLowerCase();
    const hits = wanted ? nodes.filter((node) => node.dataset.name.toLowerCase().includes(wanted)) : [];
    for (const node of nodes) node.classList.toggle("found", hits.includes(node));
    for (const edge of edges) edge.classList.toggle("found", members.get(edge).some((node) => hits.includes(node)));
    net.classList.toggle("searching", hits.length > 0);
    if (wanted) said.textContent = `${hits.length} found. ` + (hits.length === 1 ? about(hits[0]) : "");
    label();
  }

  function about(node) {
    const strongest = edgesOf.get(node).filter(shown).slice(0, 8).map(text);
    return `${node.dataset.name}: ` + (strongest.length ? strongest.join("; ") : "none of the interactions shown is its own");
  }

  function choose(node) {
    for (const other of nodes) other.classList.toggle("chosen", other === node);
    for (const edge of edges) edge.classList.toggle("chosen", members.get(edge).includes(node));
    said.textContent = about(node);
    label();
  }

  slider.addEventListener("input", thin);
  search.addEventListener("input", find);
  get("controls").addEventListener("submit", (event) => event.preventDefault());
  for (const choice of document.getElementsByName("layout"))
    choice.addEventListener("change", () => { layout = choice.value; lay(); });
  net.addEventListener("pointerover", (event) => {
    const edge = event.target.closest(".edge"), node = event.target.closest(".node");
    if (edge) said.textContent = text(edge);
    if (node) choose(node);
  });
  net.addEventListener("focusin", (event) => {
    const node = event.target.closest(".node");
    if (node) choose(node);
  });
  net.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const at = byStrength.indexOf(event.target.closest(".node"));
    if (!step || at < 0) return;
    event.preventDefault();
    byStrength[(at + step + nodes.length) % nodes.length].focus();
  });
  window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((part) => { part.open = true; }));
  byStrength[0].setAttribute("tabindex", 0);
  for (const box of document.getElementsByName("layout")) if (box.checked) layout = box.value;
  thin();
  lay();
  document.documentElement.classList.add("ready");
})();
