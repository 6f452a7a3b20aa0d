// The calls for settings that deploy tools write and read back.
import { z } from 'zod';
import { usualMembers } from '../../../records/tenant/documents.ts';
import { subjectTokenType } from '../../../records/tenant/exchange-profile-schema.ts';
import {
  type NetworkAcl,
  networkAclFault,
  networkAclShape,
  networkAclWarnings,
} from '../../../records/tenant/network-acls.ts';
import type { Call } from '../call.ts';
import { documentResourceCalls } from '../document-calls.ts';
import { type DocumentDependencies, documentsOf } from '../document-resource.ts';
import { idOf, letters } from '../ids.ts';
import { apiError } from '../management-errors.ts';
import { flag, repeatable } from '../management-fields.ts';
import { notFound } from '../resource.ts';
import type { StoredSetting } from './base/stored-setting.ts';
import { userAttributeProfiles } from './connections/user-attribute-profiles.ts';
import { phoneTemplates } from './tenant/phone-templates.ts';

// The settings that deploy tools write and read back. Rules run at logins; nothing uses the others: hooks of older
// tenants, forms and flows, profiles of self-service sign-up, event streams:
// docs/understand/decisions/management-api.md#resources-that-have-no-effect-here-are-stored

const object = z.record(z.string(), z.unknown());
const { description, active, rule, priority } = networkAclShape;
const objects = z.array(object).max(1000);
const text = z.string().max(2048);
const name = z.string().min(1).max(255);
const script = z.string().max(100_000);

/** Returns the next number in the order of rules, for a rule that has none. */
async function nextOrder(store: DocumentDependencies['store']): Promise<number> {
  const rules = await documentsOf(store, 'rules');
  return Math.max(0, ...rules.map(({ body }) => Number(body.order ?? 0))) + 1;
}

const hydrate = { hydrate: repeatable.optional() };

