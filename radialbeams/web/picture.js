// A picture in the browser: decoded once, drawn at any angle, and prepared for a model.

import { pictureShare } from "./model/corners.js";

const WORKING = 384; // shorter side, in pixels, of the copy that the dial rotates
const QUALITY = 0.95; // of the JPEG that is sent while the dial moves

export class PictureError extends Error {}

export class Picture {
  // `file` is the user's file; `bitmap` is its content in its EXIF orientation.
  constructor(file, name, bitmap, small, share) {
    Object.assign(this, { file, name, bitmap, small, share });
    this.width = bitmap.width;
    this.height = bitmap.height;
  }

  // `decode` is called if the browser cannot read the file.
  static async from(file, name, limits, decode) {
    if (file.size > limits.file_size) {
      const most = Math.round(limits.file_size / 2 ** 20);
      throw new PictureError(`${name} is larger than ${most} MiB. Choose a smaller file.`);
    }
    const bitmap = await decoded(file, name, decode);
    if (bitmap.width * bitmap.height > limits.pixels) {
      const most = Math.round(limits.pixels / 1e6);
      throw new PictureError(`${name} has more than ${most} million pixels. Make it smaller.`);
    }
    const scale = Math.min(1, WORKING / Math.min(bitmap.width, bitmap.height));
    const small = await createImageBitmap(bitmap, {
      resizeWidth: Math.max(1, Math.round(bitmap.width * scale)),
      resizeHeight: Math.max(1, Math.round(bitmap.height * scale)),
      resizeQuality: "high",
    });
    const share = pictureShare({ ...pixelsOf(small), channels: 4 });
    return new Picture(file, name, bitmap, small, share);
  }

  // The model's input for the picture rotated counter-clockwise by `turn` degrees.
  look(turn) {
    if (turn === 0) {
      return { turned: false, pixels: () => pixelsOf(this.bitmap), blob: async () => this.file };
    }
    const canvas = this.square(turn);
    return {
      turned: true,
      pixels: () => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height),
      blob: () => canvas.convertToBlob({ type: "image/jpeg", quality: QUALITY }),
    };
  }

  // The central square whose inscribed circle shows only picture at every angle.
  square(turn) {
    const side = this.side;
    const canvas = new OffscreenCanvas(side, side);
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.imageSmoothingQuality = "high";
    context.fillStyle = "black";
    context.fillRect(0, 0, side, side);
    drawTurned(context, this.small, turn, side / 2, side / 2, 1);
    return canvas;
  }

  get side() {
    const shorter = Math.min(this.small.width, this.small.height);
    return Math.max(1, Math.floor(shorter * (this.share ?? 1)));
  }

  // Draws the picture into a square canvas, at the same size for every angle.
  draw(canvas, turn) {
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.imageSmoothingQuality = "high";
    const scale = this.scaleIn(canvas);
    drawTurned(context, this.small, turn, canvas.width / 2, canvas.height / 2, scale);
  }

  // The scale at which the diagonal fits.
  scaleIn(canvas) {
    return canvas.width / Math.hypot(this.small.width, this.small.height);
  }

  // The picture rotated counter-clockwise, on a canvas that contains all of it.
  async turned(degrees, type) {
    const angle = (degrees * Math.PI) / 180;
    const [cos, sin] = [Math.abs(Math.cos(angle)), Math.abs(Math.sin(angle))];
    const width = Math.ceil(this.width * cos + this.height * sin - 1e-3);
    const height = Math.ceil(this.width * sin + this.height * cos - 1e-3);
    const canvas = new OffscreenCanvas(width, height);
    const context = canvas.getContext("2d");
    context.imageSmoothingQuality = "high";
    drawTurned(context, this.bitmap, degrees, width / 2, height / 2, 1);
    return canvas.convertToBlob({ type, quality: QUALITY });
  }
}

async function decoded(file, name, decode) {
  try {
    return await createImageBitmap(file);
  } catch {
    const converted = await decode(file, name);
    if (converted) return createImageBitmap(converted);
    throw new PictureError(`${name} is damaged, or is not an image that can be read here.`);
  }
}

function drawTurned(context, bitmap, degrees, x, y, scale) {
  context.save();
  context.translate(x, y);
  context.rotate((-degrees * Math.PI) / 180); // a canvas measures angles clockwise
  context.scale(scale, scale);
  context.drawImage(bitmap, -bitmap.width / 2, -bitmap.height / 2);
  context.restore();
}

function pixelsOf(bitmap) {
  const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(bitmap, 0, 0);
  const { data, width, height } = context.getImageData(0, 0, bitmap.width, bitmap.height);
  return { data, width, height };
}
