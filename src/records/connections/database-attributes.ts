// The kinds of identifiers of a database connection's users: which they log in with, which they give at sign-up, and
// which are required. They are set by `options.attributes` or, without it, by `requires_username` and `validation`.
import { z } from 'zod';
import { lookupEmail, normalizePhone } from '../base/email.ts';
import { ADDRESS_KINDS, type AddressKind } from './identities.ts';

const active = z.looseObject({ active: z.boolean().optional() });
const signup = z.looseObject({ status: z.enum(['required', 'optional', 'inactive']).optional() });
const verified = signup.extend({ verification: active.optional() });
const attribute = z.looseObject({ profile_required: z.boolean().optional() });
const length = z.number().int().min(1).max(128).optional();

/** An identifier, and whether its user is first asked for a password or a code. */
const identifierBy = <const M extends 'email_otp' | 'phone_otp'>(code: M) =>
  active.extend({ default_method: z.enum(['password', code]).optional() });

export const attributesSchema = z.looseObject({
  email: attribute
    .extend({
      identifier: identifierBy('email_otp').optional(),
      unique: z.boolean().optional(),
      verification_method: z.enum(['link', 'otp', 'code']).optional(),
      signup: verified.optional(),
    })
    .optional(),
  phone_number: attribute
    .extend({ identifier: identifierBy('phone_otp').optional(), signup: verified.optional() })
    .optional(),
  username: attribute
    .extend({
      identifier: active.optional(),
      signup: signup.optional(),
      validation: z
        .looseObject({
          min_length: length,
          max_length: length,
          allowed_types: z
            .looseObject({ email: z.boolean().optional(), phone_number: z.boolean().optional() })
            .optional(),
        })
        .refine(({ min_length: least = 1, max_length: most = 15 }) => least <= most, {
          path: ['min_length'],
          message: 'must not be above max_length',
        })
        .optional(),
    })
    .optional(),
});

/** The options of a connection that define its users' identifiers. */
interface Options {
  attributes?: z.output<typeof attributesSchema> | null | undefined;
  requires_username: boolean;
  validation?: { username?: { min: number; max: number } | undefined } | undefined;
}

interface Attribute {
  /** Whether users log in with it. */
  isIdentifier: boolean;
  /** Whether it is asked for at sign-up. */
  signUp: 'required' | 'optional' | 'inactive';
  /** Whether each user must have one. */
  isRequired: boolean;
  /**
   * How it is verified at sign-up: by a code before the account is created, by a link in an e-mail, or not at all.
   * `usual`: as the tenant's message settings say, because the connection says nothing.
   */
  verification: 'code' | 'link' | 'none' | 'usual';
}

/** Returns the attributes of a connection, with defaults filled in. */
export function attributesOf(options: Options): Record<AddressKind, Attribute> {
  const { attributes } = options;
  if (attributes == null) return olderAttributes(options);
  const { email, phone_number: phone, username } = attributes;
  const method = (email?.verification_method ?? 'link') === 'link' ? 'link' : 'code';
  return {
    email: {
      ...attributeOf(email),
      verification: verificationOf(email?.signup?.verification, method, 'usual'),
    },
    phone_number: {
      ...attributeOf(phone),
      verification: verificationOf(phone?.signup?.verification, 'code', 'none'),
    },
    username: { ...attributeOf(username), verification: 'none' },
  };
}

interface Written {
  identifier?: { active?: boolean | undefined } | undefined;
  signup?: z.output<typeof signup> | undefined;
  profile_required?: boolean | undefined;
}

function attributeOf(one: Written | undefined): Omit<Attribute, 'verification'> {
  const isIdentifier = one?.identifier?.active === true;
  const isRequired = one?.profile_required === true;
  const usual = isRequired ? 'required' : isIdentifier ? 'optional' : 'inactive';
  return { isIdentifier, isRequired, signUp: one?.signup?.status ?? usual };
}

function verificationOf(
  verification: { active?: boolean | undefined } | undefined,
  method: 'code' | 'link',
  unsaid: Attribute['verification'],
): Attribute['verification'] {
  if (verification?.active === undefined) return unsaid;
  return verification.active ? method : 'none';
}

