// The orders of `gatehouse move sessions` and `move tokens`: until when who is logged in at the old tenant stays logged in here.
import { z } from 'zod';
import { CALLBACK_PATH } from '../../features/logout/federated.ts';
import type { MoveState } from '../../features/move/move-state.ts';
import { keepsKeyToItself, SESSION_CALLBACK } from '../../features/move/old-credentials.ts';
import { domainAddress } from '../../features/move/old-domain.ts';
import { type OldAddress, OldTenantFault, type SendToOldTenant } from '../../features/move/old-requests.ts';
import { requestOldTokens } from '../../features/move/old-tokens.ts';
import { OutboundError } from '../../http/outbound/outbound-error.ts';
import { MOVE, type MoveRecord, type OldApplication, type OldDomain } from '../../records/tenant/move.ts';
import { listAll } from '../../store/list-all.ts';
import { endOf, iso, moveStateOf, NO_MOVE, originOf, requireMove, senderOf } from './move.ts';
import { type OrderDependencies, order, recordOrder } from './order.ts';

const until = z.string().min(1).max(64).optional();
const clientId = z.string().min(1).max(255);
const secret = z.string().min(1).max(1024);
/** Visible ASCII characters, as it is sent in a header. */
const apiKey = secret.regex(/^[\x21-\x7E]+$/, 'must be visible ASCII characters');

/** The state after an order, with what its reader should know. */
export interface Switched {
  state: MoveState | null;
  notes: string[];
}

/** Opens or ends the bridge of sessions. Once opened, it keeps its application. */
export const moveSessions = order({
  body: z.strictObject({
    client_id: clientId.optional(),
    client_secret: secret.optional(),
    /** The name at the hosted service that the custom domain led to, and its key if it takes proxies only. */
    through: z
      .strictObject({ host: z.string().min(1).max(255), cname_api_key: apiKey.optional() })
      .optional(),
    until,
    end: z.boolean().optional(),
  }),
  run: async (deps, { client_id, client_secret, through, until: date, end = false }): Promise<Switched> => {
    const now = deps.clock();
    const move = await requireMove(deps);
    const before = move.sessions;
    const given =
      client_id === undefined ? undefined : { client_id, ...(client_secret && { client_secret }) };
    const application = given ?? before;
    if (end && before === undefined) throw new Error('the sessions of the old tenant are not accepted');
    if (application === undefined)
      throw new Error('give the application of the old tenant that browsers are sent to, by --client-id');
    const domain =
      through === undefined ? given === undefined && before?.through : await domainOf(deps, through);
    if (!end) await checkApplication(deps, move, application);
    if (!end && domain) await checkDomain(deps, domain, application);
    const { client_id: id, client_secret: kept } = application;
    await change(deps, 'sessions', (current) => ({
      ...current,
      sessions: {
        client_id: id,
        ...(kept !== undefined && { client_secret: kept }),
        ...(domain && { through: domain }),
        opened_at: before?.opened_at ?? iso(now),
        until:
          date === undefined ? (end ? (before?.until ?? iso(now)) : current.until) : iso(endOf(date, now)),
        ...(end && { ended_at: iso(now) }),
      },
    }));
    const notes = end || domain ? [] : [SESSION_NOTE];
    return { state: await moveStateOf(deps), notes };
  },
});

const SESSION_NOTE =
  'Sessions are found where users logged in at the canonical name of the old tenant. The hosted service keeps those of a custom domain for that domain, which leads here now: they are found with --through, and without it those users see the login page once, unless their applications have refresh tokens.';

/** Opens or ends the bridge of refresh tokens, or says what an application is at the old tenant. */
export const moveTokens = order({
  body: z.strictObject({
    until,
    end: z.boolean().optional(),
    application: z
      .strictObject({
        id: clientId,
        /** Null: its tokens are not accepted. */
        there: z.strictObject({ client_id: clientId, client_secret: secret.optional() }).nullable(),
      })
      .optional(),
  }),
  run: async (deps, { until: date, end = false, application }): Promise<Switched> => {
    const now = deps.clock();
    const move = await requireMove(deps);
    const before = move.refresh_tokens;
    if (end && before === undefined) throw new Error('the refresh tokens of the old tenant are not accepted');
    if (
      application !== undefined &&
      (await deps.store.collection('clients').get(application.id)) === undefined
    )
      throw new Error(`there is no application ${application.id}`);
    await change(deps, 'tokens', (current) => ({
      ...current,
      refresh_tokens: {
        opened_at: before?.opened_at ?? iso(now),
        until: date === undefined ? (before?.until ?? current.until) : iso(endOf(date, now)),
        applications: {
          ...current.refresh_tokens?.applications,
          ...(application && { [application.id]: application.there && withoutUndefined(application.there) }),
        },
        ...(end && { ended_at: iso(now) }),
      },
    }));
    return { state: await moveStateOf(deps), notes: end ? [] : [REVOCATION_NOTE, ...(await leftOut(deps))] };
  },
});

const REVOCATION_NOTE =
  'Each token that moves is revoked at the old tenant. There, switch off "Refresh Token Revocation Deletes Grant" (Settings, Advanced): with it, the first device of a user that moves ends the tokens of their other devices.';

