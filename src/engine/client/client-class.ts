// Changes of the engine's client class, for what client metadata cannot express.
import Provider, { type Client, errors } from 'oidc-provider';
import { isCallback, isCallbackOf } from '../../http/schemes.ts';
import { readExtensions } from '../base/request-extensions.ts';
import { applicationSettings } from './applications.ts';

/** The members of the engine's client class that are changed. */
export interface ClientClass {
  find(id: string): Promise<Client | undefined>;
  adapter: { find(id: string): Promise<object | undefined> };
  prototype: Client & { includeSid(): boolean };
  Schema: { prototype: { redirectUris(uris?: string[], label?: string): void } };
}

interface SchemaInstance {
  redirect_uris?: string[];
  invalidate(message: string): never;
}

/** Changes the client class of one engine. @param Client its client class. */
export function adaptClients(Client: ClientClass): void {
  cacheClients(Client);

  // Every ID token carries `sid` (docs/wire/token.md), not only those of back-channel logout clients.
  Client.prototype.includeSid = () => true;

  // The engine answers invalid_request; SDKs expect unauthorized_client with this text.
  const { responseTypeAllowed } = Client.prototype;
  Client.prototype.responseTypeAllowed = function allowed(this: Client, type) {
    if (responseTypeAllowed.call(this, type)) return true;
    const grantType = type.split(' ').some((part) => part !== 'code') ? 'implicit' : 'authorization_code';
    throw new errors.UnauthorizedClient(`Grant type '${grantType}' not allowed for the client.`);
  };

  // The API decides which types of authorization_details an application may ask for, not metadata of the
  // application.
  Object.defineProperty(Client.prototype, 'authorizationDetailsTypes', {
    get: () => undefined,
    set: () => undefined,
  });

  // The engine's own rule includes `localhost`, and depends on an application_type that forbids other callbacks.
  Client.prototype.redirectUriAllowed = function allowed(this: Client, address) {
    const callbacks = this.redirectUris ?? [];
    return isCallbackOf({ callbacks, app_type: applicationSettings(this).appType }, address);
  };

  // A fault that is found before the engine sees a request is answered as if the engine had found it: at the
  // application, in its response mode. This method is the first that the engine calls on a client.
  const { responseModeAllowed } = Client.prototype;
  Client.prototype.responseModeAllowed = function allowed(this: Client, ...args) {
    const { refused } = readExtensions(Provider.ctx?.oidc.params ?? {});
    if (refused !== undefined) throw new errors.CustomOIDCProviderError(refused.error, refused.description);
    return responseModeAllowed.apply(this, args);
  };

  // An application may have http, localhost and custom-scheme callbacks side by side (docs/wire/authorize.md), which the
  // engine's rules per application_type forbid. They are matched exactly.
  Client.Schema.prototype.redirectUris = function redirectUris(this: SchemaInstance, uris, label) {
    for (const uri of uris ?? this.redirect_uris ?? []) {
      if (!isCallback(uri)) {
        this.invalidate(`${label ?? 'redirect_uris'} must be absolute URIs without a fragment`);
      }
    }
  };
}

/**
 * Keeps the client that the engine made of its metadata for as long as the adapter gives the same metadata. The engine itself
 * serializes and hashes the metadata at every request to find its client again, and keeps a number of them only.
 */
function cacheClients(Client: ClientClass): void {
  const find = Client.find.bind(Client);
  const cache = new WeakMap<object, Client>();
  Client.find = async (id) => {
    const metadata = typeof id === 'string' && id !== '' ? await Client.adapter.find(id) : undefined;
    const cached = metadata && cache.get(metadata);
    if (cached !== undefined) return cached;
    const client = await find(id);
    if (client !== undefined) matchKeysWithoutId(client);
    if (metadata !== undefined && client !== undefined) cache.set(metadata, client);
    return client;
  };
}

// The keys of clients that were registered without a `kid`.

interface ClientKeys {
  selectForVerify(criteria: { alg: string; kid?: string | undefined }): { kid?: string }[];
}

/**
 * Lets an assertion with a `kid` be verified by a key that was registered without one: `kid` is only a hint (RFC 7515 §4.1.4),
 * and the engine accepts only a key with exactly that `kid`.
 */
function matchKeysWithoutId(client: Client): void {
  // Missing from the engine's types.
  const { asymmetricKeyStore: keys } = client as unknown as { asymmetricKeyStore: ClientKeys };
  // The engine may hand out the same client object again; wrapping it each time would make every look-up slower.
  if (Object.hasOwn(keys, 'selectForVerify')) return;
  const select = keys.selectForVerify.bind(keys);
  keys.selectForVerify = ({ kid, ...criteria }) => {
    const found = select({ ...criteria, kid });
    if (found.length > 0 || kid === undefined) return found;
    return select(criteria).filter((key) => key.kid === undefined);
  };
}
