// Declares everything that is stored: the record, the unique keys and the indexes of each collection. Records with
// names of the vendor's management API (clients, connections, users …) keep its snake_case.

import type { ActionExecutionRecord } from './action-executions.ts';
import type { AdministratorsRecord } from './administrators.ts';
import { accountsOf, sessionUid, text } from './artifacts.ts';
import type { AuthenticatorRecord, BrowserRecord, FactorChangesRecord } from './authenticators.ts';
import type { CollectionSpec } from './collection-spec.ts';
import type { ConnectedAccountRecord } from './connected-accounts.ts';
import type { DeliveryRecord } from './deliveries.ts';
import { type DocumentRecord, documentSecrets } from './documents.ts';
import type {
  ArtifactRecord,
  ConnectionKeyRecord,
  ConsentRecord,
  KeyCheckRecord,
  SharedSecretRecord,
  SigningKeyRecord,
} from './engine.ts';
import type { IdentityRecord } from './identities.ts';
import type { JobPartRecord, JobRecord } from './jobs.ts';
import type { LeaseRecord, TriesRecord } from './leases.ts';
import type { LogCountRecord, LogEventRecord, LogStreamPositionRecord } from './log-events.ts';
import { domainNamesOf, type InvitationRecord, type MembershipRecord } from './organizations.ts';
import type { PasskeyRecord } from './passkeys.ts';
import type { ChallengeRecord, FailureRecord, KnownCallerRecord, LimitRecord } from './protection-state.ts';
import type { Frozen, Stored } from './record.ts';
import type { RoleRecord } from './roles.ts';
import type { SamlLogoutRecord, SamlSessionRecord } from './saml-sessions.ts';
import { clientSecrets, connectionSecrets, tenantSecrets } from './secrets.ts';
import type {
  ClientGrantRecord,
  ClientRecord,
  ConnectionRecord,
  OrganizationRecord,
  ResourceServerRecord,
  TenantRecord,
} from './tenant.ts';
import type { CredentialRecord, UserRecord } from './users.ts';
import { identitiesSpec, usersSpec } from './users-specs.ts';

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
  /** The migrations that were applied, by name. */
  migrations: Stored;
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
}

export type CollectionName = keyof Records;

/** Collections of earlier releases whose records were only valid for minutes; their tables are dropped. */
export const retiredCollections: readonly string[] = ['oobChallenges'];

export type Client = Frozen<Records['clients']>;
export type Connection = Frozen<Records['connections']>;
export type ResourceServer = Frozen<Records['resourceServers']>;
export type ClientGrant = Frozen<Records['clientGrants']>;
export type Organization = Frozen<Records['organizations']>;

export const collections: { [N in CollectionName]: CollectionSpec<Records[N]> } = {
  tenant: { unique: {}, indexes: {}, kept: 'configuration', sealed: tenantSecrets },
  clients: { unique: {}, indexes: {}, kept: 'configuration', sealed: clientSecrets },
  resourceServers: { unique: { identifier: (api) => api.identifier }, indexes: {}, kept: 'configuration' },
  clientGrants: {
    unique: { clientAudience: (grant) => `${grant.client_id}\n${grant.audience}` },
    indexes: { client: (grant) => grant.client_id },
    fields: { client_id: 'text', audience: 'text' },
    kept: 'configuration',
  },
  connections: {
    unique: { name: (connection) => connection.name },
    indexes: {},
    kept: 'configuration',
    sealed: connectionSecrets,
  },
  organizations: {
    unique: { name: (organization) => organization.name, domain: domainNamesOf },
    indexes: {},
    kept: 'configuration',
  },
  documents: {
    unique: { name: (one) => (one.name === undefined ? undefined : `${one.kind}\n${one.name}`) },
    indexes: { kind: (one) => one.kind },
    kept: 'configuration',
    sealed: documentSecrets,
    added: true,
  },
  memberships: {
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
    unique: { ticket: (one) => one.ticketHash },
    indexes: { organization: (one) => one.organization_id },
  },
  roles: { unique: { name: (role) => role.name }, indexes: {}, kept: 'configuration', added: true },
  users: usersSpec,
  identities: identitiesSpec,
  credentials: { unique: {}, indexes: {} },
  administrators: { unique: {}, indexes: {} },
  administratorUsers: { unique: {}, indexes: { email: (user) => user.email } },
  administratorIdentities: identitiesSpec,
  administratorCredentials: { unique: {}, indexes: {} },
  migrations: { unique: {}, indexes: {} },
  signingKeys: { unique: {}, indexes: { state: (key) => key.state }, sealed: ['jwk'], cached: true },
  connectionKeys: {
    // Of two processes that create a connection's first keys concurrently, only one succeeds.
    unique: { state: (key) => `${key.connection}\n${key.state}` },
    indexes: { connection: (key) => key.connection },
    sealed: ['jwk'],
  },
  keyChecks: { unique: {}, indexes: {} },
  sharedSecrets: { unique: {}, indexes: {}, sealed: ['value'] },
  artifacts: {
    unique: {},
    indexes: {
      uid: (artifact) => (artifact.model === 'Session' ? text(artifact.payload.uid) : undefined),
      userCode: (artifact) => text(artifact.payload.userCode),
      grantId: (artifact) => text(artifact.payload.grantId),
      account: ({ payload }) => accountsOf(payload),
      session: ({ payload }) => sessionUid(payload),
    },
    named: {
      grantId: { collection: 'artifacts', prefix: 'Grant:' },
      account: { collection: 'users', prefix: '' },
    },
    hasRandomId: ({ model }) => model === 'AccessToken',
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
    unique: {
      first: (one) => (one.first === true ? one.user_id : undefined),
      credential: (one) => one.webauthn?.credential_id,
    },
    indexes: { user: (one) => one.user_id },
    sealed: ['secret', 'pushEndpoint'],
  },
  passkeys: { unique: {}, indexes: { user: (one) => one.user_id } },
  connectedAccounts: {
    unique: {},
    indexes: { user: (one) => one.user_id, connection: (one) => one.connection_id },
    sealed: ['grant'],
  },
  factorChanges: { unique: {}, indexes: {} },
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
  deliveries: {
    unique: {},
    indexes: {},
    fields: { kind: 'text', dueAt: 'text' },
    indexed: ['dueAt'],
    sealed: ['content'],
  },
  jobs: { unique: {}, indexes: { status: (job) => job.status }, sealed: ['linkKey'] },
  jobParts: { unique: {}, indexes: { job: (part) => `${part.job}\n${part.kind}` }, sealed: ['text'] },
  leases: { unique: {}, indexes: {} },
  tries: { unique: {}, indexes: {}, kept: 'memory' },
  limits: { unique: {}, indexes: {}, kept: 'memory' },
  logStreamPositions: { unique: {}, indexes: {} },
  actionExecutions: { unique: {}, indexes: {} },
  logCounts: { unique: {}, indexes: {} },
  logs: {
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
    },
    indexed: ['date', 'type'],
    indexedText: ['ip', 'client_id', 'connection'],
    hasRandomId: () => true,
  },
};
