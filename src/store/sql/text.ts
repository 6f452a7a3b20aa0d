// Text as a database takes it. JSON escapes what is no Unicode text; an id or a key is a column of its own.

const mark = '\u0000';

/**
 * A database keeps UTF-8, which has no lone surrogates: two texts that differ only in those would become one.
 * Such a text is kept in a form that no other text has.
 */
export function columnText(text: string): string {
  return text.isWellFormed() && !text.startsWith(mark) ? text : mark + JSON.stringify(text);
}

/** What {@link columnText} was given. */
export function fromColumn(text: string): string {
  return text.startsWith(mark) ? String(JSON.parse(text.slice(mark.length))) : text;
}
