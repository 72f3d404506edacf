// The submit page: drop a file, show the upload's progress, stay on the page.
// The form also works without this script.

const SAFE_TO_RETRY = "Sending the same file again is safe: it is counted once.";

function element(name, text, properties = {}) {
  const node = document.createElement(name);
  node.textContent = text;
  return Object.assign(node, properties);
}

function formatBytes(bytes) {
  for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
    if (bytes >= size) return `${Number((bytes / size).toPrecision(3))} ${unit}`;
  }
  return `${bytes} bytes`;
}

function showProblem(text) {
  document.querySelector("#reply")?.remove();
  const notice = element("div", "", { id: "reply", className: "result result-bad", tabIndex: -1 });
  notice.setAttribute("role", "alert");
  notice.append(element("p", text, { className: "notice-said" }));
  document.querySelector(".board-head").after(notice);
  notice.focus();
}

// A file that was checked stays chosen, with its message.
function keepFile(form, main) {
  const [again, step] = [main.querySelector("#submit-form"), main.querySelector("#next-step")];
  if (!again || !step) return;
  again.elements.file.files = form.elements.file.files;
  again.elements.message.value = form.elements.message.value;
  step.textContent = "The file is still chosen: you can submit it.";
}

// Replace the page's content with that of the response.
function replacePage(request, form) {
  const page = new DOMParser().parseFromString(request.responseText, "text/html");
  const main = page.querySelector("main");
  if (!main || request.status >= 500 || request.status === 0) {
    const message = main?.querySelector("p")?.textContent ?? "The server's answer cannot be read.";
    return showProblem(`${message} ${SAFE_TO_RETRY}`);
  }
  document.title = page.title;
  document.querySelector("main").replaceWith(main);
  keepFile(form, main);
  enhance();
  dispatchEvent(new Event("main-replaced"));
  (main.querySelector("#reply") ?? main).focus();
}

function upload(form, button) {
  const file = form.elements.file.files[0];
  const limit = Number(form.dataset.bytes);
  if (file.size > limit) {
    return showProblem(`${file.name} has ${formatBytes(file.size)}; at most ${form.dataset.size} are taken. Nothing was sent.`);
  }
  document.querySelector("#reply")?.remove();
  const cancel = element("button", "Cancel", { type: "button", className: "quiet" });
  const bar = element("progress", "", { max: 1, value: 0 });
  const state = element("p", "Sending", { className: "hint", id: "sending" });
  bar.setAttribute("aria-labelledby", "sending");
  state.setAttribute("role", "status");
  const progressBox = element("div", "");
  progressBox.append(state, bar);
  form.append(progressBox);
  for (const other of form.querySelectorAll("button")) other.disabled = true;
  button.after(cancel);
  const request = new XMLHttpRequest();
  const finish = () => {
    progressBox.remove();
    cancel.remove();
    for (const other of form.querySelectorAll("button")) other.disabled = false;
  };
  request.upload.addEventListener("progress", (event) => {
    if (event.lengthComputable) bar.value = event.loaded / event.total;
  });
  request.upload.addEventListener("load", () => {
    bar.removeAttribute("value");
    state.textContent = button.id ? "Scoring" : "Checking";
  });
  request.addEventListener("load", () => { finish(); replacePage(request, form); });
  request.addEventListener("error", () => { finish(); showProblem(`The connection broke. ${SAFE_TO_RETRY}`); });
  request.addEventListener("abort", () => { finish(); showProblem(`Cancelled. If the whole file had arrived, it may have been scored. ${SAFE_TO_RETRY}`); });
  cancel.addEventListener("click", () => request.abort());
  request.open("POST", button.getAttribute("formaction") ?? form.action);
  request.send(new FormData(form));
}

function enableDrop(form) {
  const zone = form.querySelector("#drop");
  const input = form.elements.file;
  const dropHint = matchMedia("(hover: hover)").matches ? "Or drop a file here." : "";
  const name = element("span", dropHint, { className: "hint" });
  name.setAttribute("role", "status");
  input.after(" ", name);
  const message = form.elements.message; // the file's name tells submissions apart
  let suggested = "";
  const showFile = () => {
    const file = input.files[0];
    name.textContent = file ? `${file.name}, ${formatBytes(file.size)}` : dropHint;
    if (file && message.value === suggested) message.value = suggested = file.name;
  };
  input.addEventListener("change", showFile);
  for (const kind of ["dragenter", "dragover"]) {
    zone.addEventListener(kind, (event) => { event.preventDefault(); zone.classList.add("over"); });
  }
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    if (event.dataTransfer.files.length !== 1) return showProblem("Send one file at a time. Nothing was sent.");
    input.files = event.dataTransfer.files;
    showFile();
  });
  showFile();
}

function countSelected(form) {
  const boxes = [...form.elements].filter((field) => field.name === "submission");
  const showCount = () => {
    const selected = boxes.filter((box) => box.checked).length;
    const limit = Number(form.dataset.most);
    const over = selected > limit ? `: ${selected - limit} too many` : "";
    form.querySelector("#selected-count").textContent = `${selected} of ${limit} selected${over}`;
  };
  for (const box of boxes) box.addEventListener("change", showCount);
  showCount();
}

function enhance() {
  const form = document.querySelector("#submit-form");
  if (form) {
    enableDrop(form);
    form.addEventListener("submit", (event) => { event.preventDefault(); upload(form, event.submitter ?? form.querySelector("#send-button")); });
  }
  const selection = document.querySelector("#selection");
  if (selection) countSelected(selection);
}

// Browsers open a file that is dropped beside the zone; prevent that.
for (const kind of ["dragover", "drop"]) {
  addEventListener(kind, (event) => {
    if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
  });
}
enhance();
