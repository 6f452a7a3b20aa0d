// Telling service providers that a session is over, one after another through the user's browser: nobody else
// can end theirs (Profiles §4.4). Where a run stands is kept here, so that each answer counts once.
import type { Context } from 'koa';
import type { LogoutChannel } from '../engine/logout-channels.ts';
import { browserCookie } from '../http/browser-cookie.ts';
import { AuthError } from '../http/errors.ts';
import type { Frozen } from '../records/record.ts';
import type { SamlLogoutRecord } from '../records/saml-sessions.ts';
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import type { Random } from '../runtime/random.ts';
import { sha256 } from '../runtime/secrets.ts';
import type { Store } from '../store/contract.ts';
import type { Config } from '../tenant/config.ts';
import type { IdentityProvider } from './identity-provider.ts';
import { newId } from './message.ts';
import { type ServiceProvider, serviceProvider } from './service-provider.ts';
import { type SamlSession, samlSessions } from './sessions.ts';
import { badMessage } from './xml.ts';

export interface LogoutPropagationDependencies {
  store: Store;
  config: Config;
  idp: IdentityProvider;
  clock: Clock;
  random: Random;
}

/** How long a run may take, seconds. */
const TTL = 600;

type Run = Frozen<SamlLogoutRecord>;

/** The service providers as parties of sessions. */
export function samlLogoutChannel(deps: LogoutPropagationDependencies): LogoutChannel {
  return {
    name: 'saml',
    sessionEnded: async ({ sid, startedBy }, browser) => {
      const parts = await samlSessions(deps.store).takeAll(sid);
      const waiting = await reachable(
        deps.config,
        parts.filter(({ client_id }) => client_id !== startedBy),
      );
      // They are reached through the user's browser alone, which is not at hand.
      if (browser === undefined || waiting.length === 0) return undefined;
      return save(deps, {
        sid,
        return_to: browser.returnTo,
        waiting: waiting.map((part) => ({
          client_id: part.client_id,
          ...(part.issuer === undefined ? {} : { issuer: part.issuer }),
          session_index: part.id,
          name_id: structuredClone(part.name_id) as SamlLogoutRecord['waiting'][number]['name_id'],
        })),
        failed: false,
        awaited: startedBy !== undefined,
        expiresAt: epochSeconds(deps.clock) + TTL,
      });
    },
  };
}

/** Those that can be told, and are to be. */
export async function reachable(config: Config, parts: readonly SamlSession[]): Promise<SamlSession[]> {
  const told = await Promise.all(
    parts.map(async (part) => {
      const provider = await knownProvider(config, part.client_id);
      return provider?.sloEnabled === true && provider.logoutUrl !== undefined ? [part] : [];
    }),
  );
  return told.flat();
}

async function knownProvider(config: Config, clientId: string): Promise<ServiceProvider | undefined> {
  try {
    return await serviceProvider(config, clientId);
  } catch (thrown) {
    // The application, or its addon, is gone since.
    if (thrown instanceof AuthError && thrown.status === 404) return undefined;
    throw thrown;
  }
}

/** Keeps where a run stands. @returns where the browser goes now. */
async function save(
  { store, idp, random }: LogoutPropagationDependencies,
  run: Omit<SamlLogoutRecord, 'id'>,
): Promise<string> {
  const [next] = run.waiting;
  // The outcome is still looked at by whoever waits for it.
  if (next === undefined && !run.awaited) return run.return_to;
  const ticket = random(32).toString('base64url');
  await store.collection('samlLogouts').insert({ ...run, id: sha256(ticket) });
  if (next === undefined) return run.return_to;
  return `${idp.addresses(next.client_id).logout}/next?state=${ticket}`;
}

/**
 * Ties a run to the browser that goes it: a service provider that knows the request which it was sent, and no more,
 * must not get to see what the next is sent.
 */
const BROWSER = browserCookie('__Host-gatehouse_logout');

/**
 * The service provider that a run has come to, and the ID of the request it is sent.
 * @throws AuthError 400 when there is no such run of this browser, or no more.
 */
export async function nextOf(
  { store, random }: LogoutPropagationDependencies,
  ctx: Context,
  clientId: string,
  ticket: string,
): Promise<{ run: Run; part: Run['waiting'][number]; requestId: string }> {
  const requestId = newId(random);
  const mark = BROWSER.mark(ctx, random);
  const run = await store.collection('samlLogouts').update(sha256(ticket), (current) => {
    if (current.waiting[0]?.client_id !== clientId) throw expired();
    if (current.browser !== undefined && !BROWSER.isMarked(ctx, current.browser)) throw expired();
    return { ...current, request: requestId, browser: mark };
  });
  const part = run?.waiting[0];
  if (run === undefined || part === undefined) throw expired();
  return { run, part, requestId };
}

function expired(): AuthError {
  return badMessage('This logout has expired or is already done.');
}

/**
 * What a request of ours was about, by its ID.
 * @throws AuthError 400 when no such request waits for an answer of this application, by this browser.
 */
export async function runOf(
  { store }: LogoutPropagationDependencies,
  ctx: Context,
  clientId: string,
  requestId: string,
): Promise<Run> {
  const [run] = await store.collection('samlLogouts').findBy('request', requestId);
  const isOfBrowser = run?.browser !== undefined && BROWSER.isMarked(ctx, run.browser);
  if (isOfBrowser && run.waiting[0]?.client_id === clientId) return run;
  throw badMessage('The LogoutResponse answers no request of ours.');
}

/**
 * Notes an answer. @returns where the browser goes now. @throws AuthError 400 when another answer was first.
 */
export async function goOn(
  deps: LogoutPropagationDependencies,
  { id }: Run,
  { isSuccess }: { isSuccess: boolean },
): Promise<string> {
  const taken = await deps.store.collection('samlLogouts').take(id);
  if (taken === undefined) throw expired();
  const { id: _id, request: _request, ...run } = taken;
  return save(deps, { ...run, waiting: run.waiting.slice(1), failed: run.failed || !isSuccess });
}

/** Whether all service providers of a session were told and agreed; the run is over then. */
export async function wasComplete({ store }: LogoutPropagationDependencies, sid: string): Promise<boolean> {
  const runs = await store.collection('samlLogouts').findBy('session', sid);
  await store.collection('samlLogouts').deleteBy('session', sid);
  return runs.every(({ failed, waiting }) => !failed && waiting.length === 0);
}