function olderAttributes({ requires_username: isNamed }: Options): Record<AddressKind, Attribute> {
  const inactive = {
    isIdentifier: false,
    signUp: 'inactive',
    isRequired: false,
    verification: 'none',
  } as const;
  return {
    email: { isIdentifier: true, signUp: 'required', isRequired: false, verification: 'usual' },
    phone_number: inactive,
    username: isNamed ? { ...inactive, isIdentifier: true, signUp: 'required', isRequired: true } : inactive,
  };
}

export function identifiersOf(options: Options): AddressKind[] {
  const attributes = attributesOf(options);
  return ADDRESS_KINDS.filter((kind) => attributes[kind].isIdentifier);
}

/** The parts of a connection that a lookup needs. Without options, names are e-mail addresses and usernames. */
export interface NamedConnection {
  name: string;
  options?: Readonly<Record<string, unknown>>;
}

const DEFAULT_ORDER = ['email', 'phone_number', 'username'] as const;

/** Returns what a typed name may mean, in the order of the lookup, in the stored form of each kind. */
export function namesIn(
  { options }: NamedConnection,
  typed: string,
): { kind: AddressKind; address: string }[] {
  const attributes = anyAttributes.parse(options?.attributes);
  const order = precedence.parse(options?.precedence);
  // Usernames from when the connection required them remain valid for logins.
  const counts = (kind: AddressKind) =>
    attributes == null ? kind !== 'phone_number' : attributes[kind]?.identifier?.active === true;
  return [...new Set([...order, ...DEFAULT_ORDER])].filter(counts).flatMap((kind) => {
    const address = NORMAL[kind](typed);
    return address === undefined ? [] : [{ kind, address }];
  });
}

const anyAttributes = attributesSchema.nullish().catch(undefined);
const precedence = z.array(z.enum(ADDRESS_KINDS)).catch([]);

/** Returns the stored form of a name, by its kind; undefined if it is not of that kind. */
const NORMAL: Record<AddressKind, (typed: string) => string | undefined> = {
  email: lookupEmail,
  phone_number: normalizePhone,
  username: (typed) => typed.trim().toLowerCase(),
};

// docs/understand/decisions/users-linking.md#identifiers-are-unique-within-a-connection-whether-or-not-users-log-in-with-them
/**
 * Returns the kinds of identifiers that are unique in a connection: all, unless it says that e-mail addresses are not.
 */
export function uniqueIn({ attributes }: Pick<Options, 'attributes'>): AddressKind[] {
  return ADDRESS_KINDS.filter((kind) => kind !== 'email' || attributes?.email?.unique !== false);
}

/**
 * Returns what an import of users checks: which kinds are unique, which are required, and which usernames could be
 * another user's address.
 */
export function importRules(options: Options) {
  const attributes = options.attributes == null ? undefined : attributesOf(options);
  const required = ADDRESS_KINDS.filter((kind) => attributes?.[kind].isRequired === true);
  return {
    unique: uniqueIn(options),
    required,
    readsAsAddress: (username: string) => readsAsAddress(options, username),
  };
}

/** Returns the allowed length of a connection's usernames, in characters. */
export function usernameLength({ attributes, validation }: Options): { min: number; max: number } {
  const { min_length: min, max_length: max } = attributes?.username?.validation ?? {};
  return {
    min: min ?? validation?.username?.min ?? 1,
    max: max ?? validation?.username?.max ?? 15,
  };
}

/**
 * Returns whether a username has the form of an address that another user could log in with. This is refused, unless
 * the connection allows such usernames and no user logs in with that kind of address.
 */
export function readsAsAddress(options: Options, username: string): boolean {
  const { allowed_types: allowed } = options.attributes?.username?.validation ?? {};
  const { email, phone_number: phone } = attributesOf(options);
  const mayBeEmail = allowed?.email === true && !email.isIdentifier;
  const mayBePhone = options.attributes == null || (allowed?.phone_number === true && !phone.isIdentifier);
  return (
    (!mayBeEmail && lookupEmail(username) !== undefined) ||
    (!mayBePhone && normalizePhone(username) !== undefined)
  );
}
