// Stores pushed authorization requests (RFC 9126) until one browser has used each.
import type { ParsedUrlQuery } from 'node:querystring';
import { errors, type KoaContextWithOIDC } from 'oidc-provider';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/secrets.ts';
import type { Store } from '../../store/contract.ts';
import { updateWithResult } from '../../store/contract.ts';
import { INTERACTION_SECONDS } from '../admission/lifetimes.ts';
import { artifactKey } from '../base/artifact-keys.ts';
import { readExtensions } from '../base/request-extensions.ts';

/** What every `request_uri` of ours begins with (RFC 9126 §2.2). */
const URN = 'urn:ietf:params:oauth:request_uri:';
export const PUSHED_MODEL = 'PushedAuthorizationRequest';

/** The one description for every invalid `request_uri`, so that it does not tell which check failed. */
export const INVALID_REQUEST_URI = 'request_uri is invalid, expired, or was already used';

/** A pushed request as it is stored. */
interface StoredRequest {
  clientId: string;
  params: ParsedUrlQuery;
  /** Whether the parameters came in a request object. */
  isSigned?: boolean;
  /** The time until which a browser may begin to use it, epoch seconds. */
  until: number;
  /** The hash of the secret that the request has in its browser, once one has come. */
  browser?: string;
  isUsed?: true;
}

/** A browser that sends a `request_uri`. */
interface ClaimingBrowser {
  clientId: string;
  hasSecret(hash: string): boolean;
  /** The hash of the secret that the browser gets now. */
  browser: string;
}

export interface PushedRequests {
  /** Stores the request of a client. @param seconds its lifetime. @returns its `request_uri`. */
  store(request: Pick<StoredRequest, 'clientId' | 'params' | 'isSigned'>, seconds: number): Promise<string>;
  // docs/understand/decisions/authorize.md#a-request_uri-belongs-to-one-browser-and-is-used-up-by-the-answer
  /**
   * Gives the request to the first browser that sends its `request_uri`; the same browser may load it again until
   * it is answered.
   * @returns its parameters and its key in the store; undefined when it belongs to another client, is expired or
   *   used.
   */
  claim(
    uri: string,
    coming: ClaimingBrowser,
  ): Promise<{ params: ParsedUrlQuery; isSigned: boolean; pushed: string } | undefined>;
  /**
   * Records the new secret of a waiting request that is restarted in its browser.
   * @param pushed the key of the request in the store.
   * @param before the hash of the old secret.
   * @param browser the hash of the new one.
   */
  rebind(pushed: string, before: string | undefined, browser: string): Promise<void>;
  /**
   * Uses up the pushed request that is about to be answered; does nothing for a request that was not pushed.
   * @throws errors.InvalidRequestUri when it was used already, or its browser has loaded it again since.
   */
  use(ctx: KoaContextWithOIDC): Promise<void>;
}

export function isPushedUri(uri: unknown): uri is string {
  return typeof uri === 'string' && uri.startsWith(URN);
}

export function pushedRequests({
  store,
  clock,
  random,
}: {
  store: Store;
  clock: Clock;
  random: Random;
}): PushedRequests {
  const artifacts = store.collection('artifacts');
  /** Changes a request that exists and is not used. Simultaneous changes are applied one after another. */
  const change = (
    key: string,
    next: (stored: StoredRequest) => StoredRequest | undefined,
  ): Promise<StoredRequest | undefined> =>
    updateWithResult(artifacts, key, (current) => {
      // Records of this model are written only here.
      const stored = current.payload as unknown as StoredRequest;
      const changedRequest = stored.isUsed === true ? undefined : next(stored);
      return {
        result: changedRequest,
        ...(changedRequest && { next: { ...current, payload: { ...changedRequest } } }),
      };
    });
  return {
    store: async (request, seconds) => {
      const id = random(32).toString('base64url');
      const until = epochSeconds(clock) + seconds;
      const stored: StoredRequest = { ...request, until };
      await artifacts.insert({
        id: artifactKey(PUSHED_MODEL, id),
        model: PUSHED_MODEL,
        payload: { ...stored },
        // Kept while its user logs in, because the record says that it was used.
        expiresAt: until + INTERACTION_SECONDS,
      });
      return URN + id;
    },
    claim: async (uri, { clientId, hasSecret, browser }) => {
      const pushed = artifactKey(PUSHED_MODEL, uri.slice(URN.length));
      const claimed = await change(pushed, (stored) => {
        const isFree = stored.browser === undefined && epochSeconds(clock) < stored.until;
        const isTheirs = stored.browser !== undefined && hasSecret(stored.browser);
        return stored.clientId === clientId && (isFree || isTheirs) ? { ...stored, browser } : undefined;
      });
      return claimed && { params: { ...claimed.params }, isSigned: claimed.isSigned === true, pushed };
    },
    rebind: async (pushed, before, browser) => {
      await change(pushed, (stored) => (stored.browser === before ? { ...stored, browser } : undefined));
    },
    use: async ({ oidc }) => {
      const { pushed, browser } = readExtensions(oidc.params ?? {});
      if (pushed === undefined) return;
      const used = await change(pushed, (stored) =>
        stored.browser === browser ? { ...stored, isUsed: true } : undefined,
      );
      if (used === undefined) throw new errors.InvalidRequestUri(INVALID_REQUEST_URI);
    },
  };
}
