// The model's confidence, and what happens to the picture, in words.

import { shortest } from "./model/posterior.js";

export function inWords(answer) {
  if (answer.confidence === null) return "This model gives no confidence.";
  if (answer.symmetry >= 2) {
    return `Looks the same every ${Math.round(360 / answer.symmetry)}°.`;
  }
  if (answer.action === "unsure") return leftAlone(answer);
  if (answer.action === "left") return upright(answer);
  return decisive(answer) >= 0.97 ? "Sure." : "Fairly sure.";
}

// The probability by which it was decided to turn the picture.
export function decisive({ measure, value, confidence }) {
  return ["quarter", "confidence"].includes(measure) ? value : confidence;
}

export function percent(probability) {
  if (probability === null) return "–";
  if (probability > 0 && probability < 0.01) return "below 1%";
  return `${Math.floor(probability * 100)}%`;
}

function leftAlone({ symmetry, measure, value }) {
  if (symmetry === 0) return "Left alone: no clear up was found.";
  if (measure === "exact") {
    return "Left alone: the picture fills its canvas, and such pictures are only turned by quarters.";
  }
  if (measure === "upright") {
    return "Left alone: it may be upright already; the probability is above the limit.";
  }
  return "Left alone: the model is unsure.";
}

function upright({ angle, measure }) {
  const tilt = Math.round(Math.abs(shortest(angle)));
  if (measure !== "quarter" || tilt < 2) return "Upright already.";
  return `Tilted by about ${tilt}°. Small tilts are left alone.`;
}
