// Single logout of a session's participants (Profiles §4.4), one after another through the user's browser, which
// has their session cookies. The progress is stored, so that each answer counts once.
import type { Context } from 'koa';
import { newId } from '../../capabilities/saml-messages/saml-message.ts';
import { badMessage } from '../../capabilities/saml-messages/xml.ts';
import type { LogoutChannel } from '../../engine/session/logout-channels.ts';
import { AuthError } from '../../http/errors.ts';
import { browserCookie } from '../../http/server/browser-cookie.ts';
import type { Frozen } from '../../records/base/record.ts';
import type { SamlLogoutRecord } from '../../records/state/saml-sessions.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/secrets.ts';
import { sha256 } from '../../runtime/secrets.ts';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import type { IdentityProvider } from './identity-provider.ts';
import { type ServiceProvider, serviceProvider } from './service-provider.ts';
import { type SamlSession, samlSessions } from './service-provider-sessions.ts';

export interface LogoutPropagationDependencies {
  store: Store;
  config: Config;
  idp: IdentityProvider;
  clock: Clock;
  random: Random;
}

/** How long a propagation may take, seconds. */
const TTL = 600;

type Propagation = Frozen<SamlLogoutRecord>;

export function samlLogoutChannel(deps: LogoutPropagationDependencies): LogoutChannel {
  return {
    name: 'saml',
    notify: async ({ sid, startedBy }, browser) => {
      const participants = await samlSessions(deps.store).takeAll(sid);
      const waiting = await reachable(
        deps.config,
        participants.filter(({ client_id }) => client_id !== startedBy),
      );
      // Service providers are only reached through the user's browser.
      if (browser === undefined || waiting.length === 0) return undefined;
      return saveProgress(deps, {
        sid,
        return_to: browser.returnTo,
        waiting: waiting.map((participant) => ({
          client_id: participant.client_id,
          ...(participant.issuer === undefined ? {} : { issuer: participant.issuer }),
          session_index: participant.id,
          name_id: structuredClone(participant.name_id) as SamlLogoutRecord['waiting'][number]['name_id'],
        })),
        failed: false,
        awaited: startedBy !== undefined,
        expiresAt: epochSeconds(deps.clock) + TTL,
      });
    },
  };
}

/** Returns the participants that take a LogoutRequest: single logout is on, and they have a logout callback. */
export async function reachable(
  config: Config,
  participants: readonly SamlSession[],
): Promise<SamlSession[]> {
  const results = await Promise.all(
    participants.map(async (participant) => {
      const sp = await knownProvider(config, participant.client_id);
      return sp?.sloEnabled === true && sp.logoutUrl !== undefined ? [participant] : [];
    }),
  );
  return results.flat();
}

async function knownProvider(config: Config, clientId: string): Promise<ServiceProvider | undefined> {
  try {
    return await serviceProvider(config, clientId);
  } catch (thrown) {
    // The application or its addon was removed in the meantime.
    if (thrown instanceof AuthError && thrown.status === 404) return undefined;
    throw thrown;
  }
}

/** @returns where the browser goes next. */
async function saveProgress(
  { store, idp, random }: LogoutPropagationDependencies,
  propagation: Omit<SamlLogoutRecord, 'id'>,
): Promise<string> {
  const [next] = propagation.waiting;
  // A service provider that started the logout still needs the outcome.
  if (next === undefined && !propagation.awaited) return propagation.return_to;
  const ticket = random(32).toString('base64url');
  await store.collection('samlLogouts').insert({ ...propagation, id: sha256(ticket) });
  if (next === undefined) return propagation.return_to;
  return `${idp.addresses(next.client_id).logout}/next?state=${ticket}`;
}

// docs/understand/decisions/saml.md#a-logout-that-passes-through-several-service-providers-is-bound-to-its-browser
/**
 * Binds a propagation to the user's browser: a service provider that knows the ID of its own request must not be
 * able to fetch the message for the next one. `None`, because service providers post from their own sites.
 */
const BROWSER_COOKIE = browserCookie('__Host-gatehouse_logout', { sameSite: 'none' });

/**
 * Returns the next participant, and the ID of the LogoutRequest to it.
 * @throws AuthError 400 when there is no such propagation in this browser.
 */
export async function nextParticipant(
  { store, random }: LogoutPropagationDependencies,
  ctx: Context,
  clientId: string,
  ticket: string,
): Promise<{ propagation: Propagation; participant: Propagation['waiting'][number]; requestId: string }> {
  const requestId = newId(random);
  const browserHash = sha256(BROWSER_COOKIE.ensure(ctx, random));
  const propagation = await store.collection('samlLogouts').update(sha256(ticket), (current) => {
    if (current.waiting[0]?.client_id !== clientId) throw expired();
    if (current.browser !== undefined && !BROWSER_COOKIE.matchesHash(ctx, current.browser)) throw expired();
    return { ...current, request: requestId, browser: browserHash };
  });
  const participant = propagation?.waiting[0];
  if (propagation === undefined || participant === undefined) throw expired();
  return { propagation, participant, requestId };
}

function expired(): AuthError {
  return badMessage('This logout has expired or is already done.');
}

/** @throws AuthError 400 when no such request to this application waits in this browser. */
export async function propagationOf(
  { store }: LogoutPropagationDependencies,
  ctx: Context,
  clientId: string,
  requestId: string,
): Promise<Propagation> {
  const [propagation] = await store.collection('samlLogouts').findBy('request', requestId);
  const isOfBrowser =
    propagation?.browser !== undefined && BROWSER_COOKIE.matchesHash(ctx, propagation.browser);
  if (isOfBrowser && propagation.waiting[0]?.client_id === clientId) return propagation;
  throw badMessage('The LogoutResponse answers no request of ours.');
}

/** @returns where the browser goes next. @throws AuthError 400 when another answer was first. */
export async function continueLogout(
  deps: LogoutPropagationDependencies,
  { id }: Propagation,
  { isSuccess }: { isSuccess: boolean },
): Promise<string> {
  const stored = await deps.store.collection('samlLogouts').take(id);
  if (stored === undefined) throw expired();
  const { id: _id, request: _request, ...propagation } = stored;
  return saveProgress(deps, {
    ...propagation,
    waiting: propagation.waiting.slice(1),
    failed: propagation.failed || !isSuccess,
  });
}

/** @returns whether all participants were reached and confirmed. */
export async function finishPropagation(
  { store }: LogoutPropagationDependencies,
  sid: string,
): Promise<boolean> {
  const runs = await store.collection('samlLogouts').findBy('session', sid);
  await store.collection('samlLogouts').deleteBy('session', sid);
  return runs.every(({ failed, waiting }) => !failed && waiting.length === 0);
}
