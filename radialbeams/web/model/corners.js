// Rotated pictures on a plain canvas: the counterpart of radialbeams/images/corners.py.

import { cropped, reduced } from "./resize.js";

const TOLERANCES = [24, 6, 48];
const HALF_CLEAR = 128;
const SIDE = 160;
const OFF_CENTRE = 0.03;
const HARMLESS = 0.92;
const SPANNED = 0.75;
const [NEAR, EDGES, EDGE] = [2.5, 0.7, 0.3];
const AGREEING = 2;
const NEARLY_45 = 0.2;

// The central part of an RGBA picture without filled corners, or the picture itself.
export function withoutCorners(pixels) {
  const share = pictureShare(pixels);
  if (share === null) return pixels;
  const side = Math.max(1, Math.floor(share * Math.min(pixels.width, pixels.height)));
  const left = Math.floor((pixels.width - side) / 2);
  const top = Math.floor((pixels.height - side) / 2);
  return cropped(pixels, left, top, side, side);
}

// The side of the central square whose circle shows only picture, as a share of the shorter side;
// null if the corners are not filled, or do not matter.
export function pictureShare(pixels) {
  const factor = Math.ceil(Math.max(pixels.width, pixels.height) / SIDE);
  const opaque = isOpaque(pixels);
  if (opaque && !plainCorners(pixels)) return null;
  const small = reduced(pixels, factor);
  if (!opaque) {
    const clear = mask(small, (at) => small.data[at + 3] < HALF_CLEAR);
    if (clear.includes(1)) return shareOf(inverted(clear), small);
    if (!plainCorners(pixels)) return null;
  }
  const corner = cornerColour(small);
  for (const tolerance of TOLERANCES) {
    const like = mask(small, (at) => away(small.data, at, corner) <= tolerance);
    const share = shareOf(inverted(filled(like, small)), small);
    if (share !== null) return share;
  }
  return null;
}

function isOpaque({ data }) {
  for (let n = 3; n < data.length; n += 4) if (data[n] !== 255) return false;
  return true;
}

function mask({ width, height }, holds) {
  const out = new Uint8Array(width * height);
  for (let n = 0; n < out.length; n++) out[n] = holds(4 * n) ? 1 : 0;
  return out;
}

function inverted(values) {
  return values.map((value) => 1 - value);
}

function away(data, at, colour) {
  return Math.max(...[0, 1, 2].map((c) => Math.abs(data[at + c] - colour[c])));
}

function cornerPixels({ data, width, height }) {
  const places = [0, width - 1, (height - 1) * width, height * width - 1];
  return places.map((place) => [...data.subarray(4 * place, 4 * place + 3)]);
}

function cornerColour(small) {
  const corners = cornerPixels(small);
  return [0, 1, 2].map((c) => {
    const levels = corners.map((pixel) => pixel[c]).sort((a, b) => a - b);
    return Math.trunc((levels[1] + levels[2]) / 2);
  });
}

// Whether the corners have one colour, or are transparent.
export function plainGround(pixels) {
  const { data, width, height } = pixels;
  const places = [0, width - 1, (height - 1) * width, height * width - 1];
  return places.every((place) => data[4 * place + 3] < HALF_CLEAR) || plainCorners(pixels);
}

// Four pixels decide for nearly all photographs.
function plainCorners(pixels) {
  if (Math.min(pixels.width, pixels.height) < 16) return false;
  const corners = cornerPixels(pixels);
  return [0, 1, 2].every((c) => {
    const levels = corners.map((pixel) => pixel[c]);
    return Math.max(...levels) - Math.min(...levels) <= TOLERANCES[0];
  });
}

// Pixels of the corners' colour, with no other colour between them and both nearest sides.
function filled(like, { width, height }) {
  const across = new Uint8Array(like.length);
  const down = new Uint8Array(like.length);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width && like[y * width + x]; x++) across[y * width + x] = 1;
    for (let x = width - 1; x >= 0 && like[y * width + x]; x--) across[y * width + x] = 1;
  }
  for (let x = 0; x < width; x++) {
    for (let y = 0; y < height && like[y * width + x]; y++) down[y * width + x] = 1;
    for (let y = height - 1; y >= 0 && like[y * width + x]; y--) down[y * width + x] = 1;
  }
  return across.map((value, n) => value & down[n]);
}