const withoutUndefined = ({ client_id, client_secret }: z.output<typeof clientThere>): OldApplication => ({
  client_id,
  ...(client_secret !== undefined && { client_secret }),
});
const clientThere = z.strictObject({ client_id: clientId, client_secret: secret.optional() });

/** Names the applications with refresh tokens whose old ones are not accepted. */
async function leftOut({ store }: OrderDependencies): Promise<string[]> {
  const move = await store.collection('moves').get(MOVE);
  const clients = (await listAll(store.collection('clients'))).filter(({ grant_types }) =>
    grant_types?.includes('refresh_token'),
  );
  const names = clients
    .filter((client) => move !== undefined && keepsKeyToItself(move, client))
    .map(({ name }) => name);
  if (names.length === 0) return [];
  return [
    `Not accepted are those of applications that authenticate by a key or have their tokens bound to one: ${names.join(', ')}.`,
  ];
}

/** Changes the record of the move, and logs it. */
async function change(
  deps: OrderDependencies,
  bridge: 'sessions' | 'tokens',
  to: (current: MoveRecord) => MoveRecord,
): Promise<void> {
  const before = await deps.store.collection('moves').get(MOVE);
  const after = await deps.store
    .collection('moves')
    .update(MOVE, (current) => to(structuredClone(current) as MoveRecord));
  if (after === undefined) throw new Error(NO_MOVE);
  const member = bridge === 'sessions' ? 'sessions' : 'refresh_tokens';
  recordOrder(deps.events, `move ${bridge}`, `Switch the ${bridge} of the old tenant`, {
    before: before?.[member],
    after: after[member],
  });
  deps.log.info(
    { bridge, until: after[member]?.until },
    'a bridge to the old tenant was switched by a command',
  );
}

// Asks the old tenant whether its application is as it has to be, as a browser would.

/** @throws Error that says what to change at the old tenant. */
async function checkApplication(
  deps: OrderDependencies,
  move: Pick<MoveRecord, 'origin'>,
  { client_id, client_secret }: OldApplication,
): Promise<void> {
  const send = senderOf(deps, 'sessions');
  const { baseUrl } = deps.settings;
  const callback = `${baseUrl}${SESSION_CALLBACK}`;
  const method = client_secret === undefined ? 'none' : 'client_secret_post';
  const credentials = { client_id, ...(client_secret !== undefined && { client_secret }), method } as const;
  try {
    // A code that there is not: only the application itself is judged.
    const code = { grant_type: 'authorization_code', code: 'none', redirect_uri: callback };
    await requestOldTokens(send, move, credentials, code);
  } catch (thrown) {
    if (!(thrown instanceof OldTenantFault || thrown instanceof OutboundError)) throw thrown;
    throw new Error(`the old tenant does not take the application ${client_id}: ${thrown.message}`);
  }
  if (!(await leadsTo(send, move, silentRequest(client_id, callback), callback)))
    throw new Error(`${callback} is none of the callback URLs of ${client_id} at the old tenant`);
  const returnTo = `${baseUrl}${CALLBACK_PATH}`;
  if (!(await leadsTo(send, move, `/v2/logout?${new URLSearchParams({ client_id, returnTo })}`, returnTo)))
    throw new Error(`${returnTo} is none of the logout URLs of ${client_id} at the old tenant`);
}

/** Returns the path of the request by which a browser is asked about. */
function silentRequest(client_id: string, redirect_uri: string): string {
  const silent = { response_type: 'code', scope: 'openid', prompt: 'none', state: 'check', redirect_uri };
  return `/authorize?${new URLSearchParams({ client_id, ...silent })}`;
}

/** @throws Error if the name is none, or this server. */
async function domainOf(
  deps: OrderDependencies,
  { host, cname_api_key: key }: { host: string; cname_api_key?: string | undefined },
): Promise<OldDomain> {
  const named = new URL(await originOf(deps, host)).host;
  return { host: named, by_key: key !== undefined, ...(key !== undefined && { cname_api_key: key }) };
}

/** @throws Error if the hosted service does not answer for the custom domain there. */
async function checkDomain(
  deps: OrderDependencies,
  domain: OldDomain,
  { client_id }: OldApplication,
): Promise<void> {
  const { baseUrl } = deps.settings;
  const callback = `${baseUrl}${SESSION_CALLBACK}`;
  const address = domainAddress(domain, baseUrl);
  const how = domain.by_key ? 'with this key' : `as ${new URL(baseUrl).host}, without a key`;
  try {
    const path = silentRequest(client_id, callback);
    if (address !== undefined && (await leadsTo(senderOf(deps, 'sessions'), address, path, callback))) return;
  } catch (thrown) {
    if (!(thrown instanceof OldTenantFault || thrown instanceof OutboundError)) throw thrown;
    throw new Error(`${domain.host} could not be asked ${how}: ${thrown.message}`);
  }
  throw new Error(`${domain.host} does not answer for the old tenant ${how}`);
}

/** Whether a browser without cookies is sent from an address to another one. */
async function leadsTo(
  send: SendToOldTenant,
  address: OldAddress,
  path: string,
  to: string,
): Promise<boolean> {
  const { status, headers } = await send(address, path, { redirect: 'manual', headOnly: true });
  return status >= 300 && status < 400 && headers.get('location')?.split(/[?#]/)[0] === to;
}
