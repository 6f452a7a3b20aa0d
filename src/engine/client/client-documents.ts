// Reads what applications publish of themselves: the document at a client_id that is a URL (OAuth Client ID Metadata Document,
// draft-ietf-oauth-client-id-metadata-document-02), and the keys at a `jwks_uri`. Strangers name these addresses, so that this
// server must be no proxy for them, and must not say what answers where.
// docs/understand/decisions/clients-keys.md#documents-of-applications-are-fetched-by-login-requests-alone
import { isIP } from 'node:net';
import type { Context } from 'koa';
import { z } from 'zod';
import type { RateLimits } from '../../capabilities/protection/rate-limit.ts';
import { jwtHeader, unverifiedClaims } from '../../capabilities/signing/verify-jwt.ts';
import { AuthError, serverBusy } from '../../http/errors.ts';
import { isLoopback } from '../../http/loopback.ts';
import type { Outbound } from '../../http/outbound/outbound.ts';
import { OutboundError } from '../../http/outbound/outbound-error.ts';
import { registrableDomain } from '../../records/clients/allowed-urls.ts';
import {
  isClientUrl,
  isRegistrationId,
  isStrangerId,
  type RegistrationRecord,
  UNUSED_SECONDS,
} from '../../records/clients/registrations.ts';
import { isSelfRegistered } from '../../records/clients/third-parties.ts';
import type { Client } from '../../records/collections.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import { jsonOf } from '../../runtime/json.ts';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import type { Events } from '../../tenant/events.ts';
import { admitsDocument, admitsHostOf } from '../../tenant/registered-clients.ts';
import { engineEvents, engineLimits } from '../base/engine-declaration.ts';
import { endGranted } from '../base/granted.ts';
import {
  clientDocument,
  clientOf,
  type KeyCredential,
  keysOf,
  registrationFault,
  registrationRules,
  withKeys,
} from './client-metadata.ts';
import { ASSERTION_TYPES } from './engine-client-authentication.ts';

export interface DocumentDependencies {
  store: Pick<Store, 'collection'>;
  config: Pick<Config, 'client' | 'clients' | 'settings' | 'customOrigins'>;
  rateLimits: Pick<RateLimits, 'takeFrom' | 'spend'>;
  events: Pick<Events, 'record'>;
  clock: Clock;
  wallClock: Clock;
  issuer: string;
  /** Reaches the public Internet alone, whatever else the operator has opened. */
  strangersOutbound: Pick<Outbound, 'fetch'>;
}

export interface ClientDocuments {
  /**
   * Reads the document of an application that asks for a login, unless it was read lately.
   * @throws AuthError 400 `invalid_client` where there is no usable one, 429, 503.
   */
  read(ctx: Context, clientId: string | string[] | undefined): Promise<void>;
  /**
   * Reads the document or keys of a known application that authenticates with keys, where they are old or lack the key of its
   * assertion. No address is called that {@link read} or {@link keysAt} has not called.
   * @throws AuthError 503 where they cannot be read.
   */
  renewKeys(ctx: Context, assertion: string | undefined): Promise<void>;
  /** Returns the keys at a `jwks_uri`, and until when they are used. @throws AuthError 400 `invalid_client_metadata`, 429, 503. */
  keysAt(ctx: Context, url: string): Promise<{ keys: KeyCredential[]; freshUntil: number }>;
  /**
   * Returns the request object at a `request_uri` that an application has registered (OpenID Connect Core §6.2); undefined for
   * a URI that it has not, which is not called.
   * @throws AuthError 400 `invalid_request_uri`, 429, 503.
   */
  requestAt(ctx: Context, clientId: string, uri: string): Promise<string | undefined>;
}

/** The largest document and key set, bytes: the draft's own recommendation (§8.7). */
const MAX_BYTES = 5 * 1024;
/** The time for one, milliseconds. */
const TIMEOUT = 3_000;
/** How many are fetched at once. */
const MAX_FETCHES = 100;
/** How long one is used, seconds: as its server says, within bounds; and if that says nothing. */
const LIFETIME = { min: 300, max: 86_400, unsaid: 3_600 };

