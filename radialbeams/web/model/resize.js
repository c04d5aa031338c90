// Pillow's resampling of eight-bit pixels, so that views equal those of Python.
// Pixels are {data: Uint8ClampedArray of RGB or RGBA, width, height, channels}.

const BITS = 2 ** 22; // of the fixed-point weights

export function cropped(pixels, left, top, width, height) {
  const { channels } = pixels;
  const data = new Uint8ClampedArray(width * height * channels);
  for (let y = 0; y < height; y++) {
    const start = ((top + y) * pixels.width + left) * channels;
    data.set(pixels.data.subarray(start, start + width * channels), y * width * channels);
  }
  return { data, width, height, channels };
}

export function centreSquare(pixels) {
  const side = Math.min(pixels.width, pixels.height);
  const left = Math.floor((pixels.width - side) / 2);
  const top = Math.floor((pixels.height - side) / 2);
  return cropped(pixels, left, top, side, side);
}

// Means of blocks of factor × factor pixels; blocks at the right and bottom may be smaller.
export function reduced(pixels, factor) {
  if (factor === 1) return pixels;
  const { channels } = pixels;
  const width = Math.ceil(pixels.width / factor);
  const height = Math.ceil(pixels.height / factor);
  const data = new Uint8ClampedArray(width * height * channels);
  for (let y = 0; y < height; y++) {
    const bottom = Math.min((y + 1) * factor, pixels.height);
    for (let x = 0; x < width; x++) {
      const right = Math.min((x + 1) * factor, pixels.width);
      const count = (bottom - y * factor) * (right - x * factor);
      const multiplier = Math.floor(2 ** 24 / count);
      const half = Math.floor(count / 2);
      for (let c = 0; c < channels; c++) {
        let sum = half;
        for (let v = y * factor; v < bottom; v++) {
          for (let u = x * factor; u < right; u++) {
            sum += pixels.data[(v * pixels.width + u) * channels + c];
          }
        }
        data[(y * width + x) * channels + c] = Math.floor((sum * multiplier) / 2 ** 24);
      }
    }
  }
  return { data, width, height, channels };
}

// Resizes a square with a Lanczos filter. With `gap`, it is first reduced by an integer factor that
// leaves at least this factor for the filter.
export function lanczos(square, side, gap = null) {
  let extent = square.width;
  if (gap !== null) {
    const factor = Math.floor(extent / side / gap) || 1;
    square = reduced(square, factor);
    extent /= factor;
  }
  const taps = weights(extent, square.width, side);
  return alongColumns(alongRows(square, side, taps), side, taps);
}

// For each pixel of the result: its first source pixel, and the weights.
function weights(extent, available, side) {
  const scale = extent / side;
  const filterScale = Math.max(scale, 1);
  const support = 3 * filterScale;
  const found = [];
  for (let n = 0; n < side; n++) {
    const centre = (n + 0.5) * scale;
    const first = Math.max(0, Math.trunc(centre - support + 0.5));
    const last = Math.min(available, Math.trunc(centre + support + 0.5));
    const values = [];
    for (let x = first; x < last; x++) values.push(filter((x - centre + 0.5) / filterScale));
    const sum = values.reduce((a, b) => a + b, 0);
    found.push({ first, values: values.map((value) => fixed(value / sum)) });
  }
  return found;
}

function fixed(weight) {
  return Math.trunc(weight * BITS + (weight < 0 ? -0.5 : 0.5));
}

function filter(x) {
  return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
}

function sinc(x) {
  return x === 0 ? 1 : Math.sin(x * Math.PI) / (x * Math.PI);
}

function alongRows({ data, width, height, channels }, side, taps) {
  const out = new Uint8ClampedArray(side * height * channels);
  for (let y = 0; y < height; y++) {
    for (let n = 0; n < side; n++) {
      const { first, values } = taps[n];
      for (let c = 0; c < channels; c++) {
        let sum = BITS / 2;
        let at = (y * width + first) * channels + c;
        for (let k = 0; k < values.length; k++, at += channels) sum += data[at] * values[k];
        out[(y * side + n) * channels + c] = Math.floor(sum / BITS);
      }
    }
  }
  return { data: out, width: side, height, channels };
}

function alongColumns({ data, width, channels }, side, taps) {
  const row = width * channels;
  const out = new Uint8ClampedArray(side * row);
  const sums = new Float64Array(row);
  for (let n = 0; n < side; n++) {
    const { first, values } = taps[n];
    sums.fill(BITS / 2);
    for (let k = 0; k < values.length; k++) {
      const start = (first + k) * row;
      const weight = values[k];
      for (let x = 0; x < row; x++) sums[x] += data[start + x] * weight;
    }
    for (let x = 0; x < row; x++) out[n * row + x] = Math.floor(sums[x] / BITS);
  }
  return { data: out, width, height: side, channels };
}
