// What a script adds to any page. Everything works without it.

// <pre data-copy="what it is">: a button that copies.
function copying(block) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet small";
  const tell = (text) => {
    button.textContent = text;
    button.setAttribute("aria-label", `${text}: ${block.dataset.copy}`);
  };
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(block.textContent.trim());
      tell("Copied");
    } catch {
      tell("Select it, and copy");
    }
    setTimeout(() => tell("Copy"), 2000);
  });
  tell("Copy");
  block.after(button);
}

// <time>: what it is where the reader is. The page itself says UTC, as every message does.
const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
function localise(time) {
  const moment = new Date(time.dateTime);
  if (!Number.isNaN(moment.getTime())) time.title = `${local.format(moment)}, your time`;
}

function dress() {
  if (navigator.clipboard) { // only over TLS, or at home
    document.querySelectorAll("pre[data-copy]").forEach(copying);
  }
  document.querySelectorAll("time[datetime]").forEach(localise);
}
dress();
addEventListener("turned", dress); // another script has put in a new <main>

// <form data-ask="...">: asks before it does what cannot be undone.
for (const form of document.querySelectorAll("form[data-ask]")) {
  form.addEventListener("submit", (event) => {
    if (!window.confirm(form.dataset.ask)) event.preventDefault();
  });
}

// <div data-poll="/place">: a job's progress, until it has ended; then the page comes again.
for (const job of document.querySelectorAll("[data-poll]")) {
  const bar = job.querySelector("progress");
  const look = async () => {
    try {
      const reply = await fetch(job.dataset.poll);
      const ended = reply.status >= 400 && reply.status < 500; // as the session may have
      const said = ended ? {} : await reply.json();
      if (said.state !== "running") {
        location.replace(location.pathname); // to reload what a form brought would send it again
        return;
      }
      if (bar && said.total) {
        bar.max = said.total;
        bar.value = said.done;
      }
    } catch {
      // the server may be busy, or gone for a moment: look again
    }
    setTimeout(look, 1000);
  };
  setTimeout(look, 1000);
}
