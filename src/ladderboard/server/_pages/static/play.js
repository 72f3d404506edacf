// Play, frame by frame. Without this script the whole picture is there at once.
const stage = document.querySelector("#play[data-film]");
const film = JSON.parse(stage.dataset.film);
const [left, right, top_, bottom] = film.plot;
const [low, high] = film.range;
const SECONDS = 5;

const panels = [...stage.querySelectorAll("[data-board]")].map((panel) => ({
  labels: panel.querySelectorAll(".play-label"),
  clip: panel.querySelector("clipPath rect"),
  curves: [...panel.querySelectorAll("[data-attack]")].map((line) => ({
    shown: film.shown[panel.dataset.board][line.dataset.attack],
    number: line.querySelector(".play-shown"),
    gap: line.querySelector(".play-gap"),
    end: panel.querySelector(`:scope > svg .play-end.play-${line.dataset.attack}`),
  })),
}));
const frames = panels[0].curves[0].shown.length;
const counted = new Intl.NumberFormat("en");

const x = (frame) => left + (frame / frames) * (right - left);
const y = (value) => bottom - ((Math.min(Math.max(value, low), high) - low) / (high - low)) * (bottom - top_);
const asked = (frame) => Math.floor((film.questions * frame) / frames);

// As gap_words on the server.
function gapWords(gap) {
  if (Math.abs(gap) < 0.0005) return "looks as good as it is";
  return `looks ${Math.abs(gap).toFixed(3)} ${gap > 0 ? "better" : "worse"} than it is`;
}

function show(frame) {
  for (const { labels, clip, curves } of panels) {
    clip.setAttribute("width", x(frame) - left);
    for (const label of labels) label.toggleAttribute("hidden", frame < frames);
    for (const { shown, number, gap, end } of curves) {
      const value = shown[frame - 1];
      number.textContent = value.toFixed(3);
      gap.textContent = gapWords(value - film.worth);
      end.setAttribute("transform", `translate(${x(frame)} ${y(value)})`);
    }
  }
}

// The controls are made here, so that nobody sees a button that does nothing.
const controls = document.createElement("div");
controls.className = "play-controls";
const button = document.createElement("button");
button.type = "button";
const label = document.createElement("label");
label.htmlFor = "play-frame";
label.textContent = "Questions asked";
const slider = document.createElement("input");
Object.assign(slider, { id: "play-frame", type: "range", min: 1, max: frames, value: frames });
const count = document.createElement("output");
count.htmlFor = "play-frame";
const said = document.createElement("p");
said.className = "visually-hidden";
said.setAttribute("aria-live", "polite");
controls.append(button, label, slider, count, said);
stage.querySelector(".play-panels").before(controls);

let frame = frames;
let begun = null; // when the film began, were it played from its first frame

function seek(to) {
  frame = Math.min(Math.max(Math.round(to), 1), frames);
  show(frame);
  slider.value = frame;
  count.textContent = `${counted.format(asked(frame))} of ${counted.format(film.questions)}`;
  slider.setAttribute("aria-valuetext", `${count.textContent} questions`);
}

function name() {
  button.textContent = begun === null ? "Play" : "Pause";
}

// Screen readers are told once it stands still, not a hundred times on the way.
function stop() {
  begun = null;
  name();
  const lines = [...stage.querySelectorAll(".play-panel")].map((panel) => {
    const board = panel.querySelector("h3").textContent;
    const each = [...panel.querySelectorAll(".play-said li")].map((line) => line.textContent.trim().replace(/\s+/g, " "));
    return `${board}: ${each.join("; ")}.`;
  });
  said.textContent = `After ${count.textContent} questions. ${lines.join(" ")}`;
}

function turn(now) {
  if (begun === null) return;
  const to = ((now - begun) / (SECONDS * 1000)) * frames;
  seek(to);
  if (to >= frames) stop();
  else requestAnimationFrame(turn);
}

function play() {
  const from = frame >= frames ? 0 : frame;
  begun = performance.now() - (from / frames) * SECONDS * 1000;
  said.textContent = "";
  name();
  requestAnimationFrame(turn);
}

button.addEventListener("click", () => (begun === null ? play() : stop()));
slider.addEventListener("input", () => {
  begun = null;
  name();
  seek(Number(slider.value));
});
slider.addEventListener("change", stop);

name();
seek(frames);
// Once by itself when it comes into view, unless the reader would rather have nothing move.
if (!matchMedia("(prefers-reduced-motion: reduce)").matches) {
  const watch = new IntersectionObserver((seen) => {
    if (!seen.some((each) => each.isIntersecting)) return;
    watch.disconnect();
    if (begun === null && frame === frames) play();
  }, { threshold: 0.3 });
  watch.observe(stage.querySelector(".play-panels"));
}
