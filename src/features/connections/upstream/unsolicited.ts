// Logins that a provider begins (SAML: IdP-initiated). No request of this server precedes the answer, so nothing binds it to
// the browser: an attacker can have a victim's browser post an answer that logs the victim in to the attacker's account
// (login CSRF). Therefore a connection accepts such answers only if it is configured to, each assertion is accepted once and
// for a few minutes, and the application gets an answer without a `state` of its own, which it may reject.
import type { Context } from 'koa';
import type { LoginTickets } from '../../../capabilities/protection/login-tickets.ts';
import { AuthError } from '../../../http/errors.ts';
import { byRedirect, resolveConnection } from '../resolve.ts';
import { CALLBACK } from './begin.ts';
import { type CompleteDependencies, loginOf, recordFault } from './complete.ts';

export interface UnsolicitedDependencies extends CompleteDependencies {
  tickets: LoginTickets;
}

/**
 * Accepts an answer that no request asked for.
 * @param name the connection that the callback URL names, if any.
 * @returns the path and query of an authorization request that has the login as a ticket; undefined when the connection
 *   does not accept such answers.
 * @throws AuthError for an answer that is not valid.
 */
export async function handleUnsolicited(
  deps: UnsolicitedDependencies,
  ctx: Context,
  name: string | undefined,
  parameters: Readonly<Record<string, string>>,
): Promise<string | undefined> {
  const record = name === undefined ? undefined : await deps.config.connection(name);
  if (record === undefined) return undefined;
  const resolved = await resolveConnection(
    deps.config,
    { clientId: undefined, connection: name },
    byRedirect,
  );
  const unsolicited = 'strategy' in resolved ? resolved.strategy.unsolicited : undefined;
  const target = unsolicited?.loginOf(record);
  if (unsolicited === undefined || target === undefined) return undefined;
  const { clientId, path, query } = target;
  const found = await resolveConnection(deps.config, { clientId, connection: name }, byRedirect);
  if (!('strategy' in found)) return undefined;
  const { connection, strategy } = found;
  try {
    const redirectUri = `${deps.baseUrl}${CALLBACK}`;
    const identity = await unsolicited.identify(deps, { connection, parameters, redirectUri });
    const login = await loginOf(deps, ctx, clientId, { connection, strategy }, identity);
    query.set('connection', connection.name);
    query.set('login_ticket', await deps.tickets.issue(ctx, login, clientId));
  } catch (thrown) {
    if (thrown instanceof AuthError)
      recordFault(deps, ctx, { clientId, connection: connection.name }, thrown);
    throw thrown;
  }
  const { organization } = ctx.query;
  if (typeof organization === 'string') query.set('organization', organization);
  return `${path}?${query}`;
}
