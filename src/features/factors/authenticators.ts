// The stored second factors of users: begun, confirmed by their first use, listed and removed.

import type { Frozen } from '../../records/base/record.ts';
import { type AuthenticatorRecord, factorsTurn } from '../../records/users/authenticators.ts';
import { type FactorKind, SECOND_FACTORS } from '../../records/users/second-factors.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import { type Random, sha256 } from '../../runtime/secrets.ts';
import type { Collection, Store, Write } from '../../store/contract.ts';
import { deleteWith } from '../../store/delete-with.ts';
import { writeInTurn } from '../../store/write-in-turn.ts';
import { type ConfirmOptions, confirm, isUnconfirmed, removeIf } from './confirm.ts';

export type Authenticator = Frozen<AuthenticatorRecord>;

/** Members of an authenticator that only some factors have. */
export type FactorFields = Partial<
  Omit<AuthenticatorRecord, 'id' | 'user_id' | 'kind' | 'active' | 'first' | 'created_at' | 'expiresAt'>
>;

/** How many unconfirmed authenticators a user may have at a time, and after how many seconds each expires. */
const MAX_UNCONFIRMED = 10;
const UNCONFIRMED_SECONDS = 3_600;

// docs/understand/decisions/second-factors.md#an-enrolment-carries-the-version-of-the-password-that-it-was-begun-with
/** Who begins an enrolment: the user, and the version of the credential that their login was proved with. */
export interface Enrollee {
  userId: string;
  credentialVersion: number;
}

/** An authenticator that an administrator gives to a user. */
interface NewAuthenticator {
  kind: FactorKind;
  fields: FactorFields;
}

interface AddOptions {
  replaces?: boolean;
  check?(present: readonly Authenticator[]): void;
}

export interface Authenticators {
  /** Returns all authenticators of a user, including unconfirmed ones. */
  of(userId: string): Promise<Authenticator[]>;
  get(id: string): Promise<Authenticator | undefined>;
  /**
   * Begins an enrolment. The authenticator is inactive until its first use, and expires without one.
   * @param fields makes the members that only this factor has, from the id.
   */
  startEnrollment(
    by: Enrollee,
    factor: { kind: string; prefix: string },
    fields?: (id: string) => Promise<FactorFields> | FactorFields,
  ): Promise<Authenticator>;
  /** Stores an active authenticator, in place of any with the same id. @param also written in the same batch, before. */
  put(
    authenticator: Omit<AuthenticatorRecord, 'active' | 'created_at'>,
    also?: readonly Write[],
  ): Promise<void>;
  /**
   * Gives a user active authenticators, for an administrator.
   * @param options.replaces whether to delete all others of the user, in the same write.
   * @param options.check is called with all that the user has at the write, and throws to refuse.
   */
  addConfirmed(
    userId: string,
    added: readonly NewAuthenticator[],
    options?: AddOptions,
  ): Promise<Authenticator[]>;
  /** @returns the new record; undefined when there is none with that id. */
  update(id: string, change: (current: Authenticator) => Authenticator): Promise<Authenticator | undefined>;
  /**
   * Makes an authenticator active, and removes the user's other unconfirmed ones.
   * @param by the id of the access token or session that does it, if any.
   * @returns false when it may not be confirmed.
   */
  confirm(authenticator: Authenticator, options: ConfirmOptions, by?: string): Promise<boolean>;
  /**
   * Removes an authenticator, and the recovery code with the last active one.
   * @param by the id of the access token or session that does it, if any.
   * @param also written in the same batch, before.
   * @returns false when there was none with that id.
   */
  remove(id: string, by?: string, also?: readonly Write[]): Promise<boolean>;
  /** @returns false when it is confirmed or absent. */
  removeUnconfirmed(id: string): Promise<boolean>;
  removeAllUnconfirmedOf(userId: string): Promise<void>;
  removeAllOf(userId: string): Promise<void>;
}

interface AuthenticatorsDependencies {
  store: Store;
  factorChanges: FactorChanges;
  clock: Clock;
  random: Random;
}

export function createAuthenticators(deps: AuthenticatorsDependencies): Authenticators {
  const { store, clock, factorChanges } = deps;
  const records = store.collection('authenticators');
  return {
    of: (userId) => records.findBy('user', userId),
    get: (id) => records.get(id),
    startEnrollment: (by, factor, fields) => startEnrollment(deps, records, by, factor, fields),
    put: async (authenticator, also = []) => {
      const put = { ...authenticator, active: true, created_at: new Date(clock()).toISOString() };
      await store.batch([...also, { collection: 'authenticators', put }]);
    },
    addConfirmed: (userId, added, options) => addConfirmed(deps, userId, added, options),
    update: (id, change) => records.update(id, change),
    confirm: (authenticator, options, by) =>
      factorChanges.apply(authenticator.user_id, by, () => confirm(store, authenticator, options)),
    ...removals(store, factorChanges),
  };
}

async function addConfirmed(
  { store, clock, random, factorChanges }: AuthenticatorsDependencies,
  userId: string,
  authenticators: readonly NewAuthenticator[],
  { replaces = false, check }: AddOptions = {},
): Promise<Authenticator[]> {
  const added = authenticators.map(({ kind, fields }) => ({
    ...fields,
    id: idOf(SECOND_FACTORS[kind].prefix, random(12).toString('base64url')),
    user_id: userId,
    kind,
    active: true,
    created_at: new Date(clock()).toISOString(),
  }));
  const prepare = async (): Promise<Write[]> => {
    const present = await store.collection('authenticators').findBy('user', userId);
    check?.(present);
    return [
      ...(replaces ? present : []).map(({ id }): Write => ({ collection: 'authenticators', delete: id })),
      ...added.map((insert): Write => ({ collection: 'authenticators', insert })),
    ];
  };
  // A refused call must not be recorded as a change, which would end the user's tokens.
  check?.(await store.collection('authenticators').findBy('user', userId));
  await factorChanges.apply(userId, undefined, () =>
    writeInTurn(store, factorsTurn(userId), prepare, random),
  );
  return added;
}

