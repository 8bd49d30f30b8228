// Updates the page's live list: fetches the page regularly and replaces the list when it differs.
const EVERY_MS = 1500;

async function refresh() {
  if (document.hidden) return;
  const reply = await fetch(location.pathname, { headers: { accept: "text/html" } });
  if (!reply.ok) return;
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  const [shown, fresh] = [document, page].map((one) => one.querySelector("[data-live]"));
  if (fresh && fresh.innerHTML !== shown.innerHTML) shown.innerHTML = fresh.innerHTML;
}

setInterval(() => refresh().catch(() => {}), EVERY_MS);
