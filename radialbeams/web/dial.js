// A dial around a picture: set with the pointer, the arrow keys, a slider or a number field.

import { inCircle, shortest } from "./model/posterior.js";

const STEPS = {
  ArrowLeft: 1, ArrowUp: 1, ArrowRight: -1, ArrowDown: -1, PageUp: 15, PageDown: -15,
};

// `root` contains .dial (focusable, with a .handle), input[type=range] and input[type=number].
export class Dial {
  constructor(root, onChange) {
    this.face = root.querySelector(".dial");
    this.handle = root.querySelector(".handle");
    this.slider = root.querySelector("input[type=range]");
    this.number = root.querySelector("input[type=number]");
    this.onChange = onChange;
    this.angle = 0;
    this.slider.addEventListener("input", () => this.change(Number(this.slider.value)));
    this.number.addEventListener("change", () => this.change(Number(this.number.value) || 0));
    this.face.addEventListener("keydown", (event) => this.key(event));
    this.face.addEventListener("pointerdown", (event) => this.grab(event));
    this.set(0);
  }

  // Shows an angle without reporting it.
  set(angle) {
    this.angle = Math.round(inCircle(angle) * 10) / 10 % 360;
    const radians = (this.angle * Math.PI) / 180;
    this.handle.style.left = `${50 - 50 * Math.sin(radians)}%`;
    this.handle.style.top = `${50 - 50 * Math.cos(radians)}%`;
    this.slider.value = this.angle;
    if (document.activeElement !== this.number) this.number.value = this.angle.toFixed(1);
    this.face.setAttribute("aria-valuenow", this.angle.toFixed(1));
    this.face.setAttribute("aria-valuetext", `${this.angle.toFixed(1)} degrees counter-clockwise`);
  }

  change(angle) {
    this.set(angle);
    this.onChange(this.angle);
  }

  key(event) {
    if (event.key === "Home") this.change(0);
    else if (event.key === "End") this.change(180);
    else if (event.key in STEPS) {
      this.change(this.angle + STEPS[event.key] * (event.shiftKey ? 10 : 1));
    } else return;
    event.preventDefault();
  }

  // Dragging rotates by the angle that the pointer moves around the centre.
  grab(event) {
    if (event.button !== 0) return;
    event.preventDefault();
    this.face.focus({ preventScroll: true });
    this.face.setPointerCapture(event.pointerId);
    const start = this.angle;
    let last = this.direction(event);
    let turned = 0;
    const move = (moved) => {
      const now = this.direction(moved);
      turned += shortest(now - last);
      last = now;
      this.change(start + turned);
    };
    const drop = () => {
      this.face.removeEventListener("pointermove", move);
      this.face.removeEventListener("pointerup", drop);
      this.face.removeEventListener("pointercancel", drop);
    };
    this.face.addEventListener("pointermove", move);
    this.face.addEventListener("pointerup", drop);
    this.face.addEventListener("pointercancel", drop);
  }

  direction(event) {
    const box = this.face.getBoundingClientRect();
    const x = event.clientX - box.left - box.width / 2;
    const y = event.clientY - box.top - box.height / 2;
    return (-Math.atan2(y, x) * 180) / Math.PI;
  }
}
