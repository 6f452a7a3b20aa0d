// The one declaration of what is stored: each collection's record, unique keys and indexes.
// Records that the vendor's management vocabulary names (clients, connections, users …) keep its snake_case.

import type { Frozen, Stored } from './record.ts';
import type {
  ClientGrantRecord,
  ClientRecord,
  ConnectionRecord,
  OrganizationRecord,
  ResourceServerRecord,
  TenantRecord,
} from './tenant.ts';

/** A user of the tenant; `id` is the `sub`: strategy, bar, 24 hex digits, such as `auth0|5f7c…`. */
export interface UserRecord extends Stored {
  email?: string;
  email_verified: boolean;
  username?: string;
  phone_number?: string;
  phone_verified?: boolean;
  name?: string;
  given_name?: string;
  family_name?: string;
  middle_name?: string;
  nickname?: string;
  preferred_username?: string;
  profile?: string;
  picture?: string;
  website?: string;
  gender?: string;
  birthdate?: string;
  zoneinfo?: string;
  locale?: string;
  address?: { country?: string; [part: string]: string | undefined };
  user_metadata: Record<string, unknown>;
  app_metadata: Record<string, unknown>;
  identities: { provider: string; user_id: string; connection: string; isSocial: boolean }[];
  /** What the user may do at an API (management vocabulary); scopes of an API with `enforce_policies`. */
  permissions?: { resource_server_identifier: string; permission_name: string }[];
  /** E-mail addresses this user had before, newest last, each with the epoch second until which it held. */
  email_history?: { email?: string; email_verified: boolean; until: number }[];
  blocked?: boolean;
  /** Providers of a second factor that the user must give, whatever the policy; none where there is no entry. */
  multifactor?: string[];
  /** ISO 8601. */
  created_at: string;
  /** ISO 8601. */
  updated_at: string;
  /** ISO 8601. */
  last_login?: string;
  last_ip?: string;
  logins_count: number;
  /** ISO 8601. */
  last_password_reset?: string;
}

/** A database user's password; `id` is the user's. Only hashes are kept. */
export interface CredentialRecord extends Stored {
  passwordHash: string;
  /** Hashes of earlier passwords, newest first, for the connection's history rule. */
  history: string[];
  /** How often the password was set anew; none for never. */
  version?: number;
}

/** A signing key of the tenant; `id` is its `kid`. `current` signs, all but `retired` are published. */
export interface SigningKeyRecord extends Stored {
  state: 'current' | 'next' | 'previous';
  /** The private key as a JWK with `kid`, `alg`, `use`. */
  jwk: Record<string, unknown>;
  /** The self-signed certificate over the public key, base64 DER, published as `x5c`. */
  x5c: string[];
  /** Epoch seconds. */
  createdAt: number;
}

/** What tells a key that is kept outside the store (`id`) from another: its key check value. */
export interface KeyCheckRecord extends Stored {
  value: string;
}

/** An artifact of the OIDC engine (session, code, refresh token …); `id` is of its model and a hash of its value. */
export interface ArtifactRecord extends Stored {
  model: string;
  payload: Record<string, unknown>;
}

/** What a user allowed an application; `id` is {@link consentId}. Resource `""` is the OIDC scopes. */
export interface ConsentRecord extends Stored {
  user_id: string;
  client_id: string;
  scopes: Record<string, string[]>;
}

/** The id of a user's consent for an application. */
export function consentId(userId: string, clientId: string): string {
  return `${userId}\n${clientId}`;
}

/**
 * Something that was sent to a person and proves by coming back that it reached them: a code or a link's
 * ticket. `id` is of its purpose, its subject and, where several may ask for it, who asked, so that a new one
 * replaces the old. Only a hash is kept.
 */
export interface ChallengeRecord extends Stored {
  purpose: string;
  /** Purpose and a hash of the subject, where several may ask for it. */
  subject?: string;
  /** Hashes of who asked: a browser, an address, or both of one caller. */
  askers?: string[];
  /** Epoch milliseconds. */
  issuedAt?: number;
  /** SHA-256 of a ticket, HMAC under `salt` of a code, which is short enough to be guessed from a bare hash. */
  secretHash: string;
  salt?: string;
  /** Wrong tries that are left: of all together, or, where several may ask for it, of each room. */
  triesLeft: number;
  /** Wrong tries by room: of who asked, of each caller that is known, of all strangers together. */
  wrong?: Record<string, number>;
  spent: boolean;
  user_id?: string;
  data: Record<string, unknown>;
}

