// Declares everything that is stored: the record, the unique keys and the indexes of each collection. Records with
// names of the vendor's management API (clients, connections, users …) keep its snake_case.

import type { Bound, CollectionSpec, Key } from './base/collection-spec.ts';
import {
  ACTOR_FIELDS,
  type LogCountRecord,
  type LogEventRecord,
  type LogStreamPositionRecord,
} from './base/log-events.ts';
import { accountsOf, type Frozen, type Stored, sessionUid, text } from './base/record.ts';
import {
  isRegistrationId,
  REGISTRATIONS,
  type RegistrationRecord,
  registrationTerms,
} from './clients/registrations.ts';
import {
  ADDRESS_KINDS,
  type AddressKind,
  addressOf,
  type IdentityRecord,
  identityId,
} from './connections/identities.ts';
import { clientSecrets, connectionSecrets, tenantSecrets } from './secrets.ts';
import type { ActionExecutionRecord } from './state/action-executions.ts';
import type { DeliveryRecord } from './state/deliveries.ts';
import type {
  ArtifactRecord,
  ConnectionKeyRecord,
  ConsentRecord,
  KeyCheckRecord,
  SharedSecretRecord,
  SigningKeyRecord,
} from './state/engine.ts';
import type { JobPartRecord, JobRecord } from './state/jobs.ts';
import type { LeaseRecord, TriesRecord } from './state/leases.ts';
import type {
  ChallengeRecord,
  FailureRecord,
  KnownCallerRecord,
  LimitRecord,
} from './state/protection-state.ts';
import type { SamlLogoutRecord, SamlSessionRecord } from './state/saml-sessions.ts';
import { type DocumentRecord, documentSecrets } from './tenant/documents.ts';
import { type MoveCountRecord, type MoveRecord, moveSecrets } from './tenant/move.ts';
import type {
  ClientGrantRecord,
  ClientRecord,
  ConnectionRecord,
  OrganizationRecord,
  ResourceServerRecord,
  TenantRecord,
} from './tenant/tenant.ts';
import type { TrustedKeyRecord } from './tenant/trusted-keys.ts';
import type { AdministratorsRecord } from './users/administrators.ts';
import type { AuthenticatorRecord, BrowserRecord, FactorChangesRecord } from './users/authenticators.ts';
import type { ConnectedAccountRecord } from './users/connected-accounts.ts';
import { domainNamesOf, type InvitationRecord, type MembershipRecord } from './users/organizations.ts';
import type { PasskeyRecord } from './users/passkeys.ts';
import type { RoleRecord } from './users/roles.ts';
import { searchTerms } from './users/search-terms.ts';
import type { CredentialRecord, UserRecord } from './users/users.ts';

// The bounds of what strangers can make the server keep (collection-spec.ts).

function wholeCollection(bound: Omit<Bound<unknown>, 'kind'>): Bound<unknown> {
  return { ...bound, kind: () => 'all' };
}

/** Returns the first bound that is for a record, and the record's kind. */
export function boundOf<T>(
  bounds: readonly Bound<T>[],
  record: T,
): { bound: Bound<T>; kind: string } | undefined {
  for (const bound of bounds) {
    const kind = bound.kind(record);
    if (kind !== undefined) return { bound, kind };
  }
  return undefined;
}

// The collections whose records strangers can cause, with the bounds of each kind of record.

/** What waits for users who may never come. */
const WAITING = { max: 10_000, maxOfAddress: 600, maxLength: 40_000, whenFull: 'evict' } as const;

const ofModel =
  (model: string) =>
  (artifact: ArtifactRecord): string | undefined =>
    artifact.model === model ? model : undefined;

/** Waiting authorization requests, which anybody can create by a request to /authorize. */
const waitingRequests: Bound<ArtifactRecord> = {
  ...WAITING,
  kind: ofModel('Interaction'),
  // Its user has logged in or given a first factor.
  isBegun: ({ payload: { result, lastSubmission, session } }) =>
    result !== undefined || lastSubmission !== undefined || session !== undefined,
};

/** Pushed requests (RFC 9126). Of a server, which pushes those of all its users from one address, none is the oldest. */
const pushedRequests: Bound<ArtifactRecord> = {
  kind: ofModel('PushedAuthorizationRequest'),
  max: 100_000,
  maxLength: 100_000,
  whenFull: 'evict',
};

