// Comfort for the page to submit with: drop a file, watch it go, stay on the page.
// Without this script the same form does the same.

const AGAIN = "Sending the same file again is safe: it is counted once.";

function make(name, text, more = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  return Object.assign(made, more);
}

function sized(bytes) {
  for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
    if (bytes >= size) return `${Number((bytes / size).toPrecision(3))} ${unit}`;
  }
  return `${bytes} bytes`;
}

function say(text) {
  document.querySelector("#reply")?.remove();
  const said = make("div", "", { id: "reply", className: "notice notice-bad", tabIndex: -1 });
  said.setAttribute("role", "alert");
  said.append(make("p", text, { className: "notice-said" }));
  document.querySelector("#main .grid").before(said);
  said.focus();
}

// Show the page that came back, in place of this one.
function turn(request) {
  const page = new DOMParser().parseFromString(request.responseText, "text/html");
  const main = page.querySelector("main");
  if (!main || request.status >= 500 || request.status === 0) {
    const told = main?.querySelector("p")?.textContent ?? "The server's answer cannot be read.";
    return say(`${told} ${AGAIN}`);
  }
  document.title = page.title;
  document.querySelector("main").replaceWith(main);
  start();
  dispatchEvent(new Event("turned"));
  (main.querySelector("#reply") ?? main).focus();
}

function send(form) {
  const file = form.elements.file.files[0];
  const most = Number(form.dataset.bytes);
  if (file.size > most) {
    return say(`${file.name} has ${sized(file.size)}; at most ${form.dataset.size} are taken. Nothing was sent.`);
  }
  document.querySelector("#reply")?.remove();
  const button = form.querySelector("#send-button");
  const cancel = make("button", "Cancel", { type: "button", className: "quiet" });
  const bar = make("progress", "", { max: 1, value: 0 });
  const state = make("p", "Sending", { className: "hint", id: "sending" });
  bar.setAttribute("aria-labelledby", "sending");
  state.setAttribute("role", "status");
  const shown = make("div", "");
  shown.append(state, bar);
  form.append(shown);
  button.disabled = true;
  button.after(cancel);
  const request = new XMLHttpRequest();
  const end = () => {
    shown.remove();
    cancel.remove();
    button.disabled = false;
  };
  request.upload.addEventListener("progress", (event) => {
    if (event.lengthComputable) bar.value = event.loaded / event.total;
  });
  request.upload.addEventListener("load", () => {
    bar.removeAttribute("value");
    state.textContent = "Scoring";
  });
  request.addEventListener("load", () => { end(); turn(request); });
  request.addEventListener("error", () => { end(); say(`The connection broke. ${AGAIN}`); });
  request.addEventListener("abort", () => { end(); say(`Cancelled; what had been sent whole may have been answered. ${AGAIN}`); });
  cancel.addEventListener("click", () => request.abort());
  request.open("POST", form.action);
  request.send(new FormData(form));
}

function drop(form) {
  const zone = form.querySelector("#drop");
  const input = form.elements.file;
  const name = make("p", "Or drop a file here.", { className: "hint" });
  name.setAttribute("role", "status");
  zone.append(name);
  const tell = () => {
    const file = input.files[0];
    name.textContent = file ? `${file.name}, ${sized(file.size)}` : "Or drop a file here.";
  };
  input.addEventListener("change", tell);
  for (const kind of ["dragenter", "dragover"]) {
    zone.addEventListener(kind, (event) => { event.preventDefault(); zone.classList.add("over"); });
  }
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    if (event.dataTransfer.files.length !== 1) return say("Send one file at a time. Nothing was sent.");
    input.files = event.dataTransfer.files;
    tell();
  });
  tell();
}

function count(form) {
  const boxes = [...form.elements].filter((each) => each.name === "submission");
  const tell = () => {
    const many = boxes.filter((each) => each.checked).length;
    const most = Number(form.dataset.most);
    const over = many > most ? `: ${many - most} too many` : "";
    form.querySelector("#selected-count").textContent = `${many} of ${most} selected${over}`;
  };
  for (const box of boxes) box.addEventListener("change", tell);
  tell();
}

function start() {
  const form = document.querySelector("#submit-form");
  if (form) {
    drop(form);
    form.addEventListener("submit", (event) => { event.preventDefault(); send(form); });
  }
  const selection = document.querySelector("#selection");
  if (selection) count(selection);
}

// A file dropped beside the zone must not take the reader away.
for (const kind of ["dragover", "drop"]) {
  addEventListener(kind, (event) => {
    if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
  });
}
start();