/**
 * Failed proofs: of an account (from one address, or from all), or from an address across accounts. `id` is a
 * hash of which. Written at failures alone; outlives a restart.
 */
export interface FailureRecord extends Stored {
  /** The account it is about, hashed; none for an address across accounts. */
  account?: string;
  failures: number;
  /** Epoch milliseconds of the latest. */
  at: number;
}

/** A browser or address by which an account was proved; `id` is a hash of it and of the user. */
export interface KnownCallerRecord extends Stored {
  user_id: string;
}

/** A session that a SAML service provider was told of; `id` is its SessionIndex, which that one alone knows. */
export interface SamlSessionRecord extends Stored {
  client_id: string;
  /** The browser session's own id, which all its applications share. */
  session_uid: string;
  user_id: string;
  /** The service provider's entity ID, where it asked for the login. */
  issuer?: string;
  /** `transient` is the name of this session alone, whichever was given. */
  name_id: { value: string; format: string; spNameQualifier?: string; transient: string };
}

/** A second factor of a user. `id` is told to applications: kind, bar, `dev_…`. */
export interface AuthenticatorRecord extends Stored {
  user_id: string;
  kind: 'otp' | 'sms' | 'email' | 'push' | 'recovery-code';
  /** It counts from its first use on. */
  active: boolean;
  /** Until then: the version of the credential that it was begun with. */
  credential_version?: number;
  /** The user's first, confirmed on the word of the first factor alone: there is one such at most. */
  first?: boolean;
  /** ISO 8601. */
  created_at: string;
  /** E.164, of `sms`. */
  phone_number?: string;
  /** Of `email`. */
  email?: string;
  /** Of `push`: what the device calls itself. */
  name?: string;
  /** Of `otp`: the shared secret, sealed. */
  sealedSecret?: string;
  /** Of `otp`: the last time step that was used; it and those before are never good again (RFC 6238 §5.2). */
  lastStep?: number;
  /** SHA-256 of the recovery code: of `recovery-code`; of another the one it brings when it is confirmed. */
  codeHash?: string;
  /** Of `push`: the device's public key, a JWK. */
  publicKey?: Record<string, unknown>;
  /** Of `push`: where a push message wakes the device. */
  pushEndpoint?: string;
}

/** The latest changes of a user's second factors, oldest first; `id` is the user's. */
export interface FactorChangesRecord extends Stored {
  /** Each with a random id, when it was (epoch seconds), and the id of the token that it was made with. */
  changes: { id: string; at: number; by?: string }[];
}

/** A challenge that is answered out of band; `id` is a hash of its `oob_code`. */
export interface OobChallengeRecord extends Stored {
  user_id: string;
  client_id: string;
  authenticator_id: string;
  state: 'pending' | 'accepted' | 'rejected' | 'spent';
  /** HMAC of the code that was sent, under `salt`; none where the device itself answers. */
  bindingHash?: string;
  salt?: string;
  /** Wrong tries that are left. */
  triesLeft: number;
  /** Epoch milliseconds of the last question whether it was answered. */
  askedAt?: number;
  /** What the device shows: to be compared with what the login page shows. */
  number?: string;
  ip: string;
  /** Epoch milliseconds. */
  createdAt: number;
}

/**
 * A browser that a user has logged in with, or an address that a second factor was given from; `id` is a hash
 * of its cookie or of the address, and of the user.
 */
export interface BrowserRecord extends Stored {
  user_id: string;
  /** The version of the user's credential back then: with another one it is not known. */
  credential_version?: number;
  /** Where it was last. */
  ip: string;
  /** Epoch seconds until which it is not asked for a second factor. */
  rememberedUntil?: number;
}

