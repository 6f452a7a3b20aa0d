// What scripts add to the pages. Every page works without.

/** Shows and hides the password. */
function revealPassword() {
  const toggle = document.querySelector('.toggle');
  const password = document.getElementById('password');
  if (toggle === null || password === null) return;
  const hide = () => {
    if (password.type === 'text') toggle.click();
  };
  toggle.hidden = false;
  toggle.addEventListener('click', () => {
    password.type = password.type === 'password' ? 'text' : 'password';
    const [text, label] = [toggle.textContent, toggle.ariaLabel];
    toggle.textContent = toggle.dataset.other;
    toggle.ariaLabel = toggle.dataset.otherLabel;
    toggle.dataset.other = text;
    toggle.dataset.otherLabel = label;
  });
  // Shown, it would go into the browser's memory of what was typed.
  password.form.addEventListener('submit', hide);
}

const CLASSES = {
  lowerCase: /\p{Ll}/u,
  upperCase: /\p{Lu}/u,
  numbers: /\p{Nd}/u,
  specialCharacters: /[^\p{L}\p{Nd}]/u,
};

const classesIn = (text) => Object.keys(CLASSES).filter((name) => CLASSES[name].test(text));

/** Whether three letters or digits follow one another, up or down. */
function isSequence(three) {
  if (three.length < 3 || !three.every((one) => /^[a-zA-Z0-9]$/.test(one))) return false;
  const [a, b, c] = three.map((one) => one.charCodeAt(0));
  return Math.abs(b - a) === 1 && c - b === b - a;
}

/** The server's rules (src/users/password-policy.ts), by code. The server decides. */
const RULES = {
  nonEmpty: (text) => text !== '',
  lengthAtLeast: (text, least) => [...text].length >= least,
  shouldContain: (text, _count, kinds) => kinds.every((name) => CLASSES[name].test(text)),
  containsAtLeast: (text, least) => classesIn(text).length >= least,
  identicalChars: (text) => !/(.)\1\1/u.test(text),
  sequentialChars: (text) => ![...text].some((_one, at, all) => isSequence(all.slice(at, at + 3))),
  maxLength: (text, most) => new TextEncoder().encode(text).length <= most,
  ...Object.fromEntries(Object.entries(CLASSES).map(([name, has]) => [name, (text) => has.test(text)])),
};

/** Marks the rules that a password meets while it is typed. */
function judgePassword() {
  const rules = document.getElementById('rules');
  const password = document.getElementById('password');
  if (rules === null || password === null) return;
  password.addEventListener('input', () => {
    for (const rule of rules.querySelectorAll('[data-rule]')) {
      const kinds = [...rule.querySelectorAll('[data-rule]')].map((kind) => kind.dataset.rule);
      const isMet = RULES[rule.dataset.rule]?.(password.value, Number(rule.dataset.number), kinds) === true;
      // Not all kinds of characters are needed: none is called missing.
      const isKind = rule.parentElement !== rules;
      rule.classList.toggle('met', isMet);
      rule.classList.toggle('unmet', !isMet && !isKind);
      rule.querySelector('.verdict').textContent = isMet
        ? rules.dataset.met
        : isKind
          ? ''
          : rules.dataset.unmet;
    }
  });
}

/** A second click would post a form whose request the first has ended. */
function submitOnce() {
  for (const form of document.forms) {
    form.addEventListener('submit', (event) => {
      // What is shown in a frame leaves the page, and its form, where they are.
      if (event.submitter?.formTarget) return;
      if (form.ariaBusy === 'true') event.preventDefault();
      form.ariaBusy = 'true';
    });
  }
  addEventListener('pageshow', () => {
    for (const form of document.forms) form.ariaBusy = null;
  });
}

/** Another code can be asked for when the one on its way has had its time; the button counts it down. */
function coolDown() {
  const format = new Intl.NumberFormat(document.documentElement.lang);
  for (const button of document.querySelectorAll('[data-cooldown]')) {
    const text = button.textContent;
    const until = Date.now() + Number(button.dataset.cooldown) * 1000;
    const show = () => {
      const seconds = Math.ceil((until - Date.now()) / 1000);
      button.disabled = seconds > 0;
      button.textContent = button.disabled
        ? button.dataset.wait.replace('{seconds}', format.format(seconds))
        : text;
      if (button.disabled) setTimeout(show, 250);
    };
    show();
  }
}

/** Waits for an answer given elsewhere; the form goes on by itself then. */
function followAnswer() {
  const form = document.querySelector('[data-poll]');
  if (form === null) return;
  const look = async () => {
    const answer = await fetch(form.dataset.poll, { cache: 'no-store' }).catch(() => undefined);
    const state = answer?.ok ? (await answer.json()).state : 'pending';
    if (state === 'accepted' || state === 'rejected') form.requestSubmit();
    else if (state === 'pending') setTimeout(look, 2000);
  };
  setTimeout(look, 2000);
}

function copyTexts() {
  for (const button of document.querySelectorAll('[data-copy]')) {
    button.hidden = false;
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = button.dataset.done;
      // Its label names what is to be copied, and would still do so.
      button.ariaLabel = null;
    });
  }
}

/** Older browsers have `autofocus` for fields alone. */
function focusAlert() {
  if (!('autofocus' in HTMLElement.prototype)) document.getElementById('alert')?.focus();
}

revealPassword();
judgePassword();
submitOnce();
coolDown();
followAnswer();
copyTexts();
focusAlert();
