// The square view that a model takes: the counterpart of radialbeams/images/views.py.

import { plainGround, withoutCorners } from "./corners.js";
import { centreSquare, cropped, lanczos } from "./resize.js";

const LARGEST_VIEW = 0.45;
const BICUBIC = -0.75;
const OBLONG = 1.1;
const BANDS = 512; // steps of numerical integrals

// ImageData → Float32Array of (C, S, S) in [0, 1].
export function viewOf(image, spec) {
  const whole = { data: image.data, width: image.width, height: image.height, channels: 4 };
  return viewOfSquare(centreSquare(spec.protocol === "leakfree" ? withoutCorners(whole) : whole), spec);
}

// Whether a picture is oblong, and its corners are not plain: they may be fill.
export function hasEnds(image) {
  const { width, height } = image;
  return Math.max(width, height) >= OBLONG * Math.min(width, height) && !plainGround(image);
}

// The views of the squares at both ends of an oblong picture.
export function endsOf(image, spec) {
  const { data, width, height } = image;
  const side = Math.min(width, height);
  const whole = { data, width, height, channels: 4 };
  return [[0, 0], [width - side, height - side]].map(([left, top]) =>
    viewOfSquare(cropped(whole, left, top, side, side), spec),
  );
}

function viewOfSquare(square, spec) {
  const leakfree = spec.protocol === "leakfree";
  const colour = spec.channels === 1 ? gray(onBlack(square)) : onBlack(square);
  if (!leakfree) return planes(lanczos(colour, spec.view_size), spec.channels);
  const size = spec.parent_size;
  const parent = colour.width === size ? colour : lanczos(colour, size, 3);
  return leakfreeView(planes(parent, spec.channels), size, spec);
}

// RGBA → RGB on a black background, with Pillow's rounding.
function onBlack({ data, width, height }) {
  const out = new Uint8ClampedArray(width * height * 3);
  for (let from = 0, to = 0; from < data.length; from += 4) {
    const alpha = data[from + 3];
    for (let c = 0; c < 3; c++) {
      const product = data[from + c] * alpha + 128;
      out[to++] = alpha === 255 ? data[from + c] : ((product >> 8) + product) >> 8;
    }
  }
  return { data: out, width, height, channels: 3 };
}

function gray({ data, width, height }) {
  const out = new Uint8ClampedArray(data.length);
  for (let n = 0; n < data.length; n += 3) {
    const level = (data[n] * 19595 + data[n + 1] * 38470 + data[n + 2] * 7471 + 0x8000) >> 16;
    out.fill(level, n, n + 3);
  }
  return { data: out, width, height, channels: 3 };
}

function planes({ data, width, height }, channels) {
  const out = new Float32Array(channels * width * height);
  for (let c = 0; c < channels; c++) {
    for (let n = 0; n < width * height; n++) out[c * width * height + n] = data[n * 3 + c] / 255;
  }
  return out;
}

function leakfreeView(parent, size, spec) {
  const side = spec.view_size;
  const sigma = spec.sigma ?? Math.trunc(LARGEST_VIEW * size) / side;
  const rows = blurAndResample(size, side, sigma, spec.reach);
  const out = new Float32Array(spec.channels * side * side);
  for (let c = 0; c < spec.channels; c++) {
    const plane = parent.subarray(c * size * size, (c + 1) * size * size);
    const half = new Float32Array(size * side); // (W, S): resampled along x
    for (let y = 0; y < size; y++) {
      for (let s = 0; s < side; s++) {
        const { first, values } = rows[s];
        let sum = 0;
        for (let k = 0; k < values.length; k++) sum += values[k] * plane[y * size + first + k];
        half[y * side + s] = sum;
      }
    }
    for (let s = 0; s < side; s++) {
      const { first, values } = rows[s];
      for (let x = 0; x < side; x++) {
        if (!inDisc(x, s, side)) continue;
        let sum = 0;
        for (let k = 0; k < values.length; k++) sum += values[k] * half[(first + k) * side + x];
        out[(c * side + s) * side + x] = sum;
      }
    }
  }
  return out;
}

export function inDisc(x, y, side) {
  const middle = (side - 1) / 2;
  return (x - middle) ** 2 + (y - middle) ** 2 <= (side / 2) ** 2;
}

// --- geometry, computed once per size ---

const kept = new Map();

// For each pixel of a view along one axis: its source pixels in the parent, with weights.
function blurAndResample(size, side, sigma, reach) {
  const key = `${size} ${side} ${sigma} ${reach}`;
  if (!kept.has(key)) kept.set(key, computed(size, side, sigma, reach));
  return kept.get(key);
}

function computed(size, side, sigma, reach) {
  const blur = blurRows(size, sigma);
  const found = [];
  for (let s = 0; s < side; s++) {
    const at = (size - 1) / 2 + ((s - (side - 1) / 2) * reach * size) / side;
    const row = new Float64Array(size);
    for (let k = -1; k < 3; k++) {
      const pixel = Math.floor(at) + k;
      const weight = bicubic(Math.abs(at - pixel));
      const source = blur[Math.min(Math.max(pixel, 0), size - 1)];
      for (let x = 0; x < size; x++) row[x] += weight * source[x];
    }
    let first = row.findIndex((value) => value !== 0);
    let last = size;
    while (last > first && row[last - 1] === 0) last--;
    found.push({ first, values: Float32Array.from(row.subarray(first, last)) });
  }
  return found;
}

// (W, W): the filter that, combined with the bicubic kernel, is a Gaussian along one axis.
function blurRows(size, sigma) {
  const taps = new Float64Array(size);
  for (let band = 0; band < BANDS; band++) {
    const frequency = (band + 0.5) / (2 * BANDS);
    const gaussian = Math.exp(-2 * (Math.PI * sigma * frequency) ** 2);
    const gain = gaussian / bicubicResponse(frequency) / BANDS;
    for (let n = 0; n < size && n <= 4 * sigma + 2; n++) {
      taps[n] += Math.cos(2 * Math.PI * frequency * n) * gain;
    }
  }
  const rows = [];
  for (let y = 0; y < size; y++) {
    const row = Float64Array.from({ length: size }, (_, x) => taps[Math.abs(x - y)]);
    const sum = row.reduce((a, b) => a + b, 0);
    rows.push(row.map((value) => value / sum));
  }
  return rows;
}

function bicubicResponse(frequency) {
  let sum = 0;
  for (let n = 0; n < 2 * BANDS; n++) {
    const distance = (n + 0.5) / BANDS;
    sum += Math.cos(2 * Math.PI * frequency * distance) * bicubic(distance);
  }
  return (2 * sum) / BANDS;
}

function bicubic(d) {
  if (d <= 1) return (BICUBIC + 2) * d ** 3 - (BICUBIC + 3) * d ** 2 + 1;
  return d < 2 ? BICUBIC * (d ** 3 - 5 * d ** 2 + 8 * d - 4) : 0;
}