/** Service providers that are being told, one by one, of a logout; `id` is a hash of the way's next ticket. */
export interface SamlLogoutRecord extends Stored {
  /** The session that is over. */
  sid: string;
  return_to: string;
  /** The first is asked now. */
  waiting: {
    client_id: string;
    issuer?: string;
    session_index: string;
    name_id: SamlSessionRecord['name_id'];
  }[];
  /** The ID of the LogoutRequest that waits for its answer. */
  request?: string;
  /** The mark of the browser that was sent with it, which the answer must come from. */
  browser?: string;
  /** Whether one of them did not log the user out. */
  failed: boolean;
  /** Whether a service provider waits to hear how it went. */
  awaited: boolean;
}

/** A counter of the protection layer: a bucket's level at a time. */
export interface LimitRecord extends Stored {
  tokens: number;
  /** Epoch milliseconds when `tokens` was computed. */
  at: number;
}

/** A tenant log event; `type` is the hosted service's code, such as `s`, `f`, `ss`. Never holds a secret. */
export interface LogEventRecord extends Stored {
  type: string;
  /** ISO 8601. */
  date: string;
  description?: string;
  client_id?: string;
  connection?: string;
  user_id?: string;
  user_name?: string;
  ip?: string;
  details?: Record<string, unknown>;
}

export interface Records {
  tenant: TenantRecord & Stored;
  clients: ClientRecord & Stored;
  resourceServers: ResourceServerRecord & Stored;
  clientGrants: ClientGrantRecord & Stored;
  connections: ConnectionRecord & Stored;
  organizations: OrganizationRecord & Stored;
  users: UserRecord;
  credentials: CredentialRecord;
  signingKeys: SigningKeyRecord;
  keyChecks: KeyCheckRecord;
  artifacts: ArtifactRecord;
  consents: ConsentRecord;
  challenges: ChallengeRecord;
  authenticators: AuthenticatorRecord;
  factorChanges: FactorChangesRecord;
  oobChallenges: OobChallengeRecord;
  browsers: BrowserRecord;
  failures: FailureRecord;
  knownCallers: KnownCallerRecord;
  samlSessions: SamlSessionRecord;
  samlLogouts: SamlLogoutRecord;
  /** Messages of service providers that were taken, by application and ID: each counts once. */
  samlMessages: Stored;
  limits: LimitRecord;
  logs: LogEventRecord;
}

export type CollectionName = keyof Records;

export type Client = Frozen<Records['clients']>;
export type Connection = Frozen<Records['connections']>;
export type ResourceServer = Frozen<Records['resourceServers']>;
export type ClientGrant = Frozen<Records['clientGrants']>;
export type Organization = Frozen<Records['organizations']>;

/** A key computed from a record: one value, several, or none. */
export type Key<T> = (record: T) => string | string[] | undefined;

export interface CollectionSpec<T> {
  /** Keys that at most one record may have a given value of. */
  unique: Record<string, Key<T>>;
  /** Keys that any number of records may share. */
  indexes: Record<string, Key<T>>;
  /** What `list` filters and sorts by, beside the id, and the kind of value it has (`a.b` is b within a). */
  fields?: Record<string, 'text' | 'number' | 'boolean'>;
  /**
   * Where it is kept, if not in the database: `memory` need not survive a crash (counters that are written on
   * every request), `configuration` is a readable file, written seldom and small enough to be held in memory.
   */
  kept?: 'memory' | 'configuration';
}

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/** One identifier in one connection: what a database login is looked up by. */
export function connectionKey(connection: string, identifier: string): string {
  return `${connection}\n${identifier}`;
}

const perConnection =
  (field: 'email' | 'username' | 'phone_number'): Key<UserRecord> =>
  (user) => {
    const value = user[field];
    return value === undefined ? undefined : user.identities.map((i) => connectionKey(i.connection, value));
  };

const field = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;

/** The `uid` of the session that an artifact of the engine belongs to: a token's, or a waiting request's. */
export function sessionUid(payload: Readonly<Record<string, unknown>>): string | undefined {
  return text(payload.sessionUid) ?? text(field(payload.session, 'uid'));
}

/**
 * Whose an artifact is; a waiting request is also of the user who has just logged in to it, or who has given the
 * first factor there.
 */
