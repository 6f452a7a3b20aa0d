// Where each section of a tenant goes when it moves out: to the hosted service's deploy tool, or into the file of what only
// Gatehouse knows. A section that is added to the tenant file does not compile until it has its place here.
// docs/understand/decisions/moving.md#what-move-out-writes-is-read-by-the-deploy-tool-and-by-gatehouse-alike
import { createPublicKey } from 'node:crypto';
import { isOwnAudience } from '../records/clients/apis.ts';
import { credentialId } from '../records/clients/client-keys.ts';
import { strategyRecord } from '../records/connections/connections.ts';
import type { tenantFileSchema } from '../records/tenant/tenant.ts';
import { isJsonObject } from '../runtime/json.ts';
import { THEME, TOOL_NAMES } from './tool-names.ts';

export type Members = Readonly<Record<string, unknown>>;

/** What happens to an item: the form that the tool takes, or why it takes none. */
export type Taken = { item: Members } | { refused: string };

export interface SectionPlace {
  /**
   * Members that only Gatehouse knows, and what the hosted service gives itself, such as ids. Steps are separated by dots; `*` is
   * each item of a list, or each member.
   */
  ours?: readonly string[];
  /**
   * Returns the form of an item of a list, or of the section itself, which the tool takes.
   * @param item without what is ours.
   */
  form?: (item: Members, whole: Members) => Taken;
}

type SectionName = keyof typeof tenantFileSchema.shape;

const refusedUnless = (isTaken: boolean, refused: string, item: Members): Taken =>
  isTaken ? { item } : { refused };

/** Returns a member that is a text; an empty one for anything else. */
export const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Whether a text fits a pattern of the tool's for names of rules. */
const isRuleName = (name: unknown): boolean => /^[^-\s][a-zA-Z0-9-\s]+[^-\s]$/.test(text(name));

/** Returns an application with its public keys as the tool takes them: with a name, and as PEM. */
function withToolKeys(client: Members): Taken {
  if (/[<>]/.test(text(client.name))) return { refused: 'the hosted service takes no < or > in a name' };
  const methods = client.client_authentication_methods;
  if (!isJsonObject(methods)) return { item: client };
  const keyed = Object.entries(methods).map(([method, value]) => {
    const { credentials } = Object(value) as { credentials?: unknown };
    return [
      method,
      Array.isArray(credentials)
        ? { ...(value as object), credentials: credentials.flatMap((one: Members) => toolKey(one) ?? []) }
        : value,
    ];
  });
  return { item: { ...client, client_authentication_methods: Object.fromEntries(keyed) } };
}

function toolKey(credential: Members): Members | undefined {
  const { name, kid, jwk, credential_type: type, subject_dn } = credential;
  const named = { name: text(name ?? kid) || credentialId(credential), credential_type: type };
  const pem = credential.pem ?? (isJsonObject(jwk) ? pemOf(jwk) : undefined);
  return pem === undefined ? { ...named, subject_dn } : { ...named, pem };
}

function pemOf(jwk: Members): string | undefined {
  try {
    return createPublicKey({ key: { ...jwk }, format: 'jwk' })
      .export({ type: 'spki', format: 'pem' })
      .toString();
  } catch {
    return undefined;
  }
}

/** Returns a network ACL, if it has what the tool wants: a priority of 1 or more, one action, and signals. */
function withToolRule(acl: Members): Taken {
  const { priority, rule } = acl;
  const { action, match, not_match, scope, ...others } = Object(rule) as Record<string, unknown>;
  const actions = ['allow', 'block', 'log', 'redirect'].filter((name) => memberOf(action, name) === true);
  const [only = ''] = actions;
  const signals = [match, not_match].filter((one) => one !== undefined);
  const isTaken =
    typeof priority === 'number' &&
    priority >= 1 &&
    actions.length === 1 &&
    signals.length > 0 &&
    Object.keys(others).length === 0 &&
    signals.every((one) => Object.keys(Object(one)).every((name) => TOOL_NAMES.signals.has(name)));
  const refused = 'the deploy tool takes a priority of 1 or more, one action, and signals that it knows';
  if (!isTaken) return { refused };
  const uri = memberOf(action, 'redirect_uri');
  const one = { [only]: true, ...(only === 'redirect' && uri !== undefined && { redirect_uri: uri }) };
  return { item: { ...acl, rule: { ...(rule as object), action: one } } };
}

const memberOf = (value: unknown, name: string): unknown =>
  isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;

/**
 * Returns an Action with what the tool exports of one; the rest is what Gatehouse keeps of its versions. The tool knows one code, and
 * gets that in force: with changes that nobody has deployed it would run them, or run nothing.
 */
