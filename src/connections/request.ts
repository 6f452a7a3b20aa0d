// The connections of a waiting request: the one that its user logs in with, and the others that a page offers.
import { type RequestPage, stepPath, takesConnection } from '../flow/request-page.ts';
import type { Connection } from '../records/collections.ts';
import { enabledConnectionsOf } from '../records/organizations.ts';
import type { Config } from '../tenant/config.ts';
import { anyStrategy, byForm, connectionsFor, resolveConnection } from './resolve.ts';
import { strategyOf } from './strategies.ts';
import type { Strategy } from './strategy.ts';

/** A way to log in, as a page offers it. */
export interface LoginChoice {
  url: string;
  /** A message key. */
  text: string;
}

/** The connections of the request's application that have pages of their own; none where the request has chosen. */
export async function loginChoices(config: Config, page: RequestPage): Promise<LoginChoice[]> {
  const { pending, client, organization } = page;
  if (pending.params.connection !== undefined) return [];
  const all = await connectionsFor(config, client.client_id, organization?.id);
  const hidden = enabledConnectionsOf(organization ?? {}).filter((one) => one.show_as_button === false);
  return all.flatMap((connection) => {
    if (hidden.some(({ connection_id }) => connection_id === connection.id)) return [];
    const strategy = strategyOf(connection);
    if (strategy?.page !== 'step') return [];
    return [{ url: stepPath(pending, strategy.step(connection)), text: strategy.text }];
  });
}

/** Whether the request's user may log in with a password. */
export async function mayUsePassword(
  config: Config,
  { client, pending, organization }: RequestPage,
): Promise<boolean> {
  return (await connectionsFor(config, client.client_id, organization?.id)).some((connection) => {
    const strategy = strategyOf(connection);
    return strategy !== undefined && byForm(strategy) && takesConnection(pending, connection);
  });
}

/**
 * The connection that a request's user logs in with.
 * @param identifier as whom, as far as the request says.
 * @returns undefined when the application has none.
 */
export async function connectionOf(
  config: Config,
  { pending: { clientId, params } }: RequestPage,
  identifier?: string,
): Promise<{ connection: Connection; strategy: Strategy } | undefined> {
  const { connection, organization } = params;
  const found = await resolveConnection(
    config,
    { clientId, connection, organization, identifier },
    anyStrategy,
  );
  return 'strategy' in found ? found : undefined;
}
