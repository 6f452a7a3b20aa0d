// Ids in the format of the hosted service.
import type { Random } from '../../runtime/secrets.ts';

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** Returns a random text of letters and digits, each equally likely. */
export function letters(length: number, random: Random): string {
  let text = '';
  while (text.length < length) {
    // 248 is 4 times 62. Larger bytes are skipped, because they would make the first letters more likely.
    for (const byte of random(length)) if (byte < 248 && text.length < length) text += LETTERS[byte % 62];
  }
  return text;
}

/** Returns an id such as `con_` and sixteen letters and digits. */
export function idOf(prefix: string, random: Random): string {
  return `${prefix}_${letters(16, random)}`;
}
