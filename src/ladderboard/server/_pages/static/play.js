// Animates the charts of the Play page. Without this script they show the last frame.
const section = document.querySelector("#play[data-animation]");
const animation = JSON.parse(section.dataset.animation);
const [left, right, top_, bottom] = animation.plot;
const [low, high] = animation.range;
const SECONDS = 5;

const panels = [...section.querySelectorAll("[data-board]")].map((panel) => ({
  labels: panel.querySelectorAll(".play-label"),
  clip: panel.querySelector("clipPath rect"),
  curves: [...panel.querySelectorAll("[data-attack]")].map((line) => ({
    shown: animation.shown[panel.dataset.board][line.dataset.attack],
    number: line.querySelector(".play-shown"),
    gap: line.querySelector(".play-gap"),
    end: panel.querySelector(`:scope > svg .play-end.play-${line.dataset.attack}`),
  })),
}));
const frames = panels[0].curves[0].shown.length;
const numberFormat = new Intl.NumberFormat("en");

const x = (frame) => left + (frame / frames) * (right - left);
const y = (value) => bottom - ((Math.min(Math.max(value, low), high) - low) / (high - low)) * (bottom - top_);
const questionsAt = (frame) => Math.floor((animation.questions * frame) / frames);

// Ties, at odd sixteenths, go to the even digit, as on the server.
const threeDigits = (value) => (value * 16 % 2 === 1 && Math.round(value * 1000) % 2 ? value - 0.0005 : value).toFixed(3);

// The same as gap_text on the server.
function gapText(gap) {
  if (Math.abs(gap) < 0.0005) return "looks as good as it is";
  return `looks ${threeDigits(Math.abs(gap))} ${gap > 0 ? "better" : "worse"} than it is`;
}

function show(frame) {
  for (const { labels, clip, curves } of panels) {
    clip.setAttribute("width", x(frame) - left);
    for (const label of labels) label.toggleAttribute("hidden", frame < frames);
    for (const { shown, number, gap, end } of curves) {
      const value = shown[frame - 1];
      number.textContent = threeDigits(value);
      gap.textContent = gapText(value - animation.worth);
      end.setAttribute("transform", `translate(${x(frame)} ${y(value)})`);
    }
  }
}

// The controls are created here, since they do nothing without the script.
const controls = document.createElement("div");
controls.className = "play-controls";
const button = document.createElement("button");
button.type = "button";
const label = document.createElement("label");
label.htmlFor = "play-frame";
label.textContent = "Submissions made";
const slider = document.createElement("input");
Object.assign(slider, { id: "play-frame", type: "range", min: 1, max: frames, value: frames });
const count = document.createElement("output");
count.htmlFor = "play-frame";
const announcement = document.createElement("p");
announcement.className = "visually-hidden";
announcement.setAttribute("aria-live", "polite");
controls.append(button, label, slider, count, announcement);
section.querySelector(".play-panels").before(controls);

let frame = frames;
let startedAt = null; // when the first frame was shown; null while it is paused

function seek(target) {
  frame = Math.min(Math.max(Math.round(target), 1), frames);
  show(frame);
  slider.value = frame;
  count.textContent = `${numberFormat.format(questionsAt(frame))} of ${numberFormat.format(animation.questions)}`;
  slider.setAttribute("aria-valuetext", `${count.textContent} submissions`);
}

function updateButton() {
  button.textContent = startedAt === null ? "Play" : "Pause";
}

// Screen readers get the numbers once, when the animation stops.
function stop() {
  startedAt = null;
  updateButton();
  const lines = [...section.querySelectorAll(".play-panel")].map((panel) => {
    const board = panel.querySelector("h3").textContent;
    const texts = [...panel.querySelectorAll(".play-said li")].map((line) => line.textContent.trim().replace(/\s+/g, " "));
    return `${board}: ${texts.join("; ")}.`;
  });
  announcement.textContent = `After ${count.textContent} submissions. ${lines.join(" ")}`;
}

function advance(now) {
  if (startedAt === null) return;
  const target = ((now - startedAt) / (SECONDS * 1000)) * frames;
  seek(target);
  if (target >= frames) stop();
  else requestAnimationFrame(advance);
}

function play() {
  const from = frame >= frames ? 0 : frame;
  startedAt = performance.now() - (from / frames) * SECONDS * 1000;
  announcement.textContent = "";
  updateButton();
  requestAnimationFrame(advance);
}

button.addEventListener("click", () => (startedAt === null ? play() : stop()));
slider.addEventListener("input", () => {
  startedAt = null;
  updateButton();
  seek(Number(slider.value));
});
slider.addEventListener("change", stop);

updateButton();
seek(frames);
// Plays once when it comes into view, unless the visitor prefers reduced motion.
if (!matchMedia("(prefers-reduced-motion: reduce)").matches) {
  const watch = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    watch.disconnect();
    if (startedAt === null && frame === frames) play();
  }, { threshold: 0.3 });
  watch.observe(section.querySelector(".play-panels"));
}
