// An invitation is the fragment of a link, which is never sent to a server and so not logged. One to
// a team waits in this tab until the person has signed in.
const KEY = `invitation ${location.pathname}`;
const fragment = location.hash.slice(1).replace(/^invitation=/, "");
if (fragment.startsWith("lb_")) {
  sessionStorage.setItem(KEY, fragment);
  history.replaceState(null, "", location.pathname);
}
const invitation = sessionStorage.getItem(KEY) ?? "";
const name = invitation.startsWith("lb_member_") ? "#member" : "#invitation";
const field = document.querySelector(name);
if (field && /^lb_(member|invitation)_/.test(invitation)) {
  field.value = invitation;
  sessionStorage.removeItem(KEY);
}
