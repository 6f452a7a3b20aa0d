// The list of users as one types, the file of an import, and the progress of a job. All pages work without.

/** Milliseconds after the last key before it is asked. */
const PAUSE = 200;

/** Searches while something is typed: the list that is found is put in place of this one. */
function searchAsTyped() {
  const form = document.getElementById('search');
  const found = document.getElementById('found');
  if (form === null || found === null) return;
  let timer;
  let asked;
  const look = async () => {
    asked?.abort();
    asked = new AbortController();
    const { signal } = asked;
    const filled = [...new FormData(form)].filter(([, value]) => value !== '');
    const query = new URLSearchParams(filled);
    found.setAttribute('aria-busy', 'true');
    try {
      const list = await load(`${form.action}/found?${query}`, signal);
      if (signal.aborted) return;
      found.replaceChildren(...list.body.childNodes);
      history.replaceState(null, '', `${form.action}?${query}`);
    } catch (thrown) {
      // The form is there for whoever lost the network, or the session.
      if (thrown.name !== 'AbortError') form.submit();
    } finally {
      if (!signal.aborted) found.setAttribute('aria-busy', 'false');
    }
  };
  form.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(look, PAUSE);
  });
}

/** A part of a page of the console, which is asked for with its token: other scripts of this origin have none. */
async function load(url, signal) {
  const token = document.querySelector('meta[name="console-token"]').content;
  const answer = await fetch(url, { headers: { 'X-Console-Token': token }, signal });
  if (!answer.ok) throw new Error(String(answer.status));
  return new DOMParser().parseFromString(await answer.text(), 'text/html');
}

/** Loads the page of a job again until it is done. */
function followJob() {
  if (document.getElementById('open-job') !== null) setTimeout(() => location.reload(), 1500);
}

/** Shows the choice of a file in the words of the page: the browser's own are in the language of the browser. */
function chooseFile() {
  const shown = document.getElementById('file-chosen');
  const input = document.getElementById('users');
  if (shown === null || input === null) return;
  const name = document.getElementById('file-name');
  const none = name.textContent;
  const tell = () => {
    name.textContent = input.files[0]?.name ?? none;
  };
  input.addEventListener('change', tell);
  // What was chosen is there again after going back.
  tell();
  shown.hidden = false;
}

searchAsTyped();
chooseFile();
followJob();