/** Why something is fetched: it was not before, it is old, or it lacks the key of an assertion. */
type Reason = 'new' | 'old' | 'key';

/** A JSON object that was fetched, and for how many seconds it is used. */
interface Fetched {
  body: Record<string, unknown>;
  lifetime: number;
}

export function clientDocuments(deps: DocumentDependencies): ClientDocuments {
  const { store, config, clock } = deps;
  const registrations = store.collection('registrations');
  const fetchObject = onceAtATime((url) => fetchDocument(deps, url));
  const fetchRequest = onceAtATime((url) => fetchText(deps, url, REQUEST_OBJECT));
  const documents = documentReader(deps, fetchObject);
  const isFresh = ({ fresh_until: until = 0 }: Pick<RegistrationRecord, 'fresh_until'>) =>
    until > epochSeconds(clock);
  const admitFetch = async (ctx: Context, url: string, why: Reason): Promise<void> => {
    await deps.rateLimits.takeFrom(ctx, engineLimits.clientDocuments);
    await spendHost(deps, url, why);
  };
  const renewed = async (ctx: Context, known: Described, why: Reason): Promise<void> => {
    const { id, jwks_uri: uri } = known;
    await admitFetch(ctx, isClientUrl(id) ? id : (uri ?? ''), why);
    if (isClientUrl(id)) return documents.read(ctx, known, why);
    const { body, lifetime } = await fetchObject(uri ?? '');
    const keys = fetchedKeys(body);
    const fresh_until = epochSeconds(clock) + lifetime;
    // It may have registered others meanwhile.
    await registrations.update(id, (current) =>
      current.jwks_uri === uri
        ? { ...current, client: { ...current.client, ...withKeys(keys) }, fresh_until }
        : current,
    );
  };
  return {
    read: async (ctx, clientId) => {
      const { tenant } = config.settings();
      if (typeof clientId !== 'string' || !isClientUrl(clientId)) return;
      if (tenant.client_id_metadata_document_supported !== true) return;
      const client = await config.client(clientId);
      // One that an administrator has registered is as its record says.
      if (client !== undefined && !isSelfRegistered(client)) return;
      if (!admitsDocument(tenant, clientId)) throw notAdmitted();
      const known = await registrations.get(clientId);
      // A blocked one is unknown to the engine, and is not read.
      if (known !== undefined && (known.blocked_at !== undefined || isFresh(known))) return;
      if (!documents.isBeingRead(clientId))
        await admitFetch(ctx, clientId, known === undefined ? 'new' : 'old');
      await documents.read(ctx, known ?? { id: clientId }, 'old');
    },
    renewKeys: async (ctx, assertion) => {
      const claimed = claimsOf(assertion);
      if (claimed === undefined || !isStrangerId(claimed.clientId)) return;
      const client = await config.client(claimed.clientId);
      if (client === undefined || !isSelfRegistered(client)) return;
      const known = await registrations.get(client.client_id);
      if (known?.fresh_until === undefined) return;
      if (isFresh(known) && !lacksKey(client, claimed.kid)) return;
      try {
        await renewed(ctx, known, isFresh(known) ? 'key' : 'old');
      } catch (thrown) {
        // Anybody can send an assertion that names another key.
        if (isFresh(known)) return;
        if (thrown instanceof AuthError && thrown.status === 429) throw thrown;
        throw serverBusy('The keys of the application cannot be read at the moment.', thrown);
      }
    },
    keysAt: async (ctx, url) => {
      try {
        await admitFetch(ctx, url, 'new');
        const { body, lifetime } = await fetchObject(url);
        return { keys: fetchedKeys(body), freshUntil: epochSeconds(clock) + lifetime };
      } catch (thrown) {
        throw thrown instanceof OutboundError ? keysUnreadable(thrown) : thrown;
      }
    },
    requestAt: async (ctx, clientId, uri) => {
      const known = isRegistrationId(clientId) ? await registrations.get(clientId) : undefined;
      const { request_uris: registered } = known?.metadata ?? {};
      if (!Array.isArray(registered) || !registered.includes(uri)) return undefined;
      try {
        await admitFetch(ctx, uri, 'new');
        const [url = uri] = uri.split('#');
        const { text } = await fetchRequest(url);
        return text;
      } catch (thrown) {
        throw thrown instanceof OutboundError ? requestUnreadable(thrown) : thrown;
      }
    },
  };
}

