// Passwordless connections: strategies `email` and `sms`, and their options.
import { parsePhoneNumberFromString } from 'libphonenumber-js';
import { AuthError } from '../../http/errors.ts';
import type { Connection } from '../../records/collections.ts';
import { passwordlessOptionsSchema } from '../../records/connections.ts';
import { normalizeEmail } from '../../records/email.ts';
import type { Config } from '../../tenant/config.ts';

/** How a passwordless connection reaches its users. */
export type Channel = 'email' | 'sms';

/** A passwordless connection with parsed options. */
export interface PasswordlessConnection {
  record: Connection;
  channel: Channel;
  /** The user's field that it sends to. */
  kind: 'email' | 'phone_number';
  /** Digits of a code. */
  digits: number;
  /** Lifetime of a code or link. */
  ttlSeconds: number;
  disableSignup: boolean;
}

/** @returns undefined when the connection's strategy is not a passwordless one. */
export function passwordless(record: Connection): PasswordlessConnection | undefined {
  const channel = record.strategy;
  if (channel !== 'email' && channel !== 'sms') return undefined;
  const { totp, disable_signup: disableSignup } = passwordlessOptionsSchema.parse(record.options);
  const kind = channel === 'email' ? 'email' : 'phone_number';
  return { record, channel, kind, digits: totp.length, ttlSeconds: totp.time_step, disableSignup };
}

/**
 * The passwordless connection of that name or realm, where the application has it.
 * @throws AuthError 400 `bad.connection`, 403 `unauthorized_client` when it is not the application's.
 */
export async function passwordlessConnection(
  config: Config,
  clientId: string,
  name: string,
): Promise<PasswordlessConnection> {
  const record =
    (await config.connection(name)) ??
    (await config.connections()).find(({ realms }) => realms?.includes(name) === true);
  if (record === undefined) throw new AuthError(400, 'bad.connection', 'Connection does not exist');
  const connection = passwordless(record);
  if (connection === undefined) {
    throw new AuthError(
      400,
      'bad.connection',
      'Invalid connection strategy. It must either be a passwordless connection',
    );
  }
  if (!record.enabled_clients.includes(clientId)) {
    throw new AuthError(400, 'bad.connection', 'Connection is disabled');
  }
  return connection;
}

/** The passwordless connections of an application, in name order. */
export async function passwordlessConnectionsOf(
  config: Config,
  clientId: string,
): Promise<PasswordlessConnection[]> {
  return (await config.connectionsOf(clientId)).flatMap((record) => passwordless(record) ?? []);
}

/** The hosted service's pattern, named in its error text. */
const PHONE = /^\+[0-9]{1,15}$/;

/**
 * An address in the form that it is kept and sent to: e-mail in lower case, phone in E.164.
 * @returns undefined when malformed.
 */
export function normalizeAddress(channel: Channel, text: string): string | undefined {
  if (channel === 'email') return normalizeEmail(text);
  const number = text.replace(/[\s().-]/g, '');
  if (!PHONE.test(number)) return undefined;
  const parsed = parsePhoneNumberFromString(number);
  return parsed?.isPossible() === true ? parsed.number : undefined;
}
