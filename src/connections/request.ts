// The connections of a waiting request: the one that its user logs in with, and the others that a page offers.
import { type RequestPage, stepPath } from '../flow/request-page.ts';
import type { Connection } from '../records/collections.ts';
import type { Config } from '../tenant/config.ts';
import { findDatabase } from '../tenant/databases.ts';

/** A way to log in, as a page offers it. */
export interface LoginChoice {
  url: string;
  /** A message key; `name` goes with it where there is none for the strategy. */
  text: string;
  name?: string;
}

const PASSWORDLESS = { email: 'login.emailCode', sms: 'login.smsCode' } as const;

/** The step of a passwordless connection. */
export function passwordlessStep(connection: Connection): string | undefined {
  const { strategy, name } = connection;
  return strategy === 'email' || strategy === 'sms' ? `passwordless/${name}` : undefined;
}

/** The passwordless connections of the request's application, as choices; none where the request has made its own. */
export async function passwordlessChoices(
  config: Config,
  { pending, client }: RequestPage,
): Promise<LoginChoice[]> {
  if (pending.params.connection !== undefined) return [];
  return (await config.connectionsOf(client.client_id)).flatMap((connection) => {
    const step = passwordlessStep(connection);
    if (step === undefined) return [];
    return [{ url: stepPath(pending, step), text: PASSWORDLESS[connection.strategy as 'email' | 'sms'] }];
  });
}

/**
 * The connection that a request's user logs in with: the one that it names, else one with passwords, else a
 * passwordless one. @returns undefined when the application has none.
 */
export async function connectionOf(
  config: Config,
  { pending: { clientId, params } }: RequestPage,
): Promise<Connection | undefined> {
  const { connection: name } = params;
  const passwordless = (await config.connectionsOf(clientId)).filter(
    (connection) => passwordlessStep(connection) !== undefined,
  );
  const named = passwordless.find((connection) => connection.name === name);
  if (named !== undefined) return named;
  const database = await findDatabase(config, clientId, name);
  return database ?? (name === undefined ? passwordless[0] : undefined);
}
