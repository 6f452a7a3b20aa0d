// Ids as the hosted service makes them.
import type { Random } from '../runtime/random.ts';

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** Letters and digits, evenly drawn. */
export function letters(length: number, random: Random): string {
  let text = '';
  while (text.length < length) {
    // 248 is 4 times 62: what is above it would make the first letters likelier.
    for (const byte of random(length)) if (byte < 248 && text.length < length) text += LETTERS[byte % 62];
  }
  return text;
}

/** `con_` and sixteen letters and digits. */
export function idOf(prefix: string, random: Random): string {
  return `${prefix}_${letters(16, random)}`;
}
