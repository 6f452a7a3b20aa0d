// Live previews of branding. Every page works without: a button shows what was typed.

/** Milliseconds after the last key. */
const PAUSE = 300;

for (const form of document.querySelectorAll('form[data-live]')) {
  const preview = form.querySelector('[data-preview]');
  let timer;
  form.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(() => form.requestSubmit(preview), PAUSE);
  });
}

/** A picker beside each colour, whose text is what counts. */
for (const text of document.querySelectorAll('[data-color]')) {
  const picker = document.createElement('input');
  picker.type = 'color';
  picker.className = 'color-picker';
  picker.disabled = text.matches(':disabled');
  picker.ariaLabel = text.labels[0]?.textContent ?? '';
  const follow = () => {
    picker.value = /^#[0-9a-f]{6}$/i.test(text.value) ? text.value : text.placeholder;
  };
  follow();
  text.addEventListener('input', follow);
  picker.addEventListener('input', (event) => {
    event.stopPropagation();
    text.value = picker.value;
    text.dispatchEvent(new Event('input', { bubbles: true }));
  });
  text.after(picker);
}
