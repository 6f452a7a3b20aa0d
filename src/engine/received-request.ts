// What an authorization request asks for, by whichever way its parameters came: in the query or a form, in a request object
// (RFC 9101), or pushed before (RFC 9126). From here on they are the same, so that every check sees them.
import type { ParsedUrlQuery } from 'node:querystring';
import type { Context } from 'koa';
import { AuthError } from '../http/errors.ts';
import type { Client } from '../records/collections.ts';
import { profileOf } from '../records/compliance-levels.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Store } from '../store/contract.ts';
import type { Config } from '../tenant/config.ts';
import { requestFault } from './compliance.ts';
import { bringsSecretOf } from './interaction-browser.ts';
import type { OwnCallbacks } from './own-callbacks.ts';
import { isPushedUri, OVER, type PushedRequests } from './pushed-requests.ts';
import { uidOfState } from './repeat.ts';
import {
  answerParameters,
  type RequestObject,
  readRequestObject,
  requestObjectKeys,
} from './request-object.ts';
import { USED, useOnce } from './request-replay.ts';

/** A request whose parameters are known. */
export interface ReceivedRequest {
  parameters: ParsedUrlQuery;
  /** Why it is refused, where the application is told so: the parameters then only say where. */
  refused?: { error: string; description: string };
  /** What a pushed one is known by. */
  pushed?: string;
  /** Whether the parameters are those of a request object. */
  isSigned?: true;
  /** The object, where it counts once and has not been used up yet. */
  unused?: RequestObject;
}

interface Dependencies {
  issuer: string;
  config: Pick<Config, 'client' | 'settings'>;
  store: Store;
  /** What the dates in JWTs are judged by. */
  wallClock: Clock;
  ownCallbacks: Pick<OwnCallbacks, 'has'>;
  pushedRequests: Pick<PushedRequests, 'claim'>;
}

/** What becomes of the parameters of a request. */
export interface ReceiveRequest {
  /**
   * At the authorization endpoint.
   * @param browser the hash of the secret that the request has in its browser.
   * @throws AuthError 400 `invalid_request_uri`, on a page: nobody knows where else.
   */
  authorization(ctx: Context, received: ParsedUrlQuery, browser: string): Promise<ReceivedRequest>;
  /**
   * At the endpoint that requests are pushed to, which uses an object up when it keeps the request: a client that is
   * asked for a nonce sends the same again (RFC 9449 §8).
   * @param clientId as which the sender authenticates.
   */
  pushed(clientId: string, received: ParsedUrlQuery): Promise<ReceivedRequest>;
}

const PUSH_REQUIRED = 'Pushed Authorization Request must be used';
const OBJECT_REQUIRED = 'Request Object must be used by this client';

/** Receives the requests of a tenant. */
export function receiveRequests(deps: Dependencies): ReceiveRequest {
  const { config, ownCallbacks, pushedRequests } = deps;
  return {
    authorization: async (ctx, received, browser) => {
      const clientId = typeof received.client_id === 'string' ? received.client_id : '';
      const client = await config.client(clientId);
      // The engine refuses who is no client; a request that is begun anew was received before.
      if (client === undefined || uidOfState(received.state) !== undefined) return { parameters: received };
      const { request, request_uri: uri } = received;
      if (isPushedUri(uri) && request === undefined) {
        const brings = (hash: string) => bringsSecretOf(ctx, hash);
        const claimed = await pushedRequests.claim(uri, { clientId, brings, browser });
        if (claimed === undefined) throw new AuthError(400, 'invalid_request_uri', OVER);
        // What was sent beside it does not count (RFC 9101 §6.3, RFC 9126 §4).
        const parameters = { ...claimed.params, client_id: clientId };
        const { pushed, isSigned } = claimed;
        // The application may have come to be held to more since.
        if (!isSigned && mustSign(client))
          return refusedRequest(parameters, 'invalid_request', OBJECT_REQUIRED);
        return held(client, { parameters, pushed, ...(isSigned && { isSigned }) }, true);
      }
      if (isPushedUri(uri))
        return refusedRequest(received, 'invalid_request', 'request and request_uri exclude each other');
      const isOwn = typeof received.redirect_uri === 'string' && ownCallbacks.has(received.redirect_uri);
      if (isOwn && request === undefined) return { parameters: received };
      if (mustPush(config, client)) return refusedRequest(received, 'invalid_request', PUSH_REQUIRED);
      if (received.request_uri !== undefined) return held(client, { parameters: received }, false);
      const read = held(client, await withObject(deps, client, received), false);
      return profileOf(client) === undefined ? read : usedUp(deps, client, read);
    },
    pushed: async (clientId, received) => {
      const client = await config.client(clientId);
      if (received.request_uri !== undefined)
        return refusedRequest(received, 'invalid_request', 'request_uri must not be pushed');
      if (client === undefined) return { parameters: received };
      return held(client, await withObject(deps, client, received), true);
    },
  };
}

/** The request, if its object was not used before. */
async function usedUp(
  { store }: Dependencies,
  client: Client,
  read: ReceivedRequest,
): Promise<ReceivedRequest> {
  const { unused, parameters } = read;
  const isFirst = unused === undefined || (await useOnce(store, client.client_id, unused));
  return isFirst ? read : refusedRequest(parameters, 'invalid_request_object', USED);
}

/** The request, if it is as its application's level demands (engine/compliance.ts). */
function held(client: Client, request: ReceivedRequest, isPushed: boolean): ReceivedRequest {
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
  // Without keys of the client there is nothing to verify one by: the engine refuses it.
  const mayBe = typeof request === 'string' && (isRequired || requestObjectKeys(client, now).length > 0);
  if (!mayBe) return { parameters: received };
  try {
    const object = await readRequestObject(request, client, { issuer, now });
    // Parameters outside of the object do not count (RFC 9101 §6.3).
    const parameters = { ...object.parameters, client_id: client.client_id };
    return { parameters, isSigned: true, unused: object };
  } catch (thrown) {
    if (!(thrown instanceof AuthError)) throw thrown;
    return refusedRequest(received, thrown.error, thrown.error_description);
  }
}

const ANSWERED = ['client_id', 'redirect_uri', 'response_mode', 'response_type', 'state', 'owp'];

/**
 * A request that is refused, with what says where that is answered.
 * @param received its parameters, or those beside its object.
 */
export function refusedRequest(
  received: ParsedUrlQuery,
  error: string,
  description: string,
): ReceivedRequest {
  const where = Object.entries(received).filter(([name]) => ANSWERED.includes(name));
  return {
    parameters: { ...Object.fromEntries(where), ...answerParameters(received.request) },
    refused: { error, description },
  };
}
