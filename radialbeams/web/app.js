// The page: connects pictures, dials, plots and files to the backend that runs the model.

import { drawBeams, drawHeat } from "./beams.js";
import { Browser } from "./browser.js";
import { Dial } from "./dial.js";
import { Files } from "./files.js";
import { inCircle } from "./model/posterior.js";
import { degrees, showAnswer } from "./panel.js";
import { Picture } from "./picture.js";
import { Service } from "./service.js";
import { inWords } from "./words.js";

const $ = (id) => document.getElementById(id);
const FIRST_TURN = 40; // degrees by which the first sample is rotated
const HEAT_AFTER = 180; // milliseconds after the last rotation until the heat is computed

class Page {
  constructor(config, backend) {
    this.config = config;
    this.backend = backend;
    this.item = null; // the file that is shown large
    this.busy = false;
    this.turnDial = new Dial($("turn"), (angle) => this.turn(angle));
    this.undoDial = new Dial($("result"), (angle) => this.correct(angle));
    this.files = new Files($("files"), {
      open: (item) => this.open(item),
      estimate: (item) => this.estimateFirst(item),
      applied: (item) => this.applied(item),
      upright: (item) => this.backend.upright(item.picture, this.applied(item) - item.turn),
      parallel: backend.parallel,
    });
    this.fillModels();
    this.fillSamples();
    this.listen();
  }

  // --- set up ---

  fillModels() {
    for (const model of this.config.models) {
      for (const id of ["model", "other"]) $(id).append(new Option(model.name, model.name));
    }
    $("model").value = this.config.default;
    this.describe();
  }

  fillSamples() {
    for (const sample of this.config.samples) {
      const button = document.createElement("button");
      button.type = "button";
      const image = new Image();
      image.src = sample.path;
      image.alt = `Sample: ${sample.name}`;
      button.append(image);
      button.addEventListener("click", () => this.sample(sample));
      $("samples").append(button);
    }
  }

