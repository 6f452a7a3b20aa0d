// The options of a database connection.
import type { z } from 'zod';
import { CONSOLE_DIRECTORY } from './administrators.ts';
import type { Connection } from './collections.ts';
import { DATABASE, databaseOptionsSchema } from './connections.ts';
import { type CustomScriptName, customScript, lackingScripts } from './custom-scripts.ts';
import { identifiersOf, namesIn } from './database-attributes.ts';
import type { DatabaseOptions } from './tenant.ts';

/** What is read of a connection: that of a tenant file has no id yet. */
type Configured = Pick<Connection, 'strategy' | 'options'>;

/** The options of a database connection, with what is not set filled in. */
export function databaseOptions(connection: Configured): DatabaseOptions {
  return databaseOptionsSchema.parse(connection.options);
}

const { authentication_methods: methods, passkey_options: passkeys } = databaseOptionsSchema.shape;

/**
 * How users of a connection log in with passkeys; undefined where they do not: never where they are in a database
 * elsewhere. Asked at each login, so that of the options these alone are read.
 */
export function passkeyOptions(connection: Connection): NonNullable<z.output<typeof passkeys>> | undefined {
  const { strategy, options } = connection;
  if (strategy !== DATABASE || customDatabase(connection) !== undefined) return undefined;
  if (methods.parse(options.authentication_methods)?.passkey?.enabled !== true) return undefined;
  return passkeys.parse(options.passkey_options) ?? {};
}

/** What passwords are for in a connection. */
interface PasswordUse {
  /** Whether users log in with one. */
  logsIn: boolean;
  /** Whether who signs up has one. */
  signsUp: boolean;
  /** Whether a program may make users without one. */
  isOptional: boolean;
}

/** What passwords are for in a connection; in a database elsewhere there is no other way in. */
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
 * To which address users are sent a code before they are asked for a password.
 * @param typed by which name they have said who they are, if they have.
 * @returns undefined where they are asked for the password first.
 */
export function firstCode(connection: Connection, typed?: string): CodeKind | undefined {
  const kinds = codeKinds(connection);
  if (kinds.length === 0) return undefined;
  const named = typed === undefined ? undefined : namesIn(connection, typed)[0]?.kind;
  if (!passwordUse(connection).logsIn) return kinds.find((kind) => kind === named) ?? kinds[0];
  const options = databaseOptions(connection);
  const first = kinds.filter(
    (kind) => options.attributes?.[kind]?.identifier?.default_method === CODE_METHODS[kind],
  );
  if (named === 'email' || named === 'phone_number') return first.find((kind) => kind === named);
  // Before it is known which name they have, a code is first where it is for each name that they may have.
  const isFirstForAll = identifiersOf(options).every((name) => first.some((kind) => kind === name));
  return isFirstForAll ? first[0] : undefined;
}

const CODE_METHODS = { email: 'email_otp', phone_number: 'phone_otp' } as const;

/** What codes in place of a password are sent to. */
export type CodeKind = 'email' | 'phone_number';

/**
 * The addresses to which users of a database connection are sent a code in place of their password, of the kinds that they
 * log in with; none of one elsewhere.
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

/**
 * Why users of a database connection could not log in as its options say, in the words of the hosted service; undefined where
 * they can.
 */
export function wayInFault(connection: Configured): string | undefined {
  const { attributes } = databaseOptions(connection);
  // A login by an address that several users have would name none of them.
  if (attributes?.email?.unique === false && attributes.email.identifier?.active === true)
    return 'attribute email must be unique to be an identifier';
  if (passwordUse(connection).logsIn || codeKinds(connection).length > 0) return undefined;
  return 'authentication_methods.password can be disabled with email_otp or phone_otp alone';
}

/**
 * Whether the users of a connection are in a database elsewhere: `moves` where they move here at their first login,
 * `elsewhere` where they and their passwords stay there; undefined for all other connections.
 */
export function customDatabase({ strategy, options }: Configured): 'moves' | 'elsewhere' | undefined {
  if (strategy !== DATABASE || options.enabledDatabaseCustomization !== true) return undefined;
  if (options.import_mode !== true) return 'elsewhere';
  return lackingScripts(options).includes('login') ? undefined : 'moves';
}

/** Whether people can sign up. */
export function takesSignUps(connection: Connection): boolean {
  return !databaseOptions(connection).disable_signup && canMakeUsers(connection);
}

/** Whether users can be made: where they are kept elsewhere, a script has to do it. */
export function canMakeUsers(connection: Connection): boolean {
  return canChange(connection, 'create');
}

/**
 * Whether passwords can be set anew by a mail: where they are kept elsewhere, a script has to do it. Those of administrators
 * cannot: who may change how the tenant sends its mail would have them.
 */
export function changesPasswords(connection: Connection): boolean {
  return (
    connection.name !== CONSOLE_DIRECTORY &&
    passwordUse(connection).logsIn &&
    canChange(connection, 'change_password')
  );
}

/** Whether users may ask for a mail by which they set a new password; administrators and tickets can all the same. */
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
