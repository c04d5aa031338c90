// The model's confidence, and what happens to the picture, in words.

export function inWords(answer, { confidence: least }) {
  if (answer.confidence === null) return "This model gives no confidence.";
  if (answer.symmetry >= 2) {
    return `Looks the same every ${Math.round(360 / answer.symmetry)}°.`;
  }
  if (answer.symmetry === 0 && answer.action === "unsure") return "No clear up: left alone.";
  if (answer.action === "unsure" && answer.confidence >= least) {
    return "Probably upright already: left alone.";
  }
  if (answer.action === "unsure") return "Unsure, left alone.";
  if (answer.action === "left") return "Upright already.";
  return answer.confidence >= 0.97 ? "Sure." : "Fairly sure.";
}

export function percent(probability) {
  return probability === null ? "–" : `${Math.floor(probability * 100)} %`;
}
