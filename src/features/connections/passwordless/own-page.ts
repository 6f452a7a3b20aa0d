// Customized login pages request codes with the browser SDK, which has no client secret. The request that waits in this
// browser and its CSRF token authenticate the page instead.
import type { Context } from 'koa';
import type { Interactions } from '../../../engine/pending-interaction.ts';
import { uidOfState } from '../../../engine/restarted-request.ts';
import type { Csrf } from '../../../http/csrf.ts';
import type { Client } from '../../../records/collections.ts';
import type { Config } from '../../../tenant/config.ts';

export interface OwnPageDependencies {
  config: Config;
  interactions: Pick<Interactions, 'find'>;
  csrf: Csrf;
}

/**
 * Returns the application of the customized login page that sent a request.
 * @param fields of the request; `authParams` contains the page's `state` and `_csrf`.
 * @returns undefined if the request did not come from a customized login page; the client must authenticate then.
 * @throws AuthError 400 or 403 if the page's authorization request no longer waits, or not in this browser.
 */
export async function clientOfOwnPage(
  { config, interactions, csrf }: OwnPageDependencies,
  ctx: Context,
  fields: Readonly<Record<string, unknown>>,
): Promise<Client | undefined> {
  const { authParams } = fields;
  if (typeof authParams !== 'object' || authParams === null) return undefined;
  const { state, _csrf } = authParams as { state?: unknown; _csrf?: unknown };
  const uid = uidOfState(state);
  if (uid === undefined) return undefined;
  csrf.verify(ctx, _csrf);
  const { clientId } = await interactions.find(ctx, uid);
  return clientId === fields.client_id ? config.client(clientId) : undefined;
}
