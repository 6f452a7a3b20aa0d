// The stored second factors of users: begun, confirmed by their first use, listed and removed.
import type { AuthenticatorRecord } from '../records/authenticators.ts';
import type { Frozen } from '../records/record.ts';
import { type FactorKind, SECOND_FACTORS } from '../records/second-factors.ts';
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import type { Random } from '../runtime/random.ts';
import { sha256 } from '../runtime/secrets.ts';
import type { Collection, Store, Write } from '../store/contract.ts';
import { writeInTurn } from '../store/write-in-turn.ts';
import { type ConfirmOptions, confirm, isBegun, removeIf, turnOf } from './confirm.ts';
import type { FactorChanges } from './factor-changes.ts';

export type Authenticator = Frozen<AuthenticatorRecord>;

/** Members of an authenticator that only some factors have. */
export type OwnFields = Partial<
  Omit<AuthenticatorRecord, 'id' | 'user_id' | 'kind' | 'active' | 'first' | 'created_at' | 'expiresAt'>
>;

/** How many unconfirmed authenticators a user may have at a time, and after how many seconds each expires. */
const MOST_BEGUN = 10;
const BEGUN_SECONDS = 3_600;

/** Who begins an enrolment: the user, and the version of the credential that their login was proved with. */
export interface Enrollee {
  userId: string;
  credentialVersion: number;
}

/** An authenticator that an administrator gives to a user. */
interface GivenAuthenticator {
  kind: FactorKind;
  fields: OwnFields;
}

interface GiveOptions {
  instead?: boolean;
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
  begin(
    by: Enrollee,
    factor: { kind: string; prefix: string },
    fields?: (id: string) => Promise<OwnFields> | OwnFields,
  ): Promise<Authenticator>;
  /** Stores an active authenticator, in place of any with the same id. */
  put(authenticator: Omit<AuthenticatorRecord, 'active' | 'created_at'>): Promise<void>;
  /**
   * Gives a user active authenticators, for an administrator.
   * @param options.instead whether to delete all others of the user, in the same write.
   * @param options.check is called with all that the user has at the write, and throws to refuse.
   */
  give(userId: string, given: readonly GivenAuthenticator[], options?: GiveOptions): Promise<Authenticator[]>;
  /** Changes an authenticator atomically. @returns the new record; undefined when there is none with that id. */
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
   * @returns false when there was none with that id.
   */
  remove(id: string, by?: string): Promise<boolean>;
  /** Removes an authenticator that is not confirmed. @returns false when it is confirmed or absent. */
  removeBegun(id: string): Promise<boolean>;
  /** Removes all unconfirmed authenticators of a user. */
  removeAllBegunOf(userId: string): Promise<void>;
  removeAllOf(userId: string): Promise<void>;
}

interface AuthenticatorsDependencies {
  store: Store;
  factorChanges: FactorChanges;
  clock: Clock;
  random: Random;
}

/** Returns the authenticators of the store. */
export function createAuthenticators(deps: AuthenticatorsDependencies): Authenticators {
  const { store, clock, factorChanges } = deps;
  const records = store.collection('authenticators');
  return {
    of: (userId) => records.findBy('user', userId),
    get: (id) => records.get(id),
    begin: (by, factor, fields) => begin(deps, records, by, factor, fields),
    put: async (authenticator) => {
      await records.put({ ...authenticator, active: true, created_at: new Date(clock()).toISOString() });
    },
    give: (userId, given, options) => give(deps, userId, given, options),
    update: (id, change) => records.update(id, change),
    confirm: (authenticator, options, by) =>
      factorChanges.around(authenticator.user_id, by, () => confirm(store, authenticator, options)),
    ...removals(records, factorChanges),
  };
}

async function give(
  { store, clock, random, factorChanges }: AuthenticatorsDependencies,
  userId: string,
  given: readonly GivenAuthenticator[],
  { instead = false, check }: GiveOptions = {},
): Promise<Authenticator[]> {
  const made = given.map(({ kind, fields }) => ({
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
      ...(instead ? present : []).map(({ id }): Write => ({ collection: 'authenticators', delete: id })),
      ...made.map((insert): Write => ({ collection: 'authenticators', insert })),
    ];
  };
  // A refused call must not be recorded as a change, which would end the user's tokens.
  check?.(await store.collection('authenticators').findBy('user', userId));
  await factorChanges.around(userId, undefined, () => writeInTurn(store, turnOf(userId), prepare, random));
  return made;
}

async function begin(
  { clock, random }: AuthenticatorsDependencies,
  records: Collection<AuthenticatorRecord>,
  { userId, credentialVersion }: Enrollee,
  { kind, prefix }: { kind: string; prefix: string },
  fields: (id: string) => Promise<OwnFields> | OwnFields = () => ({}),
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
  await records.insert({ ...record, expiresAt: epochSeconds(clock) + BEGUN_SECONDS });
  const begun = (await records.findBy('user', userId)).filter(isBegun);
  const oldest = begun.sort((a, b) => (a.created_at < b.created_at ? 1 : -1)).slice(MOST_BEGUN);
  await Promise.all(oldest.map((one) => records.delete(one.id)));
  return record;
}

type Removals = Pick<Authenticators, 'remove' | 'removeBegun' | 'removeAllBegunOf' | 'removeAllOf'>;

function removals(records: Collection<AuthenticatorRecord>, factorChanges: FactorChanges): Removals {
  return {
    remove: async (id, by) => {
      const { user_id: userId } = (await records.get(id)) ?? {};
      // Removing an unconfirmed authenticator does not change the user's factors, so it ends no tokens or sessions.
      if (userId === undefined) return false;
      if (await removeIf(records, id, isBegun)) return true;
      return factorChanges.around(userId, by, async () => {
        const isRemoved = await records.delete(id);
        await removeLoneRecoveryCode(records, userId);
        return isRemoved;
      });
    },
    removeBegun: (id) => removeIf(records, id, isBegun),
    removeAllBegunOf: async (userId) => {
      const all = await records.findBy('user', userId);
      await Promise.all(all.map(({ id }) => removeIf(records, id, isBegun)));
    },
    removeAllOf: async (userId) => {
      await factorChanges.around(userId, undefined, () => records.deleteBy('user', userId));
    },
  };
}

/** Removes a recovery code that is the only one left, so that it cannot replace a factor enrolled later. */
async function removeLoneRecoveryCode(records: Collection<AuthenticatorRecord>, userId: string) {
  const active = (await records.findBy('user', userId)).filter((one) => !isBegun(one));
  const [code] = active;
  // Among confirmed authenticators only the recovery code has a `codeHash`.
  if (active.length !== 1 || code?.codeHash === undefined) return;
  await removeIf(records, code.id, ({ codeHash }) => codeHash === code.codeHash);
}

/**
 * Returns the id of an authenticator that a user can have only one of. It is always the same, so that a new record
 * replaces the old one.
 */
export function onlyId(prefix: string, userId: string): string {
  return idOf(prefix, sha256(userId).slice(0, 16));
}

/** Ids have letters and digits after `dev_` (docs/wire/mfa.md). */
function idOf(prefix: string, unique: string): string {
  return `${prefix}|dev_${unique.replace(/[-_]/g, 'x')}`;
}
