// The code that a device shows and a person types (RFC 8628 §6.1).
import type { DeviceFlowSettings } from '../../records/tenant-settings.ts';
import type { Random } from '../../runtime/random.ts';

/** Letters that are taken for no other letter or digit, and make no words; and digits, for what has only those. */
const CHARSETS = { base20: 'BCDFGHJKLMNPQRSTVWXZ', digits: '0123456789' };

/** A new code, as it is shown. @param settings the tenant's: `*` in the mask is a character of the code. */
export function newUserCode({ charset, mask }: DeviceFlowSettings, random: Random): string {
  const characters = CHARSETS[charset];
  return mask.replaceAll('*', () => randomOf(characters, random));
}

/** Bytes that would favour some characters are drawn again. */
function randomOf(characters: string, random: Random): string {
  const fair = 256 - (256 % characters.length);
  for (;;) {
    for (const byte of random(4)) if (byte < fair) return characters[byte % characters.length] ?? '';
  }
}

/** A code however it is typed: in any case, and with or without what stands between its characters. */
export function normalized(typed: string): string {
  return typed.toUpperCase().replaceAll(/[^A-Z0-9]/g, '');
}
