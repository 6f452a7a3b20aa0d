// What passwords of a database connection have to be. `password_options` says it; where a connection has none, the older
// members do. All that judges a password goes by the one policy that is made of either.
import { CHARACTER_TYPES, type CharacterType } from '../records/password-options.ts';
import { LONGEST_PASSWORD, normalizePassword } from '../records/passwords.ts';
import type { DatabaseOptions } from '../records/tenant.ts';
import { isCommonPassword } from './common-passwords.ts';
import {
  containsAtLeast,
  identicalChars,
  lengthAtLeast,
  maxLength,
  nonEmpty,
  type Rule,
  type RuleVerdict,
  sequentialChars,
  shouldContain,
} from './password-rules.ts';

export type { RuleVerdict };

export interface PolicyVerdict {
  rules: RuleVerdict[];
  verified: boolean;
}

/** What passwords of a connection have to be. */
interface PasswordPolicy {
  /** In characters; undefined where any password that is not empty is long enough. */
  minLength: number | undefined;
  types: readonly CharacterType[];
  /** Whether three of the four types are enough. */
  isThreeOfFour: boolean;
  blocksIdentical: boolean;
  blocksSequential: boolean;
  /** In bytes of UTF-8. */
  longest: number;
  /** How many of the last passwords may not be used again; 0 for none. */
  history: number;
  /** Which passwords are too common; undefined where none is. */
  dictionary: { words: 'en_10k' | 'en_100k'; custom: readonly string[] } | undefined;
  /** The members of a user that may not stand in the password. */
  blockedFields: readonly string[];
}

/** The members that are blocked where the connection names none. */
const PERSONAL = [
  ...['email', 'username', 'name', 'nickname'],
  ...['user_metadata.name', 'user_metadata.first', 'user_metadata.last'],
];

/** The hosted service keeps no more of a password, in bytes; longer ones are refused where a connection says so. */
const LONGEST_OF_HOSTED = 72;

const DEFAULT_LENGTH = { none: undefined, low: 6, fair: 8, good: 8, excellent: 10 } as const;

/** The policy of a connection, from `password_options` or the older members. */
export function passwordPolicy(options: DatabaseOptions): PasswordPolicy {
  const { password_options: flexible } = options;
  if (flexible == null) return olderPolicy(options);
  const { complexity, history, dictionary, profile_data: personal } = flexible;
  const named = personal.blocked_fields;
  return {
    minLength: complexity.min_length,
    types: complexity.character_types,
    isThreeOfFour: complexity.character_type_rule === 'three_of_four',
    blocksIdentical: complexity.identical_characters === 'block',
    blocksSequential: complexity.sequential_characters === 'block',
    longest: complexity.max_length_exceeded === 'error' ? LONGEST_OF_HOSTED : LONGEST_PASSWORD,
    history: history.active ? history.size : 0,
    dictionary: dictionary.active ? { words: dictionary.default, custom: dictionary.custom } : undefined,
    blockedFields: !personal.active ? [] : named.length > 0 ? named : PERSONAL,
  };
}

function olderPolicy(options: DatabaseOptions): PasswordPolicy {
  const { passwordPolicy: level, password_history: history, password_dictionary: dictionary } = options;
  const isStrong = level === 'good' || level === 'excellent';
  const isFair = level === 'fair';
  return {
    minLength: options.password_complexity_options?.min_length ?? DEFAULT_LENGTH[level],
    types: isStrong ? CHARACTER_TYPES : isFair ? CHARACTER_TYPES.filter((type) => type !== 'special') : [],
    isThreeOfFour: isStrong,
    blocksIdentical: level === 'excellent',
    blocksSequential: false,
    longest: LONGEST_PASSWORD,
    history: history?.enable === true ? history.size : 0,
    dictionary: dictionary?.enable === true ? { words: 'en_10k', custom: dictionary.dictionary } : undefined,
    blockedFields: options.password_no_personal_info?.enable === true ? PERSONAL : [],
  };
}

function rulesOf(policy: PasswordPolicy): Rule[] {
  const { minLength, types, isThreeOfFour } = policy;
  const kinds = isThreeOfFour ? [containsAtLeast] : types.length > 0 ? [shouldContain(types)] : [];
  return [
    minLength === undefined ? nonEmpty : lengthAtLeast(minLength),
    ...kinds,
    ...(policy.blocksIdentical ? [identicalChars] : []),
    ...(policy.blocksSequential ? [sequentialChars] : []),
  ];
}

