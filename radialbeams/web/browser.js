// Runs the model in the browser, in WebAssembly: pictures never leave it.

import { plainGround } from "./model/corners.js";
import { asEstimated, decide } from "./model/decisions.js";
import { drawn } from "./model/drawn.js";
import { heatOf, hiddenViews } from "./model/heat.js";
import { readPosterior, readPosteriors, readUnit } from "./model/posterior.js";
import { endsOf, hasEnds, viewOf } from "./model/view.js";

const TYPES = ["image/jpeg", "image/png", "image/webp"]; // formats that a canvas can write
const QUARTERS = [1, 2, 3]; // of further looks at one square
const AT_ENDS = [1, 3]; // of the squares at both ends
const AT_ONCE = 4; // views per call of the model, so that the page stays responsive

export class Browser {
  constructor(config) {
    this.config = config;
    this.parallel = 1;
    this.sessions = new Map();
    this.queue = Promise.resolve(); // a session runs one call at a time
  }

  async estimate(look, model, { beams = false } = {}) {
    const pixels = look.pixels();
    const view = viewOf(pixels, model.view);
    const twoEnds = model.looks.oblong_below != null && hasEnds(pixels);
    const answer = await this.answer(view, model, twoEnds && (() => endsOf(pixels, model.view)));
    const least = model.thresholds;
    const decision = look.turned
      ? asEstimated(answer, { ...least, upright: 1 }) // on the dial, it is known to be turned
      : decide(answer, least, plainGround(pixels));
    const heat = beams ? await this.heat(view, model) : null;
    return { ...answer, ...decision, angle: Math.round(answer.angle * 100) / 100 % 360, beams: heat };
  }

  async upright(picture, angle) {
    const type = TYPES.includes(picture.file.type) ? picture.file.type : "image/png";
    return angle % 360 === 0 ? picture.file : picture.turned(-angle, type);
  }

  async decode() {
    return null;
  }

  // `ends` makes two more views of an oblong picture, which are used where the first is unsure.
  async answer(view, model, ends = null) {
    const [first] = await this.run([view], model);
    if (model.reading === "unit") return readUnit(first.logits);
    const answer = readPosterior(first.logits, first.offsets, model);
    const { below, oblong_below, oblong_temperature, drawn: least } = model.looks;
    const looksDrawn = () => !ends && least != null && drawn(view, model.view) >= least;
    if (answer.confidence >= (ends ? oblong_below : below) && !looksDrawn()) return answer;
    const quarters = ends ? AT_ENDS : QUARTERS;
    const seen = ends ? ends() : quarters.map(() => view);
    const more = quarters.map((k, n) => quarterTurned(seen[n], model.view, k));
    const looks = [first, ...(await this.run(more, model))];
    const temperature = (ends && oblong_temperature) || model.calibration.temperature;
    const calibration = { ...model.calibration, temperature };
    const shifts = [0, ...quarters].map((k) => (k * model.bins) / 4);
    return readPosteriors(looks, shifts, { ...model, calibration });
  }

  // By estimates of this view alone: further looks would hide other parts of a picture, or none.
  async heat(view, model) {
    const hidden = [view, ...hiddenViews(view, model.view)];
    const answers = [];
    for (let start = 0; start < hidden.length; start += AT_ONCE) {
      for (const out of await this.run(hidden.slice(start, start + AT_ONCE), model)) {
        answers.push(
          model.reading === "unit" ? readUnit(out.logits) : readPosterior(out.logits, out.offsets, model),
        );
      }
      await new Promise((done) => setTimeout(done));
    }
    const [answer, ...others] = answers;
    return heatOf(answer, others, model.within);
  }

  // For each view, the two outputs of a posterior, or one unit vector as `logits`.
  run(views, model) {
    const result = this.queue.then(() => this.runNow(views, model));
    this.queue = result.catch(() => {});
    return result;
  }

  async runNow(views, model) {
    const { session, ort } = await this.session(model);
    const { channels, view_size: side } = model.view;
    const data = new Float32Array(views.length * views[0].length);
    views.forEach((view, n) => data.set(view, n * view.length));
    const tensor = new ort.Tensor("float32", data, [views.length, channels, side, side]);
    const outputs = await session.run({ views: tensor });
    const [logits, offsets] = session.outputNames.map((name) => outputs[name]);
    return views.map((_, n) => ({ logits: row(logits, n), offsets: offsets && row(offsets, n) }));
  }

  session(model) {
    if (!this.sessions.has(model.name)) this.sessions.set(model.name, this.load(model));
    return this.sessions.get(model.name);
  }

  async load(model) {
    const ort = await import(new URL("runtime/ort.wasm.min.mjs", import.meta.url));
    ort.env.wasm.wasmPaths = new URL("runtime/", import.meta.url).href;
    ort.env.wasm.numThreads = 1; // more threads need headers that many hosts cannot send
    ort.env.logLevel = "error";
    const url = new URL(`models/${model.name}.onnx`, import.meta.url).href;
    const session = await ort.InferenceSession.create(url, { executionProviders: ["wasm"] });
    return { session, ort };
  }
}

function row(tensor, n) {
  const width = tensor.dims[1];
  return Array.from(tensor.data.subarray(n * width, (n + 1) * width));
}

// The view rotated counter-clockwise by k quarter turns.
function quarterTurned(view, { view_size: side, channels }, k) {
  let source = view;
  for (let turn = 0; turn < k; turn++) {
    const out = new Float32Array(source.length);
    for (let c = 0; c < channels; c++) {
      for (let y = 0; y < side; y++) {
        for (let x = 0; x < side; x++) {
          out[(c * side + y) * side + x] = source[(c * side + x) * side + side - 1 - y];
        }
      }
    }
    source = out;
  }
  return source;
}
