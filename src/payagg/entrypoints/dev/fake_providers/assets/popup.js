// Inside the provider's frame: takes the launch parameters from the page around it and plays the payer's choice back.
(() => {
  "use strict";
  const words = document.getElementById("words");
  let parameters = null;
  let merchant = null;

  const tell = (message) => window.parent.postMessage(message, merchant ?? "*");

  async function call(path, body) {
    const answer = await fetch(path, { method: "POST", body });
    return { ok: answer.ok, ...(await answer.json()) };
  }

  async function act(action) {
    const reference = parameters.transaction_reference;
    const done = await call(`/popup/${action}/${encodeURIComponent(reference)}`);
    words.textContent = done.message;
    const data = { transaction_reference: reference };
    tell(done.ok && action === "pay" ? { type: "success", status: 201, data } : { type: "error", status: 400, data });
  }

  window.addEventListener("message", async (event) => {
    if (event.source !== window.parent || event.data?.type !== "setup" || parameters) return;
    merchant = event.origin;
    parameters = event.data.parameters;
    const opened = await call("/popup/open", JSON.stringify(parameters));
    if (!opened.ok) {
      words.textContent = opened.message;
      tell({ type: "error", status: 401, data: { message: opened.message } });
      return;
    }
    document.getElementById("amount").textContent = `${parameters.currency_code} ${parameters.checkout_amount.toFixed(2)}`;
    document.getElementById("pay").addEventListener("click", () => act("pay"));
    document.getElementById("decline").addEventListener("click", () => act("decline"));
  });
  document.getElementById("close").addEventListener("click", () => tell({ type: "close" }));
  tell({ type: "ready" });
})();
