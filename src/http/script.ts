// Embeds data in inline scripts.

/**
 * Returns a value as JSON for a script element: escapes what could end the element, and the line separators that end
 * string literals before ECMAScript 2019.
 */
export function jsonForScript(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
