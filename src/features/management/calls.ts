// The list of all calls. A new resource is a file in `resources/` and a line here.
import type { Call } from './call.ts';
import type { DocumentDependencies } from './document-resource.ts';
import { actionBindingCalls } from './resources/actions/action-bindings.ts';
import { actionModuleCalls } from './resources/actions/action-modules.ts';
import { type ActionRunDependencies, actionRunCalls } from './resources/actions/action-runs.ts';
import { type ActionVersionDependencies, actionVersionCalls } from './resources/actions/action-versions.ts';
import { singleSettingCalls } from './resources/base/single-settings.ts';
import { unusedCalls } from './resources/base/unused.ts';
import {
  type ClientCredentialsDependencies,
  clientCredentialCalls,
} from './resources/clients/client-credentials.ts';
import {
  type ClientDocumentsDependencies,
  clientDocumentCalls,
} from './resources/clients/client-documents.ts';
import { type ClientGrantsDependencies, clientGrantCalls } from './resources/clients/client-grants.ts';
import { type ClientsDependencies, clientCalls } from './resources/clients/clients-calls.ts';
import {
  type ResourceServersDependencies,
  resourceServerCalls,
} from './resources/clients/resource-servers.ts';
import { connectionClientCalls } from './resources/connections/connection-clients.ts';
import {
  type ConnectionKeysDependencies,
  connectionKeyCalls,
} from './resources/connections/connection-keys.ts';
import { type ConnectionsDependencies, connectionCalls } from './resources/connections/connections-calls.ts';
import { directoryProvisioningCalls } from './resources/connections/directory-provisioning.ts';
import type { ScimConfigurationDependencies } from './resources/connections/scim.ts';
import { scimConfigurationCalls } from './resources/connections/scim-configuration.ts';
import { logStreamCalls } from './resources/log/log-streams.ts';
import { type LogsDependencies, logCalls } from './resources/log/logs.ts';
import { type StatsDependencies, statsCalls } from './resources/log/stats.ts';
import { organizationGrantCalls } from './resources/organizations/client-grants.ts';
import { organizationDomainCalls } from './resources/organizations/domains.ts';
import { type InvitationsDependencies, invitationCalls } from './resources/organizations/invitations.ts';
import { organizationClientCalls } from './resources/organizations/organization-clients-calls.ts';
import { organizationConnectionCalls } from './resources/organizations/organization-connections-calls.ts';
import { organizationMemberCalls } from './resources/organizations/organization-members-calls.ts';
import { organizationRoleCalls } from './resources/organizations/organization-roles.ts';
import {
  type OrganizationsDependencies,
  organizationCalls,
} from './resources/organizations/organizations.ts';
import { type RolesDependencies, roleCalls } from './resources/organizations/roles-calls.ts';
import { storedSettingCalls } from './resources/stored-setting-calls.ts';
import { storedPartCalls } from './resources/stored-setting-parts.ts';
import { attackProtectionCalls } from './resources/tenant/attack-protection.ts';
import { brandingCalls } from './resources/tenant/branding.ts';
import { customClaimCalls } from './resources/tenant/custom-claims.ts';
import { type CustomDomainDependencies, customDomainCalls } from './resources/tenant/custom-domains.ts';
import { emailProviderCalls } from './resources/tenant/email-provider.ts';
import { emailTemplateCalls } from './resources/tenant/email-templates.ts';
import { guardianCalls } from './resources/tenant/guardian.ts';
import { type PhoneTemplateDependencies, phoneTemplateCalls } from './resources/tenant/phone-templates.ts';
import { promptTextCalls } from './resources/tenant/prompts.ts';
import { type SigningKeysDependencies, signingKeyCalls } from './resources/tenant/signing-keys.ts';
import { tenantCalls } from './resources/tenant/tenant-calls.ts';
import { type UserAccessDependencies, userAccessCalls } from './resources/users/access.ts';
import { type BlocksDependencies, blockCalls } from './resources/users/blocks.ts';
import { deviceCredentialCalls } from './resources/users/device-credentials.ts';
import { type EnrollmentsDependencies, enrollmentsCalls } from './resources/users/enrollments.ts';
import { userFactorCalls } from './resources/users/factors.ts';
import { type UserIdentitiesDependencies, userIdentityCalls } from './resources/users/identities.ts';
import { refreshTokenCalls } from './resources/users/refresh-tokens.ts';
import { userSearchCalls } from './resources/users/search.ts';
import { type TicketsDependencies, ticketCalls } from './resources/users/tickets.ts';
import type { UsersDependencies } from './resources/users/user-calls.ts';
import { connectedAccountCalls } from './resources/users/user-connected-accounts-calls.ts';
import { type GrantsDependencies, grantCalls } from './resources/users/user-grants-calls.ts';
import { type JobsDependencies, jobCalls } from './resources/users/user-jobs-calls.ts';
import { type SessionsDependencies, sessionCalls } from './resources/users/user-sessions-calls.ts';
import { userRecordCalls } from './resources/users/users-calls.ts';

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
  PhoneTemplateDependencies &
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
  ...phoneTemplateCalls,
  ...storedPartCalls,
  ...actionVersionCalls,
  ...actionRunCalls,
  ...actionModuleCalls,
  ...directoryProvisioningCalls,
  ...jobCalls,
  ...ticketCalls,
  ...unusedCalls,
];
