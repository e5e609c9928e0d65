"use strict";

const list = document.getElementById("deliveries");
const state = document.getElementById("state");
const template = document.getElementById("delivery");
let seen = 0;

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

// Everything received is untrusted text, so it only ever becomes textContent.
function show(delivery) {
  const card = template.content.cloneNode(true);
  const part = (name) => card.querySelector(`.${name}`);
  part("type").textContent = delivery.type;
  part("verdict").textContent = delivery.verdict;
  part("verdict").classList.add(delivery.verified ? "good" : "bad");
  part("facts").textContent = `Received ${delivery.receivedAt}, webhook-id ${delivery.eventId}`;
  part("headers").textContent = delivery.headers.map(([name, value]) => `${name}: ${value}`).join("\n");
  part("body").textContent = pretty(delivery.body);
  list.prepend(card);
}

async function poll() {
  try {
    const response = await fetch(`/dev/inbox/deliveries?after=${seen}`);
    for (const delivery of (await response.json()).deliveries) {
      show(delivery);
      seen = delivery.number;
    }
    state.textContent = seen ? `${seen} received. New ones appear by themselves.` : state.textContent;
  } catch {
    state.textContent = "payagg dev does not answer; trying again.";
  }
  setTimeout(poll, 700);
}

poll();
