// What the hosted service keeps although it cannot have the effect that somebody may expect, and a tenant file may have, too.

import { isManagementAudience, isMyAccountAudience } from '../records/clients/apis.ts';
import { authenticationMethod } from '../records/clients/client-authentication.ts';
import { customScript, missingScripts } from '../records/connections/custom-scripts.ts';
import { runnableModules } from '../records/tenant/action-modules.ts';
import { deployedOf } from '../records/tenant/actions.ts';
import { isReservedType } from '../records/tenant/exchange-profile-schema.ts';
import type { TenantFile } from '../records/tenant/tenant.ts';
import { isSpoken, NO_VOICE } from '../records/users/guardian.ts';
import type { Finding } from './findings.ts';

export function keptFindings(file: TenantFile): Finding[] {
  return [
    ...draftFindings(file),
    ...unboundFindings(file),
    ...moduleFindings(file),
    ...scriptFindings(file),
    ...grantFindings(file),
    ...profileFindings(file),
    ...clientFindings(file),
    ...messageTypeFindings(file),
  ];
}

function messageTypeFindings({
  guardianPhoneFactorMessageTypes: { message_types: types } = {},
}: TenantFile): Finding[] {
  if (!isSpoken(types)) return [];
  return [{ rank: 'different', at: 'guardianPhoneFactorMessageTypes.message_types', says: NO_VOICE }];
}

// docs/understand/decisions/actions-scripts.md#an-action-that-is-bound-as-a-draft-fails
/** Returns findings about bound actions of which the file has only a draft. */
function draftFindings({ actions = [], triggers = {} }: TenantFile): Finding[] {
  const drafts = new Map(
    actions.flatMap((body, index) =>
      deployedOf({ body }, []) === undefined ? [[String(body.name), index] as const] : [],
    ),
  );
  return Object.entries(triggers).flatMap(([trigger, bound]) =>
    bound.flatMap(({ action_name, on_error }): Finding[] => {
      const name = String(action_name);
      const index = drafts.get(name);
      if (index === undefined) return [];
      const effect = on_error === 'continue' ? 'does not run' : 'fails, and what it is bound to with it';
      return [
        {
          rank: 'unsafe',
          at: `actions[${index}].deployed`,
          says: `${name} is bound to ${trigger}, and the file has only a draft of it: until one is deployed it ${effect}; to run this code, write deployed: true`,
          several:
            'actions are bound as drafts, and fail with what they are bound to until they are deployed; to run this code, write deployed: true',
          item: `${name} at ${trigger}`,
        },
      ];
    }),
  );
}

/** Returns findings about triggers with actions that the file does not have. */
function unboundFindings({ actions = [], triggers = {}, unmanaged }: TenantFile): Finding[] {
  if (unmanaged?.sections.includes('actions') === true) return [];
  const names = new Set(actions.map(({ name }) => String(name)));
  return Object.entries(triggers).flatMap(([trigger, bound]) =>
    bound.flatMap(({ action_name }, at): Finding[] =>
      names.has(String(action_name))
        ? []
        : [
            {
              rank: 'unsafe',
              at: `triggers.${trigger}[${at}].action_name`,
              says: `there is no action ${String(action_name)}: until there is, what it is bound to fails`,
              several: 'triggers have actions that are not there, and fail until they are',
              item: `${String(action_name)} at ${trigger}`,
            },
          ],
    ),
  );
}

/** Returns findings about modules of actions that the file does not have in that version. */
function moduleFindings({ actions = [], actionModules }: TenantFile): Finding[] {
  // A file without the section leaves the stored modules unchanged.
  if (actionModules === undefined) return [];
  const modules = actionModules.map((body) => ({ id: String(body.id), body }));
  return actions.flatMap(({ name: action, modules: used }, index) =>
    runnableModules(used, modules).flatMap(({ name, found }, at): Finding[] =>
      found === undefined
        ? [
            {
              rank: 'unsafe',
              at: `actions[${index}].modules[${at}]`,
              says: `there is no module ${name} that is published in that version: ${String(action)} fails until there is`,
              several:
                'modules that actions use are not published in that version, and the actions fail until they are',
              item: `${name} in ${String(action)}`,
            },
          ]
        : [],
    ),
  );
}

