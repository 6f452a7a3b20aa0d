// The rules of password strength, with the hosted service's codes and messages, so that SDKs and login widgets can show which
// one failed. views/assets/page.js checks the same rules while the user types.
import type { CharacterType } from '../records/password-options.ts';

/** The verdict of one rule, as in `description.rules` of the error body. */
export interface RuleVerdict {
  code: string;
  message: string;
  format?: (number | string)[];
  items?: { code: string; message: string; verified: boolean }[];
  verified: boolean;
}

/** Checks a normalized password by one rule. */
export type Rule = (password: string) => RuleVerdict;

const CLASSES = [
  { type: 'lowercase', code: 'lowerCase', message: 'lower case letters (a-z)', has: /\p{Ll}/u },
  { type: 'uppercase', code: 'upperCase', message: 'upper case letters (A-Z)', has: /\p{Lu}/u },
  { type: 'number', code: 'numbers', message: 'numbers (i.e. 0-9)', has: /\p{Nd}/u },
  {
    type: 'special',
    code: 'specialCharacters',
    message: 'special characters (e.g. !@#$%^&*)',
    has: /[^\p{L}\p{Nd}]/u,
  },
] as const;

export const nonEmpty: Rule = (password) => ({
  code: 'nonEmpty',
  message: 'Non-empty password required',
  verified: password.length > 0,
});

/** Requires a minimum length. @param length in characters (code points). */
export const lengthAtLeast =
  (length: number): Rule =>
  (password) => ({
    code: 'lengthAtLeast',
    message: 'At least %d characters in length',
    format: [length],
    verified: [...password].length >= length,
  });

/** Requires a maximum length. @param bytes of UTF-8. */
export const maxLength =
  (bytes: number): Rule =>
  (password) => ({
    code: 'maxLength',
    message: 'At most %d bytes in length',
    format: [bytes],
    verified: Buffer.byteLength(password) <= bytes,
  });

/** Requires a character of each of the types. */
export const shouldContain =
  (types: readonly CharacterType[]): Rule =>
  (password) => {
    const items = verdicts(password, types);
    return {
      code: 'shouldContain',
      message: 'Should contain:',
      items,
      verified: items.every((i) => i.verified),
    };
  };

/** Requires characters of three of the four types. */
export const containsAtLeast: Rule = (password) => {
  const items = verdicts(password);
  return {
    code: 'containsAtLeast',
    message: 'Contain at least %d of the following %d types of characters:',
    format: [3, 4],
    items,
    verified: items.filter((i) => i.verified).length >= 3,
  };
};

export const identicalChars: Rule = (password) => ({
  code: 'identicalChars',
  message: 'No more than %d identical characters in a row (e.g., "%s" not allowed)',
  format: [2, 'aaa'],
  verified: !/(.)\1\1/u.test(password),
});

export const sequentialChars: Rule = (password) => ({
  code: 'sequentialChars',
  message: 'No more than %d sequential alphanumeric characters (e.g., "%s" not allowed)',
  format: [2, 'abc'],
  verified: !hasSequence(password),
});

/** Returns whether three ASCII letters or digits in a row are consecutive, ascending or descending. */
function hasSequence(password: string): boolean {
  return [...password].some((first, at, all) => {
    const three = [first, all[at + 1] ?? '', all[at + 2] ?? ''];
    if (!three.every((one) => /^[a-zA-Z0-9]$/.test(one))) return false;
    const [a = 0, b = 0, c = 0] = three.map((one) => one.charCodeAt(0));
    return Math.abs(b - a) === 1 && c - b === b - a;
  });
}

function verdicts(password: string, types?: readonly CharacterType[]) {
  return CLASSES.filter(({ type }) => types?.includes(type) !== false).map(({ code, message, has }) => ({
    code,
    message,
    verified: has.test(password),
  }));
}
