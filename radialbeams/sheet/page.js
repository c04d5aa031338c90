"use strict";
// Sorting, enlarging, and correcting angles by hand. Without this script, the page still shows all
// files, and the filters work.
const list = document.getElementById("files");
const cards = [...list.children];
const byId = (id) => document.getElementById(id);
const corrections = new Map(); // card → rotation of the picture in degrees; null: leave it
let open = null; // the card that the dialog shows

// --- sorting and filters ---

const number = (card, name, without) =>
  name in card.dataset ? Number(card.dataset[name]) : without;
const name = (card) => JSON.parse(card.dataset.path);
const orders = {
  order: (a, b) => cards.indexOf(a) - cards.indexOf(b),
  least: (a, b) => number(a, "confidence", 2) - number(b, "confidence", 2),
  most: (a, b) => number(b, "confidence", -1) - number(a, "confidence", -1),
  angle: (a, b) => Math.abs(number(b, "angle", -1)) - Math.abs(number(a, "angle", -1)),
  name: (a, b) => name(a).localeCompare(name(b), undefined, { numeric: true }),
};
const sort = byId("sort");
sort.addEventListener("change", () => list.append(...[...cards].sort(orders[sort.value])));

function showWhetherEmpty() {
  byId("empty").hidden = cards.some((card) => getComputedStyle(card).display !== "none");
}
for (const pill of document.getElementsByName("show"))
  pill.addEventListener("change", showWhetherEmpty);

// --- the dialog ---

const dialog = byId("detail");
const angle = byId("angle");
const slider = byId("slider");
const signed = (degrees) => -((((180 - degrees) % 360) + 360) % 360 - 180);

function svg(tag, attributes, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text) node.textContent = text;
  return node;
}

// The point in a direction: 0° is up, and angles increase counter-clockwise.
function at(degrees, radius) {
  const turn = (degrees * Math.PI) / 180;
  return [60 - radius * Math.sin(turn), 60 - radius * Math.cos(turn)];
}

function dial(card) {
  const drawing = svg("svg", { viewBox: "-12 -4 144 132", role: "img", "aria-label": "posterior" });
  drawing.append(svg("circle", { class: "ring", cx: 60, cy: 60, r: 46 }));
  for (const [degrees, x, y] of [[0, 60, 10], [90, 6, 63], [180, 60, 117], [270, 114, 63]])
    drawing.append(svg("text", { x, y }, `${degrees}°`));
  const digits = [...(card.dataset.dial ?? "")];
  const half = 180 / Math.max(digits.length, 1);
  digits.forEach((digit, index) => {
    const level = parseInt(digit, 16);
    if (!level) return;
    const middle = (index * 360) / digits.length;
    const points = [at(0, 0), at(middle - half, 3 * level), at(middle + half, 3 * level)];
    drawing.append(svg("polygon", { class: "rays", points: points.join(" ") }));
  });
  if ("angle" in card.dataset) {
    const [x, y] = at(number(card, "angle"), 46);
    drawing.append(svg("line", { class: "up", x1: 60, y1: 60, x2: x, y2: y }));
  }
  return drawing;
}

function preview(degrees) {
  angle.value = String(Math.round(degrees * 100) / 100);
  slider.value = String(degrees);
  byId("detail-before").style.transform = `rotate(${degrees}deg)`;
}

function current() {
  const value = Number(angle.value);
  return Number.isFinite(value) ? signed(value) : 0;
}

function enlarge(card) {
  const before = card.querySelector("img");
  const after = originals.get(card)?.[1] ?? [...card.querySelectorAll("img")][1]?.src;
  const isPair = card.querySelectorAll("img").length > 1;
  open = card;
  byId("detail-name").textContent = card.querySelector(".name").textContent;
  byId("detail-before").src = before.src;
  byId("detail-after-box").hidden = !isPair;
  if (isPair) byId("detail-after").src = after;
  byId("detail-dial").replaceChildren(dial(card));
  const note = [...card.querySelectorAll(".note span")].map((part) => part.textContent);
  if (card.dataset.why) note.push(card.dataset.why);
  byId("detail-note").textContent = note.filter(Boolean).join(" · ");
  byId("forget").hidden = !corrections.has(card);
  const corrected = corrections.get(card) ?? 0; // null: to be left alone
  preview(signed(corrections.has(card) ? corrected : number(card, "undone", 0)));
  dialog.showModal();
}