function withToolCode(
  action: Members,
  { deployed, deployed_version: version, deployed_secrets }: Members,
): Taken {
  const isVersion = deployed !== true && isJsonObject(version);
  const { code, dependencies, modules, runtime } = isVersion ? version : action;
  const used = [modules ?? []].flat() as Members[];
  return {
    item: {
      ...action,
      code: text(code),
      ...(runtime !== undefined && { runtime }),
      deployed: deployed === true || isVersion,
      ...((modules ?? action.modules) !== undefined && {
        modules: used.flatMap(({ module_name, module_version_number }) =>
          module_name === undefined || module_version_number === undefined
            ? []
            : [{ module_name, module_version_number }],
        ),
      }),
      dependencies: ([dependencies ?? []].flat() as Members[]).map(
        ({ name, version, registry_url: url }) => ({
          name,
          ...(typeof version === 'string' && { version }),
          ...(typeof url === 'string' && { registry_url: url }),
        }),
      ),
      secrets: secretsOf(isVersion ? { secrets: deployed_secrets ?? action.secrets } : action),
    },
  };
}

const secretsOf = ({ secrets }: Members): Members[] =>
  ([secrets ?? []].flat() as Members[]).map(({ name, value }) => ({
    name,
    ...(typeof value === 'string' && { value }),
  }));

function withToolModule(module: Members): Taken {
  const dependencies = [module.dependencies ?? []].flat() as Members[];
  return {
    item: {
      ...module,
      code: text(module.code),
      dependencies: dependencies.map(({ name, version }) => ({ name, version })),
      secrets: secretsOf(module),
    },
  };
}

const withBody = (template: Members): Taken => ({ item: { ...template, body: text(template.body) } });

/** Whether users of a connection log in by a code or link that is mailed to them. */
export const sendsMail = ({ strategy }: Members): boolean =>
  strategyRecord(text(strategy))?.proves === 'email';

/** The strategies of which the tool takes no option `issuer`. */
const WITHOUT_ISSUER: readonly unknown[] = ['samlp'];

/**
 * Returns a connection as the tool takes it. The mail of a passwordless connection has a text, which the tool reads from a file
 * that must be there, and a SAML connection has no `issuer`, which is another strategy's there.
 */
function withToolOptions(connection: Members): Taken {
  const { options, strategy } = connection;
  if (WITHOUT_ISSUER.includes(strategy) && isJsonObject(options)) {
    const { issuer: _, ...known } = options;
    return { item: { ...connection, options: known } };
  }
  if (!sendsMail(connection)) return { item: connection };
  const email = memberOf(options, 'email');
  const mail = { ...(isJsonObject(email) ? email : {}), body: text(memberOf(email, 'body')) };
  return { item: { ...connection, options: { ...(isJsonObject(options) ? options : {}), email: mail } } };
}

/** A section that only Gatehouse knows. */
const OURS = 'ours';