/** The `jti` of assertions and of DPoP proofs, for which anybody may make keys (RFC 9449 §11.1). */
const usedAssertions: Bound<ArtifactRecord> = {
  kind: ofModel('ReplayDetection'),
  max: 1_000_000,
  maxLength: 5_000,
  whenFull: 'refuse',
};

/** Logins at /authorize that something else than an application waits for, and those at an external provider. */
const waitingChallenges: Bound<ChallengeRecord> = {
  ...WAITING,
  kind: ({ purpose, isWaiting, spent }) => {
    if (isWaiting !== true) return undefined;
    // Those that have ended are kept for a while, and take no place of one that waits.
    return spent ? `${purpose} spent` : purpose;
  },
};

/** The purpose of the forms that administrators sent after their login had become too old. */
export const CONSOLE_FORM = 'console_form';

/** One for each administrator, as large as the largest form of the console, which has a file. */
const consoleForms: Bound<ChallengeRecord> = {
  kind: ({ purpose }) => (purpose === CONSOLE_FORM ? purpose : undefined),
  max: 1_000,
  maxLength: 1_000_000,
  whenFull: 'evict',
};

/** Codes, links and device codes; each purpose by itself. Servers request them for all their users from one address. */
const otherChallenges: Bound<ChallengeRecord> = {
  kind: ({ purpose }) => purpose,
  max: 50_000,
  maxLength: 40_000,
  whenFull: 'evict',
};

const ARTIFACTS = [waitingRequests, pushedRequests, usedAssertions] as const;
const CHALLENGES = [waitingChallenges, consoleForms, otherChallenges] as const;

const artifactsSpec: CollectionSpec<ArtifactRecord> = {
  writtenFor: { strangers: ARTIFACTS, others: 'tokens and sessions of users and applications' },
  unique: {},
  indexes: {
    uid: (artifact) => (artifact.model === 'Session' ? text(artifact.payload.uid) : undefined),
    userCode: (artifact) => text(artifact.payload.userCode),
    kind: (artifact) => boundOf(ARTIFACTS, artifact)?.kind,
    grantId: (artifact) => text(artifact.payload.grantId),
    account: ({ payload }) => accountsOf(payload),
    session: ({ payload }) => sessionUid(payload),
  },
  named: {
    grantId: { collection: 'artifacts', prefix: 'Grant:' },
    account: { collection: 'users', prefix: '' },
  },
  hasRandomId: ({ model }) => model === 'AccessToken',
  sealed: [
    'payload.actions.assertion.settings.key',
    ...['result', 'lastSubmission', 'prompt.details'].map(
      (of) => `payload.${of}.actions.progress.outcome.login.assertion.settings.key`,
    ),
  ],
};

const challengesSpec: CollectionSpec<ChallengeRecord> = {
  writtenFor: { strangers: CHALLENGES },
  unique: {},
  indexes: {
    user: (challenge) => challenge.user_id,
    subject: (challenge) => challenge.subject,
    kind: (challenge) => boundOf(CHALLENGES, challenge)?.kind,
    ticket: (challenge) => (challenge.salt === undefined ? challenge.secretHash : undefined),
  },
};

const deliveriesSpec: CollectionSpec<DeliveryRecord> = {
  writtenFor: { strangers: [wholeCollection({ max: 100_000, maxLength: 100_000, whenFull: 'refuse' })] },
  unique: {},
  indexes: {},
  fields: { kind: 'text', dueAt: 'text' },
  indexed: ['dueAt'],
  sealed: ['content'],
};

const failuresSpec: CollectionSpec<FailureRecord> = {
  writtenFor: { strangers: [wholeCollection({ max: 100_000, maxLength: 1_000, whenFull: 'refuse' })] },
  unique: {},
  indexes: { account: ({ account, typed = [] }) => [...(account === undefined ? [] : [account]), ...typed] },
};

const samlMessagesSpec: CollectionSpec<Stored> = {
  writtenFor: { strangers: [wholeCollection({ max: 100_000, maxLength: 2_000, whenFull: 'refuse' })] },
  unique: {},
  indexes: {},
};

