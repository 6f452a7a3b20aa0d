// Data in scripts of ours.

/**
 * JSON as a script has it, in a page or by itself: nothing in it ends the script element, and the line separators,
 * which older parsers take for line ends in a string (ECMA-262 before 2019), are escaped.
 */
export function jsonForScript(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
