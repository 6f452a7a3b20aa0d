// Passwordless connections and their options.
import { AuthError } from '../../../http/errors.ts';
import type { Connection } from '../../../records/collections.ts';
import { passwordlessOptions } from '../../../records/connections/passwordless.ts';
import type { Config } from '../../../tenant/config.ts';
import { type ConnectionFault, resolveConnection } from '../resolve.ts';
import { isPasswordless, type PasswordlessStrategy } from './passwordless-strategy.ts';

export interface PasswordlessConnection {
  record: Connection;
  strategy: PasswordlessStrategy;
  digits: number;
  /** Lifetime of a code or link. */
  ttlSeconds: number;
  disableSignup: boolean;
  /** Parameters that the connection adds to the authorization request of a link. */
  authParams?: Readonly<Record<string, unknown>>;
}

/** @throws AuthError 400 `bad.connection` if there is none, or it is not enabled for the application. */
export async function passwordlessConnection(
  config: Config,
  clientId: string,
  name: string,
): Promise<PasswordlessConnection> {
  const found = await resolveConnection(config, { clientId, realm: name }, isPasswordless);
  if ('faults' in found) {
    const [fault = 'unknown'] = found.faults;
    throw new AuthError(400, 'bad.connection', FAULTS[fault]);
  }
  const { connection: record, strategy } = found;
  const { totp, disable_signup: disableSignup, authParams } = passwordlessOptions(record);
  return { record, strategy, digits: totp.length, ttlSeconds: totp.time_step, disableSignup, authParams };
}

/** The hosted service's messages. */
const FAULTS: Record<ConnectionFault, string> = {
  unknown: 'Connection does not exist',
  strategy: 'Invalid connection strategy. It must either be a passwordless connection',
  disabled: 'Connection is disabled',
};
