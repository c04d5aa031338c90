// How much each direction matters: the counterpart of radialbeams/serving/heat.py.

import { shortest } from "./posterior.js";
import { inDisc } from "./view.js";

export const WEDGES = 24;
const LEAST = 1e-4;

// One view per wedge, with that wedge in the mean colour of the disc.
export function hiddenViews(view, { view_size: side, channels }) {
  const numbers = wedgeNumbers(side);
  const area = side * side;
  const means = Array.from({ length: channels }, (_, c) => mean(view, numbers, c * area));
  return Array.from({ length: WEDGES }, (_, wedge) => {
    const hidden = Float32Array.from(view);
    for (let n = 0; n < area; n++) {
      if (numbers[n] !== wedge) continue;
      for (let c = 0; c < channels; c++) hidden[c * area + n] = means[c];
    }
    return hidden;
  });
}

// How much confidence the answer loses without each wedge, at least 0.
export function heatOf(answer, others, within) {
  if (answer.posterior === null) {
    return others.map((other) => Math.abs(shortest(other.angle - answer.angle)));
  }
  const before = logOdds(massNear(answer, answer, within));
  return others.map((other) => Math.max(0, before - logOdds(massNear(answer, other, within))));
}

// −1 outside the disc; wedge 0 is centred on the upper left, the others follow counter-clockwise.
function wedgeNumbers(side) {
  const numbers = new Int8Array(side * side).fill(-1);
  const middle = (side - 1) / 2;
  for (let y = 0; y < side; y++) {
    for (let x = 0; x < side; x++) {
      if (!inDisc(x, y, side)) continue;
      const direction = (Math.atan2(middle - y, x - middle) * 180) / Math.PI - 135;
      const wedge = Math.round((direction * WEDGES) / 360);
      numbers[y * side + x] = ((wedge % WEDGES) + WEDGES) % WEDGES;
    }
  }
  return numbers;
}

function mean(view, numbers, start) {
  let [sum, count] = [0, 0];
  numbers.forEach((number, n) => {
    if (number < 0) return;
    sum += view[start + n];
    count += 1;
  });
  return sum / count;
}

function massNear(answer, other, within) {
  const bins = other.posterior.length;
  const step = 360 / bins;
  let sum = 0;
  other.posterior.forEach((mass, n) => {
    if (Math.abs(shortest(n * step - answer.angle)) <= within + step / 2) sum += mass;
  });
  return sum;
}

function logOdds(chance) {
  const bounded = Math.min(Math.max(chance, LEAST), 1 - LEAST);
  return Math.log(bounded / (1 - bounded));
}
