// Back-channel logout (OpenID Connect Back-Channel Logout 1.0 §2.5): a logout token is posted to the applications of a
// session that ended, in the background, with retries.
import type { Logger } from 'pino';
import { createQueue, type Pause } from '../delivery/queue.ts';
import type { EndedSession, LogoutChannel, SessionEnd } from '../engine/logout-channels.ts';
import type { SignLogoutToken } from '../engine/logout-token.ts';
import type { Outbound } from '../http/outbound.ts';
import { OutboundError } from '../http/outbound-error.ts';
import type { Client } from '../records/collections.ts';
import type { Config } from '../tenant/config.ts';
import type { Events } from '../tenant/events.ts';

interface BackChannelDependencies {
  config: Config;
  events: Events;
  log: Logger;
  signLogoutToken: SignLogoutToken;
  outbound: Outbound;
  pause?: Pause | undefined;
}

export interface BackChannel {
  channel: LogoutChannel;
  /** Posts each waiting token once more, within `ms` milliseconds. */
  flush(ms: number): Promise<void>;
}

/** Pauses between tries, milliseconds: four tries in about two minutes. */
const PAUSES = [1_000, 10_000, 110_000];
const CONCURRENCY = 16;
/** Waiting logout tokens at most; further ones are given up. */
const CAPACITY = 5_000;
/** How long an application may take to answer, milliseconds. */
const TIMEOUT = 5_000;

/** Why an application did not take a token. */
class Refused extends Error {
  /** Whether a later try may succeed. */
  readonly mayPass: boolean;

  constructor(message: string, mayPass: boolean) {
    super(message);
    this.name = 'Refused';
    this.mayPass = mayPass;
  }
}

/** The channel to applications with back-channel addresses. */
export function createBackChannel(deps: BackChannelDependencies): BackChannel {
  const { config, log } = deps;
  const queue = createQueue({
    pauses: PAUSES,
    concurrency: CONCURRENCY,
    capacity: CAPACITY,
    ...(deps.pause === undefined ? {} : { pause: deps.pause }),
  });
  const tell = (client: Client, address: string, session: EndedSession): void => {
    const taken = queue.add({
      run: async () => {
        await post(deps, client, address, session);
        record(deps, client, session, 'oidc_backchannel_logout_succeeded', `Told ${hostOf(address)}`);
      },
      mayPass: (error) => error instanceof Refused && error.mayPass,
      gaveUp: async (error) => {
        const why = error instanceof Refused ? error.message : 'it could not be sent';
        if (!(error instanceof Refused)) log.error({ err: error }, 'a logout token could not be made');
        record(deps, client, session, 'oidc_backchannel_logout_failed', `${hostOf(address)}: ${why}`);
      },
    });
    if (!taken) {
      record(deps, client, session, 'oidc_backchannel_logout_failed', 'too many logouts wait already');
    }
  };
  return {
    channel: {
      name: 'back-channel logout',
      sessionEnded: async (session) => {
        const clients = await Promise.all(session.clientIds.map((id) => config.client(id)));
        for (const client of clients) {
          if (client === undefined || !isInitiator(client, session.reason)) continue;
          for (const address of addressesOf(client)) tell(client, address, session);
        }
        return undefined;
      },
    },
    flush: async (ms) => {
      const left = await queue.flush(ms);
      if (left > 0) log.warn({ left }, 'applications were not told of a logout before the server stopped');
    },
  };
}

function addressesOf({ oidc_logout, oidc_backchannel_logout }: Client): string[] {
  const all = [oidc_logout, oidc_backchannel_logout].flatMap((one) => one?.backchannel_logout_urls ?? []);
  return [...new Set(all)];
}

/** Whether the application asked for this reason; by default user logouts only, as at the hosted service. */
function isInitiator({ oidc_logout }: Client, reason: SessionEnd): boolean {
  const initiators = oidc_logout?.backchannel_logout_initiators;
  if (initiators === undefined) return reason === 'rp-logout' || reason === 'idp-logout';
  return initiators.mode === 'all' || initiators.selected_initiators.includes(reason);
}

/** Posts a logout token. @throws Refused when the application does not accept it. */
async function post(
  { signLogoutToken, outbound }: BackChannelDependencies,
  client: Client,
  address: string,
  session: EndedSession,
): Promise<void> {
  // Made for each try, because it is valid for two minutes.
  const token = await signLogoutToken(client, session);
  const answer = await outbound
    .fetch(address, {
      method: 'POST',
      body: new URLSearchParams({ logout_token: token }),
      // Not followed: the token is for this address alone.
      redirect: 'manual',
      timeout: TIMEOUT,
      headOnly: true,
    })
    .catch((thrown: unknown) => {
      const failure = thrown instanceof OutboundError ? thrown.failure : undefined;
      if (failure === 'refused') throw new Refused('its address may not be called (OUTBOUND_ALLOW)', false);
      throw new Refused(
        failure === 'timeout' ? 'it did not answer in time' : 'it could not be reached',
        true,
      );
    });
  if (answer.ok) return;
  const isBusy = answer.status >= 500 || answer.status === 429 || answer.status === 408;
  throw new Refused(`it answered ${answer.status}`, isBusy);
}

function record(
  { events }: BackChannelDependencies,
  client: Client,
  { userId }: EndedSession,
  type: 'oidc_backchannel_logout_succeeded' | 'oidc_backchannel_logout_failed',
  description: string,
): void {
  events.record({ type, client_id: client.client_id, user_id: userId, description });
}

const hostOf = (address: string) => URL.parse(address)?.host ?? address;
