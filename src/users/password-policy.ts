// The password policies of database connections, with the hosted service's rules, codes and words,
// so that SDKs and login widgets can show which rule failed.

import { LONGEST_PASSWORD, normalizePassword } from '../records/passwords.ts';
import type { DatabaseOptions } from '../records/tenant.ts';
import { COMMON_PASSWORDS } from './common-passwords.ts';

/** One rule's verdict, as it stands in the error body's `description.rules`. */
export interface RuleVerdict {
  code: string;
  message: string;
  format?: (number | string)[];
  items?: { code: string; message: string; verified: boolean }[];
  verified: boolean;
}

export interface PolicyVerdict {
  rules: RuleVerdict[];
  verified: boolean;
}

const CLASSES = [
  { code: 'lowerCase', message: 'lower case letters (a-z)', has: /\p{Ll}/u },
  { code: 'upperCase', message: 'upper case letters (A-Z)', has: /\p{Lu}/u },
  { code: 'numbers', message: 'numbers (i.e. 0-9)', has: /\p{Nd}/u },
  { code: 'specialCharacters', message: 'special characters (e.g. !@#$%^&*)', has: /[^\p{L}\p{Nd}]/u },
] as const;

type Rule = (password: string) => RuleVerdict;

const nonEmpty: Rule = (password) => ({
  code: 'nonEmpty',
  message: 'Non-empty password required',
  verified: password.length > 0,
});

const lengthAtLeast =
  (length: number): Rule =>
  (password) => ({
    code: 'lengthAtLeast',
    message: 'At least %d characters in length',
    format: [length],
    verified: [...password].length >= length,
  });

const maxLength: Rule = (password) => ({
  code: 'maxLength',
  message: 'At most %d bytes in length',
  format: [LONGEST_PASSWORD],
  verified: Buffer.byteLength(password) <= LONGEST_PASSWORD,
});

const shouldContain: Rule = (password) => {
  const items = verdicts(password, CLASSES.slice(0, 3));
  return {
    code: 'shouldContain',
    message: 'Should contain:',
    items,
    verified: items.every((i) => i.verified),
  };
};

const containsAtLeast: Rule = (password) => {
  const items = verdicts(password, CLASSES);
  return {
    code: 'containsAtLeast',
    message: 'Contain at least %d of the following %d types of characters:',
    format: [3, 4],
    items,
    verified: items.filter((i) => i.verified).length >= 3,
  };
};

const identicalChars: Rule = (password) => ({
  code: 'identicalChars',
  message: 'No more than %d identical characters in a row (e.g., "%s" not allowed)',
  format: [2, 'aaa'],
  verified: !/(.)\1\1/u.test(password),
});

function verdicts(password: string, classes: readonly (typeof CLASSES)[number][]) {
  return classes.map(({ code, message, has }) => ({ code, message, verified: has.test(password) }));
}

const DEFAULT_LENGTH = { none: 1, low: 6, fair: 8, good: 8, excellent: 10 } as const;

function rulesOf({ passwordPolicy, password_complexity_options: complexity }: DatabaseOptions): Rule[] {
  const length = lengthAtLeast(complexity?.min_length ?? DEFAULT_LENGTH[passwordPolicy]);
  switch (passwordPolicy) {
    case 'none':
      return complexity?.min_length === undefined ? [nonEmpty] : [length];
    case 'low':
      return [length];
    case 'fair':
      return [length, shouldContain];
    case 'good':
      return [length, containsAtLeast];
    case 'excellent':
      return [length, containsAtLeast, identicalChars];
  }
}

/** The rules of a connection in the words of the My Account API. */
export function publishedPolicy(options: DatabaseOptions): object {
  const { passwordPolicy: policy, password_complexity_options: complexity } = options;
  const {
    password_no_personal_info: personal,
    password_history: history,
    password_dictionary: words,
  } = options;
  const isStrong = policy === 'good' || policy === 'excellent';
  const letters = ['uppercase', 'lowercase', 'number'];
  return {
    complexity: {
      min_length: complexity?.min_length ?? DEFAULT_LENGTH[policy],
      character_types: isStrong ? [...letters, 'special'] : policy === 'fair' ? letters : [],
      character_type_rule: isStrong ? 'three_of_four' : 'all',
      identical_characters: policy === 'excellent' ? 'block' : 'allow',
      sequential_characters: 'allow',
      max_length_exceeded: 'error',
    },
    profile_data: { active: personal?.enable === true, blocked_fields: [] },
    history: { active: history?.enable === true, size: history?.size ?? 0 },
    dictionary: { active: words?.enable === true, default: 'en_10k' },
  };
}

/** A password against the strength rules of a connection: every rule's verdict. */
export function judgeStrength(options: DatabaseOptions, password: string): PolicyVerdict {
  const normal = normalizePassword(password);
  const rules = rulesOf(options).map((rule) => rule(normal));
  const tooLong = maxLength(normal);
  // The limit of ours is named only to who meets it.
  const all = tooLong.verified ? rules : [...rules, tooLong];
  return { rules: all, verified: all.every((rule) => rule.verified) };
}

/** A rule's sentence, its numbers filled in. */
function ruleText({ message, format = [] }: Pick<RuleVerdict, 'message' | 'format'>): string {
  return format.reduce<string>((text, value) => text.replace(/%[ds]/, String(value)), message);
}

/** The rules as the markdown bullets of the error body's `policy`. */
export function policyText({ rules }: PolicyVerdict): string {
  return rules
    .flatMap((rule) => [`* ${ruleText(rule)}`, ...(rule.items ?? []).map((item) => ` * ${item.message}`)])
    .join('\n');
}

/** Whether a password is one that attackers try first, by the built-in and the connection's own list. */
export function isCommon({ password_dictionary: dictionary }: DatabaseOptions, password: string): boolean {
  if (dictionary?.enable !== true) return false;
  const lower = normalizePassword(password).toLowerCase();
  return (
    COMMON_PASSWORDS.has(lower) ||
    dictionary.dictionary.some((word) => normalizePassword(word).toLowerCase() === lower)
  );
}

/** What of a user must not be in the password, where the connection turns `password_no_personal_info` on. */
interface PersonalInfo {
  email?: string | undefined;
  username?: string | undefined;
  name?: string | undefined;
  nickname?: string | undefined;
  user_metadata?: Readonly<Record<string, unknown>> | undefined;
}

/** Shorter pieces of a name are in too many good passwords by accident. */
const SHORTEST_PIECE = 3;

/** Whether a password contains the user's name, username or the local part of the address. */
export function containsPersonalInfo(
  { password_no_personal_info: rule }: DatabaseOptions,
  password: string,
  { email, username, name, nickname, user_metadata: metadata }: PersonalInfo,
): boolean {
  if (rule?.enable !== true) return false;
  const lower = normalizePassword(password).toLowerCase();
  const pieces = [
    email?.split('@')[0],
    username,
    name,
    nickname,
    metadata?.name,
    metadata?.first,
    metadata?.last,
  ]
    .filter((piece): piece is string => typeof piece === 'string')
    .flatMap((piece) => [piece, ...piece.split(/\s+/)])
    .map((piece) => piece.normalize('NFC').toLowerCase());
  return pieces.some((piece) => piece.length >= SHORTEST_PIECE && lower.includes(piece));
}
