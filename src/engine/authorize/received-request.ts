// Reads the parameters of an authorization request, whichever way they came: in the query or a form, in a request
// object (RFC 9101), or pushed before (RFC 9126). The result is the same, so that every check applies to all of
// them.
import type { ParsedUrlQuery } from 'node:querystring';
import type { Context } from 'koa';
import { AuthError } from '../../http/errors.ts';
import type { Client } from '../../records/collections.ts';
import { profileOf } from '../../records/compliance-levels.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import { OBJECT_REUSED, recordObjectUse } from '../base/request-replay.ts';
import { requestFault } from '../client/compliance.ts';
import type { OwnCallbacks } from '../client/own-callbacks.ts';
import { hasBrowserSecret } from './interaction-browser.ts';
import { INVALID_REQUEST_URI, isPushedUri, type PushedRequests } from './pushed-requests.ts';
import {
  type RequestObject,
  readRequestObject,
  requestObjectKeys,
  responseParameters,
} from './request-object.ts';
import { uidOfState } from './restarted-request.ts';

/** A request whose parameters are known. */
export interface ReceivedRequest {
  parameters: ParsedUrlQuery;
  /**
   * Why the request is refused, when the application gets the error. The parameters then only say where to send it.
   */
  refused?: { error: string; description: string };
  /** The key of a pushed request in the store. */
  pushed?: string;
  /** Whether the parameters came in a request object. */
  isSigned?: true;
  /** The request object, where its use has not been recorded yet. */
  unrecorded?: RequestObject;
}

interface Dependencies {
  issuer: string;
  config: Pick<Config, 'client' | 'settings'>;
  store: Store;
  /** The clock that dates in JWTs are compared with. */
  wallClock: Clock;
  ownCallbacks: Pick<OwnCallbacks, 'has'>;
  pushedRequests: Pick<PushedRequests, 'claim'>;
}

/** Reads the parameters of requests. */
export interface RequestReader {
  /**
   * Reads those of a request to the authorization endpoint.
   * @param browser the hash of the secret that the request has in its browser.
   * @throws AuthError 400 `invalid_request_uri`, shown on a page, because the redirect URI is not known.
   */
  authorization(ctx: Context, received: ParsedUrlQuery, browser: string): Promise<ReceivedRequest>;
  /**
   * Reads those of a pushed request. The endpoint records the use of a request object only when it stores the
   * request, because a client that is asked for a nonce sends the same object again (RFC 9449 §8).
   * @param clientId the client that the sender authenticates as.
   */
  pushed(clientId: string, received: ParsedUrlQuery): Promise<ReceivedRequest>;
}

const PUSH_REQUIRED = 'Pushed Authorization Request must be used';
const OBJECT_REQUIRED = 'Request Object must be used by this client';

/** Makes the reader of a tenant's requests. */
export function requestReader(deps: Dependencies): RequestReader {
  const { config, ownCallbacks, pushedRequests } = deps;
  return {
    authorization: async (ctx, received, browser) => {
      const clientId = typeof received.client_id === 'string' ? received.client_id : '';
      const client = await config.client(clientId);
      // The engine refuses an unknown client. A request that is restarted was read before.
      if (client === undefined || uidOfState(received.state) !== undefined) return { parameters: received };
      const { request, request_uri: uri } = received;
      if (isPushedUri(uri) && request === undefined) {
        const brings = (hash: string) => hasBrowserSecret(ctx, hash);
        const claimed = await pushedRequests.claim(uri, { clientId, hasSecret: brings, browser });
        if (claimed === undefined) throw new AuthError(400, 'invalid_request_uri', INVALID_REQUEST_URI);
        // Parameters beside `request_uri` do not count (RFC 9101 §6.3, RFC 9126 §4).
        const parameters = { ...claimed.params, client_id: clientId };
        const { pushed, isSigned } = claimed;
        // The setting of the application may have changed since the request was pushed.
        if (!isSigned && mustSign(client))
          return refusedRequest(parameters, 'invalid_request', OBJECT_REQUIRED);
        return checkCompliance(client, { parameters, pushed, ...(isSigned && { isSigned }) }, true);
      }
      if (isPushedUri(uri))
        return refusedRequest(received, 'invalid_request', 'request and request_uri exclude each other');
      const isOwn = typeof received.redirect_uri === 'string' && ownCallbacks.has(received.redirect_uri);
      if (isOwn && request === undefined) return { parameters: received };
      if (mustPush(config, client)) return refusedRequest(received, 'invalid_request', PUSH_REQUIRED);
      if (received.request_uri !== undefined) return checkCompliance(client, { parameters: received }, false);
      const read = checkCompliance(client, await withObject(deps, client, received), false);
      return profileOf(client) === undefined ? read : refuseReusedObject(deps, client, read);
    },
    pushed: async (clientId, received) => {
      const client = await config.client(clientId);
      if (received.request_uri !== undefined)
        return refusedRequest(received, 'invalid_request', 'request_uri must not be pushed');
      if (client === undefined) return { parameters: received };
      return checkCompliance(client, await withObject(deps, client, received), true);
    },
  };
}

