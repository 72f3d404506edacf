// Additions to every page; pages work without them.

// <pre data-copy="what it is">: a button that copies.
function addCopyButton(block) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet small";
  const setLabel = (text) => {
    button.textContent = text;
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
  block.after(button);
}

// <time>: a tooltip with the local time; the page itself shows UTC.
const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
function localise(time) {
  const date = new Date(time.dateTime);
  if (!Number.isNaN(date.getTime())) time.title = `${local.format(date)}, your time`;
}

function enhance() {
  if (navigator.clipboard) { // only over TLS or on localhost
    document.querySelectorAll("pre[data-copy]").forEach(addCopyButton);
  }
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
