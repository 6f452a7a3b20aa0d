// What actions of `post-login` may ask for of the session and of the refresh token: their lifetime, their metadata, and
// that they end.
import { z } from 'zod';
import { type ApiMethod, setMember } from './api-method.ts';

export interface SessionChanges {
  /** The session or token ends, and the login is denied. `keepsTokens`: the refresh tokens of a session stay. */
  revoked?: { keepsTokens: boolean };
  /** When it ends, epoch seconds: `expiresAt` in any case, `idleExpiresAt` unless it is used before. */
  expiresAt?: number;
  idleExpiresAt?: number;
  /** Metadata by name; null removes a member. */
  metadata: Record<string, string | null>;
  /** Whether all earlier metadata is removed first. */
  evicts: boolean;
  /** For a session: whether browsers keep its cookie when they are closed. */
  cookieMode?: CookieMode;
}

export type CookieMode = 'persistent' | 'non-persistent';

/** Returns the empty request. */
export const noSessionChanges = (): SessionChanges => ({ metadata: {}, evicts: false });

interface WithSessionChanges {
  denied?: { reason: string };
  login: { session: SessionChanges; refreshToken: SessionChanges };
}

type ChangedRecord = keyof WithSessionChanges['login'];

/** Names and values of metadata, as in the Management API. */
const metadataText = z.string().max(255);
const revokeArguments = z.tuple([
  z.string().max(1000),
  z.object({ preserveRefreshTokens: z.boolean().optional() }).nullish(),
]);
/** Epoch milliseconds. */
const timeArguments = z.tuple([z.number().positive().max(8.64e15)]).rest(z.unknown());
const entryArguments = z.tuple([metadataText.min(1), metadataText.nullable()]).rest(z.unknown());
const keyArguments = z.tuple([metadataText.min(1)]).rest(z.unknown());

/** The earliest of several times applies. */
const setTime =
  (of: ChangedRecord, member: 'expiresAt' | 'idleExpiresAt'): ApiMethod<WithSessionChanges> =>
  ({ login }, args) => {
    const parsed = timeArguments.safeParse(args);
    if (!parsed.success) return false;
    const before = login[of][member] ?? Number.POSITIVE_INFINITY;
    login[of][member] = Math.min(before, Math.floor(parsed.data[0] / 1000));
    return true;
  };

const setMetadata = (
  of: WithSessionChanges['login'][ChangedRecord],
  name: string,
  value: string | null,
): true => {
  setMember(of.metadata, name, value);
  return true;
};

/** Returns the methods of `api.session`, or of `api.refreshToken`. */
function methodsOfRecord(of: ChangedRecord): Record<string, ApiMethod<WithSessionChanges>> {
  return {
    [`${of}.revoke`]: (outcome, args) => {
      const [first, ...others] = Array.isArray(args) ? args : [];
      const parsed = revokeArguments.safeParse([first, others[0]]);
      if (!parsed.success) return false;
      outcome.denied ??= { reason: parsed.data[0] };
      outcome.login[of].revoked = { keepsTokens: parsed.data[1]?.preserveRefreshTokens === true };
      return true;
    },
    [`${of}.setExpiresAt`]: setTime(of, 'expiresAt'),
    [`${of}.setIdleExpiresAt`]: setTime(of, 'idleExpiresAt'),
    [`${of}.setMetadata`]: ({ login }, args) => {
      const parsed = entryArguments.safeParse(args);
      return parsed.success && setMetadata(login[of], ...([parsed.data[0], parsed.data[1]] as const));
    },
    [`${of}.deleteMetadata`]: ({ login }, args) => {
      const parsed = keyArguments.safeParse(args);
      return parsed.success && setMetadata(login[of], parsed.data[0], null);
    },
    [`${of}.evictMetadata`]: ({ login }) => {
      Object.assign(login[of], { metadata: {}, evicts: true });
      return true;
    },
  };
}

const cookieModeArguments = z.tuple([z.enum(['persistent', 'non-persistent'])]).rest(z.unknown());

export const SESSION_METHODS: Record<string, ApiMethod<WithSessionChanges>> = {
  ...methodsOfRecord('session'),
  ...methodsOfRecord('refreshToken'),
  'session.setCookieMode': ({ login }, args) => {
    const parsed = cookieModeArguments.safeParse(args);
    if (parsed.success) login.session.cookieMode = parsed.data[0];
    return parsed.success;
  },
};

/** Returns the metadata after what was asked for. @returns undefined where there is none. */
export function metadataAfter(
  before: Readonly<Record<string, unknown>> | undefined,
  { metadata, evicts }: Pick<SessionChanges, 'metadata' | 'evicts'>,
): Record<string, unknown> | undefined {
  const all = Object.entries({ ...(evicts ? {} : before), ...metadata }).filter(
    ([, value]) => value !== null,
  );
  return all.length === 0 ? undefined : Object.fromEntries(all.slice(0, MAX_METADATA_ENTRIES));
}

const MAX_METADATA_ENTRIES = 25;