const wordFor = (isBlocked: boolean) => (isBlocked ? 'block' : 'allow');

/** The policy of a connection in the words of the My Account API, which are those of `password_options`. */
export function publishedPolicy(options: DatabaseOptions): object {
  const policy = passwordPolicy(options);
  return {
    complexity: {
      min_length: policy.minLength ?? 1,
      character_types: policy.types,
      character_type_rule: policy.isThreeOfFour ? 'three_of_four' : 'all',
      identical_characters: wordFor(policy.blocksIdentical),
      sequential_characters: wordFor(policy.blocksSequential),
      max_length_exceeded: options.password_options?.complexity.max_length_exceeded ?? 'error',
    },
    profile_data: { active: policy.blockedFields.length > 0, blocked_fields: policy.blockedFields },
    history: { active: policy.history > 0, size: policy.history },
    dictionary: { active: policy.dictionary !== undefined, default: policy.dictionary?.words ?? 'en_10k' },
  };
}

/**
 * The older members that come closest to a policy and ask for no more than it does: login widgets know no others, and judge
 * by them before they send a password.
 */
export function widgetPolicy(options: DatabaseOptions): {
  passwordPolicy: DatabaseOptions['passwordPolicy'];
  password_complexity_options?: { min_length: number };
} {
  const given = options.password_complexity_options?.min_length;
  if (options.password_options == null) {
    return {
      passwordPolicy: options.passwordPolicy,
      ...(given !== undefined && { password_complexity_options: { min_length: given } }),
    };
  }
  const { minLength = 1, types, isThreeOfFour, blocksIdentical } = passwordPolicy(options);
  const isFair = (['lowercase', 'uppercase', 'number'] as const).every((type) => types.includes(type));
  const strong = blocksIdentical ? 'excellent' : 'good';
  return {
    passwordPolicy: isThreeOfFour ? strong : isFair ? 'fair' : 'low',
    password_complexity_options: { min_length: minLength },
  };
}

/** A password against the strength rules of a connection: every rule's verdict. */
export function judgeStrength(options: DatabaseOptions, password: string): PolicyVerdict {
  const policy = passwordPolicy(options);
  const normal = normalizePassword(password);
  const rules = rulesOf(policy).map((rule) => rule(normal));
  const tooLong = maxLength(policy.longest)(normal);
  // A limit that hardly anybody meets is named only to who does.
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

/** Whether a password is one that attackers try first, by a built-in list and the connection's own. */
export function isCommon(options: DatabaseOptions, password: string): boolean {
  const { dictionary } = passwordPolicy(options);
  if (dictionary === undefined) return false;
  const lower = normalizePassword(password).toLowerCase();
  return (
    isCommonPassword(dictionary.words, lower) ||
    dictionary.custom.some((word) => normalizePassword(word).toLowerCase() === lower)
  );
}

/** What is known of a user: the members of their record, as far as they are there. */
export type PersonalInfo = Readonly<Record<string, unknown>>;

/** Shorter pieces of a name are in too many good passwords by accident. */
const SHORTEST_PIECE = 3;

/** Whether a password contains what the connection's policy wants to be in none: a name, whole or in part. */
export function containsPersonalInfo(
  options: DatabaseOptions,
  password: string,
  user: PersonalInfo,
): boolean {
  const lower = normalizePassword(password).toLowerCase();
  const pieces = passwordPolicy(options)
    .blockedFields.flatMap((field) => piecesOf(field, memberOf(user, field)))
    .map((piece) => piece.normalize('NFC').toLowerCase());
  return pieces.some((piece) => piece.length >= SHORTEST_PIECE && lower.includes(piece));
}

/** A member of a user, or of an object in one: `user_metadata.first`. */
function memberOf(user: PersonalInfo, field: string): unknown {
  return field
    .split('.')
    .reduce<unknown>(
      (value, name) =>
        typeof value === 'object' && value !== null && Object.hasOwn(value, name)
          ? (value as PersonalInfo)[name]
          : undefined,
      user,
    );
}

/** What of a member may not stand in a password. Of an address that is the part before the domain: many share the domain. */
function piecesOf(field: string, value: unknown): string[] {
  if (typeof value === 'number') return [String(value)];
  if (typeof value !== 'string') return [];
  if (field === 'email') return [value.split('@')[0] ?? value];
  if (field === 'phone_number') return [value.replace(/\D/g, '')];
  return [value, ...value.split(/\s+/)];
}