function accountsOf(payload: Readonly<Record<string, unknown>>): string[] {
  const accounts = [
    payload.accountId,
    field(payload.session, 'accountId'),
    field(field(payload.result, 'login'), 'accountId'),
    field(field(payload.lastSubmission, 'firstFactor'), 'userId'),
  ];
  return [...new Set(accounts.flatMap((account) => text(account) ?? []))];
}

export const collections: { [N in CollectionName]: CollectionSpec<Records[N]> } = {
  tenant: { unique: {}, indexes: {}, kept: 'configuration' },
  clients: { unique: {}, indexes: {}, kept: 'configuration' },
  resourceServers: { unique: { identifier: (api) => api.identifier }, indexes: {}, kept: 'configuration' },
  clientGrants: {
    unique: { clientAudience: (grant) => `${grant.client_id}\n${grant.audience}` },
    indexes: { client: (grant) => grant.client_id },
    fields: { client_id: 'text', audience: 'text' },
    kept: 'configuration',
  },
  connections: { unique: { name: (connection) => connection.name }, indexes: {}, kept: 'configuration' },
  organizations: {
    unique: { name: (organization) => organization.name },
    indexes: {},
    kept: 'configuration',
  },
  users: {
    unique: {
      connectionEmail: perConnection('email'),
      connectionUsername: perConnection('username'),
      connectionPhone: perConnection('phone_number'),
    },
    indexes: { email: (user) => user.email },
    fields: {
      email: 'text',
      email_verified: 'boolean',
      username: 'text',
      phone_number: 'text',
      name: 'text',
      given_name: 'text',
      family_name: 'text',
      nickname: 'text',
      blocked: 'boolean',
      created_at: 'text',
      updated_at: 'text',
      last_login: 'text',
      last_ip: 'text',
      logins_count: 'number',
    },
  },
  credentials: { unique: {}, indexes: {} },
  signingKeys: { unique: {}, indexes: { state: (key) => key.state } },
  keyChecks: { unique: {}, indexes: {} },
  artifacts: {
    unique: {},
    indexes: {
      uid: (artifact) => (artifact.model === 'Session' ? text(artifact.payload.uid) : undefined),
      userCode: (artifact) => text(artifact.payload.userCode),
      grantId: (artifact) => text(artifact.payload.grantId),
      account: ({ payload }) => accountsOf(payload),
      session: ({ payload }) => sessionUid(payload),
    },
  },
  consents: { unique: {}, indexes: { user: (consent) => consent.user_id } },
  challenges: {
    unique: {},
    indexes: {
      user: (challenge) => challenge.user_id,
      subject: (challenge) => challenge.subject,
      ticket: (challenge) => (challenge.salt === undefined ? challenge.secretHash : undefined),
    },
  },
  authenticators: {
    unique: { first: (one) => (one.first === true ? one.user_id : undefined) },
    indexes: { user: (one) => one.user_id },
  },
  factorChanges: { unique: {}, indexes: {} },
  oobChallenges: {
    unique: {},
    indexes: { user: (one) => one.user_id, authenticator: (one) => one.authenticator_id },
  },
  browsers: { unique: {}, indexes: { user: (one) => one.user_id } },
  failures: { unique: {}, indexes: { account: (record) => record.account } },
  knownCallers: { unique: {}, indexes: { user: (one) => one.user_id } },
  samlSessions: {
    unique: { party: (session) => `${session.client_id}\n${session.session_uid}` },
    indexes: {
      session: (session) => session.session_uid,
      name: (session) => `${session.client_id}\n${session.name_id.value}`,
    },
  },
  samlLogouts: { unique: { request: (run) => run.request }, indexes: { session: (run) => run.sid } },
  samlMessages: { unique: {}, indexes: {} },
  limits: { unique: {}, indexes: {}, kept: 'memory' },
  logs: {
    unique: {},
    indexes: { user: (event) => event.user_id },
    fields: {
      type: 'text',
      date: 'text',
      client_id: 'text',
      connection: 'text',
      user_id: 'text',
      user_name: 'text',
      ip: 'text',
    },
  },
};
