// The options of a database connection.
import type { z } from 'zod';
import type { Connection } from './collections.ts';
import { DATABASE, databaseOptionsSchema } from './connections/connections.ts';
import { type CustomScriptName, customScript, missingScripts } from './connections/custom-scripts.ts';
import { identifiersOf, namesIn } from './connections/database-attributes.ts';
import type { DatabaseOptions } from './tenant/tenant.ts';
import { CONSOLE_DIRECTORY } from './users/administrators.ts';

/** The parts of a connection that are read here; one in a tenant file has no id yet. */
type Configured = Pick<Connection, 'strategy' | 'options'>;

export function databaseOptions(connection: Configured): DatabaseOptions {
  return databaseOptionsSchema.parse(connection.options);
}

const { authentication_methods: methods, passkey_options: passkeys } = databaseOptionsSchema.shape;

/**
 * Returns the options of passkeys in a connection; undefined if users cannot log in with them, as in an external
 * database. Called at each login, so only these options are parsed.
 */
export function passkeyOptions(connection: Connection): NonNullable<z.output<typeof passkeys>> | undefined {
  const { strategy, options } = connection;
  if (strategy !== DATABASE || customDatabase(connection) !== undefined) return undefined;
  if (methods.parse(options.authentication_methods)?.passkey?.enabled !== true) return undefined;
  return passkeys.parse(options.passkey_options) ?? {};
}

/** What passwords are used for in a connection. */
interface PasswordUse {
  /** Whether users log in with a password. */
  logsIn: boolean;
  /** Whether a password is set at sign-up. */
  signsUp: boolean;
  /** Whether users can be created without a password through an API. */
  isOptional: boolean;
}

/** Returns what passwords are used for in a connection. An external database has no other way to log in. */
export function passwordUse(connection: Configured): PasswordUse {
  const { strategy, options } = connection;
  if (strategy !== DATABASE || customDatabase(connection) !== undefined)
    return { logsIn: true, signsUp: true, isOptional: false };
  const { password } = methods.parse(options.authentication_methods) ?? {};
  const logsIn = password?.enabled !== false;
  return {
    logsIn,
    signsUp: logsIn && password?.signup_behavior !== 'block',
    isOptional: password?.api_behavior === 'optional',
  };
}

/**
 * Returns the kind of address to which users get a code before they are asked for a password.
 * @param typed the name that the user has entered, if any.
 * @returns undefined if users are asked for the password first.
 */
export function firstCode(connection: Connection, typed?: string): CodeKind | undefined {
  const kinds = codeKinds(connection);
  if (kinds.length === 0) return undefined;
  const addressKind = typed === undefined ? undefined : namesIn(connection, typed)[0]?.kind;
  if (!passwordUse(connection).logsIn) return kinds.find((kind) => kind === addressKind) ?? kinds[0];
  const options = databaseOptions(connection);
  const first = kinds.filter(
    (kind) => options.attributes?.[kind]?.identifier?.default_method === CODE_METHODS[kind],
  );
  if (addressKind === 'email' || addressKind === 'phone_number')
    return first.find((kind) => kind === addressKind);
  // Before the user has entered a name, codes come first only if they do for each kind of name.
  const isFirstForAll = identifiersOf(options).every((name) => first.some((kind) => kind === name));
  return isFirstForAll ? first[0] : undefined;
}

const CODE_METHODS = { email: 'email_otp', phone_number: 'phone_otp' } as const;

export type CodeKind = 'email' | 'phone_number';

/**
 * Returns the kinds of addresses to which users of a connection can get a code instead of a password; only kinds that
 * users log in with, and none for an external database.
 */
export function codeKinds(connection: Configured): CodeKind[] {
  const { strategy, options } = connection;
  if (strategy !== DATABASE || customDatabase(connection) !== undefined) return [];
  const read = methods.parse(options.authentication_methods);
  const isOn = { email: read?.email_otp?.enabled, phone_number: read?.phone_otp?.enabled };
  if (isOn.email !== true && isOn.phone_number !== true) return [];
  const identifiers = identifiersOf(databaseOptions(connection));
  return (['email', 'phone_number'] as const).filter(
    (kind) => isOn[kind] === true && identifiers.includes(kind),
  );
}

/** Returns why users of a connection could not log in, in the hosted service's words; undefined if they can. */
export function wayInFault(connection: Configured): string | undefined {
  const { attributes } = databaseOptions(connection);
  // An address that several users share would not identify one of them.
  if (attributes?.email?.unique === false && attributes.email.identifier?.active === true)
    return 'attribute email must be unique to be an identifier';
  if (passwordUse(connection).logsIn || codeKinds(connection).length > 0) return undefined;
  return 'authentication_methods.password can be disabled with email_otp or phone_otp alone';
}

export type DatabaseMode = 'moves' | 'elsewhere';

/**
 * Returns whether the users of a connection are in an external database: `moves` if they move here at their first
 * login, `elsewhere` if they and their passwords stay there; undefined for all other connections.
 */
export function customDatabase({ strategy, options }: Configured): DatabaseMode | undefined {
  if (strategy !== DATABASE || options.enabledDatabaseCustomization !== true) return undefined;
  if (options.import_mode !== true) return 'elsewhere';
  return missingScripts(options).includes('login') ? undefined : 'moves';
}

// docs/understand/decisions/connections.md#a-database-that-moves-its-users-takes-no-sign-ups-without-its-scripts
export function takesSignUps(connection: Connection): boolean {
  const options = databaseOptions(connection);
  return !options.disable_signup && missingScripts(options).length === 0 && canMakeUsers(connection);
}

/** Returns whether users can be created; in an external database this needs a script. */
export function canMakeUsers(connection: Connection): boolean {
  return canChange(connection, 'create');
}

/**
 * Returns whether passwords can be reset by e-mail; in an external database this needs a script. Administrators'
 * passwords cannot: whoever may change the tenant's e-mail settings could take over their accounts.
 */
export function changesPasswords(connection: Connection): boolean {
  return (
    connection.name !== CONSOLE_DIRECTORY &&
    passwordUse(connection).logsIn &&
    canChange(connection, 'change_password')
  );
}

/** Returns whether users may request a password reset; administrators and tickets can reset a password regardless. */
export function offersReset(connection: Connection): boolean {
  const { disable_self_service_change_password: isOff } = databaseOptions(connection);
  return isOff !== true && changesPasswords(connection);
}

function canChange(connection: Connection, name: CustomScriptName): boolean {
  return (
    customDatabase(connection) !== 'elsewhere' ||
    customScript(databaseOptions(connection), name) !== undefined
  );
}

// The form of passwords.

/** Longer passwords are refused, because hashing them is expensive. In bytes of UTF-8. */
export const MAX_PASSWORD_LENGTH = 512;

// docs/understand/decisions/passwords-protection.md#passwords-are-compared-in-nfc
/**
 * Returns a password in the form in which it is checked and hashed, so that it does not depend on the keyboard (RFC
 * 8265 §4.2).
 */
export function normalizePassword(password: string): string {
  return password.normalize('NFC');
}
