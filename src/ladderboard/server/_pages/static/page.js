// Additions to every page; pages work without them.

// <pre data-copy="what it is">: a button inside the block that copies it.
const ICONS = {
  Copy: "M7 3h8a2 2 0 0 1 2 2v8M5 7h6a2 2 0 0 1 2 2v6a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2V9a2 2 0 0 1 2-2z",
  Copied: "M4 10.5l4 4 8-9",
};
function addCopyButton(block) {
  const frame = document.createElement("div");
  frame.className = "copyable";
  const button = document.createElement("button");
  button.type = "button";
  const icon = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  icon.setAttribute("viewBox", "0 0 20 20");
  icon.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  icon.append(path);
  button.append(icon);
  const setLabel = (text) => {
    path.setAttribute("d", ICONS[text] ?? ICONS.Copy);
    button.title = text;
    button.setAttribute("aria-label", `${text}: ${block.dataset.copy}`);
  };
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(block.textContent.trim());
      setLabel("Copied");
    } catch {
      setLabel("Select it, and copy");
    }
    setTimeout(() => setLabel("Copy"), 2000);
  });
  setLabel("Copy");
  block.before(frame);
  frame.append(block, button);
}

// <time>: a tooltip with the local time; the page itself shows UTC, or "3 days ago" with a tooltip.
const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
function localise(time) {
  const date = new Date(time.dateTime);
  if (Number.isNaN(date.getTime())) return;
  const text = `${local.format(date)}, your time`;
  time.title = time.title ? `${time.title} (${text})` : text;
}

function enhance() {
  if (navigator.clipboard) { // only over TLS or on localhost
    document.querySelectorAll("pre[data-copy]").forEach(addCopyButton);
  }
  // On a phone the tabs are wider than the screen: show the current one.
  document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  document.querySelectorAll("time[datetime]").forEach(localise);
}
enhance();
addEventListener("main-replaced", enhance); // by submit.js

// <form data-ask="...">: asks for confirmation.
for (const form of document.querySelectorAll("form[data-ask]")) {
  form.addEventListener("submit", (event) => {
    if (!window.confirm(form.dataset.ask)) event.preventDefault();
  });
}