// Errors. What failed is only in the log: an answer that tells an address that refuses from one that is silent would let
// anybody ask.

const unreadable = (cause: unknown) =>
  new AuthError(400, 'invalid_client', 'The metadata document at the client_id cannot be used.', { cause });

const keysUnreadable = (cause: unknown) =>
  new AuthError(400, 'invalid_client_metadata', 'The keys at jwks_uri cannot be used.', { cause });

const requestUnreadable = (cause: unknown) =>
  new AuthError(400, 'invalid_request_uri', 'The request object at request_uri cannot be used.', { cause });

/** Only of a document that names itself, which nobody serves by accident: its author is told what is wrong. */
const invalid = (what: string) =>
  new AuthError(400, 'invalid_client', `The metadata document of the application is not valid: ${what}`);

const notAdmitted = () =>
  new AuthError(400, 'invalid_client', 'Applications that this host describes are not let in.');

const limited = () =>
  new AuthError(429, 'too_many_requests', 'Too many documents of this host were asked for.');

/** Makes the function that reads a document and stores what it says, once at a time for each. */
function documentReader(deps: DocumentDependencies, fetchObject: (url: string) => Promise<Fetched>) {
  const { store, config, clock, events } = deps;
  const running = new Map<string, Promise<void>>();
  /** @param known what is stored of it, and when it was read before. */
  const read = async (ctx: Context, { id: url, jwks_uri: before }: Described): Promise<void> => {
    const document = await fetchObject(url);
    if (document.body.client_id !== url) throw new OutboundError('invalid', 'its client_id is another');
    const { data, error } = clientDocument.safeParse(document.body);
    if (data === undefined) throw invalid(faultOf(error));
    const fault = registrationFault(data, { ...(await registrationRules(deps)), mode: 'strict' });
    if (fault !== undefined) throw invalid(fault.description);
    const usesKeys = data.token_endpoint_auth_method === 'private_key_jwt';
    const uri = usesKeys ? data.jwks_uri : undefined;
    if (uri !== undefined) await spendHost(deps, uri, uri === before ? 'old' : 'new');
    const remote = uri === undefined ? undefined : await fetchObject(uri);
    const ofUri = remote && fetchedKeys(remote.body);
    const keys = ofUri ?? (usesKeys ? keysOf(data.jwks) : undefined);
    if (usesKeys && keys === undefined) throw invalid('it has no usable keys, too many, or private ones');
    // Judged again: others have decided how long that took.
    if (!admitsDocument(config.settings().tenant, url)) throw notAdmitted();
    const client = clientOf(data, { clientId: url, mode: 'strict', keys });
    const fresh_until = epochSeconds(clock) + Math.min(document.lifetime, remote?.lifetime ?? LIFETIME.max);
    await keep(deps, ctx, { id: url, client, metadata: {}, fresh_until, ...(uri && { jwks_uri: uri }) });
  };
  const recorded = async (ctx: Context, known: Described, why: Reason): Promise<void> => {
    try {
      // Another request may have read it since this one looked.
      const now = why === 'key' ? undefined : await store.collection('registrations').get(known.id);
      if ((now?.fresh_until ?? 0) <= epochSeconds(clock)) await read(ctx, now ?? known);
    } catch (thrown) {
      const failure = thrown instanceof OutboundError ? unreadable(thrown) : thrown;
      if (failure instanceof AuthError && failure.status === 400) {
        const description = (thrown as Error).message.slice(0, 300);
        events.record({ type: engineEvents.fcimd, client_id: known.id, ip: ctx.ip, description });
      }
      throw failure;
    }
  };
  return {
    isBeingRead: (url: string) => running.has(url),
    read: (ctx: Context, known: Described, why: Reason): Promise<void> => {
      const work = running.get(known.id) ?? recorded(ctx, known, why).finally(() => running.delete(known.id));
      running.set(known.id, work);
      return work;
    },
  };
}