/** Returns the request, refused if its object was used before. */
async function refuseReusedObject(
  { store }: Dependencies,
  client: Client,
  read: ReceivedRequest,
): Promise<ReceivedRequest> {
  const { unrecorded, parameters } = read;
  const isFirst = unrecorded === undefined || (await recordObjectUse(store, client.client_id, unrecorded));
  return isFirst ? read : refusedRequest(parameters, 'invalid_request_object', OBJECT_REUSED);
}

/** Returns the request, refused if it breaks its application's compliance level (compliance.ts). */
function checkCompliance(client: Client, request: ReceivedRequest, isPushed: boolean): ReceivedRequest {
  const { parameters, isSigned = false } = request;
  if (request.refused !== undefined) return request;
  const fault = requestFault(client, { parameters, isPushed, isSigned });
  return fault === undefined ? request : refusedRequest(parameters, 'invalid_request', fault);
}

function mustSign({ signed_request_object: object }: Client): boolean {
  return object?.required === true;
}

function mustPush(config: Pick<Config, 'settings'>, client: Client): boolean {
  const { flags } = config.settings().tenant;
  return (
    client.require_pushed_authorization_requests === true ||
    flags.require_pushed_authorization_requests === true
  );
}

async function withObject(
  deps: Dependencies,
  client: Client,
  received: ParsedUrlQuery,
): Promise<ReceivedRequest> {
  const { request } = received;
  const { wallClock, issuer } = deps;
  const now = wallClock();
  const isRequired = mustSign(client);
  if (request === undefined && isRequired)
    return refusedRequest(received, 'invalid_request', OBJECT_REQUIRED);
  // Without keys of the client the object cannot be verified: the engine refuses the request.
  const mayBe = typeof request === 'string' && (isRequired || requestObjectKeys(client, now).length > 0);
  if (!mayBe) return { parameters: received };
  try {
    const object = await readRequestObject(request, client, { issuer, now });
    // Parameters outside of the object do not count (RFC 9101 §6.3).
    const parameters = { ...object.parameters, client_id: client.client_id };
    return { parameters, isSigned: true, unrecorded: object };
  } catch (thrown) {
    if (!(thrown instanceof AuthError)) throw thrown;
    return refusedRequest(received, thrown.error, thrown.error_description);
  }
}

const RESPONSE_PARAMETERS = ['client_id', 'redirect_uri', 'response_mode', 'response_type', 'state', 'owp'];

/**
 * Returns a refused request, with only the parameters that say where to send the error.
 * @param received its parameters, or those beside its object.
 */
export function refusedRequest(
  received: ParsedUrlQuery,
  error: string,
  description: string,
): ReceivedRequest {
  const where = Object.entries(received).filter(([name]) => RESPONSE_PARAMETERS.includes(name));
  return {
    parameters: { ...Object.fromEntries(where), ...responseParameters(received.request) },
    refused: { error, description },
  };
}
