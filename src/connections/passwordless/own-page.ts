// Customized login pages ask for codes by the browser SDK, which has no client secret: the waiting request in this browser
// and its CSRF token authenticate the page instead.
import type { Context } from 'koa';
import type { Interactions } from '../../engine/pending-interaction.ts';
import { uidOfState } from '../../engine/repeat.ts';
import type { Csrf } from '../../http/csrf.ts';
import type { Client } from '../../records/collections.ts';
import type { Config } from '../../tenant/config.ts';

export interface OwnPageDependencies {
  config: Config;
  interactions: Pick<Interactions, 'find'>;
  csrf: Csrf;
}

/**
 * The application whose login page of ours sent the request.
 * @param fields of the request; its `authParams` are the page's.
 * @returns undefined when no page of ours did: the application must say who it is.
 * @throws AuthError 400, 403 when a page of ours is meant whose request waits no more, or not in this browser.
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
