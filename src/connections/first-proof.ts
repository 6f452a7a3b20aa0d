// What users of a connection prove first who they are by, in the hosted service's words for sessions.
import type { Config } from '../tenant/config.ts';

const OWN: Readonly<Record<string, string>> = { auth0: 'pwd', email: 'email', sms: 'sms' };

/** @returns undefined for a connection that is not there any more. */
export async function firstProof(config: Config, connection: string): Promise<string | undefined> {
  const found = await config.connection(connection);
  return found && (OWN[found.strategy] ?? 'federated');
}