function shareOf(rest, { width, height }) {
  if (!rest.includes(1) || coversDisc(rest, width, height)) return null;
  const { x, y } = outline(rest, width, height);
  const spans = Math.min(spread(x) / width, spread(y) / height);
  if (spans < SPANNED) return null;
  const found = smallestRectangle(x, y);
  const sides = fits(found, width, height) ? found.sides : completed(found, width, height);
  const share = (Math.min(...sides) - 1) / Math.min(width, height);
  return share > 0 && share < HARMLESS ? share : null;
}

function coversDisc(rest, width, height) {
  const radius = ((HARMLESS * Math.min(width, height)) / 2) ** 2;
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const distance = (x - (width - 1) / 2) ** 2 + (y - (height - 1) / 2) ** 2;
      if (distance <= radius && !rest[y * width + x]) return false;
    }
  }
  return true;
}

// x and y of the outermost pixels of each row and each column.
function outline(rest, width, height) {
  const x = [];
  const y = [];
  for (let v = 0; v < height; v++) {
    const row = rest.subarray(v * width, (v + 1) * width);
    if (row.includes(1)) {
      x.push(row.indexOf(1), row.lastIndexOf(1));
      y.push(v, v);
    }
  }
  for (let u = 0; u < width; u++) {
    let top = 0;
    while (top < height && !rest[top * width + u]) top++;
    if (top === height) continue;
    let bottom = height - 1;
    while (!rest[bottom * width + u]) bottom--;
    x.push(u, u);
    y.push(top, bottom);
  }
  return { x, y };
}

function spread(values) {
  return Math.max(...values) - Math.min(...values);
}

function smallestRectangle(x, y) {
  let best = null;
  for (let degrees = 1; degrees < 90; degrees++) {
    const angle = (degrees * Math.PI) / 180;
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    const along = x.map((value, n) => value * cos + y[n] * sin);
    const across = y.map((value, n) => value * cos - x[n] * sin);
    const sides = [spread(along) + 1, spread(across) + 1];
    const area = Math.fround(sides[0] * sides[1]);
    if (best === null || area < best.area) best = { area, sides, angle, cos, sin, along, across };
  }
  const { sides, angle, cos, sin, along: u, across: v } = best;
  const [p, q, r, t] = [Math.min(...u), Math.max(...u), Math.min(...v), Math.max(...v)];
  const [a, b] = [(p + q) / 2, (r + t) / 2];
  const edges = [
    beside(u.map((value) => value - p), v.map((value) => value - r), t - r),
    beside(u.map((value) => q - value), v.map((value) => value - r), t - r),
    beside(v.map((value) => value - r), u.map((value) => value - p), q - p),
    beside(v.map((value) => t - value), u.map((value) => value - p), q - p),
  ];
  const middle = [a * cos - b * sin, a * sin + b * cos];
  const whole = Math.min(...edges) >= EDGE && edges.reduce((m, n) => m + n) / 4 >= EDGES;
  return { sides, middle, angle, whole };
}

// The share of an edge, in 16 pieces, that has picture next to it.
function beside(depth, along, length) {
  const pieces = new Set();
  depth.forEach((value, n) => {
    if (value <= NEAR) pieces.add(Math.trunc(Math.min((along[n] * 16) / Math.max(length, 1), 15)));
  });
  return pieces.size / 16;
}

function fits({ sides: [a, b], middle, angle, whole }, width, height) {
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const off = [
    (a * cos + b * sin) / width - 1,
    (a * sin + b * cos) / height - 1,
    (middle[0] - (width - 1) / 2) / width,
    (middle[1] - (height - 1) / 2) / height,
  ];
  return whole && Math.max(...off.map(Math.abs)) <= OFF_CENTRE;
}

function completed({ sides, middle, angle, whole }, width, height) {
  const full = filling(width, height, angle);
  const [x, y] = [middle[0] - (width - 1) / 2, middle[1] - (height - 1) / 2];
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const off = [x * cos + y * sin, y * cos - x * sin];
  const room = full.map((outer, n) => (outer - sides[n]) / 2);
  const short = [room[0] + off[0], room[0] - off[0], room[1] + off[1], room[1] - off[1]];
  const limit = OFF_CENTRE * Math.min(width, height);
  const agreeing = short.filter((one) => Math.abs(one) <= limit).length;
  return whole && agreeing >= AGREEING && Math.min(...short) >= -limit ? full : [0, 0];
}

function filling(width, height, angle) {
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  if (Math.abs(width - height) <= 2) return [width / (cos + sin), height / (cos + sin)];
  if (Math.abs(cos - sin) < NEARLY_45) return [0, 0];
  const scale = cos * cos - sin * sin;
  return [(width * cos - height * sin) / scale, (height * cos - width * sin) / scale];
}
