// Reads a model's outputs: the counterpart of radialbeams/posterior.py.

const MOMENTS = 6;
const STRONG = 0.5;

// One view: angle, confidence, symmetry, posterior and the probability that it is upright.
export function readPosterior(logits, offsets, model) {
  const mass = massOf(logits, model.calibration.temperature);
  const angles = directions(offsets, 0);
  return answer(angles[indexOfLargest(mass)], mass, angles, model, mass);
}

// Several views of one picture, each rotated by a number of bins: rotated back and averaged.
export function readPosteriors(looks, shifts, model) {
  const bins = looks[0].logits.length;
  const masses = looks.map(({ logits }) => massOf(logits, model.calibration.temperature));
  const angles = looks.map(({ offsets }, k) => directions(offsets, shifts[k]));
  const candidates = masses.map((mass, k) => angles[k][indexOfLargest(mass)]);
  const mass = masses.flatMap((values) => [...values].map((value) => value / looks.length));
  const all = angles.flatMap((values) => [...values]);
  const near = (lead, n) => Math.abs(shortest(all[n] - lead)) <= model.within;
  const support = candidates.map((lead) => sum(mass.map((m, n) => (near(lead, n) ? m : 0))));
  const lead = candidates[indexOfLargest(support)];
  const weight = mass.map((m, n) => (near(lead, n) ? m : 0));
  const best = lead + sum(weight.map((w, n) => w * shortest(all[n] - lead))) / sum(weight);
  const posterior = new Float64Array(bins);
  masses.forEach((values, k) => {
    for (let n = 0; n < bins; n++) posterior[n] += values[(n + shifts[k]) % bins] / looks.length;
  });
  return answer(best, mass, all, model, posterior);
}

// One unit vector, the output of the paper's network.
export function readUnit(unit) {
  const angle = inCircle((Math.atan2(unit[1], unit[0]) * 180) / Math.PI);
  return { angle, confidence: null, symmetry: null, posterior: null, upright: null, exact: null };
}

function answer(best, mass, angles, model, posterior) {
  const { spread } = model.calibration;
  const share = (away, within) =>
    sum(Array.from(mass, (m, n) => m * nearness(Math.abs(away(angles[n])), spread, within)));
  return {
    angle: inCircle(best),
    confidence: share((angle) => shortest(angle - best), model.within),
    symmetry: symmetryOf(mass, angles),
    posterior: Array.from(posterior),
    upright: share(shortest, model.upright_within),
    exact: share((angle) => mod(angle + 45) % 90 - 45, model.upright_within),
  };
}

function massOf(logits, temperature) {
  const largest = Math.max(...logits) / temperature;
  const mass = Float64Array.from(logits, (logit) => Math.exp(logit / temperature - largest));
  const total = sum(mass);
  return mass.map((value) => value / total);
}

function directions(offsets, shift) {
  const step = 360 / offsets.length;
  return Float64Array.from(offsets, (offset, n) => (n + offset - shift) * step);
}

function nearness(away, spread, within) {
  if (!spread) return away <= within ? 1 : 0;
  const logistic = (edge) => 1 / (1 + Math.exp(-(edge - away) / spread));
  return logistic(within) - logistic(-within);
}

function symmetryOf(mass, angles) {
  for (let order = 1; order <= MOMENTS; order++) {
    let [re, im] = [0, 0];
    mass.forEach((m, n) => {
      const turn = (order * angles[n] * Math.PI) / 180;
      re += m * Math.cos(turn);
      im += m * Math.sin(turn);
    });
    if (Math.hypot(re, im) >= STRONG) return order;
  }
  return 0;
}

export function shortest(degrees) {
  return mod(degrees + 180) - 180;
}

export function inCircle(degrees) {
  return mod(degrees) % 360;
}

function mod(degrees) {
  return ((degrees % 360) + 360) % 360;
}

function indexOfLargest(values) {
  return values.indexOf(Math.max(...values));
}

function sum(values) {
  return values.reduce((a, b) => a + b, 0);
}
