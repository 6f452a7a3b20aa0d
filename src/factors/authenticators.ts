// The second factors of users: made, confirmed by their first use, listed, removed.
import { Secret } from 'otpauth';
import type { SecretBox } from '../protection/secret-box.ts';
import type { AuthenticatorRecord } from '../records/authenticators.ts';
import type { Frozen } from '../records/record.ts';
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import type { Random } from '../runtime/random.ts';
import { hashSecret, isSameSecret, sha256 } from '../runtime/secrets.ts';
import type { Collection, Store } from '../store/contract.ts';
import { type ConfirmOptions, confirm, isBegun, removeIf } from './confirm.ts';
import type { FactorChanges } from './factor-changes.ts';
import { stepOf } from './otp/totp.ts';
import type { FactorType } from './policy.ts';

export type Authenticator = Frozen<AuthenticatorRecord>;
export type Kind = AuthenticatorRecord['kind'];

/** A factor's type by the kind of authenticator. */
export const FACTORS: Record<Kind, FactorType> = {
  otp: 'otp',
  sms: 'phone',
  email: 'email',
  push: 'push-notification',
  'recovery-code': 'recovery-code',
};

const PREFIX: Record<Kind, string> = {
  otp: 'totp',
  sms: 'sms',
  email: 'email',
  push: 'push',
  'recovery-code': 'recovery-code',
};

const SECRET_BYTES = 20;

/** Letters and digits that are not mistaken for one another. */
const RECOVERY_ALPHABET = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789';
const RECOVERY_LENGTH = 24;

/** How many of a user's may be begun at a time, and for how long one waits for its first use, seconds. */
const MOST_BEGUN = 10;
const BEGUN_SECONDS = 3_600;

/** Who begins an enrolment: the user, and the version of the credential that their login was proved by. */
export interface Beginner {
  userId: string;
  credentialVersion: number;
}

export interface Authenticators {
  /** All of a user's, the unconfirmed included. */
  of(userId: string): Promise<Authenticator[]>;
  get(id: string): Promise<Authenticator | undefined>;
  /** Makes a TOTP authenticator. @returns it, and its secret in base32, which is shown this once. */
  addOtp(by: Beginner): Promise<{ authenticator: Authenticator; secret: string }>;
  /** Makes one that is reached by a message, or by a device that has yet to say who it is. */
  add(
    by: Beginner,
    kind: 'sms' | 'email' | 'push',
    reach: Pick<AuthenticatorRecord, 'phone_number' | 'email'>,
  ): Promise<Authenticator>;
  /** The secret of one that is not confirmed yet, to be shown again while it is set up. */
  secretOf(authenticator: Authenticator): Promise<string | undefined>;
  /** Whether a code is right; it and those of earlier steps are then used up. */
  useOtp(authenticator: Authenticator, code: string): Promise<boolean>;
  /** A recovery code that is the user's as soon as the authenticator is confirmed, and nothing if it never is. */
  addRecoveryCode(authenticatorId: string): Promise<string>;
  /** A new recovery code for the user, the one before is dead. @returns it; only its hash is kept. */
  renewRecoveryCode(userId: string): Promise<string>;
  /** Uses the user's recovery code up. @returns the one that takes its place; undefined for a wrong one. */
  useRecoveryCode(userId: string, code: string): Promise<string | undefined>;
  /**
   * From now on it counts, and what else was begun and not confirmed is gone.
   * @returns false when it may not.
   */
  confirm(authenticator: Authenticator, options: ConfirmOptions): Promise<boolean>;
  /** Gives a device's authenticator its key and name. @returns false when it has one already. */
  registerDevice(id: string, device: { publicKey: Record<string, unknown>; name: string }): Promise<boolean>;
  /** Where a push message wakes the device; undefined for nowhere. */
  setPushEndpoint(id: string, endpoint: string | undefined): Promise<void>;
  /**
   * Removes one; with the last that counts goes the recovery code.
   * @param by the id of the token that it is removed with, where there is one.
   */
  remove(id: string, by?: string): Promise<void>;
  /** Removes one that is not confirmed. @returns false when it is. */
  removeBegun(id: string): Promise<boolean>;
  /** Removes all of a user's that are not confirmed. */
  removeAllBegunOf(userId: string): Promise<void>;
  removeAllOf(userId: string): Promise<void>;
}

