// Runs before anything is drawn, in any browser: it says which help the page must show. ECMAScript 3 on purpose.
(function () {
  var root = document.documentElement;
  var isNew = "noModule" in document.createElement("script") && window.AbortController && String.prototype.matchAll;
  root.className = isNew ? "loading" : "old";
  if (!isNew) return;
  function late() {
    if (root.className === "loading") root.className = "late"; // the page's own script makes it "ready"
  }
  document.addEventListener("error", function (event) {
    var tag = event.target;
    if (tag.tagName !== "SCRIPT") return;
    tag.setAttribute("data-failed", "");
    if (tag.type === "module") late();
  }, true);
  setTimeout(late, 8000);
})();
