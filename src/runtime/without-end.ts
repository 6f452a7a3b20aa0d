// Removes repeated characters at the end of a text.

/**
 * Returns a text without the characters at its end. A regular expression for that (`/=+$/`) tries every run of them in the
 * text, and each to its end.
 * @param character one UTF-16 code unit.
 */
export function withoutEnd(text: string, character: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === character) end--;
  return text.slice(0, end);
}