const logsSpec: CollectionSpec<LogEventRecord> = {
  writtenFor: { rate: 'createEventBudget in src/capabilities/protection/rate-limit.ts' },
  unique: {},
  indexes: {
    user: (event) => event.user_id,
    name: (event) => event.user_name,
    transaction: (event) => event.transaction,
  },
  fields: {
    type: 'text',
    date: 'text',
    description: 'text',
    client_id: 'text',
    connection: 'text',
    user_id: 'text',
    user_name: 'text',
    ip: 'text',
    transaction: 'text',
    ...Object.fromEntries(ACTOR_FIELDS.map((field) => [field, 'text' as const])),
  },
  indexed: ['date', 'type'],
  indexedText: ['ip', 'client_id', 'connection'],
  hasRandomId: () => true,
};

// The declarations of users, identities, and what else users have.

const uniqueAddress =
  (kind: AddressKind): Key<IdentityRecord> =>
  (identity) =>
    identity.unique.includes(kind) ? addressOf(identity, kind) : undefined;

const usersSpec: CollectionSpec<UserRecord> = {
  writtenFor: { rate: 'the limit signup' },
  unique: {},
  indexes: {
    email: (user) => user.email,
    role: (user) => user.roles,
    search: searchTerms,
    lastLoginDay: (user) => user.last_login?.slice(0, 'YYYY-MM-DD'.length),
  },
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
    user_metadata: 'members',
    app_metadata: 'members',
  },
  indexed: ['email', 'created_at'],
};

const identitiesSpec: CollectionSpec<IdentityRecord> = {
  writtenFor: { rate: 'the limit signup' },
  unique: {
    email: uniqueAddress('email'),
    username: uniqueAddress('username'),
    phone_number: uniqueAddress('phone_number'),
    stable: ({ connection, stable_id: id }) => (id == null ? undefined : identityId(connection, id)),
  },
  indexes: {
    user: (identity) => identity.user_id,
    connection: (identity) => identity.connection,
    address: (identity) => ADDRESS_KINDS.flatMap((kind) => addressOf(identity, kind) ?? []),
    // Each with its user, for `of` filters.
    held: (one) => [
      `connection=${one.connection}\n${one.user_id}`,
      `provider=${one.provider}\n${one.user_id}`,
      `user_id=${one.upstream_id}\n${one.user_id}`,
    ],
  },
  sealed: ['upstream'],
};

const authenticatorsSpec: CollectionSpec<AuthenticatorRecord> = {
  writtenFor: { users: 'MAX_CONFIRMED and MAX_UNCONFIRMED in factors' },
  unique: {
    first: (one) => (one.first === true ? one.user_id : undefined),
    credential: (one) => one.webauthn?.credential_id,
  },
  indexes: { user: (one) => one.user_id },
  sealed: ['secret', 'pushEndpoint'],
};

const connectedAccountsSpec: CollectionSpec<ConnectedAccountRecord> = {
  writtenFor: { users: 'one of each connection' },
  unique: {},
  indexes: { user: (one) => one.user_id, connection: (one) => one.connection_id },
  sealed: ['grant'],
};

const samlSessionsSpec: CollectionSpec<SamlSessionRecord> = {
  writtenFor: { users: 'one of each application and session' },
  unique: { party: (session) => `${session.client_id}\n${session.session_uid}` },
  indexes: {
    session: (session) => session.session_uid,
    name: (session) => `${session.client_id}\n${session.name_id.value}`,
  },
};

const passkeysSpec: CollectionSpec<PasskeyRecord> = {
  writtenFor: { users: 'MAX_PASSKEYS' },
  unique: {},
  indexes: { user: (one) => one.user_id },
};

const consentsSpec: CollectionSpec<ConsentRecord> = {
  writtenFor: { users: 'one of each application and API' },
  unique: {},
  indexes: { user: (consent) => consent.user_id, client: (consent) => consent.client_id },
};

