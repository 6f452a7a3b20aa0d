// The open move: a tenant of the hosted service that this one takes the place of, and which of its users' credentials are
// still accepted for a time (bridges). It is made by commands and never part of a tenant file: a move ends, and applying an
// old file must not open a bridge again.
import type { Stored } from '../base/record.ts';

/** The id of the record: there is one move at a time. */
export const MOVE = 'move';

/** For how long something of the old tenant is accepted. Times are ISO 8601. */
export interface Bridge {
  opened_at: string;
  /** It ends by itself at this time, judged whenever it is used. */
  until: string;
  /** When a person ended it before. */
  ended_at?: string;
}

/** An application at the old tenant that this server uses. */
export interface OldApplication {
  client_id: string;
  /** Undefined after the store's sealed secrets were lost (`gatehouse keys reset`). */
  client_secret?: string;
}

/** The custom domain of the old tenant, whose name leads here now, as the hosted service answers for it. */
export interface OldDomain {
  /** The name at the hosted service that the custom domain led to, with a port if it has one. */
  host: string;
  /** Whether it takes requests of a proxy that has a key (self-managed certificates), and not those for the domain's own name. */
  by_key: boolean;
  /** Undefined where there is none, and after the store's sealed secrets were lost. */
  cname_api_key?: string;
}

/** Browsers without a session here are asked about, or sent, at the old tenant, by an application that it has for this. */
export interface SessionBridge extends Bridge, OldApplication {
  /** Where browsers with cookies of its custom domain are asked about; others are sent to its canonical name. */
  through?: OldDomain;
}

/** Refresh tokens that are not known here are redeemed at the old tenant, by the application that presents them. */
export interface RefreshTokenBridge extends Bridge {
  /** By client id here: what an application is at the old tenant where that differs, null where its tokens are not accepted. */
  applications?: Record<string, OldApplication | null>;
}

/** Users of a connection whose password is not here are asked for at the old tenant. */
export interface PasswordBridge extends Bridge {
  /** Whether users whose second factor cannot be moved enrol one after the password alone. */
  lets_enrol?: boolean;
  /** How many users of the connection had a password here when it was opened: they need no other. */
  here_before: number;
}

export interface MoveRecord extends Bridge, Stored {
  /** `https://` and the old tenant's canonical name, without a path: its custom domain leads here after the move. */
  origin: string;
  /** Reads users by its Management API and verifies passwords by the password grant. */
  management: OldApplication;
  /** Passwords, by the id of the connection here; at the old tenant the connection has the same name. */
  passwords: Record<string, PasswordBridge>;
  sessions?: SessionBridge;
  refresh_tokens?: RefreshTokenBridge;
}

export const moveSecrets = [
  'management.client_secret',
  'sessions.client_secret',
  'sessions.through.cname_api_key',
  'refresh_tokens.applications.*.client_secret',
];

/** Returns whether a bridge of a move is open. @param now epoch milliseconds, of the time of day. */
export function isOpen(move: Readonly<Bridge>, bridge: Readonly<Bridge> | undefined, now: number): boolean {
  return bridge !== undefined && [move, bridge].every((one) => isRunning(one, now));
}

function isRunning({ until, ended_at }: Readonly<Bridge>, now: number): boolean {
  // A time that cannot be read is NaN, and over.
  return ended_at === undefined && now < Date.parse(until);
}

/** Returns the issuer of the tokens that the old tenant answers with when it is asked by its canonical name. */
export function oldIssuer({ origin }: Pick<MoveRecord, 'origin'>): string {
  return `${origin}/`;
}

/** What became of the uses of a bridge; `id` is {@link bridgeId}. */
export interface MoveCountRecord extends Stored {
  /** Users who moved, sessions or tokens that were accepted. */
  moved: number;
  /** Wrong passwords, and what the old tenant did not accept. */
  refused: number;
  /** The old tenant could not be asked, or its answer was not accepted. */
  failed: number;
  /** When something was accepted last, ISO 8601. */
  moved_at?: string;
  /** The same numbers of the last hour, by the five minutes that begin at an epoch time in seconds. */
  recent: Record<string, Record<MoveOutcome, number>>;
}

export type MoveOutcome = 'moved' | 'refused' | 'failed';

export type BridgeKind = 'passwords' | 'sessions' | 'refresh_tokens';

/** @param connection the id of the connection, of passwords only. */
export function bridgeId(kind: BridgeKind, connection?: string): string {
  return connection === undefined ? kind : `${kind} ${connection}`;
}
