// JSON of others, which may be none.

/** The value of a text. @returns undefined for what is no JSON, which itself has no such value. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