/** The authenticators in a store. */
export function createAuthenticators(deps: {
  store: Store;
  box: SecretBox;
  factorChanges: FactorChanges;
  /** The store's, which never goes back. */
  clock: Clock;
  /** Authenticator apps go by the time of day. */
  wallClock: Clock;
  random: Random;
}): Authenticators {
  const { store, box, factorChanges, clock, wallClock, random } = deps;
  const records = store.collection('authenticators');
  const now = () => new Date(clock()).toISOString();
  const newId = (kind: Kind) =>
    `${PREFIX[kind]}|dev_${random(12).toString('base64url').replace(/[-_]/g, 'x')}`;

  /** Begun: it counts once it was used, and is gone when it was not. */
  const begin = async (record: AuthenticatorRecord): Promise<Authenticator> => {
    await records.insert({ ...record, expiresAt: epochSeconds(clock) + BEGUN_SECONDS });
    const begun = (await of(record.user_id)).filter((one) => !one.active);
    const oldest = begun.sort((a, b) => (a.created_at < b.created_at ? 1 : -1)).slice(MOST_BEGUN);
    await Promise.all(oldest.map(({ id }) => records.delete(id)));
    return record;
  };
  const of = async (userId: string) => records.findBy('user', userId);
  const putRecoveryCode = (userId: string, codeHash: string) =>
    records.put({
      id: onlyId('recovery-code', userId),
      user_id: userId,
      kind: 'recovery-code',
      active: true,
      created_at: now(),
      codeHash,
    });

  return {
    of,
    get: (id) => records.get(id),
    addOtp: async ({ userId, credentialVersion }) => {
      const secret = new Secret({ buffer: new Uint8Array(random(SECRET_BYTES)).buffer }).base32;
      const id = newId('otp');
      const sealedSecret = await box.seal(secret, id);
      const record = {
        id,
        user_id: userId,
        kind: 'otp' as const,
        active: false,
        credential_version: credentialVersion,
        created_at: now(),
        sealedSecret,
      };
      return { authenticator: await begin(record), secret };
    },
    add: ({ userId, credentialVersion }, kind, reach) =>
      begin({
        id: newId(kind),
        user_id: userId,
        kind,
        active: false,
        credential_version: credentialVersion,
        created_at: now(),
        ...reach,
      }),
    secretOf: async ({ id, active, sealedSecret }) =>
      active || sealedSecret === undefined ? undefined : box.open(sealedSecret, id),
    useOtp: async (authenticator, code) => {
      if (authenticator.sealedSecret === undefined) return false;
      const secret = await box.open(authenticator.sealedSecret, authenticator.id);
      const step = stepOf(secret, code, wallClock());
      if (step === undefined) return false;
      let isFresh = false;
      await records.update(authenticator.id, (current) => {
        isFresh = step > (current.lastStep ?? -1);
        return isFresh ? { ...current, lastStep: step } : current;
      });
      return isFresh;
    },
    addRecoveryCode: async (authenticatorId) => {
      const code = recoveryCode(random);
      await records.update(authenticatorId, (current) => ({
        ...current,
        codeHash: hashSecret(code),
      }));
      return code;
    },
    renewRecoveryCode: async (userId) => {
      const code = recoveryCode(random);
      await putRecoveryCode(userId, hashSecret(code));
      return code;
    },
    useRecoveryCode: async (userId, code) => {
      const given = hashSecret(code.replace(/[\s-]/g, '').toUpperCase());
      const next = recoveryCode(random);
      let isRight = false;
      await records.update(onlyId('recovery-code', userId), (current) => {
        isRight = isSameSecret(current.codeHash ?? '', given);
        return isRight ? { ...current, codeHash: hashSecret(next) } : current;
      });
      return isRight ? next : undefined;
    },
    confirm: (authenticator, options) =>
      factorChanges.around(authenticator.user_id, options.by, () =>
        confirm(records, authenticator, options, putRecoveryCode),
      ),
    registerDevice: async (id, { publicKey, name }) => {
      let isNew = false;
      await records.update(id, (current) => {
        isNew = current.kind === 'push' && current.publicKey === undefined;
        return isNew ? { ...current, publicKey, name } : current;
      });
      return isNew;
    },
    setPushEndpoint: async (id, endpoint) => {
      await records.update(id, (current) => {
        const { pushEndpoint: _before, ...rest } = current;
        return endpoint === undefined ? rest : { ...rest, pushEndpoint: endpoint };
      });
    },
    remove: async (id, by) => {
      const { user_id: userId } = (await records.get(id)) ?? {};
      // What is only begun is no factor yet.
      if (userId === undefined || (await removeIf(records, id, isBegun))) return;
      await factorChanges.around(userId, by, async () => {
        await records.delete(id);
        await removeLoneRecoveryCode(records, userId);
      });
    },
    removeBegun: (id) => removeIf(records, id, isBegun),
    removeAllBegunOf: async (userId) => {
      await Promise.all((await of(userId)).map(({ id }) => removeIf(records, id, isBegun)));
    },
    removeAllOf: async (userId) => {
      await factorChanges.around(userId, undefined, () => records.deleteBy('user', userId));
    },
  };
}

/** What recovers a factor recovers none that is enrolled later: the code goes with the last of them. */
async function removeLoneRecoveryCode(records: Collection<AuthenticatorRecord>, userId: string) {
  const active = (await records.findBy('user', userId)).filter((one) => !isBegun(one));
  const [code] = active;
  if (active.length !== 1 || code?.kind !== 'recovery-code') return;
  await removeIf(records, code.id, ({ codeHash }) => codeHash === code.codeHash);
}

/** The id of an authenticator that a user has one of: no two are ever good, however they are made. */
export function onlyId(kind: 'email' | 'recovery-code', userId: string): string {
  const suffix = sha256(userId).replace(/[-_]/g, 'x').slice(0, 16);
  return `${PREFIX[kind]}|dev_${suffix}`;
}

function recoveryCode(random: Random): string {
  return Array.from(
    random(RECOVERY_LENGTH),
    (byte) => RECOVERY_ALPHABET[byte % RECOVERY_ALPHABET.length],
  ).join('');
}