export interface Records {
  tenant: TenantRecord & Stored;
  clients: ClientRecord & Stored;
  resourceServers: ResourceServerRecord & Stored;
  clientGrants: ClientGrantRecord & Stored;
  connections: ConnectionRecord & Stored;
  organizations: OrganizationRecord & Stored;
  roles: RoleRecord;
  memberships: MembershipRecord;
  invitations: InvitationRecord;
  documents: DocumentRecord;
  users: UserRecord;
  identities: IdentityRecord;
  /** What is true of the store as a whole, by name: that it is half filled. */
  marks: Stored;
  credentials: CredentialRecord;
  administrators: AdministratorsRecord;
  administratorUsers: UserRecord;
  administratorIdentities: IdentityRecord;
  administratorCredentials: CredentialRecord;
  signingKeys: SigningKeyRecord;
  connectionKeys: ConnectionKeyRecord;
  keyChecks: KeyCheckRecord;
  sharedSecrets: SharedSecretRecord;
  artifacts: ArtifactRecord;
  consents: ConsentRecord;
  challenges: ChallengeRecord;
  authenticators: AuthenticatorRecord;
  passkeys: PasskeyRecord;
  connectedAccounts: ConnectedAccountRecord;
  factorChanges: FactorChangesRecord;
  browsers: BrowserRecord;
  failures: FailureRecord;
  knownCallers: KnownCallerRecord;
  samlSessions: SamlSessionRecord;
  samlLogouts: SamlLogoutRecord;
  /** Messages of service providers that were accepted, by application and ID, so that each is accepted only once. */
  samlMessages: Stored;
  deliveries: DeliveryRecord;
  jobs: JobRecord;
  jobParts: JobPartRecord;
  leases: LeaseRecord;
  tries: TriesRecord;
  limits: LimitRecord;
  actionExecutions: ActionExecutionRecord;
  logs: LogEventRecord;
  logCounts: LogCountRecord;
  logStreamPositions: LogStreamPositionRecord;
  moves: MoveRecord;
  registrations: RegistrationRecord;
  moveCounts: MoveCountRecord;
  trustedKeys: TrustedKeyRecord;
}

export type CollectionName = keyof Records;

export type Client = Frozen<Records['clients']>;
export type Connection = Frozen<Records['connections']>;
export type ResourceServer = Frozen<Records['resourceServers']>;
export type ClientGrant = Frozen<Records['clientGrants']>;
export type Organization = Frozen<Records['organizations']>;

