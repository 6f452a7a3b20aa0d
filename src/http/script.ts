// Data in inline scripts.

/**
 * JSON for a script: escapes what could end the script element, and the line separators that end string literals before
 * ECMAScript 2019.
 */
export function jsonForScript(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