  listen() {
    $("picker").addEventListener("change", () => {
      this.add([...$("picker").files]);
      $("picker").value = "";
    });
    document.addEventListener("paste", (event) => this.add([...event.clipboardData.files]));
    document.addEventListener("dragover", (event) => {
      event.preventDefault();
      document.body.classList.add("dragging");
    });
    document.addEventListener("dragleave", (event) => {
      if (!event.relatedTarget) document.body.classList.remove("dragging");
    });
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      document.body.classList.remove("dragging");
      this.add([...event.dataTransfer.files]);
    });
    $("model").addEventListener("change", () => this.changeModel());
    $("other").addEventListener("change", () => this.changeOther());
    $("any").addEventListener("click", () => this.turnDial.change(360 * Math.random()));
    $("reset").addEventListener("click", () => this.correct(null));
    $("download").addEventListener("click", () => this.download());
    $("came-upright").addEventListener("change", () => this.render());
    $("anyway").addEventListener("change", () => {
      this.render();
      for (const item of this.files.items) this.files.update(item);
    });
    for (const id of ["show-beams", "show-heat"]) {
      $(id).addEventListener("change", () => this.refresh());
    }
    for (const id of ["beams", "length"]) {
      $(id).addEventListener("input", () => {
        $("show-beams").checked = true;
        this.render();
      });
    }
    $("as-trained").addEventListener("click", () => {
      this.describe();
      this.render();
    });
  }

  get model() {
    return this.config.models.find((model) => model.name === $("model").value);
  }

  get other() {
    return this.config.models.find((model) => model.name === $("other").value) ?? null;
  }

  describe() {
    const { summary, works_on: good, fails_on: bad, beams } = this.model;
    $("about").textContent = `${summary} Works on: ${good} Fails on: ${bad}`;
    $("beams").value = beams.num_beams ?? this.model.bins;
    $("length").value = beams.beam_length ?? 32;
  }

  // --- adding pictures ---

  async sample(sample, turn = 0) {
    // Before the first await, so that a model that the user chooses meanwhile is kept.
    if (sample.model !== $("model").value && this.config.models.some((m) => m.name === sample.model)) {
      $("model").value = sample.model;
      this.describe();
    }
    const response = await fetch(sample.path);
    const file = new File([await response.blob()], `${sample.name}.webp`, { type: "image/webp" });
    await this.add([file], { sample: true, turn });
  }

  async add(files, { sample = false, turn = 0 } = {}) {
    if (!files.length) return;
    this.showProblem("");
    if (files.length > this.config.limits.files) {
      this.showProblem(`Choose at most ${this.config.limits.files} files at once.`);
      return;
    }
    const decode = (file, name) => this.backend.decode(file, name);
    const items = files.map((file) => ({
      name: file.name || "pasted image",
      sample,
      turn,
      hand: null, // an angle that replaces the model's
      answers: {}, // by the name of the model
      error: null,
      picture: null,
      load: () => Picture.from(file, file.name || "The pasted image", this.config.limits, decode),
    }));
    const single = items.length === 1 && !this.files.shown;
    if (single) await this.addSingle(items[0]);
    else await this.files.add(items);
  }

  async addSingle(item) {
    try {
      item.picture = await item.load();
    } catch (error) {
      this.showProblem(error.message);
      return;
    }
    this.files.single(item);
    await this.open(item);
  }

  showProblem(text) {
    $("problem").textContent = text;
    $("problem").hidden = !text;
  }

  async open(item) {
    this.item = item;
    $("main").hidden = false;
    $("came-upright").checked = true;
    this.turnDial.set(item.turn);
    this.render();
    await this.answer();
    // If the file itself was rotated, the dial does not show the true angle.
    const initial = item.answers[this.model.name];
    if (item.turn === 0 && initial) $("came-upright").checked = initial.action !== "turned";
    this.render();
  }

  // --- answers ---

  turn(angle) {
    if (!this.item) return;
    this.item.turn = angle;
    this.item.hand = null;
    this.item.answers = {};
    this.changed ??= performance.now();
    this.drawTurned();
    this.answer();
  }

  correct(angle) {
    if (!this.item) return;
    this.item.hand = angle;
    this.render();
    this.files.update(this.item);
  }

  changeModel() {
    this.describe();
    if (this.item) {
      this.item.answers = {};
      this.answer();
    }
    this.files.again();
  }

  changeOther() {
    if (this.item) this.answer();
  }

  refresh() {
    this.render();
    this.scheduleHeat();
  }

  // One request at a time; if the angle changes meanwhile, only the newest one is sent next.
  async answer() {
    if (this.busy) {
      this.again = true;
      return;
    }
    this.busy = true;
    try {
      do {
        this.again = false;
        await this.answerNow();
      } while (this.again);
    } finally {
      this.busy = false;
    }
  }

  async answerNow() {
    const { item } = this;
    const turn = item.turn;
    const started = this.changed ?? performance.now();
    this.changed = null;
    const look = item.picture.look(turn);
    const models = [this.model, this.other].filter((model) => model !== null);
    try {
      const estimates = await Promise.all(
        models.map((model) => this.backend.estimate(look, model)),
      );
      if (item !== this.item) return;
      models.forEach((model, n) => {
        item.answers[model.name] = { ...estimates[n], turn };
      });
      this.showProblem("");
    } catch (error) {
      this.showProblem(error.message);
      return;
    }
    this.render();
    this.files.update(item);
    performance.measure("answer", { start: started, detail: { turn } });
    this.scheduleHeat();
  }

  // The first estimate for a file in the list.
  async estimateFirst(item) {
    const { turn, picture } = item;
    const { model } = this;
    const estimate = await this.backend.estimate(picture.look(turn), model);
    item.answers = { [model.name]: { ...estimate, turn } };
  }

  scheduleHeat() {
    clearTimeout(this.heatTimer);
    if (!$("show-heat").checked || !this.item) return;
    this.heatTimer = setTimeout(() => this.heat(), HEAT_AFTER);
  }

  async heat() {
    const { item, model } = this;
    const answer = item.answers[model.name];
    if (!answer || answer.beams || this.busy) return;
    const look = item.picture.look(item.turn);
    const estimate = await this.backend.estimate(look, model, { beams: true });
    if (item.answers[model.name] === answer) {
      answer.beams = estimate.beams;
      this.render();
    }
  }

  // The angle to undo: set by hand, or the model's, or 0 if the model is unsure.
  applied(item) {
    if (item.hand !== null) return item.hand;
    const answer = item.answers[this.model.name];
    if (!answer) return 0;
    return this.undone(answer);
  }

  undone(answer) {
    return answer.undo ?? ($("anyway").checked ? answer.angle : 0);
  }

  // --- drawing ---

  render() {
    if (!this.item) return;
    this.drawTurned();
    const undo = this.applied(this.item);
    this.item.picture.draw($("result").querySelector("canvas"), this.item.turn - undo);
    this.undoDial.set(undo);
    $("reset").disabled = this.item.hand === null;
    this.showAnswer($("answer"), this.model);
    $("other-answer").hidden = this.other === null;
    if (this.other) this.showAnswer($("other-answer"), this.other, true);
    const answer = this.item.answers[this.model.name];
    $("brief").value = answer ? `${degrees(answer.angle)} · ${inWords(answer)}` : "…";
    $("beams-shown").value = $("beams").value;
    $("length-shown").value = $("length").value;
  }

  drawTurned() {
    const canvas = $("turn").querySelector("canvas");
    const { picture, turn, answers } = this.item;
    picture.draw(canvas, turn);
    const half = (picture.side / 2) * picture.scaleIn(canvas);
    const answer = answers[this.model.name];
    const heat = $("show-heat").checked && answer ? answer.beams : null;
    const context = canvas.getContext("2d");
    if (heat) drawHeat(context, half, this.model, heat);
    if ($("show-beams").checked) {
      const beams = Number($("beams").value);
      drawBeams(context, half, this.model, { beams, length: Number($("length").value), heat });
    }
  }

  showAnswer(section, model, withPicture = false) {
    const { answers, picture, turn } = this.item;
    const answer = answers[model.name] ?? null;
    const truth = $("came-upright").checked && answer ? answer.turn : null;
    showAnswer(section, model, answer, truth);
    const canvas = section.querySelector("canvas");
    canvas.hidden = !withPicture;
    if (withPicture && answer) {
      picture.draw(canvas, turn - this.undone(answer));
    }
  }

  async download() {
    const { item } = this;
    const blob = await this.backend.upright(item.picture, inCircle(this.applied(item) - item.turn));
    this.files.save(blob, item.name);
  }
}

async function askToken() {
  const stored = sessionStorage.getItem("token");
  if (stored) return stored;
  $("token-dialog").showModal();
  await new Promise((done) => $("token-dialog").addEventListener("close", done, { once: true }));
  sessionStorage.setItem("token", $("token").value);
  return $("token").value;
}

async function start() {
  const config = await (await fetch("page.json")).json();
  if (config.backend === "browser") {
    $("where").textContent = "Everything runs in your browser. No picture leaves it.";
    return showFirstSample(new Page(config, new Browser(config)));
  }
  const token = config.needs_token ? await askToken() : null;
  return showFirstSample(new Page(config, new Service(config, token)));
}

// So that there is something to rotate at once.
async function showFirstSample(page) {
  const [first] = page.config.samples;
  if (first) await page.sample(first, FIRST_TURN);
}

start().then(
  () => document.body.classList.add("ready"),
  () => {
    $("problem").hidden = false;
    $("problem").textContent = "The page could not start. Reload it.";
  },
);
