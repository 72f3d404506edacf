// An invitation comes behind the # of a link, which no server and no log ever sees.
const field = document.querySelector("#invitation");
const brought = location.hash.slice(1).replace(/^invitation=/, "");
if (field && brought.startsWith("lb_invitation_")) {
  field.value = brought;
  history.replaceState(null, "", location.pathname);
}
