// Draws over a picture what the model samples: beams from the centre, and how much each matters.

const FIRST = 135; // degrees: beam 0 points to the upper left, the others follow counter-clockwise
const MOST_DOTS = 3000;

// `half` is half the side of the model's input square, in canvas pixels.
export function drawBeams(context, half, model, { beams, length, heat }) {
  const { width } = context.canvas;
  const radius = half * reach(model, length);
  context.save();
  context.translate(width / 2, width / 2);
  context.lineWidth = Math.max(1, width / 400);
  circle(context, radius);
  const largest = heat ? Math.max(...heat, 1e-9) : 1;
  for (let n = 0; n < beams; n++) {
    const angle = FIRST + (360 * n) / beams;
    const share = heat ? heat[Math.round((n * heat.length) / beams) % heat.length] / largest : null;
    beam(context, (angle * Math.PI) / 180, radius, share, beams * length <= MOST_DOTS ? length : 0);
  }
  context.restore();
}

// Draws the heat as wedges.
export function drawHeat(context, half, model, heat) {
  const { width } = context.canvas;
  const radius = half * reach(model, model.beams.beam_length ?? 1);
  const largest = Math.max(...heat, 1e-9);
  const step = (2 * Math.PI) / heat.length;
  context.save();
  context.translate(width / 2, width / 2);
  heat.forEach((value, n) => {
    const middle = (-FIRST * Math.PI) / 180 - n * step; // a canvas measures angles clockwise
    context.fillStyle = warm(value / largest, 0.55 * (value / largest));
    context.beginPath();
    context.moveTo(0, 0);
    context.arc(0, 0, radius, middle - step / 2, middle + step / 2);
    context.fill();
  });
  context.restore();
}

// How far beams with this many samples reach, as a share of the half-width.
function reach(model, length) {
  if (model.view.protocol === "leakfree") return model.view.reach;
  return Math.min(1, length / (model.view.view_size / 2));
}

function circle(context, radius) {
  context.strokeStyle = "rgb(255 255 255 / 0.7)";
  context.beginPath();
  context.arc(0, 0, radius, 0, 2 * Math.PI);
  context.stroke();
}

function beam(context, angle, radius, share, dots) {
  const [x, y] = [Math.cos(angle), -Math.sin(angle)];
  context.strokeStyle = share === null ? "rgb(80 200 255 / 0.55)" : warm(share, 0.25 + 0.75 * share);
  context.beginPath();
  context.moveTo(0, 0);
  context.lineTo(x * radius, y * radius);
  context.stroke();
  context.fillStyle = "rgb(255 255 255 / 0.75)";
  const size = context.lineWidth;
  for (let d = 0; d < dots; d++) {
    const at = (radius * (d + 0.5)) / dots;
    context.fillRect(x * at - size / 2, y * at - size / 2, size, size);
  }
}

// From blue over violet to red, with increasing brightness.
function warm(share, alpha) {
  return `rgb(${Math.round(90 + 165 * share)} ${Math.round(60 + 60 * share)} ${Math.round(230 - 210 * share)} / ${alpha})`;
}