const STORED_SETTINGS: readonly StoredSetting[] = [
  {
    path: '/rate-limit-policies',
    name: 'rate limit policy',
    noun: 'rate_limit_policies',
    prefix: 'rlp',
    key: 'rate_limit_policies',
    isCursorOnly: true,
    required: { configuration: object },
    fixed: { resource: text, consumer: text, consumer_selector: text },
    filters: { resource: text.optional(), consumer: text.optional(), consumer_selector: text.optional() },
  },
  {
    path: '/rules',
    name: 'rule',
    noun: 'rules',
    prefix: 'rul',
    key: 'rules',
    hasDates: false,
    required: { name, script },
    optional: { order: z.number(), enabled: z.boolean() },
    fixed: { stage: z.enum(['login_success', 'login_failure', 'user_registration', 'pre_authorize']) },
    defaults: usualMembers.rules,
    generated: async ({ store }, { order }) => ({ order: order ?? (await nextOrder(store)) }),
    uniqueMember: 'name',
    filters: { enabled: flag.optional() },
  },
  {
    path: '/hooks',
    name: 'hook',
    noun: 'hooks',
    prefix: 'hok',
    key: 'hooks',
    hasDates: false,
    required: { name, script },
    optional: { enabled: z.boolean(), dependencies: object },
    fixed: { triggerId: text },
    afterRemoval: async ({ store }, id) => {
      await store.collection('documents').delete(`hook-secrets/${id}`);
    },
    defaults: { enabled: false },
    uniqueMember: 'name',
    filters: { enabled: flag.optional(), triggerId: text.optional() },
  },
  {
    path: '/forms',
    name: 'form',
    noun: 'forms',
    prefix: 'ap',
    key: 'forms',
    omitsEmpty: true,
    required: { name },
    optional: {
      description: text,
      messages: object,
      languages: object,
      translations: object,
      nodes: objects,
      start: object,
      ending: object,
      style: object,
    },
    omittedFromList: ['messages', 'languages', 'translations', 'nodes', 'start', 'ending', 'style'],
    filters: hydrate,
    missing: 'Form not found',
  },
  {
    path: '/flows',
    name: 'flow',
    noun: 'flows',
    prefix: 'af',
    key: 'flows',
    required: { name },
    optional: { actions: objects },
    omittedFromList: ['actions'],
    filters: { ...hydrate, synchronous: flag.optional() },
    missing: 'Flow not found',
  },
  {
    path: '/flows/vault/connections',
    name: 'connection of flows',
    noun: 'flows_vault_connections',
    prefix: 'ac',
    key: 'connections',
    required: { name },
    optional: { setup: object },
    fixed: { app_id: text, account_name: text, environment: text },
    defaults: { ready: false },
    hidden: ['setup'],
  },
  {
    path: '/self-service-profiles',
    name: 'self-service profile',
    noun: 'self_service_profiles',
    prefix: 'ssp',
    key: 'self_service_profiles',
    required: { name },
    optional: {
      description: text,
      branding: object,
      allowed_strategies: z.array(text).max(100),
      user_attributes: objects,
      user_attribute_profile_id: text,
    },
  },
  {
    path: '/event-streams',
    name: 'event stream',
    noun: 'event_streams',
    prefix: 'est',
    key: 'eventStreams',
    isCursorOnly: true,
    required: { destination: object },
    optional: { name, subscriptions: objects, status: z.enum(['enabled', 'disabled']) },
    defaults: { status: 'enabled', subscriptions: [] },
    hidden: ['token', 'password', 'header_value'].map(
      (name) => `destination.configuration.webhook_authorization.${name}`,
    ),
  },
  {
    path: '/token-exchange-profiles',
    name: 'token exchange profile',
    noun: 'token_exchange_profiles',
    prefix: 'tep',
    key: 'token_exchange_profiles',
    isCursorOnly: true,
    required: { name, subject_token_type: subjectTokenType },
    fixed: { action_id: text, type: z.enum(['custom_authentication', 'on_behalf_of_token_exchange']) },
    generated: async ({ store }, { action_id: id }) => {
      const action = typeof id === 'string' ? await store.collection('documents').get(id) : undefined;
      if (action?.kind !== 'action') throw apiError(400, 'The action does not exist.', 'invalid_body');
      return {};
    },
    uniqueMember: 'subject_token_type',
  },
  userAttributeProfiles,
  {
    path: '/connection-profiles',
    name: 'connection profile',
    noun: 'connection_profiles',
    prefix: 'cop',
    key: 'connection_profiles',
    hasDates: false,
    isCursorOnly: true,
    required: { name },
    optional: {
      organization: object,
      connection_name_prefix_template: text,
      enabled_features: z.array(text).max(100),
      connection_config: object,
      strategy_overrides: object,
      provisioning: object,
      cross_app_access_resource_app: object,
    },
  },
  {
    path: '/network-acls',
    name: 'network ACL',
    noun: 'network_acls',
    prefix: 'acl',
    key: 'network_acls',
    hasPut: true,
    required: { description, active, rule },
    optional: { priority },
    validate: (acl) => {
      const fault = networkAclFault(acl as Partial<NetworkAcl>);
      if (fault !== undefined) throw apiError(400, fault, 'invalid_body');
    },
    warnings: (acl) => networkAclWarnings(acl as Partial<NetworkAcl>),
  },
  {
    path: '/branding/phone/providers',
    name: 'phone provider',
    noun: 'phone_providers',
    prefix: 'pro',
    key: 'providers',
    required: { name: z.enum(['twilio', 'custom']), credentials: object },
    optional: { disabled: z.boolean(), configuration: object },
    defaults: { channel: 'phone', disabled: false },
    uniqueMember: 'channel',
    hidden: ['credentials'],
    unpaged: 'wrapped',
    filters: { disabled: flag.optional() },
  },
  phoneTemplates,
];

/** Returns the calls of one kind. Query parameters that are members of the record filter the list. */
function callsOf({
  prefix,
  key,
  isCursorOnly = false,
  required,
  optional = {},
  fixed = {},
  missing,
  ...kept
}: StoredSetting) {
  const { path, name: called, filters = {} } = kept;
  const named = z.strictObject(required);
  const rest = z.strictObject(optional).partial();
  return documentResourceCalls({
    ...kept,
    kind: path.slice(1),
    newId: (random) =>
      prefix === 'ap' || prefix === 'af' ? `${prefix}_${letters(22, random)}` : idOf(prefix, random),
    createBody: z.strictObject({ ...rest.shape, ...z.strictObject(fixed).partial().shape, ...named.shape }),
    patchBody: z.strictObject({ ...nullable(optional), ...named.partial().shape }),
    list: { key, isCursorOnly },
    matches: (item, query) =>
      Object.keys(filters).every(
        (filter) => query[filter] === undefined || !(filter in item) || item[filter] === query[filter],
      ),
    missing: notFound(missing ?? `The ${called} does not exist`),
    taken: `There is such a ${called} already.`,
  });
}

/** Returns the members with null allowed, which removes a member. */
function nullable(shape: z.ZodRawShape): z.ZodRawShape {
  return Object.fromEntries(
    Object.entries(shape).map(([member, schema]) => [member, z.optional(z.nullable(schema as z.ZodType))]),
  );
}

export const storedSettingCalls: Call<DocumentDependencies>[] = STORED_SETTINGS.flatMap(callsOf);
