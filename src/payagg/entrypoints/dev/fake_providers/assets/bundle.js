// The vendor's checkout script as far as a page can tell: setup, callbacks, a popup in a frame of the provider's origin.
(() => {
  "use strict";
  const origin = new URL(document.currentScript.src).origin;

  class Checkout {
    constructor(parameters) {
      this.parameters = parameters;
      this.callback = () => {};
      this.onClose = () => {};
    }

    setCallback(callback) {
      this.callback = callback;
    }

    setOnClose(onClose) {
      this.onClose = onClose;
    }

    showPopup() {
      const frame = document.createElement("iframe");
      frame.title = "Payaza (fake)";
      frame.src = `${origin}/popup`;
      Object.assign(frame.style, {
        position: "fixed", inset: "0", width: "100%", height: "100%", border: "0", zIndex: "2147483647",
        background: "Canvas",
      });
      const listen = (event) => {
        if (event.origin !== origin || event.source !== frame.contentWindow) return;
        const said = event.data;
        if (said.type === "ready") frame.contentWindow.postMessage({ type: "setup", parameters: this.parameters }, origin);
        if (said.type === "success" || said.type === "error") this.callback(said);
        if (said.type === "close") {
          window.removeEventListener("message", listen);
          frame.remove();
          this.onClose();
        }
      };
      window.addEventListener("message", listen);
      document.body.append(frame);
    }
  }

  window.PayazaCheckout = { setup: (parameters) => new Checkout(parameters) };
})();