export const collections: { [N in CollectionName]: CollectionSpec<Records[N]> } = {
  tenant: { writtenFor: 'operators', unique: {}, indexes: {}, kept: 'configuration', sealed: tenantSecrets },
  clients: { writtenFor: 'operators', unique: {}, indexes: {}, kept: 'configuration', sealed: clientSecrets },
  resourceServers: {
    writtenFor: 'operators',
    unique: { identifier: (api) => api.identifier },
    indexes: {},
    kept: 'configuration',
  },
  clientGrants: {
    writtenFor: 'operators',
    unique: { clientAudience: (grant) => `${grant.client_id ?? grant.default_for}\n${grant.audience}` },
    indexes: { client: (grant) => grant.client_id },
    fields: { client_id: 'text', audience: 'text' },
    kept: 'configuration',
  },
  connections: {
    writtenFor: 'operators',
    unique: { name: (connection) => connection.name },
    indexes: {},
    kept: 'configuration',
    sealed: connectionSecrets,
  },
  organizations: {
    writtenFor: 'operators',
    unique: { name: (organization) => organization.name, domain: domainNamesOf },
    indexes: {},
    kept: 'configuration',
  },
  documents: {
    writtenFor: 'operators',
    unique: { name: (one) => (one.name === undefined ? undefined : `${one.kind}\n${one.name}`) },
    indexes: { kind: (one) => one.kind },
    kept: 'configuration',
    sealed: documentSecrets,
  },
  memberships: {
    writtenFor: { users: 'one of each organization' },
    unique: {},
    indexes: {
      organization: (one) => one.organization_id,
      user: (one) => one.user_id,
      role: (one) => one.roles,
      // Organization and user, for reference filters; without the organization for membership of any organization.
      held: (one) => [`${one.organization_id}\n${one.user_id}`, `\n${one.user_id}`],
    },
  },
  invitations: {
    writtenFor: 'operators',
    unique: { ticket: (one) => one.ticketHash },
    indexes: { organization: (one) => one.organization_id },
  },
  roles: {
    writtenFor: 'operators',
    unique: { name: (role) => role.name },
    indexes: {},
    kept: 'configuration',
  },
  users: usersSpec,
  identities: identitiesSpec,
  credentials: { writtenFor: { rate: 'the limit signup' }, unique: {}, indexes: {} },
  administrators: { writtenFor: 'operators', unique: {}, indexes: {} },
  administratorUsers: { writtenFor: 'operators', unique: {}, indexes: { email: (user) => user.email } },
  administratorIdentities: { ...identitiesSpec, writtenFor: 'operators' },
  administratorCredentials: { writtenFor: 'operators', unique: {}, indexes: {} },
  marks: { writtenFor: 'operators', unique: {}, indexes: {} },
  signingKeys: {
    writtenFor: 'operators',
    unique: {},
    indexes: { state: (key) => key.state },
    sealed: ['jwk'],
    cached: true,
  },
  connectionKeys: {
    writtenFor: 'operators',
    // Of two processes that create a connection's first keys concurrently, only one succeeds.
    unique: { state: (key) => `${key.connection}\n${key.state}` },
    indexes: { connection: (key) => key.connection },
    sealed: ['jwk'],
  },
  keyChecks: { writtenFor: 'operators', unique: {}, indexes: {} },
  sharedSecrets: { writtenFor: 'operators', unique: {}, indexes: {}, sealed: ['value'] },
  artifacts: artifactsSpec,
  consents: consentsSpec,
  challenges: challengesSpec,
  authenticators: authenticatorsSpec,
  passkeys: passkeysSpec,
  connectedAccounts: connectedAccountsSpec,
  factorChanges: { writtenFor: { users: 'one' }, unique: {}, indexes: {} },
  browsers: {
    writtenFor: { users: 'MAX_BROWSERS in src/features/factors/browsers.ts' },
    unique: {},
    indexes: { user: (one) => one.user_id },
  },
  failures: failuresSpec,
  knownCallers: {
    writtenFor: { users: 'MAX_CALLERS in src/capabilities/protection/rate-limit.ts' },
    unique: {},
    indexes: { user: (one) => one.user_id },
  },
  samlSessions: samlSessionsSpec,
  samlLogouts: {
    writtenFor: { users: 'one of each session that ends' },
    unique: { request: (run) => run.request },
    indexes: { session: (run) => run.sid },
  },
  samlMessages: samlMessagesSpec,
  deliveries: deliveriesSpec,
  jobs: {
    writtenFor: 'operators',
    unique: {},
    indexes: { status: (job) => job.status },
    sealed: ['linkKey'],
  },
  jobParts: {
    writtenFor: 'operators',
    unique: {},
    indexes: { job: (part) => `${part.job}\n${part.kind}` },
    sealed: ['text'],
  },
  leases: { writtenFor: 'operators', unique: {}, indexes: {} },
  tries: {
    writtenFor: { rate: 'attempts that are being verified' },
    unique: {},
    indexes: {},
    kept: 'memory',
  },
  limits: {
    writtenFor: { rate: 'MAX_COUNTERS in src/capabilities/protection/rate-limit.ts' },
    unique: {},
    indexes: {},
    kept: 'memory',
  },
  logStreamPositions: { writtenFor: 'operators', unique: {}, indexes: {} },
  actionExecutions: {
    writtenFor: { rate: 'the limits of the logins and sign-ups that run actions' },
    unique: {},
    indexes: {},
  },
  logCounts: { writtenFor: 'operators', unique: {}, indexes: {} },
  logs: logsSpec,
  moves: { writtenFor: 'operators', unique: {}, indexes: {}, sealed: moveSecrets, cached: true },
  registrations: {
    writtenFor: { strangers: REGISTRATIONS },
    unique: {},
    indexes: {
      kind: (registration) => boundOf(REGISTRATIONS, registration)?.kind,
      search: registrationTerms,
      blocked: ({ blocked_at: at }) => (at === undefined ? undefined : 'yes'),
    },
    hasRandomId: ({ id }) => isRegistrationId(id),
    fields: { created_at: 'text', 'client.external_metadata_type': 'text' },
    indexed: ['created_at'],
    sealed: ['client.client_secret'],
  },
  // One record of each bridge, whatever strangers do.
  moveCounts: { writtenFor: 'operators', unique: {}, indexes: {} },
  trustedKeys: { writtenFor: 'operators', unique: {}, indexes: {}, cached: true },
};
