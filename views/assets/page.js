// Makes the pages a little nicer where scripts run; everything works without.
(() => {
  const alert = document.getElementById('alert');
  if (alert) alert.focus();

  const password = document.getElementById('password');
  const toggle = document.querySelector('.toggle');
  if (password && toggle) {
    toggle.hidden = false;
    toggle.addEventListener('click', () => {
      const show = password.type === 'password';
      password.type = show ? 'text' : 'password';
      toggle.setAttribute('aria-pressed', String(show));
      toggle.textContent = show ? toggle.dataset.hide : toggle.dataset.show;
      password.focus();
    });
  }

  const classes = {
    lowerCase: /\p{Ll}/u,
    upperCase: /\p{Lu}/u,
    numbers: /\p{Nd}/u,
    specialCharacters: /[^\p{L}\p{Nd}]/u,
  };
  const has = (text, names) => names.filter((name) => classes[name].test(text)).length;
  const judges = {
    nonEmpty: (text) => text.length > 0,
    lengthAtLeast: (text, n) => [...text].length >= n,
    shouldContain: (text) => has(text, ['lowerCase', 'upperCase', 'numbers']) === 3,
    containsAtLeast: (text, n) => has(text, Object.keys(classes)) >= n,
    identicalChars: (text) => !/(.)\1\1/u.test(text),
    ...Object.fromEntries(Object.keys(classes).map((name) => [name, (text) => classes[name].test(text)])),
  };
  const rules = document.getElementById('rules');
  if (password && rules) {
    password.addEventListener('input', () => {
      for (const rule of rules.querySelectorAll('[data-rule]')) {
        const judge = judges[rule.dataset.rule];
        if (!judge) continue;
        const met = judge(password.value, Number((rule.dataset.format || '').split(' ')[0]));
        rule.classList.toggle('met', met);
        rule.classList.toggle('unmet', !met && password.value !== '');
        const verdict = rule.querySelector(':scope > .verdict');
        if (verdict) verdict.textContent = met ? rules.dataset.met : rules.dataset.unmet;
      }
    });
  }

  for (const form of document.querySelectorAll('form')) {
    form.addEventListener('submit', () => {
      // Once: the second of two clicks would answer with the page of a request that is over.
      setTimeout(() => {
        for (const button of form.querySelectorAll('button[type="submit"]')) button.disabled = true;
      });
    });
  }
  addEventListener('pageshow', () => {
    for (const button of document.querySelectorAll('button:disabled')) button.disabled = false;
  });
})();
