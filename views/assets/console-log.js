// The log as it goes on: the page is asked for anew while it is looked at, and what has come is put in its place.
const EVERY = 5000;

const button = document.querySelector('[data-live]');
const shown = document.querySelector('[data-events]');

/** What the server shows now; the page stays as it is where it does not answer. */
async function look() {
  const token = document.querySelector('meta[name="console-token"]').content;
  const answer = await fetch(location.href, {
    cache: 'no-store',
    headers: { 'X-Console-Token': token },
  }).catch(() => undefined);
  if (!answer?.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  const fresh = page.querySelector('[data-events]');
  // Whoever goes through the table by keyboard is not thrown out of it.
  if (fresh === null || fresh.innerHTML === shown.innerHTML || shown.contains(document.activeElement)) return;
  shown.replaceChildren(...fresh.childNodes);
}

if (button !== null && shown !== null) {
  let timer;
  button.hidden = false;
  button.ariaPressed = 'false';
  button.addEventListener('click', () => {
    const isOn = button.ariaPressed !== 'true';
    button.ariaPressed = String(isOn);
    [button.textContent, button.dataset.live] = [button.dataset.live, button.textContent];
    clearInterval(timer);
    if (!isOn) return;
    look();
    timer = setInterval(() => document.hidden || look(), EVERY);
  });
}
