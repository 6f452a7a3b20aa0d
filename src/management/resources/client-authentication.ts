// How an application of the Management API authenticates itself: its methods, and the keys that they name.
import { z } from 'zod';
import {
  CREDENTIAL_METHODS,
  type CredentialMethod,
  credentialMethod,
} from '../../records/client-authentication.ts';
import type { Client } from '../../records/collections.ts';
import type { Random } from '../../runtime/random.ts';
import { type ClientKey, keysOf, methodOf, newKey, requestKeys, usedKeys, withKeys } from '../client-keys.ts';
import { apiError } from '../errors.ts';
import { idOf } from '../ids.ts';
import { checkedBy } from '../resource.ts';
import { isObject } from '../section.ts';
import { credentialBody } from './client-credentials.ts';

/** What new keys are made with. */
interface NewKeyDependencies {
  random: Random;
  /** ISO 8601. */
  now(): string;
}

/** Shown to those alone who may read keys. */
export const KEYS = ['client_secret', 'encryption_key'] as const;

export const KEY_SCOPES = ['read:client_keys', 'read:client_credentials', 'update:client_keys'];

const methodBody = z.object({
  credentials: z
    .array(z.union([z.strictObject({ id: z.string().max(64) }), credentialBody]))
    .max(20)
    .optional(),
});

/** Keys are read at `/clients/{id}/credentials`; here are their ids alone. */
export function credentialIds(client: Client): object {
  const method = credentialMethod(client);
  const others = Object.entries(client.client_authentication_methods ?? {}).filter(
    ([name]) => !(CREDENTIAL_METHODS as readonly string[]).includes(name),
  );
  const credentials = usedKeys(client).map(({ id }) => ({ id }));
  return { ...Object.fromEntries(others), ...(method === undefined ? {} : { [method]: { credentials } }) };
}

/**
 * What a body makes of an application's keys: a new one is described as a whole, one that there is by its id. Those that
 * are no longer used wait.
 * @throws AuthError 400
 */
export function applyKeys<T extends object>(
  before: Client | undefined,
  asked: T & { client_authentication_methods?: unknown },
  deps: NewKeyDependencies,
): T {
  const known = before === undefined ? [] : keysOf(before);
  const methods = (asked.client_authentication_methods ?? {}) as { [M in CredentialMethod]?: unknown };
  const [method, second] = CREDENTIAL_METHODS.filter((one) => methods[one] !== undefined);
  if (second !== undefined)
    throw apiError(400, 'client_authentication_methods has more than one method', 'invalid_body');
  const used = namedKeys(known, (method && methods[method]) ?? {}, deps) ?? [];
  if (used.some((one) => methodOf(one) !== method))
    throw apiError(400, `The credentials are not for ${String(method)}`, 'invalid_body');
  const waiting = known.filter(({ id }) => !used.some((key) => key.id === id));
  return withKeys(asked, used, waiting);
}

/** The keys that a part of a body names or describes; undefined where it says nothing of keys. @throws AuthError 400 */
function namedKeys(
  known: readonly ClientKey[],
  part: unknown,
  deps: NewKeyDependencies,
): ClientKey[] | undefined {
  return checkedBy(methodBody, part).credentials?.map((one) => {
    if (!('id' in one)) return newKey(one, { id: idOf('cred', deps.random), now: deps.now() });
    const found = known.find(({ id }) => id === one.id);
    if (found === undefined) throw apiError(400, `The credential ${one.id} does not exist`, 'invalid_body');
    return found;
  });
}

/** What a body makes of the keys of request objects; new ones are among the application's keys, too. */
export function applyRequestKeys<T extends object>(
  before: Client | undefined,
  asked: T & { signed_request_object?: unknown; credentials?: unknown },
  deps: NewKeyDependencies,
): T {
  const { signed_request_object: part } = asked;
  if (!isObject(part)) return asked;
  // Those that the same body brings for assertions are there already.
  const known = keysOf({
    ...before,
    ...asked,
    signed_request_object: before?.signed_request_object,
  } as Client);
  const credentials = namedKeys(known, part, deps) ?? (before === undefined ? [] : requestKeys(before));
  const isNew = ({ id }: ClientKey) => !known.some((key) => key.id === id);
  const waiting = [...((asked.credentials ?? []) as ClientKey[]), ...credentials.filter(isNew)];
  return {
    ...asked,
    ...(waiting.length > 0 && { credentials: waiting }),
    signed_request_object: { ...part, credentials },
  };
}
