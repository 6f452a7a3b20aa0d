// The development inbox follows what is sent: it asks every second, and shows what is new.
(() => {
  const EVERY = 1000;
  const relative = new Intl.RelativeTimeFormat(document.documentElement.lang, { numeric: 'auto' });
  let tag = '';

  const showTimes = () => {
    for (const time of document.querySelectorAll('time')) {
      const seconds = Math.round((Date.parse(time.dateTime) - Date.now()) / 1000);
      const [count, unit] =
        seconds > -60
          ? [seconds, 'second']
          : seconds > -3600
            ? [Math.round(seconds / 60), 'minute']
            : [Math.round(seconds / 3600), 'hour'];
      time.textContent = relative.format(Math.min(count, 0), unit);
    }
  };

  const showCopies = () => {
    for (const button of document.querySelectorAll('[data-copy]')) {
      button.hidden = false;
      button.onclick = async () => {
        await navigator.clipboard.writeText(button.dataset.copy);
        button.textContent = button.dataset.done;
      };
    }
  };

  /** Puts new messages in, and leaves those that are there as they are: they may be open, or being read. */
  const merge = (fresh) => {
    const shown = document.getElementById('inbox');
    const known = new Map([...shown.querySelectorAll('.message')].map((message) => [message.id, message]));
    for (const message of fresh.querySelectorAll('.message')) {
      const same = known.get(message.id);
      if (same) message.replaceWith(same);
    }
    shown.replaceChildren(...fresh.childNodes);
  };

  const look = async () => {
    const live = () => document.getElementById('live');
    try {
      const answer = await fetch(location.href, {
        headers: tag === '' ? {} : { 'if-none-match': tag },
        cache: 'no-store',
      });
      if (answer.status === 200) {
        tag = answer.headers.get('etag') ?? '';
        const page = await answer.text();
        // The list alone: the rest of the page has a policy, and a nonce, of its own.
        const list = page.slice(page.indexOf('<main'), page.indexOf('</main>'));
        merge(new DOMParser().parseFromString(list, 'text/html').getElementById('inbox'));
        showCopies();
      }
      live().hidden = !(answer.ok || answer.status === 304);
    } catch {
      live().hidden = true;
    }
    showTimes();
    setTimeout(look, EVERY);
  };
  look();
})();
