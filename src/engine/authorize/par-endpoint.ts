// POST /oauth/par (RFC 9126). The engine authenticates the client and checks the request as it does at /authorize; what the
// client sent is stored unchanged and checked again when the browser comes with its `request_uri`.
import { type ParsedUrlQuery, parse, stringify } from 'node:querystring';
import type { Context } from 'koa';
import type { KoaContextWithOIDC } from 'oidc-provider';
import { unverifiedClaims } from '../../capabilities/signing/verify-jwt.ts';
import { AuthError, oauthShape } from '../../http/errors.ts';
import { bodyFields } from '../../http/server/body.ts';
import { authenticationMethod } from '../../records/clients/client-authentication.ts';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import type { EnterEngine, ReadBasic } from '../base/entrance.ts';
import { setParsedBody } from '../base/entrance.ts';
import { type EngineFailures, vendorError } from '../base/failures.ts';
import { OBJECT_REUSED, recordObjectUse } from '../base/request-replay.ts';
import type { ClientDocuments } from '../client/client-documents.ts';
import { normalizeRequest } from './authorization-parameters.ts';
import type { CheckRequest } from './authorize.ts';
import type { PushedRequests } from './pushed-requests.ts';
import type { RequestReader } from './received-request.ts';
import { checkRequestSize } from './received-request.ts';

/** How long a request waits for its browser, seconds, unless the application sets another time. */
const DEFAULT_LIFETIME_SECONDS = 30;

/** Parameters that authenticate the client; they are not part of the request (RFC 9126 §2.1). */
const CREDENTIALS = ['client_secret', 'client_assertion', 'client_assertion_type'] as const;

interface ParDependencies {
  config: Config;
  store: Store;
  checkRequest: CheckRequest;
  documents: Pick<ClientDocuments, 'read' | 'renewKeys'>;
  enter: EnterEngine;
  readBasic: ReadBasic;
  failures: EngineFailures;
  /** The parameters that endpoints of this server understand. */
  endpointParameters: ReadonlySet<string>;
  requestReader: Pick<RequestReader, 'pushed'>;
  pushedRequests: Pick<PushedRequests, 'store'>;
}

/** `POST /oauth/par`. */
export type PushRequest = (ctx: Context) => Promise<void>;

export function acceptsPushedRequests(config: Pick<Config, 'settings'>): boolean {
  return config.settings().tenant.pushed_authorization_requests_supported !== false;
}

export function parEndpoint({
  config,
  store,
  checkRequest,
  documents,
  enter,
  readBasic,
  failures,
  endpointParameters,
  requestReader,
  pushedRequests,
}: ParDependencies): PushRequest {
  return async (ctx) => {
    if (!acceptsPushedRequests(config)) {
      throw new AuthError(404, 'endpoint_disabled', 'Pushed authorization requests are not enabled.');
    }
    const { credentials, received } = fieldsOf(ctx);
    checkRequestSize(received);
    await readBasic(ctx);
    const clientId = claimedClient(ctx, received, credentials);
    await documents.read(ctx, clientId);
    await documents.renewKeys(ctx, credentials.client_assertion);
    await refusePublic(config, clientId);
    const request = await requestReader.pushed(clientId ?? '', received);
    const { parameters } = request;
    checkRequestSize(parameters);
    const normalized = await normalizeRequest({ config, endpointParameters }, request);
    await checkRequest(normalized);
    const fields = {
      ...normalized,
      ...(clientId !== undefined && { client_id: clientId }),
      ...credentials,
    };
    // Parameters of a request object may be numbers; the engine expects texts.
    setParsedBody(ctx, parse(stringify(fields)));
    ctx.url = '/oauth/par';
    // The engine would answer browsers in HTML.
    ctx.req.headers.accept = 'application/json';
    await enter(ctx);
    const { client, entities } = (ctx as KoaContextWithOIDC).oidc;
    if (ctx.status !== 201 || client === undefined) {
      oauthShape(ctx, vendorError(failures.of(ctx), undefined) ?? new AuthError(500, 'server_error', ''));
      return;
    }
    const { unrecorded } = request;
    if (unrecorded !== undefined && !(await recordObjectUse(store, client.clientId, unrecorded))) {
      throw new AuthError(400, 'invalid_request_object', OBJECT_REUSED);
    }
    const { par_request_expiry } = (await config.client(client.clientId)) ?? {};
    const seconds = par_request_expiry ?? DEFAULT_LIFETIME_SECONDS;
    const { dpopJkt } = (entities.PushedAuthorizationRequest ?? {}) as { dpopJkt?: string };
    const params = { ...parameters, ...(dpopJkt !== undefined && { dpop_jkt: dpopJkt }) };
    ctx.body = {
      request_uri: await pushedRequests.store(
        { clientId: client.clientId, params, isSigned: request.isSigned === true },
        seconds,
      ),
      expires_in: seconds,
    };
  };
}

/** Splits the body into the client's credentials and the request. */
function fieldsOf(ctx: Context): { credentials: Record<string, string>; received: ParsedUrlQuery } {
  const fields = bodyFields(ctx);
  const credentials: Record<string, string> = {};
  for (const name of CREDENTIALS) {
    if (fields[name] !== undefined) credentials[name] = fields[name];
    delete fields[name];
  }
  // Without a secret auth0-python sends the text "None" as one beside its assertion. An empty assertion was not sent.
  if (credentials.client_assertion) delete credentials.client_secret;
  return { credentials, received: fields };
}

/**
 * Returns the client that a request claims to come from. It is not verified: the engine authenticates the request
 * with this client_id.
 */
function claimedClient(
  ctx: Context,
  received: ParsedUrlQuery,
  { client_assertion: assertion }: Record<string, string>,
): string | undefined {
  if (typeof received.client_id === 'string' && received.client_id !== '') return received.client_id;
  try {
    if (assertion !== undefined) return unverifiedClaims(assertion).sub;
    const [scheme, value = ''] = ctx.get('Authorization').split(' ');
    if (scheme?.toLowerCase() !== 'basic') return undefined;
    const [user = ''] = Buffer.from(value, 'base64').toString('utf8').split(':');
    return decodeURIComponent(user.replaceAll('+', '%20'));
  } catch {
    return undefined;
  }
}

/** Refuses public clients: without authentication anybody could fill the store with requests. @throws AuthError 401 */
async function refusePublic(config: Config, clientId: string | undefined): Promise<void> {
  const client = clientId === undefined ? undefined : await config.client(clientId);
  if (client !== undefined && authenticationMethod(client) === 'none') {
    throw new AuthError(401, 'invalid_client', 'Unauthorized');
  }
}