/** Returns findings about client grants for what the file does not have. */
function grantFindings({ clientGrants, clients, resourceServers, unmanaged }: TenantFile): Finding[] {
  const sections = unmanaged?.sections ?? [];
  const applications = new Set(clients.flatMap((client) => [client.client_id, client.name]));
  const apis = new Set(resourceServers.map((api) => api.identifier));
  const isApplication = (id: string | undefined) =>
    id === undefined || sections.includes('clients') || applications.has(id);
  const isApi = (audience: string) =>
    isManagementAudience(audience) ||
    isMyAccountAudience(audience) ||
    sections.includes('resourceServers') ||
    (unmanaged?.resourceServers.length ?? 0) > 0 ||
    apis.has(audience);
  const finding = (index: number, member: 'client_id' | 'audience', what: string): Finding => ({
    rank: 'unusable',
    at: `clientGrants[${index}].${member}`,
    says: `${what} here: the grant is kept, and grants nothing`,
    several: 'client grants are for what is not there; they are kept, and grant nothing',
    item: what,
  });
  return clientGrants.flatMap(({ client_id: id, audience }, index) => [
    ...(isApplication(id) ? [] : [finding(index, 'client_id', `${id} is no application`)]),
    ...(isApi(audience) ? [] : [finding(index, 'audience', `${audience} is no API`)]),
  ]);
}

// docs/understand/decisions/connections.md#a-database-that-moves-its-users-takes-no-sign-ups-without-its-scripts
function scriptFindings({ databases }: TenantFile): Finding[] {
  return databases.flatMap(({ name, options }, index): Finding[] => {
    const missing = missingScripts(options);
    if (missing.length === 0) return [];
    const movesNobody = customScript(options, 'login') === undefined;
    const effect = movesNobody ? 'users of the old database cannot log in, and nobody' : 'nobody';
    return [
      {
        rank: 'unusable',
        at: `databases[${index}].options.customScripts`,
        says: `without ${missing.join(' and ')} ${effect} can sign up in ${name}, because somebody could take the name of one who has not moved yet`,
        several: 'databases move their users without the scripts for it, so that nobody can sign up there',
        item: `${name} without ${missing.join(' and ')}`,
      },
    ];
  });
}

/** Returns findings about token exchange profiles of reserved types, and without an action that validates tokens. */
function profileFindings({ tokenExchangeProfiles = [], actions }: TenantFile): Finding[] {
  const isThere = (action: string | undefined, id: string | undefined) =>
    // A file without the section leaves the stored actions unchanged.
    actions === undefined ||
    actions.some((one) => one.name === action || (id !== undefined && one.id === id));
  const lacking = tokenExchangeProfiles.flatMap(({ name, action, action_id: id }, index): Finding[] =>
    isThere(action, id)
      ? []
      : [
          {
            rank: 'unusable',
            at: `tokenExchangeProfiles[${index}].action`,
            says: `there is no action ${action ?? id ?? ''}: ${name} exchanges nothing`,
            several: 'token exchange profiles have actions that are not there, and exchange nothing',
            item: name,
          },
        ],
  );
  const reserved = tokenExchangeProfiles.flatMap(({ name, subject_token_type: type }, index): Finding[] =>
    isReservedType(type)
      ? [
          {
            rank: 'unusable',
            at: `tokenExchangeProfiles[${index}].subject_token_type`,
            says: `${type} is in a namespace that is reserved: ${name} is kept, and exchanges nothing`,
            several: 'token exchange profiles have types of reserved namespaces, and exchange nothing',
            item: `${name}: ${type}`,
          },
        ]
      : [],
  );
  return [...lacking, ...reserved];
}

function clientFindings({ clients }: TenantFile): Finding[] {
  const publicClients = clients
    .map((client, index) => ({ client, index }))
    .filter(({ client }) => authenticationMethod(client) === 'none');
  return [
    ...publicClients
      .filter(({ client }) => client.grant_types?.includes('client_credentials') === true)
      .map(
        ({ client: { name }, index }): Finding => ({
          rank: 'different',
          at: `clients[${index}].grant_types`,
          says: `client_credentials is kept, and never granted: ${name} does not prove who it is`,
          several:
            'applications that do not prove who they are have client_credentials, which is kept, and never granted',
          item: name,
        }),
      ),
    ...publicClients
      .filter(
        ({ client }) =>
          client.jwt_configuration.alg === 'HS256' && client.id_token_signed_response_alg === undefined,
      )
      .map(
        ({ client: { name }, index }): Finding => ({
          rank: 'different',
          at: `clients[${index}].jwt_configuration.alg`,
          says: `ID tokens of ${name} are signed with RS256: it has no secret for HS256`,
          several: 'applications have no secret for HS256: their ID tokens are signed with RS256',
          item: name,
        }),
      ),
  ];
}
