// Text in columns. JSON escapes what is not valid Unicode, but ids and keys are columns of their own.

const mark = '\u0000';

/**
 * Converts a text for a column. A database stores UTF-8, which has no lone surrogates: two texts that differ only in
 * those would become equal. Such a text is stored in a form that no other text has.
 */
export function columnText(text: string): string {
  return text.isWellFormed() && !text.startsWith(mark) ? text : mark + JSON.stringify(text);
}

/** Reverses {@link columnText}. */
export function fromColumn(text: string): string {
  return text.startsWith(mark) ? String(JSON.parse(text.slice(mark.length))) : text;
}
