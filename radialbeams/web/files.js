// The list of files: before and after, corrections of angles, and a zip of the results.

import { zipOf } from "./zip.js";
import { decisive, inWords, percent } from "./words.js";

const ENDINGS = {
  "image/jpeg": "jpg", "image/png": "png", "image/webp": "webp", "image/gif": "gif",
  "image/bmp": "bmp", "image/tiff": "tif", "image/avif": "avif", "image/jp2": "jp2",
};

export class Files {
  // `actions` has open, estimate, applied and upright, which take an item, and parallel, a number.
  constructor(root, actions) {
    Object.assign(this, { root, actions });
    this.list = root.querySelector("ul");
    this.progress = root.querySelector("[role=status]");
    this.zipButton = root.querySelector("#zip");
    this.items = [];
    this.rows = new Map();
    this.zipButton.addEventListener("click", () => this.zip());
    root.querySelector("#clear").addEventListener("click", () => this.clear());
  }

  get shown() {
    return !this.root.hidden;
  }

  // A single file needs no list; it becomes the first row when others follow.
  single(item) {
    this.items = [item];
    this.rows.clear();
    this.list.replaceChildren();
  }

  async add(items) {
    this.root.hidden = false;
    this.items = this.items.filter((item) => !item.sample);
    for (const item of this.items) if (!this.rows.has(item)) this.addRow(item);
    for (const item of items) this.addRow(item);
    this.items = [...new Set([...this.items, ...items])];
    await this.estimateAll(items);
    const first = items.find((item) => item.picture);
    if (first) await this.actions.open(first);
    this.mark(first);
  }

  clear() {
    this.single(null);
    this.items = [];
    this.root.hidden = true;
  }

  // Estimates all files again, after a change of the model.
  async again() {
    if (this.shown) await this.estimateAll(this.items.filter((item) => item.picture));
  }

  async estimateAll(items) {
    const waiting = [...items];
    this.zipButton.disabled = true;
    const work = async () => {
      while (waiting.length) {
        await this.estimate(waiting.shift());
        this.report();
      }
    };
    this.report();
    await Promise.all(Array.from({ length: this.actions.parallel }, work));
    this.zipButton.disabled = !this.items.some((item) => item.picture);
  }

  async estimate(item) {
    try {
      item.picture ??= await item.load();
      await this.actions.estimate(item);
      item.error = null;
    } catch (error) {
      item.error = error.message;
    }
    this.update(item);
  }

  report() {
    const done = this.items.filter((item) => item.error || Object.keys(item.answers).length).length;
    const failed = this.items.filter((item) => item.error).length;
    this.progress.textContent = `${done} of ${this.items.length} done${failed ? `, ${failed} failed` : ""}`;
  }

  addRow(item) {
    const row = document.createElement("li");
    const name = document.createElement("p");
    name.className = "name";
    name.textContent = name.title = item.name;
    const text = document.createElement("p");
    text.className = "said";
    text.textContent = "…";
    const pair = document.createElement("div");
    pair.className = "pair";
    pair.append(half("Before"), half("After"));
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Correct by hand";
    button.setAttribute("aria-label", `Correct ${item.name} by hand`);
    button.disabled = true;
    button.addEventListener("click", () => this.correct(item));
    row.append(name, pair, text, button);
    this.list.append(row);
    this.rows.set(item, row);
    if (item.picture) this.update(item);
  }

  async correct(item) {
    this.mark(item);
    await this.actions.open(item);
    const dial = document.querySelector("#result .dial");
    dial.focus({ preventScroll: true });
    dial.scrollIntoView({ block: "nearest" });
  }

  mark(item) {
    for (const [other, row] of this.rows) row.setAttribute("aria-current", String(other === item));
  }

  update(item) {
    const row = this.rows.get(item);
    if (!row) return;
    const text = row.querySelector(".said");
    row.querySelector("button").disabled = !item.picture;
    row.querySelector(".pair").hidden = !item.picture;
    text.classList.toggle("wrong", Boolean(item.error));
    if (item.error) {
      text.textContent = item.error;
      return;
    }
    const undo = this.actions.applied(item);
    const [before, after] = row.querySelectorAll("canvas");
    item.picture.draw(before, item.turn);
    item.picture.draw(after, item.turn - undo);
    text.textContent = this.sentence(item, undo);
  }

  sentence(item, undo) {
    if (item.hand !== null) return `By hand: turned back by ${undo.toFixed(1)}°.`;
    const [answer] = Object.values(item.answers);
    if (!answer) return "…";
    const chance = decisive(answer);
    const sure = chance === null ? "" : ` (${percent(chance)})`;
    if (answer.action === "turned") return `Turned back by ${undo.toFixed(1)}°${sure}.`;
    if (undo !== 0) return `Turned back by ${undo.toFixed(1)}° although the model is unsure${sure}.`;
    if (answer.confidence === null) return "Upright already.";
    return inWords({ ...answer, symmetry: Math.min(answer.symmetry, 1) }); // whatever its symmetry
  }

  async zip() {
    this.zipButton.disabled = true;
    const entries = [];
    const taken = new Set();
    for (const item of this.items.filter(({ picture }) => picture)) {
      const blob = await this.actions.upright(item);
      const name = free(named(item.name, blob.type), taken);
      entries.push({ name, data: new Uint8Array(await blob.arrayBuffer()) });
    }
    save(zipOf(entries), "upright.zip");
    this.zipButton.disabled = false;
  }

  save(blob, name) {
    save(blob, named(name, blob.type, "-upright"));
  }
}

function half(title) {
  const box = document.createElement("div");
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 240;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", title);
  const caption = document.createElement("span");
  caption.textContent = title;
  box.append(canvas, caption);
  return box;
}

function named(name, type, added = "") {
  const stem = name.replace(/^.*[\\/]/, "").replace(/\.[^.]*$/, "") || "image";
  const old = name.match(/\.([^.]+)$/)?.[1];
  return `${stem}${added}.${ENDINGS[type] ?? old ?? "png"}`;
}

function free(name, taken) {
  let [candidate, number] = [name, 1];
  while (taken.has(candidate.toLowerCase())) {
    number += 1;
    candidate = name.replace(/(\.[^.]*)$/, `-${number}$1`);
  }
  taken.add(candidate.toLowerCase());
  return candidate;
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