async function startEnrollment(
  { clock, random }: AuthenticatorsDependencies,
  records: Collection<AuthenticatorRecord>,
  { userId, credentialVersion }: Enrollee,
  { kind, prefix }: { kind: string; prefix: string },
  fields: (id: string) => Promise<FactorFields> | FactorFields = () => ({}),
): Promise<Authenticator> {
  const id = idOf(prefix, random(12).toString('base64url'));
  const record = {
    id,
    user_id: userId,
    kind,
    active: false,
    credential_version: credentialVersion,
    created_at: new Date(clock()).toISOString(),
    ...(await fields(id)),
  };
  await records.insert({ ...record, expiresAt: epochSeconds(clock) + UNCONFIRMED_SECONDS });
  const unconfirmed = (await records.findBy('user', userId)).filter(isUnconfirmed);
  const oldest = unconfirmed.sort((a, b) => (a.created_at < b.created_at ? 1 : -1)).slice(MAX_UNCONFIRMED);
  await Promise.all(oldest.map((one) => records.delete(one.id)));
  return record;
}

type Removals = Pick<
  Authenticators,
  'remove' | 'removeUnconfirmed' | 'removeAllUnconfirmedOf' | 'removeAllOf'
>;

function removals(store: Store, factorChanges: FactorChanges): Removals {
  const records = store.collection('authenticators');
  return {
    remove: async (id, by, also = []) => {
      const { user_id: userId } = (await records.get(id)) ?? {};
      // Removing an unconfirmed authenticator does not change the user's factors, so it ends no tokens or sessions.
      if (userId === undefined) return false;
      if (await removeIf(records, id, isUnconfirmed)) return true;
      return factorChanges.apply(userId, by, async () => {
        const isRemoved = await deleteWith(store, 'authenticators', id, also);
        await removeLoneRecoveryCode(records, userId);
        return isRemoved;
      });
    },
    removeUnconfirmed: (id) => removeIf(records, id, isUnconfirmed),
    removeAllUnconfirmedOf: async (userId) => {
      const all = await records.findBy('user', userId);
      await Promise.all(all.map(({ id }) => removeIf(records, id, isUnconfirmed)));
    },
    removeAllOf: async (userId) => {
      await factorChanges.apply(userId, undefined, () => records.deleteBy('user', userId));
    },
  };
}

/** Removes a recovery code that is the only one left, so that it cannot replace a factor enrolled later. */
async function removeLoneRecoveryCode(records: Collection<AuthenticatorRecord>, userId: string) {
  const active = (await records.findBy('user', userId)).filter((one) => !isUnconfirmed(one));
  const [code] = active;
  // Among confirmed authenticators only the recovery code has a `codeHash`.
  if (active.length !== 1 || code?.codeHash === undefined) return;
  await removeIf(records, code.id, ({ codeHash }) => codeHash === code.codeHash);
}

/**
 * Returns the id of an authenticator that a user can have only one of. It is always the same, so that a new record
 * replaces the old one.
 */
export function singleId(prefix: string, userId: string): string {
  return idOf(prefix, sha256(userId).slice(0, 16));
}

/** Ids have letters and digits after `dev_` (docs/reference/wire/mfa.md). */
function idOf(prefix: string, unique: string): string {
  return `${prefix}|dev_${unique.replace(/[-_]/g, 'x')}`;
}

// Records when a user's factors changed and with which access token. Access tokens end when another token changes
// the factors, and a session whose factor may have been removed has to prove one again. Kept are the last change
// and those within the lifetime of a token.

/** Lifetime of an access token for the MFA API in seconds. */
export const API_TOKEN_SECONDS = 600;

export interface FactorChanges {
  /** Returns the id of a user's last change; empty for none. */
  last(userId: string): Promise<string>;
  /** Returns whether all changes after `since` were made with the token or session `by`. */
  isUnchangedByOthers(userId: string, since: string, by: string): Promise<boolean>;
  /**
   * Makes a change and records it before and after, so that a concurrent reader never takes the old id for the
   * current one.
   * @param by the id of the access token or session that makes the change, if any.
   */
  apply<T>(userId: string, by: string | undefined, change: () => Promise<T>): Promise<T>;
}

export function createFactorChanges(deps: { store: Store; clock: Clock; random: Random }): FactorChanges {
  const { store, clock, random } = deps;
  const records = store.collection('factorChanges');
  const changesOf = async (userId: string) => (await records.get(userId))?.changes ?? [];
  const record = (userId: string, by: string | undefined) =>
    records.upsert(userId, (before) => {
      const now = epochSeconds(clock);
      const recent = before?.changes.filter(({ at }) => at >= now - API_TOKEN_SECONDS) ?? [];
      const change = { id: random(12).toString('base64url'), at: now, ...(by === undefined ? {} : { by }) };
      return { id: userId, changes: [...recent, change] };
    });
  return {
    last: async (userId) => (await changesOf(userId)).at(-1)?.id ?? '',
    isUnchangedByOthers: async (userId, since, by) => {
      const changes = await changesOf(userId);
      // A change that is not found (index -1) is older than all that are kept, so all of those are later.
      const after = changes.slice(changes.findIndex(({ id }) => id === since) + 1);
      return after.every((change) => change.by === by);
    },
    apply: async (userId, by, change) => {
      await record(userId, by);
      try {
        return await change();
      } finally {
        await record(userId, by);
      }
    },
  };
}
