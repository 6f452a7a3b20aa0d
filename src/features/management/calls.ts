// The list of all calls. A new resource is a file in `resources/` and a line here.
import type { Call } from './call.ts';
import type { DocumentDependencies } from './document-resource.ts';
import { actionBindingCalls } from './resources/action-bindings.ts';
import { actionModuleCalls } from './resources/action-modules.ts';
import { type ActionRunDependencies, actionRunCalls } from './resources/action-runs.ts';
import { type ActionVersionDependencies, actionVersionCalls } from './resources/action-versions.ts';
import { attackProtectionCalls } from './resources/attack-protection.ts';
import { brandingCalls } from './resources/branding.ts';
import { type ClientCredentialsDependencies, clientCredentialCalls } from './resources/client-credentials.ts';
import { type ClientDocumentsDependencies, clientDocumentCalls } from './resources/client-documents.ts';
import { type ClientGrantsDependencies, clientGrantCalls } from './resources/client-grants.ts';
import { type ClientsDependencies, clientCalls } from './resources/clients.ts';
import { connectionClientCalls } from './resources/connection-clients.ts';
import { type ConnectionKeysDependencies, connectionKeyCalls } from './resources/connection-keys.ts';
import { type ConnectionsDependencies, connectionCalls } from './resources/connections.ts';
import { customClaimCalls } from './resources/custom-claims.ts';
import { type CustomDomainDependencies, customDomainCalls } from './resources/custom-domains.ts';
import { deviceCredentialCalls } from './resources/device-credentials.ts';
import { directoryProvisioningCalls } from './resources/directory-provisioning.ts';
import { emailProviderCalls } from './resources/email-provider.ts';
import { emailTemplateCalls } from './resources/email-templates.ts';
import { type GrantsDependencies, grantCalls } from './resources/grants.ts';
import { guardianCalls } from './resources/guardian.ts';
import { type JobsDependencies, jobCalls } from './resources/jobs.ts';
import { logStreamCalls } from './resources/log-streams.ts';
import { type LogsDependencies, logCalls } from './resources/logs.ts';
import { organizationGrantCalls } from './resources/organizations/client-grants.ts';
import { organizationClientCalls } from './resources/organizations/clients.ts';
import { organizationConnectionCalls } from './resources/organizations/connections.ts';
import { organizationDomainCalls } from './resources/organizations/domains.ts';
import { type InvitationsDependencies, invitationCalls } from './resources/organizations/invitations.ts';
import { organizationMemberCalls } from './resources/organizations/members.ts';
import {
  type OrganizationsDependencies,
  organizationCalls,
} from './resources/organizations/organizations.ts';
import { organizationRoleCalls } from './resources/organizations/roles.ts';
import { promptTextCalls } from './resources/prompts.ts';
import { refreshTokenCalls } from './resources/refresh-tokens.ts';
import { type ResourceServersDependencies, resourceServerCalls } from './resources/resource-servers.ts';
import { type RolesDependencies, roleCalls } from './resources/roles.ts';
import type { ScimConfigurationDependencies } from './resources/scim.ts';
import { scimConfigurationCalls } from './resources/scim-configuration.ts';
import { type SessionsDependencies, sessionCalls } from './resources/sessions.ts';
import { type SigningKeysDependencies, signingKeyCalls } from './resources/signing-keys.ts';
import { singleSettingCalls } from './resources/single-settings.ts';
import { type StatsDependencies, statsCalls } from './resources/stats.ts';
import { storedSettingCalls } from './resources/stored-setting-calls.ts';
import { storedPartCalls } from './resources/stored-setting-parts.ts';
import { tenantCalls } from './resources/tenant.ts';
import { type TicketsDependencies, ticketCalls } from './resources/tickets.ts';
import { unusedCalls } from './resources/unused.ts';
import { type UserAccessDependencies, userAccessCalls } from './resources/users/access.ts';
import { type BlocksDependencies, blockCalls } from './resources/users/blocks.ts';
import { connectedAccountCalls } from './resources/users/connected-accounts.ts';
import { type EnrollmentsDependencies, enrollmentsCalls } from './resources/users/enrollments.ts';
import { userFactorCalls } from './resources/users/factors.ts';
import { type UserIdentitiesDependencies, userIdentityCalls } from './resources/users/identities.ts';
import { userSearchCalls } from './resources/users/search.ts';
import type { UsersDependencies } from './resources/users/user.ts';
import { userRecordCalls } from './resources/users/users.ts';

export type ManagementDependencies = ClientsDependencies &
  ClientDocumentsDependencies &
  CustomDomainDependencies &
  ClientCredentialsDependencies &
  ResourceServersDependencies &
  ClientGrantsDependencies &
  ConnectionsDependencies &
  ConnectionKeysDependencies &
  OrganizationsDependencies &
  InvitationsDependencies &
  RolesDependencies &
  SigningKeysDependencies &
  SessionsDependencies &
  GrantsDependencies &
  ScimConfigurationDependencies &
  StatsDependencies &
  UsersDependencies &
  LogsDependencies &
  UserAccessDependencies &
  UserIdentitiesDependencies &
  EnrollmentsDependencies &
  JobsDependencies &
  TicketsDependencies &
  BlocksDependencies &
  ActionVersionDependencies &
  ActionRunDependencies &
  DocumentDependencies;

export const MANAGEMENT_CALLS: readonly Call<ManagementDependencies>[] = [
  ...clientDocumentCalls,
  ...clientCalls,
  ...clientCredentialCalls,
  ...resourceServerCalls,
  ...clientGrantCalls,
  ...connectionCalls,
  ...connectionClientCalls,
  ...connectionKeyCalls,
  ...userRecordCalls,
  ...userSearchCalls,
  ...userAccessCalls,
  ...userIdentityCalls,
  ...userFactorCalls,
  ...connectedAccountCalls,
  ...enrollmentsCalls,
  ...blockCalls,
  ...roleCalls,
  ...organizationCalls,
  ...organizationConnectionCalls,
  ...organizationMemberCalls,
  ...organizationRoleCalls,
  ...organizationGrantCalls,
  ...organizationDomainCalls,
  ...organizationClientCalls,
  ...invitationCalls,
  ...signingKeyCalls,
  ...sessionCalls,
  ...refreshTokenCalls,
  ...grantCalls,
  ...deviceCredentialCalls,
  ...scimConfigurationCalls,
  ...statsCalls,
  ...guardianCalls,
  ...emailProviderCalls,
  ...emailTemplateCalls,
  ...tenantCalls,
  ...attackProtectionCalls,
  ...brandingCalls,
  ...promptTextCalls,
  ...customClaimCalls,
  ...customDomainCalls,
  ...logCalls,
  ...logStreamCalls,
  ...actionBindingCalls,
  ...singleSettingCalls,
  ...storedSettingCalls,
  ...storedPartCalls,
  ...actionVersionCalls,
  ...actionRunCalls,
  ...actionModuleCalls,
  ...directoryProvisioningCalls,
  ...jobCalls,
  ...ticketCalls,
  ...unusedCalls,
];