type Described = Pick<RegistrationRecord, 'id' | 'jwks_uri'>;

/** @throws OutboundError: what another host answered is said to nobody. */
function fetchedKeys(body: unknown): KeyCredential[] {
  const keys = keysOf(body);
  if (keys === undefined) throw new OutboundError('invalid', 'there are no usable keys at jwks_uri');
  return keys;
}

function faultOf({ issues: [issue] }: z.ZodError): string {
  return issue === undefined ? 'it is no object' : `${issue.path.join('.')}: ${issue.message}`;
}

/**
 * Stores an application that a document describes. One that is seen first is logged, and has nothing of an earlier one at its
 * URL, which an administrator has removed, or which was forgotten: the URL may be somebody else's by now.
 */
async function keep(
  { store, clock, wallClock, events }: DocumentDependencies,
  ctx: Context,
  read: Omit<RegistrationRecord, 'created_at'>,
): Promise<void> {
  const registrations = store.collection('registrations');
  const change = (current: object): RegistrationRecord => {
    const { jwks_uri: _, ...before } = current as RegistrationRecord;
    const isKept = before.last_used_at !== undefined || before.blocked_at !== undefined;
    return { ...before, ...read, ...(!isKept && { expiresAt: epochSeconds(clock) + UNUSED_SECONDS }) };
  };
  if ((await registrations.update(read.id, change)) !== undefined) return;
  await endGranted(store, read.id);
  let isFirst = false;
  await registrations.upsert(read.id, (current) => {
    isFirst = current === undefined;
    return change(current ?? { created_at: new Date(wallClock()).toISOString() });
  });
  if (isFirst)
    events.record({ type: engineEvents.scimd, client_id: read.id, ip: ctx.ip, description: 'seen first' });
}

// docs/understand/decisions/clients-keys.md#documents-of-applications-are-fetched-by-login-requests-alone
/**
 * Takes from what a host is asked for. What was read before and is old has a bucket of its own, so that requests for others of
 * its host, or for keys that it does not have, both of which anybody can invent, do not keep its users out.
 * @throws AuthError 429; OutboundError for a host that the tenant does not let in.
 */
async function spendHost(
  { rateLimits, config }: Pick<DocumentDependencies, 'rateLimits' | 'config'>,
  url: string,
  why: Reason,
): Promise<void> {
  if (!admitsHostOf(config.settings().tenant, url))
    throw new OutboundError('refused', 'the tenant does not let its host in');
  const host = new URL(url).hostname;
  // By domain: whoever has one has any number of names below it, which can lead to anybody's address.
  const key = why === 'new' ? `host ${registrableDomain(host) ?? host}` : `${why} ${url}`;
  if (!(await rateLimits.spend(engineLimits.clientDocumentHosts, key))) throw limited();
}

/**
 * Limits a function that fetches from URLs: it runs once at a time for each.
 * @throws AuthError 503 when too many are being fetched.
 */
function onceAtATime<T>(fetchFrom: (url: string) => Promise<T>): (url: string) => Promise<T> {
  const running = new Map<string, Promise<T>>();
  return (url) => {
    const before = running.get(url);
    if (before !== undefined) return before;
    if (running.size >= MAX_FETCHES) return Promise.reject(serverBusy());
    const work = fetchFrom(url).finally(() => running.delete(url));
    running.set(url, work);
    return work;
  };
}

