// How much a view looks drawn: the counterpart of radialbeams/images/drawn.py.

import { inDisc } from "./view.js";

const FLAT = 0.5 / 255; // differences of neighbouring pixels
const STEEP = 32 / 255;
const WEIGHT = 5; // of steep ones

// (C, S, S) in [0, 1] → the share of flat neighbours in the disc, and WEIGHT × steep ones.
export function drawn(view, { channels, view_size: side }) {
  const plane = side * side;
  let pairs = 0;
  let flat = 0;
  let steep = 0;
  for (let y = 0; y < side; y++) {
    for (let x = 0; x < side; x++) {
      if (!inDisc(x, y, side)) continue;
      for (const [dx, dy] of [[1, 0], [0, 1]]) {
        if (x + dx >= side || y + dy >= side || !inDisc(x + dx, y + dy, side)) continue;
        const here = y * side + x;
        const next = here + dy * side + dx;
        let change = 0;
        for (let c = 0; c < channels; c++) {
          change = Math.max(change, Math.abs(view[c * plane + next] - view[c * plane + here]));
        }
        pairs += 1;
        flat += change < FLAT;
        steep += change >= STEEP;
      }
    }
  }
  return (flat + WEIGHT * steep) / pairs;
}
