// Shows a model's answer in words, numbers and a plot.

import { shortest } from "./model/posterior.js";
import { drawPosterior } from "./plot.js";
import { inWords, percent } from "./words.js";

// `answer` is null until there is one; `truth` is null if it is unknown.
export function showAnswer(section, model, answer, truth) {
  if (!section.querySelector("svg")) section.append(...skeleton());
  section.querySelector("h2").textContent = model.name;
  section.querySelector(".verdict").textContent = answer ? inWords(answer) : "…";
  section.querySelector("dl").replaceChildren(...lines(answer, truth).flatMap(entry));
  drawPosterior(section.querySelector("svg"), answer, truth);
}

export function degrees(angle) {
  return `${angle.toFixed(1)}°`;
}

function lines(answer, truth) {
  const rows = [["Answer", answer ? degrees(answer.angle) : "…", "is-answer"]];
  if (truth !== null) {
    rows.push(["Dial", degrees(truth), "is-truth"]);
    rows.push(["Error", degrees(Math.abs(shortest(answer.angle - truth))), "is-error"]);
  }
  return [...rows, ["Confidence", answer ? percent(answer.confidence) : "…", "is-confidence"]];
}

function skeleton() {
  const title = document.createElement("h2");
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "-128 -120 256 240");
  svg.setAttribute("role", "img");
  const verdict = document.createElement("p");
  verdict.className = "verdict";
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 380;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "The picture as this model would turn it");
  return [title, verdict, document.createElement("dl"), svg, canvas];
}

function entry([term, value, kind]) {
  const [dt, dd] = [document.createElement("dt"), document.createElement("dd")];
  dt.textContent = term;
  dt.className = dd.className = kind;
  dd.textContent = value;
  return [dt, dd];
}