const JSON_OBJECT = { accept: 'application/json', type: /^application\/(?:[a-z\d.!#$&^_-]+\+)?json$/ };
/** RFC 9101 §10.2; OpenID Connect Core §6.2 names no type, and others send `application/jwt`. */
const REQUEST_OBJECT = {
  accept: 'application/oauth-authz-req+jwt, application/jwt',
  type: /^application\/(?:oauth-authz-req\+)?jwt$/,
};

type Fetching = Pick<DocumentDependencies, 'strangersOutbound' | 'wallClock'>;

/** @throws OutboundError when there is no JSON object. */
async function fetchDocument(deps: Fetching, url: string): Promise<Fetched> {
  const { text, headers } = await fetchText(deps, url, JSON_OBJECT);
  const parsed = z.record(z.string(), z.unknown()).safeParse(jsonOf(text));
  if (!parsed.success) throw new OutboundError('invalid', 'the answer is no JSON object');
  return { body: parsed.data, lifetime: lifetimeOf(headers, deps.wallClock()) };
}

/**
 * A redirect could lead to the document of somebody else, or into a network that strangers cannot reach (§5, §8.6).
 * @throws OutboundError when there is no text of the type.
 */
async function fetchText(
  { strangersOutbound }: Fetching,
  url: string,
  { accept, type }: { accept: string; type: RegExp },
): Promise<{ text: string; headers: Headers }> {
  const fail = (why: string) => new OutboundError('invalid', why);
  if (!isFetchable(url)) throw new OutboundError('refused', 'its host is an address, or its port another');
  const response = await strangersOutbound.fetch(url, {
    headers: { accept },
    redirect: 'manual',
    timeout: TIMEOUT,
    maxBytes: MAX_BYTES,
  });
  if (response.status !== 200) throw fail(`the answer has the status ${response.status}`);
  const [sent = ''] = (response.headers.get('content-type') ?? '').toLowerCase().split(';');
  if (!type.test(sent.trim())) throw fail('the answer has another type');
  return { text: await response.text(), headers: response.headers };
}

/** Whether a stranger may have it fetched: from the port of https of a named host, so that no ports can be tried. */
function isFetchable(url: string): boolean {
  const { protocol, hostname, port } = new URL(url);
  return (
    isLoopback(hostname) ||
    (protocol === 'https:' &&
      port === '' &&
      isIP(hostname.replace(/^\[|\]$/g, '')) === 0 &&
      !hostname.endsWith('.'))
  );
}

/** Returns for how many seconds an answer is used: as it says (RFC 9111 §4.2.1), within {@link LIFETIME}. */
function lifetimeOf(headers: Headers, now: number): number {
  const directives = (headers.get('cache-control') ?? '')
    .toLowerCase()
    .split(',')
    .map((one) => one.trim());
  const maxAge = directives.find((one) => /^max-age="?\d{1,9}"?$/.test(one))?.replace(/\D/g, '');
  const expires = Date.parse(headers.get('expires') ?? '');
  const seconds = directives.some((one) => /^no-(?:store|cache)/.test(one))
    ? 0
    : maxAge !== undefined
      ? Number(maxAge) - Number(headers.get('age') ?? 0)
      : headers.has('expires')
        ? (expires - now) / 1000
        : LIFETIME.unsaid;
  return Number.isNaN(seconds) ? LIFETIME.min : Math.min(LIFETIME.max, Math.max(LIFETIME.min, seconds));
}

/** Returns what an assertion claims, which is not verified here: whose it is, and which key has signed it. */
function claimsOf(assertion: string | undefined): { clientId: string; kid: string | undefined } | undefined {
  if (!assertion) return undefined;
  try {
    const { sub } = unverifiedClaims(assertion);
    return { clientId: String(sub), kid: jwtHeader(assertion, ASSERTION_TYPES).kid };
  } catch {
    return undefined;
  }
}

/** Whether an application has keys, and not the one with this id. */
function lacksKey({ client_authentication_methods: methods }: Client, kid: string | undefined): boolean {
  const keys = methods?.private_key_jwt?.credentials ?? [];
  return kid !== undefined && keys.length > 0 && keys.every((key) => key.kid !== kid);
}
