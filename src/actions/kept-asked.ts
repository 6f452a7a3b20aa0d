// What actions of `post-login` may ask for of the session and of the refresh token: their lifetime, their metadata, and
// that they end.
import { z } from 'zod';
import { setMember, type Take } from './taking.ts';

/** What was asked for of a session, or of a refresh token. */
export interface KeptAsked {
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
export const nothingKept = (): KeptAsked => ({ metadata: {}, evicts: false });

interface WithKept {
  denied?: { reason: string };
  login: { session: KeptAsked; refreshToken: KeptAsked };
}

type Kept = keyof WithKept['login'];

/** Names and values of metadata, as in the Management API. */
const noted = z.string().max(255);
const reason = z.tuple([
  z.string().max(1000),
  z.object({ preserveRefreshTokens: z.boolean().optional() }).nullish(),
]);
/** Epoch milliseconds. */
const when = z.tuple([z.number().positive().max(8.64e15)]).rest(z.unknown());
const entry = z.tuple([noted.min(1), noted.nullable()]).rest(z.unknown());
const key = z.tuple([noted.min(1)]).rest(z.unknown());

/** The earliest of several times applies. */
const setTime =
  (of: Kept, member: 'expiresAt' | 'idleExpiresAt'): Take<WithKept> =>
  ({ login }, given) => {
    const read = when.safeParse(given);
    if (!read.success) return false;
    const before = login[of][member] ?? Number.POSITIVE_INFINITY;
    login[of][member] = Math.min(before, Math.floor(read.data[0] / 1000));
    return true;
  };

const note = (of: WithKept['login'][Kept], name: string, value: string | null): true => {
  setMember(of.metadata, name, value);
  return true;
};

/** Returns the methods of `api.session`, or of `api.refreshToken`. */
function keptMethods(of: Kept): Record<string, Take<WithKept>> {
  return {
    [`${of}.revoke`]: (outcome, given) => {
      const [first, ...others] = Array.isArray(given) ? given : [];
      const read = reason.safeParse([first, others[0]]);
      if (!read.success) return false;
      outcome.denied ??= { reason: read.data[0] };
      outcome.login[of].revoked = { keepsTokens: read.data[1]?.preserveRefreshTokens === true };
      return true;
    },
    [`${of}.setExpiresAt`]: setTime(of, 'expiresAt'),
    [`${of}.setIdleExpiresAt`]: setTime(of, 'idleExpiresAt'),
    [`${of}.setMetadata`]: ({ login }, given) => {
      const read = entry.safeParse(given);
      return read.success && note(login[of], ...([read.data[0], read.data[1]] as const));
    },
    [`${of}.deleteMetadata`]: ({ login }, given) => {
      const read = key.safeParse(given);
      return read.success && note(login[of], read.data[0], null);
    },
    [`${of}.evictMetadata`]: ({ login }) => {
      Object.assign(login[of], { metadata: {}, evicts: true });
      return true;
    },
  };
}

const cookieMode = z.tuple([z.enum(['persistent', 'non-persistent'])]).rest(z.unknown());

/** The methods of `api.session` and `api.refreshToken`, by name. */
export const KEPT_TAKE: Record<string, Take<WithKept>> = {
  ...keptMethods('session'),
  ...keptMethods('refreshToken'),
  'session.setCookieMode': ({ login }, given) => {
    const read = cookieMode.safeParse(given);
    if (read.success) login.session.cookieMode = read.data[0];
    return read.success;
  },
};

/** Returns the metadata after what was asked for. @returns undefined where there is none. */
export function notedAfter(
  before: Readonly<Record<string, unknown>> | undefined,
  { metadata, evicts }: Pick<KeptAsked, 'metadata' | 'evicts'>,
): Record<string, unknown> | undefined {
  const all = Object.entries({ ...(evicts ? {} : before), ...metadata }).filter(
    ([, value]) => value !== null,
  );
  return all.length === 0 ? undefined : Object.fromEntries(all.slice(0, MOST_NOTED));
}

const MOST_NOTED = 25;
