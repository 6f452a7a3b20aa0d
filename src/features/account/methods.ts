// Authentication methods of a user, listed, renamed and removed by that user.

import { ownRelyingParty } from '../../capabilities/webauthn/relying-party.ts';
import { AuthError } from '../../http/errors.ts';
import { DATABASE } from '../../records/connections.ts';
import type { PasskeyRecord } from '../../records/passkeys.ts';
import type { Frozen } from '../../records/record.ts';
import type { Store } from '../../store/contract.ts';
import { deleteWith } from '../../store/delete-with.ts';
import { type Identity, originalUserId } from '../../users/changes.ts';
import type { User } from '../../users/user.ts';
import type { FactorChanges } from '../factors/authenticators.ts';
import type { FactorDependencies } from '../factors/factor.ts';
import { type Actor, requireFactor, requireLoginFor } from './actor.ts';
import { notifyOfMethod } from './method-notices.ts';
import {
  authenticatorView,
  type MethodView,
  PASSKEY_PREFIX,
  passkeyView,
  passwordId,
  passwordView,
} from './views.ts';

export interface MethodDependencies extends FactorDependencies {
  store: Store;
  factorChanges: FactorChanges;
}

/**
 * Lists a user's authentication methods: passwords, passkeys, then active second factors.
 * @throws AuthError 401 `insufficient_user_authentication` when the login lacks the second factor.
 */
export async function listMethods(deps: MethodDependencies, actor: Actor): Promise<MethodView[]> {
  await requireFactor(deps, actor);
  const { user } = actor;
  const [passwords, passkeys, factors] = await Promise.all([
    passwordsOf(deps, user),
    passkeysOf(deps, user.id),
    deps.authenticators.of(user.id),
  ]);
  const party = ownRelyingParty(deps).id;
  return [
    ...passwords.map((identity) => passwordView(user, identity)),
    ...passkeys.map((one) => passkeyView(one, party)),
    ...factors.filter(({ active }) => active).map(authenticatorView),
  ];
}

/** Returns the user's database identities whose password is stored here. */
export async function passwordsOf({ users }: MethodDependencies, user: User): Promise<Identity[]> {
  const identities = (await users.identitiesOf(user.id)).filter(({ provider }) => provider === DATABASE);
  const has = await Promise.all(identities.map((identity) => users.hasPassword(originalUserId(identity))));
  return identities.filter((_, index) => has[index]);
}

/** Returns a user's passkeys. */
export function passkeysOf(
  { store }: Pick<MethodDependencies, 'store'>,
  userId: string,
): Promise<Frozen<PasskeyRecord>[]> {
  return store.collection('passkeys').findBy('user', userId);
}

/**
 * Returns one authentication method.
 * @throws AuthError 404 if the user has none with that id; 401 as {@link listMethods}.
 */
export async function getMethod(deps: MethodDependencies, actor: Actor, id: string): Promise<MethodView> {
  await requireFactor(deps, actor);
  return (await methodOf(deps, actor, id)).view;
}

/**
 * Renames an authentication method.
 * @throws AuthError 404 if the user has none with that id; 400 for a password, which has no name; 401 as {@link
 *   requireLoginFor}.
 */
export async function renameMethod(
  deps: MethodDependencies,
  actor: Actor,
  id: string,
  name: string,
): Promise<MethodView> {
  await requireLoginFor(deps, actor, 'method_name');
  const { rename } = await methodOf(deps, actor, id);
  if (rename === undefined) throw new AuthError(400, 'invalid_request', 'This method has no name.');
  const renamed = await rename(name);
  if (renamed === undefined) throw noMethod();
  return renamed;
}

/**
 * Removes an authentication method, and tells the user by mail.
 * @throws AuthError 404 if the user has none with that id; 400 for a password; 401 when the login is not fresh.
 */
export async function removeMethod(deps: MethodDependencies, actor: Actor, id: string): Promise<void> {
  await requireLoginFor(deps, actor, 'factor');
  const { view, remove } = await methodOf(deps, actor, id);
  if (remove === undefined)
    throw new AuthError(400, 'invalid_request', 'This method cannot be removed by its user.');
  if (!(await remove())) throw noMethod();
  const { user, clientId, ip } = actor;
  const type = view.type === 'passkey' ? 'passkey_removed' : 'gd_unenroll';
  deps.events.record({ type, user_id: user.id, client_id: clientId, ip });
  await notifyOfMethod(deps, actor, 'method_removed', view.type);
}

/** One of the user's authentication methods, with what the user may do with it. */
interface OwnMethod {
  view: MethodView;
  /** @returns undefined when it was removed meanwhile. */
  rename?(name: string): Promise<MethodView | undefined>;
  /** @returns false when it was removed already. */
  remove?(): Promise<boolean>;
}

/** Returns the same error for an unknown id and for another user's. */
export function noMethod(): AuthError {
  return new AuthError(404, 'not_found', 'There is no such authentication method.');
}

async function methodOf(deps: MethodDependencies, actor: Actor, id: string): Promise<OwnMethod> {
  const { user } = actor;
  if (id.startsWith(PASSKEY_PREFIX)) return passkeyOf(deps, actor, id.slice(PASSKEY_PREFIX.length));
  const password = (await passwordsOf(deps, user)).find((identity) => passwordId(identity.id) === id);
  if (password !== undefined) return { view: passwordView(user, password) };
  const found = await deps.authenticators.get(id);
  if (found === undefined || found.user_id !== user.id || !found.active) throw noMethod();
  return {
    view: authenticatorView(found),
    rename: async (name) => {
      const renamed = await deps.authenticators.update(id, (current) => ({ ...current, name }));
      return renamed && authenticatorView(renamed);
    },
    remove: () => deps.authenticators.remove(id, actor.login.id, [deps.users.stillWrite(user)]),
  };
}

async function passkeyOf(deps: MethodDependencies, { user, login }: Actor, id: string): Promise<OwnMethod> {
  const passkeys = deps.store.collection('passkeys');
  const found = await passkeys.get(id);
  if (found === undefined || found.user_id !== user.id) throw noMethod();
  const party = ownRelyingParty(deps).id;
  return {
    view: passkeyView(found, party),
    rename: async (name) => {
      const renamed = await passkeys.update(id, (current) => ({ ...current, name }));
      return renamed && passkeyView(renamed, party);
    },
    remove: () =>
      deps.factorChanges.apply(user.id, login.id, () =>
        deleteWith(deps.store, 'passkeys', id, [deps.users.stillWrite(user)]),
      ),
  };
}
