// Draws the posterior on a circle, with the answer and the true angle. 0° is up; angles increase
// counter-clockwise.

const SVG = "http://www.w3.org/2000/svg";
const [INNER, OUTER, REACH] = [44, 92, 110];

export function drawPosterior(svg, answer, truth) {
  const parts = [
    element("circle", { r: INNER, class: "rim" }),
    element("circle", { r: OUTER, class: "rim faint" }),
    ...[0, 90, 180, 270].map((angle) => label(angle)),
  ];
  if (answer) {
    if (answer.posterior) parts.push(...bars(answer.posterior));
    if (truth !== null) parts.push(needle(truth, "truth"));
    parts.push(needle(answer.angle, "answer"));
  }
  svg.replaceChildren(...parts);
  svg.setAttribute("aria-label", described(answer, truth));
}

function bars(posterior) {
  const largest = Math.max(...posterior);
  const width = 360 / posterior.length;
  return posterior.map((mass, n) => {
    // The square root makes small values visible: a posterior is often one narrow peak.
    const radius = INNER + (OUTER - INNER) * Math.sqrt(mass / largest);
    return element("path", { class: "mass", d: wedge((n - 0.5) * width, (n + 0.5) * width, radius) });
  });
}

function wedge(from, to, radius) {
  const [a, b, c, d] = [at(from, INNER), at(from, radius), at(to, radius), at(to, INNER)];
  return `M${a} L${b} A${radius} ${radius} 0 0 0 ${c} L${d} A${INNER} ${INNER} 0 0 1 ${a} Z`;
}

function needle(angle, kind) {
  const [x1, y1] = point(angle, INNER - 14);
  const [x2, y2] = point(angle, OUTER + 4);
  return element("line", { x1, y1, x2, y2, class: kind });
}

function label(angle) {
  const [x, y] = point(angle, REACH);
  const text = element("text", { x, y, class: "tick" });
  text.textContent = `${angle}°`;
  return text;
}

function described(answer, truth) {
  if (!answer) return "No answer yet.";
  const known = truth === null ? "" : ` The true angle is ${truth.toFixed(1)} degrees.`;
  return `The answer is ${answer.angle.toFixed(1)} degrees counter-clockwise.${known}`;
}

function point(angle, radius) {
  const radians = (angle * Math.PI) / 180;
  return [(-radius * Math.sin(radians)).toFixed(2), (-radius * Math.cos(radians)).toFixed(2)];
}

function at(angle, radius) {
  return point(angle, radius).join(" ");
}

function element(name, attributes) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}
