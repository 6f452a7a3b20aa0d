// The user code, which a device shows and a user types (RFC 8628 §6.1).
import type { DeviceFlowSettings } from '../../../records/tenant-settings.ts';
import type { Random } from '../../../runtime/random.ts';

/**
 * `base20`: letters that cannot be mistaken for others or for digits, and that form no words. `digits`: for devices
 * and users with a numeric keypad.
 */
const CHARSETS = { base20: 'BCDFGHJKLMNPQRSTVWXZ', digits: '0123456789' };

/**
 * Makes a new code in the form in which it is shown.
 * @param settings the tenant's: each `*` of the mask becomes a character of the code.
 */
export function newUserCode({ charset, mask }: DeviceFlowSettings, random: Random): string {
  const characters = CHARSETS[charset];
  return mask.replaceAll('*', () => randomOf(characters, random));
}

/** Draws a random character. Bytes that would favour some characters are drawn again. */
function randomOf(characters: string, random: Random): string {
  const fair = 256 - (256 % characters.length);
  for (;;) {
    for (const byte of random(4)) if (byte < fair) return characters[byte % characters.length] ?? '';
  }
}

/** Normalizes a typed code: upper case, without the characters between its letters and digits. */
export function normalizeUserCode(typed: string): string {
  return typed.toUpperCase().replaceAll(/[^A-Z0-9]/g, '');
}
