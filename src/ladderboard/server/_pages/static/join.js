// An invitation is the fragment of a link, which is never sent to a server and so not logged.
const field = document.querySelector("#invitation");
const invitation = location.hash.slice(1).replace(/^invitation=/, "");
if (field && invitation.startsWith("lb_invitation_")) {
  field.value = invitation;
  history.replaceState(null, "", location.pathname);
}
