// Declares everything that is stored: the record, the unique keys and the indexes of each collection. Records with
// names of the vendor's management API (clients, connections, users …) keep its snake_case.

import type { ActionExecutionRecord } from './action-executions.ts';
import type { AdministratorsRecord } from './administrators.ts';
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
import {
  artifactsSpec,
  challengesSpec,
  deliveriesSpec,
  failuresSpec,
  logsSpec,
  samlMessagesSpec,
} from './strangers-specs.ts';
import type {
  ClientGrantRecord,
  ClientRecord,
  ConnectionRecord,
  OrganizationRecord,
  ResourceServerRecord,
  TenantRecord,
} from './tenant.ts';
import type { CredentialRecord, UserRecord } from './users.ts';
import {
  authenticatorsSpec,
  connectedAccountsSpec,
  consentsSpec,
  identitiesSpec,
  passkeysSpec,
  samlSessionsSpec,
  usersSpec,
} from './users-specs.ts';

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
    added: true,
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
    added: true,
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
    writtenFor: { users: 'MAX_BROWSERS in factors/browsers.ts' },
    unique: {},
    indexes: { user: (one) => one.user_id },
  },
  failures: failuresSpec,
  knownCallers: {
    writtenFor: { users: 'MAX_CALLERS in protection/callers.ts' },
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
    writtenFor: { rate: 'MAX_COUNTERS in protection/counters.ts' },
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
};