list.addEventListener("click", (event) => {
  const button = event.target.closest("button.pair");
  if (button) enlarge(button.closest("li"));
});
angle.addEventListener("input", () => preview(current()));
slider.addEventListener("input", () => preview(Number(slider.value)));
for (const button of dialog.querySelectorAll("[data-turn]"))
  button.addEventListener("click", () => preview(signed(current() + Number(button.dataset.turn))));
dialog.addEventListener("click", (event) => {
  if (event.target === dialog) dialog.close(); // a click outside it
});

// --- corrections ---

function correct(degrees) {
  const card = open;
  if (degrees === undefined) corrections.delete(card);
  else corrections.set(card, degrees);
  dialog.close();
  showCard(card);
  showCorrections();
}

const originals = new Map(); // card → its text and the picture on its right as the run left them

// Shows on a card what the correction will do, or, without a correction, what the run did.
function showCard(card) {
  const what = card.querySelector(".what");
  const image = [...card.querySelectorAll("img")].pop();
  if (!originals.has(card)) originals.set(card, [what.textContent, image?.src]);
  const [text, source] = originals.get(card);
  const corrected = corrections.has(card);
  const degrees = corrections.get(card) ?? 0; // null: to be left alone
  card.classList.toggle("corrected", corrected);
  what.textContent = corrected ? inWords(corrections.get(card)) : text;
  if (!image) return;
  image.src = corrected ? card.querySelector("img").src : source;
  image.style.transform = "";
  if (corrected && degrees) image.decode().then(() => fit(image, degrees), () => {});
}

function inWords(degrees) {
  if (degrees === null) return "corrected: left as it was";
  return `corrected to ${String(Math.round(degrees * 100) / 100).replace("-", "−")}°`;
}

// Turns a picture back by its rotation, and shrinks it to the room that it has on its card.
function fit(image, degrees) {
  const [cos, sin] = [Math.cos, Math.sin].map((f) => Math.abs(f((degrees * Math.PI) / 180)));
  const [width, height] = [image.clientWidth, image.clientHeight];
  const room = image.parentElement.clientHeight;
  const across = image.parentElement.clientWidth / image.parentElement.querySelectorAll("img").length;
  const scale = Math.min(
    1, across / (width * cos + height * sin), room / (width * sin + height * cos));
  image.style.transform = `rotate(${degrees}deg) scale(${scale})`;
}

function showCorrections() {
  const count = corrections.size;
  byId("corrections").hidden = !count;
  byId("count").textContent = `${count} correction${count === 1 ? "" : "s"}`;
}

// What the command reads: the rotation of the file as it is now.
function correction([card, degrees]) {
  const left = degrees === null ? 0 : degrees;
  const rest = signed(left - number(card, "start", 0));
  const turned = ((Math.round(rest * 100) / 100) % 360 + 360) % 360;
  return { path: name(card), angle_ccw: turned === 0 ? null : turned };
}

byId("apply").addEventListener("click", () => correct(current()));
byId("leave").addEventListener("click", () => correct(null));
byId("forget").addEventListener("click", () => correct(undefined));
byId("discard").addEventListener("click", () => {
  const cards = [...corrections.keys()];
  corrections.clear();
  cards.forEach(showCard);
  showCorrections();
});
byId("save").addEventListener("click", () => {
  const content = { corrections: [...corrections].map(correction) };
  const link = document.createElement("a");
  const text = JSON.stringify(content, null, 1);
  link.href = `data:application/json;charset=utf-8,${encodeURIComponent(text)}`;
  link.download = "corrections.json";
  link.click();
});
