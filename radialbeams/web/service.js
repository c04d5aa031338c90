// Sends pictures to the service, which runs the model.

import { inCircle } from "./model/posterior.js";

const ATTEMPTS = 20; // as long as the service is busy

export class Service {
  constructor(config, token) {
    this.config = config;
    this.token = token;
    this.parallel = 4;
  }

  async estimate(look, model, { beams = false } = {}) {
    const query = new URLSearchParams({ model: model.name, posterior: true });
    if (beams) query.set("beams", true);
    if (look.turned) {
      // On the dial, any angle is meant, and the picture is known to be turned.
      query.set("snap", "none");
      const least = model.thresholds.confidence;
      if (least <= 1) query.set("min_confidence", least); // above 1: the model is not to be trusted
    }
    const [record] = await this.post(`v1/angle?${query}`, await look.blob());
    return {
      angle: record.angle_ccw,
      confidence: record.confidence,
      symmetry: record.symmetry,
      upright: record.upright,
      posterior: record.posterior,
      action: record.action,
      measure: record.measure,
      value: record.value,
      undo: record.applied && inCircle(-record.applied.angle_ccw),
      beams: record.beams ?? null,
    };
  }

  // The file rotated back by `angle` degrees, with its metadata and bit depth.
  async upright(picture, angle) {
    const query = new URLSearchParams({ angle, output: "json" });
    const [record] = await this.post(`v1/upright?${query}`, picture.file);
    return blobOf(record);
  }

  // The file as PNG, for formats that the browser cannot read; null if the service cannot either.
  async decode(file) {
    const query = new URLSearchParams({ angle: 0, output: "json", format: "png", first_frame: true });
    try {
      const [record] = await this.post(`v1/upright?${query}`, file);
      return blobOf(record);
    } catch {
      return null;
    }
  }

  // Sent as a form, so that an error of a file is part of the answer and not a failed request.
  async post(path, blob) {
    const body = new FormData();
    body.append("file", blob, "image");
    for (let attempt = 1; ; attempt++) {
      const response = await this.send(path, body);
      if (response.status === 503 && attempt < ATTEMPTS) {
        await new Promise((done) => setTimeout(done, 250));
        continue;
      }
      if (response.status === 401) {
        sessionStorage.removeItem("token"); // so that the page asks for it after a reload
        throw new Error("The token is wrong. Reload the page to enter another.");
      }
      const content = await response.json();
      const error = content.error ?? content.results[0].error;
      if (error) throw new Error(error.message);
      return content.results;
    }
  }

  async send(path, body) {
    try {
      return await fetch(path, { method: "POST", body, headers: this.headers() });
    } catch {
      throw new Error("The service does not answer. Is it still running?");
    }
  }

  headers() {
    return this.token ? { authorization: `Bearer ${this.token}` } : {};
  }
}

async function blobOf(record) {
  const bytes = Uint8Array.from(atob(record.image), (letter) => letter.charCodeAt(0));
  return new Blob([bytes], { type: record.type });
}
