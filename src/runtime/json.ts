// Parses JSON that may be invalid.

/** Parses a text. @returns undefined when it is not valid JSON; no JSON has that value. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
