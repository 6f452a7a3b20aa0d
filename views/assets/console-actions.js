// Numbers beside the lines of code. The keyboard stays what it is: Tab leaves the field.

/** Puts a column of numbers beside a text, which scrolls with it. */
function numberLines(text) {
  const frame = document.createElement('div');
  frame.className = 'numbered';
  const column = document.createElement('pre');
  column.className = 'line-numbers';
  column.ariaHidden = 'true';
  text.replaceWith(frame);
  frame.append(column, text);
  let count = 0;
  const show = () => {
    const lines = text.value.split('\n').length;
    if (lines === count) return;
    count = lines;
    column.textContent = Array.from({ length: lines }, (_, index) => index + 1).join('\n');
  };
  text.addEventListener('input', show);
  text.addEventListener('scroll', () => {
    column.scrollTop = text.scrollTop;
  });
  show();
}

for (const text of document.querySelectorAll('textarea[data-lines]')) numberLines(text);
