// The password policy of a database connection, from its `password_options` or else from the older options. All checks of a
// password use this one policy.
import { CHARACTER_TYPES, type CharacterType } from '../records/password-options.ts';
import { MAX_PASSWORD_LENGTH, normalizePassword } from '../records/passwords.ts';
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

/** The rules for passwords of a connection. */
interface PasswordPolicy {
  /** In characters; undefined if any non-empty password is long enough. */
  minLength: number | undefined;
  types: readonly CharacterType[];
  /** Whether three of the four types are enough. */
  isThreeOfFour: boolean;
  blocksIdentical: boolean;
  blocksSequential: boolean;
  /** In bytes of UTF-8. */
  maxBytes: number;
  /** How many of the last passwords must not be used again; 0 for none. */
  history: number;
  /** The passwords that are too common; undefined if that is not checked. */
  dictionary: { words: 'en_10k' | 'en_100k'; custom: readonly string[] } | undefined;
  /** The members of a user that the password must not contain. */
  blockedFields: readonly string[];
}

/** The members that are blocked if the connection names none. */
const PERSONAL = [
  ...['email', 'username', 'name', 'nickname'],
  ...['user_metadata.name', 'user_metadata.first', 'user_metadata.last'],
];

/** The longest password of the hosted service, in bytes. Longer ones are refused if the connection says so. */
const HOSTED_MAX_BYTES = 72;

const DEFAULT_LENGTH = { none: undefined, low: 6, fair: 8, good: 8, excellent: 10 } as const;

/** Returns the policy of a connection, from `password_options` or else from the older options. */
export function passwordPolicy(options: DatabaseOptions): PasswordPolicy {
  const { password_options: flexible } = options;
  if (flexible == null) return olderPolicy(options);
  const { complexity, history, dictionary, profile_data: personal } = flexible;
  const configured = personal.blocked_fields;
  return {
    minLength: complexity.min_length,
    types: complexity.character_types,
    isThreeOfFour: complexity.character_type_rule === 'three_of_four',
    blocksIdentical: complexity.identical_characters === 'block',
    blocksSequential: complexity.sequential_characters === 'block',
    maxBytes: complexity.max_length_exceeded === 'error' ? HOSTED_MAX_BYTES : MAX_PASSWORD_LENGTH,
    history: history.active ? history.size : 0,
    dictionary: dictionary.active ? { words: dictionary.default, custom: dictionary.custom } : undefined,
    blockedFields: !personal.active ? [] : configured.length > 0 ? configured : PERSONAL,
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
    maxBytes: MAX_PASSWORD_LENGTH,
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

/** Returns the policy of a connection as the My Account API shows it, in the form of `password_options`. */
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
 * Returns the older options that come closest to a policy and require no more than it. Login widgets know only those, and
 * check a password by them before they send it.
 */
export function widgetPolicy(options: DatabaseOptions): {
  passwordPolicy: DatabaseOptions['passwordPolicy'];
  password_complexity_options?: { min_length: number };
} {
  const configuredLength = options.password_complexity_options?.min_length;
  if (options.password_options == null) {
    return {
      passwordPolicy: options.passwordPolicy,
      ...(configuredLength !== undefined && {
        password_complexity_options: { min_length: configuredLength },
      }),
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

/** Checks a password by the strength rules of a connection. @returns the verdict of every rule. */
export function checkStrength(options: DatabaseOptions, password: string): PolicyVerdict {
  const policy = passwordPolicy(options);
  const normal = normalizePassword(password);
  const rules = rulesOf(policy).map((rule) => rule(normal));
  const tooLong = maxLength(policy.maxBytes)(normal);
  // The maximum length is listed only if it is exceeded, as hardly any password does.
  const all = tooLong.verified ? rules : [...rules, tooLong];
  return { rules: all, verified: all.every((rule) => rule.verified) };
}

/** Returns the message of a rule with its numbers filled in. */
function ruleText({ message, format = [] }: Pick<RuleVerdict, 'message' | 'format'>): string {
  return format.reduce<string>((text, value) => text.replace(/%[ds]/, String(value)), message);
}

/** Returns the rules as Markdown bullets, for `policy` in the error body. */
export function policyText({ rules }: PolicyVerdict): string {
  return rules
    .flatMap((rule) => [`* ${ruleText(rule)}`, ...(rule.items ?? []).map((item) => ` * ${item.message}`)])
    .join('\n');
}

/** Returns whether a password is too common, by a built-in list and the connection's own. */
export function isCommon(options: DatabaseOptions, password: string): boolean {
  const { dictionary } = passwordPolicy(options);
  if (dictionary === undefined) return false;
  const lower = normalizePassword(password).toLowerCase();
  return (
    isCommonPassword(dictionary.words, lower) ||
    dictionary.custom.some((word) => normalizePassword(word).toLowerCase() === lower)
  );
}

/** What is known of a user: members of their record. */
export type PersonalInfo = Readonly<Record<string, unknown>>;

/** Shorter pieces of a name occur in too many good passwords by chance. */
const MIN_PIECE_LENGTH = 3;

/** Returns whether a password contains a member of the user that the policy blocks, whole or one of its words. */
export function containsPersonalInfo(
  options: DatabaseOptions,
  password: string,
  user: PersonalInfo,
): boolean {
  const lower = normalizePassword(password).toLowerCase();
  const pieces = passwordPolicy(options)
    .blockedFields.flatMap((field) => piecesOf(field, memberOf(user, field)))
    .map((piece) => piece.normalize('NFC').toLowerCase());
  return pieces.some((piece) => piece.length >= MIN_PIECE_LENGTH && lower.includes(piece));
}

/** Returns a member of a user by its path, such as `user_metadata.first`. */
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

/** Returns the parts of a member that a password must not contain. Of an e-mail address this is the part before the `@`. */
function piecesOf(field: string, value: unknown): string[] {
  if (typeof value === 'number') return [String(value)];
  if (typeof value !== 'string') return [];
  if (field === 'email') return [value.split('@')[0] ?? value];
  if (field === 'phone_number') return [value.replace(/\D/g, '')];
  return [value, ...value.split(/\s+/)];
}
