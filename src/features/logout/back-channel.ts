// Back-channel logout (OpenID Connect Back-Channel Logout 1.0 §2.5): a logout token is posted to the applications of a
// session that ended, in the background, with retries.
import type { Logger } from 'pino';
import type { Deliveries, DeliveryKind } from '../../capabilities/delivery/deliveries.ts';
import { DeliveryRefused } from '../../capabilities/delivery/delivery-refused.ts';
import type { EndedSession, LogoutChannel, SessionEndReason } from '../../engine/session/logout-channels.ts';
import { includesSessionMetadata, type SignLogoutToken } from '../../engine/session/logout-channels.ts';
import { type SessionMetadata, sessionMetadata } from '../../engine/session/session-metadata.ts';
import type { Outbound } from '../../http/outbound/outbound.ts';
import { OutboundError } from '../../http/outbound/outbound-error.ts';
import type { EventType } from '../../records/base/log-events.ts';
import type { Client } from '../../records/collections.ts';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import type { Events } from '../../tenant/events.ts';
import { logoutEvents } from './logout-declaration.ts';

interface BackChannelDependencies {
  store: Store;
  config: Config;
  deliveries: Pick<Deliveries, 'add'>;
  events: Events;
  log: Logger;
  signLogoutToken: SignLogoutToken;
  outbound: Outbound;
}

/** A logout token to deliver: the application, its URL, and the ended session. */
interface LogoutNotice {
  clientId: string;
  address: string;
  session: Pick<EndedSession, 'sid' | 'userId'> & { metadata?: SessionMetadata | undefined };
}

/** Pauses between attempts, milliseconds: four attempts in about two minutes. */
const PAUSES = [1_000, 10_000, 110_000];
const CONCURRENCY = 16;
/** Logout tokens that this process holds; more wait in the store. */
const CAPACITY = 5_000;
/** How long an application may take to answer, milliseconds. */
const TIMEOUT = 5_000;

// docs/understand/decisions/sessions-logout.md#a-back-channel-logout-token-is-stored-in-the-commit-that-ends-the-session
export function backChannel(deps: BackChannelDependencies): LogoutChannel {
  const prepare = deps.deliveries.add(logoutTokenDelivery(deps));
  return {
    name: 'back-channel logout',
    prepare: async ({ sid, userId, clientIds, reason }) => {
      const found = await Promise.all(clientIds.map((id) => deps.config.client(id)));
      const clients = found
        .filter((client) => client !== undefined)
        .filter((item) => wantsReason(item, reason));
      // Read now, because it is deleted with the session.
      const metadata = clients.some(includesSessionMetadata) ? await sessionMetadata(deps, sid) : undefined;
      const all = clients
        .flatMap((client) =>
          noticesOf(client, {
            sid,
            userId,
            ...(includesSessionMetadata(client) && metadata && { metadata }),
          }),
        )
        .map(prepare);
      return {
        writes: all.map(({ write }) => write),
        start: () => {
          for (const item of all) item.start();
        },
      };
    },
  };
}

function logoutTokenDelivery(deps: BackChannelDependencies): DeliveryKind<LogoutNotice> {
  return {
    kind: 'logout-token',
    attempt: async (notice) => {
      await post(deps, notice);
      record(
        deps,
        notice,
        logoutEvents.oidc_backchannel_logout_succeeded,
        `Notified ${hostOf(notice.address)}`,
      );
    },
    isTemporary: (error) => error instanceof DeliveryRefused && error.isTemporary,
    onGiveUp: async (notice, error) => {
      const why = error instanceof DeliveryRefused ? error.message : 'it could not be sent';
      if (!(error instanceof DeliveryRefused))
        deps.log.error({ err: error }, 'a logout token could not be made');
      record(deps, notice, logoutEvents.oidc_backchannel_logout_failed, `${hostOf(notice.address)}: ${why}`);
    },
    pauses: PAUSES,
    maxDuration: TIMEOUT * 2,
    concurrency: CONCURRENCY,
    capacity: CAPACITY,
  };
}

function noticesOf(client: Client, session: LogoutNotice['session']): LogoutNotice[] {
  return addressesOf(client).map((address) => ({ clientId: client.client_id, address, session }));
}

function addressesOf({ oidc_logout, oidc_backchannel_logout }: Client): string[] {
  const all = [oidc_logout, oidc_backchannel_logout].flatMap((item) => item?.backchannel_logout_urls ?? []);
  return [...new Set(all)];
}

/**
 * Whether the application wants logout tokens for this reason; by default only for logouts by the user, as with the
 * hosted service.
 */
function wantsReason({ oidc_logout, oidc_backchannel_logout }: Client, reason: SessionEndReason): boolean {
  const initiators = (oidc_logout ?? oidc_backchannel_logout)?.backchannel_logout_initiators ?? undefined;
  if (initiators === undefined) return reason === 'rp-logout' || reason === 'idp-logout';
  return initiators.mode === 'all' || initiators.selected_initiators.includes(reason);
}

/** @throws DeliveryRefused when the application does not accept it. */
async function post(
  { config, signLogoutToken, outbound }: BackChannelDependencies,
  { clientId, address, session }: LogoutNotice,
): Promise<void> {
  const client = await config.client(clientId);
  // The application was deleted, or this URL was removed from it.
  if (client === undefined || !addressesOf(client).includes(address))
    throw new DeliveryRefused('the address is no longer registered', false);
  // Made for each attempt, because it is valid for two minutes.
  const token = await signLogoutToken(client, session);
  const answer = await outbound
    .fetch(address, {
      method: 'POST',
      body: new URLSearchParams({ logout_token: token }),
      // Redirects are not followed: the token is only for this URL.
      redirect: 'manual',
      timeout: TIMEOUT,
      headOnly: true,
    })
    .catch((thrown: unknown) => {
      const failure = thrown instanceof OutboundError ? thrown.failure : undefined;
      if (failure === 'refused')
        throw new DeliveryRefused('its address may not be called (OUTBOUND_ALLOW)', false);
      throw new DeliveryRefused(
        failure === 'timeout' ? 'it did not answer in time' : 'it could not be reached',
        true,
      );
    });
  if (answer.ok) return;
  const isBusy = answer.status >= 500 || answer.status === 429 || answer.status === 408;
  throw new DeliveryRefused(`it answered ${answer.status}`, isBusy);
}

function record(
  { events }: BackChannelDependencies,
  { clientId, session }: LogoutNotice,
  type: EventType,
  description: string,
): void {
  events.record({ type, client_id: clientId, user_id: session.userId, description });
}

const hostOf = (address: string) => URL.parse(address)?.host ?? address;
