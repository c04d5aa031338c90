// Decides how to turn a picture: the counterpart of radialbeams/decisions.py, with default `snap`.
//
// Two cases that need more than the model's answer are left out: a rotated rectangle on a canvas,
// whose own angle would be used, and documents.

import { inCircle, shortest } from "./posterior.js";

const NEAR = 5; // degrees; an angle this near to a quarter turn is taken for one

// `plain`: the corners have one colour. Returns the action, as `undo` the angle to undo, and as
// `measure` and `value` the quantity that decided and its value.
export function decide(answer, least, plain) {
  return plain || answer.posterior === null ? onPlainGround(answer, least) : filling(answer, least);
}

// An object on a plain background may have any angle, unless a quarter turn is as probable.
function onPlainGround(answer, least) {
  if (answer.posterior !== null && !least.tilts && answer.exact >= least.exact) {
    return filling(answer, least);
  }
  const quarter = Math.round(rounded(answer) / 90) % 4;
  const near = Math.abs(shortest(rounded(answer) - 90 * quarter)) <= NEAR;
  return quarter && near ? byQuarter(answer, least) : asEstimated(answer, least);
}

function byQuarter(answer, least) {
  const { quarter, chance } = likeliestQuarter(answer);
  const needed = answer.posterior === null ? least.confidence : least.quarter;
  return reaches(chance, needed) ? turnedByQuarter(quarter, chance) : unsure("quarter", chance);
}

// Always by the estimated angle: `snap` is "none".
export function asEstimated(answer, least) {
  if (!reaches(answer.confidence, least.confidence)) return unsure("confidence", answer.confidence);
  const away = Math.abs(shortest(rounded(answer)));
  if (away < least.angle) return left("angle", away);
  if (answer.upright !== null && answer.upright > least.upright) return unsure("upright", answer.upright);
  return turned(rounded(answer), "confidence", answer.confidence);
}

// A picture that fills its canvas is nearly always upright or rotated by a quarter turn.
function filling(answer, least) {
  const { quarter, chance } = likeliestQuarter(answer);
  const angle = rounded(answer);
  const atQuarter = quarter !== 0 && Math.abs(shortest(angle - 90 * quarter)) <= NEAR;
  const sure = reaches(answer.confidence, least.confidence);
  if (least.tilts && sure && !atQuarter && Math.abs(shortest(angle)) >= least.angle) {
    return turned(angle, "confidence", answer.confidence);
  }
  const exact = reaches(answer.exact, least.exact);
  if (!reaches(chance, least.quarter) && (exact || !sure)) return unsure("quarter", chance);
  if (!exact) return unsure("exact", answer.exact);
  return turnedByQuarter(quarter, chance);
}

// The most probable of zero to three quarter turns, and its probability.
function likeliestQuarter(answer) {
  if (answer.posterior === null) {
    return { quarter: Math.round(rounded(answer) / 90) % 4, chance: answer.confidence };
  }
  const masses = quarterMasses(answer.posterior);
  const chance = Math.max(...masses);
  return { quarter: masses.indexOf(chance), chance };
}

// The mass nearest to 0°, 90°, 180° and 270°. A direction stands for all angles up to half way to
// the next one, and is divided at a border.
export function quarterMasses(posterior) {
  const width = 360 / posterior.length;
  const masses = [0, 0, 0, 0];
  posterior.forEach((mass, n) => {
    const at = (n * width + 45) % 360;
    const [quarter, place] = [Math.floor(at / 90), at % 90];
    const below = clipped(0.5 - place / width);
    const above = clipped(0.5 - (90 - place) / width);
    masses[quarter] += mass * (1 - below - above);
    masses[(quarter + 3) % 4] += mass * below;
    masses[(quarter + 1) % 4] += mass * above;
  });
  return masses;
}

function clipped(share) {
  return Math.min(Math.max(share, 0), 1);
}

// An unknown probability counts as 1.
function reaches(chance, least) {
  return (chance ?? 1) >= least;
}

function rounded({ angle }) {
  return inCircle(Math.round(angle * 100) / 100);
}

function turned(angle, measure, value) {
  return angle === 0 ? left(measure, value) : { action: "turned", undo: angle, measure, value };
}

function turnedByQuarter(quarter, chance) {
  return turned(90 * quarter, "quarter", chance);
}

function left(measure, value) {
  return { action: "left", undo: null, measure, value };
}

function unsure(measure, value) {
  return { action: "unsure", undo: null, measure, value };
}
