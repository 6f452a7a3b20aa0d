// Continues a request that waited for its user: only in its own browser, and with the session that the browser has now, which
// another tab may have changed.
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import { unsettledLogin } from './browser-login.ts';
import { browserSecretOf } from './interaction-browser.ts';
import { requestExpired } from './pending-interaction.ts';
import type { Sessions } from './sessions.ts';

export interface ResumeDependencies {
  provider: Provider;
  sessions: Pick<Sessions, 'current' | 'end'>;
}

/**
 * Prepares the request for the engine.
 * @returns the secret that the request has in this browser.
 * @throws AuthError 400 when no such request waits in this browser.
 */
export async function prepareResume(
  { provider, sessions }: ResumeDependencies,
  ctx: Context,
  uid: string,
): Promise<string> {
  // The engine trusts this cookie, not the path.
  if (ctx.cookies.get(provider.cookieName('resume')) !== uid) throw requestExpired();
  const interaction = await provider.Interaction.find(uid);
  const secret = interaction === undefined ? undefined : browserSecretOf(ctx, interaction);
  if (interaction === undefined || secret === undefined) throw requestExpired();
  await refuseFormerCallback(provider, interaction.params);
  const current = await sessions.current(ctx);
  const { session, result } = interaction;
  const login = unsettledLogin(result);
  const isOtherUser = login !== undefined && current !== undefined && current.userId !== login.userId;
  const isOtherSession = session?.uid !== undefined && session.uid !== current?.sid;
  if (isOtherUser || isOtherSession) {
    // The session has changed: answers given in the old one without a login no longer count.
    delete (interaction as { session?: unknown }).session;
    if (login === undefined && result !== undefined && !('error' in result)) interaction.result = {};
    await interaction.persist();
  }
  // Another user logs in at this browser. The engine would end the old session by its own logout form, which we do not
  // serve.
  if (isOtherUser) await sessions.end(current.sid, { reason: 'session-revoked', requestsStay: true });
  return secret;
}

/** Refuses a redirect URI that was removed from the application since the request came. @throws AuthError 400 */
async function refuseFormerCallback(
  provider: Provider,
  { client_id: clientId, redirect_uri: callback }: Readonly<Record<string, unknown>>,
): Promise<void> {
  const client = await provider.Client.find(String(clientId));
  if (client?.redirectUriAllowed(String(callback)) !== true) throw requestExpired();
}