export const SECTIONS: Readonly<Record<SectionName, SectionPlace | typeof OURS>> = {
  actionModules: {
    ours: ['id', 'versions', 'deployed_version', 'latest_version', 'secrets.*.updated_at'],
    form: withToolModule,
  },
  actions: {
    ours: [
      ...['id', 'deployed_version', 'deployed_secrets', 'versions', 'all_changes_deployed', 'built_at'],
      ...['installed_integration_id', 'integration', 'secrets.*.updated_at'],
    ],
    form: withToolCode,
  },
  attackProtection: {
    ours: ['rateLimits'],
    form: (settings) => ({
      item: Object.fromEntries(
        Object.entries(settings).filter(([name]) => TOOL_NAMES.attackProtection.has(name)),
      ),
    }),
  },
  branding: { ours: ['terms_url', 'privacy_url'] },
  clientGrants: {
    ours: ['id'],
    form: (grant) =>
      isOwnAudience(text(grant.audience))
        ? {
            refused:
              'the API is the tenant’s own and has another identifier there: authorize the application for it there',
          }
        : { item: grant },
  },
  clients: {
    ours: [
      ...['client_id', 'signed_request_object', 'credentials', 'standard_claims', 'anonymous_sessions'],
      ...[
        'id_token_signed_response_alg',
        'id_token_encrypted_response_alg',
        'id_token_encrypted_response_enc',
      ],
      ...['userinfo_signed_response_alg', 'authorization_signed_response_alg'],
      ...['authorization_encrypted_response_alg', 'authorization_encrypted_response_enc'],
      'request_object_signing_alg',
      ...['frontchannel_logout_uri', 'addons.samlp.signAssertion', 'addons.samlp.allowUnverifiedIdentifiers'],
    ],
    form: withToolKeys,
  },
  connections: { ours: ['id', 'options.signOutResponseEndpoint'], form: withToolOptions },
  customClaims: OURS,
  customDomains: {
    ours: ['custom_domain_id', 'api_key_hashes', 'status', 'primary', 'verification'],
    form: (domain) =>
      refusedUnless(
        TOOL_NAMES.domainTypes.has(text(domain.type)),
        'the deploy tool wants a type, which says who has the certificate',
        domain,
      ),
  },
  databases: { ours: ['id', 'options.customScripts.change_username'] },
  emailProvider: {},
  emailTemplates: {
    form: (template) =>
      TOOL_NAMES.emailTemplates.has(text(template.template))
        ? withBody(template)
        : { refused: 'the deploy tool knows no such template' },
  },
  guardianFactors: {},
  guardianFactorTemplates: {},
  guardianPhoneFactorMessageTypes: {
    form: ({ message_types: types, ...rest }) => ({
      item: {
        ...rest,
        ...(Array.isArray(types) && {
          message_types: types.filter((one) => ['sms', 'voice'].includes(text(one))),
        }),
      },
    }),
  },
  guardianPolicies: {
    form: ({ policies, ...rest }) => ({
      item: { ...rest, policies: [policies ?? []].flat().filter((one) => one !== 'never') },
    }),
  },
  guardianSettings: OURS,
  logStreams: {
    ours: ['id', 'sink.httpSigningSecret'],
    form: (stream) => refusedUnless(stream.type !== 'file', 'the hosted service writes no files', stream),
  },
  managementApi: OURS,
  networkACLs: { ours: ['id'], form: withToolRule },
  organizations: { ours: ['id'], form: withGrantsByName },
  pages: {
    form: (page) =>
      refusedUnless(TOOL_NAMES.pages.has(text(page.name)), 'the deploy tool knows no such page', {
        ...page,
        html: text(page.html),
      }),
  },
  phoneTemplates: {
    ours: ['id', 'channel', 'customizable', 'tenant'],
    form: (template) =>
      refusedUnless(
        TOOL_NAMES.phoneTemplates.has(text(template.type)),
        'the deploy tool knows no such template',
        template,
      ),
  },
  prompts: {},
  resourceServers: {
    ours: ['id', 'allow_anonymous_access', 'subject_type_authorization.anonymous_user'],
  },
  roles: {
    ours: ['id'],
    form: (role) =>
      refusedUnless(role.owner_id === undefined, 'the deploy tool knows roles of the tenant alone', role),
  },
  rules: {
    ours: ['id'],
    form: (rule) =>
      refusedUnless(
        isRuleName(rule.name) && (rule.stage === undefined || TOOL_NAMES.ruleStages.has(text(rule.stage))),
        'the deploy tool does not take this name, or this stage',
        rule,
      ),
  },
  rulesConfigs: {
    form: (variable) =>
      refusedUnless(
        /^[A-Za-z0-9_-]*$/.test(text(variable.key)),
        'the deploy tool does not take this name',
        variable,
      ),
  },
  tenant: {
    ours: [
      ...['account_linking', 'account_page', 'acr_value_meanings', 'client_id_metadata_documents'],
      ...[
        'dynamic_client_registration',
        'flags.session_management',
        'flags.standard_claims',
        'language_menu',
      ],
      ...['log_retention_days', 'sessions.anonymous'],
    ],
  },
  themes: { ours: ['themeId'], form: wholeTheme },
  tokenExchangeProfiles: {
    ours: ['id', 'action_id'],
    form: (profile) =>
      refusedUnless(text(profile.action) !== '', 'it has no Action, which the deploy tool wants', profile),
  },
  triggers: { ours: ['*.*.on_error'] },
  unmanaged: OURS,
  users: OURS,
  vendor_channel: OURS,
  vendor_host: OURS,
  webPush: OURS,
};

/** Returns an organization without client grants that have no application, which it has by the grants' ids. */
function withGrantsByName(organization: Members): Taken {
  const { client_grants: grants, ...rest } = organization;
  if (!Array.isArray(grants)) return { item: organization };
  return { item: { ...rest, client_grants: grants.filter(isJsonObject) } };
}

/** The groups of a theme, all of which the tool wants. */
function wholeTheme(theme: Members): Taken {
  const isWhole = Object.entries(THEME).every(([group, names]) =>
    names.every((name) => memberOf(theme[group], name) !== undefined),
  );
  return refusedUnless(isWhole, 'the deploy tool wants a theme with all its members', theme);
}
